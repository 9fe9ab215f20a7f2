"""`chaffinch deid` as a data steward meets it: one command, exit codes, lists, and no word of a note anywhere else."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from chaffinch.cli import main
from chaffinch.jobs.work import DetectorSpec
from chaffinch.text import Document, Span
from chaffinch.text.formats import read
from tests.canary import Canary
from tests.deid.releases import CANARY, detector, find

Printed = pytest.CaptureFixture[str]


def text_of(name: str, number: int) -> str:
    return f"Seen by Dr. {name} on 0{number % 9 + 1}/10/1998. She is well.\r\nDr. {name} gave aspirin.\n"


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    for number in range(6):
        (folder / f"{CANARY}-{number}.txt").write_bytes(text_of(CANARY, number).encode())
    return folder


@pytest.fixture
def by_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every model is the detector of the tests."""
    monkeypatch.setattr(DetectorSpec, "build", lambda _: detector())


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_one_command_releases_a_folder_and_leaves_no_name_anywhere_else(
    notes: Path, canary: Canary, tmp_path: Path
) -> None:
    (notes / "bad.txt").write_bytes(CANARY.encode() + b"\xff")
    (tmp_path / "out").mkdir()
    place = tmp_path / "out" / "clean"
    done = canary.run("deid", notes, "-o", place, "--model", "rules", outputs=[place])
    assert done.returncode == 5, done.stderr
    assert "1 of 7 documents were withheld" in done.stderr
    assert "documents released  6" in done.stdout
    private = tmp_path / "out" / "clean.private"
    for path in (tmp_path / "out").rglob("*"):
        if path.is_file() and path.parent != private:
            assert CANARY not in path.read_text(encoding="utf-8") + path.name
    texts = [path.read_bytes() for path in sorted((tmp_path / "out" / "clean").iterdir())]
    assert texts == [b"Seen by Dr. [DOCTOR] on 1998. She is well.\r\nDr. [DOCTOR] gave aspirin.\n"] * 6


