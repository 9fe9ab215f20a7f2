"""Frames as arrays for compiled scoring: words, tags and types are numbers of pieces of text.

N candidates, n arguments, B sentences, P pieces, F features. The key of a text is the value of its characters as digits
of a number to the base BASE, modulo 2**64; so the key of two texts in sequence is `key(a) * power(b) + key(b)`.
The key of a feature starts from the number of its view. Two keys collide once in 2**64 pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from chaffinch.relations.features.frames import Frame, Part
from chaffinch.relations.features.paths import ACTS as ACTING_TYPES
from chaffinch.relations.features.paths import JOINING, NEGATIONS
from chaffinch.relations.features.paths import LINKS as LINK_OF

Keys = NDArray[np.uint64]
Places = NDArray[np.int32]
Bytes = NDArray[np.uint8]
Codes = NDArray[np.uint32]

BASE = np.uint64(0x9E3779B97F4A7C15)  # odd, 2**64 divided by the golden ratio; spreads keys over all bits
LITERALS = (
    "", " ", "before ", "between ", "after ", "pair ", "distance ", "mentions ", "order ",
    " > ", ": ", "BEGIN", "END", " before", " between", " after", "+",
    "mentions before ", "mentions between ", "mentions after ", "nearer to ", "nearer: ", "negation",
    "negation between", "verbs ", "verb ", "links ", "open ", "types ", "-", "segments ", "head ", "heads ", "acts ",
    "head before ", "joins ", "head after ",
)  # fmt: skip
(
    NOTHING, SPACE, BEFORE, BETWEEN, AFTER, PAIR, DISTANCE, MENTIONS, ORDER,
    MOVE, COLON, BEGIN, END, ZONE_BEFORE, ZONE_BETWEEN, ZONE_AFTER, PLUS,
    MENTIONS_BEFORE, MENTIONS_BETWEEN, MENTIONS_AFTER, NEARER_TO, NEARER, NEGATION, NEGATION_BETWEEN,
    VERBS, VERB, LINKS, OPEN, TYPES, DASH, SEGMENTS, HEAD, HEADS, ACTS, HEAD_BEFORE,
    JOINS, HEAD_AFTER,
) = range(len(LITERALS))  # fmt: skip
LINK = len(LITERALS)  # and after it, the signs that links are written with
SIGNS = ("w", *LINK_OF.values())
OPENING, CLOSING, ENTITY = SIGNS.index("("), SIGNS.index(")"), SIGNS.index("e")
# Properties of a piece, in bits: the number of its sign as a link; whether it is a negation, the tag of a verb, the tag
# of a preposition or conjunction, the type of a verb or prepositional phrase.
LINKING, NEGATES, IS_VERB, IS_JOINING, ACTING = 15, 16, 32, 64, 128
WORDS, STATISTICS, PATHS = 1, 2, 3  # the numbers of the views
MOST = 1 << 19  # pieces kept before numbering restarts, so that memory stays bounded on any text


class Pieces(NamedTuple):
    """Pieces of text that feature names are built of."""

    key: Keys  # (P,)
    power: Keys  # (P,) BASE to the length
    mark: Bytes  # (P,) properties, in bits


class FlatFrames(NamedTuple):
    """Frames as flat arrays; data shared by the candidates of a sentence is stored once. Texts are piece numbers."""

    stems: Places  # of the units of each candidate
    stem_ends: Places  # (N+1,)
    tags: Places  # of the units of each sentence
    tag_ends: Places  # (B+1,)
    types: Places  # of the segments of each sentence
    ends: Places  # their units, one past the last
    part_ends: Places  # (B+1,)
    base: Places  # (N,) the sentence
    order: Places  # (N, n) units of the arguments, rising
    ranks: Places  # (N, n)
    mentions: Places  # (N,)
    sense: Places  # (N,)
    ending: Places  # (N,) a space and the sense, or nothing
    facts: Places  # (N, 2) or -1


class FeatureTable(NamedTuple):
    """The features of a model in an open-addressing hash table, with their weights."""

    table: Keys  # (a power of two,) 0 marks a hole
    columns: Places  # of each slot of the table
    weights: NDArray[np.float64]  # (F,)


class Scratch(NamedTuple):
    """Workspace for one candidate."""

    keys: Keys
    heads: Keys
    powers: Keys
    columns: Places
    counts: Places  # (F,) zero before and after each candidate


class PieceNumbers(dict[str, int]):
    """Numbers of pieces, assigned at first lookup."""

    __slots__ = ("_key", "_mark", "_power", "_size")

    def __init__(self) -> None:
        """Begin with the numbers of literals and signs."""
        self._key, self._power = np.zeros((2, 1 << 12), np.uint64)
        self._mark = np.zeros(1 << 12, np.uint8)
        for number, text in enumerate((*LITERALS, *SIGNS)):
            self._keep(number, text)  # signs and literals may be the same text
        self._size = len(LITERALS) + len(SIGNS)

    def __missing__(self, text: str) -> int:
        """Store a new text under the next number, and return the number."""
        found = self[text] = self._size
        self._keep(found, text)
        self._size += 1
        return found

    def _keep(self, number: int, text: str) -> None:
        """Store a piece's polynomial hash, the base to its length, and its property bits; enlarge full arrays."""
        if number == len(self._key):
            self._key, self._power, self._mark = (
                np.concatenate([array, np.zeros_like(array)]) for array in (self._key, self._power, self._mark)
            )
        key, power, base = 0, 1, int(BASE)
        for sign in text:
            key, power = (key * base + ord(sign)) & _ALL, power * base & _ALL
        self._key[number], self._power[number], self._mark[number] = key, power, _property_bits(text)

    @property
    def pieces(self) -> Pieces:
        """Return all pieces so far, as arrays that may have room at their ends."""
        return Pieces(self._key, self._power, self._mark)


