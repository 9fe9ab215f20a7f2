"""Adaptive gradient steps with latent states, against the same steps taken slowly: every labelling listed, slopes by
central differences, averages by keeping the weights after every sentence.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from chaffinch.kernels._linear._crf_sgd import CALM, SMALL, TINY
from chaffinch.kernels.lattice import Floats
from chaffinch.kernels.linear import SparseInput, States, Target, Weights
from tests.kernels import linear_oracle as oracle
from tests.kernels.linear_oracle import Case, Route, build

DIFFERENCE = 1e-4


def latent(rng: np.random.Generator, lengths: list[int], *, weighed: bool = False) -> Case:
    """A random case of 4 states with 2 tags; each token knows its tag, both are open, or both are weighed."""
    case = build(rng, 4, lengths)
    tag_of = np.array([0, 0, 1, 1])
    N, W, K = len(case.target.gold), case.states.W, case.states.K
    rows = np.zeros((N, W), np.float32)
    for n in range(N):
        known = tag_of == tag_of[case.target.gold[n]]
        if rng.random() < 0.3:
            known[:] = True
        rows[n, :K] = known * (rng.uniform(0.1, 1.0, 2)[tag_of] if weighed else 1.0)
    gold, which = np.full(N, -1, np.int32), np.arange(N, dtype=np.int32)
    return Case(case.seen, case.states, case.weights, Target(gold, which, rows, np.ones(N, np.bool_)))


class Slow:
    """The learner again, in double precision and with nothing shared."""

    def __init__(self, case: Case, rate: float) -> None:
        self.case, self.rate, W = case, rate, case.states.W
        self.rows, self.moves = case.weights.rows.astype(float).reshape(-1, W), case.weights.moves.astype(float)
        self.moves = self.moves.reshape(-1, W)
        self.squares = np.zeros_like(self.rows), np.zeros_like(self.moves)
        self.kept: list[tuple[Floats, Floats]] = []

    def scores(self, s: int) -> Floats:
        """(T, K) what the rows say."""
        T, K = int(self.case.seen.ends[s] - self.case.seen.begins[s]), self.case.states.K
        return np.array([self.rows[oracle.spoken(self.case.seen, s, t), :K].sum(axis=0) for t in range(T)])

    def log_chance(self, s: int, scores: Floats, moves: Floats) -> float:
        """Log Z of the labellings that agree with what is known, each by its weight, less log Z of all."""
        every = oracle.routes(self.case.seen, self.case.states, s)
        begin, target = int(self.case.seen.begins[s]), self.case.target
        total = np.array([_score(path, scores, moves, self.case.states.K) for path in every])
        shares = target.weights[target.which[begin : begin + len(scores)]].astype(float)
        share = np.array([math.prod(shares[t, x] for t, x in enumerate(path)) for path in every])
        known = share > 0
        return float(np.logaddexp.reduce(total[known] + np.log(share[known])) - np.logaddexp.reduce(total))

    def slopes(self, s: int) -> tuple[Floats, Floats]:
        """(T, K) and (K+2, K) by how much the log-chance rises with each score and each move."""
        scores, moves = self.scores(s), self.moves[:, : self.case.states.K]
        found = np.zeros_like(scores), np.zeros_like(moves)
        for table, out in zip((scores, moves), found, strict=True):
            for cell in zip(*np.nonzero(table > -np.inf), strict=True):
                before, sides = table[cell], []
                for step in (DIFFERENCE, -DIFFERENCE):
                    table[cell] = before + step
                    sides.append(self.log_chance(s, scores, moves))
                table[cell] = before
                out[cell] = (sides[0] - sides[1]) / (2 * DIFFERENCE)
        return found

    def walk(self, order: list[int]) -> None:
        for s in order:
            by_token, by_move = self.slopes(s)
            for cell in zip(*np.nonzero(abs(by_move) > TINY), strict=True):
                self.step(1, cell, by_move[cell])
            for t, row in _spoken_in_order(self.case.seen, s):
                if abs(by_token[t]).max() > SMALL:
                    for x, slope in enumerate(by_token[t]):
                        self.step(0, (row, x), slope)
            self.kept.append((self.rows.copy(), self.moves.copy()))

    def step(self, table: int, cell: tuple[int, int], slope: float) -> None:
        self.squares[table][cell] += slope * slope
        (self.rows, self.moves)[table][cell] += self.rate * slope / math.sqrt(self.squares[table][cell] + CALM)


def _score(path: Route, scores: Floats, moves: Floats, K: int) -> float:
    steps = [moves[a, b] for a, b in zip((K, *path), path, strict=False)]
    return float(sum(steps) + moves[K + 1, path[-1]] + sum(scores[t, x] for t, x in enumerate(path)))


def _spoken_in_order(seen: SparseInput, s: int) -> list[tuple[int, int]]:
    """Tokens and the rows that speak for them, by where the feature stands: a row moves once for each of its tokens."""
    begin, T = int(seen.begins[s]), int(seen.ends[s] - seen.begins[s])
    found = []
    for j in range(-1, T + 1):
        v = int(seen.types[begin + j])
        here = [
            (int(seen.rows[q]), int(seen.first[q]), int(seen.width[q])) for q in range(seen.lists[v], seen.lists[v + 1])
        ]
        for c in range(seen.columns.shape[1]) if j < T else ():
            if seen.columns[begin + j, c] >= 0:
                here.append((int(seen.columns[begin + j, c]), int(seen.column_first[c]), int(seen.column_width[c])))
        for row, first, width in here:
            found += [(j - first - k, row + k) for k in range(width) if 0 <= j - first - k < T]
    return found


def close(found: Weights, rows: Floats, moves: Floats, states: States) -> None:
    K, W = states.K, states.W
    np.testing.assert_allclose(found.rows.reshape(-1, W)[:, :K], rows[:, :K], rtol=0, atol=3e-5)
    np.testing.assert_allclose(found.moves.reshape(-1, W)[:, :K], moves[:, :K], rtol=0, atol=3e-5)


@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_steps_and_averages_are_those_of_the_slow_learner(seed: int, weighed: bool) -> None:
    case = latent(np.random.default_rng(seed), [3, 1, 4], weighed=weighed)
    quick, slow = case.learner("adagrad", rate=0.6), Slow(case, 0.6)
    for order in ([2, 0, 1], [1, 2, 0]):
        quick.walk(case.seen, case.target, np.array(order))
        slow.walk(order)
        close(quick.weights, slow.rows, slow.moves, case.states)
        means = [np.mean([kept[table] for kept in slow.kept], axis=0) for table in (0, 1)]
        close(quick.average(), means[0], means[1], case.states)
    close(quick.finish(), means[0], means[1], case.states)
    assert abs(slow.rows - case.weights.rows.reshape(slow.rows.shape)).max() > 0.1  # something was learnt


def test_the_listed_rows_are_those_that_speak() -> None:
    case = latent(np.random.default_rng(3), [4, 1])
    for s, T in enumerate((4, 1)):
        listed = _spoken_in_order(case.seen, s)
        for t in range(T):
            assert sorted(row for at, row in listed if at == t) == sorted(oracle.spoken(case.seen, s, t))


def _known_share(weights: Weights, case: Case) -> list[float]:
    slow = Slow(Case(case.seen, case.states, weights, case.target), 0.0)
    return [slow.log_chance(s, slow.scores(s), slow.moves) for s in range(len(case.seen.begins))]


@pytest.mark.parametrize("seed", range(4))
def test_the_likelihood_of_what_is_known_rises(seed: int) -> None:
    case = latent(np.random.default_rng(seed), [3, 2, 4])
    learner = case.learner("adagrad", rate=0.3)
    start = -float(np.mean(_known_share(case.weights, case)))
    losses = [learner.walk(case.seen, case.target, np.arange(3)) for _ in range(8)]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.8 * losses[0] < start
    assert -np.mean(_known_share(learner.weights, case)) < losses[-1]


def test_the_loss_is_minus_the_log_chance_of_what_is_known() -> None:
    case = latent(np.random.default_rng(5), [4], weighed=True)
    wanted = -_known_share(case.weights, case)[0]
    assert case.learner("adagrad").walk(case.seen, case.target, np.array([0])) == pytest.approx(wanted, abs=1e-5)


def test_a_weight_moves_less_the_more_it_has_moved() -> None:
    seen, states, target = oracle.toy(T=1, sentences=1)
    rows = np.zeros(2 * states.W, np.float32)
    case = Case(seen, states, Weights(rows, states.moves.copy()), target)
    learner, before, steps = case.learner("adagrad", rate=0.5), 0.0, []
    for _ in range(3):
        learner.walk(seen, target, np.array([0]))
        cell = int(target.gold[1]) * states.W + int(target.gold[1])
        steps.append(float(learner.weights.rows[cell]) - before)
        before = float(learner.weights.rows[cell])
    # Three weights say the same of the only token: its row, and the moves in and out. P(right) begins at 1/2.
    square, weights, wanted = 0.0, 0.0, []
    for _ in range(3):
        slope = 1.0 - 1.0 / (1.0 + math.exp(-6.0 * weights))
        square += slope * slope
        wanted.append(0.5 * slope / math.sqrt(square + CALM))
        weights += wanted[-1]
    np.testing.assert_allclose(steps, wanted, rtol=0, atol=1e-6)


@pytest.mark.parametrize("calm", [True, False])
def test_tokens_and_moves_with_hardly_a_slope_stay_as_they_are(calm: bool) -> None:
    seen, states, target = oracle.toy(T=1, sentences=1)
    right, W = int(target.gold[1]), states.W
    rows: NDArray[np.float32] = np.zeros(2 * W, np.float32)
    rows[right * W + right] = math.log(1 / SMALL) + (0.1 if calm else -0.1)  # P(wrong) is just below, or above, SMALL
    case = Case(seen, states, Weights(rows, states.moves.copy()), target)
    learner = case.learner("adagrad", rate=0.5)
    learner.walk(seen, target, np.array([0]))
    assert (learner.weights.rows == rows).all() == calm
    assert learner.weights.moves[2 * W + right] > 0  # above TINY
