"""The chains of an HMM of many sources: of stretches of tokens near which something is said; all others are outside.

Few tokens of a text have any vote. In reading, a token that no source calls an entity, and of which no linking rule
speaks, is outside; in learning, one that is farther than six tokens from anything said. So a sentence falls apart
into stretches, each of which begins after a token outside, and ends with one or with the sentence.

T tokens, M of them in stretches, K states, P distinct rows of votes, n spans.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from chaffinch.kernels import Batch, Floats, Ints, pair_marginals
from chaffinch.kernels.lattice import Bools
from chaffinch.models.votes.matrix import VoteMatrix
from chaffinch.models.votes.multihmm.patterns import LETTERS, VotePatterns, states
from chaffinch.models.votes.multihmm.spans import Spans
from chaffinch.models.votes.multihmm.tables import SourceWeights, VoteTables, potentials, soft_potentials

REACH = 6  # in learning, tokens so near to anything said may be inside
TILE = 4_000  # tokens whose pairs of states are held at once


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Stretches:
    """Which tokens stand in stretches and which are outside, whatever the tables are."""

    tokens: Ints  # (M,)
    free: Bools  # (M,) may be of an entity
    outside: Ints  # (T - M,)
    bounds: Ints  # of stretches, among their tokens

    @classmethod
    def of(cls, weights: SourceWeights, vote_matrix: VoteMatrix, seen: VotePatterns) -> Stretches:
        """The stretches of votes; each goes on from a free token of the same sentence."""
        free = may_be_inside(weights, seen, vote_matrix.bounds)
        before = np.append(False, free[:-1])[: len(free)]
        before[vote_matrix.bounds[vote_matrix.bounds < len(free)]] = False
        within = free | before
        tokens = np.flatnonzero(within)
        bounds = np.append(np.flatnonzero(~before[tokens]), len(tokens)).astype(np.int64)
        return cls(tokens, free[tokens], np.flatnonzero(~within), bounds)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Chains:
    """The lattices of all stretches, their tokens, and the tokens that are outside, with their log-likelihoods."""

    batch: Batch
    tokens: Ints  # (M,)
    outside: Ints  # (T - M,)
    sure: Floats  # (T - M,)

    @classmethod
    def of(
        cls,
        tables: VoteTables,
        weights: SourceWeights,
        vote_matrix: VoteMatrix,
        seen: VotePatterns,
        stretches: Stretches | None = None,
    ) -> Chains:
        """The chains of votes; no entity is cut off at the end of a sentence. Stretches may have been found before."""
        K, table = len(tables.trans), potentials(tables, weights, seen)
        own = stretches or Stretches.of(weights, vote_matrix, seen)
        emit = table[seen.rows[own.tokens]]
        for source, soft in seen.soft.items():
            emit[np.searchsorted(own.tokens, soft.tokens)] += soft_potentials(tables, weights, source, soft)
        emit[~own.free, 1:] = -np.inf
        with np.errstate(divide="ignore"):
            log_trans = np.log(tables.trans)
        end = np.where(states(vote_matrix.names).follows[K + 1], 0.0, -np.inf)
        batch = Batch(log_trans[0], log_trans, emit, end, own.bounds)
        return cls(batch, own.tokens, own.outside, table[seen.rows[own.outside], 0] + log_trans[0, 0])

    def log_likelihoods(self, log_z: Floats, cuts: Ints) -> Floats:
        """The log-likelihoods of runs of tokens, given those of stretches; no run cuts a stretch."""
        before = np.append(0.0, np.cumsum(log_z)), np.append(0.0, np.cumsum(self.sure))
        firsts = self.tokens[self.batch.bounds[:-1]]
        return np.diff(before[0][np.searchsorted(firsts, cuts)] + before[1][np.searchsorted(self.outside, cuts)])

    def spans(self, runs: tuple[Ints, Ints, Ints]) -> Spans:
        """The spans of runs of the lattices' states: first places, ends and labels."""
        first, end, label = runs
        return Spans.distinct(self.tokens[first], self.tokens[end - 1] + 1, label)

    def span_chances(self, marginals: Floats, spans: Spans) -> Floats:
        """(n,) the probability that exactly this span is an entity of its label, from the marginals (M, K)."""
        first = np.searchsorted(self.tokens, spans.first)
        own = Spans(first, first + spans.end - spans.first, spans.label, spans.votes)
        return span_chances(self.batch, marginals, own)


