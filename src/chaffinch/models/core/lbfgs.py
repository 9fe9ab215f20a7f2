"""The largest value of a smooth function of very many numbers: L-BFGS with its memory in single precision.

n numbers, m remembered steps. A general library keeps its memory in double precision and guards bounds that nothing
here has; with millions of weights that costs more than the function itself.
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

ENOUGH = 1e-4  # of the rise that the slope promises
SHORTEST = 1e-10  # a step so short that nothing more is gained
STRAIGHT = 1e-6  # a slope that changes by less along a step shows rounding, not curvature


@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    """The best place met, its value, the value after each step, and how often the function was asked."""

    x: Floats
    value: float
    trace: tuple[float, ...]
    evaluations: int
    interrupted: bool = False


def maximise(
    function: Function, x: Floats, *, evaluations: int, memory: int = 8, tolerance: float = 1e-6,
    watch: Callable[[int, float], None] | None = None,
) -> Optimum:  # fmt: skip
    """Climbs from x until a step gains less than `tolerance` of the value, or the function was asked so often.

    `watch` is told the evaluations and the value after each step. An interrupt ends the climb where it is.
    """
    asked, value, steps, trace = 0, -np.inf, Steps(maxlen=memory), list[float]()
    try:
        value, slope = function(x)
        asked, trace = 1, [value]
        while asked < evaluations:
            direction = _direction(slope, steps)
            length = 1.0 if steps else min(1.0, 1.0 / max(float(np.abs(slope).sum()), 1.0))
            promise = float(direction @ slope)
            tried = _step(function, x, value, direction, promise, length, evaluations - asked)
            asked += tried.asked
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
                watch(asked, value)
            if gained < tolerance * max(abs(value), 1.0):
                break
    except KeyboardInterrupt:
        return Optimum(x, value, tuple(trace), asked, interrupted=True)
    return Optimum(x, value, tuple(trace), asked)


class _Tried(NamedTuple):
    """A step that gains enough, or no slope; and how often the function was asked."""

    length: float
    value: float
    slope: Floats | None
    asked: int


def _step(
    function: Function, x: Floats, value: float, direction: Floats, promise: float, length: float, most: int
) -> _Tried:
    """The first of ever shorter steps that gains what the slope promises, or a small part of it."""
    asked = 0
    while promise > 0.0 and asked < most and length > SHORTEST:
        new, slope = function(x + length * direction)
        asked += 1
        if new >= value + ENOUGH * length * promise:
            return _Tried(length, new, slope, asked)
        length *= _shorter(length, promise, new - value) if np.isfinite(new) else 0.1
    return _Tried(length, value, None, asked)


def _direction(slope: Floats, steps: Steps) -> Floats:
    """The slope through the remembered curvature: Nocedal's two loops."""
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
    """By how much to shorten a step: to the top of the parabola through both ends, but not to almost nothing."""
    fall = length * promise - gained
    return float(np.clip(0.5 * length * promise / fall, 0.1, 0.5)) if fall > 0 else 0.5
