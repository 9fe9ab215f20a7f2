"""The spans that sources propose, how many propose each, and which of those that overlap are kept.

T tokens, S sources, n spans.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chaffinch.kernels import Floats, Ints
from chaffinch.models.votes.matrix import VoteMatrix

Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Distinct spans, sorted by first token, end and label."""

    first: Ints  # (n,)
    end: Ints  # (n,) one past the last token
    label: Ints  # (n,) number of the label
    votes: Ints  # (n,) how many sources propose it

    def __len__(self) -> int:
        return len(self.first)

    def __getitem__(self, chosen: Ints | Bools) -> Spans:
        """Some of them."""
        return Spans(self.first[chosen], self.end[chosen], self.label[chosen], self.votes[chosen])

    @classmethod
    def distinct(cls, first: Ints, end: Ints, label: Ints, votes: Ints | None = None) -> Spans:
        """The distinct ones of spans, with their votes summed; one each unless they are given."""
        order = np.lexsort((label, end, first))
        first, end, label = first[order], end[order], label[order]
        votes = np.ones(len(first), np.int64) if votes is None else votes[order]
        new = np.ones(len(first), np.bool_)
        new[1:] = (first[1:] != first[:-1]) | (end[1:] != end[:-1]) | (label[1:] != label[:-1])
        starts = np.flatnonzero(new)
        summed = np.add.reduceat(votes, starts) if len(starts) else votes
        return cls(first[starts], end[starts], label[starts], summed.astype(np.int64))

    def joined(self, other: Spans) -> Spans:
        """The distinct ones of both."""
        own = (np.append(getattr(self, at), getattr(other, at)) for at in ("first", "end", "label", "votes"))
        return Spans.distinct(*own)

    def tags(self, length: int) -> Ints:
        """(length,) the tags in IOB2 of spans that do not overlap."""
        out = np.zeros(length, np.int64)
        sizes = self.end - self.first
        places = np.arange(sizes.sum()) + np.repeat(self.first - np.cumsum(sizes) + sizes, sizes)
        out[places] = np.repeat(2 + 2 * self.label, sizes)
        out[self.first] = 1 + 2 * self.label
        return out


def edges(codes: NDArray[np.integer], bounds: Ints) -> tuple[Bools, Bools]:
    """(T, S) where the spans of votes in IOB2 begin, and where they have their last token; none crosses a sentence.

    An I that goes on with nothing begins a span.
    """
    entity, label = codes > 0, (codes - 1) // 2
    goes_on = np.zeros(codes.shape, np.bool_)
    goes_on[1:] = entity[1:] & (codes[1:] % 2 == 0) & entity[:-1] & (label[1:] == label[:-1])
    goes_on[bounds[:-1][bounds[:-1] < len(codes)]] = False
    last = entity.copy()
    last[:-1] &= ~goes_on[1:]
    return entity & ~goes_on, last


def proposed(vote_matrix: VoteMatrix) -> tuple[Ints, Ints, Ints, Ints]:
    """First tokens, ends, labels and sources of all spans of all sources, source by source."""
    some = np.flatnonzero((vote_matrix.codes > 0).any(axis=1))
    near = np.unique(np.concatenate([some, some[some + 1 < len(vote_matrix)] + 1]))
    codes = vote_matrix.codes[near]
    gaps = np.flatnonzero(np.diff(near) > 1) + 1
    cuts = np.searchsorted(near, vote_matrix.bounds[:-1])
    begins, lasts = edges(codes, np.concatenate([[0], gaps, cuts, [len(near)]]).astype(np.int64))
    source, first = np.nonzero(begins.T)
    label = (codes.T[source, first].astype(np.int64) - 1) // 2
    return near[first], near[np.nonzero(lasts.T)[1]] + 1, label, source


def candidates(vote_matrix: VoteMatrix) -> Spans:
    """The distinct spans that sources propose."""
    first, end, label, _ = proposed(vote_matrix)
    return Spans.distinct(first, end, label)


def settle(spans: Spans, *, longest: bool, last_label: bool = False) -> Spans:
    """Spans that do not overlap: those of most votes first, then the longest; or the longest first, then most votes.

    Of equal ones the first in the text wins, then the label that comes first, or that which comes last.
    """
    size = spans.first - spans.end
    keys = (-spans.votes, size) if longest else (size, -spans.votes)
    alone = _alone(spans)
    order = np.lexsort((-spans.label if last_label else spans.label, spans.first, *keys))
    kept, taken = alone.copy(), bytearray(int(spans.end.max()) if len(spans) else 0)
    crowd = order[~alone[order]]
    for place, first, end in zip(crowd.tolist(), spans.first[crowd].tolist(), spans.end[crowd].tolist(), strict=True):
        if taken.find(1, first, end) < 0:
            taken[first:end] = b"\1" * (end - first)
            kept[place] = True
    return spans[kept]


def most(spans: Spans, gains: Floats) -> Spans:
    """The spans that do not overlap with the largest sum of gains (n,); none with a gain of 0 or less is taken."""
    keep = gains > 0
    spans, gains = spans[keep], gains[keep]
    alone = _alone(spans)
    crowd = np.flatnonzero(~alone)
    crowd = crowd[np.argsort(spans.end[crowd], kind="stable")]
    first, end, gain = spans.first[crowd].tolist(), spans.end[crowd].tolist(), gains[crowd].tolist()
    best, back = [0.0], []
    for place in range(len(crowd)):
        before = bisect_right(end, first[place], 0, place)
        taken = best[before] + gain[place]
        back.append(before if taken > best[place] else -1)
        best.append(max(taken, best[place]))
    kept, place = alone.copy(), len(crowd)
    while place:
        if back[place - 1] >= 0:
            kept[crowd[place - 1]] = True
            place = back[place - 1]
        else:
            place -= 1
    return spans[kept]


def _alone(spans: Spans) -> Bools:
    """(n,) which spans overlap no other."""
    out = np.ones(len(spans), np.bool_)
    if len(spans):
        reach = np.maximum.accumulate(spans.end)
        out[1:] &= spans.first[1:] >= reach[:-1]
        out[:-1] &= spans.first[1:] >= spans.end[:-1]
    return out
