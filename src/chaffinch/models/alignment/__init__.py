"""Alignment of repeated words: a name found once, thanks to a strong cue, is found wherever its patient has it.

A second stage on top of any tagger that gives spans and posteriors. The occurrences of a word in all documents of a
patient are a clique of labels; the tagger's posterior, the surroundings and the agreement with the other occurrences
decide them together.

N tokens of a patient's documents, M nodes, m of them in one graph, L labels with "O", C candidates of a graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from chaffinch.bundle import State
from chaffinch.checks import check_choice, check_numbers, check_wholes
from chaffinch.errors import ConfigError, DataError, ModelError
from chaffinch.kernels import Clique, Floats, Ints, beliefs, best_labels
from chaffinch.models.alignment import graph, objective
from chaffinch.models.alignment.graph import ALIKE, Graphs, Keys, RepeatedWords
from chaffinch.models.alignment.objective import CliqueWeights, Nodes
from chaffinch.text import Document

MODES = ("recall", "balanced")
FREE = 200  # occurrences of one word decided together at most; the others are evidence
FREE_LABELS = 1_400  # the same, times the candidate labels
NO_EDGE = 1e-3  # likenesses of a smaller weight are as good as none: the exact count over labels is then used
MANY_PATIENTS = 20  # from here on a lexical feature must be shown by two patients
LEAST = 1e-3  # lexical weights that are all smaller are dropped


@dataclass(frozen=True, slots=True)
class Alignment:
    """What may be chosen. With mode "recall" an identifier never becomes O, with "balanced" it can.

    `penalty` draws weights to the hand-set ones; `folds` and `seed` are for `cross_fitted`.
    """

    mode: Literal["recall", "balanced"] = "recall"
    penalty: float = 0.1
    folds: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        check_choice(self.mode, "mode", MODES)
        check_numbers(self, "penalty", above=0)
        check_wholes(self, "folds", least=2)
        check_wholes(self, "seed")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Model:
    """What was learnt, or set by hand."""

    config: Alignment
    weights: CliqueWeights
    labels: tuple[str, ...] = ("O",)  # (L,) of the lexical weights
    keys: Keys = field(default_factory=lambda: np.zeros(0, np.uint64))  # (F,) sorted, of the lexical features
    common: frozenset[str] = frozenset()  # words without case that need two findings to be linked

    @classmethod
    def default(cls, mode: Literal["recall", "balanced"] = "recall", *, common: frozenset[str] = frozenset()) -> Model:
        """A model that knows no label and no word, of use without any training, for calibrated posteriors."""
        return cls(Alignment(mode=mode), objective.hand_set(), common=_folded(common))

    def state(self) -> State:
        """Return everything but the config, for a model file."""
        own = self.weights
        arrays: dict[str, NDArray[Any]] = {"unary": own.unary, "same": own.same, "differ": own.differ}
        arrays |= {"lexical": own.lexical.astype(np.float32), "keys": self.keys}
        return State(arrays, {"labels": self.labels, "common": tuple(sorted(self.common))})

    @classmethod
    def of(cls, state: State) -> Model:
        """Return the model of a file; ModelError if its pieces do not fit together."""
        arrays, strings = state.arrays, state.strings
        try:
            config = msgspec.convert(state.config, Alignment)
            labels, common, keys = tuple(strings["labels"]), frozenset(strings["common"]), arrays["keys"]
            parts = [arrays[name].astype(np.float64) for name in ("unary", "same", "differ", "lexical")]
        except KeyError as error:
            raise ModelError(f"it lacks {error.args[0]!r} of the alignment; fit it anew") from None
        except msgspec.ValidationError:
            raise ModelError("the settings of its alignment cannot be read; fit it anew") from None
        shapes = [(2, 2 + objective.B), (2, len(ALIKE)), (1,), (len(keys), len(labels))]
        fits = [part.shape for part in parts] == shapes and keys.dtype == np.uint64 and labels[:1] == ("O",)
        if not fits or not all(np.isfinite(part).all() for part in parts) or (keys[1:] <= keys[:-1]).any():
            raise ModelError("the arrays of its alignment do not fit together; fit it anew")
        return cls(config, CliqueWeights(*parts), labels, keys, common)


class TaggerLike(Protocol):
    """Anything that adds a layer of spans, and soft labels of the same name."""

    @property
    def layer(self) -> str: ...

    def annotate(self, documents: Iterable[Document]) -> Iterable[Document]: ...

    def posteriors(self, documents: Iterable[Document]) -> Iterable[Document]: ...


def fit(
    documents: Sequence[Document],
    config: Alignment,
    *,
    layer: str,
    gold: str | None = None,
    common: frozenset[str] = frozenset(),
) -> Model:
    """The model of documents with a gold layer, and a layer and soft labels by a tagger that did not see them.

    `cross_fitted` makes such documents. `common` are words, such as a language's most frequent ones, that must be found
    twice in a patient's documents before their occurrences are linked.
    """
    names = graph.label_names(documents, layer)
    right = [doc.layer(gold) for doc in documents]
    names = (*names, *sorted({span.label for own in right for span in own} - set(names)))
    index = {name: number for number, name in enumerate(names)}
    common = _folded(common)
    truth = [graph.token_labels(doc, own, index) for doc, own in zip(documents, right, strict=True)]
    lessons = []
    for number, members in enumerate(_by_patient(documents)):
        words = graph.observe([documents[i] for i in members], layer, names)
        lessons.append(_Lesson.of(words, np.concatenate([truth[i] for i in members]), common, number))
    if not any(len(lesson.gold) for lesson in lessons):
        raise DataError(
            f"no word that layer {layer!r} found is repeated in any of {len(documents)} documents, so there is nothing "
            "to learn; use Model.default()"
        )
    return _learnt(lessons, config, names, common)


def align(
    documents: Iterable[Document],
    model: Model,
    *,
    layer: str,
    mode: str | None = None,
    common: frozenset[str] = frozenset(),
) -> list[Document]:
    """The documents in their order, the layer replaced by the aligned one; those of a patient are read together.

    A document without patient and id stands alone. `common` words are added to those of the model.

    >>> from chaffinch.text import Soft, Span
    >>> soft = Soft(("O", "NAME"), np.array([[1, 0], [0.01, 0.99], [1, 0], [0.7, 0.3], [1, 0]]))
    >>> note = Document.make("Dr. Penn saw Penn.", layers={"t": [Span(4, 8, "NAME")]}, soft={"t": soft})
    >>> align([note], Model.default(), layer="t")[0].layer("t")[1].start
    13
    """
    mode = model.config.mode if mode is None else mode
    check_choice(mode, "mode", MODES)
    docs = list(documents)
    names = graph.label_names(docs, layer)
    common = _folded(common) | model.common
    out = list(docs)
    for members in _by_patient(docs):
        own = [docs[i] for i in members]
        words = graph.observe(own, layer, names)
        tags, scores = _settled(words, graph.linked(words, common), model, names, mode)
        changed = np.flatnonzero(tags != words.tags)
        first = np.searchsorted(words.owners, np.arange(len(own)))
        for k in np.unique(words.owners[changed]).tolist():
            here = changed[words.owners[changed] == k]
            news = zip((names[y] for y in tags[here].tolist()), scores[here].tolist(), strict=True)
            changes = dict(zip((here - first[k]).tolist(), news, strict=True))
            out[members[k]] = own[k].with_layer(layer, graph.to_spans(own[k], own[k].layers[layer], changes))
    return out


def cross_fitted(
    documents: Sequence[Document], train: Callable[[list[Document]], TaggerLike], *, folds: int = 5, seed: int = 0
) -> list[Document]:
    """The documents in their order, each with the layer and soft labels of a tagger that saw other patients only."""
    members = _by_patient(documents)
    if folds < 2 or len(members) < 2:
        raise ConfigError(f"cross-fitting needs 2 folds and 2 patients, got {folds} and {len(members)}")
    fold = np.random.default_rng(seed).permutation(len(members)) % min(folds, len(members))
    out = list(documents)
    for number in range(int(fold.max()) + 1):
        held = sorted(i for own, where in zip(members, fold, strict=True) if where == number for i in own)
        apart = set(held)
        tagger = train([doc for i, doc in enumerate(documents) if i not in apart])
        for i, doc in zip(held, tagger.posteriors(tagger.annotate([documents[i] for i in held])), strict=True):
            out[i] = doc
    return out


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Lesson:
    """What one patient teaches."""

    nodes: Nodes  # lexical observations are still keys
    candidates: graph.Flags  # (M, L)
    gold: Ints  # (M,)
    hidden: graph.Flags  # (M, K) a word inside a gold span, which must not enter the vocabulary
    patients: Ints  # (M,)

    @classmethod
    def of(cls, words: RepeatedWords, truth: Ints, common: frozenset[str], patient: int) -> _Lesson:
        """The nodes whose gold label is a candidate and about which the tagger is least certain, graph by graph."""
        graphs = graph.linked(words, common)
        gold = truth[graphs.nodes]
        shares = graphs.shares(gold, np.ones(len(gold), np.bool_))
        keys, tokens = graph.lexical_keys(words, graphs.nodes)
        hidden = (truth[tokens] > 0) & (tokens >= 0) if len(truth) else np.zeros(keys.shape, np.bool_)
        reachable = graphs.candidates[np.arange(len(gold)), gold]
        kept = _free(words, graphs, reachable)
        nodes = Nodes.of(words, graphs, shares, keys.astype(np.int64)).chosen(kept)
        return cls(nodes, graphs.candidates[kept], gold[kept], hidden[kept], np.full(int(kept.sum()), patient))


def _learnt(lessons: Sequence[_Lesson], config: Alignment, names: tuple[str, ...], common: frozenset[str]) -> Model:
    nodes = Nodes.joined([lesson.nodes for lesson in lessons])
    hidden, patients, candidates, gold = (
        np.concatenate([getattr(lesson, name) for lesson in lessons])
        for name in ("hidden", "patients", "candidates", "gold")
    )
    floor = 2 if len(lessons) >= MANY_PATIENTS else 1
    shown = nodes.features.astype(np.uint64)
    keys = objective.vocabulary(shown, hidden, patients, floor)
    nodes = Nodes(nodes.tags, nodes.buckets, nodes.shares, objective.look_up(keys, shown))
    start = objective.hand_set()
    prior = CliqueWeights(start.unary, start.same, start.differ, np.zeros((len(keys), len(names))))
    weights = objective.learn(nodes, candidates, gold, penalty=config.penalty, prior=prior)
    kept = np.abs(weights.lexical).max(axis=1, initial=0.0) >= LEAST
    rounded = weights.lexical[kept].astype(np.float32).astype(np.float64)  # as it will be saved
    return Model(config, CliqueWeights(weights.unary, weights.same, weights.differ, rounded), names, keys[kept], common)


def _settled(
    words: RepeatedWords, graphs: Graphs, model: Model, names: Sequence[str], mode: str
) -> tuple[Ints, Floats]:
    """(N,) the label of every token, and how likely it is where it was changed."""
    tags, scores = words.tags.copy(), np.ones(len(words.tags))
    found = words.tags[graphs.nodes]
    allowed = graphs.candidates.copy()
    if mode == "recall":
        allowed[found > 0, 0] = False
    free = _free(words, graphs, allowed.sum(axis=1) > 1)
    shares = graphs.shares(found, ~free)
    features = np.zeros((len(found), 0), np.int64)
    if len(model.keys):
        features = objective.look_up(model.keys, graph.lexical_keys(words, graphs.nodes)[0])
    column = [model.labels.index(name) if name in model.labels else len(model.labels) for name in names]
    lexical = np.pad(model.weights.lexical, ((0, 0), (0, 1)))[:, column]
    weights = CliqueWeights(model.weights.unary, model.weights.same, model.weights.differ, lexical)
    unary = np.where(allowed, Nodes.of(words, graphs, shares, features).scores(weights), -np.inf)
    where = np.flatnonzero(free)
    for own in np.split(where, np.flatnonzero(np.diff(graphs.graph[where])) + 1) if len(where) else ():
        labels = np.flatnonzero(graphs.candidates[own[0]])
        clique = _clique(weights, graphs, own, labels, unary)
        best = labels[best_labels(clique).labels]
        if (best != found[own]).any():
            chances = beliefs(clique).labels[np.arange(len(own)), np.searchsorted(labels, best)]
            tags[graphs.nodes[own]], scores[graphs.nodes[own]] = best, np.clip(chances, 0.0, 1.0)
    return tags, scores


def _clique(weights: CliqueWeights, graphs: Graphs, own: Ints, labels: Ints, unary: Floats) -> Clique:
    """The clique of the free nodes of one graph; the fixed ones are in the unary part already."""
    pairs = weights.pairs(labels)
    # The kernel divides by the free nodes but one; the score by all occurrences but one.
    pairs *= (len(own) - 1) / (graphs.sizes[own[0]] - 1)
    pairwise = pairs[0]
    if np.abs(weights.same[:, 1:]).max() >= NO_EDGE:
        for alike, worth in zip(graphs.alike[1:, own], pairs[1:], strict=True):
            pairwise = pairwise + (alike[:, None] == alike)[:, :, None, None] * worth
    return Clique(unary[np.ix_(own, labels)], pairwise)


def _free(words: RepeatedWords, graphs: Graphs, open_nodes: graph.Flags) -> graph.Flags:
    """(M,) the open nodes, in a large graph only those whose label the tagger doubts most."""
    where = np.flatnonzero(open_nodes)
    sure = words.chances[graphs.nodes[where], words.tags[graphs.nodes[where]]]
    where = where[np.lexsort((sure, graphs.graph[where]))]
    starts = np.searchsorted(graphs.graph[where], graphs.graph[where])
    limit = np.minimum(FREE, FREE_LABELS // graphs.candidates[where].sum(axis=1))
    out = np.zeros(len(open_nodes), np.bool_)
    out[where[np.arange(len(where)) - starts < limit]] = True
    return out


def _by_patient(documents: Sequence[Document]) -> list[list[int]]:
    """The numbers of each patient's documents, in an order that does not depend on theirs."""
    members: dict[tuple[str, int], list[int]] = {}
    for i, doc in enumerate(documents):
        nameless = doc.group is None and not doc.id
        members.setdefault((doc.patient, i if nameless else -1), []).append(i)
    return [sorted(own, key=lambda i: (documents[i].id, documents[i].text)) for own in members.values()]


def _folded(words: frozenset[str]) -> frozenset[str]:
    return frozenset(word.casefold() for word in words)
