"""Tables to cells and back, against numpy's indexing by arrays of rows and columns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaffinch.kernels import Active, Floats, Ints, add_rows, sum_rows

V, Z = 5, 6


def drawn(seed: int, tokens: int, lists: int) -> tuple[np.random.Generator, Active, Ints]:
    """Lists of states, some of them empty; the list of each token; its row."""
    rng = np.random.default_rng(seed)
    states = [np.flatnonzero(rng.random(Z) < rng.choice([0.0, 0.5, 1.0])) for _ in range(lists)]
    return rng, Active.of(states, rng.integers(0, lists, tokens)), rng.integers(0, V, tokens)


def places(active: Active, rows: Ints) -> tuple[list[int], list[int]]:
    """The row and the column of every cell, listed token by token."""
    found = []
    for number, row in zip(active.which.tolist(), rows.tolist(), strict=True):
        states = active.states[active.bounds[number] : active.bounds[number + 1]]
        found += [(row, state) for state in states.tolist()]
    return [row for row, _ in found], [state for _, state in found]


cases = given(st.integers(0, 2**32 - 1), st.integers(0, 12), st.integers(1, 4))


@cases
def test_cells_are_those_of_indexing(seed: int, tokens: int, lists: int) -> None:
    rng, active, rows = drawn(seed, tokens, lists)
    table, before = rng.normal(size=(V, Z)), rng.normal(size=int(active.at[-1]))
    out = before.copy()
    add_rows(active, rows, table, out)
    np.testing.assert_allclose(out, before + table[places(active, rows)], rtol=0, atol=1e-12)


@cases
def test_tables_are_those_of_adding_at_places(seed: int, tokens: int, lists: int) -> None:
    rng, active, rows = drawn(seed, tokens, lists)
    weights, before = rng.normal(size=int(active.at[-1])), rng.normal(size=(V, Z))
    out, wanted = before.copy(), before.copy()
    sum_rows(active, rows, weights, out)
    np.add.at(wanted, places(active, rows), weights)
    np.testing.assert_allclose(out, wanted, rtol=0, atol=1e-12)


def test_tokens_that_share_a_row_add_up_and_empty_lists_say_nothing() -> None:
    active = Active.of([[0, 2], [], [1]], which=[0, 1, 0, 2])
    out = np.zeros((2, 3))
    sum_rows(active, np.array([1, 1, 1, 0]), np.array([1.0, 2.0, 10.0, 20.0, 5.0]), out)
    assert out.tolist() == [[0, 5, 0], [11, 0, 22]]
    cells = np.zeros(5)
    add_rows(active, np.array([1, 1, 1, 0]), out, cells)
    assert cells.tolist() == [11, 22, 11, 22, 5]


def test_no_tokens_and_no_states_change_nothing() -> None:
    nothing, rows, table = np.zeros(0), np.zeros(0, np.int64), np.ones((2, 3))
    for active, numbers in ((Active.of([[0, 1]], which=[]), rows), (Active.of([[], []]), np.array([0, 1]))):
        add_rows(active, numbers, table, nothing)
        sum_rows(active, numbers, nothing, table)
        assert table.tolist() == np.ones((2, 3)).tolist()


@pytest.mark.parametrize("layout", ["columns", "turned", "sliced"])
def test_tables_and_rows_may_lie_in_memory_as_they_like(layout: str) -> None:
    rng = np.random.default_rng(0)
    known = rng.integers(0, V, (3, 2))  # a column of it is not contiguous
    active = Active.of([[0, 3], [1, 2, 5]], which=[0, 1, 0])
    table: Floats = rng.normal(size=(V, Z))
    if layout == "turned":
        table = np.asfortranarray(table)
    elif layout == "sliced":
        table = rng.normal(size=(2 * V, 2 * Z))[::2, ::2]
    out = np.zeros(7)
    add_rows(active, known[:, 1].astype(np.int32), table, out)
    np.testing.assert_allclose(out, table[places(active, known[:, 1])], rtol=0, atol=1e-12)
