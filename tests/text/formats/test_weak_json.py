"""Labels of weak sources, in both forms."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from chaffinch.text import Document, Span
from chaffinch.text.formats import read, write
from tests.text.formats.refusal import CANARY, assert_refused
from tests.text.formats.roundtrip import assert_kept, assert_kept_or_reported, through
from tests.text.formats.tokenised import enriched_documents, token_documents
from tests.text.strategies import corpora, documents

WORDS = ["copper", "toxicosis", "in", "dogs"]
SPANS = {"0": {"label": [[0, 2, "Disease"]], "data": {"text": WORDS}, "weak_labels": [[[1, 2, "Disease"]], []]}}
TAGS = {
    "0": {
        "len": 4,
        "data": {"text": WORDS},
        "label": ["B-Disease", "I-Disease", "O", "O"],
        "weak_labels": [["O", "O"], ["B-Disease", "O"], ["O", "O"], ["O", "O"]],
    }
}
META = {"lf": ["dict", "links"], "lf_f1": "made from gold: not to be read"}


@given(corpora(documents))
def test_any_document_is_kept_or_its_losses_are_reported(docs: list[Document]) -> None:
    assert_kept_or_reported(docs, "weak")
    back, _ = through(docs, "weak")
    assert [(doc.id, doc.group, doc.words()) for doc in back] == [(doc.id, doc.group, doc.words()) for doc in docs]


@given(corpora(token_documents, columns=1, sources=("a", "b c")))
def test_documents_with_sources_are_kept(docs: list[Document]) -> None:
    assert_kept(docs, "weak")


@given(enriched_documents())
def test_whatever_tags_cannot_say_is_reported(doc: Document) -> None:
    assert_kept_or_reported([doc], "weak")


@pytest.mark.parametrize("content", [SPANS, TAGS])
@pytest.mark.parametrize("folder", [True, False])
def test_both_forms_are_read_as_meant(tmp_path: Path, content: dict[str, Any], folder: bool) -> None:
    (tmp_path / "test.json").write_text(json.dumps(content))
    (tmp_path / "meta.json").write_text(json.dumps(META, indent=1))
    (doc,) = read(tmp_path if folder else tmp_path / "test.json")
    assert (doc.id, doc.text, doc.given) == ("0", "copper toxicosis in dogs", True)
    assert dict(doc.layers) == {
        "gold": (Span(0, 16, "Disease"),),
        "source:dict": (Span(7, 16, "Disease"),),
        "source:links": (),
    }
    assert doc.sentences.tolist() == [[0, 24]]
    assert doc.meta == {}


def test_in_an_archive_the_names_are_found_too(tmp_path: Path) -> None:
    (tmp_path / "test.json").write_text(json.dumps(SPANS))
    (tmp_path / "train.json").write_text(json.dumps(SPANS))
    (tmp_path / "meta.json").write_text(json.dumps(META))
    with tarfile.open(tmp_path / "all.tar.gz", "w:gz") as archive:
        for name in ("test.json", "train.json", "meta.json"):
            archive.add(tmp_path / name, f"set/{name}")
    docs = list(read(tmp_path / "all.tar.gz"))
    assert [doc.id for doc in docs] == ["test-0", "train-0"]
    assert [list(doc.layers) for doc in docs] == [["gold", "source:dict", "source:links"]] * 2


def test_without_names_sources_are_numbered(tmp_path: Path) -> None:
    (tmp_path / "test.json").write_text(json.dumps(SPANS))
    (doc,) = read(tmp_path / "test.json")
    assert list(doc.layers) == ["gold", "source:0", "source:1"]


def test_a_source_that_is_absent_in_one_document_is_reported() -> None:
    one = Document.make("a", id="1", layers={"source:x": []}, tokens=[(0, 1)], sentences=[(0, 1)])
    two = Document.make("b", id="2", layers={"gold": []}, tokens=[(0, 1)], sentences=[(0, 1)])
    back, losses = through([one, two], "weak")
    assert losses.counts == {"that sources were absent (they come back as silent)": 1}
    assert [sorted(doc.layers) for doc in back] == [["source:x"], ["gold", "source:x"]]


def test_the_output_is_what_other_tools_read(tmp_path: Path) -> None:
    (tmp_path / "test.json").write_text(json.dumps(SPANS))
    (tmp_path / "meta.json").write_text(json.dumps(META))
    assert not write(read(tmp_path / "test.json"), tmp_path / "out", format="weak")
    written = json.loads((tmp_path / "out" / "documents.json").read_text())
    assert written == {"0": {**SPANS["0"], "data": {"text": WORDS, "id": "0"}}}
    assert json.loads((tmp_path / "out" / "meta.json").read_text())["lf"] == ["dict", "links"]


def item(**fields: Any) -> str:
    return json.dumps({"0": SPANS["0"], "1": {"data": {"text": [CANARY, "b"]}, **fields}})


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (item(label=[[0, 3, "A"]]), "item 2: span [0, 3) does not fit 2 tokens"),
        (item(label=[[1, 1, "A"]]), "item 2: span [1, 1)"),
        (item(label=[[0, "1", "A"]]), "item 2: Expected `int`"),
        (item(label=["O", CANARY]), "item 2: expected 2 tags"),
        (item(label=["O"]), "item 2: expected 2 tags"),
        (item(weak_labels=[["O"], ["O", "O"]]), 'item 2: "weak_labels" must have 2 rows'),
        (item(weak_labels=CANARY), "item 2: Expected `array`"),
        (item(data={"text": CANARY}), "item 2: Expected `array`"),
        (json.dumps([CANARY]), "not an object"),
        (f'{{"0": "{CANARY}"', "not valid JSON"),
    ],
)
def test_bad_items_are_refused_with_their_place(content: str, says: str) -> None:
    assert_refused(content, "weak", says, line=None)


@pytest.mark.parametrize(("meta", "says"), [({"lf": ["one"]}, "meta.json names 1"), ({"lf": 3}, '"lf"')])
def test_a_meta_file_that_does_not_fit_is_refused(tmp_path: Path, meta: dict[str, Any], says: str) -> None:
    (tmp_path / "test.json").write_text(json.dumps(SPANS))
    (tmp_path / "meta.json").write_text(json.dumps(meta))
    with pytest.raises(Exception, match=says):
        list(read(tmp_path / "test.json"))
