"""Kinds of mistakes and label confusion."""

from __future__ import annotations

from hypothesis import given

from chaffinch.evaluate import Pair
from chaffinch.evaluate.mistakes import cases, confusion, kind_counts
from chaffinch.evaluate.schemes.spans import count_strict
from chaffinch.text import Document, Span
from tests.evaluate.strategies import pairs


def test_every_kind_by_hand() -> None:
    gold = (Span(0, 3, "A"), Span(5, 8, "A"), Span(10, 13, "A"), Span(15, 18, "A"), Span(20, 23, "A"))
    found = (Span(0, 3, "A"), Span(5, 8, "B"), Span(10, 14, "A"), Span(15, 19, "B"), Span(25, 28, "B"))
    listed = cases([Pair(Document.make("x" * 30), gold, found)])
    assert [case.kind for case in listed] == [
        *("right", "wrong label", "wrong boundary", "wrong label and boundary"),
        *("missed", "spurious"),
    ]
    assert set(kind_counts(listed).values()) == {1}
    table = confusion(listed)
    assert table.labels == ("A", "B", "O")
    assert table.matrix.tolist() == [[2, 2, 1], [0, 0, 0], [0, 1, 0]]


def test_the_largest_overlap_goes_together() -> None:
    gold, found = (Span(0, 10, "A"),), (Span(0, 3, "A"), Span(4, 10, "A"))
    listed = cases([Pair(Document.make("x" * 10), gold, found)])
    assert [(case.kind, case.predicted) for case in listed] == [("wrong boundary", found[1]), ("spurious", found[0])]


@given(pairs())
def test_every_span_is_in_one_case(one: Pair) -> None:
    listed = cases([one])
    assert sorted(case.gold for case in listed if case.gold) == list(one.gold)
    assert sorted(case.predicted for case in listed if case.predicted) == list(one.predicted)
    assert kind_counts(listed)["right"] == count_strict([one]).values[..., 0].sum()
    assert confusion(listed).matrix.sum() == len(listed)
