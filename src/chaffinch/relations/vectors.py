"""Candidates as rows of numbers: one block of columns for each view, each block of a fixed length.

N candidates, F features.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import log2, sqrt
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from chaffinch.relations import contexts, paths, statistics, words
from chaffinch.relations.frames import Frame

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

VIEWS: dict[str, Callable[[Frame], Iterable[str]]] = {
    "words": words.features,
    "statistics": statistics.features,
    "paths": paths.features,
    "contexts": contexts.features,
}
Numbers: TypeAlias = Callable[[Frame], Iterable[int | None]]
LOGS = [log2(1 + n) for n in range(64)]
# The length of each view's block: what says more per feature weighs more.
LENGTHS = {"words": 0.5, "statistics": 0.5, "paths": 1.0, "contexts": 0.5}


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The features that a model knows, view by view; `number` has the column of "view feature"."""

    views: tuple[str, ...]
    names: tuple[tuple[str, ...], ...]  # of each view, sorted
    number: tuple[dict[str, int], ...] = field(repr=False)

    @classmethod
    def of(cls, views: Sequence[str], names: Sequence[Sequence[str]]) -> Columns:
        """The columns of named features."""
        number, at = [], 0
        for own in names:
            number.append({name: at + n for n, name in enumerate(own)})
            at += len(own)
        return cls(tuple(views), tuple(map(tuple, names)), tuple(number))

    def __len__(self) -> int:
        return sum(map(len, self.names))


def learn(rows: Iterable[tuple[Frame, str]], views: Sequence[str], *, floor: int) -> Columns:
    """The features that candidates of at least `floor` groups show; each row is a frame and its group."""
    counts: list[Counter[str]] = [Counter() for _ in views]
    last: list[dict[str, str]] = [{} for _ in views]
    for frame, group in rows:
        for v, view in enumerate(views):
            own = last[v]
            for name in set(VIEWS[view](frame)):
                if own.get(name) != group:  # rows of a group stand together
                    own[name] = group
                    counts[v][name] += 1
    return Columns.of(views, [sorted(name for name, n in own.items() if n >= floor) for own in counts])


def matrix(frames: Iterable[Frame], columns: Columns) -> csr_matrix:
    """(N, F) what each candidate shows: the binary logarithm of 1 + the count, each view's block made of one length."""
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


def row(frame: Frame, columns: Columns) -> list[tuple[int, float]]:
    """The columns of a candidate and their values, rising."""
    out: list[tuple[int, float]] = []
    several = len(columns.views) > 1
    for view, known in zip(columns.views, columns.number, strict=True):
        counts: dict[int, int] = {}
        for name in VIEWS[view](frame):
            column = known.get(name)
            if column is not None:
                counts[column] = counts.get(column, 0) + 1
        valued = [(column, 1.0 if n == 1 else log2(1 + n)) for column, n in sorted(counts.items())]
        size = (sqrt(sum(value * value for _, value in valued)) or 1.0) / (LENGTHS[view] if several else 1.0)
        out += [(column, value / size) for column, value in valued]
    return out


class _Named:
    """The columns of a frame's features in the order of their names."""

    __slots__ = ("_features", "_known")

    def __init__(self, features: Callable[[Frame], Iterable[str]], known: dict[str, int]) -> None:
        self._features, self._known = features, known

    def __call__(self, frame: Frame) -> Iterable[int | None]:
        return map(self._known.get, self._features(frame))


class Scorer:
    """Log-odds of candidates, without rows in between: what extraction uses."""

    __slots__ = ("_bias", "_tables", "_values")

    def __init__(self, columns: Columns, values: Sequence[float], bias: float) -> None:
        several = len(columns.views) > 1
        self._bias, self._values = bias, values
        fast: dict[str, Callable[[dict[str, int]], Numbers]] = {
            "words": words.Numbers,
            "statistics": statistics.Numbers,
        }
        self._tables = [
            (fast[view](known) if view in fast else _Named(VIEWS[view], known), LENGTHS[view] if several else 1.0)
            for view, known in zip(columns.views, columns.number, strict=True)
        ]

    def __call__(self, frame: Frame) -> float:
        total, values = self._bias, self._values
        for numbers, length in self._tables:
            counts = Counter(numbers(frame))
            counts.pop(None, None)
            added = squares = 0.0
            for column, n in counts.items():
                weight = values[column]  # type: ignore[index]  # None was popped
                if n == 1:
                    added += weight
                    squares += 1.0
                else:
                    value = LOGS[n] if n < len(LOGS) else log2(1 + n)
                    added += value * weight
                    squares += value * value
            if squares:
                total += length * added / sqrt(squares)
        return total
