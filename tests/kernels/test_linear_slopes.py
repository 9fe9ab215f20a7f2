"""Gradients of weights from gradients of scores: against rows listed token by token, and as transpose of `scores`."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaffinch.features import observe as window
from chaffinch.features import vocabulary
from chaffinch.kernels import linear
from chaffinch.kernels.linear import Singles, SparseInput, States, Weights
from tests.kernels import linear_oracle as oracle
from tests.kernels.linear_oracle import Case, build
from tests.models.notes import notes


@st.composite
def plain_cases(draw: st.DrawFn) -> Case:
    """Random models whose states share no columns."""
    lengths = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    return build(np.random.default_rng(draw(st.integers(0, 2**32 - 1))), draw(st.integers(2, 5)), lengths)


def drawn(seen: SparseInput, states: States, seed: int = 0) -> Singles:
    """Random slopes of all scores; filling columns have none."""
    M = int((seen.ends - seen.begins).sum())
    out = np.zeros((M, states.W), np.float32)
    out[:, : states.K] = np.random.default_rng(seed).normal(0, 1, (M, states.K))
    return out


def slopes(seen: SparseInput, of_scores: Singles, states: States, R: int) -> Singles:
    out = np.zeros(R * states.W, np.float32)
    linear.add_gradient(seen, of_scores, states, out)
    return out


@given(plain_cases(), st.integers(0, 1000))
@settings(max_examples=40)
def test_a_row_gets_the_slopes_of_all_tokens_it_speaks_for(case: Case, seed: int) -> None:
    W, R = case.states.W, len(case.weights.rows) // case.states.W
    of_scores = drawn(case.seen, case.states, seed)
    wanted, at = np.zeros((R, W)), 0
    for s, (begin, end) in enumerate(zip(case.seen.begins, case.seen.ends, strict=True)):
        for t in range(end - begin):
            for row in oracle.spoken(case.seen, s, t):
                wanted[row] += of_scores[at + t]
        at += int(end - begin)
    found = slopes(case.seen, of_scores, case.states, R)
    np.testing.assert_allclose(found.reshape(R, W), wanted, rtol=0, atol=1e-5)


@given(plain_cases(), st.integers(0, 1000))
@settings(max_examples=40)
def test_slopes_are_scores_backwards(case: Case, seed: int) -> None:
    R = len(case.weights.rows) // case.states.W
    of_scores = drawn(case.seen, case.states, seed)
    scores = linear.scores(case.seen, case.weights, case.states)
    one = float((scores.astype(float) * of_scores).sum())
    other = float(case.weights.rows.astype(float) @ slopes(case.seen, of_scores, case.states, R))
    assert one == pytest.approx(other, abs=1e-3)


def view_of(K: int) -> tuple[SparseInput, States, int]:
    """Notes with bigrams, trigrams and heads, and K states."""
    docs = notes(25, 2)
    seen = window.observe(docs)
    inside = np.zeros(len(seen.types), np.bool_)
    patients = np.arange(len(docs))
    stops = window.stop_words(seen, inside, patients=patients, least=3)
    columns = window.contexts(seen, stops)
    assert {column.kind for column in columns} >= {window.BIGRAM, window.TRIGRAM, window.HEAD}
    known = vocabulary.learn(seen, columns, patients=patients)
    assert set(known.kinds.tolist()) >= {window.BIGRAM, window.TRIGRAM, window.HEAD}
    view = known.view(seen, columns)
    assert (view.columns[:, :3] >= 0).any(axis=0).all()
    return view, States.of(np.arange(K), np.ones((K + 2, K), np.bool_)), known.height


@pytest.mark.parametrize("K", [3, 8, 11])
def test_slopes_are_scores_backwards_on_notes_with_columns(K: int) -> None:
    view, states, R = view_of(K)
    rng = np.random.default_rng(K)
    weights = Weights(rng.normal(0, 1, R * states.W).astype(np.float32), states.moves)
    of_scores = drawn(view, states)
    one = float((linear.scores(view, weights, states).astype(float) * of_scores).sum())
    found = slopes(view, of_scores, states, R)
    other = float(weights.rows.astype(float) @ found)
    size = float(np.abs(weights.rows.astype(float)) @ np.abs(found))
    assert abs(one - other) < 1e-6 * size
    assert abs(one) > 1e-3 * np.sqrt(size)


@pytest.mark.parametrize("chosen", [[0], [3, 1], [7, 2, 5]])
def test_some_sentences_alone_have_the_slopes_of_their_tokens(chosen: list[int]) -> None:
    view, states, R = view_of(4)
    part = view.choose(np.array(chosen))
    of_scores = drawn(part, states)
    whole, at = np.zeros((int((view.ends - view.begins).sum()), states.W), np.float32), 0
    firsts = np.concatenate([[0], np.cumsum(view.ends - view.begins)])
    for s in chosen:
        size = int(view.ends[s] - view.begins[s])
        whole[firsts[s] : firsts[s] + size] = of_scores[at : at + size]
        at += size
    np.testing.assert_allclose(slopes(part, of_scores, states, R), slopes(view, whole, states, R), rtol=0, atol=1e-5)


def test_slopes_are_added_to_what_is_there_also_from_a_slice() -> None:
    view, states, R = view_of(3)
    of_scores = drawn(view, states)
    out = np.ones((R + 5, states.W), np.float32)
    linear.add_gradient(view, of_scores, states, out[:R].reshape(-1))
    np.testing.assert_allclose(out[:R].ravel(), 1 + slopes(view, of_scores, states, R), rtol=0, atol=1e-5)
    assert (out[R:] == 1).all()


def test_no_sentence_has_no_slope() -> None:
    view, states, R = view_of(3)
    part = view.choose(np.zeros(0, np.int64))
    assert not slopes(part, np.zeros((0, states.W), np.float32), states, R).any()
