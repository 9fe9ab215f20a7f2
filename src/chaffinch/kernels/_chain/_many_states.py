"""Forward-backward for many states: up to R sequences abreast, as matrix products.

K states, J panels, T tokens of the longest sequence. Sequences are sorted by length, so that those still running are
always the first rows, and rows are kept token by token: row r of token t is row base[t] + r. The product is ours,
not the library's: there a row's rounding may depend on how many rows stand beside it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from chaffinch.kernels._chain._layout import ROWS, BatchLayout
from chaffinch.kernels._chain._matmul import HIGH, WIDE, block_product
from chaffinch.kernels._chain._scaled import (
    DONE,
    PENDING,
    Messages,
    Scaled,
    ScaledInput,
    Token,
    accept,
    backward_token,
    end_sequence,
    exp_token,
    finish,
    multiply,
    rescale,
)
from chaffinch.kernels._compile import helper, kernel
from chaffinch.kernels.lattice import Floats, Ints


class Panels(NamedTuple):
    """The table in the form the innermost loop wants it."""

    ahead: Floats  # (J, K, WIDE)
    back: Floats  # (J, K, WIDE) of the transpose


class Desk(NamedTuple):
    """Room to work in."""

    forward: Floats  # (N, K) forward messages; then, in the row of the token after, shares of pair marginals
    weight: Floats  # (N, K) emissions, then emissions times backward messages
    base: Ints  # (T+1,)
    wide: Floats  # (R + HIGH, J * WIDE) products
    running: Floats  # (2, R) scales multiplied up; excess


def desk_for(tokens: int, K: int) -> Desk:
    """Room for a part of so many tokens."""
    panels = -(-K // WIDE)
    cells = np.empty((tokens, K)), np.empty((tokens, K)), np.zeros(tokens + 1, np.int64)
    return Desk(*cells, np.zeros((ROWS + HIGH, panels * WIDE)), np.zeros((2, ROWS)))


@helper()
def still_live(bounds: Ints, order: Ints, live: int, t: int) -> int:
    """How many of the first `live` sequences, longest first, have a token t."""
    while live > 0 and bounds[order[live - 1] + 1] - bounds[order[live - 1]] <= t:
        live -= 1
    return live


@helper()
def _multiply(source: Floats, first: int, rows: int, panels: Floats, out: Floats) -> None:
    """The first rows of `out` = rows of `source`, from `first` on, times the table.

    Four rows at a time, always; a row that lacks company is computed more than once.
    """
    K, last, flat = source.shape[1], first + rows - 1, source.reshape(-1)
    for j in range(len(panels)):
        for r in range(0, rows, HIGH):
            p = first + r
            at = (p * K, min(p + 1, last) * K, min(p + 2, last) * K, min(p + 3, last) * K)
            block_product(flat, at, panels, j, out[r:], 1.0)


@helper()
def _run_forward(
    layout: BatchLayout, source: ScaledInput, scaled: Scaled, table: Floats, messages: Messages, desk: Desk
) -> int:
    """The longest length; fills forward messages and starts log Z, or notes where a sequence dies."""
    K, order, wide, product = len(scaled.end), source.order, desk.wide, desk.running[0]
    product[:] = 1.0
    live, t = still_live(layout.bounds, order, order.size, 0), 0
    while live > 0:
        desk.base[t + 1] = desk.base[t] + live
        if t > 0:
            _multiply(desk.forward, desk.base[t - 1], live, table, wide)
        else:
            wide[:live] = 1.0
        for r in range(live):
            b, n, row = order[r], layout.bounds[order[r]] + t, desk.forward[desk.base[t] + r]
            exp_token(layout, source, scaled.shift, desk.weight[desk.base[t] + r], b, n)
            total = multiply(wide[r, :K], desk.weight[desk.base[t] + r], row)
            rescale(row, total)
            messages.log_z[b] += scaled.shift[n]
            product[r] *= total
            if total == 0.0 and messages.status[b] == PENDING:
                messages.status[b] = -t - 1
            if not 1e-100 < product[r] < 1e100:
                messages.log_z[b] += math.log(product[r]) if total > 0.0 else 0.0
                product[r] = 1.0
        t += 1
        live = still_live(layout.bounds, order, live, t)
    for r in range(order.size):
        messages.log_z[order[r]] += math.log(product[r])
    return t


@helper()
def _run_backward(
    layout: BatchLayout, source: ScaledInput, scaled: Scaled, table: Floats, messages: Messages, desk: Desk
) -> None:
    """Fills marginals, weights and shares, and completes log Z."""
    K, order, base, wide, excess = len(scaled.end), source.order, desk.base, desk.wide, desk.running[1]
    excess[:] = 0.0
    T = layout.bounds[order[0] + 1] - layout.bounds[order[0]]
    for t in range(T - 1, -1, -1):
        going = base[t + 2] - base[t + 1] if t + 1 < T else 0
        if going > 0:
            _multiply(desk.weight, base[t + 1], going, table, wide)
        for r in range(base[t + 1] - base[t]):
            b, cell = order[r], layout.at[layout.bounds[order[r]] + t]
            states, forward, weight = (
                messages.states[cell : cell + K],
                desk.forward[base[t] + r],
                desk.weight[base[t] + r],
            )
            raw, following = wide[r, :K], weight[:0]
            if r < going:
                following = desk.weight[base[t + 1] + r]
            else:
                end_sequence(layout, scaled, messages, b)
                raw = states
            ratio, log_total, more = backward_token(Token(forward, weight, states, raw, following), scaled.floor)
            excess[r] += more
            if r < going:
                share = desk.forward[base[t + 1] + r]
                for j in range(K):
                    share[j] = forward[j] * ratio
            else:
                finish(layout, messages, b, log_total)
    for r in range(order.size):
        accept(messages, order[r], excess[r])


@helper()
def _withdraw(source: ScaledInput, messages: Messages, desk: Desk, T: int) -> None:
    """Clears the shares of first tokens, which nothing leads into, and of sequences that were not accepted."""
    for t in range(T):
        for r in range(desk.base[t + 1] - desk.base[t]):
            if t == 0 or messages.status[source.order[r]] != DONE:
                desk.forward[desk.base[t] + r] = 0.0


@helper()
def _keep(layout: BatchLayout, source: ScaledInput, messages: Messages, desk: Desk, T: int) -> None:
    """Copies shares and weights to their places among the messages."""
    K = desk.weight.shape[1]
    for t in range(T):
        for r in range(desk.base[t + 1] - desk.base[t]):
            cell = layout.at[layout.bounds[source.order[r]] + t]
            goes_on = t + 1 < T and r < desk.base[t + 2] - desk.base[t + 1]
            for j in range(K):
                messages.forward[cell + j] = desk.forward[desk.base[t + 1] + r, j] if goes_on else 0.0
                messages.weight[cell + j] = desk.weight[desk.base[t] + r, j]


@kernel()
def run_abreast(
    layout: BatchLayout, source: ScaledInput, scaled: Scaled, panels: Panels, messages: Messages, desk: Desk
) -> int:
    """The tokens of the part; fills marginals, and the messages if there is room for them."""
    T = _run_forward(layout, source, scaled, panels.ahead, messages, desk)
    if T > 0:
        _run_backward(layout, source, scaled, panels.back, messages, desk)
        _withdraw(source, messages, desk, T)
    if messages.forward.size > 0:
        _keep(layout, source, messages, desk, T)
    return int(desk.base[T])
