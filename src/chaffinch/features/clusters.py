"""Word clusters from unlabelled text: words with similar neighbours get the same number.

Neighbours are counted (left and right separately), weighted by positive pointwise mutual information, reduced to a few
dimensions by a truncated singular value decomposition, and grouped by spherical k-means.

V words, C contexts, D dimensions, K clusters, G granularities (one per size), T tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from chaffinch.checks import check_wholes
from chaffinch.errors import ConfigError, DataError
from chaffinch.text.document import Document

Ints: TypeAlias = NDArray[np.int64]
Sparse: TypeAlias = Any  # scipy.sparse.csr_matrix of float64; scipy has no types
Rows: TypeAlias = NDArray[np.float32]  # (V, D) of length one, or (K, D)

POWER_ITERATIONS = 4  # of the randomised SVD; more are slower and separate close singular values better
SPARE_DIMENSIONS = 10  # computed beyond those asked for, and dropped: oversampling of the randomised SVD
ROUNDS = 20  # iterations of k-means, at most
ZERO = 1e-6  # lengths and distances up to this are rounding errors
BLOCK = 8192  # rows compared with all centres at once; bounds memory
LARGEST = np.iinfo(np.int16).max  # clusters of a size: codes are int16

_DIGIT = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class Clusters:
    """Settings of word clusters. `floor` is the number of different patients who must have used a word."""

    sizes: tuple[int, ...] = (64, 512)
    dimensions: int = 50
    window: int = 2
    min_count: int = 3
    floor: int = 2
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the settings; ConfigError for empty sizes, or for a number out of range."""
        if not self.sizes:
            raise ConfigError("sizes is empty; give the number of clusters, such as (64, 512)")
        for size in self.sizes:
            if not isinstance(size, int) or not 1 <= size <= LARGEST:
                raise ConfigError(f"sizes must be whole numbers from 1 to {LARGEST}, got {size!r}")
        check_wholes(self, "dimensions", "window", "min_count", "floor", least=1)
        check_wholes(self, "seed")


@dataclass(frozen=True, slots=True, eq=False)
class WordClusters:
    """Learnt clusters: the words as `fold_word` writes them, sorted, and their clusters, one column per size."""

    words: tuple[str, ...] = field(repr=False)
    codes: NDArray[np.int16] = field(repr=False)  # (V, G)
    _rows: dict[str, int] = field(default_factory=dict, init=False, repr=False)

    def marks(self, doc: Document) -> NDArray[np.int16]:
        """Return 1 + the cluster of each word (T, G), G sizes of clusters, 0 for an unknown word."""
        if not self._rows:
            self._rows.update({word: row for row, word in enumerate(self.words)})
        rows = [self._rows.get(fold_word(word), -1) for word in doc.words()]
        known = np.vstack([self.codes + np.int16(1), np.zeros((1, self.codes.shape[1]), np.int16)])
        return known[rows]


def fold_word(word: str) -> str:
    """Return the word as it is counted: in lower case, each digit a 0.

    >>> fold_word("CD28")
    'cd00'
    """
    return _DIGIT.sub("0", word.lower())


def learn(documents: Iterable[Document], config: Clusters | None = None) -> WordClusters:
    """Return clusters of the documents' words that enough patients use; DataError if no word is frequent enough.

    >>> notes = [Document.make(f"The {a} was {b}.", id=a + b) for a in ("man", "boy") for b in ("ill", "well")]
    >>> clusters = learn(notes, Clusters(sizes=(4,), min_count=2))
    >>> marks = clusters.marks(Document.make("man boy ill girl"))[:, 0].tolist()
    >>> marks[0] == marks[1], marks[0] == marks[2], marks[3]
    (True, False, 0)
    """
    config = config or Clusters()
    tokens = _read(documents, config.window)
    words, stream = _keep(tokens, config)
    if not words:
        counts = f"{len(tokens.words):,} different words, patients: {tokens.patients:,}"
        raise DataError(
            f"no word occurs {config.min_count} times in documents of at least {config.floor} patients ({counts}); "
            "give more documents, or lower min_count or floor"
        )
    rng = np.random.default_rng(config.seed)
    points = vectors(ppmi(neighbours(stream, len(words), config.window)), config.dimensions, rng)
    codes = [kmeans(points, min(size, len(words)), rng) for size in config.sizes]
    return WordClusters(words, np.stack(codes, axis=1).astype(np.int16))


@dataclass(frozen=True, slots=True, eq=False)
class _Tokens:
    words: tuple[str, ...]  # in the order of their first use
    stream: Ints  # word numbers of all sentences; `window` times -1 before each sentence and at the end
    used_by: Ints  # (V,) how many patients used each word
    patients: int


