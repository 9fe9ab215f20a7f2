"""Linear maps on bytes: rows of floats become bytes, each with a step of its own, and meet a matrix of signed bytes.

    floats → bytes → exact sums of products, 32 bits → floats (→ gelu → bytes)

The sums are exact, so that every path and every machine has the same: a compiled loop over the byte instructions of
newer x86 processors (AVX-512 VNNI), and elsewhere BLAS on float32, in slices of K short enough that no sum leaves the
whole numbers that float32 holds.

n rows, K inputs, M outputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
SignedBytes = NDArray[np.int8]
Ints32 = NDArray[np.int32]
Floats32 = NDArray[np.float32]

LARGEST, LARGEST_SIGNED = 255, 127
SLICE = (1 << 24) // (LARGEST * LARGEST_SIGNED) // 4 * 4  # inputs whose sum of products is exact in float32
GROUP = 4  # bytes that one instruction multiplies and adds in each lane
PANEL = 64  # outputs of a compiled tile: four vectors of 16 lanes
ROWS = 6  # rows of a compiled tile: 24 sums, four weights and a row's bytes fill the 32 registers


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ByteRows:
    """Rows of floats as bytes: `values[i, k] * steps[i] + lows[i]`. Built by `to_bytes`.

    `values` may have more rows and columns than there are, whose content is of no account.
    """

    values: Bytes  # (at least n, at least K)
    steps: Floats32  # (n,)
    lows: Floats32  # (n,)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.steps)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ByteMatrix:
    """A linear map whose weights are signed bytes, laid out for this machine; built by `pack`.

    Weight (k, j) is `byte * scales[j]`. Either panels or slices hold the bytes.
    """

    shape: tuple[int, int]  # (K, M)
    panels: SignedBytes  # (panels, ceil(K / GROUP), PANEL, GROUP), padded with zeros; none without the instructions
    slices: tuple[Floats32, ...]  # (at most SLICE, M) each; none where panels are used
    scales: Floats32  # (M,)
    weights: Floats32  # (M,) the sums of the columns
    bias: Floats32  # (M,)


def pack(matrix: SignedBytes, scales: Floats32, bias: Floats32, *, panels: bool | None = None) -> ByteMatrix:
    """Lay out a byte matrix (K, M), scales and bias for products, in `panels` or not; by default as suits this CPU."""
    K, M = matrix.shape
    weights = (matrix.sum(axis=0, dtype=np.int64) * scales.astype(np.float64)).astype(np.float32)
    if not (has_byte_products() if panels is None else panels):
        floats = matrix.astype(np.float32)
        slices = tuple(np.ascontiguousarray(floats[first : first + SLICE]) for first in range(0, K, SLICE))
        return ByteMatrix((K, M), np.zeros((0, 0, PANEL, GROUP), np.int8), slices, scales, weights, bias)
    padded = np.zeros((_up(K, GROUP), _up(M, PANEL)), np.int8)
    padded[:K, :M] = matrix
    laid = padded.reshape(-1, GROUP, padded.shape[1] // PANEL, PANEL).transpose(2, 0, 3, 1)
    return ByteMatrix((K, M), np.ascontiguousarray(laid), (), scales, weights, bias)


def to_bytes(x: Floats32) -> ByteRows:
    """Return float rows (n, K) as bytes, with the step and least value of each; the least becomes 0, the largest 255.

    >>> rows = to_bytes(np.array([[0.0, 51.0, 255.0]], np.float32))
    >>> rows.values[0, :3].tolist(), rows.steps.tolist(), rows.lows.tolist()
    ([0, 51, 255], [1.0], [0.0])
    """
    from chaffinch.kernels._linear import _byte_rows

    n, K = x.shape
    rows = ByteRows(np.empty((_up(n, ROWS), _up(K, GROUP)), np.uint8), np.empty(n, np.float32), np.empty(n, np.float32))
    _byte_rows.write_bytes(x, rows.values, rows.steps, rows.lows)
    return rows


def multiply(rows: ByteRows, matrix: ByteMatrix) -> Ints32:
    """Return rows times matrix as exact 32-bit sums of products of bytes; the result may be padded beyond (n, M).

    >>> matrix = pack(np.array([[1, -2], [3, 4]], np.int8), np.ones(2, np.float32), np.zeros(2, np.float32))
    >>> multiply(to_bytes(np.array([[255.0, 0.0]], np.float32)), matrix)[0, :2].tolist()
    [255, -510]
    """
    n, (K, M) = len(rows), matrix.shape
    if matrix.slices:
        floats, out = rows.values[:n, :K].astype(np.float32), np.zeros((n, M), np.int32)
        for number, part in enumerate(matrix.slices):
            out += (floats[:, number * SLICE : (number + 1) * SLICE] @ part).astype(np.int32)
        return out
    from chaffinch.kernels._linear._byte_tiles import multiply_panels

    sums = np.empty((len(rows.values), len(matrix.panels) * PANEL), np.int32)
    multiply_panels(rows.values, matrix.panels, sums)
    return sums


def apply(rows: ByteRows, matrix: ByteMatrix) -> Floats32:
    """Return x W + b, float32 (n, M), for quantised rows x and matrix W; the products are exact integer sums."""
    from chaffinch.kernels._linear import _byte_rows

    out = np.empty((len(rows), matrix.shape[1]), np.float32)
    sums = multiply(rows, matrix)
    _byte_rows.read_sums(sums, rows.steps, rows.lows, matrix.scales, matrix.weights, matrix.bias, out)
    return out


def apply_gelu(rows: ByteRows, matrix: ByteMatrix) -> ByteRows:
    """Return gelu(x W + b) (n, M) as rows of bytes for quantised rows and matrix; gelu by its formula in tanh."""
    from chaffinch.kernels._linear import _byte_rows

    sums, scratch = multiply(rows, matrix), np.empty(matrix.shape[1], np.float32)
    out = ByteRows(
        np.empty((len(rows.values), _up(matrix.shape[1], GROUP)), np.uint8), rows.steps.copy(), rows.lows.copy()
    )
    _byte_rows.read_gelu(sums, out.steps, out.lows, matrix.scales, matrix.weights, matrix.bias, scratch, out.values)
    return out


def add_and_normalise(x: Floats32, y: Floats32, gain: Floats32, shift: Floats32, epsilon: float) -> None:
    """Replace the rows of x (n, H) by those of x + y with mean 0 and variance 1, times gain, plus shift."""
    from chaffinch.kernels._linear import _byte_rows

    row, lanes = np.empty(x.shape[1], np.float32), np.empty(_byte_rows.LANES, np.float32)
    _byte_rows.add_and_normalise(x, y, gain, shift, epsilon, row, lanes)


def exponentiate(x: Floats32) -> Floats32:
    """Replace the rows of x (n, K) by exp(x - the row's largest); return (n,) their sums."""
    from chaffinch.kernels._linear import _byte_rows

    totals = np.empty(len(x), np.float32)
    _byte_rows.exponentiate(x, totals, np.empty(_byte_rows.LANES, np.float32))
    return totals


@cache
def has_byte_products() -> bool:
    """Return whether this processor has the byte instructions, and kernels are compiled for it without overrides."""
    import numba

    settings = numba.config
    if settings.DISABLE_JIT or settings.CPU_NAME or settings.CPU_FEATURES is not None or not settings.ENABLE_AVX:
        return False
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    return all(features.get(name, False) for name in ("avx512f", "avx512bw", "avx512vnni"))


def _up(number: int, step: int) -> int:
    """Return the number rounded up to a multiple of `step`."""
    return -(-number // step) * step
