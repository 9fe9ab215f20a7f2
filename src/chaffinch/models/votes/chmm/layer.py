"""The linear layer of a conditional HMM: embeddings to logits, gradients back, and Adam; numpy alone.

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

FEW = 512  # as many confusions are read from whole embeddings
RANK = 32
FIRST, SECOND, TINY = 0.9, 0.999, 1e-8  # Adam


def begun(D: int, A: int, B: int, rank: int | None, rng: np.random.Generator, *, zero: bool) -> Weights:
    """Weights to begin with: all logits 0, or nearly so."""
    scale = 0.0 if zero else 0.1 / np.sqrt(D)
    rank = RANK if rank is None and B > FEW else rank
    wide = {"moves": (D, A), "votes": (D if rank is None else rank, B)}
    weights = {name: rng.normal(size=shape) * scale for name, shape in wide.items()}
    if rank is not None:
        weights["narrow"] = rng.normal(size=(D, rank)) / np.sqrt(D)
    return weights | {"moves bias": np.zeros(A), "votes bias": np.zeros(B)}


def logits(weights: Weights, rows: Rows) -> tuple[Rows, Rows]:
    """(T, A) and (T, B) of embeddings (T, D)."""
    narrow = rows @ weights["narrow"] if "narrow" in weights else rows
    return rows @ weights["moves"] + weights["moves bias"], narrow @ weights["votes"] + weights["votes bias"]


def slopes(weights: Weights, rows: Rows, moves: Rows, votes: Rows) -> Weights:
    """The gradient in the weights, given that in the logits."""
    up, down = moves.astype(rows.dtype, copy=False), votes.astype(rows.dtype, copy=False)
    out: Weights = {"moves": rows.T @ up, "moves bias": up.sum(axis=0), "votes bias": down.sum(axis=0)}
    if "narrow" in weights:
        out["votes"] = (rows @ weights["narrow"]).T @ down
        out["narrow"] = rows.T @ (down @ weights["votes"].T)
    else:
        out["votes"] = rows.T @ down
    return out


def softmax(logits: Rows, base: Floats) -> Rows:
    """Of logits added to a base, over the last axis, as exact as the logits are; -inf is never chosen."""
    found: Rows = logits + base.astype(logits.dtype)
    found -= found.max(axis=-1, keepdims=True)
    np.exp(found, out=found)
    found /= (found @ np.ones(found.shape[-1], found.dtype))[..., None]  # a sum over a short axis is slow
    return found


@dataclass(slots=True)
class Adam:
    """Climbs: weights change in place, by steps of about the rate."""

    rate: float
    ridge: float  # times the squares of all weights is the penalty
    steps: int = 0
    mean: Weights = field(default_factory=dict)
    square: Weights = field(default_factory=dict)

    def step(self, weights: Weights, gradient: Weights) -> None:
        """One step up."""
        self.steps += 1
        for name, own in weights.items():
            slope = gradient[name] - (2.0 * self.ridge * own if name != "narrow" else 0.0)
            mean, square = self.mean.get(name, np.zeros_like(own)), self.square.get(name, np.zeros_like(own))
            self.mean[name] = mean = FIRST * mean + (1 - FIRST) * slope
            self.square[name] = square = SECOND * square + (1 - SECOND) * slope**2
            scale = np.sqrt(square / (1 - SECOND**self.steps)) + TINY
            weights[name][...] += (self.rate / (1 - FIRST**self.steps) * mean / scale).astype(own.dtype)
