"""Decoding tags when each tag has several latent sub-tags: the states are summed out, tags are maximised over.

N tokens in B sentences, Z states, S tags, of which tag 0 is "outside"; W is the largest number of tags alive at a
token. Finding the best tags is NP-hard in general; here a chain over tags alone approximates the posterior, and its
best sequences are scored exactly. Most sentences need none of that: if the sequence of the likeliest tags has more than
half of the posterior, no other sequence can beat it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Literal, get_args

import numpy as np

from chaffinch.checks import check_choice
from chaffinch.errors import ConfigError
from chaffinch.kernels import best_paths, group, viterbi
from chaffinch.kernels.lattice import Active, Batch, Bools, Floats, Ints
from chaffinch.models.latent.decode_baselines import decode_paths, decode_pooled, decode_posterior, tag_viterbi
from chaffinch.models.latent.layout import (
    Decoded,
    StateLayout,
    TagPosterior,
    by_sentence,
    chunks,
    scores_of,
    tokens_of,
    tokens_per_chunk,
)

__all__ = ["DECODERS", "Decoded", "Decoder", "decode", "tag_chances", "tag_posterior"]

Decoder = Literal["kl+rerank", "kl", "kl-pooled", "joint", "tag-viterbi", "posterior", "brute"]
DECODERS: tuple[Decoder, ...] = get_args(Decoder)

SURE = 0.5  # a sentence whose tokens' error probabilities sum to less than this is decoded: the union bound
SLACK = 1e-6  # tolerance of that bound; marginals are exact to 1e-9 each
MARGIN = 1e-3  # bounds that prune tags are loosened by this share, so that rounding prunes no tag of the best sequence
PRUNE = 1e-6  # tags less likely than this at a token are dropped there; higher is faster and may lose the best tags
BEST = 10  # sequences of the projected chain that "kl+rerank" scores
LISTED = 5_000  # sequences that "brute" lists at most, as in the submitted system; beyond, it keeps a prefix per tag


def decode(
    batch: Batch,
    tags: Ints,
    how: Decoder = "kl+rerank",
    *,
    follows: Bools | None = None,
    cost_ratio: float = 1.0,
    exact_chance: bool = False,
    words: Ints | None = None,
    known: TagPosterior | None = None,
) -> Decoded:
    """Return a batch's best tags by a decoder, given states' tags (Z,); ConfigError, DataError, InfeasibleError.

    `follows` (S+2, S) and `cost_ratio` are for "posterior": which tag may follow which (row S: which may begin a
    sentence, row S+1: which may end one), and how many times as much a missed tag costs as a false one. `words` (N,)
    numbers the words for "kl-pooled". `known` is the result of `tag_posterior`, if it was computed before.

    >>> chain = np.log([[.8, .1, .1], [.3, .6, .1], [.3, .1, .6]])
    >>> batch = Batch(np.zeros(3), chain, np.log([[.8, .1, .1], [.2, .5, .4]]), np.zeros(3), np.array([0, 2]))
    >>> decode(batch, np.array([0, 1, 1]), exact_chance=True).chance.round(3).tolist()
    [0.465]
    """
    layout = StateLayout.of(batch, tags)
    check_choice(how, "decoder", DECODERS)
    if not 0 < cost_ratio < np.inf:
        raise ConfigError(f"cost_ratio must be above 0, got {cost_ratio}")
    if how in ("joint", "tag-viterbi"):
        found = _without_chances(decode_paths(batch, layout, how), batch.bounds)
        return TagPosterior.of(batch, layout).fill_chances(found) if exact_chance else found
    known = known or TagPosterior.of(batch, layout)
    if how == "posterior":
        found = _without_chances(decode_posterior(known, follows, cost_ratio), batch.bounds)
    elif how == "kl-pooled":
        found = _without_chances(decode_pooled(known, words), batch.bounds)
    else:
        found = _decode_doubtful(known, how)
    return known.fill_chances(found) if exact_chance else found


def tag_posterior(batch: Batch, tags: Ints) -> TagPosterior:
    """Return tag probabilities and log Z of a batch whose states (Z,) have these tags; or InfeasibleError."""
    return TagPosterior.of(batch, StateLayout.of(batch, tags))


def tag_chances(batch: Batch, tags: Ints) -> Floats:
    """Return (N, S) the probability of each tag at each token: p1.

    >>> batch = Batch(np.zeros(3), np.zeros((3, 3)), np.zeros((1, 3)), np.zeros(3), np.array([0, 1]))
    >>> tag_chances(batch, np.array([0, 0, 1])).round(3).tolist()
    [[0.667, 0.333]]
    """
    return tag_posterior(batch, tags).chances


def _decode_doubtful(known: TagPosterior, how: Decoder) -> Decoded:
    """Return best tags by "kl", "kl+rerank" or "brute", searching doubtful sentences only; unneeded chances are NaN.

    By the union bound a sentence's likeliest tags have at least 1 - sum of (1 - p1) of the posterior; above one half
    they are the best of all, and the best of the projected chain, which has the same p1. Where the bound does not
    decide, their exact chance may. Only sentences that neither decides are searched.
    """
    bounds = known.batch.bounds
    found = _without_chances(known.chances.argmax(axis=1), bounds)
    missed = 1.0 - np.take_along_axis(known.chances, found.tags[:, None], axis=1)[:, 0]
    doubtful = np.flatnonzero((by_sentence(missed, bounds) >= SURE - SLACK) & (np.diff(bounds) > 0))
    if how != "kl":
        found.chance[doubtful] = known.chance(doubtful, found.tags[tokens_of(bounds, doubtful)[0]])
        _revive(known, found, doubtful[found.chance[doubtful] == 0])
        doubtful = doubtful[found.chance[doubtful] <= 1.0 - SURE + SLACK]
    for some in chunks(doubtful, bounds, 1 if how == "brute" else tokens_per_chunk(known.layout.S)):
        tokens = tokens_of(bounds, some)[0]
        likely = Decoded(found.tags[tokens], found.chance[some])
        if how == "kl":
            chain, kept = _project(known, some, likely)
            found.tags[tokens] = kept[np.arange(len(kept)), viterbi(chain).states]
        else:
            found.tags[tokens], found.chance[some] = _search_sentences(known, some, likely, how)
    return found


def _revive(known: TagPosterior, found: Decoded, dead: Ints) -> None:
    """Replace in place the tags of dead sentences (chance 0) by those of the best state path, and their chance."""
    batch = known.batch
    tokens, bounds = tokens_of(batch.bounds, dead)
    if len(dead):
        path = viterbi(Batch(batch.start, batch.trans, batch.emit[tokens], batch.end, bounds)).states
        found.tags[tokens] = known.layout.tags[path]
        found.chance[dead] = known.chance(dead, found.tags[tokens])


def _search_sentences(known: TagPosterior, some: Ints, likely: Decoded, how: Decoder) -> tuple[Ints, Floats]:
    """Return (best tags of some sentences, their chances): of all listed if few, else ranked or by Viterbi.

    No sequence is likelier than any of its tags. So tags less likely than one whole sequence are out, and few
    sequences are left, often few enough to score them all. Else the projected chain ranks them ("kl+rerank"), or one
    prefix is kept per tag ("brute", as in the published system).
    """
    tokens, bounds = tokens_of(known.batch.bounds, some)
    lengths = np.diff(bounds)
    floor = np.maximum(likely.chance * (1.0 - MARGIN), _negligible(lengths, known.layout.S))
    alive = known.chances[tokens] > np.repeat(floor, lengths)[:, None]
    ways = by_sentence(np.log(np.count_nonzero(alive, axis=1)), bounds)
    few = ways < np.log((LISTED if how == "brute" else BEST) + 0.5)
    tags, chance = np.empty_like(likely.tags), np.empty_like(likely.chance)
    for which in (np.flatnonzero(few), np.flatnonzero(~few)):
        inner, ends = tokens_of(bounds, which)
        if not len(which):
            continue
        if few[which[0]]:
            owner, listed = _list_sequences(alive[inner], ends)
        elif how == "brute":
            rest = [tag_viterbi(known.batch[int(b)], known.layout) for b in some[which]]
            owner, listed = np.arange(len(which)), np.concatenate(rest)
        else:
            owner, listed = _rank_candidates(known, some[which], Decoded(likely.tags[inner], likely.chance[which]))
        tags[inner], chance[which] = _best_of(known, some[which], owner, listed)
    return tags, chance


def _list_sequences(alive: Bools, bounds: Ints) -> tuple[Ints, Ints]:
    """Return every sequence of alive tags (n, S): the sentence of each, and the tags of all, end to end."""
    widths = np.count_nonzero(alive, axis=1)
    logs = np.concatenate([[0.0], np.cumsum(np.log(widths))])
    ways = np.rint(np.exp(logs[bounds[1:]] - logs[bounds[:-1]])).astype(np.int64)
    later = np.rint(np.exp(np.repeat(logs[bounds[1:]], np.diff(bounds)) - logs[1:])).astype(np.int64)  # ways after n
    owner = np.repeat(np.arange(len(ways)), ways)
    tokens, ends = tokens_of(bounds, owner)
    rank = np.repeat(np.arange(len(owner)) - np.repeat(np.cumsum(ways) - ways, ways), np.diff(ends))
    places = np.cumsum(widths)[tokens] - widths[tokens] + rank // later[tokens] % widths[tokens]
    return owner, np.nonzero(alive)[1][places]


def _rank_candidates(known: TagPosterior, some: Ints, likely: Decoded) -> tuple[Ints, Ints]:
    """Return (sentence of each candidate, tags end to end): the chain's `BEST` sequences and the likely one."""
    (chain, kept), listed, owner = _project(known, some, likely), [], []
    for i, (lo, hi) in enumerate(pairwise(chain.bounds.tolist())):
        found = [kept[np.arange(lo, hi), path.states] for path in best_paths(chain[i], BEST)]
        listed += [*found, likely.tags[lo:hi]]
        owner += [i] * (len(found) + 1)
    return np.array(owner), np.concatenate(listed)


