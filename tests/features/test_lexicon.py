"""Lexicons: every match and every mark against a search of each phrase at each position."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaffinch.errors import ConfigError, DataError
from chaffinch.features.lexicon import FIRST, INNER, LAST, SINGLE, Lexicon, read_phrases
from chaffinch.text import Document

# Few pieces, so that phrases meet, nest, start at one place and end inside words.
PIECES = ["ab", "AB", "a", "1", " ", " ", "-", "\n", "\u00a0", "İ", "i", "ΑΣ", "ας", "'", "𝒳"]
texts = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)
phrases = st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map("".join)
phrase_lists = st.lists(phrases.filter(lambda p: len(" ".join(p.split())) > 1), max_size=12)
Match = tuple[int, int, int]


def same(a: str, b: str, fold_case: bool) -> bool:
    """Whether two characters count as one, said without lower-casing a whole text."""
    if a.isspace() or b.isspace():
        return a.isspace() and b.isspace()
    if not fold_case:
        return a == b
    forms = [c.lower() if len(c.lower()) == 1 else c for c in (a, b)]
    return len({"σ" if form == "ς" else form for form in forms}) == 1


def on_boundaries(text: str, start: int, end: int) -> bool:
    def cut(place: int) -> bool:
        return 0 < place < len(text) and text[place - 1].isalnum() and text[place].isalnum()

    return not cut(start) and not cut(end)


def everywhere(lists: list[list[str]], text: str, fold_case: bool) -> list[Match]:
    """Each phrase tried at each position; then, from the left, the longest and the first label."""
    hits = []
    for label, given_phrases in enumerate(lists):
        for phrase in (" ".join(listed.split()) for listed in given_phrases):
            for start in range(len(text) - len(phrase) + 1):
                end = start + len(phrase)
                if all(same(a, b, fold_case) for a, b in zip(text[start:end], phrase, strict=True)):
                    hits.append((start, end, label))
    taken: list[Match] = []
    for hit in sorted(hits, key=lambda hit: (hit[0], -hit[1], hit[2])):
        if on_boundaries(text, hit[0], hit[1]) and (not taken or taken[-1][1] <= hit[0]):
            taken.append(hit)
    return taken


@given(phrase_lists, phrase_lists, texts, st.booleans())
def test_find_agrees_with_trying_every_phrase_everywhere(
    first: list[str], second: list[str], text: str, fold_case: bool
) -> None:
    lexicon = Lexicon.make({"one": first, "two": second}, fold_case=fold_case)
    assert lexicon.find(text) == everywhere([first, second], text, fold_case)


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=14), st.booleans(), st.data())
def test_pieces_of_the_text_are_found_like_any_phrase(parts: list[str], fold_case: bool, data: st.DataObject) -> None:
    """Phrases cut from the text itself, two from each start, so that nearly every example has matches that nest."""
    place, length = st.integers(0, len(parts) - 1), st.integers(1, 4)
    cuts = data.draw(st.lists(st.tuples(place, length, length), max_size=4))
    found = ["".join(parts[start : start + size]) for start, *sizes in cuts for size in sizes]
    found = [phrase.swapcase() if data.draw(st.booleans()) else phrase for phrase in found]
    found = [phrase for phrase in found if len(" ".join(phrase.split())) > 1]
    lexicon = Lexicon.make({"one": found[::2], "two": found[1::2]}, fold_case=fold_case)
    assert lexicon.find("".join(parts)) == everywhere([found[::2], found[1::2]], "".join(parts), fold_case)


def test_boundaries_are_checked_before_the_longest_is_taken() -> None:
    """The longest match at "blood" ends inside "cells"; an automaton that takes it first finds nothing at all."""
    from ahocorasick_rs import AhoCorasick, MatchKind

    tissue, text = ["blood", "blood cell"], "blood cells"
    longest_first = AhoCorasick(tissue, matchkind=MatchKind.LeftmostLongest).find_matches_as_indexes(text)
    assert [hit for hit in longest_first if on_boundaries(text, hit[1], hit[2])] == []
    assert Lexicon.make({"tissue": tissue}).find(text) == [(0, 5, 0)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("breast cancer", [(0, 13, 0)]),
        ("Breast\tCANCER.", [(0, 13, 0)]),
        ("İİ breast\u00a0cancer", [(3, 16, 0)]),
        ("breast  cancer", [(8, 14, 1)]),
        ("cancers, anti-cancer", [(14, 20, 1)]),
        ("𝒳 cancer", [(2, 8, 1)]),
        ("breast cancer cell", [(0, 18, 1)]),
        ("breast cancer cells", [(0, 13, 0)]),
        ("ΑΣ ας ΑΣ'Β", [(0, 2, 1), (3, 5, 1), (6, 8, 1)]),
        ("IL-2", [(0, 4, 1)]),
        ("IL-23 IL-2R xIL-2", []),
        ("", []),
    ],
)
def test_worked_cases(text: str, found: list[Match]) -> None:
    lexicon = Lexicon.make(
        {"a": ["breast \n cancer"], "b": ["cancer", "breast cancer", "breast cancer cell", "il-2", "ΑΣ"]}
    )
    assert lexicon.find(text) == found


def test_case_counts_if_asked() -> None:
    lexicon = Lexicon.make({"name": ["Penn"]}, fold_case=False)
    assert lexicon.find("Penn penn PENN") == [(0, 4, 0)]


def marks_by_hand(doc: Document, matches: list[Match]) -> list[int]:
    marks = [0] * len(doc.tokens)
    for start, end, label in matches:
        inside = [t for t, (a, b) in enumerate(doc.tokens.tolist()) if start <= a and b <= end]
        for t in inside:
            place = LAST if t == inside[-1] else FIRST if t == inside[0] else INNER
            marks[t] = 1 + 4 * label + (SINGLE if len(inside) == 1 else place)
    return marks


@given(phrase_lists, phrase_lists, texts)
def test_marks_agree_with_a_walk_over_tokens_and_matches(first: list[str], second: list[str], text: str) -> None:
    lexicon, doc = Lexicon.make({"one": first, "two": second}), Document.make(text)
    marks = lexicon.marks(doc)
    assert marks.dtype == np.int16
    assert marks.tolist() == marks_by_hand(doc, everywhere([first, second], text, True))


def test_marks_say_label_and_place() -> None:
    lexicon = Lexicon.make({"a": ["x ray"], "b": ["acute renal failure", "renal", "IL-2 re"]})
    doc = Document.make("acute renal failure , renal x ray")
    assert lexicon.marks(doc).tolist() == [6, 7, 8, 0, 5, 2, 4]
    cut = Document.make("one IL-2 re-x", tokens=[(0, 3), (4, 8), (9, 13)])
    assert lexicon.marks(cut).tolist() == [0, 5, 0]  # the match ends inside the last token
    assert lexicon.marks(Document.make("")).tolist() == []


def test_a_lexicon_is_rebuilt_from_its_fields_and_hides_its_phrases() -> None:
    lexicon = Lexicon.make({"b": ["Penn  Station", "penn station", "Ada"], "a": ["ada"]})
    assert lexicon.labels == ("b", "a")
    assert lexicon.phrases == (("ada", "penn station"), ("ada",))
    text = "Ada at Penn Station"
    assert lexicon.find(text) == [(0, 3, 0), (7, 19, 0)]
    for again in (
        Lexicon(lexicon.labels, lexicon.phrases, lexicon.fold_case),
        pickle.loads(pickle.dumps(lexicon)),
    ):
        assert again.find(text) == lexicon.find(text)
    assert repr(lexicon) == "Lexicon(labels=('b', 'a'), fold_case=True)"


def test_what_cannot_be_a_phrase_is_refused_by_label_and_count() -> None:
    with pytest.raises(ConfigError, match=r"2 of the 3 phrases of 'drug' have under 2 characters"):
        Lexicon.make({"disease": ["flu"], "drug": ["  ", "x", "zinc"]})
    with pytest.raises(ConfigError, match="phrases of 'drug' are one string"):
        Lexicon.make({"drug": "zinc"})
    with pytest.raises(DataError, match="surrogate"):
        Lexicon.make({"drug": ["zin\ud800"]})
    with pytest.raises(ConfigError, match="8,192 labels"):
        Lexicon.make({str(number): () for number in range(8192)})
    assert Lexicon.make({}).find("flu") == []
    last = Lexicon.make({str(number): ["flu a"] if number == 8190 else [] for number in range(8191)})
    assert last.marks(Document.make("flu a")).tolist() == [32762, 32764]


def test_phrases_are_read_one_per_line(tmp_path: Path) -> None:
    path = tmp_path / "drugs.txt"
    path.write_bytes("\ufeff# drugs\r\n zinc oxide \n\n#x\nβ-blocker".encode())
    assert read_phrases(path) == ["zinc oxide", "β-blocker"]
    path.write_bytes(b"zinc\niron\nna\xefve\n")
    with pytest.raises(DataError, match=r"drugs\.txt:3: byte 3 of the line is not UTF-8"):
        read_phrases(path)
    with pytest.raises(DataError, match="cannot be read"):
        read_phrases(tmp_path / "none.txt")
