"""Logistic regression over sparse features; cross-validation over documents calibrates it and chooses its strength.

N candidates, F features. Newton steps, each solved by conjugate gradients: with rows of length 1 a handful is enough,
where a first-order method takes hundreds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from chaffinch.kernels.lattice import Bools, Floats, Ints

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

ENOUGH = 1e-2  # gradient norm to stop at, relative to that at weights 0; a smaller one changes no ranking
NEWTON, CONJUGATE = 30, 40  # limits of Newton steps, and of conjugate gradient steps within each
DECREASE = 1e-4  # Armijo condition: the least decrease, as a share of what the gradient predicts


class LogisticWeights(NamedTuple):
    """Weights of the regression: the log-odds of a candidate are `x @ values + bias`."""

    values: Floats  # (F,)
    bias: float


class _Loss(NamedTuple):
    """Class-balanced loss: strength times the weighted log-loss, plus half the squared weights."""

    rows: csr_matrix  # (N, F)
    columns: csr_matrix  # (F, N)
    sign: Floats  # (N,) 1 or -1
    cost: Floats  # (N,)

    def value(self, scores: Floats, values: Floats) -> float:
        """Return the loss at given scores and weights."""
        return float(self.cost @ np.logaddexp(0.0, -self.sign * scores) + 0.5 * values @ values)


def fit(
    rows: csr_matrix, right: Bools, *, strength: float, start: LogisticWeights | None = None, tolerance: float = ENOUGH
) -> LogisticWeights:
    """Return the logistic weights of least loss by Newton steps; both classes must occur, and weigh the same.

    Loss: strength · Σ c_i log(1 + exp(-y_i s_i)) + ½ |w|², c_i = N / (2 N_class); the bias is not regularised.
    """
    share = right.mean()
    cost = strength * np.where(right, 0.5 / share, 0.5 / (1.0 - share))
    loss = _Loss(rows, rows.T.tocsr(), np.where(right, 1.0, -1.0), cost)
    values, bias = (np.zeros(rows.shape[1]), 0.0) if start is None else (start.values.copy(), start.bias)
    scores = rows @ values + bias
    reference = None
    for _ in range(NEWTON):
        wrong = _sigmoid(-loss.sign * scores)
        pull = -loss.sign * cost * wrong
        slope = np.append(loss.columns @ pull + values, pull.sum())
        size = float(np.sqrt(slope @ slope))
        reference = _first_slope(loss) if reference is None else reference
        if size <= tolerance * reference:
            break
        step = _newton_step(loss, cost * wrong * (1.0 - wrong), slope, min(0.1, (size / reference) ** 0.5) * size)
        moved = rows @ step[:-1] + step[-1]
        length, promise, now = 1.0, float(slope @ step), loss.value(scores, values)
        while loss.value(scores + length * moved, values + length * step[:-1]) > now + DECREASE * length * promise:
            length /= 2
            if length < 1e-8:
                return LogisticWeights(values, bias)
        values, bias, scores = values + length * step[:-1], bias + length * float(step[-1]), scores + length * moved
    return LogisticWeights(values, bias)


def _first_slope(loss: _Loss) -> float:
    """Return the norm of the loss's gradient where all weights are 0; 1 if it is 0."""
    pull = -0.5 * loss.sign * loss.cost
    return float(np.sqrt(np.sum((loss.columns @ pull) ** 2) + pull.sum() ** 2)) or 1.0


def _newton_step(loss: _Loss, curvature: Floats, slope: Floats, enough: float) -> Floats:
    """Return the step that solves Hessian · step = -slope, by conjugate gradients to a residual of norm `enough`."""
    step, residual = np.zeros_like(slope), -slope
    direction, squared = residual.copy(), float(residual @ residual)
    for _ in range(CONJUGATE):
        pull = curvature * (loss.rows @ direction[:-1] + direction[-1])
        image = np.append(loss.columns @ pull + direction[:-1], pull.sum())
        length = squared / float(direction @ image)
        step, residual = step + length * direction, residual - length * image
        before, squared = squared, float(residual @ residual)
        if squared**0.5 <= enough:
            break
        direction = residual + squared / before * direction
    return step


def _sigmoid(x: Floats) -> Floats:
    """Return the logistic function of each value."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * x)))


def folds(groups: Sequence[str], count: int, *, seed: int = 0) -> Ints:
    """Return (N,) the fold of each row, below `count`; rows of a group share one; folds are about equally large.

    Groups go in the order of a hash of seed and name, each to the fold that has the fewest rows.

    >>> folds(["a", "a", "b"], 2).tolist() in ([0, 0, 1], [1, 1, 0])
    True
    """
    sizes: dict[str, int] = {}
    for group in groups:
        sizes[group] = sizes.get(group, 0) + 1
    order = sorted(sizes, key=lambda name: hashlib.blake2b(f"{seed}\0{name}".encode()).digest())
    filled, fold_of = [0] * count, {}
    for name in order:
        fold_of[name] = min(range(count), key=lambda k: filled[k])
        filled[fold_of[name]] += sizes[name]
    return np.array([fold_of[group] for group in groups], np.int64)


def held_out(rows: csr_matrix, right: Bools, fold: Ints, strengths: Sequence[float]) -> Floats:
    """Return (strengths, N) log-odds of each row by a model that has not seen its fold; 0 if it saw one class only.

    A fold whose training part has only one class gets the log-odds 0.
    """
    out = np.zeros((len(strengths), len(right)))
    for number in np.unique(fold).tolist():
        learnt = fold != number
        if right[learnt].all() or not right[learnt].any():
            continue
        train, test, weights = rows[learnt], rows[~learnt], None
        for place, strength in enumerate(strengths):
            weights = fit(train, right[learnt], strength=strength, start=weights)
            out[place, ~learnt] = test @ weights.values + weights.bias
    return out


@dataclass(frozen=True, slots=True)
class PairCalibration:
    """Mapping of log-odds to probabilities: 1 / (1 + exp(-(slope · log-odds + offset)))."""

    slope: float = 1.0
    offset: float = 0.0

    def __call__(self, scores: Floats) -> Floats:
        """Return the calibrated probabilities of log-odds."""
        return _sigmoid(self.slope * scores + self.offset)


def calibrate(scores: Floats, right: Bools) -> PairCalibration:
    """Return Platt's calibration, fitted to held-out log-odds with smoothed targets; its slope is positive.

    J. Platt, Probabilistic outputs for support vector machines, 1999: the targets are (N₊+1)/(N₊+2) and 1/(N₋+2) rather
    than 1 and 0. A positive slope keeps the order.
    """
    positive = int(right.sum())
    wanted = np.where(right, (positive + 1) / (positive + 2), 1 / (len(right) - positive + 2))
    slope, offset = 0.0, float(np.log((positive + 1) / (len(right) - positive + 1)))
    for _ in range(100):
        found = _sigmoid(slope * scores + offset)
        gap, curvature = found - wanted, np.maximum(found * (1 - found), 1e-12)
        first = np.array([gap @ scores, gap.sum()])
        second = np.array([[curvature @ (scores * scores) + 1e-9, curvature @ scores], [0.0, curvature.sum() + 1e-9]])
        second[1, 0] = second[0, 1]
        move = np.linalg.solve(second, first)
        slope, offset = slope - float(move[0]), offset - float(move[1])
        if np.abs(move).max() < 1e-9:
            break
    return PairCalibration(max(slope, 1e-6), offset)
