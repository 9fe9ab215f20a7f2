"""Stochastic gradient ascent on the log-likelihood of `linear`, compiled. Dimensions as there."""

from __future__ import annotations

import numpy as np

from chaffinch.kernels._compile import helper, kernel
from chaffinch.kernels._linear._decode import Workspace, is_hard, path_score, score, score_target
from chaffinch.kernels._linear._simd import add_row
from chaffinch.kernels.linear import GradientSums, Pace, Places, Scalar, Singles, SparseInput, States, Target, Weights

SMALL = 0.003  # a token whose gradient is at most this in every state is skipped; larger is faster and less exact
TINY = 1e-5  # likewise for the gradient of a move
CALM = 1.0  # added to the sum of squared gradients in adaptive steps; larger makes early steps shorter


@helper()
def _fill_table(moves: Singles, states: States, work: Workspace) -> None:
    """Put exponentials of the moves into work.table, and transposed into work.back."""
    K, W = states.K, states.W
    for i in range((K + 2) * W):
        work.table[i] = np.exp(moves[i])
    for x in range(K):
        for y in range(K):
            work.back[y * W + x] = work.table[x * W + y]


@helper()
def _update_table(cell: int, moves: Singles, states: States, work: Workspace) -> None:
    """Recompute one cell of work.table, the exponentials of moves, and of its transposed copy."""
    K, W = states.K, states.W
    work.table[cell] = np.exp(moves[cell])
    if cell < K * W:
        work.back[cell % W * W + cell // W] = work.table[cell]


@helper()
def _forward(T: int, score: Singles, states: States, work: Workspace) -> Scalar:
    """Put normalised forward sums into work.best, emissions over their largest into work.emit; return log Z."""
    K, W, alpha, emit, log_z = states.K, states.W, work.best, work.emit, 0.0
    for t in range(T):
        at, top = t * W, np.float32(-np.inf)
        for x in range(K):
            top = max(top, score[at + x])
        for x in range(W):
            emit[at + x] = np.exp(score[at + x] - top) if x < K else np.float32(0.0)
            alpha[at + x] = work.table[K * W + x] if t == 0 else np.float32(0.0)
        if t > 0:
            for x in range(K):
                if alpha[at - W + x] > 0.0:
                    add_row(alpha, at, work.table, x * W, alpha[at - W + x], W)
        total = np.float32(0.0)
        for x in range(W):
            alpha[at + x] *= emit[at + x]
            total += alpha[at + x]
        for x in range(W):
            alpha[at + x] /= total
        log_z += np.log(total) + top
    total = np.float32(0.0)
    for x in range(K):
        total += alpha[(T - 1) * W + x] * work.table[(K + 1) * W + x]
    return log_z + np.log(total)


@helper()
def _backward(T: int, states: States, work: Workspace, sign: Scalar, out: Singles, pairs: Singles) -> bool:
    """Add sign * P(state) to out and sign * P(pair), summed over positions, to pairs; return False on overflow.

    Backward sums are divided by their largest; work.line holds those of the next token times its emissions.
    """
    K, W, alpha, beta = states.K, states.W, work.best, work.back
    line, now = work.line, work.now
    fine = True
    work.outer[:] = 0.0
    for t in range(T - 1, -1, -1):
        at = t * W
        for x in range(W):
            now[x] = work.table[(K + 1) * W + x] if t == T - 1 else np.float32(0.0)
        if t < T - 1:
            for x in range(K):
                if line[x] > 0.0:
                    add_row(now, 0, beta, x * W, line[x], W)
        top, total = np.float32(0.0), np.float32(0.0)
        for x in range(W):
            top = max(top, now[x])
        for x in range(W):
            now[x] /= top
            total += alpha[at + x] * now[x]
        fine &= bool(0.0 < total < np.inf)
        share = sign / total
        if t < T - 1:  # P(x, y) = alpha(x) table(x, y) line(y) / (total * top)
            for x in range(K):
                if alpha[at + x] > 0.0:
                    add_row(work.outer, x * W, line, 0, share / top * alpha[at + x], W)
        for x in range(W):
            out[at + x] += share * alpha[at + x] * now[x]
            line[x] = now[x] * work.emit[at + x]
    for i in range(K * W):
        pair = work.outer[i] * work.table[i]
        fine &= bool(-np.inf < pair < np.inf)
        pairs[i] += pair
    return fine


@helper()
def _step(cell: int, gradient: Scalar, sums: GradientSums, pace: Pace) -> None:
    """Move one weight along its gradient, and its total for the average; adaptive steps shrink with past gradients."""
    length = pace.rate * gradient
    if pace.adaptive:
        sums.squares[cell] += gradient * gradient
        length /= np.sqrt(sums.squares[cell] + np.float32(CALM))
    sums.weights[cell] += length
    sums.totals[cell] += pace.step * length


@helper()
def _step_row(row: int, gradient: Singles, at: int, sums: GradientSums, pace: Pace, W: int) -> None:
    """Move W weights from `row` on, totals and, if adaptive, squares by the gradient from `at` on, like `_step`."""
    if pace.adaptive:
        for x in range(W):
            slope = gradient[at + x]
            square = sums.squares[row + x] + slope * slope
            sums.squares[row + x] = square
            length = pace.rate * slope / np.sqrt(square + np.float32(CALM))
            sums.weights[row + x] += length
            sums.totals[row + x] += pace.step * length
    else:
        add_row(sums.weights, row, gradient, at, pace.rate, W)
        add_row(sums.totals, row, gradient, at, pace.rate * pace.step, W)


@helper()
def _step_rows(seen: SparseInput, s: int, states: States, work: Workspace, sums: GradientSums, pace: Pace) -> None:
    """Move every weight row that applies to a token marked in `work.path`, along the gradient in `work.other`."""
    begin, W, T = seen.begins[s], states.W, seen.ends[s] - seen.begins[s]
    for j in range(-1, T + 1):
        v = seen.types[begin + j]
        for q in range(seen.lists[v], seen.lists[v + 1]):
            t, row = j - int(seen.first[q]), int(seen.rows[q])
            for k in range(seen.width[q]):
                if 0 <= t - k < T and work.path[t - k]:
                    _step_row((row + k) * W, work.other, (t - k) * W, sums, pace, W)
        for c in range(seen.columns.shape[1] if j < T else 0):
            row, t = int(seen.columns[begin + j, c]), j - int(seen.column_first[c])
            if row >= 0:
                for k in range(seen.column_width[c]):
                    if 0 <= t - k < T and work.path[t - k]:
                        _step_row((row + k) * W, work.other, (t - k) * W, sums, pace, W)


@helper()
def _step_moves(T: int, states: States, work: Workspace, sums: GradientSums, pace: Pace) -> None:
    """Move weights of moves with gradients above TINY, not of forbidden starts or ends; update their exponentials."""
    K, W = states.K, states.W
    for x in range(K):
        for cell, change in ((K * W + x, work.other[x]), ((K + 1) * W + x, work.other[(T - 1) * W + x])):
            if abs(change) > TINY and sums.weights[cell] > -np.inf:
                _step(cell, change, sums, pace)
                _update_table(cell, sums.weights, states, work)
    for cell in range(K * W):
        if abs(work.pairs[cell]) > TINY:
            _step(cell, work.pairs[cell], sums, pace)
            _update_table(cell, sums.weights, states, work)


@helper()
def _mark_large(T: int, states: States, gradient: Singles, large: Places) -> None:
    """Mark in `large` (T,) tokens with a gradient above SMALL; set in `gradient` the columns that states share.

    Such a column gets the sum of its states' gradients, any other column beyond the states 0.
    """
    K, W = states.K, states.W
    for t in range(T):
        top = np.float32(0.0)
        for x in range(K, W):
            gradient[t * W + x] = 0.0
        for x in range(K):
            top = max(top, abs(gradient[t * W + x]))
            if states.shared[x] >= 0:
                gradient[t * W + states.shared[x]] += gradient[t * W + x]
        large[t] = top > SMALL


@kernel()
def crf_pass(
    seen: SparseInput,
    target: Target,
    order: Places,
    rows: GradientSums,
    moves: GradientSums,
    states: States,
    work: Workspace,
    pace: Pace,
) -> float:
    """Move weights by stochastic gradient on the sentences in `order`; return summed loss; skip those that overflow.

    The loss is -log P(what is known), if no target row is a distribution. The gradient of a sentence is the expected
    features given what is known, minus those of the unconstrained model; a sentence that overflows float32 is skipped.
    """
    W, lost, weights = states.W, 0.0, Weights(rows.weights, moves.weights)
    _fill_table(weights.moves, states, work)
    for s in order:
        begin, T = seen.begins[s], seen.ends[s] - seen.begins[s]
        score(seen, s, weights, states, work.score)
        work.pairs[:] = 0.0
        work.other[: T * W] = 0.0
        fine, known = True, 0.0
        if is_hard(target.gold, begin, T):
            gold = target.gold[begin : begin + T]
            for t in range(T):
                work.other[t * W + gold[t]] = 1.0
                if t > 0:
                    work.pairs[gold[t - 1] * W + gold[t]] += 1.0
            known = path_score(T, work.score, weights.moves, states, gold)
        else:
            chooses = score_target(target, begin, T, states, work.score, work.known)
            if not chooses:
                _fill_table(states.moves, states, work)
            known = _forward(T, work.known, states, work)
            fine = _backward(T, states, work, np.float32(1.0), work.other, work.pairs)
            if not chooses:
                _fill_table(weights.moves, states, work)
        loss = _forward(T, work.score, states, work) - known
        fine &= _backward(T, states, work, np.float32(-1.0), work.other, work.pairs)
        if fine:
            lost += loss
            _mark_large(T, states, work.other, work.path)
            _step_moves(T, states, work, moves, pace)
            _step_rows(seen, s, states, work, rows, pace)
        pace = Pace(pace.rate, pace.adaptive, pace.step + np.float32(1.0))
    return lost
