"""Patterns: a regular expression with checks of its context and of its text.

Time is linear in the text: RE2 finds the matches, and the checks look at `AROUND` characters on each side at most.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cache
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np

from chaffinch.text import Document, Span
from chaffinch.text.regex import compile_pattern

Edges: TypeAlias = tuple[int, int, int, int]  # of a match: its start and end, and those of its span
Check: TypeAlias = Callable[[str], bool]
Cut: TypeAlias = Callable[[str], tuple[int, int] | None]  # the part of a match that is the identifier, if any

# What \p{…} means here: Latin, Greek and Cyrillic letters; all of Unicode would make the automata ten times as large.
_CLASSES = {
    r"\p{Lu}": "A-ZÀ-ÖØ-Þ\u0100-\u017f\u0386-\u03ab\u0400-\u042f",
    r"\p{Ll}": "a-zß-öø-ÿ\u0100-\u017f\u03ac-\u03ce\u0430-\u045f",
    r"\p{L}": "A-Za-zÀ-ÖØ-öø-ÿ\u0100-\u024f\u0370-\u03ff\u0400-\u04ff\u1e00-\u1eff",
    r"\p{M}": "\u0300-\u036f",
    r"\p{N}": "0-9",
}
_CLASS = re.compile(r"\\p\{\w+\}|\\.|\[\^?\]?|\]", re.DOTALL)

AROUND = 32  # characters checked before and after a match; a longer context is never seen by `before` and `after`
SPAN = "span"
_BETWEEN = b"\n\xff\n"  # separates the texts; 0xff occurs in no UTF-8 text


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ByteText:
    """Texts as one buffer of bytes for RE2, encoded once for all patterns, with the bounds of each text.

    Between two texts is a byte that no character has, so that nothing matches across it, with an end of line on either
    side. A match that includes such an end of line may be none in the text alone; `matches` then searches that text
    again. A pattern with an end of text, ^ or $, must therefore also accept an end of line, as in (?:[^\\d]|$).
    """

    texts: Sequence[str]
    data: bytes
    begins: Sequence[int]  # the first byte of every text
    ends: Sequence[int]  # one past the last
    characters: Sequence[list[int] | None]  # the character of each byte, and the end; None if each has one byte

    @classmethod
    def of(cls, texts: Sequence[str]) -> ByteText:
        """Encode texts as UTF-8 in one buffer, with line ends between and around several, and note their offsets."""
        parts = [text.encode("utf-8", "replace") for text in texts]
        between = _BETWEEN if len(parts) > 1 else b""
        ends = [end - len(between) for end in accumulate(len(part) + len(between) for part in parts)]
        shift = 1 if between else 0  # the buffer begins with an end of line
        begins = [shift + end - len(part) for part, end in zip(parts, ends, strict=True)]
        edge = b"\n" * shift
        data = b"".join([edge, between.join(parts), edge])
        characters = [_characters(part, text) for part, text in zip(parts, texts, strict=True)]
        return cls(texts, data, begins, [shift + end for end in ends], characters)

    def number_at(self, byte: int) -> int:
        """Return the number of the text at a byte of the buffer; the end of line before a text belongs to it."""
        return bisect_right(self.begins, byte + 1) - 1

    def edges(self, number: int, match: tuple[int, int], span: tuple[int, int]) -> Edges:
        """Convert byte offsets of a match and its span in the buffer to character offsets in text `number`."""
        begin, char_of = self.begins[number], self.characters[number]
        if char_of is None:
            return match[0] - begin, match[1] - begin, span[0] - begin, span[1] - begin
        return char_of[match[0] - begin], char_of[match[1] - begin], char_of[span[0] - begin], char_of[span[1] - begin]


def _characters(data: bytes, text: str) -> list[int] | None:
    """Return the character index of each byte, then the length; None if each character has one byte."""
    if len(data) == len(text):
        return None
    begins = (np.frombuffer(data, np.uint8) & 0xC0) != 0x80
    found: list[int] = np.append(np.cumsum(begins) - 1, len(text)).tolist()
    return found


@dataclass(frozen=True, slots=True)
class Pattern:
    """A named source of spans with one label. The group called "span", else the first, is the span.

    A match must not begin or end inside a word, nor right after `before` or right before `after`; its span must pass
    `fits` and is shortened by `cut`. The score is the chance that it is an identifier of the label; `exact` says that
    the form or the words before it leave no other label, if it is an identifier at all.

    >>> dose = Pattern("zip", r"\\b(\\d{5})\\b", label="ZIP", after=r" ?mg")
    >>> [(span.start, span.end) for span in dose(Document.make("20000 mg in 02139"))]
    [(12, 17)]
    """

    name: str
    pattern: str
    _: KW_ONLY
    label: str
    score: float = 0.9
    exact: bool = False
    ignore_case: bool = False
    before: str = ""
    after: str = ""
    fits: Check | None = field(default=None, compare=False, repr=False)
    cut: Cut | None = field(default=None, compare=False, repr=False)

    def __call__(self, doc: Document) -> list[Span]:
        """Return the pattern's spans in a document, from left to right, never overlapping."""
        return [span for _, span in self.find_in(ByteText.of([doc.text]))]

    def find_in(self, texts: ByteText) -> list[tuple[int, Span]]:
        """Return (text number, span) of the pattern in many texts, as if each text were searched alone."""
        return [
            (number, Span(*offsets, self.label, self.score, self.name))
            for number, edges in matches(texts, self.pattern, self.ignore_case)
            if (offsets := self._check_match(texts.texts[number], *edges)) is not None
        ]

    def _check_match(self, text: str, first: int, last: int, start: int, end: int) -> tuple[int, int] | None:
        """Return (start, end) of a match's span, cut by `cut`; None if context, `fits` or `cut` rejects it."""
        if not self._fits_context(text, first, last, start, end):
            return None
        if self.fits is not None and not self.fits(text[start:end]):
            return None
        if self.cut is None:
            return start, end
        part = self.cut(text[start:end])
        return None if part is None or part[0] >= part[1] else (start + part[0], start + part[1])

    def _fits_context(self, text: str, first: int, last: int, start: int, end: int) -> bool:
        """Tell whether a match cuts no word, and neither `before` nor `after` forbids its context."""
        if start == first and start and text[start - 1].isalnum() and text[start].isalnum():
            return False
        if end == last and end < len(text) and text[end].isalnum() and text[end - 1].isalnum():
            return False
        if self.before and _ending(self.before).search(text[max(0, first - AROUND) : start]):
            return False
        return not (self.after and _beginning(self.after).match(text[end : end + AROUND]))


