"""Marks of a reader in a note, and edits, which are the only thing that changes them.

    suggestions  →  edit  →  edit  →  …  →  marks

An edit takes some marks away and puts others in their place, so that its undoing is an edit as well. It has an id made
by the browser: an edit that is sent twice is stored once. Marks of a reader never overlap; a new one takes the place of
those that it touches.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence

import msgspec

from chaffinch.errors import DataError
from chaffinch.text import Span

_EDIT_ID = re.compile(r"[0-9a-zA-Z-]{8,64}")
MOST_MARKS = 20_000  # in one edit: more than any note has, and few enough to check at once


class Mark(msgspec.Struct, frozen=True, array_like=True, order=True):
    """A marked stretch of a note: code points, half-open. A suggestion is not confirmed yet."""

    start: int
    end: int
    label: str
    confirmed: bool = True
    score: float = 1.0
    source: str = ""

    @property
    def place(self) -> tuple[int, int, str]:
        """Return what distinguishes marks: start, end and label."""
        return self.start, self.end, self.label

    @property
    def span(self) -> Span:
        """Return the mark as a span."""
        return Span(self.start, self.end, self.label, self.score, self.source)


class Edit(msgspec.Struct, frozen=True):
    """One edit of a reader: marks taken away, marks added; `kind` says which key did it."""

    id: str
    removed: tuple[Mark, ...] = ()
    added: tuple[Mark, ...] = ()
    kind: str = ""


def apply_edit(marks: Sequence[Mark], edit: Edit) -> tuple[Mark, ...]:
    """Return the marks in text order after an edit: some removed, some added; an added mark displaces what it overlaps.

    >>> before = (Mark(0, 4, "DOCTOR", False), Mark(9, 12, "DATE"))
    >>> apply_edit(before, Edit("12345678", removed=(before[0],), added=(Mark(0, 7, "PATIENT"),)))[0].label
    'PATIENT'
    """
    gone = {mark.place for mark in edit.removed}
    kept = [mark for mark in marks if mark.place not in gone]
    for mark in edit.added:
        first = bisect_left(kept, mark.start, key=lambda other: other.end)
        while first < len(kept) and kept[first].end <= mark.start:
            first += 1
        last = first
        while last < len(kept) and kept[last].start < mark.end:
            last += 1
        kept[first:last] = [mark]
    return tuple(kept)


def replay(suggestions: Sequence[Mark], edits: Iterable[Edit]) -> tuple[Mark, ...]:
    """Return the marks after all edits to the suggestions; an edit whose id came before is skipped."""
    marks, seen = flatten(suggestions), set[str]()
    for edit in edits:
        if edit.id not in seen:
            seen.add(edit.id)
            marks = apply_edit(marks, edit)
    return marks


def flatten(marks: Iterable[Mark]) -> tuple[Mark, ...]:
    """Return marks without overlaps: the longer stays, then the more certain, then the earlier."""
    ranked = sorted(marks, key=lambda mark: (mark.start - mark.end, -mark.score, mark.start, mark.label))
    kept: tuple[Mark, ...] = ()
    for mark in ranked:
        position = bisect_left(kept, mark.start, key=lambda other: other.start)
        near = kept[max(0, position - 1) : position + 1]
        if not any(other.start < mark.end and mark.start < other.end for other in near):
            kept = (*kept[:position], mark, *kept[position:])
    return kept


def check_edit(edit: Edit, *, length: int, labels: frozenset[str]) -> None:
    """Raise DataError unless an edit's id, number of marks, offsets, labels and added scores are valid."""
    if not _EDIT_ID.fullmatch(edit.id):
        raise DataError("an edit needs an id of 8 to 64 letters, digits and hyphens; reload the page")
    if len(edit.removed) + len(edit.added) > MOST_MARKS:
        raise DataError(f"an edit has over {MOST_MARKS:,} marks; make several of it")
    for mark in (*edit.removed, *edit.added):
        if not 0 <= mark.start < mark.end <= length:
            raise DataError(f"a mark [{mark.start}, {mark.end}) does not fit a text of {length} characters")
        if mark.label not in labels:
            raise DataError("a mark has a type that this project does not have; add it to labels in project.toml")
    for mark in edit.added:
        if not 0 <= mark.score <= 1:
            raise DataError("the score of a mark must be from 0 to 1")


def open_suggestions(marks: Iterable[Mark]) -> int:
    """Return how many suggestions were neither confirmed nor removed."""
    return sum(not mark.confirmed for mark in marks)
