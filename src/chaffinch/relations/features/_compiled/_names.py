"""Compiled keys of feature names: a key is computed from those of its pieces, and no name is built.

F features, n arguments. `features` of words and statistics define the names and their order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from chaffinch.kernels._compile import helper, kernel
from chaffinch.relations.features._compiled._pieces import (  # fmt: skip
    AFTER,
    BASE,
    BEFORE,
    BEGIN,
    BETWEEN,
    COLON,
    DISTANCE,
    END,
    MENTIONS,
    MOVE,
    ORDER,
    PAIR,
    PLUS,
    SPACE,
    STATISTICS,
    WORDS,
    ZONE_AFTER,
    ZONE_BEFORE,
    ZONE_BETWEEN,
    Codes,
    FlatFrames,
    Keys,
    Pieces,
    Places,
)

U = np.uint64


@kernel()
def name_keys(codes: Codes, ends: NDArray[np.int64], view: int, out: Keys) -> None:
    """Put the key (never 0) of name n of a view, codes[ends[n]:ends[n + 1]], into out[n]."""
    for n in range(len(ends) - 1):
        key = U(view)
        for p in range(ends[n], ends[n + 1]):
            key = key * BASE + U(codes[p])
        out[n] = key if key != U(0) else U(1)


@helper()
def join(key: np.uint64, pieces: Pieces, piece: int) -> np.uint64:
    """Return the key of a text extended by one of the numbered pieces."""
    return np.uint64(key * pieces.power[piece] + pieces.key[piece])


@helper()
def number(key: np.uint64, value: int) -> np.uint64:
    """Return the key of a text extended by a whole number in decimal digits, with "-" if below 0."""
    if value < 0:
        key = key * BASE + U(45)
        value = -value
    size = 1
    while size * 10 <= value:
        size *= 10
    while size > 0:
        key = key * BASE + U(48 + value // size % 10)
        size //= 10
    return key


@helper()
def bucket(distance: int) -> int:
    """Return the upper end of the range that a distance lies in, as `words.bucket` does; 30 for the last."""
    if distance <= 5:
        return distance
    return 8 if distance <= 8 else 12 if distance <= 12 else 20 if distance <= 20 else 30


@helper()
def word_names(flat: FlatFrames, n: int, pieces: Pieces, out: Keys) -> int:
    """Put the keys of candidate n's `words.features` into `out` from index 0; return their number."""
    stems, order = flat.stems[flat.stem_ends[n] : flat.stem_ends[n + 1]], flat.order[n]
    first, last, view, k = order[0], order[-1], U(WORDS), 0
    for unit in range(first):
        out[k] = join(join(view, pieces, BEFORE), pieces, stems[unit])
        k += 1
    for unit in range(first + 1, last):
        argument = False
        for place in order:
            argument = argument or place == unit
        if not argument:
            out[k] = join(join(view, pieces, BETWEEN), pieces, stems[unit])
            k += 1
    for unit in range(last + 1, len(stems)):
        out[k] = join(join(view, pieces, AFTER), pieces, stems[unit])
        k += 1
    for unit in range(first, last):
        key = join(join(view, pieces, PAIR), pieces, stems[unit])
        out[k] = join(join(key, pieces, SPACE), pieces, stems[unit + 1])
        k += 1
    out[k] = number(join(view, pieces, DISTANCE), bucket(last - first))
    out[k + 1] = number(join(view, pieces, MENTIONS), min(flat.mentions[n], 8))
    k += 2
    if pieces.power[flat.sense[n]] != U(1):
        out[k] = join(join(view, pieces, ORDER), pieces, flat.sense[n])
        k += 1
    return k


@helper()
def state(key: np.uint64, pieces: Pieces, kind: int, begin: int, end: int, order: Places) -> np.uint64:
    """Return the key of a text extended by a segment's type and its arguments or zone, as of `statistics.state_of`."""
    key = join(key, pieces, kind)
    if end <= order[0]:
        return join(key, pieces, ZONE_BEFORE)
    if begin > order[-1]:
        return join(key, pieces, ZONE_AFTER)
    inside = False
    for k in range(len(order)):
        if begin <= order[k] < end:
            key = number(join(key, pieces, PLUS if inside else SPACE), k + 1)
            inside = True
    return key if inside else join(key, pieces, ZONE_BETWEEN)


@helper()
def statistic_names(flat: FlatFrames, n: int, pieces: Pieces, out: Keys) -> int:
    """Put the keys of candidate n's `statistics.features` into `out` from index 0; return their number."""
    stems, order, base = flat.stems[flat.stem_ends[n] : flat.stem_ends[n + 1]], flat.order[n], flat.base[n]
    before, begin, view, k = join(U(STATISTICS), pieces, BEGIN), 0, U(STATISTICS), 0
    for part in range(flat.part_ends[base], flat.part_ends[base + 1]):
        kind, end = flat.types[part], flat.ends[part]
        key = state(join(before, pieces, MOVE), pieces, kind, begin, end, order)
        out[k] = join(join(key, pieces, SPACE), pieces, flat.sense[n])
        k += 1
        before = state(view, pieces, kind, begin, end, order)
        opened = join(before, pieces, COLON)
        for unit in range(begin, end):
            out[k] = join(opened, pieces, stems[unit])
            k += 1
        begin = end
    out[k] = join(join(before, pieces, MOVE), pieces, END)
    return k + 1
