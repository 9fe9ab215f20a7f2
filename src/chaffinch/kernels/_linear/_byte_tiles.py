"""Exact products of unsigned with signed bytes, tile by tile, with the byte instructions of AVX-512 VNNI.

A tile is `ROWS` rows times `PANEL` outputs. `kernels.bytes_product` lays the matrices out and says where this runs.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.types.containers import UniTuple
from numba.extending import intrinsic

from chaffinch.kernels._compile import kernel
from chaffinch.kernels._linear._simd import _loop
from chaffinch.kernels.bytes_product import GROUP, PANEL, ROWS, Bytes, Ints32, SignedBytes

LANES = 16  # sums of 32 bits in a vector
VECTORS = PANEL // LANES
_INT = ir.IntType(32)
_VECTOR = ir.VectorType(_INT, LANES)
# The form in which LLVM has had this operation from the first; later versions convert it to theirs.
_ADD_PRODUCTS = ir.FunctionType(_VECTOR, [_VECTOR, _VECTOR, _VECTOR])


def _emit_tile(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Emit out[o + r * w + c] = the sum over k of rows[a + r * s + k] times panel c, for ROWS rows and PANEL outputs.

    The arguments are rows, panels, out, their first places (a, b, o), and s (bytes of a row), the number of groups and
    w (outputs of a row).
    """
    firsts = cgutils.unpack_tuple(builder, args[3])
    arrays = (context.make_array(signature.args[k])(context, builder, args[k]).data for k in range(3))
    rows, panel, out = (builder.gep(array, [first]) for array, first in zip(arrays, firsts, strict=True))
    size, groups, width = cgutils.unpack_tuple(builder, args[4])
    starts = [builder.gep(rows, [builder.mul(size, size.type(row))]) for row in range(ROWS)]
    add_products = cgutils.get_or_insert_function(builder.module, _ADD_PRODUCTS, "llvm.x86.avx512.vpdpbusd.512")
    before, none = builder.basic_block, ir.Constant(_VECTOR, [0] * LANES)
    with _loop(builder, groups, 1) as (k, carry):
        sums = [[builder.phi(_VECTOR) for _ in range(VECTORS)] for _ in range(ROWS)]
        here = builder.gep(panel, [builder.mul(k, k.type(PANEL * GROUP))])
        weights = [
            builder.load(
                builder.bitcast(builder.gep(here, [k.type(number * LANES * GROUP)]), _VECTOR.as_pointer()), align=1
            )
            for number in range(VECTORS)
        ]
        place = builder.mul(k, k.type(GROUP))
        done = []
        for row in range(ROWS):
            four = builder.load(builder.bitcast(builder.gep(starts[row], [place]), _INT.as_pointer()), align=1)
            spread = _spread(builder, four)
            added = []
            for number in range(VECTORS):
                phi = sums[row][number]
                phi.add_incoming(none, before)
                total = builder.call(add_products, [phi, spread, weights[number]])
                carry(phi, total)
                added.append(total)
            done.append(added)
    for row, added in enumerate(done):
        to = builder.gep(out, [builder.mul(width, width.type(row))])
        for number, total in enumerate(added):
            builder.store(
                total, builder.bitcast(builder.gep(to, [width.type(number * LANES)]), _VECTOR.as_pointer()), align=4
            )
    return context.get_dummy_value()


def _spread(builder: Any, scalar: Any) -> Any:
    """Emit code for a vector with the scalar in every lane; return it."""
    first = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), scalar, _INT(0))
    return builder.shuffle_vector(first, ir.Constant(_VECTOR, ir.Undefined), ir.Constant(_VECTOR, [0] * LANES))


def _declare_tile(_typing: Any, rows: Any, panels: Any, out: Any, _firsts: Any, _sizes: Any) -> Any:
    """Return the type signature of a tile product and its code generator, as numba asks."""
    three = UniTuple(types.int64, 3)
    return types.void(rows, panels, out, three, three), _emit_tile


_tile: Any = intrinsic(_declare_tile)


@kernel()
def multiply_panels(rows: Bytes, panels: SignedBytes, out: Ints32) -> None:
    """Fill out (n, M) with the integer products of rows (n, K) and panels; n is a multiple of ROWS, K of GROUP."""
    K, M, groups = rows.shape[1], out.shape[1], panels.shape[1]
    for number in range(panels.shape[0]):
        for row in range(0, rows.shape[0], ROWS):
            first = number * groups * PANEL * GROUP
            _tile(rows, panels, out, (row * K, first, row * M + number * PANEL), (K, groups, M))
