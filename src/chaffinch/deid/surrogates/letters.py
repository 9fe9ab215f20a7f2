"""Letters under a key: what of a character counts, which characters may stand for it, and which letter stands for J.

A character that bears something (a letter, a digit, a vowel sign) is drawn anew within its own sort; all others are
kept. Case, accents and width do not count: "É", "e" and "ｅ" have the same base.

Whatever is drawn is drawn evenly from all values of the same form, the original among them. Were the original left out,
the one value that never turns up over many patients would be the original of them all.
"""

from __future__ import annotations

import math
import re
import string
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from typing import Literal, TypeAlias

from chaffinch.deid.keys import Secret
from chaffinch.deid.surrogates.name_book import NameBook
from chaffinch.deid.surrogates.permute import LARGEST, permute

Gender: TypeAlias = Literal["F", "M"]

_PLAIN = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "ð": "d", "þ": "t", "æ": "a", "œ": "o", "ı": "i"})
_DIACRITICS = range(0x300, 0x370)
_WINDOW = 64  # characters of one script mostly stand this close together
_FEWEST = 8  # characters that may stand for a letter of a script; of a smaller one, letters a to z
_RUNS = re.compile("[a-z]+|[0-9]+")
_PIECES = re.compile("[a-zA-Z]+|[0-9]+|[^a-zA-Z0-9]+")
_ASCII_WORD = re.compile("[a-zA-Z0-9]+")


@dataclass(slots=True)
class Keyed:
    """A patient under a secret: whence every surrogate is drawn. `used` tells whether anything was drawn from it."""

    secret: Secret = field(repr=False)
    patient: str = field(repr=False)
    names: NameBook = field(default_factory=NameBook, repr=False)
    used: bool = False
    gender: Gender | None = field(default=None, repr=False)  # serves first names of which the lists tell none

    def number(self, bound: int, *parts: str) -> int:
        """Draw a number below the bound; the parts say what it is for."""
        self.used = self.used or bound > 1
        return self.secret.number(bound, "surrogate", self.patient, *parts)

    def exchange(self, index: int | None, size: int, *parts: str, text: str) -> int:
        """Draw what stands for one of `size` values: for two of them never the same.

        `index` is the value's place among them; None for a text that is none of them, for which any of them may stand.
        """
        if index is None or size > LARGEST:
            return self.number(size, *parts, text)
        self.used = self.used or size > 1
        return permute(index, size, _permutation_key(self.secret, self.patient, str(size), *parts))

    def pick(self, entries: Sequence[str], *parts: str, text: str) -> str:
        """Draw an entry of a list for a folded text."""
        return entries[self.exchange(places_of(entries).get(text), len(entries), *parts, text=text)]


@lru_cache(maxsize=4096)
def _permutation_key(secret: Secret, *parts: str) -> bytes:
    stream = secret.stream("permutation", *parts)
    return b"".join(next(stream).to_bytes(8, "big") for _ in range(4))


@lru_cache(maxsize=64)
def places_of(entries: Sequence[str]) -> Mapping[str, int]:
    """Return the place of every entry of a list by its folded text; blanks between words are single."""
    return {fold_phrase(entry): place for place, entry in enumerate(entries)}


@lru_cache(maxsize=65536)
def bears(char: str) -> bool:
    """Whether a character can tell something: letters, digits and vowel signs do; accents and points do not."""
    if char.isalnum():
        return True
    return unicodedata.category(char) in {"Mn", "Mc"} and ord(char) not in _DIACRITICS


@lru_cache(maxsize=65536)
def base(char: str) -> str:
    """One character: the same for all cases, accents and widths of a letter.

    >>> base("É"), base("ł"), base("７"), base("Ж")
    ('e', 'l', '7', 'ж')
    """
    spread = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", char).casefold()).translate(_PLAIN)
    rest = [part for part in spread if not unicodedata.combining(part)]
    if rest and (len(rest) == 1 or (rest[0].isascii() and rest[0].isalnum())):
        return rest[0]
    folded = char.casefold()
    return folded if len(folded) == 1 else char


def bases(text: str) -> str:
    """The text as keys know it: the bases of what bears something, without separators, case and accents.

    >>> bases("12-34 É")
    '1234e'
    """
    if _ASCII_WORD.fullmatch(text):
        return text.lower()
    return "".join(base(char) for char in text if bears(char))


def fold(word: str) -> str:
    """A word in lower case without accents.

    >>> fold("MÜLLER")
    'muller'
    """
    return word.lower() if word.isascii() else bases(word)


def fold_phrase(text: str) -> str:
    """Return the folded words of a text between single blanks.

    >>> fold_phrase("New  YORK-city")
    'new york city'
    """
    return " ".join(fold(part) for part in pieces(text) if bears(part[0]))


def words(text: str) -> frozenset[str]:
    """The folded words and numbers of a text, those of one character left out."""
    if text.isascii():
        found = _RUNS.findall(text.lower())
    else:
        found = [bases(piece) for piece in pieces(text) if bears(piece[0])]
    return frozenset(word for word in found if len(word) > 1)


def pieces(text: str) -> list[str]:
    """The text cut where letters, digits and all else meet; joined, it is the text again.

    >>> pieces("Smith, J.2nd")
    ['Smith', ', ', 'J', '.', '2', 'nd']
    """
    if text.isascii():
        return _PIECES.findall(text)
    return [part for _, run in groupby(text, key=_sort) for part in _marks_apart("".join(run))]


