"""Release one patient's notes that are too many to hold: each is read and detected, waits sealed, then is released.

    notes → add: detect in a tile of them → names, dates and words of all are settled → results: release one by one

The answer is that of `release` for all notes together. A detector takes part if it reads each note by itself, or if it
is a `PatientDetector`.
"""

from __future__ import annotations

import ctypes
import pickle
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
        self._notes, self._tagged, self._number, self._readable = new_records(), new_records(), 0, 0
        self._reading = self._begin_reading()
        self._failure: Exception | None = None

    def _begin_reading(self) -> ReadingInPasses:
        """Return the detection of the notes, none of them added."""
        if isinstance(self._detector, PatientDetector) and self._detector.by_patient:
            return self._detector.read_patient(self._new_records)
        return _EachAlone(self._detector, self._memories)

    def add(self, notes: Sequence[NumberedDocument | Withheld]) -> None:
        """Take the next notes, in the order of their numbers; one that is withheld comes out in its turn."""
        docs: list[Document] = []
        for note in notes:
            kept, content = self._pack(note)
            self._notes.add(self._number.to_bytes(_NUMBER, "big"), content)
            self._number += 1
            docs += [kept.doc] if isinstance(kept, NumberedDocument) else []
        self._readable += len(docs)
        if self._failure is not None:
            return
        try:
            self._reading.add(docs)
        except StorageError:
            raise
        except Exception as error:  # whatever a detector raises: the notes that do it are found when all are there
            self._failure = error

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

    def _settle(self) -> PatientState | Exception:
        """Keep what was found in each note; return the state that the notes share, or the error that prevents it.

        Notes that fail by themselves are left out, and the others read again; if they fail together, all of them do.
        """
        memory = (self._memories or Memories({})).of(next((doc.patient for doc in self._documents()), ""))
        failure = self._failure
        if failure is None:
            try:
                return self._read(memory, {})
            except StorageError:
                raise
            except Exception as error:  # as above
                failure = error
        alone = _EachAlone(self._detector, self._memories).tag_again(self._documents())
        failed = {number: DataError(reason(one)) for number, one in enumerate(alone) if isinstance(one, Exception)}
        if failed:
            try:
                self._read_again(failed)
                return self._read(memory, failed)
            except StorageError:
                raise
            except Exception as error:  # as above
                failure = error
        failed = dict.fromkeys(range(self._readable), DataError(reason(failure))) | failed
        self._read_again(failed)
        return self._read(memory, failed)

    def _read_again(self, failed: Mapping[int, Exception]) -> None:
        """Begin the detection again, without the notes that failed."""
        self._reading.close()
        self._reading = self._begin_reading()
        self._reading.add(self._sound(failed))

    def _sound(self, failed: Mapping[int, Exception]) -> Iterator[Document]:
        """Yield the documents that can be read and did not fail."""
        return (doc for number, doc in enumerate(self._documents()) if number not in failed)

    def _read(self, memory: PatientMemory, failed: Mapping[int, Exception]) -> PatientState | Exception:
        """Settle the reading of all notes, keep what was found in each, and return the patient's state or an error."""
        self._tagged.close()
        self._tagged = self._new_records()
        self._reading.settle(memory.found)
        _free_memory()
        dates: dict[DatedText, None] = {}
        failure: Exception | None = None
        tagged = self._reading.tag_again(self._sound(failed))
        for number in range(self._readable):
            found = failed.get(number) or next(tagged)
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
        self._detector, self._memories = detector, memories

    def add(self, documents: Iterable[Document]) -> None:
        """Do nothing: the notes are given again."""

    def settle(self, remembered: NameCounts) -> None:
        """Do nothing: notes say nothing of one another."""

    def tag_again(self, originals: Iterable[Document]) -> Iterator[Found]:
        """Yield what was found in each note, or what went wrong with it."""
        apart = self._detector.by_patient  # such a detector could tell notes of each other in one call
        for docs in ([doc] for doc in originals) if apart else batches(originals, TILE_TOKENS):
            yield from read_each(docs, self._detector, self._memories)

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
