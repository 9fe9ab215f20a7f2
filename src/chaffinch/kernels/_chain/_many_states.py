"""Forward-backward for many states: up to R sequences side by side, as matrix products.

K states, J panels, T tokens of the longest sequence. Sequences are sorted by length, so that those still running are
always the first rows, and rows are kept token by token: row r of token t is row base[t] + r. The product is our
code, not BLAS: there a row's rounding may depend on the number of rows.
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
    """The transition table as panels for the innermost loop."""

    ahead: Floats  # (J, K, WIDE)
    back: Floats  # (J, K, WIDE) of the transpose


class RowWorkspace(NamedTuple):
    """Arrays of a block of R sequences, used again for every block."""

    forward: Floats  # (N, K) forward messages; then, in the row of the token after, shares of pair marginals
    weight: Floats  # (N, K) emissions, then emissions times backward messages
    base: Ints  # (T+1,)
    wide: Floats  # (R + HIGH, J * WIDE) products
    running: Floats  # (2, R) product of the scales; excess


def row_workspace(tokens: int, K: int) -> RowWorkspace:
    """Return arrays for blocks of ROWS sequences that have at most `tokens` tokens together, K states each."""
    panels = -(-K // WIDE)
    cells = np.empty((tokens, K)), np.empty((tokens, K)), np.zeros(tokens + 1, np.int64)
    return RowWorkspace(*cells, np.zeros((ROWS + HIGH, panels * WIDE)), np.zeros((2, ROWS)))


@helper()
def count_live(bounds: Ints, order: Ints, live: int, t: int) -> int:
    """Return how many of the first `live` sequences, longest first, have a token t."""
    while live > 0 and bounds[order[live - 1] + 1] - bounds[order[live - 1]] <= t:
        live -= 1
    return live


@helper()
def _multiply(source: Floats, first: int, rows: int, panels: Floats, out: Floats) -> None:
    """Put `rows` rows of `source`, from `first` on, times the table in panels, into the first rows of `out`.

    Always four rows at a time; the last row is computed more than once if rows are missing.
    """
    K, last, flat = source.shape[1], first + rows - 1, source.reshape(-1)
    for j in range(len(panels)):
        for r in range(0, rows, HIGH):
            p = first + r
            at = (p * K, min(p + 1, last) * K, min(p + 2, last) * K, min(p + 3, last) * K)
            block_product(flat, at, panels, j, out[r:], 1.0)


@helper()
def _run_forward(
    layout: BatchLayout, source: ScaledInput, scaled: Scaled, table: Floats, messages: Messages, work: RowWorkspace
) -> int:
    """Fill forward messages; add to log Z, or set the status where no path goes on; return the longest length."""
    K, order, wide, product = len(scaled.end), source.order, work.wide, work.running[0]
    product[:] = 1.0
    live, t = count_live(layout.bounds, order, order.size, 0), 0
    while live > 0:
        work.base[t + 1] = work.base[t] + live
        if t > 0:
            _multiply(work.forward, work.base[t - 1], live, table, wide)
        else:
            wide[:live] = 1.0
        for r in range(live):
            b, n, row = order[r], layout.bounds[order[r]] + t, work.forward[work.base[t] + r]
            exp_token(layout, source, scaled.shift, work.weight[work.base[t] + r], b, n)
            total = multiply(wide[r, :K], work.weight[work.base[t] + r], row)
            rescale(row, total)
            messages.log_z[b] += scaled.shift[n]
            product[r] *= total
            if total == 0.0 and messages.status[b] == PENDING:
                messages.status[b] = -t - 1
            if not 1e-100 < product[r] < 1e100:
                messages.log_z[b] += math.log(product[r]) if total > 0.0 else 0.0
                product[r] = 1.0
        t += 1
        live = count_live(layout.bounds, order, live, t)
    for r in range(order.size):
        messages.log_z[order[r]] += math.log(product[r])
    return t


@helper()
def _run_backward(
    layout: BatchLayout, source: ScaledInput, scaled: Scaled, table: Floats, messages: Messages, work: RowWorkspace
) -> None:
    """Run backward: fill marginals, weights and left factors of pair marginals, complete log Z, set the status."""
    K, order, base, wide, excess = len(scaled.end), source.order, work.base, work.wide, work.running[1]
    excess[:] = 0.0
    T = layout.bounds[order[0] + 1] - layout.bounds[order[0]]
    for t in range(T - 1, -1, -1):
        going = base[t + 2] - base[t + 1] if t + 1 < T else 0
        if going > 0:
            _multiply(work.weight, base[t + 1], going, table, wide)
        for r in range(base[t + 1] - base[t]):
            b, cell = order[r], layout.at[layout.bounds[order[r]] + t]
            states, forward, weight = (
                messages.states[cell : cell + K],
                work.forward[base[t] + r],
                work.weight[base[t] + r],
            )
            raw, following = wide[r, :K], weight[:0]
            if r < going:
                following = work.weight[base[t + 1] + r]
            else:
                end_sequence(layout, scaled, messages, b)
                raw = states
            ratio, log_total, more = backward_token(Token(forward, weight, states, raw, following), scaled.floor)
            excess[r] += more
            if r < going:
                share = work.forward[base[t + 1] + r]
                for j in range(K):
                    share[j] = forward[j] * ratio
            else:
                finish(layout, messages, b, log_total)
    for r in range(order.size):
        accept(messages, order[r], excess[r])


@helper()
def _clear_shares(source: ScaledInput, messages: Messages, work: RowWorkspace, T: int) -> None:
    """Set to zero the left factors of pair marginals of first tokens and of sequences whose status is not DONE."""
    for t in range(T):
        for r in range(work.base[t + 1] - work.base[t]):
            if t == 0 or messages.status[source.order[r]] != DONE:
                work.forward[work.base[t] + r] = 0.0


@helper()
def _store(layout: BatchLayout, source: ScaledInput, messages: Messages, work: RowWorkspace, T: int) -> None:
    """Copy each token's left factors of pair marginals (0 at the last token) and weights to the messages."""
    K = work.weight.shape[1]
    for t in range(T):
        for r in range(work.base[t + 1] - work.base[t]):
            cell = layout.at[layout.bounds[source.order[r]] + t]
            goes_on = t + 1 < T and r < work.base[t + 2] - work.base[t + 1]
            for j in range(K):
                messages.forward[cell + j] = work.forward[work.base[t + 1] + r, j] if goes_on else 0.0
                messages.weight[cell + j] = work.weight[work.base[t] + r, j]


@kernel()
def run_rows(
    layout: BatchLayout, source: ScaledInput, scaled: Scaled, panels: Panels, messages: Messages, work: RowWorkspace
) -> int:
    """Run forward–backward on the sequences in `source.order`; fill marginals and messages; return how many tokens.

    The pair marginals are the product of the workspace's forward rows (left factors) and weights, over these tokens.
    """
    T = _run_forward(layout, source, scaled, panels.ahead, messages, work)
    if T > 0:
        _run_backward(layout, source, scaled, panels.back, messages, work)
        _clear_shares(source, messages, work, T)
    if messages.forward.size > 0:
        _store(layout, source, messages, work, T)
    return int(work.base[T])
