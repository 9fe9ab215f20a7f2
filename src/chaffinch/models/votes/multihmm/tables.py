"""The probability tables of a MultiHMM: likelihoods of votes, and the M-step from expected counts.

On a token in state i source k votes with probability `rates[k, i]`. Its vote is then a type, by `types`, and the
position in a span, by `letters`, which all types share (confusion of types apart from that of boundaries); on a
token outside of entities it may vote for anything, by `outside`. A linking rule is right with probability `links`.

S sources, R linking rules, E labels, K states, P distinct rows, T tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from chaffinch.kernels import Floats, Ints
from chaffinch.models.core.labels import Labels
from chaffinch.models.votes.multihmm.patterns import LETTERS, Soft, VotePatterns, state_tags
from chaffinch.models.votes.multihmm.spans import Bools

RIGHT = 0.9  # prior probability that the type and the position of a source's vote are right
FEW = 0.1  # prior counts of a transition, and of a vote on a token outside
STAY = 10.0  # additional prior counts of the transition from O to O
RARE = 0.01  # prior counts of voting and of silence, which keep rates away from 0 and 1
STRAY = 0.01  # prior share of entity votes that are on tokens outside; higher lets EM treat more votes as noise
LINKED = (4.0, 1.0)  # prior counts of right and wrong verdicts of a linking rule: 80 % right


@dataclass(frozen=True, slots=True, eq=False)
class VoteTables:
    """The probabilities of a MultiHMM; every row of a distribution sums to 1."""

    trans: Floats  # (K, K)
    rates: Floats  # (S, K)
    types: Floats  # (S, E, 1 + E) "not an entity", then labels
    letters: Floats  # (S, 4, 4)
    outside: Floats  # (S, K)
    links: Floats  # (R, 2) of its verdicts "together", "apart"

    @property
    def confusion(self) -> Floats:
        """Return (S, K, K) each source's probabilities of votes, if it votes, on a token in each state."""
        S, E = self.types.shape[:2]
        out = np.empty((S, 1 + LETTERS * E, 1 + LETTERS * E))
        out[:, 0] = self.outside
        out[:, 1:, 0] = np.repeat(self.types[:, :, 0], LETTERS, axis=1)
        inner = self.types[:, :, None, 1:, None] * self.letters[:, None, :, None, :]
        out[:, 1:, 1:] = inner.reshape(S, LETTERS * E, LETTERS * E)
        return out


@dataclass(frozen=True, slots=True, eq=False)
class SourceWeights:
    """The weights of votes and of silence, by source."""

    sources: Floats  # (S,) exponent of a source's likelihood
    silence: Floats  # (S,) of its silence, where another votes; 1 in training
    voted_is_entity: bool = False
    reading: bool = False  # True in decoding, after training

    def silent(self, seen: VotePatterns) -> Floats:
        """Return (P, S) the weight of silence by row: 1 where no source votes."""
        return np.where(seen.any_vote[:, None], self.silence, 1.0)


@dataclass(frozen=True, slots=True)
class Belief:
    """Strength of the prior: `certainty` in votes, of types and positions; `trust` in multiples of all votes."""

    certainty: float
    trust: float


@dataclass(frozen=True, slots=True, eq=False)
class VoteCounts:
    """Expected counts: tokens by row and state, transitions, and votes of soft sources."""

    rows: Floats  # (P, K)
    pairs: Floats  # (K, K)
    soft: dict[int, Floats]  # source, (K, K)


def factors(tables: VoteTables, weights: SourceWeights, seen: VotePatterns) -> list[Floats]:
    """Return, per source, the weighted log-likelihood (P, K) of its votes or silence; soft: only that it votes."""
    log_rates, log_silent, log_said = np.log(tables.rates), np.log1p(-tables.rates), np.log(tables.confusion)
    quiet, out = weights.silent(seen), []
    for k in range(seen.votes.shape[1]):
        said = np.concatenate([log_said[k].T, np.zeros((1, len(log_said[k])))])  # the last: silence
        if k in seen.soft:
            said = np.zeros_like(said)
        votes = seen.votes[:, k]
        speaks = (votes >= 0)[:, None]
        logs = np.where(speaks, log_rates[k] + said[votes], quiet[:, k : k + 1] * log_silent[k])
        out.append(weights.sources[k] * logs)
    return out


