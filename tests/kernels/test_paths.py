"""Best paths and drawn paths against listing every path. T tokens, K states."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from chaffinch.errors import ConfigError, InfeasibleError
from chaffinch.kernels import Active, Lattice, best_paths, sample, viterbi
from tests.kernels import oracle

close = np.testing.assert_allclose


@given(oracle.lattices())
@settings(max_examples=100, deadline=None)
def test_viterbi_agrees_with_listing_every_path(lattice: Lattice) -> None:
    listed = oracle.listing(lattice)
    assume(listed.paths)
    path = viterbi(lattice)
    close(path.score, listed.paths[0][0], rtol=1e-12, atol=1e-9)
    close(oracle.score(lattice, tuple(path.states.tolist())), path.score, rtol=1e-12, atol=1e-9)


@given(oracle.lattices(), st.integers(1, 12))
@settings(max_examples=100, deadline=None)
def test_the_n_best_agree_with_listing_every_path(lattice: Lattice, n: int) -> None:
    listed = oracle.listing(lattice)
    assume(listed.paths)
    found = best_paths(lattice, n)
    assert len(found) == min(n, len(listed.paths))
    close([path.score for path in found], [score for score, _ in listed.paths[:n]], rtol=1e-12, atol=1e-9)
    assert len({tuple(path.states.tolist()) for path in found}) == len(found)
    for path in found:
        close(oracle.score(lattice, tuple(path.states.tolist())), path.score, rtol=1e-12, atol=1e-9)
    assert np.array_equal(found[0].states, viterbi(lattice).states)


@pytest.mark.parametrize("K", [3, 40])
def test_of_equal_paths_the_lowest_states_win(K: int) -> None:
    lattice = Lattice(np.zeros(K), np.zeros((K, K)), np.zeros((4, K)), np.zeros(K))
    assert viterbi(lattice).states.tolist() == [0, 0, 0, 0]
    few = lattice.clamp(np.tile(np.arange(K) >= K - 2, (4, 1)))
    assert viterbi(few).states.tolist() == [K - 2] * 4


def test_the_n_best_with_lists_name_states_not_places() -> None:
    active = Active.of([[1, 3], [0, 2]], which=[0, 1, 0])
    emit = np.log([0.9, 0.1, 0.4, 0.6, 0.5, 0.5])
    lattice = Lattice(np.zeros(4), np.zeros((4, 4)), emit, np.zeros(4), active)
    assert [path.states.tolist() for path in best_paths(lattice, 3)] == [[1, 2, 1], [1, 2, 3], [1, 0, 1]]


@given(oracle.lattices(tokens=4, states=3))
@settings(max_examples=25, deadline=None)
def test_drawn_paths_come_as_often_as_the_posterior_says(lattice: Lattice) -> None:
    listed = oracle.listing(lattice)
    assume(listed.paths)
    n = 4000
    drawn = sample(lattice, np.random.default_rng(7), n)
    assert drawn.shape == (n, len(lattice))
    expected = {path: n * np.exp(score - listed.log_z) for score, path in listed.paths}
    counts: dict[tuple[int, ...], int] = {}
    for row in drawn.tolist():
        counts[tuple(row)] = counts.get(tuple(row), 0) + 1
    assert set(counts) <= set(expected)
    often = {path: value for path, value in expected.items() if value >= 5}
    chi_square = sum((counts.get(path, 0) - value) ** 2 / value for path, value in often.items())
    assert chi_square < len(often) + 6 * np.sqrt(2 * len(often)) + 6  # six deviations


def test_the_same_seed_draws_the_same_paths() -> None:
    lattice = Lattice(np.zeros(3), np.zeros((3, 3)), np.zeros((5, 3)), np.zeros(3))
    one, other = (sample(lattice, np.random.default_rng(3), 20) for _ in range(2))
    assert np.array_equal(one, other)


def test_empty_and_impossible_lattices() -> None:
    empty = Lattice(np.zeros(2), np.zeros((2, 2)), np.zeros((0, 2)), np.zeros(2))
    assert viterbi(empty).score == 0.0
    assert [(path.score, path.states.tolist()) for path in best_paths(empty, 3)] == [(0.0, [])]
    assert sample(empty, np.random.default_rng(0), 2).shape == (2, 0)
    dead = Lattice(np.zeros(2), np.full((2, 2), -np.inf), np.zeros((3, 2)), np.zeros(2))
    endless = Lattice(np.zeros(2), np.zeros((2, 2)), np.zeros((3, 2)), np.full(2, -np.inf))
    for lattice, place in ((dead, "token 1"), (endless, "no state may end")):
        for call in (viterbi, lambda it: best_paths(it, 2), lambda it: sample(it, np.random.default_rng(0), 1)):
            with pytest.raises(InfeasibleError, match=place):
                call(lattice)


def test_n_is_checked() -> None:
    lattice = Lattice(np.zeros(2), np.zeros((2, 2)), np.zeros((1, 2)), np.zeros(2))
    with pytest.raises(ConfigError, match="at least 1, got 0"):
        best_paths(lattice, 0)
    with pytest.raises(ConfigError, match="at least 0, got -1"):
        sample(lattice, np.random.default_rng(0), -1)
