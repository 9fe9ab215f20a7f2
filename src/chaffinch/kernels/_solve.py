"""From a batch to its messages: each part through the kernel that suits it, by its own size and spread.

B sequences, N tokens, K states, S tags, M cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from chaffinch.kernels import _abreast, _logs, _scaled, _tags
from chaffinch.kernels._abreast import Panels, desk_for
from chaffinch.kernels._micro import in_panels
from chaffinch.kernels._plan import Layout, Part, fail, parts, writable
from chaffinch.kernels._scaled import DONE, REDO, Messages, Scaled
from chaffinch.kernels.lattice import Batch, Floats, Ints

ROWS = 16  # sequences abreast


@dataclass(frozen=True, slots=True, eq=False)
class ScaledSteps:
    """The pairs of one part, as messages."""

    part: Part
    messages: Messages
    tables: Floats  # (1, K, K), or (n, K, K)

    def add_pairs(self, total: Floats) -> None:
        """Adds pair marginals over all positions to total (K, K)."""
        K, n = len(total), len(self.messages.ratio)
        if len(self.tables) == 1 and self.part.dense:
            forward = self.messages.forward.reshape(n, K) * self.messages.ratio[:, None]
            total += self.tables[0] * (forward[:-1].T @ self.messages.weight.reshape(n, K)[1:])
        elif len(self.tables) == 1:
            pairs = np.zeros((1, K, K))
            _scaled.add_pairs(self.part.layout, self.messages, np.zeros(n, np.int64), pairs)
            total += self.tables[0] * pairs[0]
        else:
            total += self._each(K).sum(axis=0)

    def put_pairs(self, out: Floats) -> None:
        """Puts the pair marginals of every step into out (N, K, K)."""
        out[self.part.tokens] = self._each(out.shape[1])

    def put_tag_pairs(self, tags: Ints, stop: Ints, out: Floats) -> None:
        """Puts the tag-pair marginals of every step into out (N, S, S)."""
        pairs = np.zeros((len(self.messages.ratio), *out.shape[1:]))
        _tags.tag_pairs(self.part.layout, self.messages, self.tables, _tags.Runs(tags, stop, np.zeros(len(tags))), pairs)
        out[self.part.tokens] = pairs

    def _each(self, K: int) -> Floats:
        n = len(self.messages.ratio)
        pairs = np.zeros((n, K, K))
        _scaled.add_pairs(self.part.layout, self.messages, np.arange(n), pairs)
        return pairs * self.tables


@dataclass(frozen=True, slots=True, eq=False)
class LogSteps:
    """The pairs of one sequence that needed log-space, as messages."""

    layout: Layout
    tokens: Ints  # (T,) its tokens in the batch
    local: Ints  # (T,) and in its part
    trans: Floats  # (1, K, K), or (n, K, K)
    forward: Floats  # (M,) log messages of the part
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
        for n, token in zip(self.local[1:], self.tokens[1:], strict=True):
            before = lay.pool[lay.first[n - 1] : lay.first[n - 1] + lay.width[n - 1]]
            here = lay.pool[lay.first[n] : lay.first[n] + lay.width[n]]
            table = self.trans[0 if len(self.trans) == 1 else n][np.ix_(before, here)]
            forward, weight = self.forward[lay.at[n - 1] : lay.at[n]], self.weight[lay.at[n] : lay.at[n + 1]]
            pairs = np.zeros((K, K))
            pairs[np.ix_(before, here)] = np.exp(forward[:, None] + table + weight)
            yield int(token), pairs


def solve(batch: Batch, states: Floats, log_z: Floats, *, many: bool) -> Iterator[ScaledSteps | LogSteps]:
    """The messages of each part; as they are taken, states (flat, like emit) and log_z (B,) fill up."""
    K = len(batch.start)
    shared = _tables(batch.trans[None]) if batch.trans.ndim == 2 else None
    panels = _panels(shared[0][0]) if shared else None
    for part in parts(batch, step_cells=0 if shared else K * K):
        scaled = _scale(batch, part, shared or _tables(batch.trans[part.tokens]))
        steps = _run(part, *scaled, panels)
        status = steps.messages.status
        for b in np.flatnonzero(status < 0):
            sequence = int(np.arange(len(batch))[part.sequences][b])
            fail(status[b], sequence, int(np.diff(batch.bounds)[sequence]), many=many)
        states[part.cells] = steps.messages.states
        log_z[part.sequences] = steps.messages.log_z
        yield steps
        for b in np.flatnonzero(status == REDO):
            yield _redo(batch, part, int(b), states, log_z)


def _tables(trans: Floats) -> tuple[Floats, Floats, bool]:
    tables, shift = trans.copy(), np.zeros(len(trans))
    raised = _scaled.exp_tables(tables, shift)
    return tables, shift, raised


def _scale(batch: Batch, part: Part, tables: tuple[Floats, Floats, bool]) -> tuple[Scaled, Floats]:
    """The part's potentials out of log-space, and its emissions (M,)."""
    trans, steps, raised = tables
    bounds = part.layout.bounds
    filled = np.flatnonzero(np.diff(bounds))
    shift = np.full(bounds[-1], steps[0]) if batch.trans.ndim == 2 else steps.copy()
    shift[bounds[:-1][filled]] = 0.0
    emit = part.emit.copy()
    _scaled.exp_emissions(part.layout, writable(batch.start), emit, shift)
    back = np.ascontiguousarray(trans[0].T) if batch.trans.ndim == 2 else np.zeros((0, 0))
    return Scaled(trans, back, _scaled.TINY_STEP if raised else 0.0, writable(batch.end), shift), emit


