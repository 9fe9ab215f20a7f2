"""Column files without marks as documents: a file, each sentence, or blocks of sentences."""

from __future__ import annotations

from pathlib import Path

import pytest

import chaffinch as cf
from chaffinch.errors import ConfigError
from chaffinch.text import Document
from chaffinch.text.formats.base import ReadOptions

ROWS = [f"w{n}\tB-X\nx\tO\n\n" for n in range(7)]


def read(path: Path, **options: str) -> list[Document]:
    return list(cf.read(path, how=ReadOptions(**options)))  # type: ignore[arg-type]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "a.conll").write_text("".join(ROWS))
    return tmp_path / "a.conll"


def test_a_file_is_one_document_by_default(path: Path) -> None:
    assert [doc.id for doc in read(path)] == [doc.id for doc in read(path, documents="file")] == ["a"]


@pytest.mark.parametrize(("documents", "sizes"), [("sentence", [1] * 7), ("block:3", [3, 3, 1]), ("block:7", [7])])
def test_blocks_hold_whole_sentences(path: Path, documents: str, sizes: list[int]) -> None:
    docs = read(path, documents=documents)
    assert [len(doc.sentences) for doc in docs] == sizes
    assert [doc.id for doc in docs] == (["a"] if len(sizes) == 1 else [f"a-{n}" for n in range(1, len(sizes) + 1)])
    assert "\n".join(doc.text for doc in docs) == read(path)[0].text
    assert sum(len(doc.layer("gold")) for doc in docs) == 7


def test_the_automatic_cut_is_told_and_marks_come_first(path: Path, tmp_path: Path) -> None:
    path.write_text("".join(ROWS * 3))
    how = ReadOptions(documents="auto")
    assert [len(doc.sentences) for doc in cf.read(path, how=how)] == [10, 10, 1]
    assert how.cut == {"a.conll"}
    marked = tmp_path / "m.conll"
    marked.write_text("-DOCSTART-\tO\n\n" + "".join(ROWS * 3))
    how = ReadOptions(documents="auto")
    assert len(list(cf.read(marked, how=how))) == 1
    assert not how.cut


def test_a_cut_that_is_no_cut_is_refused(path: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="block:N"):
        ReadOptions(documents="block:0")
    marked = tmp_path / "m.conll"
    marked.write_text("-DOCSTART-\tO\n\n" + "".join(ROWS))
    with pytest.raises(ConfigError, match="DOCSTART"):
        read(marked, documents="block:2")
    cf.write(read(path), tmp_path / "a.jsonl")
    with pytest.raises(ConfigError, match="jsonl"):
        read(tmp_path / "a.jsonl", documents="sentence")
