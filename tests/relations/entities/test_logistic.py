"""Regression against finite differences and scikit-free oracles; folds that never share a document."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from chaffinch.errors import ConfigError
from chaffinch.kernels.lattice import Bools, Floats
from chaffinch.relations.entities import logistic as fitting
from chaffinch.relations.evaluate import ranking

N, F = 40, 6


def problem(seed: int = 0) -> tuple[Floats, Bools]:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(N, F))
    right = rows[:, 0] + 0.5 * rng.normal(size=N) > 0.4
    return rows, right


def loss(theta: Floats, rows: Floats, right: Bools, strength: float) -> float:
    """The loss as it is written down, one candidate after the other."""
    total = 0.0
    for x, y in zip(rows, right, strict=True):
        cost = N / (2 * (right.sum() if y else (~right).sum())) / N * N
        score = x @ theta[:-1] + theta[-1]
        total += strength * cost * np.log1p(np.exp(-score if y else score))
    return float(total + 0.5 * theta[:-1] @ theta[:-1])


def test_no_step_lowers_the_loss_further() -> None:
    rows, right = problem()
    found = fitting.fit(csr_matrix(rows), right, strength=2.0, tolerance=1e-8)
    theta = np.append(found.values, found.bias)
    slope = [
        (loss(theta + step, rows, right, 2.0) - loss(theta - step, rows, right, 2.0)) / 2e-5
        for step in np.eye(F + 1) * 1e-5
    ]
    np.testing.assert_allclose(slope, 0.0, rtol=0, atol=1e-4)


def test_a_general_library_finds_the_same_weights() -> None:
    rows, right = problem(1)
    found = fitting.fit(csr_matrix(rows), right, strength=0.7, tolerance=1e-8)
    other = minimize(loss, np.zeros(F + 1), args=(rows, right, 0.7), method="BFGS", options={"gtol": 1e-7}).x
    np.testing.assert_allclose(np.append(found.values, found.bias), other, rtol=0, atol=1e-4)


def test_a_start_changes_nothing_but_time() -> None:
    rows, right = problem(2)
    cold = fitting.fit(csr_matrix(rows), right, strength=3.0, tolerance=1e-9)
    warm = fitting.fit(
        csr_matrix(rows), right, strength=3.0, tolerance=1e-9, start=fitting.LogisticWeights(np.ones(F), -1.0)
    )
    np.testing.assert_allclose(cold.values, warm.values, rtol=0, atol=1e-6)


@given(st.lists(st.sampled_from("abcdefgh"), min_size=2, max_size=40), st.integers(2, 5), st.integers(0, 9))
def test_folds_never_share_a_group(groups: list[str], count: int, seed: int) -> None:
    found = fitting.folds(groups, count, seed=seed)
    for name in set(groups):
        assert len({int(fold) for fold, own in zip(found, groups, strict=True) if own == name}) == 1
    assert set(found.tolist()) <= set(range(count))


def test_held_out_scores_come_from_models_that_saw_other_folds_only() -> None:
    rows, right = problem(3)
    fold = np.arange(N) % 4
    (found,) = fitting.held_out(csr_matrix(rows), right, fold, [1.0])
    weights = fitting.fit(csr_matrix(rows[fold != 2]), right[fold != 2], strength=1.0)
    np.testing.assert_allclose(found[fold == 2], rows[fold == 2] @ weights.values + weights.bias, rtol=0, atol=1e-12)


def test_calibration_recovers_a_known_scale() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(scale=2.0, size=20_000)
    right = rng.random(20_000) < 1 / (1 + np.exp(-(0.5 * scores - 1.0)))
    found = fitting.calibrate(scores, right)
    assert found.slope == pytest.approx(0.5, abs=0.03)
    assert found.offset == pytest.approx(-1.0, abs=0.05)


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=30))
def test_auc_is_the_share_of_pairs_in_order(given_: list[tuple[int, bool]]) -> None:
    scores, right = np.array([float(s) for s, _ in given_]), np.array([r for _, r in given_])
    pairs = [(a > b) + 0.5 * (a == b) for a in scores[right] for b in scores[~right]]
    assert ranking.auc(scores, right) == pytest.approx(np.mean(pairs) if pairs else 0.5)


def test_thresholds_by_hand() -> None:
    scores, right = np.array([0.9, 0.8, 0.7, 0.6, 0.5]), np.array([True, True, False, True, False])
    assert ranking.best_threshold(scores, right) == pytest.approx(0.55)  # 3 of 4: precision .75, recall 1
    assert ranking.threshold_for(scores, right, 1.0) == 0.8
    assert ranking.threshold_for(scores, right, 0.7) == 0.6
    with pytest.raises(ConfigError, match=r"the best is 0\.50"):
        ranking.threshold_for(np.array([0.9, 0.8]), np.array([False, True]), 0.9)
