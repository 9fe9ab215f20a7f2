"""A trained or default alignment, and its application to documents.

A second stage on top of any tagger that gives spans and posteriors. The occurrences of a word in all documents of a
patient are a clique of labels; the tagger's posterior, the surroundings and the agreement with the other occurrences
decide them together.

N tokens of a patient's documents, M nodes, m of them in one graph, L labels with "O", C candidates of a graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from chaffinch.bundle import State
from chaffinch.errors import ModelError
from chaffinch.kernels import Clique, Floats, Ints, beliefs, best_labels
from chaffinch.kernels.clique import is_exact
from chaffinch.models.alignment import graph, objective
from chaffinch.models.alignment.config import Alignment, check_mode
from chaffinch.models.alignment.graph import ALIKE, Graphs, Keys, RepeatedWords
from chaffinch.models.alignment.objective import CliqueWeights, Nodes
from chaffinch.text import Document

FREE = 200  # most occurrences of one word that are decided together: bounds time; the others are fixed evidence
FREE_LABELS = 1_400  # most occurrences times candidate labels that are decided together, for the same reason
MARGIN = 1e-6  # of a bound over a sum that is rounded: far more than the rounding, far less than any weight
NO_EDGE = 1e-3  # if all likenesses weigh less, they are ignored, so that inference by label counts is exact


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Model:
    """Weights of an alignment, trained or default, and their vocabulary."""

    config: Alignment
    weights: CliqueWeights
    labels: tuple[str, ...] = ("O",)  # (L,) of the lexical weights
    keys: Keys = field(default_factory=lambda: np.zeros(0, np.uint64))  # (F,) sorted, of the lexical features
    common: frozenset[str] = frozenset()  # case-folded words that must be found twice to be linked

    @classmethod
    def default(cls, mode: Literal["recall", "balanced"] = "recall", *, common: frozenset[str] = frozenset()) -> Model:
        """Return a model with hand-set weights, untrained; meant for a tagger's calibrated posteriors."""
        return cls(Alignment(mode=mode), objective.default_weights(), common=fold_words(common))

    def state(self) -> State:
        """Return everything but the config, for a model file."""
        weights = self.weights
        arrays: dict[str, NDArray[Any]] = {"unary": weights.unary, "same": weights.same, "differ": weights.differ}
        arrays |= {"lexical": weights.lexical.astype(np.float32), "keys": self.keys}
        return State(arrays, {"labels": self.labels, "common": tuple(sorted(self.common))})

    @classmethod
    def of(cls, state: State) -> Model:
        """Return the model of a file's state; ModelError if its parts are missing or do not fit together."""
        arrays, strings = state.arrays, state.strings
        try:
            config = msgspec.convert(state.config, Alignment)
            labels, common, keys = tuple(strings["labels"]), frozenset(strings["common"]), arrays["keys"]
            parts = [arrays[name].astype(np.float64) for name in ("unary", "same", "differ", "lexical")]
        except KeyError as error:
            raise ModelError(f"its alignment has no {error.args[0]!r}; fit it again") from None
        except msgspec.ValidationError:
            raise ModelError("the settings of its alignment cannot be read; fit it again") from None
        shapes = [(2, 2 + objective.B), (2, len(ALIKE)), (1,), (len(keys), len(labels))]
        fits = [part.shape for part in parts] == shapes and keys.dtype == np.uint64 and labels[:1] == ("O",)
        if not fits or not all(np.isfinite(part).all() for part in parts) or (keys[1:] <= keys[:-1]).any():
            raise ModelError("the arrays of its alignment do not fit together; fit it again")
        return cls(config, CliqueWeights(*parts), labels, keys, common)


