"""Span scores: strict, exact and relaxed."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

import numpy as np

from chaffinch.evaluate.counts import Item, MatchCounts, Tally, count_sets, count_tallies
from chaffinch.evaluate.pairing import Pair
from chaffinch.text import Span


def count_strict(pairs: Iterable[Pair]) -> MatchCounts:
    """Return counts of spans, by document and label; right if start, end and label are.

    >>> from chaffinch.text import Document
    >>> count_strict([Pair(Document.make("Ann Lee"), (Span(0, 7, "NAME"),), (Span(0, 3, "NAME"),))]).values.tolist()
    [[[0, 1, 1]]]
    """
    return count_sets((span_items(pair.gold), span_items(pair.predicted)) for pair in pairs)


def count_exact(pairs: Iterable[Pair]) -> MatchCounts:
    """Return counts of spans, by document; right if start and end are; those that differ in label only count once."""
    return count_sets((boundaries(pair.gold), boundaries(pair.predicted)) for pair in pairs)


def span_items(spans: Iterable[Span]) -> set[Item]:
    """Return (label, start, end) of every span."""
    return {(s.label, s.start, s.end) for s in spans}


def boundaries(spans: Iterable[Span]) -> set[Item]:
    """Return ("", start, end) of every span: items without labels."""
    return {("", s.start, s.end) for s in spans}


def count_relaxed(pairs: Iterable[Pair]) -> MatchCounts:
    """Return counts of spans, by document and label; right if paired one to one with an overlap of equal label.

    Hits are a maximum matching: no span is used twice, and no other choice of partners would give more hits. So
    one long prediction over two gold spans finds one of them, and two halves of one gold span are one hit and one
    false positive.

    >>> from chaffinch.text import Document
    >>> count_relaxed([Pair(Document.make("Ann Lee"), (Span(0, 7, "NAME"),), (Span(0, 3, "NAME"),))]).values.tolist()
    [[[1, 0, 0]]]
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    listed = list(pairs)
    rows, columns = [], []
    first_gold = [0, *accumulate(len(pair.gold) for pair in listed)]
    first_found = [0, *accumulate(len(pair.predicted) for pair in listed)]
    for d, pair in enumerate(listed):
        for i, j in overlap_indices(pair.gold, pair.predicted):
            if pair.gold[i].label == pair.predicted[j].label:
                rows.append(first_gold[d] + i)
                columns.append(first_found[d] + j)
    shape = (first_gold[-1], first_found[-1])
    graph = csr_array((np.ones(len(rows), np.int8), (np.array(rows, np.int32), np.array(columns, np.int32))), shape)
    partner = maximum_bipartite_matching(graph, perm_type="column") if min(shape) else np.full(shape[0], -1)
    used = np.zeros(shape[1], bool)
    used[partner[partner >= 0]] = True
    return count_tallies(
        _tally(pair, partner[a : a + len(pair.gold)] >= 0, used[b : b + len(pair.predicted)])
        for pair, a, b in zip(listed, first_gold, first_found, strict=False)
    )


def _tally(pair: Pair, hit: Iterable[bool], used: Iterable[bool]) -> Tally:
    """Return a document's labels of hits, false alarms, misses; `hit` flags gold, `used` predicted spans as right."""
    gold, found = [s.label for s in pair.gold], [s.label for s in pair.predicted]
    golds, founds = list(zip(gold, hit, strict=True)), list(zip(found, used, strict=True))
    return Tally(
        [label for label, right in golds if right],
        [label for label, right in founds if not right],
        [label for label, right in golds if not right],
        gold,
        found,
    )


def overlap_indices(gold: Sequence[Span], predicted: Sequence[Span]) -> Iterator[tuple[int, int]]:
    """Yield (gold index, predicted index) of all pairs that share a character; `predicted` must be sorted.

    >>> list(overlap_indices([Span(0, 5, "A")], [Span(0, 2, "A"), Span(4, 9, "B"), Span(5, 9, "A")]))
    [(0, 0), (0, 1)]
    """
    starts = [s.start for s in predicted]
    reach = list(accumulate((s.end for s in predicted), max))  # rises, so that it can be searched
    for i, span in enumerate(gold):
        for j in range(bisect_right(reach, span.start), bisect_left(starts, span.end)):
            if predicted[j].end > span.start:
                yield i, j
