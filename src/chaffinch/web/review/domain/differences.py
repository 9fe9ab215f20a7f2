"""What two readers of a note disagree on, and the marks that remain when an adjudicator has settled it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from chaffinch.errors import DataError
from chaffinch.web.review.domain.marks import Mark, flatten

Choice = Literal["first", "second", "neither", "other"]
Reason = Literal["missed", "no-identifier", "boundary", "type", "guideline", "other"]


class Difference(msgspec.Struct, frozen=True):
    """Marks of two readers that overlap one another and are not the same; one side may be empty."""

    start: int
    end: int
    first: tuple[Mark, ...]
    second: tuple[Mark, ...]

    @property
    def key(self) -> str:
        """Return the difference's key in its note, "START-END"."""
        return f"{self.start}-{self.end}"


class Settlement(msgspec.Struct, frozen=True):
    """The decision on one difference: a side, neither, or other marks; and the reason."""

    id: str
    difference: str
    choice: Choice
    reason: Reason
    marks: tuple[Mark, ...] = ()


def find_agreed_marks(first: Sequence[Mark], second: Sequence[Mark]) -> tuple[Mark, ...]:
    """Return the marks that both readers have, with the same start, end and type."""
    places = {mark.place for mark in second}
    return tuple(mark for mark in first if mark.place in places)


def find_differences(first: Sequence[Mark], second: Sequence[Mark]) -> tuple[Difference, ...]:
    """Return groups of overlapping marks that only one reader has, in text order, each with the sides of both readers.

    >>> [(one.key, len(one.first), len(one.second)) for one in find_differences([Mark(0, 5, "A")], [Mark(3, 9, "A")])]
    [('0-9', 1, 1)]
    """
    same = {mark.place for mark in find_agreed_marks(first, second)}
    marks = sorted(
        [(mark.start, mark.end, side, mark) for side, marks in enumerate((first, second)) for mark in marks
         if mark.place not in same],
        key=lambda row: row[:3],
    )  # fmt: skip
    found: list[Difference] = []
    sides: tuple[list[Mark], list[Mark]] = ([], [])
    begin = reach = -1
    for start, end, side, mark in marks:
        if start >= reach and (sides[0] or sides[1]):
            found.append(Difference(begin, reach, tuple(sides[0]), tuple(sides[1])))
            sides, begin = ([], []), start
        begin = start if begin < 0 else begin
        sides[side].append(mark)
        reach = max(reach, end)
    if sides[0] or sides[1]:
        found.append(Difference(begin, reach, tuple(sides[0]), tuple(sides[1])))
    return tuple(found)


def last_settlements(settlements: Iterable[Settlement]) -> dict[str, Settlement]:
    """Return {difference's key: its last settlement}, the one that counts."""
    return {one.difference: one for one in settlements}


def settle(first: Sequence[Mark], second: Sequence[Mark], decided: Mapping[str, Settlement]) -> tuple[Mark, ...]:
    """Return the agreed marks and those the settlements keep, without overlaps; DataError if a difference is open."""
    kept = list(find_agreed_marks(first, second))
    for difference in find_differences(first, second):
        settlement = decided.get(difference.key)
        if settlement is None:
            raise DataError("a difference is not settled yet; settle all of them first")
        kept += chosen_marks(difference, settlement)
    return flatten(kept)


def chosen_marks(difference: Difference, settlement: Settlement) -> tuple[Mark, ...]:
    """Return the marks that a settlement keeps: the first or second reader's, none, or its own."""
    sides = {"first": difference.first, "second": difference.second, "neither": (), "other": settlement.marks}
    return sides[settlement.choice]
