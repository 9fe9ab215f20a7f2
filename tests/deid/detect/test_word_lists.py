"""Rates of words, and terms that identify nobody unless they are next to a person."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from chaffinch.deid.detect.word_lists import word_lists
from chaffinch.deid.patterns import find as patterns
from chaffinch.text import Document
from tests.deid.texts import texts

SHIELDED = [
    "{Foley} removed",
    "{Parkinson disease} stable",
    "{Parkinson's disease} stable",
    "{Down syndrome}",
    "{Cushing syndrome}",
    "{Murphy sign} negative",
    "{Wells score} 3",
    "{Hodgkin lymphoma}",
    "{Lewy body dementia}",
    "on {Lipitor} now",
    "on {lisinopril} now",
    "{Gram stain} pending",
    "{Gleason grade} 7",
]


@pytest.mark.parametrize("case", SHIELDED)
def test_terms_are_shielded(case: str) -> None:
    start, end = case.index("{"), case.index("}") - 1
    doc = Document.make(case.replace("{", "").replace("}", ""))
    assert any(
        span.start <= start and span.end >= end and span.label == "O" for span in word_lists().find_protected(doc)
    )


@pytest.mark.parametrize(
    "text",
    [
        "Dr. Foley",
        "Mr. Parkinson",
        "Mary Wells",
        "Foley, MD",
        "Nurse Murphy",
        "J. Wilson",
        "Patient: Baker",
        "Graves, J.",
    ],
)
def test_a_person_is_not_shielded(text: str) -> None:
    assert word_lists().find_protected(Document.make(text + " was here.")) == []


def test_a_bare_eponym_is_shielded_less_than_one_with_its_noun() -> None:
    bare, full = Document.make("Wilson was positive."), Document.make("Wilson disease was positive.")
    assert [span.score for span in word_lists().find_protected(bare)] == [0.5]
    assert [span.score for span in word_lists().find_protected(full)] == [1.0]


def test_rates_tell_names_from_words() -> None:
    assert word_lists().rate("SMITH", "last") == "hi"
    assert word_lists().rate("notaname", "last") == ""
    assert word_lists().is_name("Smith")
    assert word_lists().is_name("Zwylkowitz")
    for word in ("patient", "Assessment", "Lasix", "Cardiology", "mg", "Hospital"):
        assert not word_lists().is_name(word)


def test_a_rare_eponym_is_protected_before_a_head_noun_alone() -> None:
    note = Document.make("A Hasson trocar, HASSON TROCAR, Morison's pouch. Hasson came; Dr. Hasson trocar kit.")
    found = [(note.text[span.start : span.end], span.score) for span in word_lists().find_protected(note)]
    assert found == [("Hasson", 0.5), ("HASSON", 0.5), ("Morison", 0.5)]


@settings(max_examples=100, deadline=None)
@given(texts)
def test_any_text_gives_votes_inside_it(text: str) -> None:
    for span in word_lists().find_protected(Document.make(text)):
        assert 0 <= span.start < span.end <= len(text)
        assert span.label == "O"


def test_times_of_day_and_credentials_behind_a_name_are_protected() -> None:
    note = Document.make("Ann Lee, LMHC, F.A.C.C. at 07:58:41 and 14:05. Lot 25:61, LMHC; she, LMHC.")
    found = [(note.text[span.start : span.end], span.source) for span in word_lists().find_protected(note)]
    assert found == [
        ("LMHC", "credential"), ("F.A.C.C.", "credential"), ("07:58:41", "time"), ("14:05", "time"),
    ]  # fmt: skip


def test_things_named_after_places_are_protected_and_what_a_person_could_be_called_is_not() -> None:
    note = Document.make("Congo red negative, Poland Spring at bedside. Mary Jane doing well, seen by Dr Pepper.")
    assert [note.text[span.start : span.end] for span in word_lists().find_protected(note)] == [
        "Congo red",
        "Poland Spring",
    ]
    found = {note.text[span.start : span.end] for span in patterns.find(note)}
    assert "Pepper" in found
    assert not found & {"Congo", "Poland"}
