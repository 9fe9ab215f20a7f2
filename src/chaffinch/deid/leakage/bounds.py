"""Upper bounds on the leaks in a corpus of which a stratified random sample was read.

The setting: stratum h has N_h notes, n_h of them were drawn without replacement and read, and a reader finds a leak
with probability r (the recall). T = Σ a_h · found_h is the test statistic, with integer weights a_h ≈ N_h / n_h that
depend on the design alone. A population is *rejected* when P(T ≤ observed T) ≤ α under it; the bound is the
largest total of any population that is not rejected. The true population is rejected with probability ≤ α, so the
bound holds with confidence 1 - α, for any distribution of leaks over the strata. No normal or Poisson approximation, no
Bonferroni over strata: with nothing found it is ln(1/α) in all, the rule of three in the least-read stratum.

The search space is large, so approximations may only *add* populations, never lose one:

* Chernoff. P(T ≤ t) ≤ e^{st} Π_h E e^{-s a_h X_h} for every s > 0. Of all ways to spread m leaks over a stratum with
  at most B per note, E e^{-sX} is largest when they fill as few notes as possible: sampling without replacement makes
  it an elementary symmetric polynomial of the notes' factors y(c) = 1 - r(1 - e^{-s a c}), and y is convex and
  log-convex in c, so making two notes unequal raises y_i + y_j and y_i y_j. y(c) is also the worst over every way in
  which misses inside one note can be dependent (chord of e^{-sY}, 0 ≤ Y ≤ c); between notes they are independent.
  The product separates, and the largest total is bounded by the Lagrangian dual: any multiplier is valid.
* For notes that leak or not (B = 1), P(T ≤ t) itself is computed, and the largest total found by branch and bound
  (P falls in each K_h): `branch_and_bound`. With nothing found, Chernoff at s = ∞ is already exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from chaffinch.deid.leakage.branch_and_bound import Grid, largest_total
from chaffinch.errors import ConfigError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_MOST_CELLS = (
    400  # grid points per stratum; in a longer range a cell counts with its upper end: fewer cells, looser bounds
)
_LARGEST_WEIGHT = 12  # of strata, as integers; larger values follow N_h / n_h more closely and make T's range longer
_SLACK = 1e-9  # relative; favours keeping a population, so that rounding errors never make a bound too low


class Stratum(NamedTuple):
    """The review of one stratum: its size, the notes read, and the leaks (or leaking notes) found in them."""

    size: int
    read: int
    found: int


@dataclass(frozen=True, slots=True)
class _Part:
    """A stratum in the test: its weight, and the range of its possible true total."""

    size: int
    read: int
    weight: int
    low: int
    high: int


def leaking_upper(size: int, read: int, found: int, *, recall: float = 1.0, alpha: float = 0.05) -> int:
    """Return an upper bound, wrong with chance `alpha`, on leaking notes of `size`, if `found` of `read` drawn leak.

    This is the hypergeometric Clopper-Pearson bound; a leaking note that is read is found with probability `recall`.

    >>> leaking_upper(12_000, 300, 0), leaking_upper(5, 5, 2)
    (117, 2)
    """
    _check_review([Stratum(size, read, found)], 1, recall, alpha)
    if read == 0:
        return size
    low, high = found, size - (read - found) if recall == 1 else size
    while low < high:
        middle = (low + high + 1) // 2
        chance = detection_chances(size, read, np.array([middle]), recall, found).sum()
        low, high = (middle, high) if chance > alpha * (1 - _SLACK) else (low, middle - 1)
    return low


def notes_upper(strata: Sequence[Stratum], *, recall: float = 1.0, alpha: float = 0.05) -> int:
    """Return an upper bound, wrong with chance `alpha`, on leaking notes in all strata; unread strata count in full."""
    _check_review(strata, 1, recall, alpha)
    unread = sum(part.size for part in strata if part.read == 0)
    strata = [part for part in strata if part.read > 0]
    if len(strata) <= 1:
        return unread + sum(leaking_upper(*part, recall=recall, alpha=alpha) for part in strata)
    known, parts, seen = _strata_to_test(strata, 1, recall)
    if not parts:
        return unread + known
    upper, parts = _chernoff_bound(parts, seen, 1, recall, alpha)
    if seen > 0:
        grids = [_found_grid(part, seen, recall, alpha) for part in parts]
        upper = min(upper, largest_total(grids, seen, alpha * (1 - _SLACK)))
    return unread + known + upper


def leaks_upper(strata: Sequence[Stratum], *, most: int, recall: float = 1.0, alpha: float = 0.05) -> int:
    """Return an upper bound on the leaks in all strata, wrong with chance `alpha`; a note counts at most `most`.

    `found` must count a note so too. Without such a limit no bound can hold: a single unread note could have any number
    of leaks. Raise ConfigError for a review that cannot be.
    """
    _check_review(strata, most, recall, alpha)
    if most == 1:
        return notes_upper(strata, recall=recall, alpha=alpha)
    unread = sum(part.size * most for part in strata if part.read == 0)
    known, parts, seen = _strata_to_test([part for part in strata if part.read > 0], most, recall)
    return unread + known + (_chernoff_bound(parts, seen, most, recall, alpha)[0] if parts else 0)


def _check_review(strata: Sequence[Stratum], most: int, recall: float, alpha: float) -> None:
    """Raise ConfigError if more was read than there is, or found than read, or a chance is out of range."""
    for size, read, found in strata:
        if not (0 <= read <= size and 0 <= found <= read * most):
            where = f"a stratum of {size} notes with {read} read and {found} found, at most {most} a note,"
            raise ConfigError(f"{where} cannot be; count again")
    if most < 1 or not 0 < recall <= 1 or not 0 < alpha < 1:
        given = f"most={most}, recall={recall} and alpha={alpha}"
        raise ConfigError(f"{given} give no bound; use most >= 1, 0 < recall <= 1 and 0 < alpha < 1")


def detection_chances(size: int, read: int, leaking: Ints, recall: float, most: int) -> Floats:
    """Return P(y leaking notes are found), y = 0 … `most`, a row per number of leaking notes: (J, most + 1)."""
    drawn = _hypergeometric(size, read, leaking)
    chances = np.zeros((len(leaking), most + 1))
    if recall == 1:
        width = min(most + 1, drawn.shape[1])
        chances[:, :width] = drawn[:, :width]
        return chances
    from scipy.stats import binom

    thinning = binom.pmf(np.arange(most + 1)[None, :], np.arange(drawn.shape[1])[:, None], recall)
    return np.asarray(drawn @ thinning, np.float64)


def _hypergeometric(size: int, read: int, leaking: Ints) -> Floats:
    """Return (J, X) chances that x of `read` notes drawn from `size` leak, for each number of leaking notes."""
    from scipy.special import gammaln

    def log_choose(n: Ints, k: Ints) -> Floats:
        """Return the logarithm of n choose k; -inf where k is impossible."""
        possible = (k >= 0) & (k <= n)
        n, k = np.where(possible, n, 0), np.where(possible, k, 0)
        return np.where(possible, gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1), -np.inf)

    drawn = np.arange(min(read, int(leaking.max(initial=0))) + 1)[None, :]
    marked = leaking[:, None]
    logs = log_choose(marked, drawn) + log_choose(size - marked, read - drawn)
    return np.exp(logs - log_choose(np.array(size), np.array(read)))


def _strata_to_test(strata: Sequence[Stratum], most: int, recall: float) -> tuple[int, list[_Part], int]:
    """Return leaks in strata read in full, the others with weights and ranges, and T = Σ weight · found."""
    fully_read = [part for part in strata if recall == 1 and part.read == part.size]
    tested = [part for part in strata if part not in fully_read]
    heaviest = max((part.size / part.read for part in tested), default=1.0)
    weights = [max(1, round(_LARGEST_WEIGHT * part.size / part.read / heaviest)) for part in tested]
    common = math.gcd(*weights)
    parts = []
    for part, weight in zip(tested, weights, strict=True):
        read_again = (
            0 if recall == 1 else part.read * most - part.found
        )  # leaks that the reader may have missed in the notes read
        high = part.found + read_again + (part.size - part.read) * most
        parts.append(_Part(part.size, part.read, weight // common, part.found, high))
    return sum(part.found for part in fully_read), parts, sum(part.weight * part.low for part in parts)


# --------------------------------------------------------------------------------------------------------------------
# The separable bound


def _chernoff_bound(parts: list[_Part], seen: int, most: int, recall: float, alpha: float) -> tuple[int, list[_Part]]:
    """Return a bound on all leaks, given T (`seen`) and the reader's recall, and the strata with narrowed ranges."""
    scale = most * max(part.weight for part in parts)
    slopes = np.array([np.inf]) if seen == 0 else np.geomspace(0.01, 12, 12) / scale
    upper = sum(part.high for part in parts)
    for _ in range(5):
        tables = [_Table.of(part, most) for part in parts]
        totals = [_dual_bound(tables, slope, seen, recall, alpha) for slope in slopes]
        best = int(np.argmin(totals))
        if seen > 0:
            near = np.geomspace(slopes[max(best - 1, 0)], slopes[min(best + 1, len(slopes) - 1)], 7)
            totals += [_dual_bound(tables, slope, seen, recall, alpha) for slope in near]
            slopes = np.unique(np.append(near, slopes[[0, -1]]))
        before, upper = upper, min(upper, *totals)
        others = upper - sum(part.low for part in parts)
        closer = [replace(part, high=min(part.high, part.low + others)) for part in parts]
        if closer == parts or (upper == before and all(table.complete for table in tables)):
            break
        parts = closer
    return upper, parts


