"""Chains as loaded, with weights filled in when used, beside the same chains with all weights in a table."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaffinch.errors import ModelError
from chaffinch.features import observe as window
from chaffinch.features import vocabulary
from chaffinch.kernels.linear import Weights
from chaffinch.models.core import sparse_weights, type_scores
from chaffinch.models.core.labels import Labels
from chaffinch.models.core.linear import Linear
from chaffinch.models.core.sparse_weights import SparseWeights
from chaffinch.text import Document

NO_STOPS = np.zeros(0, np.uint64)
TEXTS = ("Ann saw Bo.", "Bo saw an end.", "Name: Bo\n12 mg for Ann", "A new town", "")
DOCS = [Document.make(text) for text in TEXTS]


def dense_chain(seed: int = 0, share: float = 0.2) -> Linear:
    """A chain with random weights, exact in half precision, of which `share` are not 0."""
    seen = window.observe(DOCS[:3])
    known = vocabulary.learn(seen, window.contexts(seen, NO_STOPS), patients=np.arange(3))
    labels, rng = Labels(("NAME", "TOWN"), "IOBES"), np.random.default_rng(seed)
    states = labels.states
    rows = rng.normal(size=(known.height, states.W)).astype(np.float16).astype(np.float32)
    rows[rng.random(rows.shape) > share] = 0.0
    rows[:, states.K :] = 0.0
    moves = np.where(states.moves == 0, rng.normal(size=len(states.moves)), states.moves).astype(np.float32)
    return Linear(labels, known, Weights(rows.ravel(), moves))


def potentials(chain: Linear, docs: list[Document]) -> list[bytes]:
    """All numbers of a chain's lattices and its best states, with and without a bias."""
    seen = window.observe(docs)
    columns, bias = window.contexts(seen, NO_STOPS), {"NAME": 0.5, "O": -1.0}
    states, batches = chain.decode_with_batches(seen, columns)
    lattices = [chain.batch(seen, columns), chain.batch(seen, columns, bias), *batches]
    found = [array for batch in lattices for array in (batch.start, batch.trans, batch.emit, batch.end)]
    return [np.asarray(array).tobytes() for array in (states, chain.decode(seen, columns, bias), *found)]


@given(st.integers(0, 1_000), st.sampled_from([0.0, 0.05, 1.0]), st.lists(st.sampled_from(DOCS), max_size=6))
@settings(max_examples=30)
def test_a_loaded_chain_reads_as_one_with_all_weights_whatever_it_read_before(
    seed: int, share: float, docs: list[Document]
) -> None:
    chain = dense_chain(seed, share)
    loaded = Linear.of(chain.labels, chain.arrays())
    for doc in docs:
        assert potentials(loaded, [doc]) == potentials(chain, [doc])
    assert potentials(loaded, DOCS) == potentials(chain, DOCS)
    for name, array in chain.arrays().items():
        np.testing.assert_array_equal(loaded.arrays()[name], array, strict=True)
    np.testing.assert_array_equal(loaded.weights.rows, chain.weights.rows, strict=True)


def test_only_features_that_were_used_take_rows_and_each_takes_them_once() -> None:
    chain = dense_chain()
    loaded = Linear.of(chain.labels, chain.arrays())
    stored = loaded.stored
    assert isinstance(stored, SparseWeights)
    assert not stored.table().used
    assert not stored.table().weights.rows.any()
    for _ in range(2):
        potentials(loaded, DOCS[3:4])  # "A": no other of its words was learnt
        assert 0 < stored.table().used < chain.vocabulary.height / 2
        assert not stored.table().weights.rows[stored.table().used * stored.W :].any()
    potentials(loaded, DOCS)
    assert stored.table().used == chain.vocabulary.height
    for feature in range(len(chain.vocabulary)):
        first, end = chain.vocabulary.rows[feature : feature + 2].tolist()
        for number in range(end - first):
            np.testing.assert_array_equal(loaded.row(feature, number), chain.row(feature, number))


@pytest.mark.parametrize("copied", [False, True])
def test_threads_that_read_with_one_chain_fill_its_rows_once(copied: bool) -> None:
    chain = dense_chain()
    loaded = Linear.of(chain.labels, chain.arrays())
    potentials(loaded, DOCS[:1])
    loaded = pickle.loads(pickle.dumps(loaded)) if copied else loaded
    orders = [list(order) for order in permutations(DOCS[:4])]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda docs: potentials(loaded, docs), orders))
    assert found == [potentials(chain, docs) for docs in orders]
    assert loaded.stored.table().used == chain.vocabulary.height  # type: ignore[union-attr]


def test_a_table_that_has_grown_large_is_dropped_and_readers_of_it_keep_their_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chain = dense_chain()
    loaded = Linear.of(chain.labels, chain.arrays())
    stored = loaded.stored
    assert isinstance(stored, SparseWeights)
    features = np.arange(len(chain.vocabulary), dtype=np.int32)
    old = stored.table()
    rows = old.place(features)
    monkeypatch.setattr(sparse_weights, "_MOST_BYTES", old.size - 1)
    new = stored.table()
    assert new is not old
    assert not new.used
    new.place(features[::-1][:3])
    np.testing.assert_array_equal(old.place(features), rows)
    assert stored.table() is new, "it is small"
    for doc in DOCS:
        assert potentials(loaded, [doc]) == potentials(chain, [doc])
        assert stored.table().size <= old.size


def test_weights_that_do_not_fit_are_refused() -> None:
    chain = dense_chain()
    arrays = chain.arrays()
    wrong = {
        "a weight too many": {"values": np.append(arrays["values"], np.float16(1))},
        "a row too many": {"sizes": np.append(arrays["sizes"], np.uint8(0))},
        "a column too far": {"columns": np.full_like(arrays["columns"], chain.labels.states.W)},
        "counts that overflow": {"sizes": arrays["sizes"].astype(np.uint64)},
        "signed columns": {"columns": arrays["columns"].astype(np.int8)},
        "a table of values": {"values": arrays["values"][None]},
    }
    for change in wrong.values():
        with pytest.raises(ModelError, match=r"unknown form|do not fit"):
            Linear.of(chain.labels, {**arrays, **change})


@given(st.lists(st.lists(st.sampled_from(DOCS), max_size=4), max_size=6), st.sampled_from([1, 8, 12, 1 << 15]))
@settings(max_examples=40)
def test_kept_sums_of_words_change_no_bit(batches: list[list[Document]], most: int) -> None:
    chain = dense_chain(3)
    loaded = Linear.of(chain.labels, chain.arrays())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type_scores, "MOST", most)
        for docs in batches:
            seen = window.observe(docs)
            columns = window.contexts(seen, NO_STOPS)
            expected, parts = chain.decode_with_batches(seen, columns)
            states, kept = loaded.decode_with_batches(seen, columns, by_word=True)
            np.testing.assert_array_equal(states, expected)
            biased = loaded.batches(seen, columns, {"NAME": 0.5}, by_word=True)
            for one, other in zip(
                [*parts, *chain.batches(seen, columns, {"NAME": 0.5})], [*kept, *biased], strict=True
            ):
                assert one.emit.tobytes() == other.emit.tobytes()
                assert one.trans.tobytes() == other.trans.tobytes()
    assert isinstance(loaded.stored, SparseWeights)
    assert pickle.loads(pickle.dumps(loaded.stored.words)).size == loaded.stored.words.size
