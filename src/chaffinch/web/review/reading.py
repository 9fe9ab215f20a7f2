"""What a reader does: the queue, a note, its edits, done and next, and the same words elsewhere.

A reader sees tasks of their own only, and of a note the text, the machine's marks unless they are hidden, and their own
marks: nothing here reads what another reader decided.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection

from chaffinch.errors import DataError
from chaffinch.text.identifiers import kind_of
from chaffinch.web.review.desk import Desk, Forbidden, require
from chaffinch.web.review.domain.differences import find_differences
from chaffinch.web.review.domain.identical import find_identical, free_places
from chaffinch.web.review.domain.marks import Edit, Mark, check_edit, open_suggestions, replay
from chaffinch.web.review.domain.queue import Place, reading_order
from chaffinch.web.review.store.notes import StoredNote, load_patient, waiting_notes
from chaffinch.web.review.store.users import User
from chaffinch.web.review.store.work import (
    ADJUDICATOR,
    Assignment,
    add_decisions,
    add_time,
    find_assignment,
    list_assignments,
    load_decisions,
    outcomes,
    patient_assignments,
    set_done,
    set_outcome,
)

_MOST_NAMES = 40  # of a patient, beside the note
APPLIED = "applied"  # the source of suggestions that a reader made from another note of theirs


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A task in a reader's queue."""

    task: int
    note: int
    done: bool
    seconds: float
    stratum: str
    suggested: bool
    categories: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OpenTask:
    """A note as its reader sees it: the note, the marks so far, and the place of the last edit."""

    assignment: Assignment
    note: StoredNote
    marks: tuple[Mark, ...] = field(repr=False)
    head: int
    locked: bool


@dataclass(frozen=True, slots=True)
class OtherNote:
    """Another note of the patient: its number, and the reader's task if it is theirs to read."""

    note: int
    task: int | None
    done: bool


@dataclass(frozen=True, slots=True)
class PatientView:
    """What is shown beside a note of its patient: names with their numbers, and the other notes."""

    names: tuple[tuple[str, int], ...] = field(repr=False)
    others: tuple[OtherNote, ...]


@dataclass(frozen=True, slots=True)
class Saved:
    """What the browser learns: which edits are on the disk, and all marks if another window changed them.

    Edits of two windows may displace one another's marks, and then their order counts: the stored marks tell the end.
    """

    acknowledged: tuple[str, ...]
    head: int
    marks: tuple[Mark, ...] | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class Count:
    """How often words occur unmarked: places, the notes they are in, and places in notes that are done."""

    places: int
    notes: int
    done: int


def reader_queue(desk: Desk, user: User, *, status: str = "open", category: str = "") -> list[QueueRow]:
    """Return a reader's tasks in reading order, of a status ("all": any) and category of marks; Forbidden to others."""
    require(user, "reader")
    with desk.project.database.read() as connection:
        tasks = {task.note: task for task in list_assignments(connection, user=user.id)}
        rows = []
        for place in _order(desk, connection, tasks):
            task = tasks[place.note]
            if status != "all" and task.done != (status == "done"):
                continue
            found: tuple[str, ...] = ()
            if category:
                found = tuple(sorted({kind_of(mark.label).category for mark in desk.marks(connection, task)}))
                if category not in found:
                    continue
            rows.append(QueueRow(task.id, task.note, task.done, task.seconds, place.stratum, task.suggested, found))
        return rows


def _order(desk: Desk, connection: Connection, tasks: Iterable[int]) -> Sequence[Place]:
    """Return the places of the notes numbered `tasks` in the reading order of all notes."""
    wanted = set(tasks)
    places = reading_order(waiting_notes(connection), desk.project.config.random)
    return [place for place in places if place.note in wanted]


def next_task(desk: Desk, user: User, *, but: int | None = None) -> int | None:
    """Return the id of a reader's first open task in reading order other than `but`; None if there is none."""
    return next((row.task for row in reader_queue(desk, user) if row.task != but), None)


def open_task(desk: Desk, user: User, number: int) -> OpenTask:
    """Return a reader's own task with its note, its marks and whether it is locked; Forbidden if it is another's."""
    with desk.project.database.read() as connection:
        assignment = _own_task(connection, user, number)
        note = desk.note(connection, assignment.note)
        edits = load_decisions(connection, desk.project.database, number, Edit)
        marks = replay(desk.suggestions(assignment, note), (edit for _, edit in edits))
        locked = assignment.note in outcomes(connection)
        return OpenTask(assignment, note, marks, edits[-1][0] if edits else 0, locked)


