"""What tells of originals is in a folder that only its owner can open; what stands beside the output tells nothing."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import chaffinch as cf
from chaffinch.cli import main
from chaffinch.deid.detect.admission import KnownIdentifiers
from chaffinch.deid.release.account import check_chain
from chaffinch.errors import DataError
from chaffinch.jobs import release as release_module
from chaffinch.weak.sources import Lexicon
from tests.deid.releases import SECRET
from tests.jobs.killing import Killed

WORD = "Quillfeather"
RULES = ("--model", "rules", "--quiet")


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """Four notes, and two that cannot be read for the same reason at different places."""
    folder = tmp_path / "notes"
    folder.mkdir()
    for number in range(4):
        (folder / f"{WORD}-{number}.txt").write_text(f"{'x ' * number}Seen by Dr. {WORD} on 3/4/1998.\n")
    (folder / f"{WORD}-8.txt").write_bytes(b"Dr. Penn\xff")
    (folder / f"{WORD}-9.txt").write_bytes(b"Dr. Penn was here\xfe")
    return folder


@pytest.fixture
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077], indirect=True, ids=oct)
def test_private_files_are_the_owners_alone_whatever_the_umask(umask: int, notes: Path, tmp_path: Path) -> None:
    assert main(["deid", str(notes), "-o", str(tmp_path / "out"), *RULES]) == 5
    assert names_in(tmp_path) == ["notes", "out", "out.manifest.json", "out.private"]
    private = tmp_path / "out.private"
    assert mode(private) == 0o700
    assert names_in(private) == ["documents.jsonl", "ids.jsonl", "risks.jsonl", "withheld.jsonl"]
    assert {mode(path) for path in private.iterdir()} == {0o600}
    assert mode(tmp_path / "out.manifest.json") == 0o666 & ~umask


def test_the_private_lists_lead_to_the_originals(notes: Path, tmp_path: Path) -> None:
    main(["deid", str(notes), "-o", str(tmp_path / "out"), *RULES])
    private = tmp_path / "out.private"
    files = {row["id"]: row["file"] for row in rows(private / "ids.jsonl")}
    documents = rows(private / "documents.jsonl")
    assert len(documents) == 6
    for row in documents:
        found = [(notes / files[row["id"]]).read_bytes()[start:end] for start, end, *_ in row["replacements"]]
        assert found == ([WORD.encode(), b"3/4/1998"] if row["status"] == "released" else [])
        assert [kind for _, _, kind, *_ in row["replacements"]] == ["DOCTOR", "DATE"][: len(found)]
    withheld = rows(private / "withheld.jsonl")
    assert [set(row) for row in withheld] == [{"id", "reason", "file"}] * 2
    assert [row["file"] for row in withheld] == [f"{WORD}-8.txt", f"{WORD}-9.txt"]
    assert "byte 8 " in withheld[0]["reason"]
    manifest = json.loads((tmp_path / "out.manifest.json").read_bytes())
    lines = (private / "documents.jsonl").read_bytes().splitlines()
    assert check_chain(lines, manifest) == 6
    with pytest.raises(DataError):
        check_chain(lines[1:], manifest)


def test_lists_that_a_script_relies_on_are_there_if_empty(tmp_path: Path) -> None:
    (tmp_path / "n.jsonl").write_text('{"id": "a", "text": "All well."}\n')
    for name, more, expected in (
        ("new", (), ["documents.jsonl", "ids.jsonl", "risks.jsonl"]),
        ("kept", ("--ids", "keep"), ["documents.jsonl", "risks.jsonl"]),
    ):
        assert main(["deid", str(tmp_path / "n.jsonl"), "-o", str(tmp_path / name), *RULES, *more]) == 0
        assert names_in(tmp_path / f"{name}.private") == expected


def test_the_manifest_tells_no_place_no_name_and_no_digest_of_phrases(notes: Path, tmp_path: Path) -> None:
    phrases = {"a": "Project Wren", "b": "Project Lark"}
    for name, phrase in phrases.items():
        (notes / "phrases.txt").write_text(f"{phrase} three.\n")
        find = cf.deid.detector(
            deny=[phrase],
            allow=[f"{phrase} two"],
            known=KnownIdentifiers.of([{"last": phrase}]),
            types=[Lexicon("own", [f"{phrase} three"], label="Own")],
        )
        cf.deid.run(notes, tmp_path / name, find, secret=SECRET)
    first, second = ((tmp_path / f"{name}.manifest.json").read_bytes() for name in phrases)
    assert first == second, "whoever guesses a phrase cannot check the guess"
    manifest = json.loads(first)
    model = manifest["settings"]["model"]
    assert (model["allow"], model["deny"], model["known"], model["types"], model["recall"]) == (1, 1, 1, 1, None)
    assert list(manifest["withheld"].values()) == [2], "one reason, without the places"
    assert b"byte 8" not in first
    assert b"byte 17" not in first
    for path in (tmp_path / "a").iterdir():
        assert path.stem.encode() not in first
    for row in rows(tmp_path / "a.private" / "documents.jsonl"):
        assert row["id"].encode() not in first
    assert WORD.encode() not in first


def test_the_private_folder_of_an_earlier_release_is_replaced_whole(tmp_path: Path) -> None:
    source, out = tmp_path / "n.jsonl", tmp_path / "out.jsonl"
    source.write_text('{"id": "a", "text": "Dr. Penn came."}\n{"id": "b", "text": 7}\n')
    assert main(["deid", str(source), "-o", str(out), *RULES]) == 5
    assert (tmp_path / "out.jsonl.private" / "withheld.jsonl").exists()
    source.write_text('{"id": "a", "text": "Dr. Lowe came."}\n')
    before = out.read_bytes()
    assert main(["deid", str(source), "-o", str(out), *RULES, "--ids", "keep"]) == 3
    assert out.read_bytes() == before, "nothing is replaced without --overwrite"
    assert main(["deid", str(source), "-o", str(out), *RULES, "--ids", "keep", "--overwrite"]) == 0
    assert names_in(tmp_path / "out.jsonl.private") == ["documents.jsonl", "risks.jsonl"]
    assert names_in(tmp_path) == ["n.jsonl", "out.jsonl", "out.jsonl.manifest.json", "out.jsonl.private"]


@pytest.mark.parametrize("kind", ["file", "folder of others", "link"])
def test_what_no_release_wrote_is_not_replaced(kind: str, notes: Path, tmp_path: Path) -> None:
    place = tmp_path / "out.private"
    if kind == "file":
        place.touch()
    elif kind == "link":
        (tmp_path / "else").mkdir()
        place.symlink_to(tmp_path / "else")
    else:
        place.mkdir()
        (place / "diary.txt").touch()
    before = names_in(tmp_path)
    for more in ([], ["--overwrite"]):
        assert main(["deid", str(notes), "-o", str(tmp_path / "out"), *RULES, *more]) == 3
        assert names_in(tmp_path) == before


def test_a_folder_of_an_earlier_release_is_replaced_whole_and_no_other(notes: Path, tmp_path: Path) -> None:
    asked = ["deid", str(notes), "-o", str(tmp_path / "out"), *RULES, "--overwrite"]
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "diary.txt").write_text("dear diary")
    assert main(asked) == 3, "no release wrote it"
    assert names_in(tmp_path / "out") == ["diary.txt"]
    (tmp_path / "out" / "diary.txt").rename(tmp_path / "diary.txt")
    assert main([*asked[:-1]]) == main(asked)
    (tmp_path / "out" / "old.txt").touch()
    first = names_in(tmp_path)
    main(asked)
    assert names_in(tmp_path) == first
    assert "old.txt" not in names_in(tmp_path / "out")


def test_an_output_that_came_while_the_run_went_on_is_not_replaced(
    notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = release_module.build_outputs

    def build(*arguments: Any) -> None:
        usual(*arguments)
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "diary.txt").touch()

    monkeypatch.setattr(release_module, "build_outputs", build)
    with pytest.raises(DataError, match="not empty"):
        cf.deid.run(notes, tmp_path / "out", cf.deid.detector())
    assert names_in(tmp_path / "out") == ["diary.txt"]
    (tmp_path / "out" / "diary.txt").unlink()
    cf.deid.run(notes, tmp_path / "out", cf.deid.detector(), settings=cf.deid.RunSettings(resume=True))
    assert names_in(tmp_path / "out")


@pytest.mark.parametrize("moves", range(5))
def test_a_run_stopped_while_an_earlier_release_is_replaced_can_be_finished(
    moves: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "n.jsonl"
    for folder in ("whole", "part"):
        (tmp_path / folder).mkdir()
        source.write_text('{"id": "a", "text": "Dr. Penn came."}\n{"id": "b", "text": 7}\n')
        cf.deid.run(source, tmp_path / folder / "out.jsonl", cf.deid.detector())
    source.write_text('{"id": "c", "text": "Dr. Lowe came."}\n')
    again = cf.deid.RunSettings(overwrite=True)
    cf.deid.run(source, tmp_path / "whole" / "out.jsonl", cf.deid.detector(), settings=again)
    usual, count = Path.replace, 0

    def stopping(self: Path, target: Path) -> Path:
        nonlocal count
        if self.name != "ledger.new":
            count += 1
            if count > moves:
                raise Killed
        return usual(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", stopping)
        try:
            cf.deid.run(source, tmp_path / "part" / "out.jsonl", cf.deid.detector(), settings=again)
        except Killed:
            patch.undo()
            resumed = replace(again, resume=True)
            cf.deid.run(source, tmp_path / "part" / "out.jsonl", cf.deid.detector(), settings=resumed)
    found = [
        {str(path.relative_to(tmp_path / name)): path.read_bytes() for path in (tmp_path / name).rglob("*.*")
         if path.is_file()} for name in ("whole", "part")
    ]  # fmt: skip
    assert found[0] == found[1]
    assert names_in(tmp_path / "part") == ["out.jsonl", "out.jsonl.manifest.json", "out.jsonl.private"]


@pytest.mark.parametrize("name", ["out", "out.private/risks.jsonl"])
def test_a_sample_is_drawn_from_the_release_or_from_a_file_of_risks(name: str, notes: Path, tmp_path: Path) -> None:
    SECRET.write(tmp_path / "secret")
    main(["deid", str(notes), "-o", str(tmp_path / "out"), *RULES, "--secret-file", str(tmp_path / "secret")])
    sample = ["deid", "sample", str(tmp_path / name), "-o", str(tmp_path / "sample.json"), "--notes", "3", "--quiet"]
    assert main(sample) == 0
    ids = {row["id"] for row in rows(tmp_path / "out.private" / "risks.jsonl")}
    form = (tmp_path / "sample.csv").read_text().splitlines()[1:]
    assert len(form) == 3
    assert {line.split(",")[0] for line in form} < ids


def test_a_sample_of_a_release_that_is_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "n.jsonl").write_text('{"id": "a", "text": "Dr. Penn came."}\n')
    out = str(tmp_path / "out.jsonl")
    assert main(["deid", str(tmp_path / "n.jsonl"), "-o", out, *RULES]) == 0
    assert main(["deid", "sample", out, "-o", str(tmp_path / "s.json"), "--notes", "1", "--quiet"]) == 0
    (tmp_path / "folder").mkdir()
    assert main(["deid", "sample", str(tmp_path / "folder"), "-o", str(tmp_path / "t.json")]) == 3
    assert "folder.private" in capsys.readouterr().err