def align(
    documents: Iterable[Document],
    model: Model,
    *,
    layer: str,
    mode: str | None = None,
    common: frozenset[str] = frozenset(),
) -> list[Document]:
    """Return documents with a patient's repeated words relabelled in `layer`; DataError without its soft labels.

    A document without patient and id is aligned by itself. `common` words are added to those of the model.

    >>> from chaffinch.text import Soft, Span
    >>> soft = Soft(("O", "NAME"), np.array([[1, 0], [0.01, 0.99], [1, 0], [0.7, 0.3], [1, 0]]))
    >>> note = Document.make("Dr. Penn saw Penn.", layers={"t": [Span(4, 8, "NAME")]}, soft={"t": soft})
    >>> align([note], Model.default(), layer="t")[0].layer("t")[1].start
    13
    """
    mode = model.config.mode if mode is None else check_mode(mode)
    docs = list(documents)
    names = graph.label_names(docs, layer)
    common = fold_words(common) | model.common
    out = list(docs)
    for members in _align_together(docs, model):
        ordered = [docs[i] for numbers in members for i in numbers]
        if weighs_word_alone(model):
            patients = [patient for patient, numbers in enumerate(members) for _ in numbers]
            words, tokens = graph.observe_found(ordered, patients, layer, names)
        else:
            words = graph.observe(ordered, layer, names)
            tokens = np.concatenate([np.arange(len(doc.tokens)) for doc in ordered])
        tags, scores = decide_labels(words, graph.link_words(words, common), model, names, mode)
        changed = np.flatnonzero(tags != words.tags)
        updates = [
            (names[tag], score) for tag, score in zip(tags[changed].tolist(), scores[changed].tolist(), strict=True)
        ]
        changes: dict[int, dict[int, tuple[str, float]]] = {}
        for owner, token, update in zip(words.owners[changed].tolist(), tokens[changed].tolist(), updates, strict=True):
            changes.setdefault(owner, {})[token] = update
        numbers = [i for part in members for i in part]
        for owner, relabelled in changes.items():
            doc = ordered[owner]
            out[numbers[owner]] = doc.with_layer(layer, graph.to_spans(doc, doc.layers[layer], relabelled))
    return out


def weighs_word_alone(model: Model) -> bool:
    """Tell whether nothing that stands beside a word, and no likeness but the word itself, has any weight."""
    return not len(model.keys) and not model.weights.same[:, 1:].any()


def _align_together(docs: Sequence[Document], model: Model) -> list[list[list[int]]]:
    """Return lists of patients, each a list of its documents' numbers, whose words are decided in one call.

    Each word of a patient is decided by itself, so calls may be joined where sums have one term that is not 0: then
    they have the same bits in any company.
    """
    patients = by_patient(docs)
    if not patients:
        return []
    return [patients] if weighs_word_alone(model) else [[members] for members in patients]


def decide_labels(
    words: RepeatedWords, graphs: Graphs, model: Model, names: Sequence[str], mode: str
) -> tuple[Ints, Floats]:
    """Return (N,) each token's new label, and (N,) its probability where its graph changed, else 1."""
    tags, scores = words.tags.copy(), np.ones(len(words.tags))
    found = words.tags[graphs.nodes]
    allowed = graphs.candidates.copy()
    if mode == "recall":
        allowed[found > 0, 0] = False
    free = free_nodes(words, graphs, allowed.sum(axis=1) > 1)
    rows = np.flatnonzero(free)  # only they are decided, of a frequent word a small part
    shares = graphs.shares(found, ~free, rows)
    features = np.zeros((len(rows), 0), np.int64)
    if len(model.keys):
        features = objective.look_up(model.keys, graph.lexical_keys(words, graphs.nodes[rows])[0])
    column = [model.labels.index(name) if name in model.labels else len(model.labels) for name in names]
    lexical = np.pad(model.weights.lexical, ((0, 0), (0, 1)))[:, column]
    weights = CliqueWeights(model.weights.unary, model.weights.same, model.weights.differ, lexical)
    unary = np.full(allowed.shape, -np.inf)
    told = Nodes.of(words, graphs.nodes[rows], shares, features).scores(weights)
    unary[rows] = np.where(allowed[rows], told, -np.inf)
    where = np.flatnonzero(free & ~_find_settled_nodes(weights, graphs, found, unary, free))
    for nodes in np.split(where, np.flatnonzero(np.diff(graphs.graph[where])) + 1) if len(where) else ():
        labels = np.flatnonzero(graphs.candidates[nodes[0]])
        clique = _clique(weights, graphs, nodes, labels, unary)
        best = labels[best_labels(clique).labels]
        if (best != found[nodes]).any():
            chances = beliefs(clique).labels[np.arange(len(nodes)), np.searchsorted(labels, best)]
            tags[graphs.nodes[nodes]], scores[graphs.nodes[nodes]] = best, np.clip(chances, 0.0, 1.0)
    return tags, scores


