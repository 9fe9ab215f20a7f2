"""The notes of a job in batches, and what becomes of a batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from chaffinch.deid.detect.protocol import Detector
from chaffinch.deid.release.patient import Numbered, Release, Released, Withheld, release, withheld
from chaffinch.deid.release.units import read_unit
from chaffinch.deid.vault import Seal
from chaffinch.errors import ConfigError
from chaffinch.jobs.job import ReleaseJob
from chaffinch.jobs.run import WorkItem, key_of
from chaffinch.text import Document
from chaffinch.text.formats import Unit

_BATCH_DOCUMENTS = 64
_BATCH_BYTES = 1 << 20
_HELD_BYTES = 1 << 25  # of documents that are not read a second time


def batches(job: ReleaseJob) -> Iterator[list[WorkItem[Unit]]]:
    """Return units with their keys, a few at a time; whole patients where a patient's notes depend on one another.

    Then all units are read once here, to learn whose they are, before the first batch is asked for. ConfigError if the
    policy needs patients and notes have none, or if notes have one that are said to have none.
    """
    items = _items_of_patients(job, _group_units(job)) if job.by_patient else _items_of_notes(job)
    return _gather(items)


def _gather(items: Iterable[Sequence[WorkItem[Unit]]]) -> Iterator[list[WorkItem[Unit]]]:
    """Yield items in batches; what comes together stays together."""
    batch: list[WorkItem[Unit]] = []
    size = 0
    for together in items:
        batch += together
        size += sum(len(_content(item.payload)) for item in together)
        if len(batch) >= _BATCH_DOCUMENTS or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _items_of_notes(job: ReleaseJob) -> Iterator[list[WorkItem[Unit]]]:
    """Yield units in the order of the input; each has a key of its own."""
    for unit in map(_hold, job.source):
        yield [WorkItem(unit.number, key_of(job.digest, *_parts(unit)), unit)]


def _items_of_patients(job: ReleaseJob, patients: Iterable[Sequence[Unit]]) -> Iterator[list[WorkItem[Unit]]]:
    """Yield whole patients; the results of a patient's units depend on one another, and so do their keys."""
    for units in patients:
        held = [_hold(unit) for unit in units]
        patient = key_of(job.digest, *(part for unit in held for part in _parts(unit)))
        yield [WorkItem(unit.number, key_of(patient, str(unit.number)), unit) for unit in held]


def _group_units(job: ReleaseJob) -> list[list[Unit]]:
    """Return the units of each patient, in the order of the input; patients in the order of their first notes."""
    patients: dict[str, list[Unit]] = {}
    notes = grouped = 0
    room = _HELD_BYTES
    for unit in job.source:
        held = _hold(unit)
        doc = _document(held)
        if doc is None:
            patients.setdefault(unit.id, []).append(unit)
            continue
        notes += 1
        grouped += doc.group is not None
        fits = len(_content(held)) <= room
        room -= len(_content(held)) if fits else 0
        patients.setdefault(doc.patient, []).append(replace(held, parse=partial(_same_document, doc)) if fits else unit)
    _check_patients(job, notes, grouped)
    return list(patients.values())


def _check_patients(job: ReleaseJob, notes: int, grouped: int) -> None:
    """Refuse a keyed policy for notes without a patient, and notes with one that are said to have none."""
    policy, names = job.release.policy, job.option_names
    if job.each_note_a_patient and grouped:
        raise ConfigError(
            f"{names.each_note} says that no two notes are of one patient, but {grouped:,} of {notes:,} notes name a "
            "patient; leave it out"
        )
    if policy.keyed and grouped < notes and not job.each_note_a_patient:
        raise ConfigError(
            f"policy {policy.name} draws surrogates or shifts dates by patient, and {notes - grouped:,} of {notes:,} "
            f"notes have no patient: give {names.group_by}, or {names.each_note} if every note is of another patient"
        )


def _parts(unit: Unit) -> tuple[str | bytes, ...]:
    """Return all of a unit that its result depends on: its place, what it is called, and its content."""
    return str(unit.number), unit.id, unit.name, _content(unit)


def _hold(unit: Unit) -> Unit:
    """Return the unit with its content in memory, unless it cannot be read."""
    try:
        return unit.hold()
    except Exception:  # it is read again, and then withheld with the reason
        return unit


def _content(unit: Unit) -> bytes:
    try:
        return unit.content()
    except Exception:  # as above
        return b""


def _document(unit: Unit) -> Document | None:
    try:
        return unit.read()
    except Exception:  # as above
        return None


def _same_document(doc: Document, _: bytes) -> Document:
    return doc


@dataclass(frozen=True, slots=True)
class BatchWork:
    """All that what becomes of a batch depends on, beside the batch; with a seal, originals come along, encrypted."""

    release: Release
    detector: Detector
    seal: Seal | None = None


def process_batch(work: BatchWork, units: Sequence[Unit]) -> list[bytes | Withheld]:
    """Release a batch: the results in order, as bytes for a ledger but for what is withheld.

    It depends on nothing but its arguments and changes nothing, so that any process may call it.
    """
    results: list[bytes | Withheld] = []
    for unit, result in zip(units, release_units(work, units), strict=True):
        try:
            results.append(result.pack() if isinstance(result, Released) else result)
        except Exception as error:  # a field that cannot be written
            results.append(withheld(result.original, unit.number, error, work.release))
    return results


def release_units(work: BatchWork, units: Sequence[Unit]) -> list[Released | Withheld]:
    """Return what becomes of each unit, in order."""
    results: dict[int, Released | Withheld] = {}
    readable: list[Numbered] = []
    for unit in units:
        try:
            readable.append(Numbered(unit.number, read_unit(unit)))
        except Exception as error:  # whatever is wrong with a document, it is withheld
            results[unit.number] = withheld(unit.id, unit.number, error, work.release)
    done = release(readable, work.release, work.detector, seal=work.seal) if readable else []
    results |= {one.number: result for one, result in zip(readable, done, strict=True)}
    return [results[unit.number] for unit in units]
