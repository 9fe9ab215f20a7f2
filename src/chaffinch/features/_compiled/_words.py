"""Features of words, compiled: those that need no context, computed once per type, known or unknown.

V types, Q features of all types.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from chaffinch.features._compiled._keys import SEED, Codes, Keys, Places, U, add_code, mix
from chaffinch.features.observe import BRIEF, CLASS, FOLDED, GRAM, LENGTH, PATTERN, PREFIX, SUFFIX, WORD
from chaffinch.kernels._compile import helper, kernel

Bytes = NDArray[np.uint8]
Flags = NDArray[np.bool_]

# Kinds of characters, in the order of their table.
UPPER, LOWER, DIGIT, LETTER, DASH, OTHER = range(6)

AFFIX, GRAM_SIZE, GRAM_REACH = 5, 4, 16  # longest affix; characters of a gram; characters of a word that grams cover
PATTERNS = 17  # bits of `_patterns`
MOST = 5 + PATTERNS + 2 * AFFIX + GRAM_REACH  # features of one type, at most


@helper()
def _emit(kind: int, key: np.uint64, keys: Keys, kinds: Bytes, q: int) -> int:
    """Put a feature, the key hashed with its kind, and the kind at index q; return q + 1."""
    keys[q] = mix(key, U(kind) << U(56))
    kinds[q] = kind
    return q + 1


@helper()
def _patterns(codes: Codes, begin: int, end: int, table: Bytes) -> int:
    """Return as bits which patterns of capitals, digits, dashes and punctuation a word of one letter or more has."""
    size, top = end - begin, len(table) - 1
    upper = lower = digit = dash = other = marks = 0
    capitals = small_big = letter_digit = digit_letter = False
    before = OTHER
    for p in range(begin, end):
        kind = table[min(codes[p], top)]
        upper += kind == UPPER
        lower += kind == LOWER
        digit += kind == DIGIT
        dash += kind == DASH
        other += kind == OTHER
        marks += codes[p] == 44 or codes[p] == 46  # comma, period
        capitals |= kind == UPPER and before == UPPER
        small_big |= kind == UPPER and before == LOWER
        letter_digit |= kind == DIGIT and before in (UPPER, LOWER, LETTER)
        digit_letter |= kind in (UPPER, LOWER, LETTER) and before == DIGIT
        before = kind
    head, tail = table[min(codes[begin], top)], table[min(codes[end - 1], top)]
    second = table[min(codes[begin + 1], top)] if size > 1 else OTHER
    bits = int(head == UPPER and second == LOWER)
    bits |= int(capitals) << 1 | int(small_big) << 2
    bits |= int(digit > 0) << 3 | int(size == 1 and digit == 1) << 4 | int(size == 2 and digit == 2) << 5
    bits |= int(digit == size) << 6 | int(digit > 0 and marks > 0 and digit + marks == size) << 7
    bits |= int(letter_digit) << 8 | int(digit_letter) << 9
    bits |= int(dash > 0) << 10 | int(head == DASH) << 11 | int(tail == DASH) << 12
    bits |= int(other + dash == size) << 13
    bits |= int(upper == size) << 14 | int(lower == size) << 15 | int(upper == 1 and size == 1) << 16
    return bits


@kernel()
def word_features(
    codes: Codes, types: Places, table: Bytes, small: Codes, keys: Keys, kinds: Bytes, lists: Places, plain: Flags
) -> int:
    """Fill `keys`, `kinds`, `lists` and `plain` with the features of every word type; return their number Q.

    `types` is (V, 2) begin and end among the codes; `table` and `small` hold the kind and lower case of a character.
    Type v has features lists[v] to lists[v + 1]; `plain` marks those with a letter or a digit. There must be room for
    `MOST` features per type.
    """
    q, top = 0, len(table) - 1
    for v in range(len(types)):
        lists[v] = q
        begin, end = types[v, 0], types[v, 1]
        size = end - begin
        whole, folded, shape, brief, last = SEED, SEED, SEED, SEED, -1
        plain[v] = False
        for p in range(begin, end):
            code = codes[p]
            kind = table[min(code, top)]
            mark = min(kind, DASH)  # A, a, 0, other letters, all else
            plain[v] |= kind < DASH
            whole = add_code(whole, code)
            folded = add_code(folded, np.uint32(48) if kind == DIGIT else small[code] if code <= top else code)
            shape = add_code(shape, np.uint32(mark))
            brief = add_code(brief, np.uint32(mark)) if mark != last else brief
            last = mark
        q = _emit(WORD, whole, keys, kinds, q)
        if size == 0:
            continue  # the pad between sentences
        q = _emit(FOLDED, folded, keys, kinds, q)
        q = _emit(CLASS, shape, keys, kinds, q)
        q = _emit(BRIEF, brief, keys, kinds, q)
        q = _emit(LENGTH, U(min(size, 20)), keys, kinds, q)
        bits = _patterns(codes, begin, end, table)
        for b in range(PATTERNS):
            if bits >> b & 1:
                q = _emit(PATTERN, U(b), keys, kinds, q)
        head, tail = SEED, SEED
        for a in range(min(AFFIX, size)):
            head, tail = add_code(head, codes[begin + a]), add_code(tail, codes[end - 1 - a])
            q = _emit(PREFIX, head, keys, kinds, q)
            q = _emit(SUFFIX, tail, keys, kinds, q)
        for p in range(begin, min(end, begin + GRAM_REACH) - GRAM_SIZE + 1):
            key = SEED
            for i in range(GRAM_SIZE):
                code = codes[p + i]
                key = add_code(key, small[code] if code <= top else code)
            q = _emit(GRAM, key, keys, kinds, q)
    lists[len(types)] = q
    return q
