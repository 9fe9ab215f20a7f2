"""The recall dial: thresholds per type that reach a recall on notes which the models did not learn from.

A token is flagged where rules say so, or where the chance that it is an identifier reaches the threshold of its type.
Chances of a type are calibrated first: their log-odds move by one offset, which says how many identifiers there were
among the type's doubtful tokens against how many were expected. Then one level of calibrated chance serves all types,
which loses least precision for the recall gained. What is missed is rare, so nothing finer than an offset can be learnt
from a few hundred notes: a curve per type follows the notes it was fitted on and falls short of the recall on others.
R rows, L labels, N tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chaffinch.errors import ConfigError, DataError
from chaffinch.kernels.lattice import Floats, Ints

RECALLS = (0.9, 0.95, 0.97, 0.98, 0.985, 0.99, 0.993, 0.995, 0.997, 0.998, 0.999, 1.0)
PLAIN = 0.5  # without a dial
LOWEST = 1e-6  # no threshold is lower; a chance of nought is never flagged
HIGHEST = 0.98  # nor higher: a model that is this sure is heard, whatever a few held-out notes say
WEIGHT = 2.0**2  # of the identifiers there are against the words flagged, in F: a leak is worse than a word too many
UNLIKELY = 0.2  # nothing less likely is flagged in the balanced setting, however weak the model
_DOUBTFUL = 0.5  # tokens below this chance are counted for the offset of their type
_PRIOR = 3.0  # identifiers added to those found and to those expected: a type with few of them keeps its chances
_EDGE = 1e-12  # of log-odds

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class DialSample:
    """The tokens of notes: how likely each is an identifier, of which type, what rules flag, and what is right."""

    chances: Floats  # (N,)
    types: Ints  # (N,) into labels
    ruled: Flags  # (N,) flagged by rules
    gold: Flags  # (N,)

    @classmethod
    def join(cls, parts: Iterable[DialSample]) -> DialSample:
        """The tokens of several."""
        own = list(parts)
        if not own:
            raise DataError("there are no notes to set the dial on; give notes with a gold layer")
        return cls(
            *(np.concatenate([getattr(part, name) for part in own]) for name in ("chances", "types", "ruled", "gold"))
        )


@dataclass(frozen=True, slots=True, eq=False)
class Dial:
    """Thresholds by recall and label. `reached` is the recall of each row on the notes it was fitted on."""

    labels: tuple[str, ...] = ()
    recalls: tuple[float, ...] = ()
    reached: tuple[float, ...] = ()
    thresholds: Floats = field(default_factory=lambda: np.zeros((0, 0)))  # (R, L)
    levels: tuple[float, ...] = ()  # (R,) for labels the dial does not know
    balanced: tuple[float, ...] = ()  # (L,) the best F, in which recall counts more than precision

    def at(self, recall: float | None) -> Mapping[str, float]:
        """The threshold of every label for a recall; of the balanced setting without one. "" is for other labels.

        >>> Dial().at(None)
        {'': 0.5}
        """
        if recall is None:
            return dict(zip(self.labels, self.balanced, strict=True)) | {"": PLAIN}
        row = self._row(recall)
        return dict(zip(self.labels, self.thresholds[row].tolist(), strict=True)) | {"": self.levels[row]}

    def reaches(self, recall: float) -> float:
        """The recall that the setting for a recall had on the notes of the dial; it may be less than asked for."""
        return self.reached[self._row(recall)]

    def _row(self, recall: float) -> int:
        if not 0.0 < recall <= 1.0:
            raise ConfigError(f"recall must be above 0 and at most 1, got {recall}")
        if not self.recalls:
            raise ConfigError("this model has no dial; set it on reviewed notes, or leave out recall")
        return min(int(np.searchsorted(self.recalls, recall - 1e-12)), len(self.recalls) - 1)

    def told(self) -> dict[str, Any]:
        """Everything, for a manifest."""
        return {
            "labels": self.labels,
            "recalls": self.recalls,
            "reached": self.reached,
            "levels": self.levels,
            "thresholds": self.thresholds.tolist(),
            "balanced": self.balanced,
        }

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Dial:
        """The dial of a manifest."""
        table = np.array(told["thresholds"], np.float64).reshape(len(told["recalls"]), len(told["labels"]))
        labels, recalls, reached = (tuple(told[name]) for name in ("labels", "recalls", "reached"))
        return cls(labels, recalls, reached, table, tuple(told["levels"]), tuple(told["balanced"]))


def fit(read: DialSample, labels: Sequence[str], *, recalls: Sequence[float] = RECALLS, lowest: float = 0.0) -> Dial:
    """The dial of notes the models did not learn from.

    No level of calibrated chance is below `lowest`: a recall that would ask for less is not reached, and `reached` says
    what is. Where a few identifiers look like anything but one, going after them flags every other word.
    """
    if not read.gold.any():
        raise DataError("the notes hold no identifier, so no recall can be measured; give notes with a gold layer")
    offsets = _offsets(read, len(labels))
    worth = _moved(read.chances, offsets[read.types]) if len(offsets) else read.chances  # calibrated
    free = ~read.ruled & (read.chances > 0)
    total, base = int(read.gold.sum()), int((read.gold & read.ruled).sum())
    order = np.argsort(-worth[free], kind="stable")
    levels, hits = worth[free][order], base + np.cumsum(read.gold[free][order])
    ends = np.append(np.flatnonzero(np.diff(levels)), len(levels) - 1) if len(levels) else np.zeros(0, np.int64)
    rows, reached = [], []
    for recall in recalls:
        level, share = _level(levels, hits, ends, recall * total - 1e-9, base)
        if level < lowest:
            level, share = lowest, base + int(read.gold[free][worth[free] >= lowest].sum())
        rows.append(level)
        reached.append(share / total)
    table = np.array([_thresholds(level, offsets) for level in rows]).reshape(len(rows), len(labels))
    flagged = int(read.ruled.sum()) + 1 + ends
    best = _between(levels, ends[np.argmax(hits[ends] / (flagged + WEIGHT * total))]) if len(ends) else PLAIN
    best = max(best, UNLIKELY)
    return Dial(tuple(labels), tuple(recalls), tuple(reached), table, tuple(rows), tuple(_thresholds(best, offsets)))


def _level(levels: Floats, hits: Ints, ends: Ints, wanted: float, base: int) -> tuple[float, float]:
    """The highest level at which enough identifiers are flagged, and how many are; the lowest if none is enough."""
    if base >= wanted or not len(ends):
        return 1.0, base
    enough = ends[hits[ends] >= wanted]
    end = int(enough[0]) if len(enough) else int(ends[-1])
    return _between(levels, end), float(hits[end])


def _between(levels: Floats, end: int) -> float:
    """The level halfway, in log-odds, to the next that is lower: where there is a gap, neither side is at its edge."""
    pair = np.clip(levels[end : end + 2], _EDGE, 1.0 - _EDGE)
    return float(1.0 / (1.0 + np.exp(np.log(1.0 / pair - 1.0).mean())))


def _offsets(read: DialSample, count: int) -> Floats:
    """(L,) by how much the log-odds of each type's chances are too low."""
    doubtful = ~read.ruled & (read.chances < _DOUBTFUL)
    types = read.types[doubtful]
    found = np.bincount(types, weights=read.gold[doubtful], minlength=count)
    expected = np.bincount(types, weights=read.chances[doubtful], minlength=count)
    return np.asarray(np.log((found + _PRIOR) / (expected + _PRIOR))[:count])


def _moved(chances: Floats, offsets: Floats) -> Floats:
    """The chances whose log-odds are higher by the offsets."""
    held = np.clip(chances, _EDGE, 1.0 - _EDGE)
    odds = held / (1.0 - held) * np.exp(offsets)
    return np.asarray(odds / (1.0 + odds))


def _thresholds(level: float, offsets: Floats) -> list[float]:
    """The chance of each type that is worth the level."""
    # The same tokens must be flagged as were counted, so what rounding may add on the way back is given away.
    return [float(own) for own in np.clip(_moved(np.full(len(offsets), level), -offsets) - 1e-9, LOWEST, HIGHEST)]
