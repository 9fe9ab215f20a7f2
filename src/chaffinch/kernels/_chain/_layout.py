"""The layout of a batch for the kernels: every array the compiled loops need, without the arithmetic.

B sequences, N tokens, K states, M cells. A part is a run of whole sequences; where parts are cut changes no result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from chaffinch.errors import InfeasibleError
from chaffinch.kernels.lattice import Active, Batch, Floats, Ints, Lattice

LISTS_FROM = 16  # states; with fewer, multiplying by zeros is cheaper than lists of allowed states
LANES_TO, LANES_LONGEST = 16, 512  # states and tokens; with more, matrix products are faster than lanes
LISTS_PAY = 6  # lists are used if they need this many times fewer products than the full matrix
ROWS = 32  # sequences side by side in a matrix product, at most; sets the size of its workspace
# Cells of a part, so that it fits the processor's cache; and for ROWS, which need many sequences of one length.
PART_CELLS, PART_LIMIT = 1 << 16, 1 << 21


class Form(IntEnum):
    """The kernel that a sequence is given to."""

    LANES = 0  # few states, one sequence per vector lane
    ROWS = 1  # many states, as matrix products
    EACH = 2  # one transition table per token
    LISTS = 3  # few states allowed at each token


class BatchLayout(NamedTuple):
    """Offsets of each token's states and cells. Token n may take states pool[first[n]:first[n] + width[n]]."""

    pool: Ints  # (Q,)
    first: Ints  # (N,)
    width: Ints  # (N,)
    at: Ints  # (N+1,) cells of token n: at[n] to at[n+1]
    bounds: Ints  # (B+1,)


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Some whole sequences of a batch, ready for a kernel."""

    layout: BatchLayout  # counted from the part's first token and cell
    sequences: slice | Ints  # which sequences of the batch
    tokens: slice | Ints  # which tokens
    cells: slice | Ints  # which entries of the batch's flat emit
    emit: Floats  # (M,)
    form: Form

    @property
    def size(self) -> int:
        """Return the number of sequences in the part."""
        return len(self.layout.bounds) - 1

    def sequence(self, b: int) -> int:
        """Return the number in the batch of the sequence that is number b in the part."""
        return self.sequences.start + b if isinstance(self.sequences, slice) else int(self.sequences[b])


def as_batch(lattice: Lattice | Batch) -> Batch:
    """Return a batch unchanged, or a lattice as a batch of one."""
    if isinstance(lattice, Batch):
        return lattice
    return Batch.from_lattice(lattice, np.array([0, len(lattice)]))


def as_writable(array: Floats) -> Floats:
    """Return the array, or a copy if it is read-only: kernels are compiled for writable arrays only."""
    return array if array.flags.writeable else array.copy()


def parts(batch: Batch) -> Iterator[Part]:
    """Yield a batch in parts, each for one kernel form; the form of a sequence depends on that sequence alone."""
    step_cells = 0 if batch.trans.ndim == 2 else len(batch.start) ** 2
    if batch.active is not None:
        layout = _list_layout(batch.active, batch.bounds)
        yield from _cut(Part(layout, slice(0), slice(0), slice(0), batch.emit, Form.LISTS), step_cells)
        return
    forms = _forms(batch)
    for form in Form:
        chosen = forms == form
        if chosen.all() and form is not Form.LISTS:
            yield from _cut(_dense_part(batch.emit, batch.bounds, form), step_cells)
        elif chosen.any():
            yield from _select_parts(batch, np.flatnonzero(chosen), step_cells, form)


def raise_infeasible(status: int, sequence: int, tokens: int, *, many: bool) -> NoReturn:
    """Raise InfeasibleError: no path is possible. `status` is minus the first token that no path reaches, minus 1."""
    position = -int(status) - 1
    where = "no state may end it" if position >= tokens else f"no state can be reached at token {position}"
    name = f"sequence {sequence}" if many else "the sequence"
    raise InfeasibleError(f"{name} of {tokens} tokens has no possible path: {where}; allow more states there")


def _dense_part(emit: Floats, bounds: Ints, form: Form) -> Part:
    """Return the whole batch as a part in which every token has all K states, from log emissions (N, K)."""
    N, K = emit.shape
    first, width = np.zeros(N, np.int64), np.full(N, K, np.int64)
    layout = BatchLayout(np.arange(K), first, width, np.arange(N + 1) * K, bounds)
    return Part(layout, slice(0), slice(0), slice(0), emit.reshape(-1), form)


def _list_layout(active: Active, bounds: Ints) -> BatchLayout:
    """Return the layout (offsets of states and cells) in which each token has the states of its list."""
    return BatchLayout(active.states, active.bounds[:-1][active.which], active.widths, active.at, bounds)


def _forms(batch: Batch) -> NDArray[np.int8]:
    """Return (B,) the kernel form of each sequence, by states, length and cost; LISTS where few states are possible."""
    K, lo, hi = len(batch.start), batch.bounds[:-1], batch.bounds[1:]
    forms = np.full(len(batch), Form.ROWS if batch.trans.ndim == 2 else Form.EACH, np.int8)
    if batch.trans.ndim == 2 and K <= LANES_TO:
        forms[hi - lo <= LANES_LONGEST] = Form.LANES
    if K < LISTS_FROM or not len(batch.emit):
        return forms
    middle = batch.emit[np.minimum((lo + hi) // 2, len(batch.emit) - 1)]
    if (np.count_nonzero(middle > -np.inf, axis=1) * 2 < K).any():  # else no sequence is worth a closer look
        widths = np.count_nonzero(batch.emit > -np.inf, axis=1)
        products = np.concatenate([[0], np.cumsum(widths[1:] * widths[:-1]), [0]])  # [n]: steps up to token n
        cost = products[np.maximum(hi - 1, 0)] - products[lo]
        narrow = widths[np.minimum((lo + hi) // 2, len(widths) - 1)] * 2 < K
        forms[narrow & (hi - lo > 1) & (cost * LISTS_PAY <= (hi - lo - 1) * K * K)] = Form.LISTS
    return forms


def _select_parts(batch: Batch, chosen: Ints, step_cells: int, form: Form) -> Iterator[Part]:
    """Yield the chosen sequences of a dense batch as parts with their places in it; LISTS have possible states only."""
    K = len(batch.start)
    lengths = np.diff(batch.bounds)[chosen]
    bounds = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    tokens = np.repeat(batch.bounds[chosen] - bounds[:-1], lengths) + np.arange(bounds[-1])
    emit = batch.emit[tokens]
    whole = _dense_part(emit, bounds, form)
    cells = (tokens[:, None] * K + np.arange(K)).reshape(-1)
    if form is Form.LISTS:
        mask = emit > -np.inf
        whole = replace(whole, layout=_list_layout(Active.from_mask(mask), bounds), emit=emit[mask])
        cells = cells[mask.reshape(-1)]
    for part in _cut(whole, step_cells):
        yield replace(part, sequences=chosen[part.sequences], tokens=tokens[part.tokens], cells=cells[part.cells])


def _cut(whole: Part, step_cells: int) -> Iterator[Part]:
    """Yield parts of consecutive sequences that fit the processor's cache, or for ROWS a larger limit.

    `step_cells` is the number of cells of one transition table if there is one per token, else 0.
    """
    layout = whole.layout
    B = len(layout.bounds) - 1
    load = layout.at[layout.bounds] + step_cells * layout.bounds  # (B+1,) cells before each sequence
    begin = 0
    while begin < B:
        enough, limit = np.searchsorted(load, [load[begin] + PART_CELLS, load[begin] + PART_LIMIT])
        end = int(min(max(limit if whole.form is Form.ROWS else enough, begin + 1), B))
        lo, hi = layout.bounds[begin], layout.bounds[end]
        cells = slice(int(layout.at[lo]), int(layout.at[hi]))
        inner = BatchLayout(
            layout.pool,
            layout.first[lo:hi],
            layout.width[lo:hi],
            layout.at[lo : hi + 1] - layout.at[lo],
            layout.bounds[begin : end + 1] - lo,
        )
        yield Part(inner, slice(begin, end), slice(int(lo), int(hi)), cells, whole.emit[cells], whole.form)
        begin = end
