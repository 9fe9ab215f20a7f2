"""Scores of words, kept from batch to batch: the same words come again and again.

A word's features add up to the same scores wherever it stands, bit for bit, since kernels add its weight rows in the
order of its features. V types of a batch, the first of which is the pad; a block is a type's scores at five offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from chaffinch.features.observe import Observed, Places
from chaffinch.kernels.linear import Singles

OFFSETS = 5  # at which a kernel looks at a word: from two before to two after
MOST = 1 << 15  # words kept, of which each takes a kilobyte in a tagger of forty tags; then all are dropped
_FILLING = Lock()  # one for all tables, since a lock in a model could not be pickled

SumTypes = Callable[[NDArray[np.int64]], Singles]


@dataclass(slots=True, eq=False, repr=False)
class TypeScores:
    """The blocks of words met so far, by the key of the word."""

    size: int  # numbers in a block
    _known: tuple[dict[int, int], Singles] = field(default_factory=lambda: ({}, np.zeros(0, np.float32)))

    def __reduce__(self) -> tuple[type[TypeScores], tuple[int]]:
        """Pickle without what was met."""
        return TypeScores, (self.size,)

    def look_up(self, seen: Observed, sum_types: SumTypes) -> tuple[Singles, Places] | None:
        """Return blocks, and the number (V,) of each type's block; None if the types are too many to keep.

        `sum_types` returns the blocks of some types (n,) of the batch. What is returned stays as it is.
        """
        V = len(seen.lists) - 1
        if V > MOST:
            return None
        keys = [0, *seen.keys[seen.lists[1:-1]].tolist()]  # the first feature of a type is its word
        places, blocks = self._known
        numbers = _find(places, keys)
        if numbers.min() >= 0:
            return blocks, numbers
        with _FILLING:
            places, blocks = self._known
            new = np.flatnonzero(_find(places, keys) < 0)
            if len(places) + len(new) > MOST or not len(blocks):
                places, blocks = {}, np.zeros(MOST * self.size, np.float32)  # no memory before it is written
                new = np.arange(V)
            first, size = len(places), self.size
            blocks[first * size : (first + len(new)) * size] = sum_types(new)
            places |= {keys[place]: first + number for number, place in enumerate(new.tolist())}
            self._known = places, blocks
            return blocks, _find(places, keys)


def _find(places: Mapping[int, int], keys: Sequence[int]) -> Places:
    """Return the number of the block of each key, -1 if it has none."""
    return np.array([places.get(key, -1) for key in keys], np.int32)
