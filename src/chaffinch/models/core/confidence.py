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
ROUNDS = 25  # most Newton steps of the logistic curve; half as many golden-section steps of the scale
HALVINGS = 30  # most halvings of a Newton step that would lower the likelihood
BINS, BIN_SPANS = 15, 60  # most knots of the curve, and held-out spans for each: fewer spans make the curve restless
PRIOR_SPANS = 10  # spans of the logistic curve in each bin: more keep the curve nearer to it
LEAST_SLOPE = 0.01  # of the curve, so that of two spans the likelier one stays the likelier
EDGE = 1e-6  # probabilities are clipped to this distance from 0 and 1, so that their logit is finite


@dataclass(frozen=True, slots=True)
class Calibration:
    """A scale for log-potentials, and a rising curve for the span probabilities that follow from it.

    The curve is logistic; where held-out spans were many, it is bent to the log-odds `heights` at the log-odds `knots`,
    straight lines between them and the logistic slope outside.
    """

    scale: float = 1.0
    slope: float = 1.0
    intercept: float = 0.0
    knots: tuple[float, ...] = ()  # rising
    heights: tuple[float, ...] = ()  # rising, one for each knot

    def __call__(self, chances: Floats) -> Floats:
        """Return the calibrated probabilities that spans are right, given raw chances: by curve, or logistic."""
        x = _logit(chances)
        if not self.knots:
            return _chance_of(self.slope * x + self.intercept)
        beyond = np.minimum(x - self.knots[0], 0.0) + np.maximum(x - self.knots[-1], 0.0)
        return _chance_of(np.interp(x, self.knots, self.heights) + max(self.slope, LEAST_SLOPE) * beyond)

    def array(self) -> Floats:
        """Return the calibration as one array for a model file: scale, slope, intercept, knots, heights."""
        return np.array([self.scale, self.slope, self.intercept, *self.knots, *self.heights])

    @classmethod
    def of(cls, numbers: Floats) -> Calibration:
        """Return the calibration that `array` stored; files of earlier versions hold three numbers."""
        scale, slope, intercept, *rest = numbers.tolist()
        half = len(rest) // 2
        return cls(scale, slope, intercept, tuple(rest[:half]), tuple(rest[half:]))


def span_chances(batch: Batch, labels: Labels, tags: Ints, spans: Sequence[tuple[int, int]]) -> Floats:
    """Return (n,) the probability that each span's tokens have their tags (of (N,)), and that it ends there.

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
    """Return the chance of a span's tags, P(first) times P(next | this), over first states; IOB2: and its end."""
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
    """Yield (batch of whole sentences with at most `CHUNK` tokens, or one long one; the token it begins at)."""
    begin = 0
    while begin < len(batch):
        end = int(np.searchsorted(batch.bounds, batch.bounds[begin] + CHUNK, side="right")) - 1
        end = min(max(end, begin + 1), len(batch))
        first, last = int(batch.bounds[begin]), int(batch.bounds[end])
        bounds = batch.bounds[begin : end + 1] - first
        yield Batch(batch.start, batch.trans, batch.emit[first:last], batch.end, bounds), first
        begin = end


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class HeldOut:
    """Sentences that a chain did not learn from: their best scale, and their spans at any scale."""

    scale: float
    judge: Callable[[float], tuple[Floats, Floats]]  # from a scale to (n,) chances of the spans, and which are right


def hold_out(batch: Batch, labels: Labels, gold: Ints, found: Ints) -> HeldOut:
    """Return held-out sentences' best scale and a judge of their `found` spans; gold and found are states (N,)."""
    score = _score(batch, gold)
    runs, right = labels.runs(found.astype(np.int32)), set(labels.runs(gold.astype(np.int32)))
    hits = np.array([run in right for run in runs], np.float64)
    places = [(first, end) for first, end, _ in runs]

    def judge(scale: float) -> tuple[Floats, Floats]:
        """Return (n,) the chances of the predicted spans with scores scaled, and whether each is right."""
        return span_chances(scale_batch(batch, scale), labels, labels.tag_of[found], places), hits

    return HeldOut(best_scale(batch, lambda scale: scale * score), judge)


def calibrate(batch: Batch, labels: Labels, gold: Ints, found: Ints) -> Calibration:
    """Return the calibration of a chain, fitted on sentences it did not learn from; gold and found are states (N,)."""
    return calibrate_on([hold_out(batch, labels, gold, found)])


def calibrate_on(parts: Sequence[HeldOut]) -> Calibration:
    """Return the calibration fitted to all parts together, each read by a chain that did not learn from it.

    The scale is the geometric mean of the best scales of the parts; one curve is then fitted to the spans of all.
    """
    scale = float(np.exp(np.mean([np.log(part.scale) for part in parts])))
    judged = [part.judge(scale) for part in parts]
    chances, right = (np.concatenate(column) for column in zip(*judged, strict=True))
    x = _logit(chances)
    curve = Calibration(scale, *_logistic(x, right))
    knots, heights = _bend(x, right, curve(chances))
    return replace(curve, knots=knots, heights=heights)