def matches(texts: ByteText, pattern: str, ignore_case: bool = False) -> list[tuple[int, Edges]]:
    """Return (text number, character offsets of match and span) of all matches, as if each text were searched alone."""
    matcher, group = matcher_of(pattern, ignore_case)
    found: list[tuple[int, Edges]] = []
    beyond = set[int]()
    begins, ends = texts.begins, texts.ends
    for match in matcher.finditer(texts.data):
        groups = match._spans  # of all groups: `match.span` counts the groups of the pattern at every call
        whole, span = groups[0], groups[group]
        number = texts.number_at(whole[0])
        if whole[0] < begins[number] or whole[1] > ends[number]:
            beyond.add(number)
        elif span[1] > span[0]:
            found.append((number, texts.edges(number, whole, span)))
    if beyond:
        found = [pair for pair in found if pair[0] not in beyond]
    for number in sorted(beyond):
        found += [(number, edges) for _, edges in matches(ByteText.of([texts.texts[number]]), pattern, ignore_case)]
    return found


@cache
def matcher_of(pattern: str, ignore_case: bool = False) -> tuple[Any, int]:
    """Compile a pattern with RE2, its letter classes expanded; return it and the number of the span's group.

    >>> matcher_of(r"\\p{Lu}[\\p{L}-]+")[0].search("the Ångström-unit").group()
    'Ångström-unit'
    """
    inside = False

    def expand(match: re.Match[str]) -> str:
        r"""Replace a class such as \p{L} by its characters, in brackets unless it is inside some; track brackets."""
        nonlocal inside
        part = match.group()
        if part.startswith("[") and not inside:
            inside = True
        elif part == "]":
            inside = False
        if part not in _CLASSES:
            return part
        return _CLASSES[part] if inside else f"[{_CLASSES[part]}]"

    matcher = compile_pattern(_CLASS.sub(expand, pattern), ignore_case)
    return matcher, matcher.groupindex.get(SPAN, min(matcher.groups, 1))


@cache
def _ending(pattern: str) -> re.Pattern[str]:
    """Compile, once, a pattern that must match at the end of a text, ignoring case."""
    return re.compile(rf"(?:{pattern})\Z", re.IGNORECASE)


@cache
def _beginning(pattern: str) -> re.Pattern[str]:
    """Compile, once, a pattern to be matched at the beginning of a text, ignoring case."""
    return re.compile(pattern, re.IGNORECASE)


def either(words: str | Any) -> str:
    """Return a regex group of alternatives, the longest first, from words separated by blanks or an iterable.

    >>> either("st street")
    '(?:street|st)'
    """
    alternatives = words.split() if isinstance(words, str) else list(words)
    return "(?:" + "|".join(sorted(alternatives, key=lambda word: (-len(word), word))) + ")"
