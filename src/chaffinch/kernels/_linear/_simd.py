"""Two vectorised operations on rows, eight float32 at a time: adding a row, and one step of Viterbi.

W is the width of a row, a multiple of `LANES`. Loops over such short rows are mostly not vectorised by numba.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

LANES = 8  # float32 in a vector
VECTOR = ir.VectorType(ir.FloatType(), LANES)

Singles = NDArray[np.float32]


def _load(builder: Any, pointer: Any, offset: Any) -> Any:
    """Emit a load of one vector of floats at pointer + offset."""
    return builder.load(builder.bitcast(builder.gep(pointer, [offset]), VECTOR.as_pointer()), align=4)


def _store(builder: Any, value: Any, pointer: Any, offset: Any) -> None:
    """Emit a store of one vector of floats at pointer + offset."""
    builder.store(value, builder.bitcast(builder.gep(pointer, [offset]), VECTOR.as_pointer()), align=4)


def _spread(builder: Any, scalar: Any) -> Any:
    """Emit code for a vector with the scalar in every lane; return it."""
    first = builder.insert_element(ir.Constant(VECTOR, ir.Undefined), scalar, ir.IntType(32)(0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(first, ir.Constant(VECTOR, ir.Undefined), zeros)


@contextmanager
def _loop(builder: Any, count: Any, step: int) -> Iterator[tuple[Any, Callable[[Any, Any], Any]]]:
    """Emit an LLVM loop over 0, step, ... below count that runs at least once; yield (index, function `carry`).

    `carry(phi, value)` passes a value to the next round.
    """
    before, body, after = builder.basic_block, *(builder.append_basic_block(name) for name in ("body", "after"))
    builder.branch(body)
    builder.position_at_end(body)
    k = builder.phi(count.type)
    k.add_incoming(count.type(0), before)
    carried: list[tuple[Any, Any]] = []
    yield k, lambda phi, value: carried.append((phi, value))
    last = builder.basic_block
    following = builder.add(k, count.type(step))
    for phi, value in [(k, following), *carried]:
        phi.add_incoming(value, last)
    builder.cbranch(builder.icmp_signed("<", following, count), body, after)
    builder.position_at_end(after)


def _add(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Emit LLVM code for out[i : i + W] += scalar * source[j : j + W]."""
    out, source = (context.make_array(signature.args[k])(context, builder, args[k]).data for k in (0, 2))
    to, at, scalar = builder.gep(out, [args[1]]), builder.gep(source, [args[3]]), _spread(builder, args[4])
    with _loop(builder, args[5], LANES) as (k, _):
        product = builder.fmul(scalar, _load(builder, at, k), flags=("contract",))
        _store(builder, builder.fadd(_load(builder, to, k), product, flags=("contract",)), to, k)
    return context.get_dummy_value()


def _largest(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Emit best[i + W + y] = score[i + W + y] + max over x < K of best[i + x] + table[x * W + y], for y < W."""
    best, table, score = (context.make_array(signature.args[k])(context, builder, args[k]).data for k in (0, 2, 3))
    i, K, W = args[1], args[4], args[5]
    source, now = builder.gep(best, [i]), builder.add(i, W)
    least = ir.Constant(VECTOR, [float("-inf")] * LANES)
    with _loop(builder, W, LANES) as (k, _):
        outer = builder.basic_block
        with _loop(builder, K, 1) as (x, carry):
            top = builder.phi(VECTOR)
            top.add_incoming(least, outer)
            entry = _load(builder, table, builder.add(builder.mul(x, W), k))
            value = builder.fadd(_spread(builder, builder.load(builder.gep(source, [x]))), entry)
            larger = builder.select(builder.fcmp_ordered(">", value, top), value, top)
            carry(top, larger)
        offset = builder.add(now, k)
        _store(builder, builder.fadd(larger, _load(builder, score, offset)), best, offset)
    return context.get_dummy_value()


def _python_add(out: Singles, i: int, source: Singles, j: int, scalar: float, width: int) -> None:
    """Add scalar · source[j:j+width] to out[i:i+width]; the plain Python twin of the compiled operation."""
    out[i : i + width] += np.float32(scalar) * source[j : j + width]


def _python_largest(best: Singles, i: int, table: Singles, score: Singles, K: int, W: int) -> None:
    """Write score plus the largest of best[i+x] + table[x] to best[i+W:]; the Python twin of the compiled row."""
    sums = best[i : i + K, None] + table[: K * W].reshape(K, W)
    best[i + W : i + 2 * W] = sums.max(axis=0) + score[i + W : i + 2 * W]


def _compile(generate: Callable[..., Any], kinds: str, python: Callable[..., None]) -> Callable[..., None]:
    """Return the row operation as a numba intrinsic, or the Python one if compilation is switched off.

    `kinds` has a letter per argument: i whole number, f float32, a array.
    """
    if numba.config.DISABLE_JIT:
        return python
    plain = {"i": types.int64, "f": types.float32}

    def declare(_typing: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any) -> Any:
        """Return the type signature and the code generator of the block, as numba asks."""
        arguments = (plain.get(kind, inferred) for kind, inferred in zip(kinds, (a, b, c, d, e, f), strict=True))
        return types.void(*arguments), generate

    row: Callable[..., None] = intrinsic(declare)
    return row


# add_row(out, i, source, j, scalar, W): see `_add`. largest_row(best, i, table, score, K, W): see `_largest`.
add_row = _compile(_add, "aiaifi", _python_add)
largest_row = _compile(_largest, "aiaaii", _python_largest)
