"""Span scores: strict, exact and relaxed."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

import numpy as np

from chaffinch.evaluate.counts import Item, MatchCounts, Tally, of_sets, of_tallies
from chaffinch.evaluate.pairing import Pair
from chaffinch.text import Span


def strict(pairs: Iterable[Pair]) -> MatchCounts:
    """Counts of spans whose start, end and label are all right.

    >>> from chaffinch.text import Document
    >>> strict([Pair(Document.make("Ann Lee"), (Span(0, 7, "NAME"),), (Span(0, 3, "NAME"),))]).values.tolist()
    [[[0, 1, 1]]]
    """
    return of_sets((items(one.gold), items(one.predicted)) for one in pairs)


def exact(pairs: Iterable[Pair]) -> MatchCounts:
    """Counts of places: start and end are right, whatever the label. Two labels at one place are one place."""
    return of_sets((places(one.gold), places(one.predicted)) for one in pairs)


def items(spans: Iterable[Span]) -> set[Item]:
    """Every (label, start, end)."""
    return {(s.label, s.start, s.end) for s in spans}


def places(spans: Iterable[Span]) -> set[Item]:
    """Every ("", start, end)."""
    return {("", s.start, s.end) for s in spans}


def relaxed(pairs: Iterable[Pair]) -> MatchCounts:
    """Counts of spans that share a character with a span of the same label on the other side, one to one.

    Hits are a maximum matching: no span is used twice, and no other choice of partners would give more hits. So
    one long prediction over two gold spans finds one of them, and two halves of one gold span are one hit and one
    false positive.

    >>> from chaffinch.text import Document
    >>> relaxed([Pair(Document.make("Ann Lee"), (Span(0, 7, "NAME"),), (Span(0, 3, "NAME"),))]).values.tolist()
    [[[1, 0, 0]]]
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    held = list(pairs)
    rows, columns = [], []
    first_gold = [0, *accumulate(len(one.gold) for one in held)]
    first_found = [0, *accumulate(len(one.predicted) for one in held)]
    for d, one in enumerate(held):
        for i, j in overlapping(one.gold, one.predicted):
            if one.gold[i].label == one.predicted[j].label:
                rows.append(first_gold[d] + i)
                columns.append(first_found[d] + j)
    shape = (first_gold[-1], first_found[-1])
    graph = csr_array((np.ones(len(rows), np.int8), (np.array(rows, np.int32), np.array(columns, np.int32))), shape)
    partner = maximum_bipartite_matching(graph, perm_type="column") if min(shape) else np.full(shape[0], -1)
    used = np.zeros(shape[1], bool)
    used[partner[partner >= 0]] = True
    return of_tallies(
        _tally(one, partner[a : a + len(one.gold)] >= 0, used[b : b + len(one.predicted)])
        for one, a, b in zip(held, first_gold, first_found, strict=False)
    )


def _tally(one: Pair, hit: Iterable[bool], used: Iterable[bool]) -> Tally:
    gold, found = [s.label for s in one.gold], [s.label for s in one.predicted]
    golds, founds = list(zip(gold, hit, strict=True)), list(zip(found, used, strict=True))
    return Tally(
        [label for label, right in golds if right],
        [label for label, right in founds if not right],
        [label for label, right in golds if not right],
        gold,
        found,
    )


def overlapping(gold: Sequence[Span], predicted: Sequence[Span]) -> Iterator[tuple[int, int]]:
    """The indices of every gold and predicted span that share a character; `predicted` must be sorted.

    >>> list(overlapping([Span(0, 5, "A")], [Span(0, 2, "A"), Span(4, 9, "B"), Span(5, 9, "A")]))
    [(0, 0), (0, 1)]
    """
    starts = [s.start for s in predicted]
    reach = list(accumulate((s.end for s in predicted), max))  # rises, so that it can be searched
    for i, span in enumerate(gold):
        for j in range(bisect_right(reach, span.start), bisect_left(starts, span.end)):
            if predicted[j].end > span.start:
                yield i, j
