"""The tables of an HMM of many sources: what it says of votes, and how expected counts renew them.

Of a token in state i source k speaks with probability `rates[k, i]`. What it then says is a type, by `types`, and the
place in a span, by `letters`, which all types share (confusion of types apart from that of boundaries); of a
token outside of entities it says anything, by `outside`. A linking rule is right with probability `links`.

S sources, R linking rules, E labels, K states, P distinct rows, T tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from chaffinch.kernels import Floats, Ints
from chaffinch.models.core.labels import Labels
from chaffinch.models.votes.multihmm.patterns import LETTERS, Soft, VotePatterns, coarse
from chaffinch.models.votes.multihmm.spans import Bools

RIGHT = 0.9  # what the prior thinks of a source: its types and places are right
FEW = 0.1  # prior counts of a transition, and of a vote on a token outside
STAY = 10.0  # more of them for staying outside
RARE = 0.01  # prior counts of speaking and of silence
STRAY = 0.01  # the share of votes for entities that the prior thinks to be on tokens outside
LINKED = (4.0, 1.0)  # prior counts of linking rules being right and wrong


@dataclass(frozen=True, slots=True, eq=False)
class VoteTables:
    """Probabilities; every row sums to 1."""

    trans: Floats  # (K, K)
    rates: Floats  # (S, K)
    types: Floats  # (S, E, 1 + E) "not an entity", then labels
    letters: Floats  # (S, 4, 4)
    outside: Floats  # (S, K)
    links: Floats  # (R, 2) of its words "together", "apart"

    @property
    def confusion(self) -> Floats:
        """(S, K, K) what a source that speaks says of a token in a state."""
        S, E = self.types.shape[:2]
        out = np.empty((S, 1 + LETTERS * E, 1 + LETTERS * E))
        out[:, 0] = self.outside
        out[:, 1:, 0] = np.repeat(self.types[:, :, 0], LETTERS, axis=1)
        inner = self.types[:, :, None, 1:, None] * self.letters[:, None, :, None, :]
        out[:, 1:, 1:] = inner.reshape(S, LETTERS * E, LETTERS * E)
        return out


@dataclass(frozen=True, slots=True, eq=False)
class SourceWeights:
    """How much what sources say counts."""

    sources: Floats  # (S,) exponent of a source's likelihood
    silence: Floats  # (S,) of its silence, where another speaks; 1 in learning
    voted_is_entity: bool = False
    reading: bool = False  # after learning

    def silent(self, seen: VotePatterns) -> Floats:
        """(P, S) the weight of silence by row."""
        return np.where(seen.spoken[:, None], self.silence, 1.0)


@dataclass(frozen=True, slots=True)
class Belief:
    """How firm the prior is: in votes, of types and places; in times all votes, of votes on tokens outside."""

    certainty: float
    trust: float


@dataclass(frozen=True, slots=True, eq=False)
class VoteCounts:
    """What was expected: tokens by row and state, moves, and what softly speaking sources said."""

    rows: Floats  # (P, K)
    pairs: Floats  # (K, K)
    soft: dict[int, Floats]  # source, (K, K)


def factors(tables: VoteTables, weights: SourceWeights, seen: VotePatterns) -> list[Floats]:
    """(P, K) for each source: the weighted log-likelihood of what it says; of a soft vote, that it speaks at all."""
    log_rates, log_silent, log_said = np.log(tables.rates), np.log1p(-tables.rates), np.log(tables.confusion)
    quiet, out = weights.silent(seen), []
    for k in range(seen.votes.shape[1]):
        said = np.concatenate([log_said[k].T, np.zeros((1, len(log_said[k])))])  # the last: silence
        if k in seen.soft:
            said = np.zeros_like(said)
        votes = seen.votes[:, k]
        speaks = (votes >= 0)[:, None]
        own = np.where(speaks, log_rates[k] + said[votes], quiet[:, k : k + 1] * log_silent[k])
        out.append(weights.sources[k] * own)
    return out


def linked(tables: VoteTables, seen: VotePatterns) -> Floats:
    """(P, K) the log-likelihood of the words of linking rules: of going on with an entity, and of not."""
    goes_on = continuing(len(tables.trans))
    out = np.zeros((len(seen.votes), len(tables.trans)))
    for rule in range(seen.links.shape[1]):
        for word, (right, agrees) in enumerate(zip(tables.links[rule], (goes_on, ~goes_on), strict=True)):
            out[seen.links[:, rule] == 1 - 2 * word] += np.where(agrees, np.log(right), np.log1p(-right))
    return out


def continuing(K: int) -> Bools:
    """(K,) the states that go on with the entity of the token before."""
    return np.append(False, np.isin(np.arange(K - 1) % LETTERS, (1, 2)))


def potentials(tables: VoteTables, weights: SourceWeights, seen: VotePatterns) -> Floats:
    """(P, K) the log-likelihood of all that is said in each row, but for soft votes; `-inf` where it may not be."""
    table = linked(tables, seen)
    for own in factors(tables, weights, seen):
        table += own
    if weights.voted_is_entity:
        table[seen.voted, 0] = -np.inf
    return table


def soft_potentials(tables: VoteTables, weights: SourceWeights, source: int, soft: Soft) -> Floats:
    """(n, K) the log-likelihood of what a softly speaking source says of its tokens."""
    return np.asarray(weights.sources[source] * np.log(soft.chances @ _tags_said(tables.confusion[source]).T))


def soft_counts(tables: VoteTables, source: int, soft: Soft, chances: Floats) -> Floats:
    """(K, K) what a softly speaking source is expected to have said, given the chances (n, K) of states."""
    said = tables.confusion[source]
    by_tag = _tags_said(said)
    share = chances / (soft.chances @ by_tag.T)
    expected = (share.T @ soft.chances) * by_tag  # (K, 1 + 2 E)
    which = coarse(len(tables.types[source]))
    return np.asarray(said * (expected / by_tag)[:, which])


def _tags_said(said: Floats) -> Floats:
    """(K, 1 + 2 E) the confusion (K, K) with what is said summed by tag in IOB2."""
    which = coarse((len(said) - 1) // LETTERS)
    return np.asarray(said @ (which[:, None] == np.arange(which.max() + 1)))


def maximise(counts: VoteCounts, seen: VotePatterns, labels: Labels, belief: Belief) -> VoteTables:
    """The tables that make expected counts and the prior most probable."""
    K, E, S = len(labels.tags), len(labels.names), seen.votes.shape[1]
    stray, total = astray(seen, K, belief), counts.rows.sum(axis=0)
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


def astray(seen: VotePatterns, K: int, belief: Belief) -> Floats:
    """(S, K) prior counts of what sources say of tokens outside: all their O, and a small share of other votes.

    Without them EM can come to take for noise what a single source says.
    """
    out = np.zeros((seen.votes.shape[1], K))
    for k, votes in enumerate(seen.votes.T.astype(np.int64)):
        out[k] = np.bincount(votes + 1, seen.counts, K + 1)[1:]
    return np.asarray(belief.trust * out * np.where(np.arange(K) > 0, STRAY, 1.0))


def log_prior(tables: VoteTables, weights: SourceWeights, seen: VotePatterns, labels: Labels, belief: Belief) -> float:
    """The log of the prior of the tables, but for a constant; a source's own counts as much as the source."""
    valid = labels.follows[: len(labels.tags)]
    E = len(labels.names)
    own = RARE * (np.log(tables.rates) + np.log1p(-tables.rates)).sum(axis=1)
    own = own + belief.certainty * (_mostly_right(E + 1)[1:] * np.log(tables.types)).sum(axis=(1, 2))
    own = own + belief.certainty * (_mostly_right(LETTERS) * np.log(tables.letters)).sum(axis=(1, 2))
    stray = astray(seen, len(labels.tags), belief)
    own = own + ((FEW + stray) * np.log(tables.outside)).sum(axis=1)
    spoken = stray.sum(axis=1)
    own = own + spoken * np.log(tables.rates[:, 0])
    own = own + (belief.trust * seen.counts.sum() - spoken) * np.log1p(-tables.rates[:, 0])
    chain = float((_trans_prior(labels)[valid] * np.log(tables.trans[valid])).sum())
    links = float((LINKED[0] * np.log(tables.links) + LINKED[1] * np.log1p(-tables.links)).sum())
    return chain + links + float(weights.sources @ own)


