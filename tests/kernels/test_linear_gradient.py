"""Gradient steps of linear chains against central differences of a likelihood summed over listed labellings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings

from chaffinch.kernels.lattice import Floats
from chaffinch.kernels.linear import Target
from tests.kernels import linear_oracle as oracle
from tests.kernels.linear_oracle import Case, Cell, build, cases, same

FEW = settings(max_examples=25)


def likelihood_gradient(case: Case, s: int) -> dict[Cell, float]:
    """Central differences of log P(what is known), every labelling listed.

    Where the model chooses, log P is a difference of two sums over labellings; else the known distribution is fixed.
    """
    every, cells, shown = oracle.table(case, s)
    start = np.array([oracle.weight(case.weights, case.states, cell) for cell in cells])
    chances = case.chances(s)
    share = np.array([chances.get(path, 0.0) for path in every])
    inner = case.target.which[case.seen.begins[s] : case.seen.ends[s]]
    chooses = len(case.target.free) > 0 and bool(case.target.free[inner].any())

    def log_likelihood(weights: Floats) -> float:
        score = shown @ weights
        log_z = np.logaddexp.reduce(score)
        return float((np.logaddexp.reduce(score[share > 0]) if chooses else share @ score) - log_z)

    steps = 1e-5 * np.eye(len(cells))
    return {
        cell: (log_likelihood(start + step) - log_likelihood(start - step)) / 2e-5
        for cell, step in zip(cells, steps, strict=True)
    }


def assume_no_token_is_left_alone(case: Case, s: int) -> None:
    """The kernel skips tokens whose gradient is below 0.003; none of these here."""
    every, _, _ = oracle.table(case, s)
    start = np.array(
        [oracle.score(case.weights, case.states, oracle.features(case.seen, case.states, s, p)) for p in every]
    )
    model = np.exp(start - np.logaddexp.reduce(start))
    known = case.chances(s)
    for t in range(len(every[0])):
        gap = [
            sum((known.get(p, 0.0) - m) for p, m in zip(every, model, strict=True) if p[t] == x)
            for x in range(case.states.K)
        ]
        assume(not 1e-5 < max(map(abs, gap)) < 0.005)


@given(cases(sentences=2))
@FEW
def test_one_gradient_step_from_known_labels_is_the_slope_of_the_likelihood(case: Case) -> None:
    s, learner = len(case.seen.begins) - 1, case.learner("crf", rate=0.5)
    assume_no_token_is_left_alone(case, s)
    loss = learner.walk(case.seen, case.target, np.array([s]))
    change = {cell: 0.5 * slope for cell, slope in likelihood_gradient(case, s).items()}
    same(learner.weights, oracle.as_arrays(case, change), atol=5e-5)
    every, _, _ = oracle.table(case, s)
    scores = {p: oracle.score(case.weights, case.states, oracle.features(case.seen, case.states, s, p)) for p in every}
    assert loss == pytest.approx(np.logaddexp.reduce(list(scores.values())) - scores[case.gold(s)], abs=1e-4)


@given(cases(soft=True, sentences=2))
@FEW
def test_one_gradient_step_from_soft_rows_is_the_slope_of_the_likelihood(case: Case) -> None:
    s, learner = len(case.seen.begins) - 1, case.learner("crf", rate=0.5)
    assume_no_token_is_left_alone(case, s)
    learner.walk(case.seen, case.target, np.array([s]))
    change = {cell: 0.5 * slope for cell, slope in likelihood_gradient(case, s).items()}
    same(learner.weights, oracle.as_arrays(case, change), atol=5e-5)


def test_the_loss_of_partly_known_sentences_is_minus_the_log_of_their_probability() -> None:
    case = build(np.random.default_rng(8), 3, [3])
    begin = int(case.seen.begins[0])
    gold, rows = case.target.gold.copy(), np.zeros((1, case.states.W), np.float32)
    gold[begin + 1], rows[0, : case.states.K] = -1, 1.0
    target = Target(gold, np.zeros(len(gold), np.int32), rows, np.ones(1, np.bool_))
    every, _, _ = oracle.table(case, 0)
    score = {p: oracle.score(case.weights, case.states, oracle.features(case.seen, case.states, 0, p)) for p in every}
    fits = [score[p] for p in every if p[0] == gold[begin] and p[2] == gold[begin + 2]]
    wanted = np.logaddexp.reduce(list(score.values())) - np.logaddexp.reduce(fits)
    assert case.learner("crf").walk(case.seen, target, np.array([0])) == pytest.approx(wanted, abs=1e-4)
