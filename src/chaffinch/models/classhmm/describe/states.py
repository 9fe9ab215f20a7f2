"""The states of every class described: what they show, where in a span they stand, what follows, and examples.

Described from the best path of states through the training text, inside the tags that are known there, for chains that
generate words and for others alike. Everything stored is training text in part: see `describe` for what is left out.

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
from chaffinch.models.classhmm.describe.features import Shown
from chaffinch.models.classhmm.describe.report import BEGIN, END, Class, Piece, Roles, Share, State, Substructure
from chaffinch.models.classhmm.model import Model
from chaffinch.models.core.evidence import Evidence
from chaffinch.models.core.labels import Labels
from chaffinch.models.core.tasks import Task
from chaffinch.models.latent.parts import state_names, tag_name
from chaffinch.text import Document

__all__ = ["Class", "Roles", "State", "Substructure", "describe", "measure"]

EXAMPLES, NEIGHBOURS = 20, 6  # of a class; of a state
SELDOM = 0.01  # neighbours with a smaller share are not listed


class Mentions(NamedTuple):
    """The spans of all documents as runs of tokens among the N."""

    starts: Ints
    ends: Ints
    labels: Ints  # numbers of their labels


def describe(model: Model, evidence: Evidence, seen: Observed | None = None) -> Model:
    """The model with its sub-structure, and the tokens of each state, from the documents it learnt from.

    Privacy: a word, an affix or an example is kept only if as many patients used it, inside spans of the same class, as
    the model's floor says, and at least two if there are two. An example counts as a whole. With `private` there are no
    examples, no words that stand mostly in spans, and no affixes that fewer patients show outside of spans. `seen` are
    the evidence's documents with the model's features, if they were observed before.
    """
    found = _Found.of(model, evidence, seen)
    mass = np.bincount(found.states[found.seen.places], minlength=len(model.labels.tag_of)).astype(float)
    told = Substructure(tuple(found.classes()), found.need, bool(model.config.private))
    return replace(model, portrait=replace(model.portrait, mass=mass), substructure=told)


def measure(model: Model, documents: Sequence[Document], *, layer: str | None = None) -> dict[str, Roles]:
    """What roles say of the states of each label, measured on a layer of spans of any documents."""
    task = Task.of(documents, layer=layer, soft=None, names=model.names)
    if task.names != model.names:
        new = ", ".join(task.names[len(model.names) :])
        raise DataError(f"the model has no label {new}; it has {', '.join(model.names)}; leave those spans out")
    found = _Found.of(model, Evidence.of(task, Labels(task.names, model.labels.scheme)))
    return {name: found.roles(number) for number, name in enumerate(model.names)}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Found:
    """Documents with the best states inside their tags."""

    model: Model
    evidence: Evidence
    seen: Observed
    states: Ints  # (N,) -1 at pads
    mentions: Mentions
    words: list[str]  # of every type

    @classmethod
    def of(cls, model: Model, evidence: Evidence, seen: Observed | None = None) -> _Found:
        """The best path of all sentences."""
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
        """How many patients must have used what is told."""
        return max(self.model.floor, min(2, int(self.evidence.task.patients.max()) + 1))

    def classes(self) -> Iterator[Class]:
        """O, then every label."""
        model, names = self.model, state_names(self.model.labels)
        path, inside = self.states[self.seen.places], np.zeros(len(self.states), np.bool_)
        tag_of = model.labels.tag_of
        inside[self.seen.places] = tag_of[path] > 0
        known = model.words.vocabulary if model.words is not None else model.crf.vocabulary  # type: ignore[union-attr]
        shown = Shown.of(
            self.seen, known, (model.config.features, model.pack), self.evidence.task.patients,
            inside[self.seen.places], self.need, private=bool(model.config.private),
        )  # fmt: skip
        around, within = self.moves(), self.moves_in_spans()
        owners = np.array([-1 if tag == 0 else model.names.index(model.labels.tags[tag][2:]) for tag in tag_of])
        for label in range(-1, len(model.names)):
            own = np.flatnonzero(owners == label)
            counts = np.bincount(path, minlength=len(tag_of))[own]
            states = []
            for state, count, (words, features) in zip(
                own.tolist(), counts.tolist(), shown.told(path, own), strict=True
            ):
                positions = self.positions(state) if label >= 0 else ()
                after = _shares((*names, END), (within if label >= 0 else around)[state])
                before, leads = _shares((*names, BEGIN), around[:, state]), self.leads(around[state])
                number, share = int(names[state].rpartition("/")[2]), round(count / max(int(counts.sum()), 1), 4)
                told = (count, share, words, features, positions, after, before, leads)
                states.append(State(names[state], tag_name(model.labels, int(tag_of[state])), number, *told))
            name, mentions = "O" if label < 0 else model.names[label], int((self.mentions.labels == label).sum())
            roles_of = self.roles(label) if label >= 0 else Roles(reason="it has no mentions")
            yield Class(name, int(counts.sum()), mentions, tuple(states), roles_of, tuple(self.examples(label)))

    def moves(self) -> Floats:
        """(Y+1, Y+1) how often one state came after another in a sentence; row Y begins it, column Y ends it."""
        Y = len(self.model.labels.tag_of)
        before, after = self.states[:-1], self.states[1:]
        numbers = np.where(before < 0, Y, before) * (Y + 1) + np.where(after < 0, Y, after)
        counts = np.bincount(numbers, minlength=(Y + 1) ** 2).astype(float).reshape(Y + 1, Y + 1)
        counts[Y, Y] = 0.0
        return counts

    def moves_in_spans(self) -> Floats:
        """(Y+1, Y+1) the same inside spans: column Y ends one."""
        Y, last = len(self.model.labels.tag_of), np.zeros(len(self.states), np.bool_)
        last[self.mentions.ends - 1] = True
        where = np.flatnonzero(_inside(self.mentions, len(self.states)))
        after = np.where(last[where], Y, self.states[np.minimum(where + 1, len(self.states) - 1)])
        counts = np.bincount(self.states[where] * (Y + 1) + after, minlength=(Y + 1) ** 2)
        return counts.astype(float).reshape(Y + 1, Y + 1)

    def positions(self, state: int) -> tuple[float, ...]:
        """The shares of first, inner, last and single tokens."""
        first, last = (np.zeros(len(self.states), np.bool_) for _ in range(2))
        first[self.mentions.starts], last[self.mentions.ends - 1] = True, True
        own = self.states == state
        counts = [int((own & a & b).sum()) for a, b in ((first, ~last), (~first, ~last), (~first, last), (first, last))]
        return tuple(round(count / max(sum(counts), 1), 4) for count in counts)

    def leads(self, row: Floats) -> tuple[Share, ...]:
        """The labels that come next."""
        labels = self.model.labels
        sums: Floats = np.bincount(np.append(labels.tag_of, len(labels.tags)), row, len(labels.tags) + 1).astype(float)
        return _shares((*(tag_name(labels, tag) for tag in range(len(labels.tags))), END), sums, most=len(sums))

    def own(self, label: int) -> Iterator[tuple[int, tuple[str, ...], tuple[int, ...]]]:
        """The document, the words and the states, from 1, of every mention of a label."""
        names = [int(name.rpartition("/")[2]) for name in state_names(self.model.labels)]
        chosen = np.flatnonzero(self.mentions.labels == label)
        for a, b in zip(self.mentions.starts[chosen].tolist(), self.mentions.ends[chosen].tolist(), strict=True):
            words = tuple(self.words[kind] for kind in self.seen.types[a:b].tolist())
            yield int(self.seen.owners[a]), words, tuple(names[state] for state in self.states[a:b].tolist())

    def roles(self, label: int) -> Roles:
        """What roles say of a label's states, or why that says nothing."""
        config = self.model.config
        if config.topology != "free" or config.classes != "types":
            asked = "topology free and classes types"
            return Roles(reason=f"position would win by construction (roles are measured with {asked})")
        if self.model.labels.subs[1 + label] < 2:
            return Roles(reason="there is one state")
        return roles.compare(((words, states) for _, words, states in self.own(label)), self.model.pack)

    def examples(self, label: int) -> Iterator[tuple[Piece, ...]]:
        """Mentions that enough patients used, as often segmented so as not; each way to segment in turn."""
        if self.model.config.private or label < 0:
            return
        patients = self.evidence.task.patients
        users, ways = dict[tuple[str, ...], set[int]](), dict[tuple[str, ...], Counter[tuple[int, ...]]]()
        for document, words, states in self.own(label):
            users.setdefault(words, set()).add(int(patients[document]))
            ways.setdefault(words, Counter())[states] += 1
        by_form = dict[tuple[int, ...], list[tuple[int, tuple[Piece, ...]]]]()
        for words, found in ways.items():
            if len(users[words]) >= self.need:
                states, count = found.most_common(1)[0]
                pieces = _pieces(words, states)
                by_form.setdefault(tuple(own.number for own in pieces), []).append((count, pieces))
        queues = [sorted(own, key=lambda item: -item[0]) for own in by_form.values()]
        queues.sort(key=lambda own: (-min(len(own[0][1]), 2), -sum(count for count, _ in own)))
        turns = ((place, queue) for place in range(EXAMPLES) for queue in queues if place < len(queue))
        for _, (place, queue) in zip(range(EXAMPLES), turns, strict=False):
            yield queue[place][1]


def _inside(mentions: Mentions, N: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    steps = np.zeros(N + 1, np.int64)
    np.add.at(steps, mentions.starts, 1)
    np.add.at(steps, mentions.ends, -1)
    return np.asarray(np.cumsum(steps)[:-1] > 0)


def _shares(names: Sequence[str], counts: Floats, most: int = NEIGHBOURS) -> tuple[Share, ...]:
    """The names with the largest shares; of equals the first."""
    total = max(float(counts.sum()), 1.0)
    order = np.argsort(-counts, kind="stable")[:most].tolist()
    return tuple((names[place], round(float(counts[place]) / total, 4)) for place in order
                 if counts[place] / total >= SELDOM)  # fmt: skip


def _pieces(words: Sequence[str], states: Sequence[int]) -> tuple[Piece, ...]:
    """Words of one state side by side are one piece."""
    pieces: list[Piece] = []
    for word, state in zip(words, states, strict=True):
        if pieces and pieces[-1].number == state:
            pieces[-1] = Piece(f"{pieces[-1].text} {word}", state)
        else:
            pieces.append(Piece(word, state))
    return tuple(pieces)
