"""The vocabulary: which features have weights, and in which rows; learnt once, from the training documents.

F features, R weight rows: a feature has one row for each offset at which it is used. N tokens, C columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from chaffinch.features import observe
from chaffinch.features.observe import Bytes, Column, Keys, Observed, Places
from chaffinch.kernels.linear import SparseInput

KINDS = 128  # of features, at most
LEXICAL = frozenset({1, 2, 7, 8, 9, observe.BIGRAM, observe.TRIGRAM, observe.HEAD, observe.HEADER})  # made of letters
RARE = frozenset({observe.BIGRAM, observe.TRIGRAM, observe.HEAD, observe.HEADER})
RARE_TIMES = 3  # how often these must be seen at least; lower makes far more weights


def offsets() -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """Return (lowest offset at which a kind of feature is used, number of offsets), two arrays (KINDS,).

    Words from two before to two after, n-grams that touch this window, word classes and all marks from one before to
    one after, affixes, grams and heads at the token alone: the published windows.
    """
    first, count = np.zeros(KINDS, np.int8), np.zeros(KINDS, np.int8)
    for kinds, low, size in (
        ((1,), -2, 5),
        ((2, 3, 4, 5, 6, observe.NAMED), -1, 3),
        ((7, 8, 9), 0, 1),
        ((observe.BIGRAM,), -2, 4),
        ((observe.TRIGRAM,), -2, 3),
        (
            (
                observe.HEAD,
                observe.HEADER,
                observe.LEXICON_HERE,
                observe.UNKNOWN,
                observe.ALWAYS,
                *range(observe.SYMBOLS, observe.SEGMENT + 1),
            ),
            0,
            1,
        ),
        ((observe.FIRST_READING,), -2, 5),
        ((observe.WORD_ELSEWHERE,), -1, 3),
        ((observe.PAIR_ELSEWHERE, observe.PAIR_BEFORE_ELSEWHERE, observe.FIRST_READING_AND_ELSEWHERE), 0, 1),
        (tuple(range(observe.MARKS, KINDS)), -1, 3),
    ):
        for kind in kinds:
            first[kind], count[kind] = low, size
    return first, count


FIRST, COUNT = offsets()
_NO_TOKENS = (np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.int32))  # begins, ends, types
_NO_COLUMNS = (np.zeros((0, 0), np.int32), FIRST[:0], COUNT[:0])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Vocabulary:
    """Features by key, with their kinds; feature f has weight rows rows[f] to rows[f+1]."""

    keys: Keys  # (F,)
    kinds: Bytes  # (F,)
    rows: Places = field(init=False)  # (F+1,)
    table: Keys = field(init=False)
    values: Places = field(init=False)

    def __post_init__(self) -> None:
        """Build the hash table of the keys, and number the weight rows of each feature."""
        from chaffinch.features._compiled import _keys

        size = observe._table_size(len(self.keys))  # more than twice as many
        table, values, out = np.zeros(size, np.uint64), np.empty(size, np.int32), np.empty(len(self.keys), np.int32)
        _keys.intern(self.keys, table, values, out)
        rows = np.zeros(len(self.keys) + 1, np.int32)
        np.cumsum(COUNT[self.kinds], out=rows[1:])
        for name, value in (("rows", rows), ("table", table), ("values", values)):
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        """Return the number of features."""
        return len(self.keys)

    @property
    def height(self) -> int:
        """Return R, the number of weight rows."""
        return int(self.rows[-1])

    def union(self, other: Vocabulary) -> Vocabulary:
        """Return a vocabulary of these features, then those of the other that are new, in order."""
        new = self.find(other.keys) < 0
        return Vocabulary(np.concatenate([self.keys, other.keys[new]]), np.concatenate([self.kinds, other.kinds[new]]))

    def find(self, keys: Keys) -> Places:
        """Return the number of each key's feature, or -1 if it is unknown."""
        from chaffinch.features._compiled import _keys

        out = np.empty(len(keys), np.int32)
        _keys.look_up(keys, self.table, self.values, out)
        return out

    def view(
        self, seen: Observed, columns: Sequence[Column], place: Callable[[Places], Places] | None = None
    ) -> SparseInput:
        """Return tokens and columns as numbers of weight rows, for the kernels; unknown features are left out.

        `place` returns the first row of each of some features, where rows are not in the order of the vocabulary, and
        any number for the feature -1.
        """
        place = self.rows.__getitem__ if place is None else place
        features = self.find(seen.keys)
        known = features >= 0
        lists = np.concatenate([[0], np.cumsum(known)])[seen.lists].astype(np.int32)
        kinds = seen.kinds[known]
        table, which = self._look_up(columns, len(seen.types), place), _kinds_of(columns)
        rows = place(features[known])
        return SparseInput(
            seen.begins, seen.ends, seen.types, lists, rows, FIRST[kinds], COUNT[kinds], table,
            FIRST[which], COUNT[which],
        )  # fmt: skip

    def view_types(self, seen: Observed, types: NDArray[np.int64], place: Callable[[Places], Places]) -> SparseInput:
        """Return the features of some types (n,), which are numbered from 0, without tokens and columns."""
        sizes = seen.lists[types + 1] - seen.lists[types]
        ends = np.cumsum(sizes)
        which = np.arange(int(sizes.sum())) + np.repeat(seen.lists[types] - ends + sizes, sizes)
        features = self.find(seen.keys[which])
        known = features >= 0
        lists = np.concatenate([[0], np.cumsum(known)])[np.concatenate([[0], ends])].astype(np.int32)
        kinds = seen.kinds[which][known]
        rows = place(features[known])
        return SparseInput(*_NO_TOKENS, lists, rows, FIRST[kinds], COUNT[kinds], *_NO_COLUMNS)

    def view_tokens(
        self, seen: Observed, types: Places, columns: Sequence[Column], place: Callable[[Places], Places]
    ) -> SparseInput:
        """Return tokens with these types (N,), and columns, as `view` does; without the features of the types."""
        table, which = self._look_up(columns, len(types), place), _kinds_of(columns)
        none = (np.zeros(1, np.int32), np.zeros(0, np.int32), FIRST[:0], COUNT[:0])
        return SparseInput(seen.begins, seen.ends, types, *none, table, FIRST[which], COUNT[which])

    def _look_up(self, columns: Sequence[Column], tokens: int, place: Callable[[Places], Places]) -> Places:
        """Return (N, C) the first weight row of each token's feature in each column, or -1."""
        table = np.full((tokens, len(columns)), -1, np.int32)
        for c, column in enumerate(columns):
            number = self.find(salt_keys(column.keys, column.kind))
            table[:, c] = np.where((number >= 0) & (column.keys != 0), place(number), -1)
        return table


