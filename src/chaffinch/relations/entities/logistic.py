"""Logistic regression over sparse features, its strength chosen and its scores calibrated by folds over documents.

N candidates, F features. Steps are Newton's, each solved by conjugate gradients: with rows of length 1 a handful is
enough, where a method that sees the slope alone takes hundreds.
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

ENOUGH = 1e-2  # of the first slope; closer changes no ranking
NEWTON, CONJUGATE = 30, 40  # steps at most
DECREASE = 1e-4  # of what the slope promises


class LogisticWeights(NamedTuple):
    """What regression learnt: a candidate's log-odds are `x @ values + bias`."""

    values: Floats  # (F,)
    bias: float


class _Loss(NamedTuple):
    """The loss of classes weighted alike: strength times the weighted log-loss, plus half the squared weights."""

    rows: csr_matrix  # (N, F)
    columns: csr_matrix  # (F, N)
    sign: Floats  # (N,) 1 or -1
    cost: Floats  # (N,)

    def value(self, scores: Floats, values: Floats) -> float:
        return float(self.cost @ np.logaddexp(0.0, -self.sign * scores) + 0.5 * values @ values)


def fit(
    rows: csr_matrix, right: Bools, *, strength: float, start: LogisticWeights | None = None, tolerance: float = ENOUGH
) -> LogisticWeights:
    """The weights with the least loss; both classes weigh the same, whatever their numbers, and both must be there.

    Loss: strength · Σ c_i log(1 + exp(-y_i s_i)) + ½ |w|², c_i = N / (2 N_class); the bias is not drawn to 0.
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
    """The size of the slope where all weights are 0."""
    pull = -0.5 * loss.sign * loss.cost
    return float(np.sqrt(np.sum((loss.columns @ pull) ** 2) + pull.sum() ** 2)) or 1.0


def _newton_step(loss: _Loss, curvature: Floats, slope: Floats, enough: float) -> Floats:
    """The solution of Hessian · step = -slope, up to a residual of size `enough`."""
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
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * x)))


def folds(groups: Sequence[str], count: int, *, seed: int = 0) -> Ints:
    """(N,) a fold for each row; the rows of a group are in one fold, and folds are about equally large.

    Groups go in the order of a hash of seed and name, each to the fold that has the fewest rows.

    >>> folds(["a", "a", "b"], 2).tolist() in ([0, 0, 1], [1, 1, 0])
    True
    """
    sizes: dict[str, int] = {}
    for group in groups:
        sizes[group] = sizes.get(group, 0) + 1
    order = sorted(sizes, key=lambda name: hashlib.blake2b(f"{seed}\0{name}".encode()).digest())
    filled, place = [0] * count, {}
    for name in order:
        place[name] = min(range(count), key=lambda k: filled[k])
        filled[place[name]] += sizes[name]
    return np.array([place[group] for group in groups], np.int64)


def held_out(rows: csr_matrix, right: Bools, fold: Ints, strengths: Sequence[float]) -> Floats:
    """(strengths, N) the log-odds that each candidate gets from a model that has not seen its fold.

    A fold whose training part has one class alone gets the log-odds 0.
    """
    out = np.zeros((len(strengths), len(right)))
    for number in np.unique(fold).tolist():
        learnt = fold != number
        if right[learnt].all() or not right[learnt].any():
            continue
        own, other, weights = rows[learnt], rows[~learnt], None
        for place, strength in enumerate(strengths):
            weights = fit(own, right[learnt], strength=strength, start=weights)
            out[place, ~learnt] = other @ weights.values + weights.bias
    return out


@dataclass(frozen=True, slots=True)
class PairCalibration:
    """Log-odds to probabilities: 1 / (1 + exp(-(slope · log-odds + offset)))."""

    slope: float = 1.0
    offset: float = 0.0

    def __call__(self, scores: Floats) -> Floats:
        return _sigmoid(self.slope * scores + self.offset)


def calibrate(scores: Floats, right: Bools) -> PairCalibration:
    """Platt's calibration of held-out log-odds, towards N₊+1 of N₊+2 and 1 of N₋+2 rather than 1 and 0.

    J. Platt, Probabilistic outputs for support vector machines, 1999. The slope never turns the order round.
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
