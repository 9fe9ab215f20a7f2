"""Features in words, for explanations: what a key was made of, read back from the document it was seen in."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from chaffinch.features import observe as window
from chaffinch.features.observe import Column, Observed
from chaffinch.text.document import Document

PATTERN_NAMES = (
    "capital, then small", "two capitals", "small, then capital", "a digit", "one digit", "two digits", "all digits",
    "digits with comma or period", "letter, then digit", "digit, then letter", "a dash", "leading dash",
    "trailing dash", "punctuation", "all capitals", "all small", "one capital",
)  # fmt: skip
COLUMN_NAMES = {
    window.HEAD: "ends in",
    window.HEADER: "line begins with",
    window.OWN: "first reading",
    window.WORD_ELSEWHERE: "same word elsewhere",
    window.OWN_AND_ELSEWHERE: "first reading, and same word elsewhere",
    window.PAIR_ELSEWHERE: "same two words elsewhere",
    window.PAIR_BEFORE_ELSEWHERE: "same word and the one before elsewhere",
}
_MASK = (1 << 64) - 1


class Namer:
    """Names of the features of one document."""

    def __init__(self, doc: Document, seen: Observed, columns: Sequence[Column], tags: Sequence[str]) -> None:
        self._text, self._seen, self._tags = doc.text, seen, tags  # the tag of each state
        marks = [column.kind for column in columns if column.kind >= window.MARKS]
        self._marks = {kind: f"mark {number}" for number, kind in enumerate(marks, start=1)}

    def _word(self, n: int) -> str:
        first, end = self._seen.tokens[n].tolist()
        return self._text[first:end] or "(edge)"

    def word(self, n: int, number: int, offset: int) -> str:
        """The name of a token's own feature by its number in the list of its type."""
        from chaffinch.features._compiled import _words

        seen, text = self._seen, self._word(n)
        q = int(seen.lists[seen.types[n]]) + number
        kind, place = int(seen.kinds[q]), f" at {offset:+d}" if offset else ""
        kinds = seen.kinds[seen.lists[seen.types[n]] : q + 1]
        rank = int(np.count_nonzero(kinds == kind))
        if kind == window.WORD:
            return f"word{place} {text}"
        if kind == window.FOLDED:
            return f"word in lower case{place} {text.lower()}"
        if kind in (window.CLASS, window.BRIEF):
            return f"{'shape' if kind == window.CLASS else 'brief shape'}{place} of {text}"
        if kind == window.LENGTH:
            return f"length{place} {len(text)}"
        if kind == window.PREFIX:
            return f"begins with {text[:rank]}"
        if kind == window.SUFFIX:
            return f"ends with {text[-rank:]}"
        if kind == window.GRAM:
            return f"contains {text[rank - 1 : rank - 1 + _words.GRAM_SIZE].lower()}"
        bit = next(b for b in range(_words.PATTERNS) if _mix(b, window.PATTERN << 56) == int(seen.keys[q]))
        return f"pattern{place}: {PATTERN_NAMES[bit]}"

    def column(self, n: int, column: Column, offset: int) -> str:
        """The name of a token's feature in a column."""
        place = f" at {offset:+d}" if offset else ""
        if column.kind in (window.BIGRAM, window.TRIGRAM):
            size = 2 if column.kind == window.BIGRAM else 3
            return f"words{place} " + " ".join(self._word(k) for k in range(n, n + size))
        if column.kind == window.HEAD:
            later = self._seen.types[n:]
            heads = np.flatnonzero(self._seen.folded[later] == column.keys[n])
            return f"run of words ends in {self._word(n + int(heads[0])).lower()}"
        name = COLUMN_NAMES.get(column.kind) or self._marks.get(column.kind, "mark")
        value = int(column.keys[n])
        if column.kind == window.OWN:
            return f"{name}{place}: {self._tags[value - 1]}"
        if column.kind == window.OWN_AND_ELSEWHERE:
            return f"{name}{place}: {self._tags[value % (1 << 20) - 1]}, {self._elsewhere(value >> 20)}"
        if column.kind in (window.WORD_ELSEWHERE, window.PAIR_ELSEWHERE, window.PAIR_BEFORE_ELSEWHERE):
            return f"{name}{place}: {self._elsewhere(value)}"
        return f"{name}{place}" if column.kind == window.HEADER else f"{name}{place}: {value}"

    def _elsewhere(self, code: int) -> str:
        """What a code of `window.elsewhere` says."""
        found, agree = divmod(code, 3)
        return "outside" if found < 2 else f"{self._tags[found - 2]}, {('few', 'most', 'all')[agree]}"


def _mix(key: int, value: int) -> int:
    """`_keys.mix` on plain numbers."""
    x = ((key ^ value) * 0xBF58476D1CE4E5B9) & _MASK
    x ^= x >> 29
    x = ((x + 0x9E3779B97F4A7C15) * 0x94D049BB133111EB) & _MASK
    return (x ^ (x >> 32)) or 1
