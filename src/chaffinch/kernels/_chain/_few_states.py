"""Forward-backward for few states: L sequences side by side, one in each lane of the vector unit.

T tokens of the longest of them, K states, L lanes. Arrays are (T, K, L), so that every loop runs over lanes, and no
lane depends on another. Lanes whose sequence has ended hold zeros.
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

LANES = 32  # sequences side by side; all arrays of the workspace are this wide


class LaneWorkspace(NamedTuple):
    """Arrays of a block of L sequences, used again for every block."""

    forward: Floats  # (T, K, L)
    weight: Floats  # (T, K, L) log emissions, then emissions, then emissions times backward messages
    states: Floats  # (T, K, L) backward messages, then marginals
    top: Floats  # (T, L) what was subtracted from the log emissions
    total: Floats  # (T, L) scales of the forward messages
    by: Floats  # (T, L) factors that turn states into marginals
    ratio: Floats  # (T, L) factors that turn forward into its share of pair marginals
    pairs: Floats  # (K, K, L) summed pair marginals, not yet multiplied by the table
    sums: Floats  # (4, L)
    end: Floats  # (K,) exponentials
    lengths: Ints  # (L,)


def lane_workspace(longest: int, K: int) -> LaneWorkspace:
    """Return arrays of zeros for LANES sequences side by side, of at most `longest` tokens and K states."""
    forward, weight, states = (np.zeros((longest, K, LANES)) for _ in range(3))
    top, total, by, ratio = (np.zeros((longest, LANES)) for _ in range(4))
    sums, lengths = np.zeros((4, LANES)), np.zeros(LANES, np.int64)
    pairs = np.zeros((K, K, LANES))
    return LaneWorkspace(forward, weight, states, top, total, by, ratio, pairs, sums, np.zeros(K), lengths)


@helper()
def _load(layout: BatchLayout, start: Floats, emit: Floats, work: LaneWorkspace, order: Ints) -> int:
    """Put log emissions, plus start at first tokens, into the workspace's lanes, -inf after ends; return longest T."""
    K, L, T = work.weight.shape[1], work.weight.shape[2], 0
    for lane in range(L):
        b = order[min(lane, order.size - 1)]
        work.lengths[lane] = layout.bounds[b + 1] - layout.bounds[b] if lane < order.size else 0
        T = max(T, work.lengths[lane])
    for t in range(T):
        block = work.weight[t]
        for lane in range(L):
            if t < work.lengths[lane]:
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
    """Replace log emissions (K, L) by exponentials relative to the lane's largest, which is put into top (L,)."""
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
def _multiply(table: Floats, source: Floats, out: Floats) -> None:
    """Put the product of table (K, K) and source (K, L) into out (K, L)."""
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
    """Divide each lane of the block (K, L) by its sum; put sums in `total`, inverses in `by`; lift values to TINY."""
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
def _join_messages(work: LaneWorkspace, t: int, total: Floats, excess: Floats) -> None:
    """Replace backward messages at token t by unscaled marginals, summed into total; add error bounds to `excess`.

    The weights become emissions times backward messages. The bound is the share of cells raised to TINY.
    """
    K, L = work.forward.shape[1], work.forward.shape[2]
    now = work.sums[3]
    for lane in range(L):
        total[lane] = now[lane] = 0.0
    for j in range(K):
        forward, weight, states = work.forward[t, j], work.weight[t, j], work.states[t, j]
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
def _run_forward(table: Floats, work: LaneWorkspace, T: int) -> None:
    """Fill forward messages, emissions' exponentials and their scales; `table` is the transposed transitions."""
    K, L = work.forward.shape[1], work.forward.shape[2]
    for t in range(T):
        _exp_lanes(work.weight[t], work.top[t])
        if t > 0:
            _multiply(table, work.forward[t - 1], work.forward[t])
        for j in range(K):
            row, emit = work.forward[t, j], work.weight[t, j]
            for lane in range(L):
                row[lane] = row[lane] * emit[lane] if t > 0 else emit[lane]
        _normalise(work.forward[t], work.total[t], work.sums[0])


@helper()
def _begin_backward(work: LaneWorkspace, t: int, T: int) -> None:
    """Put end potentials into the messages of lanes that end at token t; at the last token, 0 into shorter lanes."""
    for lane in range(work.lengths.size):
        if work.lengths[lane] == t + 1:
            for j in range(work.end.size):
                work.states[t, j, lane] = work.end[j]
        elif t + 1 == T:
            for j in range(work.end.size):
                work.states[t, j, lane] = 0.0


