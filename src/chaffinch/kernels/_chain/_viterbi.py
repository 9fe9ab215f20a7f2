"""Viterbi, compiled: the best path, in max-plus arithmetic.

K states, M cells, N tokens and B sequences of one part, R sequences side by side. The forward pass keeps only
scores; the state a score came from is recomputed on the way back, along the best path alone. Of equal
predecessors the lowest state wins, in every form of the kernel.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from chaffinch.kernels._chain._few_states import LANES
from chaffinch.kernels._chain._layout import LANES_LONGEST, LANES_TO, ROWS, BatchLayout, Form, Part, as_writable
from chaffinch.kernels._chain._many_states import count_live
from chaffinch.kernels._chain._matmul import HIGH, WIDE, block_largest, to_panels
from chaffinch.kernels._compile import helper, kernel
from chaffinch.kernels.lattice import Batch, Floats, Ints


class LogPotentials(NamedTuple):
    """The log-potentials of a part."""

    start: Floats  # (K,)
    trans: Floats  # (1, K, K), or (N, K, K) leading into each token
    back: Floats  # (K, K) the transpose of the one trans, else (0, 0)
    emit: Floats  # (M,)
    end: Floats  # (K,)
    one: float  # 1, for `_matmul.block_largest`


class BestPaths(NamedTuple):
    """Results of Viterbi on a part."""

    best: Floats  # (M,) the score of the best path up to a cell
    states: Ints  # (N,)
    score: Floats  # (B,)


@helper()
def _push_best(source: Floats, rows: Ints, table: Floats, columns: Ints, out: Floats) -> None:
    """Put into out[j] the largest over i of source[i] + table[rows[i], columns[j]]."""
    J = columns.size
    out[:] = -np.inf
    if J and columns[J - 1] - columns[0] + 1 == J:
        at, i = columns[0], 0
        while i + 4 <= rows.size:
            a, b, c, d = source[i], source[i + 1], source[i + 2], source[i + 3]
            ra, rb = table[rows[i], at : at + J], table[rows[i + 1], at : at + J]
            rc, rd = table[rows[i + 2], at : at + J], table[rows[i + 3], at : at + J]
            for j in range(J):
                out[j] = max(out[j], a + ra[j], b + rb[j], c + rc[j], d + rd[j])
            i += 4
        for k in range(i, rows.size):
            row = table[rows[k], at : at + J]
            for j in range(J):
                out[j] = max(out[j], source[k] + row[j])
    else:
        for i in range(rows.size):
            for j in range(J):
                out[j] = max(out[j], source[i] + table[rows[i], columns[j]])


@helper()
def _trace(layout: BatchLayout, logs: LogPotentials, result: BestPaths, b: int) -> None:
    """Put the best score and states of sequence b into `result`, traced from its last token; of ties the first listed.

    Without a path the score is -inf, and the states are not complete. An empty sequence has the score 0.
    """
    lo, hi = layout.bounds[b], layout.bounds[b + 1]
    score, state, shared = -np.inf if lo < hi else 0.0, -1, len(logs.back) > 0
    for n in range(hi - 1, lo - 1, -1):
        top, chosen = -np.inf, -1
        for i in range(layout.width[n]):
            x = layout.pool[layout.first[n] + i]
            value = result.best[layout.at[n] + i]
            if n == hi - 1:
                value += logs.end[x]
            else:
                value += logs.back[state, x] if shared else logs.trans[n + 1, x, state]
            better = value > top
            top = value if better else top
            chosen = x if better else chosen
        if chosen < 0:
            break
        state = chosen
        result.states[n] = state
        score = top if n == hi - 1 else score
    result.score[b] = score


@kernel()
def best_each(layout: BatchLayout, logs: LogPotentials, result: BestPaths) -> None:
    """Fill scores and states of the best paths in `result`, one sequence at a time, over each token's states."""
    shared = len(logs.back) > 0
    for b in range(len(layout.bounds) - 1):
        lo, hi = layout.bounds[b], layout.bounds[b + 1]
        for n in range(lo, hi):
            row, emit = result.best[layout.at[n] : layout.at[n + 1]], logs.emit[layout.at[n] : layout.at[n + 1]]
            if n == lo:
                for j in range(row.size):
                    row[j] = emit[j] + logs.start[layout.pool[layout.first[n] + j]]
                continue
            before = layout.pool[layout.first[n - 1] : layout.first[n - 1] + layout.width[n - 1]]
            here = layout.pool[layout.first[n] : layout.first[n] + layout.width[n]]
            source = result.best[layout.at[n - 1] : layout.at[n]]
            _push_best(source, before, logs.trans[0 if shared else n], here, row)
            for j in range(row.size):
                row[j] += emit[j]
        _trace(layout, logs, result, b)


