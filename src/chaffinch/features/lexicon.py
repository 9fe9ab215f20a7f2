"""Phrase lists as features: which tokens are in a phrase of which list, and at which position in it.

T tokens, M matches, N characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from chaffinch.errors import ConfigError, DataError
from chaffinch.text.document import MAX_CHARS, Document, check_text

if TYPE_CHECKING:
    from ahocorasick_rs import AhoCorasick

Matches: TypeAlias = NDArray[np.int64]  # (M, 3) start, end and label of each match, in code points

SINGLE, FIRST, INNER, LAST = range(4)  # a token's position in a match; a mark is 1 + 4 * label + position
SHORTEST = 2  # characters; a list with one-letter phrases would mark half of all initials
MOST_LABELS = np.iinfo(np.int16).max // 4  # marks are int16, four per label

_OTHER_SPACE = re.compile(r"[^\S ]")
_LONG_WHEN_LOWER = "İ"  # the one character whose lower case is two


@dataclass(frozen=True, slots=True, eq=False)
class Lexicon:
    """Lists of phrases, one per label. Build it with `make`; the three public fields are enough to rebuild it.

    >>> lexicon = Lexicon.make({"disease": ["breast cancer", "cancer"], "drug": ["tamoxifen"]})
    >>> lexicon.find("Tamoxifen in Breast\\nCancer")
    [(0, 9, 1), (13, 26, 0)]
    >>> lexicon.marks(Document.make("Tamoxifen in Breast Cancer")).tolist()
    [5, 0, 2, 4]
    """

    labels: tuple[str, ...]
    phrases: tuple[tuple[str, ...], ...] = field(repr=False)  # sorted, each once, folded; one tuple per label
    fold_case: bool = True
    _built: list[_Automaton] = field(default_factory=list, init=False, repr=False)

    @classmethod
    def make(cls, phrases: Mapping[str, Iterable[str]], *, fold_case: bool = True) -> Lexicon:
        """Return a lexicon; a phrase of two labels is the first's; ConfigError for short phrases or too many labels.

        White space inside a phrase becomes one space. Phrases of fewer than two characters raise ConfigError.
        """
        if len(phrases) > MOST_LABELS:
            raise ConfigError(f"{len(phrases):,} labels; a lexicon has at most {MOST_LABELS:,}; merge some lists")
        lists = [_phrases(label, texts, fold_case) for label, texts in phrases.items()]
        return cls(tuple(phrases), tuple(lists), fold_case)

    def find(self, text: str) -> list[tuple[int, int, int]]:
        """Return (start, end, label index) of matches at word boundaries: leftmost, longest, without overlaps."""
        return [(start, end, label) for start, end, label in self._matches(text).tolist()]

    def marks(self, doc: Document) -> NDArray[np.int16]:
        """Return marks (T,): 0 for no match, else 1 + 4 * label + position (0 single, 1 first, 2 inner, 3 last).

        A match that cuts a token counts for the tokens wholly inside it.
        """
        marks = np.zeros(len(doc.tokens), np.int16)
        matches = self._matches(doc.text)
        begin, stop = doc.token_ranges(matches[:, :2], "inside").T
        covers, labels = stop > begin, matches[:, 2]
        begin, stop, base = begin[covers], stop[covers], 1 + 4 * labels[covers]
        length = stop - begin
        shift = begin - (np.cumsum(length) - length)
        marks[np.arange(length.sum()) + np.repeat(shift, length)] = np.repeat(base + INNER, length)
        marks[begin] = base + FIRST
        marks[stop - 1] = base + np.where(length == 1, SINGLE, LAST)
        return marks

    def find_phrases(self, text: str) -> set[int]:
        """Return the numbers of all phrases that occur at word edges in a text, those inside longer ones included."""
        return set(self._hits(text)[:, 0].tolist())

    def _matches(self, text: str) -> Matches:
        """Return (n, 3) start, end and label index of the matches that `find` returns."""
        flat = self._hits(text)
        return _leftmost_longest(np.column_stack([flat[:, 1:], self._built[0].labels[flat[:, 0]]]))

    def _hits(self, text: str) -> NDArray[np.int64]:
        """Return (n, 3) phrase number, start, end of all phrases at word edges, overlapping ones too."""
        if not self._built:
            self._built.append(_automaton(self.phrases))
        automaton = self._built[0]
        hits = automaton.search.find_matches_as_indexes(_fold(text, self.fold_case), overlapping=True)
        flat = np.fromiter(chain.from_iterable(hits), np.int64, 3 * len(hits)).reshape(-1, 3)
        # Boundaries first: the longest match may end inside a word where a shorter one does not.
        inside = _inside_words(text)
        return flat[~(inside[flat[:, 1]] | inside[flat[:, 2]])]

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle as labels and phrases; the automaton is built again where it is unpickled."""
        return Lexicon, (self.labels, self.phrases, self.fold_case)  # the automaton is built again where it is used


