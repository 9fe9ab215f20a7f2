"""Membership of words in the lists of a language: one number per token, a feature of taggers.

It distinguishes "Grant" from "grant", and both from a capitalised word that is in no list.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from chaffinch import languages
from chaffinch.features.observe import share
from chaffinch.languages import LEXICA, Pack, fold
from chaffinch.text.document import Document

_PARTS = re.compile(r"[-'’.]+")
_REMEMBERED = 1 << 15  # words whose number is cached; the cache is emptied when there are more


class WordListFeature:
    """The lists of a language pack as a feature, its names without the `hidden` words (`languages.hidden_words`)."""

    __slots__ = ("_numbers", "hidden", "language")

    def __init__(self, language: str, hidden: frozenset[str] = frozenset()) -> None:
        """Begin with no word met; lists are loaded on first use."""
        self.language, self.hidden = language, hidden
        self._numbers: dict[str, int] = {}  # of words met so far

    def __repr__(self) -> str:
        """Return the language and the number of hidden words, never a word."""
        return f"WordListFeature({self.language!r}, {len(self.hidden)} words hidden)"

    def marks(self, docs: Sequence[Document]) -> list[NDArray[np.int64]]:
        """Return each token's profile as a number, an array (T,) per document; 0 without letters; or ConfigError."""
        return share(("marks", self.language, self.hidden, *map(id, docs)), list(docs), lambda: self._marks(docs))

    def _marks(self, docs: Sequence[Document]) -> list[NDArray[np.int64]]:
        """Return what `marks` does, computed."""
        if len(self._numbers) > _REMEMBERED:
            self._numbers = {}
        pack, numbers = languages.pack(self.language, self.hidden), self._numbers
        out = []
        for doc in docs:
            words = doc.words()
            for word in {word for word in words if word not in numbers}:
                numbers[word] = (
                    crc32(word_profile(word, pack).encode()) & 0x7FFFFFFF if any(map(str.isalpha, word)) else 0
                )
            out.append(np.array([numbers[word] for word in words], np.int64))
        return out

    def profile(self, word: str) -> str:
        """Return the profile of a word: letter case, lists that have it ("Title last-hi"); ConfigError for no pack."""
        return word_profile(word, languages.pack(self.language, self.hidden))


def word_profile(word: str, pack: Pack) -> str:
    """Return a word's letter case and the lists where its rate is high, else "listed", or "new" if in no list.

    A compound that is in no list gets the lists of its parts.

    >>> word_profile("Smith", languages.pack("en")), word_profile("walk", languages.pack("en"))
    ('Title last-hi city-hi', 'small common')
    """
    case = "small" if word.islower() else "CAPITALS" if word.isupper() else "Title" if word[:1].isupper() else "mixed"
    lists = _lists(fold(word), pack)
    if lists == ["new"] and len(parts := [part for part in _PARTS.split(word) if part]) > 1:
        lists = ["parts", *sorted({name for part in parts for name in _lists(fold(part), pack)})]
    if case == "small" and "common" in lists:
        lists = [name for name in lists if name in ("common", "job-hi")]
    return f"{case} {' '.join(lists)}"


def _lists(word: str, pack: Pack) -> list[str]:
    """Return a folded word's lists: "common", "NAME-hi" of each high rate, else "listed"; "new" if it is in none."""
    rates = {name: pack.lexica[name].get(word, "") for name in LEXICA}
    high = [f"{name}-hi" for name, rate in rates.items() if rate == "hi"]
    common = ["common"] if word in pack.common else []
    return [*common, *(high or (["listed"] if any(rates.values()) else []))] or ["new"]
