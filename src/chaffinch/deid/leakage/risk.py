"""Expected leaks of each note, from the detector's probabilities, and the calibration of these probabilities.

A token that was not redacted is an identifier with probability p. If the probabilities are calibrated, a note has Σ p
identifier tokens left on average. This orders notes by risk and defines strata for review. It is no bound: only reading
a sample (`sample`, `estimate`) shows how much leaks, whether or not the detector is calibrated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chaffinch.errors import ConfigError, DataError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Left:
    """The tokens of one note that were not redacted, M of its `tokens`.

    `probabilities` (M,): that each is an identifier. `places` (M,): their positions in the note, rising; without them
    they are taken as consecutive. `categories`: for each category, (M,) probabilities; a token's sum is at most p.
    """

    id: str
    tokens: int
    probabilities: Floats
    places: Ints | None = None
    categories: Mapping[str, Floats] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise DataError unless probabilities, positions and categories fit one another and the tokens."""
        length = len(self.probabilities)
        rows = {"probabilities": self.probabilities, **self.categories}
        if not (all(np.shape(row) == (length,) for row in rows.values()) and _are_chances(np.array([*rows.values()]))):
            name = next(name for name, row in rows.items() if np.shape(row) != (length,) or not _are_chances(row))
            raise DataError(f"{name} must be {length} numbers from 0 to 1, one for each token that was left")
        if length > self.tokens:
            raise DataError(f"{length} tokens were left of a note of {self.tokens}; tokens counts the redacted as well")
        if self.categories and (sum(self.categories.values()) > self.probabilities + 1e-6).any():
            raise DataError("the categories of a token add up to more than its probability; give their joint values")
        if self.places is not None and (np.shape(self.places) != (length,) or (np.diff(self.places) <= 0).any()):
            raise DataError(f"places must be {length} rising positions, one for each token that was left")


def _are_chances(values: Floats) -> bool:
    """Tell whether all numbers are from 0 to 1; NaN is not."""
    return bool(((values >= 0) & (values <= 1)).all())


