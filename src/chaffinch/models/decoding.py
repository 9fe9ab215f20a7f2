"""Decoding tags when each tag has several latent sub-tags: the states are summed out, tags are maximised over.

METHODS 3. N tokens in B sentences, Z states, S tags, tag 0 standing for "outside"; W tags alive at a token at the
most; C candidates. Finding the best tags is NP-hard in general; here a chain over tags alone stands in for the
posterior, and its best sequences are scored exactly. Most sentences need none of that: where the likeliest tags have
more than half of the posterior between them, nothing can beat them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, get_args

import numpy as np

from chaffinch.errors import ConfigError, DataError, InfeasibleError
from chaffinch.kernels import best_paths, forward_backward, group, log_partition, viterbi
from chaffinch.kernels.lattice import Active, Batch, Bools, Floats, Ints, Lattice

Decoder = Literal["kl+rerank", "kl", "kl-pooled", "joint", "tag-viterbi", "posterior", "brute"]
DECODERS: tuple[Decoder, ...] = get_args(Decoder)

SURE = 0.5  # a sentence whose tokens miss less than this between them has found its tags
SLACK = 1e-6  # marginals are exact to 1e-9 each
MARGIN = 1e-3  # share of a bound that is not relied on
PRUNE = 1e-6  # tags less likely than this at a token are dropped there
LISTED = 5_000  # sequences listed by brute force at the most
TILE = 4_000  # tokens whose states are held at once
PAIR_CELLS = 3_000_000  # tag pairs held at once


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """The tags of every token, and how likely each sentence's tags are given its words."""

    tags: Ints  # (N,)
    chance: Floats  # (B,) p(tags | words), exact; NaN where it was neither asked for nor free


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Where the states of each tag are: those of tag s are bounds[s] to bounds[s + 1]."""

    tags: Ints  # (Z,)
    bounds: Ints  # (S+1,)
    moves: Bools  # (S+2, S) which tag may follow which; row S: may begin, row S+1: may end
    S: int

    @classmethod
    def of(cls, batch: Batch, tags: Ints) -> Layout:
        """The layout of a batch's states, checked."""
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
        """(N, S) values (N, Z) of states, summed by tag: all tags of one size at a time, each row for itself."""
        out, sizes = np.empty((len(states), self.S)), np.diff(self.bounds)
        edges = np.flatnonzero(np.diff(sizes, prepend=0, append=0))
        for first, end in pairwise(edges):
            size, at, stop = int(sizes[first]), self.bounds[first], self.bounds[end]
            if end - first == 1:
                out[:, first] = states[:, at:stop].sum(axis=1)
                continue
            total = states[:, at:stop:size].copy()
            for k in range(1, size):
                total += states[:, at + k : stop : size]
            out[:, first:end] = total
        return out


def decode(
    batch: Batch,
    tags: Ints,
    how: Decoder = "kl+rerank",
    *,
    follows: Bools | None = None,
    cost_ratio: float = 1.0,
    best: int = 10,
    exact_chance: bool = False,
    words: Ints | None = None,
) -> Decoded:
    """The tags of a batch whose states (Z,) have these tags, sorted; tag 0 is "outside".

    `follows` (S+2, S) and `cost_ratio` are for "posterior": which tag may follow which (row S: which may begin a
    sentence, row S+1: which may end one), and how much dearer a missed tag is than a false one. `best` is how many
    sequences "kl+rerank" scores; `words` (N,) numbers the words for "kl-pooled".

    >>> chain = np.log([[.8, .1, .1], [.3, .6, .1], [.3, .1, .6]])
    >>> batch = Batch(np.zeros(3), chain, np.log([[.8, .1, .1], [.2, .5, .4]]), np.zeros(3), np.array([0, 2]))
    >>> decode(batch, np.array([0, 1, 1]), exact_chance=True).chance.round(3).tolist()
    [0.465]
    """
    layout = Layout.of(batch, tags)
    if how not in DECODERS:
        raise ConfigError(f"decoder must be one of {', '.join(DECODERS)}, got {how!r}")
    if best < 1 or not 0 < cost_ratio < np.inf:
        raise ConfigError(f"best must be at least 1 and cost_ratio above 0, got {best} and {cost_ratio}")
    if how in ("joint", "tag-viterbi"):
        found = _unscored(_unsummed(batch, layout, how), batch.bounds)
        return Known.of(batch, layout).scored(found) if exact_chance else found
    known = Known.of(batch, layout)
    if how == "posterior":
        found = _unscored(_posterior(known, follows, cost_ratio), batch.bounds)
    elif how == "kl-pooled":
        found = _unscored(_pooled(known, words), batch.bounds)
    else:
        found = _searched(known, how, best)
    return known.scored(found) if exact_chance else found


