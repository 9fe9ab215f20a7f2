"""Rows between products of bytes: floats to bytes, sums back to floats, GELU and layer normalisation.

n rows, K inputs, M outputs. A row is handled in one go, so that it stays in the nearest cache.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from chaffinch.kernels._compile import helper, kernel
from chaffinch.kernels.bytes_product import LARGEST, Bytes, Floats32, Ints32

# Rows hold no NaN: sums of finite weights and bytes. Then minima and maxima run in lanes. Nothing else is left to the
# compiler: no product is fused with a sum and no sum reordered, so that every compilation rounds alike.
FLAGS = frozenset({"nnan", "nsz"})
LANES = 16  # partial sums of a row, each over every 16th number
TINY = np.float32(1e-30)  # the least range of a row, so that a constant row divides by no zero
ZERO, HALF, ONE = np.float32(0.0), np.float32(0.5), np.float32(1.0)
ROOT, CUBIC = np.float32(np.sqrt(2.0 / np.pi)), np.float32(0.044715)
# tanh as a quotient of polynomials, exact to 3e-7 (Eigen's coefficients); beyond FLAT it is 1 in float32.
FLAT = np.float32(7.90531110763549805)
A1, A3, A5, A7 = (
    np.float32(value)
    for value in (4.89352455891786e-03, 6.37261928875436e-04, 1.48572235717979e-05, 5.12229709037114e-08)
)
A9, A11, A13 = (np.float32(value) for value in (-8.60467152213735e-11, 2.00018790482477e-13, -2.76076847742355e-16))
B0, B2, B4, B6 = (
    np.float32(value)
    for value in (4.89352518554385e-03, 2.26843463243900e-03, 1.18534705686654e-04, 1.19825839466702e-06)
)
# 2 to the power of f, for f from -1/2 to 1/2, exact to 1e-7 (least squares there); 2 to LEAST_POWER is next to 0.
LOG2_E, LEAST_POWER = np.float32(1.4426950408889634), np.float32(-125.0)
C1, C2, C3, C4, C5 = (
    np.float32(value)
    for value in (6.9314685594e-01, 2.4022238003e-01, 5.5508929525e-02, 9.6716979384e-03, 1.3218672482e-03)
)


def _emit_nearest(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
    """Emit LLVM code that rounds a float32 to the nearest whole number."""
    form = ir.FunctionType(ir.FloatType(), [ir.FloatType()])
    return builder.call(cgutils.get_or_insert_function(builder.module, form, "llvm.rint.f32"), args)


def _emit_power(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
    """Emit LLVM code for two to the power of a whole float32, in 32 bits throughout."""
    whole = ir.IntType(32)
    exponent = builder.add(builder.fptosi(args[0], whole), whole(127))
    return builder.bitcast(builder.shl(exponent, whole(23)), ir.FloatType())


def _compile_single(emit: Callable[..., Any], python: Callable[[np.float32], np.float32]) -> Any:
    """Return a float32 operation as a numba intrinsic from `emit`, or the Python one if compilation is off."""

    def declare(_typing: Any, _value: Any) -> Any:
        """Return the type signature, float32 to float32, and the code generator, as numba asks."""
        return types.float32(types.float32), emit

    return python if numba.config.DISABLE_JIT else intrinsic(declare)


nearest = _compile_single(_emit_nearest, np.rint)  # the nearest whole number
power_of_two = _compile_single(_emit_power, np.exp2)  # of a whole number from -126 to 127


@helper(FLAGS)
def tanh(x: np.float32) -> np.float32:
    """Return tanh of a float32 by a rational approximation that runs in lanes."""
    u = min(max(x, -FLAT), FLAT)
    s = u * u
    top = ((((((A13 * s + A11) * s + A9) * s + A7) * s + A5) * s + A3) * s + A1) * u
    return np.float32(top / (((B6 * s + B4) * s + B2) * s + B0))


@helper(FLAGS)
def write_row(row: Floats32, K: int, to: Bytes) -> tuple[np.float32, np.float32]:
    """Write K floats as bytes to `to`, the least as 0, the largest as 255; return (value of a byte step, the least)."""
    low = high = row[0]
    for k in range(K):
        low = min(low, row[k])
        high = max(high, row[k])
    step = max(high - low, TINY) / np.float32(LARGEST)
    inverse = ONE / step
    for k in range(K):
        to[k] = np.uint8(np.int32((row[k] - low) * inverse + HALF))
    return step, low


@kernel(FLAGS)
def write_bytes(x: Floats32, out: Bytes, steps: Floats32, lows: Floats32) -> None:
    """Write each row of x (n, K) as bytes to `out`, and its step and least value to steps and lows (n,)."""
    for i in range(x.shape[0]):
        steps[i], lows[i] = write_row(x[i], x.shape[1], out[i])


@helper(FLAGS)
def read_row(
    sums: Ints32, step: np.float32, low: np.float32, scales: Floats32, weights: Floats32, bias: Floats32, to: Floats32
) -> None:
    """Write to `to` (M,) the floats x W + b, from integer sums of a row of bytes with this step and least value."""
    for j in range(len(bias)):
        to[j] = np.float32(sums[j]) * (scales[j] * step) + (low * weights[j] + bias[j])


@kernel(FLAGS)
def read_sums(
    sums: Ints32, steps: Floats32, lows: Floats32, scales: Floats32, weights: Floats32, bias: Floats32, out: Floats32
) -> None:
    """Write to out (n, M) x W + b from integer sums; `weights` (M,) are column sums of W, `scales` its steps."""
    for i in range(out.shape[0]):
        read_row(sums[i], steps[i], lows[i], scales, weights, bias, out[i])


@kernel(FLAGS)
def read_gelu(
    sums: Ints32, steps: Floats32, lows: Floats32, scales: Floats32, weights: Floats32, bias: Floats32, row: Floats32,
    out: Bytes,
) -> None:  # fmt: skip
    """Fill out with gelu(x W + b) as bytes, and set steps and lows (n,) to those of out; `row` (M,) is scratch space.

    Before, `steps` and `lows` are those of the rows x; `sums`, `scales` and `weights` are as in `read_sums`.
    """
    for i in range(len(steps)):
        read_row(sums[i], steps[i], lows[i], scales, weights, bias, row)
        for j in range(len(bias)):
            x = row[j]
            row[j] = HALF * x * (ONE + tanh(ROOT * (x + CUBIC * x * x * x)))
        steps[i], lows[i] = write_row(row, len(bias), out[i])


@helper(FLAGS)
def sum_row(row: Floats32, lanes: Floats32) -> np.float32:
    """Return the sum of a row, lane by lane; `lanes` (LANES,) is scratch space."""
    whole = len(row) // LANES * LANES
    lanes[:] = ZERO
    for first in range(0, whole, LANES):
        for lane in range(LANES):
            lanes[lane] += row[first + lane]
    for k in range(whole, len(row)):
        lanes[k - whole] += row[k]
    total = ZERO
    for lane in range(LANES):
        total += lanes[lane]
    return np.float32(total)


@kernel(FLAGS)
def add_and_normalise(
    x: Floats32, y: Floats32, gain: Floats32, shift: Floats32, epsilon: float, row: Floats32, lanes: Floats32
) -> None:
    """Replace the rows of x (n, H) by those of x + y with mean 0 and variance 1, times gain, plus shift.

    `row` (H,) and `lanes` (LANES,) are scratch space.
    """
    H = x.shape[1]
    for i in range(x.shape[0]):
        for k in range(H):
            x[i, k] += y[i, k]
        mean = sum_row(x[i], lanes) / np.float32(H)
        for k in range(H):
            x[i, k] -= mean
            row[k] = x[i, k] * x[i, k]
        scale = ONE / np.sqrt(sum_row(row, lanes) / np.float32(H) + np.float32(epsilon))
        for k in range(H):
            x[i, k] = x[i, k] * scale * gain[k] + shift[k]


@kernel(FLAGS)
def exponentiate(x: Floats32, totals: Floats32, lanes: Floats32) -> None:
    """Replace the rows of x (n, K) by exp(x - the row's largest), and fill totals (n,) with their sums.

    `lanes` (LANES,) is scratch space.
    """
    K = x.shape[1]
    for i in range(x.shape[0]):
        high = x[i, 0]
        for k in range(K):
            high = max(high, x[i, k])
        for k in range(K):
            t = max((x[i, k] - high) * LOG2_E, LEAST_POWER)
            whole = nearest(t)
            f = t - whole
            p = ((((C5 * f + C4) * f + C3) * f + C2) * f + C1) * f + ONE
            x[i, k] = p * power_of_two(whole)
        totals[i] = sum_row(x[i], lanes)
