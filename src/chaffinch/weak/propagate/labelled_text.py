"""A document as own sources see it: words, their plain spelling, and the runs of tokens that are labelled so far.

T tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

from chaffinch.text import Document, Span
from chaffinch.weak.propagate.abbreviations import singular

Key: TypeAlias = tuple[str, ...]  # the plain spelling of one token or of several
Run: TypeAlias = tuple[int, int, str]  # first token, one past the last, label

POSSESSIVE = {"'s", "’s", "'", "’"}
DASHES = set("-‐‑–—/")
_DASHES = re.compile(r"[-‐‑–—/]")
_PLURALS = (("sses", "ss"), ("ies", "y"), ("yses", "ysis"), ("oses", "osis"), ("omata", "oma"), ("omas", "oma"))
_NO_PLURALS = ("ss", "us", "is", "as", "os")
_SPELLINGS = (
    ("tumour", "tumor"), ("colour", "color"), ("sulph", "sulf"), ("isation", "ization"), ("ae", "e"), ("oe", "e")
)  # fmt: skip
_INFLECTED = 5  # letters; shorter words stay as they are


@dataclass(slots=True)
class LabelledText:
    """A document with its labelled runs, to which own sources add where no token is taken."""

    doc: Document
    words: list[str]
    keys: list[Key]  # (T,) plain spelling of every token; empty for possessives and dashes
    owner: list[int]  # (T,) number of the run over a token, -1 where it is free
    runs: list[Run] = field(default_factory=list)
    added: list[Span] = field(default_factory=list)

    @classmethod
    def of(cls, doc: Document, spans: Iterable[Span]) -> LabelledText:
        """The page of a document with those labels; a span that cuts a token takes all of it."""
        words, spans = doc.words(), list(spans)
        page = cls(doc, words, [plain(word) for word in words], [-1] * len(words))
        for span, (first, end) in zip(spans, doc.token_ranges(spans).tolist(), strict=True):
            if first < end:
                page._take(first, end, span.label)
        return page

    def add(self, first: int, end: int, label: str, source: str) -> bool:
        """Labels a run of tokens if all of them are free; says whether it did."""
        if any(own >= 0 for own in self.owner[first:end]):
            return False
        start, stop = int(self.doc.tokens[first, 0]), int(self.doc.tokens[end - 1, 1])
        self.added.append(Span(start, stop, label, source=source))
        self._take(first, end, label)
        return True

    def add_known(self, known: Mapping[Key, str], source: str) -> None:
        """Labels free runs whose plain spelling is known, from the left, the longest at each place."""
        if not known:
            return
        most, firsts = max(map(len, known)), {key[0] for key in known}
        t, T = 0, len(self.words)
        while t < T:
            end = 0
            if self.owner[t] < 0 and self.keys[t] and self.keys[t][0] in firsts:
                end, key = max(((end, key) for end, key in self.free_runs(t, most) if key in known), default=(0, ()))
            if end:
                self.add(t, end, known[key], source)
            t = max(t + 1, end)

    def free_runs(self, t: int, most: int) -> list[tuple[int, Key]]:
        """The ends and spellings, up to so many parts, of the free runs that begin at a token."""
        key: Key = ()
        out = []
        for end in range(t, len(self.words)):
            key += self.keys[end]
            if self.owner[end] >= 0 or len(key) > most:
                break
            if self.keys[end]:  # a run ends with no possessive and no dash
                out.append((end + 1, key))
        return out

    def run_at(self, t: int) -> Run | None:
        """The labelled run over a token."""
        return self.runs[self.owner[t]] if self.owner[t] >= 0 else None

    def key(self, first: int, end: int) -> Key:
        """The plain spelling of a run of tokens."""
        return tuple(part for own in self.keys[first:end] for part in own)

    def together(self, t: int) -> bool:
        """Whether no space parts a token from the one before it."""
        return t > 0 and bool(self.doc.tokens[t - 1, 1] == self.doc.tokens[t, 0])

    def _take(self, first: int, end: int, label: str) -> None:
        for t in range(first, end):
            if self.owner[t] < 0:
                self.owner[t] = len(self.runs)
        self.runs.append((first, end, label))


@lru_cache(maxsize=1 << 17)
def plain(word: str) -> Key:
    """A word's plain spelling, in parts where it has hyphens: lower case, singular, no possessive, American.

    Words in which case matters keep it, for "AS" is not "as".

    >>> plain("Non-Haemolytic"), plain("tumours"), plain("ALS"), plain("DMDs"), plain("'s")
    (('non', 'hemolytic'), ('tumor',), ('ALS',), ('DMD',), ())
    """
    if word in POSSESSIVE or word in DASHES:
        return ()
    for end in ("'s", "’s"):
        word = word.removesuffix(end)
    return tuple(_plain_part(part) for part in _DASHES.split(word) if part) or (word,)


def is_cased(part: str) -> bool:
    """Whether case matters in a word: it has a capital inside and is short or mixed; or it is one capital letter.

    >>> [is_cased(word) for word in ("AS", "mRNA", "T", "Fever", "CONCLUSIONS")]
    [True, True, True, False, False]
    """
    inner = any(sign.isupper() for sign in part[1:])
    return (inner and (len(part) <= _INFLECTED or not part.isupper())) or (len(part) == 1 and part.isupper())


def _plain_part(part: str) -> str:
    if is_cased(part):
        return singular(part)
    small = part.lower()
    if len(small) < _INFLECTED:
        return small
    ending = next((pair for pair in _PLURALS if small.endswith(pair[0])), None)
    if ending is not None:
        small = small.removesuffix(ending[0]) + ending[1]
    elif small.endswith("s") and not small.endswith(_NO_PLURALS):
        small = small[:-1]
    for british, american in _SPELLINGS:
        small = small.replace(british, american)
    return small