@dataclass(frozen=True, slots=True, eq=False)
class _Automaton:
    """An Aho-Corasick automaton and the labels of its patterns."""

    search: AhoCorasick
    labels: NDArray[np.int64]  # of each pattern


def read_phrases(path: str | Path) -> list[str]:
    """Return the phrases of a UTF-8 file, one per line, without blank and # lines; DataError if unreadable."""
    try:
        lines = Path(path).read_bytes().splitlines()
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror}); check the path and its permissions", path=path) from None
    phrases = []
    for number, line in enumerate(lines, start=1):
        try:
            phrase = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
        except UnicodeDecodeError as error:
            message = f"byte {error.start + 1} of the line is not UTF-8; save the file as UTF-8"
            raise DataError(message, path=path, line=number) from None
        if phrase and not phrase.startswith("#"):
            phrases.append(phrase)
    return phrases


def _phrases(label: str, texts: Iterable[str], fold_case: bool) -> tuple[str, ...]:
    """Return a label's phrases, folded, sorted, each once; ConfigError for a single string or too short phrases."""
    if isinstance(texts, str):
        raise ConfigError(f"the phrases of {label!r} are one string; give a list of strings")
    phrases = [" ".join(phrase.split()) for phrase in texts]
    short = sum(len(phrase) < SHORTEST for phrase in phrases)
    if short:
        raise ConfigError(f"{short} of the {len(phrases)} phrases of {label!r} have under 2 characters; leave them out")
    for phrase in phrases:
        check_text(phrase, max_chars=MAX_CHARS)
    return tuple(sorted({_fold(phrase, fold_case) for phrase in phrases}))


def _automaton(phrases: tuple[tuple[str, ...], ...]) -> _Automaton:
    """Return an automaton of all phrases and the label number of each; a phrase of two labels counts for the first."""
    from ahocorasick_rs import AhoCorasick

    label_of: dict[str, int] = {}
    for label, texts in enumerate(phrases):
        for phrase in texts:
            label_of.setdefault(phrase, label)
    return _Automaton(AhoCorasick(label_of), np.fromiter(label_of.values(), np.int64, len(label_of)))


def _fold(text: str, fold_case: bool) -> str:
    """Return the text with plain spaces and, if asked, in lower case; all offsets stay the same."""
    if fold_case:
        lower = _LONG_WHEN_LOWER.join(part.lower() for part in text.split(_LONG_WHEN_LOWER))
        text = lower.replace("ς", "σ")  # which of the two a capital becomes depends on what follows
    return _OTHER_SPACE.sub(" ", text)


def _inside_words(text: str) -> NDArray[np.bool_]:
    """Return a mask (N + 1,) of the offsets at which a cut would separate two letters or digits."""
    alphanumeric = _alphanumeric()[np.frombuffer(text.encode("utf-32-le"), np.uint32)]
    inside = np.zeros(len(text) + 1, np.bool_)
    np.logical_and(alphanumeric[:-1], alphanumeric[1:], out=inside[1:-1])
    return inside


@cache
def _alphanumeric() -> NDArray[np.bool_]:
    """Return a table of whether each code point is a letter or digit, cached."""
    return np.asarray(np.strings.isalnum(np.arange(0x110000, dtype="<u4").view("<U1")), np.bool_)


def _leftmost_longest(matches: Matches) -> Matches:
    """Return the matches taken from left to right, the longest at each offset, without overlaps."""
    start, end, _ = matches.T
    ordered = matches[np.lexsort((-end, start))]
    taken, free = [], 0
    for row, (begin, stop) in enumerate(ordered[:, :2].tolist()):
        if begin >= free:
            taken.append(row)
            free = stop
    return ordered[taken]
