"""Lattices of a MultiHMM over stretches of tokens near votes; all other tokens are outside.

Few tokens of a text have any vote. In decoding, a token that no source calls an entity, and on which no linking rule
votes, is outside; in training, one that is farther than six tokens from any vote. So a sentence is divided
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

REACH = 6  # in training, tokens at most this far from a vote may be inside; larger is slower
TILE = 4_000  # tokens whose pairs of states are in memory at once; larger needs more memory


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Stretches:
    """The tokens in stretches and those outside; they do not depend on the tables."""

    tokens: Ints  # (M,)
    free: Bools  # (M,) may be part of an entity
    outside: Ints  # (T - M,)
    bounds: Ints  # of stretches, among their tokens

    @classmethod
    def of(cls, weights: SourceWeights, vote_matrix: VoteMatrix, seen: VotePatterns) -> Stretches:
        """Return the tokens that may be inside entities, in runs, each with the token after it; and the others."""
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
        """Return the lattices of stretches by these tables and weights; `stretches`, if computed before, saves time.

        No entity is cut off at the end of a sentence.
        """
        K, table = len(tables.trans), potentials(tables, weights, seen)
        parts = stretches or Stretches.of(weights, vote_matrix, seen)
        emit = table[seen.rows[parts.tokens]]
        for source, soft in seen.soft.items():
            emit[np.searchsorted(parts.tokens, soft.tokens)] += soft_potentials(tables, weights, source, soft)
        emit[~parts.free, 1:] = -np.inf
        with np.errstate(divide="ignore"):
            log_trans = np.log(tables.trans)
        end = np.where(states(vote_matrix.names).follows[K + 1], 0.0, -np.inf)
        batch = Batch(log_trans[0], log_trans, emit, end, parts.bounds)
        return cls(batch, parts.tokens, parts.outside, table[seen.rows[parts.outside], 0] + log_trans[0, 0])

    def log_likelihoods(self, log_z: Floats, cuts: Ints) -> Floats:
        """Return log-likelihoods of the tokens between `cuts`, given stretches' log Z; cuts are between stretches."""
        before = np.append(0.0, np.cumsum(log_z)), np.append(0.0, np.cumsum(self.sure))
        firsts = self.tokens[self.batch.bounds[:-1]]
        return np.diff(before[0][np.searchsorted(firsts, cuts)] + before[1][np.searchsorted(self.outside, cuts)])

    def spans(self, runs: tuple[Ints, Ints, Ints]) -> Spans:
        """Return the distinct spans of runs (first positions, ends, labels) of the lattices' states, as tokens."""
        first, end, label = runs
        return Spans.distinct(self.tokens[first], self.tokens[end - 1] + 1, label)

    def span_chances(self, marginals: Floats, spans: Spans) -> Floats:
        """Return (n,) the probability that each span is an entity of its label with these edges; marginals (M, K)."""
        first = np.searchsorted(self.tokens, spans.first)
        local = Spans(first, first + spans.end - spans.first, spans.label, spans.votes)
        return span_chances(self.batch, marginals, local)


def token_potentials(tables: VoteTables, weights: SourceWeights, seen: VotePatterns, bounds: Ints) -> Floats:
    """Return the log-likelihood of all votes on each token, by state (T, K); `-inf` where a state is impossible."""
    out = potentials(tables, weights, seen)[seen.rows]
    for source, soft in seen.soft.items():
        out[soft.tokens] += soft_potentials(tables, weights, source, soft)
    out[~may_be_inside(weights, seen, bounds), 1:] = -np.inf
    return out


def may_be_inside(weights: SourceWeights, seen: VotePatterns, bounds: Ints) -> Bools:
    """Return (T,) which tokens may be in an entity: voted on; in training also within `REACH` of a vote."""
    row_voted = (seen.links != 0).any(axis=1) | (seen.voted if weights.reading else seen.any_vote)
    voted = row_voted[seen.rows]
    for soft in seen.soft.values():
        voted[soft.tokens] = True
    if weights.reading:
        return np.asarray(voted)
    count, sizes = np.append(0, np.cumsum(voted)), np.diff(bounds)
    token = np.arange(len(voted))
    low, high = np.repeat(bounds[:-1], sizes), np.repeat(bounds[1:], sizes)
    return np.asarray(count[np.minimum(token + REACH + 1, high)] > count[np.maximum(token - REACH, low)])


def span_chances(batch: Batch, marginals: Floats, spans: Spans) -> Floats:
    """Return (n,) the probability that each span is an entity of its label with these edges; marginals (M, K)."""
    state = 1 + LETTERS * spans.label
    single = spans.end - spans.first == 1
    out = np.where(single, marginals[spans.first, state + 3 * single], marginals[spans.first, state])
    if single.all():
        return out
    which = np.searchsorted(batch.bounds, spans.first, side="right") - 1
    for sentences, tile, shift in _tiles(batch, np.unique(which[~single])):
        pairs = pair_marginals(tile)
        inside = np.flatnonzero(~single & np.isin(which, sentences))
        offset = shift[np.searchsorted(sentences, which[inside])]
        out[inside] = chances_along(pairs, marginals, spans[inside], offset)
    return out


def chances_along(pairs: Floats, marginals: Floats, spans: Spans, offset: Ints) -> Floats:
    """Return (n,) the probabilities of spans of two tokens or more; token - offset is its index in pairs (m, K, K)."""
    begin = 1 + LETTERS * spans.label
    chance, state = marginals[spans.first, begin], begin
    for step in range(1, int((spans.end - spans.first).max())):
        position = spans.first + step
        left = position < spans.end
        token = np.where(left, position, spans.first)
        to = np.where(position == spans.end - 1, begin + 2, begin + 1)
        leaving = marginals[token - 1 * left, state]
        moved = pairs[token - offset, state, to]
        share = np.divide(moved, leaving, out=np.zeros_like(moved), where=leaving > 0)
        chance = np.where(left, chance * np.minimum(share, 1.0), chance)
        state = np.where(left, to, state)
    return chance


def _tiles(batch: Batch, sentences: Ints) -> Iterator[tuple[Ints, Batch, Ints]]:
    """Yield (sentence numbers, batch, shift of each sentence's tokens) in batches of about `TILE` tokens."""
    sizes = np.diff(batch.bounds)[sentences]
    cuts = np.unique(np.searchsorted(np.cumsum(sizes), np.arange(0, sizes.sum() + TILE, TILE)))
    for first, end in pairwise(np.unique(np.append(np.append(0, cuts), len(sentences))).tolist()):
        some, lengths = sentences[first:end], sizes[first:end]
        bounds = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        shift = batch.bounds[some] - bounds[:-1]
        tokens = np.repeat(shift, lengths) + np.arange(bounds[-1])
        yield some, Batch(batch.start, batch.trans, batch.emit[tokens], batch.end, bounds), shift
