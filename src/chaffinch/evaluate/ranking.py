"""Does a higher score mean a better span? Precision-recall curve, average precision, calibration.

N predicted spans, B bins. A span is right as in the strict scheme.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from chaffinch.errors import ConfigError, DataError
from chaffinch.evaluate.counts import Floats, Ints, ratio
from chaffinch.evaluate.pairing import Pair


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """The score of every predicted span, whether it is right, and the number of gold spans."""

    scores: Floats  # (N,)
    right: Ints  # (N,) 0 or 1
    gold: int

    @property
    def varies(self) -> bool:
        """Whether scores differ at all; without that there is nothing to rank."""
        return len(self.scores) > 0 and bool(self.scores.min() < self.scores.max())


def ranked(pairs: Iterable[Pair]) -> Ranked:
    """The scores of all predicted spans and whether they are right."""
    scores, right, gold = [], [], 0
    for one in pairs:
        wanted = set(one.gold)
        gold += len(wanted)
        scores += [span.score for span in one.predicted]
        right += [int(span in wanted) for span in one.predicted]
    return Ranked(np.array(scores, np.float64), np.array(right, np.int64), gold)


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """Precision and recall when spans below a threshold are dropped, from the highest threshold to the lowest.

    `average_precision` is the sum of precision times gain in recall; gold spans that nobody predicted are in the
    recall, so it ends below 1 when some are missed.
    """

    thresholds: Floats  # (N',) distinct scores, falling
    precision: Floats  # (N',)
    recall: Floats  # (N',)
    average_precision: float


def curve(found: Ranked) -> Curve:
    """The precision-recall curve of scored spans.

    >>> curve(Ranked(np.array([0.9, 0.8, 0.7]), np.array([1, 0, 1]), 2)).average_precision.__round__(4)
    0.8333
    """
    order = np.argsort(-found.scores, kind="stable")
    scores, hits = found.scores[order], np.cumsum(found.right[order])
    last = np.flatnonzero(np.append(scores[1:] != scores[:-1], True)) if len(scores) else np.zeros(0, np.int64)
    precision, recall = ratio(hits[last], last + 1), ratio(hits[last], np.full(len(last), found.gold))
    gain = np.diff(recall, prepend=0.0)
    return Curve(scores[last], precision, recall, float(precision @ gain))


@dataclass(frozen=True, slots=True, eq=False)
class Reliability:
    """Mean score and share of right spans, by bins of equal width from 0 to 1; empty bins are left out.

    `error` is the expected calibration error: the mean gap between the two, weighted by the spans in a bin.
    `brier` is the mean squared gap between a span's score and 1 if it is right, 0 if not.
    """

    spans: Ints  # (B',)
    confidence: Floats  # (B',)
    accuracy: Floats  # (B',)
    error: float
    brier: float


def calibration(found: Ranked, *, bins: int = 10) -> Reliability:
    """How far scores can be read as probabilities.

    >>> calibration(Ranked(np.array([0.8, 0.8, 0.8, 0.8]), np.array([1, 1, 1, 0]), 4)).error.__round__(3)
    0.05
    """
    if bins < 1:
        raise ConfigError(f"bins must be at least 1, got {bins}")
    outside = int(np.count_nonzero(~((found.scores >= 0) & (found.scores <= 1))))
    if outside:
        raise DataError(f"{outside} of {len(found.scores)} scores lie outside 0 to 1; calibration needs probabilities")
    place = np.minimum((found.scores * bins).astype(np.int64), bins - 1)
    spans = np.bincount(place, minlength=bins)
    held = spans > 0
    confidence = ratio(np.bincount(place, found.scores, bins), spans)[held]
    accuracy = ratio(np.bincount(place, found.right, bins), spans)[held]
    total = max(len(found.scores), 1)
    error = float(np.abs(confidence - accuracy) @ spans[held] / total)
    brier = float(((found.scores - found.right) ** 2).sum() / total)
    return Reliability(spans[held], confidence, accuracy, error, brier)
