"""Reading of notes: caseless notes and the lowest level of the dial."""

from __future__ import annotations

import numpy as np
import pytest
from recipes.abstracts import LEADS, TITLES, in_layout

from chaffinch.deid.detect import recall_dial as dial
from chaffinch.deid.detect.cues import with_cues
from chaffinch.deid.detect.detector import detector
from chaffinch.deid.detect.model import upper_if_caseless
from chaffinch.deid.detect.recall_dial import DialSample
from chaffinch.deid.detect.token_scores import TokenIndex
from chaffinch.text import Document
from chaffinch.weak import Regex


@pytest.mark.parametrize(
    "text", ["SEEN BY DR. PENN, 60YO, ON 3/4/98.", "seen by dr. penn, 60yo, on 3/4/98.", "pt w/ COPD"]
)
def test_notes_without_words_that_begin_with_a_capital_are_read_in_capitals(text: str) -> None:
    doc = Document.make(text)
    read = upper_if_caseless(doc)
    assert read.text == text.upper()
    np.testing.assert_array_equal(read.tokens, doc.tokens)  # so that what is found stands where it stood


def test_notes_in_which_capitals_tell_something_are_read_as_they_are() -> None:
    for text in ("Seen by Dr. PENN.", "Penn saw him", "", "12/3", "strasse und straße"):
        assert upper_if_caseless(Document.make(text)).text == text


def test_what_is_found_in_a_note_in_small_letters_stands_in_the_note_as_it_came() -> None:
    text = "seen by dr. penn on 3/4/98, call 555-123-4567. project wren"
    sees = detector(deny=["Project Wren"], types=[Regex("visits", "seen", label="Visit")])
    (found,) = sees([Document.make(text, id="a")])
    assert found.text == text
    assert [text[span.start : span.end] for span in found.layer("deid") if span.label == "DOCTOR"] == ["penn"]
    assert {"OTHER", "DATE", "PHONE", "Visit"} <= {span.label for span in found.layer("deid")}


def test_a_dial_with_a_lowest_level_says_what_it_reaches() -> None:
    """Fit on identifiers at chances 0.05, 0.15, …, 0.95: nine of ten are above 0.1, eight in the balanced setting."""
    chances = np.arange(0.05, 1, 0.1)
    read = DialSample(chances, np.zeros(10, np.int64), np.zeros(10, np.bool_), np.ones(10, np.bool_))
    free = dial.fit(read, [], recalls=(0.3, 1.0))
    held = dial.fit(read, [], recalls=(0.3, 1.0), lowest=0.1)
    assert held.levels == (free.levels[0], 0.1)
    assert held.reached == (0.8, 0.9)  # a level never flags less than the balanced setting
    assert free.reached[1] == 1.0


def test_abstracts_in_layout_hold_the_words_of_the_abstract_and_no_identifier() -> None:
    plain = Document.make("Aspirin lowers fever. We treated 20 men. All recovered.", id="a", meta={"source": "s"})
    (made,) = in_layout([plain])
    (again,) = in_layout([plain])
    assert made.text == again.text
    assert made.layers["gold"] == ()
    assert made.meta["source"] == "s"
    added = " ".join([*TITLES, *LEADS]).lower().split()
    assert not set(made.text.lower().split()) - set(added) - set(plain.text.lower().split()) - {"-", "*", "•"}


def test_short_numbers_in_a_row_of_numbers_are_never_flagged_by_models() -> None:
    text = "PD 535 747 323 323 222 5551234 Penn\nRoom 535, Penn"
    (doc,) = with_cues([Document.make(text)])
    free = detector()._not_protected(TokenIndex.of([doc]), np.ones(len(doc.tokens)))
    kept = [word for word, is_free in zip(doc.words(), free.tolist(), strict=True) if is_free]
    assert kept == ["PD", "5551234", "Penn", "Room", "535", ",", "Penn"]
