"""Notes of a project: sealed, immutable, known by keyed digests."""

from __future__ import annotations

import hmac
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
from sqlalchemy import Connection, insert, select

from chaffinch.deid.release.sealed_file import Seal
from chaffinch.errors import DataError
from chaffinch.text import Document
from chaffinch.text.formats import ReadOptions, jsonl
from chaffinch.web.review.domain.marks import Mark
from chaffinch.web.review.domain.queue import Waiting
from chaffinch.web.review.store import schema
from chaffinch.web.review.store.database import Change, Database, next_number

_KIND = "note"


class _Content(msgspec.Struct, frozen=True):
    """What is sealed of a note."""

    document: dict[str, Any]
    suggestions: tuple[Mark, ...]
    name: str


@dataclass(frozen=True, slots=True)
class NewNote:
    """A note to add: the document, the machine's marks, the expected missed identifiers."""

    document: Document = field(repr=False)
    suggestions: tuple[Mark, ...] = ()
    expected: float = 0.0


@dataclass(frozen=True, slots=True)
class StoredNote:
    """A note of the project; `number` is how the station calls it, everywhere but inside the note."""

    number: int
    document: Document = field(repr=False)
    suggestions: tuple[Mark, ...] = field(repr=False)
    patient: str
    expected: float
    draw: float


def add_note(change: Change, database: Database, note: NewNote) -> int | None:
    """Store a note, encrypted, and return its number; None if the project has the same note already."""
    doc = note.document
    digest = database.digest("note", doc.id, doc.patient, doc.text)
    if change.connection.scalar(select(schema.notes.c.id).where(schema.notes.c.digest == digest)) is not None:
        return None
    number = next_number(change.connection, schema.notes)
    record = jsonl.record_of(replace(doc, layers={}, soft={}, relations=()))
    content = msgspec.json.encode(_Content(record, note.suggestions, doc.id))
    change.connection.execute(
        insert(schema.notes).values(
            id=number,
            digest=digest,
            patient=database.digest("patient", doc.patient),
            expected=note.expected,
            draw=database.draw("note", digest),
            length=len(doc.text),
            sealed=change.seal.close(content, _KIND, number),
        )
    )
    return number


def load_note(connection: Connection, database: Database, number: int) -> StoredNote:
    """Return the note of a number, decrypted; raise DataError if there is none, or it was changed on the disk."""
    row = connection.execute(select(schema.notes).where(schema.notes.c.id == number)).first()
    if row is None:
        raise DataError(f"there is no note {number} in this project")
    return _open(row, database.seal, database)


def load_patient(connection: Connection, database: Database, patient: str) -> list[StoredNote]:
    """Return all notes of a patient, decrypted, in the order of their numbers; DataError if one was changed."""
    query = select(schema.notes).where(schema.notes.c.patient == patient).order_by(schema.notes.c.id)
    return [_open(row, database.seal, database) for row in connection.execute(query)]


def load_notes(connection: Connection, database: Database) -> Iterator[StoredNote]:
    """Yield all notes, decrypted, in the order of their numbers; DataError if one was changed on the disk."""
    numbers = connection.scalars(select(schema.notes.c.id).order_by(schema.notes.c.id)).all()
    for number in numbers:
        yield load_note(connection, database, number)


def waiting_notes(connection: Connection) -> list[Waiting]:
    """Return each note's number, expected misses and draw, by number, for the queue."""
    columns = (schema.notes.c.id, schema.notes.c.expected, schema.notes.c.draw)
    return [Waiting(*row) for row in connection.execute(select(*columns).order_by(schema.notes.c.id))]


def _open(row: Any, seal: Seal, database: Database) -> StoredNote:
    """Decrypt a note's row; raise DataError if it was changed on disk or its digest does not fit."""
    plain = seal.open(bytes(row.sealed), _KIND, row.id)
    if plain is None:
        raise DataError(f"note {row.id} was changed on the disk; restore the project from a backup")
    content = msgspec.json.decode(plain, type=_Content)
    doc = jsonl.document_of(content.document, content.name, ReadOptions(max_chars=row.length + 1))
    if not hmac.compare_digest(database.digest("note", doc.id, doc.patient, doc.text), row.digest):
        raise DataError(f"note {row.id} is not the note that was imported; restore the project from a backup")
    return StoredNote(row.id, doc, content.suggestions, row.patient, row.expected, row.draw)


def make_suggestions(spans: Sequence[Any]) -> tuple[Mark, ...]:
    """Convert spans to unconfirmed marks, with scores rounded to 4 digits."""
    return tuple(Mark(s.start, s.end, s.label, False, round(float(s.score), 4), s.source) for s in spans)