_ALL = (1 << 64) - 1


def _property_bits(text: str) -> int:
    """Return a piece's link sign as a number, plus bits: negation, verb tag, joining word, acting segment type."""
    link = SIGNS.index(LINK_OF[text]) if text in LINK_OF else 0
    bits = NEGATES * (text in NEGATIONS) | IS_VERB * (text[:2] == "VB") | IS_JOINING * (text in JOINING)
    return link | bits | ACTING * (text in ACTING_TYPES)


def flat(frames: Sequence[Frame], number: PieceNumbers) -> FlatFrames:
    """Return frames as flat int32 arrays, what neighbours share only once; all must have equally many arguments.

    `number` gives texts their numbers, and keeps new ones.
    """
    stems: list[int] = []
    tags: list[int] = []
    types: list[int] = []
    ends: list[int] = []
    stem_ends, tag_ends, part_ends, base = [0], [0], [0], []
    last: list[Part] | None = None
    for frame in frames:
        stems += map(number.__getitem__, frame.stems)
        stem_ends.append(len(stems))
        if frame.parts is not last:
            last = frame.parts
            tags += map(number.__getitem__, frame.tags)
            types += [number[kind] for kind, _, _ in last]
            ends += [end for _, _, end in last]
            tag_ends.append(len(tags))
            part_ends.append(len(types))
        base.append(len(part_ends) - 2)
    facts = [[*map(number.__getitem__, frame.facts), -1, -1][:2] for frame in frames]
    columns = (
        stems, stem_ends, tags, tag_ends, types, ends, part_ends, base, [frame.order for frame in frames],
        [frame.ranks for frame in frames], [frame.mentions for frame in frames],
        [number[frame.sense] for frame in frames],
        [number[f" {frame.sense}" if frame.sense else ""] for frame in frames],
        facts,
    )  # fmt: skip
    return FlatFrames(*(np.array(column, np.int32) for column in columns))


def scratch(longest: int, arguments: int, features: int) -> Scratch:
    """Return a workspace for frames of up to `longest` units, `arguments` arguments, and `features` features."""
    size = 8 * longest + 2 * arguments + 64
    keys, heads, powers = np.zeros((3, size), np.uint64)
    return Scratch(keys, heads, powers, np.zeros(size, np.int32), np.zeros(features, np.int32))
