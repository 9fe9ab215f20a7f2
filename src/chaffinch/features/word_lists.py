"""How words stand in the lists of a language: one number per token, a feature of taggers.

A "Grant" is told from a "grant", and a word with a capital that no list has from both.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from chaffinch import languages
from chaffinch.languages import LEXICA, Pack, fold
from chaffinch.text.document import Document

_PARTS = re.compile(r"[-'’.]+")
_REMEMBERED = 1 << 17  # words


@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """The lists of a language pack; names that are left out for now (`languages.without`) are in none of them."""

    language: str
    _memory: list[tuple[Pack, dict[str, int]]] = field(default_factory=list, init=False, repr=False)  # of one pack

    def marks(self, docs: Sequence[Document]) -> list[NDArray[np.int64]]:
        """(T,) of every document: a number for each way a word can stand and be written; 0 where it has no letter."""
        pack = languages.pack(self.language)
        if not self._memory or self._memory[0][0] is not pack or len(self._memory[0][1]) > _REMEMBERED:
            self._memory[:] = [(pack, {})]
        known = self._memory[0][1]
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
    told = _lists(fold(word), pack)
    if told == ["new"] and len(parts := [part for part in _PARTS.split(word) if part]) > 1:
        told = ["parts", *sorted({own for part in parts for own in _lists(fold(part), pack)})]
    if how == "small" and "common" in told:
        told = [own for own in told if own in ("common", "job-hi")]
    return f"{how} {' '.join(told)}"


def _lists(word: str, pack: Pack) -> list[str]:
    rates = {name: pack.lexica[name].get(word, "") for name in LEXICA}
    high = [f"{name}-hi" for name, rate in rates.items() if rate == "hi"]
    common = ["common"] if word in pack.common else []
    return [*common, *(high or (["listed"] if any(rates.values()) else []))] or ["new"]
