"""Climbing: against scipy's minimisers on hills of known tops, and what an interrupt, a cliff and a plain leave."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from chaffinch.kernels import Floats
from chaffinch.models.core.lbfgs import Function, Steps, _direction, maximise


def quadratic(n: int, seed: int, spread: float = 2.0) -> tuple[Function, Floats]:
    """-(x - c)' A (x - c) / 2 with eigenvalues over some powers of ten, and its top."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(n, n)))[0]
    A = turn @ np.diag(10 ** rng.uniform(-spread / 2, spread / 2, n)) @ turn.T
    top = rng.normal(size=n)
    return lambda x: (float(-0.5 * (x - top) @ A @ (x - top)), -A @ (x - top)), top


def rosenbrock(x: Floats) -> tuple[float, Floats]:
    return -float(optimize.rosen(x)), -np.asarray(optimize.rosen_der(x))


@given(st.integers(1, 30), st.integers(0, 10_000))
@settings(max_examples=30)
def test_the_top_of_a_convex_quadratic_is_found(n: int, seed: int) -> None:
    function, top = quadratic(n, seed)
    found = maximise(function, np.zeros(n), evaluations=2000, tolerance=1e-12)
    np.testing.assert_allclose(found.x, top, rtol=0, atol=1e-3)
    assert found.value == pytest.approx(0.0, abs=1e-6)
    other = optimize.minimize(lambda x: -function(x)[0], np.zeros(n), jac=lambda x: -function(x)[1], method="L-BFGS-B")
    assert found.value >= -other.fun - 1e-6


@pytest.mark.parametrize("start", [(-1.2, 1.0), (3.0, -2.0), (-1.2, 1.0, -0.5, 0.8), (0.0,) * 10])
def test_the_valley_of_rosenbrock_is_followed_to_its_end(start: tuple[float, ...]) -> None:
    found = maximise(rosenbrock, np.array(start), evaluations=3000, tolerance=1e-14)
    other = optimize.minimize(
        optimize.rosen, np.array(start), jac=optimize.rosen_der, method="L-BFGS-B", options={"maxiter": 3000}
    )
    np.testing.assert_allclose(found.x, np.ones(len(start)), rtol=0, atol=2e-3)
    np.testing.assert_allclose(found.x, other.x, rtol=0, atol=4e-3)


@pytest.mark.parametrize("count", [1, 3, 8])
def test_the_direction_is_that_of_a_matrix_updated_step_by_step(count: int) -> None:
    """The two loops against BFGS with the inverse written out: H = (I - s y'/c) H (I - y s'/c) + s s'/c."""
    rng, n, steps = np.random.default_rng(count), 6, Steps(maxlen=8)
    root = rng.normal(size=(n, n))
    A = root @ root.T + np.eye(n)
    for _ in range(count):
        drawn = rng.normal(size=n)
        steps.append((drawn.astype(np.float32), (A @ drawn).astype(np.float32), float(drawn @ A @ drawn)))
    _, bend, curve = steps[-1]
    H = np.eye(n) * (curve / float(bend @ bend))
    for move, bend, curve in steps:
        keep = np.eye(n) - np.outer(bend, move) / curve
        H = keep.T @ H @ keep + np.outer(move, move) / curve
    slope = rng.normal(size=n)
    np.testing.assert_allclose(_direction(slope, steps), H @ slope, rtol=0, atol=1e-4)
    np.testing.assert_allclose(_direction(A @ steps[-1][0], steps), steps[-1][0], rtol=0, atol=1e-4)  # the last secant


def test_few_evaluations_are_enough() -> None:
    """Curvature is remembered: the plain slope would take thousands of steps here."""
    function, top = quadratic(40, 3, 4.0)
    found = maximise(function, np.zeros(40), evaluations=400, tolerance=1e-10)
    np.testing.assert_allclose(found.x, top, rtol=0, atol=0.05)
    assert found.value == pytest.approx(0.0, abs=1e-4)


@given(st.integers(1, 60), st.integers(0, 1000), st.sampled_from(["quadratic", "rosenbrock"]))
@settings(max_examples=50)
def test_the_function_is_asked_no_more_than_allowed_and_never_left_lower(most: int, seed: int, kind: str) -> None:
    asked: list[float] = []
    inner = quadratic(6, seed)[0] if kind == "quadratic" else rosenbrock

    def function(x: Floats) -> tuple[float, Floats]:
        value, slope = inner(x)
        asked.append(value)
        return value, slope

    start = np.random.default_rng(seed).normal(0, 3, 6)
    watched: list[tuple[int, float]] = []
    found = maximise(function, start, evaluations=most, watch=lambda n, value: watched.append((n, value)))
    assert len(asked) == found.evaluations <= most
    assert found.value >= asked[0]
    assert found.value == found.trace[-1] == inner(found.x)[0]
    assert list(found.trace) == sorted(found.trace)
    assert found.trace[0] == asked[0]
    assert [value for _, value in watched] == list(found.trace[1:])
    assert all(1 < n <= most for n, _ in watched)
    assert not found.interrupted


