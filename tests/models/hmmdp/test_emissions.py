"""Emissions against Monte Carlo, scipy's Dirichlet, and sums written out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import digamma

from chaffinch.kernels import Active, Floats
from chaffinch.models.hmmdp.emissions import SWITCH, BackOff, Emissions, Tables

Z = 3


def drawn(rng: np.random.Generator, *sizes: int) -> Tables:
    """Whole and broken counts, many of them 0."""
    return tuple(rng.gamma(1.0, size=(V, Z)) * rng.integers(0, 3, (V, Z)) for V in sizes)


def direct(q: Floats, prior: float) -> float:
    """KL(Dir(q) || Dir(prior)) summed over columns: minus the entropy, minus the expected log density of the prior."""
    total = 0.0
    for column in q.T:
        logs = digamma(column) - digamma(column.sum())
        log_prior = math.lgamma(len(column) * prior) - len(column) * math.lgamma(prior) + (prior - 1) * logs.sum()
        total += -stats.dirichlet(column).entropy() - log_prior
    return float(total)


@pytest.mark.parametrize("temper", [1.0, 0.3])
def test_divergence_agrees_with_the_direct_formula(temper: float) -> None:
    emissions = Emissions((5, 4), 0.2, temper=temper)
    q = emissions.posterior(drawn(np.random.default_rng(0), 5, 4))
    expected = sum(direct(own, 0.2 * temper) for own in q)
    assert emissions.divergence(q) == pytest.approx(expected, rel=1e-9)
    none = emissions.posterior(tuple(np.zeros((V, Z)) for V in (5, 4)))
    assert emissions.divergence(none) == pytest.approx(0.0, abs=1e-9)


def test_logs_are_expected_logs() -> None:
    rng = np.random.default_rng(1)
    emissions = Emissions((4,), 0.8)
    q = emissions.posterior(drawn(rng, 4))
    for state in range(Z):
        draws = np.log(rng.dirichlet(q[0][:, state], size=200_000)).mean(axis=0)
        np.testing.assert_allclose(emissions.logs(q)[0][:, state], draws, rtol=0, atol=0.03)
    np.testing.assert_allclose(np.exp(emissions.log_means(q)[0]).sum(axis=0), 1.0, rtol=0, atol=1e-12)


@pytest.mark.parametrize("temper", [1.0, 0.3])
def test_the_posterior_is_best_for_tempered_counts(temper: float) -> None:
    """It climbs the expected tempered log likelihood less the divergence."""
    rng = np.random.default_rng(2)
    emissions = Emissions((5,), 0.3, temper=temper)
    counts = drawn(rng, 5)

    def worth(q: Tables) -> float:
        return float((counts[0] * emissions.logs(q)[0]).sum()) - emissions.divergence(q)

    best = emissions.posterior(counts)
    for _ in range(20):
        assert worth((best[0] * np.exp(0.1 * rng.normal(size=(5, Z))),)) < worth(best)


def test_a_tempered_product_of_kinds() -> None:
    rng = np.random.default_rng(3)
    emissions = Emissions((5, 4), 0.3, temper=0.4)
    q = emissions.posterior(drawn(rng, 5, 4))
    logs, known = emissions.logs(q), np.array([[0, 3], [4, 1]])
    active, token, state = Active.of([[0, 2], [1]]), np.array([0, 0, 1]), np.array([0, 2, 1])
    expected = [
        0.4 * sum(digamma(own[s, z]) - digamma(own[:, z].sum()) for own, s in zip(q, known[n], strict=True))
        for n, z in zip(token, state, strict=True)
    ]
    cells = emissions.cells(logs, known, active)
    np.testing.assert_allclose(cells, expected, rtol=0, atol=1e-10)
    np.testing.assert_allclose(emissions.dense(logs, known)[token, state], cells, rtol=0, atol=1e-12)
    counts = emissions.counts(logs, known, active, np.array([0.25, 0.75, 1.0]))
    assert counts[0][0].tolist() == [0.25, 0.0, 0.75]
    assert counts[0][4].tolist() == [0.0, 1.0, 0.0]
    assert counts[1][3].tolist() == [0.25, 0.0, 0.75]
    assert [own.sum() for own in counts] == [2.0, 2.0]


def test_back_off_is_a_mixture() -> None:
    rng = np.random.default_rng(4)
    types = np.array([2, 5, 1])
    emissions = BackOff((4, 3, 2), 0.3, types=types)
    q = emissions.posterior(drawn(rng, 4, 3, 2))
    words, signatures, switch = logs = emissions.logs(q)
    known = np.array([[0, 1], [3, 2], [1, 0]])
    active = Active.of([range(Z)], which=[0, 0, 0])
    token, state = np.repeat(np.arange(3), Z), np.tile(np.arange(Z), 3)
    weight = rng.random(9)
    expected, shares = [], []
    for n, z in zip(token, state, strict=True):
        word, signature = known[n]
        drawn_ = math.exp(switch[1, z] + signatures[signature, z]) / types[signature]
        own = math.exp(switch[0, z] + words[word, z]) if word else 0.0
        expected.append(math.log(own + drawn_))
        shares.append(own / (own + drawn_))
    cells = emissions.cells(logs, known, active)
    np.testing.assert_allclose(cells, expected, rtol=0, atol=1e-10)
    np.testing.assert_allclose(emissions.dense(logs, known).ravel(), cells, rtol=0, atol=1e-12)
    counts = emissions.counts(logs, known, active, weight)
    own = weight * np.array(shares)
    np.testing.assert_allclose(counts[0][3], own[3:6], rtol=0, atol=1e-12)
    np.testing.assert_allclose(counts[0][0], 0.0, rtol=0, atol=1e-12)
    np.testing.assert_allclose(counts[1][1], (weight - own)[:3], rtol=0, atol=1e-12)
    np.testing.assert_allclose(counts[2].sum(axis=0), weight.reshape(3, Z).sum(axis=0), rtol=0, atol=1e-12)
    assert counts[0].sum() + counts[1].sum() == pytest.approx(weight.sum())


def test_the_divergence_of_back_off() -> None:
    emissions = BackOff((4, 3, 2), 0.3, types=np.ones(3, np.int64))
    q = emissions.posterior(drawn(np.random.default_rng(5), 4, 3, 2))
    expected = direct(q[0], 0.3) + direct(q[1], 0.3) + direct(q[2], SWITCH)
    assert emissions.divergence(q) == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(emissions.logs(q)[2], digamma(q[2]) - digamma(q[2].sum(axis=0)), rtol=0, atol=1e-12)
