"""Surrogates of numbers and codes: every digit becomes a digit, every letter a letter of its case, uniformly.

Separators are kept and do not matter: "12-34-56" and "123456" get the same digits. So do the last four digits of a
social security number with and without the rest, and a zip code with and without its last four digits.
"""

from __future__ import annotations

from collections.abc import Sequence

from chaffinch.deid.surrogates.letters import (
    SurrogateSource,
    base,
    bases,
    draw_string,
    fold,
    is_significant,
    is_word,
    join_pieces,
    pieces,
    reshape,
    shape_char,
)
from chaffinch.languages import kept_words

ROOM_WORDS = kept_words("rooms")
_SSN_WORDS = frozenset("ssn ss no number social security last four x xx xxx xxxx xxxxx".split())
_ZIP_WORDS = frozenset("zip code".split())
_UNISSUED_AREA = "9"  # no social security number begins with it


def identifier(text: str, source: SurrogateSource) -> str:
    """Replace a code by one of the same shape; case and separators do not affect the draw."""
    return reshape(text, source, "id")


def social_security(text: str, source: SurrogateSource) -> str:
    """Replace a social security number by one never issued, keep masks such as xxx-xx; reshape any other text."""
    normal = digits_of(text)
    if len(normal) not in {4, 9} or not only_words(text, _SSN_WORDS):
        return reshape(text, source, "ssn")
    head, tail = normal[:-4], normal[-4:]
    drawn = draw_string(tail, source, ["ssn tail"])
    if head:
        drawn = _UNISSUED_AREA + draw_string(head[1:], source, ["ssn head", head[0]]) + drawn
    return with_digits(text, drawn)


def zip_code(text: str, source: SurrogateSource) -> str:
    """Replace a zip code of 5 or 9 digits by a drawn one, same first five for the same; reshape any other text."""
    normal = digits_of(text)
    if len(normal) not in {5, 9} or not only_words(text, _ZIP_WORDS):
        return reshape(text, source, "zip")
    drawn = draw_string(normal[:5], source, ["zip"])
    return with_digits(text, drawn + draw_string(normal[5:], source, ["zip more", normal[:5]]))


def room(text: str, source: SurrogateSource) -> str:
    """Redraw the numbers and letters of a room; words such as "Room" and "Floor" stay, unless nothing else is there."""
    parts = pieces(text)
    kept = {i for i, part in enumerate(parts) if is_word(part) and fold(part) in ROOM_WORDS}
    if all(i in kept or not is_significant(part[0]) for i, part in enumerate(parts)):
        kept = set()
    return join_pieces(parts, _reshape_runs(parts, kept, source))


def _reshape_runs(parts: Sequence[str], kept: set[int], source: SurrogateSource) -> dict[int, str]:
    """Return new letters and digits for all pieces that are not kept, run by run: "3-12" is drawn like "312"."""
    drawn: dict[int, str] = {}
    run: list[int] = []
    for i in range(len(parts) + 1):
        if i < len(parts) and i not in kept:
            run.append(i)
            continue
        text = reshape("".join(parts[j] for j in run), source, "room", leading=False)
        for j in run:
            drawn[j], text = text[: len(parts[j])], text[len(parts[j]) :]
        run = []
    return drawn


def digits_of(text: str) -> str:
    """Return the decimal digits of a text, in ASCII."""
    found = filter(str.isdecimal, text)
    return "".join(found if text.isascii() else map(base, found))


def with_digits(text: str, digits: str) -> str:
    """Return the text with its decimal digits replaced one by one; `digits` must have at least as many."""
    replacements = iter(digits)
    return "".join(shape_char(char, next(replacements)) if char.isdecimal() else char for char in text)


def only_words(text: str, allowed: frozenset[str]) -> bool:
    """Tell whether all words of a text are among the allowed ones."""
    return all(bases(part) in allowed for part in pieces(text) if is_word(part))
