"""What every aggregator keeps to: rules and models, each by its row of the registry."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from chaffinch import bundle
from chaffinch.bundle import Manifest
from chaffinch.errors import ConfigError
from chaffinch.models.votes.chmm.config import CHMM
from chaffinch.text import Document, Soft, Span
from chaffinch.weak.aggregate import (
    AGGREGATORS,
    Aggregator,
    FittedAggregator,
    aggregator_of,
    describe,
    fit,
    load,
    restore,
    save,
)
from tests.weak.test_aggregate import embedder
from tests.weak.training.made_notes import notes

EACH = pytest.mark.parametrize("aggregator", AGGREGATORS, ids=[one.name for one in AGGREGATORS])
pytestmark = pytest.mark.filterwarnings("ignore:sources that never speak")


def learn(aggregator: Aggregator, docs: list[Document]) -> FittedAggregator:
    settings = CHMM(epochs=2, rate=0.05) if aggregator.embeds else aggregator.settings()
    return fit(docs, settings, embedder=embedder)


def answers(docs: list[Document], layer: str = "x") -> Iterator[tuple[tuple[Span, ...], Soft | None]]:
    return ((doc.layer(layer), doc.soft.get(layer)) for doc in docs)


@EACH
def test_same_votes_same_labels(aggregator: Aggregator) -> None:
    docs = notes(0, 10)
    first, second = (list(answers(learn(aggregator, docs)(docs, "x"))) for _ in range(2))
    assert first == second
    assert any(spans for spans, _ in first)


@EACH
def test_labelling_adds_a_layer_and_changes_nothing_else(aggregator: Aggregator) -> None:
    docs = notes(0, 6)
    for before, after in zip(docs, learn(aggregator, docs)(docs, "x"), strict=True):
        assert {name: spans for name, spans in after.layers.items() if name != "x"} == before.layers
        assert (after.id, after.text, after.group) == (before.id, before.text, before.group)
        assert all(span.source == "x" for span in after.layer("x"))


@EACH
def test_spans_lie_on_token_edges_and_soft_labels_are_distributions(aggregator: Aggregator) -> None:
    docs = notes(0, 6)
    for doc in learn(aggregator, docs)(docs, "x"):
        ranges = doc.token_ranges(doc.layer("x"), "exact")
        assert (ranges[:, 0] < ranges[:, 1]).all()
        if "x" in doc.soft:
            np.testing.assert_allclose(doc.soft["x"].values.sum(axis=1), 1.0, rtol=0, atol=1e-9)


@EACH
def test_the_order_of_documents_does_not_matter_for_what_is_applied(aggregator: Aggregator) -> None:
    docs = notes(0, 8)
    fitted = learn(aggregator, docs)
    forward, backward = fitted(docs, "x"), fitted(docs[::-1], "x")[::-1]
    for one, other in zip(answers(forward), answers(backward), strict=True):
        assert one[0] == other[0]
        if one[1] is not None and other[1] is not None:
            np.testing.assert_allclose(one[1].values, other[1].values, rtol=0, atol=1e-9)


@EACH
def test_a_document_is_labelled_alone_as_among_others(aggregator: Aggregator) -> None:
    docs = notes(0, 8)
    fitted = learn(aggregator, docs)
    together = list(answers(fitted(docs, "x")))
    alone = [one for doc in docs for one in answers(fitted([doc], "x"))]
    assert [spans for spans, _ in together] == [spans for spans, _ in alone]


@EACH
def test_a_silent_source_changes_no_span(aggregator: Aggregator) -> None:
    docs = notes(0, 8)
    hushed = [doc.with_layer("source:silent", []) for doc in docs]
    plain, other = learn(aggregator, docs)(docs, "x"), learn(aggregator, hushed)(hushed, "x")
    assert [doc.layer("x") for doc in plain] == [doc.layer("x") for doc in other]


@EACH
def test_one_document_no_document_and_a_document_without_votes(aggregator: Aggregator) -> None:
    fitted = learn(aggregator, notes(0, 1))
    assert len(fitted(notes(0, 1), "x")) == 1
    assert fitted([], "x") == []
    bare, empty = fitted([Document.make("No source read this."), Document.make("")], "x")
    assert bare.layer("x") == empty.layer("x") == ()


@EACH
def test_a_label_that_was_not_there_before_is_no_error(aggregator: Aggregator) -> None:
    fitted = learn(aggregator, notes(0, 6))
    new = Document.make("a fine day", layers={"source:a": [Span(2, 6, "Weather")]})
    (found,) = fitted([new], "x")
    assert {span.label for span in found.layer("x")} <= {"Weather"}
    assert aggregator.learns == (not found.layer("x"))  # a model knows its labels, a rule takes any


@EACH
def test_sources_that_were_not_learnt_from_are_not_heard(aggregator: Aggregator) -> None:
    docs = notes(0, 6)
    fitted = learn(aggregator, docs)
    more = [doc.with_layer("source:later", [Span(0, 3, "Disease")]) for doc in docs]
    assert [doc.layer("x") for doc in fitted(docs, "x")] == [doc.layer("x") for doc in fitted(more, "x")]


@EACH
def test_what_was_learnt_comes_back_from_a_file(aggregator: Aggregator, tmp_path: Path) -> None:
    docs, path = notes(0, 6), tmp_path / "a.cfm"
    fitted = learn(aggregator, docs)
    if not aggregator.learns:
        with pytest.raises(ConfigError, match=f"{aggregator.name} is a rule and learns nothing"):
            save(fitted, path)
        return
    assert save(fitted, path).kind == aggregator.name
    again = load(path, embedder=embedder)
    assert (again.config, again.names, again.sources) == (fitted.config, fitted.names, fitted.sources)
    assert [doc.layer("x") for doc in again(docs, "x")] == [doc.layer("x") for doc in fitted(docs, "x")]


@EACH
def test_an_aggregator_inside_a_larger_model_comes_back(aggregator: Aggregator, tmp_path: Path) -> None:
    docs, path = notes(0, 6), tmp_path / "w.cfm"
    fitted = learn(aggregator, docs)
    learnt = fitted.state()
    bundle.save(path, Manifest("weak", {"aggregator": describe(fitted)}), learnt.arrays, learnt.strings)
    found = bundle.load(path)
    again = restore(found.state, found.manifest.config["aggregator"], embedder=embedder)
    assert aggregator_of(again.config) is aggregator
    assert [doc.layer("x") for doc in again(docs, "x")] == [doc.layer("x") for doc in fitted(docs, "x")]


def test_names_of_aggregators_are_distinct() -> None:
    assert len({one.name for one in AGGREGATORS}) == len({one.config for one in AGGREGATORS}) == len(AGGREGATORS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert all(aggregator_of(one.settings()) is one for one in AGGREGATORS)
