"""Where bytes come from and where they go: folders, archives, damage, and outputs that are complete or absent."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from chaffinch.errors import ConfigError, DataError
from chaffinch.text import Document
from chaffinch.text.formats import read, write

SECRET = "Xylophagous"


def test_a_folder_is_read_in_the_order_of_names_without_hidden_files(tmp_path: Path) -> None:
    for name in ("b/2.txt", "a/1.txt", "10.txt", ".hidden.txt", ".git/x.txt", "b/readme.md"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name)
    assert [doc.id for doc in read(tmp_path, format="txt")] == ["10", "a/1", "b/2"]


def test_zip_and_tar_lose_the_folder_all_members_share(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "n.zip", "w") as archive:
        archive.writestr("top/notes/a.txt", "one")
        archive.writestr("top/notes/sub/b.txt", "two")
        archive.writestr("top/LICENSE", "free")
    with tarfile.open(tmp_path / "n.tar.gz", "w:gz") as tar:
        info = tarfile.TarInfo("top/notes/a.txt.gz")
        content = gzip.compress(b"one")
        info.size = len(content)
        tar.addfile(info, io.BytesIO(content))
    assert [(doc.id, doc.text) for doc in read(tmp_path / "n.zip", format="txt")] == [("a", "one"), ("sub/b", "two")]
    assert [(doc.id, doc.text) for doc in read(tmp_path / "n.tar.gz", format="txt")] == [("a", "one")]


def test_a_corpus_can_be_walked_again(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    notes = read(tmp_path)
    assert list(notes) == list(notes)
    assert notes.format == "txt"


@pytest.mark.parametrize("name", ["n.txt.gz", "n.tar.gz", "n.zip"])
def test_damaged_files_are_named(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name.endswith("zip"):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a.txt", SECRET * 50, zipfile.ZIP_DEFLATED)
    elif name.endswith("tar.gz"):
        with tarfile.open(path, "w:gz") as tar:
            info = tarfile.TarInfo("a.txt")
            info.size = 5000
            tar.addfile(info, io.BytesIO(os.urandom(5000)))
    else:
        path.write_bytes(gzip.compress(os.urandom(5000)))
    whole = path.read_bytes()
    for damaged in (whole[: len(whole) // 2], whole[:30] + b"\xff" * 40 + whole[70:], b"", SECRET.encode()):
        path.write_bytes(damaged)
        if damaged == b"" and not name.endswith("zip"):
            continue  # gzip reads nothing as nothing
        with pytest.raises(DataError) as caught:
            list(read(path, format="txt"))
        assert name in str(caught.value)
        assert SECRET not in str(caught.value)


def test_a_file_name_that_is_not_utf_8(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff.txt")).write_text("x")
    with pytest.raises(DataError, match="has a name that is not UTF-8"):
        read(tmp_path)


def test_what_is_not_there_or_not_known(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        read(tmp_path / "absent")
    with pytest.raises(DataError, match="has no files"):
        read(tmp_path)
    (tmp_path / "a.bin").write_bytes(b"\x00\x01")
    with pytest.raises(DataError, match="no known format"):
        read(tmp_path)
    (tmp_path / "b.bin").write_bytes(b"\x00\x01")
    with pytest.raises(DataError, match=r"has no .ann or .txt file, as brat has"):
        read(tmp_path, format="brat")
    with pytest.raises(ConfigError, match="unknown format 'brt'"):
        read(tmp_path, format="brt")


def test_a_broken_file_is_read_as_its_name_says(tmp_path: Path) -> None:
    for name, content, place in (
        ("a.conll", f"{SECRET}\tO\n{SECRET}\n", ":2: 1 columns where 2 were expected"),
        ("a.jsonl", f'{{"text": "{SECRET}"', ":1: is not valid JSON"),
    ):
        (tmp_path / name).write_text(content)
        with pytest.raises(DataError) as caught:
            list(read(tmp_path / name))
        assert name + place in str(caught.value)
        assert SECRET not in str(caught.value)


def test_bytes_that_are_not_utf_8_have_a_line(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\ntwo \xff")
    with pytest.raises(DataError, match=r"a.txt:2: byte 8 \(0xff\) is not valid UTF-8"):
        list(read(tmp_path / "a.txt"))


def test_a_failing_stream_leaves_the_old_output_and_nothing_beside(tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"
    target.write_text("old")

    def documents() -> object:
        yield Document.make("one")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write(documents(), target)  # type: ignore[arg-type]  # a generator of documents that breaks
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]


@pytest.mark.parametrize("name", ["", "..", "../x", "/x", "a/../b", ".x", "a//b", "a\0b", "a/"])
def test_ids_that_lead_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="cannot be a file name"):
        write([Document.make("x", id=name)], tmp_path / "out", format="txt")
    assert list(tmp_path.iterdir()) == []


def test_two_documents_with_one_id_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the same id"):
        write([Document.make("x", id="a"), Document.make("y", id="a")], tmp_path / "out", format="txt")
    assert list(tmp_path.iterdir()) == []


def test_the_output_format_follows_from_the_name(tmp_path: Path) -> None:
    doc = Document.make("Ada Quill", id="a")
    for name, form in (("x.jsonl", "jsonl"), ("x.hf.jsonl", "hf"), ("x.conll", "conll"), ("x.csv", "csv")):
        write([doc], tmp_path / name)
        assert read(tmp_path / name).format in (form, "iob2")
