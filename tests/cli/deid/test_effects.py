"""A setting of `chaffinch deid` has an effect, or is refused before anything is written, or is a counted warning."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from chaffinch.cli import main

Printed = pytest.CaptureFixture[str]

FILES = {
    "notes/p1-1.txt": "Seen by Dr. Penn on 03/04/1998. Trial NCT01234567. Mary Smith-Jones slept.\n",
    "notes/p1-2.txt": "M. Smith-Jones came again; Project Wren. SMITH-JONES, MARY.\n",
    "notes/p2-1.txt": "Dr. Lowe gave aspirin at the Mayo stand.\n",
    "notes.csv": (
        "id,patient,text,ward,seen\na,p1,Seen by Dr. Penn.,east,1998-03-04\nb,p2,Dr. Lowe slept.,west,1999-01-02\n"
    ),
    "known.csv": "patient,name\np1,Mary Smith-Jones\np2,Ann Lowe\n",
    "unknown.csv": "patient,name\n7,Mary Smith-Jones\n8,Ann Lowe\n",
    "some.csv": "patient,name,mrn\np1,Mary Smith-Jones,1\np9,Ann Lowe,\n",
    "patients.tsv": "p1-1\tp1\np1-2\tp1\np2-1\tp2\n",
    "others.tsv": "x-1\tp1\nx-2\tp2\n",
    "deny.txt": "Project Wren\n",
    "absent.txt": "Project Crow\n",
    "empty.txt": "# nothing\n",
    "allow.txt": "Mayo stand\nFoley\n",
    "types.toml": '[[source]]\nkind = "regex"\nname = "trials"\npattern = "NCT[0-9]{8}"\nlabel = "Trial"\n',
    "no-types.toml": '[[source]]\nkind = "regex"\nname = "trials"\npattern = "NCX[0-9]{8}"\nlabel = "Trial"\n',
    "policy.toml": 'types = ["Trial"]\n[rules]\nTrial = "remove"\n',
    "config.toml": 'model = "rules"\n[train]\nseed = 3\n[deid.sample]\nseed = 3\n',
}
BY_ID = ["--group-by", r"^(p\d)-"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str, notes: str = "notes", out: str = "out") -> int:
    model = [] if "--model" in arguments or "--config" in arguments else ["--model", "rules"]
    return main(["deid", notes, "-o", out, *model, *arguments])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--group-by", "nosuch.tsv"], "no such file"),
        (["--group-by", "no(such).tsv2"], "matches the id of none of the 3"),
        (["--group-by", r"^(q\d)-"], "matches the id of none of the 3"),
        (["--group-by", r"^(\d*)"], "matches the id of none of the 3"),
        (["--group-by", "others.tsv"], "none of the 2 ids"),
        (["--group-by", "empty.txt"], ""),
        ([*BY_ID, "--known", "unknown.csv"], "none of its 2 patients"),
        (["--known", "known.csv"], "none of its 2 patients"),
        (["--deny", "absent.txt"], "none of its 1 phrases"),
        (["--deny", "empty.txt"], "has no phrase"),
        (["--types", "no-types.toml"], "find nothing"),
        (["--policy", "policy.toml"], "'Trial' is found by neither"),
        (["--policy", "policy.toml", "--types", "no-types.toml"], "find nothing"),
        (["--keep", "ward"], "none of the 3 notes has a field"),
        (["--spans"], "txt holds no spans"),
        (["--deny", "deny.txt", "--deny", "deny.txt"], "given 2 times"),
        (["--strict", "--allow", "allow.txt"], "1 of its 2 phrases"),
        (["--strict", "--config", "config.toml"], "[train]"),
        ([*BY_ID, "--strict", "--known", "some.csv"], "--strict: --known"),
    ],
)
def test_what_protects_and_has_no_effect_is_refused_before_anything_is_written(
    arguments: Sequence[str], words: str, place: Path, capsys: Printed
) -> None:
    before = sorted(place.iterdir())
    assert run(*arguments) in ((2, 3) if "empty.txt" in arguments else (2,))
    told = capsys.readouterr().err
    assert words in told
    assert not any(word in told for word in ("Penn", "Smith", "Lowe", "p1-"))
    assert sorted(place.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--keep", "wrad"], "did you mean 'ward'?"),
        (["--keep", "seen"], "holds DATE"),
        (["--keep", "patient"], "ids of notes or patients"),
        (["-o", "out.jsonl"], "name it out.csv"),
        (["-o", "out.csv.gz"], "not compressed"),
    ],
)
def test_settings_of_tables_are_refused_before_anything_is_written(
    arguments: list[str], words: str, place: Path, capsys: Printed
) -> None:
    before = sorted(place.iterdir())
    output = [] if "-o" in arguments else ["-o", "out.csv"]
    assert main(["deid", "notes.csv", "--model", "rules", *output, *arguments]) == 2
    assert words in capsys.readouterr().err
    assert sorted(place.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--allow", "allow.txt"], "--allow: 1 of its 2 phrases are in no note"),
        (["--allow", "absent.txt"], "--allow: 1 of its 1 phrases are in no note"),
        (["--config", "config.toml"], "[train], [deid.sample]"),
        (["--group-by", r"^(p1)-"], "--group-by: no patient is assigned to 1 of 3 notes"),
        ([*BY_ID, "--known", "some.csv"], "--known: 1 of 3 notes are of patients that it does not list"),
        ([*BY_ID, "--known", "some.csv"], "--known: 1 of its 2 patients have no note"),
        ([*BY_ID, "--known", "some.csv"], "--known: 1 of its values are too short"),
    ],
)
def test_what_helps_and_has_no_effect_is_a_warning_in_table_and_manifest(
    arguments: Sequence[str], words: str, place: Path, capsys: Printed
) -> None:
    assert run(*arguments) == 0
    assert any(words in line for line in capsys.readouterr().out.splitlines())
    words = words.removeprefix("--")
    assert any(words in warning for warning in json.loads((place / "out.manifest.json").read_text())["warnings"])


def test_settings_with_effect_are_no_warning_and_pass_strictly(place: Path, capsys: Printed) -> None:
    arguments = [*BY_ID, "--known", "known.csv", "--deny", "deny.txt", "--types", "types.toml", "--strict"]
    assert run(*arguments, "--policy", "policy.toml") == 0
    assert json.loads((place / "out.manifest.json").read_text())["warnings"] == []
    assert run("--group-by", "patients.tsv", "--strict", out="again") == 0
    assert capsys.readouterr().err == ""
    texts = " ".join(path.read_text() for path in sorted((place / "out").iterdir()))
    assert not any(word in texts.casefold() for word in ("smith", "jones", "wren", "nct"))
    assert "[PATIENT]-" not in texts
    assert "-[PATIENT]" not in texts


def test_a_field_that_repeats_an_identifier_of_its_note_withholds_the_note(place: Path) -> None:
    (place / "kept.csv").write_text("id,text,word\na,Seen by Dr. Penn.,penn\nb,Seen by Dr. Lowe.,east\n")
    assert main(["deid", "kept.csv", "-o", "out.csv", "--keep", "word", "--model", "rules", "--quiet"]) == 5
    assert (place / "out.csv").read_text().splitlines() == ["id,text,word", "0000002,Seen by Dr. [DOCTOR].,east"]


def test_of_several_sources_files_none_is_dropped(place: Path, capsys: Printed) -> None:
    sources = ["-s", "types.toml", "-s", "no-types.toml"]
    assert main(["weak", "apply", "notes", *sources, "-o", "votes.jsonl"]) == 2
    assert "--sources is given 2 times" in capsys.readouterr().err


def test_the_packaged_model_and_policy_win_over_files_of_their_names(place: Path, capsys: Printed) -> None:
    for name in ("deid-en", "rules", "safe-harbor"):
        (place / name).write_text("not a model")
    assert main(["deid", "notes", "-o", "out", "--model", "rules"]) == 0
    told = capsys.readouterr().out
    assert "write ./rules for the file" in told
    assert "write ./safe-harbor for the file" in told
    assert main(["deid", "notes", "-o", "other", "--model", "./rules"]) == 3
    assert main(["deid", "notes", "-o", "other", "--model", "rules", "--policy", "./safe-harbor"]) == 2
    assert main(["show", "deid-en", "--json"]) == 0
    assert main(["show", "./deid-en"]) == 3


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["deid", "smaple", "out", "-o", "x"], "'sample'"),
        (["deid", "notes", "-o", "out", "--model", "deid_en"], "'deid-en'"),
        (["tag", "deid_en", "notes", "-o", "x.jsonl"], "'deid-en'"),
        (["show", "deid-em"], "'deid-en'"),
        (["died", "notes"], "'deid'"),
        (["weak", "aply", "notes"], "'apply'"),
    ],
)
def test_a_misspelt_name_gets_the_right_hint(arguments: list[str], hint: str, place: Path, capsys: Printed) -> None:
    assert main(arguments) in (2, 3)
    assert f"id you mean {hint}?" in capsys.readouterr().err
