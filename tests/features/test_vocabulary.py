"""Vocabularies: which features get weights, by a count in plain Python; and views of observations through them."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from chaffinch.features import observe as window
from chaffinch.features import vocabulary
from chaffinch.features.observe import Column, Observed
from chaffinch.features.vocabulary import COUNT, FIRST, LEXICAL, RARE, RARE_TIMES, Vocabulary
from chaffinch.features.word_types import words_of
from chaffinch.kernels import linear
from chaffinch.kernels.linear import States, Weights
from chaffinch.text import Document

NO_STOPS = np.zeros(0, np.uint64)
RARE_KINDS = (window.BIGRAM, window.TRIGRAM, window.HEAD, window.HEADER)
TEXTS = st.lists(st.sampled_from(["Ann saw", "Bo.", "An end.", "saw", "\nName: Bo", "12 mg"]), max_size=5).map(" ".join)


def everything(seen: Observed, columns: list[Column]) -> list[tuple[int, int, int]]:
    """Place, kind and key of every feature of every token, pads included."""
    found = []
    for n, v in enumerate(seen.types.tolist()):
        for q in range(seen.lists[v], seen.lists[v + 1]):
            found.append((n, int(seen.kinds[q]), int(seen.keys[q])))
        for column in columns:
            if column.keys[n]:
                found.append((n, column.kind, int(vocabulary.salt_keys(column.keys[n : n + 1], column.kind)[0])))
    return found


def made_of(seen: Observed, columns: list[Column], n: int, kind: int, hidden: NDArray[np.bool_]) -> bool:
    """Whether a feature of token n has letters of a hidden token, token by token."""
    reach = {window.BIGRAM: 2, window.TRIGRAM: 3}.get(kind, 1)
    found = bool(hidden[n : n + reach].any())
    if kind == window.HEAD:
        keys = next(column.keys for column in columns if column.kind == kind)
        while n + 1 < len(keys) and keys[n + 1]:
            n += 1
        found |= bool(hidden[n])
    if kind == window.HEADER:
        text = seen.codes.tobytes().decode("utf-32-le")
        line = text.rfind("\n", 0, int(seen.tokens[n, 0])) + 1
        colon = text.index(":", line)
        found |= any(hidden[t] for t, (a, b) in enumerate(seen.tokens.tolist()) if line <= a < b and a <= colon)
    return found


@given(st.lists(TEXTS, min_size=1, max_size=5), st.integers(1, 3), st.integers(1, 3), st.integers(0, 1000))
@settings(max_examples=60)
def test_a_feature_needs_enough_tokens_and_enough_patients(
    texts: list[str], cutoff: int, floor: int, seed: int
) -> None:
    rng, docs = np.random.default_rng(seed), [Document.make(text) for text in texts]
    patients = np.sort(rng.integers(0, 3, len(docs)))
    seen = window.observe(docs)
    columns = window.contexts(seen, np.sort(seen.folded[1:2]) if seed % 3 else NO_STOPS)
    hidden = (rng.random(len(seen.types)) < 0.3) & (seen.types > 0) if seed % 2 else None
    times: dict[tuple[int, int], int] = defaultdict(int)
    people: dict[tuple[int, int], set[int]] = defaultdict(set)
    for n, kind, key in everything(seen, columns):
        if hidden is None or kind not in LEXICAL or not made_of(seen, columns, n, kind, hidden):
            times[kind, key] += 1
            people[kind, key].add(int(patients[seen.owners[n]]))
    wanted = {
        (kind, key)
        for kind, key in times
        if times[kind, key] >= max(cutoff, RARE_TIMES if kind in RARE else 1) and len(people[kind, key]) >= floor
    }
    known = vocabulary.learn(seen, columns, patients=patients, hidden=hidden, cutoff=cutoff, floor=floor)
    assert len(known) == len(wanted)
    assert set(zip(known.kinds.tolist(), known.keys.tolist(), strict=True)) == wanted
    assert known.height == sum(int(COUNT[kind]) for kind, _ in wanted)


def key_of(word: str) -> np.uint64:
    """The key of the feature that names a word."""
    seen = window.observe([Document.make(word)])
    return np.uint64(seen.keys[seen.lists[seen.types[1]]])


def test_the_floor_counts_patients_not_tokens_or_documents() -> None:
    docs = [
        Document.make("Zara Zara saw Zara."),
        Document.make("Zara saw."),
        Document.make("Bo saw."),
        Document.make("Bo."),
    ]
    seen, keys = window.observe(docs), np.array([key_of("Zara"), key_of("Bo"), key_of("saw")])
    two_patients = vocabulary.learn(seen, [], patients=np.array([0, 0, 0, 1]), floor=2)
    assert (two_patients.find(keys) >= 0).tolist() == [False, True, False]
    four_patients = vocabulary.learn(seen, [], patients=np.arange(4), floor=2)
    assert (four_patients.find(keys) >= 0).tolist() == [True, True, True]


def test_hidden_tokens_count_for_shapes_but_not_for_letters() -> None:
    seen = window.observe([Document.make("Zara saw Bob.")])
    hidden = np.zeros(len(seen.types), np.bool_)
    hidden[1] = True
    known = vocabulary.learn(seen, [], patients=np.array([0]), hidden=hidden)
    for kind, key in zip(seen.kinds, seen.keys, strict=True):
        of_zara = [q for q in range(seen.lists[seen.types[1]], seen.lists[seen.types[1] + 1]) if seen.keys[q] == key]
        elsewhere = np.flatnonzero(seen.keys == key).tolist() != of_zara
        assert (known.find(np.array([key]))[0] >= 0) == (not of_zara or elsewhere or int(kind) not in LEXICAL)


def test_an_n_gram_a_head_or_a_header_with_a_hidden_word_is_not_learnt() -> None:
    docs = [Document.make("the old Zyxgov came\nZyxgov: fine\n", split="lines") for _ in range(4)]
    seen = window.observe(docs)
    stops = np.sort(window.observe([Document.make("the came")]).folded[1:])
    columns, words = window.contexts(seen, stops), words_of(seen)
    hidden = np.array([words[kind] == "Zyxgov" for kind in seen.types.tolist()])
    known = vocabulary.learn(seen, columns, patients=np.arange(4), hidden=hidden)
    two, three, head, header = (next(column.keys for column in columns if column.kind == kind) for kind in RARE_KINDS)
    for keys, kind, word, learnt in (
        (two, window.BIGRAM, "the", True), (two, window.BIGRAM, "old", False), (three, window.TRIGRAM, "the", False),
        (head, window.HEAD, "old", False), (header, window.HEADER, "fine", False),
    ):  # fmt: skip
        place = next(n for n, v in enumerate(seen.types.tolist()) if words[v] == word)
        assert keys[place] != 0
        assert (known.find(vocabulary.salt_keys(keys[place : place + 1], kind))[0] >= 0) == learnt, (kind, word)


def test_find_numbers_the_features_and_joined_adds_the_new_ones_behind() -> None:
    one = Vocabulary(np.array([5, 3, 9], np.uint64), np.array([1, 2, 7], np.uint8))
    other = Vocabulary(np.array([4, 9, 8], np.uint64), np.array([7, 7, 1], np.uint8))
    assert one.find(np.array([9, 4, 5, 0, 3], np.uint64)).tolist() == [2, -1, 0, -1, 1]
    assert one.rows.tolist() == [0, 5, 8, 9]
    both = one.union(other)
    assert both.keys.tolist() == [5, 3, 9, 4, 8]
    assert both.kinds.tolist() == [1, 2, 7, 7, 1]
    assert (len(both), both.height) == (5, 15)
    empty = Vocabulary(np.zeros(0, np.uint64), np.zeros(0, np.uint8))
    assert (len(empty), empty.height, empty.find(one.keys).tolist()) == (0, 0, [-1, -1, -1])
    assert empty.union(one).keys.tolist() == one.keys.tolist()


@given(st.lists(TEXTS, min_size=1, max_size=3), st.lists(TEXTS, min_size=1, max_size=3))
@settings(max_examples=40)
def test_a_view_lists_the_known_features_with_their_rows(learnt: list[str], texts: list[str]) -> None:
    before = window.observe([Document.make(text) for text in learnt])
    known = vocabulary.learn(before, window.contexts(before, NO_STOPS), patients=np.arange(len(learnt)))
    seen = window.observe([Document.make(text) for text in texts])
    columns = window.contexts(seen, NO_STOPS)
    view, place = known.view(seen, columns), {int(key): number for number, key in enumerate(known.keys)}
    found = []
    for n, v in enumerate(view.types.tolist()):
        for q in range(view.lists[v], view.lists[v + 1]):
            found.append((n, int(view.rows[q]), int(view.first[q]), int(view.width[q])))
        for c, row in enumerate(view.columns[n].tolist()):
            if row >= 0:
                found.append((n, row, int(view.column_first[c]), int(view.column_width[c])))
    wanted = [
        (n, int(known.rows[place[key]]), int(FIRST[kind]), int(COUNT[kind]))
        for n, kind, key in everything(seen, columns)
        if key in place
    ]
    assert sorted(found) == sorted(wanted)


def test_the_windows_are_those_published() -> None:
    window_of = {kind: (int(FIRST[kind]), int(FIRST[kind] + COUNT[kind] - 1)) for kind in range(128) if COUNT[kind]}
    assert window_of[1] == (-2, 2)  # words
    assert window_of[window.BIGRAM] == (-2, 1)
    assert window_of[window.TRIGRAM] == (-2, 0)
    assert all(window_of[kind] == (-1, 1) for kind in (2, 3, 4, 5, 6, *range(window.MARKS, 128)))
    assert all(window_of[kind] == (0, 0) for kind in (7, 8, 9, window.HEAD, window.HEADER, window.LEXICON_HERE))


def scores(docs: list[Document], known: Vocabulary, weights: Weights, states: States, owner: int) -> list[list[float]]:
    seen = window.observe(docs)
    found = linear.scores(known.view(seen, window.contexts(seen, NO_STOPS)), weights, states)
    return [row.tolist() for row, n in zip(found, seen.places, strict=True) if seen.owners[n] == owner]


def test_a_documents_scores_do_not_depend_on_the_next_document() -> None:
    docs = [Document.make(text) for text in ("Ann saw Bo.", "Bo saw Ann.", "Ann saw Bo.", "Bo saw Ann.")]
    seen = window.observe(docs)
    known = vocabulary.learn(seen, window.contexts(seen, NO_STOPS), patients=np.arange(4))
    states = States.of(np.arange(2), np.ones((4, 2), np.bool_))
    rows = np.random.default_rng(0).normal(size=known.height * states.W).astype(np.float32)
    weights = Weights(rows, states.moves.copy())
    alone = scores(docs[:1], known, weights, states, 0)
    np.testing.assert_allclose(scores(docs[:2], known, weights, states, 0), alone, rtol=0, atol=1e-6)
