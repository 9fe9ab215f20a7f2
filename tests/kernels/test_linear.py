"""Linear chains over sparse features against labellings listed one by one and features counted in dictionaries."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from chaffinch.kernels import linear
from chaffinch.kernels.linear import Learner, Steps, Target, Weights
from tests.kernels import linear_oracle as oracle
from tests.kernels.linear_oracle import Case, Cell, Route, build, cases, cost, same, toy
from tests.kernels.test_compiled import SOURCE, python

FEW = settings(max_examples=25)


def copied(learner: Learner) -> Weights:
    return Weights(learner.weights.rows.copy(), learner.weights.moves.copy())


def passive_aggressive(
    case: Case, s: int, right: Route, C: float, *, augmented: bool
) -> tuple[dict[Cell, float], float]:
    """The change of one update, and the loss before it; the violator must be unmistakable."""
    shown = {
        path: oracle.features(case.seen, case.states, s, path) for path in oracle.routes(case.seen, case.states, s)
    }
    score = {path: oracle.score(case.weights, case.states, counts) for path, counts in shown.items()}
    rank = {path: score[path] + (cost(case, s, right, path) if augmented else 0.0) for path in shown}
    ordered = sorted(rank.values(), reverse=True)
    assume(len(ordered) < 2 or ordered[0] - ordered[1] > 1e-4)
    wrong = max(rank, key=lambda path: rank[path])
    loss = cost(case, s, right, wrong) + score[wrong] - score[right]
    assume(loss == 0 or abs(loss) > 1e-4)
    gap = Counter(shown[right])
    gap.subtract(shown[wrong])
    squared = sum(times**2 for times in gap.values())
    tau = min(C, loss / squared) if loss > 0 and squared else 0.0
    return {cell: tau * times for cell, times in gap.items() if times}, max(loss, 0.0)


@given(cases())
def test_scores_are_the_sum_of_all_rows_that_speak_for_a_token(case: Case) -> None:
    K, found = case.states.K, linear.scores(case.seen, case.weights, case.states)
    wanted = [
        [oracle.local_score(case.weights, case.seen, case.states, s, t, x) for x in range(K)]
        for s, (begin, end) in enumerate(zip(case.seen.begins, case.seen.ends, strict=True))
        for t in range(end - begin)
    ]
    np.testing.assert_allclose(found[:, :K], wanted, rtol=0, atol=1e-5)
    assert case.seen.places.tolist() == np.flatnonzero(case.seen.types > 0).tolist()


@given(cases(), st.sampled_from([1.0, 0.25]))
def test_a_batch_scores_every_labelling_as_its_features_do(case: Case, scale: float) -> None:
    batch = linear.batch(case.seen, case.weights, case.states, scale=scale)
    assert len(batch) == len(case.seen.begins)
    for s in range(len(batch)):
        lattice = batch[s]
        for path in oracle.routes(case.seen, case.states, s):
            got = lattice.start[path[0]] + lattice.end[path[-1]] + lattice.emit[range(len(path)), path].sum()
            got += sum(lattice.trans[a, b] for a, b in pairwise(path))
            shown = oracle.features(case.seen, case.states, s, path)
            assert got == pytest.approx(scale * oracle.score(case.weights, case.states, shown), abs=1e-5)
    forbidden = case.states.moves.reshape(-1, case.states.W)[: case.states.K, : case.states.K] < 0
    assert (batch.trans[forbidden] == -np.inf).all()


@given(cases())
def test_decode_finds_the_best_of_all_labellings(case: Case) -> None:
    found = linear.decode(case.seen, case.weights, case.states)
    for s, (begin, end) in enumerate(zip(case.seen.begins, case.seen.ends, strict=True)):
        every = oracle.routes(case.seen, case.states, s)
        score = {
            path: oracle.score(case.weights, case.states, oracle.features(case.seen, case.states, s, path))
            for path in every
        }
        assert score[tuple(found[begin:end].tolist())] == pytest.approx(max(score.values()), abs=1e-5)
    assert not found[case.seen.types == 0].any()


@given(cases(sentences=2), st.sampled_from([0.01, 0.1, 10.0]), st.booleans())
def test_one_passive_aggressive_update_is_the_formula(case: Case, C: float, augmented: bool) -> None:
    s, learner = len(case.seen.begins) - 1, case.learner("pa", C=C, augmented=augmented)
    change, loss = passive_aggressive(case, s, case.gold(s), C, augmented=augmented)
    assert learner.walk(case.seen, case.target, np.array([s])) == pytest.approx(loss, abs=1e-4)
    same(learner.weights, oracle.as_arrays(case, change))


@given(cases(soft=True, sentences=2), st.sampled_from([0.05, 10.0]))
def test_an_update_from_soft_rows_goes_towards_the_likeliest_labelling(case: Case, C: float) -> None:
    s, learner = len(case.seen.begins) - 1, case.learner("pa", C=C)
    chances = sorted(((chance, path) for path, chance in case.chances(s).items()), reverse=True)
    assume(len(chances) < 2 or chances[0][0] > 1.001 * chances[1][0])
    change, loss = passive_aggressive(case, s, chances[0][1], C, augmented=True)
    assert learner.walk(case.seen, case.target, np.array([s])) == pytest.approx(loss, abs=1e-4)
    same(learner.weights, oracle.as_arrays(case, change))


@given(cases(sentences=1))
def test_a_step_that_is_not_cut_short_makes_the_margin_equal_to_the_cost(case: Case) -> None:
    right, learner = case.gold(0), case.learner("pa", C=1e6)
    change, loss = passive_aggressive(case, 0, right, 1e6, augmented=True)
    assume(loss > 0 and change)
    shown = {
        path: oracle.features(case.seen, case.states, 0, path) for path in oracle.routes(case.seen, case.states, 0)
    }
    wrong = max(
        shown, key=lambda path: oracle.score(case.weights, case.states, shown[path]) + cost(case, 0, right, path)
    )
    learner.walk(case.seen, case.target, np.array([0]))
    margin = oracle.score(learner.weights, case.states, shown[right])
    margin -= oracle.score(learner.weights, case.states, shown[wrong])
    assert margin == pytest.approx(cost(case, 0, right, wrong), abs=1e-4)


@given(cases(sentences=1))
def test_a_right_prediction_changes_nothing_unless_the_cost_is_added(case: Case) -> None:
    right = linear.decode(case.seen, case.weights, case.states)
    learner = case.learner("pa", augmented=False)
    assert learner.walk(case.seen, case.target._replace(gold=right), np.array([0])) == pytest.approx(0, abs=1e-5)
    same(learner.weights, case.weights, atol=0)
    assert not learner.totals.rows.any()


@given(cases(sentences=1), st.sampled_from([0.05, 10.0]), st.booleans(), st.booleans())
def test_the_second_best_is_the_violator_of_a_right_prediction(
    case: Case, C: float, predicted: bool, moves: bool
) -> None:
    gold = linear.decode(case.seen, case.weights, case.states) if predicted else case.target.gold
    right = tuple(gold[case.seen.begins[0] : case.seen.ends[0]].tolist())
    shown = {
        path: oracle.features(case.seen, case.states, 0, path) for path in oracle.routes(case.seen, case.states, 0)
    }
    score = {path: oracle.score(case.weights, case.states, counts) for path, counts in shown.items()}
    others = sorted((path for path in shown if path != right), key=lambda path: -score[path])
    ordered = sorted(score.values(), reverse=True)
    assume(all(a - b > 1e-4 for a, b in pairwise(ordered[:3])))
    learner = case.learner("pa", C=C, augmented=False, second=True, moves=moves)
    lost = learner.walk(case.seen, case.target._replace(gold=gold), np.array([0]))
    if not others:
        assert lost == 0.0
        same(learner.weights, case.weights, atol=0)
        return
    wrong = others[0]
    loss = cost(replace(case, target=case.target._replace(gold=gold)), 0, right, wrong) + score[wrong] - score[right]
    assume(abs(loss) > 1e-4)
    gap = Counter(shown[right])
    gap.subtract(shown[wrong])
    used = {cell: times for cell, times in gap.items() if times and (moves or cell[0] == "row")}
    squared = sum(times**2 for times in used.values())
    tau = min(C, loss / squared) if loss > 0 and squared else 0.0
    assert lost == pytest.approx(max(loss, 0.0), abs=1e-4)
    same(learner.weights, oracle.as_arrays(case, {cell: tau * times for cell, times in used.items()}))


@given(cases(), st.sampled_from(["pa", "crf"]))
@FEW
def test_averaged_weights_are_the_mean_of_the_weights_after_each_sentence(
    case: Case, objective: linear.Objective
) -> None:
    together, apart = (case.learner(objective, C=0.05) for _ in range(2))
    order, after = np.random.default_rng(0).integers(0, len(case.seen.begins), 7), []
    for s in order:
        apart.walk(case.seen, case.target, np.array([s]))
        after.append(copied(apart))
    together.walk(case.seen, case.target, order[:4])
    together.walk(case.seen, case.target, order[4:])
    for learner in (together, apart):
        found = learner.average()
        np.testing.assert_allclose(found.rows, np.mean([weights.rows for weights in after], axis=0), rtol=0, atol=1e-5)
        np.testing.assert_allclose(
            found.moves, np.mean([weights.moves for weights in after], axis=0), rtol=0, atol=1e-5
        )


@given(cases(), st.sampled_from(["pa", "crf"]), st.integers(0, 1000))
@FEW
def test_the_order_of_features_does_not_matter(case: Case, objective: linear.Objective, seed: int) -> None:
    rng, seen = np.random.default_rng(seed), case.seen
    order = np.concatenate([a + rng.permutation(b - a) for a, b in zip(seen.lists, seen.lists[1:], strict=False)])
    shuffled = seen._replace(
        rows=seen.rows[order], first=seen.first[order], width=seen.width[order],
        columns=seen.columns[:, ::-1].copy(), column_first=seen.column_first[::-1].copy(),
        column_width=seen.column_width[::-1].copy(),
    )  # fmt: skip
    one, other = (case.learner(objective, C=0.05) for _ in range(2))
    for s in range(len(seen.begins)):
        one.walk(seen, case.target, np.array([s]))
        other.walk(shuffled, case.target, np.array([s]))
    same(one.weights, other.weights, atol=1e-4)


@pytest.mark.parametrize("augmented", [True, False])
def test_a_separable_toy_is_learnt_without_loss(augmented: bool) -> None:
    seen, states, target = toy()
    learner = Learner(2, states, objective="pa", steps=Steps(1.0, 0.1, augmented))
    losses = [learner.walk(seen, target, np.arange(4)) for _ in range(20)]
    assert losses[0] > 0
    assert losses[-1] == pytest.approx(0, abs=1e-5)
    assert linear.decode(seen, learner.weights, states)[seen.types > 0].tolist() == target.gold[seen.types > 0].tolist()


@pytest.mark.parametrize("objective", ["pa", "crf"])
def test_a_sentence_that_contradicts_itself_is_passed_over(objective: linear.Objective) -> None:
    case = build(np.random.default_rng(5), 3, [3, 3])
    weights, free = np.zeros((1, case.states.W), np.float32), np.zeros(1, np.bool_)
    gold = case.target.gold.copy()
    gold[case.seen.begins[0] + 1] = -1  # row 0 allows nothing
    broken = Target(gold, np.zeros(len(gold), np.int32), weights, free)
    learner, other = case.learner(objective), case.learner(objective)
    learner.walk(case.seen, broken, np.array([0]))
    same(learner.weights, case.weights, atol=0)
    assert not learner.totals.rows.any()
    learner.walk(case.seen, broken, np.array([0, 1]))
    other.walk(case.seen, case.target, np.array([1]))
    same(learner.weights, other.weights, atol=1e-6)
    assert np.abs(learner.weights.rows - case.weights.rows).max() > 0.01


@pytest.mark.parametrize("objective", ["pa", "crf"])
def test_a_very_long_sentence_is_learnt_and_read(objective: linear.Objective) -> None:
    seen, states, target = toy(5_000, 1)
    learner = Learner(2, states, objective=objective, steps=Steps(1.0, 0.1, augmented=True))
    losses = [learner.walk(seen, target, np.array([0])) for _ in range(4)]
    assert np.isfinite(losses).all()
    assert np.isfinite(learner.average().rows).all()
    assert losses[-1] < losses[0]
    assert linear.decode(seen, learner.average(), states).tolist() == target.gold.tolist()


@pytest.mark.parametrize("T", [100, 5_000])
def test_a_feature_shown_by_every_token_many_times_adds_up(T: int) -> None:
    seen, states, _ = toy(T, 1)
    lists, rows, ones = np.array([0, 0, 13, 26], np.int32), np.zeros(26, np.int32), np.ones(26, np.int8)
    seen = seen._replace(lists=lists, rows=rows, first=ones - ones, width=ones)
    gold = np.where(seen.types > 0, 1, 0).astype(np.int32)
    nothing = np.zeros((0, states.W), np.float32), np.zeros(0, np.bool_)
    learner = Learner(1, states, objective="pa", steps=Steps(1.0, 0.1, augmented=True))
    learner.walk(seen, Target(gold, np.zeros_like(gold), *nothing), np.array([0]))
    tau = T / (2 * (13 * T) ** 2 + 2 * (T - 1) ** 2 + 4)  # every token wrong, T - 1 moves, one start, one end
    np.testing.assert_allclose(learner.weights.rows[:2], [-13 * T * tau, 13 * T * tau], rtol=1e-4, atol=0)


TWIN = """
import json, sys
import numpy as np
from chaffinch.kernels import linear
from tests.kernels.linear_oracle import build
out = []
for seed in range(6):
    case = build(np.random.default_rng(seed), 2 + seed % 4, [4, 1, 3], shared=seed % 2 == 1, soft=seed >= 3)
    out += [linear.scores(case.seen, case.weights, case.states)[:, : case.states.K].ravel().tolist()]
    out += [linear.decode(case.seen, case.weights, case.states).tolist()]
    for objective in ("pa", "crf"):
        learner = case.learner(objective)
        losses = [learner.walk(case.seen, case.target, np.array([2, 0, 1])) for _ in range(2)]
        moves = np.maximum(learner.average().moves, -99)
        out += [losses, learner.average().rows.tolist(), moves.tolist()]
json.dump(out, sys.stdout)
"""


def test_the_plain_python_twin_gives_the_same_numbers(tmp_path: Path) -> None:
    root = str(Path(SOURCE).parent)
    path = {"PYTHONPATH": os.pathsep.join([os.environ.get("PYTHONPATH", ""), SOURCE, root]).strip(os.pathsep)}
    slow = python(TWIN, tmp_path, NUMBA_DISABLE_JIT="1", PYTHONWARNINGS="ignore", **path)
    quick = python(TWIN, Path(os.environ["CHAFFINCH_CACHE"]), **path)
    for one, other in zip(json.loads(slow.stdout), json.loads(quick.stdout), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-4)
