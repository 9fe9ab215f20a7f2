"""The input of a release job in batches, and the processing of a batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from chaffinch.deid.detect.protocol import Detector
from chaffinch.deid.release.patient import NumberedDocument, Release, Released, Withheld, release, withhold
from chaffinch.deid.release.units import read_unit
from chaffinch.deid.vault import Seal
from chaffinch.errors import ConfigError
from chaffinch.jobs.job import ReleaseJob
from chaffinch.jobs.run import WorkItem, key_of
from chaffinch.text import Document
from chaffinch.text.formats import Unit

_BATCH_DOCUMENTS = 64  # a batch ends at this many documents or bytes; larger ones lose more work when a run is killed
_BATCH_BYTES = 1 << 20
_MOST_CACHED_BYTES = 1 << 25  # of documents that stay in memory, so that they are not read a second time


def batches(job: ReleaseJob) -> Iterator[list[WorkItem[Unit]]]:
    """Yield a job's units and their ledger keys in batches; a patient's notes share a batch if the job is by patient.

    With whole patients, all units are read once here, to learn their patients, before the first batch is made. Raise
    ConfigError if the policy needs patients and notes have none, or if notes have one although the job says otherwise.
    """
    items = _items_of_patients(job, _group_units(job)) if job.by_patient else _items_of_notes(job)
    return _fill_batches(items)


def _fill_batches(items: Iterable[Sequence[WorkItem[Unit]]]) -> Iterator[list[WorkItem[Unit]]]:
    """Yield groups of items, joined into batches of 64 items or 1 MB and more; no group is split."""
    batch: list[WorkItem[Unit]] = []
    size = 0
    for group in items:
        batch += group
        size += sum(len(_content(item.payload)) for item in group)
        if len(batch) >= _BATCH_DOCUMENTS or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _items_of_notes(job: ReleaseJob) -> Iterator[list[WorkItem[Unit]]]:
    """Yield each unit of the job as a group of one item, in input order; its key hashes the job and this unit only."""
    for unit in map(_load, job.source):
        yield [WorkItem(unit.number, key_of(job.digest, *_key_parts(unit)), unit)]


def _items_of_patients(job: ReleaseJob, patients: Iterable[Sequence[Unit]]) -> Iterator[list[WorkItem[Unit]]]:
    """Yield the units of each patient as a group of items; each key hashes the job and all of the patient's units."""
    for units in patients:
        loaded = [_load(unit) for unit in units]
        patient = key_of(job.digest, *(part for unit in loaded for part in _key_parts(unit)))
        yield [WorkItem(unit.number, key_of(patient, str(unit.number)), unit) for unit in loaded]


def _group_units(job: ReleaseJob) -> list[list[Unit]]:
    """Read all units, and return a list of them per patient, in input order; raise ConfigError if some have none."""
    patients: dict[str, list[Unit]] = {}
    notes = with_patient = 0
    bytes_left = _MOST_CACHED_BYTES
    for unit in job.source:
        loaded = _load(unit)
        doc = _document(loaded)
        if doc is None:
            patients.setdefault(unit.id, []).append(unit)
            continue
        notes += 1
        with_patient += doc.group is not None
        fits = len(_content(loaded)) <= bytes_left
        bytes_left -= len(_content(loaded)) if fits else 0
        patients.setdefault(doc.patient, []).append(
            replace(loaded, parse=partial(_same_document, doc)) if fits else unit
        )
    _check_patients(job, notes, with_patient)
    return list(patients.values())


def _check_patients(job: ReleaseJob, notes: int, with_patient: int) -> None:
    """Raise ConfigError if the policy needs patients and notes have none, or if they must have none and some do."""
    policy, names = job.release.policy, job.option_names
    if job.each_note_a_patient and with_patient:
        raise ConfigError(
            f"{names.each_note} says that no two notes are of one patient, but {with_patient:,} of {notes:,} notes "
            "name a patient; leave it out"
        )
    if policy.needs_secret and with_patient < notes and not job.each_note_a_patient:
        raise ConfigError(
            f"policy {policy.name} draws surrogates or shifts dates by patient, and {notes - with_patient:,} of "
            f"{notes:,} notes have no patient: give {names.group_by}, or {names.each_note} if every note is of another "
            "patient"
        )


def _key_parts(unit: Unit) -> tuple[str | bytes, ...]:
    """Return what the key of a unit is hashed from: its number, id, file name and content."""
    return str(unit.number), unit.id, unit.name, _content(unit)


def _load(unit: Unit) -> Unit:
    """Return the unit with its content held in memory; if it cannot be read, the unit as it was."""
    try:
        return unit.hold()
    except Exception:  # it is read again later, and then withheld with the reason
        return unit


def _content(unit: Unit) -> bytes:
    """Return the bytes of a unit; empty if it cannot be read."""
    try:
        return unit.content()
    except Exception:  # as above
        return b""


def _document(unit: Unit) -> Document | None:
    """Parse a unit, and return its document; None if it cannot be read."""
    try:
        return unit.read()
    except Exception:  # as above
        return None


def _same_document(doc: Document, _: bytes) -> Document:
    """Return the given document, in place of parsing the bytes a second time."""
    return doc


@dataclass(frozen=True, slots=True)
class BatchWork:
    """Everything besides the units that a batch's results depend on; with a seal, originals are added, encrypted."""

    release: Release
    detector: Detector
    seal: Seal | None = None


def process_batch(work: BatchWork, units: Sequence[Unit]) -> list[bytes | Withheld]:
    """De-identify a batch; return for each unit the released document packed to bytes, or `Withheld` with a reason.

    It depends only on its arguments and changes nothing, so that any process may call it.
    """
    results: list[bytes | Withheld] = []
    for unit, result in zip(units, release_units(work, units), strict=True):
        try:
            results.append(result.pack() if isinstance(result, Released) else result)
        except Exception as error:  # a field that cannot be written
            results.append(withhold(result.original, unit.number, error, work.release))
    return results


def release_units(work: BatchWork, units: Sequence[Unit]) -> list[Released | Withheld]:
    """De-identify units together; return for each, in order, the released document, or `Withheld` if it failed."""
    results: dict[int, Released | Withheld] = {}
    readable: list[NumberedDocument] = []
    for unit in units:
        try:
            readable.append(NumberedDocument(unit.number, read_unit(unit)))
        except Exception as error:  # whatever is wrong with a document, it is withheld
            results[unit.number] = withhold(unit.id, unit.number, error, work.release)
    released = release(readable, work.release, work.detector, seal=work.seal) if readable else []
    results |= {numbered.number: result for numbered, result in zip(readable, released, strict=True)}
    return [results[unit.number] for unit in units]
