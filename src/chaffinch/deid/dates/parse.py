"""Parser of a whole date text: leading words, weekday, time of day, ranges and lists, and their shared years."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from chaffinch.deid.dates.named import read_named, weekday_field, weekday_first, weekday_last
from chaffinch.deid.dates.numeric import read_numbers
from chaffinch.deid.dates.points import Conventions, Field, Point
from chaffinch.deid.dates.ranges import read_shared

LONGEST = 120  # characters; no date is longer, and the text of a longer span is not read
_MOST_PIECES = 6  # dates in one range or list; a text with more of them is not read

_LEAD = re.compile(
    r"(?:(?:on|in|at|since|the|from|between|until|till|by|before|after|of|circa|ca|c|approximately|approx|about|around|"
    r"early|mid|middle|late|beginning|start|end|last|next|this|past|following|previous|prior\s{1,2}to|as|year|month|week|"
    r"el|la|los|en|desde|del?|entre|hasta|antes|después|hacia|mes|años?|fecha|principios|mediados|finales|fines|a|día|"
    r"am|im|vom|seit|bis|ab|den|der|dem|zwischen|um|anfang|mitte|ende|jahre?)\b[.:]?(?:\s{1,2}|-)|[~≈]\s?){1,5}",
    re.IGNORECASE,
)
_EARLY = re.compile(r"\b(?:early|beginning|start|principios|anfang)\b", re.IGNORECASE)
_LATE = re.compile(r"\b(?:late|end|finales|fines|ende)\b", re.IGNORECASE)

_ZONE = r"(?:\s?(?:z|utc|gmt|[ecmp][sd]t|ces?t|mes?z|[+-][0-9]{2}:?[0-9]{2}))?"
_HALF = r"(?:\s?[ap]\.?\s?m?\.?)"
_CLOCK = (
    rf"(?:(?:[01]?[0-9]|2[0-4])(?:[:.][0-5][0-9]){{1,2}}(?:[.,][0-9]{{1,9}})?(?:{_HALF}|\s?(?:hrs?|hours|horas|uhr|h)\.?)?"
    rf"|(?:1[0-2]|0?[1-9]){_HALF}|(?:[01][0-9]|2[0-3])[0-5][0-9](?:\s?(?:hrs?|hours|h)\.?)?|(?:[01]?[0-9]|2[0-4])\s?uhr"
    rf"|noon|midnight){_ZONE}"
)
_DAYPART = (
    r"(?:(?:early|late)\s)?(?:morning|afternoon|evening|night|noon|weekend|week|morgen|abend|nachmittag|mittag|nacht|"
    r"por\sla\s(?:mañana|tarde|noche))"
)
_TIME_LAST = re.compile(
    rf"(?:t|[\s,;@(]{{1,3}}(?:(?:at|um|a\slas|gegen|about|in\sthe)\s{{1,2}})?(?:[-–@]\s)?)"
    rf"(?:{_CLOCK}(?:\s?[-–]\s?{_CLOCK})?|{_DAYPART})\)?\Z",
    re.IGNORECASE,
)
_TIME_FIRST = re.compile(rf"{_CLOCK}[\s,]{{1,3}}(?:(?:on|of|am|del?|el|-|–)\s{{1,2}}(?:the\s)?)?", re.IGNORECASE)

_JOINS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r",?\s{1,2}(?:to|through|thru|till|until|and|or|y|e|o|al?|hasta|und|bis(?:\szum)?|oder|&|\+)\s{1,2}",
        r"\s{1,2}[-–—/]\s{1,2}|\s?[–—]\s?",
        r"[-&+]",
        r"/",
        r"\s?[,;]\s?",
    )
)
_DIGITS = re.compile(r"[0-9]+")
_COMPACT = 8  # digits of a whole date without separators
_LETTER = re.compile(r"[^\W\d_]")


def has_letters(text: str, start: int = 0, end: int = LONGEST) -> bool:
    """Tell whether text[start:end] has a letter; by default, of a text's first `LONGEST` characters."""
    return _LETTER.search(text, start, end) is not None


def depends_on_order(text: str) -> bool:
    """Tell whether the order of day and month can make a difference to how a date text is read.

    It can for three numbers, for two that may both be a day or a month, and for eight digits in a row.

    >>> depends_on_order("3/4"), depends_on_order("March 4, 1998"), depends_on_order("03/1998")
    (True, False, False)
    """
    lengths = [len(number) for number in _DIGITS.findall(text)]
    return len(lengths) > 2 or max(lengths, default=0) >= _COMPACT or (len(lengths) == 2 and max(lengths) < 3)


def read_points(text: str, conventions: Conventions) -> tuple[Point, ...] | None:
    """Parse a date text into dates (several for a range or list), filling years; None if unreadable or impossible."""
    if conventions.order != "mdy" and not depends_on_order(text):
        conventions = Conventions("mdy", conventions.reference_year, conventions.language)  # it is read once
    return _read_points(text, conventions)


@lru_cache(maxsize=4096)  # dates are read for the document's order and year before they are shifted
def _read_points(text: str, conventions: Conventions) -> tuple[Point, ...] | None:
    """Parse a date text by conventions, as `read_points`."""
    if conventions.reference_year is not None:
        plain = read_points(text, Conventions(conventions.order, None, conventions.language))
        if plain is not None and all(map(_has_full_year, plain)):
            return plain
    start, end = 0, len(text)
    while start < end and (text[start].isspace() or text[start] in '([{"“.,:;'):
        start += 1
    while start < end and (text[end - 1].isspace() or text[end - 1] in ')]}"”.,:;'):
        end -= 1
    points = _read_stretch(text, start, end, conventions, 0)
    if points is None:
        return None
    try:
        filled = _fill_years(points, conventions.reference_year)
        for point in filled:
            point.span()
    except (ValueError, OverflowError):
        return None
    return tuple(_fill_widths(filled))