def _kinds_of(columns: Sequence[Column]) -> NDArray[np.int64]:
    """Return (C,) the kinds of columns."""
    return np.array([column.kind for column in columns], np.int64)


def salt_keys(keys: Keys, kind: int) -> Keys:
    """Return the keys of a column hashed with its kind."""
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
    """Return the features seen `cutoff` times by `floor` patients; n-grams, heads, headers `RARE_TIMES` at least.

    `patients` (D,) numbers the documents' patients. Features made of letters of a `hidden` token (N,) are not counted.
    """
    owner = patients[seen.owners].astype(np.int32)
    open_owner = owner if hidden is None else np.where(hidden, -1, owner).astype(np.int32)
    chosen, kinds = [], []
    F, features = observe.number(seen.keys)
    keys, kind = np.zeros(F, np.uint64), np.zeros(F, np.uint8)
    keys[features], kind[features] = seen.keys, seen.kinds
    counts = _count_features(F, features, seen.lists, seen.types, owner)
    if hidden is not None:
        lexical = np.isin(kind, list(LEXICAL))
        counts[lexical] = _count_features(F, features, seen.lists, seen.types, open_owner)[lexical]
    enough = (counts[:, 0] >= cutoff) & (counts[:, 1] >= floor)
    chosen.append(keys[enough])
    kinds.append(kind[enough])
    each = np.arange(len(seen.types) + 1, dtype=np.int32)
    for column in columns:
        F, features = observe.number(column.keys)
        keys = np.zeros(F, np.uint64)
        keys[features] = column.keys
        counted = owner
        if hidden is not None and column.kind in LEXICAL:
            counted = np.where(_shows_hidden(seen, column, hidden), -1, owner).astype(np.int32)
        counts = _count_features(F, features, each, each[:-1], counted)
        least = max(cutoff, RARE_TIMES) if column.kind in RARE else cutoff
        enough = (counts[:, 0] >= least) & (counts[:, 1] >= floor) & (keys != 0)
        chosen.append(salt_keys(keys[enough], column.kind))
        kinds.append(np.full(len(chosen[-1]), column.kind, np.uint8))
    return Vocabulary(np.concatenate(chosen), np.concatenate(kinds))


def _shows_hidden(seen: Observed, column: Column, hidden: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return (N,) which tokens have a feature in a lexical column that is made of a hidden token."""
    out = hidden.copy()
    if column.kind in (observe.BIGRAM, observe.TRIGRAM):
        for ahead in range(1, 2 if column.kind == observe.BIGRAM else 3):
            out[:-ahead] |= hidden[ahead:]
    elif column.kind == observe.HEAD:  # made of the last token of the run
        last = np.append(column.keys[1:] == 0, True)
        head = np.where(last, np.arange(len(out)), len(out))
        out |= hidden[np.minimum.accumulate(head[::-1])[::-1]]
    elif column.kind == observe.HEADER:  # made of the tokens of the line before the first that has one
        lines = np.append(0, np.cumsum(seen.codes == ord("\n")))[seen.tokens[:, 0]]
        out |= np.isin(lines, lines[hidden & (column.keys == 0)])
    return out


def _count_features(F: int, features: Places, lists: Places, types: Places, owner: Places) -> NDArray[np.int32]:
    """Return (F, 2) how often each feature was seen, and by how many patients (owner); owner -1 does not count."""
    from chaffinch.features._compiled import _keys

    out = np.zeros((F, 2), np.int32)
    if (np.diff(owner) < 0).any():  # a patient's tokens must come together
        order = np.argsort(owner, kind="stable")
        types, owner = types[order], owner[order]
    _keys.count(features, lists, types, owner, out, np.full(F, -1, np.int32))
    return out