@dataclass(frozen=True, slots=True)
class _Table:
    """A stratum on its grid of totals (J,): the chance to draw x notes that are filled with leaks, (J', X)."""

    part: _Part
    tops: Ints  # (J,) the largest total of each cell
    full: Ints  # (J,) row of `drawn` for the notes filled to the limit; the next row has one more
    rest: Ints  # (J,) leaks in the one note that is partly filled
    drawn: Floats
    most: int
    complete: bool

    @classmethod
    def of(cls, part: _Part, most: int) -> _Table:
        """Return the table of chances of the sample over a grid of the stratum's possible totals of leaks."""
        totals, tops = _cells(part.low, part.high)
        full = totals // most
        numbers = np.unique(np.concatenate([full, np.minimum(full + 1, part.size)]))
        drawn = _hypergeometric(part.size, part.read, numbers)
        return cls(part, tops, np.searchsorted(numbers, full), totals % most, drawn, most, bool((tops == totals).all()))

    def losses(self, slope: float, recall: float) -> Floats:
        """Return -log E e^{-slope · weight · X} at the worst population of each total, (J,)."""
        weight = slope * self.part.weight
        factor = 1 - recall * (1 - np.exp(-weight * self.most))
        means = self.drawn @ factor ** np.arange(self.drawn.shape[1])
        after = np.append(means, 0.0)[self.full + 1]
        # One note with c < B leaks has y(c) between y(0) = 1 and y(B): the mean is affine in that factor.
        partly = np.zeros(len(self.rest))
        some = self.rest > 0
        partly[some] = -np.expm1(-weight * self.rest[some]) / -np.expm1(-weight * self.most)
        mean = np.minimum(1.0, (1 - partly) * means[self.full] + partly * after)
        with np.errstate(divide="ignore"):  # a total that would surely have been found: its loss is infinite
            return np.asarray(-np.log(mean * (1 + _SLACK)), np.float64)


