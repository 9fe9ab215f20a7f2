"""Forward-backward, one sequence at a time: for lists of allowed states, or a transition table per token.

K states, M cells, N tokens and B sequences of one part; I and J states allowed at two adjacent tokens. A step
costs I times J products, not K squared. Lists of consecutive states, such as those of one tag, run fastest.
"""

from __future__ import annotations

import math

from chaffinch.kernels._chain._layout import BatchLayout
from chaffinch.kernels._chain._scaled import (
    DONE,
    PENDING,
    Messages,
    Scaled,
    ScaledInput,
    Token,
    accept,
    backward_token,
    end_sequence,
    exp_token,
    finish,
    multiply,
    rescale,
)
from chaffinch.kernels._compile import REORDER, helper, kernel
from chaffinch.kernels.lattice import Floats, Ints


@helper(REORDER)
def _dot(one: Floats, other: Floats) -> float:
    """Return the dot product of two rows, added in the order that the compiler chooses."""
    total = 0.0
    for j in range(one.size):
        total += one[j] * other[j]
    return total


@helper()
def push(source: Floats, rows: Ints, table: Floats, columns: Ints, out: Floats) -> None:
    """Put into out[j] the sum over i of source[i] * table[rows[i], columns[j]]."""
    J = columns.size
    out[:] = 0.0
    if J and columns[J - 1] - columns[0] + 1 == J:
        c, i = columns[0], 0
        while i + 4 <= rows.size:
            a, b, c_, d = source[i], source[i + 1], source[i + 2], source[i + 3]
            ra, rb = table[rows[i], c : c + J], table[rows[i + 1], c : c + J]
            rc, rd = table[rows[i + 2], c : c + J], table[rows[i + 3], c : c + J]
            for j in range(J):
                out[j] = out[j] + a * ra[j] + b * rb[j] + c_ * rc[j] + d * rd[j]
            i += 4
        for k in range(i, rows.size):
            row = table[rows[k], c : c + J]
            for j in range(J):
                out[j] += source[k] * row[j]
    else:
        for i in range(rows.size):
            for j in range(J):
                out[j] += source[i] * table[rows[i], columns[j]]


@helper()
def _pull(source: Floats, columns: Ints, table: Floats, rows: Ints, out: Floats) -> None:
    """Put into out[i] the sum over j of table[rows[i], columns[j]] * source[j]."""
    J = columns.size
    consecutive = J > 0 and columns[J - 1] - columns[0] + 1 == J
    for i in range(rows.size):
        if consecutive:
            out[i] = _dot(table[rows[i], columns[0] : columns[0] + J], source)
        else:
            out[i] = 0.0
            for j in range(J):
                out[i] += table[rows[i], columns[j]] * source[j]


@helper()
def _forward_one(layout: BatchLayout, source: ScaledInput, scaled: Scaled, messages: Messages, b: int) -> None:
    """Fill the forward messages of sequence b and begin its log Z; stop, with its status set, where no path goes on."""
    shared = len(scaled.back) > 0
    product = 1.0
    lo, hi = layout.bounds[b], layout.bounds[b + 1]
    for n in range(lo, hi):
        row, emit = messages.forward[layout.at[n] : layout.at[n + 1]], messages.weight[layout.at[n] : layout.at[n + 1]]
        exp_token(layout, source, scaled.shift, emit, b, n)
        if n > lo:
            before = layout.pool[layout.first[n - 1] : layout.first[n - 1] + layout.width[n - 1]]
            here = layout.pool[layout.first[n] : layout.first[n] + layout.width[n]]
            last = messages.forward[layout.at[n - 1] : layout.at[n]]
            push(last, before, scaled.trans[0 if shared else n], here, row)
        else:
            row[:] = 1.0
        total = multiply(row, emit, row)
        rescale(row, total)
        if total == 0.0:
            messages.status[b] = lo - n - 1
            return
        messages.log_z[b] += scaled.shift[n]
        product *= total
        if not 1e-100 < product < 1e100:
            messages.log_z[b] += math.log(product)
            product = 1.0
    messages.log_z[b] += math.log(product)


@helper()
def _backward_one(layout: BatchLayout, scaled: Scaled, messages: Messages, b: int) -> float:
    """Fill marginals, weights, left factors of pairs of sequence b, whose end is in place; return error's bound."""
    excess, hi = 0.0, layout.bounds[b + 1]
    for n in range(hi - 1, layout.bounds[b] - 1, -1):
        row = messages.states[layout.at[n] : layout.at[n + 1]]
        following = messages.weight[layout.at[n + 1] : layout.at[min(n + 2, hi)]]
        if n + 1 < hi:
            here = layout.pool[layout.first[n] : layout.first[n] + layout.width[n]]
            after = layout.pool[layout.first[n + 1] : layout.first[n + 1] + layout.width[n + 1]]
            if len(scaled.back) > 0:
                push(following, after, scaled.back, here, row)
            else:
                _pull(following, after, scaled.trans[n + 1], here, row)
        forward, weight = (
            messages.forward[layout.at[n] : layout.at[n + 1]],
            messages.weight[layout.at[n] : layout.at[n + 1]],
        )
        ratio, log_total, more = backward_token(Token(forward, weight, row, row, following), scaled.floor)
        excess += more
        if n + 1 == hi:
            finish(layout, messages, b, log_total)
        for j in range(forward.size):
            forward[j] *= ratio if n + 1 < hi else 0.0
    return excess