def _read(documents: Iterable[Document], window: int) -> _Tokens:
    """Return all documents' folded words, their stream with `window` gaps at sentence ends, and patients per word."""
    numbers: dict[str, int] = {}
    patients: dict[str, int] = {}
    edge = np.full(window, -1, np.int64)
    parts, words, users = [edge], [edge[:0]], [edge[:0]]
    for doc in documents:
        doc_words = np.array([numbers.setdefault(fold_word(word), len(numbers)) for word in doc.words()], np.int64)
        for begin, end in doc.sentence_tokens().tolist():
            parts += [doc_words[begin:end], edge]
        words.append(np.unique(doc_words))
        users.append(np.full(len(words[-1]), patients.setdefault(doc.patient, len(patients))))
    pairs = np.unique(np.concatenate(words) * len(patients) + np.concatenate(users))
    used_by = np.bincount(pairs // max(len(patients), 1), minlength=len(numbers))
    return _Tokens(tuple(numbers), np.concatenate(parts), used_by, len(patients))


def _keep(tokens: _Tokens, config: Clusters) -> tuple[tuple[str, ...], Ints]:
    """Return the words used often enough, sorted, and the stream in their numbers: V is another word, V + 1 no word."""
    uses = np.bincount(tokens.stream[tokens.stream >= 0], minlength=len(tokens.words))
    kept = np.flatnonzero((uses >= config.min_count) & (tokens.used_by >= config.floor)).tolist()
    kept.sort(key=tokens.words.__getitem__)
    number = np.full(len(tokens.words) + 1, len(kept))
    number[kept] = np.arange(len(kept))
    number[-1] = len(kept) + 1
    return tuple(tokens.words[old] for old in kept), number[tokens.stream]


def neighbours(stream: Ints, V: int, window: int) -> Sparse:
    """Return how often each context is within the window of each word: (V, C), C = 2 (V + 2), first the left side.

    The stream has word numbers below V; V and V + 1 are contexts only. It begins and ends with `window` of the latter.
    """
    from scipy.sparse import coo_matrix

    positions = np.flatnonzero(stream < V)
    offsets = np.arange(1, window + 1)[:, None]
    contexts = np.concatenate([stream[positions - offsets].ravel(), stream[positions + offsets].ravel() + V + 2])
    words = np.tile(stream[positions], 2 * window)
    return coo_matrix((np.ones(len(words)), (words, contexts)), shape=(V, 2 * (V + 2))).tocsr()


def ppmi(counts: Sparse) -> Sparse:
    """Return the positive pointwise mutual information (V, C) of words and contexts, max(0, log p(w, c) / p(w) p(c)).

    Levy, Goldberg and Dagan 2015 raise the counts of contexts to 0.75; here that made the clusters of rare names
    worse, so we do not.
    """
    from scipy.sparse import csr_matrix

    pairs = counts.tocoo()
    words = np.asarray(counts.sum(axis=1)).ravel()
    contexts = np.asarray(counts.sum(axis=0)).ravel()
    lift = np.log(pairs.data * contexts.sum() / (words[pairs.row] * contexts[pairs.col]))
    above = lift > 0
    return csr_matrix((lift[above], (pairs.row[above], pairs.col[above])), shape=counts.shape)


def vectors(weights: Sparse, dimensions: int, rng: np.random.Generator) -> Rows:
    """Return the rows of U S of the truncated SVD (V, D), each of length one; a word without any weight is zero.

    Subspace iteration from a random start (Halko, Martinsson and Tropp 2011, algorithm 4.4).
    """
    V = weights.shape[0]
    width = min(dimensions + SPARE_DIMENSIONS, V)
    basis = rng.standard_normal((V, width))
    for _ in range(POWER_ITERATIONS + 1):
        basis = np.linalg.qr(weights @ (weights.T @ basis))[0]
    left, values, _ = np.linalg.svd((weights.T @ basis).T, full_matrices=False)
    D = min(dimensions, V)
    points = (basis @ left[:, :D]) * values[:D]
    return _unit(points)


def kmeans(points: Rows, K: int, rng: np.random.Generator) -> Ints:
    """Return each point's cluster (V,), below K, by cosine k-means; an empty one restarts at the worst-fitted point."""
    from scipy.sparse import csr_matrix

    V = len(points)
    centres = points[_spread(points, K, rng)]
    nearest, similarity = _nearest(points, centres)
    for _ in range(ROUNDS):
        members = csr_matrix((np.ones(V, np.float32), (nearest, np.arange(V))), shape=(K, V))
        centres = _unit(members @ points)
        empty = np.flatnonzero(np.bincount(nearest, minlength=K) == 0)
        centres[empty] = points[np.argsort(similarity, kind="stable")[: len(empty)]]
        before = nearest
        nearest, similarity = _nearest(points, centres)
        if np.array_equal(before, nearest):
            break
    return nearest


def _unit(rows: NDArray[Any]) -> Rows:
    """Return the rows scaled to length one; rows of zeros stay zero."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.where(length > ZERO, rows / np.maximum(length, ZERO), 0).astype(np.float32)


def _spread(points: Rows, K: int, rng: np.random.Generator) -> list[int]:
    """Draw K initial centres (k-means++), as indices: each in proportion to its distance from the nearest before."""
    chosen = [int(rng.integers(len(points)))]
    distance = np.full(len(points), np.inf)
    while len(chosen) < K:
        distance = np.minimum(distance, 1 - points @ points[chosen[-1]])
        weight = np.cumsum(np.where(distance > ZERO, distance, 0.0))
        draw = (
            rng.random() * weight[-1]
        )  # all weights are 0 if there are fewer different points than K: then any point will do
        chosen.append(min(int(np.searchsorted(weight, draw, side="right")), len(points) - 1))
    return chosen


def _nearest(points: Rows, centres: Rows) -> tuple[Ints, NDArray[np.float32]]:
    """Return (V,) the centre with the largest cosine, the first of equals, and (V,) that cosine."""
    best, similarity = np.zeros(len(points), np.int64), np.zeros(len(points), np.float32)
    for begin in range(0, len(points), BLOCK):
        block = slice(begin, begin + BLOCK)
        cosines = points[block] @ centres.T
        best[block], similarity[block] = cosines.argmax(axis=1), cosines.max(axis=1)
    return best, similarity