def read_patient(desk: Desk, user: User, opened: OpenTask) -> PatientView:
    """Return the names of a task's patient, most frequent first, and the patient's other notes.

    Names are those of the reader's marks and, in notes that are not theirs, of the detector. Where suggestions are
    hidden, the detector's count nowhere: only what the reader confirmed does. What other readers marked never counts.
    """
    names: Counter[str] = Counter()
    others = []
    with desk.project.database.read() as connection:
        mine = {task.note: task for task in patient_assignments(connection, user.id, opened.note.patient)}
        for note in load_patient(connection, desk.project.database, opened.note.patient):
            task = mine.get(note.number)
            if note.number == opened.note.number:
                marks = opened.marks
            else:
                marks = note.suggestions if task is None else desk.marks(connection, task)
                others.append(OtherNote(note.number, None if task is None else task.id, bool(task and task.done)))
            for mark in marks:
                if kind_of(mark.label).category == "NAME" and (mark.confirmed or opened.assignment.suggested):
                    names[note.document.text[mark.start : mark.end]] += 1
    ranked = sorted(names.items(), key=lambda item: (-item[1], item[0]))[:_MOST_NAMES]
    return PatientView(tuple(ranked), tuple(others))


def read_other(desk: Desk, user: User, number: int, other: int) -> str:
    """Return the text of another note of a task's patient, and record that it was read; Forbidden for all others."""
    with desk.project.database.change(user.name) as change:
        assignment = _own_task(change.connection, user, number)
        patient = desk.note(change.connection, assignment.note).patient
        try:
            found = desk.note(change.connection, other)
        except DataError:
            raise Forbidden("this note is not of your patient") from None
        if found.patient != patient:
            raise Forbidden("this note is not of your patient")
        change.record("read other note", f"note {other}", task=number)
        return found.document.text


def save_edits(
    desk: Desk, user: User, number: int, edits: Sequence[Edit], *, head: int = 0, seconds: float = 0.0
) -> Saved:
    """Store a reader's edits, each id once; return ids, newest number, all marks if changed elsewhere; or DataError."""
    database = desk.project.database
    with database.change(user.name) as change:
        assignment = _own_task(change.connection, user, number)
        note = desk.note(change.connection, assignment.note)
        labels = project_labels(desk, note)
        for edit in edits:
            check_edit(edit, length=len(note.document.text), labels=labels)
        add_decisions(change, assignment, edits, seconds)
        stored = load_decisions(change.connection, database, number, Edit)
    ids = {edit.id for edit in edits}
    is_changed = any(seq > head and edit.id not in ids for seq, edit in stored)
    marks = replay(desk.suggestions(assignment, note), (edit for _, edit in stored)) if is_changed else None
    return Saved(tuple(edit.id for edit in edits), stored[-1][0] if stored else 0, marks)


def project_labels(desk: Desk, note: StoredNote) -> frozenset[str]:
    """Return the types that marks of a note may have: those of the project, and those that were suggested."""
    return frozenset(desk.project.config.labels) | {mark.label for mark in note.suggestions}


def finish_task(desk: Desk, user: User, number: int, *, seconds: float = 0.0) -> int | None:
    """Store that a task is done; return the reader's next or None; DataError if a suggestion is undecided."""
    with desk.project.database.change(user.name) as change:
        assignment = _own_task(change.connection, user, number)
        marks = desk.marks(change.connection, assignment)
        left = open_suggestions(marks)
        if left:
            raise DataError(f"{left} suggestions are neither accepted nor removed; look at them first")
        if assignment.done:  # the answer to an earlier message was lost
            change.record("done again", f"task {number}", note=assignment.note)
        else:
            add_time(change, assignment, seconds)
            set_done(change, assignment, done=True, marks=len(marks))
            set_outcome(change, assignment.note, count_differences(desk, change.connection, assignment.note))
    return next_task(desk, user)


def reopen_task(desk: Desk, user: User, number: int) -> None:
    """Open a task again; raise DataError once all readers of the note are done, as it may be settled then."""
    with desk.project.database.change(user.name) as change:
        assignment = _own_task(change.connection, user, number)
        if assignment.note in outcomes(change.connection):
            raise DataError("all readers are done with this note; tell the adjudicator what is wrong")
        set_done(change, assignment, done=False)