def link_potentials(tables: VoteTables, seen: VotePatterns) -> Floats:
    """Return the log-likelihood of the verdicts of linking rules, by row and state (P, K)."""
    continues = continuing(len(tables.trans))
    out = np.zeros((len(seen.votes), len(tables.trans)))
    for rule in range(seen.links.shape[1]):
        for verdict, (right, agrees) in enumerate(zip(tables.links[rule], (continues, ~continues), strict=True)):
            out[seen.links[:, rule] == 1 - 2 * verdict] += np.where(agrees, np.log(right), np.log1p(-right))
    return out


def continuing(K: int) -> Bools:
    """Return (K,) which states continue the entity of the token before: I and E."""
    return np.append(False, np.isin(np.arange(K - 1) % LETTERS, (1, 2)))


def potentials(tables: VoteTables, weights: SourceWeights, seen: VotePatterns) -> Floats:
    """Return (P, K) the log-likelihood of each row without soft votes; -inf where a state is impossible."""
    table = link_potentials(tables, seen)
    for factor in factors(tables, weights, seen):
        table += factor
    if weights.voted_is_entity:
        table[seen.voted, 0] = -np.inf
    return table


def soft_potentials(tables: VoteTables, weights: SourceWeights, source: int, soft: Soft) -> Floats:
    """Return the log-likelihood of the votes of a soft source on its tokens (n, K)."""
    return np.asarray(weights.sources[source] * np.log(soft.chances @ _confusion_by_tag(tables.confusion[source]).T))


def soft_counts(tables: VoteTables, source: int, soft: Soft, chances: Floats) -> Floats:
    """Return the expected votes of a soft source (K, K), given the probabilities of states (n, K)."""
    said = tables.confusion[source]
    by_tag = _confusion_by_tag(said)
    share = chances / (soft.chances @ by_tag.T)
    expected = (share.T @ soft.chances) * by_tag  # (K, 1 + 2 E)
    which = state_tags(len(tables.types[source]))
    return np.asarray(said * (expected / by_tag)[:, which])


