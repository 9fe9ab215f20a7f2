"""Error analysis: each gold or predicted span as right, wrong in some way, missed or spurious; label confusion.

L labels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from chaffinch.evaluate.counts import Ints
from chaffinch.evaluate.pairing import Pair
from chaffinch.evaluate.schemes.spans import overlap_indices
from chaffinch.text import Span

Kind: TypeAlias = Literal["right", "wrong label", "wrong boundary", "wrong label and boundary", "missed", "spurious"]
KINDS: tuple[Kind, ...] = (
    *("right", "wrong label", "wrong boundary", "wrong label and boundary"),
    *("missed", "spurious"),
)
OUTSIDE = "O"


@dataclass(frozen=True, slots=True)
class Case:
    """One gold span with its prediction, or one of them alone; `document` counts from 0."""

    document: int
    kind: Kind
    gold: Span | None
    predicted: Span | None

    @property
    def start(self) -> int:
        """Return where the gold or the predicted span begins, the smaller of the two, for sorting."""
        return min(s.start for s in (self.gold, self.predicted) if s is not None)


def cases(pairs: Iterable[Pair]) -> list[Case]:
    """Match gold and predicted spans by overlap; return each span in exactly one case, by document and offset.

    Spans that share a character are matched greedily, one to one: first those with the same boundaries and label, then
    the same boundaries, then the same label, then the others; within each of these the largest overlap first.

    >>> from chaffinch.text import Document
    >>> note = Document.make("Ann Lee came on Monday")
    >>> gold = (Span(0, 7, "NAME"), Span(16, 22, "DATE"))
    >>> [case.kind for case in cases([Pair(note, gold, (Span(0, 3, "NAME"),))])]
    ['wrong boundary', 'missed']
    """
    return [case for d, pair in enumerate(pairs) for case in sorted(_cases(d, pair), key=lambda case: case.start)]


def _cases(d: int, pair: Pair) -> list[Case]:
    """Return document `d`'s cases: gold matched one to one with predicted (best kind first), then missed, spurious."""
    ranks: list[tuple[int, int, int, int]] = []
    for i, j in overlap_indices(pair.gold, pair.predicted):
        a, b = pair.gold[i], pair.predicted[j]
        shared = min(a.end, b.end) - max(a.start, b.start)
        ranks.append((KINDS.index(_kind(a, b)), -shared, i, j))
    matches: list[Case] = []
    free_gold, free_found = set(range(len(pair.gold))), set(range(len(pair.predicted)))
    for rank, _, i, j in sorted(ranks):
        if i in free_gold and j in free_found:
            free_gold.remove(i)
            free_found.remove(j)
            matches.append(Case(d, KINDS[rank], pair.gold[i], pair.predicted[j]))
    matches += [Case(d, "missed", pair.gold[i], None) for i in sorted(free_gold)]
    return matches + [Case(d, "spurious", None, pair.predicted[j]) for j in sorted(free_found)]


def _kind(gold: Span, predicted: Span) -> Kind:
    """Return whether a matched pair is right, or what is wrong: "wrong label", "wrong boundary" or both."""
    boundary, label = (gold.start, gold.end) == (predicted.start, predicted.end), gold.label == predicted.label
    if boundary:
        return "right" if label else "wrong label"
    return "wrong boundary" if label else "wrong label and boundary"


def kind_counts(cases: Iterable[Case]) -> dict[Kind, int]:
    """Return {kind: number of cases}, zeros included, in the order of `KINDS`."""
    numbers = Counter(case.kind for case in cases)
    return {kind: numbers[kind] for kind in KINDS}


@dataclass(frozen=True, slots=True, eq=False)
class Confusion:
    """Spans by gold label (row) and predicted label (column); the last of both is "O": missed, spurious."""

    labels: tuple[str, ...]  # (L + 1,)
    matrix: Ints  # (L + 1, L + 1)


def confusion(cases: Iterable[Case]) -> Confusion:
    """Return the matrix of gold by predicted labels over cases; the last row and column mean no span.

    >>> case = Case(0, "wrong label", Span(0, 3, "NAME"), Span(0, 3, "DATE"))
    >>> confusion([case]).matrix.tolist()
    [[0, 0, 0], [1, 0, 0], [0, 0, 0]]
    """
    listed = list(cases)
    spans = [span for case in listed for span in (case.gold, case.predicted) if span is not None]
    labels = (*sorted({span.label for span in spans}), OUTSIDE)
    index = {label: i for i, label in enumerate(labels[:-1])}
    matrix = np.zeros((len(labels), len(labels)), np.int64)
    for case in listed:
        row = len(labels) - 1 if case.gold is None else index[case.gold.label]
        column = len(labels) - 1 if case.predicted is None else index[case.predicted.label]
        matrix[row, column] += 1
    return Confusion(labels, matrix)
