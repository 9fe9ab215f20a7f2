"""Long documents cut into windows that an encoder can read: who is in which window, and whose word counts.

T tokens of one document; a token is so many word pieces, perhaps none.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class Window(NamedTuple):
    """Tokens first to end are read together; of these, own_first to own_end take what is read here."""

    first: int
    end: int
    own_first: int
    own_end: int


def overlapping(counts: Ints, most: int, overlap: int) -> list[Window]:
    """Windows of at most so many pieces, given how many each token has (T,); neighbours share about `overlap` pieces.

    A token takes the window in which it is farthest from an edge; where the document ends is no edge. No token may
    have more than a quarter of `most`.

    >>> overlapping(np.ones(10, np.int64), 8, 2)
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
    return _owned(firsts, lasts, ends - counts / 2)


def by_sentences(counts: Ints, bounds: Ints, most: int, overlap: int) -> list[Window]:
    """Windows of whole sentences side by side, as many as fit; sentence b is tokens bounds[b] to bounds[b+1].

    A sentence with more pieces than fit is cut into overlapping windows of its own.

    >>> [window[:2] for window in by_sentences(np.ones(7, np.int64), np.array([0, 2, 4, 7]), 4, 0)]
    [(0, 4), (4, 7)]
    """
    before = np.append(0, np.cumsum(counts))
    out: list[Window] = []
    held = int(bounds[0])  # the window being filled begins here
    for first, end in pairwise(bounds.tolist()):
        if before[end] - before[held] <= most:
            continue
        if before[first] > before[held]:
            out.append(Window(held, first, held, first))
        held = first
        if before[end] - before[first] > most:
            out += [Window(*(first + place for place in own)) for own in overlapping(counts[first:end], most, overlap)]
            held = end
    last = int(bounds[-1])
    if before[last] > before[held]:
        out.append(Window(held, last, held, last))
    return out


def _owned(firsts: Ints, lasts: Ints, middles: NDArray[np.float64]) -> list[Window]:
    """The windows with what each owns: two neighbours share alike what both hold, as far as its middle."""
    cuts = [0]
    for end, first in zip(lasts[:-1].tolist(), firsts[1:].tolist(), strict=True):
        shared = middles[first:end]
        middle = (shared[0] + shared[-1]) / 2 if len(shared) else 0.0
        cuts.append(first + int(np.searchsorted(shared, middle, side="left")))
    cuts.append(int(lasts[-1]))
    return [Window(*own) for own in zip(firsts.tolist(), lasts.tolist(), cuts[:-1], cuts[1:], strict=True)]


def by_length(lengths: Sequence[int], pieces: int) -> list[list[int]]:
    """Numbers of windows in batches of one length, each of at most so many pieces, in order of length, then number.

    >>> by_length([32, 16, 32, 32], 64)
    [[1], [0, 2], [3]]
    """
    out: list[list[int]] = []
    for number in sorted(range(len(lengths)), key=lambda own: (lengths[own], own)):
        length = lengths[number]
        if not out or lengths[out[-1][0]] != length or (len(out[-1]) + 1) * length > max(pieces, length):
            out.append([])
        out[-1].append(number)
    return out
