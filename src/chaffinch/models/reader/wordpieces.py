"""Cut text into the word pieces of BERT's uncased vocabularies, with exact code-point offsets.

    text → characters without accents, in small letters → words (punctuation stands alone) → longest pieces first

A piece knows which characters of the original text it was made from. What the vocabulary cannot spell is one unknown
piece. P pieces of a text.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from chaffinch.errors import ModelError

Ints = NDArray[np.int64]

UNKNOWN, BEGIN, END, PADDING = "[UNK]", "[CLS]", "[SEP]", "[PAD]"
INNER = "##"  # begins the pieces that go on with a word
LONGEST_WORD = 100  # characters; BERT calls longer words unknown
_SPACE, _ALONE, _LETTER = range(3)  # what a character does: separate words, be a word of its own, be part of one
_IDEOGRAPHS = (
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F), (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)  # fmt: skip
_REMEMBERED = 1 << 16  # words whose pieces a vocabulary keeps


class Word(NamedTuple):
    """A word as the vocabulary sees it, and the characters it was made from."""

    letters: str  # folded
    places: Sequence[int]  # the character of the text that each letter comes from


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """The word pieces of a text in their order."""

    ids: Ints  # (P,)
    starts: Ints  # (P,) code points, half-open
    ends: Ints  # (P,)
    words: Ints  # (P,) the number of the word that a piece is part of

    def __len__(self) -> int:
        """Return the number of pieces."""
        return len(self.ids)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Vocabulary:
    """Word pieces and their numbers; remembers how it cut words."""

    pieces: tuple[str, ...]
    numbers: Mapping[str, int]
    unknown: int
    begin: int
    end: int
    padding: int
    _cuts: dict[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, pieces: Sequence[str]) -> Vocabulary:
        """Return the vocabulary of pieces, numbered in order; ModelError if a special piece is missing."""
        numbers = {piece: number for number, piece in enumerate(pieces)}
        missing = [name for name in (UNKNOWN, BEGIN, END, PADDING) if name not in numbers]
        if missing:
            raise ModelError(f"its vocabulary lacks the special piece {missing[0]}; take a vocabulary of BERT's form")
        return cls(tuple(pieces), numbers, numbers[UNKNOWN], numbers[BEGIN], numbers[END], numbers[PADDING])

    def cut(self, text: str) -> Pieces:
        """Return a text's word pieces: number, start and end in the text, and number of the word each is part of.

        >>> vocabulary = Vocabulary.of(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "dr", "pen", "##n", "."])
        >>> found = vocabulary.cut("Dr. Pénn")
        >>> [vocabulary.pieces[number] for number in found.ids], found.starts.tolist(), found.words.tolist()
        (['dr', '.', 'pen', '##n'], [0, 2, 4, 7], [0, 1, 2, 2])
        """
        rows: list[tuple[int, int, int, int]] = []
        for number, (letters, places) in enumerate(split_words(text)):
            first = 0
            for piece, size in self.spell(letters):
                rows.append((piece, places[first], places[first + size - 1] + 1, number))
                first += size
        table = np.array(rows, np.int64).reshape(-1, 4)
        return Pieces(*(np.ascontiguousarray(column) for column in table.T))

    def spell(self, letters: str) -> tuple[tuple[int, int], ...]:
        """Return (number, size) of a folded word's pieces, longest first from the left; one unknown if that fails."""
        known = self._cuts.get(letters)
        if known is None:
            known = self._spell(letters)
            if len(self._cuts) < _REMEMBERED:
                self._cuts[letters] = known
        return known

    def _spell(self, letters: str) -> tuple[tuple[int, int], ...]:
        """Return (number, size) of a folded word's pieces, longest first; one unknown piece if that fails."""
        whole = ((self.unknown, len(letters)),)
        if len(letters) > LONGEST_WORD:
            return whole
        out, first = [], 0
        while first < len(letters):
            prefix = INNER if first else ""
            for end in range(len(letters), first, -1):
                number = self.numbers.get(prefix + letters[first:end])
                if number is not None:
                    break
            else:
                return whole
            out.append((number, end - first))
            first = end
        return tuple(out)


def split_words(text: str) -> Iterator[Word]:
    """Yield folded words with their letters' places: runs of letters and digits; marks and ideographs alone.

    >>> [word.letters for word in split_words("O'Néill, 5mg")]
    ['o', "'", 'neill', ',', '5mg']
    """
    letters: list[str] = []
    places: list[int] = []
    for place, sign in enumerate(text):
        for role, folded in fold(sign):
            if role == _LETTER:
                letters.append(folded)
                places.append(place)
                continue
            if letters:
                yield Word("".join(letters), places)
                letters, places = [], []
            if role == _ALONE:
                yield Word(folded, [place])
    if letters:
        yield Word("".join(letters), places)


@lru_cache(maxsize=65_536)
def fold(sign: str) -> tuple[tuple[int, str], ...]:
    """Return (role, small letter without accent) for all that a character becomes; () for controls."""
    if sign in "\t\n\r":
        return ((_SPACE, " "),)
    category = unicodedata.category(sign)
    if sign in "\0\ufffd" or category in ("Cc", "Cf", "Cn", "Co", "Cs"):
        return ()
    if category[0] == "Z":
        return ((_SPACE, " "),)
    if any(low <= ord(sign) <= high for low, high in _IDEOGRAPHS):
        return tuple((_ALONE, char) for char in unicodedata.normalize("NFD", sign))
    bare = [char for char in unicodedata.normalize("NFD", sign) if unicodedata.category(char) != "Mn"]
    return tuple((_ALONE if _is_punctuation(char) else _LETTER, char) for each in bare for char in each.lower())


def _is_punctuation(sign: str) -> bool:
    """Tell whether BERT cuts a word here: ASCII but letters and digits, and Unicode's punctuation."""
    return (sign.isascii() and not sign.isalnum()) or unicodedata.category(sign)[0] == "P"
