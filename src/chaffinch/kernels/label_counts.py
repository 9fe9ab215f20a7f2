"""Sums and maxima over all labellings whose joint part depends only on how often each label occurs.

m occurrences, C labels, Y cells: the vectors of how often each label but the last occurs, ordered by their total. After
i occurrences exactly the first cells with a total of at most i are possible, and the last label has the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from chaffinch.kernels.lattice import Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class CountCells:
    """The cells of m occurrences and C labels, and the cell after one more occurrence of each label."""

    counts: Ints  # (C, Y) how often each label occurs if all m occurrences have one
    after: Ints  # (C - 1, Y') for cells with a total below m: the cell with one more of a label
    sizes: Ints  # (m + 1,) the number of cells that are possible after i occurrences

    @classmethod
    def of(cls, m: int, C: int) -> CountCells:
        """Return the cells (how often each label occurs) of m occurrences and C labels."""
        counts, after, sizes = _number_cells(1 << m.bit_length(), C)
        kept = counts[:, : sizes[m]]
        last = m - kept.sum(axis=0, keepdims=True)
        return cls(np.concatenate([kept, last]), after[:, : sizes[m - 1]], sizes[: m + 1])

    def following(self, occurrences: int, label: int) -> Ints | slice:
        """Return, for each cell possible after `occurrences`, the number of the cell after one more with the label."""
        size = int(self.sizes[occurrences])
        return self.after[label, :size] if label < len(self.after) else slice(size)


def best_by_counts(unary: Floats, worth: Floats, cells: CountCells) -> tuple[float, Ints]:
    """Return (best score, labels (m,)) of a sum of `unary` (m, C) and the counts' `worth` (Y,); -inf if impossible.

    The score is -inf, and the labels are meaningless, if no labelling is possible.
    """
    m, C = unary.shape
    tables = [worth]
    for o in reversed(range(m)):
        table = np.full(cells.sizes[o], -np.inf)
        for label in range(C):
            np.maximum(table, unary[o, label] + tables[-1][cells.following(o, label)], out=table)
        tables.append(table)
    tables.reverse()
    labels, cell = np.zeros(m, np.int64), 0
    for o in range(m):
        nexts = [*(int(column[cell]) for column in cells.after), cell]
        labels[o] = int(np.argmax([unary[o, label] + tables[o + 1][nexts[label]] for label in range(C)]))
        cell = nexts[labels[o]]
    return float(tables[0][0]), labels


def sum_by_counts(unary: Floats, worth: Floats, cells: CountCells) -> tuple[float, Floats]:
    """Return (log of the sum of exp(score) over labellings, or -inf; (m, C) each occurrence's label chances, or 0).

    The sum is -inf, and the shares are 0, if no labelling is possible.
    """
    m, C = unary.shape
    tables = [worth]
    for o in reversed(range(m)):
        tables.append(_add_logs(np.stack([unary[o, c] + tables[-1][cells.following(o, c)] for c in range(C)])))
    tables.reverse()
    log_total = float(tables[0][0])
    shares, before = np.zeros((m, C)), np.zeros(1)
    for o in range(m) if log_total > -np.inf else ():
        grown = np.full((C, cells.sizes[o + 1]), -np.inf)
        for label in range(C):
            where, taken = cells.following(o, label), before + unary[o, label]
            grown[label, where] = taken
            shares[o, label] = np.exp(taken + tables[o + 1][where] - log_total).sum()
        before = _add_logs(grown)
    return log_total, shares


def _add_logs(rows: Floats) -> Floats:
    """Return (Y,) the log of the column sums of exp(rows), rows (C, Y); -inf for columns of -inf."""
    top = rows.max(axis=0)
    possible = np.where(top > -np.inf, top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(rows - possible).sum(axis=0)) + possible)


@lru_cache(maxsize=16)  # a few MB each at most; the numbers of occurrences are rounded up, so that few sizes occur
def _number_cells(m: int, C: int) -> tuple[Ints, Ints, Ints]:
    """Return ((C - 1, Y) counts of all cells with a total up to m, the cells after each, numbers of cells by total)."""
    counts, left = np.zeros((0, 1), np.int64), np.full(1, m)
    for _ in range(C - 1):
        times = left + 1
        more = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
        counts = np.concatenate([np.repeat(counts, times, axis=1), more[None]])
        left = np.repeat(left, times) - more
    totals = m - left
    digits = (m + 1) ** np.arange(C - 1, 0, -1)[:, None] // (m + 1)
    keys = totals * (m + 1) ** (C - 1) + (counts * digits).sum(axis=0)
    order = np.argsort(keys)
    counts, totals, keys = counts[:, order], totals[order], keys[order]
    sizes = np.cumsum(np.bincount(totals, minlength=m + 1))
    inner = keys[totals < m] + (m + 1) ** (C - 1)
    return counts, np.stack([np.searchsorted(keys, inner + digit) for digit in digits.ravel()]), sizes
