"""The HMM of many sources: votes to labels, by how often each source speaks and what it then says.

It is learnt by EM from votes alone, and begins from a vote on spans. States and votes tell first, inner, last and
single tokens apart; a firm prior holds that few votes are on tokens outside of entities. EM counts silence in full;
silence is tempered in reading alone, where another source speaks (else any token might as well be an entity), and only
if asked for: on the validation documents of three corpora, weights chosen on held-out documents were never better, and
on one of them worse. A token that no source calls an entity is read as O, unless a linking rule speaks of it.

T tokens, S sources, K states.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from chaffinch.errors import DataError
from chaffinch.kernels import Floats, forward_backward
from chaffinch.models.core.training import Progress, Watcher
from chaffinch.models.votes.matrix import VoteMatrix
from chaffinch.models.votes.multihmm import weights as multihmm_weights
from chaffinch.models.votes.multihmm.chains import Chains, Stretches
from chaffinch.models.votes.multihmm.config import HELD_OUT, MultiHMM
from chaffinch.models.votes.multihmm.estimates import estimates
from chaffinch.models.votes.multihmm.model import Model, Result
from chaffinch.models.votes.multihmm.patterns import LETTERS, VotePatterns, fine, joined, observe, states
from chaffinch.models.votes.multihmm.spans import candidates, settle
from chaffinch.models.votes.multihmm.tables import (
    Belief,
    SourceWeights,
    VoteCounts,
    VoteTables,
    first_counts,
    log_prior,
    maximise,
    soft_counts,
)

__all__ = ["Model", "MultiHMM", "Result", "estimates", "fit"]

EARLY = 1  # passes before the dependence of sources is estimated
TRIAL = 5  # passes on half the documents, before the other half chooses the weight of silence


def fit(vote_matrix: VoteMatrix, config: MultiHMM | None = None, *, watcher: Watcher | None = None) -> Model:
    """The model of votes; sources that never speak are dropped with a warning. An interrupt ends learning."""
    config, watcher = config or MultiHMM(), watcher or Watcher()
    unknown = [name for name in config.negative_reliable if name not in vote_matrix.sources]
    if unknown:
        raise DataError(
            f"negative_reliable names {unknown[0]!r}; there is {', '.join(vote_matrix.sources) or 'no source'}"
        )
    silent = [name for k, name in enumerate(vote_matrix.sources) if not (vote_matrix.codes[:, k] >= 0).any()]
    if silent:
        warnings.warn(f"sources that never speak are left out: {', '.join(silent)}", stacklevel=2)
        vote_matrix = vote_matrix.choose([name for name in vote_matrix.sources if name not in silent])
    model = _learnt(vote_matrix, config, watcher)
    return replace(model, weights=_for_reading(model, vote_matrix))


def _for_reading(model: Model, vote_matrix: VoteMatrix) -> SourceWeights:
    """The weights of a learnt model with those of silence, as they were chosen or as held-out documents choose."""
    config, S = model.config, len(model.sources)
    given = np.ones(S) if config.silence == HELD_OUT else np.full(S, float(config.silence))
    voted = config.voted_is_entity is True
    if HELD_OUT in (config.silence, config.voted_is_entity):
        documents = np.arange(len(vote_matrix.documents) - 1)
        halves = (documents[::2], documents[1::2]) if len(documents) > 1 else (documents, documents)
        trial = _learnt(vote_matrix.part(halves[0]), replace(config, passes=TRIAL), Watcher())
        seen, prior = observe(vote_matrix.part(halves[1])), _prior(trial.tables.trans)
        if config.silence == HELD_OUT:
            given = multihmm_weights.silence(trial.tables, trial.weights, seen, prior)
        if config.voted_is_entity == HELD_OUT:
            weights = replace(trial.weights, silence=given)
            voted = multihmm_weights.voted_is_entity(trial.tables, weights, seen, prior)
    given[[name in config.negative_reliable for name in model.sources]] = 1.0
    return replace(model.weights, silence=given, voted_is_entity=voted, reading=True)


def _learnt(vote_matrix: VoteMatrix, config: MultiHMM, watcher: Watcher) -> Model:
    """The model after all passes, or after those before an interrupt."""
    labels, seen, trace = states(vote_matrix.names), observe(vote_matrix), []
    S, own, belief = len(vote_matrix.sources), vote_matrix, Belief(config.certainty, config.trust)
    weights = SourceWeights(np.ones(S), np.ones(S))
    if config.dependence:
        first, share = multihmm_weights.copies(seen)
        weights = replace(weights, sources=share)
        own = vote_matrix.choose([name for k, name in enumerate(vote_matrix.sources) if first[k] == k])
    tables, stretches = (
        maximise(_begun(own, vote_matrix, seen), seen, labels, belief),
        Stretches.of(weights, vote_matrix, seen),
    )
    try:
        for done in range(config.passes):
            counts, likely = _expected(Chains.of(tables, weights, vote_matrix, seen, stretches), tables, seen)
            if done >= EARLY:
                trace.append(likely + log_prior(tables, weights, seen, labels, belief))
            tables = maximise(counts, seen, labels, belief)
            if config.dependence and done == EARLY - 1:
                weights = replace(weights, sources=multihmm_weights.dependence(tables, seen, _occupied(counts)))
            if watcher.tell is not None:
                watcher.tell(Progress("votes", done + 1, config.passes, -likely / max(len(vote_matrix), 1)))
    except KeyboardInterrupt:
        watcher.interrupted = True
    return Model(config, vote_matrix.names, vote_matrix.sources, vote_matrix.rules, tables, weights, np.array(trace))


def _begun(own: VoteMatrix, vote_matrix: VoteMatrix, seen: VotePatterns) -> VoteCounts:
    """The counts of a vote on spans by sources of their own; where two labels have as many votes, half of each."""
    K, spans, parts = 1 + LETTERS * len(vote_matrix.names), candidates(own), []
    for last in (False, True):
        tags = joined(settle(spans, longest=False, last_label=last).tags(len(vote_matrix)), vote_matrix)
        parts.append(first_counts(fine(tags, vote_matrix.bounds), seen, vote_matrix.bounds, K))
    one, two = parts
    soft = {k: (one.soft[k] + two.soft[k]) / 2 for k in one.soft}
    return VoteCounts((one.rows + two.rows) / 2, (one.pairs + two.pairs) / 2, soft)


def _expected(own: Chains, tables: VoteTables, seen: VotePatterns) -> tuple[VoteCounts, float]:
    """What the tables expect, given the votes, and the log-likelihood."""
    post = forward_backward(own.batch)
    rows, pairs = seen.by_row(post.states, own.tokens), post.pairs.copy()
    rows[:, 0] += np.bincount(seen.rows[own.outside], minlength=len(rows))
    pairs[0] += post.states[own.batch.bounds[:-1]].sum(axis=0)
    pairs[0, 0] += len(own.outside)
    soft = {
        k: soft_counts(tables, k, said, post.states[np.searchsorted(own.tokens, said.tokens)])
        for k, said in seen.soft.items()
    }
    return VoteCounts(rows, pairs, soft), float(post.log_z.sum() + own.sure.sum())


def _occupied(counts: VoteCounts) -> Floats:
    """(K,) the share of tokens in each state."""
    mass = counts.rows.sum(axis=0) + 1
    return np.asarray(mass / mass.sum())


def _prior(trans: Floats) -> Floats:
    """(K,) the share of tokens in each state after very many."""
    out = np.full(len(trans), 1 / len(trans))
    for _ in range(200):
        out = out @ (0.5 * trans + 0.5 * np.eye(len(trans)))
    return np.asarray(out / out.sum())
