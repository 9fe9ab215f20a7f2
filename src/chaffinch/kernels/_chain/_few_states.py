"""Forward-backward for few states: L sequences side by side, one in each lane of the vector unit.

T tokens of the longest of them, K states, L lanes. Arrays are (T, K, L), so that every loop runs over lanes, and a
lane never looks at its neighbours. Lanes whose sequence has ended hold zeros.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from chaffinch.kernels._chain._layout import BatchLayout
from chaffinch.kernels._chain._scaled import (
    DONE,
    LOG_TINY,
    TINY,
    Messages,
    Scaled,
    ScaledInput,
    accept,
    exp_of,
    exp_row,
)
from chaffinch.kernels._compile import helper, kernel
from chaffinch.kernels.lattice import Floats, Ints

LANES = 32


class Bench(NamedTuple):
    """Room to work in."""

    forward: Floats  # (T, K, L)
    weight: Floats  # (T, K, L) log emissions, then emissions, then emissions times backward messages
    states: Floats  # (T, K, L) backward messages, then marginals
    top: Floats  # (T, L) what was taken off the log emissions
    total: Floats  # (T, L) scales of the forward messages
    by: Floats  # (T, L) what turns states into marginals
    ratio: Floats  # (T, L) what turns forward into its share of pair marginals
    pairs: Floats  # (K, K, L) summed pair marginals, the table still missing
    sums: Floats  # (4, L)
    end: Floats  # (K,) exponentials
    lengths: Ints  # (L,)


def bench_for(longest: int, K: int) -> Bench:
    """Room for sequences of at most `longest` tokens."""
    forward, weight, states = (np.zeros((longest, K, LANES)) for _ in range(3))
    top, total, by, ratio = (np.zeros((longest, LANES)) for _ in range(4))
    sums, lengths = np.zeros((4, LANES)), np.zeros(LANES, np.int64)
    pairs = np.zeros((K, K, LANES))
    return Bench(forward, weight, states, top, total, by, ratio, pairs, sums, np.zeros(K), lengths)


@helper()
def _load(layout: BatchLayout, start: Floats, emit: Floats, bench: Bench, order: Ints) -> int:
    """The longest length; log emissions of the sequences in order go into lanes, the first token's with the start."""
    K, L, T = bench.weight.shape[1], bench.weight.shape[2], 0
    for lane in range(L):
        b = order[min(lane, order.size - 1)]
        bench.lengths[lane] = layout.bounds[b + 1] - layout.bounds[b] if lane < order.size else 0
        T = max(T, bench.lengths[lane])
    for t in range(T):
        block = bench.weight[t]
        for lane in range(L):
            if t < bench.lengths[lane]:
                cell = (layout.bounds[order[lane]] + t) * K
                row = emit[cell : cell + K]
                for j in range(K):
                    block[j, lane] = row[j] + start[j] if t == 0 else row[j]
            else:
                for j in range(K):
                    block[j, lane] = -np.inf
    return T


@helper()
def _exp_lanes(block: Floats, top: Floats) -> None:
    """Log emissions (K, L) become exponentials of what they lack of the lane's largest, which goes to top (L,)."""
    K, L = block.shape
    for lane in range(L):
        top[lane] = -np.inf
    for j in range(K):
        row = block[j]
        for lane in range(L):
            top[lane] = max(top[lane], row[lane])
    for j in range(K):
        row = block[j]
        for lane in range(L):
            row[lane] -= top[lane] if top[lane] > -np.inf else 0.0
    flat = block.reshape(-1)
    for i in range(flat.size):
        flat[i] = exp_of(max(flat[i], LOG_TINY)) if flat[i] > -np.inf else 0.0


@helper()
def _mix(table: Floats, source: Floats, out: Floats) -> None:
    """out (K, L) = table (K, K) times source (K, L)."""
    K, L = source.shape
    for r in range(K):
        row = out[r]
        for lane in range(L):
            row[lane] = 0.0
        for c in range(0, K - 3, 4):
            a, b, d, e = table[r, c], table[r, c + 1], table[r, c + 2], table[r, c + 3]
            sa, sb, sd, se = source[c], source[c + 1], source[c + 2], source[c + 3]
            for lane in range(L):
                row[lane] = row[lane] + a * sa[lane] + b * sb[lane] + d * sd[lane] + e * se[lane]
        for c in range(K - K % 4, K):
            a, sa = table[r, c], source[c]
            for lane in range(L):
                row[lane] += a * sa[lane]


