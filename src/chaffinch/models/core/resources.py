"""Clusters, lexicons and word lists that a tagger may use, and the feature columns made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chaffinch.bundle import State, check_forms
from chaffinch.errors import ModelError
from chaffinch.features import observe as window
from chaffinch.features.clusters import WordClusters
from chaffinch.features.lexicon import Lexicon
from chaffinch.features.observe import Column, Observed
from chaffinch.features.word_lists import WordListFeature
from chaffinch.text import Document

# Columns reserved for sizes of clusters and for layers. They fix the numbers of later columns: changing them breaks
# saved models.
MOST_SIZES, MOST_LAYERS = 8, 64
_LEXICON = window.MARKS + MOST_SIZES  # seen from one word before to one after
SEGMENTATION = _LEXICON + MOST_LAYERS + 2  # the kind of a column: tags of a first stage


@dataclass(frozen=True, slots=True, eq=False)
class Resources:
    """Word clusters from unlabelled text, lists of phrases, and the word lists of a language.

    `hidden` are words (`languages.hidden_words`) that an HMM-DP's signatures must not look up in lists of names.
    """

    clusters: WordClusters | None = None
    lexicon: Lexicon | None = None
    standing: WordListFeature | None = None
    hidden: frozenset[str] = frozenset()

    def hide_words(self, hidden: frozenset[str]) -> Resources:
        """Return a copy that hides the words `hidden` in place of those hidden before; its word lists lack them."""
        standing = self.standing and WordListFeature(self.standing.language, hidden)
        return replace(self, standing=standing, hidden=hidden)

    def columns(
        self, seen: Observed, docs: Sequence[Document], layers: Sequence[str], *, lexicon_kind: int = _LEXICON
    ) -> list[Column]:
        """Return columns of marks: per cluster size, lexicon, layer, word lists; DataError if a layer is missing."""
        columns = []
        if self.clusters is not None:
            marks = [self.clusters.marks(doc).astype(np.int64) for doc in docs]
            for size in range(self.clusters.codes.shape[1]):
                columns.append(window.marks(seen, window.MARKS + size, [rows[:, size] for rows in marks]))
        if self.lexicon is not None:
            marks = [self.lexicon.marks(doc).astype(np.int64) for doc in docs]
            columns.append(window.marks(seen, lexicon_kind, marks))
        for number, layer in enumerate(layers, start=window.MARKS + MOST_SIZES + 1):
            columns.append(window.marks(seen, number, window.layer_marks_of(docs, layer)))
        if self.standing is not None:
            columns.append(window.marks(seen, window.MARKS + MOST_SIZES + MOST_LAYERS + 1, self.standing.marks(docs)))
        return columns

    def name_mark(self, kind: int, value: int, word: str, doc: Document, layers: Sequence[str]) -> str:
        """Return in words what a column's mark `value` means; `word` is the token's, to be looked up in word lists."""
        number = (_LEXICON if kind == window.LEXICON_HERE else kind) - window.MARKS
        if number < MOST_SIZES:
            return f"cluster {value - 1} of size {number + 1}"
        if number == MOST_SIZES and self.lexicon is not None:
            return f"lexicon {self.lexicon.labels[(value - 1) // 4]}"
        if number <= MOST_SIZES + MOST_LAYERS:
            layer = layers[number - MOST_SIZES - 1]
            low = 0xFFFFFFFF  # columns keep 32 bits of a mark
            labels = {window.layer_mark(span.label) & low: span.label for span in doc.layers[layer]}
            return f"layer {layer}: {labels[value & low & ~1]}{', first token' if value & 1 else ''}"
        return f"word lists: {self.standing.profile(word)}" if self.standing is not None else "word lists"

    def state(self) -> State:
        """Return clusters, lexicon and word-list language as arrays and strings, for a model file."""
        arrays: dict[str, NDArray[Any]] = {}
        strings: dict[str, tuple[str, ...]] = {}
        if self.clusters is not None:
            arrays["clusters"], strings["clusters.words"] = self.clusters.codes, self.clusters.words
        if self.lexicon is not None:
            arrays["lexicon"] = np.array([self.lexicon.fold_case, *map(len, self.lexicon.phrases)], np.int64)
            strings["lexicon.labels"] = self.lexicon.labels
            strings["lexicon.phrases"] = tuple(phrase for phrases in self.lexicon.phrases for phrase in phrases)
        if self.standing is not None:
            strings["standing"] = (self.standing.language,)
        return State(arrays, strings)

    @classmethod
    def of(cls, state: State) -> Resources:
        """Return the clusters, lexicon and word lists of a model file's state, None if absent; ModelError if unfit."""
        arrays, strings = state.arrays, state.strings
        clusters = lexicon = None
        check_forms(arrays, lexicon="i8")
        if "clusters" in arrays:
            codes = arrays["clusters"]
            if codes.dtype != np.int16 or codes.ndim != 2 or len(codes) != len(strings["clusters.words"]):
                raise ModelError("its clusters do not fit its words; take the file of its maker, or retrain")
            clusters = WordClusters(strings["clusters.words"], arrays["clusters"])
        if "lexicon" in arrays:
            fold_case, *sizes = arrays["lexicon"].tolist()
            phrases = iter(strings["lexicon.phrases"])
            by_label = tuple(tuple(islice(phrases, size)) for size in sizes)
            lexicon = Lexicon(strings["lexicon.labels"], by_label, bool(fold_case))
        return cls(clusters, lexicon, WordListFeature(strings["standing"][0]) if "standing" in strings else None)


def no_stops() -> NDArray[np.uint64]:
    """Return an empty array: the stops (words that end a run) of a model that reads no context."""
    return np.zeros(0, np.uint64)


def columns_of(
    seen: Observed, docs: Sequence[Document], stops: NDArray[np.uint64], layers: Sequence[str], resources: Resources
) -> list[Column]:
    """Return columns of n-grams, heads and headers; of clusters, lexicon, layers, word lists, if any; or DataError."""
    return window.contexts(seen, stops) + resources.columns(seen, docs, layers)


def published_columns(
    seen: Observed, docs: Sequence[Document], layers: Sequence[str], resources: Resources
) -> list[Column]:
    """Return columns of the published cascade: n-grams, tags alone, layers, lexicon at the word; or DataError."""
    return [
        *window.ngrams(seen),
        window.always(seen),
        *resources.columns(seen, docs, layers, lexicon_kind=window.LEXICON_HERE),
    ]
