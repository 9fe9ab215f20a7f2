"""`deid run --state` and `deid state`: their options, what they print, and what they refuse."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from chaffinch.cli import main
from chaffinch.deid.keys import Secret

Printed = pytest.CaptureFixture[str]
BY_ID = ["--group-by", r"^(p\d)-"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CHAFFINCH_STATE_KEY", raising=False)
    for month, names in (("jan", ("p1-a", "p2-a")), ("feb", ("p1-a", "p1-b"))):
        (tmp_path / month).mkdir()
        for name in names:
            (tmp_path / month / f"{name}.txt").write_text("Patient Name: Quorndale, Ilse. Quorndale left.\n")
    Secret.new().write("state.key")
    return tmp_path


def run(*arguments: str) -> int:
    return main(["deid", *arguments, "--model", "rules", *BY_ID, "--quiet"])


def test_a_state_is_made_read_and_asked(place: Path, capsys: Printed) -> None:
    with_state = ("--state", "s", "--state-key-file", "state.key")
    assert run("jan", "-o", "one", *with_state, "--json") == 0
    first = json.loads(capsys.readouterr().out)
    assert first["state"] == {"releases": 0, "patients": 0, "notes": 0}
    assert first["warnings"] == ["state: the file is new; no earlier release is remembered"]
    assert run("feb", "-o", "two", *with_state, "--json") == 0
    second = json.loads(capsys.readouterr().out)
    assert second["documents"] == {"in": 2, "released": 1, "withheld": 0, "excluded": 1}
    assert (second["state"], second["warnings"]) == ({"releases": 1, "patients": 2, "notes": 2}, [])
    assert main(["deid", "state", "s", "--state-key-file", "state.key", "--patient", "p1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["known"], told["unfinished"], told["patients"], told["notes"]) == (True, False, 2, 3)
    assert [(Path(note["output"]).name, note["id"]) for note in told["held"]] == [("one", "p1-a"), ("two", "p1-b")]
    for note in told["held"]:
        assert (place / note["output"] / f"{note['released']}.txt").is_file()
    assert main(["deid", "state", "s", "--state-key-file", "state.key", "--patient", "p7", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["known"], told["held"]) == (False, [])
    assert main(["deid", "state", "s", "--state-key-file", "state.key"]) == 0
    assert "Quorndale" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["jan", "-o", "out", "--state", "s"], "a state needs a key"),
        (["jan", "-o", "out", "--state-key-file", "state.key"], "a key needs a state"),
        (["jan", "-o", "-", "--state", "s", "--state-key-file", "state.key"], "takes one file"),
        (["jan/p1-a.txt", "-o", "-", "--state", "s", "--state-key-file", "state.key"], "which file holds a note"),
        (["jan", "-o", "out", "--state", "state.key", "--state-key-file", "state.key"], "is an input"),
        (["jan", "-o", "out", "--state", "out/s", "--state-key-file", "state.key"], "does not exist|among the outputs"),
        (["jan", "-o", "out", "--engine", "spark", "--state", "s"], "--state does not go with --engine spark"),
    ],
)
def test_what_cannot_be_remembered_is_refused(arguments: list[str], words: str, place: Path, capsys: Printed) -> None:
    before = sorted(path.name for path in place.iterdir())
    code = run(*arguments) if arguments[0] == "jan" else main(["deid", *arguments, "--model", "rules", "--quiet"])
    assert code == 2
    assert re.search(words, " ".join(capsys.readouterr().err.split()))
    assert sorted(path.name for path in place.iterdir()) == before


def test_a_key_in_the_environment_opens_the_state(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: Printed
) -> None:
    monkeypatch.setenv("CHAFFINCH_STATE_KEY", (place / "state.key").read_text().strip())
    assert run("jan", "-o", "one", "--state", "s") == 0
    assert main(["deid", "state", "s", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == 2
    (place / "note.txt").write_text("x")
    assert main(["deid", "state", "note.txt"]) == 3
    assert "is not a state" in capsys.readouterr().err
