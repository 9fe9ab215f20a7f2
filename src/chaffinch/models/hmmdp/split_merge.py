"""Where sub-tags begin, and how they are kept alive: starts, splits, deletions, merges.

S tags, Z states, N tokens, V symbols of one kind.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.vq import kmeans2, vq
from scipy.special import gammaln

from chaffinch.kernels import Floats, Ints
from chaffinch.models.hmmdp import variational as vb
from chaffinch.models.hmmdp.variational import Counts, Globals, Sentences, Shape

Rng = np.random.Generator
Passes = Callable[[Globals, Counts, int], tuple[Globals, Counts]]  # so many more passes

SURE = 0.8  # of a token goes to its cluster at the start, the rest anywhere
DIMENSIONS = 16  # of the random vector of a symbol
SAMPLE = 20_000  # tokens of a tag that place its clusters
NOISE = 0.01  # by which halves of a split differ
PROPORTIONAL = 0.98  # cosine of what two sub-tags show and lead to, above which they may be merged
FEW = 1.0  # a sub-tag with fewer tokens is deleted
WORST = 0.02  # share of a tag's tokens that seed a sub-tag anew


def evenly(parts: Sequence[Sentences]) -> list[Floats]:
    """(M,) per part: weights of cells, the same for all states a token may take."""
    return [_normalised(part, np.ones(int(part.active.at[-1]))) for part in parts]


def by_chance(parts: Sequence[Sentences], rng: Rng) -> list[Floats]:
    """(M,) per part: weights of cells, drawn at random and summing to 1 at each token."""
    found = []
    for part in parts:
        drawn = rng.gamma(1.0, size=int(part.active.at[-1])) + 1e-9
        found.append(_normalised(part, drawn))
    return found


def by_context(parts: Sequence[Sentences], rng: Rng) -> list[Floats]:
    """(M,) per part: weights of cells from clusters of contexts, one k-means per list of states.

    A token's context is its own symbols, those of its neighbours and the lists of states of its neighbours, each as a
    random vector. `SURE` of a token goes to its cluster.
    """
    symbols = 1 + max(int(part.known[:, 0].max(initial=0)) for part in parts)
    table, lists = (
        rng.normal(size=(count, DIMENSIONS)).astype(np.float32) for count in (symbols, len(parts[0].active.bounds))
    )
    vectors = [_contexts(part, table, lists) for part in parts]
    found = []
    centres: dict[int, NDArray[np.float32]] = {}
    which = np.concatenate([part.active.which for part in parts])
    everything = np.concatenate(vectors)
    widths = np.diff(parts[0].active.bounds)
    for tag in np.unique(which).tolist():
        own = everything[which == tag]
        if widths[tag] > 1 and len(own) > widths[tag]:
            sample = own[rng.permutation(len(own))[:SAMPLE]]
            with warnings.catch_warnings():  # contexts that are all alike make clusters without any; tidying fills them
                warnings.simplefilter("ignore", UserWarning)
                centres[tag], _ = kmeans2(sample, int(widths[tag]), iter=10, minit="points", seed=rng)
    for part, own in zip(parts, vectors, strict=True):
        noise = _normalised(part, rng.gamma(1.0, size=int(part.active.at[-1])) + 1e-9)
        weights = (1.0 - SURE) * noise
        for tag, places in centres.items():
            tokens = np.flatnonzero(part.active.which == tag)
            if len(tokens):
                weights[part.active.at[tokens] + vq(own[tokens], places)[0]] += SURE
        found.append(_normalised(part, weights))
    return found


def counted(part: Sentences, weights: Floats, q: Globals) -> Counts:
    """The counts of independent tokens with those weights (M,) of their cells."""
    active = part.active
    dense = active.dense(weights, q.shape.Z).astype(np.float32)
    first = np.zeros(len(dense), np.bool_)
    full = np.diff(part.bounds) > 0
    first[part.bounds[:-1][full]] = True
    pairs = dense[:-1][~first[1:]].T @ dense[1:][~first[1:]]
    ends = dense[part.bounds[1:][full] - 1].sum(axis=0)
    tables = vb.expected(q)
    emit = q.emissions.counts(tables.emit, part.known, active, weights)
    start = dense[first].sum(axis=0)
    return Counts(start.astype(float), pairs.astype(float), ends.astype(float), emit, 0.0)


def doubled(q: Globals, counts: Counts, targets: Ints, rng: Rng) -> tuple[Globals, Counts, Ints]:
    """Every sub-tag of a tag that has not all of its `targets` (S,) in two halves; and the parent of each state."""
    shape = q.shape
    sizes = np.bincount(shape.tag_of, minlength=shape.S)
    copies = np.where(sizes < targets, 2, 1)[shape.tag_of]
    parent = np.repeat(np.arange(shape.Z), copies)
    grown = replace_shape(q, Shape(shape.tag_of[parent], shape.follows, shape.occurs))
    return grown, _shared(counts, parent, copies, rng), parent


def _shared(counts: Counts, parent: Ints, copies: Ints, rng: Rng) -> Counts:
    """The counts of states handed on to their copies, each a little different."""
    share = 1.0 / copies[parent]

    def spread(values: Floats) -> Floats:
        noise = 1.0 + NOISE * rng.uniform(-1.0, 1.0, (len(values), len(parent)))
        return np.asarray(values[:, parent] * share * noise)

    pairs = spread(counts.pairs)[parent] * share[:, None]
    start, end = spread(counts.start[None])[0], spread(counts.end[None])[0]
    return Counts(start, pairs, end, tuple(spread(own) for own in counts.emit), counts.entropy)


def replace_shape(q: Globals, shape: Shape) -> Globals:
    """The prior over other states, with the concentrations of q."""
    return vb.initial(shape, q.priors, q.emissions)


def joined(q: Globals, counts: Counts, parent: Ints) -> tuple[Globals, Counts]:
    """States with one parent as one state again; parents are numbered from 0 without gaps."""
    Z = int(parent.max()) + 1
    to = np.zeros((len(parent), Z))
    to[np.arange(len(parent)), parent] = 1.0
    tags = np.zeros(Z, np.int64)
    tags[parent] = q.shape.tag_of
    shape = Shape(tags, q.shape.follows, q.shape.occurs)
    emit = tuple(own @ to for own in counts.emit)
    merged = Counts(counts.start @ to, to.T @ counts.pairs @ to, counts.end @ to, emit, counts.entropy)
    return replace_shape(q, shape), merged


def split_gains(q: Globals, counts: Counts, parent: Ints) -> Floats:
    """(parents,) what each split is worth: log evidence of what its halves show and lead to, apart less together."""
    alone = _evidence(q, counts)
    merged_q, merged = joined(q, counts, parent)
    together = _evidence(merged_q, merged)
    into = _incoming(q, counts), _incoming(merged_q, merged)
    return np.asarray(np.bincount(parent, alone + into[0]) - together - into[1])


def _evidence(q: Globals, counts: Counts) -> Floats:
    """(Z,) log evidence of each state's outgoing rows and of its symbols under the priors."""
    out = sum((_polya(own, q.emissions.alpha) * q.emissions.temper for own in counts.emit), np.zeros(q.shape.Z))
    tags = np.hstack([np.add.reduceat(counts.pairs, q.shape.firsts[:-1], axis=1), counts.end[:, None]])
    return np.asarray(out + _polya(tags.T, q.priors.alpha_T))


