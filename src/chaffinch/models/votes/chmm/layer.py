"""The linear layer of a conditional HMM: embeddings to logits, gradients, and Adam, in numpy only.

T tokens, D numbers of an embedding, r of a narrower one; A logits of transitions, B of confusions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from chaffinch.kernels import Floats

Rows: TypeAlias = NDArray[Any]  # float32 or float64, as the embeddings are
Weights: TypeAlias = dict[str, Rows]  # "moves" (D, A), "votes" (D or r, B), their biases, perhaps "narrow" (D, r)

FEW = 512  # up to this number of confusion logits there is no bottleneck; more would make the layer large and slow
RANK = 32  # size of the bottleneck; lower is faster and less expressive
FIRST, SECOND, TINY = 0.9, 0.999, 1e-8  # beta 1, beta 2 and epsilon of Adam, at their usual values


def initial_weights(D: int, A: int, B: int, rank: int | None, rng: np.random.Generator, *, zero: bool) -> Weights:
    """Return small random weights, 0 with `zero`, and biases of 0; with a bottleneck by `rank`, or if None by size."""
    scale = 0.0 if zero else 0.1 / np.sqrt(D)
    rank = RANK if rank is None and B > FEW else rank or None
    wide = {"moves": (D, A), "votes": (D if rank is None else rank, B)}
    weights = {name: rng.normal(size=shape) * scale for name, shape in wide.items()}
    if rank is not None:
        weights["narrow"] = rng.normal(size=(D, rank)) / np.sqrt(D)
    return weights | {"moves bias": np.zeros(A), "votes bias": np.zeros(B)}


def logits(weights: Weights, rows: Rows) -> tuple[Rows, Rows]:
    """Return (logits of transitions (T, A), logits of confusions (T, B)) for embeddings (T, D)."""
    narrow = rows @ weights["narrow"] if "narrow" in weights else rows
    return rows @ weights["moves"] + weights["moves bias"], narrow @ weights["votes"] + weights["votes bias"]


def weight_gradient(weights: Weights, rows: Rows, moves: Rows, votes: Rows) -> Weights:
    """Return the gradient of the weights, given those of the logits of moves (T, A) and votes (T, B)."""
    up, down = moves.astype(rows.dtype, copy=False), votes.astype(rows.dtype, copy=False)
    out: Weights = {"moves": rows.T @ up, "moves bias": up.sum(axis=0), "votes bias": down.sum(axis=0)}
    if "narrow" in weights:
        out["votes"] = (rows @ weights["narrow"]).T @ down
        out["narrow"] = rows.T @ (down @ weights["votes"].T)
    else:
        out["votes"] = rows.T @ down
    return out


def softmax(logits: Rows, base: Floats) -> Rows:
    """Return the softmax of logits plus a base over the last axis, in the logits' precision; -inf gives 0."""
    probs: Rows = logits + base.astype(logits.dtype)
    probs -= probs.max(axis=-1, keepdims=True)
    np.exp(probs, out=probs)
    probs /= (probs @ np.ones(probs.shape[-1], probs.dtype))[..., None]  # a sum over a short axis is slow
    return probs


@dataclass(slots=True)
class Adam:
    """Adam as ascent: weights change in place, by steps of about the rate."""

    rate: float
    ridge: float  # times the sum of squared weights is the penalty
    steps: int = 0
    mean: Weights = field(default_factory=dict)
    square: Weights = field(default_factory=dict)

    def step(self, weights: Weights, gradient: Weights) -> None:
        """Take one ascent step with all weights, in place; the penalty `ridge` leaves out "narrow"."""
        self.steps += 1
        for name, weight in weights.items():
            slope = gradient[name] - (2.0 * self.ridge * weight if name != "narrow" else 0.0)
            mean, square = self.mean.get(name, np.zeros_like(weight)), self.square.get(name, np.zeros_like(weight))
            self.mean[name] = mean = FIRST * mean + (1 - FIRST) * slope
            self.square[name] = square = SECOND * square + (1 - SECOND) * slope**2
            scale = np.sqrt(square / (1 - SECOND**self.steps)) + TINY
            weights[name][...] += (self.rate / (1 - FIRST**self.steps) * mean / scale).astype(weight.dtype)
