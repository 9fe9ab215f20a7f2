"""Inference for a fully connected set of repeated tokens: beliefs, and the best joint labelling.

m occurrences, C candidate labels, Y = C^m labellings. The score of a labelling y is
sum_o unary[o, y_o] + sum_{o<p} pairwise[y_o, y_p] / (m - 1); the factor 1/(m - 1) is applied here, not by the caller.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from chaffinch.errors import ConfigError, DataError, InfeasibleError
from chaffinch.kernels.label_counts import CountCells, best_by_counts, sum_by_counts
from chaffinch.kernels.lattice import Floats, Ints, _potentials

ENUMERATE = 20_000  # labellings enumerated at most; a larger clique uses label counts, or mean field
COUNT_CELLS = 1 << 24  # cells of all tables over label counts, at most: 128 MiB of float64
ROUNDS = 20  # iterations of mean field; with more, the marginals are nearer to its fixed point
GAIN = 1e-12  # a change that improves the score by no more than this is taken for rounding, and ends the climb


@dataclass(frozen=True, slots=True, eq=False)
class Clique:
    """The potentials of one set of repeated tokens; `-inf` forbids a label or a pair.

    >>> Clique(np.zeros((3, 2)), np.eye(2)).score(np.array([0, 0, 1]))
    0.5
    """

    unary: Floats  # (m, C)
    pairwise: Floats  # (C, C) symmetric; or (m, m, C, C) with pairwise[o, p, a, b] = pairwise[p, o, b, a]

    def __post_init__(self) -> None:
        """Convert potentials to float64; DataError for shape or asymmetry, InfeasibleError for a node with no label."""
        for name in ("unary", "pairwise"):
            object.__setattr__(self, name, _potentials(name, getattr(self, name)))
        if self.unary.ndim != 2 or 0 in self.unary.shape:
            raise DataError(f"unary must be (occurrences, labels), none of them 0, got {self.unary.shape}")
        m, C = self.unary.shape
        if self.pairwise.shape not in ((C, C), (m, m, C, C)):
            raise DataError(f"pairwise must be {(C, C)} or {(m, m, C, C)}, got {self.pairwise.shape}")
        if not _symmetric(self.pairwise):
            raise DataError("pairwise must be symmetric: the same pair scores the same from either side")
        if (self.unary.max(axis=1) == -np.inf).any():
            o = int(np.argmax(self.unary.max(axis=1) == -np.inf))
            raise InfeasibleError(f"occurrence {o} has no possible label; allow at least one")

    @property
    def edges(self) -> Floats:
        """Return (m, m, C, C) pairwise potentials of any two occurrences, divided by m - 1; 0 on the diagonal."""
        m, C = self.unary.shape
        full: Floats = np.broadcast_to(self.pairwise, (m, m, C, C)) / max(m - 1, 1)
        full[np.arange(m), np.arange(m)] = 0.0
        return full

    def score(self, labels: Ints) -> float:
        """Return the score of one labelling (m,): unary scores, and pairwise ones divided by m - 1."""
        return float(_scores(self, np.asarray(labels)[None])[0])


@dataclass(frozen=True, slots=True, eq=False)
class Beliefs:
    """Marginal probabilities of the labels of each occurrence."""

    log_z: float  # a lower bound where `exact` is false
    labels: Floats  # (m, C)
    exact: bool


@dataclass(frozen=True, slots=True, eq=False)
class Labelling:
    """The best joint labelling found."""

    score: float
    labels: Ints  # (m,)
    exact: bool


def beliefs(clique: Clique) -> Beliefs:
    """Return label marginals (m, C), exact if affordable, else by mean field; InfeasibleError if nothing is possible.

    >>> beliefs(Clique(np.zeros((2, 2)), np.array([[0., -np.inf], [-np.inf, 0.]]))).labels.tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    labellings = _enumerate(clique)
    if labellings is not None:
        scores = _scores(clique, labellings)
        log_z = _feasible(float(np.logaddexp.reduce(scores)))
        weights = np.exp(scores - log_z)
        C = clique.unary.shape[1]
        return Beliefs(log_z, np.stack([weights @ (labellings == c) for c in range(C)], axis=1), exact=True)
    if _countable(clique):
        return _count_beliefs(clique)
    return _mean_field(clique)