def _polya(counts: Floats, alpha: float) -> Floats:
    """(Z,) log evidence of columns of counts (V, Z) under a symmetric Dirichlet."""
    V, total = len(counts), counts.sum(axis=0)
    own = np.where(counts > 0, gammaln(np.maximum(counts, 1e-12) + alpha) - gammaln(alpha), 0.0).sum(axis=0)
    return np.asarray(own + gammaln(V * alpha) - gammaln(V * alpha + total))


def _incoming(q: Globals, counts: Counts) -> Floats:
    """(Z,) what it costs to say which sub-tag comes: log share of its tag, for every token."""
    mass = counts.mass
    tag = np.bincount(q.shape.tag_of, mass, q.shape.S)[q.shape.tag_of]
    share = np.maximum(mass, 1e-12) / np.maximum(tag, 1e-12)
    return np.asarray(mass * np.log(share))


def grow(q: Globals, counts: Counts, targets: Ints, passes: Passes, rng: Rng) -> tuple[Globals, Counts]:
    """From one sub-tag per tag to `targets` (S,): split all, learn a little, keep the better half of the splits."""
    while (np.bincount(q.shape.tag_of, minlength=q.shape.S) < targets).any():
        before = np.bincount(q.shape.tag_of, minlength=q.shape.S)
        wide, shared, parent = doubled(q, counts, targets, rng)
        wide, learnt = passes(wide, shared, 5)
        gains = split_gains(wide, learnt, parent)
        kept = np.minimum(before + (before + 1) // 2, targets) - before  # splits kept per tag
        chosen = np.zeros(len(gains), np.bool_)
        for tag in np.flatnonzero(kept > 0):
            own = np.flatnonzero(q.shape.tag_of == tag)
            chosen[own[np.argsort(-gains[own], kind="stable")[: kept[tag]]]] = True
        first = np.append(True, parent[1:] != parent[:-1])
        label = np.cumsum(first | chosen[parent]) - 1
        narrow, merged = joined(wide, learnt, label)
        q, counts = passes(narrow, merged, 1)
    return q, counts


def tidy(q: Globals, counts: Counts, parts: Sequence[Sentences], passes: Passes) -> tuple[Globals, Counts, bool]:
    """Sub-tags that are alive: the most alike two of a tag merged if the bound rises, empty ones seeded anew.

    Says whether anything changed.
    """
    changed = False
    pair = _alike(q, counts)
    if pair is not None:
        other, learnt = passes(q, _moved(counts, *pair), 1)
        if vb.bound(other, learnt) > vb.bound(q, counts):
            q, counts, changed = other, learnt, True
    sizes = np.bincount(q.shape.tag_of, minlength=q.shape.S)
    dead = np.flatnonzero((counts.mass < FEW) & (sizes[q.shape.tag_of] > 1))
    seeded = _seeded(q, counts, parts, dead)
    return q, seeded, changed or seeded is not counts


def _alike(q: Globals, counts: Counts) -> tuple[int, int] | None:
    """The two sub-tags of one tag whose rows are most nearly proportional, if they are."""
    rows = np.vstack([*counts.emit, counts.pairs.T, counts.pairs])
    unit = rows / np.maximum(np.linalg.norm(rows, axis=0), 1e-12)
    best = (PROPORTIONAL, None)
    for block in q.shape.blocks():
        alike = np.triu(unit[:, block].T @ unit[:, block], 1)
        if alike.size and alike.max() > best[0]:
            a, b = np.unravel_index(int(alike.argmax()), alike.shape)
            best = (float(alike.max()), (block.start + int(a), block.start + int(b)))  # type: ignore[assignment]
    return best[1]


def _moved(counts: Counts, to: int, source: int) -> Counts:
    """All that one state has given to another."""
    keep = np.eye(len(counts.start))
    keep[source, source], keep[source, to] = 0.0, 1.0
    emit = tuple(own @ keep for own in counts.emit)
    return Counts(counts.start @ keep, keep.T @ counts.pairs @ keep, counts.end @ keep, emit, counts.entropy)


def _seeded(q: Globals, counts: Counts, parts: Sequence[Sentences], dead: Ints) -> Counts:
    """Counts in which empty sub-tags show the symbols that their tags' other sub-tags show worst, each its own."""
    logs = vb.expected(q).emit
    emit = [own.copy() for own in counts.emit]
    pairs, start, end = counts.pairs.copy(), counts.start.copy(), counts.end.copy()
    found = False
    for state in dead.tolist():
        tag = q.shape.tag_of[state]
        rank = int(np.count_nonzero((dead < state) & (q.shape.tag_of[dead] == tag)))
        block = q.shape.blocks()[tag]
        others = np.setdiff1d(np.arange(block.start, block.stop), dead)
        if not len(others):
            continue
        own = np.concatenate([part.known[part.active.which == tag] for part in parts])
        if not len(own):
            continue
        best = q.emissions.dense(tuple(table[:, others] for table in logs), own).max(axis=1)
        size = max(1, int(WORST * len(own)))
        worst = own[np.argsort(best, kind="stable")[rank * size : (rank + 1) * size]]
        if not len(worst):
            continue
        found = True
        for kind in range(min(len(emit), worst.shape[1])):
            emit[kind][:, state] = np.bincount(worst[:, kind], minlength=len(emit[kind]))
        share = len(worst) / max(float(counts.mass[others].sum()), 1.0)
        pairs[state] = share * pairs[others].sum(axis=0)
        pairs[:, state] = share * pairs[:, others].sum(axis=1)
        start[state], end[state] = share * start[others].sum(), share * end[others].sum()
    return Counts(start, pairs, end, tuple(emit), counts.entropy) if found else counts


def _normalised(part: Sentences, weights: Floats) -> Floats:
    widths = part.active.widths
    total = np.add.reduceat(weights, part.active.at[:-1]) if len(widths) else np.zeros(0)
    return np.asarray(weights / np.repeat(total, widths))


def _contexts(part: Sentences, table: NDArray[np.float32], lists: NDArray[np.float32]) -> NDArray[np.float32]:
    """(N, 5 * DIMENSIONS) vectors of a token's first symbol, and of its neighbours' with their lists of states."""
    N = len(part.known)
    own, tag = table[part.known[:, 0]], lists[part.active.which]
    first = np.zeros(N + 1, np.bool_)
    first[part.bounds] = True
    before, after = np.zeros((2, N, 2 * DIMENSIONS), np.float32)
    both = np.concatenate([own, tag], axis=1)
    before[1:], after[:-1] = both[:-1], both[1:]
    before[first[:-1]], after[first[1:]] = 0.0, 0.0
    return np.concatenate([own, before, after], axis=1)
