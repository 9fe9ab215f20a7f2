"""A patient with more notes than a batch holds: the notes wait sealed, and are worked on in two passes.

    LargePatient.tiles  →  PatientWork.add: first pass  →  LargePatient.tiles  →  PatientWork.take: results, in order

`PatientWork` is in the process that works, this one or a worker's; it keeps what it found in sealed files of its own.
"""

from __future__ import annotations

import pickle
from collections.abc import Collection, Iterable, Iterator, Sequence
from copy import copy
from itertools import islice
from pathlib import Path

from chaffinch.deid.release.memory import Memories, PatientMemory
from chaffinch.deid.release.patient import NumberedDocument, Released, Withheld, reason, withhold
from chaffinch.deid.release.two_passes import PatientRelease
from chaffinch.deid.release.units import read_unit
from chaffinch.jobs.batching.sealed import SealedRecords
from chaffinch.jobs.run import KeyHash, WorkItem, key_of
from chaffinch.jobs.work import BatchWork
from chaffinch.text.formats import Unit

_MEMORY = 1 << 18  # bytes of each kind of records of a patient that are kept in memory; more are written to the disk
_TOGETHER = 64  # notes that are read together: more take more memory, fewer more time per note
_NUMBER = 8  # bytes of a number in a key

Batch = Sequence[WorkItem[bytes]]
Results = Sequence[bytes | Withheld]


class LargePatient:
    """The notes of one patient as work items, from the disk each time they are asked for; close it at the end."""

    def __init__(self, folder: Path | None, memory: bytes | None, *, documents: int, size: int) -> None:
        """Begin without notes; `memory` is what earlier releases tell of the patient.

        A tile ends at so many `documents` or bytes (`size`).
        """
        self.folder, self.memory = folder, memory
        self._documents, self._size = documents, size
        self._records, self._hash = SealedRecords(folder, memory=_MEMORY), KeyHash()
        self._left_out: Collection[int] = ()

    def add(self, number: int, digest: bytes, payload: bytes) -> None:
        """Add the next note, with a digest of what its result depends on."""
        self._hash.add(digest)
        self._records.add(number.to_bytes(_NUMBER, "big"), payload)

    def without(self, numbers: Collection[int]) -> LargePatient:
        """Return the patient without the notes of these numbers; both share their records, and close them."""
        rest = copy(self)
        rest._left_out = numbers
        return rest

    def __len__(self) -> int:
        """Return the number of notes."""
        return len(self._records) - len(self._left_out)

    def __iter__(self) -> Iterator[WorkItem[bytes]]:
        """Yield the notes in order; the key of each depends on all of them."""
        patient = self._hash.hexdigest()
        for place, payload in self._records:
            number = int.from_bytes(place, "big")
            if number not in self._left_out:
                yield WorkItem(number, key_of(patient, str(number)), payload, patient, self.memory)

    def tiles(self) -> Iterator[list[WorkItem[bytes]]]:
        """Yield the notes as work items, in lists that end where a batch would."""
        tile: list[WorkItem[bytes]] = []
        size = 0
        for item in self:
            tile.append(item)
            size += len(item.payload)
            if len(tile) >= self._documents or size >= self._size:
                yield tile
                tile, size = [], 0
        if tile:
            yield tile

    def close(self) -> None:
        """Drop all notes."""
        self._records.close()


class PatientResults:
    """The results of a large patient, sealed where they wait: they are used when the last one is there."""

    def __init__(self, folder: Path | None) -> None:
        """Begin without results."""
        self._records = SealedRecords(folder, memory=_MEMORY)

    def add(self, number: int, result: bytes | Withheld) -> None:
        """Add the result of a note."""
        self._records.add(number.to_bytes(_NUMBER, "big"), pickle.dumps(result, pickle.HIGHEST_PROTOCOL))

    def of(self, patient: LargePatient) -> Iterator[tuple[Batch, Results]]:
        """Yield (work items, results) of the patient's notes, in the lists that `tiles` yields."""
        results = (pickle.loads(content) for _, content in self._records)  # noqa: S301  (records of our own)
        for tile in patient.tiles():
            yield tile, list(islice(results, len(tile)))

    def close(self) -> None:
        """Drop all results."""
        self._records.close()


class PatientWork:
    """The work on one large patient: `add` all notes, then `take` all results; close it if it is left before."""

    def __init__(self, work: BatchWork, memory: bytes | None, folder: Path | None) -> None:
        """Begin without notes."""
        self._work = work
        memories = remember([memory], work)
        self._release = PatientRelease(
            work.release, work.detector, lambda: SealedRecords(folder, memory=_MEMORY), seal=work.seal,
            memories=memories,
        )  # fmt: skip
        self._results: Iterator[bytes | Withheld] | None = None
        self._left = 0

    def add(self, units: Iterable[Unit]) -> None:
        """Read the next units and give them to the first pass; one that cannot be read is withheld."""
        rest = iter(units)
        while notes := [read_or_withhold(self._work, unit) for unit in islice(rest, _TOGETHER)]:
            self._release.add(notes)
            self._left += len(notes)

    def results(self) -> Iterator[Released | Withheld]:
        """Yield the outcome of each note, in order, as they are asked for."""
        return self._release.results()

    def take(self, count: int) -> list[bytes | Withheld]:
        """Return the next `count` results, as `process_batch` does; the first call settles all notes together."""
        if self._results is None:
            self._results = map(pack_result, self.results())
        results = list(islice(self._results, count))
        self._left -= len(results)
        if not self._left:
            self.close()
        return results

    def close(self) -> None:
        """Drop all that is kept."""
        self._release.close()


def pack_result(result: Released | Withheld) -> bytes | Withheld:
    """Return a released document packed to bytes; `Withheld` as it is, or if the document cannot be packed."""
    try:
        return result.pack() if isinstance(result, Released) else result
    except Exception as error:  # a field that cannot be written
        return Withheld(result.id, result.original, reason(error))


def remember(memories: Sequence[bytes | None], work: BatchWork) -> Memories | None:
    """Unpack the memories of patients for a release; None if all are None, as without a state."""
    packed = {memory for memory in memories if memory is not None}
    known = [PatientMemory.unpack(memory) for memory in packed if memory]
    return Memories({one.patient: one for one in known}, work.state_seal) if packed else None


def read_or_withhold(work: BatchWork, unit: Unit) -> NumberedDocument | Withheld:
    """Return the document of a unit; `Withheld` if it cannot be read."""
    try:
        return NumberedDocument(unit.number, read_unit(unit))
    except Exception as error:  # whatever is wrong with a document, it is withheld
        return withhold(unit.id, unit.number, error, work.release)