def whole(tables: VoteTables, weights: SourceWeights, seen: VotePatterns, bounds: Ints) -> Floats:
    """(T, K) the log-likelihood of all that is said of each token; `-inf` where it may not be."""
    out = potentials(tables, weights, seen)[seen.rows]
    for source, soft in seen.soft.items():
        out[soft.tokens] += soft_potentials(tables, weights, source, soft)
    out[~may_be_inside(weights, seen, bounds), 1:] = -np.inf
    return out


def may_be_inside(weights: SourceWeights, seen: VotePatterns, bounds: Ints) -> Bools:
    """(T,) the tokens that may be of an entity."""
    said = (seen.links != 0).any(axis=1) | (seen.voted if weights.reading else seen.spoken)
    told = said[seen.rows]
    for soft in seen.soft.values():
        told[soft.tokens] = True
    if weights.reading:
        return np.asarray(told)
    count, sizes = np.append(0, np.cumsum(told)), np.diff(bounds)
    token = np.arange(len(told))
    low, high = np.repeat(bounds[:-1], sizes), np.repeat(bounds[1:], sizes)
    return np.asarray(count[np.minimum(token + REACH + 1, high)] > count[np.maximum(token - REACH, low)])


def span_chances(batch: Batch, marginals: Floats, spans: Spans) -> Floats:
    """(n,) the probability that exactly this span is an entity of its label, from the marginals (M, K)."""
    at = 1 + LETTERS * spans.label
    single = spans.end - spans.first == 1
    out = np.where(single, marginals[spans.first, at + 3 * single], marginals[spans.first, at])
    if single.all():
        return out
    which = np.searchsorted(batch.bounds, spans.first, side="right") - 1
    for sentences, own, shift in _tiles(batch, np.unique(which[~single])):
        pairs = pair_marginals(own)
        inside = np.flatnonzero(~single & np.isin(which, sentences))
        offset = shift[np.searchsorted(sentences, which[inside])]
        out[inside] = chances_along(pairs, marginals, spans[inside], offset)
    return out


def chances_along(pairs: Floats, marginals: Floats, spans: Spans, offset: Ints) -> Floats:
    """(n,) the chances of spans of several tokens; `offset` takes a token to its place among the pairs (m, K, K)."""
    begin = 1 + LETTERS * spans.label
    chance, state = marginals[spans.first, begin], begin
    for step in range(1, int((spans.end - spans.first).max())):
        place = spans.first + step
        left = place < spans.end
        token = np.where(left, place, spans.first)
        to = np.where(place == spans.end - 1, begin + 2, begin + 1)
        leaving = marginals[token - 1 * left, state]
        moved = pairs[token - offset, state, to]
        share = np.divide(moved, leaving, out=np.zeros_like(moved), where=leaving > 0)
        chance = np.where(left, chance * np.minimum(share, 1.0), chance)
        state = np.where(left, to, state)
    return chance


def _tiles(batch: Batch, sentences: Ints) -> Iterator[tuple[Ints, Batch, Ints]]:
    """Some sentences, as batches of about a tile: their numbers, the batch, and how far each was moved."""
    sizes = np.diff(batch.bounds)[sentences]
    cuts = np.unique(np.searchsorted(np.cumsum(sizes), np.arange(0, sizes.sum() + TILE, TILE)))
    for first, end in pairwise(np.unique(np.append(np.append(0, cuts), len(sentences))).tolist()):
        some, lengths = sentences[first:end], sizes[first:end]
        bounds = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        shift = batch.bounds[some] - bounds[:-1]
        tokens = np.repeat(shift, lengths) + np.arange(bounds[-1])
        yield some, Batch(batch.start, batch.trans, batch.emit[tokens], batch.end, bounds), shift
