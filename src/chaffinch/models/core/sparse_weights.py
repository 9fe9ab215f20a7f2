"""Weights of a loaded model: those that are not 0, as the file holds them, put in a table row by row when first used.

Of the weights of a tagger about one in twenty is not 0, and a note uses a small part of its features. Rows are given
out in the order in which features are first seen, so that memory is touched for these alone; sums are the same as with
a full table, since kernels add rows in the order of the observations.

F features, R weight rows of W columns, Q weights that are not 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chaffinch.errors import ModelError
from chaffinch.features.observe import Places
from chaffinch.features.vocabulary import COUNT, Vocabulary
from chaffinch.kernels.linear import Singles, Weights
from chaffinch.models.core.type_scores import OFFSETS, TypeScores

_FILLING = Lock()  # one for all tables, since it is held for microseconds and a lock in a model could not be pickled

_NUMBERS = {np.dtype(np.uint8), np.dtype(np.uint16)}  # as models are saved; wider counts could overflow a sum


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SparseWeights:
    """The weights that are not 0, and a table of the rows that were used so far."""

    vocabulary: Vocabulary
    W: int
    sizes: NDArray[Any]  # (R,) 8 or 16 bits: weights of each row
    columns: NDArray[Any]  # (Q,) 8 or 16 bits
    values: NDArray[Any]  # (Q,) floats
    moves: Singles
    begins: NDArray[np.int64] = field(init=False)  # (F+1,) where the weights of each feature begin
    first: Places = field(init=False)  # (F+1,) a feature's first row in the table, -1 before it is used; 0 at the end
    table: Singles = field(init=False)  # (R * W,) zeros that take no memory until they are written
    used: NDArray[np.int64] = field(init=False)  # (1,) rows in use
    words: TypeScores = field(init=False)  # sums of rows for the words read so far

    def __post_init__(self) -> None:
        """Find where each feature's weights begin; the table has no row yet."""
        known = self.vocabulary
        ends = np.zeros(known.height + 1, np.int64)
        np.cumsum(self.sizes, dtype=np.int64, out=ends[1:])
        for name, value in (
            ("begins", ends[known.rows]),
            ("first", np.append(np.full(len(known), -1, np.int32), np.int32(0))),
            ("table", np.zeros(known.height * self.W, np.float32)),
            ("used", np.zeros(1, np.int64)),
            ("words", TypeScores(OFFSETS * self.W)),
        ):
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, vocabulary: Vocabulary, W: int, arrays: Mapping[str, NDArray[Any]]) -> SparseWeights:
        """Return the weights of a file's `sizes`, `columns`, `values` and `moves`; ModelError if they do not fit."""
        sizes, columns, values = (arrays[name] for name in ("sizes", "columns", "values"))
        fits = sizes.ndim == columns.ndim == values.ndim == 1 and {sizes.dtype, columns.dtype} <= _NUMBERS
        fits = fits and len(sizes) == vocabulary.height and columns.max(initial=0) < W
        if not fits or not sizes.sum(dtype=np.int64) == len(columns) == len(values):
            raise ModelError("its weights do not fit its labels; copy the file again, or retrain the model")
        return cls(vocabulary, W, sizes, columns, values, arrays["moves"])

    @property
    def weights(self) -> Weights:
        """Return the table of the rows used so far; its row numbers are those of `place`."""
        return Weights(self.table, self.moves)

    def place(self, features: Places) -> Places:
        """Return the first row of each feature in the table, after rows of features that are new there were added.

        The feature -1, none, has row 0.
        """
        rows = self.first[features]
        if (rows < 0).any():
            with _FILLING:  # rows in use never move, so that other threads read on
                self._fill(np.unique(features[self.first[features] < 0]))
            rows = self.first[features]
        return rows

    def row(self, feature: int, number: int) -> Singles:
        """Return (W,) a weight row of a feature; its first row is number 0."""
        first = (int(self.place(np.array([feature], np.int32))[0]) + number) * self.W
        return self.table[first : first + self.W]

    def dense(self) -> Weights:
        """Return the weights of all features, in rows as the vocabulary numbers them; a new table."""
        rows = np.zeros(self.vocabulary.height * self.W, np.float32)
        rows[np.repeat(np.arange(len(self.sizes)), self.sizes) * self.W + self.columns] = self.values
        return Weights(rows, self.moves)

    def _fill(self, features: Places) -> None:
        """Add the rows of features that the table lacks, and record where those of each begin."""
        count = COUNT[self.vocabulary.kinds[features]].astype(np.int64)
        begins, start = self.begins[features], int(self.used[0])
        sizes = self.sizes[_ranges(self.vocabulary.rows[features], count)]
        which = _ranges(begins, self.begins[features + 1] - begins)
        rows = np.repeat(np.arange(start, start + len(sizes)), sizes)
        self.table[rows * self.W + self.columns[which]] = self.values[which]
        self.used[0] = start + len(sizes)
        self.first[features] = start + np.cumsum(count) - count


def _ranges(begins: NDArray[Any], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the whole numbers of ranges, given by first number and length, one range after another."""
    return np.arange(int(lengths.sum())) + np.repeat(begins - np.cumsum(lengths) + lengths, lengths)
