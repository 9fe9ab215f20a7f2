"""True positives, false positives and false negatives per document and label, the same for every scheme.

D documents, L labels; the last axis of a count is true positives, false positives, false negatives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Item: TypeAlias = tuple[Any, ...]  # a thing that is right or wrong; its label comes first


class Tally(NamedTuple):
    """The labels of one document's hits and misses, one entry for each, and of all its gold and predicted items."""

    tp: Sequence[str]
    fp: Sequence[str]
    fn: Sequence[str]
    gold: Sequence[str]
    predicted: Sequence[str]


@dataclass(frozen=True, slots=True, eq=False)
class MatchCounts:
    """The counts of one scheme. `labels` is `("",)` where the scheme does not look at labels.

    `sizes` are the numbers of gold and predicted items: with the official scorers, tp + fn need not be all of gold.
    `macro` is what a macro average runs over.
    """

    labels: tuple[str, ...]
    values: Ints  # (D, L, 3)
    sizes: Ints  # (L, 2)
    macro: Literal["labels", "documents"] = "labels"
    facts: Mapping[str, float] = field(default_factory=dict)


def count_tallies(tallies: Iterable[Tally]) -> MatchCounts:
    """Return hits, false alarms and misses by document and label, labels sorted, from each document's tally."""
    rows = list(tallies)
    labels = tuple(sorted({label for row in rows for labels in row for label in labels}))
    index = {label: i for i, label in enumerate(labels)}
    values = np.zeros((len(rows), len(labels), 3), np.int64)
    sizes = np.zeros((len(labels), 2), np.int64)
    for d, row in enumerate(rows):
        for kind in range(3):
            for label in row[kind]:
                values[d, index[label], kind] += 1
        for side in range(2):
            for label in row[3 + side]:
                sizes[index[label], side] += 1
    return MatchCounts(labels, values, sizes)


def count_sets(sets: Iterable[tuple[set[Item], set[Item]]]) -> MatchCounts:
    """Return counts by document and label from sets of gold and predicted items; a hit is in both sets.

    >>> count_sets([({("NAME", 0, 4)}, {("NAME", 0, 4), ("DATE", 5, 9)})]).values.tolist()
    [[[0, 1, 0], [1, 0, 0]]]
    """
    return count_tallies(
        Tally(
            _labels(gold & predicted),
            _labels(predicted - gold),
            _labels(gold - predicted),
            _labels(gold),
            _labels(predicted),
        )
        for gold, predicted in sets
    )


def _labels(items: set[Item]) -> list[str]:
    """Return the labels of items, which are their first elements."""
    return [item[0] for item in items]


def rates(values: NDArray[Any]) -> Floats:
    """Return precision, recall and F1 (..., 3) of counts (..., 3); 0 where the denominator is 0, as in seqeval.

    >>> rates(np.array([6, 2, 4])).round(3).tolist()
    [0.75, 0.6, 0.667]
    """
    tp, fp, fn = values[..., 0], values[..., 1], values[..., 2]
    return np.stack([ratio(tp, tp + fp), ratio(tp, tp + fn), ratio(2 * tp, 2 * tp + fp + fn)], axis=-1)


def harmonic_mean(precision: NDArray[Any], recall: NDArray[Any]) -> Floats:
    """Return the harmonic mean of two arrays; 0 where both are 0."""
    return ratio(2 * precision * recall, precision + recall)


def ratio(part: NDArray[Any], whole: NDArray[Any]) -> Floats:
    """Return part / whole, and 0 where whole is 0."""
    out = np.zeros(np.broadcast(part, whole).shape)
    np.divide(part, whole, out=out, where=whole > 0)
    return out
