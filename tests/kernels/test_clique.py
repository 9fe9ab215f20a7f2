"""Cliques of repeated tokens against listing every labelling. m occurrences, C labels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaffinch.errors import ConfigError, DataError, InfeasibleError
from chaffinch.kernels import Clique, beliefs, best_labels, clique, loopy_beliefs
from chaffinch.kernels.label_counts import CountCells
from tests.kernels import oracle

close = np.testing.assert_allclose


def random_clique(m: int, C: int, seed: int, *, edges: bool = False, scale: float = 1.0) -> Clique:
    rng = np.random.default_rng(seed)
    if edges:
        table = rng.normal(0.0, scale, (m, m, C, C))
        return Clique(rng.normal(size=(m, C)), table + table.transpose(1, 0, 3, 2))
    table = rng.normal(0.0, scale, (C, C))
    return Clique(rng.normal(size=(m, C)), table + table.T)


shapes = st.tuples(st.integers(1, 6), st.integers(2, 3), st.integers(0, 2**32 - 1))


@given(shapes, st.booleans(), st.booleans())
@settings(max_examples=60, deadline=None)
def test_exact_inference_agrees_with_listing(shape: tuple[int, int, int], edges: bool, count: bool) -> None:
    m, C, seed = shape
    made = random_clique(m, C, seed, edges=edges)
    listed = oracle.clique_scores(made)
    log_z = math.log(math.fsum(math.exp(score) for score, _ in listed))
    marginals = np.zeros((m, C))
    for score, labels in listed:
        marginals[np.arange(m), labels] += math.exp(score - log_z)
    with pytest.MonkeyPatch.context() as patch:
        if count and not edges:
            patch.setattr(clique, "ENUMERATE", 1)
        found, best = beliefs(made), best_labels(made)
    assert found.exact
    assert best.exact
    close(found.log_z, log_z, rtol=0, atol=1e-9)
    close(found.labels, marginals, rtol=0, atol=1e-9)
    close(best.score, max(score for score, _ in listed), rtol=0, atol=1e-9)
    close(made.score(best.labels), best.score, rtol=0, atol=1e-9)


def test_counting_reaches_sizes_that_listing_cannot() -> None:
    made = random_clique(60, 3, 4)
    found, best = beliefs(made), best_labels(made)
    assert found.exact
    assert best.exact
    close(found.labels.sum(axis=1), 1.0, rtol=0, atol=1e-9)
    close(made.score(best.labels), best.score, rtol=0, atol=1e-8)
    flipped = best.labels.copy()
    flipped[7] = (flipped[7] + 1) % 3
    assert made.score(flipped) <= best.score


@given(shapes)
@settings(max_examples=30, deadline=None)
def test_cells_are_all_label_counts_by_total_and_lead_to_one_more(shape: tuple[int, int, int]) -> None:
    m, C, _ = shape
    cells = CountCells.of(m, C)
    assert cells.sizes.tolist() == [math.comb(i + C - 1, C - 1) for i in range(m + 1)]  # so that work is m^C / C!
    assert cells.counts.sum(axis=0).tolist() == [m] * cells.sizes[m]
    assert len({*map(tuple, cells.counts.T.tolist())}) == cells.sizes[m]
    for o in range(m):
        for label in range(C - 1):
            grown = cells.counts[: C - 1, cells.following(o, label)] - cells.counts[: C - 1, : cells.sizes[o]]
            assert (grown == np.eye(C - 1, dtype=int)[:, [label]]).all()


def test_scores_of_any_range_are_summed() -> None:
    made = Clique(np.array([[0.0, 900.0], [-np.inf, 0.0], [900.0, 0.0]] * 6), 2000.0 * np.eye(2))
    found = beliefs(made)
    close(found.labels[:, 1], 1.0, rtol=0, atol=1e-12)  # the second of three allows no other label
    close(found.log_z, made.score(np.ones(18, np.int64)), rtol=0, atol=1e-6)


def test_one_confident_occurrence_carries_the_other() -> None:
    made = Clique(np.array([[0.0, 4.0], [0.3, 0.0]]), 2.0 * np.eye(2))
    assert best_labels(made).labels.tolist() == [1, 1]
    assert beliefs(made).labels[1, 1] > 0.5


def test_a_single_occurrence_stays_as_it_was() -> None:
    unary = np.log([[0.2, 0.5, 0.3]])
    made = Clique(unary, np.full((3, 3), 9.0))
    close(beliefs(made).labels, [[0.2, 0.5, 0.3]], rtol=0, atol=1e-12)
    assert best_labels(made).labels.tolist() == [1]
    close(loopy_beliefs(made).labels, [[0.2, 0.5, 0.3]], rtol=0, atol=1e-12)


@pytest.mark.parametrize("edges", [False, True])
@pytest.mark.parametrize("m", [5, 18])
def test_the_order_of_occurrences_does_not_matter(m: int, edges: bool) -> None:
    made = random_clique(m, 3, 1, edges=edges)
    order = np.random.default_rng(2).permutation(m)
    pairwise = made.pairwise[np.ix_(order, order)] if edges else made.pairwise
    turned = Clique(made.unary[order], pairwise)
    close(beliefs(turned).labels, beliefs(made).labels[order], rtol=0, atol=1e-9)
    assert np.array_equal(best_labels(turned).labels, best_labels(made).labels[order])
    close(loopy_beliefs(turned).labels, loopy_beliefs(made).labels[order], rtol=0, atol=1e-9)


def test_approximations_bound_and_come_near(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [random_clique(7, 2, seed, edges=True, scale=0.5) for seed in range(20)]
    exact, best = [beliefs(one) for one in made], [best_labels(one) for one in made]
    monkeypatch.setattr(clique, "ENUMERATE", 1)
    hits = 0
    for one, truth, top in zip(made, exact, best, strict=True):
        field, found, loopy = beliefs(one), best_labels(one), loopy_beliefs(one)
        assert not field.exact
        assert field.log_z <= truth.log_z + 1e-9  # mean field bounds log Z from below
        assert found.score <= top.score + 1e-9
        assert found.score >= one.score(np.argmax(field.labels, axis=1)) - 1e-9  # climbing never goes down
        assert np.abs(field.labels - truth.labels).max() < 0.12
        assert np.abs(loopy.labels - truth.labels).max() < 0.05
        hits += bool(found.score > top.score - 1e-9)
    assert hits >= 17


def test_no_single_change_improves_what_climbing_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clique, "ENUMERATE", 1)
    for seed in range(20):
        made = random_clique(9, 3, seed, edges=True, scale=4.0)
        found = best_labels(made)
        for o in range(9):
            for label in range(3):
                changed = found.labels.copy()
                changed[o] = label
                assert made.score(changed) <= found.score + 1e-9


def test_forbidden_labels_stay_forbidden() -> None:
    unary = np.array([[0.0, -np.inf], [0.0, 3.0], [0.0, 3.0]])
    made = Clique(unary, np.zeros((2, 2)))
    assert beliefs(made).labels[0].tolist() == [1.0, 0.0]
    assert loopy_beliefs(made).labels[0].tolist() == [1.0, 0.0]
    never = np.array([[0.0, -np.inf], [-np.inf, 0.0]])
    agree = Clique(unary, never)
    assert best_labels(agree).labels.tolist() == [0, 0, 0]
    with pytest.raises(InfeasibleError, match="no possible joint labelling"):
        beliefs(Clique(np.array([[0.0, -np.inf], [-np.inf, 0.0]]), never))
    with pytest.raises(InfeasibleError, match="occurrence 1"):
        Clique(np.array([[0.0, 0.0], [-np.inf, -np.inf]]), never)


def test_what_a_clique_refuses() -> None:
    with pytest.raises(DataError, match="symmetric"):
        Clique(np.zeros((3, 2)), np.array([[0.0, 1.0], [2.0, 0.0]]))
    with pytest.raises(DataError, match="pairwise must be"):
        Clique(np.zeros((3, 2)), np.zeros((3, 3)))
    with pytest.raises(DataError, match="none of them 0"):
        Clique(np.zeros((0, 2)), np.zeros((2, 2)))
    with pytest.raises(ConfigError, match="damping"):
        loopy_beliefs(random_clique(2, 2, 0), damping=1.0)
