"""Shortcuts of detection and release: each gives, bit for bit, what the plain way gives."""

from __future__ import annotations

import hashlib
import unicodedata
from collections import Counter
from math import isqrt

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from chaffinch.deid.dates import order as orders
from chaffinch.deid.dates import parse
from chaffinch.deid.dates.points import Conventions
from chaffinch.deid.detect import word_lists
from chaffinch.deid.kinds import KINDS, kind_of
from chaffinch.deid.leakage import Left, risk
from chaffinch.deid.patterns import pattern
from chaffinch.deid.policy import Policy, PolicyRule
from chaffinch.deid.release import clinical_classes, patient
from chaffinch.deid.release.patient import LAYER
from chaffinch.deid.release.replace import ReplacedText, Replacement
from chaffinch.deid.surrogates import letters, permute
from chaffinch.deid.surrogates.name_book import NameBook
from chaffinch.errors import DataError
from chaffinch.text import Document, Soft, Span, view

ORDERS = ("mdy", "dmy", "ymd")
DATE_PIECES = (
    "March|Mar.|May|4 de marzo de|3|12|31|04|32|0|2019|1998|98|'98|20190304|03041998|1st|2nd|th|/|-|.|,| |  |–| to "
    "| and |on |since |early |Monday|Mon, |10:30|1030| at 10am|T|t|noon|Q1|spring "
    "|Christmas|1990s|90s|los 90|the |(|)|or |y "
).split("|")
WORDS = "Plan: COPD MRI A.B. s/p 12 mg daughter Ann Dr. NAME| : Foley Wilson aspirin 6/12 (x) - * # L4 Ärzte".split()


@settings(max_examples=1000)
@given(st.lists(st.sampled_from(DATE_PIECES), max_size=7).map("".join))
@example("3/4-7/98")
@example("3.-7.3.2001")
def test_dates_that_no_order_changes_are_known_before_they_are_read(text: str) -> None:
    read = [parse._read_points.__wrapped__(text, Conventions(order)) for order in ORDERS]  # type: ignore[arg-type]
    if not parse.depends_on_order(text):
        assert read[0] == read[1] == read[2]
    expected = None if (read[0] is None) == (read[1] is None) else "mdy" if read[1] is None else "dmy"
    assert orders._only_order.__wrapped__(text) == expected


@settings(max_examples=500)
@given(
    *[st.integers(0, 34)] * 2, st.sampled_from("/.-"), st.sampled_from([0, 1, 1900, 2019, 2020, 9999]), st.booleans()
)
def test_the_order_of_a_plain_date_is_that_of_reading_it(a: int, b: int, sign: str, year: int, padded: bool) -> None:
    text = sign.join([f"{a:02d}" if padded else str(a), str(b), f"{year:04d}"])
    readable = [parse.read_points(text, Conventions(order)) is not None for order in ORDERS[:2]]  # type: ignore[arg-type]
    expected = None if readable[0] == readable[1] else "mdy" if readable[0] else "dmy"
    assert orders._only_order.__wrapped__(text) == expected


@given(st.integers(1, 40), st.integers(0, 2**32), st.booleans())
def test_residual_risk_adds_up_label_by_label(size: int, seed: int, hidden: bool) -> None:
    rng = np.random.default_rng(seed)
    doc = Document.make("a " * size)
    labels = ("O", *rng.permutation(sorted(KINDS))[: rng.integers(0, len(KINDS))].tolist())
    soft = Soft(labels, rng.dirichlet(np.ones(len(labels)) / 4, size))
    replaced = ReplacedText("", "", (Replacement(0, 3, "DATE", "tag", 0, 0),) if hidden else ())
    left = np.arange(size) >= (2 if hidden else 0)
    by_category: dict[str, np.ndarray] = {}
    for number, label in enumerate(labels[1:], start=1):
        category = kind_of(label).category
        by_category[category] = by_category.get(category, 0.0) + soft.values[left, number]
    p = np.clip(1 - soft.values[left, 0], 0, 1)
    rows = {name: np.clip(row, 0, 1) for name, row in by_category.items()}
    scale = np.minimum(p / np.maximum(sum(rows.values()) if rows else np.ones_like(p), 1e-12), 1.0)
    scaled = {name: row * scale for name, row in rows.items()}
    expected = risk(Left("out", size, p, np.flatnonzero(left), scaled)).as_dict()
    found = patient.residual_risk(doc.with_soft(LAYER, soft), LAYER, replaced, "out")
    assert found == expected
    assert list(found["categories"]) == list(expected["categories"])


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(1, 3)), max_size=20))
def test_spans_that_leak_are_counted_as_by_their_neighbours(tokens: list[tuple[float, int]]) -> None:
    p, places = np.array([chance for chance, _ in tokens]), np.cumsum([step for _, step in tokens], dtype=np.int64)
    before = [p[i - 1] if i and places[i] == places[i - 1] + 1 else 0.0 for i in range(len(p))]
    assert risk(Left("a", 99, p, places)).spans == float((p * (1 - np.array(before))).sum())


def test_a_risk_of_nan_is_refused() -> None:
    doc = Document.make("a b").with_soft(LAYER, Soft(("O", "DATE"), np.array([[0.5, 0.5], [0.5, np.nan]])))
    with pytest.raises(DataError, match="DATE must be"):
        patient.residual_risk(doc, LAYER, ReplacedText("", "", ()), "out")


