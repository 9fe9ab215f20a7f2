"""`chaffinch verify`: a release is as it was written, or the command says what differs."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from chaffinch.cli import main
from tests.attacks.sizes import sized

pytestmark = pytest.mark.drill

Printed = pytest.CaptureFixture[str]
WORD = "Quillfeather"
FORMATS = {"txt": "out", "jsonl": "out.jsonl", "csv": "out.csv", "conll": "out.conll", "brat": "out"}


@pytest.fixture(params=FORMATS)
def release(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A release of three notes, with one withheld and one excluded, in a format."""
    notes = tmp_path / "notes.jsonl"
    rows = [{"id": f"n{n}", "text": f"Seen by Dr. {WORD} on 3/{n + 1}/1998.", "layers": {"gold": []}} for n in range(3)]
    notes.write_text("".join(json.dumps(row) + "\n" for row in rows))
    name = FORMATS[request.param]
    source = tmp_path / f"in{Path(name).suffix}"
    assert main(["convert", str(notes), "-o", str(source), "--to", request.param, "-q"]) == 0
    (tmp_path / "r").mkdir()
    output = tmp_path / "r" / name
    if source.is_dir():
        (source / "bad.txt").write_bytes(b"\xff")
        (source / "scan.pdf").write_bytes(b"%PDF")
    code = main(["deid", str(source), "-o", str(output), "--model", "rules", "-q"])
    assert code == (5 if source.is_dir() else 0)
    return output


def verify(output: Path) -> int:
    return main(["verify", str(output), "--json"])


def test_a_release_is_as_it_was_written(release: Path, capsys: Printed) -> None:
    assert verify(release) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["documents"]["released"] == 3
    assert told["lines"] == told["documents"]["in"]
    assert told["texts"] == (0 if release.suffix == ".conll" else 3)


def test_without_the_private_lists_files_are_compared(release: Path, capsys: Printed) -> None:
    shutil.rmtree(f"{release}.private")
    assert verify(release) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["lines"] is None
    assert "only files and manifest were compared" in told.err


def _lines(path: Path, change: Callable[[list[str]], list[str]]) -> None:
    path.write_text("".join(change(path.read_text().splitlines(keepends=True))))


def _drop_line(release: Path) -> None:
    _lines(Path(f"{release}.private", "documents.jsonl"), lambda lines: lines[:-1])


def _swap_lines(release: Path) -> None:
    _lines(Path(f"{release}.private", "documents.jsonl"), lambda lines: [lines[1], lines[0], *lines[2:]])


def _raise_count(release: Path) -> None:
    path = Path(f"{release}.manifest.json")
    path.write_text(path.read_text().replace('"released": 3', '"released": 4'))


def _change_policy(release: Path) -> None:
    path = Path(f"{release}.manifest.json")
    path.write_text(path.read_text().replace("safe-harbor", "safe-harbour"))


def _remove_manifest(release: Path) -> None:
    Path(f"{release}.manifest.json").unlink()


@pytest.mark.parametrize("change", [_drop_line, _swap_lines, _raise_count, _change_policy, _remove_manifest])
def test_a_changed_account_or_manifest_is_refused(
    change: Callable[[Path], None], release: Path, capsys: Printed
) -> None:
    change(release)
    assert verify(release) == 3
    assert WORD not in capsys.readouterr().err


def test_no_byte_changes_unnoticed(release: Path, capsys: Printed) -> None:
    files = [path for path in release.parent.rglob("*") if path.is_file()]
    files = [path for path in files if path.name == "documents.jsonl" or path.is_relative_to(release)]
    rng = random.Random(0)
    for _ in range(sized(20, 200)):
        path = rng.choice(files)
        before = path.read_bytes()
        if not before:
            continue
        place = rng.randrange(len(before))
        if path.name == "documents.jsonl" and before[place : place + 1] == b"\n" and place == len(before) - 1:
            continue
        path.write_bytes(before[:place] + bytes([before[place] ^ (1 << rng.randrange(8))]) + before[place + 1 :])
        assert verify(release) == 3, (path.name, place)
        said = capsys.readouterr().err
        assert "Traceback" not in said
        assert "internal error" not in said
        path.write_bytes(before)
    assert verify(release) == 0


def test_an_added_and_a_missing_document_are_told_apart(tmp_path: Path, capsys: Printed) -> None:
    (tmp_path / "n").mkdir()
    for name in ("a", "b"):
        (tmp_path / "n" / f"{name}.txt").write_text(f"{name} note")
    assert main(["deid", str(tmp_path / "n"), "-o", str(tmp_path / "out"), "--model", "rules", "-q"]) == 0
    (tmp_path / "out" / "0000002.txt").rename(tmp_path / "out" / "0000003.txt")
    (tmp_path / "out" / "0000001.txt").write_text("c note")
    assert verify(tmp_path / "out") == 3
    said = capsys.readouterr().err
    assert "of 2 released documents 1 were changed and 1 are missing, and 1 others were added" in said


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"format": 4}', b'{"format": 3}', b"[" * 100_000, b"\xff"])
def test_a_manifest_of_another_form_is_refused(content: bytes, tmp_path: Path, capsys: Printed) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out.manifest.json").write_bytes(content)
    assert verify(tmp_path / "out") == 3
    assert "internal error" not in capsys.readouterr().err