@helper()
def _normalise(block: Floats, total: Floats, by: Floats) -> None:
    """Each lane of the block (K, L) is divided by its sum, which goes to total (L,); what is tiny is raised."""
    K, L = block.shape
    for lane in range(L):
        total[lane] = 0.0
    for j in range(K):
        row = block[j]
        for lane in range(L):
            total[lane] += row[lane]
    for lane in range(L):
        by[lane] = 1.0 / total[lane] if total[lane] > 0.0 else 0.0
    for j in range(K):
        row = block[j]
        for lane in range(L):
            value = row[lane] * by[lane]
            row[lane] = max(value, TINY) if value > 0.0 else 0.0


@helper()
def _settle(bench: Bench, t: int, total: Floats, excess: Floats) -> None:
    """Marginals at token t, not yet normalised, and their sums; `excess` grows by those of raised cells."""
    K, L = bench.forward.shape[1], bench.forward.shape[2]
    now = bench.sums[3]
    for lane in range(L):
        total[lane] = now[lane] = 0.0
    for j in range(K):
        forward, weight, states = bench.forward[t, j], bench.weight[t, j], bench.states[t, j]
        for lane in range(L):
            ahead, emit, back = forward[lane], weight[lane], states[lane]
            both = ahead * back
            least = min(ahead, back, emit)
            total[lane] += both
            now[lane] += both if least <= TINY * 1.000001 else 0.0
            weight[lane] = emit * back
            states[lane] = both
    for lane in range(L):
        excess[lane] += now[lane] / total[lane] if total[lane] > 0.0 else 0.0


@helper()
def _run_forward(table: Floats, bench: Bench, T: int) -> None:
    """Fills forward messages and their scales; `table` is the transpose of the transitions."""
    K, L = bench.forward.shape[1], bench.forward.shape[2]
    for t in range(T):
        _exp_lanes(bench.weight[t], bench.top[t])
        if t > 0:
            _mix(table, bench.forward[t - 1], bench.forward[t])
        for j in range(K):
            row, emit = bench.forward[t, j], bench.weight[t, j]
            for lane in range(L):
                row[lane] = row[lane] * emit[lane] if t > 0 else emit[lane]
        _normalise(bench.forward[t], bench.total[t], bench.sums[0])


@helper()
def _begin_backward(bench: Bench, t: int, T: int) -> None:
    """Puts the end potentials into the lanes whose last token is t, and zeros where nothing follows."""
    for lane in range(bench.lengths.size):
        if bench.lengths[lane] == t + 1:
            for j in range(bench.end.size):
                bench.states[t, j, lane] = bench.end[j]
        elif t + 1 == T:
            for j in range(bench.end.size):
                bench.states[t, j, lane] = 0.0


@helper()
def _run_backward(scaled: Scaled, bench: Bench, T: int) -> None:
    """Fills marginals, weights, `by` and `ratio`; the first row of sums ends as the excess of each lane."""
    K, L = bench.forward.shape[1], bench.forward.shape[2]
    excess, scale, total = bench.sums[0], bench.sums[1], bench.sums[2]
    for lane in range(L):
        excess[lane] = 0.0
    for t in range(T - 1, -1, -1):
        if t + 1 < T:
            _mix(scaled.trans[0], bench.weight[t + 1], bench.states[t])
        _begin_backward(bench, t, T)
        _normalise(bench.states[t], scale, bench.sums[3])
        _settle(bench, t, total, excess)
        by, ratio = bench.by[t], bench.ratio[t]
        for lane in range(L):
            by[lane] = 1.0 / total[lane] if total[lane] > 0.0 else 0.0
            ratio[lane] = by[lane] / scale[lane] if total[lane] > 0.0 else 0.0
        for j in range(K if scaled.floor > 0.0 and t + 1 < T else 0):
            following = bench.weight[t + 1, j]
            for lane in range(L):
                excess[lane] += scaled.floor * following[lane] * ratio[lane]


