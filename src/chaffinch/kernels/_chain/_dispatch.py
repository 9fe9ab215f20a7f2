"""From a batch to its messages: each part through the kernel that suits it, by its own size and spread.

B sequences, N tokens, K states, S tags, M cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from chaffinch.kernels._chain import _few_states as _lanes
from chaffinch.kernels._chain import _log_space as _logs
from chaffinch.kernels._chain import _many_states as _abreast
from chaffinch.kernels._chain import _scaled
from chaffinch.kernels._chain import _sparse_states as _each
from chaffinch.kernels._chain import _tag_pairs as _tags
from chaffinch.kernels._chain._layout import (
    LANES_LONGEST,
    LANES_TO,
    ROWS,
    BatchLayout,
    Form,
    Part,
    fail,
    parts,
    writable,
)
from chaffinch.kernels._chain._matmul import in_panels
from chaffinch.kernels._chain._scaled import DONE, REDO, Messages, Scaled, ScaledInput
from chaffinch.kernels.lattice import Batch, Floats, Ints

Pairs: TypeAlias = Literal["none", "sum", "each"]


@dataclass(frozen=True, slots=True, eq=False)
class ScaledSteps:
    """The pairs of one part, as messages."""

    part: Part
    messages: Messages
    tables: Floats  # (1, K, K), or (n, K, K)
    pairs: Floats | None  # (K, K) already summed but for the table, if the kernel did it

    def add_pairs(self, total: Floats) -> None:
        """Adds pair marginals over all positions to total (K, K)."""
        K, n = len(total), len(self.part.layout.width)
        if self.pairs is not None:
            total += self.tables[0] * self.pairs
        elif len(self.tables) == 1:
            layout, pairs = self.part.layout, np.zeros((1, K, K))
            steps = self._steps()
            ordered = steps[np.lexsort((layout.first[steps], layout.first[steps - 1]))]
            _each.add_pairs(layout, self.messages, ordered, np.zeros(n, np.int64), pairs)
            total += self.tables[0] * pairs[0]
        else:
            total += self._each(K).sum(axis=0)

    def put_pairs(self, out: Floats) -> None:
        """Puts the pair marginals of every step into out (N, K, K)."""
        out[self.part.tokens] = self._each(out.shape[1])

    def put_tag_pairs(self, tags: Ints, stop: Ints, out: Floats) -> None:
        """Puts the tag-pair marginals of every step into out (N, S, S)."""
        pairs = np.zeros((len(self.part.layout.width), *out.shape[1:]))
        _tags.tag_pairs(
            self.part.layout, self.messages, self.tables, _tags.Runs(tags, stop, np.zeros(len(tags))), pairs
        )
        out[self.part.tokens] = pairs

    def _steps(self) -> Ints:
        """The tokens that are not the first of their sequence."""
        inner = np.ones(len(self.part.layout.width) + 1, np.bool_)
        inner[self.part.layout.bounds] = False
        return np.flatnonzero(inner)

    def _each(self, K: int) -> Floats:
        n = len(self.part.layout.width)
        pairs = np.zeros((n, K, K))
        _each.add_pairs(self.part.layout, self.messages, self._steps(), np.arange(n), pairs)
        pairs *= self.tables
        return pairs


@dataclass(frozen=True, slots=True, eq=False)
class LogSteps:
    """The pairs of one sequence that needed log-space, as messages."""

    layout: BatchLayout
    tokens: Ints  # (T,) its tokens in the batch
    trans: Floats  # (1, K, K), or (T, K, K)
    forward: Floats  # (M,) log messages
    weight: Floats  # (M,) emission plus backward message, minus log Z

    def add_pairs(self, total: Floats) -> None:
        """Adds pair marginals over all positions to total (K, K)."""
        for _, pairs in self._each(len(total)):
            total += pairs

    def put_pairs(self, out: Floats) -> None:
        """Puts the pair marginals of every step into out (N, K, K)."""
        for token, pairs in self._each(out.shape[1]):
            out[token] = pairs

    def put_tag_pairs(self, tags: Ints, stop: Ints, out: Floats) -> None:
        """Puts the tag-pair marginals of every step into out (N, S, S)."""
        S, K = out.shape[1], len(stop)
        for token, pairs in self._each(K):
            cells = tags[:, None] * S + tags
            out[token] = np.bincount(cells.reshape(-1), pairs.reshape(-1), S * S).reshape(S, S)

    def _each(self, K: int) -> Iterator[tuple[int, Floats]]:
        lay = self.layout
        for n, token in enumerate(self.tokens[1:], 1):
            before = lay.pool[lay.first[n - 1] : lay.first[n - 1] + lay.width[n - 1]]
            here = lay.pool[lay.first[n] : lay.first[n] + lay.width[n]]
            table = self.trans[0 if len(self.trans) == 1 else n][np.ix_(before, here)]
            forward, weight = self.forward[lay.at[n - 1] : lay.at[n]], self.weight[lay.at[n] : lay.at[n + 1]]
            pairs = np.zeros((K, K))
            pairs[np.ix_(before, here)] = np.exp(forward[:, None] + table + weight)
            yield int(token), pairs


@dataclass(frozen=True, slots=True, eq=False)
class ChainTables:
    """Transitions out of log-space."""

    trans: Floats  # (1, K, K), or (n, K, K)
    shift: Floats  # (1,) or (n,) what was taken off
    floor: float  # TINY_STEP if some entry was raised, else 0
    back: Floats  # (K, K) the transpose of the one table, else (0, 0)

    @classmethod
    def of(cls, trans: Floats, *, shared: bool) -> ChainTables:
        """The tables (n, K, K)."""
        tables, shift = np.empty_like(trans), np.zeros(len(trans))
        floor = _scaled.TINY_STEP if _scaled.exp_tables(writable(trans), tables, shift) else 0.0
        return cls(tables, shift, floor, np.ascontiguousarray(tables[0].T) if shared else np.zeros((0, 0)))


class ChainWorkspace:
    """Arrays used again for every part: fresh memory costs more than the arithmetic of few states."""

    def __init__(self, batch: Batch, tables: ChainTables | None, pairs: Pairs) -> None:
        self.pairs = pairs
        self.arrays: dict[str, Floats] = {}
        K, longest = len(batch.start), int(np.diff(batch.bounds).max(initial=0))
        if tables is not None and K <= LANES_TO:
            self.bench = _lanes.bench_for(min(longest, LANES_LONGEST), K)
        if tables is not None and (K > LANES_TO or longest > LANES_LONGEST):
            self.panels = _abreast.Panels(in_panels(tables.trans[0], 0.0), in_panels(tables.back, 0.0))
            self.desk = _abreast.desk_for(0, K)

    def desk_for(self, tokens: int) -> _abreast.Desk:
        """A desk for so many tokens."""
        if len(self.desk.forward) < tokens:
            self.desk = _abreast.desk_for(tokens, self.desk.forward.shape[1])
        return self.desk

    def take(self, name: str, size: int) -> Floats:
        """An array of that size with anything in it, good until it is taken again."""
        if name not in self.arrays or len(self.arrays[name]) < size:
            self.arrays[name] = np.empty(size)
        return self.arrays[name][:size]


def solve(batch: Batch, states: Floats, log_z: Floats, *, many: bool, pairs: Pairs) -> Iterator[ScaledSteps | LogSteps]:
    """The messages of each part; as they are taken, states (flat, like emit) and log_z (B,) fill up.

    `pairs` says what the caller will ask of pairs: none, their sum, or those of each step.
    """
    shared = ChainTables.of(batch.trans[None], shared=True) if batch.trans.ndim == 2 else None
    room = ChainWorkspace(batch, shared, pairs)
    for part in parts(batch):
        direct = isinstance(part.cells, slice)
        out = states[part.cells] if direct else room.take("states", len(part.emit))
        tables = shared or ChainTables.of(batch.trans[part.tokens], shared=False)
        found = _run(batch, part, tables, room, out)
        status = found.messages.status
        for b in np.flatnonzero(status < 0):
            sequence = part.sequence(int(b))
            fail(status[b], sequence, int(np.diff(batch.bounds)[sequence]), many=many)
        if not direct:
            states[part.cells] = out
        log_z[part.sequences] = found.messages.log_z
        yield found
        for b in np.flatnonzero(status == REDO):
            yield _redo(batch, part, int(b), states, log_z)


def _run(batch: Batch, part: Part, tables: ChainTables, room: ChainWorkspace, states: Floats) -> ScaledSteps:
    """One part through the kernel of its form."""
    layout = part.layout
    lengths = layout.bounds[1:] - layout.bounds[:-1]
    filled = lengths > 0
    shift = np.full(layout.bounds[-1], tables.shift[0]) if len(tables.back) else tables.shift.copy()
    shift[layout.bounds[:-1][filled]] = 0.0
    scaled = Scaled(tables.trans, tables.back, tables.floor, writable(batch.end), shift)
    size = len(part.emit) if room.pairs == "each" or part.form not in (Form.LANES, Form.ROWS) else 0
    forward, weight = room.take("forward", size), room.take("weight", size)
    log_z, status = np.zeros(part.size), np.where(filled, _scaled.PENDING, DONE)
    messages = Messages(forward, weight, states, log_z, status)
    source = ScaledInput(writable(batch.start), writable(part.emit), np.argsort(-lengths, kind="stable"))
    pairs = None
    if part.form is Form.LANES:
        room.bench.pairs[:] = 0.0
        _lanes.run_lanes(layout, source, scaled, messages, room.bench)
        pairs = room.bench.pairs.sum(axis=2)
    elif part.form is Form.ROWS:
        pairs = np.zeros_like(tables.back) if room.pairs == "sum" else None
        for begin in range(0, part.size, ROWS):
            some = source._replace(order=source.order[begin : begin + ROWS])
            desk = room.desk_for(int(lengths[some.order].sum()))
            n = _abreast.run_abreast(layout, some, scaled, room.panels, messages, desk)
            if pairs is not None:
                pairs += desk.forward[:n].T @ desk.weight[:n]
    else:
        _each.run_each(layout, source, scaled, messages)
    return ScaledSteps(part, messages, tables.trans, pairs)


def _redo(batch: Batch, part: Part, b: int, states: Floats, log_z: Floats) -> LogSteps:
    """Sequence b of the part again, in log-space."""
    lay = part.layout
    lo, hi = int(lay.bounds[b]), int(lay.bounds[b + 1])
    cells = slice(int(lay.at[lo]), int(lay.at[hi]))
    lay = BatchLayout(
        lay.pool, lay.first[lo:hi], lay.width[lo:hi], lay.at[lo : hi + 1] - lay.at[lo], np.array([0, hi - lo])
    )
    tokens = np.arange(int(batch.bounds[-1]))[_within(part.tokens, slice(lo, hi))]
    trans = writable(batch.trans[None]) if batch.trans.ndim == 2 else batch.trans[tokens]
    emit, room = part.emit[cells].copy(), np.zeros(len(batch.start))
    forward, backward = np.full(len(emit), -np.inf), np.full(len(emit), -np.inf)
    emit[: lay.at[1]] += batch.start[lay.pool[lay.first[0] : lay.first[0] + lay.width[0]]]
    backward[lay.at[-2] :] = batch.end[lay.pool[lay.first[-1] : lay.first[-1] + lay.width[-1]]]
    _logs.log_forward(lay, trans, emit, 0, forward, room)
    _logs.log_backward(lay, trans, emit, 0, backward, room)
    both = forward + backward
    total = float(np.logaddexp.reduce(both[lay.at[-2] :]))
    states[_within(part.cells, cells)] = np.exp(both - total)
    log_z[_within(part.sequences, slice(b, b + 1))] = total
    return LogSteps(lay, tokens, trans, forward, emit + backward - total)


def _within(where: slice | Ints, inner: slice) -> slice | Ints:
    """The places `inner` of the places `where`."""
    if isinstance(where, slice):
        return slice(where.start + inner.start, where.start + inner.stop)
    return where[inner]
