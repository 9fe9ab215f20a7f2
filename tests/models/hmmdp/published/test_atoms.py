"""Sticks and atoms, and states one by one, against listing, products written out, and the direct form."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from scipy.special import digamma
from scipy.stats import dirichlet

from chaffinch.kernels import Floats
from chaffinch.models.hmmdp import split_merge as subtags
from chaffinch.models.hmmdp import variational as vb
from chaffinch.models.hmmdp.emissions import Emissions
from chaffinch.models.hmmdp.published import atoms
from chaffinch.models.hmmdp.published.mean_field import mean_field_step
from chaffinch.models.hmmdp.sticks import Sticks
from chaffinch.models.hmmdp.variational import Counts, LogTables, Priors, Sentences, Shape
from tests.models.hmmdp.test_variational import (
    EMISSIONS,
    PRIORS,
    RICH,
    WORDS,
    begun,
    corpus,
    cut,
    learnt,
    most_likely,
    normalised_information,
    planted,
    same,
    sentences,
    shaped,
)

KINDS = {"words": (WORDS,), "tempered": (WORDS, 3), "backoff": (WORDS, 3)}
Form = Literal["chain", "factored"]


def test_factored_counts_are_products() -> None:
    """With two tokens the fixed point and its counts can be checked by hand, and the entropy is theirs."""
    tags = [[[0], [1]], [[1]]]
    shape = shaped((2, 3), tags)
    part = sentences(shape, [[0, 2], [1]], tags)
    q, counts = begun(shape, part, np.random.default_rng(0))
    tables = vb.expected_logs(vb.global_step(q, counts))
    found = mean_field_step(part, tables, EMISSIONS, sweeps=200)
    one, two = found.start[:2], found.emit[0][2, 2:]
    assert one.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(found.pairs[:2, 2:], np.outer(one, two), rtol=0, atol=1e-9)
    log_two = tables.emit[0][2, 2:] + tables.end[2:] + one @ tables.trans[:2, 2:]
    log_one = tables.emit[0][0, :2] + tables.start[:2] + tables.trans[:2, 2:] @ two
    np.testing.assert_allclose(two, np.exp(log_two) / np.exp(log_two).sum(), rtol=0, atol=1e-5)
    np.testing.assert_allclose(one, np.exp(log_one) / np.exp(log_one).sum(), rtol=0, atol=1e-5)
    alone = found.start[2:]
    log_alone = tables.emit[0][1, 2:] + tables.start[2:] + tables.end[2:]
    np.testing.assert_allclose(alone, np.exp(log_alone) / np.exp(log_alone).sum(), rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.end[2:], two + alone, rtol=0, atol=1e-9)
    assert found.entropy == pytest.approx(-sum(float((g * np.log(g)).sum()) for g in (one, two, alone)))


@pytest.mark.parametrize("kind", RICH)
@pytest.mark.parametrize("open_", [0.0, 0.4])
@pytest.mark.parametrize("weighed", [False, True])
def test_the_factored_bound_never_exceeds_that_of_the_chain(kind: str, open_: float, weighed: bool) -> None:
    rng = np.random.default_rng(1)
    shape, part = corpus(rng, (3, 2), 20, open_=open_, sizes_=KINDS[kind])
    if weighed:
        part = replace(part, evidence=rng.normal(size=int(part.active.at[-1])))
    q, counts = begun(shape, part, rng, RICH[kind])
    for _ in range(4):
        q = vb.global_step(q, counts)
        tables = vb.expected_logs(q)
        chain, alone = vb.local_step(part, tables, RICH[kind]), mean_field_step(part, tables, RICH[kind])
        assert vb.bound(q, alone) <= vb.bound(q, chain) + 1e-8
        assert vb.bound(q, alone) > vb.bound(q, chain) - 0.5 * len(part.known)
        assert sum(own.sum() for own in alone.emit) == pytest.approx(sum(own.sum() for own in chain.emit))
        counts = alone


def test_states_without_neighbours_are_factored_exactly() -> None:
    rng = np.random.default_rng(2)
    tags = [[[int(rng.integers(2))]] for _ in range(10)]
    shape = shaped((2, 3), tags)
    part = sentences(shape, rng.integers(0, WORDS, (10, 1)).tolist(), tags)
    q, counts = begun(shape, part, rng)
    tables = vb.expected_logs(vb.global_step(q, counts))
    same(mean_field_step(part, tables, EMISSIONS), vb.local_step(part, tables, EMISSIONS))


@pytest.mark.parametrize("open_", [0.0, 0.5])
def test_more_sweeps_never_lower_the_factored_bound(open_: float) -> None:
    rng = np.random.default_rng(3)
    shape, part = corpus(rng, (3, 2, 2), 25, open_=open_)
    q, counts = begun(shape, part, rng)
    q = vb.global_step(q, counts)
    q = vb.global_step(q, vb.local_step(part, vb.expected_logs(q), EMISSIONS))
    tables = vb.expected_logs(q)
    bounds = [vb.bound(q, mean_field_step(part, tables, EMISSIONS, sweeps=sweeps)) for sweeps in range(8)]
    assert (np.diff(bounds) >= -1e-9).all()
    assert bounds[-1] > bounds[0]


def test_tags_that_may_not_follow_one_another() -> None:
    """Weights stay on possible moves, where a product of free tokens would not."""
    tags = [[[0, 1], [0, 1], [0, 1]]] * 3
    shape = shaped((2, 2), tags)
    follows = shape.follows.copy()
    follows[0, 1] = follows[1, 1] = False
    shape = Shape(shape.tag_of, follows, shape.occurs)
    part = sentences(shape, [[0, 1, 2], [3, 3, 3], [2, 1, 0]], tags)
    q, counts = begun(shape, part, np.random.default_rng(5))
    q = vb.global_step(q, counts)
    tables = vb.expected_logs(q)
    found = mean_field_step(part, tables, EMISSIONS)
    assert found.mass.sum() == pytest.approx(9.0)
    assert (found.pairs[np.isneginf(tables.trans)] == 0).all()
    assert vb.bound(q, found) <= vb.bound(q, vb.local_step(part, tables, EMISSIONS))


def test_no_sentence_and_empty_sentences() -> None:
    tags: list[list[list[int]]] = [[], [[1], [0]], []]
    shape = shaped((2, 2), tags)
    part = sentences(shape, [[], [2, 1], []], tags)
    q, counts = begun(shape, part, np.random.default_rng(0))
    tables = vb.expected_logs(vb.global_step(q, counts))
    assert mean_field_step(part, tables, EMISSIONS).mass.sum() == pytest.approx(2.0)
    none = mean_field_step(cut(part, [1])[0], tables, EMISSIONS)
    assert none.mass.sum() == none.entropy == 0.0


def watched() -> tuple[list[float], Callable[[int, float], None]]:
    trace: list[float] = []
    return trace, lambda _, value: trace.append(value)


@pytest.mark.parametrize("q_z", ["chain", "factored"])
def test_one_sub_tag_per_tag_is_the_direct_form(q_z: Form) -> None:
    rng = np.random.default_rng(6)
    shape, part = corpus(rng, (1, 1, 1), 20)
    q, start = begun(shape, part, rng)
    trace, watch = watched()
    tables, counts = atoms.fit(shape, PRIORS, EMISSIONS, [part], passes=3, q_z=q_z, start=start, watch=watch)
    direct, wanted = learnt(q, start, part, 3)
    same(counts, wanted)
    for one, other in zip(
        [*tables[:3], *tables.emit], [*vb.expected_logs(direct)[:3], *vb.expected_logs(direct).emit], strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-9)
    assert trace == pytest.approx([vb.bound(direct, wanted)] * 3, abs=1e-6)


def test_the_weight_of_a_row_is_the_sum_of_its_atoms() -> None:
    rng = np.random.default_rng(7)
    a, b = rng.gamma(2.0, size=(2, 2, 3))
    rows = atoms.Rows(np.arange(2), a, b, rng.dirichlet(np.ones(2), size=(2, 4)))
    for r, k in itertools.product(range(2), range(2)):
        total, left = 0.0, 0.0
        for m in range(4):
            own = 0.0
            if m < 3:
                both = digamma(rows.a[r, m] + rows.b[r, m])
                own = digamma(rows.a[r, m]) - both
            total += np.exp(left + own) * rows.zeta[r, m, k]
            left += digamma(rows.b[r, m]) - both if m < 3 else 0.0
        assert rows.parts[r, :, k].sum() == pytest.approx(total)


def scored(part: Sentences, shape: Shape, tables: LogTables, q_z: Form) -> tuple[Counts, list[Floats]]:
    """The counts and scores of atoms by loops: every pair of neighbours by listing paths or as a product."""
    scores = [np.zeros((shape.Z + 1, K, K)) for K in np.diff(shape.firsts)]
    counts = mean_field_step(part, tables, EMISSIONS) if q_z == "factored" else vb.local_step(part, tables, EMISSIONS)
    for first, last in itertools.pairwise(part.bounds.tolist()):
        one = cut(part, [part.bounds.tolist().index(first)])[1]
        one = cut(one, [1])[0] if len(one) > 1 else one
        T = last - first
        lists = [one.active.cells[one.active.at[n] : one.active.at[n + 1]].tolist() for n in range(T)]
        states, pairs = np.zeros((T, shape.Z)), np.zeros((T, shape.Z + 1, shape.Z))
        if q_z == "chain":
            paths = list(itertools.product(*lists))
            moves = [sum(tables.trans[a, b] for a, b in itertools.pairwise(path)) for path in paths]
            shown = [sum(tables.emit[0][one.known[n, 0], z] for n, z in enumerate(path)) for path in paths]
            ends = [tables.start[path[0]] + tables.end[path[-1]] for path in paths]
            logs = np.array(moves) + np.array(shown) + np.array(ends)
            for chance, path in zip(np.exp(logs - np.logaddexp.reduce(logs)), paths, strict=True):
                for n, (before, state) in enumerate(itertools.pairwise([shape.Z, *path])):
                    states[n, state] += chance
                    pairs[n, before, state] += chance
        else:  # every token with a symbol of its own, so that its weights can be read from the counts
            shows = np.vstack([tables.emit[0], tables.emit[0][one.known[:, 0]]])
            apart = replace(one, known=WORDS + np.arange(T)[:, None])
            states = mean_field_step(apart, tables._replace(emit=(shows,)), Emissions((WORDS + T,), 0.4)).emit[0][
                WORDS:
            ]
            pairs[0, shape.Z] = states[0]
            for n in range(1, T):
                pairs[n, :-1] = np.outer(states[n - 1], states[n])
        for n in range(T):
            tag = shape.tag_of[lists[n][0]]
            for k in lists[n]:
                worth = tables.emit[0][one.known[n, 0], k]
                worth += (
                    tables.end[k] if n == T - 1 else sum(states[n + 1, z] * tables.trans[k, z] for z in lists[n + 1])
                )
                scores[tag][:, :, k - shape.firsts[tag]] += pairs[n][:, lists[n]] * worth
    return counts, scores


@pytest.mark.parametrize("q_z", ["chain", "factored"])
def test_counts_and_scores_of_a_tile_agree_with_loops(q_z: Form) -> None:
    rng = np.random.default_rng(8)
    shape, part = corpus(rng, (2, 3), 6)
    q, start = begun(shape, part, rng)
    tables = atoms._seed_atoms(vb.global_step(q, start), start).tables()
    found = atoms._zero_scores(shape)
    counts = atoms._local_step(part, tables, EMISSIONS, shape, found, q_z)
    wanted, scores = scored(part, shape, tables, q_z)
    same(counts, wanted)
    for one, other in zip(found, scores, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)  # sweeps end at a tolerance


def test_the_global_step_is_that_of_the_method() -> None:
    """The equations, row by row and atom by atom."""
    rng = np.random.default_rng(9)
    shape, part = corpus(rng, (2, 3), 12)
    base, start = begun(shape, part, rng)
    q = atoms._seed_atoms(vb.global_step(base, start), start)
    scores = atoms._zero_scores(shape)
    counts = atoms._local_step(part, q.tables(), EMISSIONS, shape, scores, "chain")
    now = atoms._global_step(q, counts, scores)
    log_pi = q.base.by_state([own.log_pi for own in q.base.sticks])
    for tag, block in enumerate(shape.blocks()):
        old, new, K = q.into[tag], now.into[tag], block.stop - block.start
        parts = old.parts
        for r, row in enumerate(old.rows.tolist()):
            y = np.zeros((2 * K, K))
            zeta = np.zeros((2 * K, K))
            for m in range(2 * K):
                share = parts[r, m] / parts[r].sum(axis=0)
                y[m] = counts.moves[row, block] * share
                logs = log_pi[block] + share @ scores[tag][row]
                zeta[m] = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
            used = y.sum(axis=1)
            order = [*np.argsort(-used[:-1], kind="stable"), 2 * K - 1]
            after = [used[order][m + 1 :].sum() for m in range(2 * K - 1)]
            np.testing.assert_allclose(new.a[r], 1 + used[order][:-1], rtol=0, atol=1e-9)
            np.testing.assert_allclose(new.b[r], PRIORS.alpha_t + np.array(after), rtol=0, atol=1e-9)
            np.testing.assert_allclose(new.zeta[r, :-1], zeta[order][:-1], rtol=0, atol=1e-9)
        popular = new.zeta[:, :-1].sum(axis=(0, 1))[now.base.order[block] - block.start]
        np.testing.assert_allclose(now.base.sticks[tag].a, 1 + popular[:-1], rtol=0, atol=1e-9)
        after = [popular[k + 1 :].sum() for k in range(K - 1)]
        np.testing.assert_allclose(now.base.sticks[tag].b, PRIORS.alpha + np.array(after), rtol=0, atol=1e-9)
    np.testing.assert_allclose(now.base.emit[0], 0.4 + counts.emit[0], rtol=0, atol=1e-9)


@pytest.mark.parametrize("q_z", ["chain", "factored"])
def test_tiles_and_parts_do_not_matter(q_z: Form, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(10)
    shape, part = corpus(rng, (2, 3), 20, open_=0.1)
    _, start = begun(shape, part, rng)
    whole = atoms.fit(shape, PRIORS, EMISSIONS, [part], passes=3, q_z=q_z, start=start)
    monkeypatch.setattr(atoms, "PAIRS", 200)
    apart = atoms.fit(shape, PRIORS, EMISSIONS, cut(part, [3, 9]), passes=3, q_z=q_z, start=start)
    same(whole[1], apart[1], 1e-7)
    np.testing.assert_allclose(whole[0].trans, apart[0].trans, rtol=0, atol=1e-7)


@pytest.mark.parametrize("kind", RICH)
@pytest.mark.parametrize("q_z", ["chain", "factored"])
def test_counts_add_up_and_every_move_stays_possible(kind: str, q_z: Form) -> None:
    rng = np.random.default_rng(11)
    shape, part = corpus(rng, (3, 2, 1), 30, open_=0.1, sizes_=KINDS[kind])
    _, start = begun(shape, part, rng, RICH[kind])
    tables, counts = atoms.fit(shape, PRIORS, RICH[kind], [part], passes=15, q_z=q_z, start=start)
    assert counts.mass.sum() == pytest.approx(len(part.known))
    np.testing.assert_allclose(counts.pairs.sum(axis=1) + counts.end, counts.mass, rtol=0, atol=1e-8)
    assert np.isfinite(tables.trans).all()
    moves = np.exp(np.vstack([tables.trans, tables.start])).sum(axis=1) + np.append(np.exp(tables.end), 0.0)
    assert (moves <= 1.0 + 1e-9).all()  # geometric means


@pytest.mark.parametrize(("q_z", "least"), [("chain", 0.9), ("factored", 0.6)])
def test_planted_sub_tags_are_found(q_z: Form, least: float) -> None:
    rng = np.random.default_rng(0)
    shape, part, states = planted(rng, 400)
    emissions = Emissions((20,), 0.2)
    q = vb.prior_globals(shape, Priors(), emissions)
    start = subtags.count_independent(part, subtags.context_weights([part], rng)[0], q)
    tables, _ = atoms.fit(shape, Priors(), emissions, [part], passes=20, q_z=q_z, start=start)
    found = most_likely(part, tables, emissions)
    for tag in range(2):
        own = shape.tag_of[states] == tag
        assert normalised_information(states[own], found[own]) > least


def test_the_objective_is_its_terms() -> None:
    """KL of sticks and atoms written out one by one."""
    rng = np.random.default_rng(12)
    shape, part = corpus(rng, (2, 2), 10)
    base, start = begun(shape, part, rng)
    q = atoms._seed_atoms(vb.global_step(base, start), start)
    counts = vb.local_step(part, q.tables(), EMISSIONS)
    wanted = counts.entropy + vb.energy(counts, q.tables()) - EMISSIONS.divergence(q.base.emit)
    for row in q.base.tags:
        own, alpha = row[row > 0], PRIORS.alpha_T
        logs = digamma(own) - digamma(own.sum())
        constant = math.lgamma(len(own) * alpha) - len(own) * math.lgamma(alpha)
        wanted += dirichlet(own).entropy() + constant + (alpha - 1) * logs.sum()
    log_pi = q.base.by_state([own.log_pi for own in q.base.sticks])
    for block, rows, sticks in zip(shape.blocks(), q.into, q.base.sticks, strict=True):
        wanted -= sticks.divergence(PRIORS.alpha)
        for a, b in zip(rows.a, rows.b, strict=True):
            wanted -= Sticks(a, b).divergence(PRIORS.alpha_t)
        for zeta in rows.zeta[:, :-1].reshape(-1, 2):
            wanted -= float((zeta * (np.log(zeta) - log_pi[block])).sum())
    assert atoms.objective(q, counts) == pytest.approx(wanted, abs=1e-8)