def _cells(low: int, high: int) -> tuple[Ints, Ints]:
    """Return (first totals, last totals) of at most `_MOST_CELLS` cells that divide the range [low, high]."""
    totals = np.unique(np.linspace(low, high, min(high - low + 1, _MOST_CELLS)).astype(np.int64))
    return totals, np.append(totals[1:] - 1, high)


def _dual_bound(tables: Sequence[_Table], slope: float, seen: int, recall: float, alpha: float) -> int:
    """Return an upper bound on the largest total with Σ losses ≤ log 1/α + slope · seen, by its Lagrangian dual."""
    budget = -np.log(alpha) + (slope * seen if seen else 0.0)
    losses = [table.losses(slope, recall) for table in tables]
    kept = [loss <= budget for loss in losses]
    tops = [table.tops[keep].astype(np.float64) for table, keep in zip(tables, kept, strict=True)]
    losses = [loss[keep] for loss, keep in zip(losses, kept, strict=True)]

    low, high = -25.0, float(np.log(sum(part.part.size * part.most for part in tables) + 1)) + 25
    for _ in range(7):
        prices = np.exp(np.linspace(low, high, 33))[:, None]
        values = prices[:, 0] * budget + sum(
            (top - prices * loss).max(axis=1) for top, loss in zip(tops, losses, strict=True)
        )
        best = int(values.argmin())
        low, high = np.log(prices[[max(best - 1, 0), min(best + 1, 32)], 0])
    return int(np.floor(values[best] + 1e-7))


def _found_grid(part: _Part, seen: int, recall: float, alpha: float) -> Grid:
    """Return the exact chances of found leaks in one stratum, by cells of numbers of leaking notes still possible."""
    alone = leaking_upper(part.size, part.read, min(seen // part.weight, part.read), recall=recall, alpha=alpha)
    totals, tops = _cells(part.low, max(part.low, min(part.high, alone)))
    chances = detection_chances(part.size, part.read, totals, recall, seen // part.weight)
    return Grid(part.weight, tops, chances)
