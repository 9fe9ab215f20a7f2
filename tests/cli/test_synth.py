"""`chaffinch synth notes` as a user meets it: files that read back, counts, errors, and no text on any stream."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chaffinch.cli import main
from chaffinch.deid import notes
from chaffinch.text.formats import read
from tests.canary import Canary


@pytest.mark.parametrize(("name", "form"), [("notes.jsonl", "jsonl"), ("notes", "brat")])
def test_notes_read_back_with_equal_spans(
    name: str, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / name
    assert main(["synth", "notes", "-o", str(out), "--patients", "3", "--notes", "4", "--seed", "7", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    wanted = notes(3, 4, seed=7)
    assert (summary["to"], summary["patients"], summary["documents"]) == (form, 3, 12)
    assert summary["spans"] == sum(summary["labels"].values()) == sum(len(doc.layer()) for doc in wanted)
    assert sum(summary["kinds"].values()) == 12
    found = {doc.id: doc for doc in read(out)}
    assert {key: doc.text for key, doc in found.items()} == {doc.id: doc.text for doc in wanted}
    assert {key: doc.layer() for key, doc in found.items()} == {doc.id: doc.layer() for doc in wanted}
    if form == "jsonl":
        assert {key: doc.group for key, doc in found.items()} == {doc.id: doc.group for doc in wanted}
        assert summary["lost"] == {}
    else:
        assert summary["lost"]["groups (patients)"] == 12


def test_the_format_can_be_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "folder"
    assert main(["synth", "notes", "-o", str(out), "--to", "txt", "--patients", "1", "--names", "train"]) == 0
    assert len(list(out.glob("*.txt"))) == 5
    assert "not kept" in capsys.readouterr().out


def test_varied_notes_have_sites_and_the_labels_of_i2b2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "notes.jsonl"
    options = ["--style", "varied", "--sites", "b, d", "--patients", "4", "--notes", "2", "--seed", "7", "--json"]
    assert main(["synth", "notes", "-o", str(out), *options]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert {"MEDICALRECORD", "DEVICE", "LOCATION-OTHER"} <= set(summary["labels"])
    assert summary["style"] == "varied"
    wanted = notes(4, 2, seed=7, style="varied", sites="bd")
    assert [(doc.text, doc.layer(), doc.meta) for doc in read(out)] == [(d.text, d.layer(), d.meta) for d in wanted]
    assert {doc.meta["site"] for doc in wanted} == {"b", "d"}
    assert main(["synth", "notes", "-o", str(out), "--style", "varied", "--sites", "z"]) == 2
    assert "sites must be different ones of a, b, c, d, e, f, got z" in capsys.readouterr().err


def test_no_name_leaves_but_in_the_output(tmp_path: Path, canary: Canary) -> None:
    doc = notes(2, 3, seed=11)[0]
    name = max((doc.text[s.start : s.end] for s in doc.layer() if s.label in ("PATIENT", "DOCTOR")), key=len)
    out = tmp_path / "out" / "notes.jsonl"
    out.parent.mkdir()
    watch = Canary(canary.folder, word=name)
    done = watch.run("synth", "notes", "-o", out, "--patients", "2", "--notes", "3", "--seed", "11", outputs=[out])
    assert done.returncode == 0, done.stderr
    assert name in out.read_text()
    missing = tmp_path / "out" / "none" / "notes.jsonl"
    failed = watch.run("synth", "notes", "-o", missing, "--patients", "2", "--seed", "11", outputs=[out])
    assert failed.returncode == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "notes.xyz"], "name it with --to"),
        (["-o", "notes.jsonl", "--patients", "0"], "--patients"),
        (["-o", "notes.jsonl", "--names", "test"], "--names"),
        (["-o", "notes.jsonl", "--to", "nothing"], "nothing"),
        ([], "--output"),
    ],
)
def test_errors_are_named(
    options: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["synth", "notes", *options]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_help_begins_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["synth", "notes", "--help"]) == 0
    assert "chaffinch synth notes -o notes.jsonl --patients 100" in capsys.readouterr().out.splitlines()[2]
    assert main(["synth"]) == 0
    assert "notes" in capsys.readouterr().out