def _best_of(known: TagPosterior, some: Ints, owner: Ints, tags: Ints) -> tuple[Ints, Floats]:
    """Return (each sentence's best candidate, its chance); `owner` is each candidate's sentence, ascending."""
    tokens, bounds = tokens_of(known.batch.bounds, some[owner])
    scores = scores_of(known.batch, known.layout, tokens, tags, bounds)
    chosen = np.lexsort((-scores, owner))[np.searchsorted(owner, np.arange(len(some)))]
    return tags[tokens_of(bounds, chosen)[0]], np.minimum(np.exp(scores[chosen] - known.log_z[some]), 1.0)


def _project(known: TagPosterior, some: Ints, likely: Decoded) -> tuple[Batch, Ints]:
    """Return the KL-projected chain over tags of some sentences, hopeless tags dropped, and each column's tag.

    As in `_search_sentences`, those are the tags less likely than one whole sequence, by the posterior if its chance is
    known, else by the chain itself. Apart from them it equals `kernels.project`. Also returned are the kept tags
    (n, W), which are the chain's states, numbered from 0 at each token.
    """
    batch, layout, tags = known.batch, known.layout, likely.tags
    tokens, bounds = tokens_of(batch.bounds, some)
    lengths, first = np.diff(bounds), bounds[:-1]
    mask = (known.chances[tokens] > np.repeat(_negligible(lengths, layout.S), lengths)[:, None])[:, layout.tags]
    part = Batch(batch.start, batch.trans, batch.emit[tokens][mask], batch.end, bounds, Active.from_mask(mask))
    by_tag = group(part, layout.tags)
    here, before = np.arange(len(tokens)), np.maximum(np.arange(len(tokens)) - 1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        step = by_tag.pairs[here, tags[before], tags] / by_tag.states[before, tags[before]]
        step[first] = by_tag.states[first, tags[first]]
        reached = np.where(np.isnan(likely.chance), np.exp(by_sentence(np.log(step), bounds)), likely.chance)
        alive = by_tag.states > np.repeat(reached * (1.0 - MARGIN), lengths)[:, None]
        widths = np.count_nonzero(alive, axis=1)
        inside = np.arange(widths.max()) < widths[:, None]
        kept = np.zeros(inside.shape, np.int64)
        kept[inside] = np.nonzero(alive)[1]
        chance = np.take_along_axis(by_tag.states, kept, axis=1)
        pairs = by_tag.pairs[here[:, None, None], kept[before][:, :, None], kept[:, None, :]]
        real = inside[before][:, :, None] & inside[:, None, :] & (pairs > 0)
        trans = np.where(real, np.log(pairs / chance[before][:, :, None]), -np.inf)
        emit = np.where(inside, 0.0, -np.inf)
        emit[first] += np.log(chance[first])
    none = np.zeros(kept.shape[1])
    return Batch(none, trans, emit, none, bounds), kept


def _without_chances(tags: Ints, bounds: Ints) -> Decoded:
    """Return decoded tags with chances not known yet: NaN, but 1 for empty sentences."""
    return Decoded(np.asarray(tags), np.where(np.diff(bounds) > 0, np.nan, 1.0))


def _negligible(lengths: Ints, S: int) -> Floats:
    """Return (B,) the chance below which a sentence's tag is dropped; all it drops is 0.01 of its posterior at most."""
    return np.minimum(PRUNE, 0.01 / (lengths * S))
