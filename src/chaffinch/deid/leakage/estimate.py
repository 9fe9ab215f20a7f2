"""Estimate how much could still leak, from a reviewed sample, with upper bounds that hold for its design.

The bounds are those of `bounds`: one-sided, for the finite corpus, over the strata of the sample. The reader
misses leaks too. With recall r, a leaking note that is read is found with probability at least r, and that enters
the test itself. Where r was measured (k of m planted identifiers found), its exact lower limit is used; a fifth of the
permitted error is spent on that limit, the rest on the sample, so that both together keep the confidence. Each bound
holds by itself: of twenty categories, one bound in twenty may be too low.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any

from chaffinch.deid.leakage.bounds import Stratum, leaks_upper, notes_upper
from chaffinch.deid.leakage.sample import Sample
from chaffinch.errors import ConfigError, DataError

_READER_SHARE = 0.2  # of the permitted error, spent on the recall's limit where the recall was measured


@dataclass(frozen=True, slots=True)
class Reader:
    """The reader's recall: the share of leaks found, and the number of planted identifiers it was measured on.

    Without `planted` the recall is assumed to be exact, and the sentence of the estimate says so.
    """

    recall: float = 0.9
    planted: int | None = None

    def __post_init__(self) -> None:
        """Raise ConfigError unless the recall is above 0, at most 1, and means at least one planted identifier."""
        if not 0 < self.recall <= 1:
            raise ConfigError(f"the reader's recall must be above 0 and at most 1, got {self.recall}")
        if self.planted is not None and self.recall * self.planted < 0.5:
            raise ConfigError(
                f"a recall of {self.recall} of {self.planted} planted identifiers means that none was found; "
                "give a recall of at least one of them"
            )

    def least_recall(self, alpha: float) -> float:
        """Return the lower confidence limit of the recall, wrong with chance `alpha`; the recall if not measured."""
        if self.planted is None:
            return self.recall
        from scipy.stats import beta

        found = round(self.recall * self.planted)
        return float(beta.ppf(alpha, found, self.planted - found + 1))


@dataclass(frozen=True, slots=True)
class Reviewed:
    """One note as reviewed: the identifiers still in it, by category where given, and the tokens read."""

    id: str
    leaks: int
    tokens: int | None = None
    categories: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Figure:
    """A point estimate, and the upper bound that holds with the confidence of the estimate."""

    estimate: float
    upper: float


@dataclass(frozen=True, slots=True)
class Leaks:
    """Leaks of one category or of all: the number found, and figures for the corpus."""

    found: int
    leaking_found: int
    notes: Figure
    share: Figure
    per_note: Figure
    per_1000: Figure


@dataclass(frozen=True, slots=True)
class LeakEstimate:
    """An estimate of what still leaks in a corpus; the bounds on leaks assume at most `most_per_note` in a note."""

    notes: int
    tokens: int
    read: int
    tokens_read: int | None
    confidence: float
    reader: Reader
    most_per_note: int
    total: Leaks
    categories: Mapping[str, Leaks]
    strata: tuple[Stratum, ...]

    def sentence(self) -> str:
        """Return the upper bound on leaking notes, the notes read and leaks found, in one sentence."""
        upper = int(self.total.notes.upper)
        percent = math.ceil(1e4 * self.total.share.upper - 1e-6) / 100  # a bound is never rounded down
        leaks = "1 leak" if self.total.found == 1 else f"{self.total.found or 'no'} leaks"
        reader = f"a reader is taken to find {self.reader.recall:.0%} of what is left".replace("%", " %")
        if self.reader.planted is not None:
            reader = f"the reader's recall is {self.reader.recall:.0%}".replace("%", " %")
            reader += f" of {self.reader.planted:,} planted identifiers"
        still = "still contains" if upper == 1 else "still contain"
        were = "was" if self.read == 1 else "were"
        return (
            f"Of {self.notes:,} notes, with {100 * self.confidence:g} % confidence at most {upper:,} "
            f"({percent:.2f} %) {still} an identifier; {self.read:,} {were} read, {leaks} found"
            + ("." if self.reader == Reader(1.0) else f"; {reader}.")
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the estimate as plain JSON values."""
        strata = [part._asdict() for part in self.strata]
        return {**asdict(self), "strata": strata, "sentence": self.sentence()}

    def rows(self) -> list[dict[str, Any]]:
        """Return a table row of figures for each category, then one for all."""
        return [_row(name, leaks) for name, leaks in (*self.categories.items(), ("all", self.total))]

    def __str__(self) -> str:
        """Return the sentence for the data steward."""
        return self.sentence()


