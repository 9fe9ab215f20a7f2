"""Spans, documents and corpora: checked at the door, immutable inside."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaffinch.errors import ConfigError, DataError, LimitError
from chaffinch.text import OVERLAP_RULES, Corpus, Document, Soft, Span, resolve
from chaffinch.text.document import uncut_documents
from chaffinch.text.tokens import RangeMode
from tests.text.strategies import documents, spans

SECRET = "Xylophagous"


def test_equality_of_spans_is_of_place_and_label() -> None:
    assert Span(0, 2, "A", 0.5, "x", "c") == Span(0, 2, "A")
    assert len({Span(0, 2, "A", 0.5), Span(0, 2, "A")}) == 1
    assert Span(0, 2, "A") != Span(0, 2, "B")


@given(st.lists(spans(30, plain=True), max_size=12), st.sampled_from(OVERLAP_RULES))
def test_what_a_rule_leaves_is_free_of_overlaps_and_cannot_be_extended(found: list[Span], rule: str) -> None:
    kept = resolve(found, rule)
    assert list(kept) == sorted(kept)
    assert all(not a.overlaps(b) for i, a in enumerate(kept) for b in kept[i + 1 :])
    assert all(any(span.overlaps(other) for other in kept) for span in found)


def test_each_overlap_rule_on_a_worked_case() -> None:
    found = [Span(0, 4, "A", 0.9), Span(3, 10, "B", 0.5), Span(9, 11, "C", 0.8)]
    kept = {rule: "".join(span.label for span in resolve(found, rule)) for rule in OVERLAP_RULES}
    assert kept == {"longest": "B", "shortest": "AC", "score": "AC", "first": "AC"}
    with pytest.raises(ConfigError, match="unknown overlap rule"):
        resolve(found, "loudest")


@pytest.mark.parametrize("place", [(-1, 2), (3, 3), (4, 3), (0, 12)])
def test_spans_must_fit_the_text(place: tuple[int, int]) -> None:
    with pytest.raises(DataError, match=r"does not fit a text of 11 characters|a span cannot be") as caught:
        Document.make(SECRET, layers={"gold": [Span(*place, "NAME")]})
    assert SECRET not in str(caught.value)


def test_the_limit_on_size_has_one_behaviour() -> None:
    with pytest.raises(LimitError, match="11 characters, the limit is 10; raise it with --max-chars"):
        Document.make(SECRET, max_chars=10)
    assert Document.make(SECRET, max_chars=11).text == SECRET


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(DataError, match="character 2 is half of a surrogate pair"):
        Document.make("ab\ud800")


def test_given_tokens_are_kept_and_checked() -> None:
    doc = Document.make("abcdef", tokens=[(0, 2), (2, 6)], sentences=[(0, 6)])
    assert doc.words() == ["ab", "cdef"]
    assert doc.given
    with pytest.raises(DataError, match="token offsets must rise"):
        Document.make("abcdef", tokens=[(2, 6), (0, 2)])
    with pytest.raises(DataError, match="sentence offsets must rise"):
        Document.make("abcdef", sentences=[(0, 7)])


def test_soft_labels_must_fit_the_tokens() -> None:
    soft = Soft(("O", "NAME"), np.ones((3, 2)))
    assert "votes" in Document.make("a b c", soft={"votes": soft}).soft
    with pytest.raises(DataError, match=r"shape \(3, 2\); \(1, 2\) fits"):
        Document.make("a", soft={"votes": soft})
    with pytest.raises(DataError, match="3 rows for 1 tokens"):
        Document.make("a").with_soft("votes", soft)


def test_documents_do_not_change_and_do_not_show_their_text() -> None:
    doc = Document.make(SECRET, id="1", meta={"ward": SECRET}, layers={"gold": [Span(0, 3, "NAME")]})
    assert SECRET not in repr(doc)
    with pytest.raises(FrozenInstanceError):
        doc.text = "other"  # type: ignore[misc]
    more = doc.with_layer("rules", [Span(1, 2, "DATE")])
    assert set(doc.layers) == {"gold"}
    assert set(more.layers) == {"gold", "rules"}


def test_the_choice_of_a_layer() -> None:
    doc = Document.make("abc", layers={"rules": [Span(0, 1, "A")], "model": []})
    assert doc.layer("rules") == (Span(0, 1, "A"),)
    with pytest.raises(DataError, match="none is called gold"):
        doc.layer()
    with pytest.raises(DataError, match="no layer 'x'"):
        doc.layer("x")
    assert doc.with_layer("gold", [Span(1, 2, "B")]).layer() == (Span(1, 2, "B"),)
    assert Document.make("abc").layer() == ()


@given(documents())
def test_documents_survive_a_trip_to_another_process(doc: Document) -> None:
    assert pickle.loads(pickle.dumps(doc)) == doc


@st.composite
def tokens_and_places(draw: st.DrawFn) -> Document:
    """A document of given tokens, some of which touch one another, and a layer of spans anywhere in it."""
    edges = sorted(draw(st.lists(st.integers(0, 12), max_size=8)))
    tokens = [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=False) if a < b]
    found = draw(st.lists(spans(12, plain=True), max_size=6))
    return Document.make("x" * 12, tokens=tokens, sentences=[(0, 12)], layers={"gold": found})


@given(tokens_and_places())
def test_token_ranges_agree_with_looking_at_every_token(doc: Document) -> None:
    found = doc.layer("gold")
    touch, within, exact = (doc.token_ranges(found, mode).tolist() for mode in get_args(RangeMode))
    tokens = [(a, b) for a, b in doc.tokens.tolist()]
    for n, span in enumerate(found):
        touched = [t for t, (a, b) in enumerate(tokens) if a < span.end and b > span.start]
        inside = [t for t, (a, b) in enumerate(tokens) if span.start <= a and b <= span.end]
        is_exact = bool(inside) and (tokens[inside[0]][0], tokens[inside[-1]][1]) == (span.start, span.end)
        assert list(range(*touch[n])) == touched
        assert list(range(*within[n])) == inside
        assert list(range(*exact[n])) == (inside if is_exact else [])


def test_token_ranges_of_rows_and_of_nothing() -> None:
    doc = Document.make("Ann Lee came")
    assert doc.token_ranges(np.array([[5, 6], [3, 4], [0, 12]])).tolist() == [[1, 2], [1, 1], [0, 3]]
    assert doc.token_ranges([]).shape == doc.token_ranges(np.zeros((0, 2), np.int64), "exact").shape == (0, 2)
    assert Document.make("").token_ranges([], "inside").tolist() == []


@given(documents())
def test_sentences_index_their_tokens(doc: Document) -> None:
    bounds = doc.sentence_tokens()
    assert bounds.ravel().tolist() == sorted(bounds.ravel().tolist())
    assert sum(end - start for start, end in bounds) == len(doc.tokens)


def patients(sizes: list[int]) -> Corpus:
    docs = [Document.make("x", id=f"{p}-{n}", group=str(p)) for p, size in enumerate(sizes) for n in range(size)]
    return Corpus.of(docs)


@given(st.lists(st.integers(1, 4), min_size=2, max_size=12), st.floats(0.1, 0.9), st.integers(0, 3))
def test_a_split_keeps_every_patient_on_one_side(sizes: list[int], fraction: float, seed: int) -> None:
    corpus = patients(sizes)
    first, second = corpus.split(fraction, seed=seed)
    sides = [{doc.group for doc in side} for side in (first, second)]
    assert not sides[0] & sides[1]
    assert all(sides)
    assert sorted(doc.id for side in (first, second) for doc in side) == sorted(doc.id for doc in corpus)


def test_a_split_has_about_the_wanted_size_and_ignores_the_order() -> None:
    corpus = patients([2] * 50)
    first, _ = corpus.split(0.8, seed=7)
    assert len(list(first)) == 80
    backwards = Corpus.of(reversed(list(corpus))).split(0.8, seed=7)[0]
    assert {doc.id for doc in backwards} == {doc.id for doc in first}
    assert {doc.id for doc in corpus.split(0.8, seed=8)[0]} != {doc.id for doc in first}
    with pytest.raises(ConfigError, match="between 0 and 1"):
        corpus.split(1.5)


def test_documents_without_a_group_stand_alone() -> None:
    corpus = Corpus.of(Document.make("x", id=str(n)) for n in range(10))
    first, second = corpus.split(0.5)
    assert len(list(first)) == len(list(second)) == 5


def test_no_message_shows_a_label_or_the_name_of_a_layer() -> None:
    soft = Soft(("Lowe",), np.ones((3, 1)))
    found = Document.make("x", layers={"Penn": [], "Lowe": []})
    changes: list[Callable[[], Document]] = [
        lambda: Document.make("x", layers={"Penn": [Span(0, 9, "Lowe")]}),
        lambda: Document.make("x", soft={"Penn": soft}),
        lambda: Document.make("x").with_soft("Penn", soft),
        lambda: found.with_layer("x", found.layer()),
        lambda: found.with_layer("x", found.layer("other")),
    ]
    for change in changes:
        with pytest.raises(DataError) as caught:
            change()
        assert "Penn" not in str(caught.value)
        assert "Lowe" not in str(caught.value)


def test_documents_without_tokens_are_checked_like_others_and_only_inside_the_block() -> None:
    with uncut_documents():
        doc = Document.make("Dr. Penn came.", id="n1", group="p1", layers={"gold": [Span(4, 8, "DOCTOR")]})
        assert (doc.id, doc.group, len(doc.tokens), len(doc.sentences)) == ("n1", "p1", 0, 0)
        with pytest.raises(LimitError):
            Document.make("too long", max_chars=3)
        with pytest.raises(DataError):
            Document.make("Dr.", layers={"gold": [Span(4, 8, "DOCTOR")]})
    assert len(Document.make("Dr. Penn came.").tokens) == 4
