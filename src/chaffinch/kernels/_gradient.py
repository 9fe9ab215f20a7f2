"""The log-likelihood of `linear` and its stochastic gradient, compiled. Letters as there."""

from __future__ import annotations

import numpy as np

from chaffinch.kernels._compiled import helper, kernel
from chaffinch.kernels._linear import Room, is_hard, path_score, score, score_target
from chaffinch.kernels._vector import add_row
from chaffinch.kernels.linear import Places, Scalar, Seen, Singles, States, Target, Weights

SMALL = 0.003  # a token whose gradient is below this in every state is left alone


@helper()
def _exponentials(moves: Singles, states: States, room: Room) -> None:
    K, W = states.K, states.W
    for i in range((K + 2) * W):
        room.table[i] = np.exp(moves[i])
    for x in range(K):
        for y in range(K):
            room.back[y * W + x] = room.table[x * W + y]


@helper()
def _forward(T: int, score: Singles, states: States, room: Room) -> Scalar:
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
def _backward(T: int, states: States, room: Room, sign: Scalar, out: Singles, pairs: Singles) -> bool:
    """Adds sign * P(state) to out and sign * P(pair), summed over positions, to pairs; False if the range fails.

    Backward sums are divided by their largest; room.line holds those of the next token with what is seen there.
    """
    K, W, alpha, beta = states.K, states.W, room.best, room.back
    line, now = room.line, room.now
    fine = True
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
                    for y in range(K):
                        pairs[x * W + y] += share / top * alpha[at + x] * room.table[x * W + y] * line[y]
        for x in range(W):
            out[at + x] += share * alpha[at + x] * now[x]
            line[x] = now[x] * room.emit[at + x]
    return fine


@helper()
def _spread(
    seen: Seen, s: int, weights: Singles, totals: Singles, states: States, gradient: Singles, large: Places,
    rate: Scalar, step: Scalar,
) -> None:  # fmt: skip
    """Adds rate * gradient to every weight row that spoke for a token with a large gradient."""
    begin, W, T = seen.begins[s], states.W, seen.ends[s] - seen.begins[s]
    for j in range(-1, T + 1):
        v = seen.types[begin + j]
        for q in range(seen.lists[v], seen.lists[v + 1]):
            t, row = j - int(seen.first[q]), int(seen.rows[q])
            for k in range(seen.width[q]):
                if 0 <= t - k < T and large[t - k]:
                    add_row(weights, (row + k) * W, gradient, (t - k) * W, rate, W)
                    add_row(totals, (row + k) * W, gradient, (t - k) * W, rate * step, W)
        for c in range(seen.columns.shape[1] if j < T else 0):
            row, t = int(seen.columns[begin + j, c]), j - int(seen.column_first[c])
            if row >= 0:
                for k in range(seen.column_width[c]):
                    if 0 <= t - k < T and large[t - k]:
                        add_row(weights, (row + k) * W, gradient, (t - k) * W, rate, W)
                        add_row(totals, (row + k) * W, gradient, (t - k) * W, rate * step, W)


@helper()
def _step_moves(
    T: int, states: States, room: Room, weights: Singles, totals: Singles, rate: Scalar, step: Scalar
) -> None:
    K, W = states.K, states.W
    for x in range(K):
        for cell, change in ((K * W + x, room.other[x]), ((K + 1) * W + x, room.other[(T - 1) * W + x])):
            if weights[cell] > -np.inf:
                weights[cell] += rate * change
                totals[cell] += step * rate * change
    for i in range(K * W):
        if room.pairs[i] != 0.0:
            weights[i] += rate * room.pairs[i]
            totals[i] += step * rate * room.pairs[i]


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
    seen: Seen, target: Target, order: Places, weights: Weights, totals: Weights, states: States, room: Room,
    rate: Scalar, step: int,
) -> float:  # fmt: skip
    """Stochastic gradient over the sentences in `order`; returns the sum of -log P(what is known), where no row is a
    distribution.

    The gradient of a sentence is the expected features given what is known, less those of the free model; where the
    range of float32 does not suffice the sentence is passed over.
    """
    W, lost = states.W, 0.0
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
            _exponentials(weights.moves if chooses else states.moves, states, room)
            known = _forward(T, room.known, states, room)
            fine = _backward(T, states, room, np.float32(1.0), room.other, room.pairs)
        _exponentials(weights.moves, states, room)
        loss = _forward(T, room.score, states, room) - known
        fine &= _backward(T, states, room, np.float32(-1.0), room.other, room.pairs)
        if fine:
            lost += loss
            _mark_large(T, states, room.other, room.path)
            _step_moves(T, states, room, weights.moves, totals.moves, np.float32(rate), np.float32(step))
            _spread(
                seen, s, weights.rows, totals.rows, states, room.other, room.path, np.float32(rate), np.float32(step)
            )
        step += 1
    return lost
