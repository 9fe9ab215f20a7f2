"""A random sample of notes to review, and its file format.

Every note of the corpus is in exactly one stratum; within a stratum, each set of notes is equally likely to be drawn.
The bounds of `estimate` rest on this and on the sizes of the strata alone: they hold even if the risks are wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Literal, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

from chaffinch.checks import check_choice
from chaffinch.errors import ConfigError, DataError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Allocation = Literal["mixed", "neyman", "proportional"]

FORMAT = "chaffinch-sample-1"
QUANTILES = (0.5, 0.8, 0.95)  # risk is skewed: half of the notes carry little of it, a twentieth much


class Stratum(msgspec.Struct, frozen=True):
    """Notes of similar risk: their number, their tokens, their risks, and the ids that were drawn."""

    size: int
    tokens: int
    lowest_risk: float
    highest_risk: float
    expected: float
    drawn: tuple[str, ...]


class Sample(msgspec.Struct, frozen=True):
    """A drawn sample; it holds ids and numbers, no text."""

    strata: tuple[Stratum, ...]
    seed: int
    allocation: str
    format: str = FORMAT

    def __post_init__(self) -> None:
        """Raise DataError if the format is another, a note is drawn twice, or a stratum draws too many."""
        ids = self.ids
        if self.format != FORMAT:
            raise DataError(f"is of format {self.format!r}, not {FORMAT!r}; draw a new sample")
        if not ids or len(set(ids)) != len(ids):
            raise DataError("draws no note, or one note twice; draw a new sample")
        for number, part in enumerate(self.strata, start=1):
            if len(part.drawn) > part.size or part.size < 1 or part.tokens < 0:
                raise DataError(f"stratum {number} draws {len(part.drawn)} of {part.size} notes; draw a new sample")

    @property
    def ids(self) -> tuple[str, ...]:
        """Return the drawn ids, stratum by stratum."""
        return tuple(name for part in self.strata for name in part.drawn)

    @property
    def notes(self) -> int:
        """Return the number of notes in the corpus."""
        return sum(part.size for part in self.strata)

    @property
    def tokens(self) -> int:
        """Return the number of tokens in the corpus."""
        return sum(part.tokens for part in self.strata)

    def reading_order(self) -> list[str]:
        """Return the drawn ids, shuffled over the strata, so that the reader does not see their risks."""
        ids = sorted(self.ids)
        return [ids[index] for index in np.random.default_rng([self.seed, len(self.strata), 1]).permutation(len(ids))]

    def to_json(self) -> bytes:
        """Return the sample as indented JSON bytes."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"

    @classmethod
    def from_json(cls, content: bytes) -> Sample:
        """Return the sample of a file that `to_json` made; DataError if it is none."""
        try:
            return msgspec.json.decode(content, type=cls)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            raise DataError("is not a sample file; make one with: chaffinch deid sample") from None


