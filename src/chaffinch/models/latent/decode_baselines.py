"""Decoders of sub-tags without a projection search: per token, pooled tables, best path, best prefixes.

Z states, S tags, T tokens of one sentence.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from chaffinch.errors import ConfigError, DataError, InfeasibleError
from chaffinch.kernels import group, viterbi
from chaffinch.kernels.lattice import Batch, Bools, Ints, Lattice
from chaffinch.models.latent.layout import StateLayout, TagPosterior, chunks, find_invalid, tokens_of, tokens_per_chunk


def decode_posterior(known: TagPosterior, follows: Bools | None, cost_ratio: float) -> Ints:
    """Return the tag of most expected gain per token; where `follows` forbids it, the best valid ones; or DataError.

    A token's tag s is chosen over "outside" when cost_ratio * p1(s) > p1(0): where the two share the token, when
    p1(s) > 1 / (1 + cost_ratio). Only sentences whose likeliest tags may not follow one another need a Viterbi.
    """
    S, bounds = known.layout.S, known.batch.bounds
    gains = known.chances * np.where(np.arange(S) > 0, cost_ratio, 1.0)
    tags = np.asarray(gains.argmax(axis=1))
    if follows is None:
        return tags
    if follows.shape != (S + 2, S):
        raise DataError(f"follows must have shape {(S + 2, S)}, got {follows.shape}")
    mend = np.flatnonzero(find_invalid(follows, tags, bounds))
    tokens, inner = tokens_of(bounds, mend)
    moves = np.where(follows, 0.0, -np.inf)
    if len(mend):
        tags[tokens] = viterbi(Batch(moves[S], moves[:S], gains[tokens], moves[S + 1], inner)).states
    return tags


def decode_pooled(known: TagPosterior, words: Ints | None) -> Ints:
    """Return tags by a small HMM per sentence, its tables pooled over positions; ConfigError for bad `words`."""
    batch, S, tags = known.batch, known.layout.S, np.zeros(len(known.chances), np.int64)
    if words is None or words.shape != tags.shape:
        raise ConfigError(f"kl-pooled needs words, one whole number for each of {len(tags)} tokens")
    for some in chunks(np.arange(len(batch)), batch.bounds, tokens_per_chunk(S)):
        tokens, bounds = tokens_of(batch.bounds, some)
        part = Batch(batch.start, batch.trans, batch.emit[tokens], batch.end, bounds)
        by_tag = group(part, known.layout.tags)
        sentence = np.repeat(np.arange(len(some)), np.diff(bounds))
        pairs = np.zeros((len(some), S, S))
        np.add.at(pairs, sentence, by_tag.pairs)
        _, symbol = np.unique(np.stack([sentence, words[tokens]]), axis=1, return_inverse=True)
        seen, total = np.zeros((len(tokens), S)), np.zeros((len(some), S))
        np.add.at(seen, symbol, by_tag.states)
        np.add.at(total, sentence, by_tag.states)
        first = bounds[:-1][np.diff(bounds) > 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            emit = np.where(by_tag.states > 0, np.log(seen[symbol] / total[sentence]), -np.inf)
            emit[first] += np.log(by_tag.states[first])
            moves = np.where(pairs > 0, np.log(pairs / pairs.sum(axis=2, keepdims=True)), -np.inf)
        none = np.zeros(S)
        tags[tokens] = viterbi(Batch(none, moves[sentence], emit, none, bounds)).states
    return tags


def decode_paths(batch: Batch, layout: StateLayout, how: Literal["joint", "tag-viterbi"]) -> Ints:
    """Return tags of best state paths ("joint") or best prefixes ("tag-viterbi"); InfeasibleError without one."""
    if how == "joint":
        return np.asarray(layout.tags[viterbi(batch).states])
    try:
        return np.concatenate([np.zeros(0, np.int64), *(tag_viterbi(batch[i], layout) for i in range(len(batch)))])
    except InfeasibleError:
        viterbi(batch)  # names the sentence by its number in the batch
        raise


def tag_viterbi(lattice: Lattice, layout: StateLayout) -> Ints:
    """Return (T,) tags by Viterbi over tags, a best prefix kept per tag; if none can end, those of the best path.

    If none of the kept prefixes can be completed, return the tags of the best path of states.
    """
    if not len(lattice):
        return np.zeros(0, np.int64)
    starts, emit, sources = layout.bounds[:-1], lattice.emit.copy(), []
    emit[0] += lattice.start
    emit[-1] += lattice.end
    prefix = emit[0]  # (Z,) the forward vectors of all tags' prefixes, side by side
    for row in emit[1:]:
        steps = np.logaddexp.reduceat(prefix[:, None] + lattice.trans, starts, axis=0) + row  # (S, Z)
        source = np.logaddexp.reduceat(steps, starts, axis=1).argmax(axis=0)  # (S,)
        prefix = steps[source[layout.tags], np.arange(len(row))]
        sources.append(source)
    last = np.logaddexp.reduceat(prefix, starts)
    if last.max() == -np.inf:
        return np.asarray(layout.tags[viterbi(lattice).states])
    tags = [int(last.argmax())]
    for source in reversed(sources):
        tags.append(int(source[tags[-1]]))
    return np.array(tags[::-1])
