"""The spans of a document do not depend on the other documents of its batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from chaffinch.deid.detect import cues
from chaffinch.deid.detect.detector import detector
from chaffinch.deid.detect.word_lists import word_lists
from chaffinch.deid.patterns import find as patterns
from chaffinch.deid.patterns.pattern import ByteText, Pattern, matches
from chaffinch.text import Document, Span
from tests.deid.patterns.pattern_cases import CLEAN, FOUND

# What patterns look for at the beginning and the end of a text or of a line, and what a page puts between texts.
PIECES = (
    "1998", "(1998)", "1998:", ", 1998", "3/4/98", "x4321", "@wren", "ext. 42", "Dr. Penn", "Ada Penn, MD", "Penn, Ada",
    "Name:", "MRN 12345", "555-123-4567", "signed: AB", "jb/tr", "Sincerely,", "____", "- Ada Penn", "Foley", "Wells",
    "a@b.org", "www.wren.org", "45 y/o", "Boston", "Lake Street 5", "Jos\u00e9 Pe\u00f1a", "\u017d",
    "\U0001f426", "Ada", "Penn", " ", "  ", "\n", "\r\n", "\t", ".", ",", ";", ":", "-", "\u00ff", "\x00", "",
)  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), max_size=9).map("".join)
FIND = detector(allow=["Boston"], deny=["Wells"])


def told(spans: Sequence[Span]) -> list[tuple[Any, ...]]:
    return [(span.start, span.end, span.label, span.score, span.source) for span in spans]


@given(st.lists(TEXTS, min_size=2, max_size=6))
@settings(max_examples=150, deadline=None)
def test_rules_find_the_same_alone_and_on_a_page_with_others(texts: list[str]) -> None:
    docs = [Document.make(text, id=str(number)) for number, text in enumerate(texts)]
    for doc, found, shields in zip(docs, patterns.find_in(docs), word_lists().find_protected_in(docs), strict=True):
        assert told(found) == told(patterns.find(doc))
        assert told(shields) == told(word_lists().find_protected(doc))


@given(st.lists(TEXTS, min_size=2, max_size=5), st.randoms())
@settings(max_examples=60, deadline=None)
def test_a_detector_finds_the_same_alone_and_in_any_company(texts: list[str], random: Any) -> None:
    docs = [Document.make(text, id=str(number)) for number, text in enumerate(texts)]
    random.shuffle(docs)
    for doc, beside in zip(docs, FIND(docs), strict=True):
        alone = next(FIND([doc]))
        assert told(beside.layer("deid")) == told(alone.layer("deid"))
        assert beside.soft["deid"].labels == alone.soft["deid"].labels
        assert np.array_equal(beside.soft["deid"].values, alone.soft["deid"].values)
        assert set(beside.layers) == set(alone.layers) == {"deid"}


def test_a_document_with_a_layer_of_cues_keeps_it_among_others_that_lack_it() -> None:
    marked = Document.make("Dr. Penn").with_layer(cues.FIELD, [Span(0, 3, "mine")])
    other = Document.make("Name: Ada Penn")
    first, second = cues.with_cues([marked, other])
    assert first.layers[cues.FIELD] == (Span(0, 3, "mine"),)
    assert second.layers[cues.FIELD] == (Span(5, 14, "name"),)
    assert set(first.layers) == set(second.layers) == set(cues.LAYERS)


def test_a_match_that_needs_an_end_of_line_does_not_take_that_of_the_page() -> None:
    page = ByteText.of(["1998: seen", "born 1998", "x\n1998: seen"])
    assert [number for number, _ in matches(page, r"\n(1998):")] == [2]
    assert [number for number, _ in matches(page, r"(1998)\n")] == []
    assert [number for number, _ in matches(page, r"(1998)(?:\s|$)")] == [1]
    year = Pattern("year", r"(\d{4})(?:[^\d]|$)", label="DATE")
    assert [(number, span.start) for number, span in year.find_in(page)] == [(0, 0), (2, 2), (1, 5)]


def test_no_match_crosses_from_one_text_to_the_next() -> None:
    page = ByteText.of(["Sincerely,\n", "Ada Penn", "\u00e9", ""])
    assert matches(page, r"(?s:(Sincerely.*Ada))") == []
    assert matches(page, r"(?i:(sincerely)\W+ada)") == []
    assert [number for number, _ in matches(page, r"([^,\s])(?m:$)")] == [1, 2]


def test_all_written_cases_are_found_on_one_page_as_alone() -> None:
    lines = "\n".join([*FOUND.values(), CLEAN]).replace("{", "").replace("}", "").splitlines()
    docs = [Document.make(line.strip()) for line in lines]
    for doc, found in zip(docs, patterns.find_in(docs), strict=True):
        assert told(found) == told(patterns.find(doc))
