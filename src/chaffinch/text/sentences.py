"""Sentence splitting for clinical and biomedical text: never inside a name or after a title.

A sentence ends at a full stop that ends one, at a blank line, before a bullet or a header line ("Name: …"), and
after a header line. A line break alone ends nothing ("Dr.⏎Whittaker" is one sentence), because notes are often
wrapped; `line_offsets` is for notes that are not. S sentences, T tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from chaffinch.text.tokens import ABBREVIATIONS, MONTHS, TITLES

# A single letter and a full stop end a sentence only after such a word ("hepatitis B."); else it is an initial.
_NUMBERED = frozenset(
    "hepatitis vitamin type grade stage group factor protein class phase influenza strain subtype arm cohort panel "
    "figure table kappa level".split()
)
# Abbreviations that can be the last word of a sentence.
_MAY_END = frozenset("etc al Inc Ltd Co Corp Dept Ave Blvd Rd usw a.m p.m".split())
_OPENERS = "([\"'“«"
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")  # U.S, e.g
# Punctuation and the white space after it; the group matches when a long word before and a capital after decide it.
_STOP = re.compile(
    r"[.!?](?:(?<=[a-z]{4}\.)(?<!str\.|nkl\.|vtl\.)(?<!abil\.|mult\.|prox\.|dcha\.|izda\.)(\s++)(?=[A-Z])|[\"'”’»)\]]*\s+(?=\S))"
)
_WIDE_STOP = re.compile(r"[。！？][”’»）」』]*\s*(?=\S)")
_GOES_ON = re.compile(rf"\d|(?i:(?:{MONTHS})\b)")

# What opens a line: a bullet, or a label and a colon ("Name: …", "HISTORY OF PRESENT ILLNESS:"), or capitals only.
_OPENING = re.compile(
    r"[ \t\r\xa0]*+(?:(?P<bullet>(?:[-*•‣◦·–—]|\(?\d{1,2}[.)]|[a-z][.)])\s)"
    r"|(?P<label>[^\W\d_][^:.,;]{0,48}+:(?=\s|\Z))"
    r"|(?P<capitals>[^\Wa-z\d_](?:[^\Wa-z]|[ /&()-])++\s*\Z))"
)


def sentence_offsets(text: str, tokens: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return (S, 2) start and end of every sentence, from its first token to its last.

    >>> from chaffinch.text.tokens import token_offsets
    >>> text = "Seen by Dr.\\nWhittaker. Will return."
    >>> [text[a:b] for a, b in sentence_offsets(text, token_offsets(text))]
    ['Seen by Dr.\\nWhittaker.', 'Will return.']
    """
    return _sentences_from_starts([*_stop_cuts(text), *_line_cuts(text)], tokens)


def line_offsets(text: str, tokens: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return (S, 2) start and end of sentences, one per line that has a token, from its first token to its last."""
    return _sentences_from_starts(list(accumulate(len(line) + 1 for line in text.split(_line_break(text)))), tokens)


def stop_offsets(text: str, tokens: NDArray[np.int32], sentences: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return (S, 2) the given sentences, cut after every full stop that is a token and at every line break as well.

    No token moves into or out of a sentence.

    >>> from chaffinch.text.tokens import token_offsets
    >>> text = "Seen by Dr.\\nWhittaker. Will return."
    >>> tokens = token_offsets(text)
    >>> [text[a:b] for a, b in stop_offsets(text, tokens, sentence_offsets(text, tokens))]
    ['Seen by Dr.', 'Whittaker.', 'Will return.']
    """
    lines = accumulate(len(line) + 1 for line in text.split(_line_break(text)))
    stops = [end for start, end in tokens.tolist() if end - start == 1 and text[start] == "."]
    edges = np.searchsorted(tokens[:, 0], [*lines, *stops])
    begins = np.searchsorted(tokens[:, 0], sentences[:, 0])
    ends = np.searchsorted(tokens[:, 0], sentences[:, 1])
    whole = ends > begins
    begins, ends = begins[whole], ends[whole]
    sentence = np.searchsorted(begins, edges, side="right") - 1
    inner = edges[(sentence >= 0) & (edges < np.append(ends, 0)[sentence])]
    starts = np.unique(np.concatenate([begins, inner]))
    last = np.minimum(np.append(starts[1:], len(tokens)), ends[np.searchsorted(begins, starts, side="right") - 1])
    return np.stack([tokens[starts, 0], tokens[last - 1, 1]], axis=1)


def _line_break(text: str) -> str:
    """Return the character that ends lines: LF, or CR if the text has no LF."""
    return "\r" if "\n" not in text else "\n"  # CR LF ends in LF, and the CR is white space


def _sentences_from_starts(cuts: list[int], tokens: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return (S, 2) sentences that begin at the first token and at the first token from each cut on."""
    if not len(tokens):
        return np.zeros((0, 2), np.int32)
    begins = np.searchsorted(np.ascontiguousarray(tokens[:, 0]), cuts).tolist()
    edges = sorted({0, len(tokens), *begins})
    found = np.empty((len(edges) - 1, 2), np.int32)
    found[:, 0] = tokens[edges[:-1], 0]
    found[:, 1] = tokens[[edge - 1 for edge in edges[1:]], 1]
    return found


def _stop_cuts(text: str) -> list[int]:
    """Return the offsets where a sentence begins after punctuation, in no order."""
    cuts = [m.end() for m in _STOP.finditer(text) if m.lastindex or _ends_sentence(text, *m.span())]
    return cuts if text.isascii() else cuts + [m.end() for m in _WIDE_STOP.finditer(text)]


def _ends_sentence(text: str, stop: int, following: int) -> bool:
    """Tell whether the punctuation at `stop` ends a sentence: not after a title, initial, "e.g.", or in a date."""
    if text[following].islower():
        return False
    if text[stop] != ".":
        return True
    if text[stop - 1 : stop].isdecimal():  # "9. 12. 2033", "27. März", "EC 1. 1. 1. 49" go on
        return _GOES_ON.match(text, following) is None
    words = text[max(0, stop - 24) : stop].split()
    word = words[-1].rpartition("-")[2].lstrip(_OPENERS) if words else ""
    if len(word) == 1 and word.isalpha():  # an initial, or "hepatitis B."
        return len(words) > 1 and words[-2].lower() in _NUMBERED
    if word.endswith(("/", "str")) or (len(word) < 4 and word.isalpha() and text[following].isdecimal()):
        return False  # "C/. Mayor", "Dantestr. 17", "km. 9"
    return word in _MAY_END or (word not in ABBREVIATIONS and not _DOTTED.fullmatch(word))


def _line_cuts(text: str) -> Iterator[int]:
    """Yield the start offsets of lines that begin a sentence: headers, bullets, after a header, blank lines."""
    start, header, before = 0, False, ""
    for line in text.split(_line_break(text)):
        opening = _OPENING.match(line)
        kind = opening.lastgroup if opening else None
        if kind == "capitals" and before.rstrip()[-1:] not in ("", ".", ":"):
            kind = None  # a line of an address, say; before a header, the sentence has ended
        if ((header or kind) and not _continues(before, line, opened=kind is not None)) or not line or line.isspace():
            yield start
        header = kind in ("label", "capitals")
        start += len(line) + 1
        before = line


def _continues(before: str, line: str, *, opened: bool) -> bool:
    """Tell whether a line continues the one before: that ends in a title, or (not `opened`) this is lower case."""
    before = before[-16:].rstrip()
    if before.endswith(".") and re.split(r"\W", before[:-1])[-1] in TITLES:
        return True
    return not opened and line.lstrip()[:1].islower()
