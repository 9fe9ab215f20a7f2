"""Shared by all decoders of sub-tags: the layout of states, tag posteriors, and exact scores of tag sequences.

N tokens in B sentences, Z states, S tags.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from chaffinch.errors import DataError, InfeasibleError
from chaffinch.kernels import forward_backward, log_partition
from chaffinch.kernels.lattice import Active, Batch, Bools, Floats, Ints

TILE = 4_000  # tokens of one forward-backward: bounds the memory for states
PAIR_CELLS = 3_000_000  # cells of tag-pair tables in memory at once: 24 MB for each table of doubles


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """The tags of every token, and the probability of each sentence's tags given its words."""

    tags: Ints  # (N,)
    chance: Floats  # (B,) p(tags | words), exact; NaN where it was not computed


@dataclass(frozen=True, slots=True, eq=False)
class StateLayout:
    """The position of each tag's states: those of tag s are bounds[s] to bounds[s + 1]."""

    tags: Ints  # (Z,)
    bounds: Ints  # (S+1,)
    moves: Bools  # (S+2, S) which tag may follow which; row S: may begin, row S+1: may end
    S: int

    @classmethod
    def of(cls, batch: Batch, tags: Ints) -> StateLayout:
        """Return the layout of a batch's states; DataError unless tags rise without gaps and the batch is dense."""
        tags = np.ascontiguousarray(tags, dtype=np.int64)
        steps = np.diff(tags, prepend=-1, append=tags[-1:] + 1)
        if tags.shape != batch.start.shape or steps[0] != 1 or not 0 <= steps.min() <= steps.max() <= 1:
            raise DataError(f"tags must rise from 0 without a gap, one for each of {len(batch.start)} states")
        if batch.active is not None or batch.trans.ndim != 2:
            raise DataError("decoding needs a dense emit and one trans for all tokens")
        bounds = np.flatnonzero(steps)
        moves = np.logical_or.reduceat(batch.trans > -np.inf, bounds[:-1], axis=0)
        moves = np.concatenate([moves, np.stack([batch.start, batch.end]) > -np.inf])
        return cls(tags, bounds, np.logical_or.reduceat(moves, bounds[:-1], axis=1), len(bounds) - 1)

    def sums(self, states: Floats) -> Floats:
        """Return (N, S) the values of states (N, Z), summed by tag, each row independently of the others."""
        out, sizes = np.empty((len(states), self.S)), np.diff(self.bounds)
        edges = np.flatnonzero(np.diff(sizes, prepend=0, append=0))
        for first, end in pairwise(edges):
            size, begin, stop = int(sizes[first]), self.bounds[first], self.bounds[end]
            if end - first == 1:
                out[:, first] = states[:, begin:stop].sum(axis=1)
                continue
            total = states[:, begin:stop:size].copy()
            for k in range(1, size):
                total += states[:, begin + k : stop : size]
            out[:, first:end] = total
        return out


@dataclass(frozen=True, slots=True, eq=False)
class TagPosterior:
    """A batch with the tag posteriors and partition sums of one forward-backward pass."""

    batch: Batch
    layout: StateLayout
    chances: Floats  # (N, S) p1
    log_z: Floats  # (B,)

    @classmethod
    def of(cls, batch: Batch, layout: StateLayout) -> TagPosterior:
        """Return tag probabilities and log Z of a batch by forward-backward; InfeasibleError without a path."""
        known = cls(batch, layout, np.empty((len(batch.emit), layout.S)), np.empty(len(batch)))
        for some in chunks(np.arange(len(batch)), batch.bounds, TILE):
            lo, hi = batch.bounds[some[0]], batch.bounds[some[-1] + 1]
            bounds = batch.bounds[some[0] : some[-1] + 2] - lo
            try:
                tile = Batch(batch.start, batch.trans, batch.emit[lo:hi], batch.end, bounds)
                post = forward_backward(tile, pairs=False)
            except InfeasibleError:
                log_partition(batch)  # names the sentence by its number in the batch
                raise
            known.chances[lo:hi], known.log_z[some] = layout.sums(post.states), post.log_z
        return known

    def chance(self, sentences: Ints, tags: Ints) -> Floats:
        """Return (n,) p(tags | words) of these sentences, given the tags of all their tokens end to end."""
        scores = np.zeros(len(sentences))
        tokens, bounds = tokens_of(self.batch.bounds, sentences)
        for some in chunks(np.arange(len(sentences)), bounds, TILE):
            lo, hi = bounds[some[0]], bounds[some[-1] + 1]
            inner = bounds[some[0] : some[-1] + 2] - lo
            scores[some] = scores_of(self.batch, self.layout, tokens[lo:hi], tags[lo:hi], inner)
        return np.minimum(np.exp(scores - self.log_z[sentences]), 1.0)

    def fill_chances(self, found: Decoded) -> Decoded:
        """Return the same tags with every unknown chance (NaN) computed."""
        chance, left = found.chance.copy(), np.flatnonzero(np.isnan(found.chance))
        chance[left] = self.chance(left, found.tags[tokens_of(self.batch.bounds, left)[0]])
        return Decoded(found.tags, chance)


