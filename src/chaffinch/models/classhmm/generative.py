"""The class HMM whose emissions are logistic regressions over a word's features: likelihood and gradient.

M tokens, V different sets of features in the training text ("types"), F features, Y states, C classes. A state's
probability of a type is a softmax over all types; its weights are those of the state, plus those of its class, plus
those of all states, so that rare states share statistics. Moves (transitions) are normalised row by row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import logsumexp

from chaffinch.kernels import Active, Batch, Floats, Ints, forward_backward
from chaffinch.kernels.cells import add_rows, sum_rows
from chaffinch.kernels.lattice import Bools


class ClassLayout(NamedTuple):
    """The classes of states, and which state may follow which: row Y begins a sentence, column Y ends it."""

    class_of: Ints  # (Y,)
    moves: Bools  # (Y+1, Y+1)
    shared: bool  # weights of classes and of all states besides those of each state
    Y: int
    C: int

    @classmethod
    def of(cls, class_of: Ints, moves: Bools, *, shared: bool) -> ClassLayout:
        """Return the layout of states with these classes and allowed moves."""
        return cls(class_of, moves, shared, len(class_of), int(class_of.max()) + 1)

    @property
    def edge_class(self) -> Ints:
        """Return (Y+1,) the class of each state, and a separate class for the edge of a sentence."""
        return np.append(self.class_of, self.C)

    def spread(self, by_state: Floats, by_class: Floats) -> Floats:
        """Return (F, Y) weights of states, with those of their class and of all states (F, C+1) added if shared."""
        return by_state + by_class[:, self.class_of] + by_class[:, -1:] if self.shared else by_state

    def gather(self, slope: Floats) -> Floats:
        """Return (F, C+1) the gradient by class, and last of all states, summed from that of states (F, Y)."""
        out = np.zeros((len(slope), self.C + 1))
        for klass in range(self.C):
            out[:, klass] = slope[:, self.class_of == klass].sum(axis=1)
        out[:, -1] = slope.sum(axis=1)
        return out


class StateTables(NamedTuple):
    """The parameters of a chain: emission weights and transition log-probabilities."""

    weights: Floats  # (F, Y)
    log_z: Floats  # (Y,) the log of each softmax's denominator
    start: Floats  # (Y,)
    trans: Floats  # (Y, Y)
    end: Floats  # (Y,)

    @property
    def moves(self) -> Floats:
        """Return (Y+1, Y+1) all transitions: row Y begins a sentence, column Y ends it."""
        return np.block([[self.trans, self.end[:, None]], [self.start, np.array(-np.inf)]])


class Text(NamedTuple):
    """Sentences as rows of a matrix of types, with the states each token may take."""

    matrix: csr_array  # (V, F)
    rows: Ints  # (M,)
    bounds: Ints
    active: Active
    logs: Floats | None = None  # the log weight of each cell, if labels are weighted


@dataclass(frozen=True, slots=True, eq=False)
class Likelihood:
    """log P(words, classes) - weight * log P(words) - the penalty, as a function of all weights.

    A weight of 0 is the joint likelihood, 1 the conditional one of a chain that stays locally normalised.
    """

    text: Text
    transposed: csr_array  # (F, V)
    layout: ClassLayout
    weight: float
    penalty: Floats  # (F,) times the square of each feature's weights
    kappa: float  # the same for moves
    untagged: Text | None = None  # sentences without any label
    share: float = 1.0  # the weight of each of them; others have weight 1

    @property
    def sizes(self) -> tuple[int, ...]:
        """Return the sizes of the four blocks: features by state, by class; moves by state, by class."""
        F, Y, C = self.text.matrix.shape[1], self.layout.Y, self.layout.C
        more = (F * (C + 1), (C + 1) ** 2) if self.layout.shared else (0, 0)
        return F * Y, more[0], (Y + 1) ** 2, more[1]

    def blocks(self, x: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return all weights as four views: features by state and by class, moves by state and by class."""
        Y, C = self.layout.Y, self.layout.C
        state, by_class, moves, by_pair = np.split(x, np.cumsum(self.sizes)[:-1])
        edge = C + 1 if self.layout.shared else 0
        shapes = state.reshape(-1, Y), by_class.reshape(-1, C + 1), moves.reshape(Y + 1, Y + 1)
        return *shapes, by_pair.reshape(edge, edge)

    def tables(self, x: Floats) -> tuple[StateTables, Floats]:
        """Return the normalised tables of these weights, and the log-probabilities of all types (V, Y)."""
        state, by_class, moves, by_pair = self.blocks(x)
        weights = self.layout.spread(state, by_class)
        logits = np.asarray(self.text.matrix @ weights)
        log_z = np.asarray(logsumexp(logits, axis=0))
        a = self._moves(moves, by_pair)
        Y = self.layout.Y
        tables = StateTables(weights, log_z, *(np.ascontiguousarray(part) for part in (a[Y, :Y], a[:Y, :Y], a[:Y, Y])))
        logits -= log_z
        return tables, logits

    def _moves(self, moves: Floats, by_pair: Floats) -> Floats:
        """Return (Y+1, Y+1) transition log-probabilities by row; impossible ones are -inf, the last row begins."""
        edge = self.layout.edge_class
        logits = moves + by_pair[np.ix_(edge, edge)] if self.layout.shared else moves
        logits = np.where(self.layout.moves, logits, -np.inf)
        return np.asarray(logits - logsumexp(logits, axis=1, keepdims=True))

    def __call__(self, x: Floats) -> tuple[float, Floats]:
        """Return the log-likelihood at the weights, less the penalty, and its gradient."""
        tables, log_b = self.tables(x)
        value, counts, steps = self.counts(tables, log_b)
        return self.subtract_penalty(x, value, self._slope(tables, log_b, counts, steps))

    def _slope(self, tables: StateTables, log_b: Floats, counts: Floats, steps: Floats) -> tuple[Floats, Floats]:
        """Return the gradient of features (F, Y) and moves (Y+1, Y+1) by state, given expected counts."""
        slope = np.asarray(self.transposed @ (counts - counts.sum(axis=0) * np.exp(log_b)))
        return slope, steps - steps.sum(axis=1, keepdims=True) * np.exp(tables.moves)

    def subtract_penalty(self, x: Floats, value: float, slopes: tuple[Floats, Floats]) -> tuple[float, Floats]:
        """Return the value less the penalty, and the gradient of all weights, from `slopes` (features, moves)."""
        features, moves = slopes
        edge = np.eye(self.layout.C + 1)[self.layout.edge_class]
        parts = [features, self.layout.gather(features), moves, edge.T @ moves @ edge]
        by_feature, by_move = self.penalty[:, None], np.array(self.kappa)
        out = []
        for block, slope, penalty in zip(
            self.blocks(x), parts, (by_feature, by_feature, by_move, by_move), strict=True
        ):
            if block.size:
                value -= float((penalty * block**2).sum())
                out.append((slope - 2.0 * penalty * block).ravel())
        return value, np.concatenate(out)

    def counts(self, tables: StateTables, log_b: Floats) -> tuple[float, Floats, Floats]:
        """Return the log-likelihood, expected types of each state (V, Y), and expected moves (Y+1, Y+1)."""
        Y = self.layout.Y
        value, counts, steps = 0.0, np.zeros_like(log_b), np.zeros((Y + 1, Y + 1))
        for text, share in ((self.text, 1.0), (self.untagged, self.share)):
            if text is None:
                continue
            emit = np.zeros(int(text.active.at[-1]))
            add_rows(text.active, text.rows, log_b, emit)
            if text.logs is not None:
                emit += text.logs
            clamped = Batch(tables.start, tables.trans, emit, tables.end, text.bounds, text.active)
            value += share * _add(clamped, text.rows, share, counts, steps)
            if self.weight:
                free = Batch(tables.start, tables.trans, log_b[text.rows], tables.end, text.bounds)
                weight = share * self.weight
                value -= weight * _add(free, text.rows, -weight, counts, steps)
        return value, counts, steps


