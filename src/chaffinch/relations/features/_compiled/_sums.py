"""Compiled log-odds of candidates: keys of feature names are looked up in a model's table, counted and weighted.

N candidates.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from chaffinch.kernels._compile import helper, kernel
from chaffinch.relations.features._compiled._names import statistic_names, word_names
from chaffinch.relations.features._compiled._path_names import path_names
from chaffinch.relations.features._compiled._pieces import (
    STATISTICS,
    WORDS,
    FeatureTable,
    FlatFrames,
    Keys,
    Pieces,
    Places,
    Scratch,
)

U = np.uint64


@helper()
def place_of(table: Keys, key: np.uint64) -> int:
    """Return the slot of a key in the hash table, or the empty slot where it belongs."""
    mask = U(len(table) - 1)
    place = (key * U(0xBF58476D1CE4E5B9) >> U(24)) & mask
    while table[place] != U(0) and table[place] != key:
        place = (place + U(1)) & mask
    return np.int64(place)  # type: ignore[return-value]  # a place in an array


@kernel()
def enter(keys: Keys, first: int, table: Keys, columns: Places) -> None:
    """Insert the keys into the table, with columns from `first` on; of equal keys the first stays."""
    for n in range(len(keys)):
        place = place_of(table, keys[n])
        if table[place] == U(0):
            table[place], columns[place] = keys[n], first + n


@helper()
def block(keys: Keys, known: FeatureTable, room: Scratch, length: float) -> float:
    """Return what a view adds to the log-odds: known weights times log2(1 + count), the block scaled to `length`."""
    different = 0
    for key in keys:
        place = place_of(known.table, key)
        if known.table[place] != U(0):
            column = known.columns[place]
            if room.counts[column] == 0:
                room.columns[different] = column
                different += 1
            room.counts[column] += 1
    added = squares = 0.0
    for column in room.columns[:different]:
        value = np.log2(1.0 + room.counts[column]) if room.counts[column] > 1 else 1.0
        added += value * known.weights[column]
        squares += value * value
        room.counts[column] = 0
    return length * added / np.sqrt(squares) if squares > 0.0 else 0.0


@kernel()
def add_view(
    flat: FlatFrames,
    pieces: Pieces,
    known: FeatureTable,
    view: int,
    length: float,
    room: Scratch,
    out: NDArray[np.float64],
) -> None:
    """Add to out[n] the weighted known features of one view of each candidate n, its block scaled to `length`."""
    for n in range(len(out)):
        if view == WORDS:
            count = word_names(flat, n, pieces, room.keys)
        elif view == STATISTICS:
            count = statistic_names(flat, n, pieces, room.keys)
        else:
            count = path_names(flat, n, pieces, room)
        out[n] += block(room.keys[:count], known, room, length)
