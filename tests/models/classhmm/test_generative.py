"""The class HMM's likelihood against listing every path of states, its slope against finite differences, and EM."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from chaffinch.kernels import Active, Floats, Ints
from chaffinch.models.classhmm.generative import (
    ClassLayout,
    Likelihood,
    MStepObjective,
    StateTables,
    Text,
    log_emissions,
)
from chaffinch.models.core import lbfgs as ascent

CLASS_OF = np.array([0, 0, 1, 2, 2])
FOLLOWS = np.array([[1, 1, 1, 1], [1, 1, 0, 1], [1, 0, 1, 1], [1, 1, 0, 0]], bool)  # classes; the last are the edges
LENGTHS = [3, 1, 4]
LISTS = [[0, 1], [2], [3, 4], [0, 1, 3, 4], [0, 1, 2, 3, 4]]  # one class, or several: an open token
WHICH = [0, 3, 2, 4, 0, 1, 4, 0]
every_objective = pytest.mark.parametrize("weight", [0.0, 1.0, 0.3], ids=["joint", "krogh", "mix"])
shared_or_not = pytest.mark.parametrize("shared", [True, False], ids=["shared", "states alone"])
weighed_or_not = pytest.mark.parametrize("weighed", [True, False], ids=["weighed", "plain"])


def likelihood(weight: float, *, shared: bool = True, weighed: bool = True, kappa: float = 0.1) -> Likelihood:
    """Five states of three classes, seven types with five features, three sentences."""
    rng = np.random.default_rng(4)
    matrix = csr_array((rng.random((7, 5)) < 0.5).astype(float))
    edge = np.append(CLASS_OF, 3)
    active = Active.of(LISTS, np.array(WHICH))
    logs = np.log(rng.uniform(0.1, 1.0, len(active.cells))) if weighed else None
    text = Text(matrix, rng.integers(0, 7, sum(LENGTHS)), np.cumsum([0, *LENGTHS]), active, logs)
    layout = ClassLayout.of(CLASS_OF, FOLLOWS[np.ix_(edge, edge)], shared=shared)
    penalty = kappa * np.array([1.0, 4.0, 1.0, 1.0, 2.0])
    return Likelihood(text, csr_array(matrix.T), layout, weight, penalty, kappa)


def somewhere(objective: Likelihood, seed: int = 1) -> Floats:
    return np.random.default_rng(seed).normal(0.0, 0.7, sum(objective.sizes))


def probabilities(objective: Likelihood, x: Floats) -> tuple[Floats, Floats]:
    """Types (7, 5) and moves (6, 6), by the formulas, number by number."""
    places = iter(x.tolist())
    states = [[next(places) for _ in range(5)] for _ in range(5)]
    classes = [[next(places) for _ in range(4)] for _ in range(5)] if objective.layout.shared else [[0.0] * 4] * 5
    moves = [[next(places) for _ in range(6)] for _ in range(6)]
    pairs = [[next(places) for _ in range(4)] for _ in range(4)] if objective.layout.shared else [[0.0] * 4] * 4
    assert next(places, None) is None
    edge, G = [0, 0, 1, 2, 2, 3], objective.text.matrix.toarray()
    b, a = np.zeros((7, 5)), np.zeros((6, 6))
    for v, y in itertools.product(range(7), range(5)):
        b[v, y] = math.exp(sum(G[v, f] * (states[f][y] + classes[f][edge[y]] + classes[f][3]) for f in range(5)))
    for y, z in itertools.product(range(6), repeat=2):
        a[y, z] = FOLLOWS[edge[y], edge[z]] * math.exp(moves[y][z] + pairs[edge[y]][edge[z]])
    return b / b.sum(axis=0), a / a.sum(axis=1, keepdims=True)


def listed(objective: Likelihood, x: Floats, *, clamped: bool) -> list[float]:
    """log P of each sentence, with its classes or with any: every path of states."""
    (b, a), found, cell, begin = probabilities(objective, x), [], 0, 0
    for length in LENGTHS:
        choices: list[dict[int, float]] = []
        for n in range(begin, begin + length):
            states = LISTS[WHICH[n]]
            logs = (
                np.zeros(len(states)) if objective.text.logs is None else objective.text.logs[cell : cell + len(states)]
            )
            choices.append(dict(zip(states, np.exp(logs), strict=True)) if clamped else dict.fromkeys(range(5), 1.0))
            cell += len(states)
        total = 0.0
        for path in itertools.product(*choices):
            chance = math.prod(choices[t][y] * b[objective.text.rows[begin + t], y] for t, y in enumerate(path))
            total += chance * math.prod(a[step] for step in itertools.pairwise((5, *path, 5)))
        found.append(math.log(total))
        begin += length
    return found


def pulled(objective: Likelihood, x: Floats) -> float:
    """The penalty: one for each feature, one for all moves."""
    sizes, per = objective.sizes, objective.penalty
    total = float((np.repeat(per, 5) * x[: sizes[0]] ** 2).sum())
    if objective.layout.shared:
        total += float((np.repeat(per, 4) * x[sizes[0] : sizes[0] + sizes[1]] ** 2).sum())
    return total + objective.kappa * float((x[sizes[0] + sizes[1] :] ** 2).sum())


@every_objective
@shared_or_not
@weighed_or_not
def test_the_value_is_that_of_all_paths_listed(weight: float, shared: bool, weighed: bool) -> None:
    objective = likelihood(weight, shared=shared, weighed=weighed)
    for seed in range(3):
        x = somewhere(objective, seed)
        wanted = (
            sum(listed(objective, x, clamped=True))
            - weight * sum(listed(objective, x, clamped=False))
            - pulled(objective, x)
        )
        assert objective(x)[0] == pytest.approx(wanted, abs=1e-9)


@every_objective
@shared_or_not
@weighed_or_not
def test_the_slope_is_that_of_finite_differences_in_every_block(weight: float, shared: bool, weighed: bool) -> None:
    objective = likelihood(weight, shared=shared, weighed=weighed)
    x = somewhere(objective)
    wanted = [(objective(x + step)[0] - objective(x - step)[0]) / 2e-5 for step in 1e-5 * np.eye(len(x))]
    slope = objective(x)[1]
    assert objective.sizes == ((25, 20, 36, 16) if shared else (25, 0, 36, 0))
    for found, near in zip(*(np.split(both, np.cumsum(objective.sizes)[:-1]) for both in (slope, wanted)), strict=True):
        np.testing.assert_allclose(found, near, rtol=0, atol=1e-6)
        assert len(found) == 0 or np.abs(found).max() > 0.01


@shared_or_not
def test_valid_paths_are_no_likelier_than_all_paths(shared: bool) -> None:
    joint, conditional = (likelihood(w, shared=shared, weighed=False, kappa=0.0) for w in (0.0, 1.0))
    for seed in range(10):
        x = somewhere(joint, seed)
        assert joint(x)[0] < 0
        assert conditional(x)[0] <= 0
        assert joint(x)[0] <= joint(x)[0] - conditional(x)[0]  # log P(words, classes) <= log P(words)
    few = replace(conditional, text=conditional.text._replace(active=Active.of([list(range(5))], np.zeros(8, int))))
    assert few(x)[0] == pytest.approx(0.0, abs=1e-12)  # where all tokens are open nothing is left to say


def permuted(objective: Likelihood, x: Floats, order: list[int]) -> Floats:
    """The weights with states in another order."""
    state, by_class, moves, by_pair = (block.copy() for block in objective.blocks(x))
    edges = [*order, 5]
    parts = state[:, order], by_class, moves[np.ix_(edges, edges)], by_pair
    return np.concatenate([part.ravel() for part in parts])


@every_objective
@shared_or_not
def test_the_order_of_states_inside_a_class_does_not_matter(weight: float, shared: bool) -> None:
    objective = likelihood(weight, shared=shared, weighed=False)
    x = somewhere(objective)
    value = objective(x)[0]
    for order in ([1, 0, 2, 3, 4], [0, 1, 2, 4, 3], [1, 0, 2, 4, 3]):
        assert objective(permuted(objective, x, order))[0] == pytest.approx(value, abs=1e-9)
    assert abs(objective(permuted(objective, x, [2, 1, 0, 3, 4]))[0] - value) > 0.01  # across classes it does


def drawn(rng: np.random.Generator, lengths: list[int]) -> tuple[Ints, Ints]:
    """Types and classes of a text in which each class likes other words, and moves on as it likes."""
    chances = rng.dirichlet(np.ones(2), 3)
    words, classes = [], []
    for length in lengths:
        klass = int(rng.integers(2))
        for _ in range(length):
            words.append(int(rng.choice(4, p=[[0.6, 0.2, 0.1, 0.1], [0.1, 0.1, 0.3, 0.5]][klass])))
            classes.append(klass)
            klass = int(rng.choice(2, p=chances[klass]))
    return np.array(words), np.array(classes)


@shared_or_not
def test_names_alone_with_one_state_and_no_penalty_are_relative_frequencies(shared: bool) -> None:
    lengths = [6, 3, 9, 1, 12, 5]
    words, classes = drawn(np.random.default_rng(0), lengths)
    bounds, matrix = np.cumsum([0, *lengths]), csr_array(np.eye(4))
    allowed = np.array([[1, 1, 1], [1, 1, 1], [1, 1, 0]], bool)
    text = Text(matrix, words, bounds, Active.of([[0], [1]], classes))
    layout = ClassLayout.of(np.arange(2), allowed, shared=shared)
    objective = Likelihood(text, csr_array(matrix.T), layout, 0.0, np.full(4, 1e-7), 1e-7)
    found = ascent.maximise(objective, np.zeros(sum(objective.sizes)), evaluations=600, tolerance=1e-13)
    tables, log_b = objective.tables(found.x)
    shown, moved = np.zeros((4, 2)), np.zeros((3, 3))
    for word, klass in zip(words, classes, strict=True):
        shown[word, klass] += 1
    for first, end in itertools.pairwise(bounds.tolist()):
        for a, b in itertools.pairwise((2, *classes[first:end].tolist(), 2)):
            moved[a, b] += 1
    assert (shown > 0).all()
    np.testing.assert_allclose(np.exp(log_b), shown / shown.sum(axis=0), rtol=0, atol=1e-3)
    np.testing.assert_allclose(np.exp(tables.moves), moved / moved.sum(axis=1, keepdims=True), rtol=0, atol=1e-3)


def test_an_unknown_word_joins_the_denominator_for_itself() -> None:
    objective = likelihood(0.0)
    x = somewhere(objective)
    tables, log_b = objective.tables(x)
    words = csr_array(np.array([[1.0, 0, 1, 0, 0], [0, 0, 0, 0, 0], [0, 1, 0, 0, 1]]))
    found = np.exp(log_emissions(words, np.array([False, False, True]), tables))
    logits = objective.text.matrix.toarray() @ tables.weights
    for y in range(5):
        Z = math.fsum(math.exp(logit) for logit in logits[:, y])
        new = math.exp(tables.weights[0, y] + tables.weights[2, y])
        assert found[0, y] == pytest.approx(new / (Z + new), rel=1e-12)
        assert found[1, y] == pytest.approx(1 / (Z + 1), rel=1e-12)  # nothing is known of it
        assert found[2, y] == pytest.approx(math.exp(tables.weights[1, y] + tables.weights[4, y]) / Z, rel=1e-12)
    np.testing.assert_allclose(np.exp(log_b).sum(axis=0), 1.0, rtol=0, atol=1e-12)
    assert (found[:2] < 1).all()


def test_an_unknown_word_of_huge_weight_has_a_probability() -> None:
    tables = StateTables(np.array([[900.0]]), np.zeros(1), np.zeros(1), np.zeros((1, 1)), np.zeros(1))
    assert log_emissions(csr_array(np.ones((1, 1))), np.zeros(1, bool), tables).tolist() == [[0.0]]


@shared_or_not
@weighed_or_not
def test_held_counts_have_the_slope_of_the_whole_where_they_were_made(shared: bool, weighed: bool) -> None:
    objective = likelihood(0.0, shared=shared, weighed=weighed)
    for seed in range(4):
        x = somewhere(objective, seed)
        np.testing.assert_allclose(MStepObjective.at(objective, x)(x)[1], objective(x)[1], rtol=0, atol=1e-9)


def test_the_slope_with_held_counts_is_that_of_finite_differences() -> None:
    objective = likelihood(0.0)
    expected, x = MStepObjective.at(objective, somewhere(objective)), somewhere(objective, 2)
    wanted = [(expected(x + step)[0] - expected(x - step)[0]) / 2e-5 for step in 1e-5 * np.eye(len(x))]
    np.testing.assert_allclose(expected(x)[1], wanted, rtol=0, atol=1e-6)


@shared_or_not
def test_a_step_with_held_counts_never_lowers_the_likelihood(shared: bool) -> None:
    """The likelihood gains at least what the expectation gains: Jensen."""
    objective = likelihood(0.0, shared=shared, kappa=0.01)
    for seed in range(3):
        x = somewhere(objective, seed)
        for _ in range(8):
            expected = MStepObjective.at(objective, x)
            found = ascent.maximise(expected, x, evaluations=6)
            promised = found.value - expected(x)[0]
            assert promised >= 0
            assert objective(found.x)[0] - objective(x)[0] >= promised - 1e-9
            x = found.x
        assert objective(x)[0] > objective(somewhere(objective, seed))[0]


def test_moves_that_cannot_be_stay_impossible_and_only_shrink() -> None:
    objective = likelihood(0.3)
    x = somewhere(objective)
    forbidden = ~objective.layout.moves
    assert forbidden.any()
    assert (np.exp(objective.tables(x)[0].moves)[forbidden] == 0).all()
    slope = objective.blocks(objective(x)[1])[2]
    np.testing.assert_allclose(slope[forbidden], -0.2 * objective.blocks(x)[2][forbidden], rtol=0, atol=1e-12)


def test_a_text_without_sentences_has_no_value() -> None:
    objective = likelihood(1.0, weighed=False)
    nothing = np.zeros(0, np.int64)
    text = objective.text._replace(rows=nothing, bounds=np.zeros(1, np.int64), active=Active.of(LISTS, nothing))
    x = somewhere(objective)
    value, slope = replace(objective, text=text)(x)
    assert value == pytest.approx(-pulled(objective, x))
    assert np.isfinite(slope).all()
