"""How a batch is cut up for the kernels: every array the compiled loops need, none of the arithmetic.

B sequences, N tokens, K states, M cells. A part is a run of whole sequences; where it is cut changes no number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, NoReturn

import numpy as np

from chaffinch.errors import InfeasibleError
from chaffinch.kernels.lattice import Active, Batch, Floats, Ints, Lattice, _led

LISTS_FROM = 16  # states; with fewer, a mask is cheaper as zeros than as lists
LISTS_PAY = 6  # lists win when they cost this many times fewer products than the full matrix
PART_CELLS, PART_SEQUENCES, PART_LIMIT = 1 << 15, 16, 1 << 21


class Layout(NamedTuple):
    """Where each token's states and cells are. Token n may take states pool[first[n]:first[n] + width[n]]."""

    pool: Ints  # (Q,)
    first: Ints  # (N,)
    width: Ints  # (N,)
    at: Ints  # (N+1,) cells of token n: at[n] to at[n+1]
    bounds: Ints  # (B+1,)


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Some whole sequences of a batch, ready for a kernel."""

    layout: Layout  # counted from the part's own first token and cell
    sequences: slice | Ints  # which sequences of the batch
    tokens: slice | Ints  # which tokens
    cells: slice | Ints  # which places of the batch's flat emit
    emit: Floats  # (M,)
    dense: bool  # every token may take every state

    @property
    def size(self) -> int:
        """How many sequences."""
        return len(self.layout.bounds) - 1


def as_batch(lattice: Lattice | Batch) -> Batch:
    """The argument itself, or a batch of one."""
    if isinstance(lattice, Batch):
        return lattice
    trans = _led(lattice) if lattice.trans.ndim == 3 else lattice.trans
    bounds = np.array([0, len(lattice)])
    return Batch(lattice.start, trans, lattice.emit, lattice.end, bounds, lattice.active)


def writable(array: Floats) -> Floats:
    """The array, or a copy if it is read-only: the compiled code knows one type only."""
    return array if array.flags.writeable else array.copy()


def parts(batch: Batch, *, step_cells: int) -> Iterator[Part]:
    """The batch in parts: sequences whose masks are sparse as lists, the others as they are.

    Which form a sequence takes depends on that sequence alone.
    """
    if batch.active is not None:
        layout = _list_layout(batch.active, batch.bounds)
        yield from _cut(Part(layout, slice(0), slice(0), slice(0), batch.emit, dense=False), step_cells)
        return
    sparse = _sparse(batch)
    if not sparse.any():
        yield from _cut(_dense_part(batch.emit, batch.bounds), step_cells)
        return
    for chosen in (~sparse, sparse):
        if chosen.any():
            yield from _relocated(batch, np.flatnonzero(chosen), step_cells, lists=bool(sparse[chosen.argmax()]))


def fail(status: int, sequence: int, tokens: int, *, many: bool) -> NoReturn:
    """Raises: no path is possible. `status` is minus the position where it died, minus 1."""
    position = -int(status) - 1
    where = "no state may end it" if position >= tokens else f"no state can be reached at token {position}"
    name = f"sequence {sequence}" if many else "the sequence"
    raise InfeasibleError(f"{name} of {tokens} tokens has no possible path: {where}; allow more states there")


def _dense_part(emit: Floats, bounds: Ints) -> Part:
    N, K = emit.shape
    first, width = np.zeros(N, np.int64), np.full(N, K, np.int64)
    layout = Layout(np.arange(K), first, width, np.arange(N + 1) * K, bounds)
    return Part(layout, slice(0), slice(0), slice(0), emit.reshape(-1), dense=True)


def _list_layout(active: Active, bounds: Ints) -> Layout:
    return Layout(active.states, active.bounds[:-1][active.which], active.widths, active.at, bounds)


def _sparse(batch: Batch) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """(B,) whether a sequence is cheaper as lists: the products of neighbouring widths against K squared."""
    B, K = len(batch), len(batch.start)
    if K < LISTS_FROM or not len(batch.emit):
        return np.zeros(B, np.bool_)
    widths = np.count_nonzero(batch.emit > -np.inf, axis=1)
    products = np.concatenate([[0], np.cumsum(widths[1:] * widths[:-1]), [0]])  # [n] counts pairs before token n+1
    lo, hi = batch.bounds[:-1], batch.bounds[1:]
    long = hi - lo > 1
    cost = np.where(long, products[np.maximum(hi - 1, 0)] - products[lo], 0)
    return np.asarray(long & (cost * LISTS_PAY <= (hi - lo - 1) * K * K))


def _relocated(batch: Batch, chosen: Ints, step_cells: int, *, lists: bool) -> Iterator[Part]:
    """Parts of some sequences of a dense batch, with the places they came from."""
    K = len(batch.start)
    lengths = np.diff(batch.bounds)[chosen]
    bounds = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    tokens = np.repeat(batch.bounds[chosen] - bounds[:-1], lengths) + np.arange(bounds[-1])
    emit = batch.emit[tokens]
    whole = _dense_part(emit, bounds)
    cells = (tokens[:, None] * K + np.arange(K)).reshape(-1)
    if lists:
        mask = emit > -np.inf
        whole = replace(whole, layout=_list_layout(Active.from_mask(mask), bounds), emit=emit[mask], dense=False)
        cells = cells[mask.reshape(-1)]
    for part in _cut(whole, step_cells):
        yield replace(part, sequences=chosen[part.sequences], tokens=tokens[part.tokens], cells=cells[part.cells])


def _cut(whole: Part, step_cells: int) -> Iterator[Part]:
    """Runs of sequences of a useful size: enough to share work, few enough to stay in the processor's cache.

    `step_cells` are the cells of one transition table if there is one per token, else 0.
    """
    layout = whole.layout
    B = len(layout.bounds) - 1
    load = layout.at[layout.bounds] + step_cells * layout.bounds  # (B+1,) cells before each sequence
    begin = 0
    while begin < B:
        enough = max(np.searchsorted(load, load[begin] + PART_CELLS), begin + PART_SEQUENCES)
        limit = np.searchsorted(load, load[begin] + PART_LIMIT)
        end = int(min(max(min(enough, limit), begin + 1), B))
        lo, hi = layout.bounds[begin], layout.bounds[end]
        cells = slice(int(layout.at[lo]), int(layout.at[hi]))
        inner = Layout(
            layout.pool,
            layout.first[lo:hi],
            layout.width[lo:hi],
            layout.at[lo : hi + 1] - layout.at[lo],
            layout.bounds[begin : end + 1] - lo,
        )
        yield Part(inner, slice(begin, end), slice(int(lo), int(hi)), cells, whole.emit[cells], whole.dense)
        begin = end
