"""Write a shifted date text: only the fields that spell the date change, in the format they had."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

from chaffinch.deid.dates.calendar_words import MONTHS, SEASONS, WEEKDAYS, Name, match_case, ordinal_suffix
from chaffinch.deid.dates.points import Field, Point


def write_shifted(text: str, points: Sequence[Point], days: int) -> str | None:
    """Return the text with all dates moved by `days` in the same format; None if a date cannot be written so."""
    try:
        shifted = [_shift_point(point, days) for point in points]
    except (ValueError, OverflowError):
        return None
    written: list[tuple[Field, str]] = []
    for i, point in enumerate(points):
        for field in point.fields:
            neighbour = shifted[i + field.beside] if field.role == "implied" else None
            new_text = _write_field(text[field.start : field.end], field, shifted[i], days, neighbour)
            if new_text is None:
                return None
            written.append((field, new_text))
    pieces, end = [], 0
    for field, new_text in sorted(written, key=lambda pair: (pair[0].start, pair[0].end)):
        pieces += [text[end : field.start], new_text]
        end = field.end
    return "".join([*pieces, text[end:]])


def _shift_point(point: Point, days: int) -> date | None:
    """Return a date's anchor moved by `days`, None without one; a season moved to December counts as next January."""
    day = point.anchor()
    if day is None:
        return None
    day += timedelta(days)
    return date(day.year + 1, 1, 1) if point.precision == "season" and day.month == 12 else day


def _write_field(old: str, field: Field, day: date | None, days: int, neighbour: date | None) -> str | None:
    """Return the new text of one stretch of a shifted date, in the style of `old`; None if it cannot be written."""
    name = field.name
    if field.role == "weekday" and name is not None:
        return WEEKDAYS.write(name, (name.number + days) % 7, like=old)
    if day is None:
        return None
    if field.role == "implied":
        return _write_implied_month(field, day, neighbour)
    if name is not None:
        return _write_name(old, field, name, day)
    if field.role == "ordinal":
        return match_case(ordinal_suffix(day.day), old)
    if field.role == "decade":
        return f"{day.year // 10 * 10 % 10**field.pad:0{field.pad}d}"
    if field.role == "year":
        return f"{day.year % 10**field.pad:0{field.pad}d}"
    return f"{day.day if field.role == 'day' else day.month:0{max(field.pad, 1)}d}"


def _write_name(old: str, field: Field, name: Name, day: date) -> str:
    """Return the season or month name of the shifted day, like `old`; a holiday becomes a month's name."""
    if field.role == "season":
        return SEASONS.write(name, day.month % 12 // 3, like=old)
    return MONTHS.write(name, day.month - 1, like=old)


def _write_implied_month(field: Field, day: date, neighbour: date | None) -> str:
    """Return the month to insert, with separators, where a shift made a range span two months; "" in one month."""
    if neighbour is not None and (neighbour.year, neighbour.month) == (day.year, day.month):
        return ""
    if field.name is None:
        return f"{field.before}{day.month:0{max(field.pad, 1)}d}{field.after}"
    return f"{field.before}{MONTHS.write(field.name, day.month - 1, like=field.like)}{field.after}"
