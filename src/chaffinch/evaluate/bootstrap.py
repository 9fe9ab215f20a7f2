"""Intervals and comparisons by resampling documents (percentile bootstrap).

B draws, D documents, L labels. A draw of D documents with replacement is a row of weights, so all scores of a draw
are one matrix product with the counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from chaffinch.errors import ConfigError, DataError
from chaffinch.evaluate.counts import Floats, MatchCounts, harmonic_mean, rates, ratio

DRAWS = 1000  # more draws make intervals steadier from seed to seed, and the smallest p-value lower: 2 / (draws + 1)
LEVEL = 0.95  # the usual level of confidence intervals
_BLOCK = 2_000_000  # weights in memory at once (16 MB); does not change the result

Interval: TypeAlias = tuple[float, float]
Ranges: TypeAlias = tuple[Interval | None, Interval | None, Interval | None]  # of precision, recall and F1


@dataclass(frozen=True, slots=True)
class Intervals:
    """Lower and upper bounds of precision, recall and F1; None where a score was defined in no draw."""

    micro: Ranges
    macro: Ranges
    labels: tuple[Ranges, ...]


def intervals(counts: MatchCounts, *, draws: int = DRAWS, level: float = LEVEL, seed: int = 0) -> Intervals | None:
    """Return bootstrap intervals of all scores over documents; None below two documents or for no labels; ConfigError.

    Recall is undefined in a draw without gold spans of a label, precision in one without predictions: an interval uses
    only the draws in which its score is defined, and so does a label's part in a macro average. With few spans of a
    label the method is weak: one span, found, gives 1 to 1. Look at the counts beside it.

    >>> from chaffinch.evaluate.counts import count_sets
    >>> same = count_sets([({("A", 0)}, {("A", 0)})] * 9)
    >>> intervals(same).micro
    ((1.0, 1.0), (1.0, 1.0), (1.0, 1.0))
    """
    _check(draws, level)
    D, L, _ = counts.values.shape
    if D < 2 or L == 0:
        return None
    flat = counts.values.reshape(D, L * 3).astype(np.float64)
    by_document = rates(counts.values.sum(axis=1))[:, :2]
    sums, means = [], []
    for weights in _weights(D, draws=draws, seed=seed):
        sums.append((weights @ flat).reshape(-1, L, 3))  # whole numbers, so exact in any order of adding
        means.append(np.einsum("bd,dk->bk", weights, by_document) / D)
    drawn = np.concatenate(sums)  # (B, L, 3)
    each, known = rates(drawn), _is_defined(drawn)
    total = drawn.sum(axis=1)
    if counts.macro == "documents":
        mean = np.concatenate(means)
        macro = np.column_stack([mean, harmonic_mean(mean[:, 0], mean[:, 1])])
    else:
        # A score that is not defined on all documents either counts as 0, as it does in the macro average itself.
        part = known | ~_is_defined(counts.values.sum(axis=0))
        macro = ratio((each * part).sum(axis=1), part.sum(axis=1))
    return Intervals(
        micro=_ranges(rates(total), _is_defined(total), level),
        macro=_ranges(macro, np.ones(macro.shape, bool), level),
        labels=tuple(_ranges(each[:, i], known[:, i], level) for i in range(L)),
    )


@dataclass(frozen=True, slots=True)
class Difference:
    """Micro F1 of the first system minus that of the second, with an interval and a two-sided p-value.

    One document cannot be resampled: interval and p are then None.
    """

    value: float
    interval: Interval | None
    p: float | None


def f1_difference(
    first: MatchCounts, second: MatchCounts, *, draws: int = DRAWS, level: float = LEVEL, seed: int = 0
) -> Difference:
    """Return micro F1 of `first` less `second`, its bootstrap interval and p, both None for one document; or DataError.

    DataError unless both have counts of equally many documents, ConfigError for `draws` or `level` out of range.

    Both are scored on the same draws. p is twice the share of draws on the far side of no difference (draws without
    a difference count on both sides; one is added to each count, so p is never 0 and its floor is 2 / (draws + 1)).

    >>> from chaffinch.evaluate.counts import count_sets
    >>> a = count_sets([({("A", 0)}, {("A", 0)})] * 9)
    >>> f1_difference(a, a)
    Difference(value=0.0, interval=(0.0, 0.0), p=1.0)
    """
    _check(draws, level)
    if len(first.values) != len(second.values):
        raise DataError(f"{len(first.values)} documents against {len(second.values)}; score both on the same ones")
    a, b = (counts.values.sum(axis=1).astype(np.float64) for counts in (first, second))  # (D, 3)
    value = float(rates(a.sum(axis=0))[2] - rates(b.sum(axis=0))[2])
    if len(a) < 2:
        return Difference(value, None, None)
    drawn = np.concatenate(
        [rates(w @ a)[:, 2] - rates(w @ b)[:, 2] for w in _weights(len(a), draws=draws, seed=seed)],
    )
    against = min(np.count_nonzero(drawn <= 0), np.count_nonzero(drawn >= 0))
    return Difference(value, _range(drawn, level), float(min(1.0, 2 * (against + 1) / (draws + 1))))


def _weights(documents: int, *, draws: int, seed: int) -> Iterator[Floats]:
    """Yield blocks (b, D) of bootstrap weights: how often each document is in each draw; `draws` rows in all."""
    rng = np.random.default_rng(seed)
    block = max(1, min(draws, _BLOCK // documents))
    for first in range(0, draws, block):
        rows = min(block, draws - first)
        chosen = rng.integers(documents, size=(rows, documents)) + documents * np.arange(rows)[:, None]
        yield np.bincount(chosen.ravel(), minlength=rows * documents).reshape(rows, documents).astype(np.float64)


def _is_defined(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return (..., 3) whether precision, recall and F1 of counts (..., 3) have a denominator above 0."""
    tp, fp, fn = values[..., 0], values[..., 1], values[..., 2]
    return np.stack([tp + fp > 0, tp + fn > 0, tp + fp + fn > 0], axis=-1)


def _ranges(drawn: Floats, known: NDArray[np.bool_], level: float) -> Ranges:
    """Return the intervals of precision, recall, F1 from draws (B, 3) where each is `known`; None if never known."""
    precision, recall, f1 = (_range(drawn[known[:, k], k], level) for k in range(3))
    return precision, recall, f1


def _range(drawn: Floats, level: float) -> Interval | None:
    """Return the percentile interval (low, high) of the drawn values at this level; None if there are none."""
    if not len(drawn):
        return None
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2]).tolist()
    return low, high


def _check(draws: int, level: float) -> None:
    """Raise ConfigError unless `draws` is at least 1 and the level is between 0 and 1."""
    if draws < 1:
        raise ConfigError(f"draws must be at least 1, got {draws}")
    if not 0 < level < 1:
        raise ConfigError(f"level must lie between 0 and 1, got {level}")
