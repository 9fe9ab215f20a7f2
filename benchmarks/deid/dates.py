"""What moving dates does to the notes of patients: distances between full dates, and partial dates beside them.

A moved text is read again as the text before it was written: with the same order of day, month and year. What a text
does not tell, a century or a year, is not compared.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import combinations

from chaffinch import Document
from chaffinch.deid.dates.points import Order, Point
from chaffinch.deid.dates.shift import ORDERS, Parsed, days_for, order_of, parse, usual_year
from chaffinch.deid.keys import Secret

LEEWAY = 1  # of 29 February


@dataclass(frozen=True, slots=True)
class Moved:
    """Counts over all patients."""

    pairs: int = 0
    unequal: int = 0  # pairs of full dates whose distance changed
    partial: int = 0
    incompatible: int = 0  # partial dates that do not fit the day they would stand for
    tagged: int = 0  # dates that cannot be read, which are tagged instead
    dates: int = 0


def check(docs: Iterable[Document], secret: Secret) -> Moved:
    """The counts of the gold dates of documents, each patient's moved by the patient's days.

    A partial date stands for the days it may mean; one of these days, moved, must be one that the moved text may mean.
    """
    counts: Counter[str] = Counter()
    full: defaultdict[str, list[tuple[date, date]]] = defaultdict(list)
    for doc in docs:
        days = days_for(secret, doc.patient)
        texts = [doc.text[own.start : own.end] for own in doc.layer("gold") if own.label == "DATE"]
        order = order_of(texts) or "mdy"
        year = usual_year(texts, order=order)
        counts["dates"] += len(texts)
        known = [(text, own) for text in texts if (own := parse(text, order=order, reference_year=year))]
        moved = [(text, own, later) for text, own in known if (later := own.shift(days))]
        counts["tagged"] += len(texts) - len(moved)
        then = usual_year([later for _, _, later in moved], order=order)
        for text, before, later in moved:
            readings = [parse(later, order=own, reference_year=then) for own in _orders(text, before, year)]
            if before.dates:
                full[doc.patient] += zip(before.dates, _read(before, readings, days), strict=True)
            else:
                counts["partial"] += 1
                counts["incompatible"] += not any(own is not None and _fits(before, own, days) for own in readings)
    for pairs in full.values():
        for one, two in combinations(pairs, 2):
            counts["pairs"] += 1
            counts["unequal"] += ((two[0] - one[0]) - (two[1] - one[1])).days != 0
    return Moved(**counts)


def _orders(text: str, before: Parsed, year: int | None) -> list[Order]:
    """The orders in which a text may have been written to mean what it means."""
    return [own for own in ORDERS if (again := parse(text, order=own, reference_year=year)) and _same(again, before)]


def _same(one: Parsed, two: Parsed) -> bool:
    return [own.span() for own in one.points] == [own.span() for own in two.points]


def _read(before: Parsed, readings: Sequence[Parsed | None], days: int) -> list[date]:
    """The full dates of the moved text, in the century of the dates before; far away where it cannot be read."""
    wanted = [day + timedelta(days) for day in before.dates]
    for own in readings:
        found = [] if own is None else list(own.dates)
        near = [_near(day, aim) for day, aim in zip(found, wanted, strict=False)]
        if near == wanted:
            return near
    return [date.max for _ in before.dates]


def _near(day: date, aim: date) -> date:
    """The day in the century of another."""
    gap = aim.year - day.year
    return day.replace(year=aim.year) if gap and gap % 100 == 0 else day


def _fits(before: Parsed, after: Parsed, days: int) -> bool:
    if len(after.points) != len(before.points):
        return False
    return all(_overlap(one, two, days) for one, two in zip(before.points, after.points, strict=True))


def _overlap(one: Point, two: Point, days: int) -> bool:
    """Whether a day that the first may mean, moved, is one that the second may mean, in any year if none is told."""
    old, new = one.span(), two.span()
    if old is None or new is None:
        return True  # a weekday or a length of time: no year tells its days
    first, last = (day + timedelta(days) for day in old)
    years = (0,) if one.year_known else range(-5, 6)
    turns = [timedelta(365.25 * turn) for turn in years]
    room = timedelta(0 if one.year_known else LEEWAY)
    return any(first + turn <= new[1] + room and last + turn >= new[0] - room for turn in turns)