def best_labels(clique: Clique) -> Labelling:
    """Return the best labelling (m,), exact if affordable, else climbed to from mean field; or InfeasibleError.

    >>> sure, unsure = [0., 5.], [0., -1.]
    >>> best_labels(Clique(np.array([sure, unsure]), 4 * np.eye(2))).labels.tolist()
    [1, 1]
    """
    labellings = _enumerate(clique)
    if labellings is not None:
        scores = _scores(clique, labellings)
        best = int(np.argmax(scores))
        return Labelling(_feasible(float(scores[best])), labellings[best], exact=True)
    if _countable(clique):
        return _count_labels(clique)
    return _climb(clique, np.argmax(_mean_field(clique).labels, axis=1))


def loopy_beliefs(clique: Clique, *, damping: float = 0.5, rounds: int = 50) -> Beliefs:
    """Return marginals (m, C) and Bethe log_z by damped loopy propagation; ConfigError, or InfeasibleError.

    >>> clique = Clique(np.array([[0., 1.], [0., 0.]]), np.eye(2))
    >>> bool(np.allclose(loopy_beliefs(clique).labels, beliefs(clique).labels))
    True
    """
    if not 0.0 <= damping < 1.0 or rounds < 1:
        raise ConfigError(f"damping must be in [0, 1) and rounds at least 1, got {damping} and {rounds}")
    m, C = clique.unary.shape
    edges = clique.edges
    messages = np.zeros((m, m, C))  # from o to p about p's label
    for _ in range(rounds):
        new = np.logaddexp.reduce(_cavity(clique, messages)[..., None] + edges, axis=2)
        top = new.max(axis=2, keepdims=True)
        _feasible(float(top.min()))
        with np.errstate(divide="ignore"):
            messages = np.log((1 - damping) * np.exp(new - top) + damping * np.exp(messages))
        messages[np.arange(m), np.arange(m)] = 0.0
    cavity, total = _cavity(clique, messages), clique.unary + messages.sum(axis=0)
    single = np.logaddexp.reduce(total, axis=1)
    _feasible(float(single.min()))
    pairs = np.logaddexp.reduce(cavity[..., None] + cavity.transpose(1, 0, 2)[:, :, None] + edges, axis=(2, 3))
    between = (pairs - single[:, None] - single)[np.triu_indices(m, 1)].sum()
    return Beliefs(float(single.sum() + between), np.exp(total - single[:, None]), exact=m <= 2)


def _cavity(clique: Clique, messages: Floats) -> Floats:
    """Return (m, m, C) sums [o, p]: the unary scores of o plus messages to o from all occurrences except p.

    They are summed from both ends, because subtracting a message of -inf again would give NaN.
    """
    below, above = np.zeros_like(messages), np.zeros_like(messages)
    below[1:] = np.cumsum(messages[:-1], axis=0)
    above[:-1] = np.cumsum(messages[:0:-1], axis=0)[::-1]
    return (clique.unary + below + above).transpose(1, 0, 2)


def _feasible(log_value: float) -> float:
    """Return the value; raise InfeasibleError if it is -inf."""
    if log_value == -np.inf:
        raise InfeasibleError("the repeated tokens have no possible joint labelling; allow more labels or pairs")
    return log_value


def _symmetric(pairwise: Floats) -> bool:
    """Tell whether pairwise potentials are the same from either side; those of an occurrence with itself may differ."""
    if pairwise.ndim == 2:
        return np.array_equal(pairwise, pairwise.T)
    off = ~np.eye(len(pairwise), dtype=np.bool_)
    return np.array_equal(pairwise[off], pairwise.transpose(1, 0, 3, 2)[off])


def _enumerate(clique: Clique) -> Ints | None:
    """Return every labelling (Y, m), the last occurrence changing fastest; None above `ENUMERATE` of them."""
    m, C = clique.unary.shape
    if not _is_enumerated(m, C):
        return None
    return np.indices((C,) * m).reshape(m, -1).T if m <= 32 else np.zeros((1, m), np.int64)


def _scores(clique: Clique, labellings: Ints) -> Floats:
    """Return (Y,) the unary plus pairwise score of each labelling (Y, m)."""
    m, C = clique.unary.shape
    scores = clique.unary[np.arange(m), labellings].sum(axis=1)
    if clique.pairwise.ndim == 2:
        return np.asarray(scores + _count_scores(clique, np.stack([(labellings == c).sum(axis=1) for c in range(C)])))
    edges = clique.edges
    for o, p in itertools.combinations(range(m), 2):
        scores += edges[o, p, labellings[:, o], labellings[:, p]]
    return np.asarray(scores)


