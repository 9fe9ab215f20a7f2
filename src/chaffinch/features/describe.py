"""Descriptions of features, for explanations: what a key was made of, read back from its document."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from chaffinch.features import bio_patterns, observe
from chaffinch.features.observe import Column, Observed
from chaffinch.text.document import Document

PATTERN_NAMES = (
    "capital, then small", "two capitals", "small, then capital", "a digit", "one digit", "two digits", "all digits",
    "digits with comma or period", "letter, then digit", "digit, then letter", "a dash", "leading dash",
    "trailing dash", "punctuation", "all capitals", "all small", "one capital",
)  # fmt: skip
COLUMN_NAMES = {
    observe.HEAD: "ends in",
    observe.HEADER: "line begins with",
    observe.FIRST_READING: "first reading",
    observe.WORD_ELSEWHERE: "same word elsewhere",
    observe.FIRST_READING_AND_ELSEWHERE: "first reading, and same word elsewhere",
    observe.PAIR_ELSEWHERE: "same two words elsewhere",
    observe.PAIR_BEFORE_ELSEWHERE: "same word and the one before elsewhere",
}
_MASK = (1 << 64) - 1
NameMark: TypeAlias = Callable[[int, int, str], str]  # the kind of a column, a mark in it and its word, to a name


class Namer:
    """A source of readable names for the features of one document."""

    def __init__(self, doc: Document, seen: Observed, tags: Sequence[str], name_mark: NameMark) -> None:
        """Keep the document, its observations, the tag of each state, and what names marks of clusters and layers."""
        self._text, self._seen, self._tags, self._name_mark = doc.text, seen, tags, name_mark

    def _word(self, n: int) -> str:
        """Return the text of observed token `n`; "(edge)" for a pad."""
        first, end = self._seen.tokens[n].tolist()
        return self._text[first:end] or "(edge)"

    def word(self, n: int, number: int, offset: int) -> tuple[str, str]:
        """Return (name of feature `number` of token n's word, the text it shows); `offset` is in the name: "at +1"."""
        from chaffinch.features._compiled import _words

        seen, text = self._seen, self._word(n)
        q = int(seen.lists[seen.types[n]]) + number
        kind, where = int(seen.kinds[q]), f" at {offset:+d}" if offset else ""
        kinds = seen.kinds[seen.lists[seen.types[n]] : q + 1]
        rank = int(np.count_nonzero(kinds == kind))
        if kind == observe.WORD:
            return f"word{where}", text
        if kind == observe.FOLDED:
            return f"word in lower case{where}", text.lower()
        if kind in (observe.CLASS, observe.BRIEF):
            return f"{'shape' if kind == observe.CLASS else 'brief shape'}{where}", text
        if kind == observe.LENGTH:
            return f"length{where}", str(len(text))
        if kind == observe.PREFIX:
            return f"begins with{where}", text[:rank]
        if kind == observe.SUFFIX:
            return f"ends with{where}", text[-rank:]
        if kind == observe.GRAM:
            return f"contains{where}", text[rank - 1 : rank - 1 + _words.GRAM_SIZE].lower()
        if kind == observe.NAMED:
            return f"pattern{where}: {bio_patterns.name_of(int(seen.keys[q]))}", ""
        bit = next(b for b in range(_words.PATTERNS) if _mix(b, observe.PATTERN << 56) == int(seen.keys[q]))
        return f"pattern{where}: {PATTERN_NAMES[bit]}", ""

    def column(self, n: int, column: Column, offset: int) -> tuple[str, str]:
        """Return (name of token n's feature in a column, the text it shows, perhaps ""); `offset` is in the name."""
        where = f" at {offset:+d}" if offset else ""
        if column.kind in (observe.BIGRAM, observe.TRIGRAM):
            size = 2 if column.kind == observe.BIGRAM else 3
            return f"words{where}", " ".join(self._word(k) for k in range(n, n + size))
        if column.kind == observe.HEAD:
            later = self._seen.types[n:]
            heads = np.flatnonzero(self._seen.folded[later] == column.keys[n])
            return f"run of words ends in{where}", self._word(n + int(heads[0])).lower()
        value = int(column.keys[n])
        if column.kind == observe.ALWAYS:
            return "tags alone", ""
        if column.kind >= observe.MARKS or column.kind == observe.LEXICON_HERE:
            mark = self._name_mark(column.kind, int(np.uint64(value).astype(np.int64)), self._word(n))
            return f"{mark}{where}", ""
        name = COLUMN_NAMES[column.kind]
        if column.kind == observe.FIRST_READING:
            return f"{name}{where}: {self._tags[value - 1]}", ""
        if column.kind == observe.FIRST_READING_AND_ELSEWHERE:
            return f"{name}{where}: {self._tags[value % (1 << 20) - 1]}, {self._elsewhere(value >> 20)}", ""
        if column.kind in (observe.WORD_ELSEWHERE, observe.PAIR_ELSEWHERE, observe.PAIR_BEFORE_ELSEWHERE):
            return f"{name}{where}: {self._elsewhere(value)}", ""
        return f"{name}{where}", ""

    def _elsewhere(self, code: int) -> str:
        """Return a code of `observe.elsewhere` in words: "outside", or a tag and few, most or all."""
        state, share = divmod(code, 3)
        return "outside" if state < 2 else f"{self._tags[state - 2]}, {('few', 'most', 'all')[share]}"


def _mix(key: int, value: int) -> int:
    """Return the 64-bit hash of a key and a value, as `_keys.mix` does, on Python integers."""
    x = ((key ^ value) * 0xBF58476D1CE4E5B9) & _MASK
    x ^= x >> 29
    x = ((x + 0x9E3779B97F4A7C15) * 0x94D049BB133111EB) & _MASK
    return (x ^ (x >> 32)) or 1
