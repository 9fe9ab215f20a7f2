"""Compiled keys of the names of `paths.features`, in the same order."""

from __future__ import annotations

import numpy as np

from chaffinch.kernels._compile import helper
from chaffinch.relations.features._compiled._names import bucket, join, number
from chaffinch.relations.features._compiled._pieces import (  # fmt: skip
    ACTING,
    ACTS,
    BEGIN,
    CLOSING,
    COLON,
    DASH,
    DISTANCE,
    END,
    ENTITY,
    HEAD,
    HEAD_AFTER,
    HEAD_BEFORE,
    HEADS,
    IS_JOINING,
    IS_VERB,
    JOINS,
    LINK,
    LINKING,
    LINKS,
    MENTIONS,
    MENTIONS_AFTER,
    MENTIONS_BEFORE,
    MENTIONS_BETWEEN,
    NEARER,
    NEARER_TO,
    NEGATES,
    NEGATION,
    NEGATION_BETWEEN,
    OPEN,
    OPENING,
    PATHS,
    PLUS,
    SEGMENTS,
    SPACE,
    TYPES,
    VERB,
    VERBS,
    FlatFrames,
    Keys,
    Pieces,
    Places,
    Scratch,
)

U = np.uint64


@helper()
def shape_names(flat: FlatFrames, n: int, pieces: Pieces, out: Keys) -> int:
    """Put the keys of candidate n's features of `paths._shape` into `out` from index 0; return their number."""
    stems, order, ending = flat.stems[flat.stem_ends[n] : flat.stem_ends[n + 1]], flat.order[n], flat.ending[n]
    first, last, view = order[0], order[-1], U(PATHS)
    before = between = after = negations = negated = 0
    for unit in range(len(stems)):
        mark = pieces.mark[stems[unit]]
        entity = 1 if mark & LINKING == ENTITY else 0
        negations += mark & NEGATES
        if unit < first:
            before += entity
        elif unit > last:
            after += entity
        elif first < unit < last:
            between += entity
            negated += mark & NEGATES
    out[0] = join(number(join(view, pieces, DISTANCE), bucket(last - first)), pieces, ending)
    out[1] = join(number(join(view, pieces, MENTIONS), min(flat.mentions[n], 8)), pieces, ending)
    out[2] = join(number(join(view, pieces, MENTIONS_BEFORE), min(before, 4)), pieces, ending)
    out[3] = join(number(join(view, pieces, MENTIONS_BETWEEN), min(between, 4)), pieces, ending)
    out[4] = join(number(join(view, pieces, MENTIONS_AFTER), min(after, 4)), pieces, ending)
    k = 5
    for fact in flat.facts[n]:
        if fact >= 0:
            out[k] = join(join(view, pieces, fact), pieces, ending)
            k += 1
    nearer = join(view, pieces, NEARER)
    for a in range(len(order)):
        rank = flat.ranks[n, a]
        rival = number(join(number(join(view, pieces, NEARER_TO), a + 1), pieces, COLON), min(rank, 3))
        out[k] = join(rival, pieces, ending)
        nearer = number(join(nearer, pieces, SPACE) if a else nearer, min(rank, 2))
        k += 1
    out[k] = join(nearer, pieces, ending)
    k += 1
    if negations:
        out[k] = join(join(view, pieces, NEGATION), pieces, ending)
        k += 1
        if negated:
            out[k] = join(join(view, pieces, NEGATION_BETWEEN), pieces, ending)
            k += 1
    return k


@helper()
def between_names(flat: FlatFrames, n: int, pieces: Pieces, out: Keys) -> int:
    """Put the keys of candidate n's features of `paths._between` into `out` from index 0; return their number."""
    stems, order, ending = flat.stems[flat.stem_ends[n] : flat.stem_ends[n + 1]], flat.order[n], flat.ending[n]
    tags = flat.tags[flat.tag_ends[flat.base[n]] : flat.tag_ends[flat.base[n] + 1]]
    view, k, opened, length, before = U(PATHS), 1, 0, 0, -1
    links = join(view, pieces, LINKS)
    for unit in range(order[0] + 1, order[-1]):
        if pieces.mark[tags[unit]] & IS_VERB:
            out[k] = join(join(join(view, pieces, VERB), pieces, stems[unit]), pieces, ending)
            k += 1
        link = pieces.mark[stems[unit]] & LINKING
        opened += (1 if link == OPENING else 0) - (1 if link == CLOSING else 0)
        if length < 10 and (link or before != 0):  # other words in a row count as one
            links = join(links, pieces, LINK + link)
            length += 1
        before = link
    out[0] = join(number(join(view, pieces, VERBS), min(k - 1, 4)), pieces, ending)
    out[k] = join(links, pieces, ending)
    out[k + 1] = join(number(join(view, pieces, OPEN), opened), pieces, ending)
    return k + 2


@helper()
def run_names(kind: int, count: int, pieces: Pieces, room: Scratch, ending: int, k: int) -> int:
    """Put the keys of runs of two, then three of `room.heads` into `room.keys` from k on; return the next index."""
    for size in range(2, 4):
        for a in range(count - size + 1):
            key = join(U(PATHS), pieces, kind)
            for b in range(a, a + size):
                key = key if b == a else join(key, pieces, SPACE)
                key = key * room.powers[b] + room.heads[b]
            room.keys[k] = join(key, pieces, ending)
            k += 1
    return k


