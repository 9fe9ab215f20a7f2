"""The log-likelihood of `linear` and its stochastic gradient, compiled. Letters as there."""

from __future__ import annotations

import numpy as np

from chaffinch.kernels._compile import helper, kernel
from chaffinch.kernels._linear._decode import Workspace, is_hard, path_score, score, score_target
from chaffinch.kernels._linear._simd import add_row
from chaffinch.kernels.linear import Pace, Places, Scalar, Singles, SparseInput, States, Sums, Target, Weights

SMALL = 0.003  # a token whose gradient is below this in every state is left alone
TINY = 1e-5  # and a move whose gradient is below this
CALM = 1.0  # what squares of gradients begin with in adaptive steps


@helper()
def _exponentials(moves: Singles, states: States, room: Workspace) -> None:
    K, W = states.K, states.W
    for i in range((K + 2) * W):
        room.table[i] = np.exp(moves[i])
    for x in range(K):
        for y in range(K):
            room.back[y * W + x] = room.table[x * W + y]


@helper()
def _again(cell: int, moves: Singles, states: States, room: Workspace) -> None:
    """One cell of the exponentials anew."""
    K, W = states.K, states.W
    room.table[cell] = np.exp(moves[cell])
    if cell < K * W:
        room.back[cell % W * W + cell // W] = room.table[cell]


@helper()
def _forward(T: int, score: Singles, states: States, room: Workspace) -> Scalar:
    """Forward sums, each token's divided by its total, in room.best; returns log Z."""
    K, W, alpha, emit, log_z = states.K, states.W, room.best, room.emit, 0.0
    for t in range(T):
        at, top = t * W, np.float32(-np.inf)
        for x in range(K):
            top = max(top, score[at + x])
        for x in range(W):
            emit[at + x] = np.exp(score[at + x] - top) if x < K else np.float32(0.0)
            alpha[at + x] = room.table[K * W + x] if t == 0 else np.float32(0.0)
        if t > 0:
            for x in range(K):
                if alpha[at - W + x] > 0.0:
                    add_row(alpha, at, room.table, x * W, alpha[at - W + x], W)
        total = np.float32(0.0)
        for x in range(W):
            alpha[at + x] *= emit[at + x]
            total += alpha[at + x]
        for x in range(W):
            alpha[at + x] /= total
        log_z += np.log(total) + top
    total = np.float32(0.0)
    for x in range(K):
        total += alpha[(T - 1) * W + x] * room.table[(K + 1) * W + x]
    return log_z + np.log(total)


@helper()
def _backward(T: int, states: States, room: Workspace, sign: Scalar, out: Singles, pairs: Singles) -> bool:
    """Adds sign * P(state) to out and sign * P(pair), summed over positions, to pairs; False if the range fails.

    Backward sums are divided by their largest; room.line holds those of the next token with what is seen there.
    """
    K, W, alpha, beta = states.K, states.W, room.best, room.back
    line, now = room.line, room.now
    fine = True
    room.outer[:] = 0.0
    for t in range(T - 1, -1, -1):
        at = t * W
        for x in range(W):
            now[x] = room.table[(K + 1) * W + x] if t == T - 1 else np.float32(0.0)
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
                    add_row(room.outer, x * W, line, 0, share / top * alpha[at + x], W)
        for x in range(W):
            out[at + x] += share * alpha[at + x] * now[x]
            line[x] = now[x] * room.emit[at + x]
    for i in range(K * W):
        pair = room.outer[i] * room.table[i]
        fine &= bool(-np.inf < pair < np.inf)
        pairs[i] += pair
    return fine


@helper()
def _step(cell: int, gradient: Scalar, sums: Sums, pace: Pace) -> None:
    """One weight a step up its gradient; shorter the more it has moved, where steps are adaptive."""
    length = pace.rate * gradient
    if pace.adaptive:
        sums.squares[cell] += gradient * gradient
        length /= np.sqrt(sums.squares[cell] + np.float32(CALM))
    sums.weights[cell] += length
    sums.totals[cell] += pace.step * length


@helper()
def _step_row(row: int, gradient: Singles, at: int, sums: Sums, pace: Pace, W: int) -> None:
    """The same for a row of weights."""
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
def _spread(seen: SparseInput, s: int, states: States, room: Workspace, sums: Sums, pace: Pace) -> None:
    """A step for every weight row that spoke for a token with a large gradient."""
    begin, W, T = seen.begins[s], states.W, seen.ends[s] - seen.begins[s]
    for j in range(-1, T + 1):
        v = seen.types[begin + j]
        for q in range(seen.lists[v], seen.lists[v + 1]):
            t, row = j - int(seen.first[q]), int(seen.rows[q])
            for k in range(seen.width[q]):
                if 0 <= t - k < T and room.path[t - k]:
                    _step_row((row + k) * W, room.other, (t - k) * W, sums, pace, W)
        for c in range(seen.columns.shape[1] if j < T else 0):
            row, t = int(seen.columns[begin + j, c]), j - int(seen.column_first[c])
            if row >= 0:
                for k in range(seen.column_width[c]):
                    if 0 <= t - k < T and room.path[t - k]:
                        _step_row((row + k) * W, room.other, (t - k) * W, sums, pace, W)


@helper()
def _step_moves(T: int, states: States, room: Workspace, sums: Sums, pace: Pace) -> None:
    K, W = states.K, states.W
    for x in range(K):
        for cell, change in ((K * W + x, room.other[x]), ((K + 1) * W + x, room.other[(T - 1) * W + x])):
            if abs(change) > TINY and sums.weights[cell] > -np.inf:
                _step(cell, change, sums, pace)
                _again(cell, sums.weights, states, room)
    for cell in range(K * W):
        if abs(room.pairs[cell]) > TINY:
            _step(cell, room.pairs[cell], sums, pace)
            _again(cell, sums.weights, states, room)


@helper()
def _mark_large(T: int, states: States, gradient: Singles, large: Places) -> None:
    """Which tokens have a gradient worth a step; shared columns get the sum of their states'."""
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
    rows: Sums,
    moves: Sums,
    states: States,
    room: Workspace,
    pace: Pace,
) -> float:
    """Stochastic gradient over the sentences in `order`; returns the sum of -log P(what is known), where no row is a
    distribution.

    The gradient of a sentence is the expected features given what is known, less those of the free model; where the
    range of float32 does not suffice the sentence is passed over.
    """
    W, lost, weights = states.W, 0.0, Weights(rows.weights, moves.weights)
    _exponentials(weights.moves, states, room)
    for s in order:
        begin, T = seen.begins[s], seen.ends[s] - seen.begins[s]
        score(seen, s, weights, states, room.score)
        room.pairs[:] = 0.0
        room.other[: T * W] = 0.0
        fine, known = True, 0.0
        if is_hard(target.gold, begin, T):
            gold = target.gold[begin : begin + T]
            for t in range(T):
                room.other[t * W + gold[t]] = 1.0
                if t > 0:
                    room.pairs[gold[t - 1] * W + gold[t]] += 1.0
            known = path_score(T, room.score, weights.moves, states, gold)
        else:
            chooses = score_target(target, begin, T, states, room.score, room.known)
            if not chooses:
                _exponentials(states.moves, states, room)
            known = _forward(T, room.known, states, room)
            fine = _backward(T, states, room, np.float32(1.0), room.other, room.pairs)
            if not chooses:
                _exponentials(weights.moves, states, room)
        loss = _forward(T, room.score, states, room) - known
        fine &= _backward(T, states, room, np.float32(-1.0), room.other, room.pairs)
        if fine:
            lost += loss
            _mark_large(T, states, room.other, room.path)
            _step_moves(T, states, room, moves, pace)
            _spread(seen, s, states, room, rows, pace)
        pace = Pace(pace.rate, pace.adaptive, pace.step + np.float32(1.0))
    return lost
