"""A patient's notes are worked on together, in the order of the input, however the work is cut and however often stopped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from chaffinch.deid.policy import Policy
from chaffinch.deid.release import LAYER, Detector, Release
from chaffinch.deid.release_units import grouping, source
from chaffinch.jobs.ledger import Ledger
from chaffinch.jobs.parcels import Job
from chaffinch.jobs.release import released
from chaffinch.text import Document, Span
from tests.deid.releases import SECRET, detector

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


def job(notes: Path, output: Path, found: Detector, how: Release) -> Job:
    return Job(source(notes, grouping=grouping(r"-(p\d)$")), output, how, found)


def find_by_patient(docs: Sequence[Document]) -> Iterator[Document]:
    """Find the names that any of a patient's notes introduces, in all notes of that patient."""
    for doc in docs:
        own = [other.text.split()[1] for other in docs if other.group == doc.group and "Patient:" in other.text]
        starts = [(at, name) for name in own for at in range(len(doc.text)) if doc.text.startswith(name, at)]
        yield doc.with_layer(LAYER, [Span(at, at + len(name), "PATIENT") for at, name in starts])


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


class Killed(BaseException):
    """As if the process had gone."""


@pytest.mark.parametrize("size", [1, 4, 64])
@pytest.mark.parametrize(("how", "by_patient"), [(SURROGATES, False), (SURROGATES, True), (TAGS, True)])
def test_whole_patients_are_worked_on_together_in_the_order_of_the_input(
    how: Release, by_patient: bool, size: int, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chaffinch.jobs.parcels._PARCEL_DOCUMENTS", size)
    calls: list[list[str]] = []

    def note_calls(docs: Sequence[Document]) -> Iterator[Document]:
        calls.append([doc.id for doc in docs])
        return find_by_patient(docs)

    released(job(notes, tmp_path / "out", detector(note_calls, by_patient=by_patient), how))
    for patient in range(4):
        (call,) = [ids for ids in calls if any(name.endswith(f"p{patient}") for name in ids)]
        expected = [f"{number:02d}-p{patient}" for number in range(patient, 12, 4)]
        assert [name for name in call if name.endswith(f"p{patient}")] == expected


@pytest.mark.parametrize("size", [1, 4, 64])
@pytest.mark.parametrize("puts", range(1, 12))
def test_a_run_killed_between_two_notes_of_a_patient_resumes_with_the_same_bytes(
    puts: int, size: int, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chaffinch.jobs.parcels._PARCEL_DOCUMENTS", size)
    found = replace(detector(find_by_patient), by_patient=True)
    for name in ("whole", "part"):
        (tmp_path / name).mkdir()
    released(job(notes, tmp_path / "whole" / "out", found, SURROGATES))
    usual, done = Ledger.put, 0

    def put_some(self: Ledger, key: str, result: bytes) -> None:
        nonlocal done
        if done == puts:
            raise Killed
        usual(self, key, result)
        self.sync()
        done += 1

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "put", put_some)
        with pytest.raises(Killed):
            released(job(notes, tmp_path / "part" / "out", found, SURROGATES))
    stored: list[str] = []
    monkeypatch.setattr(Ledger, "put", lambda self, key, result: (stored.append(key), usual(self, key, result)))
    released(job(notes, tmp_path / "part" / "out", found, SURROGATES), resume=True)
    assert len(stored) == 12 - puts, "what is there already is not stored again"
    assert content(tmp_path / "part") == content(tmp_path / "whole")
    texts = b"".join(path.read_bytes() for path in (tmp_path / "part" / "out").iterdir())
    assert not [name for name in NAMES if name.encode() in texts]


@pytest.mark.parametrize("by_patient", [False, True])
def test_a_note_of_another_name_is_another_note(
    by_patient: bool, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chaffinch.jobs.parcels._PARCEL_DOCUMENTS", 1)
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
        released(job(notes, tmp_path / "part" / "out", found, TAGS))
    for number in (0, 4, 8):
        (notes / f"{number:02d}-p0.txt").rename(notes / f"{number:02d}-p9.txt")
    released(job(notes, tmp_path / "part" / "out", found, TAGS), resume=True)
    released(job(notes, tmp_path / "whole" / "out", found, TAGS))
    assert content(tmp_path / "part") == content(tmp_path / "whole")
