"""Inputs of an encoder: windows of word pieces, the first piece of each token, shape bits, and targets.

N tokens of all documents, n tokens of one window, L tags.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from chaffinch.features.embed import SPECIALS, Pretrained
from chaffinch.features.embed.windows import Ints, sentence_windows
from chaffinch.models.core.labels import Labels
from chaffinch.models.core.tasks import Task
from chaffinch.text import Document

BITS = 8  # bits for case and shape of a word, see `_shape`


class Job(NamedTuple):
    """One window: its pieces, and for the tokens that are read here their numbers and first pieces."""

    pieces: list[int]
    tokens: Ints  # (n,) numbers among all documents' tokens
    firsts: Ints  # (n,) the position of each one's first piece; 0, the special first piece, if it has none


class Targets(NamedTuple):
    """The training target of each token."""

    rows: NDArray[np.float32]  # (N, L) a distribution, or which tags are possible
    free: NDArray[np.bool_]  # (N,) the row lists possible tags
    known: NDArray[np.bool_]  # (N,) the token is in a sentence, and its row excludes some tag

    @classmethod
    def of(cls, task: Task, labels: Labels) -> Targets:
        """Return each token's target over tags, whether it is a set of possible tags, and whether anything is known."""
        seen, target, L = task.seen, task.target(labels), len(labels.tags)
        N = int(seen.sizes.sum())
        rows, free, known = np.zeros((N, L), np.float32), np.zeros(N, np.bool_), np.zeros(N, np.bool_)
        if task.soft is None:
            rows[seen.sources] = np.eye(L, dtype=np.float32)[target.gold[seen.places]]
        else:
            which = target.which[seen.places]
            rows[seen.sources], free[seen.sources] = target.weights[which, :L], target.free[which]
            rows[~free] /= np.maximum(rows[~free].sum(axis=1, keepdims=True), 1e-30)
        known[seen.sources] = True
        known &= ~(free & (rows > 0).all(axis=1)) & rows.any(axis=1)
        return cls(rows, free, known)


def jobs_of(docs: Sequence[Document], encoder: Pretrained, length: int, overlap: int) -> list[Job]:
    """Return windows of word pieces over the documents, each with the tokens it decides; in order."""
    room, out, shift = min(length, encoder.longest) - SPECIALS, [], 0
    for doc in docs:
        pieces = encoder.pieces(doc.words(), room // 4)
        counts = np.array([len(word_pieces) for word_pieces in pieces], np.int64)
        ends = doc.sentence_tokens()[:, 1]
        bounds = np.unique(np.concatenate([[0], ends, [len(pieces)]])).astype(np.int64)
        begins = 1 + np.cumsum(counts) - counts
        for window in sentence_windows(counts, bounds, room, overlap):
            tokens = slice(window.own_first, window.own_end)
            firsts = np.where(counts[tokens] > 0, begins[tokens] - begins[window.first] + 1, 0)
            row = [*chain(*pieces[window.first : window.end])]
            out.append(Job(row, shift + np.arange(window.own_first, window.own_end), firsts))
        shift += len(pieces)
    return out


def shapes(docs: Sequence[Document]) -> NDArray[np.float32]:
    """Return (N, BITS) case and shape of every token.

    >>> shapes([Document.make("IL-2")])[0].tolist()
    [1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0]
    """
    rows = [_shape(word) for doc in docs for word in doc.words()]
    return np.array(rows, np.float32).reshape(-1, BITS)


def _shape(word: str) -> tuple[bool, ...]:
    """Return bits for capitals (all, first, inside, alone), a digit, only digits, a hyphen, no letter or digit."""
    first, rest = word[:1], word[1:]
    return (
        word.isupper() and len(word) > 1, first.isupper(), not word.isupper() and rest != rest.lower(),
        word.isupper() and len(word) == 1, any(map(str.isdigit, word)), word.isdigit(), "-" in word,
        not any(map(str.isalnum, word)),
    )  # fmt: skip
