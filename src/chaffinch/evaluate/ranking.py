"""Quality of span scores: precision-recall curve, average precision, calibration.

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
class ScoredSpans:
    """The score of every predicted span, whether it is right, and the number of gold spans."""

    scores: Floats  # (N,)
    right: Ints  # (N,) 0 or 1
    gold: int

    @property
    def varies(self) -> bool:
        """Tell whether any two scores differ, so that a ranking makes sense."""
        return len(self.scores) > 0 and bool(self.scores.min() < self.scores.max())


def collect_scores(pairs: Iterable[Pair]) -> ScoredSpans:
    """Return the scores of all predicted spans, whether each is in gold with its label, and the number of gold."""
    scores, right, gold = [], [], 0
    for pair in pairs:
        gold_spans = set(pair.gold)
        gold += len(gold_spans)
        scores += [span.score for span in pair.predicted]
        right += [int(span in gold_spans) for span in pair.predicted]
    return ScoredSpans(np.array(scores, np.float64), np.array(right, np.int64), gold)


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """Precision and recall when spans below a threshold are dropped, from the highest threshold to the lowest.

    `average_precision` is the sum of precision times gain in recall; gold spans without a prediction count
    in the recall, so it ends below 1 when some are missed.
    """

    thresholds: Floats  # (N',) distinct scores, falling
    precision: Floats  # (N',)
    recall: Floats  # (N',)
    average_precision: float


def curve(spans: ScoredSpans) -> Curve:
    """Return precision and recall at each distinct score as threshold, highest first, and average precision.

    >>> curve(ScoredSpans(np.array([0.9, 0.8, 0.7]), np.array([1, 0, 1]), 2)).average_precision.__round__(4)
    0.8333
    """
    order = np.argsort(-spans.scores, kind="stable")
    scores, hits = spans.scores[order], np.cumsum(spans.right[order])
    last = np.flatnonzero(np.append(scores[1:] != scores[:-1], True)) if len(scores) else np.zeros(0, np.int64)
    precision, recall = ratio(hits[last], last + 1), ratio(hits[last], np.full(len(last), spans.gold))
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


def calibration(scored: ScoredSpans, *, bins: int = 10) -> Reliability:
    """Return mean score and share right by bin, calibration error, Brier score; DataError if not 0–1, or ConfigError.

    >>> calibration(ScoredSpans(np.array([0.8, 0.8, 0.8, 0.8]), np.array([1, 1, 1, 0]), 4)).error.__round__(3)
    0.05
    """
    if bins < 1:
        raise ConfigError(f"bins must be at least 1, got {bins}")
    outside = int(np.count_nonzero(~((scored.scores >= 0) & (scored.scores <= 1))))
    if outside:
        raise DataError(f"{outside} of {len(scored.scores)} scores lie outside 0 to 1; calibration needs probabilities")
    bin_index = np.minimum((scored.scores * bins).astype(np.int64), bins - 1)
    counts = np.bincount(bin_index, minlength=bins)
    filled = counts > 0
    confidence = ratio(np.bincount(bin_index, scored.scores, bins), counts)[filled]
    accuracy = ratio(np.bincount(bin_index, scored.right, bins), counts)[filled]
    total = max(len(scored.scores), 1)
    error = float(np.abs(confidence - accuracy) @ counts[filled] / total)
    brier = float(((scored.scores - scored.right) ** 2).sum() / total)
    return Reliability(counts[filled], confidence, accuracy, error, brier)
