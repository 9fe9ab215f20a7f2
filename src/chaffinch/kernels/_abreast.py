"""Forward-backward for one table and all states allowed: several sequences abreast, as matrix products.

K states, J panels, R sequences abreast, sorted by length so that those still running are always the first rows.
The product is ours, not the library's: there a row's rounding may depend on how many rows stand beside it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from chaffinch.kernels._compiled import helper, kernel
from chaffinch.kernels._micro import HIGH, WIDE, block_product
from chaffinch.kernels._plan import Layout
from chaffinch.kernels._scaled import (
    TODO,
    Messages,
    Scaled,
    Source,
    backward_token,
    close_sequence,
    end_sequence,
    exp_token,
    multiply,
    rescale,
)
from chaffinch.kernels.lattice import Floats, Ints


ROWS = 32  # sequences abreast


class Panels(NamedTuple):
    """The table in the form the innermost loop wants it."""

    ahead: Floats  # (J, K, WIDE)
    back: Floats  # (J, K, WIDE) of the transpose


class Desk(NamedTuple):
    """Room to work in, for R sequences abreast."""

    take: Ints  # (R,) where each row is read
    wide: Floats  # (R + HIGH, J * WIDE) products
    running: Floats  # (R,)


@helper()
def still_live(bounds: Ints, order: Ints, live: int, t: int) -> int:
    """How many of the first `live` sequences, longest first, have a token t."""
    while live > 0 and bounds[order[live - 1] + 1] - bounds[order[live - 1]] <= t:
        live -= 1
    return live


@helper()
def _multiply(source: Floats, take: Ints, panels: Floats, out: Floats) -> None:
    """The first rows of `out` = rows of `source` at `take`, times the table.

    Four rows at a time, always; a row that lacks company is computed more than once.
    """
    last = take.size - 1
    for j in range(len(panels)):
        for r in range(0, take.size, HIGH):
            at = (take[r], take[min(r + 1, last)], take[min(r + 2, last)], take[min(r + 3, last)])
            block_product(source, at, panels, j, out, r, 1.0)


@helper()
def _forward_group(layout: Layout, source: Source, scaled: Scaled, table: Floats, messages: Messages, desk: Desk) -> None:
    """Fills the forward messages of the sequences in the source's order."""
    K, order, take, wide, product = len(scaled.end), source.order, desk.take, desk.wide, desk.running
    product[:] = 1.0
    live = still_live(layout.bounds, order, order.size, 0)
    t = 0
    while live > 0:
        if t > 0:
            for r in range(live):
                take[r] = (layout.bounds[order[r]] + t - 1) * K
            _multiply(messages.forward, take[:live], table, wide)
        else:
            wide[:live] = 1.0
        for r in range(live):
            b, n = order[r], layout.bounds[order[r]] + t
            exp_token(layout, source, scaled, messages, b, n)
            row = messages.forward[n * K : n * K + K]
            total = multiply(wide[r, :K], messages.weight[n * K : n * K + K], row)
            rescale(row, total)
            messages.log_z[b] += scaled.shift[n]
            product[r] *= total
            if total == 0.0 and messages.status[b] == TODO:
                messages.status[b] = -t - 1
            if not 1e-100 < product[r] < 1e100:
                messages.log_z[b] += math.log(product[r]) if total > 0.0 else 0.0
                product[r] = 1.0
        t += 1
        live = still_live(layout.bounds, order, live, t)
    for r in range(order.size):
        if messages.status[order[r]] == TODO:
            messages.log_z[order[r]] += math.log(product[r])


@helper()
def _backward_group(layout: Layout, order: Ints, scaled: Scaled, table: Floats, messages: Messages, desk: Desk) -> None:
    """Fills marginals and weights of the sequences in order, from their ends on."""
    K, take, wide, excess = len(scaled.end), desk.take, desk.wide, desk.running
    excess[:] = 0.0
    live = still_live(layout.bounds, order, order.size, 0)
    t = 0
    while live > 0:
        if t > 0:
            for r in range(live):
                take[r] = (layout.bounds[order[r] + 1] - t) * K
            _multiply(messages.weight, take[:live], table, wide)
        for r in range(live):
            b, n = order[r], layout.bounds[order[r] + 1] - 1 - t
            raw = wide[r, :K]
            if t == 0:
                end_sequence(layout, scaled, messages, b)
                raw = messages.states[n * K : n * K + K]
            excess[r] += backward_token(layout, scaled, messages, raw, b, n)
        t += 1
        live = still_live(layout.bounds, order, live, t)
    for r in range(order.size):
        close_sequence(layout, messages, order[r], excess[r])


@kernel()
def run_abreast(
    layout: Layout, source: Source, scaled: Scaled, panels: Panels, messages: Messages, desk: Desk
) -> None:
    """Fills the messages, as many sequences abreast as the desk holds."""
    for begin in range(0, source.order.size, desk.take.size):
        some = Source(source.start, source.emit, source.order[begin : begin + desk.take.size])
        _forward_group(layout, some, scaled, panels.ahead, messages, desk)
        _backward_group(layout, some.order, scaled, panels.back, messages, desk)


def desk_for(rows: int, panels: int) -> Desk:
    """Room for `rows` sequences abreast and a table in so many panels."""
    return Desk(np.zeros(rows, np.int64), np.zeros((rows + HIGH, panels * WIDE)), np.zeros(rows))
