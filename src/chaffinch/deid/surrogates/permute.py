"""Keyed permutations of n values, computed without a table.

A Feistel network with ten rounds over two halves of about √n values each, walked until it is back among the first n
values (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002; ten rounds as in NIST's FF1). Two values never
have the same image. Over keys, the image of any value is uniform over all n, the value itself included: images under
many keys do not reveal the value.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from math import isqrt

LARGEST = 1 << 64  # values; beyond it two draws hardly ever collide, and no permutation is needed
_ROUNDS = 10  # as in NIST's FF1


def permute(index: int, size: int, key: bytes) -> int:
    """Return the image of an index below `size` under the permutation of the key; ValueError if out of range.

    >>> sorted(permute(index, 10, b"0123456789abcdef") for index in range(10))
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """
    if not 0 <= index < size <= LARGEST:
        raise ValueError("index or size out of range")
    rows = isqrt(size - 1) + 1
    columns = -(-size // rows)
    keyed = _keyed_hash(key)
    while True:
        row, column = divmod(index, columns)
        for round_number in range(0, _ROUNDS, 2):
            row = (row + _round_value(keyed, round_number, column)) % rows
            column = (column + _round_value(keyed, round_number + 1, row)) % columns
        index = row * columns + column
        if index < size:
            return index


@lru_cache(maxsize=1024)
def _keyed_hash(key: bytes) -> hashlib.blake2b:
    """Return the keyed hash before any message, to be copied: that is faster than to make it for every round."""
    return hashlib.blake2b(key=key, digest_size=16)


def _round_value(keyed: hashlib.blake2b, round_number: int, value: int) -> int:
    """Return 128 keyed bits for a round and one half; modulo a half they are uniform to one part in 2⁹⁶."""
    one = keyed.copy()
    one.update((round_number << 64 | value).to_bytes(9, "big"))
    return int.from_bytes(one.digest(), "big")
