"""Training of an alignment on the output of taggers for documents they did not learn from.

M nodes, L labels with "O", K lexical features of a node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from chaffinch.errors import ConfigError, DataError
from chaffinch.kernels import Ints
from chaffinch.models.alignment import graph, objective
from chaffinch.models.alignment.config import Alignment
from chaffinch.models.alignment.graph import RepeatedWords
from chaffinch.models.alignment.model import Model, by_patient, fold_words, free_nodes
from chaffinch.models.alignment.objective import CliqueWeights, Nodes
from chaffinch.models.core.tasks import patient_floor
from chaffinch.text import Document

LEAST = 1e-3  # a lexical feature whose weights are all smaller is dropped; raising it makes the model file smaller


class TaggerLike(Protocol):
    """A tagger that adds a layer of spans, and soft labels of the same name."""

    @property
    def layer(self) -> str:
        """Return the name of the layer that the tagger adds."""

    def annotate(self, documents: Iterable[Document]) -> Iterable[Document]:
        """Return the documents with the tagger's layer of spans."""

    def posteriors(self, documents: Iterable[Document]) -> Iterable[Document]:
        """Return the documents with the tagger's soft labels."""


def fit(
    documents: Sequence[Document],
    config: Alignment,
    *,
    layer: str,
    gold: str | None = None,
    common: frozenset[str] = frozenset(),
) -> Model:
    """Return an alignment learnt from `gold` and `layer`, by a tagger of other patients; DataError if no word repeats.

    `cross_fit` makes such documents. `common` are words, such as a language's most frequent ones, that must be found
    twice in a patient's documents before their occurrences are linked.
    """
    names = graph.label_names(documents, layer)
    right = [doc.layer(gold) for doc in documents]
    names = (*names, *sorted({span.label for spans in right for span in spans} - set(names)))
    index = {name: number for number, name in enumerate(names)}
    common = fold_words(common)
    truth = [graph.token_labels(doc, spans, index) for doc, spans in zip(documents, right, strict=True)]
    lessons = []
    for number, members in enumerate(by_patient(documents)):
        words = graph.observe([documents[i] for i in members], layer, names)
        lessons.append(_Lesson.of(words, np.concatenate([truth[i] for i in members]), common, number))
    if not any(len(lesson.gold) for lesson in lessons):
        raise DataError(
            f"no word that layer {layer!r} found is repeated in any of {len(documents)} documents, so there is nothing "
            "to learn; use Model.default()"
        )
    return _learn_model(lessons, config, names, common)


def cross_fit(
    documents: Sequence[Document], train: Callable[[list[Document]], TaggerLike], *, folds: int = 5, seed: int = 0
) -> list[Document]:
    """Return the documents, in order, each labelled by a tagger trained on other patients; or ConfigError.

    ConfigError for fewer than two folds or patients. `train` makes a tagger of the documents of the other folds.
    """
    members = by_patient(documents)
    if folds < 2 or len(members) < 2:
        raise ConfigError(f"cross-fitting needs 2 folds and 2 patients, got {folds} and {len(members)}")
    fold = np.random.default_rng(seed).permutation(len(members)) % min(folds, len(members))
    out = list(documents)
    for number in range(int(fold.max()) + 1):
        held_out = sorted(i for docs, where in zip(members, fold, strict=True) if where == number for i in docs)
        excluded = set(held_out)
        tagger = train([doc for i, doc in enumerate(documents) if i not in excluded])
        read = tagger.posteriors(tagger.annotate([documents[i] for i in held_out]))
        for i, doc in zip(held_out, read, strict=True):
            out[i] = doc
    return out


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Lesson:
    """The training data of one patient."""

    nodes: Nodes  # lexical observations are still keys
    candidates: graph.Flags  # (M, L)
    gold: Ints  # (M,)
    hidden: graph.Flags  # (M, K) a word inside a gold span, which must not enter the vocabulary
    patients: Ints  # (M,)

    @classmethod
    def of(cls, words: RepeatedWords, truth: Ints, common: frozenset[str], patient: int) -> _Lesson:
        """Return a patient's nodes whose gold label is a candidate; of a large graph, only the least certain ones."""
        graphs = graph.link_words(words, common)
        gold = truth[graphs.nodes]
        shares = graphs.shares(gold, np.ones(len(gold), np.bool_))
        keys, tokens = graph.lexical_keys(words, graphs.nodes)
        hidden = (truth[tokens] > 0) & (tokens >= 0) if len(truth) else np.zeros(keys.shape, np.bool_)
        reachable = graphs.candidates[np.arange(len(gold)), gold]
        kept = free_nodes(words, graphs, reachable)
        nodes = Nodes.of(words, graphs.nodes, shares, keys.astype(np.int64)).select(kept)
        return cls(nodes, graphs.candidates[kept], gold[kept], hidden[kept], np.full(int(kept.sum()), patient))


def _learn_model(
    lessons: Sequence[_Lesson], config: Alignment, names: tuple[str, ...], common: frozenset[str]
) -> Model:
    """Return the model learnt from all patients' nodes, rounded as it will be saved."""
    nodes = Nodes.concatenate([lesson.nodes for lesson in lessons])
    hidden, patients, candidates, gold = (
        np.concatenate([getattr(lesson, name) for lesson in lessons])
        for name in ("hidden", "patients", "candidates", "gold")
    )
    floor = patient_floor(len(lessons))
    shown = nodes.features.astype(np.uint64)
    keys = objective.vocabulary(shown, hidden, patients, floor)
    nodes = Nodes(nodes.tags, nodes.buckets, nodes.shares, objective.look_up(keys, shown))
    start = objective.default_weights()
    prior = CliqueWeights(start.unary, start.same, start.differ, np.zeros((len(keys), len(names))))
    weights = objective.learn(nodes, candidates, gold, penalty=config.penalty, prior=prior)
    kept = np.abs(weights.lexical).max(axis=1, initial=0.0) >= LEAST
    rounded = weights.lexical[kept].astype(np.float32).astype(np.float64)  # as it will be saved
    return Model(config, CliqueWeights(weights.unary, weights.same, weights.differ, rounded), names, keys[kept], common)
