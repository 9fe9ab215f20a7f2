"""The input of a release job in batches, and the processing of a batch.

    units  →  gather: by patient, sorted on the disk if they are many  →  batches  →  process_batch

Everything here streams: an input of any size takes the memory of a batch and of what `SealedRecords` keeps; a patient
larger than a batch is read from there (`batching.large_patient`). Units travel as bytes (`UnitCodec`), so that a batch
is the same in memory, on the disk and in the pipe to another process.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec

from chaffinch.deid.policy import Policy
from chaffinch.deid.release.memory import PATIENT_KEY, content_key, patient_key
from chaffinch.deid.release.patient import NumberedDocument, Released, Withheld, reason, release
from chaffinch.deid.release.two_passes import takes_two_passes
from chaffinch.errors import ConfigError, DataError
from chaffinch.jobs.batching.large_patient import Batch, LargePatient, pack_result, read_or_withhold, remember
from chaffinch.jobs.batching.sealed import SealedRecords
from chaffinch.jobs.job import OptionNames, ReleaseJob
from chaffinch.jobs.run import WorkItem, key_of
from chaffinch.jobs.state import NoteIndex, is_excluded
from chaffinch.jobs.work import BatchWork
from chaffinch.text import Document
from chaffinch.text.document import uncut_documents
from chaffinch.text.formats import Unit
from chaffinch.text.formats.base import Excluded
from chaffinch.text.formats.units import failing_unit

_BATCH_DOCUMENTS = 64  # a batch ends at this many documents or bytes; larger ones lose more work when a run is killed
_BATCH_BYTES = 1 << 20
_KEY = 20  # bytes of the digest of a unit

Task = Batch | LargePatient


class Origin(msgspec.Struct, frozen=True, array_like=True):
    """What no file of an unfinished run holds in plain: the file, the id and the patient of a document."""

    file: str
    id: str
    group: str | None

    def __repr__(self) -> str:
        """Return the name of the class only: id and patient are private."""
        return "Origin()"

    @property
    def patient(self) -> str:
        """Return the patient of the document, or the document's id if it names no patient."""
        return self.id if self.group is None else self.group


class UnitCodec:
    """Turn units into bytes and back. What all units of an input share is left out, and known to both sides."""

    def __init__(self, shared: Sequence[object] = ()) -> None:
        """Take the objects that units refer to and that are not written with each of them."""
        self.shared = tuple(shared)
        self._places = {id(value): place for place, value in enumerate(self.shared)}
        self._kinds = {type(value) for value in self.shared}

    @classmethod
    def of(cls, job: ReleaseJob) -> UnitCodec:
        """Return the codec of a job; its grouping and read options are shared, not written with each unit."""
        return cls([job.grouping, *([] if job.reading is None else [job.reading])])

    def encode(self, unit: Unit) -> bytes:
        """Return a unit as bytes, without the shared objects; its content must be in memory."""
        stream = io.BytesIO()
        pickler = _Pickler(stream, pickle.HIGHEST_PROTOCOL)
        pickler.places, pickler.kinds = self._places, self._kinds
        pickler.dump(unit)
        return stream.getvalue()

    def decode(self, content: bytes) -> Unit:
        """Return the unit that `encode` made bytes of, with this codec's shared objects."""
        unpickler = _Unpickler(io.BytesIO(content))
        unpickler.shared = self.shared
        unit: Unit = unpickler.load()
        return unit


class _Pickler(pickle.Pickler):
    places: dict[int, int]
    kinds: set[type]

    def persistent_id(self, value: Any) -> int | None:
        """Return the index of a shared object, which is then not pickled; None for any other value."""
        return self.places.get(id(value)) if type(value) in self.kinds else None


class _Unpickler(pickle.Unpickler):
    shared: tuple[object, ...]

    def persistent_load(self, place: Any) -> object:
        """Return the shared object at the index `place`."""
        return self.shared[place]