def _find_settled_nodes(
    weights: CliqueWeights, graphs: Graphs, found: Ints, unary: Floats, free: graph.Flags
) -> graph.Flags:
    """Return (M,) whether a bound proves that a node's graph keeps the labels found, so that no inference is needed.

    Changed labels lose at least their nodes' gaps to the next best ones, and win at most what all pairs of these nodes
    lack of the best pair. Graphs for which inference would be approximate, or uses likenesses, are never settled.
    """
    where = np.flatnonzero(free)
    if not len(where) or has_likenesses(weights):
        return np.zeros(len(free), np.bool_)
    L, owner, label = unary.shape[1], graphs.graph[where], found[where]
    others = unary[where]
    mine = others[np.arange(len(where)), label]
    others[np.arange(len(where)), label] = -np.inf
    worth = weights.pairs(np.arange(L))[0]
    G = int(graphs.graph[-1]) + 1
    counts = np.bincount(owner * L + label, minlength=G * L).reshape(G, L)
    free_nodes = counts.sum(axis=1)[owner]
    held = (counts[owner] * worth[label]).sum(axis=1) - worth[label, label]
    lacking = ((free_nodes - 1) * worth.max() - held) / (graphs.sizes[where] - 1)
    labels = graphs.candidates[where].sum(axis=1)
    exact = np.array([is_exact(m, C) for m, C in zip(free_nodes.tolist(), labels.tolist(), strict=True)], np.bool_)
    unsettled = ~exact | (mine - others.max(axis=1) <= lacking + MARGIN)
    return ~np.isin(graphs.graph, owner[unsettled])


def has_likenesses(weights: CliqueWeights) -> bool:
    """Tell whether what occurrences have in common, besides the word, weighs enough to be used."""
    return bool(np.abs(weights.same[:, 1:]).max() >= NO_EDGE)


def _clique(weights: CliqueWeights, graphs: Graphs, nodes: Ints, labels: Ints, unary: Floats) -> Clique:
    """Return the clique of a graph's free nodes over these labels; its `unary` scores include the fixed nodes."""
    pairs = weights.pairs(labels)
    # The kernel divides by the free nodes but one; the score by all occurrences but one.
    pairs *= (len(nodes) - 1) / (graphs.sizes[nodes[0]] - 1)
    pairwise = pairs[0]
    if has_likenesses(weights):
        for alike, worth in zip(graphs.alike[1:, nodes], pairs[1:], strict=True):
            pairwise = pairwise + (alike[:, None] == alike)[:, :, None, None] * worth
    return Clique(unary[np.ix_(nodes, labels)], pairwise)


def free_nodes(words: RepeatedWords, graphs: Graphs, open_nodes: graph.Flags) -> graph.Flags:
    """Return a mask (M,) of the open nodes; of a large graph only those whose label is least certain."""
    where = np.flatnonzero(open_nodes)
    sure = words.chances[graphs.nodes[where], words.tags[graphs.nodes[where]]]
    where = where[np.lexsort((sure, graphs.graph[where]))]
    starts = np.searchsorted(graphs.graph[where], graphs.graph[where])
    limit = np.minimum(FREE, FREE_LABELS // graphs.candidates[where].sum(axis=1))
    out = np.zeros(len(open_nodes), np.bool_)
    out[where[np.arange(len(where)) - starts < limit]] = True
    return out


def by_patient(documents: Sequence[Document]) -> list[list[int]]:
    """Return per patient the indices of the documents, sorted by id and text; one without patient and id is alone."""
    members: dict[tuple[str, int], list[int]] = {}
    for i, doc in enumerate(documents):
        nameless = doc.group is None and not doc.id
        members.setdefault((doc.patient, i if nameless else -1), []).append(i)
    return [sorted(indices, key=lambda i: (documents[i].id, documents[i].text)) for indices in members.values()]


def fold_words(words: frozenset[str]) -> frozenset[str]:
    """Return the words, case-folded (more than lower case: ß is ss)."""
    return frozenset(word.casefold() for word in words)
