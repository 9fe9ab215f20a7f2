"""What the patterns of places and houses share: a capitalised word, and which words begin no name of a place."""

from __future__ import annotations

import re

from chaffinch import languages
from chaffinch.deid.detect import word_lists as lexicons

CAP = r"[\p{Lu}ʻ][\p{L}\p{M}'’ʻ.\-]*\p{L}"
WORDS = languages.words("en", "patterns/places")
SMALL, _PARTS = frozenset(WORDS["never_begin"]), frozenset(WORDS["parts_of_places"])


def words_in(text: str) -> list[re.Match[str]]:
    """The words of a text with their places."""
    return list(re.finditer(r"\S+", text))


def is_no_place(word: str) -> bool:
    """A word that begins a sentence or a header, and no name of a place."""
    plain = re.sub(r"['’]s$", "", word).rstrip(".,:")
    hi = "hi" in (lexicons.rate(plain, "city"), lexicons.rate(plain, "last"), lexicons.rate(plain, "first"))
    return (
        (lexicons.is_frequent(plain) and not hi)
        or lexicons.is_section(plain)
        or lexicons.is_drug(plain)
        or plain.lower() in SMALL
    )


def is_part_of_place(word: str) -> bool:
    """Whether a word is common in names of places, such as Lake or St."""
    return word.rstrip(".") in _PARTS
