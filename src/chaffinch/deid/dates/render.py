"""Writing a date text anew after a shift: only the places that spell the date change, in the manner they had."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

from chaffinch.deid.dates.calendar_words import MONTHS, SEASONS, WEEKDAYS, Name, cased, ordinal
from chaffinch.deid.dates.points import Field, Point


def write_shifted(text: str, points: Sequence[Point], days: int) -> str | None:
    """The text with every point `days` later; None if a day would fall outside the years 1 to 9999."""
    try:
        moved = [_moved(point, days) for point in points]
    except (ValueError, OverflowError):
        return None
    written: list[tuple[Field, str]] = []
    for i, point in enumerate(points):
        for place in point.fields:
            beside = moved[i + place.beside] if place.role == "implied" else None
            new = _write(text[place.start : place.end], place, moved[i], days, beside)
            if new is None:
                return None
            written.append((place, new))
    pieces, done = [], 0
    for place, new in sorted(written, key=lambda pair: (pair[0].start, pair[0].end)):
        pieces += [text[done : place.start], new]
        done = place.end
    return "".join([*pieces, text[done:]])


def _moved(point: Point, days: int) -> date | None:
    """The shifted day that stands for a point; a December is written as its winter is, by the year of its January."""
    day = point.anchor()
    if day is None:
        return None
    day += timedelta(days)
    return date(day.year + 1, 1, 1) if point.precision == "season" and day.month == 12 else day


def _write(old: str, place: Field, day: date | None, days: int, beside: date | None) -> str | None:
    """The new text of one place; None if it cannot be written."""
    name = place.name
    if place.role == "weekday" and name is not None:
        return WEEKDAYS.write(name, (name.number + days) % 7, like=old)
    if day is None:
        return None
    if place.role == "implied":
        return _implied(place, day, beside)
    if name is not None:
        return _word(old, place, name, day)
    if place.role == "ordinal":
        return cased(ordinal(day.day), old)
    if place.role == "decade":
        return f"{day.year // 10 * 10 % 10**place.pad:0{place.pad}d}"
    if place.role == "year":
        return f"{day.year % 10**place.pad:0{place.pad}d}"
    return f"{day.day if place.role == 'day' else day.month:0{max(place.pad, 1)}d}"


def _word(old: str, place: Field, name: Name, day: date) -> str:
    """A month's or season's name; a holiday becomes the month in which the shifted day falls."""
    if place.role == "season":
        return SEASONS.write(name, day.month % 12 // 3, like=old)
    return MONTHS.write(name, day.month - 1, like=old)


def _implied(place: Field, day: date, beside: date | None) -> str:
    """Nothing while both ends are in one month, else the month that the text had left out."""
    if beside is not None and (beside.year, beside.month) == (day.year, day.month):
        return ""
    if place.name is None:
        return f"{place.before}{day.month:0{max(place.pad, 1)}d}{place.after}"
    return f"{place.before}{MONTHS.write(place.name, day.month - 1, like=place.like)}{place.after}"
