"""Votes joined by a rule, with nothing learnt: the union, a vote on tokens, a vote on spans, the longest span.

A source's silence says nothing, and a vote for "not an entity" weighs nothing: a token is outside if no source calls it
an entity. The rules are what every aggregator is measured against.

T tokens, L tags.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from chaffinch.checks import check_choice
from chaffinch.kernels import Floats, Ints
from chaffinch.models.votes.matrix import VoteMatrix
from chaffinch.models.votes.multihmm.spans import Spans, candidates, edges, settle


@dataclass(frozen=True, slots=True)
class VoteRule:
    """A way to join votes with nothing learnt; every rule is one of its kinds."""

    name: ClassVar[str]  # of the command's --method
    overlaps: ClassVar[bool] = False  # whether its spans may overlap

    def spans(self, votes: VoteMatrix) -> Spans:
        """Return the spans that the rule makes of votes."""
        raise NotImplementedError

    def chances(self, _votes: VoteMatrix) -> Floats | None:
        """Return (T, L) chances of all tags, if the rule has any."""
        return None


@dataclass(frozen=True, slots=True)
class Union(VoteRule):
    """Every span of every source; spans may overlap."""

    name: ClassVar[str] = "union"
    overlaps: ClassVar[bool] = True

    def spans(self, votes: VoteMatrix) -> Spans:
        """Return every span that a source proposes."""
        return candidates(votes)


@dataclass(frozen=True, slots=True)
class TokenVote(VoteRule):
    """At every token the tag that most sources vote for, O only if none votes for an entity.

    Equal votes go to tags inside a span before those that begin one, or the other way; then to the label that comes
    first. A tag inside that goes on with nothing begins a span.
    """

    name: ClassVar[str] = "token-vote"
    ties: Literal["inside", "begin"] = "inside"

    def __post_init__(self) -> None:
        check_choice(self.ties, "ties", ("inside", "begin"))

    def spans(self, votes: VoteMatrix) -> Spans:
        """Return the runs of the tags that have most votes."""
        return _runs(_most_voted(votes, self), votes.bounds)

    def chances(self, votes: VoteMatrix) -> Floats:
        """Return (T, L) the share of each tag among the votes for entities on a token; O where there is none."""
        counts = _counted(votes).astype(float)
        counts[:, 0] = counts.sum(axis=1) == 0
        return np.asarray(counts / counts.sum(axis=1, keepdims=True))


@dataclass(frozen=True, slots=True)
class SpanVote(VoteRule):
    """The spans that most sources propose, then the longest; none overlaps another."""

    name: ClassVar[str] = "span-vote"

    def spans(self, votes: VoteMatrix) -> Spans:
        """Return the spans with most votes that overlap no better one."""
        return settle(candidates(votes), longest=False)


@dataclass(frozen=True, slots=True)
class LongestSpan(VoteRule):
    """The longest spans, then those that most sources propose; none overlaps another."""

    name: ClassVar[str] = "longest-span"

    def spans(self, votes: VoteMatrix) -> Spans:
        """Return the longest spans that overlap no longer one."""
        return settle(candidates(votes), longest=True)


RULES: tuple[type[VoteRule], ...] = (Union, TokenVote, SpanVote, LongestSpan)


def _counted(vote_matrix: VoteMatrix) -> Ints:
    """(T, L) the sources that vote for each tag; none for O."""
    T, L = len(vote_matrix), 1 + 2 * len(vote_matrix.names)
    tokens, sources = np.nonzero(vote_matrix.codes > 0)
    tags = vote_matrix.codes[tokens, sources].astype(np.int64)
    return np.bincount(tokens * L + tags, minlength=T * L).reshape(T, L)


def _most_voted(vote_matrix: VoteMatrix, rule: TokenVote) -> Ints:
    """(T,) the tag with most votes."""
    L = 1 + 2 * len(vote_matrix.names)
    begin, inside = np.arange(1, L, 2), np.arange(2, L, 2)
    order = np.concatenate([[0], *((inside, begin) if rule.ties == "inside" else (begin, inside))]).astype(np.int64)
    return np.asarray(order[_counted(vote_matrix)[:, order].argmax(axis=1)])


def _runs(tags: Ints, bounds: Ints) -> Spans:
    begins, lasts = edges(tags[:, None], bounds)
    first, last = np.flatnonzero(begins[:, 0]), np.flatnonzero(lasts[:, 0])
    return Spans.distinct(first, last + 1, (tags[first] - 1) // 2)