@helper()
def act_names(types: Places, pieces: Pieces, room: Scratch, ending: int, k: int) -> int:
    """Write keys of runs of VP and PP heads with BEGIN and END, from index k; return the next; room.heads changes."""
    acts = 0
    for a in range(len(types)):
        if pieces.mark[types[a]] & ACTING:
            room.heads[acts], room.powers[acts] = room.heads[a], room.powers[a]
            acts += 1
    for a in range(acts, 0, -1):
        room.heads[a], room.powers[a] = room.heads[a - 1], room.powers[a - 1]
    room.heads[0], room.powers[0] = pieces.key[BEGIN], pieces.power[BEGIN]
    room.heads[acts + 1], room.powers[acts + 1] = pieces.key[END], pieces.power[END]
    return run_names(ACTS, acts + 2, pieces, room, ending, k)


@helper()
def around_names(flat: FlatFrames, n: int, pieces: Pieces, out: Keys, k: int, start: int, stop: int) -> int:
    """Put the keys of heads around segments start to stop, as of `paths._around`, in `out` from k; return next k."""
    base, order, ending, view = flat.base[n], flat.order[n], flat.ending[n], U(PATHS)
    stems = flat.stems[flat.stem_ends[n] : flat.stem_ends[n + 1]]
    tags = flat.tags[flat.tag_ends[base] : flat.tag_ends[base + 1]]
    ends = flat.ends[flat.part_ends[base] : flat.part_ends[base + 1]]
    for part in range(max(start - 3, 0), start):
        out[k] = join(join(join(view, pieces, HEAD_BEFORE), pieces, stems[ends[part] - 1]), pieces, ending)
        k += 1
    for size in range(1, min(start, 2) + 1):
        key = join(view, pieces, JOINS)
        for part in range(start - size, start):
            key = join(join(key, pieces, SPACE) if part > start - size else key, pieces, stems[ends[part] - 1])
        key, joined = join(key, pieces, COLON), 0
        for unit in range(order[0], order[-1]):
            if joined < 3 and pieces.mark[tags[unit]] & IS_JOINING:
                key = join(join(key, pieces, SPACE) if joined else key, pieces, stems[unit])
                joined += 1
        out[k] = join(key, pieces, ending)
        k += 1
    for part in range(stop + 1, min(stop + 3, len(ends))):
        out[k] = join(join(join(view, pieces, HEAD_AFTER), pieces, stems[ends[part] - 1]), pieces, ending)
        k += 1
    return k


@helper()
def head_names(flat: FlatFrames, n: int, pieces: Pieces, room: Scratch, k: int) -> int:
    """Put candidate n's keys of `paths._heads` into `room.keys` from index k on; return the next index."""
    base, order, ending, view = flat.base[n], flat.order[n], flat.ending[n], U(PATHS)
    stems = flat.stems[flat.stem_ends[n] : flat.stem_ends[n + 1]]
    types = flat.types[flat.part_ends[base] : flat.part_ends[base + 1]]
    ends = flat.ends[flat.part_ends[base] : flat.part_ends[base + 1]]
    out, start = room.keys, 0
    while ends[start] <= order[0]:
        start += 1
    stop = start
    while ends[stop] <= order[-1]:
        stop += 1
    count = stop + 1 - start
    for a in range(count):
        head = stems[ends[start + a] - 1]
        room.heads[a], room.powers[a] = pieces.key[head], pieces.power[head]
    for side in range(2):  # the argument modifies the head
        a, place = (0, order[0]) if side == 0 else (count - 1, order[-1])
        begin = ends[start + a - 1] if start + a else 0
        if ends[start + a] - 1 != place and begin <= place < ends[start + a]:
            modifier = join(pieces.key[stems[place]], pieces, PLUS)
            room.heads[a] = modifier * room.powers[a] + room.heads[a]
            room.powers[a] *= pieces.power[stems[place]] * pieces.power[PLUS]
    key = join(view, pieces, TYPES)
    for a in range(min(count, 8)):
        key = join(join(key, pieces, DASH) if a else key, pieces, types[start + a])
    out[k] = join(key, pieces, ending)
    out[k + 1] = join(number(join(view, pieces, SEGMENTS), min(stop - start, 10)), pieces, ending)
    k += 2
    for a in range(count):
        key = join(join(join(view, pieces, HEAD), pieces, types[start + a]), pieces, SPACE)
        out[k] = join(key * room.powers[a] + room.heads[a], pieces, ending)
        k += 1
    k = run_names(HEADS, count, pieces, room, ending, k)
    k = act_names(types[start : stop + 1], pieces, room, ending, k)
    return around_names(flat, n, pieces, out, k, start, stop)


@helper()
def path_names(flat: FlatFrames, n: int, pieces: Pieces, room: Scratch) -> int:
    """Put candidate n's keys of `paths.features` into `room.keys` from index 0; return their number."""
    k = shape_names(flat, n, pieces, room.keys)
    k += between_names(flat, n, pieces, room.keys[k:])
    return head_names(flat, n, pieces, room, k)