@helper()
def _multiply_best(
    layout: BatchLayout, order: Ints, t: int, logs: LogPotentials, panels: Floats, result: BestPaths, wide: Floats
) -> None:
    """Put the largest over x of (score at token t of x + table[x, y]) into `wide`, a row per sequence of `order`."""
    K, last = len(logs.end), order.size - 1
    for j in range(len(panels)):
        for r in range(0, order.size, HIGH):
            a, b = layout.bounds[order[r]] + t, layout.bounds[order[min(r + 1, last)]] + t
            c, d = layout.bounds[order[min(r + 2, last)]] + t, layout.bounds[order[min(r + 3, last)]] + t
            block_largest(result.best, (a * K, b * K, c * K, d * K), panels, j, wide[r:], logs.one)


@kernel()
def best_rows(
    layout: BatchLayout, logs: LogPotentials, order: Ints, panels: Floats, result: BestPaths, wide: Floats
) -> None:
    """Fill `result` with best scores and states, ROWS sequences at a time: one table in panels, all states allowed."""
    K = len(logs.end)
    for begin in range(0, order.size, ROWS):
        some = order[begin : begin + ROWS]
        live, t = count_live(layout.bounds, some, some.size, 0), 0
        while live > 0:
            if t > 0:
                _multiply_best(layout, some[:live], t - 1, logs, panels, result, wide)
            for r in range(live):
                cell = (layout.bounds[some[r]] + t) * K
                row, emit = result.best[cell : cell + K], logs.emit[cell : cell + K]
                raw = wide[r, :K] if t > 0 else logs.start
                for j in range(row.size):
                    row[j] = raw[j] + emit[j]
            t += 1
            live = count_live(layout.bounds, some, live, t)
        for b in some:
            _trace(layout, logs, result, b)


class ViterbiLanes(NamedTuple):
    """Workspace for L sequences of at most T tokens, one in each lane."""

    best: Floats  # (T, K, L)
    top: Floats  # (L,)
    lengths: Ints  # (L,)


@helper()
def _step_lanes(back: Floats, before: Floats, best: Floats, top: Floats) -> None:
    """Add to best[j, lane] the largest over i of before[i, lane] + back[j, i]; `top` is scratch."""
    K, L = best.shape
    for j in range(K):
        for lane in range(L):
            top[lane] = -np.inf
        for i in range(0, K - 2, 3):
            a, b, c = back[j, i], back[j, i + 1], back[j, i + 2]
            ra, rb, rc = before[i], before[i + 1], before[i + 2]
            for lane in range(L):
                top[lane] = max(top[lane], ra[lane] + a, rb[lane] + b, rc[lane] + c)
        for i in range(K - K % 3, K):
            a, ra = back[j, i], before[i]
            for lane in range(L):
                top[lane] = max(top[lane], ra[lane] + a)
        emit = best[j]
        for lane in range(L):
            emit[lane] += top[lane]


