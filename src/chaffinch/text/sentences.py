"""Sentences of clinical and biomedical text: never cut inside a name or after a title.

A sentence ends at a full stop that ends one, at a blank line, before a bullet or a header line ("Name: …"), and
after a header line. A line break alone ends nothing ("Dr.⏎Whittaker" is one sentence), because notes are often
wrapped; `line_offsets` is for notes that are not. S sentences, T tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from chaffinch.text.tokens import TITLES

# A single letter and a full stop end a sentence only after such a word ("hepatitis B."); else it is an initial.
_NUMBERED = frozenset(
    [
        "hepatitis",
        "vitamin",
        "type",
        "grade",
        "stage",
        "group",
        "factor",
        "protein",
        "class",
        "phase",
        "influenza",
        "strain",
        "subtype",
        "arm",
        "cohort",
        "panel",
        "figure",
        "table",
        "kappa",
        "level",
    ]
)
# Abbreviations that can be the last word of a sentence.
_MAY_END = frozenset(["etc", "al", "Inc", "Ltd", "Co", "Corp", "Dept", "Rd", "Jr", "usw", "a.m", "p.m"])
_STOPS = np.array([ord(c) for c in ".!?…。！？"], np.uint32)
_CLOSERS = "\"'”’»)]"

_LINE_END = re.compile(r"\r\n?|\n")
# What opens a line: a bullet, or a label and a colon ("Name: …", "HISTORY OF PRESENT ILLNESS:"), or capitals only.
_OPENING = re.compile(
    r"[^\S\r\n]*+(?:(?P<bullet>(?:[-*•‣◦·–—]|\(?\d{1,2}[.)]|[a-z][.)])\s)"
    r"|(?P<label>[^\W\d_][^\r\n:.,;]{0,48}+:(?=\s|\Z))"
    r"|(?P<capitals>[^\Wa-z\d_](?:[^\Wa-z]|[ /&()-])++(?=[\r\n]|\Z)))"
)
_NEXT = re.compile(r"\s*(\S)")


def sentence_offsets(text: str, tokens: NDArray[np.int32]) -> NDArray[np.int32]:
    """(S, 2) start and end of every sentence, from its first token to its last.

    >>> from chaffinch.text.tokens import token_offsets
    >>> text = "Seen by Dr.\\nWhittaker. Will return."
    >>> [text[a:b] for a, b in sentence_offsets(text, token_offsets(text))]
    ['Seen by Dr.\\nWhittaker.', 'Will return.']
    """
    cuts = sorted([*_stop_cuts(text, tokens), *_line_cuts(text)])
    return _between(np.array(cuts, np.int64), tokens)


def line_offsets(text: str, tokens: NDArray[np.int32]) -> NDArray[np.int32]:
    """(S, 2) one sentence per line that has a token."""
    breaks = [match.end() for match in _LINE_END.finditer(text)]
    return _between(np.array(breaks, np.int64), tokens)


def _between(cuts: NDArray[np.int64], tokens: NDArray[np.int32]) -> NDArray[np.int32]:
    if not len(tokens):
        return np.zeros((0, 2), np.int32)
    part = np.searchsorted(cuts, tokens[:, 0], side="right")
    first = np.flatnonzero(np.diff(part, prepend=-1))
    last = np.append(first[1:], len(tokens)) - 1
    return np.stack([tokens[first, 0], tokens[last, 1]], axis=1)


def _stop_cuts(text: str, tokens: NDArray[np.int32]) -> Iterator[int]:
    """Where the next sentence starts behind each token that ends one."""
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    last = codes[tokens[:, 1] - 1]
    stops = np.flatnonzero(np.isin(last, _STOPS)).tolist()
    starts, ends = tokens[:, 0].tolist(), tokens[:, 1].tolist()
    for stop in stops:
        i = stop + 1
        while i < len(starts) and starts[i] == ends[i - 1] and text[starts[i]] in _CLOSERS:
            i += 1
        if i == len(starts) or text[starts[i]].islower():
            continue
        apart = starts[i] > ends[i - 1] or text[ends[stop] - 1] in "。！？"
        if apart and _ends_sentence(text, starts[stop], ends[stop]):
            yield starts[i]


def _ends_sentence(text: str, start: int, end: int) -> bool:
    """Whether the token with the full stop can end a sentence; after a title, an initial or "e.g." it cannot."""
    if end - start > 1:  # an abbreviation that keeps its stop: "Dr.", "etc.", "U.S."
        word = text[start : end - 1]
        return (not word.isalpha() and "." not in word) or word in _MAY_END
    before = text[max(0, start - 40) : start]
    if text[start] != "." or not before[-1:].isalpha() or (before[-2:].isalpha() and len(before) > 1):
        return True
    words = before.split()  # a single letter stands before the stop
    return len(words) > 1 and words[-1] == before[-1] and words[-2].lower() in _NUMBERED


def _line_cuts(text: str) -> Iterator[int]:
    """Positions of the line breaks that end a sentence: around headers, before bullets, at blank lines."""
    start, header = 0, False
    while start <= len(text):
        match = _LINE_END.search(text, start)
        end, following = (match.start(), match.end()) if match else (len(text), len(text) + 1)
        opening = _OPENING.match(text, start, end + 1)
        blank = end == start or text[start:end].isspace()
        if blank or ((header or opening) and not _continues(text, start, opened=opening is not None)):
            yield start
        header = opening is not None and opening.lastgroup != "bullet"
        start = following


def _continues(text: str, start: int, *, opened: bool) -> bool:
    """Whether the line at `start` goes on with the sentence before it: after a title, or in lower case."""
    before = text[max(0, start - 12) : start].rstrip()
    if before.endswith(".") and re.split(r"\W", before[:-1])[-1] in TITLES:
        return True
    following = _NEXT.match(text, start)
    return not opened and following is not None and following[1].islower()
