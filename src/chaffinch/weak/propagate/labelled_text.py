"""Documents for label propagation: words, their plain spelling, and the runs of tokens that are labelled so far.

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
_INFLECTED = 5  # letters; shorter words keep their ending, and their case if they have an inner capital


@dataclass(slots=True)
class LabelledText:
    """A document with its labelled runs; propagation adds runs where no token is taken."""

    doc: Document
    words: list[str]
    keys: list[Key]  # (T,) plain spelling of every token; empty for possessives and dashes
    owner: list[int]  # (T,) number of the run over a token, -1 where it is free
    runs: list[Run] = field(default_factory=list)
    added: list[Span] = field(default_factory=list)

    @classmethod
    def of(cls, doc: Document, spans: Iterable[Span]) -> LabelledText:
        """Build the text of a document with its labels; a span that cuts a token takes all of it."""
        words, spans = doc.words(), list(spans)
        page = cls(doc, words, [plain(word) for word in words], [-1] * len(words))
        for span, (first, end) in zip(spans, doc.token_ranges(spans).tolist(), strict=True):
            if first < end:
                page._take(first, end, span.label)
        return page

    def add(self, first: int, end: int, label: str, source: str) -> bool:
        """Label a run of tokens if all of them are free; return whether it did."""
        if any(number >= 0 for number in self.owner[first:end]):
            return False
        start, stop = int(self.doc.tokens[first, 0]), int(self.doc.tokens[end - 1, 1])
        self.added.append(Span(start, stop, label, source=source))
        self._take(first, end, label)
        return True

    def add_known(self, known: Mapping[Key, str], source: str) -> None:
        """Label, in place, free runs whose plain spelling is in `known`; leftmost first, longest at each token."""
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
        """Return (end, plain spelling) of the unlabelled runs from token `t` on, of up to `most` parts."""
        key: Key = ()
        out = []
        for end in range(t, len(self.words)):
            key += self.keys[end]
            if self.owner[end] >= 0 or len(key) > most:
                break
            if self.keys[end]:  # a run does not end with a possessive or a dash
                out.append((end + 1, key))
        return out

    def run_at(self, t: int) -> Run | None:
        """Return the labelled run over a token; None if it is free."""
        return self.runs[self.owner[t]] if self.owner[t] >= 0 else None

    def key(self, first: int, end: int) -> Key:
        """Return the plain spelling of a run of tokens."""
        return tuple(part for key in self.keys[first:end] for part in key)

    def together(self, t: int) -> bool:
        """Tell whether no white space is between a token and the one before it; False for the first."""
        return t > 0 and bool(self.doc.tokens[t - 1, 1] == self.doc.tokens[t, 0])

    def _take(self, first: int, end: int, label: str) -> None:
        """Append a labelled run and assign its free tokens to it; tokens of earlier runs stay with these."""
        for t in range(first, end):
            if self.owner[t] < 0:
                self.owner[t] = len(self.runs)
        self.runs.append((first, end, label))


@lru_cache(maxsize=1 << 17)
def plain(word: str) -> Key:
    """Return a word's plain spelling, in parts at hyphens: lower case, singular, American; () for a dash or possessive.

    Words in which case matters keep it: "AS" is not "as".

    >>> plain("Non-Haemolytic"), plain("tumours"), plain("ALS"), plain("DMDs"), plain("'s")
    (('non', 'hemolytic'), ('tumor',), ('ALS',), ('DMD',), ())
    """
    if word in POSSESSIVE or word in DASHES:
        return ()
    for end in ("'s", "’s"):
        word = word.removesuffix(end)
    return tuple(_plain_part(part) for part in _DASHES.split(word) if part) or (word,)


def is_cased(part: str) -> bool:
    """Tell whether case matters in a word: an inner capital in a short or mixed word, or a single capital letter.

    >>> [is_cased(word) for word in ("AS", "mRNA", "T", "Fever", "CONCLUSIONS")]
    [True, True, True, False, False]
    """
    inner = any(sign.isupper() for sign in part[1:])
    return (inner and (len(part) <= _INFLECTED or not part.isupper())) or (len(part) == 1 and part.isupper())


def _plain_part(part: str) -> str:
    """Return a part in lower case, singular and American spelling; a part whose case matters only in the singular."""
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
