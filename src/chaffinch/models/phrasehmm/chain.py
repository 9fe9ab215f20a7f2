"""The chain of a phrase HMM: from probability tables to lattices over words, and from posteriors to counts.

K states, J inner states, Z = 2 K J expanded states, C symbols, N words, B sentences, M cells. A segment is emitted word
by word, in the inner states of one state; its first word is in the first half of the expanded states, the others in the
second half, so that one plain chain over words has the likelihood of the chain over segments. Without hierarchy J is 1
and moves from word to word inside a segment have probability 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from chaffinch.kernels import Active, Batch, Floats, Ints, forward_backward
from chaffinch.kernels.cells import add_rows, sum_rows
from chaffinch.models.phrasehmm.encoding import Allowed, Text
from chaffinch.models.phrasehmm.states import States


class PhraseTables(NamedTuple):
    """Log-probabilities, or counts of the same events. Rows of moves and columns of emissions sum to 1."""

    moves: Floats  # (K+1, K+1) row K begins a sentence, column K ends it
    inner: Floats  # (K, J+1, J+1) row J enters a segment, column J leaves it; (0, 0, 0) without hierarchy
    emissions: tuple[Floats, ...]  # of each block (C, K J)

    @classmethod
    def zeros(cls, states: States, sizes: tuple[int, ...]) -> PhraseTables:
        """Return tables of zeros in the shapes of these states, emissions for each vocabulary size."""
        K, J = states.size, states.inner
        inner = np.zeros((K, J + 1, J + 1) if states.unlabelled_inner else (0, 0, 0))
        return cls(np.zeros((K + 1, K + 1)), inner, tuple(np.zeros((C, K * J)) for C in sizes))

    def rows(self) -> list[tuple[Floats, int]]:
        """Return (table, axis along which its probabilities sum to 1) of every table that is in use."""
        return [
            (self.moves, 1),
            *([(self.inner, 2)] if self.inner.size else []),
            *((table, 0) for table in self.emissions),
        ]

    @classmethod
    def of_rows(cls, like: PhraseTables, arrays: list[Floats]) -> PhraseTables:
        """Return tables in the form of `like`, made of arrays in the order of `rows`."""
        if like.inner.size:
            return cls(arrays[0], arrays[1], tuple(arrays[2:]))
        return cls(arrays[0], like.inner, tuple(arrays[1:]))

    def plus(self, other: PhraseTables, weight: float = 1.0) -> PhraseTables:
        """Return tables: the sum of these and `weight` times the others."""
        pairs = zip(self.rows(), other.rows(), strict=True)
        return PhraseTables.of_rows(self, [table + weight * more for (table, _), (more, _) in pairs])


class Expanded(NamedTuple):
    """Log-probabilities of moves between expanded states."""

    start: Floats  # (Z,)
    trans: Floats  # (Z, Z)
    end: Floats  # (Z,)


def expand(tables: PhraseTables) -> Expanded:
    """Return log start, moves and end of the chain over words, with states (first in segment or not, state, inner)."""
    K = len(tables.moves) - 1
    inner = tables.inner if tables.inner.size else np.zeros((K, 2, 2))
    J = inner.shape[1] - 1
    enter, leave = inner[:, J, :J].reshape(-1), inner[:, :J, J].reshape(-1)  # (K J,)
    outer = np.repeat(np.repeat(tables.moves[:K, :K], J, axis=0), J, axis=1)
    across = leave[:, None] + outer + enter
    inside = np.full((K, J, K, J), -np.inf)
    inside[np.arange(K), :, np.arange(K), :] = inner[:, :J, :J]
    half = np.concatenate([across, inside.reshape(K * J, K * J)], axis=1)
    start = np.repeat(tables.moves[K, :K], J) + enter
    end = leave + np.repeat(tables.moves[:K, K], J)
    return Expanded(
        np.concatenate([start, np.full(K * J, -np.inf)]), np.concatenate([half, half]), np.concatenate([end, end])
    )


def batch_of(tables: PhraseTables, text: Text, active: Active, moves: Expanded | None = None) -> Batch:
    """Return the sentences as lattices of the expanded states that each word may be in."""
    moves = expand(tables) if moves is None else moves
    emit = np.zeros(int(active.at[-1]))
    for table, ids in zip(tables.emissions, text.symbols, strict=True):
        rows, local = _local(table, ids)
        add_rows(active, local, np.concatenate([rows, rows], axis=1), emit)
    return Batch(moves.start, moves.trans, emit, moves.end, text.bounds, active)


def _local(table: Floats, ids: Ints) -> tuple[Floats, Ints]:
    """Return (the table's rows that these symbols need, 0 for symbol C (none); the row index of each symbol)."""
    C = len(table)
    if len(ids) < C:
        used, local = np.unique(ids, return_inverse=True)
    else:
        used, local = np.arange(C + 1), ids
    rows = table[np.minimum(used, C - 1)]
    rows[used == C] = 0.0
    return rows, local


def expected_counts(
    tables: PhraseTables, text: Text, active: Active, moves: Expanded | None = None
) -> tuple[Floats, PhraseTables]:
    """Return (log-likelihoods of sentences (B,), expected uses of each probability); InfeasibleError if no path."""
    batch = batch_of(tables, text, active, moves)
    post = forward_backward(batch)
    edges = _edges(batch, active, post.states)
    emissions = []
    for table, ids in zip(tables.emissions, text.symbols, strict=True):
        C, wide = table.shape
        out = np.zeros((C + 1, 2 * wide))
        sum_rows(active, ids, post.states, out)
        emissions.append(out[:C, :wide] + out[:C, wide:])
    return post.log_z, PhraseTables(*_fold_counts(tables, post.pairs, *edges), tuple(emissions))


def _edges(batch: Batch, active: Active, states: Floats) -> tuple[Floats, Floats]:
    """Return ((Z,) how often each expanded state begins a sentence, (Z,) how often it ends one), expected."""
    filled = np.diff(batch.bounds) > 0
    out = []
    for words in (batch.bounds[:-1][filled], batch.bounds[1:][filled] - 1):
        widths = active.widths[words]
        cells = np.repeat(active.at[words] - np.cumsum(widths) + widths, widths) + np.arange(widths.sum())
        out.append(np.zeros(len(batch.start)) + np.bincount(active.cells[cells], states[cells], len(batch.start)))
    return out[0], out[1]


def _fold_counts(tables: PhraseTables, pairs: Floats, start: Floats, end: Floats) -> tuple[Floats, Floats]:
    """Fold counts of expanded states into moves (K+1, K+1) and inner moves (K, J+1, J+1), (0, 0, 0) if no hierarchy."""
    K = len(tables.moves) - 1
    J = tables.inner.shape[1] - 1 if tables.inner.size else 1
    half = K * J
    both = pairs[:half] + pairs[half:]
    across, inside = both[:, :half].reshape(K, J, K, J), both[:, half:].reshape(K, J, K, J)
    starts, ends = start[:half].reshape(K, J), (end[:half] + end[half:]).reshape(K, J)
    moves = np.zeros((K + 1, K + 1))
    moves[:K, :K], moves[K, :K], moves[:K, K] = across.sum(axis=(1, 3)), starts.sum(axis=1), ends.sum(axis=1)
    inner = np.zeros_like(tables.inner)
    if inner.size:
        inner[:, :J, :J] = inside[np.arange(K), :, np.arange(K), :]
        inner[:, J, :J] = starts + across.sum(axis=(0, 1))
        inner[:, :J, J] = ends + across.sum(axis=(2, 3))
    return moves, inner


def select_sentences(text: Text, allowed: Allowed, sentences: Ints) -> tuple[Text, Active]:
    """Return (the text of these sentences, the states that each of their words may be in)."""
    if len(sentences) == len(text.bounds) - 1 and (np.diff(sentences) == 1).all():
        return text, allowed.active
    lengths = np.diff(text.bounds)[sentences]
    ends = np.cumsum(lengths)
    words = np.repeat(text.bounds[sentences] - ends + lengths, lengths) + np.arange(lengths.sum())
    active = allowed.active
    return text.choose(sentences), Active(active.states, active.bounds, active.which[words])


def normalise(logs: Floats, axis: int) -> Floats:
    """Return log-probabilities that sum to 1 along an axis; rows of only -inf stay as they are."""
    top = logs.max(axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        total = np.log(np.exp(logs - top).sum(axis=axis, keepdims=True)) + top
    return np.asarray(logs - np.where(np.isfinite(total), total, 0.0))
