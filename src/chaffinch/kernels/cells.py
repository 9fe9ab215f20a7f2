"""Table rows spread over cells, and summed back: a cell is a token with one of the states it may take.

N tokens, V rows of a table, Z states, M cells.
"""

from __future__ import annotations

import numpy as np

from chaffinch.kernels.lattice import Active, Floats, Ints


def add_rows(active: Active, rows: Ints, table: Floats, out: Floats) -> None:
    """Add to each cell of out (M,) the entry of the table (V, Z) in its token's row (`rows`, (N,)) and state's column.

    >>> out = np.zeros(3)
    >>> add_rows(Active.of([[0, 2], [1]]), np.array([1, 0]), np.array([[0., 1., 2.], [3., 4., 5.]]), out)
    >>> out.tolist()
    [3.0, 5.0, 1.0]
    """
    from chaffinch.kernels._chain import _gather

    _gather.add_rows(
        active.states, active.bounds, active.which, _as_row_numbers(rows), np.ascontiguousarray(table), out
    )


def sum_rows(active: Active, rows: Ints, weights: Floats, out: Floats) -> None:
    """Add each cell's weight (M,) to the entry of out (V, Z) in its token's row (`rows`, (N,)) and state's column.

    >>> out = np.zeros((2, 3))
    >>> sum_rows(Active.of([[0, 2], [1]]), np.array([1, 0]), np.array([.5, .25, 1.]), out)
    >>> out.tolist()
    [[0.0, 1.0, 0.0], [0.5, 0.0, 0.25]]
    """
    from chaffinch.kernels._chain import _gather

    _gather.sum_rows(active.states, active.bounds, active.which, _as_row_numbers(rows), weights, out)


def _as_row_numbers(rows: Ints) -> Ints:
    """Return row numbers as a contiguous int64 array."""
    return np.ascontiguousarray(rows, np.int64)
