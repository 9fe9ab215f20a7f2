"""The vocabulary: which features have weights, and where; made once, from the training documents.

F features, R weight rows: a feature has one row for each offset at which it is looked at. N tokens, C columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from chaffinch.features import observe as window
from chaffinch.features.observe import Bytes, Column, Keys, Observed, Places
from chaffinch.kernels.linear import SparseInput

KINDS = 128
LEXICAL = frozenset({1, 2, 7, 8, 9, window.BIGRAM, window.TRIGRAM, window.HEAD, window.HEADER})  # made of letters
RARE = frozenset({window.BIGRAM, window.TRIGRAM, window.HEAD, window.HEADER})
RARE_TIMES = 3  # how often these must be seen at least


def offsets() -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """(KINDS,) the lowest offset at which a kind of feature is looked at, and at how many offsets.

    Words from two before to two after, n-grams that touch this window, word classes and all marks from one before to
    one after, affixes, grams and heads at the token alone: the published windows.
    """
    first, count = np.zeros(KINDS, np.int8), np.zeros(KINDS, np.int8)
    for kinds, low, size in (
        ((1,), -2, 5),
        ((2, 3, 4, 5, 6, window.NAMED), -1, 3),
        ((7, 8, 9), 0, 1),
        ((window.BIGRAM,), -2, 4),
        ((window.TRIGRAM,), -2, 3),
        ((window.HEAD, window.HEADER, window.UNKNOWN, window.SEGMENT, *range(window.SYMBOLS, window.SEGMENT)), 0, 1),
        ((window.OWN,), -2, 5),
        ((window.WORD_ELSEWHERE,), -1, 3),
        ((window.PAIR_ELSEWHERE, window.PAIR_BEFORE_ELSEWHERE, window.OWN_AND_ELSEWHERE), 0, 1),
        (tuple(range(window.MARKS, KINDS)), -1, 3),
    ):
        for kind in kinds:
            first[kind], count[kind] = low, size
    return first, count


FIRST, COUNT = offsets()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Vocabulary:
    """Features by key, with their kinds; feature f has weight rows rows[f] to rows[f+1]."""

    keys: Keys  # (F,)
    kinds: Bytes  # (F,)
    rows: Places = field(init=False)  # (F+1,)
    table: Keys = field(init=False)
    values: Places = field(init=False)

    def __post_init__(self) -> None:
        from chaffinch.features._compiled import _keys

        size = window._table_size(len(self.keys))  # more than twice as many
        table, values, out = np.zeros(size, np.uint64), np.empty(size, np.int32), np.empty(len(self.keys), np.int32)
        _keys.intern(self.keys, table, values, out)
        rows = np.cumsum([0, *COUNT[self.kinds]], dtype=np.int32)
        for name, value in (("rows", rows), ("table", table), ("values", values)):
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def height(self) -> int:
        """R, the number of weight rows."""
        return int(self.rows[-1])

    def joined(self, other: Vocabulary) -> Vocabulary:
        """These features, then those of the other that are new."""
        new = self.find(other.keys) < 0
        return Vocabulary(np.concatenate([self.keys, other.keys[new]]), np.concatenate([self.kinds, other.kinds[new]]))

    def find(self, keys: Keys) -> Places:
        """The number of each feature, or -1."""
        from chaffinch.features._compiled import _keys

        out = np.empty(len(keys), np.int32)
        _keys.look_up(keys, self.table, self.values, out)
        return out

    def view(self, seen: Observed, columns: Sequence[Column]) -> SparseInput:
        """The observations as weight rows."""
        found = self.find(seen.keys)
        known = found >= 0
        lists = np.concatenate([[0], np.cumsum(known)])[seen.lists].astype(np.int32)
        kinds = seen.kinds[known]
        table = np.full((len(seen.types), len(columns)), -1, np.int32)
        for c, column in enumerate(columns):
            number = self.find(salted(column.keys, column.kind))
            table[:, c] = np.where((number >= 0) & (column.keys != 0), self.rows[number], -1)
        which = np.array([column.kind for column in columns], np.int64)
        rows = self.rows[found[known]]
        return SparseInput(
            seen.begins, seen.ends, seen.types, lists, rows, FIRST[kinds], COUNT[kinds], table,
            FIRST[which], COUNT[which],
        )  # fmt: skip


def salted(keys: Keys, kind: int) -> Keys:
    """The keys of a column with its kind in them."""
    return (keys ^ np.uint64(kind << 56)) * np.uint64(0xD6E8FEB86659FD93)


def learn(
    seen: Observed,
    columns: Sequence[Column],
    *,
    patients: NDArray[np.int64],
    hidden: NDArray[np.bool_] | None = None,
    cutoff: int = 1,
    floor: int = 1,
) -> Vocabulary:
    """The features seen `cutoff` times by `floor` patients; n-grams, heads and headers `RARE_TIMES` at least.

    `patients` (D,) numbers the documents' patients. Features made of the letters of a `hidden` token (N,) do not count.
    """
    owner = patients[seen.owners].astype(np.int32)
    open_owner = owner if hidden is None else np.where(hidden, -1, owner).astype(np.int32)
    found, kinds = [], []
    F, features = window.number(seen.keys)
    keys, kind = np.zeros(F, np.uint64), np.zeros(F, np.uint8)
    keys[features], kind[features] = seen.keys, seen.kinds
    counts = _counted(F, features, seen.lists, seen.types, owner)
    if hidden is not None:
        lexical = np.isin(kind, list(LEXICAL))
        counts[lexical] = _counted(F, features, seen.lists, seen.types, open_owner)[lexical]
    enough = (counts[:, 0] >= cutoff) & (counts[:, 1] >= floor)
    found.append(keys[enough])
    kinds.append(kind[enough])
    each = np.arange(len(seen.types) + 1, dtype=np.int32)
    for column in columns:
        F, features = window.number(column.keys)
        keys = np.zeros(F, np.uint64)
        keys[features] = column.keys
        own = owner
        if hidden is not None and column.kind in LEXICAL:
            own = np.where(_covers(seen, column, hidden), -1, owner).astype(np.int32)
        counts = _counted(F, features, each, each[:-1], own)
        least = max(cutoff, RARE_TIMES) if column.kind in RARE else cutoff
        enough = (counts[:, 0] >= least) & (counts[:, 1] >= floor) & (keys != 0)
        found.append(salted(keys[enough], column.kind))
        kinds.append(np.full(len(found[-1]), column.kind, np.uint8))
    return Vocabulary(np.concatenate(found), np.concatenate(kinds))


def _covers(seen: Observed, column: Column, hidden: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(N,) where a column is made of letters of a hidden token, be it another than the one where it stands."""
    out = hidden.copy()
    if column.kind in (window.BIGRAM, window.TRIGRAM):
        for ahead in range(1, 2 if column.kind == window.BIGRAM else 3):
            out[:-ahead] |= hidden[ahead:]
    elif column.kind == window.HEAD:  # the last of a run of tokens that have one
        last = np.append(column.keys[1:] == 0, True)
        place = np.where(last, np.arange(len(out)), len(out))
        out |= hidden[np.minimum.accumulate(place[::-1])[::-1]]
    elif column.kind == window.HEADER:  # the tokens of a line before the first that has one
        lines = np.append(0, np.cumsum(seen.codes == ord("\n")))[seen.tokens[:, 0]]
        out |= np.isin(lines, lines[hidden & (column.keys == 0)])
    return out


def _counted(F: int, features: Places, lists: Places, types: Places, owner: Places) -> NDArray[np.int32]:
    """(F, 2) how often each feature was seen, and by how many patients."""
    from chaffinch.features._compiled import _keys

    out = np.zeros((F, 2), np.int32)
    if (np.diff(owner) < 0).any():  # a patient's tokens must come together
        order = np.argsort(owner, kind="stable")
        types, owner = types[order], owner[order]
    _keys.count(features, lists, types, owner, out, np.full(F, -1, np.int32))
    return out
