"""Student network on frozen embeddings: one hidden layer from a token's embedding to its tag.

T tokens, D dimensions, H hidden units, L labels, N tokens learnt from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chaffinch.errors import ModelError
from chaffinch.kernels.lattice import Floats

Singles = NDArray[np.float32]

HIDDEN, EPOCHS, BATCH = 64, 4, 256
LEAST_STEPS = 1_000  # gradient steps at least: little text gets more epochs
RATE, DECAY, DROPOUT = 2e-3, 1e-5, 0.3
NEAR, SHARE = 2, 0.3  # training uses all tokens within NEAR of a span, and this share of the others
FIRST, SECOND, TINY = 0.9, 0.999, 1e-8  # of Adam
_NAMES = ("centre", "scale", "into", "lift", "out", "shift")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Network:
    """Weights of the network; its tags are O, then first tokens and other tokens of each label."""

    centre: Singles  # (D,)
    scale: Singles  # (D,)
    into: Singles  # (D, H)
    lift: Singles  # (H,)
    out: Singles  # (H, 1 + 2 L)
    shift: Singles  # (1 + 2 L,)

    def __call__(self, rows: Singles) -> Floats:
        """Return (T, 1 + L) probabilities of O and each label, from embeddings (T, D)."""
        hidden = np.maximum((rows - self.centre) / self.scale @ self.into + self.lift, 0.0)
        tags = _softmax(hidden @ self.out + self.shift)
        return np.concatenate([tags[:, :1], tags[:, 1::2] + tags[:, 2::2]], axis=1).astype(np.float64)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return {name: array} of all weights, for a model file."""
        return {name: getattr(self, name) for name in _NAMES}

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> Network:
        """Rebuild the network from the arrays of a model file; raise ModelError if one is missing."""
        try:
            return cls(*(np.asarray(arrays[name], np.float32) for name in _NAMES))
        except KeyError:
            raise ModelError("its network is incomplete; copy the file again, or train it again") from None


@dataclass(slots=True)
class _Adam:
    """Adam optimiser of all parameters."""

    weights: list[Singles]
    mean: list[Singles] = field(default_factory=list)
    square: list[Singles] = field(default_factory=list)
    steps: int = 0

    def step(self, slopes: Sequence[Singles], rate: float) -> None:
        """Update the weights in place by one Adam step; `slopes` are the gradients."""
        if not self.steps:
            self.mean, self.square = [[np.zeros_like(weight) for weight in self.weights] for _ in range(2)]
        self.steps += 1
        for number, slope in enumerate(slopes):
            self.mean[number] += (1 - FIRST) * (slope - self.mean[number])
            self.square[number] += (1 - SECOND) * (slope * slope - self.square[number])
            mean = self.mean[number] / (1 - FIRST**self.steps)
            square = self.square[number] / (1 - SECOND**self.steps)
            self.weights[number] -= rate * mean / (np.sqrt(square) + TINY)


def learn(
    rows: Sequence[NDArray[np.floating]], tags: Sequence[NDArray[np.int64]], labels: int, *, seed: int = 0
) -> Network:
    """Train a network on embeddings (T, D) and tags (T,) of documents; most tokens far from spans are skipped."""
    rng = np.random.default_rng(seed)
    chosen = [_choose_tokens(doc_tags, rng) for doc_tags in tags]
    x = np.concatenate([doc_rows[pick] for doc_rows, pick in zip(rows, chosen, strict=True)]).astype(np.float32)
    y = np.concatenate([doc_tags[pick] for doc_tags, pick in zip(tags, chosen, strict=True)])
    centre, scale = x.mean(axis=0), x.std(axis=0) + np.float32(1e-3)
    x = (x - centre) / scale
    N, D = x.shape
    weights = [
        (rng.standard_normal((D, HIDDEN)) * np.sqrt(2 / D)).astype(np.float32), np.zeros(HIDDEN, np.float32),
        (rng.standard_normal((HIDDEN, 1 + 2 * labels)) / np.sqrt(HIDDEN)).astype(np.float32),
        np.zeros(1 + 2 * labels, np.float32),
    ]  # fmt: skip
    epochs = max(EPOCHS, -(-LEAST_STEPS // -(-N // BATCH)))
    adam, total = _Adam(weights), epochs * N
    for epoch in range(epochs):
        order = rng.permutation(N)
        for begin in range(0, N, BATCH):
            pick = order[begin : begin + BATCH]
            kept = (rng.random((len(pick), HIDDEN)) > DROPOUT).astype(np.float32) / np.float32(1 - DROPOUT)
            slopes = _slopes(weights, x[pick], y[pick], kept)
            adam.step(slopes, RATE * (1 - (epoch * N + begin) / total))
    return Network(centre, scale, *weights)


def _slopes(weights: Sequence[Singles], x: Singles, y: NDArray[np.int64], kept: Singles) -> list[Singles]:
    """Return the gradients of mean cross-entropy plus weight decay, one per weight; `kept` (N, H): dropout mask."""
    into, lift, out, shift = weights
    hidden = np.maximum(x @ into + lift, 0.0) * kept
    error = _softmax(hidden @ out + shift)
    error[np.arange(len(y)), y] -= 1.0
    error /= len(y)
    back = error @ out.T * kept * (hidden > 0)
    return [x.T @ back + DECAY * into, back.sum(axis=0), hidden.T @ error + DECAY * out, error.sum(axis=0)]


def _choose_tokens(tags: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return (T,) which tokens to train on: those in and near spans, and a random part of the others."""
    inside = np.pad(tags > 0, NEAR)
    near = np.zeros(len(tags), np.bool_)
    for shift in range(2 * NEAR + 1):
        near |= inside[shift : shift + len(tags)]
    return np.asarray(near | (rng.random(len(tags)) < SHARE))


def _softmax(scores: Singles) -> Singles:
    """Return each row's softmax, as float32."""
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True), np.float32)
