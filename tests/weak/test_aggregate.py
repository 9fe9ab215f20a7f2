"""From documents with sources to documents with one layer more."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from chaffinch.errors import ConfigError, DataError
from chaffinch.models import multihmm
from chaffinch.models.multihmm import MultiHMM
from chaffinch.text import Document, Span
from chaffinch.weak.aggregate import aggregate, apply
from chaffinch.weak.vote_rules import LongestSpan, SpanVote, TokenVote, Union
from chaffinch.weak.votes import ballots

TEXT = "severe copper toxicosis was seen in dogs with copper toxicosis"


def document(number: int, *, gold: bool = False) -> Document:
    """Two sources that know the phrase and one that knows a word of it."""
    layers = {
        "source:phrase": [Span(7, 23, "Disease"), Span(46, 62, "Disease")],
        "source:list": [Span(7, 23, "Disease")],
        "source:word": [Span(14, 23, "Disease"), Span(53, 62, "Disease")],
    }
    if gold:
        layers["gold"] = [Span(0, 6, "Disease")]
    return Document.make(TEXT, id=str(number), layers=layers)


def places(doc: Document, layer: str = "aggregate") -> list[tuple[int, int]]:
    return [(span.start, span.end) for span in doc.layers[layer]]


def test_every_aggregator_leaves_a_layer() -> None:
    docs = [document(number) for number in range(5)]
    want = [(7, 23), (46, 62)]
    for config in (None, MultiHMM(), MultiHMM(decode="viterbi"), SpanVote(), LongestSpan(), TokenVote()):
        found = aggregate(docs, config, layer="settled")
        assert [places(doc, "settled") for doc in found] == [want] * 5
        assert [doc.text for doc in found] == [TEXT] * 5
    union = aggregate(docs, Union())
    assert places(union[4]) == [(7, 23), (14, 23), (46, 62), (53, 62)]


def test_some_sources_alone() -> None:
    docs = [document(number) for number in range(5)]
    for config in (MultiHMM(), SpanVote()):
        assert places(aggregate(docs, config, sources=["word"])[0]) == [(14, 23), (53, 62)]
    assert places(aggregate(docs[:1], sources=["list"], fit_on=docs)[0]) == [(7, 23)]


def test_soft_labels_are_distributions_of_tags() -> None:
    docs = [document(number) for number in range(5)]
    for config in (MultiHMM(), TokenVote()):
        soft = aggregate(docs, config)[0].soft["aggregate"]
        assert soft.labels == ("O", "B-Disease", "I-Disease")
        np.testing.assert_allclose(soft.values.sum(axis=1), 1, rtol=0, atol=1e-9)
    assert "aggregate" not in aggregate(docs, LongestSpan())[0].soft


def test_gold_is_not_looked_at() -> None:
    plain, with_gold = ([document(number, gold=gold) for number in range(4)] for gold in (False, True))
    for one, other in zip(aggregate(plain), aggregate(with_gold), strict=True):
        assert places(one) == places(other)
        np.testing.assert_array_equal(one.soft["aggregate"].values, other.soft["aggregate"].values)


def test_learning_on_other_documents() -> None:
    train, test = [document(number) for number in range(6)], [document(9)]
    found = aggregate(test, fit_on=train)
    model = multihmm.fit(ballots(train))
    again = apply(test, model)
    assert len(found) == 1
    np.testing.assert_array_equal(found[0].soft["aggregate"].values, again[0].soft["aggregate"].values)
    with pytest.raises(DataError, match="fit_on has no documents"):
        aggregate(test, fit_on=[])


def test_a_document_without_some_sources_or_any_is_read() -> None:
    train = [document(number) for number in range(6)]
    bare = Document.make("no dogs")
    half = Document.make(TEXT, layers={"source:phrase": [Span(7, 23, "Disease")]})
    found = aggregate([bare, half], fit_on=train)
    assert places(found[0]) == []
    assert places(found[1]) == [(7, 23)]


def test_nothing_voted_anywhere() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for docs in ([], [Document.make("no votes")], [Document.make("", layers={"source:x": []})]):
            for config in (MultiHMM(), Union(), TokenVote(), SpanVote(), LongestSpan()):
                found = aggregate(docs, config)
                assert all(not doc.layers["aggregate"] for doc in found)


def test_linking_rules_travel_with_documents() -> None:
    text = "liver disease and kidney disease"
    words = [Span(0, 5, "D"), Span(6, 13, "D"), Span(18, 24, "D"), Span(25, 32, "D")]
    layers = {"source:words": words, "source:more": words[:1]}
    links = {"link:phrase": [Span(0, 13, "TOGETHER"), Span(18, 32, "TOGETHER")]}
    docs = [Document.make(text, layers=layers | links) for _ in range(20)]
    assert places(aggregate(docs)[0]) == [(0, 13), (18, 32)]
    plain = [Document.make(text, layers=layers) for _ in range(20)]
    assert places(aggregate(plain)[0]) == [(0, 5), (6, 13), (18, 24), (25, 32)]
    assert places(aggregate(plain, fit_on=docs)[0])  # a rule that says nothing here


def test_other_things_are_no_aggregators() -> None:
    with pytest.raises(ConfigError, match="got str"):
        aggregate([document(0)], "vote")  # type: ignore[arg-type]
