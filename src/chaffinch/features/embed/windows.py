"""Windows of long documents for an encoder: which tokens a window reads, and which it embeds.

T tokens of one document; a token is any number of word pieces, perhaps none.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class Window(NamedTuple):
    """A window: tokens first to end are read together, and own_first to own_end take their embeddings from it."""

    first: int
    end: int
    own_first: int
    own_end: int


def overlapping_windows(counts: Ints, most: int, overlap: int) -> list[Window]:
    """Return windows of at most `most` pieces, given each token's count (T,); neighbours share about `overlap` pieces.

    A token belongs to the window in which it is farthest from an edge; the document's ends are no edges. No token may
    have more than a quarter of `most` pieces.

    >>> overlapping_windows(np.ones(10, np.int64), 8, 2)
    [Window(first=0, end=6, own_first=0, own_end=5), Window(first=4, end=10, own_first=5, own_end=10)]
    """
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    if not total:
        return []
    if total <= most:
        return [Window(0, len(counts), 0, len(counts))]
    room = most - 2 * int(counts.max())  # whole tokens at both edges
    overlap = min(overlap, room // 2)
    number = -(-(total - overlap) // (room - overlap))
    width = -(-(total + (number - 1) * overlap) // number)
    begins = np.round(np.arange(number) * (total - width) / (number - 1)).astype(np.int64)
    firsts = np.searchsorted(ends, begins, side="right")
    lasts = np.searchsorted(ends, begins + width, side="left") + 1
    firsts[0], lasts[-1] = 0, len(counts)
    return _assign_tokens(firsts, lasts, ends - counts / 2)


def sentence_windows(counts: Ints, bounds: Ints, most: int, overlap: int) -> list[Window]:
    """Return windows of as many whole sentences as fit in `most` pieces; a longer sentence is cut, with overlap.

    `counts` are the pieces of each token. Sentence b is tokens bounds[b] to bounds[b + 1].

    >>> [window[:2] for window in sentence_windows(np.ones(7, np.int64), np.array([0, 2, 4, 7]), 4, 0)]
    [(0, 4), (4, 7)]
    """
    before = np.append(0, np.cumsum(counts))
    out: list[Window] = []
    start = int(bounds[0])  # the window being filled begins here
    for first, end in pairwise(bounds.tolist()):
        if before[end] - before[start] <= most:
            continue
        if before[first] > before[start]:
            out.append(Window(start, first, start, first))
        start = first
        if before[end] - before[first] > most:
            out += [
                Window(*(first + token for token in window))
                for window in overlapping_windows(counts[first:end], most, overlap)
            ]
            start = end
    last = int(bounds[-1])
    if before[last] > before[start]:
        out.append(Window(start, last, start, last))
    return out


def _assign_tokens(firsts: Ints, lasts: Ints, middles: NDArray[np.float64]) -> list[Window]:
    """Return windows of tokens first to last with those each owns: what neighbours share is cut at its middle."""
    cuts = [0]
    for end, first in zip(lasts[:-1].tolist(), firsts[1:].tolist(), strict=True):
        shared = middles[first:end]
        middle = (shared[0] + shared[-1]) / 2 if len(shared) else 0.0
        cuts.append(first + int(np.searchsorted(shared, middle, side="left")))
    cuts.append(int(lasts[-1]))
    return [Window(*edges) for edges in zip(firsts.tolist(), lasts.tolist(), cuts[:-1], cuts[1:], strict=True)]


def batch_by_length(lengths: Sequence[int], pieces: int) -> list[list[int]]:
    """Return window numbers in batches of one length and at most `pieces` pieces, sorted by length, then number.

    >>> batch_by_length([32, 16, 32, 32], 64)
    [[1], [0, 2], [3]]
    """
    out: list[list[int]] = []
    for number in sorted(range(len(lengths)), key=lambda window: (lengths[window], window)):
        length = lengths[number]
        if not out or lengths[out[-1][0]] != length or (len(out[-1]) + 1) * length > max(pieces, length):
            out.append([])
        out[-1].append(number)
    return out