@helper()
def _trace_lane(
    layout: BatchLayout, logs: LogPotentials, result: BestPaths, lanes: ViterbiLanes, b: int, lane: int
) -> None:
    """Put the best score and states of the sequence b of a lane into `result`; lowest of ties; -inf without a path."""
    lo, T, step = layout.bounds[b], lanes.lengths[lane], logs.end
    result.score[b] = -np.inf
    for t in range(T - 1, -1, -1):
        top, state = -np.inf, -1
        for j in range(step.size):
            value = lanes.best[t, j, lane] + step[j]
            better = value > top
            top = value if better else top
            state = j if better else state
        if state < 0:
            return
        result.score[b] = top if t == T - 1 else result.score[b]
        result.states[lo + t] = state
        step = logs.back[state]


@kernel()
def best_lanes(layout: BatchLayout, logs: LogPotentials, order: Ints, result: BestPaths, lanes: ViterbiLanes) -> None:
    """Fill scores and states of the best paths in `result`, a sequence per lane: one table, all states allowed."""
    K, L = logs.end.size, lanes.lengths.size
    for begin in range(0, order.size, L):
        some = order[begin : begin + L]
        T = layout.bounds[some[0] + 1] - layout.bounds[some[0]]
        for lane in range(L):
            b = some[min(lane, some.size - 1)]
            lanes.lengths[lane] = layout.bounds[b + 1] - layout.bounds[b] if lane < some.size else 0
        for t in range(T):
            block = lanes.best[t]
            for lane in range(L):
                if t < lanes.lengths[lane]:
                    cell = (layout.bounds[some[lane]] + t) * K
                    row = logs.emit[cell : cell + K]
                    for j in range(K):
                        block[j, lane] = row[j] + logs.start[j] if t == 0 else row[j]
            if t > 0:
                _step_lanes(logs.back, lanes.best[t - 1], block, lanes.top)
        for lane in range(some.size):
            if lanes.lengths[lane] > 0:
                _trace_lane(layout, logs, result, lanes, some[lane], lane)


class ViterbiWorkspace:
    """Tables of a batch, and arrays that are used again for every part."""

    def __init__(self, batch: Batch) -> None:
        """Allocate the arrays that Viterbi needs for the batch's size and states; lay out a shared table."""
        self.batch, self.best = batch, np.zeros(0)
        K, longest = len(batch.start), int(np.diff(batch.bounds).max(initial=0))
        self.back, self.panels = np.zeros((0, 0)), np.zeros((0, 0, 0))
        if batch.trans.ndim == 2:
            self.back = np.ascontiguousarray(batch.trans.T)
            self.panels = to_panels(batch.trans, -np.inf)
            self.wide = np.zeros((ROWS + HIGH, len(self.panels) * WIDE))
        if batch.trans.ndim == 2 and K <= LANES_TO:
            T, L = min(longest, LANES_LONGEST), LANES
            self.lanes = ViterbiLanes(np.zeros((T, K, L)), np.zeros(L), np.zeros(L, np.int64))

    def run(self, part: Part) -> BestPaths:
        """Return scores (-inf without a path) and states of a part's best paths; the next call reuses some memory."""
        batch, cells = self.batch, len(part.emit)
        trans = as_writable(batch.trans[None] if batch.trans.ndim == 2 else batch.trans[part.tokens])
        logs = LogPotentials(
            as_writable(batch.start), trans, self.back, as_writable(part.emit), as_writable(batch.end), 1.0
        )
        if len(self.best) < cells and part.form is not Form.LANES:
            self.best = np.empty(cells)
        result = BestPaths(self.best[:cells], np.zeros(len(part.layout.width), np.int64), np.zeros(part.size))
        order = np.argsort(-np.diff(part.layout.bounds), kind="stable")
        if part.form is Form.LANES:
            best_lanes(part.layout, logs, order, result, self.lanes)
        elif part.form is Form.ROWS:
            best_rows(part.layout, logs, order, self.panels, result, self.wide)
        else:
            best_each(part.layout, logs, result)
        return result
