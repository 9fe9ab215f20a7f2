"""A patient's notes are worked on together, in the order of the input; no surrogate is drawn without one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import chaffinch as cf
from chaffinch.cli import main
from chaffinch.deid.policy import Policy
from chaffinch.deid.release.patient import LAYER, Release
from chaffinch.deid.release.units import open_source
from chaffinch.errors import ConfigError
from chaffinch.jobs.job import ReleaseJob
from chaffinch.jobs.ledger import Ledger
from chaffinch.jobs.release import run_release
from chaffinch.text import Document, Span
from chaffinch.text.grouping import Grouping
from tests.deid.releases import SECRET, FunctionDetector, detector
from tests.jobs.killing import Killed, killed_after

TAGS = Release(Policy("tag"), SECRET, keep_ids=True)
SURROGATES = Release(Policy.read("i2b2-surrogate"), SECRET, keep_ids=True)
NAMES = ("Quillfeather", "Penn", "Lowe", "Wren")


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """Four patients with three notes each, interleaved; only the first note of each says who the name is."""
    folder = tmp_path / "notes"
    folder.mkdir()
    for number in range(12):
        name = NAMES[number % 4]
        text = f"Patient: {name} came on 03/04/1998." if number < 4 else f"{name} came again, and {name} slept."
        (folder / f"{number:02d}-p{number % 4}.txt").write_text(text)
    return folder


def job(notes: Path, output: Path, found: FunctionDetector, how: Release) -> ReleaseJob:
    return ReleaseJob(open_source(notes, grouping=Grouping(r"-(p\d)$")), output, how, found)


def find_by_patient(docs: Sequence[Document]) -> Iterator[Document]:
    """Find the names that any of a patient's notes introduces, in all notes of that patient."""
    for doc in docs:
        own = [other.text.split()[1] for other in docs if other.group == doc.group and "Patient:" in other.text]
        starts = [(at, name) for name in own for at in range(len(doc.text)) if doc.text.startswith(name, at)]
        yield doc.with_layer(LAYER, [Span(at, at + len(name), "PATIENT") for at, name in starts])


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("size", [1, 4, 64])
@pytest.mark.parametrize(("how", "by_patient"), [(SURROGATES, False), (SURROGATES, True), (TAGS, True)])
def test_whole_patients_are_worked_on_together_in_the_order_of_the_input(
    how: Release, by_patient: bool, size: int, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chaffinch.jobs.batching.batches._BATCH_DOCUMENTS", size)
    calls: list[list[str]] = []

    def note_calls(docs: Sequence[Document]) -> Iterator[Document]:
        calls.append([doc.id for doc in docs])
        return find_by_patient(docs)

    run_release(job(notes, tmp_path / "out", detector(note_calls, by_patient=by_patient), how))
    for patient in range(4):
        own = [[name for name in ids if name.endswith(f"p{patient}")] for ids in calls]
        assert [name for names in own for name in names] == [
            f"{number:02d}-p{patient}" for number in range(patient, 12, 4)
        ]
        assert not by_patient or len(list(filter(None, own))) == 1, "the detector gets them in one call"


@pytest.mark.parametrize("size", [1, 4, 64])
@pytest.mark.parametrize("puts", range(1, 12))
def test_a_run_killed_between_two_notes_of_a_patient_resumes_with_the_same_bytes(
    puts: int, size: int, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chaffinch.jobs.batching.batches._BATCH_DOCUMENTS", size)
    found = replace(detector(find_by_patient), by_patient=True)
    for name in ("whole", "part"):
        (tmp_path / name).mkdir()
    run_release(job(notes, tmp_path / "whole" / "out", found, SURROGATES))
    with killed_after(puts):
        run_release(job(notes, tmp_path / "part" / "out", found, SURROGATES))
    stored: list[str] = []
    usual = Ledger.put

    def note_puts(self: Ledger, number: int, key: str, result: bytes) -> None:
        stored.append(key)
        usual(self, number, key, result)

    monkeypatch.setattr(Ledger, "put", note_puts)
    run_release(job(notes, tmp_path / "part" / "out", found, SURROGATES), resume=True)
    assert len(stored) == 12 - puts, "what is there already is not stored again"
    assert content(tmp_path / "part") == content(tmp_path / "whole")
    texts = b"".join(path.read_bytes() for path in (tmp_path / "part" / "out").iterdir())
    assert not [name for name in NAMES if name.encode() in texts]


@pytest.mark.parametrize("by_patient", [False, True])
def test_a_note_of_another_name_is_another_note(
    by_patient: bool, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chaffinch.jobs.batching.batches._BATCH_DOCUMENTS", 1)
    for name in ("whole", "part"):
        (tmp_path / name).mkdir()
    calls = 0

    def stop_at_the_second(docs: Sequence[Document]) -> Iterator[Document]:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise Killed
        return find_by_patient(docs)

    found = detector(stop_at_the_second, by_patient=by_patient)
    with pytest.raises(Killed):
        run_release(job(notes, tmp_path / "part" / "out", found, TAGS))
    for number in (0, 4, 8):
        (notes / f"{number:02d}-p0.txt").rename(notes / f"{number:02d}-p9.txt")
    run_release(job(notes, tmp_path / "part" / "out", found, TAGS), resume=True)
    run_release(job(notes, tmp_path / "whole" / "out", found, TAGS))
    assert content(tmp_path / "part") == content(tmp_path / "whole")


def write_csv(path: Path, patients: Sequence[str]) -> Path:
    rows = [f"n{number},{patient},Dr. Penn came." for number, patient in enumerate(patients)]
    path.write_text("\n".join(["id,patient,text", *rows]) + "\n")
    return path


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("dry", [False, True])
@pytest.mark.parametrize("model", ["rules", "deid-en"])
def test_surrogates_without_patients_are_refused_before_anything_is_written(
    model: str, dry: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = write_csv(tmp_path / "n.csv", ["p1", "", "p2", ""])
    SECRET.write(tmp_path / "secret")
    before = names_in(tmp_path)
    arguments = ["deid", str(place), "-o", str(tmp_path / "out.csv"), "--model", model, "--policy", "i2b2-surrogate"]
    arguments += ["--secret-file", str(tmp_path / "secret"), *(["--dry-run"] if dry else [])]
    assert main([*arguments, "--apart"]) == main(arguments) == 2
    said = capsys.readouterr().err
    assert "policy i2b2-surrogate" in said
    assert "2 of 4 notes have no patient" in said
    assert "--group-by" in said
    assert "--each-note-a-patient" in said
    assert names_in(tmp_path) == before


def test_a_call_without_patients_is_refused_in_the_words_of_the_call(tmp_path: Path) -> None:
    place = write_csv(tmp_path / "n.csv", ["", "", ""])
    how: dict[str, Any] = {"policy": "i2b2-surrogate", "secret": SECRET}
    with pytest.raises(ConfigError, match=r"3 of 3 notes have no patient: give group_by=.*each_note_a_patient=True"):
        cf.deid.run(place, tmp_path / "out.csv", cf.deid.detector(), **how)
    with pytest.raises(ConfigError, match=r"2 of 3 notes have no patient"):
        cf.deid.run(place, tmp_path / "out.csv", cf.deid.detector(), **how, group_by={"n1": "p1"})
    with pytest.raises(ConfigError, match=r"each_note_a_patient=True.*group_by="):
        cf.deid.run(place, tmp_path / "out.csv", cf.deid.detector(), **how, group_by="n", each_note_a_patient=True)
    assert names_in(tmp_path) == ["n.csv"]
    told = cf.deid.run(place, tmp_path / "out.csv", cf.deid.detector(), **how, each_note_a_patient=True)
    assert (told["patients"], told["without_patient"]) == (3, 3)


def test_what_is_said_of_patients_is_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    SECRET.write(tmp_path / "secret")
    arguments = ["deid", str(write_csv(tmp_path / "n.csv", ["", "p1", "p1"])), "-o", str(tmp_path / "out.csv")]
    arguments += ["--model", "rules", "--secret-file", str(tmp_path / "secret"), "--quiet"]
    before = names_in(tmp_path)
    for policy in ("i2b2-surrogate", "safe-harbor"):
        for more, words in (([], "2 of 3 notes name a patient"), (["--group-by", "n"], "--group-by")):
            assert main([*arguments, "--policy", policy, "--each-note-a-patient", *more]) == 2
            said = capsys.readouterr().err
            assert words in said
            assert "--each-note-a-patient" in said
    assert names_in(tmp_path) == before
    assert main(arguments) == 0, "tags need no patients"


def test_notes_that_cannot_be_read_need_no_patient(notes: Path, tmp_path: Path) -> None:
    (notes / "bad.txt").write_bytes(b"\xff")
    manifest = run_release(job(notes, tmp_path / "out", detector(), SURROGATES))
    assert manifest["documents"] == {"in": 13, "released": 12, "withheld": 1, "excluded": 0}
