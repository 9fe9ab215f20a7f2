"""Maximum likelihood with m-estimates: counting, and Baum-Welch with clamped labels where a path is not unique.

K states, J inner states, C symbols. A pseudo-count is the weight of an m-estimate times its background. Backgrounds are
taken from counts in which copies share equally, before any copy differs from another, and then stay: so each pass of
Baum-Welch raises the likelihood plus the log of that Dirichlet prior.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from chaffinch.kernels import Floats, Ints
from chaffinch.models.phrasehmm.chain import PhraseTables, expected_counts, normalise, select_sentences
from chaffinch.models.phrasehmm.config import PhraseHMM
from chaffinch.models.phrasehmm.encoding import Text, states_to_count
from chaffinch.models.phrasehmm.states import States, log_uniform

POOLED = 50.0  # weight, in words, of the background of all words in that of a label; higher shrinks labels more
INNER_M = 1.0  # weight, in counts, of the uniform prior of moves inside a phrase
NOISE = 0.5  # deviation of the noise on log-probabilities of words, so that copies can move apart
TOLERANCE = 1e-5  # passes end when the relative gain of the objective is less; larger ends them sooner


class PhraseEstimate(NamedTuple):
    """Tables learnt by maximum likelihood, and the objective before each pass."""

    tables: PhraseTables
    trace: Floats


def fit_tables(
    states: States, text: Text, sizes: tuple[int, ...], config: PhraseHMM, rng: np.random.Generator
) -> PhraseEstimate:
    """Return smoothed tables of most likelihood; sentences with a label train the positive model, others the null."""
    allowed = states_to_count(states, text)
    text, active = select_sentences(text, allowed, np.flatnonzero(allowed.possible))
    flat = _uniform_tables(states, sizes)
    _, counts = expected_counts(flat, text, active)
    priors = pseudo_counts(counts, states, config)
    tables = estimate(counts, priors, states)
    if not _ambiguous(states, text, config):
        return PhraseEstimate(tables, np.zeros(0))
    tables = _add_noise(tables, rng)
    trace: list[float] = []
    for _ in range(config.passes):
        log_z, counts = expected_counts(tables, text, active)
        trace.append(float(log_z.sum()) + log_prior(tables, priors))
        tables = estimate(counts, priors, states)
        if len(trace) > 1 and trace[-1] - trace[-2] < TOLERANCE * abs(trace[-2]):
            break
    return PhraseEstimate(tables, np.array(trace))


def _ambiguous(states: States, text: Text, config: PhraseHMM) -> bool:
    """Tell whether some sentence may have more than one path, so that EM is needed."""
    guessed = bool(states.unlabelled_inner) and bool(((text.labels > 0) & (text.inner < 0)).any())
    return config.states > 1 or states.unlabelled_inner > 1 or guessed


def _uniform_tables(states: States, sizes: tuple[int, ...]) -> PhraseTables:
    """Return log tables with equal probabilities for all that is allowed; DataError if no move is."""
    zero = PhraseTables.zeros(states, sizes)
    inner = log_uniform(states.inner_moves()) if states.unlabelled_inner else zero.inner
    return PhraseTables(
        log_uniform(states.moves()), inner, tuple(table - np.log(len(table)) for table in zero.emissions)
    )


def _add_noise(tables: PhraseTables, rng: np.random.Generator) -> PhraseTables:
    """Return the tables with random noise on the log emissions, normalised again."""
    noisy = (table + NOISE * rng.standard_normal(table.shape) for table in tables.emissions)
    return tables._replace(emissions=tuple(normalise(table, 0) for table in noisy))


def estimate(counts: PhraseTables, pseudo: PhraseTables, states: States) -> PhraseTables:
    """Return log tables of counts plus `pseudo`, normalised; sub-models begin in proportion to their sentences."""
    total = counts.plus(pseudo)
    K, begins = states.size, counts.moves[-1, :-1]
    with np.errstate(divide="ignore"):
        logs = [normalise(np.log(table), axis) for table, axis in total.rows()]
        for sub in (0, 1):
            members = np.append(states.sub == sub, False)
            share = begins[states.sub == sub].sum() / begins.sum()
            logs[0][K, members] = normalise(np.log(total.moves[K, members]), 0) + np.log(share)
    return PhraseTables.of_rows(counts, logs)


def pseudo_counts(counts: PhraseTables, states: States, config: PhraseHMM) -> PhraseTables:
    """Return the pseudo-counts that the settings' m-estimates add, in the shapes of the tables."""
    inner = INNER_M * np.exp(log_uniform(states.inner_moves())) if states.unlabelled_inner else counts.inner
    emissions = tuple(
        config.emission_weight * len(table) * _background(table, states, config) for table in counts.emissions
    )
    return PhraseTables(_move_pseudo_counts(counts.moves, states, config), inner, emissions)


def _move_pseudo_counts(moves: Floats, states: States, config: PhraseHMM) -> Floats:
    """Return (K+1, K+1) m times each state's (or the end's) share of moves, among those that may follow."""
    K, allowed = states.size, states.moves()
    out = np.zeros((K + 1, K + 1))
    for sub in (0, 1):
        members = np.append(states.sub == sub, False)
        rates = np.where(members, moves.sum(axis=0), 0.0)
        rates[K] = moves[:K, K][members[:K]].sum()
        for row in [*np.flatnonzero(members), K]:
            may = np.where(allowed[row] & (members | (np.arange(K + 1) == K)), rates, 0.0)
            if may.sum() == 0:
                may = np.where(allowed[row] & members, 1.0, 0.0)
            out[row] += config.transition_weight * np.count_nonzero(members) * may / max(may.sum(), 1e-300)
    return out


def _background(counts: Floats, states: States, config: PhraseHMM) -> Floats:
    """Return (C, K J) each state's prior over symbols: uniform or by count; with shrinkage, pooled by label."""
    C, J = len(counts), states.inner
    if config.background == "uniform":
        base = np.full(C, 1.0 / C)
    else:
        total = np.maximum(counts.sum(axis=1), 1.0)  # a symbol never seen, such as the unknown one, has a chance
        base = total / total.sum()
    if not config.shrinkage:
        return np.repeat(base[:, None], counts.shape[1], axis=1)
    keys = np.stack([np.repeat(states.sub, J), np.repeat(states.label, J), np.tile(np.arange(J), states.size)])
    groups: Ints = np.unique(keys, axis=1, return_inverse=True)[1].reshape(-1)
    pooled = counts @ (groups[:, None] == np.arange(groups.max() + 1))
    return np.asarray((pooled + POOLED * base[:, None]) / (pooled.sum(axis=0) + POOLED))[:, groups]


def log_prior(tables: PhraseTables, pseudo: PhraseTables) -> float:
    """Return the log-density of the tables under their Dirichlet prior, up to a constant."""
    total = 0.0
    for (logs, _), (weight, _) in zip(tables.rows(), pseudo.rows(), strict=True):
        total += float((weight * np.where(weight > 0, logs, 0.0)).sum())
    return total
