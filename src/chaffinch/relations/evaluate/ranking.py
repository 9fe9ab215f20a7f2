"""How well scores rank candidates: area under the ROC curve, best F1, precision at a recall, and thresholds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from chaffinch.errors import ConfigError
from chaffinch.evaluate.ranking import Curve, Ranked, curve
from chaffinch.kernels.lattice import Bools, Floats


class Quality(NamedTuple):
    """Of scored candidates: `auc` is the chance that a right one stands above a wrong one; `f1` the best over all
    thresholds; `found` of them is the share of stated tuples that were candidates at all."""

    auc: float
    f1: float
    precision_at: float
    average_precision: float


def auc(scores: Floats, right: Bools) -> float:
    """The chance that a right candidate scores above a wrong one, ties counting half; NaN-free: one class gives 0.5.

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
    """Everything at once; gold that no candidate covers is not counted here."""
    own = points(scores, right)
    best = float(harmonic(own).max(initial=0.0))
    return Quality(auc(scores, right), best, precision_at(own, recall), own.average_precision)


def points(scores: Floats, right: Bools, gold: int | None = None) -> Curve:
    """The precision-recall curve; `gold` is the number to find, by default the right ones among the candidates."""
    total = int(right.sum()) if gold is None else gold
    return curve(Ranked(np.asarray(scores, np.float64), right.astype(np.int64), total))


def harmonic(own: Curve) -> Floats:
    """F1 at each point of a curve."""
    total = own.precision + own.recall
    return np.divide(2 * own.precision * own.recall, total, out=np.zeros_like(total), where=total > 0)


def precision_at(own: Curve, recall: float) -> float:
    """The precision where a curve first reaches a recall; 0 if it never does."""
    reached = np.flatnonzero(own.recall >= recall - 1e-12)
    return float(own.precision[reached[0]]) if len(reached) else 0.0


def best_threshold(scores: Floats, right: Bools, gold: int | None = None) -> float:
    """A threshold of the largest F1, halfway to the next lower score; 0.5 if nothing is right."""
    own = points(scores, right, gold)
    f1 = harmonic(own)
    if not len(f1) or f1.max() == 0:
        return 0.5
    best = int(f1.argmax())
    below = own.thresholds[best + 1] if best + 1 < len(own.thresholds) else 0.0
    return float((own.thresholds[best] + below) / 2)


def threshold_for(scores: Floats, right: Bools, precision: float) -> float:
    """The lowest threshold that keeps at least so much precision, which keeps the most recall.

    ConfigError if no threshold reaches it; the message says what can be reached.
    """
    if not 0 < precision <= 1:
        raise ConfigError(f"precision must lie between 0 and 1, got {precision}")
    own = points(scores, right)
    reached = np.flatnonzero(own.precision >= precision)
    if not len(reached):
        top = float(own.precision.max(initial=0.0))
        raise ConfigError(f"no threshold gives precision {precision:g} in cross-validation; the best is {top:.2f}")
    return float(own.thresholds[reached[-1]])
