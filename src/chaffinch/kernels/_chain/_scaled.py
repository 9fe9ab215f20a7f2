"""Forward-backward in scaled probabilities: compiled loops over positions and states.

T tokens, K states, M cells, N tokens and B sequences of one part, R sequences side by side.

Every exponential is of a potential minus its row's largest, and every message is scaled to sum to 1. An allowed
value below `TINY` is raised to it, so that an allowed value never underflows to 0 and a zero always means
impossible. Raising only adds weight to paths: the true Z lies between Z (1 - excess) and Z, where `excess` is the
posterior weight of every raised cell and step. A sequence whose excess is above `EXCESS` is computed again by the
exact log-space kernel. The products of three factors below stay within 1e-270 and 1e270.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from chaffinch.kernels._chain._layout import BatchLayout
from chaffinch.kernels._compile import REORDER, helper, kernel
from chaffinch.kernels.lattice import Floats, Ints

TINY = 1e-55  # the floor of emissions and messages
TINY_STEP = 1e-50  # the floor of transitions
LOG_TINY, LOG_TINY_STEP = math.log(TINY), math.log(TINY_STEP)
EXCESS = 1e-10  # raised weight up to which a result is accepted: below the error of 1e-9 that `chain` promises
PENDING, DONE, REDO = 0, 1, 2  # a status below 0 is minus the first token that no path reaches, minus 1

LOG2_E, ROUND = 1 / math.log(2), 1.5 * 2.0**52  # adding ROUND leaves the nearest whole number in the low bits
LN2_HIGH, LN2_LOW = float.fromhex("0x1.62e42fefa0000p-1"), float.fromhex("0x1.cf79abc9e3b3ap-40")


class Scaled(NamedTuple):
    """A part's transitions as scaled exponentials, its end potentials, and the log scales."""

    trans: Floats  # (1, K, K), or (N, K, K) leading into each token
    back: Floats  # (K, K) the transpose of the one trans, else (0, 0)
    floor: float  # TINY_STEP if some transition was raised, else 0
    end: Floats  # (K,) still logs
    shift: Floats  # (N,) what was subtracted from the logs at each token


class ScaledInput(NamedTuple):
    """The potentials of a part that are still logs, and the order of its sequences."""

    start: Floats  # (K,)
    emit: Floats  # (M,)
    order: Ints  # (B,) the sequences, longest first


class Messages(NamedTuple):
    """Results of the recursions. A pair marginal is forward * trans * weight of the next token."""

    forward: Floats  # (M,) in the end scaled for pair marginals, and zero at the last token of a sequence
    weight: Floats  # (M,) emissions at first, then emissions times backward messages
    states: Floats  # (M,) marginals
    log_z: Floats  # (B,)
    status: Ints  # (B,)


@helper()
def exp_of(x: float) -> float:
    """Return e to the power x, for x from LOG_TINY to 0, to within two units in the last place; it vectorises."""
    shifted = x * LOG2_E + ROUND
    whole = shifted - ROUND
    r = x - whole * LN2_HIGH - whole * LN2_LOW
    r2 = r * r
    r4 = r2 * r2
    low = (1.0 + r) + (0.5 + r * (1 / 6)) * r2
    middle = (1 / 24 + r * (1 / 120)) + (1 / 720 + r * (1 / 5040)) * r2
    high = (1 / 40320 + r * (1 / 362880)) + (1 / 3628800 + r * (1 / 39916800)) * r2 + r4 * (1 / 479001600)
    p = low + (middle + high * r4) * r4
    exponent = np.int64((np.float64(shifted).view(np.int64) + 1023) << 52)
    return float(p * np.int64(exponent).view(np.float64))


@helper()
def exp_row(logs: Floats, out: Floats, lowest: float) -> float:
    """Put exp(logs - largest) into out, at least e^lowest but 0 for -inf; return the largest of the logs."""
    top = -np.inf
    for j in range(logs.size):
        top = max(top, logs[j])
    low = top if top > -np.inf else 0.0
    for j in range(logs.size):
        relative = logs[j] - low
        out[j] = exp_of(max(relative, lowest)) if relative > -np.inf else 0.0
    return top


@kernel()
def exp_tables(trans: Floats, out: Floats, shift: Floats) -> int:
    """Put scaled exponentials into out (P, K, K), log scales into shift (P,); return how many entries were raised."""
    raised = 0
    for p in range(len(trans)):
        flat = out[p].reshape(-1)
        shift[p] = exp_row(trans[p].reshape(-1), flat, LOG_TINY_STEP)
        for i in range(flat.size):
            raised += 1 if 0.0 < flat[i] <= TINY_STEP * 1.000001 else 0
    return raised


