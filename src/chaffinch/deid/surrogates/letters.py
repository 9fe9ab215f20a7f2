"""Keyed draws of letters and digits: normal forms of characters, their alphabets, and a map of initials.

A significant character (a letter, a digit, a vowel sign) is replaced by one of its own class; all others are kept.
Case, accents and width do not matter: "É", "e" and "ｅ" have the same base.

Every draw is uniform over all values of the same form, the original among them. If the original were excluded, the one
value that never turns up over many patients would be the original of them all.
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
_WINDOW = 64  # code points; the letters of one script mostly share such a block
_FEWEST = 8  # letters; where a block has fewer of the class, letters a to z (or digits) are drawn instead
_RUNS = re.compile("[a-z]+|[0-9]+")
_MOST_LISTS = 64  # whose indices are cached
_INDICES: dict[int, tuple[Sequence[str], Mapping[str, int]]] = {}  # by id of the list, which is kept with them
_PIECES = re.compile("[a-zA-Z]+|[0-9]+|[^a-zA-Z0-9]+")


@dataclass(slots=True)
class SurrogateSource:
    """Keyed draws for the surrogates of one patient. `used` says whether anything was drawn from it."""

    secret: Secret = field(repr=False)
    patient: str = field(repr=False)
    names: NameBook = field(default_factory=NameBook, repr=False)
    used: bool = False
    gender: Gender | None = field(default=None, repr=False)  # used for first names whose gender the lists do not know

    def number(self, bound: int, *parts: str) -> int:
        """Return a keyed number below `bound`, fixed by patient and parts; set `used` if there was a choice."""
        self.used = self.used or bound > 1
        return self.secret.number(bound, "surrogate", self.patient, *parts)

    def permute_index(self, index: int | None, size: int, *parts: str, text: str) -> int:
        """Return the keyed permutation's image of `index` below `size`; a keyed number if None or size is huge.

        `index` is the position of the value among them; None for a text that is none of them, which may get any.
        """
        if index is None or size > LARGEST:
            return self.number(size, *parts, text)
        self.used = self.used or size > 1
        return permute(index, size, _permutation_key(self.secret, self.patient, str(size), *parts))

    def pick(self, entries: Sequence[str], *parts: str, text: str) -> str:
        """Draw an entry of a list for a folded text; two texts of the list never get the same one."""
        return entries[self.permute_index(entry_indices(entries).get(text), len(entries), *parts, text=text)]


@lru_cache(maxsize=4096)
def _permutation_key(secret: Secret, *parts: str) -> bytes:
    """Return the 32-byte key of the permutation that the parts name."""
    stream = secret.stream("permutation", *parts)
    return b"".join(next(stream).to_bytes(8, "big") for _ in range(4))


def entry_indices(entries: Sequence[str]) -> Mapping[str, int]:
    """Return {folded entry, single blanks between its words: index in the list}, cached by the list's identity."""
    known = _INDICES.get(id(entries))  # to hash a list of thousands costs more than the draw
    if known is None or known[0] is not entries:
        if len(_INDICES) >= _MOST_LISTS:
            _INDICES.clear()
        known = _INDICES[id(entries)] = entries, {fold_phrase(entry): index for index, entry in enumerate(entries)}
    return known[1]


@lru_cache(maxsize=65536)
def is_significant(char: str) -> bool:
    """Tell whether a character carries information: letters, digits and vowel signs do; accents and dots do not."""
    if char.isalnum():
        return True
    return unicodedata.category(char) in {"Mn", "Mc"} and ord(char) not in _DIACRITICS


