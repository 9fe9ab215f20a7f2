"""Linear chain models over sparse features: scores, best paths, and online learning.

N tokens of all sentences with pads between, T of one sentence; K states, W columns of a weight row (K filled up to
whole vectors), C columns of features per token, V types, R weight rows. A feature seen at token j applies to the
tokens from j - first - width + 1 to j - first, with one weight row for each of them, so that no token needs a list of
all its features. Weights are float32.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from chaffinch.kernels.lattice import Batch

Singles: TypeAlias = NDArray[np.float32]
Places: TypeAlias = NDArray[np.int32]
Scalar: TypeAlias = Any  # one number, Python's or numpy's: the same for compiled code
Objective: TypeAlias = Literal["pa", "crf", "adagrad"]  # margin; likelihood; likelihood with adaptive steps

LANES = 8  # float32 in a vector; rows are padded to a multiple


class SparseInput(NamedTuple):
    """Observed features: for each token a type with its list of features, and further columns of features."""

    begins: Places  # (S,) first token of each sentence
    ends: Places  # (S,) one past its last token; there is a pad before the first and at `ends`
    types: Places  # (N,)
    lists: Places  # (V+1,) type v has features lists[v] to lists[v+1]
    rows: Places  # (Q,) the first weight row of each listed feature
    first: NDArray[np.int8]  # (Q,) the lowest offset at which it is looked at, -2 or more
    width: NDArray[np.int8]  # (Q,) at how many offsets; none is above 2
    columns: Places  # (N, C) first weight row, or -1; that of a pad belongs to the sentence after it
    column_first: NDArray[np.int8]  # (C,)
    column_width: NDArray[np.int8]  # (C,)

    def choose(self, sentences: NDArray[np.int64]) -> SparseInput:
        """Return the observations of the sentences of these numbers only, in this order."""
        return self._replace(begins=self.begins[sentences], ends=self.ends[sentences])

    @property
    def longest(self) -> int:
        """Return the number of tokens of the longest sentence; 0 without sentences."""
        return int((self.ends - self.begins).max()) if len(self.begins) else 0

    @property
    def places(self) -> NDArray[np.int64]:
        """Return the token numbers of all sentences (M,), one after another, without pads."""
        lengths = (self.ends - self.begins).astype(np.int64)
        return np.arange(int(lengths.sum())) + np.repeat(self.begins - np.cumsum(lengths) + lengths, lengths)


class Weights(NamedTuple):
    """Learnt weights, or sums of the same shape."""

    rows: Singles  # (R * W,) flat
    moves: Singles  # ((K+2) * W,) flat: state to state; row K into the first state, row K+1 out of the last


class States(NamedTuple):
    """The states of a chain, and the columns of a weight row that they read.

    With `shared`, a state reads a second column as well: label pairs are states, and pairs with one label share its
    column.
    """

    K: int
    W: int
    label: Places  # (K,) the label of each state
    shared: Places  # (K,) the second column, or -1
    moves: Singles  # ((K+2) * W,) 0 where a move is allowed, else -inf

    @classmethod
    def of(cls, label: NDArray[np.int64], moves: NDArray[np.bool_], shared: NDArray[np.int64] | None = None) -> States:
        """Return states with labels (K,); `moves` (K+2, K) marks allowed moves, its last two rows begin and end."""
        K = len(label)
        columns = K if shared is None else int(shared.max()) + 1
        W = -(-columns // LANES) * LANES
        flat = np.full((K + 2, W), -np.inf, np.float32)
        flat[:, :K][moves] = 0.0
        second = np.full(K, -1) if shared is None else shared
        return cls(K, W, label.astype(np.int32), second.astype(np.int32), flat.ravel())


class Target(NamedTuple):
    """Training targets: a state per token, or -1 and a row of `weights` with the probability of each state."""

    gold: Places  # (N,)
    which: Places  # (N,) row of `weights` where gold is -1
    weights: Singles  # (X, W) from 0, impossible, to 1
    free: NDArray[np.bool_]  # (X,) the states not forbidden are equal, and the model itself chooses among them


class Steps(NamedTuple):
    """Step sizes of a learner."""

    aggressiveness: float  # the largest step of PA-I
    rate: float  # of stochastic gradient
    augmented: bool  # find the violator with the cost added, or predict plainly
    second: bool = False  # if the prediction is right, the violator is the best labelling but that one
    moves: bool = True  # learn weights of moves between states


class GradientSums(NamedTuple):
    """Weights, sums for their average, and sums of squared gradients if steps are adaptive."""

    weights: Singles
    totals: Singles
    squares: Singles


class Pace(NamedTuple):
    """Settings of gradient steps, and the number of the next step."""

    rate: np.float32
    adaptive: bool
    step: np.float32


class Learner:
    """Weights in training, with their sums; the only object here that changes in place."""

    def __init__(self, height: int, states: States, *, objective: Objective, steps: Steps) -> None:
        """Begin with zero weights for `height` rows of features; the objective decides which sums are kept."""
        size, moves = height * states.W, len(states.moves)
        self.states, self.objective, self.steps, self.step = states, objective, steps, 0
        self.weights = Weights(np.zeros(size, np.float32), states.moves.copy())
        self.totals = Weights(np.zeros(size, np.float32), np.zeros(moves, np.float32))
        squares = size if objective == "adagrad" else 0
        self.squares = Weights(np.zeros(squares, np.float32), np.zeros(moves, np.float32))

    def restart(self, start: Weights | None = None) -> None:
        """Reset sums and step count, and set all weights to zero (allowed moves) or to copies of `start`."""
        self.step = 0
        for total in (*self.totals, *self.squares):
            total[:] = 0.0
        self.weights.rows[:] = 0.0 if start is None else start.rows
        self.weights.moves[:] = self.states.moves if start is None else start.moves

    def walk(self, seen: SparseInput, target: Target, order: NDArray[np.int64]) -> float:
        """Train on the sentences once, in that order, changing the weights; return the mean loss per sentence."""
        from chaffinch.kernels._linear import _crf_sgd, _decode, _passive_aggressive

        work = _decode.workspace(seen.longest, self.states)
        args = seen, target, order.astype(np.int32)
        if self.objective == "pa":
            learnt = _passive_aggressive.AveragedWeights(self.weights, self.totals)
            update = _passive_aggressive.Update(
                self.steps.aggressiveness, self.steps.augmented, self.steps.second, self.steps.moves, self.step
            )
            gap = _passive_aggressive.empty_gap(seen, self.states)
            loss = _passive_aggressive.pa_pass(*args, learnt, self.states, work, gap, update)
        else:
            rows, moves = (
                GradientSums(*arrays) for arrays in zip(self.weights, self.totals, self.squares, strict=True)
            )
            pace = Pace(np.float32(self.steps.rate), self.objective == "adagrad", np.float32(self.step))
            loss = _crf_sgd.crf_pass(*args, rows, moves, self.states, work, pace)
        self.step += len(order)
        return float(loss) / max(1, len(order))

    def average(self) -> Weights:
        """Return a copy: the mean of the weights after each sentence so far, or the weights before the first."""
        if self.step == 0:
            return Weights(self.weights.rows.copy(), self.weights.moves.copy())
        share = np.float32(1.0 / self.step)
        rows = self.totals.rows * -share
        rows += self.weights.rows
        return Weights(rows, self.weights.moves - share * self.totals.moves)

    def finish(self) -> Weights:
        """Return the weights' mean in the memory of the sums, which are lost (before any step: the weights themselves).

        Call `restart` before learning again.
        """
        if self.step:
            np.multiply(self.totals.rows, np.float32(-1.0 / self.step), out=self.totals.rows)
            self.totals.rows[:] += self.weights.rows
            return Weights(self.totals.rows, self.weights.moves - np.float32(1.0 / self.step) * self.totals.moves)
        return self.weights


def sum_by_type(seen: SparseInput, weights: Weights, states: States) -> Singles:
    """Return the scores of each type at each offset (V * 5 * W,), which `decode` and `batch` can share."""
    from chaffinch.kernels._linear import _decode

    return _decode.sum_by_type(seen, weights, states)


def decode(seen: SparseInput, weights: Weights, states: States, *, by_type: Singles | None = None) -> Places:
    """Return the best state of every token (N,), by Viterbi in each sentence; 0 at pads.

    `by_type` is what `sum_by_type` returned, if it was called before.
    """
    from chaffinch.kernels._linear import _decode

    out = np.zeros(len(seen.types), np.int32)
    blocks = _decode.sum_by_type(seen, weights, states) if by_type is None else by_type
    _decode.decode(seen, blocks, weights, states, _decode.workspace(seen.longest, states), out)
    return out


def scores(seen: SparseInput, weights: Weights, states: States, *, by_type: Singles | None = None) -> Singles:
    """Return each token's score of each state (M, W), without moves and pads; columns from K on are no states.

    Where states share columns, the shared columns' scores are in those of the states as well.
    """
    from chaffinch.kernels._linear import _decode

    out = np.empty(int((seen.ends - seen.begins).sum()) * states.W, np.float32)
    blocks = _decode.sum_by_type(seen, weights, states) if by_type is None else by_type
    _decode.all_scores(seen, blocks, weights, states, _decode.workspace(seen.longest, states), out)
    return out.reshape(-1, states.W)


def add_gradient(seen: SparseInput, score_gradient: Singles, states: States, out: Singles) -> None:
    """Add the gradient of all weights to out (R * W,), given the gradient of all scores (M, W): `scores` backwards.

    No two states may share a column.
    """
    from chaffinch.kernels._linear import _decode

    blocks = np.zeros((len(seen.lists) - 1) * (2 * _decode.REACH + 1) * states.W, np.float32)
    _decode.add_gradient(seen, np.ascontiguousarray(score_gradient).reshape(-1), states, blocks, out)


def batch(
    seen: SparseInput, weights: Weights, states: States, *, scale: float = 1.0, by_type: Singles | None = None
) -> Batch:
    """Return the sentences as one batch of lattices (float64), with log-potentials multiplied by `scale`."""
    K, W = states.K, states.W
    lengths = (seen.ends - seen.begins).astype(np.int64)
    emit = scores(seen, weights, states, by_type=by_type)[:, :K].astype(np.float64)
    if scale != 1.0:
        emit *= scale
    moves = weights.moves.reshape(K + 2, W)[:, :K].astype(np.float64) * scale
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    return Batch(moves[K], moves[:K], emit, moves[K + 1], bounds)