def sample(
    documents: Mapping[str, int],
    risks: Mapping[str, float],
    n: int,
    *,
    seed: int,
    strata: Sequence[float] | int = QUANTILES,
    least: int = 5,
    allocation: Allocation = "mixed",
) -> Sample:
    """Draw `n` notes by seed, in strata cut at quantiles of risk; ConfigError or DataError for unfit arguments.

    `documents` maps every id of the corpus to its tokens, `risks` to its expected leaks. `strata` are quantiles of risk
    to cut at, or a number of equal parts; 1 is a plain random sample. A stratum gets at least `least` notes (or all it
    has); the rest is allocated by `allocation`. "neyman": by size times the standard deviation of leaking notes that
    the risks predict; it finds the most leaks. "proportional": by size; it gives the lowest bound when little is found,
    since the least-read stratum sets it. "mixed": half of each, that bound at most twice as high. With too few notes
    for all strata, only the cuts at the highest risks are made.

    >>> drawn = sample({"a": 90, "b": 80, "c": 70}, {"a": 0.1, "b": 0.0, "c": 2.0}, 2, seed=1, strata=1)
    >>> drawn.notes, len(drawn.ids)
    (3, 2)
    """
    ids = _check_and_sort_ids(documents, risks, n, least, seed)
    check_choice(allocation, "allocation", get_args(Allocation))
    values = np.array([risks[name] for name in ids])
    quantiles = _quantiles(strata)
    groups = _cut_strata(values, quantiles[max(0, len(quantiles) - max(n // least - 1, 0)) :])
    sizes = np.array([len(group) for group in groups])
    neyman_weight = {"mixed": 0.5, "neyman": 1.0, "proportional": 0.0}[allocation]
    shares = neyman_weight * _neyman_shares(values, groups) + (1 - neyman_weight) * sizes / sizes.sum()
    counts = _apportion(n, sizes, shares, least)
    parts = []
    for number, (group, count) in enumerate(zip(groups, counts, strict=True)):
        order = np.random.default_rng([seed, number]).permutation(len(group))[:count]
        drawn = tuple(ids[index] for index in group[order])
        low, high, total = values[group].min(), values[group].max(), values[group].sum()
        tokens = sum(documents[ids[index]] for index in group)
        parts.append(Stratum(len(group), tokens, float(low), float(high), float(total), drawn))
    return Sample(tuple(parts), seed, allocation)


def _check_and_sort_ids(
    documents: Mapping[str, int], risks: Mapping[str, float], n: int, least: int, seed: int
) -> list[str]:
    """Return the sorted ids; raise ConfigError or DataError unless n, least, seed and risks are valid."""
    if not 1 <= n <= len(documents):
        raise ConfigError(f"n must be from 1 to the {len(documents)} notes of the corpus, got {n}")
    if least < 1 or seed < 0:
        raise ConfigError(f"least must be at least 1 and seed at least 0, got {least} and {seed}")
    if documents.keys() != risks.keys():
        missing = len(documents.keys() - risks.keys())
        extra = len(risks.keys() - documents.keys())
        raise DataError(f"{missing} notes have no risk and {extra} risks have no note; give one for each note")
    if any(not (np.isfinite(value) and value >= 0) for value in risks.values()):
        raise DataError("a risk must be a number of expected leaks, at least 0")
    if any(tokens < 0 for tokens in documents.values()):
        raise DataError("a note cannot have fewer than 0 tokens")
    return sorted(documents)


def _quantiles(strata: Sequence[float] | int) -> list[float]:
    """Return quantiles to cut at: those given, or of `strata` equal parts; ConfigError unless they rise in (0, 1)."""
    if isinstance(strata, int):
        if strata < 1:
            raise ConfigError(f"strata must be at least 1, got {strata}")
        return [part / strata for part in range(1, strata)]
    cuts = [float(cut) for cut in strata]
    if any(not 0 < cut < 1 for cut in cuts) or any(a >= b for a, b in pairwise(cuts)):
        raise ConfigError(f"strata must be rising quantiles between 0 and 1, got {cuts}")
    return cuts


def _cut_strata(values: Floats, quantiles: Sequence[float]) -> list[Ints]:
    """Return the indices of each stratum, lowest risk first; equal risks stay together, empty strata are omitted."""
    edges = np.quantile(values, quantiles, method="inverted_cdf") if quantiles else np.zeros(0)
    stratum = np.searchsorted(np.unique(edges), values, side="left")
    return [np.flatnonzero(stratum == number) for number in np.unique(stratum)]


def _neyman_shares(values: Floats, groups: Sequence[Ints]) -> Floats:
    """Return each stratum's share of the sample: size times the standard deviation of leaking, by the risks."""
    leaking = np.array([np.mean(-np.expm1(-values[group])) for group in groups])
    weights = np.array([len(group) for group in groups]) * np.sqrt(leaking * (1 - leaking))
    if weights.sum() == 0:
        weights = np.array([len(group) for group in groups], np.float64)
    return np.asarray(weights / weights.sum(), np.float64)


def _apportion(n: int, sizes: Ints, shares: Floats, least: int) -> Ints:
    """Return how many of n notes each stratum gets by `shares`: at least `least`, if n allows, at most its size."""
    if len(sizes) == 1:
        return np.array([n])
    floor = np.minimum(sizes, min(least, n // len(sizes)))
    shares = np.maximum(shares, 1e-9 * sizes / sizes.sum())
    low, high = 0.0, n / float(shares.min())
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if np.clip(middle * shares, floor, sizes).sum() <= n else (low, middle)
    ideal = np.clip(low * shares, floor, sizes)
    counts = np.floor(ideal + 1e-6).astype(np.int64)
    for h in np.argsort(counts - ideal, kind="stable"):  # the largest fractions are rounded up
        if counts.sum() < n and counts[h] < sizes[h]:
            counts[h] += 1
    return counts
