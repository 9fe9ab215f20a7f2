"""Votes joined by a rule, with nothing learnt: the union, a vote on tokens, a vote on spans, the longest span.

A source's silence says nothing, and a vote for "not an entity" weighs nothing: a token is outside if no source calls it
an entity. The rules are what every aggregator is measured against.

T tokens, L tags.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from chaffinch.errors import ConfigError
from chaffinch.kernels import Floats, Ints
from chaffinch.models.votes.matrix import VoteMatrix
from chaffinch.models.votes.multihmm.spans import Spans, candidates, edges, settle


@dataclass(frozen=True, slots=True)
class Union:
    """Every span of every source; spans may overlap."""


@dataclass(frozen=True, slots=True)
class TokenVote:
    """At every token the tag that most sources vote for, O only if none votes for an entity.

    Equal votes go to tags inside a span before those that begin one, or the other way; then to the label that comes
    first. A tag inside that goes on with nothing begins a span.
    """

    ties: Literal["inside", "begin"] = "inside"

    def __post_init__(self) -> None:
        if self.ties not in ("inside", "begin"):
            raise ConfigError(f"ties must be one of inside, begin, got {self.ties!r}")


@dataclass(frozen=True, slots=True)
class SpanVote:
    """The spans that most sources propose, then the longest; none overlaps another."""


@dataclass(frozen=True, slots=True)
class LongestSpan:
    """The longest spans, then those that most sources propose; none overlaps another."""


Rule: TypeAlias = Union | TokenVote | SpanVote | LongestSpan
RULES = (Union, TokenVote, SpanVote, LongestSpan)


def spans_by(rule: Rule, vote_matrix: VoteMatrix) -> Spans:
    """The spans that a rule makes of votes; those of `Union` may overlap."""
    match rule:
        case Union():
            return candidates(vote_matrix)
        case TokenVote():
            return _runs(_most_voted(vote_matrix, rule), vote_matrix.bounds)
        case SpanVote():
            return settle(candidates(vote_matrix), longest=False)
        case LongestSpan():
            return settle(candidates(vote_matrix), longest=True)


def shares(vote_matrix: VoteMatrix) -> Floats:
    """(T, L) the share of each tag among the votes for entities on a token; O where there is none."""
    votes = _counted(vote_matrix).astype(float)
    votes[:, 0] = votes.sum(axis=1) == 0
    return np.asarray(votes / votes.sum(axis=1, keepdims=True))


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
