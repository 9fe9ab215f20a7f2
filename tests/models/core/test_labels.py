"""Tags and states: round trips under every scheme, moves against the rules of the schemes, spans made to fit tokens."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaffinch.errors import DataError
from chaffinch.models.core.labels import SCHEMES, Fitted, Labels, Piece, Scheme, pieces_of
from chaffinch.text import Document, Span

NAMES = ("DNA", "RNA")
# One sentence of tags is a string of words; a span is one match. "tokens" knows no longer spans.
LEGAL = {
    "IOBES": r"(O |S-\w+ |B-(\w+) (I-\2 )*E-\2 )*",
    "IOB2": r"(O |B-(\w+) (I-\2 )*)*",
    "tokens": r"(O |S-\w+ )*",
}
every_scheme = pytest.mark.parametrize(("scheme", "pairs"), list(itertools.product(SCHEMES, (False, True))))


@st.composite
def readings(draw: st.DrawFn, longest: int = 4) -> tuple[list[Piece], list[int]]:
    """Runs of tokens in some sentences, and the sentences' lengths; at most `longest` tokens a run."""
    lengths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    pieces, begin = [], 0
    for length in lengths:
        at = begin
        while at < begin + length:
            size = draw(st.integers(1, min(longest, begin + length - at)))
            label = draw(st.sampled_from([None, 0, 1]))
            if label is not None:
                pieces.append((at, at + size, label))
            at += size
        begin += length
    return pieces, lengths


def round_trip(labels: Labels, pieces: list[Piece], lengths: list[int]) -> None:
    total, first = sum(lengths), np.zeros(sum(lengths), np.bool_)
    first[np.cumsum([0, *lengths[:-1]])] = True
    tags = labels.encode(pieces, total)
    states = labels.to_states(tags, first)
    assert (states >= 0).all()
    assert labels.tag_of[states].tolist() == tags.tolist()
    assert labels.runs(states.astype(np.int32)) == [(a, b, NAMES[label]) for a, b, label in pieces]
    moves = labels.states.moves.reshape(labels.states.K + 2, -1)
    for n, state in enumerate(states.tolist()):
        assert moves[labels.states.K if first[n] else states[n - 1], state] == 0
        assert (n + 1 < total and not first[n + 1]) or moves[labels.states.K + 1, state] == 0


@given(readings(), st.sampled_from(["IOBES", "IOB2"]), st.booleans())
def test_runs_become_states_and_runs_again(reading: tuple[list[Piece], list[int]], scheme: Scheme, pairs: bool) -> None:
    round_trip(Labels(NAMES, scheme, pairs), *reading)


@given(readings(longest=1), st.booleans())
def test_single_tokens_become_states_and_runs_again(reading: tuple[list[Piece], list[int]], pairs: bool) -> None:
    round_trip(Labels(NAMES, "tokens", pairs), *reading)


@every_scheme
def test_moves_allow_exactly_the_legal_sequences_of_tags(scheme: Scheme, pairs: bool) -> None:
    labels = Labels(NAMES, scheme, pairs)
    K = labels.states.K
    moves = labels.states.moves.reshape(K + 2, -1)[:, :K] == 0
    for T in (1, 2, 3):
        found = []
        for path in itertools.product(range(K), repeat=T) if K**T < 3000 else _walks(moves, T):
            if moves[K, path[0]] and moves[K + 1, path[-1]] and all(moves[a, b] for a, b in itertools.pairwise(path)):
                found.append(tuple(labels.tags[labels.tag_of[x]] for x in path))
        every = itertools.product(labels.tags, repeat=T)
        legal = [tags for tags in every if re.fullmatch(LEGAL[scheme], "".join(f"{tag} " for tag in tags))]
        assert sorted(found) == sorted(legal)  # each exactly once


def _walks(moves: np.ndarray[tuple[int, int], np.dtype[np.bool_]], T: int) -> list[tuple[int, ...]]:
    paths: list[tuple[int, ...]] = [(x,) for x in range(moves.shape[1])]
    for _ in range(T - 1):
        paths = [(*path, x) for path in paths for x in range(moves.shape[1]) if moves[path[-1], x]]
    return paths


@every_scheme
def test_pairs_with_one_tag_share_a_column_of_their_own(scheme: Scheme, pairs: bool) -> None:
    labels = Labels(NAMES, scheme, pairs)
    shared = labels.states.shared
    assert labels.states.label.tolist() == labels.tag_of.tolist()
    if not pairs:
        assert (shared == -1).all()
        assert len(labels.tags) == labels.states.K
        return
    columns = {(int(tag), int(column)) for tag, column in zip(labels.tag_of, shared, strict=True)}
    assert len(columns) == len(labels.tags) == len(set(shared.tolist()))
    assert shared.min() >= labels.states.K
    assert shared.max() < labels.states.W


SUBS = {"IOB2": (3, 1, 2, 1, 2), "IOBES": (2, 1, 1, 1, 2, 1, 1, 1, 3)}
with_subs = pytest.mark.parametrize("scheme", SUBS)