def count_differences(desk: Desk, connection: Connection, note: int) -> int | None:
    """Return how many differences the readers of a note have; None while one of them is not done."""
    arms = [task for task in list_assignments(connection, note=note) if task.arm != ADJUDICATOR]
    if len(arms) < desk.project.config.readers or not all(task.done for task in arms):
        return None
    marks = [desk.marks(connection, task) for task in arms]
    return len(find_differences(marks[0], marks[1])) if len(marks) > 1 else 0


def count_identical(desk: Desk, user: User, number: int, start: int, end: int) -> dict[str, Count]:
    """Return how often a stretch's words are unmarked in the reader's other notes of the "patient" and the "project".

    The note itself is counted in the browser, which knows edits that are not saved yet.
    """
    with desk.project.database.read() as connection:
        assignment = _own_task(connection, user, number)
        words = _words(desk.note(connection, assignment.note), start, end)
        return {
            scope: _count(desk, connection, _other_tasks(desk, connection, user, assignment, scope), words)
            for scope in ("patient", "project")
        }


def apply_identical(desk: Desk, user: User, number: int, mark: Mark, *, scope: str, batch: str) -> Count:
    """Store suggested marks wherever a mark's words are unmarked in the reader's other open tasks; return the counts.

    It arrives as a suggestion there, to be accepted or removed when the note is read: nothing is decided unseen.
    """
    database = desk.project.database
    with database.change(user.name) as change:
        assignment = _own_task(change.connection, user, number)
        note = desk.note(change.connection, assignment.note)
        check_edit(Edit(batch, added=(mark,)), length=len(note.document.text), labels=project_labels(desk, note))
        words = _words(note, mark.start, mark.end)
        others = _other_tasks(desk, change.connection, user, assignment, scope)
        count = _count(desk, change.connection, others, words)
        for other in others:
            places = [] if other.done else _find_unmarked(desk, change.connection, other, words)
            if places:
                name = hashlib.sha256(f"{batch} {other.id}".encode()).hexdigest()[:32]
                added = tuple(Mark(a, b, mark.label, False, 0.5, APPLIED) for a, b in places)
                add_decisions(change, other, [Edit(name, added=added, kind="apply")])
        change.record("apply", f"task {number}", scope=scope, places=count.places, notes=count.notes)
    return count


def _own_task(connection: Connection, user: User, number: int) -> Assignment:
    """Return a task of the user; raise Forbidden if it is another's or an adjudicator's, whether or not it exists."""
    require(user, "reader")
    try:
        assignment = find_assignment(connection, number)
    except DataError:
        raise Forbidden("this task is not yours") from None
    if assignment.user != user.id or assignment.arm == ADJUDICATOR:
        raise Forbidden("this task is not yours")
    return assignment


def _other_tasks(
    desk: Desk, connection: Connection, user: User, assignment: Assignment, scope: str
) -> list[Assignment]:
    """Return the reader's other tasks in the "project", or of the same "patient"; DataError for other scopes."""
    if scope not in ("patient", "project"):
        raise DataError("scope must be patient or project")
    patient = desk.note(connection, assignment.note).patient
    tasks = (
        list_assignments(connection, user=user.id)
        if scope == "project"
        else patient_assignments(connection, user.id, patient)
    )
    return [task for task in tasks if task.id != assignment.id]


def _words(note: StoredNote, start: int, end: int) -> str:
    """Return text[start:end] of a note; raise DataError if the offsets do not fit it."""
    if not 0 <= start < end <= len(note.document.text):
        raise DataError(f"[{start}, {end}) does not fit a text of {len(note.document.text)} characters")
    return note.document.text[start:end]


def _count(desk: Desk, connection: Connection, tasks: Iterable[Assignment], words: str) -> Count:
    """Count unmarked places of these words: in open tasks, how many of those notes, and in done tasks."""
    places = notes = done = 0
    for task in tasks:
        found = len(_find_unmarked(desk, connection, task, words))
        if task.done:
            done += found
        else:
            places += found
            notes += found > 0
    return Count(places, notes, done)


def _find_unmarked(desk: Desk, connection: Connection, task: Assignment, words: str) -> list[tuple[int, int]]:
    """Return (start, end) wherever words occur in a task's note and no mark of the reader touches them."""
    text = desk.note(connection, task.note).document.text
    if words not in text:
        return []
    return free_places(find_identical(text, words), desk.marks(connection, task))
