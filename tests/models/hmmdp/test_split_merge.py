"""Starts, splits, merges and new seeds of sub-tags, and passes over batches, on small data made here."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from chaffinch.kernels import Active
from chaffinch.models.core.training import Watcher
from chaffinch.models.hmmdp import split_merge as subtags
from chaffinch.models.hmmdp import variational as vb
from chaffinch.models.hmmdp.config import HMMDP
from chaffinch.models.hmmdp.emissions import Emissions
from chaffinch.models.hmmdp.schedule import TrainingRun
from chaffinch.models.hmmdp.split_merge import Passes
from chaffinch.models.hmmdp.variational import Counts, Globals, Priors, Sentences, Shape
from chaffinch.models.tagger import train
from tests.models.hmmdp.test_variational import (
    EMISSIONS,
    PRIORS,
    begun,
    corpus,
    cut,
    learnt,
    planted,
    same,
    sentences,
    shaped,
)
from tests.models.notes import notes


def passes_over(part: Sentences) -> Passes:
    """Passes over one part that has the states of one shape only."""
    return lambda q, counts, times: learnt(q, counts, part, times)


def course_of(parts: Sequence[Sentences], shape: Shape, **options: Any) -> TrainingRun:
    """The course of parts whose tokens each know their tag."""
    tags = [Sentences(part.known, _tag_lists(part, shape), part.bounds) for part in parts]
    return TrainingRun(replace(HMMDP(discriminative=False), **options), tags, Watcher())


def total(counts: Counts) -> list[float]:
    return [float(own.sum()) for own in (*counts[:3], *counts.emit)]


@pytest.mark.parametrize("start", ["chance", "context", "evenly"])
def test_weights_of_a_token_sum_to_one(start: str) -> None:
    rng = np.random.default_rng(0)
    _, part = corpus(rng, (4, 2, 1), 60, open_=0.1)
    parts = cut(part, [20])
    found = {
        "chance": lambda: subtags.random_weights(parts, rng),
        "context": lambda: subtags.context_weights(parts, rng),
        "evenly": lambda: subtags.uniform_weights(parts),
    }[start]()
    for own, weights in zip(parts, found, strict=True):
        assert len(weights) == own.active.at[-1]
        assert (weights >= 0).all()
        np.testing.assert_allclose(np.add.reduceat(weights, own.active.at[:-1]), 1.0, rtol=0, atol=1e-12)


@pytest.mark.parametrize("at", [[1], [30], [7, 7, 50]])
def test_clusters_of_contexts_do_not_depend_on_parts(at: list[int]) -> None:
    _, part = corpus(np.random.default_rng(1), (4, 3), 80)
    whole = subtags.context_weights([part], np.random.default_rng(5))
    apart = subtags.context_weights(cut(part, at), np.random.default_rng(5))
    np.testing.assert_allclose(np.concatenate(apart), whole[0], rtol=0, atol=1e-12)


def test_clusters_of_contexts_are_those_of_planted_sub_tags() -> None:
    """Most tokens of one planted sub-tag begin in one cluster or two, far from evenly."""
    _, part, states = planted(np.random.default_rng(2), 300)
    weights = subtags.context_weights([part], np.random.default_rng(0))[0]
    where = part.active.dense(weights, 5).argmax(axis=1)
    table = np.zeros((5, 5))
    np.add.at(table, (states, where), 1.0)
    own = table[:3, :3] / table[:3, :3].sum()
    even = np.outer(own.sum(axis=1), own.sum(axis=0))
    assert (own * np.log(np.maximum(own, 1e-9) / even)).sum() > 0.1  # nats of mutual information


def test_a_few_equal_contexts_are_no_reason_to_warn() -> None:
    tags = [[[0], [0]]] * 10
    shape = shaped((4,), tags)
    part = sentences(shape, [[1, 1]] * 10, tags)
    weights = subtags.context_weights([part], np.random.default_rng(0))[0]
    np.testing.assert_allclose(weights.reshape(-1, 4).sum(axis=1), 1.0, rtol=0, atol=1e-12)


def test_more_clusters_than_kinds_of_contexts_are_no_reason_to_warn() -> None:
    train(notes(30), HMMDP(20, 2, min_count=2, passes=2, start="context", discriminative=False))  # warnings are errors


def test_counted_is_a_product_of_tokens() -> None:
    rng = np.random.default_rng(3)
    shape, part = corpus(rng, (2, 2), 8)
    q = vb.prior_globals(shape, Priors(), Emissions((4,), 0.3))
    weights = subtags.random_weights([part], rng)[0]
    found = subtags.count_independent(part, weights, q)
    dense = part.active.dense(weights, shape.Z)
    start, end, pairs, emit = np.zeros(4), np.zeros(4), np.zeros((4, 4)), np.zeros((4, 4))
    for first, last in itertools.pairwise(part.bounds.tolist()):
        start += dense[first]
        end += dense[last - 1]
        for n in range(first, last - 1):
            pairs += np.outer(dense[n], dense[n + 1])
        for n in range(first, last):
            emit[part.known[n, 0]] += dense[n]
    for one, other in zip([*found[:3], found.emit[0]], [start, pairs, end, emit], strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-5)


def test_doubling_and_joining_keep_the_counts() -> None:
    rng = np.random.default_rng(4)
    shape, part = corpus(rng, (2, 3, 1), 20)
    q, counts = learnt(*begun(shape, part, rng), part, 2)
    wide, shared, parent = subtags.split_subtags(q, counts, np.array([4, 3, 2]), rng)
    assert np.bincount(wide.shape.tag_of).tolist() == [4, 3, 2]
    assert parent.tolist() == [0, 0, 1, 1, 2, 3, 4, 5, 5]
    np.testing.assert_allclose(total(shared), total(counts), rtol=subtags.NOISE, atol=0)
    back, joined = subtags.merge_states(wide, shared, parent)
    np.testing.assert_array_equal(back.shape.tag_of, shape.tag_of)
    np.testing.assert_allclose(total(joined), total(shared), rtol=1e-12, atol=0)
    for one, other in zip([*joined[:3], *joined.emit], [*counts[:3], *counts.emit], strict=True):
        np.testing.assert_allclose(one, other, rtol=0.02, atol=1e-12)


def test_halves_of_a_split_differ() -> None:
    rng = np.random.default_rng(5)
    shape, part = corpus(rng, (1, 1), 20)
    q, counts = learnt(*begun(shape, part, rng), part, 1)
    _, shared, _ = subtags.split_subtags(q, counts, np.array([2, 2]), rng)
    assert np.abs(shared.emit[0][:, 0] - shared.emit[0][:, 1]).max() > 0


def test_a_true_split_is_worth_more_than_a_needless_one() -> None:
    """Sub-tags 0 and 1 show other words and one of them ends sentences; 2 and 3 are halves of one."""
    shape = Shape(np.zeros(4, np.int64), np.ones((2, 2), np.bool_), np.ones((2, 1), np.bool_))
    q = vb.prior_globals(shape, Priors(), Emissions((4,), 0.3))
    emit = np.array([[50.0, 0, 25, 25], [0, 50, 0, 0], [0, 0, 25, 25], [0, 0, 0, 0]])
    pairs = np.array([[0.0, 0, 0, 0], [15, 15, 10, 10], [10, 10, 7.5, 7.5], [10, 10, 7.5, 7.5]])
    counts = Counts(np.full(4, 15.0), pairs, np.array([50.0, 0, 15, 15]), (emit,), 0.0)
    gains = subtags.split_gains(q, counts, np.array([0, 0, 1, 1]))
    assert gains[0] > 0 > gains[1]


@pytest.mark.parametrize("targets", [(5, 2), (1, 1), (4, 3)])
def test_growing_reaches_its_targets(targets: tuple[int, int]) -> None:
    rng = np.random.default_rng(6)
    full, _, _ = planted(rng, 60)
    rng = np.random.default_rng(6)
    _, part, _ = planted(rng, 60)
    tags = Sentences(part.known, _tag_lists(part, full), part.bounds)

    def passes(q: Globals, counts: Counts, times: int) -> tuple[Globals, Counts]:
        return learnt(q, counts, tags.expand_tags(q.shape), times)

    narrow = Shape(np.arange(2), full.follows, full.occurs)
    q = vb.prior_globals(narrow, Priors(), Emissions((20,), 0.2))
    own = tags.expand_tags(narrow)
    q, counts = passes(q, subtags.count_independent(own, subtags.uniform_weights([own])[0], q), 1)
    q, counts = subtags.grow(q, counts, np.array(targets), passes, rng)
    assert np.bincount(q.shape.tag_of).tolist() == list(targets)
    assert counts.emit[0].sum() == pytest.approx(len(part.known))


def _tag_lists(part: Sentences, shape: Shape) -> Active:
    return Active.of([[s] for s in range(shape.S)], part.active.which)


def cues(rng: np.random.Generator) -> tuple[Shape, Sentences]:
    """Words 0 and 1 in tag 0, now and then word 2, after which word 3 in tag 1 comes."""
    words, tags = [], []
    for _ in range(150):
        before, after = (rng.integers(0, 2, rng.integers(1, 6)).tolist() for _ in range(2))
        words.append([*before, 2, 3, *after])
        tags.append([*[[0]] * len(before), [0], [1], *[[0]] * len(after)])
    shape = shaped((2, 1), tags)
    return shape, sentences(shape, words, tags)


def test_tidying_revives_a_dead_sub_tag() -> None:
    shape, part = cues(np.random.default_rng(7))
    q = vb.prior_globals(shape, Priors(), Emissions((4,), 0.2))
    weights = np.where(part.active.cells == 1, 0.0, 1.0)
    q, counts = learnt(q, subtags.count_independent(part, weights, q), part, 2)
    assert counts.mass[1] < subtags.FEW
    before = vb.bound(q, counts)
    q, counts, changed = subtags.tidy(q, counts, [part], passes_over(part))
    assert changed
    assert counts.mass[1] >= subtags.FEW
    q, counts = learnt(q, counts, part, 10)
    assert counts.mass[1] == pytest.approx(150, abs=5)  # it is the cue
    assert counts.emit[0][2, 1] > 145
    assert vb.bound(q, counts) > before


def test_tidying_steps_as_the_course_does() -> None:
    tags = [[[0]] * 4 for _ in range(200)]
    shape = shaped((2,), tags)
    part = sentences(shape, np.random.default_rng(8).integers(0, 4, (200, 4)).tolist(), tags)
    course = course_of([part], shape, sticks="W3", alpha_sticks=None)
    q = vb.prior_globals(shape, Priors(), Emissions((4,), 0.3))
    q, counts = course.run_passes(q, subtags.count_independent(part, subtags.uniform_weights([part])[0], q), 1)
    merged, _, changed = subtags.tidy(q, counts, course.batches_on(shape), course.run_passes)
    assert changed
    assert merged is not q
    assert [own.point for own in merged.sticks] == [True]
    assert merged.priors.alpha == pytest.approx(vb.posterior_mean_alpha(merged))


def test_two_dead_sub_tags_of_a_tag_become_unlike() -> None:
    rng = np.random.default_rng(8)
    shape, part, _ = planted(rng, 100)
    q = vb.prior_globals(shape, Priors(), Emissions((20,), 0.2))
    weights = np.where(np.isin(part.active.cells, [1, 2]), 0.0, 1.0)
    weights /= np.repeat(np.add.reduceat(weights, part.active.at[:-1]), part.active.widths)
    q, counts = learnt(q, subtags.count_independent(part, weights, q), part, 2)
    assert (counts.mass[1:3] < subtags.FEW).all()
    _, counts, _ = subtags.tidy(q, counts, [part], passes_over(part))
    assert np.abs(counts.emit[0][:, 1] - counts.emit[0][:, 2]).max() > 0


def test_tidying_leaves_a_tag_without_tokens_alone() -> None:
    tags = [[[0], [0]]] * 30
    shape = shaped((1, 2), tags)
    part = sentences(shape, [[0, 1]] * 30, tags)
    q, counts = learnt(*begun(shape, part, np.random.default_rng(0)), part, 2)
    _, after, changed = subtags.tidy(q, counts, [part], passes_over(part))
    assert not changed
    assert total(after) == total(counts)


def test_two_equal_sub_tags_are_merged_if_the_bound_rises() -> None:
    rng = np.random.default_rng(8)
    tags = [[[0]] * 4 for _ in range(200)]
    shape = shaped((2,), tags)
    part = sentences(shape, rng.integers(0, 4, (200, 4)).tolist(), tags)  # nothing to tell sub-tags apart
    q = vb.prior_globals(shape, Priors(), Emissions((4,), 0.3))
    q, counts = learnt(q, subtags.count_independent(part, subtags.uniform_weights([part])[0], q), part, 1)
    seen: list[float] = []

    def passes(q: Globals, counts: Counts, times: int) -> tuple[Globals, Counts]:
        q, counts = learnt(q, counts, part, times)
        seen.append(vb.bound(q, counts))
        return q, counts

    _, _, changed = subtags.tidy(q, counts, [part], passes)
    assert len(seen) == 1
    assert seen[0] > vb.bound(q, counts)
    assert changed


def test_unlike_sub_tags_stay_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(9)
    shape, part, _ = planted(rng, 300)
    q = vb.prior_globals(shape, Priors(), Emissions((20,), 0.2))
    q, counts = learnt(q, subtags.count_independent(part, subtags.context_weights([part], rng)[0], q), part, 15)
    for proportional in (subtags.PROPORTIONAL, -1.0):  # not looked at; looked at, and refused by the bound
        monkeypatch.setattr(subtags, "PROPORTIONAL", proportional)
        after, kept, changed = subtags.tidy(q, counts, [part], passes_over(part))
        assert not changed
        assert after is q
        assert kept is counts


@pytest.mark.parametrize("batches", [1, 3])
def test_a_course_keeps_what_other_batches_counted_last(batches: int) -> None:
    rng = np.random.default_rng(10)
    shape, part = corpus(rng, (3, 2), 20)
    parts = cut(part, [6, 13][: batches - 1])
    course = course_of(parts, shape, sticks="W2", alpha_sticks=PRIORS.alpha)
    q, counts = first, begin = begun(shape, part, rng)
    bounds = []
    for _ in range(5):
        q, counts = course.run_passes(q, counts, 1)
        bounds.append(vb.bound(q, counts))
    slow = vb.global_step(first, begin, "W2")
    memo = [vb.local_step(own, vb.expected_logs(slow), EMISSIONS) for own in parts]
    for _, number in itertools.product(range(4), range(batches)):
        slow = vb.global_step(slow, vb.sum_counts(memo), "W2")
        memo[number] = vb.local_step(parts[number], vb.expected_logs(slow), EMISSIONS)
    same(counts, vb.sum_counts(memo))
    assert bounds == sorted(bounds)
    _, anew = course.run_passes(first, begin, 1)  # other counts: what was kept is of no use
    _, slowly = learnt(first, begin, part, 1, "W2")
    same(anew, slowly, 1e-7)
