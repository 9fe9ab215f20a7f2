"""Parquet: everything is kept; tables from elsewhere are read."""

from __future__ import annotations

import datetime
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

from chaffinch.errors import DataError, MissingExtraError
from chaffinch.text import Document, Span
from chaffinch.text.formats import ReadOptions, read, write
from tests.text.formats.refusal import CANARY, assert_refused
from tests.text.formats.roundtrip import assert_kept
from tests.text.formats.tokenised import token_documents
from tests.text.strategies import corpora, documents


@given(corpora(documents))
def test_any_document_is_kept(docs: list[Document]) -> None:
    assert_kept(docs, "parquet")


@given(corpora(token_documents, columns=1, sources=("a",)))
def test_given_tokens_are_kept(docs: list[Document]) -> None:
    assert_kept(docs, "parquet")


def table(path: Path, **columns: list[Any]) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def test_a_table_from_elsewhere_is_read(tmp_path: Path) -> None:
    path = table(
        tmp_path / "notes.parquet",
        ROW_ID=[174, 175],
        subject_id=[22532, None],
        chartdate=[datetime.date(2024, 5, 1), None],
        TEXT=["Anna\r\nLeeds", ""],
        spans=[[{"start": 0, "end": 4, "label": "PER", "score": None}], []],
    )
    first, second = read(path)
    assert (first.id, first.group, first.text) == ("174", "22532", "Anna\r\nLeeds")
    assert first.layer() == (Span(0, 4, "PER"),)
    assert first.meta == {"subject_id": 22532, "chartdate": "2024-05-01"}
    assert (second.id, second.group, second.text, second.layer()) == ("175", None, "", ())


def test_token_lists_of_a_dataset_are_read(tmp_path: Path) -> None:
    path = table(tmp_path / "train.parquet", id=["0"], tokens=[["IL-2", "gene"]], ner_tags=[[1, 2]])
    (doc,) = read(path, how=ReadOptions(tag_names=("O", "B-DNA", "I-DNA")))
    assert (doc.text, doc.layer(), doc.given) == ("IL-2 gene", (Span(0, 9, "DNA"),), True)


def test_many_documents_are_several_row_groups(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write((Document.make("x", id=str(i)) for i in range(1001)), path)
    assert pq.ParquetFile(path).num_row_groups == 2
    assert [doc.id for doc in read(path)] == [str(i) for i in range(1001)]


def test_the_columns_are_those_we_promise(tmp_path: Path) -> None:
    write([Document.make("Anna", id="1", layers={"gold": [Span(0, 4, "PER", 0.5)]})], tmp_path / "a.parquet")
    (row,) = pq.read_table(tmp_path / "a.parquet").to_pylist()
    span = {"start": 0, "end": 4, "label": "PER", "score": 0.5, "source": "", "concept": ""}
    assert row["layers"] == [("gold", [span])]
    assert [name for name, value in row.items() if value is None] == ["group", "tokens", "sentences", *_JSON]


_JSON = ["meta", "relations", "soft"]


@pytest.mark.parametrize(
    ("columns", "says", "line"),
    [
        ({"id": ["1", "2"], "text": [CANARY, None]}, "Expected `str`", 2),
        ({"text": [CANARY], "spans": [[{"start": 0, "end": 99, "label": "A"}]]}, "does not fit", 1),
        ({"text": [CANARY], "spans": [[{"start": 0, "end": 1.5, "label": "A"}]]}, "Expected `int`", 1),
    ],
)
def test_bad_tables_are_refused_with_their_place(
    tmp_path: Path, columns: dict[str, list[Any]], says: str, line: int | None
) -> None:
    path = table(tmp_path / "a.parquet", **columns)
    with pytest.raises(DataError, match=says) as caught:
        list(read(path))
    assert (caught.value.path, caught.value.line) == (str(path), line)
    assert CANARY not in str(caught.value)


def test_a_damaged_file_is_refused() -> None:
    assert_refused(f"PAR1{CANARY}", "parquet", "damaged", line=None)


def test_without_pyarrow_the_pip_line_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"chaffinch\[parquet\]"):
        write([], tmp_path / "a.parquet")
