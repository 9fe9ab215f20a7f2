"""Discriminative training of the combined model: the chance of the right labels given the words.

A. Krogh, Hidden Markov models for labeled sequences, 1994; Two methods for improving performance of an HMM, 1997. For a
chance theta_j of a group that sums to one, m_j is its expected use over the paths with the right labels, n_j over all.
K states, B sentences.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from chaffinch.kernels import Floats, Ints, log_partition
from chaffinch.models.phrasehmm.chain import PhraseTables, batch_of, chosen, expand, expected, normalised
from chaffinch.models.phrasehmm.config import PhraseHMM
from chaffinch.models.phrasehmm.encoding import Allowed, Text, clamped, free
from chaffinch.models.phrasehmm.states import States

SMALLEST = 1e-8  # chance that a plain step leaves
EPOCH = 10  # iterations of L-BFGS


class Pairs(NamedTuple):
    """Sentences with the states of right paths and of all paths."""

    text: Text
    right: Allowed
    every: Allowed
    usable: Ints  # the sentences with a right path

    @classmethod
    def of(cls, states: States, text: Text) -> Pairs:
        """Right paths have the labels of the text; without any label they may run through either sub-model."""
        right = clamped(states, text)
        return cls(text, right, free(states, text), np.flatnonzero(right.possible & (np.diff(text.bounds) > 0)))

    def difference(self, tables: PhraseTables, sentences: Ints) -> tuple[float, PhraseTables]:
        """log P(labels | words) of some sentences, and m - n of every chance."""
        moves = expand(tables)
        good, used = expected(tables, *chosen(self.text, self.right, sentences), moves)
        every, needed = expected(tables, *chosen(self.text, self.every, sentences), moves)
        return float((good - every).sum()), used.plus(needed, -1.0)

    def log_conditional(self, tables: PhraseTables) -> float:
        """log P(labels | words) of all sentences that have a right path."""
        moves, sides = expand(tables), (self.right, self.every)
        lattices = (batch_of(tables, *chosen(self.text, own, self.usable), moves) for own in sides)
        good, every = (float(log_partition(lattice).sum()) for lattice in lattices)
        return good - every


def step(tables: PhraseTables, difference: PhraseTables, config: PhraseHMM) -> PhraseTables:
    """The tables after one step: plain, or exponentiated, which is uphill in log-odds."""
    out = []
    for (logs, axis), (gap, _) in zip(tables.rows(), difference.rows(), strict=True):
        chances = np.exp(logs)
        if config.update == "plain":
            moved = np.where(np.isfinite(logs), np.maximum(chances + config.rate * gap, SMALLEST), 0.0)
            with np.errstate(divide="ignore"):
                out.append(normalised(np.log(moved), axis))
        else:
            out.append(normalised(logs + config.rate * slope(chances, gap, axis), axis))
    return PhraseTables.of_rows(tables, out)


def slope(chances: Floats, gap: Floats, axis: int) -> Floats:
    """The slope of log P(labels | words) by log-odds: (m_j - n_j) - theta_j times the sum of all m - n of the group."""
    return np.asarray(gap - chances * gap.sum(axis=axis, keepdims=True))


def krogh(tables: PhraseTables, pairs: Pairs, config: PhraseHMM) -> Iterator[PhraseTables]:
    """The tables after each epoch of on-line steps, in an order drawn anew for each."""
    rng = np.random.default_rng(config.seed)
    for _ in range(config.epochs):
        order = rng.permutation(pairs.usable)
        for at in range(0, len(order), config.batch):
            _, difference = pairs.difference(tables, np.sort(order[at : at + config.batch]))
            tables = step(tables, difference, config)
        yield tables


def lbfgs(tables: PhraseTables, pairs: Pairs, config: PhraseHMM) -> list[PhraseTables]:
    """The tables after every ten iterations, at most `epochs` times, on the way to the most log P(labels | words).

    Less the penalty on log-odds that move away from where they begin.
    """
    logs = [own for own, _ in tables.rows()]
    masks = [np.isfinite(own) for own in logs]
    begin = np.concatenate([own[mask] for own, mask in zip(logs, masks, strict=True)])
    cuts = np.cumsum([np.count_nonzero(mask) for mask in masks])[:-1]

    def at(point: Floats) -> PhraseTables:
        filled = []
        for (own, axis), mask, values in zip(tables.rows(), masks, np.split(point, cuts), strict=True):
            made = np.full_like(own, -np.inf)
            made[mask] = values
            filled.append(normalised(made, axis))
        return PhraseTables.of_rows(tables, filled)

    def climb(point: Floats) -> tuple[float, Floats]:
        now = at(point)
        value, difference = pairs.difference(now, pairs.usable)
        parts = []
        for (own, axis), (gap, _), mask in zip(now.rows(), difference.rows(), masks, strict=True):
            parts.append(slope(np.exp(own), gap, axis)[mask])
        away = point - begin
        value -= 0.5 * config.penalty * float(away @ away)
        return -value, config.penalty * away - np.concatenate(parts)

    points: list[Floats] = []
    options = {"maxiter": EPOCH * config.epochs, "maxcor": 6}
    found = minimize(
        climb, begin, jac=True, method="L-BFGS-B", options=options, callback=lambda x: points.append(x.copy())
    )
    return [*map(at, points[EPOCH - 1 : -1 : EPOCH]), at(np.asarray(found.x))]


def trained(tables: PhraseTables, pairs: Pairs, config: PhraseHMM) -> Iterator[PhraseTables]:
    """The tables after each epoch."""
    yield from krogh(tables, pairs, config) if config.trainer == "krogh" else lbfgs(tables, pairs, config)
