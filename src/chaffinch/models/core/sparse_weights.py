"""Weights of a loaded model: those that are not 0, as the file holds them, put in a table row by row when first used.

Of the weights of a tagger about one in twenty is not 0, and a note uses a small part of its features. Rows are given
out in the order in which features are first seen, so that memory is touched for these alone; sums are the same as with
a full table, since kernels add rows in the order of the observations. A table that has grown large is dropped before
the next documents are read, and a new one begins: memory does not grow with the number of documents.

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

# Bytes of rows from which a table is dropped: a hundred notes use 20 MB of them, and filling these takes 30 ms.
_MOST_BYTES = 1 << 24
_NUMBERS = {np.dtype(np.uint8), np.dtype(np.uint16)}  # as models are saved; wider counts could overflow a sum


class Table:
    """A table of the rows of sparse weights that were used so far; rows in use never move."""

    def __init__(self, sparse: SparseWeights) -> None:
        """Begin without a row."""
        self._sparse = sparse
        # (F+1,) a feature's first row in the table, -1 before it is used; 0 at the end
        self._first: Places = np.append(np.full(len(sparse.vocabulary), -1, np.int32), np.int32(0))
        # (R * W,) zeros that take no memory until they are written
        self._rows: Singles = np.zeros(sparse.vocabulary.height * sparse.W, np.float32)
        self.used = 0  # rows in use

    @property
    def size(self) -> int:
        """Return the bytes of the rows in use."""
        return self.used * self._sparse.W * self._rows.itemsize

    @property
    def weights(self) -> Weights:
        """Return the table of the rows used so far; its row numbers are those of `place`."""
        return Weights(self._rows, self._sparse.moves)

    def place(self, features: Places) -> Places:
        """Return the first row of each feature in the table, after rows of features that are new there were added.

        The feature -1, none, has row 0.
        """
        rows = self._first[features]
        if (rows < 0).any():
            with _FILLING:  # rows in use never move, so that other threads read on
                self._fill(np.unique(features[self._first[features] < 0]))
            rows = self._first[features]
        return rows

    def row(self, feature: int, number: int) -> Singles:
        """Return (W,) a weight row of a feature; its first row is number 0."""
        first = (int(self.place(np.array([feature], np.int32))[0]) + number) * self._sparse.W
        return self._rows[first : first + self._sparse.W]

    def _fill(self, features: Places) -> None:
        """Add the rows of features that the table lacks, and record where those of each begin."""
        known, start = self._sparse, self.used
        count = COUNT[known.vocabulary.kinds[features]].astype(np.int64)
        begins = known.begins[features]
        sizes = known.sizes[_ranges(known.vocabulary.rows[features], count)]
        which = _ranges(begins, known.begins[features + 1] - begins)
        rows = np.repeat(np.arange(start, start + len(sizes)), sizes)
        self._rows[rows * known.W + known.columns[which]] = known.values[which]
        self.used = start + len(sizes)
        self._first[features] = start + np.cumsum(count) - count


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SparseWeights:
    """The weights that are not 0, and a table of the rows that were used lately."""

    vocabulary: Vocabulary
    W: int
    sizes: NDArray[Any]  # (R,) 8 or 16 bits: weights of each row
    columns: NDArray[Any]  # (Q,) 8 or 16 bits
    values: NDArray[Any]  # (Q,) floats
    moves: Singles
    begins: NDArray[np.int64] = field(init=False)  # (F+1,) where the weights of each feature begin
    tables: list[Table] = field(init=False)  # one, which is in use
    words: TypeScores = field(init=False)  # sums of rows for the words read so far

    def __post_init__(self) -> None:
        """Find where each feature's weights begin; the table has no row yet."""
        known = self.vocabulary
        ends = np.zeros(known.height + 1, np.int64)
        np.cumsum(self.sizes, dtype=np.int64, out=ends[1:])
        object.__setattr__(self, "begins", ends[known.rows])
        object.__setattr__(self, "tables", [Table(self)])
        object.__setattr__(self, "words", TypeScores(OFFSETS * self.W))

    @classmethod
    def of(cls, vocabulary: Vocabulary, W: int, arrays: Mapping[str, NDArray[Any]]) -> SparseWeights:
        """Return the weights of a file's `sizes`, `columns`, `values` and `moves`; ModelError if they do not fit."""
        sizes, columns, values = (arrays[name] for name in ("sizes", "columns", "values"))
        fits = sizes.ndim == columns.ndim == values.ndim == 1 and {sizes.dtype, columns.dtype} <= _NUMBERS
        fits = fits and len(sizes) == vocabulary.height and columns.max(initial=0) < W
        if not fits or not sizes.sum(dtype=np.int64) == len(columns) == len(values):
            raise ModelError("its weights do not fit its labels; copy the file again, or retrain the model")
        return cls(vocabulary, W, sizes, columns, values, arrays["moves"])

    def table(self) -> Table:
        """Return the table to read the next documents by: a new one if the last one has grown large.

        Threads that still read by the last one keep it, with its row numbers.
        """
        table = self.tables[0]
        if table.size > _MOST_BYTES:
            table = self.tables[0] = Table(self)
        return table

    def dense(self) -> Weights:
        """Return the weights of all features, in rows as the vocabulary numbers them; a new table."""
        rows = np.zeros(self.vocabulary.height * self.W, np.float32)
        rows[np.repeat(np.arange(len(self.sizes)), self.sizes) * self.W + self.columns] = self.values
        return Weights(rows, self.moves)


def _ranges(begins: NDArray[Any], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the whole numbers of ranges, given by first number and length, one range after another."""
    return np.arange(int(lengths.sum())) + np.repeat(begins - np.cumsum(lengths) + lengths, lengths)
