"""How words stand in the lists of a language: one number per token, a feature of taggers.

A "Grant" is told from a "grant", and a word with a capital that no list has from both.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from chaffinch import languages
from chaffinch.languages import LEXICA, Pack, fold
from chaffinch.text.document import Document

_PARTS = re.compile(r"[-'’.]+")
_REMEMBERED = 1 << 17  # words


class Standing:
    """The lists of a language pack; those of names lack the `hidden` words (`languages.hidden_words`)."""

    __slots__ = ("_numbers", "hidden", "language")

    def __init__(self, language: str, hidden: frozenset[str] = frozenset()) -> None:
        self.language, self.hidden = language, hidden
        self._numbers: dict[str, int] = {}  # of words met so far

    def __repr__(self) -> str:
        return f"Standing({self.language!r}, {len(self.hidden)} words hidden)"

    def marks(self, docs: Sequence[Document]) -> list[NDArray[np.int64]]:
        """(T,) of every document: a number for each way a word can stand and be written; 0 where it has no letter."""
        if len(self._numbers) > _REMEMBERED:
            self._numbers = {}
        pack, known = languages.pack(self.language, self.hidden), self._numbers
        out = []
        for doc in docs:
            words = doc.words()
            for word in {word for word in words if word not in known}:
                known[word] = crc32(standing(word, pack).encode()) & 0x7FFFFFFF if any(map(str.isalpha, word)) else 0
            out.append(np.array([known[word] for word in words], np.int64))
        return out


def standing(word: str, pack: Pack) -> str:
    """How a word is written, and the lists where its rate is high; else "listed", or "new" if none has it.

    Of a compound that is in none, what its parts are.

    >>> standing("Smith", languages.pack("en")), standing("walk", languages.pack("en"))
    ('Title last-hi city-hi', 'small common')
    """
    how = "small" if word.islower() else "CAPITALS" if word.isupper() else "Title" if word[:1].isupper() else "mixed"
    lists = _lists(fold(word), pack)
    if lists == ["new"] and len(parts := [part for part in _PARTS.split(word) if part]) > 1:
        lists = ["parts", *sorted({name for part in parts for name in _lists(fold(part), pack)})]
    if how == "small" and "common" in lists:
        lists = [name for name in lists if name in ("common", "job-hi")]
    return f"{how} {' '.join(lists)}"


def _lists(word: str, pack: Pack) -> list[str]:
    rates = {name: pack.lexica[name].get(word, "") for name in LEXICA}
    high = [f"{name}-hi" for name, rate in rates.items() if rate == "hi"]
    common = ["common"] if word in pack.common else []
    return [*common, *(high or (["listed"] if any(rates.values()) else []))] or ["new"]
