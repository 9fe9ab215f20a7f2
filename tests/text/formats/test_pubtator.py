"""PubTator."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaffinch.text import Argument, Document, Relation, Span
from chaffinch.text.formats import ReadOptions, read, write
from tests.text.formats.annotated import CANARY, annotated, refusal
from tests.text.formats.roundtrip import assert_kept, assert_kept_or_reported, through
from tests.text.strategies import PLAIN_TEXTS, corpora, documents, simple_documents

TWO_PARTS = st.tuples(PLAIN_TEXTS, PLAIN_TEXTS).map("\n".join)
GOLDEN = """227508|t|Naloxone reverses the effect of clonidine.
227508|a|Hemorrhagic cystitis is a composite; clonidine is not.
227508\t0\t8\tNaloxone\tChemical\tD009270
227508\t32\t41\tclonidine\tChemical\tD003000
227508\t43\t63\tHemorrhagic cystitis\tDisease\tD006470|D003556\themorrhagic|cystitis
227508\t80\t89\tclonidine\tChemical\tD003000
227508\tCID\tD003000\tD003556
227508\tCID\tD009270\tD000000

12|t|Nothing but a title.
12|a|

"""


@given(corpora(documents))
def test_any_document_is_kept_or_reported(docs: list[Document]) -> None:
    assert_kept_or_reported(docs, "pubtator")


@given(corpora(annotated, texts=PLAIN_TEXTS | TWO_PARTS, concepts=["", "-1", "D009270", "D006470|D003556"]))
def test_titles_abstracts_and_concepts_are_kept(docs: list[Document]) -> None:
    assert_kept(docs, "pubtator")


@given(corpora(simple_documents))
def test_simple_documents_are_kept(docs: list[Document]) -> None:
    assert_kept(docs, "pubtator")


def test_a_file_is_recognised_read_and_written_back_to_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_bytes(GOLDEN.encode())
    how = ReadOptions()
    first, second = read(tmp_path / "in.txt", how=how)
    assert not how.losses
    assert (first.id, first.text.index("\n"), second.text) == ("227508", 42, "Nothing but a title.")
    naloxone, clonidine = Span(0, 8, "Chemical"), Span(32, 41, "Chemical")
    composite, again = Span(43, 63, "Disease"), Span(80, 89, "Chemical")
    assert first.layers == {"gold": (naloxone, clonidine, composite, again)}
    assert [span.concept for span in first.layers["gold"]] == ["D009270", "D003000", "D006470|D003556", "D003000"]
    assert first.relations == (
        Relation(
            "CID",
            (Argument("Chemical", (clonidine, again), "D003000"), Argument("Disease", (composite,), "D003556")),
        ),
        Relation("CID", (Argument("Arg1", (naloxone,), "D009270"), Argument("Arg2", (), "D000000"))),
    )
    assert not write([first, second], tmp_path / "out.pubtator")
    assert (tmp_path / "out.pubtator").read_bytes() == GOLDEN.encode()


def test_line_ends_without_a_place_become_blanks_and_offsets_stay() -> None:
    doc = Document.make("title\r\nab\nstract\n", id="1", layers={"gold": [Span(10, 16, "X")]})
    (back,), losses = through([doc], "pubtator")
    assert back.text == "title \nab stract "
    assert back.layers == doc.layers
    assert losses.counts == {"line ends (written as blanks)": 3}


@pytest.mark.parametrize(
    ("relation", "loss"),
    [
        (Relation("r", (Argument("a", (Span(0, 1, "X"),)),) * 2), "relations that are not between two concepts"),
        (Relation("r", (Argument("Drug", (), "D1"), Argument("Arg2", (), "D2"))), "details of relations"),
        (Relation("r", (Argument("Arg1", (), "D1"), Argument("Arg2", (), "D2")), score=0.5), "details of relations"),
    ],
)
def test_relations_it_cannot_hold_are_reported(relation: Relation, loss: str) -> None:
    doc = Document.make("ab", id="1", layers={"gold": [Span(0, 1, "X")]})
    _, losses = through([replace(doc, relations=(relation,))], "pubtator")
    assert losses.counts == {loss: 1}


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("7\t4\t99\tx\tName\tD1", "does not fit"),
        ("7\t0\t3\tDr!\tName\tD1", "not the one at that place"),
        ("7\t0\t3\tDr.", "has 4 columns"),
        ("7\tCID\tD1", "has 3 columns"),
        (f"7 {CANARY}", "belongs to no document"),
        ("8\t0\t3\tDr.\tName\tD1", "belongs to no document"),
        ("8|a|More.", "belongs to no document"),
        ("7|a|More.", "one |t| line and one |a| line"),
        ("7|x|More.", "one |t| line and one |a| line"),
        (b"7\t0\t3\tDr\xff\tName\tD1", "not valid UTF-8"),
    ],
)
def test_a_bad_line_is_refused_with_its_place(tmp_path: Path, line: str | bytes, says: str) -> None:
    raw = line if isinstance(line, bytes) else line.encode()
    error = refusal(tmp_path, "pubtator", a_txt=f"7|t|Dr. {CANARY}\n7|a|was here.\n".encode() + raw + b"\n")
    assert error.line == 3
    assert says in str(error)


def test_a_blank_may_stand_for_punctuation_but_not_for_a_letter(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text('7|t|the "plus" sign\n7\t4\t10\t plus \tX\tD1\n')
    assert [doc.layers for doc in read(tmp_path / "a.txt")] == [{"gold": (Span(4, 10, "X"),)}]
    (tmp_path / "a.txt").write_text("7|t|the Xplus sign\n")
    assert refusal(tmp_path, "pubtator", a_txt="7|t|the Xplus sign\n7\t4\t9\t plus\tX\tD1\n").line == 2


def test_roles_are_labels_only_where_these_tell_the_arguments_apart(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("7|t|ab\n7\t0\t1\ta\tGene\tG1\n7\t1\t2\tb\tGene\tG2\n7\tBind\tG1\tG2\n")
    (doc,) = read(tmp_path / "a.txt")
    assert [argument.role for argument in doc.relations[0].arguments] == ["Arg1", "Arg2"]


def test_more_columns_than_a_document_has_places_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("7|t|ab\n7\t0\t1\ta\tX\tD1\ta\textra\n7\tBind\tD1\tD2\tNovel\n")
    how = ReadOptions()
    (doc,) = read(tmp_path / "a.txt", how=how)
    assert doc.meta == {"individual_mentions": [[0, 1, "X", "a"]]}
    assert how.losses.counts == {"columns after the seventh": 1, "fifth columns of relations": 1}
