"""Loops over cells, compiled. Dimensions as in `cells`."""

from __future__ import annotations

from chaffinch.kernels._compile import kernel
from chaffinch.kernels.lattice import Floats, Ints


@kernel()
def add_rows(states: Ints, bounds: Ints, which: Ints, rows: Ints, table: Floats, out: Floats) -> None:
    """Add to out[cell], for each state of each token n, table[rows[n], state]; cells are counted token by token."""
    cell = 0
    for n in range(len(which)):
        row = rows[n]
        for entry in range(bounds[which[n]], bounds[which[n] + 1]):
            out[cell] += table[row, states[entry]]
            cell += 1


@kernel()
def sum_rows(states: Ints, bounds: Ints, which: Ints, rows: Ints, weights: Floats, out: Floats) -> None:
    """Add to out[rows[n], state], for each state of each token n, the weight of its cell; cells go token by token.

    Token n takes the states from bounds[which[n]] to bounds[which[n] + 1]; `add_rows` too.
    """
    cell = 0
    for n in range(len(which)):
        row = rows[n]
        for entry in range(bounds[which[n]], bounds[which[n] + 1]):
            out[row, states[entry]] += weights[cell]
            cell += 1
