"""The passive-aggressive pass of `linear`, compiled. Dimensions as there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from chaffinch.kernels._compile import helper, kernel
from chaffinch.kernels._linear._decode import (
    REACH,
    Workspace,
    best_other,
    is_hard,
    path_score,
    score,
    score_target,
    viterbi,
)
from chaffinch.kernels.linear import Places, Scalar, SparseInput, States, Target, Weights


@helper()
def _cost(target: Target, n: int, right: int, x: int, states: States) -> Scalar:
    """Return the cost of a state at a token: 1 for a wrong label or, for soft targets, its deficit in probability."""
    if target.gold[n] >= 0:
        return 1.0 if states.label[x] != states.label[right] else 0.0
    row = target.weights[target.which[n]]
    return max(row[right] - row[x], np.float32(0.0))


class AveragedWeights(NamedTuple):
    """Weights, and the sums from which their average over all steps is computed."""

    weights: Weights
    totals: Weights


class Update(NamedTuple):
    """Settings of passive-aggressive steps, and the number of the next step."""

    aggressiveness: float  # C, the largest step
    augmented: bool  # find the violator with the cost added
    second: bool  # if the prediction is right, the violator is the best labelling but that one
    moves: bool  # moves between states have weights
    step: int


class Gap(NamedTuple):
    """The difference of two labellings' features, summed by cell: a hash table, emptied after each sentence.

    Cells are indices into Weights.rows; those into Weights.moves are counted down from -2. A free slot holds -1.
    """

    cells: NDArray[np.int64]  # its length is a power of two
    values: NDArray[np.int64]
    slots: NDArray[np.int64]  # the slots in use
    used: NDArray[np.int64]  # (1,) how many


def empty_gap(seen: SparseInput, states: States) -> Gap:
    """Return an empty hash table with room for every weight that the longest sentence can touch."""
    each = int(np.diff(seen.lists).max(initial=0)) * (2 * REACH + 1) + 4 * seen.columns.shape[1] + 2
    most = max(seen.longest, 1) * each * (4 if states.shared[0] >= 0 else 2)
    size = 1 << (2 * most).bit_length()
    return Gap(
        np.full(size, -1, np.int64), np.zeros(size, np.int64), np.zeros(size // 2, np.int64), np.zeros(1, np.int64)
    )


@helper()
def _put(gap: Gap, cell: int, sign: int) -> int:
    """Add `sign`, 1 or -1, to one cell of the sparse gap; return by how much its squared length grows."""
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
    """Add 1 at a row's right state, -1 at the wrong, likewise in their shared columns; return the square's growth."""
    at = row * states.W
    grown = _put(gap, at + right, 1) + _put(gap, at + wrong, -1)
    plus, minus = states.shared[right], states.shared[wrong]
    if plus != minus:
        grown += _put(gap, at + plus, 1) + _put(gap, at + minus, -1)
    return grown


@helper()
def _put_token(gap: Gap, seen: SparseInput, s: int, t: int, states: States, right: int, wrong: int) -> int:
    """Add a token's features to the gap, +1 with the right state, -1 with the wrong; return the square's growth."""
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
    """Add `sign` to every move of a path, first and last included; return the growth of the squared length."""
    K, W, grown, before = states.K, states.W, 0, states.K
    for t in range(T + 1):
        cell = before * W + int(path[t]) if t < T else (K + 1) * W + before
        grown += _put(gap, -2 - cell, sign)
        before = int(path[t]) if t < T else K
    return grown


@helper()
def _fill_gap(gap: Gap, seen: SparseInput, s: int, states: States, right: Places, wrong: Places, moves: bool) -> int:
    """Add to the empty gap features (and moves if asked) of `right` minus those of `wrong`; return its squared norm."""
    T, squared = seen.ends[s] - seen.begins[s], 0
    for t in range(T):
        if right[t] != wrong[t]:
            squared += _put_token(gap, seen, s, t, states, right[t], wrong[t])
    if moves:
        squared += _put_moves(gap, T, states, right, 1) + _put_moves(gap, T, states, wrong, -1)
    return squared


@helper()
def _step_along(gap: Gap, weights: Weights, totals: Weights, tau: Scalar, step: Scalar) -> None:
    """Move the weights by tau along the gap and their totals by step * tau; empty the gap."""
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


@helper()
def _same(T: int, path: Places, right: Places) -> bool:
    """Tell whether two labellings agree on the first T tokens."""
    same = True
    for t in range(T):
        same &= path[t] == right[t]
    return same


@kernel()
def pa_pass(
    seen: SparseInput, target: Target, order: Places, learnt: AveragedWeights, states: States, work: Workspace,
    gap: Gap, update: Update,
) -> float:  # fmt: skip
    """Run passive-aggressive (PA-I) updates on the sentences in `order`, changing `learnt`; return the summed loss.

    A sentence in which what is known contradicts itself changes nothing.

    w += tau * (F(right) - F(violator)), tau = min(C, loss / squared gap).
    """
    weights, totals = learnt.weights, learnt.totals
    aggressiveness, augmented, step = update.aggressiveness, update.augmented, update.step
    W, lost = states.W, 0.0
    for s in order:
        begin, T = seen.begins[s], seen.ends[s] - seen.begins[s]
        score(seen, s, weights, states, work.score)
        if is_hard(target.gold, begin, T):
            for t in range(T):
                work.right[t] = target.gold[begin + t]
        else:
            chooses = score_target(target, begin, T, states, work.score, work.known)
            moves = weights.moves if chooses else states.moves
            if viterbi(T, work.known, moves, states, work.best, work.right) == -np.inf:
                step += 1
                continue  # what is known contradicts itself
        if augmented:
            for t in range(T):
                for x in range(states.K):
                    work.score[t * W + x] += _cost(target, begin + t, work.right[t], x, states)
        loss = viterbi(T, work.score, weights.moves, states, work.best, work.path)
        if update.second and _same(T, work.path, work.right):
            loss = best_other(T, work.score, weights.moves, states, work)
        loss -= path_score(T, work.score, weights.moves, states, work.right)
        if not augmented:
            for t in range(T):
                loss += _cost(target, begin + t, work.right[t], work.path[t], states)
        if loss > 0.0:
            squared = _fill_gap(gap, seen, s, states, work.right, work.path, update.moves)
            # Two labellings may share every feature; the quotient would be 0 / 0.
            tau = np.float32(min(aggressiveness, loss / squared)) if squared > 0 else np.float32(0.0)
            _step_along(gap, weights, totals, tau, np.float32(step))
            lost += loss
        step += 1
    return lost
