"""The spans that sources propose, their votes, and the choice among overlapping spans.

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
    votes: Ints  # (n,) number of sources that propose it

    def __len__(self) -> int:
        """Return the number of spans."""
        return len(self.first)

    def __getitem__(self, chosen: Ints | Bools) -> Spans:
        """Return the spans at these indices, or where the mask is True."""
        return Spans(self.first[chosen], self.end[chosen], self.label[chosen], self.votes[chosen])

    @classmethod
    def distinct(cls, first: Ints, end: Ints, label: Ints, votes: Ints | None = None) -> Spans:
        """Return the distinct spans, sorted, with their votes summed; `votes` defaults to one each."""
        order = np.lexsort((label, end, first))
        first, end, label = first[order], end[order], label[order]
        votes = np.ones(len(first), np.int64) if votes is None else votes[order]
        new = np.ones(len(first), np.bool_)
        new[1:] = (first[1:] != first[:-1]) | (end[1:] != end[:-1]) | (label[1:] != label[:-1])
        starts = np.flatnonzero(new)
        summed = np.add.reduceat(votes, starts) if len(starts) else votes
        return cls(first[starts], end[starts], label[starts], summed.astype(np.int64))

    def union(self, other: Spans) -> Spans:
        """Return the distinct spans of both, sorted, with their votes summed."""
        columns = (np.append(getattr(self, name), getattr(other, name)) for name in ("first", "end", "label", "votes"))
        return Spans.distinct(*columns)

    def tags(self, length: int) -> Ints:
        """Return (length,) the IOB2 tags of spans, which must not overlap; 0 outside."""
        out = np.zeros(length, np.int64)
        sizes = self.end - self.first
        places = np.arange(sizes.sum()) + np.repeat(self.first - np.cumsum(sizes) + sizes, sizes)
        out[places] = np.repeat(2 + 2 * self.label, sizes)
        out[self.first] = 1 + 2 * self.label
        return out


def edges(codes: NDArray[np.integer], bounds: Ints) -> tuple[Bools, Bools]:
    """Return (where spans of IOB2 votes begin, where they end), (T, S) each; no span crosses a sentence's end.

    An I that continues no span begins one.
    """
    entity, label = codes > 0, (codes - 1) // 2
    continues = np.zeros(codes.shape, np.bool_)
    continues[1:] = entity[1:] & (codes[1:] % 2 == 0) & entity[:-1] & (label[1:] == label[:-1])
    continues[bounds[:-1][bounds[:-1] < len(codes)]] = False
    last = entity.copy()
    last[:-1] &= ~continues[1:]
    return entity & ~continues, last


def list_proposals(vote_matrix: VoteMatrix) -> tuple[Ints, Ints, Ints, Ints]:
    """Return (first tokens, ends, labels, sources) of all spans of all sources, ordered by source."""
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
    """Return the distinct spans that sources propose, with how many do so."""
    first, end, label, _ = list_proposals(vote_matrix)
    return Spans.distinct(first, end, label)


def resolve_overlaps(spans: Spans, *, longest: bool, last_label: bool = False) -> Spans:
    """Return spans kept greedily so that none overlap: by votes, then length; with `longest` by length first.

    Of equal ones the first in the text wins, then the first label, or the last with `last_label`.
    """
    size = spans.first - spans.end
    keys = (-spans.votes, size) if longest else (size, -spans.votes)
    alone = _alone(spans)
    order = np.lexsort((-spans.label if last_label else spans.label, spans.first, *keys))
    kept, taken = alone.copy(), bytearray(int(spans.end.max()) if len(spans) else 0)
    crowd = order[~alone[order]]
    for index, first, end in zip(crowd.tolist(), spans.first[crowd].tolist(), spans.end[crowd].tolist(), strict=True):
        if taken.find(1, first, end) < 0:
            taken[first:end] = b"\1" * (end - first)
            kept[index] = True
    return spans[kept]


def best_spans(spans: Spans, gains: Floats) -> Spans:
    """Return the spans that do not overlap with the largest sum of gains (n,), all above 0; others are dropped."""
    keep = gains > 0
    spans, gains = spans[keep], gains[keep]
    alone = _alone(spans)
    crowd = np.flatnonzero(~alone)
    crowd = crowd[np.argsort(spans.end[crowd], kind="stable")]
    first, end, gain = spans.first[crowd].tolist(), spans.end[crowd].tolist(), gains[crowd].tolist()
    best, back = [0.0], []
    for index in range(len(crowd)):
        before = bisect_right(end, first[index], 0, index)
        taken = best[before] + gain[index]
        back.append(before if taken > best[index] else -1)
        best.append(max(taken, best[index]))
    kept, index = alone.copy(), len(crowd)
    while index:
        if back[index - 1] >= 0:
            kept[crowd[index - 1]] = True
            index = back[index - 1]
        else:
            index -= 1
    return spans[kept]


def _alone(spans: Spans) -> Bools:
    """Return (n,) which spans, sorted by first token, overlap no other."""
    out = np.ones(len(spans), np.bool_)
    if len(spans):
        reach = np.maximum.accumulate(spans.end)
        out[1:] &= spans.first[1:] >= reach[:-1]
        out[:-1] &= spans.first[1:] >= spans.end[:-1]
    return out