class Gathered:
    """The units of a job in batches, and where each of them came from; close it at the end.

    With whole patients, all units are read once here, to learn their patients, before the first batch is made.
    """

    def __init__(self, job: ReleaseJob, folder: Path | None = None) -> None:
        """Read the units if they go by patient; ConfigError if notes lack patients they need, or must have none."""
        self._job, self._folder, self.codec = job, folder, UnitCodec.of(job)
        self._stack = ExitStack()
        self._origins = self._stack.enter_context(SealedRecords(folder))
        self._units = self._stack.enter_context(SealedRecords(folder))
        self._settled = self._stack.enter_context(SealedRecords(folder))
        if job.by_patient:
            try:
                self._gather()
            except BaseException:
                self.close()
                raise

    def __enter__(self) -> Gathered:
        """Return self; the block's end closes it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Drop all that was gathered."""
        self.close()

    def close(self) -> None:
        """Delete all units and origins that were read."""
        self._stack.close()

    @property
    def number(self) -> int | None:
        """Return how many units there are; None if that is known only at the end."""
        return len(self._origins) if self._job.by_patient else None

    def batches(self) -> Iterator[Task]:
        """Yield batches of units as bytes with their keys; a patient's units stay together where results need it.

        A patient with more units than a batch is yielded as `LargePatient`, if the detector takes two passes.
        """
        return _fill_batches(self._items_of_patients() if self._job.by_patient else self._items_of_notes())

    def outcomes(self) -> Iterator[tuple[int, Withheld | Excluded]]:
        """Yield (number, result) of notes in no batch: excluded as released before, or withheld as their id is used."""
        for place, verdict in self._settled:
            excluded, why = is_excluded(verdict)
            yield int.from_bytes(place[PATIENT_KEY:], "big"), Excluded("", why) if excluded else Withheld("", "", why)

    def origins(self) -> Iterator[Origin]:
        """Yield the origin of every unit, in the order of the input, when all batches were made."""
        for _, content in self._origins:
            yield msgspec.msgpack.decode(content, type=Origin)

    def _gather(self) -> None:
        """Read all units once, store them by patient, find those the state settles, and check the patients of notes."""
        job = self._job
        notes = with_patient = 0
        index = (
            None if job.state.path is None else self._stack.enter_context(NoteIndex(self._folder, job.earlier or ()))
        )
        for unit in job.source:
            loaded, origin, doc = self._look(unit)
            notes += doc is not None
            with_patient += origin.group is not None
            place = patient_key(origin.patient) + unit.number.to_bytes(8, "big")
            self._units.add(place, self._digest(loaded) + self.codec.encode(loaded))
            if index is not None and doc is not None:
                index.add(place, doc.id, content_key(doc, job.release.fields))
        for place, verdict in index.settle() if index is not None else ():
            self._settled.add(place, verdict)
        check_patients(
            job.release.policy, notes, with_patient, names=job.option_names, each_note=job.each_note_a_patient
        )

    def _look(self, unit: Unit) -> tuple[Unit, Origin, Document | None]:
        """Store a unit's origin; return the unit with content in memory, the origin, and the document if readable."""
        loaded = _load(unit)
        doc = _read_uncut(loaded)
        origin = Origin(unit.name, unit.id, None) if doc is None else Origin(unit.name, doc.id, doc.group)
        self._origins.add(unit.number.to_bytes(8, "big"), msgspec.msgpack.encode(origin))
        return loaded, origin, doc

    def _digest(self, unit: Unit) -> bytes:
        """Return a digest of all that a unit's result depends on: the job, and its number, id, name and content."""
        return bytes.fromhex(key_of(self._job.digest, str(unit.number), unit.id, unit.name, _content(unit)))

    def _items_of_notes(self) -> Iterator[list[WorkItem[bytes]]]:
        """Yield each unit as a group, in the order of the input, with a key that depends on this unit only."""
        for unit in self._job.source:
            loaded, _, _ = self._look(unit)
            key = self._digest(loaded).hex()
            yield [WorkItem(unit.number, key, self.codec.encode(loaded), key)]

    def _items_of_patients(self) -> Iterator[Task]:
        """Yield each patient's units as a list, or a `LargePatient` if too many; the keys depend on all of them."""
        memories, splits = _Memories(self._job), takes_two_passes(self._job.detector)
        for key, records in groupby(self._waiting(), key=lambda record: record[0][:PATIENT_KEY]):
            memory = memories.of(key)
            units: list[tuple[int, bytes]] = []
            large: LargePatient | None = None
            size = 0
            for place, content in records:
                units.append((int.from_bytes(place[PATIENT_KEY:], "big"), content))
                size += len(content)
                if (
                    splits
                    and large is None
                    and len(units) > 1
                    and (len(units) > _BATCH_DOCUMENTS or size > _BATCH_BYTES)
                ):
                    large = LargePatient(self._folder, memory, documents=_BATCH_DOCUMENTS, size=_BATCH_BYTES)
                if large is not None:
                    for number, one in units:
                        large.add(number, one[:_KEY], one[_KEY:])
                    units.clear()
            if large is not None:
                yield large
                continue
            patient = key_of(*(content[:_KEY] for _, content in units))
            yield [
                WorkItem(number, key_of(patient, str(number)), content[_KEY:], patient, memory)
                for number, content in units
            ]

    def _waiting(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield (place, content) of all units but the settled ones, sorted by patient and number."""
        places = map(itemgetter(0), self._settled)
        settled = next(places, None)
        for place, content in self._units:
            if place == settled:
                settled = next(places, None)
            else:
                yield place, content


class _Memories:
    """The memories of a job's state as bytes, asked for in the order of the patients' keys."""

    def __init__(self, job: ReleaseJob) -> None:
        """Begin before the first patient of the state."""
        self._none = None if job.state.path is None else b""
        self._rest = iter(job.earlier or ())
        self._next = next(self._rest, None)

    def of(self, key: bytes) -> bytes | None:
        """Return the memory of a patient, asked in order of keys; empty if the state has none, None without a state."""
        while self._next is not None and patient_key(self._next.patient) < key:
            self._next = next(self._rest, None)
        known = self._next is not None and patient_key(self._next.patient) == key
        return self._next.pack() if known and self._next is not None else self._none


def _fill_batches(groups: Iterable[Task]) -> Iterator[Task]:
    """Yield whole groups in batches that end at `_BATCH_DOCUMENTS` items or `_BATCH_BYTES`; a large patient alone."""
    batch: list[WorkItem[bytes]] = []
    size = 0
    for group in groups:
        if isinstance(group, LargePatient):
            yield group
            continue
        batch += group
        size += sum(len(item.payload) for item in group) + len(group[0].memory or b"")
        if len(batch) >= _BATCH_DOCUMENTS or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def check_patients(policy: Policy, notes: int, with_patient: int, *, names: OptionNames, each_note: bool) -> None:
    """Raise ConfigError if notes lack patients that the policy needs, or if `each_note` is set and notes name some.

    `each_note`: the caller says that every note is of another patient. `names` are the caller's names of options.
    """
    if each_note and with_patient:
        raise ConfigError(
            f"{names.each_note} says that no two notes are of one patient, but {with_patient:,} of {notes:,} notes "
            "name a patient; leave it out"
        )
    if policy.needs_secret and with_patient < notes and not each_note:
        raise ConfigError(
            f"policy {policy.name} draws surrogates or shifts dates by patient, and {notes - with_patient:,} of "
            f"{notes:,} notes have no patient: give {names.group_by}, or {names.each_note} if every note is of another "
            "patient"
        )


def _load(unit: Unit) -> Unit:
    """Return the unit with its content in memory; an unreadable one as a unit that fails with the same reason."""
    try:
        return unit.hold()
    except Exception as error:
        failure = DataError(reason(error), line=error.line if isinstance(error, DataError) else None)
        failing = failing_unit(unit.name, failure, rest=unit.rest)
        return replace(failing, id=unit.id, number=unit.number)


def _content(unit: Unit) -> bytes:
    """Return the bytes of a unit; empty if it cannot be read."""
    try:
        return unit.content()
    except Exception:  # it is withheld, and the reason is given there
        return b""


def _read_uncut(unit: Unit) -> Document | None:
    """Return the document of a unit, if possible without tokens, which is faster; None if it cannot be read."""
    try:
        with uncut_documents():
            return unit.read()
    except Exception:  # a reader that needs tokens, or a document that cannot be read
        try:
            return unit.read()
        except Exception:  # as above
            return None


def process_batch(
    work: BatchWork, units: Sequence[Unit], memories: Sequence[bytes | None] = ()
) -> list[bytes | Withheld]:
    """De-identify a batch; return for each unit the released document packed to bytes, or `Withheld` with a reason.

    `memories` are those of the units' patients, with a state. It depends only on its arguments and changes nothing, so
    that any process may call it.
    """
    return list(map(pack_result, release_units(work, units, memories)))


def release_units(
    work: BatchWork, units: Sequence[Unit], memories: Sequence[bytes | None] = ()
) -> list[Released | Withheld]:
    """De-identify units together; return for each, in order, the released document, or `Withheld` if it failed."""
    notes = [read_or_withhold(work, unit) for unit in units]
    readable = [note for note in notes if isinstance(note, NumberedDocument)]
    remembered = remember(memories, work)
    released = release(readable, work.release, work.detector, seal=work.seal, memories=remembered) if readable else []
    results = iter(released)
    return [note if isinstance(note, Withheld) else next(results) for note in notes]
