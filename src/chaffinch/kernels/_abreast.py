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
from chaffinch.kernels._scaled import TODO, Messages, Scaled, backward_token, close_sequence, end_sequence, normalise
from chaffinch.kernels.lattice import Floats, Ints


class Panels(NamedTuple):
    """The table in the form the innermost loop wants it."""

    ahead: Floats  # (J, K, WIDE)
    back: Floats  # (J, K, WIDE) of the transpose


class Desk(NamedTuple):
    """Room to work in, for R sequences abreast."""

    order: Ints  # (R,) sequences, longest first
    take: Ints  # (R,) where each row is read
    wide: Floats  # (R + HIGH, J * WIDE) products
    running: Floats  # (R,)


@helper()
def by_length(bounds: Ints, begin: int, end: int, order: Ints) -> int:
    """The longest length; order gets the sequences begin to end, longest first, equals as they came."""
    for i in range(end - begin):
        b, k = begin + i, i
        while k > 0 and bounds[order[k - 1] + 1] - bounds[order[k - 1]] < bounds[b + 1] - bounds[b]:
            order[k] = order[k - 1]
            k -= 1
        order[k] = b
    return int(bounds[order[0] + 1] - bounds[order[0]])


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
            block_product(source, at, panels, j, out, r)


@helper()
def _emit(messages: Messages, cell: int, wide: Floats, r: int, K: int) -> None:
    """Puts row r of `wide` times the emissions into the forward message; the emissions alone if r is -1."""
    row, emit, raw = messages.forward[cell : cell + K], messages.weight[cell : cell + K], wide[max(r, 0)]
    for j in range(row.size):
        row[j] = emit[j] * raw[j] if r >= 0 else emit[j]


@helper()
def _copy(wide: Floats, r: int, out: Floats, cell: int, K: int) -> None:
    row, raw = out[cell : cell + K], wide[r]
    for j in range(row.size):
        row[j] = raw[j]


@helper()
def _forward_token(scaled: Scaled, messages: Messages, b: int, cell: int, product: float) -> float:
    """The running product of scales, after one token of sequence b; `forward` holds the raw message from `cell` on."""
    K = len(scaled.end)
    total = normalise(messages.forward, cell, K)
    if total == 0.0:
        return 0.0
    messages.log_z[b] += scaled.shift[cell // K]
    product *= total
    if 1e-100 < product < 1e100:
        return product
    messages.log_z[b] += math.log(product)
    return 1.0


@helper()
def _forward_group(layout: Layout, scaled: Scaled, panels: Panels, messages: Messages, desk: Desk, R: int) -> None:
    """Fills the forward messages of the first R sequences in order."""
    K, order, take, wide, product = len(scaled.end), desk.order, desk.take, desk.wide, desk.running
    product[:] = 1.0
    live = still_live(layout.bounds, order, R, 0)
    t = 0
    while live > 0:
        if t > 0:
            for r in range(live):
                take[r] = (layout.bounds[order[r]] + t - 1) * K
            _multiply(messages.forward, take[:live], panels.ahead, wide)
        for r in range(live):
            b, cell = order[r], (layout.bounds[order[r]] + t) * K
            _emit(messages, cell, wide, r if t > 0 else -1, K)
            product[r] = _forward_token(scaled, messages, b, cell, product[r])
            if product[r] == 0.0 and messages.status[b] == TODO:
                messages.status[b] = -t - 1
        t += 1
        live = still_live(layout.bounds, order, live, t)
    for r in range(R):
        if messages.status[order[r]] == TODO:
            messages.log_z[order[r]] += math.log(product[r])


@helper()
def _backward_group(layout: Layout, scaled: Scaled, panels: Panels, messages: Messages, desk: Desk, R: int) -> None:
    """Fills marginals, weights and ratios of the first R sequences in order, from their ends on."""
    K, order, take, wide, excess = len(scaled.end), desk.order, desk.take, desk.wide, desk.running
    excess[:] = 0.0
    live = still_live(layout.bounds, order, R, 0)
    t = 0
    while live > 0:
        if t > 0:
            for r in range(live):
                take[r] = (layout.bounds[order[r] + 1] - t) * K
            _multiply(messages.weight, take[:live], panels.back, wide)
        for r in range(live):
            b, n = order[r], layout.bounds[order[r] + 1] - 1 - t
            if t > 0:
                _copy(wide, r, messages.states, n * K, K)
            else:
                end_sequence(layout, scaled, messages, b)
            excess[r] += backward_token(layout, scaled, messages, b, n)
        t += 1
        live = still_live(layout.bounds, order, live, t)
    for r in range(R):
        close_sequence(layout, messages, order[r], excess[r])


@kernel()
def run_abreast(layout: Layout, scaled: Scaled, panels: Panels, messages: Messages, desk: Desk) -> None:
    """Fills the messages, as many sequences abreast as the desk holds."""
    for begin in range(0, len(layout.bounds) - 1, len(desk.order)):
        end = min(begin + len(desk.order), len(layout.bounds) - 1)
        by_length(layout.bounds, begin, end, desk.order)
        _forward_group(layout, scaled, panels, messages, desk, end - begin)
        _backward_group(layout, scaled, panels, messages, desk, end - begin)


def desk_for(rows: int, panels: int) -> Desk:
    """Room for `rows` sequences abreast and a table in so many panels."""
    return Desk(np.zeros(rows, np.int64), np.zeros(rows, np.int64), np.zeros((rows + HIGH, panels * WIDE)), np.zeros(rows))
