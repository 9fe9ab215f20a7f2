"""brat standoff."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from chaffinch.text import Argument, Document, Relation, Span
from chaffinch.text.formats import ReadOptions, read, write
from tests.text.formats.annotated import CANARY, annotated, refusal
from tests.text.formats.roundtrip import assert_kept, assert_kept_or_reported
from tests.text.strategies import corpora, documents, simple_documents

TEXT = "Aspirin\ncauses severe and mild nausea.\n"
ANN = (
    "T1\tDrug 0 7\tAspirin\n"
    "T2\tEffect 15 21;31 37\tsevere nausea\n"
    "T3\tEffect 26 37\tmild nausea\n"
    "T4\tEvidence 0 7;8 14\tAspirin causes\n"
    "N1\tReference T1 MESH:D001241\tAspirin\n"
    "N2\tReference T1 concept:X7\t\n"
    "R1\tcauses Agent:T1 Result:T3\n"
    "E1\tEvidence:T4 Theme:T1\n"
    "A1\tNegation E1\n"
    "M1\tSpeculation T3\n"
    "#1\tAnnotatorNotes T1\tcheck this\n"
    "*\tEquiv T2 T3\n"
)


@given(corpora(documents))
def test_any_document_is_kept_or_reported(docs: list[Document]) -> None:
    if docs:
        assert_kept_or_reported(docs, "brat")


@given(corpora(annotated, concepts=["", "D009270", "OMIM:312080|D1", "concept:x", ":"], related=True))
def test_spans_concepts_and_relations_are_kept_on_any_text(docs: list[Document]) -> None:
    if docs:
        assert_kept(docs, "brat")


@given(corpora(simple_documents))
def test_simple_documents_are_kept(docs: list[Document]) -> None:
    if docs:
        assert_kept(docs, "brat")


def test_a_folder_of_brat_is_read_and_what_has_no_place_is_counted(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    (tmp_path / "a.ann").write_text(ANN)
    (tmp_path / "b.txt").write_text("No annotations.")
    how = ReadOptions()
    first, second = read(tmp_path, format="brat", how=how)
    drug, hull, mild, trigger = (
        Span(0, 7, "Drug"),
        Span(15, 37, "Effect"),
        Span(26, 37, "Effect"),
        Span(0, 14, "Evidence"),
    )
    assert first.layers == {"gold": (drug, trigger, hull, mild)}
    assert [span.concept for span in first.layers["gold"]] == ["MESH:D001241|X7", "", "", ""]
    assert first.relations == (Relation("causes", (Argument("Agent", (drug,)), Argument("Result", (mild,)))),)
    assert second.layers == {}
    assert how.losses.counts == {
        "holes of discontinuous spans (read as the span that covers them)": 1,
        "names of concepts": 1,
        "events (their triggers are kept)": 1,
        "attributes": 2,
        "notes": 1,
        "equivalences": 1,
    }


def test_the_files_are_written_as_brat_writes_them(tmp_path: Path) -> None:
    drug, line_end = Span(0, 7, "Drug", concept="MESH:D001241|X7"), Span(0, 14, "Evidence")
    relation = Relation("causes", (Argument("Agent", (drug,)), Argument("Result", (line_end,))))
    doc = Document.make(TEXT, id="a", layers={"gold": [drug, line_end]}, relations=[relation])
    assert not write([doc], tmp_path / "out", format="brat")
    assert (tmp_path / "out" / "a.txt").read_text() == TEXT
    assert (tmp_path / "out" / "a.ann").read_text() == (
        "T1\tDrug 0 7\tAspirin\n"
        "T2\tEvidence 0 7;8 14\tAspirin causes\n"
        "N1\tReference T1 MESH:D001241\t\n"
        "N2\tReference T1 concept:X7\t\n"
        "R1\tcauses Agent:T1 Result:T2\n"
    )


@pytest.mark.parametrize(
    ("relation", "loss"),
    [
        (Relation("r", (Argument("a", (Span(0, 7, "Drug"),)),)), "relations that are not between two spans"),
        (Relation("r", (Argument("a", (Span(0, 7, "Drug"),)), Argument("b", (), "D1"))), "relations that are not"),
        (Relation("r", (Argument("a", (Span(0, 7, "Drug"),)),) * 2, score=0.5), "details of relations"),
        (Relation("two words", (Argument("a", (Span(0, 7, "Drug"),)),) * 2), "labels with blanks"),
    ],
)
def test_relations_brat_cannot_hold_are_reported(tmp_path: Path, relation: Relation, loss: str) -> None:
    doc = Document.make(TEXT, id="a", layers={"gold": [Span(0, 7, "Drug")]}, relations=[relation])
    losses = write([doc], tmp_path / "out", format="brat")
    assert any(what.startswith(loss) for what in losses.counts)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("T1\tNAME 3 99\tPenn", "does not fit"),
        ("T1\tNAME 5 5\t", "does not fit"),
        ("T1\tNAME 0 3\tPenn", "not the one at that place"),
        ("T1\tNAME 0 x\tDr.", "not a whole number"),
        ("T1\tNAME 0 3;5\tDr.", "start and an end"),
        ("T1\tNAME 0 3", "a T line must be"),
        ("N1\tReference T1", "an N line must be"),
        ("R1\tmeets Arg1:T1 Arg2:T9", "does not exist"),
        ("R1\tmeets T1 T2", "an R line must be"),
        (f"{CANARY}\twhat", "starts with none of"),
        (b"T1\tNAME 0 3\tDr\xff", "not valid UTF-8"),
    ],
)
def test_a_bad_line_is_refused_with_its_place(tmp_path: Path, line: str | bytes, says: str) -> None:
    raw = line if isinstance(line, bytes) else line.encode()
    error = refusal(tmp_path, "brat", a_txt=f"Dr. {CANARY} here", a_ann=b"T2\tNAME 0 3\tDr.\n" + raw + b"\n")
    assert (error.path, error.line) == (str(tmp_path / "a.ann"), 2)
    assert says in str(error)


def test_annotations_without_their_text_are_refused(tmp_path: Path) -> None:
    error = refusal(tmp_path, "brat", a_ann="T1\tNAME 0 3\tDr.\n")
    assert "no .txt file" in str(error)
