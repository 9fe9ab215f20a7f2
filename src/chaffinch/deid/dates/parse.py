"""A whole date text: the words before it, weekday, time of day, ranges and lists, and the years they share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from chaffinch.deid.dates.named import read_named, weekday_field, weekday_first, weekday_last
from chaffinch.deid.dates.numeric import read_numbers
from chaffinch.deid.dates.points import Field, Point, Ways
from chaffinch.deid.dates.ranges import read_shared

LONGEST = 120  # no date is longer; the text of a longer span is not read
_PIECES = 6

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
_LETTER = re.compile(r"[^\W\d_]")


def has_letters(text: str, start: int = 0, end: int = LONGEST) -> bool:
    """Whether a stretch of a text has a letter."""
    return _LETTER.search(text, start, end) is not None


@lru_cache(maxsize=4096)  # what a document's dates tell of order and year is asked before they are moved
def read_points(text: str, ways: Ways) -> tuple[Point, ...] | None:
    """The points of a date text in the order of `ways`, or None if it has no such reading or no such day exists."""
    if ways.reference_year is not None:
        plain = read_points(text, Ways(ways.order, None, ways.language))
        if plain is not None and all(map(_has_full_year, plain)):
            return plain
    start, end = 0, len(text)
    while start < end and (text[start].isspace() or text[start] in '([{"“.,:;'):
        start += 1
    while start < end and (text[end - 1].isspace() or text[end - 1] in ')]}"”.,:;'):
        end -= 1
    points = _read(text, start, end, ways, 0)
    if points is None:
        return None
    try:
        settled = _settle_years(points, ways.reference_year)
        for point in settled:
            point.span()
    except (ValueError, OverflowError):
        return None
    return tuple(_settle_widths(settled))


def _has_full_year(point: Point) -> bool:
    return any(place.role == "year" and place.end - place.start == 4 for place in point.fields)


def _read(text: str, start: int, end: int, ways: Ways, level: int) -> list[Point] | None:
    """The points of a stretch of the text: one, two that share a month, or pieces joined at `level` or weaker."""
    whole = _simple(text, start, end, ways)
    if whole is not None:
        return whole
    lead = _LEAD.match(text, start, end)
    if lead and lead.end() < end:
        inner = _read(text, lead.end(), end, ways, level)
        if inner is not None:
            part = 1 if _EARLY.search(lead[0]) else 5 if _LATE.search(lead[0]) else 3
            return [replace(inner[0], part=part), *inner[1:]] if part != 3 else inner
    timed = _timed(text, start, end, ways)
    if timed is not None:
        return timed
    for weaker in range(level, len(_JOINS)):
        pieces = _pieces(text, start, end, weaker)
        if len(pieces) in range(2, _PIECES + 1):
            points: list[Point] = []
            for first, last in pieces:
                found = _read(text, first, last - (text[last - 1] == "."), ways, weaker + 1)
                if found is None:
                    break
                points.extend(found)
            else:
                return points
    return None


def _pieces(text: str, start: int, end: int, level: int) -> list[tuple[int, int]]:
    """The stretches between the joins of one level; empty where a piece would be."""
    edges = [start]
    for join in _JOINS[level].finditer(text, start, end):
        edges += [join.start(), join.end()]
    edges.append(end)
    pieces = list(zip(edges[::2], edges[1::2], strict=True))
    return pieces if all(first < last for first, last in pieces) else []


def _simple(text: str, start: int, end: int, ways: Ways) -> list[Point] | None:
    """One point, or two that share what is written once, with a weekday before or after."""
    read = read_named if has_letters(text, start, end) else read_numbers
    points = read(text, start, end, ways) or read_shared(text, start, end, ways)
    if points is not None:
        return points
    if match := weekday_first(text, start, end):
        place = weekday_field(match, ways)
        if match.end() >= end:
            return [Point("weekday", fields=(place,))] if place else None
        rest = _simple(text, match.end(), end, ways) or _timed(text, match.end(), end, ways)
        return _with_field(rest, place)
    if match := weekday_last(text, start, end):
        return _with_field(_simple(text, start, match.start(), ways), weekday_field(match, ways))
    return None


def _with_field(points: list[Point] | None, place: Field | None) -> list[Point] | None:
    if points is None or place is None:
        return None
    return [replace(points[0], fields=(*points[0].fields, place)), *points[1:]]


def _timed(text: str, start: int, end: int, ways: Ways) -> list[Point] | None:
    """A date with a time of day after or before it; the time stays as it is."""
    if (match := _TIME_LAST.search(text, start, end)) and match.start() > start:
        points = _simple(text, start, match.start(), ways)
        if points is not None:
            return points
    if (match := _TIME_FIRST.match(text, start, end)) and match.end() < end:
        return _simple(text, match.end(), end, ways)
    return None


def _settle_years(points: Sequence[Point], reference_year: int | None) -> list[Point]:
    """The points with a year each: their own, a neighbour's so that time runs forward, or the assumed one."""
    settled = list(points)
    if not any(point.year is not None for point in settled):
        first = settled[0].in_year(reference_year, known=False)
        settled[0] = first
    known = any(point.year is not None and point.year_known for point in settled)
    for i in range(len(settled) - 2, -1, -1):
        here, after = settled[i], settled[i + 1]
        if here.year is None and after.year is not None:
            settled[i] = here.in_year(after.year - (_within(here) > _within(after)), known=known)
    for i in range(1, len(settled)):
        here, before = settled[i], settled[i - 1]
        if here.year is None and before.year is not None:
            settled[i] = here.in_year(before.year + (_within(here) < _within(before)), known=known)
    return settled


def _settle_widths(points: Sequence[Point]) -> list[Point]:
    """The points with untold widths of days and months taken from the first that is told, else the widest."""
    counted = [place for point in points for place in point.fields if place.role in ("day", "month")]
    untold = [place.pad for place in counted if not place.told]
    if not untold:
        return list(points)
    pad = next((place.pad for place in counted if place.told), max(untold))
    return [
        replace(point, fields=tuple(place if place.told else replace(place, pad=pad) for place in point.fields))
        for point in points
    ]


def _within(point: Point) -> tuple[int, int]:
    """The place of a point within its year; a month has no day of its own and is never out of order with its days."""
    return (point.month or 0, point.day or 0)
