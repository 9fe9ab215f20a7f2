"""Starting points of sub-tags, and how they change during training: splits, merges, reseeding of empty ones.

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
Passes = Callable[[Globals, Counts, int], tuple[Globals, Counts]]  # runs that number of passes

SURE = 0.8  # share of a token that goes to its cluster at the start; the rest is spread at random
DIMENSIONS = 16  # of the random vector of a symbol; more separate symbols better and cluster more slowly
SAMPLE = 20_000  # most tokens of a list of states that k-means runs on; more is slower
NOISE = 0.01  # largest relative change of the counts of a split's halves, so that they can move apart
PROPORTIONAL = 0.98  # cosine of what two sub-tags show and lead to, above which they may be merged
FEW = 1.0  # a sub-tag with fewer expected tokens is empty, and is seeded again
WORST = 0.02  # share of a tag's tokens, those explained worst, that seed an empty sub-tag


def uniform_weights(parts: Sequence[Sentences]) -> list[Floats]:
    """Return weights of cells (M,) per part, the same for all states that a token may take."""
    return [_normalise(part, np.ones(int(part.active.at[-1]))) for part in parts]


def random_weights(parts: Sequence[Sentences], rng: Rng) -> list[Floats]:
    """Return weights of cells (M,) per part, drawn at random and summing to 1 at each token."""
    weights = []
    for part in parts:
        drawn = rng.gamma(1.0, size=int(part.active.at[-1])) + 1e-9
        weights.append(_normalise(part, drawn))
    return weights


def context_weights(parts: Sequence[Sentences], rng: Rng) -> list[Floats]:
    """Return (M,) weights of each part's cells: mostly on the k-means cluster of the context, plus noise.

    A token's context is its first symbol, and the first symbols and lists of states of its neighbours, each as a
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
        points = everything[which == tag]
        if widths[tag] > 1 and len(points) > widths[tag]:
            sample = points[rng.permutation(len(points))[:SAMPLE]]
            with warnings.catch_warnings():  # contexts that are all alike leave clusters empty; `tidy` fills them
                warnings.simplefilter("ignore", UserWarning)
                centres[tag], _ = kmeans2(sample, int(widths[tag]), iter=10, minit="points", seed=rng)
    for part, points in zip(parts, vectors, strict=True):
        noise = _normalise(part, rng.gamma(1.0, size=int(part.active.at[-1])) + 1e-9)
        weights = (1.0 - SURE) * noise
        for tag, means in centres.items():
            tokens = np.flatnonzero(part.active.which == tag)
            if len(tokens):
                weights[part.active.at[tokens] + vq(points[tokens], means)[0]] += SURE
        found.append(_normalise(part, weights))
    return found


def count_independent(part: Sentences, weights: Floats, q: Globals) -> Counts:
    """Return a part's expected counts if its tokens are independent with these cell weights (M,); no entropy."""
    active = part.active
    dense = active.dense(weights, q.shape.Z).astype(np.float32)
    first = np.zeros(len(dense), np.bool_)
    full = np.diff(part.bounds) > 0
    first[part.bounds[:-1][full]] = True
    pairs = dense[:-1][~first[1:]].T @ dense[1:][~first[1:]]
    ends = dense[part.bounds[1:][full] - 1].sum(axis=0)
    tables = vb.expected_logs(q)
    emit = q.emissions.counts(tables.emit, part.known, active, weights)
    start = dense[first].sum(axis=0)
    return Counts(start.astype(float), pairs.astype(float), ends.astype(float), emit, 0.0)


def split_subtags(q: Globals, counts: Counts, targets: Ints, rng: Rng) -> tuple[Globals, Counts, Ints]:
    """Split in two the sub-tags of tags with fewer than `targets` (S,); return the prior, shared counts, parents."""
    shape = q.shape
    sizes = np.bincount(shape.tag_of, minlength=shape.S)
    copies = np.where(sizes < targets, 2, 1)[shape.tag_of]
    parent = np.repeat(np.arange(shape.Z), copies)
    grown = prior_for_shape(q, Shape(shape.tag_of[parent], shape.follows, shape.occurs))
    return grown, _share_counts(counts, parent, copies, rng), parent


def _share_counts(counts: Counts, parent: Ints, copies: Ints, rng: Rng) -> Counts:
    """Return the counts of states divided among their copies, each with a little noise."""
    share = 1.0 / copies[parent]

    def spread(values: Floats) -> Floats:
        """Return the parents' counts shared among their children, with random noise."""
        noise = 1.0 + NOISE * rng.uniform(-1.0, 1.0, (len(values), len(parent)))
        return np.asarray(values[:, parent] * share * noise)

    pairs = spread(counts.pairs)[parent] * share[:, None]
    start, end = spread(counts.start[None])[0], spread(counts.end[None])[0]
    return Counts(start, pairs, end, tuple(spread(table) for table in counts.emit), counts.entropy)


