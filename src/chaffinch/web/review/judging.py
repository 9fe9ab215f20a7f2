"""What adjudicators and stewards do: differences of two readers settled, states of notes, agreement, assignment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from sqlalchemy import Connection

from chaffinch.errors import DataError
from chaffinch.text.identifiers import kind_of
from chaffinch.web.review.desk import Desk, Forbidden, require
from chaffinch.web.review.domain.agreement import Agreement, compare_readers
from chaffinch.web.review.domain.assignment import NeedsReaders, Reviewer, assign
from chaffinch.web.review.domain.differences import (
    Difference,
    Settlement,
    find_differences,
    last_settlements,
    settle,
)
from chaffinch.web.review.domain.marks import Edit, Mark, check_edit
from chaffinch.web.review.domain.queue import reading_order
from chaffinch.web.review.reading import project_labels
from chaffinch.web.review.store.notes import StoredNote, waiting_notes
from chaffinch.web.review.store.users import User, list_users
from chaffinch.web.review.store.work import (
    ADJUDICATOR,
    Assignment,
    add_decisions,
    assign_tasks,
    find_adjudication,
    find_assignment,
    list_assignments,
    load_decisions,
    outcomes,
    set_done,
    take_adjudication,
)

State = Literal["unassigned", "reading", "differs", "agreed", "settled"]
STATES: tuple[State, ...] = get_args(State)
CLOSED: tuple[State, ...] = ("agreed", "settled")


@dataclass(frozen=True, slots=True)
class Case:
    """A note whose readers differ, as the adjudicator sees it: no names of readers, only a first and a second."""

    note: StoredNote
    assignment: Assignment
    differences: tuple[Difference, ...] = field(repr=False)
    settled: dict[str, Settlement] = field(repr=False)

    @property
    def left(self) -> int:
        """Return how many differences are not settled."""
        return sum(one.key not in self.settled for one in self.differences)


@dataclass(frozen=True, slots=True)
class ReaderTask:
    """A reader of a note: the name, whether they are done, and the time."""

    name: str
    done: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class NoteRow:
    """A note in the list of the steward: where it is on its way, and with whom."""

    note: int
    state: State
    stratum: str
    readers: tuple[ReaderTask, ...]


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of every note, the time of each reader, and notes that no reader has room for."""

    states: dict[int, State]
    readers: list[dict[str, object]]

    @property
    def counts(self) -> Counter[str]:
        """Return how many notes are in each state."""
        return Counter(self.states.values())

    @property
    def is_open(self) -> int:
        """Return how many notes are not closed."""
        return sum(state not in CLOSED for state in self.states.values())


def assign_notes(desk: Desk, user: User) -> int:
    """Store reading tasks, by quota and queue, for notes that lack readers; return how many; stewards only."""
    require(user, "steward")
    config = desk.project.config
    with desk.project.database.change(user.name) as change:
        people = [one for one in list_users(change.connection) if one.role == "reader" and one.active]
        if len(people) < config.readers:
            raise DataError(f"each note has {config.readers} readers, and there are {len(people)}; add readers first")
        tasks = list_assignments(change.connection)
        names = {one.id: one.name for one in list_users(change.connection)}
        taken: dict[int, dict[int, str]] = {}
        for task in tasks:
            taken.setdefault(task.note, {})[task.arm] = names[task.user]
        loads = Counter(task.user for task in tasks if task.arm != ADJUDICATOR)
        readers = [Reviewer(one.name, one.quota, loads[one.id]) for one in people]
        waiting = {row.note: row for row in waiting_notes(change.connection)}
        order = [place.note for place in reading_order(waiting.values(), config.random)]
        notes = [NeedsReaders(note, waiting[note].draw, taken.get(note, {})) for note in order]
        share = config.without_suggestions if config.readers > 1 else 0.0
        hidden = frozenset(note for note in order if desk.project.database.draw("hidden", str(note)) < share)
        return assign_tasks(change, assign(notes, readers, arms=config.readers), people, hidden=hidden)


