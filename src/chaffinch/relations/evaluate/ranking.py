"""Ranking quality of scores: area under the ROC curve, best F1, precision at a recall, and thresholds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from chaffinch.errors import ConfigError
from chaffinch.evaluate.ranking import Curve, ScoredSpans, curve
from chaffinch.kernels.lattice import Bools, Floats


class Quality(NamedTuple):
    """Ranking quality of scored candidates.

    `auc` is the probability that a right candidate scores above a wrong one, `f1` the best over all thresholds,
    `precision_at` the precision at the recall that was asked for.
    """

    auc: float
    f1: float
    precision_at: float
    average_precision: float


def auc(scores: Floats, right: Bools) -> float:
    """Return the probability that a right candidate scores above a wrong one; ties count half, one class gives 0.5.

    >>> auc(np.array([0.9, 0.8, 0.8, 0.1]), np.array([True, True, False, False]))
    0.875
    """
    positive = int(right.sum())
    negative = len(right) - positive
    if not positive or not negative:
        return 0.5
    _, place, count = np.unique(scores, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2)[place]
    return float((rank[right].sum() - positive * (positive + 1) / 2) / (positive * negative))


def quality(scores: Floats, right: Bools, *, recall: float = 0.1) -> Quality:
    """Return AUC, best F1, precision at `recall`, average precision of scores; `right` marks true candidates."""
    pr_curve = points(scores, right)
    best = float(harmonic(pr_curve).max(initial=0.0))
    return Quality(auc(scores, right), best, precision_at(pr_curve, recall), pr_curve.average_precision)


def points(scores: Floats, right: Bools, gold: int | None = None) -> Curve:
    """Return the precision-recall curve of scores; `gold` is the number to find, by default all that are right."""
    total = int(right.sum()) if gold is None else gold
    return curve(ScoredSpans(np.asarray(scores, np.float64), right.astype(np.int64), total))


def harmonic(pr_curve: Curve) -> Floats:
    """Return F1 at each point of a curve; 0 where precision and recall are 0."""
    total = pr_curve.precision + pr_curve.recall
    return np.divide(2 * pr_curve.precision * pr_curve.recall, total, out=np.zeros_like(total), where=total > 0)


def precision_at(pr_curve: Curve, recall: float) -> float:
    """Return the precision where a curve first reaches a recall; 0 if it never does."""
    reached = np.flatnonzero(pr_curve.recall >= recall - 1e-12)
    return float(pr_curve.precision[reached[0]]) if len(reached) else 0.0


def best_threshold(scores: Floats, right: Bools, gold: int | None = None) -> float:
    """Return the threshold of largest F1, halfway to the next lower score (or 0); 0.5 if no candidate is right."""
    pr_curve = points(scores, right, gold)
    f1 = harmonic(pr_curve)
    if not len(f1) or f1.max() == 0:
        return 0.5
    best = int(f1.argmax())
    below = pr_curve.thresholds[best + 1] if best + 1 < len(pr_curve.thresholds) else 0.0
    return float((pr_curve.thresholds[best] + below) / 2)


def threshold_for(scores: Floats, right: Bools, precision: float) -> float:
    """Return the lowest threshold with at least this precision; ConfigError if none has it, or if not in (0, 1].

    Raise ConfigError if no threshold reaches it; the message names the best precision.
    """
    if not 0 < precision <= 1:
        raise ConfigError(f"precision must lie between 0 and 1, got {precision}")
    pr_curve = points(scores, right)
    reached = np.flatnonzero(pr_curve.precision >= precision)
    if not len(reached):
        top = float(pr_curve.precision.max(initial=0.0))
        raise ConfigError(f"no threshold gives precision {precision:g} in cross-validation; the best is {top:.2f}")
    return float(pr_curve.thresholds[reached[-1]])
