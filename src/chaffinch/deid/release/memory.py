"""What a release remembers of a patient for the next one: names, dates and notes, and no other text.

    note  →  NoteMemory, sealed beside its result  →  PatientMemory.learn  →  state file  →  the patient's next notes

A note memory is what one released note adds. A patient's memory grows with distinct names and dates and with the number
of notes, not with their length.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from chaffinch.deid.dates.telling_ages import DatedText
from chaffinch.deid.detect.repeats import NameCounts, add_counts
from chaffinch.deid.release.sealed_file import Seal
from chaffinch.deid.surrogates.name_book import NameBook
from chaffinch.errors import DataError
from chaffinch.text import Document

PATIENT_KEY = 16  # bytes of the digest by which the notes of a patient are brought together
_CONTENT = 16  # bytes of the digest by which a note is known again


class NoteMemory(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """What one released note adds to the memory of its patient; its repr shows no text."""

    content: bytes  # a digest of what decides whether a note is the same
    names: dict[str, str]  # surrogates by folded word
    real: list[str]  # folded words of real names
    found: NameCounts  # that are searched for in other notes
    dates: list[DatedText]

    def __repr__(self) -> str:
        """Return the numbers of names and dates only."""
        return f"NoteMemory({len(self.names)} names, {len(self.dates)} dates)"

    def close(self, seal: Seal) -> bytes:
        """Return the note memory encrypted, for the ledger."""
        return seal.close(msgspec.msgpack.encode(self), "note memory", 0)

    @classmethod
    def open(cls, content: bytes, seal: Seal) -> NoteMemory:
        """Decrypt what `close` encrypted; raise DataError if it was changed."""
        plain = seal.open(content, "note memory", 0)
        if plain is None:
            raise DataError("a result changed on the disk; remove the folder of the unfinished run and run again")
        return msgspec.msgpack.decode(plain, type=cls)


class RememberedNote(msgspec.Struct, frozen=True, array_like=True):
    """A released note: its id in the input, the digest of its content, its id in the output, the number of the release.

    The repr shows none of them.
    """

    id: str
    content: bytes
    released: str
    release: int  # from 0

    def __repr__(self) -> str:
        """Return the name only: ids are private."""
        return "RememberedNote()"


class PatientMemory(msgspec.Struct):
    """What is known of one patient's released notes; the fields are those of `NoteMemory`, over all of them."""

    patient: str
    notes: list[RememberedNote] = []
    names: dict[str, str] = {}
    real: list[str] = []
    found: NameCounts = {}
    dates: list[DatedText] = []

    def __repr__(self) -> str:
        """Return the numbers of notes and names only."""
        return f"PatientMemory({len(self.notes)} notes, {len(self.names)} names)"

    def learn(self, notes: Iterable[tuple[RememberedNote, NoteMemory]]) -> None:
        """Add notes that were released, in the order of the input, and what they add."""
        real, dates = dict.fromkeys(self.real), dict.fromkeys(self.dates)
        for note, note_memory in notes:
            self.notes.append(note)
            for word, surrogate in note_memory.names.items():
                self.names.setdefault(word, surrogate)
            real |= dict.fromkeys(note_memory.real)
            add_counts(self.found, note_memory.found)
            dates |= dict.fromkeys(note_memory.dates)
        self.real, self.dates = list(real), list(dates)

    def book(self) -> NameBook:
        """Return a name book that begins with the patient's remembered names and surrogates."""
        return NameBook(self.names, self.real)

    def pack(self) -> bytes:
        """Return what the patient's next notes need as bytes: all but the list of earlier notes."""
        return msgspec.msgpack.encode(msgspec.structs.replace(self, notes=[]))

    @classmethod
    def unpack(cls, content: bytes) -> PatientMemory:
        """Return what `pack` made bytes of."""
        return msgspec.msgpack.decode(content, type=cls)


@dataclass(frozen=True, slots=True)
class Memories:
    """The memories of the patients of a batch, by patient; with a seal, each released note gives its own back."""

    patients: Mapping[str, PatientMemory] = field(repr=False)
    seal: Seal | None = None

    def of(self, patient: str) -> PatientMemory:
        """Return the memory of a patient; an empty one of a patient who is not known."""
        return self.patients.get(patient) or PatientMemory(patient)


def patient_key(patient: str) -> bytes:
    """Return the digest by which a patient's notes are brought together, in the order in which states are sorted."""
    return hashlib.blake2b(patient.encode("utf-8", "surrogatepass"), digest_size=PATIENT_KEY).digest()


def content_key(doc: Document, fields: Sequence[str]) -> bytes:
    """Return a digest of what is released of a note, before it is changed: its text and the fields that are kept."""
    kept: dict[str, Any] = {name: doc.meta[name] for name in sorted(fields) if name in doc.meta}
    whole = hashlib.blake2b(doc.text.encode("utf-8", "surrogatepass"), digest_size=_CONTENT)
    whole.update(b"\0" + msgspec.json.encode(kept, order="sorted", enc_hook=repr) if kept else b"")
    return whole.digest()
