"""Maximum likelihood of a linear chain by L-BFGS, all sentences at once: the publication's slow baseline, exactly.

M tokens without pads, L tags, K states, W columns, R weight rows. States are pairs of tags, so a chain over tags whose
moves differ from token to token says the same with far fewer cells.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from chaffinch.kernels import Batch, Floats, Ints, group, linear
from chaffinch.kernels.lattice import Bools
from chaffinch.kernels.linear import SparseInput, Weights
from chaffinch.models.core.labels import Labels
from chaffinch.models.core.lbfgs import maximise
from chaffinch.models.core.linear import Linear, round_weights
from chaffinch.models.core.training import LEAST, Lesson, Progress, Watcher

# Of the Gaussian prior of every weight. The publication does not state one; 10 is what toolkits of its time start with.
VARIANCE = 10.0
TOKENS = 50_000  # of the sentences solved together; more needs memory for their pairs of tags


@dataclass(frozen=True, slots=True, eq=False)
class PairLikelihood:
    """log P(tags | words) minus the penalty, as a function of all weights (R * W,)."""

    seen: SparseInput
    gold: Ints  # (M,) states
    labels: Labels
    height: int  # R
    variance: float = VARIANCE
    before: Ints = field(init=False)  # (K,) the first tag of each pair
    first: Bools = field(init=False)  # (M,) tokens that begin a sentence
    cuts: list[tuple[int, int]] = field(init=False)  # sentences solved together

    def __post_init__(self) -> None:
        """Derive the pairs, the first tokens, and which sentences are solved together."""
        before = np.zeros(self.labels.states.K, np.int64)
        a, b = np.nonzero(self.labels.state_of >= 0)
        before[self.labels.state_of[a, b]] = a
        lengths = (self.seen.ends - self.seen.begins).astype(np.int64)
        first = np.zeros(int(lengths.sum()), np.bool_)
        first[np.cumsum(lengths) - lengths] = True
        number = (np.cumsum(lengths) - lengths) // TOKENS
        edges = [0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), len(lengths)]
        for name, value in (("before", before), ("first", first), ("cuts", list(itertools.pairwise(edges)))):
            object.__setattr__(self, name, value)

    def weights(self, x: Floats) -> Weights:
        """Return weights `x` as those of a linear chain, rounded to float32; moves have no weights, only limits."""
        return Weights(x.astype(np.float32), self.labels.states.moves.copy())

    def __call__(self, x: Floats) -> tuple[float, Floats]:
        """Return the penalised log-likelihood at the weights, and its gradient."""
        states, L = self.labels.states, len(self.labels.tags)
        scores = linear.scores(self.seen, self.weights(x), states)
        bounds = np.concatenate([[0], np.cumsum((self.seen.ends - self.seen.begins).astype(np.int64))])
        slope = np.zeros_like(scores)
        value = float(scores[np.arange(len(scores)), self.gold].sum(dtype=np.float64))
        slope[np.arange(len(scores)), self.gold] += 1.0
        for low, high in self.cuts:
            tokens = slice(int(bounds[low]), int(bounds[high]))
            found = group(self._batch(scores[tokens], self.first[tokens], bounds[low : high + 1]), np.arange(L))
            value -= float(found.log_z.sum())
            chances = found.pairs[:, self.before, self.labels.tag_of]
            opening = np.where(self.before == 0, found.states[:, self.labels.tag_of], 0.0)
            slope[tokens, : states.K] -= np.where(self.first[tokens, None], opening, chances)
        for tag in range(L):  # the column that all pairs with one tag share
            slope[:, states.K + tag] = slope[:, : states.K][:, self.labels.tag_of == tag].sum(axis=1)
        out = np.zeros(len(x), np.float32)
        linear.add_gradient(self.seen, slope, states, out)
        return value - float(x @ x) / (2.0 * self.variance), out - x / self.variance

    def _batch(self, scores: linear.Singles, first: Bools, bounds: Ints) -> Batch:
        """Return sentences as chains over tags; the pair of a first token is an emission, all others are moves."""
        L, K = len(self.labels.tags), self.labels.states.K
        trans = np.full((len(scores), L, L), -np.inf)
        trans[:, self.before, self.labels.tag_of] = scores[:, :K]
        emit = np.zeros((len(scores), L))
        opens = self.before == 0
        emit[first] = -np.inf
        emit[np.flatnonzero(first)[:, None], self.labels.tag_of[opens]] = scores[first][:, :K][:, opens]
        end = np.where(self.labels.follows[-1], 0.0, -np.inf)
        start = np.where(self.labels.follows[-2], 0.0, -np.inf)
        return Batch(start, trans, emit, end, bounds - bounds[0])


def fit_likelihood(
    likelihood: PairLikelihood, *, evaluations: int, watch: Callable[[int, float], None] | None = None
) -> tuple[Weights, bool]:
    """Climb from weights of 0; return the best weights, and whether an interrupt ended the climb."""
    start = np.zeros(likelihood.height * likelihood.labels.states.W)
    found = maximise(likelihood, start, evaluations=evaluations, watch=watch)
    return likelihood.weights(found.x), found.interrupted


def climb(name: str, lesson: Lesson, evaluations: int, watcher: Watcher) -> Linear:
    """Train one chain by L-BFGS on the likelihood of all sentences, in at most `evaluations`; return it rounded."""

    def watch(used: int, value: float) -> None:
        """Report to the watcher the evaluations used, and minus the value as the loss."""
        if watcher.tell is not None:
            watcher.tell(Progress(name, used, evaluations, -value))

    view, height = lesson.view, lesson.vocabulary.height
    likelihood = PairLikelihood(view, lesson.target.gold[view.places].astype(np.int64), lesson.labels, height)
    weights, interrupted = fit_likelihood(likelihood, evaluations=evaluations, watch=watch)
    watcher.interrupted |= interrupted
    return round_weights(lesson.labels, lesson.vocabulary, weights, least=LEAST["lbfgs"])
