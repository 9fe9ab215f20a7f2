"""Two row operations for the vector unit, eight float32 at a time: dst += a * src, and dst = max(dst, a + src).

W is the width of a row, a multiple of `LANES`. Numba's own loops over so short a row mostly run one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

LANES = 8
VECTOR = ir.VectorType(ir.FloatType(), LANES)

Singles = NDArray[np.float32]


def _sum(builder: Any, scalar: Any, entry: Any, total: Any) -> Any:
    return builder.fadd(total, builder.fmul(scalar, entry, flags=("contract",)), flags=("contract",))


def _largest(builder: Any, scalar: Any, entry: Any, total: Any) -> Any:
    value = builder.fadd(scalar, entry)
    return builder.select(builder.fcmp_ordered(">", value, total), value, total)


def _row(join: Callable[..., Any]) -> Callable[..., Any]:
    """A code generator: out[i:i+W] = join(out[i:i+W], source[j:j+W], scalar), both arrays flat."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        out, source = (context.make_array(signature.args[k])(context, builder, args[k]).data for k in (0, 2))
        to, at, width = builder.gep(out, [args[1]]), builder.gep(source, [args[3]]), args[5]
        one = builder.insert_element(ir.Constant(VECTOR, ir.Undefined), args[4], ir.IntType(32)(0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        scalar = builder.shuffle_vector(one, ir.Constant(VECTOR, ir.Undefined), zeros)
        before, body, after = builder.basic_block, *(builder.append_basic_block(name) for name in ("body", "after"))
        builder.branch(body)
        builder.position_at_end(body)
        k = builder.phi(width.type)
        k.add_incoming(width.type(0), before)
        place = builder.bitcast(builder.gep(to, [k]), VECTOR.as_pointer())
        entry = builder.load(builder.bitcast(builder.gep(at, [k]), VECTOR.as_pointer()), align=4)
        builder.store(join(builder, scalar, entry, builder.load(place, align=4)), place, align=4)
        following = builder.add(k, width.type(LANES))
        k.add_incoming(following, body)
        builder.cbranch(builder.icmp_signed("<", following, width), body, after)
        builder.position_at_end(after)
        return context.get_dummy_value()

    return generate


def _sum_twin(out: Singles, i: int, source: Singles, j: int, scalar: float, width: int) -> None:
    out[i : i + width] += np.float32(scalar) * source[j : j + width]


def _largest_twin(out: Singles, i: int, source: Singles, j: int, scalar: float, width: int) -> None:
    np.maximum(out[i : i + width], np.float32(scalar) + source[j : j + width], out=out[i : i + width])


def _compiled(join: Callable[..., Any], twin: Callable[..., None]) -> Callable[..., None]:
    if numba.config.DISABLE_JIT:
        return twin

    def declare(_typing: Any, out: Any, _i: Any, source: Any, _j: Any, _scalar: Any, _width: Any) -> Any:
        places = types.int64
        return types.void(out, places, source, places, types.float32, places), _row(join)

    row: Callable[..., None] = intrinsic(declare)
    return row


# Both take (out, i, source, j, scalar, width) and work on out[i : i + width] and source[j : j + width].
add_row = _compiled(_sum, _sum_twin)
largest_row = _compiled(_largest, _largest_twin)
