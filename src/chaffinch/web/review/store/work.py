"""The work of readers and adjudicators: assignments, edits and settlements, done and reopened."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import msgspec
from sqlalchemy import Connection, delete, func, insert, select, update

from chaffinch.errors import DataError
from chaffinch.web.review.domain.assignment import ReadingTask
from chaffinch.web.review.domain.differences import Settlement
from chaffinch.web.review.domain.marks import Edit
from chaffinch.web.review.store import schema
from chaffinch.web.review.store.database import Change, Database, next_number
from chaffinch.web.review.store.users import User

ADJUDICATOR = 0  # the arm of whoever settles the differences
_KIND = "decision"
MOST_SECONDS = 600.0  # that one visit adds to the time of a note; longer, and the reader was away

D = TypeVar("D", Edit, Settlement)


@dataclass(frozen=True, slots=True)
class Assignment:
    """One arm of a note: whose it is, whether suggestions are shown, whether it is done, and the time so far."""

    id: int
    note: int
    user: int
    arm: int
    suggested: bool
    done: bool
    seconds: float


def assign_tasks(change: Change, tasks: Iterable[ReadingTask], users: Sequence[User], *, hidden: frozenset[int]) -> int:
    """Store tasks, audited, and return how many; the second reader of a note in `hidden` gets no suggestions."""
    numbers = {user.name: user.id for user in users}
    first = next_number(change.connection, schema.assignments)
    rows = [
        {
            "id": number,
            "note": task.note, "user": numbers[task.reader], "arm": task.arm,
            "suggested": not (task.arm == 2 and task.note in hidden), "done": False, "seconds": 0.0,
        }
        for number, task in enumerate(tasks, start=first)
    ]  # fmt: skip
    if rows:
        change.connection.execute(insert(schema.assignments), rows)
    change.record("assign", "", tasks=len(rows))
    return len(rows)


def find_assignment(connection: Connection, number: int) -> Assignment:
    """Return the assignment of this number; raise DataError if there is none."""
    row = connection.execute(select(schema.assignments).where(schema.assignments.c.id == number)).first()
    if row is None:
        raise DataError(f"there is no task {number} in this project")
    return Assignment(*row)


def list_assignments(connection: Connection, *, note: int | None = None, user: int | None = None) -> list[Assignment]:
    """Return assignments by number, of one note or one user if asked."""
    query = select(schema.assignments).order_by(schema.assignments.c.id)
    if note is not None:
        query = query.where(schema.assignments.c.note == note)
    if user is not None:
        query = query.where(schema.assignments.c.user == user)
    return [Assignment(*row) for row in connection.execute(query)]


def patient_assignments(connection: Connection, user: int, patient: str) -> list[Assignment]:
    """Return a user's assignments to notes of one patient, in the order of their numbers; no note is opened for it."""
    query = (
        select(schema.assignments)
        .join(schema.notes, schema.assignments.c.note == schema.notes.c.id)
        .where(schema.assignments.c.user == user)
        .where(schema.notes.c.patient == patient)
        .order_by(schema.assignments.c.id)
    )
    return [Assignment(*row) for row in connection.execute(query)]


def find_adjudication(connection: Connection, note: int, user: User) -> Assignment | None:
    """Return the adjudicator's assignment of a note, or None; DataError if the user read it or another took it."""
    rows = list_assignments(connection, note=note)
    if any(row.user == user.id and row.arm != ADJUDICATOR for row in rows):
        raise DataError("a reader of a note does not settle its differences; another adjudicator must")
    taken = next((row for row in rows if row.arm == ADJUDICATOR), None)
    if taken is not None and taken.user != user.id:
        raise DataError("another adjudicator settles this note; take the next one")
    return taken


def take_adjudication(change: Change, note: int, user: User) -> Assignment:
    """Store, audited, that a user settles a note's differences; return the assignment; DataError if another does."""
    taken = find_adjudication(change.connection, note, user)
    number = next_number(change.connection, schema.assignments)
    task = taken or Assignment(number, note, user.id, ADJUDICATOR, suggested=False, done=False, seconds=0.0)
    if taken is None:
        change.connection.execute(insert(schema.assignments).values(**asdict(task)))
    change.record("adjudication begun", f"note {note}")
    return task


