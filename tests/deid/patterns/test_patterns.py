"""Patterns find identifiers in every written form, leave look-alikes alone, and never fail on any text."""

from __future__ import annotations

import re
import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaffinch.deid import kinds
from chaffinch.deid.detect import cues
from chaffinch.deid.patterns import find as patterns
from chaffinch.deid.patterns.pattern import ByteText, Pattern, matcher_of
from chaffinch.text import Document, Span
from tests.deid.patterns.pattern_cases import CLEAN, FOUND
from tests.deid.texts import texts

CASES = [(label, line.strip()) for label, lines in FOUND.items() for line in lines.strip().splitlines()]
LOOKALIKES = [line.strip() for line in CLEAN.strip().splitlines()]


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 200
    assert len(LOOKALIKES) >= 200
    assert len(set(CASES)) == len(CASES)


@pytest.mark.parametrize(("label", "case"), CASES)
def test_identifiers_are_found_with_exact_bounds(label: str, case: str) -> None:
    start, end = case.index("{"), case.index("}") - 1
    doc = Document.make(case.replace("{", "").replace("}", ""))
    assert Span(start, end, label) in patterns.find(doc), [(s.label, s.start, s.end) for s in patterns.find(doc)]


@pytest.mark.parametrize("text", LOOKALIKES)
def test_lookalikes_are_left_alone(text: str) -> None:
    found = patterns.find(Document.make(text))
    assert [(span.label, span.source) for span in found] == []


def test_every_pattern_has_a_name_of_its_own_and_votes_a_known_subtype() -> None:
    names = [pattern.name for pattern in patterns.patterns()]
    assert len(set(names)) == len(names)
    assert {pattern.label for pattern in patterns.patterns()} <= set(kinds.KINDS)
    assert all(0 < pattern.score < 1 for pattern in patterns.patterns())
    for pattern in patterns.patterns():
        matcher, group = matcher_of(pattern.pattern, pattern.ignore_case)
        assert group <= matcher.groups


@settings(max_examples=300, deadline=None)
@given(texts)
def test_any_text_gives_spans_inside_it_that_do_not_overlap(text: str) -> None:
    spans = patterns.find(Document.make(text))
    assert all(0 <= span.start < span.end <= len(text) for span in spans)
    assert all(a.end <= b.start for a, b in pairwise(spans))
    assert all(not text[span.start].isspace() and not text[span.end - 1].isspace() for span in spans)


@settings(max_examples=150, deadline=None)
@given(texts, st.sampled_from(["é", "\U0001d49c", "ß\u0301", "\ufeff", "日本"]))
def test_offsets_count_characters_whatever_stands_before(text: str, odd: str) -> None:
    doc = Document.make(f"{odd}\n{text}\nSSN: 123-45-6789\nDr. Penn")
    found = {(span.label, doc.text[span.start : span.end]) for span in patterns.find(doc)}
    assert {("SSN", "123-45-6789"), ("DOCTOR", "Penn")} <= found


@pytest.mark.parametrize(
    "garbage",
    ["1", "1/", "1-", "a@", "A ", "Dr. ", "0:", "(01)", "1.1.", "Aa, ", "St. ", "x1", "Street "],
    ids=repr,
)
def test_time_is_linear(garbage: str) -> None:
    def seconds(size: int) -> float:
        doc = Document("x", (garbage * size)[:size])
        begin = time.process_time()
        for pattern in patterns.patterns():
            pattern.find_in(ByteText.of([doc.text]))
        return time.process_time() - begin

    short, long = seconds(4_000), seconds(32_000)
    assert long < 8 * short * 4 + 0.5  # quadratic time would be 64 times as long


def test_a_megabyte_of_noise_is_read() -> None:
    noise = ByteText.of([("lorem 12/ipsum-3.4 Dolor, Sit@amet 5:6 \u00e9\n" * 26_000)[: 1 << 20]])
    begin = time.process_time()
    for pattern in patterns.patterns():
        pattern.find_in(noise)
    assert time.process_time() - begin < 60


def test_the_surest_label_wins_a_place_and_the_longest_span_an_overlap() -> None:
    votes = [Span(0, 4, "DATE", 0.6), Span(0, 4, "SSN", 0.9), Span(10, 20, "STREET", 0.7), Span(12, 24, "DATE", 0.9)]
    assert patterns.resolve_votes(votes) == (Span(0, 4, "SSN"), Span(10, 12, "STREET"), Span(12, 24, "DATE"))


def test_a_pattern_heeds_what_stands_beside_it() -> None:
    number = Pattern("n", r"\b(\d{3})\b", label="X", before=r"no\. ", after=r" ?mg")
    doc = Document.make("no. 123, 456 mg, 789; é111")
    assert [doc.text[span.start : span.end] for span in number(doc)] == ["789"]


def test_classes_of_letters_hold_inside_and_outside_of_brackets() -> None:
    matcher, _ = matcher_of(r"\p{Lu}[\p{Ll}'\]]+")
    assert [match.group() for match in matcher.finditer("Østby Ω Élan] x")] == ["Østby", "Élan]"]


def test_cues_cover_what_labels_announce() -> None:
    note = "Patient: Ada Penn   MRN: 12345\nAttending: B. Wahl\n\nSOCIAL HISTORY\nLives alone.\nPlan:\nRest."
    found = {(span.label, note[span.start : span.end].strip()) for span in cues.fields(note)}
    assert {("name", "Ada Penn"), ("id", "12345"), ("doctor", "B. Wahl")} <= found
    sections = {span.label: note[span.start : span.end] for span in cues.sections(note)}
    assert "Lives alone." in sections["social"]
    assert "Rest." in sections["plan"]
    assert sections["letterhead"].startswith("Patient")


@settings(max_examples=40, deadline=None)
@given(texts)
def test_cues_are_layers_on_any_text_and_leave_no_trace(text: str) -> None:
    doc = Document.make(text)
    (cued,) = cues.with_cues([doc])
    assert set(cues.LAYERS) <= set(cued.layers)
    assert cues.without_cues(cued, doc) == doc


def test_found_names_the_pattern() -> None:
    (span,) = patterns.find(Document.make("MRN: 1234567"))
    assert re.fullmatch(r"id-mrn.*", span.source)


def test_rows_of_numbers_are_told() -> None:
    rows = "1105   168/92   77   400   -190   150\nPD 535 747 323 323 222\nTel 405 708 1234\nMRN: 1 2 3 4 5 6"
    found = [(span.label, rows[span.start : span.end].split(maxsplit=1)[0]) for span in cues.fields(rows)]
    assert found == [("row", "1105"), ("row", "PD"), ("id", "1")]