@helper()
def _run_backward(scaled: Scaled, work: LaneWorkspace, T: int) -> None:
    """Fill marginals, weights, `by` and `ratio`; the first row of sums becomes each lane's bound on the error."""
    K, L = work.forward.shape[1], work.forward.shape[2]
    excess, scale, total = work.sums[0], work.sums[1], work.sums[2]
    for lane in range(L):
        excess[lane] = 0.0
    for t in range(T - 1, -1, -1):
        if t + 1 < T:
            _multiply(scaled.trans[0], work.weight[t + 1], work.states[t])
        _begin_backward(work, t, T)
        _normalise(work.states[t], scale, work.sums[3])
        _join_messages(work, t, total, excess)
        by, ratio = work.by[t], work.ratio[t]
        for lane in range(L):
            by[lane] = 1.0 / total[lane] if total[lane] > 0.0 else 0.0
            ratio[lane] = by[lane] / scale[lane] if total[lane] > 0.0 else 0.0
        for j in range(K if scaled.floor > 0.0 and t + 1 < T else 0):
            following = work.weight[t + 1, j]
            for lane in range(L):
                excess[lane] += scaled.floor * following[lane] * ratio[lane]


@helper()
def _store(layout: BatchLayout, messages: Messages, work: LaneWorkspace, order: Ints, T: int) -> None:
    """Copy marginals from lanes to messages, and forward messages and weights too if there are arrays for them."""
    K, keep = work.end.size, messages.forward.size > 0
    for t in range(T):
        for lane in range(order.size):
            if t < work.lengths[lane]:
                cell = (layout.bounds[order[lane]] + t) * K
                states = messages.states[cell : cell + K]
                for j in range(K):
                    states[j] = work.states[t, j, lane] * work.by[t, lane]
                if keep:
                    forward, weight = messages.forward[cell : cell + K], messages.weight[cell : cell + K]
                    for j in range(K):
                        forward[j], weight[j] = work.forward[t, j, lane], work.weight[t, j, lane]


@helper()
def _share(work: LaneWorkspace, T: int) -> None:
    """Multiply each token's forward messages by its ratio, which makes them the left factor of pair marginals."""
    for t in range(T):
        ratio = work.ratio[t]
        for j in range(work.end.size):
            forward = work.forward[t, j]
            for lane in range(ratio.size):
                forward[lane] *= ratio[lane]


@helper()
def _add_pairs(work: LaneWorkspace, T: int) -> None:
    """Add to pairs (K, K, L) the products of forward at a token and weight at the next, three steps at once."""
    K, L = work.forward.shape[1], work.forward.shape[2]
    for t in range(0, T - 1, 3):
        u, v = min(t + 1, T - 1), min(t + 2, T - 1)  # past the last step, forward is zero
        for i in range(K):
            fa, fb, fc = work.forward[t, i], work.forward[u, i], work.forward[v, i]
            for j in range(K):
                wa, wb, wc = work.weight[u, j], work.weight[v, j], work.weight[min(v + 1, T - 1), j]
                row = work.pairs[i, j]
                for lane in range(L):
                    row[lane] = row[lane] + fa[lane] * wa[lane] + fb[lane] * wb[lane] + fc[lane] * wc[lane]


@helper()
def _finish(layout: BatchLayout, scaled: Scaled, messages: Messages, work: LaneWorkspace, b: int, lane: int) -> None:
    """Add log Z of a lane's sequence b to its messages; without a path, set its status to -1 - (first dead token)."""
    lo, T, log_z, product = layout.bounds[b], work.lengths[lane], 0.0, 1.0
    for t in range(T):
        if work.total[t, lane] == 0.0:
            messages.status[b] = -t - 1
            return
        log_z += scaled.shift[lo + t] + work.top[t, lane]
        product *= work.total[t, lane]
        if not 1e-100 < product < 1e100:
            log_z += math.log(product)
            product = 1.0
    if work.ratio[T - 1, lane] == 0.0:
        messages.status[b] = -T - 1
        return
    messages.log_z[b] += log_z + math.log(product) - math.log(work.ratio[T - 1, lane])


@kernel()
def run_lanes(
    layout: BatchLayout, source: ScaledInput, scaled: Scaled, messages: Messages, work: LaneWorkspace
) -> None:
    """Fill marginals, log Z and status of all sequences, several at a time in lanes; add pairs to the workspace.

    There must be one transition table, and all states are allowed. Forward messages and weights are kept if they fit.
    """
    for j in range(work.end.size):
        work.end[j] = scaled.end[j]
    end_top = exp_row(work.end, work.end, LOG_TINY)
    for begin in range(0, source.order.size, work.lengths.size):
        order = source.order[begin : begin + work.lengths.size]
        T = _load(layout, source.start, source.emit, work, order)
        _run_forward(scaled.back, work, T)
        _run_backward(scaled, work, T)
        for lane in range(order.size):
            length, b = work.lengths[lane], order[lane]
            if length > 0:
                _finish(layout, scaled, messages, work, b, lane)
                messages.log_z[b] += end_top
                accept(messages, b, work.sums[0, lane])
                work.ratio[length - 1 if messages.status[b] == DONE else 0 : length, lane] = 0.0
        _share(work, T)
        _store(layout, messages, work, order, T)
        _add_pairs(work, T)