def add_decisions(change: Change, assignment: Assignment, decisions: Sequence[D], seconds: float = 0.0) -> int:
    """Store decisions not stored yet, audited by hash, and add the time; return how many; DataError if done."""
    ids = [decision.id for decision in decisions]
    known = set(
        change.connection.scalars(
            select(schema.decisions.c.id)
            .where(schema.decisions.c.assignment == assignment.id)
            .where(schema.decisions.c.id.in_(ids))
        )
    )
    fresh = {decision.id: decision for decision in decisions if decision.id not in known}
    if assignment.done and fresh:
        raise DataError("the task is done; reopen it before you change it")
    last = change.connection.scalar(select(func.max(schema.decisions.c.seq))) or 0
    rows = [
        {
            "seq": seq, "id": name, "assignment": assignment.id,
            "sealed": change.seal.close(msgspec.json.encode(decision), _KIND, seq),
        }
        for seq, (name, decision) in enumerate(fresh.items(), start=last + 1)
    ]  # fmt: skip
    if rows:
        change.connection.execute(insert(schema.decisions), rows)
    add_time(change, assignment, seconds)
    change.record(
        "decide", f"task {assignment.id}", decisions=len(rows), first=last + 1, hash=hash_decisions(rows)
    )  # fmt: skip
    return len(rows)


def add_time(change: Change, assignment: Assignment, seconds: float) -> None:
    """Add seconds of reading to the time of a task; more than MOST_SECONDS count as that many."""
    if seconds > 0:
        total = schema.assignments.c.seconds + min(seconds, MOST_SECONDS)
        change.connection.execute(
            update(schema.assignments).where(schema.assignments.c.id == assignment.id).values(seconds=total)
        )


def hash_decisions(rows: Iterable[Any]) -> str:
    """Return the SHA-256 (hex) of decisions' seq, id, assignment and sealed content, as the audit has it."""
    whole = hashlib.sha256()
    for row in rows:
        values = row if isinstance(row, dict) else row._mapping
        whole.update(msgspec.json.encode([values["seq"], values["id"], values["assignment"]]))
        whole.update(hashlib.sha256(bytes(values["sealed"])).digest())
    return whole.hexdigest()


def load_decisions(connection: Connection, database: Database, assignment: int, kind: type[D]) -> list[tuple[int, D]]:
    """Return the decisions of an assignment in order, each with its place; raise DataError if one was changed."""
    query = (
        select(schema.decisions.c.seq, schema.decisions.c.sealed)
        .where(schema.decisions.c.assignment == assignment)
        .order_by(schema.decisions.c.seq)
    )
    found: list[tuple[int, D]] = []
    for seq, sealed in connection.execute(query):
        plain = database.seal.open(bytes(sealed), _KIND, seq)
        if plain is None:
            raise DataError(f"decision {seq} was changed on the disk; restore the project from a backup")
        found.append((seq, msgspec.json.decode(plain, type=kind)))
    return found


def set_outcome(change: Change, note: int, differences: int | None) -> None:
    """Store the number of differences of a note whose readers are all done; None deletes it."""
    change.connection.execute(delete(schema.outcomes).where(schema.outcomes.c.note == note))
    if differences is not None:
        change.connection.execute(insert(schema.outcomes).values(note=note, differences=differences))


def outcomes(connection: Connection) -> dict[int, int]:
    """Return the number of differences of each note that all its readers are done with."""
    return dict(connection.execute(select(schema.outcomes)).all())


def set_done(change: Change, assignment: Assignment, *, done: bool, **detail: Any) -> None:
    """Store that a task is done, or open again, and record it with the detail in the audit trail."""
    change.connection.execute(
        update(schema.assignments).where(schema.assignments.c.id == assignment.id).values(done=done)
    )
    change.record("done" if done else "reopen", f"task {assignment.id}", note=assignment.note, **detail)
