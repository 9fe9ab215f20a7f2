"""Token patterns: against regular expressions over letters that stand for tokens."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaffinch.errors import ConfigError
from chaffinch.text import Document
from chaffinch.weak.sources import Token, TokenPattern

WORDS = {"a": "alpha", "b": "beta", "c": "gamma"}
PARTS = st.tuples(
    st.sampled_from(["a", "b", "c", "ab", "bc", "abc"]), st.sampled_from(["", "?", "+", "*"]), st.booleans()
)


def of_letters(letters: str) -> Document:
    """A document of one sentence whose words stand for letters."""
    words = [WORDS[letter] for letter in letters]
    text, ends = " ".join(words), []
    at = 0
    for word in words:
        ends.append((at, at + len(word)))
        at += len(word) + 1
    return Document.make(text, tokens=ends, sentences=[(0, len(text))])


def by_letters(parts: list[tuple[str, str, bool]], letters: str) -> list[tuple[int, int]]:
    """First and last marked token of every match, as Python's own engine reads the same pattern over letters."""
    pattern = "".join(f"((?:[{own}]){repeat})" for own, repeat, _ in parts)
    out = []
    for match in re.finditer(pattern, letters):
        marked = [match.span(g) for g, (_, _, mark) in enumerate(parts, start=1) if mark and match.group(g)]
        out.append((min(a for a, _ in marked), max(b for _, b in marked)))
    return out


@given(st.lists(PARTS, min_size=1, max_size=4), st.text(alphabet="abc", max_size=12))
def test_a_pattern_reads_tokens_as_a_regular_expression_reads_letters(
    parts: list[tuple[str, str, bool]], letters: str
) -> None:
    parts = [*parts, ("a", "", True)]  # something must be there, and marked
    pattern = [{"lower": [WORDS[own] for own in set_], "repeat": repeat, "mark": mark} for set_, repeat, mark in parts]
    doc = of_letters(letters)
    tokens = doc.tokens.tolist()
    expected = [(tokens[a][0], tokens[b - 1][1]) for a, b in by_letters(parts, letters)]
    assert [(s.start, s.end) for s in TokenPattern("p", pattern, label="X")(doc)] == expected


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (Token(text=["Penn"]), ["Penn"]),
        (Token(lower=["penn", "mrna"]), ["Penn", "mRNA"]),
        (Token(shape=["Xx"]), ["Penn"]),
        (Token(prefix=["m"], suffix=["A", "b"]), ["mRNA"]),
        (Token(regex=r"\d+"), ["12"]),
        (Token(in_list=["PENN", "12"]), ["Penn", "12"]),
        (Token(any=True, repeat="+"), ["Penn mRNA 12"]),
    ],
)
def test_each_question_to_a_token(part: Token, expected: list[str]) -> None:
    doc = Document.make("Penn mRNA 12")
    assert [doc.text[s.start : s.end] for s in TokenPattern("p", [part], label="X")(doc)] == expected


def test_a_pattern_stays_in_its_sentence() -> None:
    doc = Document.make("Seen by Penn. Lowe came.")
    found = TokenPattern("p", [{"any": True}, {"text": "Lowe"}], label="X")(doc)
    assert found == []


def test_a_nested_pattern_takes_linear_time() -> None:
    doc = Document.make("alpha " * 20_000)
    pattern = [Token(any=True, repeat="+")] * 6 + [Token(text=["omega"], repeat="?"), Token(lower=["never", "alpha"])]
    began = time.process_time()
    assert len(TokenPattern("p", pattern, label="X")(doc)) == 1
    assert time.process_time() - began < 10


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ([], "no required part"),
        ([{"lower": ["a"], "repeat": "?"}], "no required part"),
        ([{"lower": ["a"], "mark": False}], "no required part"),
        ([{"lowr": ["a"]}], "part 1 of the pattern has the unknown key 'lowr'; did you mean 'lower'"),
        ([{}], "part 1 of the pattern"),
        ([{"any": True, "text": ["a"]}], "any = true"),
        ([{"text": ["a"], "repeat": "{2}"}], "repeat"),
        ([{"regex": "("}], "close this bracket"),
        (["a"], "must be a table"),
    ],
)
def test_what_cannot_be_is_refused(pattern: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)):
        TokenPattern("p", pattern, label="X")