@dataclass(frozen=True, slots=True)
class Risk:
    """The expected leaks of one note: identifier tokens, spans, and the probability of any leak."""

    id: str
    tokens: int
    expected: float
    spans: float = 0.0
    any_leak: float = 0.0
    categories: Mapping[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the risk as plain JSON values, one row of a risk file."""
        numbers = {"expected": self.expected, "spans": self.spans, "any_leak": self.any_leak}
        return {"id": self.id, "tokens": self.tokens, **numbers, "categories": dict(self.categories)}


@dataclass(frozen=True, slots=True)
class ExpectedLeaks:
    """The expected leaks of a corpus; per note and per 1,000 tokens, in total and by category."""

    notes: int
    tokens: int
    leaks: float
    spans: float
    leaking_notes: float
    categories: Mapping[str, float]

    @property
    def per_note(self) -> float:
        """Return the expected number of identifier tokens left in a note."""
        return self.leaks / max(self.notes, 1)

    @property
    def per_1000(self) -> float:
        """Return the expected number of identifier tokens left in 1,000 tokens."""
        return 1000 * self.leaks / max(self.tokens, 1)

    def as_dict(self) -> dict[str, Any]:
        """Return the expected leaks as plain JSON values; each category per note and per 1,000 tokens."""
        by_category = {
            name: {"leaks": n, "per_note": n / max(self.notes, 1), "per_1000": 1000 * n / max(self.tokens, 1)}
            for name, n in self.categories.items()
        }
        rates = {"per_note": self.per_note, "per_1000": self.per_1000, "leaking_notes": self.leaking_notes}
        counts = {"notes": self.notes, "tokens": self.tokens, "leaks": self.leaks, "spans": self.spans}
        return {**counts, **rates, "categories": by_category}


def risk(left: Left) -> Risk:
    """Return a note's expected leaking tokens, spans and chance of any leak, from its tokens' probabilities.

    Spans are runs of identifier tokens: Σ p_i (1 - p_{i-1}) with neighbours taken as independent, which is too many
    where they are correlated, like the parts of a name. So is `any_leak`, 1 - Π (1 - p_i).

    >>> risk(Left("a", 5, np.array([0.5, 0.5, 0.0]))).expected
    1.0
    """
    return sum_chances(left.id, left.tokens, np.asarray(left.probabilities, np.float64), left.places, left.categories)


def sum_chances(name: str, tokens: int, p: Floats, places: Ints | None, categories: Mapping[str, Floats]) -> Risk:
    """Return the risk of the fields of a `Left`, which are not checked."""
    before = np.zeros(len(p))  # the probability of the token just before, 0 if that was redacted
    before[1:] = p[:-1]
    if places is not None:
        before[1:][places[1:] - places[:-1] != 1] = 0.0
    by_category = {name: float(np.add.reduce(row)) for name, row in categories.items()}
    return Risk(name, tokens, float(p.sum()), float((p * (1 - before)).sum()), float(1 - np.prod(1 - p)), by_category)


class RiskSums:
    """Sums over the risks of notes, which need not be kept."""

    def __init__(self) -> None:
        """Start without a note."""
        self.notes = self.tokens = 0
        self._leaks = self._spans = self._any_leak = 0.0
        self._categories: dict[str, float] = {}

    def add(self, row: Risk) -> None:
        """Add the risk of a note to the sums, in all and by category."""
        self.notes += 1
        self.tokens += row.tokens
        self._leaks += row.expected
        self._spans += row.spans
        self._any_leak += row.any_leak
        for name, value in row.categories.items():
            self._categories[name] = self._categories.get(name, 0.0) + value

    def total(self) -> ExpectedLeaks:
        """Return the expected leaks of all notes so far."""
        by_category = dict(sorted(self._categories.items()))
        return ExpectedLeaks(self.notes, self.tokens, self._leaks, self._spans, self._any_leak, by_category)


def expected(risks: Iterable[Risk]) -> ExpectedLeaks:
    """Return the sums of all notes' risks over a corpus."""
    sums = RiskSums()
    for row in risks:
        sums.add(row)
    return sums.total()


def queue(risks: Iterable[Risk]) -> list[Risk]:
    """Return the risks in the order to read their notes: most expected leaks first, then by id."""
    return sorted(risks, key=lambda row: (-row.expected, row.id))


@dataclass(frozen=True, slots=True)
class Bin:
    """Tokens of similar probability: the predicted and the true share of identifiers, with a 95 % interval."""

    low: float
    high: float
    tokens: int
    identifiers: int
    promised: float
    observed: float
    interval: tuple[float, float]


@dataclass(frozen=True, slots=True)
class RiskCalibration:
    """The calibration of probabilities: bins, the mean gap between prediction and truth, and their ratio.

    `ratio` is identifiers found over identifiers expected: 2 means that twice as much leaks as expected.
    """

    bins: tuple[Bin, ...]
    gap: float
    ratio: float

    def as_dict(self) -> dict[str, Any]:
        """Return the calibration as plain JSON values."""
        names = ("low", "high", "tokens", "identifiers", "promised", "observed", "interval")
        bins = [{name: getattr(row, name) for name in names} for row in self.bins]
        return {"bins": bins, "gap": self.gap, "ratio": self.ratio}


def calibration(
    probabilities: Sequence[float] | Floats, gold: Sequence[int] | Ints | NDArray[np.bool_], *, bins: int = 10
) -> RiskCalibration:
    """Return predicted and true shares of identifiers in bins of about equally many tokens, their gap and ratio.

    DataError if lengths differ, nothing is given or a probability is outside 0 to 1; ConfigError if `bins` < 1.

    >>> calibration([0.1] * 10 + [0.5] * 2, [1] + [0] * 9 + [1, 0], bins=2).gap
    0.0
    """
    p, truth = np.asarray(probabilities, np.float64), np.asarray(gold, bool)
    if bins < 1:
        raise ConfigError(f"bins must be at least 1, got {bins}")
    if p.shape != truth.shape or p.ndim != 1 or not len(p):
        raise DataError(f"{len(p)} probabilities need as many gold values, and at least one; got {len(truth)}")
    if not (np.isfinite(p).all() and (p >= 0).all() and (p <= 1).all()):
        raise DataError("probabilities must be numbers from 0 to 1")
    edges = np.unique(np.quantile(p, np.arange(1, bins) / bins, method="inverted_cdf"))
    bin_of = np.searchsorted(edges, p, side="left")
    rows = tuple(_bin(p[bin_of == number], truth[bin_of == number]) for number in np.unique(bin_of))
    gap = sum(row.tokens * abs(row.promised - row.observed) for row in rows) / len(p)
    return RiskCalibration(rows, float(gap), float(truth.sum() / p.sum()) if p.sum() > 0 else float("inf"))


def _bin(p: Floats, truth: NDArray[np.bool_]) -> Bin:
    """Return a bin of tokens: range, size, identifiers, mean probability, true share with its exact 95 % interval."""
    from scipy.stats import beta

    hits, n = int(truth.sum()), len(p)
    low = 0.0 if hits == 0 else float(beta.ppf(0.025, hits, n - hits + 1))
    high = 1.0 if hits == n else float(beta.ppf(0.975, hits + 1, n - hits))
    return Bin(float(p.min()), float(p.max()), n, hits, float(p.mean()), hits / n, (low, high))