@lru_cache(maxsize=65536)
def base(char: str) -> str:
    """Return one character that all cases, accents and widths of a letter share.

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
    """Return the normal form that keys use: the bases of the significant characters, without separators.

    >>> bases("12-34 É")
    '1234e'
    """
    if text.isascii():
        return "".join(_RUNS.findall(text.lower()))
    return "".join(base(char) for char in text if is_significant(char))


def fold(word: str) -> str:
    """Return a word in lower case without accents.

    >>> fold("MÜLLER")
    'muller'
    """
    return word.lower() if word.isascii() else bases(word)


def fold_phrase(text: str) -> str:
    """Return the folded words of a text between single blanks.

    >>> fold_phrase("New  YORK-city")
    'new york city'
    """
    return " ".join(fold(part) for part in pieces(text) if is_significant(part[0]))


def words(text: str) -> frozenset[str]:
    """Return the folded words and numbers of a text that have more than one character."""
    if text.isascii():
        found = _RUNS.findall(text.lower())
    else:
        found = [bases(piece) for piece in pieces(text) if is_significant(piece[0])]
    return frozenset(word for word in found if len(word) > 1)


def pieces(text: str) -> list[str]:
    """Split a text where letters, digits and other characters meet; joined, the pieces are the text again.

    >>> pieces("Smith, J.2nd")
    ['Smith', ', ', 'J', '.', '2', 'nd']
    """
    if text.isascii():
        return _PIECES.findall(text)
    return [part for _, run in groupby(text, key=_char_class) for part in _split_leading_marks("".join(run))]


def _split_leading_marks(piece: str) -> list[str]:
    """Split accents before the first letter off a piece, so that a word begins with a letter."""
    first = next((i for i, char in enumerate(piece) if is_significant(char)), 0)
    return [piece[:first], piece[first:]] if first else [piece]


@lru_cache(maxsize=65536)
def _char_class(char: str) -> str:
    """Return the class of a character: `9` for numbers, `a` for letters and accents, a blank for the rest."""
    if char.isnumeric() and not char.isalpha():
        return "9"
    return "a" if is_significant(char) or ord(char) in _DIACRITICS else " "


def is_word(piece: str) -> bool:
    """Tell whether a piece is made of letters."""
    return _begins_word(piece[0])


@lru_cache(maxsize=65536)
def _begins_word(char: str) -> bool:
    """Tell whether a piece that begins with a character is made of letters."""
    return _char_class(char) == "a" and is_significant(char)


@lru_cache(maxsize=4096)
def _alphabet(letter: str) -> str:
    """Return what may replace a base letter: ASCII of its kind, else its category nearby, or ASCII if too few."""
    if letter.isascii():
        return string.digits if letter.isdigit() else string.ascii_lowercase
    first = ord(letter) & ~(_WINDOW - 1)
    near = (chr(code) for code in range(first, first + _WINDOW))
    category = unicodedata.category(letter)
    found = "".join(
        char for char in near if unicodedata.category(char) == category and is_significant(char) and base(char) == char
    )
    if len(found) >= _FEWEST:
        return found
    return string.digits if letter.isnumeric() and not letter.isalpha() else string.ascii_lowercase


def reshape(text: str, source: SurrogateSource, *parts: str, leading: bool = True) -> str:
    """Return the text with every letter and digit replaced by a drawn one in the same case; the rest is kept.

    The draw depends on the text's bases alone, so "12-34-56" and "123456" get the same digits. Without `leading`, a
    number does not begin with 0.
    """
    return shape_text(text, draw_string(bases(text), source, parts, leading=leading))


def draw_string(normal: str, source: SurrogateSource, parts: Sequence[str], *, leading: bool = True) -> str:
    """Draw the substitute of a string of bases; two strings of one form never get the same one."""
    alphabets = [_alphabet(letter) for letter in normal]
    if not leading and normal[:1] in frozenset(string.digits):
        alphabets[0] = string.digits[1:]
    size = math.prod(map(len, alphabets))
    form = "".join(alphabet[0] for alphabet in alphabets)
    value = source.permute_index(_number_of(normal, alphabets), size, *parts, form, text=normal)
    drawn = []
    for alphabet in alphabets:
        value, index = divmod(value, len(alphabet))
        drawn.append(alphabet[index])
    return "".join(drawn)


def _number_of(normal: str, alphabets: Sequence[str]) -> int | None:
    """Return the number of a string among all strings of its alphabets; None if a letter is not in its alphabet."""
    value = 0
    for letter, alphabet in zip(reversed(normal), reversed(alphabets), strict=True):
        index = alphabet.find(letter)
        if index < 0:
            return None
        value = value * len(alphabet) + index
    return value


def shape_text(text: str, drawn: str) -> str:
    """Return the drawn letters in the shape of the text: its case, digits and separators."""
    letters = iter(drawn)
    return "".join(shape_char(char, next(letters)) if is_significant(char) else char for char in text)


@lru_cache(maxsize=65536)
def shape_char(char: str, drawn: str) -> str:
    """Return the drawn base in the case, or in the decimal digits, of a character."""
    cased = drawn.upper() if char.isupper() or char.istitle() else drawn.lower() if char.islower() else drawn
    if len(cased) == 1 and cased != drawn:
        return cased
    if char.isdecimal() and drawn.isascii():
        return chr(ord(char) - unicodedata.decimal(char) + int(drawn))
    return drawn


@lru_cache(maxsize=512)
def letter_map(secret: Secret, patient: str) -> Mapping[str, str]:
    """Return the permutation of a to z, in lower case, that replaces initials in this patient's names, drawn evenly."""
    left = list(string.ascii_lowercase)
    value = secret.number(math.factorial(len(left)), "surrogate", patient, "letters")
    letters = {}
    for letter in string.ascii_lowercase:
        value, index = divmod(value, len(left))
        letters[letter] = left.pop(index)
    return letters


def initials(text: str, source: SurrogateSource) -> str:
    """Return the text with letters replaced by the patient's map of initials, in their case; mark `source` used."""
    table = letter_map(source.secret, source.patient)
    source.used = True
    drawn = [table.get(letter) or draw_string(letter, source, ["initial"]) for letter in bases(text)]
    return shape_text(text, "".join(drawn))


def copy_case(entry: str, like: str) -> str:
    """Return the entry in upper or lower case if all of `like` is (upper: of two letters or more); else unchanged.

    >>> copy_case("Miller", "SMITH"), copy_case("Miller", "smith"), copy_case("Miller", "McCoy")
    ('MILLER', 'miller', 'Miller')
    """
    if like.isupper() and sum(map(str.isalpha, like)) > 1:
        return entry.upper()
    return entry.lower() if like.islower() else entry


def join_pieces(parts: Sequence[str], drawn: dict[int, str]) -> str:
    """Join the pieces to one text; pieces whose index is in `drawn` are replaced."""
    return "".join(drawn.get(i, piece) for i, piece in enumerate(parts))


def next_word(parts: Sequence[str], index: int) -> tuple[str, int]:
    """Return the text between word `index` and the next word, and the index of that one, or -1 if there is none."""
    between = ""
    for i in range(index + 1, len(parts)):
        if is_word(parts[i]):
            return between, i
        between += parts[i]
    return between, -1
