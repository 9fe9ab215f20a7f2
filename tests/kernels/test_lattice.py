"""Lattices and batches: what they refuse, and how a batch is split and built."""

from __future__ import annotations

import numpy as np
import pytest

from chaffinch.errors import DataError
from chaffinch.kernels import Active, Batch, Lattice

ZERO = np.zeros(2)
TABLE = np.zeros((2, 2))


@pytest.mark.parametrize(
    ("start", "trans", "emit", "end", "message"),
    [
        (np.zeros(3), TABLE, np.zeros((4, 2)), ZERO, r"must have shape"),
        (ZERO, np.zeros((2, 3)), np.zeros((4, 2)), ZERO, r"trans must have shape \(2, 2\)"),
        (ZERO, np.zeros((4, 2, 2)), np.zeros((4, 2)), ZERO, "4 tokens need 3"),
        (ZERO, TABLE, np.zeros((4, 3)), ZERO, r"emit must have shape \(4, 2\)"),
        (ZERO, TABLE, np.full((4, 2), np.nan), ZERO, "emit holds NaN"),
        (ZERO, TABLE, np.zeros((4, 2)), np.array([0.0, np.inf]), r"end holds NaN or \+inf"),
        (np.zeros(0), np.zeros((0, 0)), np.zeros((4, 0)), np.zeros(0), "at least one state"),
    ],
)
def test_a_lattice_refuses(start: object, trans: object, emit: object, end: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Lattice(start, trans, emit, end)  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize("bounds", [[0, 3], [1, 4], [0, 3, 2, 4], []])
def test_a_batch_refuses_bounds_that_do_not_cover_its_tokens(bounds: list[int]) -> None:
    with pytest.raises(DataError, match="bounds must rise from 0 to 4"):
        Batch(ZERO, TABLE, np.zeros((4, 2)), ZERO, np.array(bounds, dtype=np.int64))


def test_lists_are_checked() -> None:
    with pytest.raises(DataError, match="strictly increasing"):
        Active.of([[1, 0]])
    with pytest.raises(DataError, match="strictly increasing"):
        Active.of([[-1, 0]])
    with pytest.raises(DataError, match="one of 1 lists"):
        Active.of([[0, 1]], which=[0, 1])
    with pytest.raises(DataError, match="active names state 5"):
        Lattice(ZERO, TABLE, np.zeros(2), ZERO, Active.of([[0, 5]]))
    with pytest.raises(DataError, match=r"emit must have shape \(3,\)"):
        Lattice(ZERO, TABLE, np.zeros(2), ZERO, Active.of([[0, 1], [0]]))
    assert Active.of([[3, 4], [], [0, 1]]).widths.tolist() == [2, 0, 2]


def test_a_mask_must_be_a_mask_of_the_right_shape() -> None:
    lattice = Lattice(ZERO, TABLE, np.zeros((3, 2)), ZERO)
    with pytest.raises(DataError, match=r"mask of shape \(3, 2\)"):
        lattice.clamp(np.ones((2, 2), np.bool_))
    with pytest.raises(DataError, match="got int64"):
        lattice.clamp(np.ones((3, 2), np.int64))


def test_clamping_lists_clamps_their_cells() -> None:
    lattice = Lattice(ZERO, TABLE, np.array([1.0, 2.0, 3.0]), ZERO, Active.of([[0, 1], [1]]))
    allowed = np.array([[False, True], [True, True]])
    assert lattice.clamp(allowed).emit.tolist() == [-np.inf, 2.0, 3.0]


@pytest.mark.parametrize("per_step", [False, True])
@pytest.mark.parametrize("listed", [False, True])
def test_a_batch_gives_back_the_lattices_it_was_made_of(per_step: bool, listed: bool) -> None:
    rng = np.random.default_rng(0)
    table = rng.normal(size=(2, 2))
    made = []
    for T in (3, 0, 1, 2):
        trans = rng.normal(size=(max(T - 1, 0), 2, 2)) if per_step else table
        active = Active.of([[0, 1], [1]], which=np.arange(T) % 2) if listed else None
        emit = rng.normal(size=int(active.at[-1]) if active else (T, 2))
        made.append(Lattice(ZERO, trans, emit, ZERO, active))
    batch = Batch.of(made)
    assert len(batch) == 4
    for b, lattice in enumerate(made):
        assert np.array_equal(batch[b].emit, lattice.emit)
        assert np.array_equal(batch[b].trans, lattice.trans)
        if lattice.active and batch[b].active:
            assert batch[b].active.cells.tolist() == lattice.active.cells.tolist()  # type: ignore[union-attr]
    with pytest.raises(IndexError):
        batch[4]


def test_a_batch_shares_its_potentials() -> None:
    one = Lattice(ZERO, TABLE, np.zeros((3, 2)), ZERO)
    with pytest.raises(DataError, match="lattice 1 has another start"):
        Batch.of([one, Lattice(np.ones(2), TABLE, np.zeros((3, 2)), ZERO)])
    with pytest.raises(DataError, match="lattice 1 has another trans"):
        Batch.of([one, Lattice(ZERO, TABLE + 1, np.zeros((3, 2)), ZERO)])
    with pytest.raises(DataError, match="at least one"):
        Batch.of([])
