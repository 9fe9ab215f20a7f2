"""Doccano's two JSONL exports."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given

from chaffinch.text import Argument, Document, Relation, Span
from chaffinch.text.formats import read, write
from tests.text.formats.refusal import CANARY, assert_refused
from tests.text.formats.roundtrip import assert_kept, assert_kept_or_reported, through
from tests.text.strategies import corpora, documents, simple_documents

SPANS = '{"id":12,"text":"😀 Anna saw Leeds","ward":"7B","label":[[2,6,"PER"],[11,16,"LOC"]],"Comments":["ok"]}\n'
RELATIONS = (
    '{"id":13,"text":"Anna saw Leeds","entities":[{"id":5,"label":"PER","start_offset":0,"end_offset":4},'
    '{"id":6,"label":"LOC","start_offset":9,"end_offset":14}],'
    '"relations":[{"id":1,"from_id":5,"to_id":6,"type":"saw"}],"Comments":[]}\n'
)


@given(corpora(documents))
def test_any_document_is_kept_or_its_losses_are_reported(docs: list[Document]) -> None:
    assert_kept_or_reported(docs, "doccano")
    back, _ = through(docs, "doccano")
    kept = [(doc.id, doc.text, doc.group, doc.meta, doc.layer()) for doc in docs]
    assert [(doc.id, doc.text, doc.group, doc.meta, doc.layer()) for doc in back] == kept


@given(corpora(simple_documents))
def test_simple_documents_are_kept(docs: list[Document]) -> None:
    assert_kept([rich(doc) for doc in docs], "doccano")


def rich(doc: Document) -> Document:
    """The document with everything else that doccano has a place for."""
    spans = doc.layer()[:2]
    relations: tuple[Relation, ...] = ()
    if len(spans) == 2:
        relations = (Relation("near", (Argument("Arg1", (spans[1],)), Argument("Arg2", (spans[0],)))),)
    return replace(doc, relations=relations, group="p1", meta={"ward": 7, "Comments": ["seen"]})


def test_both_exports_are_read_as_meant(tmp_path: Path) -> None:
    (tmp_path / "all.jsonl").write_text(SPANS + RELATIONS)
    first, second = read(tmp_path / "all.jsonl", format="doccano")
    assert (first.id, first.layer()) == ("12", (Span(2, 6, "PER"), Span(11, 16, "LOC")))
    assert first.meta == {"ward": "7B", "Comments": ["ok"]}
    anna, leeds = Span(0, 4, "PER"), Span(9, 14, "LOC")
    assert second.layer() == (anna, leeds)
    assert second.relations == (Relation("saw", (Argument("Arg1", (anna,)), Argument("Arg2", (leeds,)))),)
    assert second.meta == {}


def test_a_relation_of_three_is_reported() -> None:
    spans = (Span(0, 1, "A"), Span(2, 3, "B"), Span(4, 5, "C"))
    arguments = tuple(Argument(f"Arg{i}", (span,)) for i, span in enumerate(spans, start=1))
    doc = Document.make("a b c", id="x", layers={"gold": spans}, relations=[Relation("r", arguments)])
    (back,), losses = through([doc], "doccano")
    assert losses.counts == {"relations": 1}
    assert back.layer() == spans


def test_meta_fields_that_clash_are_reported() -> None:
    doc = Document.make("a", id="1", meta={"label": 3, "ward": "7B", "patient_id": "p1"}, layers={"gold": []})
    (back,), losses = through([doc], "doccano")
    assert losses.counts == {"meta fields": 1, "groups (patients)": 1}
    assert (back.meta, back.group) == ({"ward": "7B", "patient_id": "p1"}, "p1")


def test_the_second_form_is_written_only_for_relations(tmp_path: Path) -> None:
    doc = Document.make("Anna", id="1", layers={"gold": [Span(0, 4, "PER")]})
    write([doc], tmp_path / "out", format="doccano")
    assert (tmp_path / "out").read_text() == '{"id":"1","text":"Anna","label":[[0,4,"PER"]],"Comments":[]}\n'


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (f'{{"text":"{CANARY}","label":[[0,99,"A"]]}}', "does not fit"),
        (f'{{"text":"{CANARY}","label":["{CANARY}"]}}', "Expected"),
        (f'{{"text":"{CANARY}","label":[[0,true,"A"]]}}', "Expected `int`"),
        (f'{{"text":["{CANARY}"]}}', 'no "text"'),
        (f'{{"text":"{CANARY}","entities":[{{"id":1,"label":"A","start_offset":"0","end_offset":1}}]}}', "Expected"),
        (f'{{"text":"{CANARY}","entities":[],"relations":[{{"from_id":1,"to_id":2,"type":"r"}}]}}', "does not exist"),
        (f'{{"text":"{CANARY}","relations":{{"a":1}}}}', "Expected `array`"),
        (f'{{"text":"{CANARY}","id":["{CANARY}"]}}', "Expected"),
        (f'{{"text":"{CANARY}"', "not valid JSON"),
    ],
)
def test_bad_records_are_refused_with_their_place(content: str, says: str) -> None:
    assert_refused('{"text":"ok"}\n' + content + "\n", "doccano", says, line=2)


def test_two_entities_of_one_id_are_refused() -> None:
    entity = '{"id":1,"label":"A","start_offset":0,"end_offset":1}'
    content = f'{{"text":"{CANARY}","entities":[{entity},{entity}],"relations":[]}}\n'
    assert_refused(content, "doccano", "same id", line=1)
