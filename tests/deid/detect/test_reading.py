"""Reading of notes: caseless notes, discounted common words, and the lowest level of the dial."""

from __future__ import annotations

import numpy as np
import pytest
from recipes.deid_en import LEADS, TITLES, in_layout

from chaffinch.deid.detect import recall_dial as dial
from chaffinch.deid.detect.cues import with_cues
from chaffinch.deid.detect.detector import detector
from chaffinch.deid.detect.model import upper_if_caseless
from chaffinch.deid.detect.recall_dial import DialSample
from chaffinch.deid.detect.token_scores import DOUBT, TokenIndex, discount_common_words
from chaffinch.deid.detect.word_lists import word_lists
from chaffinch.text import Document, Soft
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


def test_common_words_are_doubted_and_nothing_else() -> None:
    docs = [Document.make("Penn will carpenter"), Document.make("will")]
    soft = Soft(("O", "A", "B"), np.tile([0.5, 0.3, 0.2], (4, 1)))
    found = discount_common_words(TokenIndex.of(docs), soft, word_lists()).values
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    np.testing.assert_allclose(found[[0, 2]], soft.values[[0, 2]])  # a name and a job
    for row in (1, 3):
        assert np.isclose(found[row, 0] / (1 - found[row, 0]), DOUBT)
        assert np.isclose(found[row, 1] / found[row, 2], 1.5)  # the labels keep their shares
    np.testing.assert_allclose(soft.values[1], [0.5, 0.3, 0.2])  # what was given is as it was
    text = "Lower pain. Range and Range\n- Range of MOTION Rose"
    words = text.replace(".", " .").replace("-", "- ").split()
    doc = Document.make(text)
    assert doc.words() == words
    soft = Soft(("O", "A"), np.full((len(words), 2), 0.5))
    lowered = discount_common_words(TokenIndex.of([doc]), soft, word_lists()).values[:, 1] < 0.5
    told = {(place, word) for place, word in enumerate(words) if lowered[place]}
    assert told == {(0, "Lower"), (1, "pain"), (3, "Range"), (4, "and"), (7, "Range"), (8, "of"), (9, "MOTION")}


def test_a_dial_with_a_lowest_level_says_what_it_reaches() -> None:
    """Fit on identifiers at chances 0.05, 0.15, …, 0.95: five of ten are above 0.5, for any wanted recall."""
    chances = np.arange(0.05, 1, 0.1)
    read = DialSample(chances, np.zeros(10, np.int64), np.zeros(10, np.bool_), np.ones(10, np.bool_))
    free = dial.fit(read, [], recalls=(0.3, 1.0))
    held = dial.fit(read, [], recalls=(0.3, 1.0), lowest=0.5)
    assert held.levels == (free.levels[0], 0.5)
    assert held.reached == (free.reached[0], 0.5)
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
