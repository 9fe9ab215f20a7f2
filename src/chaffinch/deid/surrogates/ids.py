"""Surrogates of numbers and codes: every digit becomes a digit, every letter a letter of its case, each as likely.

Separators are kept and do not count: "12-34-56" and "123456" go the same way. So do the last four digits of a social
security number with and without the rest, and a zip code with and without its four last digits.
"""

from __future__ import annotations

from collections.abc import Sequence

from chaffinch.deid.surrogates.letters import (
    Keyed,
    as_like,
    base,
    bases,
    bears,
    drawn_for,
    fold,
    is_word,
    joined,
    pieces,
    reshaped,
)
from chaffinch.languages import kept_words

ROOM_WORDS = kept_words("rooms")
_SSN_WORDS = frozenset("ssn ss no number social security last four x xx xxx xxxx xxxxx".split())
_ZIP_WORDS = frozenset("zip code".split())
_AREA = "9"  # no social security number begins so


def identifier(text: str, keyed: Keyed) -> str:
    """The code in the same shape; its case and separators do not count."""
    return reshaped(text, keyed, "id")


def social_security(text: str, keyed: Keyed) -> str:
    """A number that is never issued, in the same shape; masks such as xxx-xx are kept."""
    normal = digits_of(text)
    if len(normal) not in {4, 9} or not only_words(text, _SSN_WORDS):
        return reshaped(text, keyed, "ssn")
    head, tail = normal[:-4], normal[-4:]
    drawn = drawn_for(tail, keyed, ["ssn tail"])
    if head:
        drawn = _AREA + drawn_for(head[1:], keyed, ["ssn head", head[0]]) + drawn
    return with_digits(text, drawn)


def zip_code(text: str, keyed: Keyed) -> str:
    """A zip code in the same shape; codes with letters, as in Canada, are reshaped as a whole."""
    normal = digits_of(text)
    if len(normal) not in {5, 9} or not only_words(text, _ZIP_WORDS):
        return reshaped(text, keyed, "zip")
    drawn = drawn_for(normal[:5], keyed, ["zip"])
    return with_digits(text, drawn + drawn_for(normal[5:], keyed, ["zip more", normal[:5]]))


def room(text: str, keyed: Keyed) -> str:
    """The room with its numbers and letters drawn anew; words such as "Room" and "Floor" are kept beside them."""
    parts = pieces(text)
    kept = {at for at, part in enumerate(parts) if is_word(part) and fold(part) in ROOM_WORDS}
    if all(at in kept or not bears(part[0]) for at, part in enumerate(parts)):
        kept = set()
    return joined(parts, _reshaped_runs(parts, kept, keyed))


def _reshaped_runs(parts: Sequence[str], kept: set[int], keyed: Keyed) -> dict[int, str]:
    """New letters and digits for all but the kept pieces, which part what goes together: "3-12" is as "312"."""
    drawn: dict[int, str] = {}
    run: list[int] = []
    for at in range(len(parts) + 1):
        if at < len(parts) and at not in kept:
            run.append(at)
            continue
        text = reshaped("".join(parts[place] for place in run), keyed, "room", leading=False)
        for place in run:
            drawn[place], text = text[: len(parts[place])], text[len(parts[place]) :]
        run = []
    return drawn


def digits_of(text: str) -> str:
    """The decimal digits of a text, in ASCII."""
    return "".join(base(char) for char in text if char.isdecimal())


def with_digits(text: str, digits: str) -> str:
    """The text with its digits replaced, one by one."""
    each = iter(digits)
    return "".join(as_like(char, next(each)) if char.isdecimal() else char for char in text)


def only_words(text: str, allowed: frozenset[str]) -> bool:
    """Whether all letters of a text belong to these words."""
    return all(bases(part) in allowed for part in pieces(text) if is_word(part))