@helper()
def _close_sequence(layout: BatchLayout, messages: Messages, b: int, excess: float) -> None:
    """Mark sequence b as done if `excess` is small; if it is not done, set its left factors of pairs to zero."""
    accept(messages, b, excess)
    if messages.status[b] != DONE:
        messages.forward[layout.at[layout.bounds[b]] : layout.at[layout.bounds[b + 1]]] = 0.0


@kernel()
def run_each(layout: BatchLayout, source: ScaledInput, scaled: Scaled, messages: Messages) -> None:
    """Fill marginals, messages, log Z and status, a sequence at a time: with lists of states, or a table per token."""
    for b in range(len(layout.bounds) - 1):
        lo, hi = layout.bounds[b], layout.bounds[b + 1]
        excess = 0.0
        if lo < hi:
            _forward_one(layout, source, scaled, messages, b)
        if lo < hi and messages.status[b] == PENDING:
            end_sequence(layout, scaled, messages, b)
            excess = _backward_one(layout, scaled, messages, b)
        _close_sequence(layout, messages, b, excess)


@helper()
def _add_outer(layout: BatchLayout, messages: Messages, n: int, table: Floats) -> None:
    """Add forward at n - 1 times weight at n, over their states, to the table (K, K); transitions are left out."""
    weight = messages.weight[layout.at[n] : layout.at[n + 1]]
    columns = layout.pool[layout.first[n] : layout.first[n] + layout.width[n]]
    consecutive = columns.size > 0 and columns[columns.size - 1] - columns[0] + 1 == columns.size
    for i in range(layout.width[n - 1]):
        factor = messages.forward[layout.at[n - 1] + i]
        line = table[layout.pool[layout.first[n - 1] + i]]
        if consecutive:
            part = line[columns[0] : columns[0] + columns.size]
            for j in range(weight.size):
                part[j] += factor * weight[j]
        else:
            for j in range(weight.size):
                line[columns[j]] += factor * weight[j]


@helper()
def _add_four(layout: BatchLayout, messages: Messages, steps: Ints, table: Floats) -> None:
    """Add the outer products of forward and weight of four steps between the same two lists of states to the table.

    Like `_add_outer`, in one pass; the states of the second list must be consecutive.
    """
    a, b, c, d = steps[0], steps[1], steps[2], steps[3]
    J, left, forward, weight = layout.width[a], layout.pool[layout.first[a]], messages.forward, messages.weight
    wa, wb = weight[layout.at[a] : layout.at[a] + J], weight[layout.at[b] : layout.at[b] + J]
    wc, wd = weight[layout.at[c] : layout.at[c] + J], weight[layout.at[d] : layout.at[d] + J]
    for i in range(layout.width[a - 1]):
        part = table[layout.pool[layout.first[a - 1] + i], left : left + J]
        fa, fb = forward[layout.at[a - 1] + i], forward[layout.at[b - 1] + i]
        fc, fd = forward[layout.at[c - 1] + i], forward[layout.at[d - 1] + i]
        for j in range(J):
            part[j] = part[j] + fa * wa[j] + fb * wb[j] + fc * wc[j] + fd * wd[j]


@kernel()
def add_pairs(layout: BatchLayout, messages: Messages, steps: Ints, where: Ints, pairs: Floats) -> None:
    """Add forward * weight of each step into a token n of `steps` to pairs[where[n]] (K, K); transitions are left out.

    It is fastest if steps between the same two lists follow one another.
    """
    k = 0
    while k < steps.size:
        n, four = steps[k], k + 4 <= steps.size
        J, first = layout.width[n], layout.first[n]
        four = four and J > 0 and layout.pool[first + J - 1] - layout.pool[first] + 1 == J
        for m in range(k + 1, k + 4 if four else k + 1):
            same = layout.first[steps[m]] == first and layout.first[steps[m] - 1] == layout.first[n - 1]
            same = same and layout.width[steps[m]] == J and layout.width[steps[m] - 1] == layout.width[n - 1]
            four = four and same and where[steps[m]] == where[n]
        if four:
            _add_four(layout, messages, steps[k : k + 4], pairs[where[n]])
        else:
            _add_outer(layout, messages, n, pairs[where[n]])
        k += 4 if four else 1
