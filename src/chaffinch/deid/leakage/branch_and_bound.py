"""The largest total over strata that a weighted count does not reject, by branch and bound.

A point is one cell per stratum; P(T ≤ seen) falls when any stratum's number grows, so the points that are not rejected
are a lower set: a box whose lowest corner is rejected is rejected altogether, and a box never holds more than its
highest corner. If the work runs out, the best that the open boxes could still hold is returned: larger, never smaller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_WORK = 8_000_000  # cells of distributions computed before the search settles for what it can prove
_POINTS = 20_000
_BATCH = 256
_CLOSE = 0.002  # the search ends when nothing open can raise the total by more than this share


@dataclass(frozen=True, slots=True)
class Grid:
    """One stratum: its weight in T, the largest number each cell stands for (J,), and P(y found) in each (J, Y)."""

    weight: int
    tops: Ints
    chances: Floats


def largest_total(grids: Sequence[Grid], seen: int, alpha: float) -> int:
    """The largest Σ tops over cells with P(Σ weight · found ≤ seen) > alpha, or slightly more; never less."""
    ends = np.array([len(grid.tops) - 1 for grid in grids])
    low, high = np.zeros((1, len(grids)), np.int64), ends[None, :]
    best, settled = _value(grids, low).max(), 0
    left = min(_POINTS, _WORK // ((seen + 1) * len(grids)))
    while len(low):
        upper = _value(grids, high)
        open_ = upper > best
        low, high, upper = low[open_], high[open_], upper[open_]
        if not len(low) or left <= 0 or upper.max() <= best * (1 + _CLOSE):
            settled = upper.max(initial=0)
            break
        first = np.argsort(-upper, kind="stable")
        low, high = low[first], high[first]
        below, above, chosen = _split(grids, low[:_BATCH], high[:_BATCH])
        kept = chance_below(grids, above, seen) > alpha
        left -= len(above)
        above, top = above[kept], high[:_BATCH][chosen][kept]
        best = max(best, _value(grids, above).max(initial=0))
        low = np.concatenate([low[:_BATCH][chosen], above, low[_BATCH:]])
        high = np.concatenate([below, top, high[_BATCH:]])
    return int(max(best, settled))


def _split(grids: Sequence[Grid], low: Ints, high: Ints) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """Boxes cut in the stratum where they are longest: high corners of lower halves, low corners of upper halves."""
    lengths = np.stack([grid.tops[high[:, h]] - grid.tops[low[:, h]] for h, grid in enumerate(grids)], axis=1)
    where = lengths.argmax(axis=1)
    rows = np.arange(len(low))
    middle = (low[rows, where] + high[rows, where]) // 2
    below, above = high.copy(), low.copy()
    below[rows, where], above[rows, where] = middle, middle + 1
    chosen = lengths.max(axis=1) > 0
    return below[chosen], above[chosen], chosen


def _value(grids: Sequence[Grid], corner: Ints) -> Ints:
    return np.asarray(sum(grid.tops[corner[:, h]] for h, grid in enumerate(grids)), np.int64)


def chance_below(grids: Sequence[Grid], corner: Ints, seen: int) -> Floats:
    """P(Σ weight · found ≤ seen) at each of some points (P, H): (P,)."""
    spread = np.zeros((len(corner), seen + 1))
    spread[:, 0] = 1.0
    for h, grid in enumerate(grids[:-1]):
        chances = grid.chances[corner[:, h]]
        sums = np.zeros_like(spread)
        for found in range(min(chances.shape[1], seen // grid.weight + 1)):
            at = found * grid.weight
            sums[:, at:] += chances[:, found, None] * spread[:, : seen + 1 - at]
        spread = sums
    last = grids[-1]
    at_most = np.cumsum(last.chances, axis=1)[corner[:, -1]]
    room = np.minimum((seen - np.arange(seen + 1)) // last.weight, at_most.shape[1] - 1)
    return np.asarray((spread * at_most[:, room]).sum(axis=1), np.float64)
