"""Votes as few distinct rows: most tokens share a row, and all tokens on which every source is silent share one.

Votes and states are finer than tags: a span of one token, S, and a span's last token, E, differ from its first, B,
and others, I. So the model learns if a source only knows names of several words, and a span's end is as good as its
beginning. The state tells whether a token continues the entity of the one before it: a linking rule's verdict is
one more observation of that state, which equals a factor on the transition.

T tokens, S sources, R linking rules, E labels, P distinct rows, K = 1 + 4 E states (O; B, I, E, S of each label).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chaffinch.kernels import Floats, Ints
from chaffinch.models.core.labels import Labels
from chaffinch.models.votes.matrix import APART, SILENT, TOGETHER, VoteMatrix
from chaffinch.models.votes.multihmm.spans import Bools, edges

LETTERS = 4  # B, I, E, S
_COARSE = np.array([0, 1, 1, 0])  # B and S begin an entity, I and E continue it


@dataclass(frozen=True, slots=True, eq=False)
class Soft:
    """The distributions over tags of one source, where it votes."""

    tokens: Ints  # (n,)
    chances: Floats  # (n, 1 + 2 E) over tags in IOB2


@dataclass(frozen=True, slots=True, eq=False)
class VotePatterns:
    """Votes grouped by distinct rows."""

    votes: NDArray[np.int16]  # (P, S) -1 silent, else a state; row 0 has no vote and no verdict of a rule
    links: NDArray[np.int8]  # (P, R)
    voted: Bools  # (P,) some source votes for an entity
    rows: Ints  # (T,) the row of each token
    counts: Ints  # (P,) tokens of each row
    soft: Mapping[int, Soft]  # source

    @property
    def any_vote(self) -> Bools:
        """Return (P,) on which rows some source votes, be it "not an entity"."""
        return np.asarray((self.votes >= 0).any(axis=1))

    def by_row(self, chances: Floats, tokens: Ints) -> Floats:
        """Return (P, K) the probabilities (M, K) of some tokens summed by their rows."""
        from scipy.sparse import csr_array

        M = len(tokens)
        membership = csr_array((np.ones(M), (self.rows[tokens], np.arange(M))), shape=(len(self.votes), M))
        return np.asarray(membership @ chances)


def observe(vote_matrix: VoteMatrix) -> VotePatterns:
    """Return votes and links as distinct rows, and each token's row; row 0 is that of silence."""
    S, R = len(vote_matrix.sources), len(vote_matrix.rules)
    links = vote_matrix.links if R else np.zeros((len(vote_matrix), 0), np.int8)
    has_vote = (vote_matrix.codes != SILENT).any(axis=1) | (links != 0).any(axis=1)
    near = np.flatnonzero(has_vote | np.append(has_vote[1:], False) | np.append(False, has_vote[:-1]))
    codes, verdicts = vote_matrix.codes[near], links[near].copy()
    gaps = np.flatnonzero(np.diff(near) > 1) + 1
    cuts = np.unique(np.concatenate([[0], gaps, np.searchsorted(near, vote_matrix.bounds[:-1])]))
    begins, lasts = edges(codes, np.append(cuts, len(near)).astype(np.int64))
    verdicts[cuts[cuts < len(near)]] = 0  # no token before it in its sentence
    letter = np.where(begins, np.where(lasts, 3, 0), np.where(lasts, 2, 1))
    votes = np.where(codes > 0, 1 + LETTERS * ((codes - 1) // 2) + letter, codes).astype(np.int16)
    entity = (codes > 0).any(axis=1, keepdims=True)
    table = np.concatenate([votes, verdicts.astype(np.int16), entity.astype(np.int16)], axis=1)
    has_vote = (votes != SILENT).any(axis=1) | (verdicts != 0).any(axis=1)
    patterns, which = _distinct(table[has_vote])
    silent = np.concatenate([np.full(S, SILENT), np.zeros(R + 1)]).astype(np.int16)
    patterns = np.concatenate([silent[None], patterns])
    rows = np.zeros(len(vote_matrix), np.int64)
    rows[near[has_vote]] = 1 + which
    soft = {}
    for source, name in enumerate(vote_matrix.sources):
        if name in vote_matrix.soft:
            tokens = np.flatnonzero(vote_matrix.codes[:, source] != SILENT)
            chances = vote_matrix.soft[name][tokens]
            soft[source] = Soft(tokens, chances / chances.sum(axis=1, keepdims=True))
    return VotePatterns(
        patterns[:, :S], patterns[:, S : S + R].astype(np.int8), patterns[:, -1] > 0, rows,
        np.bincount(rows, minlength=len(patterns)), soft,
    )  # fmt: skip


def _distinct(table: NDArray[np.int16]) -> tuple[NDArray[np.int16], Ints]:
    """Return the distinct rows, sorted by their bytes, and for each row its index among them."""
    table = np.ascontiguousarray(table)
    whole = table.view([("", np.void, table.shape[1] * table.itemsize)]).ravel() if len(table) else table[:, 0]
    _, firsts, which = np.unique(whole, return_index=True, return_inverse=True)
    return table[firsts], which.reshape(-1).astype(np.int64)


def states(names: tuple[str, ...]) -> Labels:
    """Return the labels in IOBES; their tags are the states of the chain."""
    return Labels(names, "IOBES")


def state_tags(E: int) -> Ints:
    """Return (K,) the number of the IOB2 tag of each state, for E labels."""
    return np.concatenate([[0], (1 + 2 * np.arange(E)[:, None] + _COARSE).reshape(-1)]).astype(np.int64)


def tags_to_states(tags: Ints, bounds: Ints) -> Ints:
    """Return (T,) the IOBES states of IOB2 tags (T,), sentence by sentence."""
    begins, lasts = edges(tags[:, None], bounds)
    letter = np.where(begins[:, 0], np.where(lasts[:, 0], 3, 0), np.where(lasts[:, 0], 2, 1))
    return np.where(tags > 0, 1 + LETTERS * ((tags - 1) // 2) + letter, 0).astype(np.int64)


def join_linked_spans(tags: Ints, vote_matrix: VoteMatrix) -> Ints:
    """Return IOB2 tags (T,), adjacent spans of one label joined where a linking rule asks and none objects."""
    if not vote_matrix.rules or not len(tags):
        return tags
    together = (vote_matrix.links == TOGETHER).any(axis=1) & ~(vote_matrix.links == APART).any(axis=1)
    together[vote_matrix.bounds[:-1][vote_matrix.bounds[:-1] < len(tags)]] = False
    before = np.append(0, tags[:-1])
    same = (tags % 2 == 1) & (before > 0) & ((before - 1) // 2 == (tags - 1) // 2)
    return np.asarray(tags + (together & same))
