"""Keys of features, compiled: 64 bits made of what was seen, and open tables from key to number.

N things seen, F different ones. Two keys collide once in 2**64 pairs, so a key stands for its characters; the text
itself is in no table.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from chaffinch.kernels._compile import helper, kernel

Keys = NDArray[np.uint64]
Places = NDArray[np.int32]
Codes = NDArray[np.uint32]

U = np.uint64
SEED, STEP, SPREAD = U(0xCBF29CE484222325), U(0x100000001B3), U(0x9E3779B97F4A7C15)


@helper()
def mix(key: np.uint64, value: np.uint64) -> np.uint64:
    """A new key of both, spread over all bits; never 0, which marks a hole in a table."""
    x = (key ^ value) * U(0xBF58476D1CE4E5B9)
    x ^= x >> U(29)
    x = (x + SPREAD) * U(0x94D049BB133111EB)
    x ^= x >> U(32)
    return x if x != U(0) else U(1)


@helper()
def add_code(key: np.uint64, code: np.uint32) -> np.uint64:
    """The running key of some characters and one more."""
    return (key ^ U(code)) * STEP ^ (key >> U(47))


@kernel()
def word_keys(codes: Codes, tokens: Places, out: Keys) -> None:
    """out[n] = key of the characters of token n; `tokens` is (N, 2) begin and end among the codes."""
    for n in range(len(tokens)):
        key = SEED
        for p in range(tokens[n, 0], tokens[n, 1]):
            key = add_code(key, codes[p])
        out[n] = mix(key, U(tokens[n, 1] - tokens[n, 0]))


@helper()
def _find(table: Keys, key: np.uint64) -> int:
    """The place of a key in an open table whose length is a power of two, or of the hole where it belongs."""
    mask = U(len(table) - 1)
    place = (key * SPREAD >> U(20)) & mask
    while table[place] != U(0) and table[place] != key:
        place = (place + U(1)) & mask
    return np.int64(place)  # type: ignore[return-value]  # a place in an array


@kernel()
def intern(keys: Keys, table: Keys, values: Places, out: Places) -> int:
    """out[n] = number of the key, from 0 in order of first appearance; returns how many, or -1 for want of room."""
    known = 0
    for n in range(len(keys)):
        place = _find(table, keys[n])
        if table[place] == U(0):
            if 2 * known >= len(table):
                return -1
            table[place] = keys[n]
            values[place] = known
            known += 1
        out[n] = values[place]
    return known


@kernel()
def look_up(keys: Keys, table: Keys, values: Places, out: Places) -> None:
    """out[n] = the value of the key, or -1."""
    for n in range(len(keys)):
        place = _find(table, keys[n])
        out[n] = values[place] if table[place] != U(0) else -1


@kernel()
def count(features: Places, lists: Places, types: Places, patients: Places, out: Places, last: Places) -> None:
    """Adds to out[f] (F, 2) how often feature f was seen, and by how many patients, who come one after another.

    Token n shows the features of type types[n], that is features[lists[v]] to features[lists[v + 1]]; a patient of -1
    is not counted.
    """
    for n in range(len(types)):
        v = types[n]
        if patients[n] >= 0:
            for q in range(lists[v], lists[v + 1]):
                f = features[q]
                out[f, 0] += 1
                if last[f] != patients[n]:
                    last[f] = patients[n]
                    out[f, 1] += 1
