"""Forward-backward on a batch: each part is computed by the kernel that suits its size and its range of potentials.

B sequences, N tokens, K states, S tags, M cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from chaffinch.kernels._chain import _few_states, _log_space, _many_states, _scaled, _sparse_states, _tag_pairs
from chaffinch.kernels._chain._layout import (
    LANES_LONGEST,
    LANES_TO,
    ROWS,
    BatchLayout,
    Form,
    Part,
    as_writable,
    parts,
    raise_infeasible,
)
from chaffinch.kernels._chain._matmul import to_panels
from chaffinch.kernels._chain._scaled import DONE, REDO, Messages, Scaled, ScaledInput
from chaffinch.kernels.lattice import Batch, Floats, Ints

Pairs: TypeAlias = Literal["none", "sum", "each"]


@dataclass(frozen=True, slots=True, eq=False)
class ScaledSteps:
    """Messages of one part, from which pair marginals are computed on demand."""

    part: Part
    messages: Messages
    tables: Floats  # (1, K, K), or (n, K, K)
    pairs: Floats | None  # (K, K) already summed, not yet multiplied by the table, if the kernel did it

    def add_pairs(self, total: Floats) -> None:
        """Add the pair marginals, summed over all positions, to total (K, K)."""
        K, n = len(total), len(self.part.layout.width)
        if self.pairs is not None:
            total += self.tables[0] * self.pairs
        elif len(self.tables) == 1:
            layout, pairs = self.part.layout, np.zeros((1, K, K))
            steps = self._steps()
            ordered = steps[np.lexsort((layout.first[steps], layout.first[steps - 1]))]
            _sparse_states.add_pairs(layout, self.messages, ordered, np.zeros(n, np.int64), pairs)
            total += self.tables[0] * pairs[0]
        else:
            total += self._pairs_of_steps(K).sum(axis=0)

    def put_pairs(self, out: Floats) -> None:
        """Put the pair marginals of every step into out (N, K, K), at its second token; 0 at first tokens."""
        out[self.part.tokens] = self._pairs_of_steps(out.shape[1])

    def put_tag_pairs(self, tags: Ints, stop: Ints, out: Floats) -> None:
        """Put the pair marginals summed by tag of every step into out (N, S, S), at its second token."""
        pairs = np.zeros((len(self.part.layout.width), *out.shape[1:]))
        runs = _tag_pairs.TagRuns(tags, stop, np.zeros(len(tags)))
        _tag_pairs.tag_pairs(self.part.layout, self.messages, self.tables, runs, pairs)
        out[self.part.tokens] = pairs

    def _steps(self) -> Ints:
        """Return the index in the part of every token that is not the first of its sequence."""
        inner = np.ones(len(self.part.layout.width) + 1, np.bool_)
        inner[self.part.layout.bounds] = False
        return np.flatnonzero(inner)

    def _pairs_of_steps(self, K: int) -> Floats:
        """Return the pair marginals of every step (n, K, K), at its second token; 0 at first tokens."""
        n = len(self.part.layout.width)
        pairs = np.zeros((n, K, K))
        _sparse_states.add_pairs(self.part.layout, self.messages, self._steps(), np.arange(n), pairs)
        pairs *= self.tables
        return pairs


@dataclass(frozen=True, slots=True, eq=False)
class LogSteps:
    """Messages of one sequence that needed log-space, from which pair marginals are computed on demand."""

    layout: BatchLayout
    tokens: Ints  # (T,) its tokens in the batch
    trans: Floats  # (1, K, K), or (T, K, K)
    forward: Floats  # (M,) log messages
    weight: Floats  # (M,) emission plus backward message, minus log Z

    def add_pairs(self, total: Floats) -> None:
        """Add the pair marginals, summed over all positions, to total (K, K)."""
        for _, pairs in self._pairs_of_steps(len(total)):
            total += pairs

    def put_pairs(self, out: Floats) -> None:
        """Put the pair marginals of every step into out (N, K, K), at its second token."""
        for token, pairs in self._pairs_of_steps(out.shape[1]):
            out[token] = pairs

    def put_tag_pairs(self, tags: Ints, stop: Ints, out: Floats) -> None:
        """Put the pair marginals summed by tag of every step into out (N, S, S), at its second token."""
        S, K = out.shape[1], len(stop)
        for token, pairs in self._pairs_of_steps(K):
            cells = tags[:, None] * S + tags
            out[token] = np.bincount(cells.reshape(-1), pairs.reshape(-1), S * S).reshape(S, S)

    def _pairs_of_steps(self, K: int) -> Iterator[tuple[int, Floats]]:
        """Yield for every step its second token, as a number in the batch, and the pair marginals (K, K)."""
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
    """Scaled exponentials of transitions."""

    trans: Floats  # (1, K, K), or (n, K, K)
    shift: Floats  # (1,) or (n,) what was subtracted from the logs
    floor: float  # TINY_STEP if some entry was raised, else 0
    back: Floats  # (K, K) the transpose of the one table, else (0, 0)

    @classmethod
    def of(cls, trans: Floats, *, shared: bool) -> ChainTables:
        """Return exp(trans - largest) of tables (n, K, K), tiny values raised, and log scales; `shared`: transposes."""
        tables, shift = np.empty_like(trans), np.zeros(len(trans))
        floor = _scaled.TINY_STEP if _scaled.exp_tables(as_writable(trans), tables, shift) else 0.0
        return cls(tables, shift, floor, np.ascontiguousarray(tables[0].T) if shared else np.zeros((0, 0)))


class ChainWorkspace:
    """Arrays used again for every part: allocating them costs more than the arithmetic of few states."""

    def __init__(self, batch: Batch, tables: ChainTables | None, pairs: Pairs) -> None:
        """Allocate the arrays that forward–backward needs for the batch's size and states; keep `pairs` as the wish.

        `tables` are the shared transition table, None if there is one per token.
        """
        self.pairs = pairs
        self.arrays: dict[str, Floats] = {}
        K, longest = len(batch.start), int(np.diff(batch.bounds).max(initial=0))
        if tables is not None and K <= LANES_TO:
            self.lanes = _few_states.lane_workspace(min(longest, LANES_LONGEST), K)
        if tables is not None and (K > LANES_TO or longest > LANES_LONGEST):
            self.panels = _many_states.Panels(to_panels(tables.trans[0], 0.0), to_panels(tables.back, 0.0))
            self.rows = _many_states.row_workspace(0, K)

    def rows_for(self, tokens: int) -> _many_states.RowWorkspace:
        """Return the row workspace, first replaced by a larger one if it has no room for that many tokens."""
        if len(self.rows.forward) < tokens:
            self.rows = _many_states.row_workspace(tokens, self.rows.forward.shape[1])
        return self.rows

    def take(self, name: str, size: int) -> Floats:
        """Return an uninitialised array (size,); the next call with the name reuses the memory, if not for more."""
        if name not in self.arrays or len(self.arrays[name]) < size:
            self.arrays[name] = np.empty(size)
        return self.arrays[name][:size]


def solve(batch: Batch, states: Floats, log_z: Floats, *, many: bool, pairs: Pairs) -> Iterator[ScaledSteps | LogSteps]:
    """Yield each part's messages, in log-space where scaling fails; fill states and log_z (B,); or InfeasibleError.

    `pairs` is what the caller will ask for: no pair marginals, their sum, or those of each step.
    """
    shared = ChainTables.of(batch.trans[None], shared=True) if batch.trans.ndim == 2 else None
    workspace = ChainWorkspace(batch, shared, pairs)
    for part in parts(batch):
        direct = isinstance(part.cells, slice)
        out = states[part.cells] if direct else workspace.take("states", len(part.emit))
        tables = shared or ChainTables.of(batch.trans[part.tokens], shared=False)
        steps = _run(batch, part, tables, workspace, out)
        status = steps.messages.status
        for b in np.flatnonzero(status < 0):
            sequence = part.sequence(int(b))
            raise_infeasible(status[b], sequence, int(np.diff(batch.bounds)[sequence]), many=many)
        if not direct:
            states[part.cells] = out
        log_z[part.sequences] = steps.messages.log_z
        yield steps
        for b in np.flatnonzero(status == REDO):
            yield _redo(batch, part, int(b), states, log_z)


def _run(batch: Batch, part: Part, tables: ChainTables, workspace: ChainWorkspace, states: Floats) -> ScaledSteps:
    """Run the kernel of the part's form; fill `states` (M,) with marginals; return the messages to make pairs of."""
    layout = part.layout
    lengths = layout.bounds[1:] - layout.bounds[:-1]
    filled = lengths > 0
    shift = np.full(layout.bounds[-1], tables.shift[0]) if len(tables.back) else tables.shift.copy()
    shift[layout.bounds[:-1][filled]] = 0.0
    scaled = Scaled(tables.trans, tables.back, tables.floor, as_writable(batch.end), shift)
    size = len(part.emit) if workspace.pairs == "each" or part.form not in (Form.LANES, Form.ROWS) else 0
    forward, weight = workspace.take("forward", size), workspace.take("weight", size)
    log_z, status = np.zeros(part.size), np.where(filled, _scaled.PENDING, DONE)
    messages = Messages(forward, weight, states, log_z, status)
    source = ScaledInput(as_writable(batch.start), as_writable(part.emit), np.argsort(-lengths, kind="stable"))
    pairs = None
    if part.form is Form.LANES:
        workspace.lanes.pairs[:] = 0.0
        _few_states.run_lanes(layout, source, scaled, messages, workspace.lanes)
        pairs = workspace.lanes.pairs.sum(axis=2)
    elif part.form is Form.ROWS:
        pairs = np.zeros_like(tables.back) if workspace.pairs == "sum" else None
        for begin in range(0, part.size, ROWS):
            some = source._replace(order=source.order[begin : begin + ROWS])
            rows = workspace.rows_for(int(lengths[some.order].sum()))
            n = _many_states.run_rows(layout, some, scaled, workspace.panels, messages, rows)
            if pairs is not None:
                pairs += rows.forward[:n].T @ rows.weight[:n]
    else:
        _sparse_states.run_each(layout, source, scaled, messages)
    return ScaledSteps(part, messages, tables.trans, pairs)