def progress(desk: Desk) -> Progress:
    """Return the state of each note and each reader's tasks, done ones, seconds and rate per hour; no decisions."""
    with desk.project.database.read() as connection:
        people = [one for one in list_users(connection) if one.role == "reader"]
        tasks = list_assignments(connection)
        rows: list[dict[str, object]] = []
        for one in people:
            mine = [task for task in tasks if task.user == one.id]
            done = [task for task in mine if task.done]
            seconds = sum(task.seconds for task in done)
            rate = round(3600 * len(done) / seconds, 1) if seconds >= 1 else None
            rows.append({"name": one.name, "tasks": len(mine), "done": len(done), "seconds": seconds, "per_hour": rate})
        return Progress(note_states(desk, connection), rows)


def list_notes(desk: Desk, user: User, *, state: str = "", reader: str = "") -> list[NoteRow]:
    """Return notes in reading order, with state and readers, of one state or reader if asked; stewards only."""
    require(user, "steward")
    with desk.project.database.read() as connection:
        names = {one.id: one.name for one in list_users(connection)}
        states = note_states(desk, connection)
        tasks: dict[int, list[ReaderTask]] = {}
        for task in list_assignments(connection):
            if task.arm != ADJUDICATOR:
                tasks.setdefault(task.note, []).append(ReaderTask(names[task.user], task.done, task.seconds))
        order = reading_order(waiting_notes(connection), desk.project.config.random)
    rows = [NoteRow(one.note, states[one.note], one.stratum, tuple(tasks.get(one.note, ()))) for one in order]
    return [
        row for row in rows
        if state in ("", row.state) and (not reader or any(task.name == reader for task in row.readers))
    ]  # fmt: skip


def note_states(desk: Desk, connection: Connection) -> dict[int, State]:
    """Return each note's state: unassigned, reading, agreed, differs or settled."""
    found = outcomes(connection)
    arms: dict[int, list[Assignment]] = {}
    for task in list_assignments(connection):
        arms.setdefault(task.note, []).append(task)
    states: dict[int, State] = {}
    for row in waiting_notes(connection):
        mine = arms.get(row.note, [])
        settled = any(task.arm == ADJUDICATOR and task.done for task in mine)
        if row.note in found:
            states[row.note] = "agreed" if found[row.note] == 0 else "settled" if settled else "differs"
        else:
            states[row.note] = "reading" if len(mine) >= desk.project.config.readers else "unassigned"
    return states


def cases(desk: Desk, user: User) -> list[tuple[int, int]]:
    """Return (note, differences) of notes to settle that this adjudicator may take; Forbidden for other roles."""
    require(user, "adjudicator")
    with desk.project.database.read() as connection:
        states = note_states(desk, connection)
        found = outcomes(connection)
        mine = {task.note for task in list_assignments(connection, user=user.id) if task.arm != ADJUDICATOR}
        others = {
            task.note for task in list_assignments(connection) if task.arm == ADJUDICATOR and task.user != user.id
        }
        waiting = [note for note, state in states.items() if state == "differs" and note not in mine | others]
        return [(note, found[note]) for note in waiting]


def open_case(desk: Desk, user: User, number: int) -> Case:
    """Take a note; return its differences and settlements; Forbidden without any or to others, DataError if taken."""
    require(user, "adjudicator")
    database = desk.project.database
    with database.read() as connection:
        if not outcomes(connection).get(number):
            raise Forbidden("this note has no differences to settle, or its readers are not done")
        assignment = find_adjudication(connection, number, user)
    if assignment is None:
        with database.change(user.name) as change:
            assignment = take_adjudication(change, number, user)
    with database.read() as connection:
        first, second = _two_readers(desk, connection, number)
        rows = load_decisions(connection, database, assignment.id, Settlement)
        settled = last_settlements(row for _, row in rows)
        return Case(desk.note(connection, number), assignment, find_differences(first, second), settled)


