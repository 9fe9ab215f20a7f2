"""Regular expressions, lists, endings and triggers as sources: against naive readers, and at their limits."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaffinch.errors import ConfigError, DataError
from chaffinch.text import Document, Span
from chaffinch.weak.sources import Context, Lexicon, Regex, Suffix

ODD = "😀 Seen\r\nby Dr. Ada Penn 👩‍⚕️; e\u0301 20 mg daily.\r\n"


def texts(doc: Document, spans: list[Span]) -> list[str]:
    return [doc.text[span.start : span.end] for span in spans]


def naive_lexicon(text: str, phrases: list[str]) -> list[tuple[int, int]]:
    """Every phrase tried at every place: at word edges, the leftmost, then the longest."""

    def cuts(place: int) -> bool:
        return 0 < place < len(text) and text[place - 1].isalnum() and text[place].isalnum()

    found, place = [], 0
    while place < len(text):
        ends = [
            place + len(phrase)
            for phrase in phrases
            if text[place : place + len(phrase)].lower() == phrase.lower()
            and not cuts(place)
            and not cuts(place + len(phrase))
        ]
        if ends:
            found.append((place, max(ends)))
        place = max([*ends, place + 1])
    return found


@given(
    st.lists(st.sampled_from(["ab", "Ab c", "b c", "c-ab", "bb", "abb", "b, a"]), min_size=1),
    st.text(alphabet="abcAB ,-😀", max_size=40),
)
def test_a_lexicon_agrees_with_trying_every_phrase(phrases: list[str], text: str) -> None:
    source = Lexicon("list", phrases, label="X")
    assert [(s.start, s.end) for s in source(Document.make(text))] == naive_lexicon(text, phrases)


def test_lexicon_options() -> None:
    doc = Document.make("Biopsy, biopsies, CTs, ct and AN an")
    assert texts(doc, Lexicon("a", ["biopsy", "CT"], label="X")(doc)) == ["Biopsy", "ct"]
    assert texts(doc, Lexicon("a", ["biopsy", "CT"], label="X", plurals=True)(doc)) == [
        "Biopsy",
        "biopsies",
        "CTs",
        "ct",
    ]
    assert texts(doc, Lexicon("a", ["biopsy", "CT"], label="X", plurals=True, ignore_case=False)(doc)) == [
        "biopsies",
        "CTs",
    ]
    assert texts(doc, Lexicon("a", ["biopsy", "an"], label="X", min_length=3)(doc)) == ["Biopsy"]
    assert [span.label for span in Lexicon("a", ["an"], label="O")(doc)] == ["O", "O"]


def test_a_lexicon_of_a_file(tmp_path: Any) -> None:
    path = tmp_path / "drugs.txt"
    path.write_text("# drugs\naspirin\n\nbeta  blocker\n", encoding="utf-8")
    doc = Document.make("Beta\r\nblocker or  aspirin, beta  \tblocker but no beta\n\nblocker")
    assert texts(doc, Lexicon("drugs", path, label="X")(doc)) == ["Beta\r\nblocker", "aspirin", "beta  \tblocker"]
    assert "aspirin" not in repr(Lexicon("drugs", str(path), label="X"))
    with pytest.raises(DataError, match="cannot be read"):
        Lexicon("drugs", tmp_path / "none.txt", label="X")


def test_a_hundred_thousand_phrases_take_seconds() -> None:
    phrases = [f"substance {number:x} acid" for number in range(100_000)]
    text = " and ".join(phrases[::50])
    began = time.process_time()
    found = Lexicon("big", phrases, label="X")(Document.make(text))
    assert time.process_time() - began < 10
    assert texts(Document.make(text), found) == phrases[::50]


def test_regex_groups_choose_the_span() -> None:
    doc = Document.make("give 20 mg now, 5 mg then")
    assert texts(doc, Regex("a", r"\d+ mg", label="X")(doc)) == ["20 mg", "5 mg"]
    assert texts(doc, Regex("a", r"(\d+) mg", label="X")(doc)) == ["20", "5"]
    assert texts(doc, Regex("a", r"(\d+) (?P<span>mg) now", label="X")(doc)) == ["mg"]
    assert texts(doc, Regex("a", r"(now)|then", label="X")(doc)) == ["now"]  # the group took no part in the second
    assert texts(doc, Regex("a", r"GIVE|x*", label="X", ignore_case=True)(doc)) == ["give"]  # no empty spans


@pytest.mark.parametrize(
    ("pattern", "place", "remedy"),
    [
        (r"dose (\d+", 6, "close this bracket"),
        (r"(a(b)", 1, "close this bracket"),
        (r"a[)(]\))", 8, "open this bracket"),
        (r"x(?<=a)b", 2, "look around"),
        (r"(a)\1", 4, "references"),
        (r"ab[c", 3, "list of signs"),
        (r"ab{2000}", 3, "1000"),
        (r"ab\p{Lx}", 3, "letters"),
        ("ab\\", 3, "backslash"),
        (r"a|*b", 3, "before it"),
    ],
)
def test_a_pattern_that_cannot_be_read_is_explained(pattern: str, place: int, remedy: str) -> None:
    with pytest.raises(ConfigError, match=remedy) as caught:
        Regex("a", pattern, label="X")
    assert f"at character {place};" in str(caught.value)


def test_a_catastrophic_pattern_ends_quickly() -> None:
    source, doc = Regex("bad", r"(a+)+$", label="X"), Document.make("a" * 20_000 + "!")
    began = time.process_time()
    assert source(doc) == []
    assert time.process_time() - began < 5


def test_offsets_after_emoji_and_carriage_returns() -> None:
    doc = Document.make(ODD)
    for source, expected in (
        (Regex("a", r"\d+ ?mg", label="X"), ["20 mg"]),
        (Lexicon("a", ["ada penn"], label="X"), ["Ada Penn"]),
        (Suffix("a", ["ily"], label="X"), ["daily"]),
        (Context("a", ["Dr."], label="X"), ["Ada Penn"]),
    ):
        assert texts(doc, source(doc)) == expected


def test_endings() -> None:
    doc = Document.make("Hepatitis and itis, gastritis; Penicillin-itis")
    source = Suffix("a", ["-ITIS"], label="X", min_length=6, exceptions=["Gastritis"])
    assert texts(doc, source(doc)) == ["Hepatitis", "Penicillin-itis"]


def test_words_beside_a_trigger() -> None:
    doc = Document.make("Dr. Ada Penn and Dr. Dr. the tall Lowe. Hart MD saw Ames. Seen by the other doctor Ford.")
    doctors = Context("a", ["Dr.", "seen by"], label="X")
    assert texts(doc, doctors(doc)) == ["Ada Penn", "Lowe"]  # Ford stands one word too far away
    assert texts(doc, Context("a", ["Dr."], label="X", longest=1)(doc)) == ["Ada", "Lowe"]
    assert texts(doc, Context("a", ["MD"], label="X", side="before")(doc)) == ["Hart"]
    assert texts(doc, Context("a", ["the"], label="X", pattern="[a-z]{4,5}")(doc)) == ["tall", "other"]
    assert texts(doc, Context("a", ["saw"], label="X", reach=1)(doc)) == ["Ames"]
    assert Context("a", ["saw"], label="X")(Document.make("")) == []


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Regex("", "a", label="X"), "name"),
        (lambda: Regex("a", "a", label=" X"), "label"),
        (lambda: Regex("a", 5, label="X"), "pattern"),  # type: ignore[arg-type]
        (lambda: Regex("a", "a", label="X", ignore_case="yes"), "true or false"),  # type: ignore[arg-type]
        (lambda: Lexicon("a", [], label="X"), "empty"),
        (lambda: Lexicon("a", ["x", 5], label="X"), "list of texts"),  # type: ignore[list-item]
        (lambda: Lexicon("a", ["xy"], label="X", min_length=1), "at least 2"),
        (lambda: Suffix("a", "itis", label="X"), "list of texts"),
        (lambda: Context("a", ["Dr."], label="X", side="behind"), "side"),  # type: ignore[arg-type]
        (lambda: Context("a", ["Dr."], label="X", reach=0), "reach"),
    ],
)
def test_what_cannot_be_is_refused(make: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        make()
