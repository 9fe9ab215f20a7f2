"""Keys of features, compiled: 64-bit hashes of what was observed, and hash tables from key to number.

N observations, F different ones. Two keys collide once in 2**64 pairs, so a key replaces its characters; no table
contains text.
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
    """Return a hash of both, spread over all bits; never 0, which marks a free slot of a table."""
    x = (key ^ value) * U(0xBF58476D1CE4E5B9)
    x ^= x >> U(29)
    x = (x + SPREAD) * U(0x94D049BB133111EB)
    x ^= x >> U(32)
    return x if x != U(0) else U(1)


@helper()
def add_code(key: np.uint64, code: np.uint32) -> np.uint64:
    """Return the running key of some characters, updated by one more."""
    return (key ^ U(code)) * STEP ^ (key >> U(47))


@kernel()
def word_keys(codes: Codes, tokens: Places, out: Keys) -> None:
    """Put the key of the characters of token n into out[n]; `tokens` is (N, 2) begin and end among the codes."""
    for n in range(len(tokens)):
        key = SEED
        for p in range(tokens[n, 0], tokens[n, 1]):
            key = add_code(key, codes[p])
        out[n] = mix(key, U(tokens[n, 1] - tokens[n, 0]))


@helper()
def _find(table: Keys, key: np.uint64) -> int:
    """Return the slot of a key in a hash table, or the free slot where it belongs; the length is a power of two."""
    mask = U(len(table) - 1)
    slot = (key * SPREAD >> U(20)) & mask
    while table[slot] != U(0) and table[slot] != key:
        slot = (slot + U(1)) & mask
    return np.int64(slot)  # type: ignore[return-value]  # an index into an array


@kernel()
def intern(keys: Keys, table: Keys, values: Places, out: Places) -> int:
    """Number the keys from 0 by first appearance, into out and the table; return how many, or -1 if it is half full."""
    known = 0
    for n in range(len(keys)):
        slot = _find(table, keys[n])
        if table[slot] == U(0):
            if 2 * known >= len(table):
                return -1
            table[slot] = keys[n]
            values[slot] = known
            known += 1
        out[n] = values[slot]
    return known


@kernel()
def look_up(keys: Keys, table: Keys, values: Places, out: Places) -> None:
    """Put the value of each key into out, or -1 if the hash table does not have it."""
    for n in range(len(keys)):
        slot = _find(table, keys[n])
        out[n] = values[slot] if table[slot] != U(0) else -1


@kernel()
def count(features: Places, lists: Places, types: Places, patients: Places, out: Places, last: Places) -> None:
    """Add to out[f] (F, 2) how often feature f was seen, and by how many patients; tokens must be sorted by patient.

    Token n has the features of type types[n], that is features[lists[v]] to features[lists[v + 1]]; a patient of -1
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
