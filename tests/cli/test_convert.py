"""`chaffinch convert` as a user meets it: outputs, losses, and bad input that loses nothing."""

from __future__ import annotations

import builtins
import gzip
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from chaffinch.cli import main
from chaffinch.text import Document, Span
from chaffinch.text.formats import write
from tests.canary import Canary


@pytest.fixture
def notes(tmp_path: Path, canary: Canary) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "1-01.txt").write_bytes(f"\ufeffSeen by Dr. {canary.word}\r\non 12/03/1998.\0 😀".encode())
    (folder / "1-02.txt").write_bytes(b"")
    return folder


def test_every_byte_comes_back(notes: Path, tmp_path: Path, canary: Canary) -> None:
    there, back = tmp_path / "notes.jsonl", tmp_path / "back"
    assert canary.run("convert", notes, "-o", there, outputs=[there]).returncode == 0
    assert canary.run("convert", there, "-o", back, "--to", "txt", outputs=[back]).returncode == 0
    assert {p.name: p.read_bytes() for p in back.iterdir()} == {p.name: p.read_bytes() for p in notes.iterdir()}


def test_the_summary_as_json(notes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "notes.jsonl"
    assert main(["convert", str(notes), "-o", str(out), "--json", "--group-by", r"^(\d+)-"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["from"] == "txt"
    assert summary["to"] == "jsonl"
    assert summary["documents"] == summary["documents_with_patient"] == 2
    assert summary["lost"] == {}
    assert [json.loads(line)["group"] for line in out.read_text().splitlines()] == ["1", "1"]


def test_groups_from_a_file(notes: Path, tmp_path: Path) -> None:
    table, out = tmp_path / "groups.tsv", tmp_path / "notes.jsonl"
    table.write_text("1-01\tpatient-9\n")
    assert main(["convert", str(notes), "-o", str(out), "--group-by", str(table), "--quiet"]) == 0
    assert [json.loads(line).get("group") for line in out.read_text().splitlines()] == ["patient-9", None]


def test_losses_are_reported_and_strict_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = tmp_path / "in.jsonl", tmp_path / "out"
    write([Document.make("Ada Quill", id="a", layers={"gold": [Span(0, 3, "NAME")]})], source)
    assert main(["convert", str(source), "-o", str(out), "--to", "txt", "--strict"]) == 3
    assert "not kept in txt: layers (1)" in capsys.readouterr().err
    assert not out.exists()
    assert main(["convert", str(source), "-o", str(out), "--to", "txt"]) == 0
    assert "layers" in capsys.readouterr().out
    assert (out / "a.txt").read_text() == "Ada Quill"


def test_what_reading_could_not_keep_counts_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    notes, out = tmp_path / "notes", tmp_path / "out.jsonl"
    notes.mkdir()
    (notes / "a.txt").write_text("left and right arm")
    (notes / "a.ann").write_text("T1\tBODY 0 4;15 18\tleft arm\n")
    assert main(["convert", str(notes), "-o", str(out), "--strict"]) == 3
    assert "discontinuous" in capsys.readouterr().err
    assert not out.exists()
    assert main(["convert", str(notes), "-o", str(out), "--json"]) == 0
    assert sum(json.loads(capsys.readouterr().out)["lost"].values()) == 1


def test_compressed_files_and_archives_are_read(
    notes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines, out = tmp_path / "in.jsonl.gz", tmp_path / "out.jsonl"
    lines.write_bytes(gzip.compress(b'{"text": "one"}\n{"text": "two"}\n'))
    archive = tmp_path / "notes.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(notes, "top/notes")
    for source, ids in ((lines, ["0", "1"]), (archive, ["1-01", "1-02"])):
        assert main(["convert", str(source), "-o", str(out)]) == 0
        assert [json.loads(line)["id"] for line in out.read_text().splitlines()] == ids
    capsys.readouterr()


BAD = {
    "an offset past the end": (b'{"text": "CANARY", "spans": [[0, 900, "NAME"]]}\n', "in.jsonl:1:", "offsets count"),
    "invalid UTF-8": (b'{"text": "ok"}\n{"text": "CANARY \xff"}\n', "in.jsonl:2:", "iconv"),
    "broken JSON": (b'{"text": "CANARY"', "in.jsonl:1:", "not valid JSON"),
    "no text": (b'{"text": "ok"}\n{"note": "CANARY"}\n', "in.jsonl:2:", "text"),
    "over the limit": (b'{"text": "' + b"CANARY " * 50 + b'"}\n', "in.jsonl:1:", "--max-chars"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named_and_nothing_is_written(name: str, tmp_path: Path, canary: Canary) -> None:
    content, place, remedy = BAD[name]
    source, out = tmp_path / "in.jsonl", tmp_path / "out" / "notes.jsonl"
    source.write_bytes(content.replace(b"CANARY", canary.word.encode()))
    out.parent.mkdir()
    done = canary.run("convert", source, "-o", out, "--from", "jsonl", "--max-chars", "300", outputs=[out])
    assert done.returncode == 3
    assert place in done.stderr
    assert remedy in done.stderr
    assert list(out.parent.iterdir()) == []


def test_a_file_without_read_permission(
    notes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = open

    def refuse(path: Any, *arguments: Any, **options: Any) -> Any:
        if str(path).endswith("1-01.txt"):  # as the system does for anybody but root
            raise PermissionError(13, "Permission denied", str(path))
        return usual(path, *arguments, **options)

    monkeypatch.setattr(builtins, "open", refuse)
    assert main(["convert", str(notes), "-o", str(tmp_path / "out.jsonl")]) == 3
    assert "1-01.txt: cannot be read (Permission denied)" in capsys.readouterr().err


def test_what_cannot_be_is_refused(notes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    full = tmp_path / "full"
    full.mkdir()
    (full / "kept.txt").write_text("mine")
    cases = [
        (["-o", str(full), "--to", "txt"], 3, "not empty"),
        (["-o", str(tmp_path / "x.unknown")], 2, "--to"),
        (["-o", str(tmp_path / "x.jsonl"), "--from", "brta"], 2, "unknown format 'brta'"),
        (["-o", str(tmp_path / "no" / "x.jsonl")], 3, "does not exist"),
        (["-o", str(tmp_path / "x.jsonl"), "--group-by", "("], 2, "not a regular expression"),
        (["-o", str(tmp_path / "x.jsonl"), "--max-chars", "0"], 2, "max-chars"),
        ([], 2, "--output"),
    ]
    for arguments, code, words in cases:
        assert main(["convert", str(notes), *arguments]) == code
        assert words in capsys.readouterr().err
    assert (full / "kept.txt").read_text() == "mine"
    assert not (tmp_path / "x.jsonl").exists()


def test_settings_from_a_file_and_flags_that_win(
    notes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, out = tmp_path / "c.toml", tmp_path / "out"
    config.write_text('[convert]\nto = "jsonl"\nquiet = true\n')
    assert main(["convert", str(notes), "-o", str(out), "--config", str(config)]) == 0
    assert json.loads(out.read_text().splitlines()[0])["id"] == "1-01"
    out.unlink()
    assert main(["convert", str(notes), "-o", str(out), "--config", str(config), "--to", "txt"]) == 0
    assert (out / "1-02.txt").exists()
    config.write_text("max-char = 5\n")
    assert main(["convert", str(notes), "-o", str(tmp_path / "y"), "--config", str(config)]) == 2
    assert "unknown key 'max_char'; did you mean 'max_chars'?" in capsys.readouterr().err
    config.write_text("= 5\n")
    assert main(["convert", str(notes), "-o", str(tmp_path / "y"), "--config", str(config)]) == 2
    assert "not valid TOML" in capsys.readouterr().err
