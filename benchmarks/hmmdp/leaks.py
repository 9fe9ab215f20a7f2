"""Two taggers together and a dial: every token whose P(O), the mean of both, lies below theta is taken as well."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from benchmarks.hmmdp.scores import covered, united
from benchmarks.hmmdp.worker import FOUND
from chaffinch import Document, Soft

Pairs: TypeAlias = list[tuple[Document, Document]]  # each document as the two taggers have it; the first has both softs

DRAWS, SHARE = 1_000, 0.025  # of documents drawn anew, the share that may be less precise than what is asked


def pairs(first: Sequence[Document], second: Sequence[Document]) -> Pairs:
    """The documents side by side; the distributions of the first become the mean of both."""
    return [(one.with_soft(FOUND, _mean(one.soft[FOUND], two.soft[FOUND])), two)
            for one, two in zip(first, second, strict=True)]  # fmt: skip


def _mean(one: Soft, two: Soft) -> Soft:
    """The mean of two distributions over the labels of either."""
    labels = (*one.labels, *(name for name in two.labels if name not in one.labels))
    values = np.zeros((len(one.values), len(labels)))
    for soft in (one, two):
        values[:, [labels.index(name) for name in soft.labels]] += soft.values / 2
    return Soft(labels, values)


def union(both: Pairs, theta: float) -> list[Document]:
    """The documents with everything that either found, and every other token with P(O) below theta."""
    return [
        one.with_layer(FOUND, united(one, one.layer(FOUND), two.layer(FOUND), one.soft[FOUND], theta))
        for one, two in both
    ]


def choose(both: Pairs, precision: float, last: Callable[[list[Document]], list[Document]]) -> float:
    """The highest theta at which tokens are precise enough after the last step, also on other notes; 0 without one.

    Precision falls as theta rises, so thetas are halved.
    """
    chances = np.concatenate([one.soft[FOUND].values[:, one.soft[FOUND].labels.index("O")] for one, _ in both])
    thetas = np.unique(np.sort(chances)[: len(chances) // 4])  # identifiers are fewer than that
    low, high = -1, len(thetas)  # precise enough at low, not at high
    while high - low > 1:
        middle = (low + high) // 2
        if _precision(last(union(both, float(thetas[middle])))) >= precision:
            low = middle
        else:
            high = middle
    return float(thetas[low]) if low >= 0 else 0.0


def _precision(docs: Sequence[Document]) -> float:
    """The share of found tokens that are in gold spans: what nearly all draws of as many documents reach."""
    counts = []
    for doc in docs:
        found = covered(doc, doc.layer(FOUND))
        counts.append((int((found & covered(doc, doc.layer("gold"))).sum()), int(found.sum())))
    drawn = np.random.default_rng(0).integers(len(docs), size=(DRAWS, len(docs)))
    hits, size = np.array(counts, float)[drawn].sum(axis=1).T
    return float(np.quantile(hits / np.maximum(size, 1.0), SHARE))
