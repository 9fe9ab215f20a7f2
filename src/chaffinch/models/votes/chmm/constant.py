"""An HMM of many sources as the constant part of a conditional one: its tables, its view of votes, its choice of spans.

A state is O, or first, inner, last or single token of a label; a source says a state, or is silent, which is one more
symbol. What the HMM makes of votes is kept as it is, weights and linking rules included; layers add to it.

T tokens, S sources, K states, n spans.
"""

from __future__ import annotations

import numpy as np

from chaffinch.kernels import Batch, Floats, Ints, forward_backward, pair_marginals, viterbi
from chaffinch.models.latent.span_probabilities import runs_inside
from chaffinch.models.votes.chmm.tables import TokenInput, TokenTables, mended
from chaffinch.models.votes.matrix import VoteMatrix
from chaffinch.models.votes.multihmm import patterns as multihmm_votes
from chaffinch.models.votes.multihmm.chains import chances_along, whole
from chaffinch.models.votes.multihmm.model import Model
from chaffinch.models.votes.multihmm.patterns import LETTERS, coarse, states
from chaffinch.models.votes.multihmm.spans import Spans, candidates, most

__all__ = ["Model", "chances", "decoded", "ends", "may_follow", "observe", "tables_of"]


def tables_of(model: Model, vote_matrix: VoteMatrix, *, iid: bool) -> TokenTables:
    """What the model says of all tokens; where these are independent, how often it finds each state."""
    rates = model.tables.rates[:, :, None]
    votes = np.concatenate([rates * model.tables.confusion, 1.0 - rates], axis=2)
    if not iid:
        return TokenTables(model.tables.trans, votes)
    chains = model.chains(vote_matrix, multihmm_votes.observe(vote_matrix))
    found = forward_backward(chains.batch, pairs=False).states
    moves = found.sum(axis=0, keepdims=True) + 1.0 / found.shape[1]
    moves[0, 0] += len(chains.outside)
    return TokenTables(moves / moves.sum(), votes)


def observe(model: Model, vote_matrix: VoteMatrix) -> TokenInput:
    """The votes as states, and what the model makes of them."""
    seen, K = multihmm_votes.observe(vote_matrix), len(model.tables.trans)
    said = seen.votes[seen.rows].astype(np.int64)
    symbols = np.eye(K + 1)[np.where(said < 0, K, said)]
    for source, soft in seen.soft.items():
        symbols[soft.tokens, source, :K] = soft.chances[:, coarse(len(model.names))]
    powers = np.where(said < 0, model.weights.silent(seen)[seen.rows], 1.0) * model.weights.sources
    return TokenInput(
        symbols, powers, seen.voted[seen.rows], whole(model.tables, model.weights, seen, vote_matrix.bounds)
    )


def may_follow(model: Model, *, iid: bool) -> Floats:
    """(K, K) 0 where a state may follow another, else -inf; (1, K) where tokens are independent."""
    K = len(model.tables.trans)
    return np.zeros((1, K)) if iid else np.where(states(model.names).follows[:K], 0.0, -np.inf)


def ends(model: Model) -> Floats:
    """(K,) 0 where a sentence may end, else -inf."""
    return np.where(states(model.names).follows[-1], 0.0, -np.inf)


def chances(model: Model, marginals: Floats) -> Floats:
    """(T, L) the chances of tags, given those of states (T, K)."""
    tags = coarse(len(model.names))
    return np.asarray(marginals @ (tags[:, None] == np.arange(tags.max() + 1)))


def decoded(model: Model, vote_matrix: VoteMatrix, batch: Batch, marginals: Floats) -> Ints:
    """(T,) the tags of whole sentences, by the model's settings: the best path, or the spans that are likely enough."""
    spans = candidates(vote_matrix)
    if model.config.decode == "viterbi" or model.rules:
        tags = mended(coarse(len(model.names))[viterbi(batch).states], batch.bounds)  # independent tokens need not fit
        first, last = runs_inside(vote_matrix.labels, tags, batch.bounds)
        best = Spans.distinct(first, last, (tags[first] - 1) // 2)
        spans = best if model.config.decode == "viterbi" else spans.joined(best)
    if model.config.decode == "spans":
        spans = most(spans, span_chances(batch, marginals, spans) - model.config.threshold)
    return spans.tags(len(vote_matrix))


def span_chances(batch: Batch, marginals: Floats, spans: Spans) -> Floats:
    """(n,) the probability that exactly this span is an entity of its label; transitions are those of each token."""
    at = 1 + LETTERS * spans.label
    single = spans.end - spans.first == 1
    out = np.where(single, marginals[spans.first, at + 3 * single], marginals[spans.first, at])
    if not single.all():
        longer = np.flatnonzero(~single)
        out[longer] = chances_along(pair_marginals(batch), marginals, spans[longer], np.zeros(len(longer), np.int64))
    return out
