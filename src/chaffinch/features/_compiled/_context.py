"""Context features, compiled: n-grams, the head word of a run, the header of a line, the same word elsewhere.

N tokens with pads between sentences; a key of 0 means that there is no feature.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from chaffinch.features._compiled._keys import SEED, Codes, Keys, Places, U, add_code, mix
from chaffinch.kernels._compile import kernel

Flags = NDArray[np.bool_]

HEADER_REACH = 40  # characters of a line within which its header ends; raised, more colons in prose count
COLON, LINE_FEED, SPACE = 58, 10, 32


@kernel()
def ngrams(words: Keys, two: Keys, three: Keys) -> None:
    """Fill `two` and `three` (N,) with keys of the bigram and trigram that begin at each token; words[0] is the pad."""
    pad = words[0]
    for n in range(len(words) - 1):
        two[n] = mix(words[n], words[n + 1] >> U(1))
        if n + 2 < len(words) and words[n + 1] != pad:  # never across a sentence's end
            three[n] = mix(two[n], words[n + 2])


@kernel()
def heads(words: Keys, edges: Flags, out: Keys) -> None:
    """Put into out[n] the last word of token n's run, 0 if n is an edge; runs end before edges."""
    head = U(0)
    for n in range(len(words) - 1, -1, -1):
        if edges[n]:
            head = U(0)
        elif head == U(0):
            head = words[n]
        out[n] = head


@kernel()
def headers(codes: Codes, tokens: Places, out: Keys) -> None:
    """Put into out[n] the key of the header ("Name:") of token n's line, if the token is after its colon, else 0.

    The header is what precedes the first colon, within `HEADER_REACH` characters, without white space. `tokens` (N, 2)
    are begin and end among the codes, in order; pads are empty.
    """
    line, colon, header, searched = 0, 0, U(0), 0
    for n in range(len(tokens)):
        begin = tokens[n, 0]
        if tokens[n, 1] == begin:
            continue
        while searched < begin:  # a new line begins after each line feed passed
            if codes[searched] == LINE_FEED:
                line, colon, header = searched + 1, 0, U(0)
            searched += 1
        if colon == 0:
            colon, key = -1, SEED
            for p in range(line, min(line + HEADER_REACH, len(codes))):
                if codes[p] == LINE_FEED:
                    break
                if codes[p] == COLON:
                    if key != SEED:
                        colon, header = p, mix(key, U(1))
                    break
                if codes[p] > SPACE:
                    key = add_code(key, codes[p])
        out[n] = header if colon > 0 and begin > colon else U(0)


@kernel()
def elsewhere(groups: Places, states: Places, counts: Places, out: Places) -> None:
    """Put into out (N, 2) what states the other tokens of n's group have; `counts` (G, K) is 0 before and after.

    out[n, 0] is 0 if there is no other token, 1 if all others are outside (state 0), else 2 + the state most of the
    others have, outside not counted; out[n, 1] is the share of them inside: 0 under half, 1 not all, 2 all.
    """
    K = counts.shape[1]
    for n in range(len(groups)):
        if groups[n] >= 0:
            counts[groups[n], states[n]] += 1
    for n in range(len(groups)):
        if groups[n] < 0:
            continue
        row = counts[groups[n]]
        row[states[n]] -= 1
        total, inside, best = row[0], 0, 0
        for k in range(1, K):
            total += row[k]
            inside += row[k]
            if row[k] > 0 and (best == 0 or row[k] > row[best]):
                best = k
        row[states[n]] += 1
        if total > 0:
            out[n, 0] = 2 + best if inside else 1
            out[n, 1] = (2 if inside == total else 1 if 2 * inside >= total else 0) if inside else 0
    for n in range(len(groups)):
        if groups[n] >= 0:
            counts[groups[n]] = 0


@kernel()
def combine(one: Keys, other: Keys, out: Keys) -> None:
    """Put one key made of both keys into out[n], or 0 where either is 0."""
    for n in range(len(one)):
        out[n] = mix(one[n], other[n]) if one[n] != U(0) and other[n] != U(0) else U(0)