def prior_for_shape(q: Globals, shape: Shape) -> Globals:
    """Return the prior over the states of `shape`, with the concentrations of q."""
    return vb.prior_globals(shape, q.priors, q.emissions)


def merge_states(q: Globals, counts: Counts, parent: Ints) -> tuple[Globals, Counts]:
    """Merge the states of each `parent` (numbers from 0, no gaps); return the prior over parents and summed counts."""
    Z = int(parent.max()) + 1
    to = np.zeros((len(parent), Z))
    to[np.arange(len(parent)), parent] = 1.0
    tags = np.zeros(Z, np.int64)
    tags[parent] = q.shape.tag_of
    shape = Shape(tags, q.shape.follows, q.shape.occurs)
    emit = tuple(table @ to for table in counts.emit)
    merged = Counts(counts.start @ to, to.T @ counts.pairs @ to, counts.end @ to, emit, counts.entropy)
    return prior_for_shape(q, shape), merged


def split_gains(q: Globals, counts: Counts, parent: Ints) -> Floats:
    """Return (parents,) each split's gain: log evidence of halves, and of choosing one, minus the merged state's."""
    alone = _log_evidence(q, counts)
    merged_q, merged = merge_states(q, counts, parent)
    together = _log_evidence(merged_q, merged)
    into = _incoming(q, counts), _incoming(merged_q, merged)
    return np.asarray(np.bincount(parent, alone + into[0]) - together - into[1])


def _log_evidence(q: Globals, counts: Counts) -> Floats:
    """Return the log evidence of each state's outgoing rows and symbols under the priors (Z,)."""
    out = sum((_polya(table, q.emissions.alpha) * q.emissions.temper for table in counts.emit), np.zeros(q.shape.Z))
    tags = np.hstack([np.add.reduceat(counts.pairs, q.shape.firsts[:-1], axis=1), counts.end[:, None]])
    return np.asarray(out + _polya(tags.T, q.priors.alpha_T))


def _polya(counts: Floats, alpha: float) -> Floats:
    """Return the log evidence of columns of counts (V, Z) under a symmetric Dirichlet (Z,)."""
    V, total = len(counts), counts.sum(axis=0)
    cells = np.where(counts > 0, gammaln(np.maximum(counts, 1e-12) + alpha) - gammaln(alpha), 0.0).sum(axis=0)
    return np.asarray(cells + gammaln(V * alpha) - gammaln(V * alpha + total))


def _incoming(q: Globals, counts: Counts) -> Floats:
    """Return (Z,) each sub-tag's mass times the log of its share of the tag's mass."""
    mass = counts.mass
    tag = np.bincount(q.shape.tag_of, mass, q.shape.S)[q.shape.tag_of]
    share = np.maximum(mass, 1e-12) / np.maximum(tag, 1e-12)
    return np.asarray(mass * np.log(share))


