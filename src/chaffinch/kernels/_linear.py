"""Scores, best paths and the passive-aggressive pass of `linear`, compiled. Letters as there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from chaffinch.kernels._compiled import helper, kernel
from chaffinch.kernels._vector import add_row, largest_row
from chaffinch.kernels.linear import Places, Scalar, Seen, Singles, States, Target, Weights

REACH = 2  # the farthest offset


class Room(NamedTuple):
    """Working space for the longest sentence."""

    score: Singles  # (T * W,)
    best: Singles  # (T * W,) also forward sums
    known: Singles  # (T * W,) scores of what is known
    other: Singles  # (T * W,) gradient
    emit: Singles  # (T * W,) exponentials
    table: Singles  # ((K+2) * W,) exponentials of moves
    back: Singles  # (W * W,) the same, transposed
    pairs: Singles  # (W * W,) gradient of moves
    line: Singles  # (W,) backward sums of the next token
    now: Singles  # (W,) and of this one
    path: Places  # (T,)
    right: Places  # (T,)


def room(T: int, states: States) -> Room:
    """Space for sentences of up to T tokens."""
    cells, moves, square = max(T, 1) * states.W, (states.K + 2) * states.W, states.W * states.W
    score, best, known, other, emit = np.zeros((5, cells), np.float32)
    table, back, pairs = (np.zeros(size, np.float32) for size in (moves, square, square))
    line, now = np.zeros((2, states.W), np.float32)
    path, right = np.zeros((2, max(T, 1)), np.int32)
    return Room(score, best, known, other, emit, table, back, pairs, line, now, path, right)


@helper()
def score(seen: Seen, s: int, weights: Weights, states: States, out: Singles) -> None:
    """out[t, W] = sum of the weight rows that speak for token t of sentence s."""
    begin, W, T = seen.begins[s], states.W, seen.ends[s] - seen.begins[s]
    out[: T * W] = 0.0
    for j in range(-1, T + 1):
        v = seen.types[begin + j]
        for q in range(seen.lists[v], seen.lists[v + 1]):
            t, row = j - int(seen.first[q]), int(seen.rows[q])
            for k in range(seen.width[q]):
                if 0 <= t - k < T:
                    add_row(out, (t - k) * W, weights.rows, (row + k) * W, 1.0, W)
    _add_columns(seen, s, weights, states, out)


@helper()
def _add_columns(seen: Seen, s: int, weights: Weights, states: States, out: Singles) -> None:
    begin, W, T = seen.begins[s], states.W, seen.ends[s] - seen.begins[s]
    for j in range(-1, T):  # what stands at the pad after a sentence belongs to the next one
        for c in range(seen.columns.shape[1]):
            row = int(seen.columns[begin + j, c])
            if row >= 0:
                t = j - int(seen.column_first[c])
                for k in range(seen.column_width[c]):
                    if 0 <= t - k < T:
                        add_row(out, (t - k) * W, weights.rows, (row + k) * W, 1.0, W)
    if states.shared[0] >= 0:
        for t in range(T):
            for x in range(states.K):
                out[t * W + x] += out[t * W + states.shared[x]]


@helper()
def viterbi(T: int, score: Singles, moves: Singles, states: States, best: Singles, path: Places) -> Scalar:
    """The score of the best path, which goes to `path`. Of equal predecessors the lowest wins."""
    K, W = states.K, states.W
    for x in range(W):
        best[x] = moves[K * W + x] + score[x]
    for t in range(1, T):
        largest_row(best, (t - 1) * W, moves, score, K, W)
    top, state = np.float32(-np.inf), 0
    for x in range(K):
        value = best[(T - 1) * W + x] + moves[(K + 1) * W + x]
        better = value > top
        top, state = value if better else top, x if better else state
    path[T - 1] = state
    for t in range(T - 2, -1, -1):
        highest, chosen = np.float32(-np.inf), 0
        for x in range(K):
            value = best[t * W + x] + moves[x * W + state]
            better = value > highest
            highest, chosen = value if better else highest, x if better else chosen
        state = chosen
        path[t] = state
    return top


@helper()
def path_score(T: int, score: Singles, moves: Singles, states: States, path: Places) -> Scalar:
    """The score of one path."""
    K, W = states.K, states.W
    total = moves[K * W + path[0]] + moves[(K + 1) * W + path[T - 1]] + score[path[0]]
    for t in range(1, T):
        total += score[t * W + path[t]] + moves[path[t - 1] * W + path[t]]
    return total


@helper()
def is_hard(gold: Places, begin: int, T: int) -> bool:
    """Every token has its state."""
    known = True
    for t in range(T):
        known &= gold[begin + t] >= 0
    return known


@helper()
def score_target(target: Target, begin: int, T: int, states: States, score: Singles, out: Singles) -> bool:
    """Log-potentials of what is known of a sentence; says whether the model must choose anywhere."""
    W, chooses = states.W, False
    for t in range(T):
        gold, x0 = target.gold[begin + t], target.which[begin + t]
        for x in range(W):
            out[t * W + x] = score[t * W + x] if x == gold else np.float32(-np.inf)
        if gold < 0:
            for x in range(states.K):
                out[t * W + x] = np.log(target.weights[x0, x])
                if target.free[x0]:
                    out[t * W + x] += score[t * W + x]
            chooses |= target.free[x0]
    return chooses


@helper()
def _cost(target: Target, n: int, right: int, x: int, states: States) -> Scalar:
    """How wrong a state is at a token: 1, or by how much the right one is likelier."""
    if target.gold[n] >= 0:
        return 1.0 if states.label[x] != states.label[right] else 0.0
    row = target.weights[target.which[n]]
    return max(row[right] - row[x], np.float32(0.0))


class Gap(NamedTuple):
    """The difference of two labellings' features, summed cell by cell: a small open table, all empty between sentences.

    Cells are places in Weights.rows; those of Weights.moves are counted down from -2. A free slot holds -1.
    """

    cells: NDArray[np.int64]  # its length is a power of two
    values: NDArray[np.int64]
    slots: NDArray[np.int64]  # the slots in use
    used: NDArray[np.int64]  # (1,) how many


def gap(seen: Seen, states: States) -> Gap:
    """Room for every cell that the longest sentence can touch."""
    each = int(np.diff(seen.lists).max(initial=0)) * (2 * REACH + 1) + 4 * seen.columns.shape[1] + 2
    most = max(seen.longest, 1) * each * (4 if states.shared[0] >= 0 else 2)
    size = 1 << (2 * most).bit_length()
    return Gap(
        np.full(size, -1, np.int64), np.zeros(size, np.int64), np.zeros(size // 2, np.int64), np.zeros(1, np.int64)
    )


@helper()
def _put(gap: Gap, cell: int, sign: int) -> int:
    """Adds to one cell and returns by how much the squared length grew."""
    mask = len(gap.cells) - 1
    slot = (int(cell) * 0x9E3779B1 >> 7) & mask
    while gap.cells[slot] != cell:
        if gap.cells[slot] == -1:
            gap.cells[slot] = cell
            gap.slots[gap.used[0]] = slot
            gap.used[0] += 1
            break
        slot = (slot + 1) & mask
    value = int(gap.values[slot])
    gap.values[slot] = value + sign
    return 2 * sign * value + 1


@helper()
def _put_row(gap: Gap, row: int, states: States, right: int, wrong: int) -> int:
    at = row * states.W
    grown = _put(gap, at + right, 1) + _put(gap, at + wrong, -1)
    one, other = states.shared[right], states.shared[wrong]
    if one != other:
        grown += _put(gap, at + one, 1) + _put(gap, at + other, -1)
    return grown


@helper()
def _put_token(gap: Gap, seen: Seen, s: int, t: int, states: States, right: int, wrong: int) -> int:
    """Adds every feature of a token: with the right state +1, with the wrong one -1."""
    grown, n = 0, seen.begins[s] + t
    for j in range(max(n - REACH, seen.begins[s] - 1), min(n + REACH, seen.ends[s]) + 1):
        v = seen.types[j]
        for q in range(seen.lists[v], seen.lists[v + 1]):
            k = j - n - int(seen.first[q])
            if 0 <= k < seen.width[q]:
                grown += _put_row(gap, int(seen.rows[q]) + k, states, right, wrong)
        for c in range(seen.columns.shape[1] if j < seen.ends[s] else 0):
            k = j - n - int(seen.column_first[c])
            if 0 <= k < seen.column_width[c] and seen.columns[j, c] >= 0:
                grown += _put_row(gap, int(seen.columns[j, c]) + k, states, right, wrong)
    return grown


@helper()
def _put_moves(gap: Gap, T: int, states: States, path: Places, sign: int) -> int:
    K, W, grown, before = states.K, states.W, 0, states.K
    for t in range(T + 1):
        cell = before * W + int(path[t]) if t < T else (K + 1) * W + before
        grown += _put(gap, -2 - cell, sign)
        before = int(path[t]) if t < T else K
    return grown


@helper()
def _open(gap: Gap, seen: Seen, s: int, states: States, right: Places, wrong: Places) -> int:
    """Fills the gap between two labellings of a sentence and returns its squared length."""
    T, squared = seen.ends[s] - seen.begins[s], 0
    for t in range(T):
        if right[t] != wrong[t]:
            squared += _put_token(gap, seen, s, t, states, right[t], wrong[t])
    return squared + _put_moves(gap, T, states, right, 1) + _put_moves(gap, T, states, wrong, -1)


@helper()
def _close(gap: Gap, weights: Weights, totals: Weights, tau: Scalar, step: Scalar) -> None:
    """Moves the weights by tau along the gap, which is empty then."""
    for i in range(gap.used[0]):
        slot = gap.slots[i]
        cell, change = gap.cells[slot], tau * np.float32(gap.values[slot])
        if cell >= 0:
            weights.rows[cell] += change
            totals.rows[cell] += step * change
        else:
            weights.moves[-2 - cell] += change
            totals.moves[-2 - cell] += step * change
        gap.cells[slot] = -1
        gap.values[slot] = 0
    gap.used[0] = 0


@kernel()
def pa_pass(
    seen: Seen, target: Target, order: Places, weights: Weights, totals: Weights, states: States, room: Room,
    gap: Gap, aggressiveness: float, augmented: bool, step: int,
) -> float:  # fmt: skip
    """PA-I over the sentences in `order`: w += tau * (F(right) - F(violator)), tau = min(C, loss / squared gap)."""
    W, lost = states.W, 0.0
    for s in order:
        begin, T = seen.begins[s], seen.ends[s] - seen.begins[s]
        score(seen, s, weights, states, room.score)
        if is_hard(target.gold, begin, T):
            for t in range(T):
                room.right[t] = target.gold[begin + t]
        else:
            chooses = score_target(target, begin, T, states, room.score, room.known)
            moves = weights.moves if chooses else states.moves
            if viterbi(T, room.known, moves, states, room.best, room.right) == -np.inf:
                step += 1
                continue  # what is known contradicts itself
        if augmented:
            for t in range(T):
                for x in range(states.K):
                    room.score[t * W + x] += _cost(target, begin + t, room.right[t], x, states)
        loss = viterbi(T, room.score, weights.moves, states, room.best, room.path)
        loss -= path_score(T, room.score, weights.moves, states, room.right)
        if not augmented:
            for t in range(T):
                loss += _cost(target, begin + t, room.right[t], room.path[t], states)
        if loss > 0.0:
            squared = _open(gap, seen, s, states, room.right, room.path)
            # Two labellings may share every feature; the quotient would be 0 / 0.
            tau = np.float32(min(aggressiveness, loss / squared)) if squared > 0 else np.float32(0.0)
            _close(gap, weights, totals, tau, np.float32(step))
            lost += loss
        step += 1
    return lost


@kernel()
def _sum_types(seen: Seen, weights: Weights, W: int, blocks: Singles) -> None:
    for v in range(len(seen.lists) - 1):
        for q in range(seen.lists[v], seen.lists[v + 1]):
            for k in range(seen.width[q]):
                at = (v * (2 * REACH + 1) + REACH + int(seen.first[q]) + k) * W
                add_row(blocks, at, weights.rows, (int(seen.rows[q]) + k) * W, 1.0, W)


def summed(seen: Seen, weights: Weights, states: States) -> Singles:
    """(V * 5 * W,) what each type says at each offset, summed over its features."""
    blocks = np.zeros((len(seen.lists) - 1) * (2 * REACH + 1) * states.W, np.float32)
    _sum_types(seen, weights, states.W, blocks)
    return blocks


@helper()
def _score_summed(seen: Seen, s: int, blocks: Singles, weights: Weights, states: States, out: Singles) -> None:
    begin, W, T = seen.begins[s], states.W, seen.ends[s] - seen.begins[s]
    out[: T * W] = 0.0
    for j in range(-1, T + 1):
        at = (int(seen.types[begin + j]) * (2 * REACH + 1) + REACH) * W
        for t in range(max(j - REACH, 0), min(j + REACH, T - 1) + 1):
            add_row(out, t * W, blocks, at + (j - t) * W, 1.0, W)
    _add_columns(seen, s, weights, states, out)


@kernel()
def decode(seen: Seen, blocks: Singles, weights: Weights, states: States, room: Room, out: Places) -> None:
    """The best states of every sentence."""
    for s in range(len(seen.begins)):
        begin, T = seen.begins[s], seen.ends[s] - seen.begins[s]
        _score_summed(seen, s, blocks, weights, states, room.score)
        viterbi(T, room.score, weights.moves, states, room.best, room.path)
        for t in range(T):
            out[begin + t] = room.path[t]


@kernel()
def all_scores(seen: Seen, blocks: Singles, weights: Weights, states: States, room: Room, out: Singles) -> None:
    """The scores of every state at every token, one sentence after another without pads."""
    at = 0
    for s in range(len(seen.begins)):
        size = (seen.ends[s] - seen.begins[s]) * states.W
        _score_summed(seen, s, blocks, weights, states, room.score)
        for i in range(size):
            out[at + i] = room.score[i]
        at += size