def estimate(
    sample: Sample,
    reviewed: Iterable[Reviewed],
    *,
    reader: Reader | None = None,
    confidence: float = 0.95,
    most_per_note: int = 10,
) -> LeakEstimate:
    """Estimate leaking notes and leaks with upper bounds, in all and by category; DataError unless all were read.

    Every note of the sample must have been read. `most_per_note` is the greatest number of leaks in one note, to be
    chosen before reading; bounds on leaks (not on notes) grow with it, because no sample can rule out one full note.
    """
    reader = Reader() if reader is None else reader
    if not 0 < confidence < 1:
        raise ConfigError(f"confidence must be between 0 and 1, got {confidence}")
    if most_per_note < 1:
        raise ConfigError(f"most_per_note must be at least 1, got {most_per_note}")
    rows = _rows_by_id(sample, reviewed)
    largest = max(row.leaks for row in rows.values())
    if largest > most_per_note:
        raise ConfigError(
            f"a note has {largest} leaks but most_per_note is {most_per_note}; choose one that no note exceeds"
        )
    names = sorted({name for row in rows.values() for name in row.categories})
    test = _Test(sample, reader, confidence, most_per_note)
    read = [[rows[name] for name in part.drawn] for part in sample.strata]
    total = test.leaks([[row.leaks for row in part] for part in read])
    by = {name: test.leaks([[row.categories.get(name, 0) for row in part] for part in read]) for name in names}
    token_counts = [row.tokens for row in rows.values() if row.tokens is not None]
    strata = tuple(
        Stratum(part.size, len(part.drawn), sum(row.leaks > 0 for row in rows_of))
        for part, rows_of in zip(sample.strata, read, strict=True)
    )
    tokens_read = sum(token_counts) if len(token_counts) == len(rows) else None
    facts = (sample.notes, sample.tokens, len(rows), tokens_read, confidence, reader, most_per_note)
    return LeakEstimate(*facts, total, by, strata)


@dataclass(frozen=True, slots=True)
class _Test:
    """The sample and settings that all figures of one estimate share."""

    sample: Sample
    reader: Reader
    confidence: float
    most: int

    def leaks(self, counts: Sequence[Sequence[int]]) -> Leaks:
        """Return estimates and upper bounds of leaking notes and leaks, from leaks per note read, by stratum."""
        alpha = 1 - self.confidence
        measured = self.reader.planted is not None
        recall = self.reader.least_recall(alpha * _READER_SHARE)
        alpha = alpha * (1 - _READER_SHARE) if measured else alpha
        sizes = [part.size for part in self.sample.strata]
        leaking = [sum(count > 0 for count in part) for part in counts]
        sums = [sum(part) for part in counts]
        read = [len(part) for part in counts]
        notes, leaks = _upper_bounds(
            tuple(map(Stratum, sizes, read, leaking)), tuple(map(Stratum, sizes, read, sums)), self.most, recall, alpha
        )
        note_guess = min(_extrapolate(sizes, read, leaking) / self.reader.recall, self.sample.notes)
        guess = _extrapolate(sizes, read, sums) / self.reader.recall
        N, thousands = self.sample.notes, max(self.sample.tokens, 1) / 1000
        return Leaks(
            sum(sums), sum(leaking), Figure(note_guess, notes), Figure(note_guess / N, notes / N),
            Figure(guess / N, leaks / N), Figure(guess / thousands, leaks / thousands),
        )  # fmt: skip


@lru_cache(maxsize=256)
def _upper_bounds(
    notes: tuple[Stratum, ...], leaks: tuple[Stratum, ...], most: int, recall: float, alpha: float
) -> tuple[int, int]:
    """Return the bounds on leaking notes and on leaks; cached, because rare categories often have equal counts."""
    return notes_upper(notes, recall=recall, alpha=alpha), leaks_upper(leaks, most=most, recall=recall, alpha=alpha)


def _extrapolate(sizes: Sequence[int], read: Sequence[int], found: Sequence[int]) -> float:
    """Return the estimated total of the corpus from the sample means of the strata; unread strata count 0."""
    return sum(size * hits / n for size, n, hits in zip(sizes, read, found, strict=True) if n)


def _rows_by_id(sample: Sample, reviewed: Iterable[Reviewed]) -> dict[str, Reviewed]:
    """Return reviewed notes by id; DataError unless they are the sample's, once each, with counts that agree."""
    rows = list(reviewed)
    drawn = set(sample.ids)
    by_category = any(row.categories for row in rows)
    for number, row in enumerate(rows, start=1):
        if row.id not in drawn:
            raise DataError(f"reviewed note {number} is not in the sample; only drawn notes count")
        total = sum(row.categories.values())
        if row.leaks < 0 or min(row.categories.values(), default=0) < 0:
            raise DataError(f"reviewed note {number} has fewer than 0 leaks")
        if (row.categories or by_category) and total != row.leaks:
            raise DataError(f"reviewed note {number} has {row.leaks} leaks, but {total} by category; make them agree")
    repeated = [name for name, times in Counter(row.id for row in rows).items() if times > 1]
    if repeated:
        raise DataError(f"{len(repeated)} notes were reviewed twice; keep one row for each")
    if len(rows) < len(drawn):
        raise DataError(
            f"{len(drawn) - len(rows)} of the {len(drawn)} notes of the sample were not read; read them all: "
            "leaving out some by choice would make the bounds wrong"
        )
    return {row.id: row for row in rows}


def _row(name: str, leaks: Leaks) -> dict[str, Any]:
    """Return a category's figures under the column names of the estimate's table, for printing."""
    return {
        "category": name,
        "found": leaks.found,
        "leaking notes": round(leaks.notes.estimate, 1),
        "at most": int(leaks.notes.upper),
        "% of notes at most": 100 * leaks.share.upper,
        "leaks per note": leaks.per_note.estimate,
        "at most ": leaks.per_note.upper,
        "per 1,000 tokens": leaks.per_1000.estimate,
        "at most  ": leaks.per_1000.upper,
    }
