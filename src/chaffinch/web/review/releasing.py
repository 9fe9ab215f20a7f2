"""Back into the product: corrected notes released, closed notes as gold, and exports for other tools."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from chaffinch.errors import DataError, GateError
from chaffinch.jobs.deid import plan
from chaffinch.jobs.effects import check_effects
from chaffinch.jobs.job import COMMAND, NotesInput, OptionNames, Patients
from chaffinch.jobs.release import run_release
from chaffinch.text import Document
from chaffinch.text.formats import Losses, ReadOptions, jsonl, write
from chaffinch.web.review.desk import Desk, require
from chaffinch.web.review.judging import CLOSED, list_closed_notes, note_states
from chaffinch.web.review.preview import ReviewedMarks, with_marks
from chaffinch.web.review.store.users import User

GOLD = "gold"
_STATION = OptionNames("patients of the notes", "each note a patient", flags=False)


def release_notes(desk: Desk, user: User, output: Path, *, names: OptionNames = COMMAND) -> dict[str, Any]:
    """Write a release of all notes with people's marks, audited; return its manifest; GateError if a note is open."""
    require(user, "steward")
    project = desk.project
    with project.database.read() as connection:
        states = note_states(desk, connection)
        left = sum(state not in CLOSED for state in states.values())
        if left or not states:
            raise GateError(f"{left} of {len(states)} notes are open; nothing is released until all are closed")
        documents = [with_marks(note, marks) for note, marks in list_closed_notes(desk, connection)]
    content = b"".join(msgspec.json.encode(jsonl.record_of(doc)) + b"\n" for doc in documents)
    longest = max(len(doc.text) for doc in documents)
    notes = NotesInput(Path("-"), "jsonl", ReadOptions(max_chars=longest + 1), content)
    alone = all(doc.group is None for doc in documents)
    job = plan(
        notes, output, project.release_settings(), ReviewedMarks(project.config.readers),
        patients=Patients(None, alone), option_names=names,
    )  # fmt: skip
    with project.database.change(user.name) as change:  # before the release: one without an entry must not be
        change.record("release begun", "", notes=len(documents))
    manifest = run_release(check_effects(job))
    with project.database.change(user.name) as change:
        counts = manifest["documents"]
        change.record("release", "", files=manifest["files"]["digest"], **counts)
    return manifest


def gold_documents(desk: Desk) -> Iterator[Document]:
    """Yield the documents of closed notes with their final marks as the layer "gold"."""
    with desk.project.database.read() as connection:
        for note, marks in list_closed_notes(desk, connection):
            doc = note.document
            yield doc.with_layer(GOLD, [mark.span for mark in marks])


def export_notes(desk: Desk, user: User, output: Path, *, form: str | None, strict: bool = False) -> tuple[int, Losses]:
    """Write closed notes with gold marks, audited; return (number, losses); stewards only; DataError if none."""
    require(user, "steward")
    documents = list(gold_documents(desk))
    if not documents:
        raise DataError("no note of the project is closed yet, so there is nothing to write")
    with desk.project.database.change(user.name) as change:
        change.record("export", "", notes=len(documents))
    return len(documents), write(documents, output, format=form, strict=strict)