def _panels(table: Floats) -> Panels:
    return Panels(in_panels(table, 0.0), in_panels(table.T, 0.0))


def _run(part: Part, scaled: Scaled, emit: Floats, panels: Panels | None) -> ScaledSteps:
    bounds = part.layout.bounds
    messages = Messages(
        forward=np.empty(len(emit)),
        weight=emit,
        ratio=np.zeros(bounds[-1]),
        states=np.empty(len(emit)),
        log_z=np.zeros(len(bounds) - 1),
        status=np.where(np.diff(bounds) > 0, _scaled.TODO, DONE),
    )
    if part.dense and panels is not None:
        _abreast.run_abreast(part.layout, scaled, panels, messages, desk_for(ROWS, len(panels.ahead)))
    else:
        _scaled.run_each(part.layout, scaled, messages)
    return ScaledSteps(part, messages, scaled.trans)


def _redo(batch: Batch, part: Part, b: int, states: Floats, log_z: Floats) -> LogSteps:
    """Sequence b of the part again, in log-space."""
    lay = part.layout
    lo, hi = lay.bounds[b], lay.bounds[b + 1]
    trans = writable(batch.trans[None]) if batch.trans.ndim == 2 else batch.trans[part.tokens]
    emit, forward = part.emit.copy(), np.full(len(part.emit), -np.inf)
    emit[lay.at[lo] : lay.at[lo + 1]] += batch.start[lay.pool[lay.first[lo] : lay.first[lo] + lay.width[lo]]]
    backward = np.full(len(emit), -np.inf)
    last = lay.pool[lay.first[hi - 1] : lay.first[hi - 1] + lay.width[hi - 1]]
    backward[lay.at[hi - 1] : lay.at[hi]] = batch.end[last]
    _logs.log_forward(lay, trans, emit, b, forward, np.zeros(len(batch.start)))
    _logs.log_backward(lay, trans, emit, b, backward, np.zeros(len(batch.start)))
    both = forward + backward
    final = both[lay.at[hi - 1] : lay.at[hi]]
    total = float(np.logaddexp.reduce(final))
    cells = slice(int(lay.at[lo]), int(lay.at[hi]))
    places = np.arange(part.cells.start, part.cells.stop) if isinstance(part.cells, slice) else part.cells
    states[places[cells]] = np.exp(both[cells] - total)
    log_z[np.arange(len(batch))[part.sequences][b]] = total
    local = np.arange(lo, hi)
    tokens = np.arange(part.tokens.start, part.tokens.stop) if isinstance(part.tokens, slice) else part.tokens
    return LogSteps(lay, tokens[local], local, trans, forward, emit + backward - total)
