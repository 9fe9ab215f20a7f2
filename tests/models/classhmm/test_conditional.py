"""The class HMM as a conditional random field: its value against labellings listed one by one, its slope against
finite differences.

All weights are whole multiples of 1/1024, which single precision holds exactly.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from chaffinch.kernels import Active, Floats, Ints, linear
from chaffinch.kernels.linear import States
from chaffinch.models.classhmm.conditional import Conditional
from chaffinch.models.core import lbfgs as ascent
from tests.kernels import linear_oracle as oracle
from tests.kernels.linear_oracle import Case, build

GRAIN = 1.0 / 1024
CLASS_OF = np.array([0, 0, 1, 2, 2])
LENGTHS = [3, 1, 4]
HEIGHT = 30  # weight rows of `build`
shared_or_not = pytest.mark.parametrize("shared", [True, False], ids=["shared", "states alone"])
weighed_or_not = pytest.mark.parametrize("weighed", [True, False], ids=["weighed", "plain"])


def field(*, shared: bool = True, weighed: bool = False, kappa: float = 0.125) -> tuple[Conditional, Case]:
    """Five states of three classes, with moves that cannot be; tokens of one class, of two, or open."""
    rng = np.random.default_rng(11)
    case = build(rng, 5, LENGTHS)
    moves = np.ones((7, 5), np.bool_)
    moves[[0, 1], 2], moves[5, 3], moves[6, 2] = False, False, False
    case = replace(case, states=States.of(CLASS_OF, moves))
    lists = [[0, 1], [3, 4], [0, 1, 3, 4], [2, 3, 4], [0, 1, 2, 3, 4]]
    active = Active.of(lists, np.array([2, 3, 1, 4, 0, 4, 3, 0]))
    logs = np.log(rng.uniform(0.1, 1.0, len(active.cells))) if weighed else None
    penalty = kappa * rng.integers(1, 4, HEIGHT + 7).astype(np.float64)
    return Conditional(case.seen, case.states, CLASS_OF, active, logs, penalty, shared), case


def somewhere(crf: Conditional, seed: int = 0, spread: float = 0.5) -> Floats:
    return np.round(np.random.default_rng(seed).normal(0.0, spread, crf.size) / GRAIN) * GRAIN


def summed(crf: Conditional, x: Floats) -> Floats:
    """(R + 7, 5) the weights of each state and of its class, number by number."""
    out, rest = np.zeros((HEIGHT + 7, 5)), (HEIGHT + 7) * 5
    for row in range(HEIGHT + 7):
        for state in range(5):
            out[row, state] = x[row * 5 + state]
            if crf.shared:
                out[row, state] += x[rest + row * 3 + CLASS_OF[state]]
    return out


def listed(crf: Conditional, case: Case, x: Floats) -> float:
    """log P(classes | words) less the penalty, every labelling listed."""
    weights, total, allowed, cell = summed(crf, x), 0.0, [], 0
    for width in crf.active.widths.tolist():
        logs = np.zeros(width) if crf.logs is None else crf.logs[cell : cell + width]
        allowed.append(dict(zip(crf.active.cells[cell : cell + width].tolist(), logs.tolist(), strict=True)))
        cell += width
    for s, begin in enumerate(np.cumsum([0, *LENGTHS[:-1]]).tolist()):
        known, every = [], []
        for path in oracle.routes(case.seen, case.states, s):
            shown = oracle.features(case.seen, case.states, s, path)
            score = math.fsum(n * weights[a + HEIGHT * (which == "move"), b] for (which, a, b), n in shown.items())
            every.append(score)
            if all(y in allowed[begin + t] for t, y in enumerate(path)):
                known.append(score + sum(allowed[begin + t][y] for t, y in enumerate(path)))
        total += float(np.logaddexp.reduce(known) - np.logaddexp.reduce(every))
    rows = np.repeat(crf.penalty, 5)
    penalty = np.concatenate([rows, np.repeat(crf.penalty, 3)]) if crf.shared else rows
    return total - float((penalty * x**2).sum())


@shared_or_not
@weighed_or_not
def test_the_value_is_that_of_all_labellings_listed(shared: bool, weighed: bool) -> None:
    crf, case = field(shared=shared, weighed=weighed)
    for seed in range(3):
        x = somewhere(crf, seed)
        assert crf(x)[0] == pytest.approx(listed(crf, case, x), abs=1e-4)
        assert crf(x)[0] == pytest.approx(listed(crf, case, x), rel=1e-6)


@shared_or_not
@weighed_or_not
def test_the_slope_is_that_of_finite_differences(shared: bool, weighed: bool) -> None:
    crf, _ = field(shared=shared, weighed=weighed)
    x = somewhere(crf)
    wanted = np.array([crf(x + step)[0] - crf(x - step)[0] for step in GRAIN * np.eye(len(x))]) / (2 * GRAIN)
    slope = crf(x)[1]
    np.testing.assert_allclose(slope, wanted, rtol=0, atol=5e-5)
    for block in crf.blocks(slope):
        if block.size:
            assert np.abs(block[:HEIGHT]).max() > 0.1
            assert np.abs(block[HEIGHT:]).max() > 0.1


def test_weights_of_classes_are_those_of_all_their_states() -> None:
    crf, _ = field()
    x = somewhere(crf)
    found = crf.weights(x)
    wanted = summed(crf, x)
    np.testing.assert_array_equal(found.rows.reshape(HEIGHT, -1)[:, :5], wanted[:HEIGHT])
    possible = np.isfinite(crf.states.moves.reshape(7, -1)[:, :5])
    np.testing.assert_array_equal(found.moves.reshape(7, -1)[:, :5][possible], wanted[HEIGHT:][possible])
    assert not found.rows.reshape(HEIGHT, -1)[:, 5:].any()
    alone, _ = field(shared=False)
    states = alone.weights(wanted.ravel())
    assert np.array_equal(states.rows, found.rows)
    assert np.array_equal(states.moves, found.moves)
    assert crf.size == (HEIGHT + 7) * 8
    assert alone.size == (HEIGHT + 7) * 5


def test_without_a_penalty_both_forms_say_the_same() -> None:
    crf, alone = (field(shared=shared, kappa=0.0)[0] for shared in (True, False))
    x = somewhere(crf)
    value, slope = crf(x)
    other, by_state = alone(summed(crf, x).ravel())
    assert value == pytest.approx(other, abs=1e-12)
    states, classes = crf.blocks(slope)
    np.testing.assert_allclose(states.ravel(), by_state, rtol=0, atol=1e-12)
    together = np.stack([states[:, klass == CLASS_OF].sum(axis=1) for klass in range(3)], axis=1)
    np.testing.assert_allclose(classes, together, rtol=0, atol=1e-5)


@shared_or_not
def test_moves_that_cannot_be_never_get_weight(shared: bool) -> None:
    crf, _ = field(shared=shared, kappa=0.0)
    x = somewhere(crf)
    never = ~np.isfinite(crf.states.moves.reshape(7, -1)[:, :5])
    assert never.sum() == 4
    assert (crf.weights(x).moves.reshape(7, -1)[:, :5][never] == -np.inf).all()
    assert not crf.blocks(crf(x)[1])[0][HEIGHT:][never].any()
    found = ascent.maximise(crf, np.zeros(crf.size), evaluations=20)
    assert not crf.blocks(found.x)[0][HEIGHT:][never].any()
    assert found.value > crf(np.zeros(crf.size))[0] + 1.0


def test_what_is_known_is_never_likelier_than_everything() -> None:
    crf, _ = field(kappa=0.0)
    for seed in range(10):
        assert crf(somewhere(crf, seed, 2.0))[0] <= 0
    everything = replace(crf, active=Active.of([list(range(5))], np.zeros(8, np.int64)))
    assert everything(somewhere(crf))[0] == pytest.approx(0.0, abs=1e-9)
    assert np.abs(everything(somewhere(crf))[1]).max() < 1e-5


def test_the_order_of_states_inside_a_class_does_not_matter() -> None:
    crf, _ = field(kappa=0.0)
    x = somewhere(crf)
    states, classes = (block.copy() for block in crf.blocks(x))
    order = np.array([1, 0, 2, 4, 3])
    free = replace(crf, states=crf.states._replace(moves=np.zeros_like(crf.states.moves)))
    rows = np.arange(HEIGHT + 7)
    rows[HEIGHT : HEIGHT + 5] = HEIGHT + order  # moves from a state
    value = free(x)[0]
    changed = np.concatenate([states[rows][:, order].ravel(), classes[rows].ravel()])
    assert free(changed)[0] == pytest.approx(value, abs=1e-5)
    across = np.concatenate([states[:, [2, 1, 0, 3, 4]].ravel(), classes.ravel()])
    assert abs(free(across)[0] - value) > 0.01


def test_huge_weights_stay_finite() -> None:
    crf, _ = field(kappa=0.0)
    value, slope = crf(somewhere(crf, 3, 1e4))
    assert np.isfinite(value)
    assert np.isfinite(slope).all()


def chosen(crf: Conditional, sentences: Ints) -> Conditional:
    edges = np.cumsum([0, *LENGTHS])
    tokens = np.concatenate([np.arange(edges[s], edges[s + 1]) for s in sentences])
    active = Active(crf.active.states, crf.active.bounds, crf.active.which[tokens])
    return replace(crf, seen=crf.seen.choose(sentences), active=active)


def test_the_value_of_a_text_is_that_of_its_sentences() -> None:
    crf, _ = field(kappa=0.0)
    x = somewhere(crf)
    parts = [chosen(crf, np.array([s]))(x) for s in range(3)]
    value, slope = crf(x)
    assert sum(part for part, _ in parts) == pytest.approx(value, abs=1e-9)
    np.testing.assert_allclose(np.sum([part for _, part in parts], axis=0), slope, rtol=0, atol=1e-5)
    assert linear.scores(crf.seen, crf.weights(x), crf.states).shape == (8, 8)