@with_subs
def test_sub_tags_stand_together_and_move_as_their_tags_do(scheme: Scheme) -> None:
    labels, plain = Labels(NAMES, scheme, subs=SUBS[scheme]), Labels(NAMES, scheme)
    K, L = labels.states.K, len(plain.tags)
    assert labels.tags == plain.tags
    assert sum(SUBS[scheme]) == K
    assert labels.tag_of.tolist() == [tag for tag, count in enumerate(SUBS[scheme]) for _ in range(count)]
    assert labels.states.label.tolist() == labels.tag_of.tolist()
    assert (labels.states.shared == -1).all()
    assert labels.follows.tolist() == plain.follows.tolist()
    moves, by_tag = labels.states.moves.reshape(K + 2, -1), plain.states.moves.reshape(L + 2, -1)
    for a, b in itertools.product(range(K), repeat=2):
        assert moves[a, b] == by_tag[labels.tag_of[a], labels.tag_of[b]]
    for b in range(K):
        assert moves[K, b] == by_tag[L, labels.tag_of[b]]
        assert moves[K + 1, b] == by_tag[L + 1, labels.tag_of[b]]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_follows_says_which_tags_may_stand_side_by_side_begin_and_end(scheme: Scheme) -> None:
    labels = Labels(NAMES, scheme)
    L = len(labels.tags)
    assert labels.follows.shape == (L + 2, L)

    def legal(*tags: str) -> bool:
        return re.fullmatch(LEGAL[scheme], "".join(f"{tag} " for tag in tags)) is not None

    every = [
        sentence for T in (1, 2, 3, 4) for sentence in itertools.product(labels.tags, repeat=T) if legal(*sentence)
    ]
    pairs = {pair for sentence in every for pair in itertools.pairwise(sentence)}
    firsts, lasts = {sentence[0] for sentence in every}, {sentence[-1] for sentence in every}
    for b, tag in enumerate(labels.tags):
        assert [bool(flag) for flag in labels.follows[:L, b]] == [(before, tag) in pairs for before in labels.tags]
        assert labels.follows[L, b] == (tag in firsts)
        assert labels.follows[L + 1, b] == (tag in lasts)


@given(readings(), st.sampled_from(["IOBES", "IOB2"]))
def test_runs_become_sub_tags_and_runs_again(reading: tuple[list[Piece], list[int]], scheme: Scheme) -> None:
    round_trip(Labels(NAMES, scheme, subs=SUBS[scheme]), *reading)


def test_any_sub_tag_of_a_tag_means_the_tag() -> None:
    labels = Labels(("DNA",), "IOB2", subs=(2, 2, 3))
    for path in itertools.product((0, 1), (2, 3), (4, 5, 6), (4, 5, 6), (2, 3)):
        assert labels.runs(np.array(path, np.int32)) == [(1, 4, "DNA"), (4, 5, "DNA")]


INDEX = {"A": 0, "B": 1}


def fit(doc: Document, spans: list[Span]) -> tuple[list[Piece], tuple[int, int, int]]:
    fitted = Fitted()
    pieces = pieces_of(doc, spans, INDEX, fitted)
    return pieces, (fitted.widened, fitted.cut, fitted.dropped)


def test_spans_on_token_edges_become_pieces_as_they_are() -> None:
    doc = Document.make("Dr. Ann Penn saw Bo.")
    assert fit(doc, [Span(4, 12, "B"), Span(17, 19, "A")]) == ([(1, 3, 1), (4, 5, 0)], (0, 0, 0))


def test_a_span_that_cuts_tokens_is_widened() -> None:
    doc = Document.make("Dr. Ann Penn saw Bo.")
    assert fit(doc, [Span(5, 10, "A")]) == ([(1, 3, 0)], (1, 0, 0))
    assert fit(doc, [Span(3, 8, "A")]) == ([(1, 2, 0)], (1, 0, 0))  # blanks at its edges


def test_a_span_over_a_sentence_end_is_cut_there() -> None:
    doc = Document.make("a b c d", tokens=[(0, 1), (2, 3), (4, 5), (6, 7)], sentences=[(0, 4), (4, 7)])
    assert fit(doc, [Span(2, 7, "B")]) == ([(1, 2, 1), (2, 4, 1)], (0, 1, 0))
    assert fit(doc, [Span(0, 3, "B"), Span(4, 5, "A")]) == ([(0, 2, 1), (2, 3, 0)], (0, 0, 0))


def test_a_span_over_no_token_or_over_a_token_taken_is_dropped() -> None:
    doc = Document.make("Ann  Penn")
    assert fit(doc, [Span(3, 5, "A")]) == ([], (0, 0, 1))
    assert fit(doc, [Span(0, 2, "A"), Span(2, 3, "B"), Span(5, 9, "B")]) == ([(0, 1, 0), (1, 2, 1)], (1, 0, 1))


def test_overlapping_spans_are_refused_without_a_word_of_the_text() -> None:
    doc = Document.make("Ann Penn came.")
    with pytest.raises(DataError, match=r"\[0, 8\) A and \[4, 8\) B overlap") as caught:
        fit(doc, [Span(0, 8, "A"), Span(4, 8, "B")])
    assert "Penn" not in str(caught.value)
