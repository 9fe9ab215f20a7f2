"""A MultiHMM as the constant part of a conditional HMM: its tables, vote likelihoods and choice of spans.

A state is O, or first, inner, last or single token of a label; a source votes for a state, or is silent: one more
symbol. The likelihoods of the HMM are kept as they are, weights and linking rules included; layers add to them.

T tokens, S sources, K states, n spans.
"""

from __future__ import annotations

import numpy as np

from chaffinch.kernels import Batch, Floats, Ints, forward_backward, pair_marginals, viterbi
from chaffinch.models.latent.span_probabilities import runs_inside
from chaffinch.models.votes.chmm.tables import TokenInput, TokenTables, repair_tags
from chaffinch.models.votes.matrix import VoteMatrix
from chaffinch.models.votes.multihmm import patterns as multihmm_votes
from chaffinch.models.votes.multihmm.chains import chances_along, token_potentials
from chaffinch.models.votes.multihmm.model import Model
from chaffinch.models.votes.multihmm.patterns import LETTERS, state_tags, states
from chaffinch.models.votes.multihmm.spans import Spans, best_spans, candidates

__all__ = ["Model", "chances", "decode_tags", "ends", "may_follow", "observe", "tables_of"]


def tables_of(model: Model, vote_matrix: VoteMatrix, *, iid: bool) -> TokenTables:
    """Return the constant model's tables for all tokens; with `iid`, the shares of states in place of transitions."""
    rates = model.tables.rates[:, :, None]
    votes = np.concatenate([rates * model.tables.confusion, 1.0 - rates], axis=2)
    if not iid:
        return TokenTables(model.tables.trans, votes)
    chains = model.chains(vote_matrix, multihmm_votes.observe(vote_matrix))
    marginals = forward_backward(chains.batch, pairs=False).states
    moves = marginals.sum(axis=0, keepdims=True) + 1.0 / marginals.shape[1]
    moves[0, 0] += len(chains.outside)
    return TokenTables(moves / moves.sum(), votes)


def observe(model: Model, vote_matrix: VoteMatrix) -> TokenInput:
    """Return votes as weighted symbols over the model's states, and the model's log-likelihood of each token."""
    seen, K = multihmm_votes.observe(vote_matrix), len(model.tables.trans)
    said = seen.votes[seen.rows].astype(np.int64)
    symbols = np.eye(K + 1)[np.where(said < 0, K, said)]
    for source, soft in seen.soft.items():
        symbols[soft.tokens, source, :K] = soft.chances[:, state_tags(len(model.names))]
    powers = np.where(said < 0, model.weights.silent(seen)[seen.rows], 1.0) * model.weights.sources
    return TokenInput(
        symbols, powers, seen.voted[seen.rows], token_potentials(model.tables, model.weights, seen, vote_matrix.bounds)
    )


def may_follow(model: Model, *, iid: bool) -> Floats:
    """Return (K, K) 0 where a state may follow another, else -inf; with `iid`, (1, K) zeros."""
    K = len(model.tables.trans)
    return np.zeros((1, K)) if iid else np.where(states(model.names).follows[:K], 0.0, -np.inf)


def ends(model: Model) -> Floats:
    """Return (K,) 0 for states with which a sentence may end, else -inf."""
    return np.where(states(model.names).follows[-1], 0.0, -np.inf)


def chances(model: Model, marginals: Floats) -> Floats:
    """Return (T, L) the probabilities of IOB2 tags, given those of states (T, K)."""
    tags = state_tags(len(model.names))
    return np.asarray(marginals @ (tags[:, None] == np.arange(tags.max() + 1)))


def decode_tags(model: Model, vote_matrix: VoteMatrix, batch: Batch, marginals: Floats) -> Ints:
    """Return (T,) the tags of whole sentences by the model's settings: of the best path, or of likely spans."""
    spans = candidates(vote_matrix)
    if model.config.decode == "viterbi" or model.rules:
        tags = repair_tags(
            state_tags(len(model.names))[viterbi(batch).states], batch.bounds
        )  # independent tokens need not fit
        first, last = runs_inside(vote_matrix.labels, tags, batch.bounds)
        best = Spans.distinct(first, last, (tags[first] - 1) // 2)
        spans = best if model.config.decode == "viterbi" else spans.union(best)
    if model.config.decode == "spans":
        spans = best_spans(spans, span_chances(batch, marginals, spans) - model.config.threshold)
    return spans.tags(len(vote_matrix))


def span_chances(batch: Batch, marginals: Floats, spans: Spans) -> Floats:
    """Return (n,) the probability that each span is an entity of its label with exactly these edges."""
    state = 1 + LETTERS * spans.label
    single = spans.end - spans.first == 1
    out = np.where(single, marginals[spans.first, state + 3 * single], marginals[spans.first, state])
    if not single.all():
        longer = np.flatnonzero(~single)
        out[longer] = chances_along(pair_marginals(batch), marginals, spans[longer], np.zeros(len(longer), np.int64))
    return out