def _has_full_year(point: Point) -> bool:
    """Tell whether a date is written with a four-digit year."""
    return any(field.role == "year" and field.end - field.start == 4 for field in point.fields)


def _read_stretch(text: str, start: int, end: int, conventions: Conventions, level: int) -> list[Point] | None:
    """Parse text[start:end]: a date, perhaps "early" or with a time, or several joined by `level` or up; else None."""
    whole = _read_simple(text, start, end, conventions)
    if whole is not None:
        return whole
    lead = _LEAD.match(text, start, end)
    if lead and lead.end() < end:
        inner = _read_stretch(text, lead.end(), end, conventions, level)
        if inner is not None:
            part = 1 if _EARLY.search(lead[0]) else 5 if _LATE.search(lead[0]) else 3
            return [replace(inner[0], part=part), *inner[1:]] if part != 3 else inner
    with_time = _read_with_time(text, start, end, conventions)
    if with_time is not None:
        return with_time
    for weaker in range(level, len(_JOINS)):
        pieces = _split_at_joins(text, start, end, weaker)
        if len(pieces) in range(2, _MOST_PIECES + 1):
            points: list[Point] = []
            for first, last in pieces:
                piece_points = _read_stretch(text, first, last - (text[last - 1] == "."), conventions, weaker + 1)
                if piece_points is None:
                    break
                points.extend(piece_points)
            else:
                return points
    return None


def _split_at_joins(text: str, start: int, end: int, level: int) -> list[tuple[int, int]]:
    """Return the offsets of the pieces between the joins of one level; [] if a piece would be empty."""
    edges = [start]
    for join in _JOINS[level].finditer(text, start, end):
        edges += [join.start(), join.end()]
    edges.append(end)
    pieces = list(zip(edges[::2], edges[1::2], strict=True))
    return pieces if all(first < last for first, last in pieces) else []


def _read_simple(text: str, start: int, end: int, conventions: Conventions) -> list[Point] | None:
    """Parse one date, or two that share a month or year, perhaps with a weekday before or after; None if it is none."""
    read = read_named if has_letters(text, start, end) else read_numbers
    points = read(text, start, end, conventions) or read_shared(text, start, end, conventions)
    if points is not None:
        return points
    if match := weekday_first(text, start, end):
        field = weekday_field(match, conventions)
        if match.end() >= end:
            return [Point("weekday", fields=(field,))] if field else None
        rest = _read_simple(text, match.end(), end, conventions) or _read_with_time(text, match.end(), end, conventions)
        return _with_field(rest, field)
    if match := weekday_last(text, start, end):
        return _with_field(_read_simple(text, start, match.start(), conventions), weekday_field(match, conventions))
    return None


def _with_field(points: list[Point] | None, field: Field | None) -> list[Point] | None:
    """Return the dates with a stretch added to the first one; None if either is None."""
    if points is None or field is None:
        return None
    return [replace(points[0], fields=(*points[0].fields, field)), *points[1:]]


def _read_with_time(text: str, start: int, end: int, conventions: Conventions) -> list[Point] | None:
    """Parse a date with a time of day after or before it, which a shift leaves as it is; None if it is none."""
    if (match := _TIME_LAST.search(text, start, end)) and match.start() > start:
        points = _read_simple(text, start, match.start(), conventions)
        if points is not None:
            return points
    if (match := _TIME_FIRST.match(text, start, end)) and match.end() < end:
        return _read_simple(text, match.end(), end, conventions)
    return None


def _fill_years(points: Sequence[Point], reference_year: int | None) -> list[Point]:
    """Return the dates with missing years filled: from a neighbour so that they rise, else a reference year or any."""
    filled = list(points)
    if not any(point.year is not None for point in filled):
        first = filled[0].in_year(reference_year, known=False)
        filled[0] = first
    known = any(point.year is not None and point.year_known for point in filled)
    for i in range(len(filled) - 2, -1, -1):
        here, after = filled[i], filled[i + 1]
        if here.year is None and after.year is not None:
            filled[i] = here.in_year(after.year - (_position_in_year(here) > _position_in_year(after)), known=known)
    for i in range(1, len(filled)):
        here, before = filled[i], filled[i - 1]
        if here.year is None and before.year is not None:
            filled[i] = here.in_year(before.year + (_position_in_year(here) < _position_in_year(before)), known=known)
    return filled


def _fill_widths(points: Sequence[Point]) -> list[Point]:
    """Return the dates with unknown digit widths of days and months set to a known one, else the largest."""
    number_fields = [field for point in points for field in point.fields if field.role in ("day", "month")]
    unknown_widths = [field.pad for field in number_fields if not field.width_known]
    if not unknown_widths:
        return list(points)
    pad = next((field.pad for field in number_fields if field.width_known), max(unknown_widths))
    return [
        replace(point, fields=tuple(field if field.width_known else replace(field, pad=pad) for field in point.fields))
        for point in points
    ]


def _position_in_year(point: Point) -> tuple[int, int]:
    """Return the month and day as a sort key; a missing month or day counts as 0, before all others."""
    return (point.month or 0, point.day or 0)
