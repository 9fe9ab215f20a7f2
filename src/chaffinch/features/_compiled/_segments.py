"""Features of segments, compiled: the words inside, all features of the last word, and the neighbouring words.

M segments, Q features of all of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from chaffinch.features._compiled._keys import SEED, Keys, Places, U, mix
from chaffinch.features._compiled._words import Bytes
from chaffinch.features.observe import FOLDED, SUFFIX
from chaffinch.kernels._compile import helper, kernel

HEAD, BAG, EDGE, WHOLE, LENGTH, MARGIN, LEFT, RIGHT, TAIL, BEFORE, AFTER = range(1, 12)
FIXED = 8 + 16  # the most features of a segment besides those of its words; sets the size of buffers


class TypeFeatures(NamedTuple):
    """The features of word types: those of type v are `keys[lists[v]:lists[v + 1]]`."""

    lists: Places
    keys: Keys
    kinds: Bytes  # the kind of each feature: see `observe`


@helper()
def _emit(part: int, key: np.uint64, keys: Keys, q: int) -> int:
    """Put a feature, the key hashed with its part of the segment, into keys[q]; return q + 1."""
    keys[q] = mix(key, U(part) << U(40))
    return q + 1


@kernel()
def segment_features(
    segments: Places, margins: Places, words: Keys, types: Places, described: TypeFeatures, keys: Keys, lists: Places
) -> int:  # fmt: skip
    """Fill `keys` and `lists` with all segments' features, return their number; segment m: lists[m + 1] to [m + 2].

    `segments` is (M, 2) first token and one past the last, among tokens with pads; segment lists start at 1 because
    type 0 is the pad, which has none.
    """
    type_lists, type_keys, type_kinds = described.lists, described.keys, described.kinds
    q, N = 0, len(types)
    for m in range(len(segments)):
        lists[m + 1] = q
        first, end = segments[m, 0], segments[m, 1]
        whole = SEED
        for n in range(first, end):
            v = types[n]
            whole = mix(whole, words[n])
            for f in range(type_lists[v], type_lists[v + 1]):
                if n == end - 1:
                    q = _emit(HEAD, type_keys[f], keys, q)
                if type_kinds[f] <= FOLDED or (type_kinds[f] == SUFFIX and n < end - 1):
                    q = _emit(BAG, type_keys[f], keys, q)
        q = _emit(EDGE, words[first], keys, q)
        q = _emit(WHOLE, whole, keys, q)
        q = _emit(LENGTH, U(min(end - first, 8)), keys, q)
        q = _emit(MARGIN, U(margins[m]), keys, q)
        if end - first > 1:
            q = _emit(TAIL, mix(words[end - 2], words[end - 1]), keys, q)
        q = _emit(BEFORE, mix(words[first - 1], words[first]), keys, q)
        q = _emit(AFTER, mix(words[end - 1], words[end]), keys, q)
        for step in range(1, 3):
            left = words[max(first - step, 0)]
            right = words[min(end + step - 1, N - 1)]
            q = _emit(LEFT * 4 + step, left, keys, q)
            q = _emit(RIGHT * 4 + step, right, keys, q)
            if types[max(first - step, 0)] == 0 or types[min(end + step - 1, N - 1)] == 0:
                break
    lists[len(segments) + 1] = q
    return q
