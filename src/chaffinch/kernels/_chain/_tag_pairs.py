"""Pair marginals summed by tag, position by position, without storing pairs of states.

K states, S tags, M cells, N tokens of one part. Per step: K squared products, as in one forward step, and S K more.
"""

from __future__ import annotations

from typing import NamedTuple

from chaffinch.kernels._chain._layout import BatchLayout
from chaffinch.kernels._chain._scaled import Messages
from chaffinch.kernels._chain._sparse_states import push
from chaffinch.kernels._compile import REORDER, helper, kernel
from chaffinch.kernels.lattice import Floats, Ints


class TagRuns(NamedTuple):
    """The runs of states that share a tag."""

    tags: Ints  # (K,) of each state
    stop: Ints  # (K,) the next higher state that has another tag
    line: Floats  # (K,) scratch


@helper(REORDER)
def _collect(rows: Floats, weight: Floats, columns: Ints, tags: Ints, stop: Ints, out: Floats) -> None:
    """Add rows[j] * weight[j] to out[tag of columns[j]] for all j, a run of one tag at a time."""
    J = columns.size
    consecutive = J > 0 and columns[J - 1] - columns[0] + 1 == J
    j = 0
    while j < J:
        after = min(J, stop[columns[j]] - columns[0]) if consecutive else j + 1
        total = 0.0
        for k in range(j, after):
            total += rows[k] * weight[k]
        out[tags[columns[j]]] += total
        j = after


@kernel()
def tag_pairs(layout: BatchLayout, messages: Messages, tables: Floats, runs: TagRuns, out: Floats) -> None:
    """Add to out (N, S, S) the pair marginals of the step into each token n, summed by tag."""
    tags, stop, line = runs.tags, runs.stop, runs.line
    for b in range(len(layout.bounds) - 1):
        for n in range(layout.bounds[b] + 1, layout.bounds[b + 1]):
            J = layout.width[n]
            table = tables[0 if len(tables) == 1 else n]
            before = layout.pool[layout.first[n - 1] : layout.first[n - 1] + layout.width[n - 1]]
            here = layout.pool[layout.first[n] : layout.first[n] + J]
            source = messages.forward[layout.at[n - 1] : layout.at[n]]
            weight = messages.weight[layout.at[n] : layout.at[n + 1]]
            i = 0
            while i < before.size:
                after = i + 1
                while after < before.size and before[after] < stop[before[i]]:
                    after += 1
                push(source[i:after], before[i:after], table, here, line[:J])
                _collect(line[:J], weight, here, tags, stop, out[n, tags[before[i]]])
                i = after
