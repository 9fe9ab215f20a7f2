"""Exact kernels in log-space, slower, for potentials of any range; and the n best paths.

T tokens, K states, M cells; n paths. The part holds one sequence or several; each call works on one of them.
"""

from __future__ import annotations

import math

import numpy as np

from chaffinch.kernels._chain._layout import BatchLayout
from chaffinch.kernels._compile import helper, kernel
from chaffinch.kernels.lattice import Floats, Ints


@helper()
def _log_sum(values: Floats) -> float:
    """Return the log of the sum of exponentials; -inf if there are no values."""
    top = -np.inf
    for value in values:
        top = max(top, value)
    if top == -np.inf:
        return -np.inf
    total = 0.0
    for value in values:
        total += math.exp(value - top)
    return top + math.log(total)


@kernel()
def log_forward(layout: BatchLayout, trans: Floats, emit: Floats, b: int, forward: Floats, scratch: Floats) -> int:
    """Fill the log-space forward messages (M,) of sequence b; return the first token that no path reaches, or -1.

    `emit` includes the start in the first token's cells; trans is (1, K, K), or one table into each token; `scratch` is
    (K,).
    """
    lo, hi = layout.bounds[b], layout.bounds[b + 1]
    for n in range(lo, hi):
        alive = False
        before = layout.width[n - 1] if n > lo else 0
        terms = scratch[:before]
        for j in range(layout.width[n]):
            value = emit[layout.at[n] + j]
            if n > lo:
                to = layout.pool[layout.first[n] + j]
                table = trans[0 if len(trans) == 1 else n]
                for i in range(before):
                    terms[i] = forward[layout.at[n - 1] + i] + table[layout.pool[layout.first[n - 1] + i], to]
                value += _log_sum(terms)
            forward[layout.at[n] + j] = value
            alive = alive or value > -np.inf
        if not alive:
            return int(n - lo)
    return -1


@kernel()
def log_backward(layout: BatchLayout, trans: Floats, emit: Floats, b: int, backward: Floats, scratch: Floats) -> None:
    """Fill the log-space backward messages (M,) of sequence b; its last token's cells must hold the end potentials."""
    lo, hi = layout.bounds[b], layout.bounds[b + 1]
    for n in range(hi - 2, lo - 1, -1):
        table = trans[0 if len(trans) == 1 else n + 1]
        terms = scratch[: layout.width[n + 1]]
        for i in range(layout.width[n]):
            x = layout.pool[layout.first[n] + i]
            for j in range(terms.size):
                cell = layout.at[n + 1] + j
                terms[j] = table[x, layout.pool[layout.first[n + 1] + j]] + emit[cell] + backward[cell]
            backward[layout.at[n] + i] = _log_sum(terms)


@helper()
def _offer(value: float, i: int, rank: int, scores: Floats, sources: Ints) -> bool:
    """Insert (value, source i, rank) into the sorted ranking if it beats the last; return whether it did.

    `scores` (n,) are in descending order, `sources` (n, 2) are the state before and the rank there. Of equal candidates
    the one offered first stays ahead.
    """
    n = scores.size
    if not value > scores[n - 1]:
        return False
    k = n - 1
    while k > 0 and value > scores[k - 1]:
        scores[k] = scores[k - 1]
        sources[k, 0], sources[k, 1] = sources[k - 1, 0], sources[k - 1, 1]
        k -= 1
    scores[k] = value
    sources[k, 0] = i
    sources[k, 1] = rank
    return True


@kernel()
def rank_paths(layout: BatchLayout, trans: Floats, emit: Floats, end: Floats, best: Floats, sources: Ints) -> None:
    """Fill best (M+1, n) with the n best scores into each cell, `sources` with their origins; last row: whole paths."""
    T, M, n = len(layout.width), len(emit), best.shape[1]
    best[:] = -np.inf
    for t in range(T):
        for j in range(layout.width[t]):
            cell, to = layout.at[t] + j, layout.pool[layout.first[t] + j]
            if t == 0:
                best[cell, 0] = emit[cell]
                continue
            table = trans[0 if len(trans) == 1 else t]
            for i in range(layout.width[t - 1]):
                step = table[layout.pool[layout.first[t - 1] + i], to]
                for rank in range(n):
                    if not _offer(best[layout.at[t - 1] + i, rank] + step, i, rank, best[cell], sources[cell]):
                        break
            for rank in range(n):
                best[cell, rank] += emit[cell]
    for i in range(layout.width[T - 1]):
        step = end[layout.pool[layout.first[T - 1] + i]]
        for rank in range(n):
            if not _offer(best[layout.at[T - 1] + i, rank] + step, i, rank, best[M], sources[M]):
                break


@kernel()
def trace_paths(layout: BatchLayout, sources: Ints, states: Ints) -> None:
    """Fill states (R, T) with the R best paths, the best first, from the sources of `rank_paths`."""
    for rank in range(len(states)):
        cell, back_rank = len(sources) - 1, rank
        for t in range(len(layout.width) - 1, -1, -1):
            i = sources[cell, back_rank, 0]
            back_rank = sources[cell, back_rank, 1]
            cell = layout.at[t] + i
            states[rank, t] = layout.pool[layout.first[t] + i]
