"""A note as it would be released: by the same function as the release, with the marks of one reader."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection

from chaffinch.deid.release.patient import NumberedDocument, Release, Released, release
from chaffinch.jobs.date_order import count_order
from chaffinch.text import Document, Span
from chaffinch.web.review.desk import Desk
from chaffinch.web.review.domain.marks import Mark
from chaffinch.web.review.store.notes import StoredNote, load_note, load_patient, waiting_notes
from chaffinch.web.review.store.users import User
from chaffinch.web.review.store.work import list_assignments

LAYER, REVIEWED = "deid", "reviewed"


@dataclass(frozen=True, slots=True)
class ReviewedMarks:
    """A detector that finds what people marked: the layer "reviewed" of each note."""

    readers: int = 2
    name: str = "reviewed"
    layer: str = LAYER
    by_patient: bool = True

    @property
    def model_digest(self) -> str:
        """Return a constant digest in place of a model's: people made the marks."""
        return hashlib.sha256(b"reviewed by people").hexdigest()

    @property
    def facts(self) -> Mapping[str, Any]:
        """Return {"readers": how many readers each note had} for the manifest."""
        return {"readers": self.readers}

    @property
    def digest(self) -> str:
        """Return the constant digest of the model: nothing beside the notes decides the result."""
        return self.model_digest

    def __call__(self, documents: Sequence[Document]) -> Iterator[Document]:
        """Yield the documents, each with its reviewed marks copied to the detector's layer."""
        for doc in documents:
            yield doc.with_layer(self.layer, doc.layer(REVIEWED))


def with_marks(note: StoredNote, marks: Iterable[Mark]) -> Document:
    """Return a note's document with the marks as spans of score 1 in the layer of reviewed marks."""
    spans = [Span(mark.start, mark.end, mark.label, 1.0, REVIEWED) for mark in marks]
    return note.document.with_layer(REVIEWED, spans)


def with_counted_order(desk: Desk, connection: Connection) -> Release:
    """Return the release's settings, with the order of day and month counted over all notes if it needs one."""
    settings = desk.project.release_settings()
    if settings.date_order != "auto" or "auto" not in settings.policy.date_orders:
        return settings
    numbers = [row.note for row in waiting_notes(connection)]
    texts = (load_note(connection, desk.project.database, number).document.text for number in numbers)
    return replace(settings, counted_order=desk.orders.fetch(len(numbers), lambda: count_order(texts)))


def preview(desk: Desk, user: User, note: StoredNote, marks: Sequence[Mark]) -> list[tuple[int, int, str]]:
    """Return (start, end, new text) of each replacement a release would make in a note; [] if it would be withheld.

    The patient's other notes count with the reader's own marks, or with the suggestions where the reader has none.
    """
    documents = []
    with desk.project.database.read() as connection:
        settings = with_counted_order(desk, connection)
        mine = {task.note: task for task in list_assignments(connection, user=user.id)}
        for other in load_patient(connection, desk.project.database, note.patient):
            task = mine.get(other.number)
            chosen = marks if other.number == note.number else desk.marks(connection, task) if task else ()
            documents.append(NumberedDocument(other.number, with_marks(other, chosen)))
    results = release(documents, settings, ReviewedMarks())
    index = next(number for number, row in enumerate(documents) if row.number == note.number)
    result = results[index]
    if not isinstance(result, Released):
        return []
    return [(start, end, result.text[a:b]) for start, end, _, _, a, b in result.places]
