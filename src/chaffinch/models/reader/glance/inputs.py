"""What a glance sees of a token: its word, the word's shape and length, the gap before it, and the cues over it.

T tokens of a document, n of them looked at, C cues at one token at most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from chaffinch.models.reader.inputs import LENGTHS, gap_of, shape_of
from chaffinch.models.reader.wordpieces import Ints
from chaffinch.text import Document
from chaffinch.text.view import find_wide_gaps

NONE, BLANK, LINE = gap_of(""), gap_of(" "), gap_of("\n")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Seen:
    """Tokens as a glance sees them."""

    words: Sequence[str]  # n
    gaps: Ints  # (n,)
    cues: Ints  # (n, C) numbers of cues; 0 is none


def see(doc: Document, cued: Document, layers: Sequence[str], cues: Mapping[tuple[str, str], int], near: Ints) -> Seen:
    """Return the words, gap classes and cues of the tokens `near` (n,) of a document; `cued` is the same one with cues.

    `cued` is the same document with the layers of cues, perhaps in capitals; `cues` numbers layers' labels, from 1.
    """
    text, edges = doc.text, doc.tokens[near].tolist()
    return Seen([text[start:end] for start, end in edges], _gaps(doc, near), _cues(doc, cued, layers, cues)[near])


def word_columns(word: str) -> tuple[int, int]:
    """Return the classes of a word's shape and length."""
    return shape_of(word), min(len(word), LENGTHS - 1)


def _gaps(doc: Document, near: Ints) -> Ints:
    """Return (n,) the class of the gap before each of the tokens `near`; a document begins a line.

    A name typed with a tab or two blanks is the same name, so such a gap is one blank.
    """
    text, starts = doc.text, doc.tokens[near, 0]
    before = np.where(near > 0, doc.tokens[near - 1, 1], 0)
    codes = np.frombuffer(f"{text} ".encode("utf-32-le", "surrogatepass"), np.uint32)
    single = (starts - before == 1) & (codes[before] == ord(" "))
    gaps = np.where(single, BLANK, NONE)
    rest = np.flatnonzero((starts > before) & ~single)
    wide = set(find_wide_gaps(text)) if len(rest) else set()
    for place, edge in zip(rest.tolist(), np.stack([before, starts], axis=1)[rest].tolist(), strict=True):
        gaps[place] = BLANK if tuple(edge) in wide else gap_of(text[slice(*edge)])
    if len(near) and near[0] == 0:
        gaps[0] = max(int(gaps[0]), LINE)
    return gaps


def _cues(doc: Document, cued: Document, layers: Sequence[str], cues: Mapping[tuple[str, str], int]) -> Ints:
    """Return (T, C) the cue of each layer over each token, the last one where several are; 0 for none."""
    out = np.zeros((len(doc.tokens), max(len(layers), 1)), np.int64)
    for column, name in enumerate(layers):
        spans = list(cued.layers.get(name, ()))
        for span, (first, end) in zip(spans, doc.token_ranges(spans).tolist(), strict=True):
            out[first:end, column] = cues.get((name, span.label), 0)
    return out