def test_the_whole_way_there_and_back(notes: Path, tmp_path: Path, capsys: Printed) -> None:
    for name in ("secret", "key", "other-key"):
        assert main(["deid", "secret", "new", str(tmp_path / name), "--quiet"]) == 0
    out, vault, key = tmp_path / "clean", tmp_path / "v", str(tmp_path / "key")
    arguments = ["deid", "run", str(notes), "-o", str(out), "--policy", "i2b2-surrogate", "--model", "rules"]
    arguments += ["--secret-file", str(tmp_path / "secret"), "--group-by", r"^(\w+)-"]
    assert main([*arguments, "--vault", str(vault), "--key-file", key, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["documents"] == {"in": 6, "released": 6, "withheld": 0, "excluded": 0}
    assert told["patients"] == 1
    assert told["settings"]["ids"] == "pseudonyms"
    assert told["expected_leaks"]["notes"] == 6
    assert CANARY not in str([doc.text for doc in read(out)])
    again = str(tmp_path / "again")
    assert main(["deid", "restore", str(out), "-o", again, "--vault", str(vault), "--key-file", key, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["restored"] == 6
    assert {p.name: p.read_bytes() for p in Path(again).iterdir()} == {p.name: p.read_bytes() for p in notes.iterdir()}
    assert stat.S_IMODE(Path(again).stat().st_mode) == 0o700
    other = str(tmp_path / "other-key")
    elsewhere = str(tmp_path / "elsewhere")
    wrong = ["deid", "restore", str(out), "-o", elsewhere, "--vault", str(vault), "--key-file", other]
    assert main(wrong) == 2
    assert "does not open" in capsys.readouterr().err
    assert main(["deid", "rekey", str(vault), "--key-file", key, "--new-key-file", other, "--quiet"]) == 0
    assert main([*wrong, "--quiet"]) == 0


@pytest.mark.usefixtures("by_pattern")
def test_a_dry_run_writes_nothing_and_counts(notes: Path, tmp_path: Path, capsys: Printed) -> None:
    assert main(["deid", str(notes), "--dry-run", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["labels"]["DOCTOR"]["found"] == 12
    assert told["output"] is None
    assert names_in(tmp_path) == ["notes"]


def test_a_recall_that_the_model_cannot_reach_is_told(tmp_path: Path, capsys: Printed) -> None:
    note = tmp_path / "note.txt"
    note.write_text("Seen by Dr. Penn.")
    both = [
        "recall 0.999 is more than this model can do: 0.",
        "recall 0.999 is more than the 220 notes of this model",
    ]
    for recall, told in (("0.95", []), ("0.999", both)):
        assert main(["deid", str(note), "--dry-run", "--json", "--recall", recall]) == 0
        warnings = json.loads(capsys.readouterr().out)["warnings"]
        assert len(warnings) == len(told)
        assert all(warning.startswith(words) for warning, words in zip(warnings, told, strict=True))


def test_every_run_says_which_recall_to_expect_and_what_is_promised(tmp_path: Path, capsys: Printed) -> None:
    note = tmp_path / "note.txt"
    note.write_text("Seen by Dr. Penn.")
    said = []
    for more in ([], ["--recall", "0.9"], ["--recall", "0.995"], ["--fast"], ["--model", "rules"]):
        assert main(["deid", str(note), "--dry-run", *more]) == 0
        (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("recall "))
        said.append(line.removeprefix("recall ").strip())
    *measured, rules = said
    found = [re.fullmatch(r"(0\.\d{3}) expected, (0\.\d{3}) promised with 90 % confidence", line) for line in measured]
    expected, promised = ([float(match[part]) if match else 0.0 for match in found] for part in (1, 2))
    assert all(least < likely for likely, least in zip(expected, promised, strict=True))
    assert expected[0] <= expected[1] < expected[2]  # no setting has less recall than the default
    assert expected[3] < expected[0]  # a dial of its own
    assert rules == "not measured on other notes; see deid sample"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], 2, "-o OUT"),
        (["-o", "OUT", "--policy", "i2b2-surrogate"], 2, "chaffinch deid secret new"),
        (["-o", "OUT", "--policy", "safe-habor"], 2, "safe-harbor"),
        (["-o", "OUT", "--vault", "OUT.v"], 2, "CHAFFINCH_VAULT_KEY"),
        (["-o", "OUT", "--group-by", "("], 2, "regular expression"),
        (["-o", "IN/out"], 2, "inside it"),
        (["-o", "IN"], 2, "is the input"),
        (["-o", "OUT", "--secret-file", "absent"], 2, "secret new"),
        (["-o", "OUT", "--from", "jsonlines"], 2, "unknown format"),
        (["-o", "OUT", "--ids", "all"], 2, "--help"),
    ],
)
@pytest.mark.usefixtures("by_pattern")
def test_what_cannot_be_is_refused_with_the_remedy(
    arguments: Sequence[str], code: int, words: str, notes: Path, tmp_path: Path, capsys: Printed
) -> None:
    named = [a.replace("OUT", str(tmp_path / "out")).replace("IN", str(notes)) for a in arguments]
    assert main(["deid", str(notes), *named]) == code
    said = capsys.readouterr().err
    assert words in said
    assert names_in(tmp_path) == ["notes"]


def test_ctrl_c_says_how_to_go_on(
    notes: Path, tmp_path: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = True

    def step(docs: Sequence[Document]) -> Any:
        if stop:
            raise KeyboardInterrupt
        return find(docs)

    monkeypatch.setattr(DetectorSpec, "build", lambda _: detector(step))
    arguments = ["deid", str(notes), "-o", str(tmp_path / "out"), "--quiet"]
    assert main(arguments) == 130
    assert "--resume" in capsys.readouterr().err
    assert main(arguments) == 2
    assert "--resume" in capsys.readouterr().err
    stop = False
    assert main([*arguments, "--resume"]) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("by_pattern")
def test_harmless_columns_and_ids_go_along_when_asked(tmp_path: Path, capsys: Printed) -> None:
    (tmp_path / "n.csv").write_text(f"note_id,ward,name,text\n7,W1,{CANARY},Dr. {CANARY} came.\n")
    out = tmp_path / "out.csv"
    assert main(["deid", str(tmp_path / "n.csv"), "-o", str(out), "--ids", "keep", "--keep", "ward", "--quiet"]) == 0
    assert out.read_bytes() == b"note_id,text,ward\r\n7,Dr. [DOCTOR] came.,W1\r\n"
    config = tmp_path / "c.toml"
    config.write_text('spans = true\nids = "keep"\noverwrite = true\n')
    assert main(["deid", str(tmp_path / "n.csv"), "-o", str(out), "--config", str(config), "--quiet"]) == 0
    assert [doc.layer() for doc in read(out)] == [(Span(4, 12, "DOCTOR"),)]


def test_types_of_the_user_and_a_summary(tmp_path: Path, capsys: Printed) -> None:
    (tmp_path / "n").mkdir()
    (tmp_path / "n" / "a.txt").write_text(f"Dr. {CANARY} of trial NCT01234567.\n")
    (tmp_path / "types.toml").write_text(
        '[[source]]\nkind = "regex"\nname = "trials"\npattern = \'NCT\\d{8}\'\nlabel = "Trial"\n'
    )
    out, page = tmp_path / "out", tmp_path / "page.html"
    arguments = ["deid", str(tmp_path / "n"), "-o", str(out), "--model", "rules", "--html", str(page)]
    assert main([*arguments, "--types", str(tmp_path / "types.toml")]) == 0
    assert [doc.text for doc in read(out)] == ["Dr. [DOCTOR] of trial [Trial].\n"]
    assert f"wrote {page}" in capsys.readouterr().err
    told = page.read_text(encoding="utf-8")
    assert CANARY not in told
    manifest = json.loads((tmp_path / "out.manifest.json").read_bytes())
    for word in (
        manifest["settings"]["model"]["digest"],
        manifest["settings"]["policy"]["digest"],
        "Trial",
        "not set: the model",
    ):
        assert (word in told) == (word != "not set: the model"), word  # rules have no dial


def test_the_groups_help_and_its_commands(capsys: Printed) -> None:
    assert main(["deid"]) == 0
    said = capsys.readouterr().out
    assert all(word in said for word in ("run", "sample", "estimate", "restore", "rekey", "secret"))
    assert main(["deid", "run", "--help"]) == 0
    assert "--dry-run" in capsys.readouterr().out


def test_fast_is_refused_if_there_is_no_reader_to_leave_out(notes: Path, tmp_path: Path, capsys: Printed) -> None:
    assert main(["deid", str(notes), "-o", str(tmp_path / "clean"), "--model", "rules", "--fast"]) == 2
    assert "this model has none" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "clean").exists()