def tag_chances(batch: Batch, tags: Ints) -> Floats:
    """(N, S) the probability of each tag at each token: p1 of METHODS 3.3.

    >>> batch = Batch(np.zeros(3), np.zeros((3, 3)), np.zeros((1, 3)), np.zeros(3), np.array([0, 1]))
    >>> tag_chances(batch, np.array([0, 0, 1])).round(3).tolist()
    [[0.667, 0.333]]
    """
    return Known.of(batch, Layout.of(batch, tags)).chances


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """A batch and what one forward-backward says of it."""

    batch: Batch
    layout: Layout
    chances: Floats  # (N, S) p1
    log_z: Floats  # (B,)

    @classmethod
    def of(cls, batch: Batch, layout: Layout) -> Known:
        """All of it, a tile at a time."""
        known = cls(batch, layout, np.empty((len(batch.emit), layout.S)), np.empty(len(batch)))
        for some in _chunks(np.arange(len(batch)), batch.bounds, TILE):
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
        """p(tags | words) of some sentences, given the tags of all their tokens."""
        scores = np.zeros(len(sentences))
        tokens, bounds = _tokens(self.batch.bounds, sentences)
        for some in _chunks(np.arange(len(sentences)), bounds, TILE):
            lo, hi = bounds[some[0]], bounds[some[-1] + 1]
            inner = bounds[some[0] : some[-1] + 2] - lo
            scores[some] = _scores(self.batch, self.layout, tokens[lo:hi], tags[lo:hi], inner)
        return np.minimum(np.exp(scores - self.log_z[sentences]), 1.0)

    def scored(self, found: Decoded) -> Decoded:
        """The same tags with every chance known."""
        chance, left = found.chance.copy(), np.flatnonzero(np.isnan(found.chance))
        chance[left] = self.chance(left, found.tags[_tokens(self.batch.bounds, left)[0]])
        return Decoded(found.tags, chance)


