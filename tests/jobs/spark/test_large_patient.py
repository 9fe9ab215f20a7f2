"""A patient with more notes than a batch of a partition: the same outcomes, and not all of them in memory."""

from __future__ import annotations

import sys

import pytest

from chaffinch.deid.policy import Policy
from chaffinch.deid.release.patient import Release, Released, Withheld
from chaffinch.jobs.batching.batches import release_units
from chaffinch.jobs.batching.large_patient import PatientWork, pack_result
from chaffinch.jobs.spark.batches import Note
from chaffinch.jobs.spark.deidentify import release_notes
from chaffinch.jobs.work import BatchWork, DetectorSpec, Keys
from tests.deid.releases import SECRET

NAMES = ("Patient: Zimmerle came on 3/4/1998.", "Zimmerle slept.", "Dr. Penn saw Zimmerle.", "All well.")


def told(results: list[Released | Withheld]) -> list[bytes | tuple[str, str, str]]:
    packed = map(pack_result, results)
    return [(one.id, one.original, one.reason) if isinstance(one, Withheld) else one for one in packed]


def test_a_large_patient_is_released_the_same_in_two_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    work = BatchWork.of(
        Release(Policy.read("i2b2-surrogate"), SECRET, counted_order="mdy"), DetectorSpec().build(), Keys(SECRET), ""
    )
    sizes = {"p1": 3, "p2": 2, "p3": 9}
    patients = [patient for patient, size in sizes.items() for _ in range(size)]
    notes = [
        Note(n, f"n{n}", patient, NAMES[n % 4], fault="has no text" if n == 8 else "")
        for n, patient in enumerate(patients)
    ]
    expected = told(release_units(work, [note.unit(1000) for note in notes]))
    begun: list[PatientWork] = []
    usual = PatientWork.results
    monkeypatch.setattr(PatientWork, "results", lambda self: begun.append(self) or usual(self))  # type: ignore[func-returns-value]
    for size, large in ((3, 1), (9, 0)):
        monkeypatch.setattr(sys.modules["chaffinch.jobs.spark.deidentify"], "BATCH_NOTES", size)
        begun.clear()
        assert told(list(release_notes(work, notes, 1000))) == expected
        assert len(begun) == large
    assert sum(isinstance(one, tuple) for one in expected) == 1
