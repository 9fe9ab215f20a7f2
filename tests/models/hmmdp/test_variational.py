"""Learning with sub-tags, against listing every path, hand-worked counts and planted sub-tags."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from chaffinch.kernels import Active, Floats, Ints, forward_backward
from chaffinch.kernels.lattice import Batch
from chaffinch.models.hmmdp import split_merge as subtags
from chaffinch.models.hmmdp import variational as vb
from chaffinch.models.hmmdp.emissions import BackOff, Emissions
from chaffinch.models.hmmdp.sticks import Sticks, Update
from chaffinch.models.hmmdp.variational import Counts, Globals, LogTables, Priors, Sentences, Shape

WORDS = 4
PRIORS = Priors(alpha=1.5, alpha_t=2.0, alpha_T=0.5)
EMISSIONS = Emissions((WORDS,), 0.4)
RICH = {
    "words": EMISSIONS,
    "tempered": Emissions((WORDS, 3), 0.4, temper=0.3),
    "backoff": BackOff((WORDS, 3, 2), 0.4, types=np.array([2, 3, 1])),
}


def shaped(sizes: Sequence[int], tags: Sequence[Sequence[Sequence[int]]]) -> Shape:
    """States for tags of those sizes; what occurs is what the allowed tags of the tokens of sentences can show."""
    S = len(sizes)
    follows = np.ones((S + 1, S + 1), np.bool_)
    follows[S, S] = False  # no empty sentence
    occurs = np.zeros((S + 1, S), np.bool_)
    for sentence in tags:
        for before, now in itertools.pairwise([[S], *sentence]):
            occurs[np.ix_(before, now)] = True
    return Shape(np.repeat(np.arange(S), sizes), follows, occurs)


def sentences(shape: Shape, words: Sequence[Sequence[int]], tags: Sequence[Sequence[Sequence[int]]]) -> Sentences:
    """Sentences of words (or rows of symbols), each token with its allowed tags."""
    lists: list[tuple[int, ...]] = [(s,) for s in range(shape.S)]
    lists += sorted({tuple(own) for sentence in tags for own in sentence} - set(lists))
    which = [lists.index(tuple(own)) for sentence in tags for own in sentence]
    bounds = np.concatenate([[0], np.cumsum([len(own) for own in words])]).astype(np.int64)
    known = np.array([word for sentence in words for word in sentence], np.int64).reshape(int(bounds[-1]), -1)
    return Sentences(known, Active.of(lists, np.array(which, np.int64)), bounds).expand_tags(shape)


def corpus(
    rng: np.random.Generator,
    sizes: Sequence[int] = (2, 3),
    count: int = 12,
    *,
    open_: float = 0.0,
    sizes_: Any = (WORDS,),
) -> tuple[Shape, Sentences]:
    """Random short sentences; a share `open_` of tokens may have any tag."""
    lengths = rng.integers(1, 6, count)
    S = len(sizes)
    tags = [
        [list(range(S)) if rng.random() < open_ else [int(rng.integers(S))] for _ in range(length)]
        for length in lengths
    ]
    words = [[[int(rng.integers(V)) for V in sizes_] for _ in range(length)] for length in lengths]
    shape = shaped(sizes, tags)
    return shape, sentences(shape, words, tags)  # type: ignore[arg-type]


def cut(part: Sentences, at: Sequence[int]) -> list[Sentences]:
    """The same sentences in several parts."""
    out = []
    for one, other in itertools.pairwise([0, *at, len(part)]):
        lo, hi = int(part.bounds[one]), int(part.bounds[other])
        cells = slice(part.active.at[lo], part.active.at[hi])
        evidence = None if part.evidence is None else part.evidence[cells]
        bounds = part.bounds[one : other + 1] - lo
        out.append(Sentences(part.known[lo:hi], part.active.span(lo, hi), bounds, evidence))
    return out


def begun(
    shape: Shape, part: Sentences, rng: np.random.Generator, emissions: Emissions = EMISSIONS, priors: Priors = PRIORS
) -> tuple[Globals, Counts]:
    """The prior, and counts of random weights."""
    q = vb.prior_globals(shape, priors, emissions)
    return q, subtags.count_independent(part, subtags.random_weights([part], rng)[0], q)


def learnt(q: Globals, counts: Counts, part: Sentences, passes: int, update: Update = "W1") -> tuple[Globals, Counts]:
    for _ in range(passes):
        q = vb.global_step(q, counts, update)
        counts = vb.local_step(part, vb.expected_logs(q), q.emissions)
    return q, counts


def same(one: Counts, other: Counts, atol: float = 1e-9) -> None:
    for a, b in zip([*one[:3], *one.emit], [*other[:3], *other.emit], strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=atol)
    assert one.entropy == pytest.approx(other.entropy, abs=1e-7)


def test_one_sub_tag_per_tag_is_a_smoothed_supervised_hmm() -> None:
    tags = [[[0], [1], [0]], [[0]]]
    shape = shaped((1, 1), tags)
    part = sentences(shape, [[3, 1, 0], [3]], tags)
    q, counts = learnt(*begun(shape, part, np.random.default_rng(0)), part, 2)
    assert counts.start.tolist() == [2.0, 0.0]
    assert counts.end.tolist() == [2.0, 0.0]
    np.testing.assert_allclose(counts.pairs, [[0, 1], [1, 0]], rtol=0, atol=1e-12)
    np.testing.assert_allclose(counts.emit[0].T, [[1, 0, 0, 2], [0, 1, 0, 0]], rtol=0, atol=1e-12)
    assert counts.entropy == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(q.tags, [[0.5, 1.5, 2.5], [1.5, 0.5, 0.5], [2.5, 0.5, 0.0]], rtol=0, atol=1e-6)
    tables = vb.log_means(q)
    np.testing.assert_allclose(
        np.exp(tables.trans), [[0.5 / 4.5, 1.5 / 4.5], [1.5 / 2.5, 0.5 / 2.5]], atol=1e-6, rtol=0
    )
    np.testing.assert_allclose(np.exp(tables.start), [2.5 / 3.0, 0.5 / 3.0], rtol=0, atol=1e-6)
    np.testing.assert_allclose(np.exp(tables.end), [2.5 / 4.5, 0.5 / 2.5], rtol=0, atol=1e-6)
    np.testing.assert_allclose(np.exp(tables.emit[0][:, 0]), np.array([1.4, 0.4, 0.4, 2.4]) / 4.6, rtol=0, atol=1e-6)


def test_a_permutation_of_sub_tags_changes_nothing_but_the_sticks() -> None:
    rng = np.random.default_rng(2)
    shape, part = corpus(rng, (3, 2))
    q, counts = learnt(*begun(shape, part, rng), part, 4, "W2")
    to = np.array([2, 0, 1, 4, 3])  # the new number of each state
    inverse = np.argsort(to)
    rows = np.append(inverse, shape.Z)
    moved = replace(
        q, emit=(q.emit[0][:, inverse],), tags=q.tags[rows], subs=q.subs[rows][:, inverse], order=to[q.order]
    )
    found = vb.local_step(part, vb.expected_logs(moved), EMISSIONS)
    np.testing.assert_allclose(found.pairs, counts.pairs[np.ix_(inverse, inverse)], rtol=0, atol=1e-9)
    assert vb.bound(moved, found) == pytest.approx(vb.bound(q, counts), abs=1e-8)
    # With equal expected weights the order of the sticks matters only through their own divergence and normaliser.
    even = Sticks(np.array([2.0, 3.0]), np.array([4.0, 3.0])), Sticks(np.array([3.0]), np.array([3.0]))
    stays, goes = (replace(own, sticks=even, order=np.arange(5)) for own in (q, moved))
    assert vb.bound(goes, found) == pytest.approx(vb.bound(stays, counts), abs=1e-8)


def test_counts_add_up() -> None:
    rng = np.random.default_rng(8)
    shape, part = corpus(rng, (2, 3, 1), 30, open_=0.3)
    _, counts = learnt(*begun(shape, part, rng), part, 3)
    assert counts.emit[0].sum() == pytest.approx(len(part.known), abs=1e-8)
    np.testing.assert_allclose(
        counts.emit[0].sum(axis=1), np.bincount(part.known[:, 0], minlength=WORDS), atol=1e-8, rtol=0
    )
    np.testing.assert_allclose(counts.mass, counts.emit[0].sum(axis=0), rtol=0, atol=1e-8)
    leaving = counts.pairs.sum(axis=1) + counts.end
    np.testing.assert_allclose(leaving, counts.mass, rtol=0, atol=1e-8)
    assert counts.start.sum() == pytest.approx(len(part), abs=1e-8)
    assert counts.end.sum() == pytest.approx(len(part), abs=1e-8)
    assert (counts.moves[~shape.observable] == 0).all()


def test_parts_add_up_to_the_whole() -> None:
    rng = np.random.default_rng(9)
    shape, part = corpus(rng, (2, 3), 17, open_=0.2)
    one, _ = learnt(*begun(shape, part, rng), part, 1)
    many, parts = one, cut(part, [5, 11])
    for _ in range(4):
        apart = vb.sum_counts([vb.local_step(own, vb.expected_logs(many), EMISSIONS) for own in parts])
        whole = vb.local_step(part, vb.expected_logs(one), EMISSIONS)
        same(apart, whole, 1e-7)
        one, many = vb.global_step(one, whole), vb.global_step(many, apart)
        assert vb.bound(one, whole) == pytest.approx(vb.bound(many, apart), abs=1e-6)


def listed(part: Sentences, tables: LogTables, emissions: Emissions) -> Counts:
    """The counts of a part by listing every path of every sentence."""
    Z = len(tables.start)
    start, pairs, end, emit = np.zeros(Z), np.zeros((Z, Z)), np.zeros(Z), np.zeros((WORDS, Z))
    entropy = 0.0
    for first, last in itertools.pairwise(part.bounds.tolist()):
        lists = [part.active.cells[part.active.at[n] : part.active.at[n + 1]].tolist() for n in range(first, last)]
        scores, paths = [], list(itertools.product(*lists))
        for path in paths:
            total = tables.start[path[0]] + tables.end[path[-1]]
            total += sum(tables.trans[a, b] for a, b in itertools.pairwise(path))
            for n, state in enumerate(path, start=first):
                total += tables.emit[0][part.known[n, 0], state]
                if part.evidence is not None:
                    cell = lists[n - first].index(state)
                    total += part.evidence[part.active.at[n] + cell]
            scores.append(float(total))
        log_z = np.logaddexp.reduce(scores)
        for score, path in zip(scores, paths, strict=True):
            p = math.exp(score - log_z)
            if p == 0:
                continue
            entropy -= p * math.log(p)
            start[path[0]] += p
            end[path[-1]] += p
            for a, b in itertools.pairwise(path):
                pairs[a, b] += p
            for n, state in enumerate(path, start=first):
                emit[part.known[n, 0], state] += p
                if part.evidence is not None:
                    entropy += p * part.evidence[part.active.at[n] + lists[n - first].index(state)]
    return Counts(start, pairs, end, (emit,), entropy)


@pytest.mark.parametrize("open_", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("weighed", [False, True])
def test_known_partly_known_and_unknown_tags_agree_with_listing_every_path(open_: float, weighed: bool) -> None:
    rng = np.random.default_rng(int(10 * open_))
    shape, part = corpus(rng, (2, 1, 2), 6, open_=open_)
    follows = shape.follows.copy()
    follows[0, 1] = open_ == 0.0  # where tags are open, some may not follow others
    follows[0, 1] |= bool(shape.occurs[0, 1]) and open_ < 1.0
    shape = Shape(shape.tag_of, follows, shape.occurs)
    if weighed:
        part = replace(part, evidence=rng.normal(size=int(part.active.at[-1])))
    q, counts = begun(shape, part, rng)
    q = vb.global_step(q, counts)
    tables = vb.expected_logs(q)
    same(vb.local_step(part, tables, EMISSIONS), listed(part, tables, EMISSIONS))


def test_means_are_proper_and_geometric_means_below_them() -> None:
    rng = np.random.default_rng(4)
    shape, part = corpus(rng, (2, 3, 1))
    q, _ = learnt(*begun(shape, part, rng), part, 3)
    mean, logs = vb.log_means(q), vb.expected_logs(q)
    np.testing.assert_allclose(np.exp(mean.trans).sum(axis=1) + np.exp(mean.end), 1.0, rtol=0, atol=1e-12)
    assert np.exp(mean.start).sum() == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(np.exp(mean.emit[0]).sum(axis=0), 1.0, rtol=0, atol=1e-12)
    for one, other in zip([*logs[:3], *logs.emit], [*mean[:3], *mean.emit], strict=True):
        assert (one <= other + 1e-12).all()


def test_a_row_that_never_occurs_keeps_its_prior() -> None:
    tags = [[[0], [0], [1]]]
    shape = shaped((2, 2), tags)
    part = sentences(shape, [[0, 1, 2]], tags)
    q, _ = learnt(*begun(shape, part, np.random.default_rng(1)), part, 3)
    pi = q.by_state([own.mean_pi for own in q.sticks])
    for tables in (vb.expected_logs(q), vb.log_means(q)):
        tail = tables.trans[2:, :2] - np.log(pi[:2])  # after tag 1 nothing was seen: a tag's weight, and pi
        np.testing.assert_allclose(tail, tail[:, :1] + np.zeros(2), rtol=0, atol=1e-12)


def test_the_learnt_concentration_of_sticks() -> None:
    shape, _ = corpus(np.random.default_rng(0), (2, 3))
    q = vb.prior_globals(shape, PRIORS, EMISSIONS)  # three sticks, each with E log (1 - v) = -1 / alpha
    assert vb.posterior_mean_alpha(q) == pytest.approx((1 + 3) / (1 + 3 / 1.5))
    assert vb.posterior_mean_alpha(q, shape=2.0, rate=0.5) == pytest.approx((2 + 3) / (0.5 + 3 / 1.5))


def normalised_information(one: Ints, other: Ints) -> float:
    """Mutual information over the mean of the two entropies."""
    table = np.zeros((int(one.max()) + 1, int(other.max()) + 1))
    np.add.at(table, (one, other), 1.0 / len(one))

    def entropy(p: Floats) -> float:
        p = p[p > 0]
        return float(-(p * np.log(p)).sum())

    a, b, both = entropy(table.sum(axis=1)), entropy(table.sum(axis=0)), entropy(table.ravel())
    return 2 * (a + b - both) / (a + b)


def planted(rng: np.random.Generator, count: int) -> tuple[Shape, Sentences, Ints]:
    """Sentences of a known model: three sub-tags of tag 0 and two of tag 1, and the state of each token."""
    tag_of, V = np.array([0, 0, 0, 1, 1]), 20
    trans = np.array([
        [0.05, 0.75, 0.05, 0.05, 0.0, 0.1], [0.05, 0.05, 0.6, 0.0, 0.2, 0.1], [0.55, 0.05, 0.05, 0.25, 0.0, 0.1],
        [0.8, 0.0, 0.1, 0.0, 0.0, 0.1], [0.0, 0.1, 0.8, 0.0, 0.0, 0.1],
    ])  # fmt: skip
    emit = np.full((5, V), 0.05 / V)
    for state in range(5):
        emit[state, 4 * state : 4 * state + 4] += 0.95 / 4
    words, tags, states = [], [], []
    for _ in range(count):
        state, one, other = int(rng.integers(3)), [], []
        while state < 5:
            one.append(int(rng.choice(V, p=emit[state])))
            other.append([int(tag_of[state])])
            states.append(state)
            state = int(rng.choice(6, p=trans[state]))
        words.append(one)
        tags.append(other)
    shape = shaped((3, 2), tags)
    return shape, sentences(shape, words, tags), np.array(states)


@pytest.mark.parametrize("update", ["W1", "W2", "W3"])
def test_planted_sub_tags_are_found(update: Update) -> None:
    rng = np.random.default_rng(0)
    shape, part, states = planted(rng, 400)
    q = vb.prior_globals(shape, Priors(), Emissions((20,), 0.2))
    counts = subtags.count_independent(part, subtags.context_weights([part], rng)[0], q)
    q, _ = learnt(q, counts, part, 20, update)
    found = most_likely(part, vb.expected_logs(q), q.emissions)
    for tag in range(2):  # apart, since tags are known
        own = shape.tag_of[states] == tag
        assert normalised_information(states[own], found[own]) > 0.9


def most_likely(part: Sentences, tables: LogTables, emissions: Emissions) -> Ints:
    """(N,) the likeliest state of each token."""
    emit = emissions.cells(tables.emit, part.known, part.active)
    post = forward_backward(Batch(tables.start, tables.trans, emit, tables.end, part.bounds, part.active))
    return np.asarray(part.active.dense(post.states, len(tables.start)).argmax(axis=1))


def test_empty_sentences_and_single_tokens() -> None:
    tags: list[list[list[int]]] = [[], [[1]], []]
    shape = shaped((2, 2), tags)
    part = sentences(shape, [[], [2], []], tags)
    q, counts = learnt(*begun(shape, part, np.random.default_rng(0)), part, 3)
    assert counts.mass.sum() == pytest.approx(1.0)
    assert counts.pairs.sum() == 0.0
    assert np.isfinite(vb.bound(q, counts))


def test_a_part_without_tokens_has_no_counts() -> None:
    tags: list[list[list[int]]] = [[[0], [1]]]
    shape = shaped((2, 2), tags)
    part = sentences(shape, [[0, 1]], tags)
    q, counts = begun(shape, part, np.random.default_rng(0))
    q = vb.global_step(q, counts)
    none = vb.local_step(cut(part, [0])[0], vb.expected_logs(q), EMISSIONS)
    assert none.mass.sum() == none.entropy == 0.0


def test_sticks_are_broken_for_the_largest_sub_tag_first() -> None:
    rng = np.random.default_rng(1)
    shape, part = corpus(rng, (4, 3), 30)
    q, counts = begun(shape, part, rng)
    now = vb.global_step(q, counts)
    for block in shape.blocks():
        assert (np.diff(counts.mass[now.order[block]]) <= 0).all()
        assert sorted(now.order[block].tolist()) == list(range(block.start, block.stop))
    others: tuple[Update, ...] = ("W2", "W3")
    for update in others:  # their bound holds for one order
        assert vb.global_step(q, counts, update).order.tolist() == list(range(shape.Z))
