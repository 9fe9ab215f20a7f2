"""The account of sources against a table worked by hand."""

from __future__ import annotations

import json

import pytest

from chaffinch.errors import DataError
from chaffinch.text import Document, Span
from chaffinch.weak.analysis import analyse
from chaffinch.weak.analysis.results import Measure

# Tokens:  0 severe  1 copper  2 toxicosis  3 in  4 dogs     (a: 1-2 D; b: 2 D, 4 D; c: 1 C, 3 O)
TEXT = "severe copper toxicosis in dogs"
LAYERS = {
    "source:a": [Span(7, 23, "D")],
    "source:b": [Span(14, 23, "D"), Span(27, 31, "D")],
    "source:c": [Span(7, 13, "C"), Span(24, 26, "O")],
    "source:mute": [],
}
GOLD = [Span(7, 23, "D"), Span(0, 6, "X")]


def voted(*, canary: str = "") -> list[Document]:
    first = Document.make(TEXT, id="one", layers={**LAYERS, "gold": GOLD})
    return [first, Document.make(f"Nothing here {canary}", id="two", layers={name: [] for name in LAYERS})]


def counted(own: Measure | None) -> tuple[object, ...]:
    assert own is not None
    return (own.votes, own.coverage, own.overlap, own.conflict, own.true_precision, own.true_recall)


def test_the_table_worked_by_hand() -> None:
    found = analyse(voted())
    a, b, c, mute = found.sources
    rows = {(own.name, row.label): row for own in found.sources for row in own.rows}
    # of the distinct spans a's (1-2 D), b's (2 D) and (4 D) are D: three; c's (1 C) is the only C; four in all
    assert counted(rows["a", "D"].spans) == (1, 1 / 3, 1.0, 1.0, 1.0, 1.0)
    assert counted(rows["b", "D"].spans) == (2, 2 / 3, 0.5, 0.5, 0.0, 0.0)
    assert counted(rows["c", "C"].spans) == (1, 1.0, 1.0, 1.0, 0.0, None)
    assert counted(rows["b", "all"].spans) == (2, 2 / 4, 0.5, 0.5, 0.0, 0.0)
    assert counted(a.whole.spans)[-1] == 1 / 2, "a label that no source has is missed"
    # seven tokens: a votes on two, of which c disputes one; b on two, one of them with a, which agrees
    assert len(voted()[0].tokens) + len(voted()[1].tokens) == found.tokens == 7
    assert counted(rows["a", "D"].tokens) == (2, 2 / 7, 1.0, 0.5, 1.0, 1.0)
    assert counted(rows["b", "D"].tokens) == (2, 2 / 7, 0.5, 0.0, 0.5, 0.5)
    assert counted(rows["c", "O"].tokens) == (1, 1 / 7, 0.0, 0.0, 1.0, 1 / 2)
    assert rows["c", "O"].spans is None
    assert (mute.documents, mute.weight, mute.whole.tokens.votes) == (0, None, 0)
    assert (b.documents, c.documents) == (1, 1)
    assert (found.voted, found.entity, found.disputed, found.without) == (4 / 7, 3 / 7, 1 / 4, 1)
    assert found.contested == 3 / 4
    assert [(own.id, own.voted, own.tokens, own.spans) for own in found.disagreements] == [("one", 4, 1, 3)]
    # a's span is touched by two others, who take (2 D) or (1 C); b's (2 D) by a alone; c's (1 C) by a
    assert found.outlook.agreement == 0.0


def test_estimates_are_probabilities_and_copies_depend_on_one_another() -> None:
    docs = [
        Document.make(f"{word} came home", id=str(number), layers={
            "source:x": [Span(0, len(word), "P")], "source:copy": [Span(0, len(word), "P")],
            "source:other": [Span(0, len(word), "P")] if number % 3 else [Span(len(word) + 1, len(word) + 5, "P")],
        })
        for number, word in enumerate(["Ann", "Bob", "Cleo", "Dora"] * 8)
    ]  # fmt: skip
    found = analyse(docs)
    for source in found.sources:
        own = source.whole.spans
        assert own is not None
        assert own.precision is not None
        assert own.recall is not None
        assert 0 <= own.precision <= 1
        assert 0 <= own.recall <= 1
        assert all(abs(sum(row) - 1) < 1e-6 for row in source.confusion)
    assert found.outlook.checked is None
    assert found.outlook.precision is not None
    assert 0 < found.outlook.precision <= 1
    assert found.pairs()[0][:2] == ("x", "copy")
    good, worse = (found.sources[k].whole.spans for k in (0, 2))
    assert good is not None
    assert worse is not None
    assert (good.precision or 0) > (worse.precision or 0)
    assert [source.weight for source in found.sources if source.name in ("x", "copy")] == [
        pytest.approx(0.5, abs=0.2)
    ] * 2


@pytest.mark.parametrize("layers", [{"source:x": []}, {"source:x": [Span(0, 1, "O")]}], ids=["silent", "outside"])
def test_votes_for_no_entity_at_all_are_no_failure(layers: dict[str, list[Span]]) -> None:
    found = analyse([Document.make("a b", layers=layers), Document.make("", layers={"source:x": []})])
    assert (found.outlook.spans, found.outlook.precision, found.outlook.agreement) == (0, None, None)
    assert "x" in str(found)


def test_what_is_not_there_is_refused() -> None:
    with pytest.raises(DataError, match="apply sources first"):
        analyse([Document.make("a")])
    with pytest.raises(DataError, match="did you mean 'mute'"):
        analyse(voted(), sources=["muet"])
    with pytest.raises(DataError, match="layer 'golden'"):
        analyse(voted(), gold="golden")


def test_no_text_of_documents_is_in_the_account() -> None:
    found = analyse(voted(canary="Quillfeather"))
    for told in (repr(found), str(found), found.text(level="tokens"), json.dumps(found.to_json())):
        assert "Quillfeather" not in told
        assert "toxicosis" not in told
