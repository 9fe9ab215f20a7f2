"""Documents as the reader sees them: word pieces, case, shape and gap of each, windows, and the piece of every token.

An uncased vocabulary does not tell "May" from "may", nor a new line from a blank. So three small numbers stand beside
every piece: the shape of its word, the gap before it, and the length of its word. T tokens, P pieces of a document.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from chaffinch.models.reader.wordpieces import Ints, Pieces, Vocabulary
from chaffinch.text import Document
from chaffinch.text.view import find_wide_gaps

SHAPES, GAPS, LENGTHS = 8, 6, 16  # how many values each of the three has
_OTHER, _SMALL, _TITLE, _CAPITALS, _INITIAL, _MIXED, _DIGITS, _CODE = range(SHAPES)
_INSIDE, _NONE, _BLANK, _BLANKS, _LINE, _PARAGRAPH = range(GAPS)


class PieceWindow(NamedTuple):
    """Pieces first to end are read together; of these, own_first to own_end take what is read here."""

    first: int
    end: int
    own_first: int
    own_end: int


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Inputs:
    """One document for the reader."""

    columns: Ints  # (4, P) pieces, shapes, gaps, lengths
    firsts: Ints  # (T,) the first piece of every token; -1 if it has none

    @classmethod
    def of(cls, doc: Document, vocabulary: Vocabulary) -> Inputs:
        """Return a document's pieces with their words' shape, gap and length, and the first piece of each token."""
        pieces, text = vocabulary.cut(doc.text), doc.text
        begins = np.append(True, pieces.words[1:] != pieces.words[:-1])[: len(pieces)]
        heads = np.flatnonzero(begins)
        tails = np.append(heads[1:], len(pieces)) - 1
        starts, ends = pieces.starts[heads[: len(tails)]].tolist(), pieces.ends[tails[: len(heads)]].tolist()
        words = [text[start:end] for start, end in zip(starts, ends, strict=True)]
        edges = list(zip([0, *ends[:-1]], starts, strict=False))
        wide = set(find_wide_gaps(text))  # a name typed with a tab or two blanks is the same name
        gaps = np.zeros(len(pieces), np.int64)
        gaps[heads] = [_BLANK if edge in wide else gap_of(text[slice(*edge)]) for edge in edges]
        if len(gaps):
            gaps[0] = max(int(gaps[0]), _LINE)
        shapes = np.array([shape_of(word) for word in words], np.int64)
        lengths = np.minimum([len(word) for word in words], LENGTHS - 1).astype(np.int64)
        columns = np.stack([pieces.ids, shapes[pieces.words], gaps, lengths[pieces.words]])
        return cls(columns, _first_pieces(doc, pieces))

    def __len__(self) -> int:
        """Return the number of word pieces."""
        return len(self.columns[0])


def windows_of(pieces: int, most: int, overlap: int) -> list[PieceWindow]:
    """Return windows of at most `most` pieces that share `overlap` or more; each piece is owned by one of them.

    Windows are of like length. A piece takes the window in which it is farther from an edge.

    >>> windows_of(10, 6, 2)
    [PieceWindow(first=0, end=6, own_first=0, own_end=5), PieceWindow(first=4, end=10, own_first=5, own_end=10)]
    """
    if pieces <= most:
        return [PieceWindow(0, pieces, 0, pieces)] if pieces else []
    number = -(-(pieces - overlap) // (most - overlap))
    width = -(-(pieces + (number - 1) * overlap) // number)
    firsts = [round(place * (pieces - width) / (number - 1)) for place in range(number)]
    cuts = [0, *((before + width + first) // 2 for before, first in pairwise(firsts)), pieces]
    return [PieceWindow(first, first + width, *cuts[place : place + 2]) for place, first in enumerate(firsts)]


def _first_pieces(doc: Document, pieces: Pieces) -> Ints:
    """Return (T,) the first piece that shares a character with each token; -1 if none does."""
    firsts = np.searchsorted(pieces.ends, doc.tokens[:, 0], side="right")
    known = np.append(pieces.starts, np.iinfo(np.int64).max)[firsts] < doc.tokens[:, 1]
    return np.where(known, firsts, -1)


@lru_cache(maxsize=65_536)
def shape_of(word: str) -> int:
    """Return the number of a word's class: small, title, capitals, initial, mixed, digits, code, or no letter."""
    if not any(map(str.isalnum, word)):
        return _OTHER
    if word.isdigit():
        return _DIGITS
    if any(map(str.isdigit, word)):
        return _CODE
    if word.isupper():
        return _CAPITALS if len(word) > 1 else _INITIAL
    if word == word.lower():
        return _SMALL
    return _TITLE if word[:1].isupper() and word[1:] == word[1:].lower() else _MIXED


def gap_of(between: str) -> int:
    """Return the number of the class of the text between two words: none, a blank, blanks, a line end, several."""
    if not between:
        return _NONE
    breaks = between.count("\n") or between.count("\r")
    if breaks:
        return _LINE if breaks == 1 else _PARAGRAPH
    return _BLANK if len(between) == 1 and between != "\t" else _BLANKS
