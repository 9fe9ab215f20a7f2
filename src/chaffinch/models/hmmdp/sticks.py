"""Stick-breaking weights of sub-tags: their expectations, and the three updates W1, W2 and W3.

K sub-tags of one tag, in the order of its sticks; R rows that lead into the tag.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from chaffinch.kernels.lattice import Floats
from chaffinch.models.hmmdp.emissions import sum_by_number
from chaffinch.models.hmmdp.gamma_functions import betaln, digamma, gammaln, polygamma

Update: TypeAlias = Literal["W1", "W2", "W3"]

UPDATES: tuple[Update, ...] = ("W1", "W2", "W3")
STEPS = 20  # most iterations of L-BFGS per update; each starts from the result of the last
NOTHING = 1e-8  # a smaller expected count adds no table
EDGE = 30.0  # largest absolute log of a and b, and log-odds of v, so that exponentials stay finite


@dataclass(frozen=True, slots=True, eq=False)
class Sticks:
    """q(v) of one tag: Beta(a, b) for all sub-tags except the last, which takes the rest; or a point if `point`."""

    a: Floats  # (K-1,) with `point`: v itself
    b: Floats  # (K-1,)
    point: bool = False

    @classmethod
    def start(cls, count: int, alpha: float) -> Sticks:
        """Return the prior of `count` sub-tags: Beta(1, alpha) for each of count - 1 sticks."""
        return cls(np.ones(count - 1), np.full(count - 1, alpha))

    @property
    def log_parts(self) -> tuple[Floats, Floats]:
        """Return (E log v, E log (1 - v)), each (K-1,)."""
        if self.point:
            return np.log(self.a), np.log1p(-self.a)
        both = digamma(self.a + self.b)
        return digamma(self.a) - both, digamma(self.b) - both

    @property
    def log_pi(self) -> Floats:
        """Return (K,) the expected log share of each sub-tag."""
        log_v, rest = self.log_parts
        return np.asarray(np.append(log_v, 0.0) + np.append(0.0, np.cumsum(rest)))

    @property
    def mean_pi(self) -> Floats:
        """Return (K,) the expected share of each sub-tag; they sum to 1."""
        mean = self.a if self.point else self.a / (self.a + self.b)
        return np.asarray(np.append(mean, 1.0) * np.append(1.0, np.cumprod(1.0 - mean)))

    def divergence(self, alpha: float) -> float:
        """Return KL(q(v) || Beta(1, alpha)) over all sticks; for a point, minus the log density."""
        if self.point:
            return -float(np.sum(np.log(alpha) + (alpha - 1.0) * np.log1p(-self.a)))
        a, b = self.a, self.b
        log_v, rest = self.log_parts
        return float(np.sum(betaln(1.0, alpha) - betaln(a, b) + (a - 1.0) * log_v + (b - alpha) * rest))


def expected_log_normaliser(sticks: Sticks, alpha_t: float) -> float:
    """Return a lower bound on E log of the normaliser of Dir(alpha_t pi), exact for a point."""
    K = len(sticks.a) + 1
    if sticks.point:
        return float(gammaln(alpha_t) - gammaln(alpha_t * sticks.mean_pi).sum())
    return float((K - 1) * np.log(alpha_t) + sticks.log_pi.sum())


def update_by_tables(counts: Floats, sticks: Sticks, alpha: float, alpha_t: float) -> Sticks:
    """Return the sticks updated from counts (R, K) by expected tables of a Chinese restaurant (W1), in closed form."""
    g = alpha_t * np.exp(sticks.log_pi)
    row, column = np.nonzero(counts >= NOTHING)
    per_cell = g[column] * (digamma(g[column] + counts[row, column]) - digamma(g[column]))
    tables = sum_by_number(column, per_cell, len(g))
    after = np.cumsum(tables[::-1])[::-1]
    return Sticks(1.0 + tables[:-1], alpha + after[1:])


def update_by_bound(log_rows: Floats, sticks: Sticks, alpha: float, alpha_t: float) -> Sticks:
    """Return sticks updated by W2, the surrogate bound's maximum, unless worse; log_rows (R, K): E log of rows."""
    from scipy.optimize import minimize  # slow to import, and needed for learning alone

    R, u = len(log_rows), log_rows.sum(axis=0)

    def loss(x: Floats) -> tuple[float, Floats]:
        """Return minus the surrogate bound and its gradient, at the logs of a and b."""
        a, b = np.exp(np.clip(np.split(x, 2), -EDGE, EDGE))
        now = Sticks(a, b)
        value = R * now.log_pi.sum() + alpha_t * float(u @ now.mean_pi) - now.divergence(alpha)
        return -value, -_surrogate_gradient(now, R, u, alpha, alpha_t) * np.concatenate([a, b])

    start = np.log(np.concatenate([sticks.a, sticks.b]))
    if not len(start):
        return sticks
    result = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": STEPS})
    a, b = np.exp(np.clip(np.split(result.x, 2), -EDGE, EDGE))
    return Sticks(a, b) if result.fun <= loss(start)[0] else sticks


