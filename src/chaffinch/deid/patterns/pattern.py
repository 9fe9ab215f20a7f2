"""One pattern: a regular expression, what must not stand beside it, and what its text must be.

Time is linear in the text: RE2 finds the places, and the checks look at `AROUND` characters on each side at most.
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
from chaffinch.text.regex import compiled

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

AROUND = 32  # characters looked at before and after a match
SPAN = "span"
_BETWEEN = b"\n\xff\n"  # between the texts of a page


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ByteText:
    """Texts as RE2 reads them, made once for all patterns: their bytes in one piece, and where each text stands.

    Between two texts is a byte that no character has, so that nothing matches across it, and an end of line on either
    side. A match that takes such an end of line in may not be one in the text alone; `matches` then looks there. A
    pattern that asks for the end of a text, ^ or $, must therefore take an end of line as well, as in (?:[^\\d]|$).
    """

    texts: Sequence[str]
    data: bytes
    begins: Sequence[int]  # the first byte of every text
    ends: Sequence[int]  # one past the last
    characters: Sequence[list[int] | None]  # the character of each byte, and the end; None if each has one byte

    @classmethod
    def of(cls, texts: Sequence[str]) -> ByteText:
        """The page of some texts."""
        parts = [text.encode("utf-8", "replace") for text in texts]
        between = _BETWEEN if len(parts) > 1 else b""
        ends = [end - len(between) for end in accumulate(len(part) + len(between) for part in parts)]
        shift = 1 if between else 0  # the page begins with an end of line
        begins = [shift + end - len(part) for part, end in zip(parts, ends, strict=True)]
        edge = b"\n" * shift
        data = b"".join([edge, between.join(parts), edge])
        characters = [_characters(part, text) for part, text in zip(parts, texts, strict=True)]
        return cls(texts, data, begins, [shift + end for end in ends], characters)

    def number_at(self, byte: int) -> int:
        """The number of the text at a byte; the end of line before a text counts as its own."""
        return bisect_right(self.begins, byte + 1) - 1

    def edges(self, number: int, match: tuple[int, int], span: tuple[int, int]) -> Edges:
        """Places of the page as characters of a text."""
        begin, at = self.begins[number], self.characters[number]
        if at is None:
            return match[0] - begin, match[1] - begin, span[0] - begin, span[1] - begin
        return at[match[0] - begin], at[match[1] - begin], at[span[0] - begin], at[span[1] - begin]


def _characters(data: bytes, text: str) -> list[int] | None:
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
        """The places that match, from left to right, never overlapping."""
        return [span for _, span in self.on(ByteText.of([doc.text]))]

    def on(self, page: ByteText) -> list[tuple[int, Span]]:
        """The same for a page, each with the number of its text: what is found in each text alone."""
        return [
            (number, Span(*place, self.label, self.score, self.name))
            for number, edges in matches(page, self.pattern, self.ignore_case)
            if (place := self._place(page.texts[number], *edges)) is not None
        ]

    def _place(self, text: str, first: int, last: int, start: int, end: int) -> tuple[int, int] | None:
        """Start and end of the span of a match if the checks let it pass."""
        if not self._stands_free(text, first, last, start, end):
            return None
        if self.fits is not None and not self.fits(text[start:end]):
            return None
        if self.cut is None:
            return start, end
        part = self.cut(text[start:end])
        return None if part is None or part[0] >= part[1] else (start + part[0], start + part[1])

    def _stands_free(self, text: str, first: int, last: int, start: int, end: int) -> bool:
        if (start == first and _inside(text, start)) or (end == last and _inside(text, end)):
            return False
        if self.before and _ending(self.before).search(text[max(0, first - AROUND) : start]):
            return False
        return not (self.after and _beginning(self.after).match(text[end : end + AROUND]))


def matches(page: ByteText, pattern: str, ignore_case: bool = False) -> list[tuple[int, Edges]]:
    """The number of the text and the edges of every match: what is found in each text alone, in its order."""
    matcher, group = matcher_of(pattern, ignore_case)
    found: list[tuple[int, Edges]] = []
    beyond = set[int]()
    for match in matcher.finditer(page.data):
        whole, span = match.span(), match.span(group)
        number = page.number_at(whole[0])
        if whole[0] < page.begins[number] or whole[1] > page.ends[number]:
            beyond.add(number)
        elif span[1] > span[0]:
            found.append((number, page.edges(number, whole, span)))
    if beyond:
        found = [own for own in found if own[0] not in beyond]
    for number in sorted(beyond):
        found += [(number, edges) for _, edges in matches(ByteText.of([page.texts[number]]), pattern, ignore_case)]
    return found


@cache
def matcher_of(pattern: str, ignore_case: bool = False) -> tuple[Any, int]:
    """The expression, ready to match, its classes of letters spelt out; and the group that is the span.

    >>> matcher_of(r"\\p{Lu}[\\p{L}-]+")[0].search("the Ångström-unit").group()
    'Ångström-unit'
    """
    inside = False

    def spelt(sign: re.Match[str]) -> str:
        nonlocal inside
        own = sign.group()
        if own.startswith("[") and not inside:
            inside = True
        elif own == "]":
            inside = False
        if own not in _CLASSES:
            return own
        return _CLASSES[own] if inside else f"[{_CLASSES[own]}]"

    matcher = compiled(_CLASS.sub(spelt, pattern), ignore_case)
    return matcher, matcher.groupindex.get(SPAN, min(matcher.groups, 1))


def _inside(text: str, cut: int) -> bool:
    """Whether a cut parts two letters or digits."""
    return 0 < cut < len(text) and text[cut - 1].isalnum() and text[cut].isalnum()


@cache
def _ending(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?:{pattern})\Z", re.IGNORECASE)


@cache
def _beginning(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def either(words: str | Any) -> str:
    """A group of alternatives, of words parted by blanks or of an iterable; the longest first.

    >>> either("st street")
    '(?:street|st)'
    """
    own = words.split() if isinstance(words, str) else list(words)
    return "(?:" + "|".join(sorted(own, key=lambda word: (-len(word), word))) + ")"
