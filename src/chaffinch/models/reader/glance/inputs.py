"""What a glance sees of a token: its word, the word's shape and length, the gap before it, and the cues over it.

N tokens of some documents, n of them looked at, C cues at one token at most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from chaffinch.models.reader.inputs import LENGTHS, gap_of, shape_of
from chaffinch.models.reader.wordpieces import Ints
from chaffinch.text import Document
from chaffinch.text.view import find_wide_gaps

NONE, BLANK, LINE = gap_of(""), gap_of(" "), gap_of("\n")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Pages:
    """The tokens of several documents (N,), one document after another, and the layers of cues over them.

    `cued` are the same documents with the layers, perhaps in capitals.
    """

    cued: Sequence[Document]
    text: str  # all texts, each with a blank after it
    shifts: Sequence[int]  # where each text begins
    bounds: Ints  # the first token of each document, and the end of the last
    starts: Ints  # (N,) among the characters of all texts
    ends: Ints  # (N,)

    @classmethod
    def of(cls, docs: Sequence[Document], cued: Sequence[Document]) -> Pages:
        """Return the documents end to end."""
        shifts = list(accumulate((len(doc.text) + 1 for doc in docs), initial=0))[:-1]
        sizes = [len(doc.tokens) for doc in docs]
        edges = np.concatenate([np.zeros((0, 2), np.int64), *(doc.tokens for doc in docs)])
        edges += np.repeat(np.array(shifts, np.int64), sizes)[:, None]
        starts, ends = (np.ascontiguousarray(column) for column in edges.T)
        return cls(cued, "".join(f"{doc.text} " for doc in docs), shifts, np.cumsum([0, *sizes]), starts, ends)

    def owners(self, tokens: Ints) -> Ints:
        """Return (n,) the number of the document of each token (n,)."""
        return np.asarray(np.searchsorted(self.bounds, tokens, side="right") - 1)

    def text_of(self, owner: int) -> str:
        """Return the text of a document, by its number."""
        end = self.shifts[owner + 1] if owner + 1 < len(self.shifts) else len(self.text)
        return self.text[self.shifts[owner] : end - 1]

    def runs(self, layer: str) -> tuple[Ints, Ints, list[str]]:
        """Return the first tokens, ends and labels of the spans that each document has in a layer of cues."""
        shifted = [
            (span.start + shift, span.end + shift, span.label)
            for doc, shift in zip(self.cued, self.shifts, strict=True)
            for span in doc.layers.get(layer, ())
        ]
        firsts = np.searchsorted(self.ends, [start for start, _, _ in shifted], side="right")
        ends = np.searchsorted(self.starts, [end for _, end, _ in shifted], side="left")
        return firsts, np.maximum(firsts, ends), [label for _, _, label in shifted]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Seen:
    """Tokens as a glance sees them."""

    words: Sequence[str]  # n
    gaps: Ints  # (n,)
    cues: Ints  # (n, C) numbers of cues; 0 is none


def see(pages: Pages, layers: Sequence[str], cues: Mapping[tuple[str, str], int], near: Ints) -> Seen:
    """Return the words, gap classes and cues of the tokens `near` (n,); `cues` numbers layers' labels, from 1."""
    edges = zip(pages.starts[near].tolist(), pages.ends[near].tolist(), strict=True)
    words = [pages.text[start:end] for start, end in edges]
    return Seen(words, _gaps(pages, near), _cues(pages, layers, cues)[near])


def word_columns(word: str) -> tuple[int, int]:
    """Return the classes of a word's shape and length."""
    return shape_of(word), min(len(word), LENGTHS - 1)


def _gaps(pages: Pages, near: Ints) -> Ints:
    """Return (n,) the class of the gap before each of the tokens `near`; a document begins a line.

    A name typed with a tab or two blanks is the same name, so such a gap is one blank.
    """
    owners, starts = pages.owners(near), pages.starts[near]
    first = near == pages.bounds[owners]
    before = np.where(first, np.array(pages.shifts, np.int64)[owners], pages.ends[near - 1])
    codes = np.frombuffer(pages.text.encode("utf-32-le", "surrogatepass"), np.uint32)
    alone, between = starts - before == 1, codes[before]
    gaps = np.where(alone & (between == ord(" ")), BLANK, NONE)
    gaps[alone & (between == ord("\n"))] = LINE
    rest = np.flatnonzero((starts > before) & (gaps == NONE))
    wide: dict[int, set[tuple[int, int]]] = {}
    edges = zip(owners[rest].tolist(), before[rest].tolist(), starts[rest].tolist(), strict=True)
    for place, (owner, start, end) in zip(rest.tolist(), edges, strict=True):
        if owner not in wide:
            wide[owner] = set(find_wide_gaps(pages.text_of(owner)))
        shift = pages.shifts[owner]
        within = (start - shift, end - shift) in wide[owner]
        gaps[place] = BLANK if within else gap_of(pages.text[start:end])
    gaps[first] = np.maximum(gaps[first], LINE)
    return gaps


def _cues(pages: Pages, layers: Sequence[str], cues: Mapping[tuple[str, str], int]) -> Ints:
    """Return (N, C) the cue of each layer over each token, the last one where several are; 0 for none."""
    out = np.zeros((len(pages.starts), max(len(layers), 1)), np.int64)
    for column, name in enumerate(layers):
        firsts, ends, labels = pages.runs(name)
        sizes = ends - firsts
        tokens = np.arange(sizes.sum()) + np.repeat(firsts - np.cumsum(sizes) + sizes, sizes)
        numbers = np.array([cues.get((name, label), 0) for label in labels], np.int64)
        out[tokens, column] = np.repeat(numbers, sizes)
    return out
