"""The class HMM without local normalisation: a conditional random field over its states, and its likelihood.

M tokens, R weight rows, Y states, C classes. The words are not generated, so features may include their context. The
effective weights of a state are those of the state plus those of its class.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from chaffinch.kernels import Active, Batch, Floats, Ints, forward_backward, linear
from chaffinch.kernels.linear import SparseInput, States, Weights


@dataclass(frozen=True, slots=True, eq=False)
class Conditional:
    """log P(classes | words) minus the penalty, as a function of all weights.

    Those of states come first, with the moves below the rows, then those of classes, likewise.
    """

    seen: SparseInput
    states: States
    class_of: Ints  # (Y,)
    active: Active  # the states each token may take
    logs: Floats | None  # the log weight of each cell, if labels are weighted
    penalty: Floats  # (R + Y + 2,) times the square of each row
    shared: bool  # weights of classes besides those of each state
    height: int = field(init=False)  # R
    cells: tuple[Ints, Ints] = field(init=False)  # the token and the state of each cell

    def __post_init__(self) -> None:
        """Derive the number of rows of features, and the token and state of each cell."""
        object.__setattr__(self, "height", len(self.penalty) - self.states.K - 2)
        tokens = np.repeat(np.arange(len(self.active.which)), self.active.widths)
        object.__setattr__(self, "cells", (tokens, self.active.cells))

    @property
    def classes(self) -> list[tuple[int, int]]:
        """Return (first state, end) of each class; [] if states of a class share no weights."""
        edges = np.flatnonzero(np.diff(self.class_of, prepend=-1, append=-1))
        return list(pairwise(edges.tolist())) if self.shared else []

    def blocks(self, x: Floats) -> tuple[Floats, Floats]:
        """Return `x` as two views: weights of states (R + Y + 2, Y), and of classes (R + Y + 2, C)."""
        height = len(self.penalty)
        by_state, by_class = np.split(x, [height * self.states.K])
        return by_state.reshape(height, -1), by_class.reshape(height, len(self.classes))

    @property
    def size(self) -> int:
        """Return the number of weights."""
        return len(self.penalty) * (self.states.K + len(self.classes))

    def weights(self, x: Floats) -> Weights:
        """Return each state's weights, its class's added, in the layout of a linear chain."""
        Y, W, R = self.states.K, self.states.W, self.height
        by_state, by_class = self.blocks(x)
        rows = np.zeros((R + Y + 2, W), np.float32)
        rows[:, :Y] = by_state
        for klass, (first, end) in enumerate(self.classes):
            rows[:, first:end] += by_class[:, klass, None]
        moves = self.states.moves.reshape(Y + 2, W) + rows[R:]
        return Weights(rows[:R].reshape(-1), moves.reshape(-1))

    def __call__(self, x: Floats) -> tuple[float, Floats]:
        """Return (conditional log-likelihood less the L2 penalty, its gradient) at the weights."""
        Y, W, R = self.states.K, self.states.W, self.height
        batch = linear.batch(self.seen, self.weights(x), self.states)
        tokens, cells = self.cells
        emit = batch.emit[tokens, cells]
        if self.logs is not None:
            emit += self.logs
        known = Batch(batch.start, batch.trans, emit, batch.end, batch.bounds, self.active)
        clamped, free = forward_backward(known), forward_backward(batch)
        of_scores = np.zeros((len(batch.emit), W), np.float32)
        of_scores[:, :Y] = -free.states
        of_scores[tokens, cells] += clamped.states
        slope = np.zeros((R + Y + 2, W), np.float32)
        linear.add_gradient(self.seen, of_scores, self.states, slope[:R].reshape(-1))
        slope[R : R + Y, :Y] = clamped.pairs - free.pairs
        slope[R + Y, :Y] = of_scores[batch.bounds[:-1], :Y].sum(axis=0)
        slope[R + Y + 1, :Y] = of_scores[batch.bounds[1:] - 1, :Y].sum(axis=0)
        value, out = float(clamped.log_z.sum() - free.log_z.sum()), np.empty_like(x)
        for block, pull in zip(self.blocks(x), self.blocks(out), strict=True):
            np.multiply(block, -2.0 * self.penalty[:, None], out=pull)
            value += 0.5 * float(pull.reshape(-1) @ block.reshape(-1))
        by_state, by_class = self.blocks(out)
        by_state += slope[:, :Y]
        for klass, (first, end) in enumerate(self.classes):
            by_class[:, klass] += slope[:, first:end].sum(axis=1)
        return value, out