def _surrogate_gradient(sticks: Sticks, R: int, u: Floats, alpha: float, alpha_t: float) -> Floats:
    """Return the gradient of the surrogate in a, then b (2(K-1),)."""
    a, b = sticks.a, sticks.b
    K = len(a) + 1
    left = np.arange(K - 1, 0, -1)  # how many sub-tags come after each stick
    both, pi = polygamma(1, a + b), sticks.mean_pi
    by_v, by_rest = R + 1.0 - a, R * left + alpha - b  # coefficients of E log v and E log (1 - v)
    worth = alpha_t * u * pi
    after = np.cumsum(worth[::-1])[::-1][1:]  # of all sub-tags after each stick
    by_mean = worth[:-1] * b / (a * (a + b)), -after / (a + b)  # d log E v / da = b / (a (a + b)), and of 1 - v
    slope_a = by_v * (polygamma(1, a) - both) - by_rest * both + by_mean[0] + by_mean[1]
    mean_b = -worth[:-1] / (a + b), after * a / (b * (a + b))
    slope_b = -by_v * both + by_rest * (polygamma(1, b) - both) + mean_b[0] + mean_b[1]
    return np.concatenate([slope_a, slope_b])


def update_by_point(log_rows: Floats, sticks: Sticks, alpha: float, alpha_t: float) -> Sticks:
    """Return point sticks at the best v (W3), unless worse than before; log_rows (R, K): E log of rows."""
    from scipy.optimize import minimize  # slow to import, and needed for learning alone

    R, u = len(log_rows), log_rows.sum(axis=0)

    def loss(x: Floats) -> tuple[float, Floats]:
        """Return minus the objective and its gradient, at the log-odds of v."""
        v = 1.0 / (1.0 + np.exp(-np.clip(x, -EDGE, EDGE)))
        now = Sticks(v, v, point=True)
        pi = now.mean_pi
        value = -R * gammaln(alpha_t * pi).sum() + alpha_t * float(u @ pi) - now.divergence(alpha)
        worth = alpha_t * pi * (u - R * digamma(alpha_t * pi))  # d value / d log pi
        after = np.cumsum(worth[::-1])[::-1][1:]
        return -value, -(worth[:-1] * (1.0 - v) - v * after - (alpha - 1.0) * v)

    v = sticks.a if sticks.point else sticks.a / (sticks.a + sticks.b)
    start = np.log(v) - np.log1p(-v)
    if not len(start):
        return Sticks(v, v, point=True)
    result = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": STEPS})
    best = result.x if result.fun <= loss(start)[0] else start
    v = 1.0 / (1.0 + np.exp(-np.clip(best, -EDGE, EDGE)))
    return Sticks(v, v, point=True)