def settle_difference(desk: Desk, user: User, number: int, settlement: Settlement) -> int:
    """Store an adjudicator's decision on a difference; return how many are left; DataError if it does not fit."""
    case = open_case(desk, user, number)
    keys = {one.key for one in case.differences}
    if settlement.difference not in keys:
        raise DataError("there is no such difference in this note; reload the page")
    if (settlement.choice == "other") != bool(settlement.marks):
        raise DataError("other marks go with the choice other, and with no other choice")
    edit = Edit(settlement.id, added=settlement.marks)
    check_edit(edit, length=len(case.note.document.text), labels=project_labels(desk, case.note))
    with desk.project.database.change(user.name) as change:
        assignment = find_assignment(change.connection, case.assignment.id)  # another window may just have closed it
        add_decisions(change, assignment, [settlement])
    settled = case.settled | {settlement.difference: settlement}
    return len(keys - settled.keys())


def close_case(desk: Desk, user: User, number: int) -> None:
    """Store that an adjudicator is done with a note; raise DataError if a difference is not settled."""
    case = open_case(desk, user, number)
    if case.left:
        raise DataError(f"{case.left} differences are not settled yet; settle all of them first")
    with desk.project.database.change(user.name) as change:
        reasons = Counter(one.reason for one in case.settled.values())
        set_done(change, case.assignment, done=True, reasons=dict(reasons))


def agreement(desk: Desk) -> dict[tuple[str, str], Agreement]:
    """Return {pair of readers' names: agreement} over the notes whose readers are all done."""
    pairs: dict[tuple[str, str], Agreement] = {}
    with desk.project.database.read() as connection:
        names = {one.id: one.name for one in list_users(connection)}
        for note in outcomes(connection):
            arms = [task for task in list_assignments(connection, note=note) if task.arm != ADJUDICATOR]
            if len(arms) < 2:
                continue
            arms.sort(key=lambda task: names[task.user])
            marks = [desk.marks(connection, task) for task in arms]
            found = compare_readers(desk.note(connection, note).document, marks[0], marks[1])
            pair = names[arms[0].user], names[arms[1].user]
            pairs[pair] = pairs.get(pair, Agreement()) + found
    return pairs


def final_marks(desk: Desk, connection: Connection, number: int) -> tuple[Mark, ...]:
    """Return a closed note's marks: its one reader's, or what two readers agree on and what was settled."""
    arms = [task for task in list_assignments(connection, note=number) if task.arm != ADJUDICATOR]
    marks = [desk.marks(connection, task) for task in sorted(arms, key=lambda task: task.arm)]
    if len(marks) < 2:
        return marks[0]
    judge = next((task for task in list_assignments(connection, note=number) if task.arm == ADJUDICATOR), None)
    rows = [] if judge is None else load_decisions(connection, desk.project.database, judge.id, Settlement)
    return settle(marks[0], marks[1], last_settlements(row for _, row in rows))


def list_closed_notes(desk: Desk, connection: Connection) -> Iterator[tuple[StoredNote, tuple[Mark, ...]]]:
    """Yield each closed note with its final marks, in the order of the notes."""
    for number, state in sorted(note_states(desk, connection).items()):
        if state in CLOSED:
            yield desk.note(connection, number), final_marks(desk, connection, number)


def _two_readers(desk: Desk, connection: Connection, note: int) -> Sequence[tuple[Mark, ...]]:
    """Return the marks of each reader of a note, the first reader's first."""
    arms = [task for task in list_assignments(connection, note=note) if task.arm != ADJUDICATOR]
    return [desk.marks(connection, task) for task in sorted(arms, key=lambda task: task.arm)]


def categories_of(marks: Sequence[Mark]) -> Counter[str]:
    """Return how many marks each category has."""
    return Counter(kind_of(mark.label).category for mark in marks)
