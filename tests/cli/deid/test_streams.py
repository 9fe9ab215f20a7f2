"""`deid` with stdin and stdout, one file in and out, dry runs that tell, and pages that cannot be written."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from chaffinch.cli import main

Printed = pytest.CaptureFixture[str]
Bytes = pytest.CaptureFixture[bytes]

NOTE = "Seen by Dr. Penn.\r\nDr. Penn slept.\n"
CLEAN = NOTE.replace("Penn", "[DOCTOR]")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "note.txt").write_bytes(NOTE.encode())
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_bytes(NOTE.encode())
    (tmp_path / "notes.csv").write_text("id,text\n7,Seen by Dr. Penn.\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def give(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))


@pytest.mark.parametrize(
    ("content", "arguments", "expected"),
    [
        (NOTE, [], CLEAN),
        ("id,text\n7,Seen by Dr. Penn.\n", ["--from", "csv"], "id,text\r\n0000001,Seen by Dr. [DOCTOR].\r\n"),
        ('{"text": "Seen by Dr. Penn."}\n', [], '{"id":"0000001","text":"Seen by Dr. [DOCTOR].","layers":{}}\n'),
    ],
)
def test_stdin_to_stdout_leaves_nothing_on_the_disk(
    content: str,
    arguments: Sequence[str],
    expected: str,
    place: Path,
    capfdbinary: Bytes,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    give(content.encode(), monkeypatch)
    before = sorted(place.rglob("*"))
    assert main(["deid", "-", "-o", "-", "--model", "rules", *arguments]) == 0
    printed = capfdbinary.readouterr()
    assert printed.out.decode() == expected
    assert b"documents released  1" in printed.err
    assert sorted(place.rglob("*")) == before


def test_a_note_that_cannot_be_read_from_stdin_is_withheld(
    place: Path, capfdbinary: Bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(b"Dr. Penn\xff", monkeypatch)
    assert main(["deid", "-", "-o", "-", "--model", "rules", "--quiet"]) == 5
    printed = capfdbinary.readouterr()
    assert printed.out == b""
    assert b"1 of 1 documents were withheld" in printed.err
    assert b"Penn" not in printed.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["notes", "-o", "-"], "written to a folder"),
        (["note.txt", "-o", "-", "--json"], "--json does not go with -o -"),
        (["note.txt", "-o", "-", "--resume"], "--resume does not go with -o -"),
        (["note.txt", "-o", "-", "--vault", "v", "--key-file", "key"], "--vault"),
        (["notes", "-o", "out.txt"], "name a folder"),
        (["notes", "-o", "out", "--html", "absent/page.html"], "make it first"),
        (["notes", "-o", "out", "--html", "/proc/page.html"], "cannot be written"),
        (["notes", "-o", "out", "--html", "out.private"], "in the input or the output"),
        (["notes", "-o", "out", "--known", "known.csv", "--html", "known.csv"], "in the input or the output"),
        (["notes.csv", "-o", "known.csv", "--known", "known.csv"], "is an input"),
    ],
)
def test_what_cannot_be_written_is_refused_before_the_release(
    arguments: Sequence[str], words: str, place: Path, capsys: Printed
) -> None:
    (place / "known.csv").write_text("name\nAda Penn\n")
    assert main(["deid", "secret", "new", "key", "--quiet"]) == 0
    before = sorted(place.rglob("*"))
    assert main(["deid", *arguments, "--model", "rules"]) == 2
    printed = capsys.readouterr()
    assert words in printed.err
    assert printed.out == ""
    assert sorted(place.rglob("*")) == before


def test_one_file_becomes_one_file_and_comes_back(place: Path) -> None:
    assert main(["deid", "secret", "new", "key", "--quiet"]) == 0
    vault = ["--vault", "v", "--key-file", "key", "--quiet"]
    assert main(["deid", "note.txt", "-o", "clean.txt", "--model", "rules", *vault]) == 0
    assert (place / "clean.txt").read_bytes() == CLEAN.encode()
    assert main(["deid", "restore", "clean.txt", "-o", "again.txt", *vault]) == 0
    assert (place / "again.txt").read_bytes() == NOTE.encode()
    assert main(["deid", "note.txt", "-o", "folder", "--model", "rules", "--quiet"]) == 0
    assert (place / "folder" / "0000001.txt").read_bytes() == CLEAN.encode()


def test_a_dry_run_tells_its_counts_quietly_and_writes_its_page(place: Path, capsys: Printed) -> None:
    assert main(["deid", "notes", "--dry-run", "-q", "--html", "page.html", "--model", "rules"]) == 0
    printed = capsys.readouterr()
    assert "documents released  1" in printed.out
    assert printed.err == ""
    assert "DOCTOR" in (place / "page.html").read_text()
    assert sorted(path.name for path in place.iterdir()) == ["note.txt", "notes", "notes.csv", "page.html"]


def test_the_packaged_model_is_shown_on_one_screen(capsys: Printed) -> None:
    assert main(["show", "deid-en"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) <= 30  # one screen
    assert any("cascade, hmmdp" in line for line in shown)


@pytest.mark.parametrize("verb", [["evaluate", "gold.jsonl", "gold.jsonl"], ["weak", "analyse", "gold.jsonl"]])
def test_other_pages_are_refused_before_the_work(verb: list[str], place: Path, capsys: Printed) -> None:
    (place / "gold.jsonl").write_text('{"id": "1", "text": "Dr. Penn", "spans": [[4, 8, "DOCTOR"]]}\n')
    assert main([*verb, "--html", "absent/page.html"]) == 2
    assert "make it first" in capsys.readouterr().err
