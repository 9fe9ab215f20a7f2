"""Scores, best paths and gradients of `linear`, compiled. Dimensions as there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from chaffinch.kernels._compile import helper, kernel
from chaffinch.kernels._linear._simd import add_row, largest_row
from chaffinch.kernels.linear import Places, Scalar, Singles, SparseInput, States, Target, Weights

REACH = 2  # the farthest offset at which a feature is looked at


class Workspace(NamedTuple):
    """Arrays for the longest sentence, used again for every sentence."""

    score: Singles  # (T * W,)
    best: Singles  # (T * W,) also forward sums
    known: Singles  # (T * W,) scores of what is known
    other: Singles  # (T * W,) gradient
    emit: Singles  # (T * W,) exponentials
    table: Singles  # ((K+2) * W,) exponentials of moves
    back: Singles  # (W * W,) the same, transposed
    pairs: Singles  # (W * W,) gradient of moves
    outer: Singles  # (W * W,) forward times backward sums
    line: Singles  # (W,) backward sums of the next token
    now: Singles  # (W,) and of this one
    path: Places  # (T,)
    right: Places  # (T,)


def workspace(T: int, states: States) -> Workspace:
    """Return a workspace for sentences of up to T tokens."""
    cells, moves, square = max(T, 1) * states.W, (states.K + 2) * states.W, states.W * states.W
    score, best, known, other, emit = np.zeros((5, cells), np.float32)
    table, back, pairs, outer = (np.zeros(size, np.float32) for size in (moves, square, square, square))
    line, now = np.zeros((2, states.W), np.float32)
    path, right = np.zeros((2, max(T, 1)), np.int32)
    return Workspace(score, best, known, other, emit, table, back, pairs, outer, line, now, path, right)


@helper()
def score(seen: SparseInput, s: int, weights: Weights, states: States, out: Singles) -> None:
    """Put into out[t * W + x] the summed weights of all features of token t of sentence s with state (column) x."""
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
def _add_columns(seen: SparseInput, s: int, weights: Weights, states: States, out: Singles) -> None:
    """Add the weights of column features to the scores of sentence s, then scores of shared columns to their states."""
    begin, W, T = seen.begins[s], states.W, seen.ends[s] - seen.begins[s]
    for j in range(-1, T):  # columns of the pad after a sentence belong to the next one
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
    """Put the best path into `path` (T,) and return its score; of equal predecessors the lowest state wins."""
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
def best_other(T: int, score: Singles, moves: Singles, states: States, work: Workspace) -> Scalar:
    """Put the best path that is not `work.right` into `work.path` and return its score; -inf if there is no other.

    A path leaves `right` at some token, at the latest the last: `best` holds those that have left it, `emit` the score
    of `right` up to each token, from which they leave.
    """
    K, W, right, best, kept, path = states.K, states.W, work.right, work.best, work.emit, work.path
    for x in range(W):
        best[x] = moves[K * W + x] + score[x]
    kept[0] = best[right[0]]
    best[right[0]] = -np.inf
    for t in range(1, T):
        at, before = t * W, right[t - 1] * W
        largest_row(best, at - W, moves, score, K, W)
        for x in range(K):
            leaves = kept[t - 1] + moves[before + x] + score[at + x]
            if x != right[t] and leaves > best[at + x]:
                best[at + x] = leaves
        kept[t] = kept[t - 1] + moves[before + right[t]] + score[at + right[t]]
    top, state = np.float32(-np.inf), 0
    for x in range(K):
        value = best[(T - 1) * W + x] + moves[(K + 1) * W + x]
        if value > top:
            top, state = value, x
    path[T - 1] = state
    for t in range(T - 2, -1, -1):
        highest, chosen, leaves = np.float32(-np.inf), 0, np.float32(-np.inf)
        for x in range(K):
            value = best[t * W + x] + moves[x * W + state]
            if value > highest:
                highest, chosen = value, x
        if state != right[t + 1]:
            leaves = kept[t] + moves[right[t] * W + state]
        if leaves > highest:  # from here back it is `right`
            for n in range(t + 1):
                path[n] = right[n]
            break
        state = chosen
        path[t] = state
    return top


@helper()
def path_score(T: int, score: Singles, moves: Singles, states: States, path: Places) -> Scalar:
    """Return the score of one path: start, end and moves between its states, and each token's score."""
    K, W = states.K, states.W
    total = moves[K * W + path[0]] + moves[(K + 1) * W + path[T - 1]] + score[path[0]]
    for t in range(1, T):
        total += score[t * W + path[t]] + moves[path[t - 1] * W + path[t]]
    return total


@helper()
def is_hard(gold: Places, begin: int, T: int) -> bool:
    """Tell whether the state of every token of the sentence of T tokens from `begin` on is known."""
    known = True
    for t in range(T):
        known &= gold[begin + t] >= 0
    return known


