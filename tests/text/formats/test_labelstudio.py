"""Label Studio's JSON: annotations, predictions, relations and both ways of counting."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaffinch.text import Argument, Document, Relation, Span
from chaffinch.text.formats import ReadOptions, read
from tests.text.formats.refusal import CANARY, assert_refused
from tests.text.formats.roundtrip import assert_kept, assert_kept_or_reported, exact, through
from tests.text.strategies import corpora, documents, simple_documents


@given(corpora(documents))
def test_any_document_is_kept_or_its_losses_are_reported(docs: list[Document]) -> None:
    assert_kept_or_reported(docs, "labelstudio")
    back, _ = through(docs, "labelstudio")
    kept = [(doc.id, doc.text, doc.group, doc.meta, doc.layers) for doc in docs]
    assert [(doc.id, doc.text, doc.group, doc.meta, doc.layers) for doc in back] == kept


@given(corpora(simple_documents), st.sampled_from(["annotation:2", "cascade", "predictions"]))
def test_layers_scores_relations_and_meta_are_kept(docs: list[Document], other: str) -> None:
    assert_kept([rich(doc, other) for doc in docs], "labelstudio")


def rich(doc: Document, other: str) -> Document:
    """The document with everything else that Label Studio has a place for."""
    spans = doc.layer()[:2]
    relations: tuple[Relation, ...] = ()
    if len(spans) == 2:
        relations = (Relation("near", (Argument("Arg1", (spans[1],)), Argument("Arg2", (spans[0],)))),)
    doc = replace(doc, relations=relations, group="p1", meta={"ward": 7})
    return doc.with_layer(other, [replace(span, score=0.25) for span in doc.layer()])


def region(name: str, start: int, end: int, text: str | None, label: str, **more: Any) -> dict[str, Any]:
    value = {"start": start, "end": end, "labels": [label], **({} if text is None else {"text": text})}
    return {"id": name, "from_name": "label", "to_name": "note", "type": "labels", "value": value, **more}


def export(text: str, *annotations: dict[str, Any], **task: Any) -> bytes:
    return json.dumps([{"id": 41, "annotations": annotations, "data": {"note": text, "ward": "7B"}, **task}]).encode()


def read_bytes(folder: Path, content: bytes, how: ReadOptions | None = None) -> Document:
    (folder / "project-1.json").write_bytes(content)
    (doc,) = read(folder / "project-1.json", how=how)
    return doc


def test_an_export_is_read_as_meant(tmp_path: Path) -> None:
    relation = {"type": "relation", "from_id": "b", "to_id": "a", "direction": "left", "labels": ["saw"]}
    gold = [region("a", 0, 4, "Anna", "PER"), region("b", 9, 14, "Leeds", "LOC"), relation]
    choice = {"id": "c", "type": "choices", "from_name": "x", "to_name": "note", "value": {"choices": ["good"]}}
    content = export(
        "Anna saw Leeds",
        {"result": [], "was_cancelled": True},
        {"result": gold, "was_cancelled": False, "completed_by": 1, "lead_time": 3.5},
        {"result": [choice, region("d", 9, 14, "Leeds", "ORG")]},
        predictions=[
            {"model_version": "m1", "score": 0.5, "result": [region("e", 0, 4, "Anna", "PER", score=0.75)]},
            {"score": 0.5, "result": [region("f", 0, 4, "Anna", "PER")]},
        ],
        created_at="2024-01-01",
    )
    how = ReadOptions()
    doc = read_bytes(tmp_path, content, how)
    anna, leeds = Span(0, 4, "PER"), Span(9, 14, "LOC")
    assert (doc.id, doc.text, doc.meta) == ("41", "Anna saw Leeds", {"ward": "7B"})
    assert dict(doc.layers) == {
        "gold": (anna, leeds),
        "annotation:2": (Span(9, 14, "ORG"),),
        "m1": (anna,),
        "predictions": (anna,),
    }
    assert (doc.layer("m1")[0].score, doc.layer("predictions")[0].score) == (0.75, 0.5)
    assert doc.relations == (Relation("saw", (Argument("Arg1", (anna,)), Argument("Arg2", (leeds,)))),)
    assert how.losses.counts == {"cancelled annotations": 1, "results that are not labels on plain text": 1}


@pytest.mark.parametrize(
    ("regions", "expected"),
    [
        ([region("a", 2, 6, "Anna", "PER")], Span(2, 6, "PER")),  # code points, as Label Studio counts now
        ([region("a", 3, 7, "Anna", "PER")], Span(2, 6, "PER")),  # UTF-16 units, as it counted before 2022
        ([region("a", 2, 6, None, "PER")], Span(2, 6, "PER")),  # nothing decides
        ([region("a", 3, 7, None, "PER"), region("b", 12, 17, "Leeds", "LOC")], Span(2, 6, "PER")),  # one decides
        ([region("a", 2, 6, " Anna\r\n", "PER")], Span(2, 6, "PER")),  # the browser's white space
    ],
)
def test_the_text_of_a_region_decides_how_offsets_count(
    tmp_path: Path, regions: list[dict[str, Any]], expected: Span
) -> None:
    doc = read_bytes(tmp_path, export("😀 Anna saw Leeds", {"result": regions}))
    assert doc.layer()[0] == expected


def test_offsets_are_written_in_code_points() -> None:
    doc = Document.make("😀 Anna", id="a", layers={"gold": [Span(2, 6, "PER")]})
    (back,), losses = through([doc], "labelstudio")
    assert not losses
    assert exact(back) == exact(doc)


def bad(**task: Any) -> bytes:
    return json.dumps([{"data": {"text": "ok"}}, {"data": {"text": CANARY}, **task}]).encode()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (bad(annotations=[{"result": [region("a", 0, 4, "Anna", "PER")]}]), "task 2: a region lies"),
        (bad(annotations=[{"result": [region("a", 0, 99, None, "PER")]}]), "task 2: a region lies"),
        (bad(annotations=[{"result": [{"type": "labels", "value": {"start": 0, "labels": []}}]}]), "task 2: Object"),
        (bad(annotations={"result": CANARY}), "task 2: Expected `array`"),
        (bad(data={"a": CANARY, "b": CANARY}), "task 2: "),
        (json.dumps({"data": {"text": CANARY}}).encode(), "not a list of tasks"),
        (f'[{{"data":{{"text":"{CANARY}"'.encode(), "not valid JSON"),
        (f'[{{"data":{{"text":"{CANARY}'.encode() + b'\xff"}}]', "not valid JSON"),
    ],
)
def test_bad_tasks_are_refused_with_their_place(content: bytes, says: str) -> None:
    assert_refused(content, "labelstudio", says, line=None)
