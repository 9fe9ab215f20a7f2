"""Training of a MultiHMM, which aggregates votes by how often each source votes and what it then votes for.

It is learnt by EM from votes alone, and begins from a vote on spans. States and votes distinguish first, inner, last
and single tokens; a strong prior says that few votes are on tokens outside of entities. EM counts silence in full;
silence is only tempered in decoding, where another source votes (otherwise any token could be an entity), and only
if asked for: on the validation documents of three corpora, weights chosen on held-out documents were never better, and
on one of them worse. A token that no source calls an entity is decoded as O, unless a linking rule votes on it.

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
from chaffinch.models.votes.multihmm.model import Model, VotePosterior
from chaffinch.models.votes.multihmm.patterns import (
    LETTERS,
    VotePatterns,
    join_linked_spans,
    observe,
    states,
    tags_to_states,
)
from chaffinch.models.votes.multihmm.spans import candidates, resolve_overlaps
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

__all__ = ["Model", "MultiHMM", "VotePosterior", "estimates", "fit"]

EARLY = 1  # passes before the dependence of sources is estimated; until then only exact copies share a weight
TRIAL = 5  # passes on half the documents, before the other half chooses the weight of silence; the default of `passes`


def fit(vote_matrix: VoteMatrix, config: MultiHMM | None = None, *, watcher: Watcher | None = None) -> Model:
    """Return a model learnt from votes; a warning lists silent sources, left out; DataError: unknown reliable one."""
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
    model = _learn(vote_matrix, config, watcher)
    return replace(model, weights=_decoding_weights(model, vote_matrix))


def _decoding_weights(model: Model, vote_matrix: VoteMatrix) -> SourceWeights:
    """Return the model's weights for decoding: of silence, and if votes rule O out, as set or by held-out documents."""
    config, S = model.config, len(model.sources)
    silence = np.ones(S) if config.silence == HELD_OUT else np.full(S, float(config.silence))
    voted = config.voted_is_entity is True
    if HELD_OUT in (config.silence, config.voted_is_entity):
        documents = np.arange(len(vote_matrix.documents) - 1)
        halves = (documents[::2], documents[1::2]) if len(documents) > 1 else (documents, documents)
        trial = _learn(vote_matrix.part(halves[0]), replace(config, passes=TRIAL), Watcher())
        seen, prior = observe(vote_matrix.part(halves[1])), _stationary(trial.tables.trans)
        if config.silence == HELD_OUT:
            silence = multihmm_weights.choose_silence(trial.tables, trial.weights, seen, prior)
        if config.voted_is_entity == HELD_OUT:
            weights = replace(trial.weights, silence=silence)
            voted = multihmm_weights.prefers_voted_entities(trial.tables, weights, seen, prior)
    silence[[name in config.negative_reliable for name in model.sources]] = 1.0
    return replace(model.weights, silence=silence, voted_is_entity=voted, reading=True)


def _learn(vote_matrix: VoteMatrix, config: MultiHMM, watcher: Watcher) -> Model:
    """Return the model learnt by EM, after all passes, or after those before an interrupt, which is noted."""
    labels, seen, trace = states(vote_matrix.names), observe(vote_matrix), []
    S, distinct, belief = len(vote_matrix.sources), vote_matrix, Belief(config.certainty, config.trust)
    weights = SourceWeights(np.ones(S), np.ones(S))
    if config.dependence:
        first, share = multihmm_weights.copies(seen)
        weights = replace(weights, sources=share)
        distinct = vote_matrix.choose([name for k, name in enumerate(vote_matrix.sources) if first[k] == k])
    tables, stretches = (
        maximise(_initial_counts(distinct, vote_matrix, seen), seen, labels, belief),
        Stretches.of(weights, vote_matrix, seen),
    )
    try:
        for done in range(config.passes):
            counts, likely = _expected_counts(Chains.of(tables, weights, vote_matrix, seen, stretches), tables, seen)
            if done >= EARLY:
                trace.append(likely + log_prior(tables, weights, seen, labels, belief))
            tables = maximise(counts, seen, labels, belief)
            if config.dependence and done == EARLY - 1:
                weights = replace(weights, sources=multihmm_weights.dependence(tables, seen, _state_shares(counts)))
            if watcher.tell is not None:
                watcher.tell(Progress("votes", done + 1, config.passes, -likely / max(len(vote_matrix), 1)))
    except KeyboardInterrupt:
        watcher.interrupted = True
    return Model(config, vote_matrix.names, vote_matrix.sources, vote_matrix.rules, tables, weights, np.array(trace))


def _initial_counts(distinct: VoteMatrix, vote_matrix: VoteMatrix, seen: VotePatterns) -> VoteCounts:
    """Return counts as if spans with most votes of distinct sources were the truth; equal labels get half each."""
    K, spans, parts = 1 + LETTERS * len(vote_matrix.names), candidates(distinct), []
    for last in (False, True):
        tags = join_linked_spans(
            resolve_overlaps(spans, longest=False, last_label=last).tags(len(vote_matrix)), vote_matrix
        )
        parts.append(first_counts(tags_to_states(tags, vote_matrix.bounds), seen, vote_matrix.bounds, K))
    low, high = parts
    soft = {k: (low.soft[k] + high.soft[k]) / 2 for k in low.soft}
    return VoteCounts((low.rows + high.rows) / 2, (low.pairs + high.pairs) / 2, soft)


def _expected_counts(chains: Chains, tables: VoteTables, seen: VotePatterns) -> tuple[VoteCounts, float]:
    """Return (expected counts of rows, moves and soft votes under the tables; the log-likelihood)."""
    post = forward_backward(chains.batch)
    rows, pairs = seen.by_row(post.states, chains.tokens), post.pairs.copy()
    rows[:, 0] += np.bincount(seen.rows[chains.outside], minlength=len(rows))
    pairs[0] += post.states[chains.batch.bounds[:-1]].sum(axis=0)
    pairs[0, 0] += len(chains.outside)
    soft = {
        k: soft_counts(tables, k, said, post.states[np.searchsorted(chains.tokens, said.tokens)])
        for k, said in seen.soft.items()
    }
    return VoteCounts(rows, pairs, soft), float(post.log_z.sum() + chains.sure.sum())


def _state_shares(counts: VoteCounts) -> Floats:
    """Return (K,) the share of tokens in each state, by counts plus 1."""
    mass = counts.rows.sum(axis=0) + 1
    return np.asarray(mass / mass.sum())


def _stationary(trans: Floats) -> Floats:
    """Return (K,) the stationary distribution of the transitions, approximately, after 200 lazy steps."""
    out = np.full(len(trans), 1 / len(trans))
    for _ in range(200):
        out = out @ (0.5 * trans + 0.5 * np.eye(len(trans)))
    return np.asarray(out / out.sum())