def _add(batch: Batch, rows: Ints, sign: float, counts: Floats, steps: Floats) -> float:
    """Add expected types to `counts`, moves and edges to `steps`, all times `sign`; return the log-probability."""
    post, Y = forward_backward(batch), len(batch.start)
    active = batch.active or Active.of([np.arange(Y)], np.zeros(len(rows), np.int64))
    states = post.states.reshape(-1)
    sum_rows(active, rows, sign * states, counts)
    filled = np.diff(batch.bounds) > 0
    for edge, tokens in ((0, batch.bounds[:-1][filled]), (1, batch.bounds[1:][filled] - 1)):
        widths = active.widths[tokens]
        cells = np.repeat(active.at[tokens] - np.cumsum(widths) + widths, widths) + np.arange(widths.sum())
        total = sign * np.bincount(active.cells[cells], states[cells], Y)
        if edge:
            steps[:Y, Y] += total
        else:
            steps[Y, :Y] += total
    steps[:Y, :Y] += sign * post.pairs
    return float(post.log_z.sum())


@dataclass(frozen=True, slots=True, eq=False)
class MStepObjective:
    """The objective of an M-step: the joint likelihood with expected counts fixed at some weights."""

    whole: Likelihood
    counts: Floats  # (V, Y) expected types
    steps: Floats  # (Y+1, Y+1) expected moves

    @classmethod
    def at(cls, whole: Likelihood, x: Floats) -> MStepObjective:
        """Run the E-step at those weights; return the objective of the M-step, which keeps the expected counts."""
        _, counts, steps = whole.counts(*whole.tables(x))
        return cls(whole, counts, steps)

    def __call__(self, x: Floats) -> tuple[float, Floats]:
        """Return the expected log-likelihood less the penalty, up to a constant, and its gradient."""
        tables, log_b = self.whole.tables(x)
        moves = np.where(self.steps > 0, tables.moves, 0.0)
        value = float((self.counts * log_b).sum() + (self.steps * moves).sum())
        return self.whole.subtract_penalty(x, value, self.whole._slope(tables, log_b, self.counts, self.steps))


def log_emissions(matrix: csr_array, known: Bools, tables: StateTables) -> Floats:
    """Return (V, Y) log-probabilities of types by state; an unknown type joins the denominator of its softmax."""
    logits = np.asarray(matrix @ tables.weights)
    return np.asarray(logits - np.where(known[:, None], tables.log_z, np.logaddexp(tables.log_z, logits)))
