"""The extractor from end to end on documents whose truth is known, and everything that may be wrong with them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from chaffinch import Document, Span
from chaffinch.errors import ConfigError, DataError, ModelError
from chaffinch.relations import Extraction, Extractor, Schema, save, train, train_documents, train_joint
from chaffinch.relations.concepts import relation_concepts
from chaffinch.relations.distant import audit, label, sample
from chaffinch.relations.evaluate.scoring import score
from chaffinch.relations.storage import load
from tests.relations.made import SCHEMA, document, documents


@pytest.fixture(scope="module")
def extractor() -> Extractor:
    return train(documents(12), SCHEMA)


def test_a_toy_grammar_is_learnt(extractor: Extractor) -> None:
    held = [document(n, seed=7) for n in range(5)]
    for doc, found in zip(held, extractor.extract_all(held), strict=True):
        assert [own.arguments for own in found] == [own.arguments for own in doc.relations]
        assert all(0 < own.score <= 1 for own in found)
    assert extractor.report is not None
    assert extractor.report.quality.auc > 0.99
    assert "bag of words" in str(extractor.report)
    assert score(extractor, held).f1.value == 1.0


def test_the_report_says_when_the_baseline_is_better(extractor: Extractor) -> None:
    report = extractor.report
    assert report is not None
    worse = replace(report, gap=replace(report.gap, value=-0.1))
    assert worse.loses
    assert "The bag of words ranks better" in str(worse)
    assert "ranks better" not in str(replace(report, gap=replace(report.gap, value=0.1)))


def test_reasons_name_the_verb(extractor: Extractor) -> None:
    doc = next(doc for doc in documents(12) if doc.relations)
    reasons = extractor.explain(doc, doc.relations[0], top=200)
    assert any("local" in own.feature and own.weight > 0 for own in reasons)
    assert [abs(own.weight) for own in reasons] == sorted((abs(own.weight) for own in reasons), reverse=True)
    other = SCHEMA.relation((Span(0, 1, "Protein"), Span(2, 3, "Location")))
    with pytest.raises(DataError, match="no candidate"):
        extractor.explain(doc, other)


def test_saved_and_loaded_it_is_the_same(extractor: Extractor, tmp_path: Path) -> None:
    save(extractor, tmp_path / "a.cfm")
    save(train(documents(12), SCHEMA), tmp_path / "b.cfm")
    assert (tmp_path / "a.cfm").read_bytes() == (tmp_path / "b.cfm").read_bytes()
    again, doc = load(tmp_path / "a.cfm"), document(99)
    assert isinstance(again, Extractor)
    assert [(own, own.score) for own in again.extract(doc)] == [(own, own.score) for own in extractor.extract(doc)]
    assert again.with_precision(0.9).threshold == extractor.with_precision(0.9).threshold
    with pytest.raises(ModelError, match="not an extractor"):
        load("genia")


def test_a_document_without_entities_or_text_has_no_relations(extractor: Extractor) -> None:
    assert extractor.extract(Document.make("", id="e")) == ()
    assert extractor.extract(Document.make("Nothing here.", layers={"gold": []})) == ()


def test_a_role_without_entities() -> None:
    with pytest.raises(DataError, match=r"role 'Drug' needs entities labelled 'Drug'.*have 2 other labels"):
        train(documents(3), Schema("localises", ("Protein", "Drug")))


def test_nothing_but_positives_or_negatives() -> None:
    docs = documents(6)
    stated = [
        replace(doc, relations=tuple(SCHEMA.relation(pair) for pair in zip(
            [s for s in doc.layers["gold"] if s.label == "Protein"],
            [s for s in doc.layers["gold"] if s.label == "Location"], strict=True))) for doc in docs
    ]  # fmt: skip
    with pytest.raises(DataError, match="candidates are stated relations; add sentences"):
        train(stated, SCHEMA)
    with pytest.raises(DataError, match="no sentence states"):
        train([replace(doc, relations=()) for doc in docs], SCHEMA)
    with pytest.raises(DataError, match="no sentence has an entity for every role"):
        train([_one_each(n) for n in range(3)], SCHEMA)
    with pytest.raises(DataError, match="one patient"):
        train([document(0, sentences=8)], SCHEMA)


def _one_each(number: int) -> Document:
    """A protein in one sentence and a place in the next."""
    spans = [Span(0, 4, "Protein"), Span(14, 21, "Location")]
    return Document.make("Abcp is here. Nucleus too.", id=str(number), layers={"gold": spans})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mode": "both"}, "mode must"), ({"views": ("nothing",)}, "views must"), ({"strengths": ()}, "strengths must"),
        ({"folds": 1}, "folds must"), ({"pairing": "any"}, "pairing must"), ({"labels": "any"}, "labels must"),
    ],
)  # fmt: skip
def test_settings_that_cannot_be(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Extraction(**changes)  # type: ignore[arg-type]  # what is wrong is the point


def test_joint_mode_finds_arguments_and_leaves_out_what_crosses_sentences() -> None:
    docs = documents(12)
    first, last = docs[0].layers["gold"][0], docs[0].layers["gold"][-1]
    docs[0] = replace(docs[0], relations=(*docs[0].relations, SCHEMA.relation((first, last))))
    found = train_joint(docs, SCHEMA)
    assert found.across == 1
    held = document(50)
    assert {own.arguments for own in found.extract(held)} == {own.arguments for own in held.relations}


def test_joint_mode_needs_sentences_of_both_kinds() -> None:
    with pytest.raises(DataError, match="no sentence holds all arguments"):
        train_joint([replace(doc, relations=()) for doc in documents(3)], SCHEMA)


def test_known_tuples_label_sentences_and_an_audit_finds_the_noise() -> None:
    docs = documents(20)
    known = {
        tuple(doc.text[span.start : span.end].upper() for argument in own.arguments for span in argument.spans)
        for doc in docs for own in doc.relations
    }  # fmt: skip
    noisy = label(docs, known, SCHEMA)
    truth = [{SCHEMA.key(s) for own in doc.relations for s in SCHEMA.tuples(own)} for doc in docs]
    assert all(set(a.relations) <= set(b.relations) for a, b in zip(docs, noisy, strict=True))
    drawn = sample(noisy, SCHEMA, 1000)
    found = audit(((one, SCHEMA.key(one.spans) in truth[n]) for n, one in drawn), noisy, SCHEMA)
    labelled, stated = sum(len(doc.relations) for doc in noisy), sum(len(doc.relations) for doc in docs)
    assert found.wrong.value == pytest.approx(1 - stated / labelled)
    assert found.missed.value == 0.0
    assert found.stated == pytest.approx(stated)


def test_documents_are_merged_by_concept_with_evidence() -> None:
    docs = []
    for doc in documents(30):
        spans = [replace(s, concept=doc.text[s.start : s.end]) for s in doc.layers["gold"]]
        places = {(s.start, s.end): s for s in spans}
        relations = tuple(
            SCHEMA.relation(tuple(places[a.spans[0].start, a.spans[0].end] for a in own.arguments))
            for own in doc.relations
        )
        docs.append(replace(doc, layers={"gold": tuple(spans)}, relations=relations))
    found = train_documents(docs[:25], SCHEMA)
    for doc in docs[25:]:
        own = found.extract(doc)
        said = {tuple(a.concept for a in one.relation.arguments) for one in own}
        assert said <= relation_concepts(doc, SCHEMA)
        assert said or not doc.relations
        for one in own:
            start, end = doc.sentences[one.sentence]
            assert all(start <= span.start < end for span in one.evidence)
