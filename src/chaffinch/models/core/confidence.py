"""Confidence of a chain's spans: the exact probability of each, and a calibration learnt on unseen text.

N tokens of all sentences without pads, n spans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from chaffinch.kernels import forward_backward, log_partition, pair_marginals
from chaffinch.kernels.lattice import Batch, Floats, Ints
from chaffinch.models.core.labels import Labels

CHUNK = 2_000  # tokens whose pair marginals (K x K each) are in memory at once
SENTENCES = 800  # most sentences that a calibration is fitted on: enough for its three numbers
ROUNDS = 25  # Newton steps of the logistic curve; half as many golden-section steps of the scale
EDGE = 1e-6  # probabilities are clipped to this distance from 0 and 1, so that their logit is finite


@dataclass(frozen=True, slots=True)
class Calibration:
    """A scale for log-potentials, and a logistic curve for the span probabilities that follow from it."""

    scale: float = 1.0
    slope: float = 1.0
    intercept: float = 0.0

    def __call__(self, chances: Floats) -> Floats:
        """Return the calibrated probability that a span is right."""
        return np.asarray(1.0 / (1.0 + np.exp(-(self.slope * _logit(chances) + self.intercept))))


def span_chances(batch: Batch, labels: Labels, tags: Ints, spans: Sequence[tuple[int, int]]) -> Floats:
    """Return (n,) the exact probability that a span's tokens have these tags (N,) and that it ends there.

    Spans are sorted half-open runs of tokens, each inside a sentence.
    """
    out, edges, index = np.zeros(len(spans)), np.array(spans, np.int64).reshape(-1, 2), 0
    for part, begin in _chunks(batch):
        states, pairs = forward_backward(part).states, pair_marginals(part)
        last = begin + len(states)
        while index < len(edges) and edges[index, 1] <= last:
            first, end = (edges[index] - begin).tolist()
            out[index] = _chance(states, pairs, first, end, tags[edges[index, 0] : edges[index, 1]], labels)
            index += 1
    return out


def _chance(states: Floats, pairs: Floats, first: int, end: int, tags: Ints, labels: Labels) -> float:
    """Return P(tags) = sum over first states of P(first) * product of P(next | this); an IOB2 span must end there."""
    following = [int(labels.state_of[a, b]) for a, b in pairwise(tags.tolist())]
    goes_on = -1
    if labels.scheme == "IOB2" and end < len(pairs):
        inner = int(tags[-1]) + (1 if labels.tags[tags[-1]][0] == "B" else 0)
        goes_on = int(labels.state_of[tags[-1], inner])
    total = 0.0
    for start in np.flatnonzero(labels.tag_of == tags[0]).tolist():
        chance, this = float(states[first, start]), start
        for step, state in enumerate(following, start=first + 1):
            before = states[step - 1, this]
            chance *= pairs[step, this, state] / before if before > 0 else 0.0
            this = state
        before = states[end - 1, this]
        if goes_on >= 0 and before > 0:
            chance *= 1.0 - pairs[end, this, goes_on] / before
        total += chance
    return total


def _chunks(batch: Batch) -> Iterator[tuple[Batch, int]]:
    """Yield parts of whole sentences with about `CHUNK` tokens, and the token each begins at."""
    begin = 0
    while begin < len(batch):
        end = int(np.searchsorted(batch.bounds, batch.bounds[begin] + CHUNK, side="right")) - 1
        end = min(max(end, begin + 1), len(batch))
        first, last = int(batch.bounds[begin]), int(batch.bounds[end])
        bounds = batch.bounds[begin : end + 1] - first
        yield Batch(batch.start, batch.trans, batch.emit[first:last], batch.end, bounds), first
        begin = end


def calibrate(batch: Batch, labels: Labels, gold: Ints, found: Ints) -> Calibration:
    """Return the calibration of a chain, fitted on sentences it did not learn from; gold and found are states (N,)."""
    score = _score(batch, gold)
    scale = best_scale(batch, lambda scale: scale * score)
    runs = labels.runs(found.astype(np.int32))
    chances = span_chances(
        scale_batch(batch, scale), labels, labels.tag_of[found], [(first, end) for first, end, _ in runs]
    )
    right = set(labels.runs(gold.astype(np.int32)))
    return fit_calibration(scale, chances, np.array([run in right for run in runs], np.float64))


def fit_calibration(scale: float, chances: Floats, right: Floats) -> Calibration:
    """Return the calibration of spans with those chances at that scale, given which are right (n,)."""
    return Calibration(scale, *_logistic(_logit(chances), right))


def scale_batch(batch: Batch, scale: float) -> Batch:
    """Return the batch with all log-potentials multiplied by `scale`."""
    return replace(
        batch, start=batch.start * scale, trans=batch.trans * scale, emit=batch.emit * scale, end=batch.end * scale
    )


def _score(batch: Batch, gold: Ints) -> float:
    """Return the sum of the log-potentials of those states (N,)."""
    first, last = batch.bounds[:-1], batch.bounds[1:] - 1
    score = batch.emit[np.arange(len(gold)), gold].sum() + batch.start[gold[first]].sum() + batch.end[gold[last]].sum()
    inner = np.ones(len(gold), np.bool_)
    inner[first] = False
    return float(score + batch.trans[gold[:-1][inner[1:]], gold[1:][inner[1:]]].sum())


def best_scale(batch: Batch, known: Callable[[float], float]) -> float:
    """Return the scale that maximises the likelihood of the known labels, by golden-section search.

    `known` returns the log-potential of the known labels at a scale. A weak prior keeps the scale near 1, because text
    without any mistake would drive it to its limit.
    """
    low, high, ratio = np.log(0.05), np.log(20.0), (np.sqrt(5.0) - 1.0) / 2.0

    def loss(log_scale: float) -> float:
        scale = float(np.exp(log_scale))
        return float(np.sum(log_partition(scale_batch(batch, scale)))) - known(scale) + log_scale**2 / 2

    lower, upper = high - ratio * (high - low), low + ratio * (high - low)
    losses = [loss(lower), loss(upper)]
    for _ in range(ROUNDS // 2):
        if losses[0] < losses[1]:
            high, upper = upper, lower
            lower = high - ratio * (high - low)
            losses = [loss(lower), losses[0]]
        else:
            low, lower = lower, upper
            upper = low + ratio * (high - low)
            losses = [losses[1], loss(upper)]
    return float(np.exp((low + high) / 2.0))


def _logit(chances: Floats) -> Floats:
    safe = np.clip(chances, EDGE, 1.0 - EDGE)
    return np.asarray(np.log(safe) - np.log1p(-safe))


def _logistic(x: NDArray[np.float64], right: NDArray[np.float64]) -> tuple[float, float]:
    """Return slope and intercept of a logistic curve, by Newton's method with a weak prior on the identity."""
    weights, prior, strength = np.array([1.0, 0.0]), np.array([1.0, 0.0]), 1.0
    table = np.stack([x, np.ones_like(x)], axis=1)
    for _ in range(ROUNDS):
        chance = 1.0 / (1.0 + np.exp(-np.clip(table @ weights, -30, 30)))
        gradient = table.T @ (right - chance) - strength * (weights - prior)
        curvature = (table * (chance * (1 - chance))[:, None]).T @ table + strength * np.eye(2)
        weights = weights + np.linalg.solve(curvature, gradient)
    return float(weights[0]), float(weights[1])
