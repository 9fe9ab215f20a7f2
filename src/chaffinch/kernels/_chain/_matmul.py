"""The two innermost loops, written for the vector unit: four rows against eight columns, sums kept in registers.

K states; a table (K, K) is cut into J panels of `WIDE` columns, the last padded: (J, K, WIDE). Loops that numba
compiles reach half of this speed. Every entry is one chain of products, or of maxima, in order of i: it does not
depend on which of the four rows it is in, nor on the other rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from chaffinch.kernels.lattice import Floats

HIGH, LANES, VECTORS = 4, 4, 2  # rows of a block, float64 in a vector, vectors side by side
WIDE = LANES * VECTORS
VECTOR = ir.VectorType(ir.DoubleType(), LANES)

Join = Callable[[Any, Any, Any, Any, Any], Any]


def _product(builder: Any, factor: Any, entry: Any, total: Any, _: Any) -> Any:
    """Emit LLVM code for total + factor * entry, fused; return its value."""
    return builder.fadd(total, builder.fmul(factor, entry, flags=("contract",)), flags=("contract",))


def _largest(builder: Any, factor: Any, entry: Any, total: Any, one: Any) -> Any:
    """Emit LLVM code for the larger of total and factor + entry; return its value.

    The sum is written entry * 1 + factor, which is the same number: processors add and compare on the same units and
    multiply on others, which makes this half as fast again. The 1 is an argument: the compiler would remove a constant.
    """
    kind = ir.FunctionType(VECTOR, [VECTOR] * 3)
    fused = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fmuladd.v{LANES}f64")
    value = builder.call(fused, [entry, one, factor])
    return builder.select(builder.fcmp_ordered(">", value, total), value, total)


def _block(join: Join, first: float) -> Callable[..., Any]:
    """Return a code generator: out[r, WIDE * j:] = join over i of source[at[r] + i] and panels[j, i], for r < HIGH."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        """Emit the LLVM loop of the block product; return numba's dummy value."""
        _, at, _, j, _, one = args
        source, panels, out = (context.make_array(signature.args[k])(context, builder, args[k]) for k in (0, 2, 4))
        starts = [builder.gep(source.data, [builder.extract_value(at, r)]) for r in range(HIGH)]
        _, K, _ = cgutils.unpack_tuple(builder, panels.shape, 3)
        _, W = cgutils.unpack_tuple(builder, out.shape, 2)
        column, ones = builder.mul(j, K.type(WIDE)), _spread(builder, one)
        panel = builder.gep(panels.data, [builder.mul(column, K)])
        before, body, after = builder.basic_block, *(builder.append_basic_block(name) for name in ("body", "after"))
        builder.branch(body)
        builder.position_at_end(body)
        i, sums = builder.phi(K.type), [builder.phi(VECTOR) for _ in range(HIGH * VECTORS)]
        i.add_incoming(K.type(0), before)
        row = builder.gep(panel, [builder.mul(i, K.type(WIDE))])
        entries = [_load(builder, row, K.type(v * LANES)) for v in range(VECTORS)]
        results = []
        for r, v in itertools.product(range(HIGH), range(VECTORS)):
            total = sums[r * VECTORS + v]
            factor = _spread(builder, builder.load(builder.gep(starts[r], [i])))
            results.append(join(builder, factor, entries[v], total, ones))
            total.add_incoming(ir.Constant(VECTOR, [first] * LANES), before)
            total.add_incoming(results[-1], body)
        following = builder.add(i, K.type(1))
        i.add_incoming(following, body)
        builder.cbranch(builder.icmp_signed("<", following, K), body, after)
        builder.position_at_end(after)
        for r, v in itertools.product(range(HIGH), range(VECTORS)):
            offset = builder.add(builder.add(builder.mul(K.type(r), W), column), K.type(v * LANES))
            _store(builder, results[r * VECTORS + v], out.data, offset)
        return context.get_dummy_value()

    return generate


def _load(builder: Any, pointer: Any, offset: Any) -> Any:
    """Emit a load of one vector of doubles at pointer + offset."""
    address = builder.bitcast(builder.gep(pointer, [offset]), VECTOR.as_pointer())
    return builder.load(address, align=8)


def _store(builder: Any, value: Any, pointer: Any, offset: Any) -> None:
    """Emit a store of one vector of doubles at pointer + offset."""
    address = builder.bitcast(builder.gep(pointer, [offset]), VECTOR.as_pointer())
    builder.store(value, address, align=8)


def _spread(builder: Any, scalar: Any) -> Any:
    """Emit code for a vector with the scalar in every lane; return it."""
    first = builder.insert_element(ir.Constant(VECTOR, ir.Undefined), scalar, ir.IntType(32)(0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(first, ir.Constant(VECTOR, ir.Undefined), zeros)


At = tuple[int, int, int, int]


def _python_product(source: Floats, at: At, panels: Floats, j: int, out: Floats, _: float) -> None:
    """Write the products of HIGH rows with panel `j` to `out`; the plain Python twin of the compiled block."""
    for r in range(HIGH):
        out[r, WIDE * j : WIDE * (j + 1)] = source[at[r] : at[r] + panels.shape[1]] @ panels[j]


def _python_largest(source: Floats, at: At, panels: Floats, j: int, out: Floats, _: float) -> None:
    """Write the largest of row[i] + panels[j, i] over i to `out`, for HIGH rows; Python twin of the compiled block."""
    for r in range(HIGH):
        sums = source[at[r] : at[r] + panels.shape[1], None] + panels[j]
        out[r, WIDE * j : WIDE * (j + 1)] = sums.max(axis=0)


def _compile(join: Join, first: float, python: Callable[..., None]) -> Callable[..., None]:
    """Return the block operation as a numba intrinsic, or the Python one if compilation is switched off."""
    if numba.config.DISABLE_JIT:
        return python

    def declare(_typing: Any, source: Any, at: Any, panels: Any, _j: Any, out: Any, _one: Any) -> Any:
        """Return the type signature and the code generator of the block, as numba asks."""
        return types.void(source, at, panels, types.int64, out, types.float64), _block(join, first)

    block: Callable[..., None] = intrinsic(declare)
    return block


# Both take (source, at, panels, j, out, one); see `_block`.
block_product = _compile(_product, 0.0, _python_product)
block_largest = _compile(_largest, -np.inf, _python_largest)


def to_panels(table: Floats, fill: float) -> Floats:
    """Return the table (K, K) cut into panels (J, K, WIDE), the last one padded with `fill`."""
    K = len(table)
    wide = np.full((K, -(-K // WIDE) * WIDE), fill)
    wide[:, :K] = table
    return np.ascontiguousarray(wide.reshape(K, -1, WIDE).transpose(1, 0, 2))