def without(tables: VoteTables, silent: Bools) -> VoteTables:
    """The tables of the sources that are not silent."""
    names = ("rates", "types", "letters", "outside")
    return replace(tables, **{name: getattr(tables, name)[~silent] for name in names})


def first_counts(states: Ints, seen: VotePatterns, bounds: Ints, K: int) -> VoteCounts:
    """The counts of states (T,) that are taken for right."""
    before = np.append(0, states[:-1])[: len(states)]
    before[bounds[:-1][bounds[:-1] < len(states)]] = 0
    soft = {
        k: _together(states[own.tokens], seen.votes[seen.rows[own.tokens], k], (K, K)) for k, own in seen.soft.items()
    }
    return VoteCounts(_together(seen.rows, states, (len(seen.votes), K)), _together(before, states, (K, K)), soft)


def _together(one: Ints, other: Ints, shape: tuple[int, int]) -> Floats:
    """(n, m) how often numbers below n and below m stand together."""
    return np.bincount(one * shape[1] + other, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)


def _trans_prior(labels: Labels) -> Floats:
    K = len(labels.tags)
    prior = np.where(labels.follows[:K], FEW, 0.0)
    prior[0, 0] += STAY
    return prior


def _mostly_right(size: int) -> Floats:
    """(size, size) rows that sum to 1."""
    return np.where(np.eye(size) > 0, RIGHT, (1 - RIGHT) / max(size - 1, 1))


def _links(counts: VoteCounts, seen: VotePatterns, K: int) -> Floats:
    goes_on = continuing(K)
    out = np.empty((seen.links.shape[1], 2))
    for rule in range(len(out)):
        for word, agrees in enumerate((goes_on, ~goes_on)):
            mass = counts.rows[seen.links[:, rule] == 1 - 2 * word].sum(axis=0)
            out[rule, word] = (mass[agrees].sum() + LINKED[0]) / (mass.sum() + sum(LINKED))
    return out


def _shares(counts: Floats) -> Floats:
    return np.asarray(counts / counts.sum(axis=-1, keepdims=True))
