"""Which documents and layers are compared, and what is refused."""

from __future__ import annotations

import pytest

from chaffinch.errors import DataError
from chaffinch.evaluate import evaluate, pair
from chaffinch.text import Document, Span
from tests.evaluate.strategies import note

ANN, LEE = Span(0, 3, "NAME"), Span(4, 7, "NAME")
CANARY = "Quillfeather"


def test_a_document_that_nobody_predicted_counts_as_predicted_empty() -> None:
    gold = [note("Ann", [ANN], number="1"), note("Ann Lee", [LEE], number="2")]
    report = evaluate(gold, gold[:1])
    assert (report.missing, report.micro.recall, report.micro.fn) == (1, 0.5, 1)
    assert "missing documents: 1" in str(report)


def test_a_predicted_document_without_gold_is_counted_and_not_scored() -> None:
    gold = [note("Ann", [ANN])]
    report = evaluate(gold, [*gold, note("Lee", [Span(0, 3, "NAME")], number="2")])
    assert (report.extra, report.micro.fp, report.as_dict()["extra"]) == (1, 0, 1)


def test_documents_are_paired_by_id_in_any_order() -> None:
    gold = [note("Ann", [ANN], number="1"), note("Ann Lee", [LEE], number="2")]
    assert evaluate(gold, gold[::-1]).micro.f1 == 1.0


def test_documents_with_unrelated_ids_are_paired_by_text() -> None:
    gold = [note("Ann", [ANN], number="1"), note("Ann Lee", [LEE], number="2"), note("Ann", [], number="3")]
    found = [note("Ann Lee", [LEE], number="a"), note("Ann", [ANN], number="b"), note("Ann", [], number="c")]
    report = evaluate(gold, found)
    assert (report.missing, report.extra, report.micro.f1) == (0, 0, 1.0)  # equal texts keep their order


def test_documents_without_ids_are_paired_by_text() -> None:
    gold = [Document.make("Ann", layers={"gold": [ANN]}), Document.make("Ann Lee", layers={"gold": [LEE]})]
    assert evaluate(gold, gold).micro.f1 == 1.0


@pytest.mark.parametrize(
    ("gold", "found", "message"),
    [
        ([("1", "Ann"), ("2", "Lee")], [("1", "Ann"), ("2", "Leo")], "1 of 2 documents have other text"),
        ([("1", "Ann")], [("2", "Leo")], "none of the 1 gold ids"),
        ([("1", "Ann"), ("1", "Lee")], [("1", "Ann")], "1 documents share an id"),
        ([], [], "no gold documents"),
    ],
)
def test_what_cannot_be_paired_is_refused(
    gold: list[tuple[str, str]], found: list[tuple[str, str]], message: str
) -> None:
    sides = [[note(f"{text} {CANARY}", [ANN], number=f"{CANARY}-{n}") for n, text in side] for side in (gold, found)]
    with pytest.raises(DataError, match=message) as caught:
        pair(*sides)
    assert CANARY not in str(caught.value)


def test_the_predicted_layer_is_the_one_beside_gold_even_where_a_document_lacks_it() -> None:
    gold = [note("Ann", [ANN], number="1"), note("Ann Lee", [LEE], number="2")]
    found = [gold[0].with_layer("cascade", [ANN]), gold[1]]  # the second has only its gold layer
    assert evaluate(gold, found).micro.recall == 0.5  # and must not be scored against itself


def test_layers_can_be_named() -> None:
    gold = [note("Ann Lee", [ANN]).with_layer("second reader", [LEE])]
    found = [gold[0].with_layer("a", [LEE]).with_layer("b", [])]
    assert evaluate(gold, found, layer="second reader", predicted_layer="a").micro.f1 == 1.0
    newest = evaluate(gold, found)
    assert (newest.layer, newest.predicted_layer, newest.micro.f1) == ("gold", "b", 0.0)
    votes = note("Ann Lee", [ANN]).with_layer("source:a", [LEE]).with_layer("source:b", [])
    with pytest.raises(DataError, match="name the one to score"):
        evaluate(gold, [votes])
    with pytest.raises(DataError, match="no predicted document has a layer 'c'"):
        evaluate(gold, found, predicted_layer="c")
    with pytest.raises(DataError, match="no gold document has a layer 'c'"):
        evaluate(gold, found, layer="c")


def test_gold_without_a_clear_layer_is_refused() -> None:
    with pytest.raises(DataError, match="none is called gold"):
        pair([note("Ann", [ANN], layer="a").with_layer("b", [])], [])
    with pytest.raises(DataError, match="annotated side"):
        pair([Document.make("Ann")], [])


def test_repeated_spans_count_once_and_the_most_confident_stays() -> None:
    pairs = pair([note("Ann", [ANN])], [note("Ann", [Span(0, 3, "NAME", 0.2), Span(0, 3, "NAME", 0.9)])])
    assert [span.score for span in pairs.items[0].predicted] == [0.9]


def test_representations_hold_no_text_and_no_id() -> None:
    pairs = pair([note(CANARY, [Span(0, 3, "NAME")], number=CANARY)], [])
    assert CANARY not in repr(pairs) + repr(pairs.items) + repr(evaluate([pairs.items[0].document], []))
