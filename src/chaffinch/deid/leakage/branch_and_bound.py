"""The largest total over strata that a weighted count does not reject, by branch and bound.

A point is one cell per stratum; P(T ≤ seen) falls when any stratum's number grows, so the points that are not rejected
are a lower set: a box whose lowest corner is rejected is rejected as a whole, and no total in a box exceeds its highest
corner's. If the budget of work runs out, the largest total of the open boxes is returned: larger, never smaller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_MOST_WORK = 8_000_000  # cells of distributions to compute; then the search returns what it can prove so far
_MOST_POINTS = 20_000  # to evaluate in all; more give a tighter bound and take longer
_BATCH = 256  # boxes that are split together, those with the largest upper bound first
_TOLERANCE = 0.002  # relative; the search ends when no open box can raise the total by more


@dataclass(frozen=True, slots=True)
class Grid:
    """One stratum: its weight in T, the largest number of each cell (J,), and P(y found) in each cell (J, Y)."""

    weight: int
    tops: Ints
    chances: Floats


def largest_total(grids: Sequence[Grid], seen: int, alpha: float) -> int:
    """Return the largest Σ tops over cells with P(Σ weight · found ≤ seen) > alpha, or slightly more; never less."""
    ends = np.array([len(grid.tops) - 1 for grid in grids])
    low, high = np.zeros((1, len(grids)), np.int64), ends[None, :]
    best, proven = _totals(grids, low).max(), 0
    points_left = min(_MOST_POINTS, _MOST_WORK // ((seen + 1) * len(grids)))
    while len(low):
        upper = _totals(grids, high)
        can_improve = upper > best
        low, high, upper = low[can_improve], high[can_improve], upper[can_improve]
        if not len(low) or points_left <= 0 or upper.max() <= best * (1 + _TOLERANCE):
            proven = upper.max(initial=0)
            break
        by_upper = np.argsort(-upper, kind="stable")
        low, high = low[by_upper], high[by_upper]
        below, above, chosen = _split(grids, low[:_BATCH], high[:_BATCH])
        kept = chance_below(grids, above, seen) > alpha
        points_left -= len(above)
        above, top = above[kept], high[:_BATCH][chosen][kept]
        best = max(best, _totals(grids, above).max(initial=0))
        low = np.concatenate([low[:_BATCH][chosen], above, low[_BATCH:]])
        high = np.concatenate([below, top, high[_BATCH:]])
    return int(max(best, proven))


def _split(grids: Sequence[Grid], low: Ints, high: Ints) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """Halve boxes in their longest stratum; return lower halves' tops, upper halves' bottoms, and which were split."""
    lengths = np.stack([grid.tops[high[:, h]] - grid.tops[low[:, h]] for h, grid in enumerate(grids)], axis=1)
    stratum = lengths.argmax(axis=1)
    rows = np.arange(len(low))
    middle = (low[rows, stratum] + high[rows, stratum]) // 2
    below, above = high.copy(), low.copy()
    below[rows, stratum], above[rows, stratum] = middle, middle + 1
    chosen = lengths.max(axis=1) > 0
    return below[chosen], above[chosen], chosen


def _totals(grids: Sequence[Grid], corner: Ints) -> Ints:
    """Return for each corner of the boxes the total of leaks over all strata."""
    return np.asarray(sum(grid.tops[corner[:, h]] for h, grid in enumerate(grids)), np.int64)


def chance_below(grids: Sequence[Grid], corner: Ints, seen: int) -> Floats:
    """Return P(Σ weight · found ≤ seen) at each of the points (P, H): (P,)."""
    spread = np.zeros((len(corner), seen + 1))
    spread[:, 0] = 1.0
    for h, grid in enumerate(grids[:-1]):
        chances = grid.chances[corner[:, h]]
        sums = np.zeros_like(spread)
        for found in range(min(chances.shape[1], seen // grid.weight + 1)):
            offset = found * grid.weight
            sums[:, offset:] += chances[:, found, None] * spread[:, : seen + 1 - offset]
        spread = sums
    last = grids[-1]
    at_most = np.cumsum(last.chances, axis=1)[corner[:, -1]]
    room = np.minimum((seen - np.arange(seen + 1)) // last.weight, at_most.shape[1] - 1)
    return np.asarray((spread * at_most[:, room]).sum(axis=1), np.float64)