@helper()
def _store(layout: BatchLayout, messages: Messages, bench: Bench, order: Ints, T: int) -> None:
    """Takes the sequences in order out of their lanes: marginals, and the other messages if there is room for them."""
    K, keep = bench.end.size, messages.forward.size > 0
    for t in range(T):
        for lane in range(order.size):
            if t < bench.lengths[lane]:
                cell = (layout.bounds[order[lane]] + t) * K
                states = messages.states[cell : cell + K]
                for j in range(K):
                    states[j] = bench.states[t, j, lane] * bench.by[t, lane]
                if keep:
                    forward, weight = messages.forward[cell : cell + K], messages.weight[cell : cell + K]
                    for j in range(K):
                        forward[j], weight[j] = bench.forward[t, j, lane], bench.weight[t, j, lane]


@helper()
def _share(bench: Bench, T: int) -> None:
    """Turns forward messages into their shares of pair marginals."""
    for t in range(T):
        ratio = bench.ratio[t]
        for j in range(bench.end.size):
            forward = bench.forward[t, j]
            for lane in range(ratio.size):
                forward[lane] *= ratio[lane]


@helper()
def _add_pairs(bench: Bench, T: int) -> None:
    """Adds forward times weight of the next token to pairs (K, K, L); three steps at once to spare the memory."""
    K, L = bench.forward.shape[1], bench.forward.shape[2]
    for t in range(0, T - 1, 3):
        u, v = min(t + 1, T - 1), min(t + 2, T - 1)  # past the last step, forward is zero
        for i in range(K):
            fa, fb, fc = bench.forward[t, i], bench.forward[u, i], bench.forward[v, i]
            for j in range(K):
                wa, wb, wc = bench.weight[u, j], bench.weight[v, j], bench.weight[min(v + 1, T - 1), j]
                row = bench.pairs[i, j]
                for lane in range(L):
                    row[lane] = row[lane] + fa[lane] * wa[lane] + fb[lane] * wb[lane] + fc[lane] * wc[lane]


@helper()
def _finish(layout: BatchLayout, scaled: Scaled, messages: Messages, bench: Bench, b: int, lane: int) -> None:
    """Adds up the log Z of sequence b, or notes where it died."""
    lo, T, log_z, product = layout.bounds[b], bench.lengths[lane], 0.0, 1.0
    for t in range(T):
        if bench.total[t, lane] == 0.0:
            messages.status[b] = -t - 1
            return
        log_z += scaled.shift[lo + t] + bench.top[t, lane]
        product *= bench.total[t, lane]
        if not 1e-100 < product < 1e100:
            log_z += math.log(product)
            product = 1.0
    if bench.ratio[T - 1, lane] == 0.0:
        messages.status[b] = -T - 1
        return
    messages.log_z[b] += log_z + math.log(product) - math.log(bench.ratio[T - 1, lane])


@kernel()
def run_lanes(layout: BatchLayout, source: ScaledInput, scaled: Scaled, messages: Messages, bench: Bench) -> None:
    """Fills the messages: one table, all states allowed."""
    for j in range(bench.end.size):
        bench.end[j] = scaled.end[j]
    end_top = exp_row(bench.end, bench.end, LOG_TINY)
    for begin in range(0, source.order.size, bench.lengths.size):
        order = source.order[begin : begin + bench.lengths.size]
        T = _load(layout, source.start, source.emit, bench, order)
        _run_forward(scaled.back, bench, T)
        _run_backward(scaled, bench, T)
        for lane in range(order.size):
            T_own, b = bench.lengths[lane], order[lane]
            if T_own > 0:
                _finish(layout, scaled, messages, bench, b, lane)
                messages.log_z[b] += end_top
                accept(messages, b, bench.sums[0, lane])
                bench.ratio[T_own - 1 if messages.status[b] == DONE else 0 : T_own, lane] = 0.0
        _share(bench, T)
        _store(layout, messages, bench, order, T)
        _add_pairs(bench, T)