@pytest.mark.parametrize("when", range(1, 12))
def test_an_interrupt_keeps_the_last_place_that_was_accepted(when: int) -> None:
    asked: list[Floats] = []

    def function(x: Floats) -> tuple[float, Floats]:
        asked.append(x.copy())
        if len(asked) == when:
            raise KeyboardInterrupt
        return rosenbrock(x)

    start = np.array([-1.2, 1.0])
    found = maximise(function, start, evaluations=100)
    assert found.interrupted
    assert len(found.trace) <= when
    if when == 1:
        assert (found.value, found.trace) == (-np.inf, ())
        assert found.x.tolist() == start.tolist()
        return
    assert found.value == found.trace[-1] == rosenbrock(found.x)[0]
    assert any(np.array_equal(found.x, x) for x in asked[:-1])
    assert found.value == max(rosenbrock(x)[0] for x in asked[:-1])


def test_an_interrupt_of_who_watches_keeps_the_place_that_was_told() -> None:
    watched: list[float] = []

    def watch(_: int, value: float) -> None:
        watched.append(value)
        if len(watched) == 3:
            raise KeyboardInterrupt

    found = maximise(rosenbrock, np.array([-1.2, 1.0]), evaluations=100, watch=watch)
    assert found.interrupted
    assert found.value == watched[2] == rosenbrock(found.x)[0]


@pytest.mark.parametrize("beyond", [-np.inf, np.nan])
def test_a_step_over_a_cliff_is_shortened(beyond: float) -> None:
    """log(x) - 3 x with nothing at or below 0, met from far above its top."""

    def function(x: Floats) -> tuple[float, Floats]:
        if (x <= 0).any():
            return beyond, np.full_like(x, np.nan)
        return float((np.log(x) - 3 * x).sum()), 1 / x - 3

    found = maximise(function, np.array([5.0, 0.001, 40.0]), evaluations=300, tolerance=1e-12)
    np.testing.assert_allclose(found.x, 1 / 3, rtol=0, atol=1e-3)


def test_a_plain_is_left_where_it_is() -> None:
    found = maximise(lambda x: (7.0, np.zeros_like(x)), np.array([1.0, 2.0]), evaluations=50)
    assert (found.x.tolist(), found.value, found.evaluations) == ([1.0, 2.0], 7.0, 1)
    at_the_top = maximise(lambda x: (-float(x @ x), -2 * x), np.zeros(3), evaluations=50)
    assert (at_the_top.value, at_the_top.trace) == (0.0, (0.0,))


def test_one_evaluation_is_the_start() -> None:
    found = maximise(rosenbrock, np.array([3.0, 3.0]), evaluations=1)
    assert (found.x.tolist(), found.evaluations) == ([3.0, 3.0], 1)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e6])
def test_a_slope_that_never_ends_is_climbed_until_the_evaluations_are_used(size: float) -> None:
    """A straight line has no curvature, or only that of rounding, which must not mislead."""
    line = size * np.array([0.1, -0.3, 0.7])
    found = maximise(lambda x: (float(line @ x), line + 1e-17 * size * np.sin(1e9 * x)), np.zeros(3), evaluations=40)
    assert np.isfinite(found.x).all()
    assert found.value > 0
    assert found.evaluations == 40 or size < 1


def test_a_wrong_slope_ends_the_climb_where_it_began() -> None:
    found = maximise(lambda x: (-float(x @ x), 2 * x), np.ones(3), evaluations=200)
    assert found.x.tolist() == [1.0, 1.0, 1.0]
    assert found.evaluations <= 40


def test_the_start_is_not_written_to() -> None:
    start = np.array([-1.2, 1.0])
    maximise(rosenbrock, start, evaluations=50)
    assert start.tolist() == [-1.2, 1.0]


def test_the_tolerance_ends_the_climb() -> None:
    function, _ = quadratic(20, 1, 3.0)
    found = [
        maximise(function, np.zeros(20), evaluations=1000, tolerance=tolerance) for tolerance in (1e-1, 1e-4, 1e-10)
    ]
    assert found[0].evaluations < found[1].evaluations < found[2].evaluations
    assert found[0].value < found[1].value < found[2].value
