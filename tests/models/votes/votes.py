"""Votes for the tests of aggregators: written by hand as spans, or drawn from sources of known quality.

T tokens, S sources.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from chaffinch.kernels import Ints
from chaffinch.models.votes.matrix import VoteMatrix

Piece = tuple[int, int, str]


def by_hand(
    size: int, spans: Mapping[str, Sequence[Piece]], names: Sequence[str] = ("A", "B"), bounds: Sequence[int] = ()
) -> VoteMatrix:
    """Votes of sources given as spans of tokens; a span labelled O is a vote for "not an entity"."""
    codes = np.full((size, len(spans)), -1, np.int16)
    for column, own in enumerate(spans.values()):
        for first, end, label in own:
            number = -1 if label == "O" else list(names).index(label)
            codes[first:end, column] = 2 + 2 * number
            codes[first, column] = max(1 + 2 * number, 0)
    edges = np.array([0, *bounds, size])
    return VoteMatrix(tuple(spans), tuple(names), codes, edges, edges)


def drawn(
    rng: np.random.Generator, *, recall: Sequence[float], stray: Sequence[float], confused: Sequence[float] = (),
    sentences: int = 400, size: int = 12, longest: int = 3,
) -> tuple[VoteMatrix, Ints]:  # fmt: skip
    """Votes on true spans, of 1 to 3 tokens or of one, and the true tags (T,).

    A source finds a span with probability `recall`, calls it by another label with probability `confused`, and has
    `stray` wrong spans per token outside.
    """
    names = ("A", "B")
    E, S = len(names), len(recall)
    tags, codes = np.zeros(sentences * size, np.int64), np.full((sentences * size, S), -1, np.int16)
    for start in range(0, len(tags), size):
        place = start + int(rng.integers(0, 3))
        while place < start + size - 3:
            length, label = int(rng.integers(1, longest + 1)), int(rng.integers(E))
            tags[place : place + length] = 2 + 2 * label
            tags[place] = 1 + 2 * label
            for k in range(S):
                if rng.random() < recall[k]:
                    wrong = confused and rng.random() < confused[k]
                    said = (label + 1) % E if wrong else label
                    codes[place : place + length, k] = 2 + 2 * said
                    codes[place, k] = 1 + 2 * said
            place += length + int(rng.integers(2, 5))
    for k in range(S):
        wrong = (rng.random(len(tags)) < stray[k]) & (tags == 0)
        codes[wrong, k] = 1 + 2 * rng.integers(0, E, wrong.sum())
    bounds = np.arange(0, len(tags) + 1, size)
    return VoteMatrix(tuple(f"s{k}" for k in range(S)), names, codes, bounds, bounds), tags