def _searched(known: Known, how: Decoder, best: int) -> Decoded:
    """The best tags by "kl", "kl+rerank" or "brute".

    By the union bound a sentence's likeliest tags have at least 1 - sum of (1 - p1) of the posterior; above one half
    they are the best of all, and the best of the projected chain, which has the same p1. Where the bound does not
    tell, their exact chance may. Only sentences of which neither is sure are searched.
    """
    bounds = known.batch.bounds
    found = _unscored(known.chances.argmax(axis=1), bounds)
    missed = 1.0 - np.take_along_axis(known.chances, found.tags[:, None], axis=1)[:, 0]
    doubtful = np.flatnonzero((_by_sentence(missed, bounds) >= SURE - SLACK) & (np.diff(bounds) > 0))
    if how != "kl":
        found.chance[doubtful] = known.chance(doubtful, found.tags[_tokens(bounds, doubtful)[0]])
        _revive(known, found, doubtful[found.chance[doubtful] == 0])
        doubtful = doubtful[found.chance[doubtful] <= 1.0 - SURE + SLACK]
    for some in _chunks(doubtful, bounds, 1 if how == "brute" else max(PAIR_CELLS // known.layout.S**2, 1)):
        tokens = _tokens(bounds, some)[0]
        likely = Decoded(found.tags[tokens], found.chance[some])
        if how == "kl":
            chain, kept = _project(known, some, likely)
            found.tags[tokens] = kept[np.arange(len(kept)), viterbi(chain).states]
        else:
            found.tags[tokens], found.chance[some] = _search(known, some, likely, how, best)
    return found


def _revive(known: Known, found: Decoded, dead: Ints) -> None:
    """Gives sentences whose likeliest tags are impossible together the tags of their best path of states."""
    batch = known.batch
    tokens, bounds = _tokens(batch.bounds, dead)
    if len(dead):
        path = viterbi(Batch(batch.start, batch.trans, batch.emit[tokens], batch.end, bounds)).states
        found.tags[tokens] = known.layout.tags[path]
        found.chance[dead] = known.chance(dead, found.tags[tokens])


def _search(known: Known, some: Ints, likely: Decoded, how: Decoder, best: int) -> tuple[Ints, Floats]:
    """The best tags of some sentences and their chance, given likely ones and theirs.

    No sequence is likelier than any of its tags. So tags less likely than one whole sequence are out, and few
    sequences are left, often few enough to score them all. Else the projected chain ranks them ("kl+rerank"), or one
    prefix is kept per tag ("brute", as in the published system).
    """
    tokens, bounds = _tokens(known.batch.bounds, some)
    lengths = np.diff(bounds)
    floor = np.maximum(likely.chance * (1.0 - MARGIN), _negligible(lengths, known.layout.S))
    alive = known.chances[tokens] > np.repeat(floor, lengths)[:, None]
    ways = _by_sentence(np.log(np.count_nonzero(alive, axis=1)), bounds)
    few = ways < np.log((LISTED if how == "brute" else best) + 0.5)
    tags, chance = np.empty_like(likely.tags), np.empty_like(likely.chance)
    for which in (np.flatnonzero(few), np.flatnonzero(~few)):
        inner, ends = _tokens(bounds, which)
        if not len(which):
            continue
        if few[which[0]]:
            owner, listed = _all(alive[inner], ends)
        elif how == "brute":
            rest = [_tag_viterbi(known.batch[int(b)], known.layout) for b in some[which]]
            owner, listed = np.arange(len(which)), np.concatenate(rest)
        else:
            owner, listed = _ranked(known, some[which], Decoded(likely.tags[inner], likely.chance[which]), best)
        tags[inner], chance[which] = _best_of(known, some[which], owner, listed)
    return tags, chance


def _all(alive: Bools, bounds: Ints) -> tuple[Ints, Ints]:
    """Every sequence of tags that are alive: the sentence of each, and their tags end to end."""
    widths = np.count_nonzero(alive, axis=1)
    logs = np.concatenate([[0.0], np.cumsum(np.log(widths))])
    ways = np.rint(np.exp(logs[bounds[1:]] - logs[bounds[:-1]])).astype(np.int64)
    later = np.rint(np.exp(np.repeat(logs[bounds[1:]], np.diff(bounds)) - logs[1:])).astype(np.int64)  # ways after n
    owner = np.repeat(np.arange(len(ways)), ways)
    tokens, ends = _tokens(bounds, owner)
    rank = np.repeat(np.arange(len(owner)) - np.repeat(np.cumsum(ways) - ways, ways), np.diff(ends))
    places = np.cumsum(widths)[tokens] - widths[tokens] + rank // later[tokens] % widths[tokens]
    return owner, np.nonzero(alive)[1][places]


def _ranked(known: Known, some: Ints, likely: Decoded, best: int) -> tuple[Ints, Ints]:
    """The best sequences of the projected chain, and the likely one: the sentence of each, and their tags."""
    (chain, kept), listed, owner = _project(known, some, likely), [], []
    for i, (lo, hi) in enumerate(pairwise(chain.bounds.tolist())):
        found = [kept[np.arange(lo, hi), path.states] for path in best_paths(chain[i], best)]
        listed += [*found, likely.tags[lo:hi]]
        owner += [i] * (len(found) + 1)
    return np.array(owner), np.concatenate(listed)


def _best_of(known: Known, some: Ints, owner: Ints, tags: Ints) -> tuple[Ints, Floats]:
    """The best tags of each sentence and their chance, among candidates that `owner` gives to sentences, in order."""
    tokens, bounds = _tokens(known.batch.bounds, some[owner])
    scores = _scores(known.batch, known.layout, tokens, tags, bounds)
    chosen = np.lexsort((-scores, owner))[np.searchsorted(owner, np.arange(len(some)))]
    return tags[_tokens(bounds, chosen)[0]], np.minimum(np.exp(scores[chosen] - known.log_z[some]), 1.0)


def _project(known: Known, some: Ints, likely: Decoded) -> tuple[Batch, Ints]:
    """The projection of some sentences (METHODS 3.3), without tags that cannot be part of the best sequence.

    As in `_search`, those are the tags less likely than one whole sequence, by the posterior if its chance is known,
    else by the chain itself. But for them it equals `kernels.project`. The tags kept (n, W) come second: they are the
    chain's states, numbered from 0 at each token.
    """
    batch, layout, tags = known.batch, known.layout, likely.tags
    tokens, bounds = _tokens(batch.bounds, some)
    lengths, first = np.diff(bounds), bounds[:-1]
    mask = (known.chances[tokens] > np.repeat(_negligible(lengths, layout.S), lengths)[:, None])[:, layout.tags]
    part = Batch(batch.start, batch.trans, batch.emit[tokens][mask], batch.end, bounds, Active.from_mask(mask))
    by_tag = group(part, layout.tags)
    here, before = np.arange(len(tokens)), np.maximum(np.arange(len(tokens)) - 1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        step = by_tag.pairs[here, tags[before], tags] / by_tag.states[before, tags[before]]
        step[first] = by_tag.states[first, tags[first]]
        reached = np.where(np.isnan(likely.chance), np.exp(_by_sentence(np.log(step), bounds)), likely.chance)
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


def _scores(batch: Batch, layout: Layout, tokens: Ints, tags: Ints, bounds: Ints) -> Floats:
    """Log p(tags, words) of each sequence: the states summed out by a forward pass clamped to the tags."""
    broken = _broken(layout.moves, tags, bounds)
    if broken.any():
        out = np.full(len(broken), -np.inf)
        places, inner = _tokens(bounds, np.flatnonzero(~broken))
        out[~broken] = _scores(batch, layout, tokens[places], tags[places], inner)
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
    left = _scores(batch, layout, tokens[:cut], tags[:cut], bounds[: half + 1])
    return np.concatenate([left, _scores(batch, layout, tokens[cut:], tags[cut:], bounds[half:] - cut)])


def _broken(follows: Bools, tags: Ints, bounds: Ints) -> Bools:
    """(B,) the sequences whose tags may not follow one another."""
    S, first, last = follows.shape[1], bounds[:-1][np.diff(bounds) > 0], bounds[1:][np.diff(bounds) > 0] - 1
    before = np.concatenate([[S], tags])[:-1]
    before[first] = S
    wrong = ~follows[before, tags]
    wrong[last] |= ~follows[S + 1, tags[last]]
    return _by_sentence(wrong.astype(np.float64), bounds) > 0


def _posterior(known: Known, follows: Bools | None, cost_ratio: float) -> Ints:
    """The tags with the highest expected number of right tokens, an identifier's counting `cost_ratio` times.

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
    mend = np.flatnonzero(_broken(follows, tags, bounds))
    tokens, inner = _tokens(bounds, mend)
    moves = np.where(follows, 0.0, -np.inf)
    if len(mend):
        tags[tokens] = viterbi(Batch(moves[S], moves[:S], gains[tokens], moves[S + 1], inner)).states
    return tags


def _pooled(known: Known, words: Ints | None) -> Ints:
    """The best tags of one small HMM per sentence: the projection with its tables pooled over positions."""
    batch, S, tags = known.batch, known.layout.S, np.zeros(len(known.chances), np.int64)
    if words is None or words.shape != tags.shape:
        raise ConfigError(f"kl-pooled needs words, one whole number for each of {len(tags)} tokens")
    for some in _chunks(np.arange(len(batch)), batch.bounds, max(PAIR_CELLS // S**2, 1)):
        tokens, bounds = _tokens(batch.bounds, some)
        part = Batch(batch.start, batch.trans, batch.emit[tokens], batch.end, bounds)
        by_tag = group(part, known.layout.tags)
        sentence = np.repeat(np.arange(len(some)), np.diff(bounds))
        pairs = np.zeros((len(some), S, S))
        np.add.at(pairs, sentence, by_tag.pairs)
        _, place = np.unique(np.stack([sentence, words[tokens]]), axis=1, return_inverse=True)
        seen, total = np.zeros((len(tokens), S)), np.zeros((len(some), S))
        np.add.at(seen, place, by_tag.states)
        np.add.at(total, sentence, by_tag.states)
        first = bounds[:-1][np.diff(bounds) > 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            emit = np.where(by_tag.states > 0, np.log(seen[place] / total[sentence]), -np.inf)
            emit[first] += np.log(by_tag.states[first])
            moves = np.where(pairs > 0, np.log(pairs / pairs.sum(axis=2, keepdims=True)), -np.inf)
        none = np.zeros(S)
        tags[tokens] = viterbi(Batch(none, moves[sentence], emit, none, bounds)).states
    return tags


def _unsummed(batch: Batch, layout: Layout, how: Decoder) -> Ints:
    """The tags of the best path of states ("joint"), or those of the best prefixes ("tag-viterbi")."""
    if how == "joint":
        return np.asarray(layout.tags[viterbi(batch).states])
    try:
        return np.concatenate([np.zeros(0, np.int64), *(_tag_viterbi(batch[i], layout) for i in range(len(batch)))])
    except InfeasibleError:
        viterbi(batch)  # names the sentence by its number in the batch
        raise


def _tag_viterbi(lattice: Lattice, layout: Layout) -> Ints:
    """(T,) tags by keeping one best prefix per tag, its sub-tags summed (METHODS 3.2b).

    If no prefix that was kept can be completed, the tags of the best path of states.
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


def _unscored(tags: Ints, bounds: Ints) -> Decoded:
    """The tags with chances unknown, but for empty sentences."""
    return Decoded(np.asarray(tags), np.where(np.diff(bounds) > 0, np.nan, 1.0))


def _negligible(lengths: Ints, S: int) -> Floats:
    """(B,) the chance below which a tag is dropped; all that a sentence drops cannot add up to everything."""
    return np.minimum(PRUNE, 0.01 / (lengths * S))


def _by_sentence(values: Floats, bounds: Ints) -> Floats:
    """(B,) sums of token values, each sentence for itself."""
    lengths = np.diff(bounds)
    return np.asarray(np.bincount(np.repeat(np.arange(len(lengths)), lengths), values, len(lengths)), np.float64)


def _tokens(bounds: Ints, sentences: Ints) -> tuple[Ints, Ints]:
    """The tokens of some sentences, end to end, and where each sentence begins among them."""
    lengths = np.diff(bounds)[sentences]
    inner = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return np.repeat(bounds[sentences] - inner[:-1], lengths) + np.arange(inner[-1]), inner


def _chunks(sentences: Ints, bounds: Ints, tokens: int) -> Iterator[Ints]:
    """Runs of the sentences with at most so many tokens, or one sentence."""
    before, begin = np.concatenate([[0], np.cumsum(np.diff(bounds)[sentences])]), 0
    while begin < len(sentences):
        end = max(int(np.searchsorted(before, before[begin] + tokens, side="right")) - 1, begin + 1)
        yield sentences[begin:end]
        begin = end
