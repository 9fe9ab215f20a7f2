"""One pattern: a regular expression, what must not stand beside it, and what its text must be.

Time is linear in the text: RE2 finds the places, and the checks look at `AROUND` characters on each side at most.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, field
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from chaffinch.text import Document, Span
from chaffinch.weak.source_patterns import compiled

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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Page:
    """A text as RE2 reads it, made once for all patterns: its bytes, and the character each byte belongs to."""

    text: str
    data: bytes
    characters: NDArray[np.int64] | None  # (bytes + 1,), None if every character is one byte

    @classmethod
    def of(cls, text: str) -> Page:
        """The page of a text."""
        data = text.encode("utf-8", "replace")
        if len(data) == len(text):
            return cls(text, data, None)
        begins = (np.frombuffer(data, np.uint8) & 0xC0) != 0x80
        return cls(text, data, np.append(np.cumsum(begins) - 1, len(text)))


@dataclass(frozen=True, slots=True)
class Pattern:
    """A named source of spans with one label. The group called "span", else the first, is the span.

    A match must not begin or end inside a word, nor right after `before` or right before `after`; its span must pass
    `fits` and is shortened by `cut`.

    >>> dose = Pattern("zip", r"\\b(\\d{5})\\b", label="ZIP", after=r" ?mg")
    >>> [(span.start, span.end) for span in dose(Document.make("20000 mg in 02139"))]
    [(12, 17)]
    """

    name: str
    pattern: str
    _: KW_ONLY
    label: str
    score: float = 0.9
    ignore_case: bool = False
    before: str = ""
    after: str = ""
    fits: Check | None = field(default=None, compare=False, repr=False)
    cut: Cut | None = field(default=None, compare=False, repr=False)

    def __call__(self, doc: Document) -> list[Span]:
        """The places that match, from left to right, never overlapping."""
        return self.on(Page.of(doc.text))

    def on(self, page: Page) -> list[Span]:
        """The same for a page."""
        return [Span(start, end, self.label, self.score, self.name) for start, end in self._places(page)]

    def _places(self, page: Page) -> Iterator[tuple[int, int]]:
        matcher, group = matcher_of(self.pattern, self.ignore_case)
        text, characters = page.text, page.characters
        for match in matcher.finditer(page.data):
            (first, last), (start, end) = match.span(), match.span(group)
            if end <= start:
                continue
            if characters is not None:
                first, last, start, end = characters[[first, last, start, end]].tolist()
            if not self._stands_free(text, first, last, start, end):
                continue
            if self.fits is not None and not self.fits(text[start:end]):
                continue
            if self.cut is not None:
                part = self.cut(text[start:end])
                if part is None or part[0] >= part[1]:
                    continue
                start, end = start + part[0], start + part[1]
            yield start, end

    def _stands_free(self, text: str, first: int, last: int, start: int, end: int) -> bool:
        if (start == first and _inside(text, start)) or (end == last and _inside(text, end)):
            return False
        if self.before and _ending(self.before).search(text[max(0, first - AROUND) : start]):
            return False
        return not (self.after and _beginning(self.after).match(text[end : end + AROUND]))


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
