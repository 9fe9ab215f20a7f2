"""The recall dial: thresholds per type that reach a recall on notes which the models did not learn from.

A token is flagged if a rule flags it, or if the chance that it is an identifier reaches the threshold of its type. The
chances of a type are calibrated first: their log-odds move by one offset, the log ratio of identifiers found to
identifiers expected among the doubtful tokens of the type. Then all types share one level of calibrated chance, which
loses least precision for the recall gained. Misses are rare, so nothing finer than an offset can be learnt from a few
hundred notes: a curve per type follows the notes it was fitted on and falls short of the recall on others.

Two figures go with every row. *Expected* is the recall on groups of notes (writers, or else documents) that the row was
not fitted on, by cross-fitting. *Promised* is a lower bound for the notes of ten unseen groups, with 90 % confidence:
exact binomial (Clopper and Pearson), with as many words as the spread between groups leaves (Korn and Graubard 1998).
R rows, L labels, N tokens, G groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chaffinch.errors import ConfigError, DataError
from chaffinch.kernels.lattice import Floats, Ints

# The recalls that have a row of thresholds; a recall in between uses the next higher row.
RECALLS = (0.9, 0.95, 0.97, 0.98, 0.985, 0.99, 0.993, 0.995, 0.997, 0.998, 0.999, 1.0)
PLAIN = 0.5  # the threshold without a dial: more likely an identifier than not
LOWEST = 1e-6  # no threshold is lower, so a chance of 0 is never flagged
HIGHEST = 0.98  # no threshold is higher: a few held-out notes cannot overrule a model that is this sure
WEIGHT = 2.0  # beta squared of the balanced F: recall counts more, because a leak is worse than a lost word
UNLIKELY = 0.2  # the lowest level of calibrated chance in the balanced setting, however weak the model
_DOUBTFUL = 0.5  # tokens below this chance count for the offset of their type
_PRIOR = 3.0  # added to the identifiers found and expected, so that the offset of a rare type stays near 0
_ROUNDING = 1e-9  # thresholds are lowered by more than rounding can add, so that what was counted is flagged
_EDGE = 1e-12  # chances are clipped to [_EDGE, 1 - _EDGE], which keeps log-odds finite

CONFIDENCE = 0.9  # of promised recalls
UNSEEN = 10  # groups of notes that a promise is about; about fewer, single notes decide
FOLDS = 30  # the most parts that groups are dealt into for cross-fitting

Flags = NDArray[np.bool_]


class Outlook(NamedTuple):
    """What a setting of the dial does on notes it was not fitted on; None where that was not measured."""

    expected: float | None  # recall, cross-fitted by group
    promised: float | None  # recall, lower bound with 90 % confidence
    limit: float | None  # the most that so many notes could promise, if nothing in them were missed


@dataclass(frozen=True, slots=True, eq=False)
class DialSample:
    """Tokens of notes: the chance that each is an identifier, its likeliest type, and flags of rules and gold."""

    chances: Floats  # (N,)
    types: Ints  # (N,) into labels
    ruled: Flags  # (N,) flagged by rules
    gold: Flags  # (N,) identifiers in truth

    @classmethod
    def join(cls, parts: Iterable[DialSample]) -> DialSample:
        """Concatenate the tokens of several samples; raise DataError if there are none."""
        samples = list(parts)
        if not samples:
            raise DataError("there are no notes to set the dial on; give notes with a gold layer")
        return cls(
            *(
                np.concatenate([getattr(sample, name) for sample in samples])
                for name in ("chances", "types", "ruled", "gold")
            )
        )


@dataclass(frozen=True, slots=True, eq=False)
class Dial:
    """Thresholds by recall and label. `reached` is the recall of each row on the notes it was fitted on."""

    labels: tuple[str, ...] = ()
    recalls: tuple[float, ...] = ()
    reached: tuple[float, ...] = ()
    thresholds: Floats = field(default_factory=lambda: np.zeros((0, 0)))  # (R, L)
    levels: tuple[float, ...] = ()  # (R,) for labels the dial does not know
    balanced: tuple[float, ...] = ()  # (L,) thresholds of the best F, in which recall counts more than precision
    expected: tuple[float, ...] = ()  # (1 + R,) the balanced setting first; none if not measured
    promised: tuple[float, ...] = ()  # (1 + R,)
    notes: int = 0  # on which it was fitted
    groups: int = 0  # of these notes

    def at(self, recall: float | None) -> Mapping[str, float]:
        """Return thresholds by label ("": others) for a recall, or for the best F2 if None; ConfigError without a dial.

        >>> Dial().at(None)
        {'': 0.5}
        """
        if recall is None:
            return dict(zip(self.labels, self.balanced, strict=True)) | {"": PLAIN}
        row = self._row(recall)
        return dict(zip(self.labels, self.thresholds[row].tolist(), strict=True)) | {"": self.levels[row]}

    def reaches(self, recall: float) -> float:
        """Return the recall that the row for `recall` reached on the notes of the fit; ConfigError without a dial."""
        return self.reached[self._row(recall)]

    def outlook(self, recall: float | None) -> Outlook:
        """Return expected and promised recall, and the most that could be promised, for a recall or None (balanced)."""
        place = 0 if recall is None else 1 + self._row(recall)
        if not self.expected:
            return Outlook(None, None, None)
        return Outlook(self.expected[place], self.promised[place], (1.0 - CONFIDENCE) ** (1.0 / self.notes))

    def _row(self, recall: float) -> int:
        """Return the row of the lowest fitted recall at or above this one, or the last; ConfigError without a dial."""
        if not 0.0 < recall <= 1.0:
            raise ConfigError(f"recall must be above 0 and at most 1, got {recall}")
        if not self.recalls:
            raise ConfigError("this model has no dial; set it on reviewed notes, or leave out recall")
        return min(int(np.searchsorted(self.recalls, recall - 1e-12)), len(self.recalls) - 1)

    def count_hits(self, sample: DialSample) -> Floats:
        """Return (1 + R,) how many tokens of identifiers are flagged: by the balanced setting, then by each row."""
        gold = sample.gold
        tables = np.concatenate([np.array(self.balanced)[None], self.thresholds])
        flagged = sample.ruled[gold] | (sample.chances[gold] >= tables[:, sample.types[gold]])
        return np.asarray(flagged.sum(axis=1), np.float64)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain values for a manifest; `from_dict` reads them."""
        return {
            "labels": self.labels,
            "recalls": self.recalls,
            "reached": self.reached,
            "levels": self.levels,
            "thresholds": self.thresholds.tolist(),
            "balanced": self.balanced,
            "expected": self.expected,
            "promised": self.promised,
            "notes": self.notes,
            "groups": self.groups,
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Dial:
        """Rebuild a dial from the fields in a manifest."""
        table = np.array(fields["thresholds"], np.float64).reshape(len(fields["recalls"]), len(fields["labels"]))
        labels, recalls, reached = (tuple(fields[name]) for name in ("labels", "recalls", "reached"))
        outlook = (tuple(fields.get("expected", ())), tuple(fields.get("promised", ())))  # older files have none
        sizes = int(fields.get("notes", 0)), int(fields.get("groups", 0))
        levels, balanced = tuple(fields["levels"]), tuple(fields["balanced"])
        return cls(labels, recalls, reached, table, levels, balanced, *outlook, *sizes)


def fit(
    sample: DialSample,
    labels: Sequence[str],
    *,
    recalls: Sequence[float] = RECALLS,
    lowest: float = 0.0,
    weight: float = WEIGHT,
) -> Dial:
    """Fit thresholds per label and recall on held-out tokens; `lowest` bounds them; DataError without identifiers.

    `weight` is beta squared of the F that the balanced setting maximises: how much recall counts in it.
    No level of calibrated chance is below `lowest`: a recall that needs a lower level is not reached, and `reached`
    holds the recall at `lowest`. A few identifiers look nothing like one; to reach them, every other word is flagged.
    """
    if not sample.gold.any():
        raise DataError("the notes hold no identifier, so no recall can be measured; give notes with a gold layer")
    offsets = _offsets(sample, len(labels))
    worth = _shift_log_odds(sample.chances, offsets[sample.types]) if len(offsets) else sample.chances  # calibrated
    free = ~sample.ruled & (sample.chances > 0)
    total, base = int(sample.gold.sum()), int((sample.gold & sample.ruled).sum())
    order = np.argsort(-worth[free], kind="stable")
    levels, hits = worth[free][order], base + np.cumsum(sample.gold[free][order])
    ends = np.append(np.flatnonzero(np.diff(levels)), len(levels) - 1) if len(levels) else np.zeros(0, np.int64)
    flagged = int(sample.ruled.sum()) + 1 + ends
    best = _between(levels, ends[np.argmax(hits[ends] / (flagged + weight * total))]) if len(ends) else PLAIN
    best = max(best, UNLIKELY)
    rows, reached = [], []
    for recall in recalls:
        # No row flags less than the balanced setting does, nor more than `lowest` allows.
        level = max(min(_level(levels, hits, ends, recall * total - 1e-9, base), best), lowest)
        rows.append(level)
        reached.append((base + int(sample.gold[free][worth[free] >= level - _ROUNDING].sum())) / total)
    table = np.array([_thresholds(level, offsets) for level in rows]).reshape(len(rows), len(labels))
    return Dial(tuple(labels), tuple(recalls), tuple(reached), table, tuple(rows), tuple(_thresholds(best, offsets)))


def fit_by_group(
    samples: Sequence[DialSample],
    groups: Sequence[str],
    labels: Sequence[str],
    *,
    lowest: float = 0.0,
    weight: float = WEIGHT,
) -> Dial:
    """Fit a dial on documents, each a sample of a group, and measure what to expect of it on other groups."""
    whole = fit(DialSample.join(samples), labels, lowest=lowest, weight=weight)
    whole = replace(whole, notes=len(samples), groups=len(set(groups)))
    names = sorted({group for sample, group in zip(samples, groups, strict=True) if sample.gold.any()})
    if len(names) < 2:
        return whole
    fold = {name: number % FOLDS for number, name in enumerate(names)}
    number = {name: place for place, name in enumerate(names)}
    hits, gold = np.zeros((len(names), 1 + len(whole.recalls))), np.zeros(len(names))
    for left in sorted(set(fold.values())):
        others = [sample for sample, group in zip(samples, groups, strict=True) if fold.get(group) != left]
        dial = fit(DialSample.join(others), labels, lowest=lowest, weight=weight)
        for sample, group in zip(samples, groups, strict=True):
            if fold.get(group) == left:
                hits[number[group]] += dial.count_hits(sample)
                gold[number[group]] += sample.gold.sum()
    promised = tuple(_promise(column, gold, len(samples)) for column in hits.T)
    return replace(whole, expected=tuple((hits.sum(axis=0) / gold.sum()).tolist()), promised=promised)


def _promise(hits: Floats, gold: Floats, notes: int) -> float:
    """Return a lower bound of the recall over `UNSEEN` more groups, from hits and identifiers (G,) of measured ones."""
    from scipy.special import betaincinv  # slow to import, and needed for learning alone

    G, total = len(gold), float(gold.sum())
    recall = float(hits.sum()) / total
    wider = 1.0 + G / UNSEEN  # the spread of the mean of measured groups, and of that of unseen ones
    spread = G / (G - 1) * float(((hits - recall * gold) ** 2).sum()) / total**2
    size = min(recall * (1.0 - recall) / spread, total) / wider if spread > 0 else notes / wider
    return float(betaincinv(recall * size, (1.0 - recall) * size + 1.0, 1.0 - CONFIDENCE)) if recall > 0 else 0.0


def _level(levels: Floats, hits: Ints, ends: Ints, wanted: float, base: int) -> float:
    """Return a level just below the highest that flags `wanted` identifiers, or the lowest; 1 if rules flag enough."""
    if base >= wanted or not len(ends):
        return 1.0
    enough = ends[hits[ends] >= wanted]
    return _between(levels, int(enough[0]) if len(enough) else int(ends[-1]))


def _between(levels: Floats, end: int) -> float:
    """Return the chance halfway, in log-odds, between `levels[end]` and the next lower level, so that neither ties."""
    pair = np.clip(levels[end : end + 2], _EDGE, 1.0 - _EDGE)
    return float(1.0 / (1.0 + np.exp(np.log(1.0 / pair - 1.0).mean())))


def _offsets(sample: DialSample, count: int) -> Floats:
    """Return (L,) offsets of each type's log-odds: log(identifiers found / expected) among its doubtful tokens."""
    doubtful = ~sample.ruled & (sample.chances < _DOUBTFUL)
    types = sample.types[doubtful]
    found = np.bincount(types, weights=sample.gold[doubtful], minlength=count)
    expected = np.bincount(types, weights=sample.chances[doubtful], minlength=count)
    return np.asarray(np.log((found + _PRIOR) / (expected + _PRIOR))[:count])


def _shift_log_odds(chances: Floats, offsets: Floats) -> Floats:
    """Return the chances with the offsets added to their log-odds."""
    clipped = np.clip(chances, _EDGE, 1.0 - _EDGE)
    odds = clipped / (1.0 - clipped) * np.exp(offsets)
    return np.asarray(odds / (1.0 + odds))


def _thresholds(level: float, offsets: Floats) -> list[float]:
    """Return for each type the raw chance whose calibrated value is `level`, clipped and just below rounding."""
    chances = _shift_log_odds(np.full(len(offsets), level), -offsets)
    return [float(chance) for chance in np.clip(chances - _ROUNDING, LOWEST, HIGHEST)]