@helper()
def exp_token(layout: BatchLayout, source: ScaledInput, shift: Floats, out: Floats, b: int, n: int) -> None:
    """Put scaled exponentials of token n's emissions (plus start if first) into out; add their log scale to shift."""
    logs = source.emit[layout.at[n] : layout.at[n + 1]]
    if n == layout.bounds[b]:
        for j in range(out.size):
            out[j] = logs[j] + source.start[layout.pool[layout.first[n] + j]]
        logs = out
    shift[n] += exp_row(logs, out, LOG_TINY)


@helper(REORDER)
def multiply(one: Floats, other: Floats, out: Floats) -> float:
    """Put the products of both rows into out and return their sum."""
    total = 0.0
    for j in range(out.size):
        out[j] = one[j] * other[j]
        total += out[j]
    return total


@helper()
def rescale(row: Floats, total: float) -> None:
    """Divide the row by its sum `total`; raise allowed values below TINY to it."""
    by = 1.0 / total if total > 0.0 else 0.0
    for j in range(row.size):
        value = row[j] * by
        row[j] = max(value, TINY) if value > 0.0 else 0.0


class Token(NamedTuple):
    """The cells of one token, and the weights of the next token: none after the last."""

    forward: Floats
    weight: Floats
    states: Floats
    raw: Floats  # the backward message, not yet scaled; may be `states` itself
    following: Floats


@helper(REORDER)
def _join_messages(token: Token, by: float) -> tuple[float, float]:
    """Write forward * backward to a token's states, emit * backward to its weight; return (sum, sum of raised cells).

    The backward message is raw times `by`; the marginals are put into `states`, and `weight` is multiplied by it.
    """
    forward, weight, states, raw = token.forward, token.weight, token.states, token.raw
    total = excess = 0.0
    for j in range(raw.size):
        ahead, emit, value = forward[j], weight[j], raw[j] * by
        back = max(value, TINY) if value > 0.0 else 0.0
        both = ahead * back
        least = min(ahead, back, emit)
        total += both
        excess += both if least <= TINY * 1.000001 else 0.0
        weight[j] = emit * back
        states[j] = both
    return total, excess


@helper(REORDER)
def _sum(row: Floats) -> float:
    """Return the sum of a row, added from left to right."""
    total = 0.0
    for j in range(row.size):
        total += row[j]
    return total


@helper()
def backward_token(token: Token, floor: float) -> tuple[float, float, float]:
    """Write a token's marginals and weights; return (forward's factor for pairs, log total at the end, error bound).

    The log total is -inf if no path is possible, 0 before the last token. `floor` is the least entry of raised tables.
    """
    scale, ratio, log_total = _sum(token.raw), 0.0, -np.inf
    total, excess = _join_messages(token, 1.0 / scale if scale > 0.0 else 0.0)
    if total > 0.0:
        by = 1.0 / total
        excess *= by
        ratio = by / scale
        log_total = math.log(scale) + math.log(total) if token.following.size == 0 else 0.0
        for j in range(token.states.size):
            token.states[j] *= by
        excess += floor * _sum(token.following) * ratio if floor > 0.0 else 0.0
    return ratio, log_total, excess


@helper()
def finish(layout: BatchLayout, messages: Messages, b: int, log_total: float) -> None:
    """Add the last token's log total to log Z of sequence b; if it is -inf, record that no state may end it."""
    if log_total > -np.inf:
        messages.log_z[b] += log_total
    elif messages.status[b] == PENDING:
        messages.status[b] = layout.bounds[b] - layout.bounds[b + 1] - 1


@helper()
def end_sequence(layout: BatchLayout, scaled: Scaled, messages: Messages, b: int) -> None:
    """Put the last token's scaled end potentials where its marginals will be; add their log scale to log Z."""
    n = layout.bounds[b + 1] - 1
    row = messages.states[layout.at[n] : layout.at[n + 1]]
    for j in range(row.size):
        row[j] = scaled.end[layout.pool[layout.first[n] + j]]
    messages.log_z[b] += exp_row(row, row, LOG_TINY)


@helper()
def accept(messages: Messages, b: int, excess: float) -> None:
    """Mark a pending sequence b as DONE, or as REDO (in log-space) if `excess`, which bounds its error, is large."""
    if messages.status[b] == PENDING:
        messages.status[b] = DONE if excess <= EXCESS else REDO
