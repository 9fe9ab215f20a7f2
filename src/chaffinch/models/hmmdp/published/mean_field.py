"""States that do not know their neighbours, q(z) = prod q(z_n), as published; `variational` has the chain.

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

STABLE = 1e-6  # a sweep that moves no probability by more is the last


class Chains(NamedTuple):
    """Sentences with the cells of each token in a row of their own; whatever is not there is -inf, or 0 in weights."""

    states: Ints  # (N, W)
    there: Bools  # (N, W)
    emit: Floats  # (N, W) potentials of what the token shows, at a sentence's last token with those of its end
    first: Bools  # (N,)
    groups: list[tuple[Ints, Ints, Ints]]  # tokens, states before them, states they may take: equal in each group


def factored_step(part: Sentences, tables: LogTables, emissions: Emissions, *, sweeps: int = 10) -> Counts:
    """The counts of states that do not know their neighbours, q(z) = prod q(z_n).

    Sweeps begin at the best path, which is always possible. Each updates all even positions of the sentences and then
    all odd ones: no two of a half are neighbours, so that each half is exact coordinate ascent. The entropy is
    -sum g log g (and what evidence and back-off add to the potentials of symbols), so that `variational.bound` of
    these counts is the bound of this q.
    """
    chains = chains_of(part, tables, emissions)
    return counted(part, chains, tables, emissions, by_sweeps(part, chains, tables, sweeps))


def chains_of(part: Sentences, tables: LogTables, emissions: Emissions) -> Chains:
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
    return Chains(states, there, emit, first, groups)


def by_sweeps(part: Sentences, chains: Chains, tables: LogTables, sweeps: int) -> Floats:
    """(N, W) the weights of states after that many sweeps, or when they are stable."""
    emit = chains.emit.copy()
    emit[chains.first] += tables.start[chains.states[chains.first]]
    best = viterbi(_batch(part, chains, tables)).states
    weights: Floats = ((chains.states == best[:, None]) & chains.there).astype(float)
    odd = (np.arange(len(best)) - np.repeat(part.bounds[:-1], np.diff(part.bounds))) % 2 == 1
    halves = [(half, _moves(chains, tables, half)) for half in (~odd, odd)]
    for _ in range(sweeps):
        moved = 0.0
        for half, moves in halves:
            field = emit.copy()
            for here, before, trans in moves:
                J, K = trans.shape
                field[here, :K] += _mean(weights[here - 1, :J], trans)
                field[before, :J] += _mean(weights[before + 1, :K], trans.T)
            new = softmax(field[half], axis=1)
            moved = max(moved, float(np.abs(new - weights[half]).max(initial=0.0)))
            weights[half] = new
        if moved < STABLE:
            break
    return weights


def _moves(chains: Chains, tables: LogTables, half: Bools) -> list[tuple[Ints, Ints, Floats]]:
    """Per group: the tokens of a half with one before them, those with one after them, and the moves (J, K)."""
    return [
        (tokens[half[tokens]], tokens[half[tokens - 1]] - 1, tables.trans[np.ix_(rows, own)])
        for tokens, rows, own in chains.groups
    ]


def _batch(part: Sentences, chains: Chains, tables: LogTables) -> Batch:
    ends = np.zeros(len(tables.end))  # already among the potentials of the last tokens
    return Batch(tables.start, tables.trans, chains.emit[chains.there], ends, part.bounds, part.active)


def _mean(weights: Floats, logs: Floats) -> Floats:
    """(T, K) the mean of logs (J, K) under weights (T, J); -inf where anything impossible has weight."""
    if np.isfinite(logs.min()):
        return np.asarray(weights @ logs)
    never = np.isneginf(logs)
    mean = weights @ np.where(never, 0.0, logs)
    return np.asarray(np.where((weights > 0) @ never, -np.inf, mean))


def counted(part: Sentences, chains: Chains, tables: LogTables, emissions: Emissions, weights: Floats) -> Counts:
    """The counts of independent tokens with those weights (N, W)."""
    Z = len(tables.start)
    pairs = np.zeros((Z, Z))
    for tokens, rows, own in chains.groups:
        pairs[np.ix_(rows, own)] += weights[tokens - 1, : len(rows)].T @ weights[tokens, : len(own)]
    last = np.roll(chains.first, -1)
    ends = [
        np.bincount(chains.states[chosen].ravel(), weights[chosen].ravel(), Z).astype(float)
        for chosen in (chains.first, last)
    ]
    emit = emissions.counts(tables.emit, part.known, part.active, weights[chains.there])
    counts = Counts(ends[0], pairs, ends[1], emit, 0.0)
    held = np.multiply(weights, chains.emit, where=weights > 0, out=np.zeros_like(weights)).sum()
    shown = vb.energy(counts._replace(start=np.zeros(Z), pairs=np.zeros((Z, Z))), tables)
    return counts._replace(entropy=float(entr(weights).sum() + held - shown))
