"""Mean-field inference: the fully factored posterior q(z) = prod q(z_n) of the publication.

`variational` has the chain.

Z states, N tokens; W states in the longest list of a token; J states before a token, K that it may take.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import entr, softmax

from chaffinch.kernels import Batch, Floats, Ints, viterbi
from chaffinch.kernels.lattice import Bools
from chaffinch.models.hmmdp import variational as vb
from chaffinch.models.hmmdp.emissions import Emissions
from chaffinch.models.hmmdp.variational import Counts, LogTables, Sentences

STABLE = 1e-6  # sweeps end when no probability changes by more; smaller takes more sweeps


class PaddedSentences(NamedTuple):
    """Sentences with one padded row of cells per token; padding is -inf, or 0 in weights."""

    states: Ints  # (N, W)
    there: Bools  # (N, W)
    emit: Floats  # (N, W) potentials of what the token shows, at a sentence's last token with those of its end
    first: Bools  # (N,)
    groups: list[tuple[Ints, Ints, Ints]]  # tokens, states before them, states they may take: equal in each group


def mean_field_step(part: Sentences, tables: LogTables, emissions: Emissions, *, sweeps: int = 10) -> Counts:
    """Return the expected counts of sentences under the fully factored posterior q(z) = prod q(z_n).

    Sweeps begin at the best path, which is always possible. Each updates all even positions of the sentences and then
    all odd ones: no two of a half are neighbours, so that each half is exact coordinate ascent. The entropy is
    -sum g log g (and what evidence and back-off add to the potentials of symbols), so that `variational.bound` of
    these counts is the bound of this q.
    """
    padded = pad_sentences(part, tables, emissions)
    return count_factored(part, padded, tables, emissions, sweep_states(part, padded, tables, sweeps))


def pad_sentences(part: Sentences, tables: LogTables, emissions: Emissions) -> PaddedSentences:
    """Return states and potentials of each token as a padded row, and tokens grouped by their lists of states."""
    active, widths = part.active, part.active.widths
    N = len(widths)
    there = np.arange(int(widths.max(initial=1))) < widths[:, None]
    states, emit = np.zeros(there.shape, np.int64), np.full(there.shape, -np.inf)
    states[there] = active.cells
    emit[there] = emissions.cells(tables.emit, part.known, active)
    if part.evidence is not None:
        emit[there] += part.evidence
    full = np.diff(part.bounds) > 0
    last = part.bounds[1:][full] - 1
    emit[last] += np.where(there, tables.end[states], 0.0)[last]
    first = np.zeros(N, np.bool_)
    first[part.bounds[:-1][full]] = True
    inner = np.flatnonzero(~first)
    key = active.which[inner - 1] * (len(active.bounds) - 1) + active.which[inner]
    order = np.argsort(key, kind="stable")
    groups = []
    for tokens in np.split(inner[order], np.flatnonzero(np.diff(key[order])) + 1):
        if len(tokens):
            before, now = tokens[0] - 1, tokens[0]
            groups.append((tokens, states[before, there[before]], states[now, there[now]]))
    return PaddedSentences(states, there, emit, first, groups)


def sweep_states(part: Sentences, padded: PaddedSentences, tables: LogTables, sweeps: int) -> Floats:
    """Return (N, W) state weights after `sweeps` mean-field sweeps from the best path, or once they are stable."""
    emit = padded.emit.copy()
    emit[padded.first] += tables.start[padded.states[padded.first]]
    best = viterbi(_batch(part, padded, tables)).states
    weights: Floats = ((padded.states == best[:, None]) & padded.there).astype(float)
    odd = (np.arange(len(best)) - np.repeat(part.bounds[:-1], np.diff(part.bounds))) % 2 == 1
    halves = [(half, _moves(padded, tables, half)) for half in (~odd, odd)]
    for _ in range(sweeps):
        moved = 0.0
        for half, moves in halves:
            field = emit.copy()
            for here, before, trans in moves:
                J, K = trans.shape
                field[here, :K] += _mean_logs(weights[here - 1, :J], trans)
                field[before, :J] += _mean_logs(weights[before + 1, :K], trans.T)
            new = softmax(field[half], axis=1)
            moved = max(moved, float(np.abs(new - weights[half]).max(initial=0.0)))
            weights[half] = new
        if moved < STABLE:
            break
    return weights


def _moves(padded: PaddedSentences, tables: LogTables, half: Bools) -> list[tuple[Ints, Ints, Floats]]:
    """Return per group: a half's tokens with a predecessor, those with a successor, and log-transitions (J, K)."""
    return [
        (tokens[half[tokens]], tokens[half[tokens - 1]] - 1, tables.trans[np.ix_(rows, states)])
        for tokens, rows, states in padded.groups
    ]


def _batch(part: Sentences, padded: PaddedSentences, tables: LogTables) -> Batch:
    """Return the sentences as a batch of chains with the current expected log parameters."""
    ends = np.zeros(len(tables.end))  # already among the potentials of the last tokens
    return Batch(tables.start, tables.trans, padded.emit[padded.there], ends, part.bounds, part.active)


def _mean_logs(weights: Floats, logs: Floats) -> Floats:
    """Return the mean of logs (J, K) under weights (T, J) as (T, K); -inf where anything impossible has weight."""
    if np.isfinite(logs.min()):
        return np.asarray(weights @ logs)
    never = np.isneginf(logs)
    mean = weights @ np.where(never, 0.0, logs)
    return np.asarray(np.where((weights > 0) @ never, -np.inf, mean))


def count_factored(
    part: Sentences, padded: PaddedSentences, tables: LogTables, emissions: Emissions, weights: Floats
) -> Counts:
    """Return the expected counts and entropy of tokens that are independent with these weights (N, W)."""
    Z = len(tables.start)
    pairs = np.zeros((Z, Z))
    for tokens, rows, states in padded.groups:
        pairs[np.ix_(rows, states)] += weights[tokens - 1, : len(rows)].T @ weights[tokens, : len(states)]
    last = np.roll(padded.first, -1)
    ends = [
        np.bincount(padded.states[chosen].ravel(), weights[chosen].ravel(), Z).astype(float)
        for chosen in (padded.first, last)
    ]
    emit = emissions.counts(tables.emit, part.known, part.active, weights[padded.there])
    counts = Counts(ends[0], pairs, ends[1], emit, 0.0)
    potentials = np.multiply(weights, padded.emit, where=weights > 0, out=np.zeros_like(weights)).sum()
    emitted = vb.energy(counts._replace(start=np.zeros(Z), pairs=np.zeros((Z, Z))), tables)
    return counts._replace(entropy=float(entr(weights).sum() + potentials - emitted))
