"""Feature vectors of candidates: one block of columns for each view, scaled to a fixed length.

N candidates, F features.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import log2, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from chaffinch.kernels.lattice import Floats
from chaffinch.relations.features import contexts, paths, statistics, words
from chaffinch.relations.features._compiled._pieces import (
    PATHS,
    STATISTICS,
    WORDS,
    FeatureTable,
    PieceNumbers,
    flat,
    scratch,
)
from chaffinch.relations.features.frames import Frame

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

VIEWS: dict[str, Callable[[Frame], Iterable[str]]] = {
    "words": words.features,
    "statistics": statistics.features,
    "paths": paths.features,
    "contexts": contexts.features,
}
COMPILED = {"words": WORDS, "statistics": STATISTICS, "paths": PATHS}  # views scored without building names
# The length of each view's block; a longer block moves the log-odds more.
LENGTHS = {"words": 0.5, "statistics": 0.5, "paths": 1.0, "contexts": 0.5}


@dataclass(frozen=True, slots=True, eq=False)
class FeatureColumns:
    """The features that a model knows, view by view; `number` maps a name to its column, for each view."""

    views: tuple[str, ...]
    names: tuple[tuple[str, ...], ...]  # of each view, sorted
    number: tuple[dict[str, int], ...] = field(repr=False)

    @classmethod
    def of(cls, views: Sequence[str], names: Sequence[Sequence[str]]) -> FeatureColumns:
        """Return the features of all views, numbered consecutively; `names` has one sequence for each view."""
        number, start = [], 0
        for view_names in names:
            number.append({name: start + n for n, name in enumerate(view_names)})
            start += len(view_names)
        return cls(tuple(views), tuple(map(tuple, names)), tuple(number))

    def __len__(self) -> int:
        """Return the number of columns over all views."""
        return sum(map(len, self.names))


def learn(rows: Iterable[tuple[Frame, str]], views: Sequence[str], *, floor: int) -> FeatureColumns:
    """Return the features, sorted by view, that candidates of `floor` groups show; a row is a frame and its group."""
    counts: list[Counter[str]] = [Counter() for _ in views]
    last: list[dict[str, str]] = [{} for _ in views]
    for frame, group in sorted(rows, key=lambda row: row[1]):
        for v, view in enumerate(views):
            last_group = last[v]
            for name in set(VIEWS[view](frame)):
                if last_group.get(name) != group:  # rows are sorted by group
                    last_group[name] = group
                    counts[v][name] += 1
    return FeatureColumns.of(views, [sorted(name for name, n in counter.items() if n >= floor) for counter in counts])


def matrix(frames: Iterable[Frame], columns: FeatureColumns) -> csr_matrix:
    """Return (N, F) log2(1 + count) of each candidate's known features; each view's block has its fixed length."""
    from scipy.sparse import csr_matrix

    numbers: list[int] = []
    values: list[float] = []
    ends = [0]
    for frame in frames:
        for column, value in row(frame, columns):
            numbers.append(column)
            values.append(value)
        ends.append(len(numbers))
    arrays: tuple[Any, ...] = (np.array(values, np.float64), np.array(numbers, np.int32), np.array(ends, np.int64))
    return csr_matrix(arrays, shape=(len(ends) - 1, len(columns)))


def row(frame: Frame, columns: FeatureColumns) -> list[tuple[int, float]]:
    """Return (column, value) of a candidate's known features; each view's block has its fixed length, 1 if alone."""
    several = len(columns.views) > 1
    return [
        entry
        for view, known in zip(columns.views, columns.number, strict=True)
        for entry in _block(frame, view, known, LENGTHS[view] if several else 1.0)
    ]


def _block(frame: Frame, view: str, known: dict[str, int], length: float) -> list[tuple[int, float]]:
    """Return (column, value) of one view's known features: log2(1 + count), scaled to this Euclidean length."""
    counts: dict[int, int] = {}
    for name in VIEWS[view](frame):
        column = known.get(name)
        if column is not None:
            counts[column] = counts.get(column, 0) + 1
    valued = [(column, 1.0 if n == 1 else log2(1 + n)) for column, n in sorted(counts.items())]
    size = (sqrt(sum(value * value for _, value in valued)) or 1.0) / length
    return [(column, value / size) for column, value in valued]


class Scorer:
    """Log-odds of candidates without feature vectors in between; used by extraction."""

    __slots__ = ("_bias", "_columns", "_known", "_values")

    def __init__(self, columns: FeatureColumns, values: Floats, bias: float) -> None:
        """Keep columns, weights and bias; the table of features is built on first use."""
        self._columns, self._values, self._bias = columns, values, bias
        self._known: FeatureTable | None = None

    def __call__(self, frames: Sequence[Frame], number: PieceNumbers) -> Floats:
        """Return (N,) log-odds of candidates' frames; `number` keeps piece numbers, and may be used again."""
        out = np.full(len(frames), self._bias)
        if not frames:
            return out
        from chaffinch.relations.features._compiled import _sums

        several = len(self._columns.views) > 1
        known = self._known = self._table() if self._known is None else self._known
        arrays = flat(frames, number)
        room = scratch(max(len(frame.stems) for frame in frames), arrays.order.shape[1], len(known.weights))
        for view, names in zip(self._columns.views, self._columns.number, strict=True):
            length = LENGTHS[view] if several else 1.0
            if view in COMPILED:
                _sums.add_view(arrays, number.pieces, known, COMPILED[view], length, room, out)
                continue
            for n, frame in enumerate(frames):
                out[n] += sum(value * self._values[column] for column, value in _block(frame, view, names, length))
        return out

    def _table(self) -> FeatureTable:
        """Return a hash table from keys of the compiled views' features to columns, at most half full."""
        from chaffinch.relations.features._compiled import _names, _sums

        size = 1 << max(10, (2 * len(self._columns)).bit_length())
        known, start = FeatureTable(np.zeros(size, np.uint64), np.zeros(size, np.int32), self._values), 0
        for view, names in zip(self._columns.views, self._columns.names, strict=True):
            if view in COMPILED:
                codes = np.frombuffer("".join(names).encode("utf-32-le"), np.uint32)
                ends = np.cumsum([0, *map(len, names)])
                keys = np.zeros(len(names), np.uint64)
                _names.name_keys(codes, ends, COMPILED[view], keys)
                _sums.enter(keys, start, known.table, known.columns)
            start += len(names)
        return known