def scale_batch(batch: Batch, scale: float) -> Batch:
    """Return the batch with all log-potentials multiplied by `scale`, which is above 0."""
    return replace(
        batch, start=batch.start * scale, trans=batch.trans * scale, emit=batch.emit * scale, end=batch.end * scale
    )


def _score(batch: Batch, gold: Ints) -> float:
    """Return the sum of the log-potentials of these states (N,) over all sentences."""
    first, last = batch.bounds[:-1], batch.bounds[1:] - 1
    score = batch.emit[np.arange(len(gold)), gold].sum() + batch.start[gold[first]].sum() + batch.end[gold[last]].sum()
    inner = np.ones(len(gold), np.bool_)
    inner[first] = False
    return float(score + batch.trans[gold[:-1][inner[1:]], gold[1:][inner[1:]]].sum())


def best_scale(batch: Batch, known: Callable[[float], float]) -> float:
    """Return the scale, 0.05 to 20, of highest penalised likelihood of the known labels, by golden-section search.

    `known` returns the log-potential of the known labels at a scale. A weak prior keeps the scale near 1, because text
    without any mistake would drive it to its limit.
    """
    low, high, ratio = np.log(0.05), np.log(20.0), (np.sqrt(5.0) - 1.0) / 2.0

    def loss(log_scale: float) -> float:
        """Return the penalised negative log likelihood of the known labels at this log scale."""
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
    """Return the log-odds of chances, clipped to stay finite."""
    safe = np.clip(chances, EDGE, 1.0 - EDGE)
    return np.asarray(np.log(safe) - np.log1p(-safe))


def _chance_of(log_odds: Floats) -> Floats:
    """Return the probabilities of log-odds, which are clipped to ±30."""
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(log_odds, -30.0, 30.0))))


def _bend(x: Floats, right: Floats, expected: Floats) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return (knots, heights) of a rising curve from log-odds to the log-odds of right; ((), ()) if spans are few.

    Each bin also has `PRIOR_SPANS` spans of the `expected` chance, that of the logistic curve. With few spans there are
    none, and the logistic curve alone remains.
    """
    count = min(BINS, len(x) // BIN_SPANS)
    if count < 2:
        return (), ()
    bins = [part for part in np.array_split(np.argsort(x, kind="stable"), count) if len(part)]
    sizes = np.array([len(part) + PRIOR_SPANS for part in bins])
    shares = np.array([right[part].sum() + PRIOR_SPANS * expected[part].mean() for part in bins]) / sizes
    knots = np.array([x[part].mean() for part in bins])
    heights = _logit(_rise(shares, sizes)) + LEAST_SLOPE * (knots - knots[0])
    kept = np.append(True, np.diff(knots) > EDGE)  # probabilities at the limit of EDGE are one knot
    return tuple(knots[kept].tolist()), tuple(heights[kept].tolist())


def _rise(values: Floats, weights: Floats) -> Floats:
    """Return the nearest values, by weighted squares, that never fall: neighbours in wrong order share their mean."""
    blocks: list[tuple[float, float, int]] = []  # mean, weight, number of values
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        block = value, weight, 1
        while blocks and blocks[-1][0] > block[0]:
            mean, more, number = blocks.pop()
            total = more + block[1]
            block = (mean * more + block[0] * block[1]) / total, total, number + block[2]
        blocks.append(block)
    return np.repeat([mean for mean, _, _ in blocks], [number for _, _, number in blocks])


def _logistic(x: NDArray[np.float64], right: NDArray[np.float64]) -> tuple[float, float]:
    """Return (slope, intercept) of a logistic curve, fitted by Newton steps with a weak prior on the identity.

    Newton's method. A step that lowers the objective is halved until it does not: a full step from a curve that is far
    off can overshoot and never return.
    """
    weights, prior, strength = np.array([1.0, 0.0]), np.array([1.0, 0.0]), 1.0
    table = np.stack([x, np.ones_like(x)], axis=1)

    def objective(weights: NDArray[np.float64]) -> float:
        """Return the penalised log likelihood of logistic regression with these weights."""
        z = table @ weights
        return float(right @ z - np.logaddexp(0.0, z).sum() - strength * ((weights - prior) ** 2).sum() / 2)

    best = objective(weights)
    for _ in range(ROUNDS):
        chance = 1.0 / (1.0 + np.exp(-np.clip(table @ weights, -30, 30)))
        gradient = table.T @ (right - chance) - strength * (weights - prior)
        curvature = (table * (chance * (1 - chance))[:, None]).T @ table + strength * np.eye(2)
        step = np.linalg.solve(curvature, gradient)
        for _ in range(HALVINGS):
            if objective(weights + step) >= best:
                break
            step = step / 2
        else:
            break
        weights = weights + step
        best = objective(weights)
    return float(weights[0]), float(weights[1])
