"""Descriptions of the states of every class: what they show, their position in spans, what follows, examples.

They come from the best path of states through the training text, inside its known tags, for generative chains and CRFs
alike. Everything stored is partly training text: see `describe` for what is left out.

N tokens with pads between sentences, M without; Y states.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from chaffinch.errors import DataError
from chaffinch.features import word_types as types
from chaffinch.features.observe import Observed
from chaffinch.kernels import Batch, Floats, Ints, viterbi
from chaffinch.models.classhmm.describe import roles
from chaffinch.models.classhmm.describe.features import StateFeatures
from chaffinch.models.classhmm.describe.report import BEGIN, END, Class, Piece, Roles, Share, State, Substructure
from chaffinch.models.classhmm.model import Model
from chaffinch.models.core.evidence import Evidence
from chaffinch.models.core.labels import Labels
from chaffinch.models.core.tasks import Task
from chaffinch.models.latent.parts import state_names, tag_name
from chaffinch.text import Document

__all__ = ["Class", "Roles", "State", "Substructure", "describe", "measure"]

EXAMPLES, NEIGHBOURS = 20, 6  # most examples listed of a class; most neighbours listed of a state
SELDOM = 0.01  # neighbours with a smaller share are not listed, to keep descriptions short


class Mentions(NamedTuple):
    """The spans of all documents as runs of tokens among the N."""

    starts: Ints
    ends: Ints
    labels: Ints  # numbers of their labels


def describe(model: Model, evidence: Evidence, seen: Observed | None = None) -> Model:
    """Return the model with its states described, and their token counts, from the training documents' best paths.

    Privacy: a word, an affix or an example is kept only if as many patients used it, inside spans of the same class, as
    the model's floor says, and at least two if there are two. An example counts as a whole. With `private` there are no
    examples, no words that occur mostly in spans, and no affixes that fewer patients show outside of spans. `seen` are
    the evidence's documents with the model's features, if they were observed before.
    """
    paths = _BestPaths.of(model, evidence, seen)
    mass = np.bincount(paths.states[paths.seen.places], minlength=len(model.labels.tag_of)).astype(float)
    substructure = Substructure(tuple(paths.classes()), paths.need, bool(model.config.private))
    return replace(model, portrait=replace(model.portrait, mass=mass), substructure=substructure)


def measure(model: Model, documents: Sequence[Document], *, layer: str | None = None) -> dict[str, Roles]:
    """Compare each label's states with roles of its words, on any documents; DataError for a label the model lacks."""
    task = Task.of(documents, layer=layer, soft=None, names=model.names)
    if task.names != model.names:
        new = ", ".join(task.names[len(model.names) :])
        raise DataError(f"the model has no label {new}; it has {', '.join(model.names)}; leave those spans out")
    paths = _BestPaths.of(model, Evidence.of(task, Labels(task.names, model.labels.scheme)))
    return {name: paths.roles(number) for number, name in enumerate(model.names)}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _BestPaths:
    """Documents with the best states inside their tags."""

    model: Model
    evidence: Evidence
    seen: Observed
    states: Ints  # (N,) -1 at pads
    mentions: Mentions
    words: list[str]  # of every type

    @classmethod
    def of(cls, model: Model, evidence: Evidence, seen: Observed | None = None) -> _BestPaths:
        """Return all sentences' best states inside the tags that the evidence allows, and the mentions they make."""
        seen, batch = model.batch(evidence.task.docs, seen=seen)
        active, logs = evidence.active(model.labels)
        cells = np.repeat(np.arange(len(active.which)), active.widths), active.cells
        emit = batch.emit[cells] if logs is None else batch.emit[cells] + logs
        path = viterbi(Batch(batch.start, batch.trans, emit, batch.end, batch.bounds, active)).states
        states = np.full(len(seen.types), -1, np.int64)
        states[seen.places] = path
        tags = np.where(states < 0, 0, model.labels.tag_of[states])
        plain = Labels(model.labels.names, model.labels.scheme)
        starts, ends, label = plain.run_arrays(tags.astype(np.int32))
        return cls(model, evidence, seen, states, Mentions(starts, ends, label), types.words_of(seen))

    @property
    def need(self) -> int:
        """Return how many patients must have used a word, feature or example that is listed."""
        return max(self.model.floor, min(2, int(self.evidence.task.patients.max()) + 1))

    def classes(self) -> Iterator[Class]:
        """Yield the class of O, then of every label: its states with traits and neighbours, roles, examples."""
        model, names = self.model, state_names(self.model.labels)
        path, inside = self.states[self.seen.places], np.zeros(len(self.states), np.bool_)
        tag_of = model.labels.tag_of
        inside[self.seen.places] = tag_of[path] > 0
        known = model.words.vocabulary if model.words is not None else model.crf.vocabulary  # type: ignore[union-attr]
        shown = StateFeatures.of(
            self.seen, known, (model.config.features, model.pack), self.evidence.task.patients,
            inside[self.seen.places], self.need, private=bool(model.config.private),
        )  # fmt: skip
        around, within = self.moves(), self.moves_in_spans()
        owners = np.array([-1 if tag == 0 else model.names.index(model.labels.tags[tag][2:]) for tag in tag_of])
        for label in range(-1, len(model.names)):
            class_states = np.flatnonzero(owners == label)
            counts = np.bincount(path, minlength=len(tag_of))[class_states]
            states = []
            for state, count, (words, features) in zip(
                class_states.tolist(), counts.tolist(), shown.describe_states(path, class_states), strict=True
            ):
                positions = self.positions(state) if label >= 0 else ()
                after = _shares((*names, END), (within if label >= 0 else around)[state])
                before, leads = _shares((*names, BEGIN), around[:, state]), self.leads(around[state])
                number, share = int(names[state].rpartition("/")[2]), round(count / max(int(counts.sum()), 1), 4)
                details = (count, share, words, features, positions, after, before, leads)
                states.append(State(names[state], tag_name(model.labels, int(tag_of[state])), number, *details))
            name, mentions = "O" if label < 0 else model.names[label], int((self.mentions.labels == label).sum())
            role_measure = self.roles(label) if label >= 0 else Roles(reason="it has no mentions")
            yield Class(name, int(counts.sum()), mentions, tuple(states), role_measure, tuple(self.examples(label)))

    def moves(self) -> Floats:
        """Return (Y+1, Y+1) counts of state pairs in sentences; row Y begins a sentence, column Y ends it."""
        Y = len(self.model.labels.tag_of)
        before, after = self.states[:-1], self.states[1:]
        numbers = np.where(before < 0, Y, before) * (Y + 1) + np.where(after < 0, Y, after)
        counts = np.bincount(numbers, minlength=(Y + 1) ** 2).astype(float).reshape(Y + 1, Y + 1)
        counts[Y, Y] = 0.0
        return counts

    def moves_in_spans(self) -> Floats:
        """Return (Y+1, Y+1) counts of state pairs inside spans; column Y ends a span."""
        Y, last = len(self.model.labels.tag_of), np.zeros(len(self.states), np.bool_)
        last[self.mentions.ends - 1] = True
        where = np.flatnonzero(_inside(self.mentions, len(self.states)))
        after = np.where(last[where], Y, self.states[np.minimum(where + 1, len(self.states) - 1)])
        counts = np.bincount(self.states[where] * (Y + 1) + after, minlength=(Y + 1) ** 2)
        return counts.astype(float).reshape(Y + 1, Y + 1)

    def positions(self, state: int) -> tuple[float, ...]:
        """Return the shares of first, inner, last and single tokens among a state's tokens in spans."""
        first, last = (np.zeros(len(self.states), np.bool_) for _ in range(2))
        first[self.mentions.starts], last[self.mentions.ends - 1] = True, True
        here = self.states == state
        counts = [
            int((here & a & b).sum()) for a, b in ((first, ~last), (~first, ~last), (~first, last), (first, last))
        ]
        return tuple(round(count / max(sum(counts), 1), 4) for count in counts)

    def leads(self, row: Floats) -> tuple[Share, ...]:
        """Return (tag, share) of the tags that follow a state, given its row of counted moves."""
        labels = self.model.labels
        sums: Floats = np.bincount(np.append(labels.tag_of, len(labels.tags)), row, len(labels.tags) + 1).astype(float)
        return _shares((*(tag_name(labels, tag) for tag in range(len(labels.tags))), END), sums, most=len(sums))

    def mentions_of(self, label: int) -> Iterator[tuple[int, tuple[str, ...], tuple[int, ...]]]:
        """Yield (document, words, state numbers from 1) of every mention of a label."""
        names = [int(name.rpartition("/")[2]) for name in state_names(self.model.labels)]
        chosen = np.flatnonzero(self.mentions.labels == label)
        for a, b in zip(self.mentions.starts[chosen].tolist(), self.mentions.ends[chosen].tolist(), strict=True):
            words = tuple(self.words[kind] for kind in self.seen.types[a:b].tolist())
            yield int(self.seen.owners[a]), words, tuple(names[state] for state in self.states[a:b].tolist())

    def roles(self, label: int) -> Roles:
        """Return the agreement of a label's states with roles, or the reason why it is not measured."""
        config = self.model.config
        if config.topology != "free" or config.classes != "types":
            requirement = "topology free and classes types"
            return Roles(reason=f"position would win by construction (roles are measured with {requirement})")
        if self.model.labels.subs[1 + label] < 2:
            return Roles(reason="there is one state")
        mentions = ((words, states) for _, words, states in self.mentions_of(label))
        return roles.compare(mentions, self.model.pack, self.model.names[label])

    def examples(self, label: int) -> Iterator[tuple[Piece, ...]]:
        """Yield mentions that enough patients used, cut by state, of varied forms; none for O or private models."""
        if self.model.config.private or label < 0:
            return
        patients = self.evidence.task.patients
        users, ways = dict[tuple[str, ...], set[int]](), dict[tuple[str, ...], Counter[tuple[int, ...]]]()
        for document, words, states in self.mentions_of(label):
            users.setdefault(words, set()).add(int(patients[document]))
            ways.setdefault(words, Counter())[states] += 1
        by_form = dict[tuple[int, ...], list[tuple[int, tuple[Piece, ...]]]]()
        for words, found in ways.items():
            if len(users[words]) >= self.need:
                states, count = found.most_common(1)[0]
                pieces = _pieces(words, states)
                by_form.setdefault(tuple(piece.number for piece in pieces), []).append((count, pieces))
        queues = [sorted(queue, key=lambda item: -item[0]) for queue in by_form.values()]
        queues.sort(key=lambda queue: (-min(len(queue[0][1]), 2), -sum(count for count, _ in queue)))
        turns = ((rank, queue) for rank in range(EXAMPLES) for queue in queues if rank < len(queue))
        for _, (rank, queue) in zip(range(EXAMPLES), turns, strict=False):
            yield queue[rank][1]


def _inside(mentions: Mentions, N: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return (N,) which tokens are in a mention."""
    steps = np.zeros(N + 1, np.int64)
    np.add.at(steps, mentions.starts, 1)
    np.add.at(steps, mentions.ends, -1)
    return np.asarray(np.cumsum(steps)[:-1] > 0)


def _shares(names: Sequence[str], counts: Floats, most: int = NEIGHBOURS) -> tuple[Share, ...]:
    """Return up to `most` (name, share of the counts), largest first, without shares below `SELDOM`."""
    total = max(float(counts.sum()), 1.0)
    order = np.argsort(-counts, kind="stable")[:most].tolist()
    return tuple((names[index], round(float(counts[index]) / total, 4)) for index in order
                 if counts[index] / total >= SELDOM)  # fmt: skip


def _pieces(words: Sequence[str], states: Sequence[int]) -> tuple[Piece, ...]:
    """Return the words of a mention as pieces; adjacent words in one state are joined by blanks into one piece."""
    pieces: list[Piece] = []
    for word, state in zip(words, states, strict=True):
        if pieces and pieces[-1].number == state:
            pieces[-1] = Piece(f"{pieces[-1].text} {word}", state)
        else:
            pieces.append(Piece(word, state))
    return tuple(pieces)
