"""The desk that all roles work at: an open project, who may do what, and notes kept in memory once they are opened."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import TypeVar

from sqlalchemy import Connection

from chaffinch.deid.dates.points import Order
from chaffinch.deid.detect.detector import HybridDetector
from chaffinch.errors import ChaffinchError
from chaffinch.text.explanation import Explanation
from chaffinch.web.review.domain.marks import Edit, Mark, replay
from chaffinch.web.review.project import Project
from chaffinch.web.review.store.notes import StoredNote, load_note
from chaffinch.web.review.store.users import Role, User
from chaffinch.web.review.store.work import Assignment, load_decisions

_MOST_NOTES = 64  # kept in memory; a reader opens one, and the next is made ready

K = TypeVar("K")
V = TypeVar("V")


class Forbidden(ChaffinchError):  # noqa: N818  (what the user asked is forbidden)
    """The user may not do or see this."""


class Memory(OrderedDict[K, V]):
    """A few values by key, the least recently used of which is dropped."""

    def __init__(self, most: int) -> None:
        """Begin empty; at most `most` values are kept."""
        super().__init__()
        self._most, self._lock = most, Lock()

    def fetch(self, key: K, make: Callable[[], V]) -> V:
        """Return the cached value of a key, or make and cache it; the least recently used is dropped if too many."""
        with self._lock:
            if key in self:
                self.move_to_end(key)
                return self[key]
        value = make()
        with self._lock:
            self[key] = value
            while len(self) > self._most:
                self.popitem(last=False)
        return value


@dataclass(frozen=True, slots=True, eq=False)
class Desk:
    """An open project, and the notes of it that are in memory."""

    project: Project
    notes: Memory[int, StoredNote] = field(default_factory=lambda: Memory(_MOST_NOTES), repr=False)
    explanations: Memory[int, tuple[Explanation, ...]] = field(default_factory=lambda: Memory(_MOST_NOTES), repr=False)
    orders: Memory[int, Order | None] = field(default_factory=lambda: Memory(1), repr=False)  # by number of notes
    detectors: Memory[str, HybridDetector] = field(default_factory=lambda: Memory(1), repr=False)

    def note(self, connection: Connection, number: int) -> StoredNote:
        """Return a note by number, decrypted and cached."""
        return self.notes.fetch(number, lambda: load_note(connection, self.project.database, number))

    def detector(self) -> HybridDetector:
        """Return the project's detector, loaded once."""
        return self.detectors.fetch(self.project.config.model, self.project.detector)

    def suggestions(self, assignment: Assignment, note: StoredNote) -> tuple[Mark, ...]:
        """Return the detector's marks that this assignment shows its reader; none if they are hidden."""
        return note.suggestions if assignment.suggested else ()

    def marks(self, connection: Connection, assignment: Assignment) -> tuple[Mark, ...]:
        """Return a reader's current marks in a note: the suggestions after all stored edits."""
        note = self.note(connection, assignment.note)
        edits = load_decisions(connection, self.project.database, assignment.id, Edit)
        return replay(self.suggestions(assignment, note), (edit for _, edit in edits))


def require(user: User, *roles: Role) -> None:
    """Raise Forbidden unless the user has one of the roles."""
    if user.role not in roles:
        raise Forbidden(f"this is for the role {' or '.join(roles)}, and you have the role {user.role}")