def _redo(batch: Batch, part: Part, b: int, states: Floats, log_z: Floats) -> LogSteps:
    """Compute sequence b of the part again in log-space; overwrite its marginals and log Z; return its messages."""
    lay = part.layout
    lo, hi = int(lay.bounds[b]), int(lay.bounds[b + 1])
    cells = slice(int(lay.at[lo]), int(lay.at[hi]))
    lay = BatchLayout(
        lay.pool, lay.first[lo:hi], lay.width[lo:hi], lay.at[lo : hi + 1] - lay.at[lo], np.array([0, hi - lo])
    )
    tokens = np.arange(int(batch.bounds[-1]))[_within(part.tokens, slice(lo, hi))]
    trans = as_writable(batch.trans[None]) if batch.trans.ndim == 2 else batch.trans[tokens]
    emit, scratch = part.emit[cells].copy(), np.zeros(len(batch.start))
    forward, backward = np.full(len(emit), -np.inf), np.full(len(emit), -np.inf)
    emit[: lay.at[1]] += batch.start[lay.pool[lay.first[0] : lay.first[0] + lay.width[0]]]
    backward[lay.at[-2] :] = batch.end[lay.pool[lay.first[-1] : lay.first[-1] + lay.width[-1]]]
    _log_space.log_forward(lay, trans, emit, 0, forward, scratch)
    _log_space.log_backward(lay, trans, emit, 0, backward, scratch)
    both = forward + backward
    total = float(np.logaddexp.reduce(both[lay.at[-2] :]))
    states[_within(part.cells, cells)] = np.exp(both - total)
    log_z[_within(part.sequences, slice(b, b + 1))] = total
    return LogSteps(lay, tokens, trans, forward, emit + backward - total)


def _within(where: slice | Ints, inner: slice) -> slice | Ints:
    """Return the places `inner`, counted within the places `where`, as places of the whole."""
    if isinstance(where, slice):
        return slice(where.start + inner.start, where.start + inner.stop)
    return where[inner]
