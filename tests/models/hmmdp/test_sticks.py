"""Sticks against Monte Carlo, quadrature, finite differences and a restaurant whose tables are counted exactly."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import gammaln

from chaffinch.kernels import Floats
from chaffinch.models.hmmdp import sticks as stick
from chaffinch.models.hmmdp.sticks import Sticks

A, B = np.array([2.0, 0.7, 5.0]), np.array([3.0, 1.5, 0.9])


def broken(v: Floats) -> Floats:
    """(..., K) the pieces of sticks broken at v (..., K-1)."""
    left = np.cumprod(1.0 - v, axis=-1)
    ones = np.ones((*v.shape[:-1], 1))
    return np.asarray(np.concatenate([v, ones], axis=-1) * np.concatenate([ones, left], axis=-1))


def test_expected_pieces_agree_with_draws() -> None:
    rng = np.random.default_rng(0)
    pi = broken(rng.beta(A, B, size=(400_000, 3)))
    own = Sticks(A, B)
    np.testing.assert_allclose(own.mean_pi, pi.mean(axis=0), rtol=0, atol=0.002)
    np.testing.assert_allclose(own.log_pi, np.log(pi).mean(axis=0), rtol=0, atol=0.03)
    assert own.mean_pi.sum() == pytest.approx(1.0)


def test_a_point_is_what_it_says() -> None:
    v = np.array([0.3, 0.5])
    own = Sticks(v, v, point=True)
    np.testing.assert_allclose(own.mean_pi, [0.3, 0.35, 0.35], rtol=0, atol=1e-12)
    np.testing.assert_allclose(own.log_pi, np.log([0.3, 0.35, 0.35]), rtol=0, atol=1e-12)
    assert own.divergence(3.0) == pytest.approx(-stats.beta(1, 3.0).logpdf(v).sum())


def test_the_prior_of_sticks_and_of_no_stick() -> None:
    assert Sticks.start(4, 2.5).divergence(2.5) == pytest.approx(0.0, abs=1e-12)
    none = Sticks.start(1, 2.5)
    assert none.mean_pi.tolist() == [1.0]
    assert none.log_pi.tolist() == [0.0]
    rows = np.zeros((3, 1))
    for update in (stick.update_by_tables, stick.update_by_bound, stick.update_by_point):
        assert update(rows, none, 1.0, 2.0).mean_pi.tolist() == [1.0]


def test_divergence_agrees_with_quadrature() -> None:
    alpha, total = 1.7, 0.0
    for a, b in zip(A, B, strict=True):
        q, p = stats.beta(a, b), stats.beta(1.0, alpha)
        total += quad(lambda x, q=q, p=p: q.pdf(x) * (q.logpdf(x) - p.logpdf(x)), 0, 1, limit=200)[0]
    assert Sticks(A, B).divergence(alpha) == pytest.approx(total, abs=1e-5)


def test_the_surrogate_is_below_the_normaliser() -> None:
    rng = np.random.default_rng(1)
    for _ in range(2000):
        K, c = int(rng.integers(2, 30)), float(np.exp(rng.normal(0, 3)))
        a, b = np.exp(rng.normal(0, 1.5, 2)).tolist()
        v = np.clip(rng.beta(a, b, K - 1), 1e-6, 1 - 1e-6)
        pi = broken(v)
        exact = gammaln(c) - gammaln(c * pi).sum()
        assert exact >= (K - 1) * np.log(c) + np.log(pi).sum() - 1e-7 * abs(exact)
        assert stick.expected_log_normaliser(Sticks(v, v, point=True), c) == pytest.approx(exact)


def test_the_surrogate_in_expectation_is_below_draws() -> None:
    rng = np.random.default_rng(2)
    pi = broken(rng.beta(A, B, size=(100_000, 3)))
    for c in (0.3, 2.0, 40.0):
        exact = (gammaln(c) - gammaln(c * pi).sum(axis=1)).mean()
        own = stick.expected_log_normaliser(Sticks(A, B), c)
        assert own == pytest.approx(3 * np.log(c) + np.log(pi).sum(axis=1).mean(), abs=0.1)
        assert own < exact + 0.05


def worth_of_bound(own: Sticks, rows: Floats, alpha: float, alpha_t: float) -> float:
    """What W2 climbs, written out."""
    value = len(rows) * own.log_pi.sum() + alpha_t * (rows.sum(axis=0) * own.mean_pi).sum()
    return float(value - own.divergence(alpha))


def worth_of_point(own: Sticks, rows: Floats, alpha: float, alpha_t: float) -> float:
    """What W3 climbs, written out."""
    pi = broken(own.a)
    value = -len(rows) * gammaln(alpha_t * pi).sum() + alpha_t * (rows.sum(axis=0) * pi).sum()
    return float(value + stats.beta(1, alpha).logpdf(own.a).sum())


def drawn_rows(rng: np.random.Generator, K: int) -> Floats:
    """(R, K) logs of rows."""
    return np.log(rng.dirichlet(np.full(K, 0.5), size=int(rng.integers(1, 12))) + 1e-8)


def test_the_slope_of_the_surrogate_agrees_with_finite_differences() -> None:
    rng = np.random.default_rng(3)
    rows = drawn_rows(rng, 4)
    found = stick._surrogate_gradient(Sticks(A, B), len(rows), rows.sum(axis=0), 1.3, 2.2)
    both, step = np.concatenate([A, B]), 1e-5
    for place in range(6):
        up, down = both.copy(), both.copy()
        up[place] += step
        down[place] -= step
        high, low = (worth_of_bound(Sticks(x[:3], x[3:]), rows, 1.3, 2.2) for x in (up, down))
        assert found[place] == pytest.approx((high - low) / (2 * step), rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("seed", range(6))
def test_no_update_lowers_what_it_climbs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    K = int(rng.integers(2, 7))
    alpha, alpha_t = np.exp(rng.normal(0, 1, 2)).tolist()
    rows = drawn_rows(rng, K)
    a, b, v = np.exp(rng.normal(0, 1, K - 1)), np.exp(rng.normal(0, 1, K - 1)), rng.beta(2, 2, K - 1)
    beta, point = Sticks(a, b), Sticks(v, v, point=True)
    for _ in range(3):
        now = stick.update_by_bound(rows, beta, alpha, alpha_t)
        assert worth_of_bound(now, rows, alpha, alpha_t) >= worth_of_bound(beta, rows, alpha, alpha_t) - 1e-8
        here = stick.update_by_point(rows, point, alpha, alpha_t)
        assert worth_of_point(here, rows, alpha, alpha_t) >= worth_of_point(point, rows, alpha, alpha_t) - 1e-8
        beta, point = now, here
    for _ in range(20):  # what they end at is best nearby
        other = Sticks(beta.a * np.exp(0.3 * rng.normal(size=K - 1)), beta.b * np.exp(0.3 * rng.normal(size=K - 1)))
        assert worth_of_bound(other, rows, alpha, alpha_t) <= worth_of_bound(beta, rows, alpha, alpha_t) + 1e-3
        v = 1 / (1 + np.exp(-np.log(point.a / (1 - point.a)) - 0.3 * rng.normal(size=K - 1)))
        near = Sticks(v, v, point=True)
        assert worth_of_point(near, rows, alpha, alpha_t) <= worth_of_point(point, rows, alpha, alpha_t) + 1e-3


def tables(customers: int, concentration: float) -> float:
    """The expected number of tables, by the distribution over how many there are after each customer."""
    chances = np.zeros(customers + 1)
    chances[0] = 1.0
    for seated in range(customers):
        new = concentration / (concentration + seated)
        chances[1:] = chances[1:] * (1 - new) + chances[:-1] * new
        chances[0] *= 1 - new
    return float(np.arange(customers + 1) @ chances)


def test_tables_of_whole_counts_are_those_of_a_restaurant() -> None:
    counts = np.array([[3.0, 0.0, 1.0, 7.0], [0.0, 0.0, 12.0, 1.0]])
    before, alpha, alpha_t = Sticks(A, B), 1.4, 5.0
    g = alpha_t * np.exp(before.log_pi)
    expected = np.array([sum(tables(int(n), g[k]) for n in counts[:, k]) for k in range(4)])
    found = stick.update_by_tables(counts, before, alpha, alpha_t)
    np.testing.assert_allclose(found.a, 1.0 + expected[:3], rtol=0, atol=1e-9)
    np.testing.assert_allclose(
        found.b, alpha + np.array([expected[1:].sum(), expected[2:].sum(), expected[3]]), rtol=0, atol=1e-9
    )
    assert found.a[1] == 1.0  # nobody sat there
