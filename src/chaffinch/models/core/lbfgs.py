"""L-BFGS for smooth functions of millions of variables, with its memory in single precision.

It maximises. A general library keeps its memory in double precision and handles bounds, which nothing here has; with
millions of weights that costs more than the function itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from chaffinch.kernels import Floats

Function: TypeAlias = Callable[[Floats], tuple[float, Floats]]  # value and slope
Steps: TypeAlias = deque[tuple[NDArray[np.float32], NDArray[np.float32], float]]

ENOUGH = 1e-4  # Armijo condition: the share of the rise predicted by the slope that a step must achieve
SHORTEST = 1e-10  # line search gives up below this step length: rounding then hides any gain
STRAIGHT = 1e-6  # a step whose slope changes by a smaller share is not remembered: that is rounding, not curvature


@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    """The best point found, its value, the value after each step, and the number of function evaluations."""

    x: Floats
    value: float
    trace: tuple[float, ...]
    evaluations: int
    interrupted: bool = False


def maximise(
    function: Function, x: Floats, *, evaluations: int, memory: int = 8, tolerance: float = 1e-6,
    watch: Callable[[int, float], None] | None = None,
) -> Optimum:  # fmt: skip
    """Climb from x by L-BFGS till steps gain little or `evaluations` are used; return the best point found.

    `watch` is called with the evaluations and the value after each step. An interrupt ends the climb, and is noted.
    """
    evaluated, value, steps, trace = 0, -np.inf, Steps(maxlen=memory), list[float]()
    try:
        value, slope = function(x)
        evaluated, trace = 1, [value]
        while evaluated < evaluations:
            direction = _direction(slope, steps)
            length = 1.0 if steps else min(1.0, 1.0 / max(float(np.abs(slope).sum()), 1.0))
            promise = float(direction @ slope)
            tried = _step(function, x, value, direction, promise, length, evaluations - evaluated)
            evaluated += tried.evaluated
            if tried.slope is None:
                if not steps:
                    break
                steps.clear()  # the remembered curvature misled: once more, straight up
                continue
            bend, gained = slope - tried.slope, tried.value - value
            curve = float(bend @ direction) * tried.length
            if curve > STRAIGHT * tried.length * promise:
                steps.append(((tried.length * direction).astype(np.float32), bend.astype(np.float32), curve))
            x, value, slope = x + tried.length * direction, tried.value, tried.slope
            trace.append(value)
            if watch is not None:
                watch(evaluated, value)
            if gained < tolerance * max(abs(value), 1.0):
                break
    except KeyboardInterrupt:
        return Optimum(x, value, tuple(trace), evaluated, interrupted=True)
    return Optimum(x, value, tuple(trace), evaluated)


class _Tried(NamedTuple):
    """The outcome of a line search: a step that gains enough, or slope None; and its function evaluations."""

    length: float
    value: float
    slope: Floats | None
    evaluated: int


def _step(
    function: Function, x: Floats, value: float, direction: Floats, promise: float, length: float, most: int
) -> _Tried:
    """Return a step, shortened until it gains enough of what `promise` says; its slope is None if none does.

    `length` is that of the first trial; the function is evaluated `most` times at most.
    """
    evaluated = 0
    while promise > 0.0 and evaluated < most and length > SHORTEST:
        new, slope = function(x + length * direction)
        evaluated += 1
        if new >= value + ENOUGH * length * promise:
            return _Tried(length, new, slope, evaluated)
        length *= _shorter(length, promise, new - value) if np.isfinite(new) else 0.1
    return _Tried(length, value, None, evaluated)


def _direction(slope: Floats, steps: Steps) -> Floats:
    """Return the ascent direction: the slope times the remembered inverse curvature (two-loop recursion)."""
    out, shares = slope.astype(np.float32), []
    for move, bend, curve in reversed(steps):
        share = np.float32(move @ out / curve)
        out -= share * bend
        shares.append(share)
    if steps:
        _, bend, curve = steps[-1]
        out *= np.float32(curve / float(bend @ bend))
    for (move, bend, curve), share in zip(steps, reversed(shares), strict=True):
        out += (share - np.float32(bend @ out / curve)) * move
    return out.astype(np.float64)


def _shorter(length: float, promise: float, gained: float) -> float:
    """Return the factor, from 0.1 to 0.5, that shortens a step to the top of the parabola through both ends."""
    fall = length * promise - gained
    return float(np.clip(0.5 * length * promise / fall, 0.1, 0.5)) if fall > 0 else 0.5
