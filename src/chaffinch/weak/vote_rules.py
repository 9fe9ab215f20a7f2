"""Aggregation of votes by rules, without learning: union, vote on tokens, vote on spans, longest span.

Silence and votes for "not an entity" have no weight: a token is outside only if no source calls it an entity. The rules
are the baselines of every aggregator.

T tokens, L tags.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from chaffinch.checks import check_choice
from chaffinch.kernels import Floats, Ints
from chaffinch.models.votes.matrix import VoteMatrix
from chaffinch.models.votes.multihmm.spans import Spans, candidates, edges, resolve_overlaps


@dataclass(frozen=True, slots=True)
class VoteRule:
    """A rule that aggregates votes without learning; base class of all rules."""

    name: ClassVar[str]  # of the command's --method
    overlaps: ClassVar[bool] = False  # whether its spans may overlap

    def spans(self, votes: VoteMatrix) -> Spans:
        """Return the spans that the rule makes of votes; each rule must define it."""
        raise NotImplementedError

    def chances(self, _votes: VoteMatrix) -> Floats | None:
        """Return (T, L) probabilities of all tags; None if the rule gives none."""
        return None


@dataclass(frozen=True, slots=True)
class Union(VoteRule):
    """Every span of every source; spans may overlap."""

    name: ClassVar[str] = "union"
    overlaps: ClassVar[bool] = True

    def spans(self, votes: VoteMatrix) -> Spans:
        """Return every distinct span that a source proposes, overlapping ones too."""
        return candidates(votes)


@dataclass(frozen=True, slots=True)
class TokenVote(VoteRule):
    """At every token the tag that most sources vote for, O only if none votes for an entity.

    Ties go to inside tags before begin tags, or the other way with `ties="begin"`; then to the label that comes first.
    An inside tag that continues no span begins one.
    """

    name: ClassVar[str] = "token-vote"
    ties: Literal["inside", "begin"] = "inside"

    def __post_init__(self) -> None:
        """Raise ConfigError unless `ties` is "inside" or "begin"."""
        check_choice(self.ties, "ties", ("inside", "begin"))

    def spans(self, votes: VoteMatrix) -> Spans:
        """Return runs of tokens whose tag has the most votes, as spans."""
        return _runs(_most_voted(votes, self), votes.bounds)

    def chances(self, votes: VoteMatrix) -> Floats:
        """Return (T, L) the share of each tag among the votes for entities on a token; O where there is none."""
        counts = _count_votes(votes).astype(float)
        counts[:, 0] = counts.sum(axis=1) == 0
        return np.asarray(counts / counts.sum(axis=1, keepdims=True))


@dataclass(frozen=True, slots=True)
class SpanVote(VoteRule):
    """The spans that most sources propose, then the longest; none overlaps another."""

    name: ClassVar[str] = "span-vote"

    def spans(self, votes: VoteMatrix) -> Spans:
        """Return the proposed spans with most votes, none overlapping one with more votes."""
        return resolve_overlaps(candidates(votes), longest=False)


@dataclass(frozen=True, slots=True)
class LongestSpan(VoteRule):
    """The longest spans, then those that most sources propose; none overlaps another."""

    name: ClassVar[str] = "longest-span"

    def spans(self, votes: VoteMatrix) -> Spans:
        """Return the longest proposed spans, none overlapping a longer one."""
        return resolve_overlaps(candidates(votes), longest=True)


RULES: tuple[type[VoteRule], ...] = (Union, TokenVote, SpanVote, LongestSpan)


def _count_votes(vote_matrix: VoteMatrix) -> Ints:
    """Return (T, L) how many sources vote for each tag; the column of O is 0."""
    T, L = len(vote_matrix), 1 + 2 * len(vote_matrix.names)
    tokens, sources = np.nonzero(vote_matrix.codes > 0)
    tags = vote_matrix.codes[tokens, sources].astype(np.int64)
    return np.bincount(tokens * L + tags, minlength=T * L).reshape(T, L)


def _most_voted(vote_matrix: VoteMatrix, rule: TokenVote) -> Ints:
    """Return (T,) the tag with most votes on each token, O without votes; `rule.ties` says if B- or I- goes first."""
    L = 1 + 2 * len(vote_matrix.names)
    begin, inside = np.arange(1, L, 2), np.arange(2, L, 2)
    order = np.concatenate([[0], *((inside, begin) if rule.ties == "inside" else (begin, inside))]).astype(np.int64)
    return np.asarray(order[_count_votes(vote_matrix)[:, order].argmax(axis=1)])


def _runs(tags: Ints, bounds: Ints) -> Spans:
    """Return the runs of IOB2 tag numbers as spans; none crosses a sentence boundary."""
    begins, lasts = edges(tags[:, None], bounds)
    first, last = np.flatnonzero(begins[:, 0]), np.flatnonzero(lasts[:, 0])
    return Spans.distinct(first, last + 1, (tags[first] - 1) // 2)
