"""How much each source counts, found without gold: for its dependence on others, and for its silence.

S sources, K states, P distinct rows of votes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from chaffinch.kernels import Floats, Ints
from chaffinch.models.votes.multihmm.patterns import VotePatterns
from chaffinch.models.votes.multihmm.tables import SourceWeights, VoteTables, factors, without

SILENCES = (1.0, 0.3, 0.1, 0.0)  # of equal ones the first is chosen


def excess(tables: VoteTables, seen: VotePatterns, prior: Floats) -> Floats:
    """(S, S) the share of a source's votes that another repeats beyond what labels explain, from 0 to 1.

    Labels are inferred from the remaining sources, by the prior (K,) of states: a copy would explain itself.
    """
    S, hard = seen.votes.shape[1], replace(seen, soft={})
    own = factors(tables, SourceWeights(np.ones(S), np.ones(S)), hard)
    said = tables.rates[:, :, None] * tables.confusion
    all_of_them = np.sum(own, axis=0) + np.log(prior)
    spoken = [float(seen.counts[seen.votes[:, k] >= 0].sum()) for k in range(S)]
    out = np.zeros((S, S))
    for k in range(S):
        for other in range(k + 1, S):
            rest = _chances(all_of_them - own[k] - own[other])
            both = (seen.votes[:, k] >= 0) & (seen.votes[:, k] == seen.votes[:, other])
            expected = float(seen.counts @ (rest @ (said[k] * said[other]).sum(axis=1)))
            more = float(seen.counts[both].sum()) - expected
            for one, two in ((k, other), (other, k)):
                room = spoken[one] - expected
                out[one, two] = min(max(more / room, 0.0), 1.0) if room > 0 else float(more > 0)
    return out


def dependence(tables: VoteTables, seen: VotePatterns, prior: Floats) -> Floats:
    """(S,) the weight of each source: 1 / (1 + its excess agreement with others); copies share the weight of one."""
    first, share = copies(seen)
    kept = np.flatnonzero(first == np.arange(len(first)))
    others = np.ones(len(first), np.bool_)
    others[kept] = False
    own = replace(seen, votes=seen.votes[:, kept], soft={})
    shared = excess(without(tables, others), own, prior).sum(axis=1)
    return np.asarray(share / (1 + shared[np.searchsorted(kept, first)]))


def copies(seen: VotePatterns) -> tuple[Ints, Floats]:
    """(S,) the first source that says exactly the same, and 1 / the number of those that do."""
    firsts: dict[bytes, int] = {}
    first = np.array([firsts.setdefault(own.tobytes(), k) for k, own in enumerate(seen.votes.T)], np.int64)
    return first, 1 / np.bincount(first)[first]


def silence(tables: VoteTables, weights: SourceWeights, seen: VotePatterns, prior: Floats) -> Floats:
    """(S,) the weight of each source's silence with which votes of others are foretold best.

    Tables were learnt with silence in full, on other documents than those seen. The votes of each other source are
    foretold from all but itself, on rows where it is not the only one to speak.
    """
    S, hard = seen.votes.shape[1], replace(seen, soft={})
    own, likely = factors(tables, weights, hard), _likelihoods(tables, hard)
    all_of_them = np.sum(own, axis=0) + np.log(prior) if S else np.zeros((len(seen.votes), len(prior)))
    speakers = (seen.votes >= 0).sum(axis=1)
    scores = np.zeros((S, len(SILENCES)))
    for k in range(S):
        still = weights.sources[k] * np.log1p(-tables.rates[k])
        for other in range(S):
            rows = (seen.votes[:, k] < 0) & (speakers > (seen.votes[:, other] >= 0))
            if other == k or not rows.any():
                continue
            rest = (all_of_them - own[other])[rows]
            for place, weight in enumerate(SILENCES):
                rest_now = _chances(rest + (weight - weights.silence[k]) * still)
                scores[k, place] += _foretold(rest_now, likely[other][rows], seen.counts[rows])
    return np.array([SILENCES[place] for place in scores.argmax(axis=1).tolist()])


def voted_is_entity(tables: VoteTables, weights: SourceWeights, seen: VotePatterns, prior: Floats) -> bool:
    """Are votes of each source foretold better if tokens that others call entities cannot be O?"""
    S, hard = seen.votes.shape[1], replace(seen, soft={})
    own, likely = factors(tables, weights, hard), _likelihoods(tables, hard)
    gain = 0.0
    for other in range(S):
        rows = (np.delete(seen.votes, other, axis=1) > 0).any(axis=1)
        if not rows.any() or len(prior) < 2:
            continue
        rest = (np.sum(own, axis=0) - own[other])[rows] + np.log(prior)
        never = rest.copy()
        never[:, 0] = -np.inf
        counts = seen.counts[rows]
        gain += _foretold(_chances(never), likely[other][rows], counts)
        gain -= _foretold(_chances(rest), likely[other][rows], counts)
    return gain > 0


def _likelihoods(tables: VoteTables, seen: VotePatterns) -> list[Floats]:
    """(P, K) for each source: the probability of what it says, silence too."""
    said = np.concatenate([tables.rates[:, :, None] * tables.confusion, 1 - tables.rates[:, :, None]], axis=2)
    return [said[k].T[seen.votes[:, k]] for k in range(len(said))]


def _foretold(chances: Floats, likely: Floats, counts: Ints) -> float:
    return float(counts @ np.log((chances * likely).sum(axis=1)))


def _chances(logs: Floats) -> Floats:
    shifted = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))
