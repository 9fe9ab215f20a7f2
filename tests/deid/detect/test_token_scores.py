"""Scores of runs and spans, in the arithmetic of numpy; and a batch leaves the search for garbage as it was."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaffinch.deid.detect.token_scores import TokenIndex, _mean, score_runs
from chaffinch.features import observe as window
from chaffinch.kernels import Batch, forward_backward, group
from chaffinch.models.core.batching import without_collection
from chaffinch.text import Document, Soft

DOCS = [Document.make("Dr. Penn saw Ada Lowe ."), Document.make(""), Document.make("in Salem")]


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=20))
def test_a_mean_has_the_bits_of_numpy(values: list[float]) -> None:
    assert _mean(values).hex() == float(np.mean(values)).hex()


def test_runs_become_spans_with_the_mean_chance_of_their_label() -> None:
    index, rng = TokenIndex.of(DOCS), np.random.default_rng(0)
    values = rng.dirichlet([1.0, 1.0, 1.0], sum(len(doc.tokens) for doc in DOCS))
    runs = [[(1, 2, "NAME"), (3, 5, "TOWN")], [], [(1, 2, "TOWN")]]
    found = score_runs(index, Soft(("O", "NAME", "TOWN"), values), runs)
    assert [[(DOCS[n].text[a:b], label) for a, b, label, _ in part] for n, part in enumerate(found)] == [
        [("Penn", "NAME"), ("Ada Lowe", "TOWN")],
        [],
        [("Salem", "TOWN")],
    ]
    scores = [score for part in found for _, _, _, score in part]
    assert scores == [values[1, 1], (values[3, 2] + values[4, 2]) / 2, values[7, 2]]
    assert score_runs(index, Soft(("O",), values[:, :1]), [[], [], []]) == [[], [], []]


def test_states_that_are_tags_are_grouped_as_they_are() -> None:
    rng = np.random.default_rng(1)
    batch = Batch(
        rng.normal(size=3), rng.normal(size=(3, 3)), rng.normal(size=(7, 3)), np.zeros(3), np.array([0, 4, 7])
    )
    states = forward_backward(batch, pairs=False).states
    np.testing.assert_array_equal(group(batch, np.arange(3), pairs=False).states, states)
    turned = np.array([2, 0, 1])
    np.testing.assert_array_equal(group(batch, turned, pairs=False).states[:, turned], states)


def test_documents_are_observed_once_for_all_models() -> None:
    with window.observe_once():
        seen = window.observe(DOCS)
        assert window.observe(list(DOCS)) is seen
        assert window.observe(DOCS[:1]) is not seen
        stops = np.zeros(0, np.uint64)
        assert window.contexts(seen, stops)[0] is window.contexts(seen, stops)[0]
    assert window.observe(DOCS) is not window.observe(DOCS)


@pytest.mark.parametrize("enabled", [True, False])
def test_the_search_for_garbage_is_put_off_and_comes_back(enabled: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        with without_collection():
            assert not gc.isenabled()
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if before else gc.disable)()
