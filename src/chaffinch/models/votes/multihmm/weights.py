"""Weights of sources, estimated without gold: for dependence on others, and for silence.

S sources, K states, P distinct rows of votes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from chaffinch.kernels import Floats, Ints
from chaffinch.models.votes.multihmm.patterns import VotePatterns
from chaffinch.models.votes.multihmm.tables import SourceWeights, VoteTables, drop_sources, factors

SILENCES = (1.0, 0.3, 0.1, 0.0)  # candidate weights of silence; of equally good ones the first is chosen


def excess(tables: VoteTables, seen: VotePatterns, prior: Floats) -> Floats:
    """Return (S, S) the share, 0 to 1, of a source's votes that another repeats beyond what labels explain.

    Labels are inferred from the remaining sources, by the prior (K,) of states: a copy would explain itself.
    """
    S, hard = seen.votes.shape[1], replace(seen, soft={})
    logs = factors(tables, SourceWeights(np.ones(S), np.ones(S)), hard)
    said = tables.rates[:, :, None] * tables.confusion
    total = np.sum(logs, axis=0) + np.log(prior)
    spoken = [float(seen.counts[seen.votes[:, k] >= 0].sum()) for k in range(S)]
    out = np.zeros((S, S))
    for k in range(S):
        for other in range(k + 1, S):
            rest = _chances(total - logs[k] - logs[other])
            both = (seen.votes[:, k] >= 0) & (seen.votes[:, k] == seen.votes[:, other])
            expected = float(seen.counts @ (rest @ (said[k] * said[other]).sum(axis=1)))
            more = float(seen.counts[both].sum()) - expected
            for source, copy in ((k, other), (other, k)):
                room = spoken[source] - expected
                out[source, copy] = min(max(more / room, 0.0), 1.0) if room > 0 else float(more > 0)
    return out


def dependence(tables: VoteTables, seen: VotePatterns, prior: Floats) -> Floats:
    """Return (S,) each source's weight: 1 / (1 + excess agreement with others); copies share the weight of one."""
    first, share = copies(seen)
    kept = np.flatnonzero(first == np.arange(len(first)))
    others = np.ones(len(first), np.bool_)
    others[kept] = False
    distinct = replace(seen, votes=seen.votes[:, kept], soft={})
    shared = excess(drop_sources(tables, others), distinct, prior).sum(axis=1)
    return np.asarray(share / (1 + shared[np.searchsorted(kept, first)]))


def copies(seen: VotePatterns) -> tuple[Ints, Floats]:
    """Return (the first source with exactly the same votes, 1 / the number of such sources), (S,) each."""
    firsts: dict[bytes, int] = {}
    first = np.array([firsts.setdefault(column.tobytes(), k) for k, column in enumerate(seen.votes.T)], np.int64)
    return first, 1 / np.bincount(first)[first]


def choose_silence(tables: VoteTables, weights: SourceWeights, seen: VotePatterns, prior: Floats) -> Floats:
    """Return (S,) the weight of each source's silence, from `SILENCES`, that best predicts others' votes.

    Tables were learnt with silence in full, on other documents. The votes of each other source are
    predicted from all except itself, on rows where it is not the only one to vote.
    """
    S, hard = seen.votes.shape[1], replace(seen, soft={})
    logs, likely = factors(tables, weights, hard), _likelihoods(tables, hard)
    total = np.sum(logs, axis=0) + np.log(prior) if S else np.zeros((len(seen.votes), len(prior)))
    speakers = (seen.votes >= 0).sum(axis=1)
    scores = np.zeros((S, len(SILENCES)))
    for k in range(S):
        still = weights.sources[k] * np.log1p(-tables.rates[k])
        for other in range(S):
            rows = (seen.votes[:, k] < 0) & (speakers > (seen.votes[:, other] >= 0))
            if other == k or not rows.any():
                continue
            rest = (total - logs[other])[rows]
            for column, weight in enumerate(SILENCES):
                rest_now = _chances(rest + (weight - weights.silence[k]) * still)
                scores[k, column] += _predictive_log_likelihood(rest_now, likely[other][rows], seen.counts[rows])
    return np.array([SILENCES[column] for column in scores.argmax(axis=1).tolist()])


def prefers_voted_entities(tables: VoteTables, weights: SourceWeights, seen: VotePatterns, prior: Floats) -> bool:
    """Tell whether votes are predicted better if tokens that other sources call entities cannot be O."""
    S, hard = seen.votes.shape[1], replace(seen, soft={})
    logs, likely = factors(tables, weights, hard), _likelihoods(tables, hard)
    gain = 0.0
    for other in range(S):
        rows = (np.delete(seen.votes, other, axis=1) > 0).any(axis=1)
        if not rows.any() or len(prior) < 2:
            continue
        rest = (np.sum(logs, axis=0) - logs[other])[rows] + np.log(prior)
        never = rest.copy()
        never[:, 0] = -np.inf
        counts = seen.counts[rows]
        gain += _predictive_log_likelihood(_chances(never), likely[other][rows], counts)
        gain -= _predictive_log_likelihood(_chances(rest), likely[other][rows], counts)
    return gain > 0


def _likelihoods(tables: VoteTables, seen: VotePatterns) -> list[Floats]:
    """Return, per source, the probability of its vote or silence, by row and state (P, K)."""
    said = np.concatenate([tables.rates[:, :, None] * tables.confusion, 1 - tables.rates[:, :, None]], axis=2)
    return [said[k].T[seen.votes[:, k]] for k in range(len(said))]


def _predictive_log_likelihood(chances: Floats, likely: Floats, counts: Ints) -> float:
    """Return the log-likelihood of votes, `counts` times each row, under mixtures of states' likelihoods."""
    return float(counts @ np.log((chances * likely).sum(axis=1)))


def _chances(logs: Floats) -> Floats:
    """Return each row's softmax; rows must have a finite number."""
    shifted = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))
