"""The modes joint and documents on disk and back, and settings that a mode has no use for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from chaffinch.errors import ConfigError
from chaffinch.models.phrasehmm.fit import PhraseHMM
from chaffinch.relations import (
    DocumentExtractor,
    Extraction,
    JointExtractor,
    save,
    train,
    train_documents,
    train_joint,
)
from chaffinch.relations.evaluate.scoring import score
from chaffinch.relations.joint.extractor import right_ones
from chaffinch.relations.storage import load
from tests.relations.made import SCHEMA, document, documents, with_concepts

TOKENS = Extraction(mode="joint", hmm=PhraseHMM(representation="token"), folds=2)


@pytest.fixture(scope="module")
def joint() -> JointExtractor:
    return train_joint(documents(10), SCHEMA, TOKENS)


@pytest.fixture(scope="module")
def merged() -> DocumentExtractor:
    return train_documents([with_concepts(doc) for doc in documents(20)], SCHEMA)


def test_a_joint_extractor_is_the_same_after_loading(joint: JointExtractor, tmp_path: Path) -> None:
    save(joint, tmp_path / "a.cfm")
    save(train_joint(documents(10), SCHEMA, TOKENS), tmp_path / "b.cfm")
    assert (tmp_path / "a.cfm").read_bytes() == (tmp_path / "b.cfm").read_bytes()
    again, held = load(tmp_path / "a.cfm"), [document(n, seed=7) for n in range(4)]
    assert isinstance(again, JointExtractor)
    for one, other in zip(again.extract_all(held), joint.extract_all(held), strict=True):
        assert [(own, own.score) for own in one] == [(own, own.score) for own in other]
    assert (again.config, again.rule, again.threshold) == (joint.config, joint.rule, joint.threshold)
    assert again.with_precision(0.9).threshold == joint.with_precision(0.9).threshold
    save(again, tmp_path / "c.cfm")
    assert (tmp_path / "c.cfm").read_bytes() == (tmp_path / "a.cfm").read_bytes()


def test_a_joint_extractor_is_scored_and_explained(joint: JointExtractor) -> None:
    held = [document(n, seed=7) for n in range(4)]
    found = score(joint, held)
    said = {(doc.id, own.arguments) for doc in held for own in joint.extract(doc)}
    truth = {(doc.id, own.arguments) for doc in held for own in doc.relations}
    assert found.extracted == len(said)
    assert found.f1.value == pytest.approx(2 * len(said & truth) / (len(said) + len(truth)))
    doc = next(doc for doc in held if joint.extract(doc))
    reasons = joint.explain(doc, joint.extract(doc)[0])
    assert [own.feature for own in reasons[1:]] == ["chance of Protein", "chance of Location"]
    assert all(0 <= own.weight <= 1 for own in reasons[1:])
    assert joint.report is not None
    assert joint.report.every is not None
    assert joint.report.every.recall == 1.0
    assert "floor 1" in str(joint.report)
    assert not any("Abc" in line for line in str(joint.report).splitlines())


def test_a_floor_keeps_words_of_single_documents_out() -> None:
    docs = documents(10)
    odd = replace(docs[0], text=docs[0].text.replace("yeast", "yacht").replace("mice", "moth"))
    bare = replace(TOKENS, mask=False, floor=2)
    words = train_joint([odd, *docs[1:]], SCHEMA, bare).model.symbols.names[0]
    plain = train_joint([odd, *docs[1:]], SCHEMA, replace(bare, floor=1)).model.symbols.names[0]
    assert set(words) < set(plain)
    assert not {"yacht", "moth"} & set(words)


def test_a_segment_is_right_in_bare_text_if_it_contains_the_argument() -> None:
    stated = {((4, 9), (20, 30)), ((40, 41), (50, 51))}
    wide = [((0, 9), (20, 30)), ((0, 9), (20, 30)), ((40, 41), (50, 51)), ((5, 9), (20, 30))]
    assert right_ones(wide, stated, exact=False) == [True, False, True, False]
    assert right_ones(wide, stated, exact=True) == [False, False, True, False]


def test_an_extractor_of_concepts_is_the_same_after_loading(merged: DocumentExtractor, tmp_path: Path) -> None:
    save(merged, tmp_path / "a.cfm")
    again, held = load(tmp_path / "a.cfm"), [with_concepts(document(n, seed=7)) for n in range(4)]
    assert isinstance(again, DocumentExtractor)
    for one, other in zip(again.extract_all(held), merged.extract_all(held), strict=True):
        assert [(own, own.relation.score) for own in one] == [(own, own.relation.score) for own in other]
    assert again.config == merged.config
    assert again.with_precision(0.9).threshold == merged.with_precision(0.9).threshold
    save(again, tmp_path / "b.cfm")
    assert (tmp_path / "b.cfm").read_bytes() == (tmp_path / "a.cfm").read_bytes()


def test_an_extractor_of_concepts_is_scored_and_explained(merged: DocumentExtractor) -> None:
    held = [with_concepts(document(n, seed=7)) for n in range(4)]
    assert score(merged, held).extracted == sum(len(merged.extract(doc)) for doc in held)
    doc = next(doc for doc in held if merged.extract(doc))
    assert merged.explain(doc, merged.extract(doc)[0].relation)
    kept = next(merged.annotate([doc])).relations
    assert [own.score for own in kept] == [own.relation.score for own in merged.extract(doc)]
    assert merged.report is not None
    assert "bag of words" in str(merged.report)


def test_a_phrase_hmm_with_given_entities_gives_its_representation() -> None:
    docs = documents(6)
    assert train(docs, SCHEMA, PhraseHMM(representation="token")).config.representation == "token"
    chosen = train(docs, SCHEMA, PhraseHMM()).config.representation
    areas = {
        kind: report.quality.auc for kind in ("phrase", "pos", "token")
        if (report := train(docs, SCHEMA, Extraction(representation=kind)).report) is not None
    }  # fmt: skip
    assert areas[chosen] == max(areas.values())
    with pytest.raises(ConfigError, match="shrinkage: not used where entities are given"):
        train(docs, SCHEMA, PhraseHMM(shrinkage=False))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mask": False}, "mask: used in the mode joint alone"),
        ({"mode": "documents", "pairing": "order"}, "pairing: used in the mode joint alone, not in the mode documents"),
        ({"mode": "joint", "representation": "pos"}, "representation is that of hmm"),
        ({"floor": 0}, "floor must be a whole number, at least 1, got 0"),
    ],
)
def test_what_a_mode_does_not_use_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Extraction(**changes)  # type: ignore[arg-type]  # what is wrong is the point


def test_each_mode_has_its_own_training() -> None:
    with pytest.raises(ConfigError, match="train_joint"):
        train([], SCHEMA, Extraction(mode="joint"))
    with pytest.raises(ConfigError, match='mode "joint"'):
        train_joint([], SCHEMA, Extraction())
    with pytest.raises(ConfigError, match="the mode joint is not supported"):
        train_documents([], SCHEMA, Extraction(mode="joint"))
