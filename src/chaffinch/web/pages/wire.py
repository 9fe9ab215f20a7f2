"""What the browser gets and sends: notes, marks and edits as JSON, in code points; the browser converts them itself."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
import numpy as np

from chaffinch.errors import DataError
from chaffinch.text.identifiers import kind_of
from chaffinch.web.review.desk import Desk
from chaffinch.web.review.domain.differences import Settlement
from chaffinch.web.review.domain.marks import Edit, Mark
from chaffinch.web.review.reading import OpenTask
from chaffinch.web.review.store.notes import StoredNote

T = TypeVar("T")


class EditsMessage(msgspec.Struct, frozen=True):
    """Edits that the browser wants stored, the last place it knows, and the seconds spent since the last message."""

    edits: tuple[Edit, ...]
    head: int = 0
    seconds: float = 0.0


class DoneMessage(msgspec.Struct, frozen=True):
    """A note that its reader is done with, and the seconds spent since the last message."""

    seconds: float = 0.0


class StretchMessage(msgspec.Struct, frozen=True):
    """A stretch of the note."""

    start: int
    end: int


class ApplyMessage(msgspec.Struct, frozen=True):
    """A mark to be suggested in other notes of the reader."""

    id: str
    mark: Mark
    scope: str


class SettleMessage(msgspec.Struct, frozen=True):
    """A decision of an adjudicator."""

    settlement: Settlement


def decode(body: bytes, kind: type[T]) -> T:
    """Return a message of the browser; raise DataError, without its content, if it has another form."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise DataError("the message of the page has another form than this version expects; reload the page") from None


def task_message(desk: Desk, opened: OpenTask, beside: dict[str, Any]) -> dict[str, Any]:
    """Return a task for the browser: text, tokens as gaps and lengths, marks, types; and what is shown beside it."""
    note = opened.note
    return {
        "task": opened.assignment.id,
        "number": note.number,
        "text": note.document.text,
        "tokens": token_gaps(note),
        "marks": [msgspec.to_builtins(mark) for mark in opened.marks],
        "labels": label_rows(desk, note),
        "head": opened.head,
        "done": opened.assignment.done,
        "locked": opened.locked,
        "suggested": opened.assignment.suggested,
        **beside,
    }


def token_gaps(note: StoredNote) -> list[int]:
    """Return two numbers per token, in one flat list: characters since the token before it, and its length."""
    flat = note.document.tokens.ravel()
    gaps: list[int] = np.diff(flat, prepend=0).tolist()
    return gaps


def label_rows(desk: Desk, note: StoredNote) -> list[dict[str, str]]:
    """Return {name, category, key} of the project's types, then of others suggested; nine have keys on the keyboard."""
    names = list(desk.project.config.labels)
    names += sorted({mark.label for mark in note.suggestions} - set(names))
    keys = {name: str(number) for number, name in enumerate(names[:9], start=1)}
    return [{"name": name, "category": kind_of(name).category, "key": keys.get(name, "")} for name in names]
