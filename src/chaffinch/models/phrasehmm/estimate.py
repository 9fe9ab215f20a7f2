"""Maximum likelihood with m-estimates: counting, and Baum-Welch with clamped labels where a path is not unique.

K states, J inner states, C symbols. A pseudo-count is the weight of an m-estimate times its background. Backgrounds are
taken from counts in which copies share alike, before any copy differs from another, and then stay: so each pass of
Baum-Welch raises the likelihood plus the log of that Dirichlet prior.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from chaffinch.kernels import Floats, Ints
from chaffinch.models.phrasehmm.chain import PhraseTables, chosen, expected, normalised
from chaffinch.models.phrasehmm.config import PhraseHMM
from chaffinch.models.phrasehmm.encoding import Text, counted
from chaffinch.models.phrasehmm.states import States, log_uniform

POOLED = 50.0  # weight of the background of all words in the words of a label
INNER_M = 1.0  # weight of equal chances for moves inside a phrase
NOISE = 0.5  # by which copies differ in the beginning
TOLERANCE = 1e-5  # passes end when what they climb gains less, relatively


class PhraseEstimate(NamedTuple):
    """Tables learnt by maximum likelihood, and what was climbed before each pass."""

    tables: PhraseTables
    trace: Floats


def maximum(
    states: States, text: Text, sizes: tuple[int, ...], config: PhraseHMM, rng: np.random.Generator
) -> PhraseEstimate:
    """The tables of most likelihood, smoothed; positive sentences teach the positive model, others the null model."""
    allowed = counted(states, text)
    text, active = chosen(text, allowed, np.flatnonzero(allowed.possible))
    flat = _equal(states, sizes)
    _, counts = expected(flat, text, active)
    priors = pseudo_counts(counts, states, config)
    tables = estimate(counts, priors, states)
    if not _ambiguous(states, text, config):
        return PhraseEstimate(tables, np.zeros(0))
    tables = _noisy(tables, rng)
    trace: list[float] = []
    for _ in range(config.passes):
        log_z, counts = expected(tables, text, active)
        trace.append(float(log_z.sum()) + log_prior(tables, priors))
        tables = estimate(counts, priors, states)
        if len(trace) > 1 and trace[-1] - trace[-2] < TOLERANCE * abs(trace[-2]):
            break
    return PhraseEstimate(tables, np.array(trace))


def _ambiguous(states: States, text: Text, config: PhraseHMM) -> bool:
    """Whether more than one path may have made some sentence."""
    guessed = bool(states.unlabelled_inner) and bool(((text.labels > 0) & (text.inner < 0)).any())
    return config.states > 1 or states.unlabelled_inner > 1 or guessed


def _equal(states: States, sizes: tuple[int, ...]) -> PhraseTables:
    """Equal chances everywhere."""
    zero = PhraseTables.zeros(states, sizes)
    inner = log_uniform(states.inner_moves()) if states.unlabelled_inner else zero.inner
    return PhraseTables(log_uniform(states.moves()), inner, tuple(own - np.log(len(own)) for own in zero.emissions))


def _noisy(tables: PhraseTables, rng: np.random.Generator) -> PhraseTables:
    made = (own + NOISE * rng.standard_normal(own.shape) for own in tables.emissions)
    return tables._replace(emissions=tuple(normalised(own, 0) for own in made))


def estimate(counts: PhraseTables, pseudo: PhraseTables, states: States) -> PhraseTables:
    """Logs of (count + pseudo-count) over their sum; sub-models begin sentences in proportion to their sentences."""
    total = counts.plus(pseudo)
    K, begins = states.size, counts.moves[-1, :-1]
    with np.errstate(divide="ignore"):
        logs = [normalised(np.log(own), axis) for own, axis in total.rows()]
        for sub in (0, 1):
            own = np.append(states.sub == sub, False)
            share = begins[states.sub == sub].sum() / begins.sum()
            logs[0][K, own] = normalised(np.log(total.moves[K, own]), 0) + np.log(share)
    return PhraseTables.of_rows(counts, logs)


def pseudo_counts(counts: PhraseTables, states: States, config: PhraseHMM) -> PhraseTables:
    """What each m-estimate adds to the counts."""
    inner = INNER_M * np.exp(log_uniform(states.inner_moves())) if states.unlabelled_inner else counts.inner
    emissions = tuple(config.emission_weight * len(own) * _background(own, states, config) for own in counts.emissions)
    return PhraseTables(_entering(counts.moves, states, config), inner, emissions)


def _entering(moves: Floats, states: States, config: PhraseHMM) -> Floats:
    """(K+1, K+1) m times the relative frequency of entering each state, or the end, among those that may follow."""
    K, allowed = states.size, states.moves()
    out = np.zeros((K + 1, K + 1))
    for sub in (0, 1):
        own = np.append(states.sub == sub, False)
        rates = np.where(own, moves.sum(axis=0), 0.0)
        rates[K] = moves[:K, K][own[:K]].sum()
        for row in [*np.flatnonzero(own), K]:
            may = np.where(allowed[row] & (own | (np.arange(K + 1) == K)), rates, 0.0)
            if may.sum() == 0:
                may = np.where(allowed[row] & own, 1.0, 0.0)
            out[row] += config.transition_weight * np.count_nonzero(own) * may / max(may.sum(), 1e-300)
    return out


def _background(counts: Floats, states: States, config: PhraseHMM) -> Floats:
    """(C, K J) what the words of each state are drawn towards: all words, or with shrinkage those of its label."""
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
    """The log-density of the tables under their Dirichlet prior, but for a constant."""
    total = 0.0
    for (logs, _), (weight, _) in zip(tables.rows(), pseudo.rows(), strict=True):
        total += float((weight * np.where(weight > 0, logs, 0.0)).sum())
    return total