def _count_scores(clique: Clique, counts: Ints) -> Floats:
    """Return the pairwise part of scores, an array (...), from how often each label occurs, counts (C, ...)."""
    m, C = clique.unary.shape
    total = np.zeros(counts.shape[1:])
    for a, b in itertools.combinations_with_replacement(range(C), 2):
        pairs = counts[a] * (counts[a] - 1) / 2 if a == b else counts[a] * counts[b]
        worth = clique.pairwise[a, b] / max(m - 1, 1)
        total += np.multiply(pairs, worth, out=np.zeros_like(total), where=pairs > 0)
    return total


def _countable(clique: Clique) -> bool:
    """Tell whether all pairs share one table, and the tables over label counts have at most `COUNT_CELLS` cells."""
    return clique.pairwise.ndim == 2 and _is_counted(*clique.unary.shape)


def _is_enumerated(m: int, C: int) -> bool:
    """Tell whether the labellings of m occurrences with C labels are few enough to list."""
    return bool(m * np.log(C) <= np.log(ENUMERATE) + 1e-9)


def _is_counted(m: int, C: int) -> bool:
    """Tell whether the tables over label counts have at most `COUNT_CELLS` cells."""
    return bool(C * np.log(m + 1) <= np.log(COUNT_CELLS))


@lru_cache(maxsize=4096)
def is_exact(m: int, C: int) -> bool:
    """Tell whether `best_labels` is exact for m occurrences with C labels whose pairs all share one table."""
    return _is_enumerated(m, C) or _is_counted(m, C)


def _count_beliefs(clique: Clique) -> Beliefs:
    """Return exact log Z and marginals of a clique with shared potentials, by label counts; or InfeasibleError."""
    cells = CountCells.of(*clique.unary.shape)
    log_z, labels = sum_by_counts(clique.unary, _count_scores(clique, cells.counts), cells)
    return Beliefs(_feasible(log_z), labels, exact=True)


def _count_labels(clique: Clique) -> Labelling:
    """Return the exact best labelling of a clique with shared potentials, by label counts; or InfeasibleError."""
    cells = CountCells.of(*clique.unary.shape)
    score, labels = best_by_counts(clique.unary, _count_scores(clique, cells.counts), cells)
    return Labelling(_feasible(score), labels, exact=True)


def _field(clique: Clique, q: Floats) -> Floats:
    """Return (m, C) expected pairwise scores if the others follow q (m, C); DataError if a pair is impossible."""
    if not np.isfinite(clique.pairwise).all():
        raise DataError(f"{len(q)} occurrences are too many for impossible pairs; use finite pairwise potentials")
    if clique.pairwise.ndim == 2:
        return np.asarray((q.sum(axis=0) - q) @ clique.pairwise / max(len(q) - 1, 1))
    return np.asarray(np.einsum("pb,opab->oa", q, clique.edges))


def _mean_field(clique: Clique) -> Beliefs:
    """Return approximate marginals (m, C) and a lower bound on log Z by mean field; DataError for impossible pairs."""
    q = np.exp(clique.unary - np.logaddexp.reduce(clique.unary, axis=1, keepdims=True))
    for _ in range(ROUNDS):
        scores = clique.unary + _field(clique, q)
        q = (q + np.exp(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))) / 2
    positive = q > 0
    inner = np.where(positive, clique.unary, 0.0) + _field(clique, q) / 2 - np.log(np.where(positive, q, 1.0))
    return Beliefs(float((q * inner).sum()), q, exact=False)


def _climb(clique: Clique, labels: Ints) -> Labelling:
    """Return the labelling after single label changes, best first, until none gains; DataError: impossible pairs.

    It may not be the best of all.
    """
    m, C = clique.unary.shape
    labels = labels.copy()
    while True:
        scores = clique.unary + _field(clique, np.eye(C)[labels])
        gains = scores - scores[np.arange(m), labels][:, None]
        o, label = divmod(int(np.argmax(gains)), C)
        if gains[o, label] <= GAIN:
            return Labelling(clique.score(labels), labels, exact=False)
        labels[o] = label
