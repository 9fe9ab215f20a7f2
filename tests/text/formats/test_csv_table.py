"""CSV and TSV with a column of texts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given

from chaffinch.errors import ConfigError, LimitError
from chaffinch.text import Document, Span
from chaffinch.text.formats import ReadOptions, read, write
from tests.text.formats.refusal import CANARY, assert_refused
from tests.text.formats.roundtrip import assert_kept, assert_kept_or_reported, through
from tests.text.strategies import TEXTS, corpora, documents, simple_documents


@pytest.mark.parametrize("form", ["csv", "tsv"])
@given(docs=corpora(documents))
def test_any_document_is_kept_or_its_losses_are_reported(docs: list[Document], form: str) -> None:
    assert_kept_or_reported(docs, form)
    back, _ = through(docs, form)
    kept = [(doc.id, doc.text, doc.group, doc.layer()) for doc in docs]
    assert [(doc.id, doc.text, doc.group, doc.layer()) for doc in back] == kept


@pytest.mark.parametrize("form", ["csv", "tsv"])
@given(docs=corpora(simple_documents), odd=TEXTS)
def test_spans_groups_and_text_columns_are_kept(docs: list[Document], odd: str, form: str) -> None:
    rich = [replace(doc, group=f"p{i % 2}", meta={"ward": odd, "Date of Stay": ""}) for i, doc in enumerate(docs)]
    assert_kept([doc.with_layer("gold", [replace(s, score=0.5) for s in doc.layer()]) for doc in rich], form)


@given(corpora(documents, texts=TEXTS))
def test_texts_without_labels_are_kept(docs: list[Document]) -> None:
    assert_kept([Document.make(doc.text, id=doc.id) for doc in docs], "csv")


def test_mimic_notes_are_read_as_meant(tmp_path: Path) -> None:
    path = tmp_path / "NOTEEVENTS.csv"
    path.write_bytes(
        b'"ROW_ID","SUBJECT_ID","CATEGORY","TEXT"\n'
        b'174,22532,"Discharge summary","Dear ""Anna"",\r\n\r\n5 mg"\n175,,x,\n'
    )
    first, second = read(path)
    assert (first.id, first.group, first.text) == ("174", "22532", 'Dear "Anna",\r\n\r\n5 mg')
    assert first.meta == {"SUBJECT_ID": "22532", "CATEGORY": "Discharge summary"}
    assert (second.id, second.group, second.text, dict(second.layers)) == ("175", None, "", {})


def test_spans_and_semicolons_and_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes('\ufeffnote_id;note;spans\n1;Anna;"[[0,4,""PER""]]"\n2;Leeds;\n'.encode())
    first, second = read(path)
    assert (first.id, first.layer()) == ("1", (Span(0, 4, "PER"),))
    assert dict(second.layers) == {}


def test_a_column_of_plain_labels_is_a_meta_field(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,text,labels\n1,Anna,positive\n")
    (doc,) = read(path)
    assert (doc.meta, dict(doc.layers)) == ({"labels": "positive"}, {})


def test_types_and_clashes_of_meta_fields_are_reported() -> None:
    docs = [Document.make("a", id="1", meta={"n": 1, "Text": "b", "patient_id": "p"}), Document.make("b", id="2")]
    back, losses = through(docs, "csv")
    assert losses.counts == {
        "meta fields": 1,
        "types of meta fields (they come back as text)": 1,
        "groups (patients)": 1,
        "that meta fields were absent (they come back empty)": 2,
    }
    assert back[0].meta == {"n": "1", "patient_id": "p"}


@pytest.mark.parametrize(
    ("content", "says", "line"),
    [
        (f"id,text\n1,a\n2,{CANARY},c\n", "3 cells where the header has 2", 3),
        (f'id,text\n1,"a\nb"\n2,"{CANARY}\n', "not valid CSV", 4),
        (f'id,text\n1,"{CANARY}" x\n', "not valid CSV", 2),
        (f'id,text,spans\n1,"{CANARY}\nb","[[0,99,""A""]]"\n', "does not fit", 3),
        (f'id,text,spans\n1,{CANARY},"[[0,""{CANARY}"",""A""]]"\n', "Expected `int`", 2),
        (f"id,text,spans\n1,{CANARY},[\n", "not valid JSON", 2),
        (f"id,text,spans\n1,{CANARY},x\n", "JSON list", 2),
        (f"id,text,id\n1,{CANARY},2\n", "same name", 1),
        (f"id,text\n1,{CANARY}\n2,".encode() + b"\xff\n", "UTF-8", 3),
    ],
)
def test_bad_tables_are_refused_with_their_place(content: str | bytes, says: str, line: int) -> None:
    assert_refused(content, "csv", says, line=line)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (f"id,words\n1,{CANARY}\n", "the columns are 'id', 'words'"),
        (f"{CANARY},Smith\n{CANARY},Smith\n", "there are 2 columns, whose names may be no names"),
    ],
)
def test_a_table_without_a_text_column_is_refused_and_shows_no_cell(content: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(ConfigError, match=says) as caught:
        list(read(tmp_path / "a.csv"))
    assert CANARY not in str(caught.value)


def test_a_long_cell_is_read_up_to_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    write([Document.make("x " * 100_000, id="1")], path)
    (doc,) = read(path)
    assert len(doc.text) == 200_000
    with pytest.raises(LimitError):
        list(read(path, how=ReadOptions(max_chars=150_000)))