def _marks_apart(piece: str) -> list[str]:
    """The piece; accents that stand before its first letter are one of their own, so that a word begins as words do."""
    first = next((at for at, char in enumerate(piece) if bears(char)), 0)
    return [piece[:first], piece[first:]] if first else [piece]


@lru_cache(maxsize=65536)
def _sort(char: str) -> str:
    if char.isnumeric() and not char.isalpha():
        return "9"
    return "a" if bears(char) or ord(char) in _DIACRITICS else " "


def is_word(piece: str) -> bool:
    """Whether a piece is made of letters."""
    return _sort(piece[0]) == "a" and bears(piece[0])


@lru_cache(maxsize=4096)
def _alphabet(letter: str) -> str:
    """Return what may stand for a base: all of its sort, itself among them, each its own base."""
    if letter.isascii():
        return string.digits if letter.isdigit() else string.ascii_lowercase
    first = ord(letter) & ~(_WINDOW - 1)
    near = (chr(code) for code in range(first, first + _WINDOW))
    category = unicodedata.category(letter)
    found = "".join(
        char for char in near if unicodedata.category(char) == category and bears(char) and base(char) == char
    )
    if len(found) >= _FEWEST:
        return found
    return string.digits if letter.isnumeric() and not letter.isalpha() else string.ascii_lowercase


def reshaped(text: str, keyed: Keyed, *parts: str, leading: bool = True) -> str:
    """The text with every letter and digit drawn anew, in the same case; all else is kept.

    What is drawn depends on the text's bases alone, so "12-34-56" and "123456" go the same way. Without `leading`, a
    number does not begin with 0.
    """
    return spelled(text, drawn_for(bases(text), keyed, parts, leading=leading))


def drawn_for(normal: str, keyed: Keyed, parts: Sequence[str], *, leading: bool = True) -> str:
    """Draw what stands for a string of bases: for two strings of one form never the same."""
    alphabets = [_alphabet(letter) for letter in normal]
    if not leading and normal[:1] in frozenset(string.digits):
        alphabets[0] = string.digits[1:]
    size = math.prod(map(len, alphabets))
    form = "".join(alphabet[0] for alphabet in alphabets)
    value = keyed.exchange(_place(normal, alphabets), size, *parts, form, text=normal)
    drawn = []
    for alphabet in alphabets:
        value, at = divmod(value, len(alphabet))
        drawn.append(alphabet[at])
    return "".join(drawn)


def _place(normal: str, alphabets: Sequence[str]) -> int | None:
    """Return the number of a string among all of its form, or None if it is not of that form."""
    value = 0
    for letter, alphabet in zip(reversed(normal), reversed(alphabets), strict=True):
        at = alphabet.find(letter)
        if at < 0:
            return None
        value = value * len(alphabet) + at
    return value


def spelled(text: str, drawn: str) -> str:
    """The drawn letters in the shape of the text."""
    letters = iter(drawn)
    return "".join(as_like(char, next(letters)) if bears(char) else char for char in text)


def as_like(char: str, drawn: str) -> str:
    """The drawn base in the case and the digits of a character."""
    cased = drawn.upper() if char.isupper() or char.istitle() else drawn.lower() if char.islower() else drawn
    if len(cased) == 1 and cased != drawn:
        return cased
    if char.isdecimal() and drawn.isascii():
        return chr(ord(char) - unicodedata.decimal(char) + int(drawn))
    return drawn


@lru_cache(maxsize=512)
def letter_map(secret: Secret, patient: str) -> Mapping[str, str]:
    """Return which letter stands for which in this patient's names: one of all permutations, each as likely."""
    left = list(string.ascii_lowercase)
    value = secret.number(math.factorial(len(left)), "surrogate", patient, "letters")
    found = {}
    for letter in string.ascii_lowercase:
        value, at = divmod(value, len(left))
        found[letter] = left.pop(at)
    return found


def initials(text: str, keyed: Keyed) -> str:
    """The text with every letter replaced by the one that stands for it in names."""
    table = letter_map(keyed.secret, keyed.patient)
    keyed.used = True
    drawn = [table.get(letter) or drawn_for(letter, keyed, ["initial"]) for letter in bases(text)]
    return spelled(text, "".join(drawn))


def styled(entry: str, like: str) -> str:
    """The entry in capitals or in lower case if what it stands for is; else as the list has it.

    >>> styled("Miller", "SMITH"), styled("Miller", "smith"), styled("Miller", "McCoy")
    ('MILLER', 'miller', 'Miller')
    """
    if like.isupper() and sum(map(str.isalpha, like)) > 1:
        return entry.upper()
    return entry.lower() if like.islower() else entry


def joined(text: Sequence[str], drawn: dict[int, str]) -> str:
    """The pieces as one text, those with a number in `drawn` replaced."""
    return "".join(drawn.get(at, piece) for at, piece in enumerate(text))


def followed_by(text: Sequence[str], at: int) -> tuple[str, int]:
    """What stands between a word and the next, and where the next is; -1 if there is none."""
    between = ""
    for place in range(at + 1, len(text)):
        if is_word(text[place]):
            return between, place
        between += text[place]
    return between, -1
