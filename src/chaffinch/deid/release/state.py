"""The state of releases: what the next release must know of earlier ones, in one encrypted file.

    head | patient | patient | … | end

It is a sealed file (`release.sealed_file`): the head says under which policy, secret and order of dates the releases
were made, and lists them; then comes a record for each patient (`release.memory`), sorted by the digest of the
patient, so that a release reads and writes it beside its notes, patient by patient, and holds one of them in memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec

from chaffinch.deid.dates.points import Order
from chaffinch.deid.keys import Secret
from chaffinch.deid.release.memory import PATIENT_KEY, NoteMemory, PatientMemory, RememberedNote, patient_key
from chaffinch.deid.release.patient import Release
from chaffinch.deid.release.sealed_file import FileKind, RecordWriter, Seal, open_seal, read_records, salt_of
from chaffinch.errors import ConfigError, DataError

STATE = FileKind("state", "deid run --state")
VARIABLE = "CHAFFINCH_STATE_KEY"

_FORMAT = 1
_RECORDS = ("head", "patient")


def part_of(path: Path) -> Path:
    """Return the path of an unfinished state: the final path with `.part`."""
    return path.with_name(path.name + ".part")


class StateRelease(msgspec.Struct, frozen=True):
    """A release that a state remembers: its output, as a path from the state's folder, and its released notes."""

    output: str
    notes: int


class StateHead(msgspec.Struct, frozen=True):
    """The settings under which all releases of a state were made, and the releases."""

    policy: str
    policy_digest: str
    secret: str | None  # the fingerprint
    date_order: Order | None
    releases: list[StateRelease] = []
    format: int = _FORMAT

    @classmethod
    def of(cls, release: Release) -> StateHead:
        """Return the head of a state without releases, for releases of this configuration."""
        secret = None if release.secret is None else release.secret.fingerprint()
        return cls(release.policy.name, release.policy.digest(), secret, release.job_order)

    def check(self, release: Release, path: Path, option: str) -> None:
        """Raise ConfigError if a release has another policy, secret or order of dates than the state at the path."""
        other = StateHead.of(release)
        if self.policy_digest != other.policy_digest:
            was, now = f"policy {self.policy}", "the same policy"
        elif self.secret != other.secret:
            was, now = "another secret" if self.secret else "no secret", "the same secret"
        elif None not in (self.date_order, other.date_order) and self.date_order != other.date_order:
            was, now = f"the order of dates {self.date_order}", "the same order, or leave it out"
        else:
            return
        raise ConfigError(
            f"{option} {path} is of releases with {was}, so names and dates would not agree with theirs; give {now}, "
            "or begin another state"
        )


@dataclass(frozen=True, slots=True, eq=False)
class ReleaseState:
    """A state file whose every record was opened once and is unchanged; `ReleaseState.open(path, secret)`."""

    path: Path
    head: StateHead
    patients: int
    notes: int
    names: int
    _seal: Seal = field(repr=False)

    @classmethod
    def open(cls, path: Path, secret: Secret) -> ReleaseState:
        """Open a state; raise ConfigError for a wrong key, DataError if anything in it was changed or cut off."""
        try:
            with path.open("rb") as stream:
                seal = open_seal(stream, secret, STATE)
                records = (plain for _, plain in read_records(stream, seal, STATE, _RECORDS))
                first = next(records, None)
                if first is None:
                    raise DataError(f"has no head: {STATE.damaged}")
                head = msgspec.msgpack.decode(first, type=StateHead)
                patients = notes = names = 0
                for plain in records:
                    memory = msgspec.msgpack.decode(plain, type=PatientMemory)
                    patients, notes, names = patients + 1, notes + len(memory.notes), names + len(memory.real)
        except OSError as error:
            raise DataError(f"cannot be read ({error.strerror}); check the path", path=path) from None
        except (msgspec.DecodeError, UnicodeError):
            raise DataError("is of another version of Chaffinch; use the version that wrote it", path=path) from None
        except DataError as error:
            raise error.at(path) from None
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from None
        return cls(path, head, patients, notes, names, seal)

    @property
    def salt(self) -> bytes:
        """Return the salt in the header, which differs between any two versions of a state."""
        return salt_of(self._seal.header, STATE)

    def __iter__(self) -> Iterator[PatientMemory]:
        """Yield the memory of each patient, in the order of `patient_key`; DataError if the file changed meanwhile."""
        try:
            with self.path.open("rb") as stream:
                if stream.read(len(self._seal.header)) != self._seal.header:
                    raise DataError("changed since this run began: another run finished; run again")
                for _, plain in islice(read_records(stream, self._seal, STATE, _RECORDS), 1, None):
                    yield msgspec.msgpack.decode(plain, type=PatientMemory)
        except OSError as error:
            raise DataError(f"cannot be read ({error.strerror}); check the path", path=self.path) from None
        except DataError as error:
            raise error.at(self.path) from None

    def find(self, patient: str) -> PatientMemory | None:
        """Return the memory of one patient; None if no released note is of that patient."""
        return next((memory for memory in self if memory.patient == patient), None)

    def facts(self) -> dict[str, Any]:
        """Return the numbers of releases, patients and notes, for the manifest; no name, id or path."""
        return {"releases": len(self.head.releases), "patients": self.patients, "notes": self.notes}


class NewNote(msgspec.Struct, frozen=True):
    """A released note with its patient, and its note memory, until all notes of the run are there."""

    patient: str
    note: RememberedNote
    note_memory: NoteMemory

    def __repr__(self) -> str:
        """Return the name only: ids are private."""
        return "NewNote()"


def write_state(
    path: Path, seal: Seal, head: StateHead, earlier: Iterable[PatientMemory], new_notes: Iterable[tuple[bytes, bytes]]
) -> None:
    """Write a state of mode 0600 at the path, over what is there: the earlier memories and what new notes add.

    A file that has the seal's header already keeps it throughout, so that it is known whose it is.

    `earlier` is sorted by patient. `new_notes` are (key, `NewNote` in MessagePack), sorted; a key begins with that of
    the patient, and the rest of it is in the order of the input.
    """
    handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    with os.fdopen(handle, "wb") as stream:
        os.fchmod(stream.fileno(), 0o600)
        writer = RecordWriter(stream, seal)  # it writes the same header again
        stream.flush()
        stream.truncate()
        writer.put(msgspec.msgpack.encode(head), "head")
        for memory in merge_memories(earlier, new_notes):
            writer.put(msgspec.msgpack.encode(memory), "patient")
        writer.end()


def merge_memories(
    earlier: Iterable[PatientMemory], new_notes: Iterable[tuple[bytes, bytes]]
) -> Iterator[PatientMemory]:
    """Yield all memories in the order of `patient_key`, with what new notes add to those of their patients."""
    waiting = iter(earlier)
    known = next(waiting, None)
    for key, records in groupby(new_notes, key=lambda record: record[0][:PATIENT_KEY]):
        while known is not None and patient_key(known.patient) < key:
            yield known
            known = next(waiting, None)
        notes = [msgspec.msgpack.decode(content, type=NewNote) for content in map(itemgetter(1), records)]
        if known is not None and patient_key(known.patient) == key:
            memory, known = known, next(waiting, None)
        else:
            memory = PatientMemory(notes[0].patient)
        memory.learn((note.note, note.note_memory) for note in notes)
        yield memory
    if known is not None:
        yield known
    yield from waiting