def _confusion_by_tag(said: Floats) -> Floats:
    """Return the confusion (K, K) with votes summed by IOB2 tag (K, 1 + 2 E)."""
    which = state_tags((len(said) - 1) // LETTERS)
    return np.asarray(said @ (which[:, None] == np.arange(which.max() + 1)))


def maximise(counts: VoteCounts, seen: VotePatterns, labels: Labels, belief: Belief) -> VoteTables:
    """Return the tables of highest posterior, given expected counts and the prior belief."""
    K, E, S = len(labels.tags), len(labels.names), seen.votes.shape[1]
    stray, total = stray_counts(seen, K, belief), counts.rows.sum(axis=0)
    rates, types, letters = np.empty((S, K)), np.empty((S, E, 1 + E)), np.empty((S, LETTERS, LETTERS))
    outside = np.empty((S, K))
    for k in range(S):
        votes = seen.votes[:, k]
        speaks = votes >= 0
        said = np.zeros((K, K))
        np.add.at(said, votes[speaks], counts.rows[speaks])
        spoken = said.sum(axis=0)
        spoken, still = spoken + RARE, np.maximum(total - spoken, 0.0) + RARE
        spoken[0] += stray[k].sum()
        still[0] += belief.trust * seen.counts.sum() - stray[k].sum()
        rates[k] = spoken / (spoken + still)
        said = counts.soft.get(k, said.T)
        inner = said[1:, 1:].reshape(E, LETTERS, E, LETTERS)
        whether = said[1:, 0].reshape(E, LETTERS).sum(axis=1)
        types[k] = np.concatenate([whether[:, None], inner.sum(axis=(1, 3))], axis=1)
        letters[k] = inner.sum(axis=(0, 2))
        outside[k] = said[0]
    types += belief.certainty * _mostly_right(E + 1)[1:]
    letters += belief.certainty * _mostly_right(LETTERS)
    return VoteTables(
        _shares(counts.pairs + _trans_prior(labels)), rates, _shares(types), _shares(letters),
        _shares(outside + stray + FEW), _links(counts, seen, K),
    )  # fmt: skip


def stray_counts(seen: VotePatterns, K: int, belief: Belief) -> Floats:
    """Return (S, K) prior counts of votes on tokens outside: `trust` times all O votes, and a small share of others.

    Without them EM can treat as noise what only a single source says.
    """
    out = np.zeros((seen.votes.shape[1], K))
    for k, votes in enumerate(seen.votes.T.astype(np.int64)):
        out[k] = np.bincount(votes + 1, seen.counts, K + 1)[1:]
    return np.asarray(belief.trust * out * np.where(np.arange(K) > 0, STRAY, 1.0))


def log_prior(tables: VoteTables, weights: SourceWeights, seen: VotePatterns, labels: Labels, belief: Belief) -> float:
    """Return the log prior of the tables up to a constant; that of a source is times the source's weight."""
    valid = labels.follows[: len(labels.tags)]
    E = len(labels.names)
    by_source = RARE * (np.log(tables.rates) + np.log1p(-tables.rates)).sum(axis=1)
    by_source = by_source + belief.certainty * (_mostly_right(E + 1)[1:] * np.log(tables.types)).sum(axis=(1, 2))
    by_source = by_source + belief.certainty * (_mostly_right(LETTERS) * np.log(tables.letters)).sum(axis=(1, 2))
    stray = stray_counts(seen, len(labels.tags), belief)
    by_source = by_source + ((FEW + stray) * np.log(tables.outside)).sum(axis=1)
    spoken = stray.sum(axis=1)
    by_source = by_source + spoken * np.log(tables.rates[:, 0])
    by_source = by_source + (belief.trust * seen.counts.sum() - spoken) * np.log1p(-tables.rates[:, 0])
    chain = float((_trans_prior(labels)[valid] * np.log(tables.trans[valid])).sum())
    links = float((LINKED[0] * np.log(tables.links) + LINKED[1] * np.log1p(-tables.links)).sum())
    return chain + links + float(weights.sources @ by_source)


def drop_sources(tables: VoteTables, silent: Bools) -> VoteTables:
    """Return the tables without the sources that are marked `silent` (S,)."""
    names = ("rates", "types", "letters", "outside")
    return replace(tables, **{name: getattr(tables, name)[~silent] for name in names})


def first_counts(states: Ints, seen: VotePatterns, bounds: Ints, K: int) -> VoteCounts:
    """Return the counts of votes, moves and soft votes as if these states (T,) were the truth."""
    before = np.append(0, states[:-1])[: len(states)]
    before[bounds[:-1][bounds[:-1] < len(states)]] = 0
    soft = {
        k: _count_pairs(states[soft.tokens], seen.votes[seen.rows[soft.tokens], k], (K, K))
        for k, soft in seen.soft.items()
    }
    return VoteCounts(_count_pairs(seen.rows, states, (len(seen.votes), K)), _count_pairs(before, states, (K, K)), soft)


def _count_pairs(rows: Ints, columns: Ints, shape: tuple[int, int]) -> Floats:
    """Return how often each pair of a row number and a column number occurs, as an array of `shape`."""
    return np.bincount(rows * shape[1] + columns, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)


def _trans_prior(labels: Labels) -> Floats:
    """Return (K, K) prior counts of transitions: a few for each possible one, more for staying outside."""
    K = len(labels.tags)
    prior = np.where(labels.follows[:K], FEW, 0.0)
    prior[0, 0] += STAY
    return prior


def _mostly_right(size: int) -> Floats:
    """Return (size, size) rows that sum to 1, with `RIGHT` on the diagonal, the rest shared equally."""
    return np.where(np.eye(size) > 0, RIGHT, (1 - RIGHT) / max(size - 1, 1))


def _links(counts: VoteCounts, seen: VotePatterns, K: int) -> Floats:
    """Return (R, 2) how often linking rules' verdicts, together and apart, agree with expected states, smoothed."""
    continues = continuing(K)
    out = np.empty((seen.links.shape[1], 2))
    for rule in range(len(out)):
        for verdict, agrees in enumerate((continues, ~continues)):
            mass = counts.rows[seen.links[:, rule] == 1 - 2 * verdict].sum(axis=0)
            out[rule, verdict] = (mass[agrees].sum() + LINKED[0]) / (mass.sum() + sum(LINKED))
    return out


def _shares(counts: Floats) -> Floats:
    """Return counts divided by their sum over the last axis, which must not be 0."""
    return np.asarray(counts / counts.sum(axis=-1, keepdims=True))
