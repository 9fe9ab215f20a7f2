"""Viterbi: the best path by max and plus, compiled.

K states, M cells, N tokens and B sequences of one part, R sequences abreast. The forward pass keeps only scores;
which state a score came from is found again on the way back, along the one path that matters. Of equal
predecessors the lowest state wins, in every form of the kernel.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from chaffinch.kernels._abreast import Desk, by_length, still_live
from chaffinch.kernels._compiled import helper, kernel
from chaffinch.kernels._micro import HIGH, block_largest
from chaffinch.kernels._plan import Layout
from chaffinch.kernels.lattice import Floats, Ints


class Sums(NamedTuple):
    """A part's log-potentials."""

    start: Floats  # (K,)
    trans: Floats  # (1, K, K), or (N, K, K) leading into each token
    back: Floats  # (K, K) the transpose of the one trans, else (0, 0)
    emit: Floats  # (M,)
    end: Floats  # (K,)


class Found(NamedTuple):
    """What Viterbi leaves behind."""

    best: Floats  # (M,) the score of the best path up to a cell
    states: Ints  # (N,)
    score: Floats  # (B,)


@helper()
def _push_best(source: Floats, rows: Ints, table: Floats, columns: Ints, out: Floats) -> None:
    """out[j] = largest over i of source[i] + table[rows[i], columns[j]]."""
    I, J = rows.size, columns.size
    out[:] = -np.inf
    if J and columns[J - 1] - columns[0] + 1 == J:
        at, i = columns[0], 0
        while i + 4 <= I:
            a, b, c, d = source[i], source[i + 1], source[i + 2], source[i + 3]
            ra, rb = table[rows[i], at : at + J], table[rows[i + 1], at : at + J]
            rc, rd = table[rows[i + 2], at : at + J], table[rows[i + 3], at : at + J]
            for j in range(J):
                out[j] = max(max(out[j], max(a + ra[j], b + rb[j])), max(c + rc[j], d + rd[j]))
            i += 4
        for k in range(i, I):
            row = table[rows[k], at : at + J]
            for j in range(J):
                out[j] = max(out[j], source[k] + row[j])
    else:
        for i in range(I):
            for j in range(J):
                out[j] = max(out[j], source[i] + table[rows[i], columns[j]])


@helper()
def _trace(layout: Layout, sums: Sums, found: Found, b: int) -> None:
    """Finds the score and the states of sequence b, from the last token to the first."""
    lo, hi = layout.bounds[b], layout.bounds[b + 1]
    score, state, shared = -np.inf if lo < hi else 0.0, -1, len(sums.back) > 0
    for n in range(hi - 1, lo - 1, -1):
        top, chosen = -np.inf, -1
        for i in range(layout.width[n]):
            x = layout.pool[layout.first[n] + i]
            value = found.best[layout.at[n] + i]
            if n == hi - 1:
                value += sums.end[x]
            else:
                value += sums.back[state, x] if shared else sums.trans[n + 1, x, state]
            if value > top:
                top, chosen = value, x
        if chosen < 0:
            break
        state = chosen
        found.states[n] = state
        score = top if n == hi - 1 else score
    found.score[b] = score


@kernel()
def best_each(layout: Layout, sums: Sums, found: Found) -> None:
    """Fills `found`, one sequence after another."""
    shared = len(sums.back) > 0
    for b in range(len(layout.bounds) - 1):
        lo, hi = layout.bounds[b], layout.bounds[b + 1]
        for n in range(lo, hi):
            row, emit = found.best[layout.at[n] : layout.at[n + 1]], sums.emit[layout.at[n] : layout.at[n + 1]]
            if n == lo:
                for j in range(row.size):
                    row[j] = emit[j] + sums.start[layout.pool[layout.first[n] + j]]
                continue
            before = layout.pool[layout.first[n - 1] : layout.first[n - 1] + layout.width[n - 1]]
            here = layout.pool[layout.first[n] : layout.first[n] + layout.width[n]]
            source = found.best[layout.at[n - 1] : layout.at[n]]
            _push_best(source, before, sums.trans[0 if shared else n], here, row)
            for j in range(row.size):
                row[j] += emit[j]
        _trace(layout, sums, found, b)


@helper()
def _multiply_best(best: Floats, take: Ints, panels: Floats, out: Floats) -> None:
    """The first rows of `out` = rows of `best` at `take`, times the table in max and plus."""
    last = take.size - 1
    for j in range(len(panels)):
        for r in range(0, take.size, HIGH):
            at = (take[r], take[min(r + 1, last)], take[min(r + 2, last)], take[min(r + 3, last)])
            block_largest(best, at, panels, j, out, r)


@kernel()
def best_abreast(layout: Layout, sums: Sums, panels: Floats, found: Found, desk: Desk) -> None:
    """Fills `found`, as many sequences abreast as the desk holds: one table, in panels, and all states allowed."""
    K, order, take = len(sums.end), desk.order, desk.take
    for begin in range(0, len(layout.bounds) - 1, len(order)):
        end = min(begin + len(order), len(layout.bounds) - 1)
        longest = by_length(layout.bounds, begin, end, order)
        live = end - begin
        for t in range(longest):
            live = still_live(layout.bounds, order, live, t)
            if t > 0:
                for r in range(live):
                    take[r] = (layout.bounds[order[r]] + t - 1) * K
                _multiply_best(found.best, take[:live], panels, desk.wide)
            for r in range(live):
                cell = (layout.bounds[order[r]] + t) * K
                row, emit = found.best[cell : cell + K], sums.emit[cell : cell + K]
                raw = desk.wide[r, :K] if t > 0 else sums.start
                for j in range(row.size):
                    row[j] = raw[j] + emit[j]
        for b in range(begin, end):
            _trace(layout, sums, found, b)
