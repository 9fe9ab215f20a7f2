"""Abbreviations and their long forms: "long form (LF)" and "LF (long form)", as Schwartz and Hearst (2003) find them.

T tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from chaffinch.text import Document, Span

Pair: TypeAlias = tuple[Span, Span]  # the long form and the short one
_Places: TypeAlias = tuple[tuple[int, int], tuple[int, int]]  # the same as runs of tokens

LONG, SHORT = "long form", "short form"
MOST_SIGNS, MOST_WORDS = 12, 2  # most characters and words of a short form; longer text is none
OPENING, CLOSING = {"(": ")", "[": "]"}, {")": "(", "]": "["}
_ENDS = {",", ";", ":", "=", "or", "and"}  # what ends the short form inside brackets: "(ABC; see below)"


def pairs(doc: Document) -> list[Pair]:
    """Return (long form, short form) spans of the abbreviations that brackets introduce, in order of the brackets.

    Both are whole tokens of one sentence. A short form has a capital letter; a plural "s" after it, and characters that
    are neither letters nor digits, need no counterpart in the long form.

    >>> doc = Document.make("Type 2 diabetes mellitus (T2DM) and DMD (Duchenne muscular dystrophy).")
    >>> [tuple(doc.text[span.start : span.end] for span in pair) for pair in pairs(doc)]
    [('Type 2 diabetes mellitus', 'T2DM'), ('Duchenne muscular dystrophy', 'DMD')]
    """
    words, out = doc.words(), []
    for first, opened, closed in brackets(doc, words):
        end = next((t for t in range(opened + 1, closed) if words[t] in _ENDS), closed)
        found = _short_inside(doc, words, first, opened, end) or _short_before(doc, words, first, opened, closed)
        if found is not None:
            (a, b), (c, d) = found
            out.append((_span(doc, a, b, LONG), _span(doc, c, d, SHORT)))
    return out


def brackets(doc: Document, words: Sequence[str]) -> Iterator[tuple[int, int, int]]:
    """Return (sentence's first token, opening, closing bracket) of every pair, nested ones too, by opening bracket."""
    found = []
    for first, end in doc.sentence_tokens().tolist():
        open_at: list[int] = []
        for t in range(first, end):
            if words[t] in OPENING:
                open_at.append(t)
            elif words[t] in CLOSING and open_at and words[open_at[-1]] == CLOSING[words[t]]:
                found.append((first, open_at.pop(), t))
    return iter(sorted(found, key=lambda triple: triple[1]))


def is_short_form(word: str) -> bool:
    """Tell whether a word may be an abbreviation: 2 to 12 characters, first a letter or digit, with a capital letter.

    >>> [is_short_form(word) for word in ("DMD", "mRNAs", "A", "seven", "(AT")]
    [True, True, False, False, False]
    """
    return 2 <= len(word) <= MOST_SIGNS and word[0].isalnum() and any(sign.isupper() for sign in word)


def singular(short: str) -> str:
    """Return the short form without the "s" of a plural: "CT" for "CTs" and "CT's"; "AIDS" stays."""
    for end in ("'s", "s'", "s"):  # of a plural or possessive
        stem = short.removesuffix(end)
        if stem != short and len(stem) >= 2 and (stem[-1].isupper() or stem[-1].isdigit()):
            return stem
    return short


def long_form_start(words: Sequence[str], short: str) -> int | None:
    """Return the index of the first of the last words whose letters spell the short form; None if none do.

    From right to left every letter and digit of the short form must occur, the first at the start of a word.

    >>> long_form_start(["the", "acute", "renal", "failure"], "ARF")
    1
    """
    text = " ".join(words).lower()
    offset = len(text)
    signs = [sign for sign in singular(short).lower() if sign.isalnum()]
    for number in range(len(signs) - 1, -1, -1):
        offset -= 1
        while offset >= 0 and not (
            text[offset] == signs[number] and (number > 0 or offset == 0 or not text[offset - 1].isalnum())
        ):
            offset -= 1
        if offset < 0:
            return None
    return text.count(" ", 0, offset)


def _short_inside(doc: Document, words: Sequence[str], first: int, opened: int, end: int) -> _Places | None:
    """Return token ranges of (long form, short form) for "long form (LF)"; None if the pattern does not match."""
    if end == opened + 1:
        return None
    short = doc.text[doc.tokens[opened + 1, 0] : doc.tokens[end - 1, 1]].split()
    if len(short) > MOST_WORDS or not is_short_form("".join(short)):
        return None
    size, start = len(singular("".join(short))), opened
    most = min(size + 5, 2 * size)
    while start > first and most > 0:
        start -= 1
        most -= words[start][0].isalnum()
    return _match_long_form(words, start, opened, "".join(short), (opened + 1, end))


def _short_before(doc: Document, words: Sequence[str], first: int, opened: int, closed: int) -> _Places | None:
    """Return token ranges of (long form, short form) for "LF (long form)"; None if the pattern does not match."""
    if opened == first:
        return None
    begin = opened - 1
    while begin > first and doc.tokens[begin - 1, 1] == doc.tokens[begin, 0]:  # "IL-2" may be three tokens
        begin -= 1
    short = "".join(words[begin:opened])
    if not is_short_form(short):
        return None
    end = next((t for t in range(opened + 1, closed) if words[t] in {";", ","}), closed)
    found = _match_long_form(words, opened + 1, end, short, (begin, opened))
    return found if found is not None and found[0][0] == opened + 1 else None


def _match_long_form(
    words: Sequence[str], start: int, end: int, short: str, short_run: tuple[int, int]
) -> _Places | None:
    """Return (range of the long form that ends at token `end`, `short_run`); None if no allowed words spell it."""
    offset = long_form_start(words[start:end], short)
    if offset is None:
        return None
    long_words = words[start + offset : end]
    if (
        len(" ".join(long_words)) <= len(short)
        or short in long_words
        or any(word in OPENING or word in CLOSING for word in long_words)
    ):
        return None
    return (start + offset, end), short_run


def _span(doc: Document, first: int, end: int, label: str) -> Span:
    """Return the span over tokens [first, end), with this label."""
    return Span(int(doc.tokens[first, 0]), int(doc.tokens[end - 1, 1]), label)
