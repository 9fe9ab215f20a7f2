"""Linear maps on bytes: sums against whole numbers, rounding against its bound, both paths against one another."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaffinch.kernels import bytes_product
from chaffinch.kernels.bytes_product import (
    SLICE,
    ByteMatrix,
    ByteRows,
    Floats32,
    add_and_normalise,
    apply,
    apply_gelu,
    exponentiate,
    has_byte_products,
    multiply,
    pack,
    to_bytes,
)
from tests.kernels.test_compiled import python

PATHS = [False, True] if has_byte_products() else [False]  # slices for BLAS; panels where the processor has them
every_path = pytest.mark.parametrize("panels", PATHS)


def rows_of(values: np.ndarray[tuple[int, int], np.dtype[np.uint8]]) -> ByteRows:
    """Bytes as they are, in arrays that are larger than needed and full of other bytes."""
    n, K = values.shape
    held = np.full((-(-n // bytes_product.ROWS) * bytes_product.ROWS, -(-K // 4) * 4), 255, np.uint8)
    held[:n, :K] = values
    return ByteRows(held, np.ones(n, np.float32), np.zeros(n, np.float32))


def plain(matrix: np.ndarray[tuple[int, int], np.dtype[np.int8]], *, panels: bool) -> ByteMatrix:
    M = matrix.shape[1]
    return pack(matrix, np.ones(M, np.float32), np.zeros(M, np.float32), panels=panels)


@every_path
@settings(deadline=None, max_examples=40)
@given(n=st.integers(1, 14), K=st.integers(1, 70), M=st.integers(1, 140), seed=st.integers(0, 9))
def test_sums_are_exact(panels: bool, n: int, K: int, M: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 256, (n, K), dtype=np.uint8)
    matrix = rng.integers(-127, 128, (K, M), dtype=np.int8)
    found = multiply(rows_of(values), plain(matrix, panels=panels))[:n, :M]
    np.testing.assert_array_equal(found, values.astype(np.int64) @ matrix.astype(np.int64))


@every_path
@pytest.mark.parametrize("sign", [-127, 127])
def test_the_largest_sums_are_exact(panels: bool, sign: int) -> None:
    K = 3 * SLICE + 7
    found = multiply(rows_of(np.full((7, K), 255, np.uint8)), plain(np.full((K, 65), sign, np.int8), panels=panels))
    assert (found[:7, :65] == 255 * sign * K).all()


def a_map(K: int, M: int, *, panels: bool, seed: int = 0) -> tuple[ByteMatrix, Floats32, Floats32]:
    """A packed map, its weights in floats, its bias."""
    rng = np.random.default_rng(seed)
    matrix, scales = rng.integers(-127, 128, (K, M), dtype=np.int8), rng.uniform(1e-3, 1e-2, M).astype(np.float32)
    bias = rng.normal(size=M).astype(np.float32)
    return pack(matrix, scales, bias, panels=panels), matrix.astype(np.float32) * scales, bias


@every_path
def test_a_map_is_within_half_a_step_of_each_input(panels: bool) -> None:
    x = np.random.default_rng(1).normal(size=(11, 38)).astype(np.float32) * np.logspace(-3, 3, 11)[:, None].astype("f4")
    packed, weights, bias = a_map(38, 66, panels=panels)
    steps = (x.max(axis=1) - x.min(axis=1)) / 255
    exact = x.astype(np.float64) @ weights.astype(np.float64) + bias
    bound = 0.501 * steps[:, None] * np.abs(weights).sum(axis=0) + 1e-5 * np.abs(exact) + 1e-5
    assert (np.abs(apply(to_bytes(x), packed) - exact) <= bound).all()
    assert np.abs(apply(to_bytes(x), packed) - exact).max() > 0


def test_both_paths_have_the_same_bits() -> None:
    if len(PATHS) < 2:
        pytest.skip("this processor has no byte products")
    x = to_bytes(np.random.default_rng(2).normal(size=(13, 70)).astype(np.float32))
    one, other = (a_map(70, 100, panels=panels)[0] for panels in PATHS)
    np.testing.assert_array_equal(apply(x, one), apply(x, other))
    np.testing.assert_array_equal(apply_gelu(x, one).values[:13, :100], apply_gelu(x, other).values[:13, :100])


def test_constant_rows_and_zeros_come_back() -> None:
    packed, weights, bias = a_map(8, 5, panels=False)
    for value in (0.0, -3.5, 1e-20):
        x = np.full((2, 8), value, np.float32)
        np.testing.assert_allclose(apply(to_bytes(x), packed), x @ weights + bias, rtol=1e-5, atol=1e-5)


@every_path
def test_gelu_is_its_formula_in_tanh(panels: bool) -> None:
    x = np.random.default_rng(3).normal(size=(9, 24)).astype(np.float32)
    packed, _, _ = a_map(24, 40, panels=panels)
    inner = apply(to_bytes(x), packed).astype(np.float64)
    expected = [
        [0.5 * v * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3))) for v in row]
        for row in inner.tolist()
    ]
    found = apply_gelu(to_bytes(x), packed)
    back = found.values[:9, :40] * found.steps[:, None].astype(np.float64) + found.lows[:, None]
    assert (np.abs(back - expected) <= 0.51 * found.steps[:, None] + 1e-5).all()


def test_gelu_far_from_zero() -> None:
    bias = np.array([-40.0, -9.0, 9.0, 40.0], np.float32)
    packed = pack(np.zeros((4, 4), np.int8), np.ones(4, np.float32), bias, panels=False)
    found = apply_gelu(to_bytes(np.ones((1, 4), np.float32)), packed)
    back = found.values[:1, :4] * found.steps[:, None] + found.lows[:, None]
    np.testing.assert_allclose(back, [[0, 0, 9, 40]], atol=0.51 * float(found.steps[0]))


def test_exponentials_and_their_sums() -> None:
    x = np.random.default_rng(4).normal(size=(6, 37)).astype(np.float32) * 20
    x[0], x[1, 5] = 0.0, -1e30
    expected = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    totals = exponentiate(x)
    np.testing.assert_allclose(x, expected, rtol=2e-5, atol=1e-30)
    np.testing.assert_allclose(totals, expected.sum(axis=1), rtol=1e-5)


def test_rows_are_added_and_normalised() -> None:
    rng = np.random.default_rng(5)
    x, y = rng.normal(3, 2, (5, 24)).astype(np.float32), rng.normal(size=(5, 24)).astype(np.float32)
    gain, shift = rng.normal(size=24).astype(np.float32), rng.normal(size=24).astype(np.float32)
    total = x.astype(np.float64) + y
    centred = total - total.mean(axis=1, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-12) * gain + shift
    add_and_normalise(x, y, gain, shift, 1e-12)
    np.testing.assert_allclose(x, expected, rtol=0, atol=1e-5)


_USE = """
import numpy as np
from chaffinch.kernels.bytes_product import *
from chaffinch.kernels.bytes_product import add_and_normalise, apply, apply_gelu, exponentiate, has_byte_products, pack
rng = np.random.default_rng(7)
x, y = (rng.normal(size=(50, 132)).astype(np.float32) for _ in range(2))
matrix = rng.integers(-127, 128, (132, 100), dtype=np.int8)
packed = pack(matrix, rng.uniform(0.001, 0.01, 100).astype(np.float32), np.ones(100, np.float32))
rows = apply_gelu(to_bytes(x), packed)
out = [apply(to_bytes(x), packed), rows.values[:50, :100] * rows.steps[:, None] + rows.lows[:, None], exponentiate(y)]
add_and_normalise(x, y, rng.normal(size=132).astype(np.float32), np.ones(132, np.float32), 1e-12)
print(has_byte_products(), np.concatenate([part.ravel() for part in (*out, x, y)]).astype(np.float64).tolist())
"""


def computed(cache: Path, **extra: str) -> tuple[bool, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """What another process computes, and whether it has byte products."""
    has, _, values = python(_USE, cache, **extra).stdout.partition(" ")
    return has == "True", np.array(json.loads(values))


def test_plain_python_computes_the_same() -> None:
    """To the last bit: nothing is fused or reordered, and sums of bytes are exact."""
    has, slow = computed(Path(os.environ["CHAFFINCH_CACHE"]), NUMBA_DISABLE_JIT="1")
    assert not has
    np.testing.assert_array_equal(computed(Path(os.environ["CHAFFINCH_CACHE"]))[1], slow)


def test_code_from_the_cache_computes_what_fresh_code_does(tmp_path: Path) -> None:
    fresh, kept = computed(tmp_path)[1], computed(tmp_path)[1]
    np.testing.assert_array_equal(fresh, kept)