def grow(q: Globals, counts: Counts, targets: Ints, passes: Passes, rng: Rng) -> tuple[Globals, Counts]:
    """Return q and counts grown to `targets` (S,) sub-tags per tag: split all, train, keep the better half; repeat."""
    while (np.bincount(q.shape.tag_of, minlength=q.shape.S) < targets).any():
        before = np.bincount(q.shape.tag_of, minlength=q.shape.S)
        wide, shared, parent = split_subtags(q, counts, targets, rng)
        wide, learnt = passes(wide, shared, 5)
        gains = split_gains(wide, learnt, parent)
        kept = np.minimum(before + (before + 1) // 2, targets) - before  # splits kept per tag
        chosen = np.zeros(len(gains), np.bool_)
        for tag in np.flatnonzero(kept > 0):
            states = np.flatnonzero(q.shape.tag_of == tag)
            chosen[states[np.argsort(-gains[states], kind="stable")[: kept[tag]]]] = True
        first = np.append(True, parent[1:] != parent[:-1])
        label = np.cumsum(first | chosen[parent]) - 1
        narrow, merged = merge_states(wide, learnt, label)
        q, counts = passes(narrow, merged, 1)
    return q, counts


def tidy(q: Globals, counts: Counts, parts: Sequence[Sentences], passes: Passes) -> tuple[Globals, Counts, bool]:
    """Merge the two most similar sub-tags if the bound rises, seed empty ones; return q, counts, whether changed.

    The last value returned tells whether anything changed.
    """
    changed = False
    pair = _most_similar_pair(q, counts)
    if pair is not None:
        other, learnt = passes(q, _move_counts(counts, *pair), 1)
        if vb.bound(other, learnt) > vb.bound(q, counts):
            q, counts, changed = other, learnt, True
    sizes = np.bincount(q.shape.tag_of, minlength=q.shape.S)
    dead = np.flatnonzero((counts.mass < FEW) & (sizes[q.shape.tag_of] > 1))
    seeded = _seed_empty(q, counts, parts, dead)
    return q, seeded, changed or seeded is not counts


def _most_similar_pair(q: Globals, counts: Counts) -> tuple[int, int] | None:
    """Return the two sub-tags of one tag with the most proportional counts; None if no pair is close enough."""
    rows = np.vstack([*counts.emit, counts.pairs.T, counts.pairs])
    unit = rows / np.maximum(np.linalg.norm(rows, axis=0), 1e-12)
    best = (PROPORTIONAL, None)
    for block in q.shape.blocks():
        alike = np.triu(unit[:, block].T @ unit[:, block], 1)
        if alike.size and alike.max() > best[0]:
            a, b = np.unravel_index(int(alike.argmax()), alike.shape)
            best = (float(alike.max()), (block.start + int(a), block.start + int(b)))  # type: ignore[assignment]
    return best[1]


def _move_counts(counts: Counts, to: int, source: int) -> Counts:
    """Return the counts with those of state `source` moved to state `to`."""
    keep = np.eye(len(counts.start))
    keep[source, source], keep[source, to] = 0.0, 1.0
    emit = tuple(table @ keep for table in counts.emit)
    return Counts(counts.start @ keep, keep.T @ counts.pairs @ keep, counts.end @ keep, emit, counts.entropy)


def _seed_empty(q: Globals, counts: Counts, parts: Sequence[Sentences], dead: Ints) -> Counts:
    """Return counts in which each empty sub-tag has tokens that the others explain worst; the same if none gets any."""
    logs = vb.expected_logs(q).emit
    emit = [table.copy() for table in counts.emit]
    pairs, start, end = counts.pairs.copy(), counts.start.copy(), counts.end.copy()
    changed = False
    for state in dead.tolist():
        tag = q.shape.tag_of[state]
        rank = int(np.count_nonzero((dead < state) & (q.shape.tag_of[dead] == tag)))
        block = q.shape.blocks()[tag]
        others = np.setdiff1d(np.arange(block.start, block.stop), dead)
        if not len(others):
            continue
        symbols = np.concatenate([part.known[part.active.which == tag] for part in parts])
        if not len(symbols):
            continue
        best = q.emissions.dense(tuple(table[:, others] for table in logs), symbols).max(axis=1)
        size = max(1, int(WORST * len(symbols)))
        worst = symbols[np.argsort(best, kind="stable")[rank * size : (rank + 1) * size]]
        if not len(worst):
            continue
        changed = True
        for kind in range(min(len(emit), worst.shape[1])):
            emit[kind][:, state] = np.bincount(worst[:, kind], minlength=len(emit[kind]))
        share = len(worst) / max(float(counts.mass[others].sum()), 1.0)
        pairs[state] = share * pairs[others].sum(axis=0)
        pairs[:, state] = share * pairs[:, others].sum(axis=1)
        start[state], end[state] = share * start[others].sum(), share * end[others].sum()
    return Counts(start, pairs, end, tuple(emit), counts.entropy) if changed else counts


def _normalise(part: Sentences, weights: Floats) -> Floats:
    """Return weights of cells (M,) scaled to sum to 1 at each token."""
    widths = part.active.widths
    total = np.add.reduceat(weights, part.active.at[:-1]) if len(widths) else np.zeros(0)
    return np.asarray(weights / np.repeat(total, widths))


def _contexts(part: Sentences, table: NDArray[np.float32], lists: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return (N, 5 * DIMENSIONS) a token's symbol vector and its neighbours' symbol and list vectors; 0 at ends."""
    N = len(part.known)
    word, tag = table[part.known[:, 0]], lists[part.active.which]
    first = np.zeros(N + 1, np.bool_)
    first[part.bounds] = True
    before, after = np.zeros((2, N, 2 * DIMENSIONS), np.float32)
    both = np.concatenate([word, tag], axis=1)
    before[1:], after[:-1] = both[:-1], both[1:]
    before[first[:-1]], after[first[1:]] = 0.0, 0.0
    return np.concatenate([word, before, after], axis=1)