@given(st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from([" ", "\n", "  ", "\t", "\r\n"])), max_size=25))
def test_words_have_the_classes_that_labels_of_the_whole_text_give(parts: list[tuple[str, str]]) -> None:
    doc = Document.make("".join(map("".join, parts)))
    words, labels = doc.words(), [found.span(1) for found in clinical_classes._LABEL.finditer(doc.text)]
    found = clinical_classes.classes_of(doc)
    for (start, end), word, name in zip(doc.tokens.tolist(), words, found, strict=True):
        covered = any(a <= start and end <= b for a, b in labels)
        own = clinical_classes._class_of(word, "en") if any(map(str.isalnum, word)) else ""
        assert (name == "field label") == (
            own == "field label" or (covered and own in ("abbreviation", "ordinary word"))
        )
    for first in range(len(words)):
        spans = [Span(start, end, "DATE") for start, end in doc.tokens[[first, -1]].tolist()]
        counts = Counter(found[place] for place in {first, len(words) - 1})
        expected = {name: counts[name] for name in clinical_classes.PROTECTED if counts[name]}
        assert clinical_classes.count_flagged(doc, spans) == expected


def _slow_view(text: str) -> view.View | None:
    """Return the view of a text without the shortcuts for plain ones."""
    made = view._View(text)
    readings = {sign: reading for sign in set(text) if (reading := view._reading(sign)) != sign}
    if readings:
        made.read_characters(readings)
    if "-\n" in made.text or "-\r\n" in made.text:
        made.drop(view._line_ends(made.text))
    if view._MAYBE_SPACED.search(made.text):
        made.drop(view._letter_gaps(made.text))
    return made.build()


@settings(max_examples=500)
@given(st.text(st.sampled_from("aB c\n-1\r\t\x00\x0b\x1e\x7f\u00adé\u200b'"), max_size=30))
@example("P e n n")
@example("")
def test_a_view_is_that_of_all_characters(text: str) -> None:
    found, expected = view.view_of(text), _slow_view(text)
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        assert found.text == expected.text
        assert np.array_equal(found.starts, expected.starts)
        assert np.array_equal(found.ends, expected.ends)


@given(st.text(st.characters(max_codepoint=0x7F)))
def test_the_bases_of_plain_text_are_those_of_its_characters(text: str) -> None:
    assert letters.bases(text) == "".join(letters.base(char) for char in text if letters.is_significant(char))
    assert all(unicodedata.category(char)[0] != "M" for char in text)


@given(st.integers(1, 1 << 64), st.data(), st.binary(min_size=32, max_size=32))
def test_a_permutation_is_ten_rounds_of_a_keyed_hash(size: int, data: st.DataObject, key: bytes) -> None:
    index = data.draw(st.integers(0, size - 1))
    rows = isqrt(size - 1) + 1
    columns, image = -(-size // rows), index
    while True:
        half = list(divmod(image, columns))
        for number in range(10):
            message = bytes([number]) + half[1 - number % 2].to_bytes(8, "big")
            drawn = hashlib.blake2b(message, key=key, digest_size=16).digest()
            half[number % 2] = (half[number % 2] + int.from_bytes(drawn, "big")) % (rows, columns)[number % 2]
        image = half[0] * columns + half[1]
        if image < size:
            break
    assert permute.permute(index, size, key) == image


def test_a_free_surrogate_is_drawn_once_and_a_taken_one_again() -> None:
    drawn: list[int] = []

    def draw(attempt: int) -> str:
        drawn.append(attempt)
        return ("Penn", "Lowe")[attempt > 0]

    book = NameBook()
    assert [book.surrogate_for(word, draw) for word in ("ada", "ada", "mary")] == ["Penn", "Penn", "Lowe"]
    assert drawn == [0, 0, 1]


def test_the_indices_of_a_list_are_of_that_list() -> None:
    for number in range(2 * letters._MOST_LISTS):
        entries = [f"Town {number}", "Lowe"]  # its id may be that of an earlier list
        assert letters.entry_indices(entries) == {f"town {number}": 0, "lowe": 1}


def test_equal_policies_have_equal_hashes_and_answers() -> None:
    rules = {"DATE": PolicyRule("shift"), "AGE": PolicyRule("generalise")}
    one, other = Policy("a", rules=rules, about="x"), Policy("a", rules=dict(reversed(rules.items())))
    assert one.operator("DATE") == other.operator("DATE")
    assert one.age_limit("DATE") == other.age_limit("DATE") is not None
    assert hash(one) == hash(Policy("a", rules=rules))


@given(
    st.lists(st.sampled_from("Dr. Ada | MD|, RN|,PhD|\tNP| J. | x |\xa0| PA-C|.|M| D| ,|name: |\n".split("|"))).map(
        "".join
    ),
    st.lists(st.sampled_from(" MD|, RN|,PhD|\tNP|\xa0MD| PA-C|, J.| x|,|M.D.| DOx|\x0bRN|\nRN".split("|"))).map(
        "".join
    ),
)
def test_people_beside_a_term_are_those_that_the_patterns_find(before: str, after: str) -> None:
    text, span = f"{before}Foley{after}", Span(len(before), len(before) + 5, "O")
    shown, rest = before[-24:], after[:24]
    expected = bool(
        pattern.matcher_of(word_lists._TITLE_BEFORE)[0].search(shown)
        or pattern.matcher_of(word_lists._PERSON_AFTER)[0].match(rest)
    )
    lists = word_lists.word_lists(hidden=["Ada"])  # no first name tells
    assert lists._beside_person(text, span) == expected


@given(st.text(st.sampled_from("a1 é-"), min_size=1, max_size=6), st.data())
def test_a_match_begins_and_ends_at_the_edge_of_a_word(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    cut = [0 < place < len(text) and text[place - 1].isalnum() and text[place].isalnum() for place in (start, end)]
    found = pattern.Pattern("any", "x", label="DATE")
    assert found._fits_context(text, start, end, start, end) == (not any(cut))
    assert found._fits_context(text, start - 1, end + 1, start, end)  # what is around the span belongs to the match
