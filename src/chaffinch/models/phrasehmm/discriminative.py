"""Discriminative training of the combined model: it raises the probability of the right labels given the words.

A. Krogh, Hidden Markov models for labeled sequences, 1994; Two methods for improving performance of an HMM, 1997. For a
probability theta_j of a group that sums to 1, m_j is its expected use over paths with the right labels, n_j over all.
K states, B sentences.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from chaffinch.kernels import Floats, Ints, log_partition
from chaffinch.models.phrasehmm.chain import (
    PhraseTables,
    batch_of,
    expand,
    expected_counts,
    normalise,
    select_sentences,
)
from chaffinch.models.phrasehmm.config import PhraseHMM
from chaffinch.models.phrasehmm.encoding import Allowed, Text, free, states_with_labels
from chaffinch.models.phrasehmm.states import States

SMALLEST = 1e-8  # least probability after a plain step, which could otherwise go below 0
EPOCH = 10  # iterations of L-BFGS that count as one epoch, after which held-out groups are scored


class Pairs(NamedTuple):
    """Sentences with the states of correct paths and of all paths."""

    text: Text
    right: Allowed
    every: Allowed
    usable: Ints  # the sentences with a correct path

    @classmethod
    def of(cls, states: States, text: Text) -> Pairs:
        """Return a text's sentences with correct paths, which have its labels, and all paths, by these states.

        Where a sentence has no label, a correct path may use either sub-model.
        """
        right = states_with_labels(states, text)
        return cls(text, right, free(states, text), np.flatnonzero(right.possible & (np.diff(text.bounds) > 0)))

    def difference(self, tables: PhraseTables, sentences: Ints) -> tuple[float, PhraseTables]:
        """Return (log P(labels | words) of these sentences, expected uses on correct less on all paths)."""
        moves = expand(tables)
        good, used = expected_counts(tables, *select_sentences(self.text, self.right, sentences), moves)
        every, needed = expected_counts(tables, *select_sentences(self.text, self.every, sentences), moves)
        return float((good - every).sum()), used.plus(needed, -1.0)

    def log_conditional(self, tables: PhraseTables) -> float:
        """Return the sum of log P(labels | words) over the sentences that have a correct path."""
        moves, sides = expand(tables), (self.right, self.every)
        lattices = (batch_of(tables, *select_sentences(self.text, side, self.usable), moves) for side in sides)
        good, every = (float(log_partition(lattice).sum()) for lattice in lattices)
        return good - every


def step(tables: PhraseTables, difference: PhraseTables, config: PhraseHMM) -> PhraseTables:
    """Return the tables after one gradient step, normalised: in probabilities ("plain"), or else in log-odds."""
    out = []
    for (logs, axis), (gap, _) in zip(tables.rows(), difference.rows(), strict=True):
        chances = np.exp(logs)
        if config.update == "plain":
            moved = np.where(np.isfinite(logs), np.maximum(chances + config.rate * gap, SMALLEST), 0.0)
            with np.errstate(divide="ignore"):
                out.append(normalise(np.log(moved), axis))
        else:
            out.append(normalise(logs + config.rate * log_odds_gradient(chances, gap, axis), axis))
    return PhraseTables.of_rows(tables, out)


def log_odds_gradient(chances: Floats, gap: Floats, axis: int) -> Floats:
    """Return the gradient of log P(labels | words) by log-odds, from that by counts (`gap`), along an axis.

    It is (m_j - n_j) - theta_j times the sum of m - n over the axis.
    """
    return np.asarray(gap - chances * gap.sum(axis=axis, keepdims=True))


def krogh(tables: PhraseTables, pairs: Pairs, config: PhraseHMM) -> Iterator[PhraseTables]:
    """Yield the tables after each epoch of gradient steps on shuffled batches, `epochs` times."""
    rng = np.random.default_rng(config.seed)
    for _ in range(config.epochs):
        order = rng.permutation(pairs.usable)
        for first in range(0, len(order), config.batch):
            _, difference = pairs.difference(tables, np.sort(order[first : first + config.batch]))
            tables = step(tables, difference, config)
        yield tables


def lbfgs(tables: PhraseTables, pairs: Pairs, config: PhraseHMM) -> list[PhraseTables]:
    """Return the tables after every `EPOCH` iterations of L-BFGS on log P(labels | words), at most `epochs` of them.

    The penalty on the distance of log-odds from their start is subtracted.
    """
    logs = [table for table, _ in tables.rows()]
    masks = [np.isfinite(table) for table in logs]
    begin = np.concatenate([table[mask] for table, mask in zip(logs, masks, strict=True)])
    cuts = np.cumsum([np.count_nonzero(mask) for mask in masks])[:-1]

    def tables_at(point: Floats) -> PhraseTables:
        """Return the normalised tables of a point of free parameters."""
        filled = []
        for (table, axis), mask, values in zip(tables.rows(), masks, np.split(point, cuts), strict=True):
            logits = np.full_like(table, -np.inf)
            logits[mask] = values
            filled.append(normalise(logits, axis))
        return PhraseTables.of_rows(tables, filled)

    def loss(point: Floats) -> tuple[float, Floats]:
        """Return (the penalty on moving away minus the conditional log-likelihood, its gradient) at a point."""
        now = tables_at(point)
        value, difference = pairs.difference(now, pairs.usable)
        parts = []
        for (table, axis), (gap, _), mask in zip(now.rows(), difference.rows(), masks, strict=True):
            parts.append(log_odds_gradient(np.exp(table), gap, axis)[mask])
        away = point - begin
        value -= 0.5 * config.penalty * float(away @ away)
        return -value, config.penalty * away - np.concatenate(parts)

    points: list[Floats] = []
    options = {"maxiter": EPOCH * config.epochs, "maxcor": 6}
    from scipy.optimize import minimize  # 0.2 CPU seconds, for training alone

    result = minimize(
        loss, begin, jac=True, method="L-BFGS-B", options=options, callback=lambda x: points.append(x.copy())
    )
    return [*map(tables_at, points[EPOCH - 1 : -1 : EPOCH]), tables_at(np.asarray(result.x))]


def train(tables: PhraseTables, pairs: Pairs, config: PhraseHMM) -> Iterator[PhraseTables]:
    """Yield the tables after each epoch of the trainer in the settings: krogh or lbfgs."""
    yield from krogh(tables, pairs, config) if config.trainer == "krogh" else lbfgs(tables, pairs, config)
