"""Column files: CoNLL-2003, JNLPBA and their like."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from chaffinch.errors import DataError, LimitError
from chaffinch.text import Document, Span
from chaffinch.text.formats import Losses, ReadOptions, read, write
from chaffinch.text.formats._shared.token_tags import resolve_runs
from tests.text.formats.refusal import CANARY, assert_refused
from tests.text.formats.roundtrip import assert_kept, assert_kept_or_reported, through
from tests.text.formats.tokenised import enriched_documents, token_documents
from tests.text.strategies import corpora, documents

CONLL_2003 = """-DOCSTART- -X- O O

Anna NNP I-NP I-PER
Smith NNP I-NP I-PER
Leeds NNP I-NP I-LOC
York NNP I-NP B-LOC
saw VBD I-VP O

York NNP I-NP I-LOC

-DOCSTART- -X- O O

IL-2 NN I-NP I-MISC

"""
JNLPBA = "###MEDLINE:95369245\n\nIL-2\tB-DNA\ngene\tI-DNA\n\nA\xa0B\tO\n\n###MEDLINE:7\n\nCD28\tB-protein\n\n"


def read_text(folder: Path, name: str, content: str, how: ReadOptions | None = None) -> list[Document]:
    (folder / name).write_bytes(content.encode())
    return list(read(folder / name, how=how))


@pytest.mark.parametrize("form", ["conll", "iob1", "iobes"])
@given(docs=corpora(documents))
def test_any_document_is_kept_or_its_losses_are_reported(docs: list[Document], form: str) -> None:
    assert_kept_or_reported(docs, form)
    back, _ = through(docs, form)
    assert [doc.id for doc in back] == [doc.id for doc in docs]
    assert [len(doc.tokens) for doc in back] == [len(doc.tokens) for doc in docs]


@pytest.mark.parametrize("form", ["conll", "iob1", "iobes"])
@given(docs=corpora(token_documents))
def test_documents_of_tokens_are_kept(docs: list[Document], form: str) -> None:
    assert_kept(docs, form)


@given(corpora(token_documents, columns=2))
def test_further_columns_are_kept(docs: list[Document]) -> None:
    assert_kept([doc for doc in docs if len(doc.tokens)], "conll")


@given(enriched_documents())
def test_whatever_tags_cannot_say_is_reported(doc: Document) -> None:
    assert_kept_or_reported([doc], "conll")


def test_conll_2003_is_read_as_meant(tmp_path: Path) -> None:
    first, second = read_text(tmp_path, "eng.train", CONLL_2003)
    assert first.text == "Anna Smith Leeds York saw\nYork"
    assert first.layer() == (Span(0, 10, "PER"), Span(11, 16, "LOC"), Span(17, 21, "LOC"), Span(26, 30, "LOC"))
    assert first.sentences.tolist() == [[0, 25], [26, 30]]
    assert first.meta["columns"]["1"] == ["NNP", "NNP", "NNP", "NNP", "VBD", "NNP"]
    assert first.given
    assert (first.id, second.id, second.text) == ("eng-1", "eng-2", "IL-2")


def test_conll_2003_comes_back_byte_for_byte(tmp_path: Path) -> None:
    docs = read_text(tmp_path, "eng.train", CONLL_2003)
    (tmp_path / "again").mkdir()
    losses = write(docs, tmp_path / "again" / "eng.train", format="iob1")
    assert not losses
    assert (tmp_path / "again" / "eng.train").read_text() == CONLL_2003


def test_under_another_name_the_ids_are_written(tmp_path: Path) -> None:
    docs = read_text(tmp_path, "eng.train", CONLL_2003)
    assert not write(docs, tmp_path / "other.conll")
    assert (tmp_path / "other.conll").read_text().startswith("-DOCSTART- id=eng-1 O O\n\nAnna NNP I-NP B-PER\n")
    assert list(read(tmp_path / "other.conll")) == docs


def test_jnlpba_keeps_its_marks_and_no_break_spaces(tmp_path: Path) -> None:
    docs = read_text(tmp_path, "Genia.iob2", JNLPBA)
    assert [(doc.id, doc.text) for doc in docs] == [("95369245", "IL-2 gene\nA\xa0B"), ("7", "CD28")]
    assert docs[0].layer() == (Span(0, 9, "DNA"),)
    assert len(docs[0].tokens) == 3
    assert not write(docs, tmp_path / "other.conll")
    assert (tmp_path / "other.conll").read_bytes() == JNLPBA.encode()


def test_a_file_without_marks_is_one_document_named_after_it(tmp_path: Path) -> None:
    content = "IL-2\tS-DNA\ngene\tO\n\nYes\tO\n\n"
    (doc,) = read_text(tmp_path, "train.tsv", content)
    assert (doc.id, doc.text, doc.layer()) == ("train", "IL-2 gene\nYes", (Span(0, 4, "DNA"),))
    (tmp_path / "again").mkdir()
    assert not write([doc], tmp_path / "again" / "train.tsv", format="iobes")
    assert (tmp_path / "again" / "train.tsv").read_bytes() == content.encode()


def test_files_of_a_folder_that_share_a_stem_keep_ids_apart(tmp_path: Path) -> None:
    for name in ("eng.train", "eng.testa"):
        (tmp_path / name).write_text(CONLL_2003)
    ids = [doc.id for doc in read(tmp_path)]
    assert ids == ["eng.testa-1", "eng.testa-2", "eng.train-1", "eng.train-2"]


def test_a_byte_order_mark_in_the_first_token_is_kept() -> None:
    doc = Document.make("\ufeffa", id="out", layers={"gold": []}, tokens=[(0, 2)], sentences=[(0, 2)])
    assert_kept([doc], "conll")


def test_of_overlapping_runs_the_longest_stays() -> None:
    losses = Losses()
    nested = [(5, 6, "C"), (0, 10, "A"), (1, 2, "B"), (10, 11, "D")]
    assert resolve_runs(nested, losses) == [(0, 10, "A"), (10, 11, "D")]
    assert sum(losses.counts.values()) == 2


def test_losses_are_named() -> None:
    doc = Document.make(
        "Dr. Anna Smith-Jones.\n\nSaw her.",
        id="out",
        layers={"gold": [Span(4, 14, "NAME"), Span(4, 8, "FIRST"), Span(20, 26, "X"), Span(21, 23, "GAP")]},
    )
    (back,), losses = through([doc], "conll")
    assert back.text == "Dr. Anna Smith-Jones .\nSaw her ."
    assert [(back.text[s.start : s.end], s.label) for s in back.layer()] == [
        ("Anna Smith-Jones", "NAME"),
        (".", "X"),
        ("Saw", "X"),
    ]
    assert losses.counts == {
        "white space between tokens": 1,
        "spans moved to token edges": 1,
        "overlapping spans (the longest is kept)": 1,
        "spans cut at sentence ends": 1,
        "spans that cover no token": 1,
    }


@pytest.mark.parametrize(
    ("content", "says", "line"),
    [
        (f"a\tO\n{CANARY}\n", "1 columns where 2 were expected", 2),
        (f"a NN O\nb NN O\n{CANARY} O\n", "2 columns where 3 were expected", 3),
        (f"a\tO\n\nb\t{CANARY}\n", "not a tag", 3),
        (f"{CANARY}\tO\nb\tB-\n", "not a tag", 2),
        (f"{CANARY}\tO\n\tO\n", "empty", 2),
        (f"{CANARY} is\nprose.\n", "not a tag", 1),
        (f"{CANARY}\tO\n".encode() + b"\xff\tO\n", "UTF-8", 2),
    ],
)
def test_bad_rows_are_refused_with_their_place(content: str | bytes, says: str, line: int) -> None:
    assert_refused(content, "conll", says, line=line)


def test_a_document_over_the_limit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LimitError) as caught:
        read_text(tmp_path, "a.conll", JNLPBA, ReadOptions(max_chars=10))
    assert (caught.value.path, caught.value.line) == (str(tmp_path / "a.conll"), 1)


@pytest.mark.parametrize("mark", ["-DOCSTAR-", "-DOCSTART", "DOCSTART-", "-docstart-", "-DOCST\xc4RT-", "--DOCSTART-"])
def test_a_damaged_mark_does_not_merge_two_documents(mark: str, tmp_path: Path) -> None:
    path = tmp_path / "a.conll"
    rows = CONLL_2003.replace("\n-DOCSTART- -X- O O", f"\n{mark} -X- O O")
    assert rows != CONLL_2003
    path.write_text(rows)
    with pytest.raises(DataError, match="looks like a damaged -DOCSTART- line") as caught:
        list(read(path))
    assert caught.value.line == rows.splitlines().index(f"{mark} -X- O O") + 1


def test_a_token_like_a_mark_is_never_written_as_one(tmp_path: Path) -> None:
    losses = write([Document.make("a DOCSTART b")], tmp_path / "a.conll")
    assert losses.counts["tokens that are empty or hold tabs, line feeds or a mark"] == 1
    assert [doc.words() for doc in read(tmp_path / "a.conll")] == [["a", "________", "b"]]