@helper()
def score_target(target: Target, begin: int, T: int, states: States, score: Singles, out: Singles) -> bool:
    """Put a sentence's known or soft states into out as log-potentials; return whether the model chooses anywhere.

    Where it chooses, among the states that are not forbidden, the model's scores are added.
    """
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


@kernel()
def _sum_types(seen: SparseInput, weights: Weights, W: int, blocks: Singles) -> None:
    """Add to blocks (V * 5 * W,), for each type v and each of five offsets, the weight rows of its features."""
    for v in range(len(seen.lists) - 1):
        for q in range(seen.lists[v], seen.lists[v + 1]):
            for k in range(seen.width[q]):
                at = (v * (2 * REACH + 1) + REACH + int(seen.first[q]) + k) * W
                add_row(blocks, at, weights.rows, (int(seen.rows[q]) + k) * W, 1.0, W)


def sum_by_type(seen: SparseInput, weights: Weights, states: States) -> Singles:
    """Return the scores (V * 5 * W,) of each type at each of five offsets, summed over its features."""
    blocks = np.zeros((len(seen.lists) - 1) * (2 * REACH + 1) * states.W, np.float32)
    _sum_types(seen, weights, states.W, blocks)
    return blocks


@helper()
def _score_by_type(seen: SparseInput, s: int, blocks: Singles, weights: Weights, states: States, out: Singles) -> None:
    """Put into out the scores of sentence s, as `score` does, from the sums `blocks` of `sum_by_type`."""
    begin, W, T = seen.begins[s], states.W, seen.ends[s] - seen.begins[s]
    out[: T * W] = 0.0
    for j in range(-1, T + 1):
        at = (int(seen.types[begin + j]) * (2 * REACH + 1) + REACH) * W
        for t in range(max(j - REACH, 0), min(j + REACH, T - 1) + 1):
            add_row(out, t * W, blocks, at + (j - t) * W, 1.0, W)
    _add_columns(seen, s, weights, states, out)


@kernel()
def decode(seen: SparseInput, blocks: Singles, weights: Weights, states: States, work: Workspace, out: Places) -> None:
    """Put the best state of every token of every sentence into out (N,); pads between sentences are left alone."""
    for s in range(len(seen.begins)):
        begin, T = seen.begins[s], seen.ends[s] - seen.begins[s]
        _score_by_type(seen, s, blocks, weights, states, work.score)
        viterbi(T, work.score, weights.moves, states, work.best, work.path)
        for t in range(T):
            out[begin + t] = work.path[t]


@kernel()
def all_scores(
    seen: SparseInput, blocks: Singles, weights: Weights, states: States, work: Workspace, out: Singles
) -> None:
    """Put the scores of every state at every token into out, one sentence after another without pads."""
    at = 0
    for s in range(len(seen.begins)):
        size = (seen.ends[s] - seen.begins[s]) * states.W
        _score_by_type(seen, s, blocks, weights, states, work.score)
        for i in range(size):
            out[at + i] = work.score[i]
        at += size


@helper()
def _add_sentence_gradient(
    seen: SparseInput, s: int, gradient: Singles, at: int, states: States, blocks: Singles, out: Singles
) -> None:
    """Add a sentence's score gradients, from `at` on, to blocks of its types, and to out at rows of its columns."""
    begin, W, T = seen.begins[s], states.W, seen.ends[s] - seen.begins[s]
    for j in range(-1, T + 1):
        block = (int(seen.types[begin + j]) * (2 * REACH + 1) + REACH) * W
        for t in range(max(j - REACH, 0), min(j + REACH, T - 1) + 1):
            add_row(blocks, block + (j - t) * W, gradient, at + t * W, 1.0, W)
        for c in range(seen.columns.shape[1] if j < T else 0):
            row, t = int(seen.columns[begin + j, c]), j - int(seen.column_first[c])
            if row >= 0:
                for k in range(seen.column_width[c]):
                    if 0 <= t - k < T:
                        add_row(out, (row + k) * W, gradient, at + (t - k) * W, 1.0, W)


@kernel()
def add_gradient(seen: SparseInput, gradient: Singles, states: States, blocks: Singles, out: Singles) -> None:
    """Add the gradient of all weights to out (R * W,), given that of all scores: `all_scores` backwards."""
    W, at = states.W, 0
    for s in range(len(seen.begins)):
        _add_sentence_gradient(seen, s, gradient, at, states, blocks, out)
        at += (seen.ends[s] - seen.begins[s]) * W
    for v in range(len(seen.lists) - 1):
        for q in range(seen.lists[v], seen.lists[v + 1]):
            for k in range(seen.width[q]):
                block = (v * (2 * REACH + 1) + REACH + int(seen.first[q]) + k) * W
                add_row(out, (int(seen.rows[q]) + k) * W, blocks, block, 1.0, W)
