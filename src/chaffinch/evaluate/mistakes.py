"""What went wrong: each span of either side as right, wrong in some way, missed or spurious; label confusion.

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
from chaffinch.evaluate.schemes.spans import overlapping
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
        """Where it begins, for sorting and listing."""
        return min(s.start for s in (self.gold, self.predicted) if s is not None)


def cases(pairs: Iterable[Pair]) -> list[Case]:
    """Every span of both sides, once, in the order of documents and offsets.

    Spans that share a character are put together, each in one case at most: first those right in place and label,
    then those right in place, then in label, then the others; within each of these the largest overlap first.

    >>> from chaffinch.text import Document
    >>> note = Document.make("Ann Lee came on Monday")
    >>> gold = (Span(0, 7, "NAME"), Span(16, 22, "DATE"))
    >>> [case.kind for case in cases([Pair(note, gold, (Span(0, 3, "NAME"),))])]
    ['wrong boundary', 'missed']
    """
    return [case for d, one in enumerate(pairs) for case in sorted(_cases(d, one), key=lambda case: case.start)]


def _cases(d: int, one: Pair) -> list[Case]:
    ranks: list[tuple[int, int, int, int]] = []
    for i, j in overlapping(one.gold, one.predicted):
        a, b = one.gold[i], one.predicted[j]
        shared = min(a.end, b.end) - max(a.start, b.start)
        ranks.append((KINDS.index(_kind(a, b)), -shared, i, j))
    found: list[Case] = []
    free_gold, free_found = set(range(len(one.gold))), set(range(len(one.predicted)))
    for rank, _, i, j in sorted(ranks):
        if i in free_gold and j in free_found:
            free_gold.remove(i)
            free_found.remove(j)
            found.append(Case(d, KINDS[rank], one.gold[i], one.predicted[j]))
    found += [Case(d, "missed", one.gold[i], None) for i in sorted(free_gold)]
    return found + [Case(d, "spurious", None, one.predicted[j]) for j in sorted(free_found)]


def _kind(gold: Span, predicted: Span) -> Kind:
    place, label = (gold.start, gold.end) == (predicted.start, predicted.end), gold.label == predicted.label
    if place:
        return "right" if label else "wrong label"
    return "wrong boundary" if label else "wrong label and boundary"


def kind_counts(found: Iterable[Case]) -> dict[Kind, int]:
    """How many cases there are of each kind, zeros included."""
    counted = Counter(case.kind for case in found)
    return {kind: counted[kind] for kind in KINDS}


@dataclass(frozen=True, slots=True, eq=False)
class Confusion:
    """Spans by gold label (row) and predicted label (column); the last of both is "O": missed, spurious."""

    labels: tuple[str, ...]  # (L + 1,)
    matrix: Ints  # (L + 1, L + 1)


def confusion(found: Iterable[Case]) -> Confusion:
    """The label confusion of cases; spans are put together as in `cases`, wrong boundaries included.

    >>> case = Case(0, "wrong label", Span(0, 3, "NAME"), Span(0, 3, "DATE"))
    >>> confusion([case]).matrix.tolist()
    [[0, 0, 0], [1, 0, 0], [0, 0, 0]]
    """
    held = list(found)
    spans = [span for case in held for span in (case.gold, case.predicted) if span is not None]
    labels = (*sorted({span.label for span in spans}), OUTSIDE)
    place = {label: i for i, label in enumerate(labels[:-1])}
    matrix = np.zeros((len(labels), len(labels)), np.int64)
    for case in held:
        row = len(labels) - 1 if case.gold is None else place[case.gold.label]
        column = len(labels) - 1 if case.predicted is None else place[case.predicted.label]
        matrix[row, column] += 1
    return Confusion(labels, matrix)
