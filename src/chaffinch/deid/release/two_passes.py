"""Release one patient's notes that are too many to hold: each is read and detected, waits sealed, then is released.

    notes → add: detect in a tile of them → names, dates and words of all are settled → results: release one by one

The answer is that of `release` for all notes together. A detector takes part if it reads each note by itself, or if it
is a `PatientDetector`.
"""

from __future__ import annotations

import ctypes
import pickle
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from chaffinch.deid.dates.telling_ages import DatedText
from chaffinch.deid.detect.protocol import Detector, PatientDetector, ReadingInPasses
from chaffinch.deid.detect.repeats import NameCounts
from chaffinch.deid.detect.voices.across_notes import TILE_TOKENS, NewRecords
from chaffinch.deid.release.memory import Memories, PatientMemory
from chaffinch.deid.release.patient import (
    NumberedDocument,
    PatientState,
    Release,
    Released,
    Withheld,
    find_dates,
    read_each,
    reader_of,
    reason,
    release_one,
    withhold,
)
from chaffinch.deid.release.sealed_file import Seal
from chaffinch.errors import DataError, StorageError
from chaffinch.models.core.batching import batches
from chaffinch.text import Document

Found = tuple[Document, NameCounts] | Exception
_NUMBER = 8  # bytes of the place of a note in a key


def takes_two_passes(detector: Detector) -> bool:
    """Tell whether a detector can read a patient's notes one after the other, none of the others in memory."""
    return not detector.by_patient or isinstance(detector, PatientDetector)


class PatientRelease:
    """The release of one patient's notes in two passes; close it at the end.

    In memory are the patient's distinct names and dates, and a few notes; all else is in records that `new_records`
    makes.
    """

    def __init__(
        self,
        config: Release,
        detector: Detector,
        new_records: NewRecords,
        *,
        seal: Seal | None = None,
        memories: Memories | None = None,
    ) -> None:
        """Begin without notes."""
        self._config, self._detector, self._new_records = config, detector, new_records
        self._seal, self._memories = seal, memories
        self._notes, self._tagged, self._number = new_records(), new_records(), 0
        patient_detector = detector if isinstance(detector, PatientDetector) and detector.by_patient else None
        self._reading: ReadingInPasses = (
            _EachAlone(detector, memories) if patient_detector is None else patient_detector.read_patient(new_records)
        )

    def add(self, notes: Sequence[NumberedDocument | Withheld]) -> None:
        """Take the next notes, in the order of their numbers; one that is withheld comes out in its turn."""
        docs: list[Document] = []
        for note in notes:
            kept, content = self._pack(note)
            self._notes.add(self._number.to_bytes(_NUMBER, "big"), content)
            self._number += 1
            docs += [kept.doc] if isinstance(kept, NumberedDocument) else []
        try:
            self._reading.add(docs)
        except StorageError:
            raise
        except Exception:  # whatever a detector raises: then each note is read by itself
            self._give_up()

    def results(self) -> Iterator[Released | Withheld]:
        """Yield, when all notes are added, the outcome of each, in order."""
        state = self._settle()
        _free_memory()

        def state_of(_: str) -> PatientState:
            """Return the patient's state; raise what went wrong with it."""
            if isinstance(state, Exception):
                raise state
            return state

        found = (_unpickle(content) for _, content in self._tagged)
        for note in self._all():
            if isinstance(note, Withheld):
                yield note
            else:
                yield release_one(note, next(found), self._config, self._detector.layer, self._seal, state_of)

    def close(self) -> None:
        """Drop all that is kept."""
        for kept in (self._notes, self._tagged, self._reading):
            kept.close()

    def _pack(self, note: NumberedDocument | Withheld) -> tuple[NumberedDocument | Withheld, bytes]:
        """Return a note and its pickled bytes; `Withheld` in its place if it cannot be pickled."""
        try:
            return note, pickle.dumps(note, pickle.HIGHEST_PROTOCOL)
        except Exception as error:
            if isinstance(note, Withheld):
                raise
            withheld = withhold(note.doc.id, note.number, error, self._config)
            return withheld, pickle.dumps(withheld, pickle.HIGHEST_PROTOCOL)

    def _give_up(self) -> None:
        """Drop what was found in the notes so far, and read each by itself."""
        self._reading.close()
        self._reading = _EachAlone(self._detector, self._memories)

    def _settle(self) -> PatientState | Exception:
        """Keep what was found in each note; return the state that the notes share, or the error that prevents it."""
        memory = (self._memories or Memories({})).of(next((doc.patient for doc in self._documents()), ""))
        try:
            return self._read(memory)
        except StorageError:
            raise
        except Exception:  # as above
            self._give_up()
            return self._read(memory)

    def _read(self, memory: PatientMemory) -> PatientState | Exception:
        """Settle the reading of all notes, keep what was found in each, and return the patient's state or an error."""
        self._tagged.close()
        self._tagged = self._new_records()
        self._reading.settle(memory.found)
        _free_memory()
        dates: dict[DatedText, None] = {}
        failure: Exception | None = None
        for number, found in enumerate(self._reading.tag_again(self._documents())):
            if isinstance(found, Exception):
                kept: Found = DataError(reason(found))
            else:
                kept = found
                try:
                    dates |= dict.fromkeys(find_dates(found[0], self._detector.layer))
                except Exception as error:  # then no note of the patient can be released
                    failure = failure or error
            self._tagged.add(number.to_bytes(_NUMBER, "big"), pickle.dumps(kept, pickle.HIGHEST_PROTOCOL))
        self._reading.close()
        try:
            seal = None if self._memories is None else self._memories.seal
            return failure or PatientState.of(dates, self._config, memory, seal)
        except Exception as error:  # as above
            return error

    def _all(self) -> Iterator[NumberedDocument | Withheld]:
        """Yield all notes in order."""
        for _, content in self._notes:
            yield _unpickle(content)

    def _documents(self) -> Iterator[Document]:
        """Yield the documents of the notes that can be read."""
        return (note.doc for note in self._all() if isinstance(note, NumberedDocument))


class _EachAlone:
    """The detection of notes none of which depends on another: they are read when they are asked for."""

    def __init__(self, detector: Detector, memories: Memories | None) -> None:
        """Take the detector, and what earlier releases tell of the patient."""
        self._read, self._layer = reader_of(detector, memories), detector.layer
        self._apart = detector.by_patient  # such a detector could tell notes of each other in one call

    def add(self, documents: Iterable[Document]) -> None:
        """Do nothing: the notes are given again."""

    def settle(self, remembered: NameCounts) -> None:
        """Do nothing: notes say nothing of one another."""

    def tag_again(self, originals: Iterable[Document]) -> Iterator[Found]:
        """Yield what was found in each note, or what went wrong with it."""
        for docs in ([doc] for doc in originals) if self._apart else batches(originals, TILE_TOKENS):
            yield from read_each(docs, self._read, self._layer)

    def close(self) -> None:
        """Do nothing: nothing is kept."""


def _free_memory() -> None:
    """Give freed memory back to the system, where the C library can: the next step then begins with little."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)


def _unpickle(content: bytes) -> Any:
    """Return what this process pickled."""
    return pickle.loads(content)  # noqa: S301  (records of our own, sealed where they reach the disk)
