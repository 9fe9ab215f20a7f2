"""Notes rewritten to learn from: spans move with their text, identifiers change everywhere alike, styles keep words."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaffinch import deid
from chaffinch.deid.training.rewrite.edits import Edit, Marked
from chaffinch.deid.training.rewrite.redraw import Redrawer
from chaffinch.deid.training.rewrite.restyle import STYLES, Style, dictate, lower, restyle, scan, upper
from chaffinch.deid.training.rewrite.spoken import say_date, say_number
from chaffinch.text import Document, Span

NOTES = deid.notes(8, 2, seed=2, style="varied")


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@given(st.lists(st.tuples(st.text("ab ", max_size=4), st.text("xy", min_size=1, max_size=4)), max_size=6), st.data())
def test_spans_move_with_their_text(parts: list[tuple[str, str]], data: st.DataObject) -> None:
    """Words of x and y are identifiers; every edit replaces one of them, or what stands before it."""
    text, spans, edits, expected = "", [], [], []
    for before, name in parts:
        if before and data.draw(st.booleans()):
            edits.append(Edit(len(text), len(text) + len(before), data.draw(st.text("cd ", max_size=5))))
        text += before
        new = data.draw(st.one_of(st.none(), st.text("xyz", min_size=1, max_size=6)))
        if new is not None:
            edits.append(Edit(len(text), len(text) + len(name), new))
        spans.append(Span(len(text), len(text) + len(name), "NAME"))
        expected.append(name if new is None else new)
        text += name
    edited = Marked(text, tuple(spans)).apply_edits(edits)
    assert [edited.text[span.start : span.end] for span in edited.spans] == expected


def test_a_span_of_which_nothing_is_left_goes() -> None:
    note = Marked("seen Ann today", (Span(5, 8, "PATIENT"),))
    assert note.apply_edits([Edit(5, 8, " ")]).spans == ()


def test_the_same_identifier_is_redrawn_alike_and_most_change() -> None:
    redraw, changed, total = Redrawer.of(NOTES), 0, 0
    for number, doc in enumerate(NOTES):
        new = redraw(doc, rng(number))
        old = doc.layer("gold")
        assert [span.label for span in new.spans] == [span.label for span in old]
        drawn: dict[tuple[str, str], str] = {}
        for before, after in zip(old, new.spans, strict=True):
            was, now = doc.text[before.start : before.end], new.text[after.start : after.end]
            if before.label != "DATE":
                assert drawn.setdefault((before.label, was), now) == now
            changed, total = changed + (was != now), total + 1
        outside = _without(doc.text, old), _without(new.text, new.spans)
        assert outside[0] == outside[1]
    assert 0.4 < changed / total < 0.9


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style.__name__)
def test_styles_keep_spans_on_letters_and_digits(style: Style) -> None:
    for number, doc in enumerate(NOTES):
        before, after = Marked.of(doc), style(Marked.of(doc), rng(number))
        assert [span.label for span in after.spans] == [span.label for span in before.spans]
        for span in after.spans:
            inside = after.text[span.start : span.end]
            assert inside == inside.strip()
            assert any(map(str.isalnum, inside))
        again = style(Marked.of(doc), rng(number))
        assert (again.text, again.spans) == (after.text, after.spans)


def test_letters_in_one_case() -> None:
    note = Marked("Dr. Penn", (Span(4, 8, "DOCTOR"),))
    assert (lower(note, rng()).text, upper(note, rng()).text) == ("dr. penn", "DR. PENN")
    longer = Marked("Straße", ())
    assert upper(longer, rng()) is longer


def test_dictated_notes_have_neither_digits_nor_marks() -> None:
    text = "DOB 03/14/1962, MRN 00-48-213. BP 120/80, temp 38.5"
    spans = (Span(4, 14, "DATE"), Span(20, 29, "MEDICALRECORD"))
    said = dictate(Marked(text, spans), rng(1))
    assert re.fullmatch(r"[a-z ]+", said.text)
    assert said.text[said.spans[0].start : said.spans[0].end].startswith("march ")
    assert re.search(r"thirty eight point five", said.text)


def test_scanned_notes_lose_few_characters() -> None:
    note = Marked.of(NOTES[0])
    seen = scan(note, rng(3))
    assert seen.text != note.text
    assert abs(len(seen.text) - len(note.text)) < 0.03 * len(note.text)


def test_numbers_and_dates_in_words() -> None:
    assert [say_number(digits, rng()) for digits in ("7", "78", "1962", "2005", "2000")] == [
        "seven", "seventy eight", "nineteen sixty two", "twenty oh five", "twenty hundred",
    ]  # fmt: skip
    assert set(say_number("5550148", rng()).split()) <= {"five", "zero", "oh", "one", "four", "eight"}
    assert say_date("31/12/2023", rng(1)) in (
        "december thirty first twenty twenty three",
        "december thirty one twenty twenty three",
    )
    assert say_date("40/40", rng()) is None
    assert say_date("in May", rng()) is None


def test_no_share_no_change() -> None:
    note = Marked.of(NOTES[0])
    assert restyle(note, rng(), 0.0) is note
    assert isinstance(note.document("a"), Document)
    assert "characters" in repr(note)


def _without(text: str, spans: Iterable[Span]) -> str:
    """The text outside of spans."""
    out, last = [], 0
    for span in spans:
        out.append(text[last : span.start])
        last = span.end
    return "|".join([*out, text[last:]])