def scores_of(batch: Batch, layout: StateLayout, tokens: Ints, tags: Ints, bounds: Ints) -> Floats:
    """Return (n,) log p(tags, words) of sequences, states summed out; -inf if impossible; `bounds` cut the tokens."""
    broken = find_invalid(layout.moves, tags, bounds)
    if broken.any():
        out = np.full(len(broken), -np.inf)
        places, inner = tokens_of(bounds, np.flatnonzero(~broken))
        out[~broken] = scores_of(batch, layout, tokens[places], tags[places], inner)
        return out
    active = Active(np.arange(len(layout.tags)), layout.bounds, tags)
    emit = batch.emit[np.repeat(tokens, active.widths), active.cells]
    try:
        return log_partition(Batch(batch.start, batch.trans, emit, batch.end, bounds, active))
    except InfeasibleError:
        if len(bounds) == 2:
            return np.array([-np.inf])
    half = len(bounds) // 2
    cut = bounds[half]
    left = scores_of(batch, layout, tokens[:cut], tags[:cut], bounds[: half + 1])
    return np.concatenate([left, scores_of(batch, layout, tokens[cut:], tags[cut:], bounds[half:] - cut)])


def find_invalid(follows: Bools, tags: Ints, bounds: Ints) -> Bools:
    """Return (B,) which sequences break `follows` (S+2, S): who may follow whom, begin (row S), end (row S+1)."""
    S, first, last = follows.shape[1], bounds[:-1][np.diff(bounds) > 0], bounds[1:][np.diff(bounds) > 0] - 1
    before = np.concatenate([[S], tags])[:-1]
    before[first] = S
    wrong = ~follows[before, tags]
    wrong[last] |= ~follows[S + 1, tags[last]]
    return by_sentence(wrong.astype(np.float64), bounds) > 0


def by_sentence(values: Floats, bounds: Ints) -> Floats:
    """Return (B,) the sum of token values over each sentence."""
    lengths = np.diff(bounds)
    return np.asarray(np.bincount(np.repeat(np.arange(len(lengths)), lengths), values, len(lengths)), np.float64)


def tokens_of(bounds: Ints, sentences: Ints) -> tuple[Ints, Ints]:
    """Return (the tokens of some sentences end to end, the bounds of these sentences among them, from 0)."""
    lengths = np.diff(bounds)[sentences]
    inner = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return np.repeat(bounds[sentences] - inner[:-1], lengths) + np.arange(inner[-1]), inner


def chunks(sentences: Ints, bounds: Ints, tokens: int) -> Iterator[Ints]:
    """Yield the sentences, in order, in groups of at most `tokens` tokens, or of one longer sentence."""
    before, begin = np.concatenate([[0], np.cumsum(np.diff(bounds)[sentences])]), 0
    while begin < len(sentences):
        end = max(int(np.searchsorted(before, before[begin] + tokens, side="right")) - 1, begin + 1)
        yield sentences[begin:end]
        begin = end


def tokens_per_chunk(S: int) -> int:
    """Return for how many tokens tag pairs (S, S) may be in memory at once, at least 1."""
    return max(PAIR_CELLS // S**2, 1)
