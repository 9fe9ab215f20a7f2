"""Dates written in digits alone: 3/4/98, 2098-04-03, 04.03.2001, 3/4, 03/1998, 20980403, 1998, '98 and 1998-99."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

from chaffinch.deid.dates.points import Field, Point, Ways

_NUMBER = r"[0-9]{1,2}"
YEAR = r"(?P<y>['’‘´`]?[0-9]{2}|[0-9]{4})"
_SEP = r"(?:\s{0,2}(?:/{1,2}|[-–‑.])\s{0,2}|\s{1,2})"
_YEAR_FIRST = re.compile(rf"(?P<y>[0-9]{{4}})(?P<s>{_SEP})(?P<b>{_NUMBER})(?P<t>{_SEP})(?P<c>{_NUMBER})")
_YEAR_LAST = re.compile(rf"(?P<a>{_NUMBER})(?P<s>{_SEP})(?P<b>{_NUMBER})(?P<t>{_SEP}){YEAR}")
_SHORT_YEAR_FIRST = re.compile(rf"(?P<y>[0-9]{{2}})(?P<s>{_SEP})(?P<b>{_NUMBER})(?P<t>{_SEP})(?P<c>{_NUMBER})")
_TWO = re.compile(rf"(?P<a>{_NUMBER})(?P<s>\s?[/.\-–‑]\s?){YEAR}")
_TWO_SHORT = re.compile(rf"(?P<a>{_NUMBER})(?P<s>\s?[/.\-–‑]\s?)(?P<b>{_NUMBER})")
_YEAR_MONTH = re.compile(rf"(?P<y>[0-9]{{4}})(?P<s>\s?[/.\-–‑]\s?)(?P<b>{_NUMBER})")
_EIGHT = re.compile(r"[0-9]{8}")
_YEAR_ALONE = re.compile(r"(?P<y>['’‘´`][0-9]{2}|[0-9]{4})")
_YEARS = re.compile(r"(?P<y>[0-9]{4})\s?[-–/]\s?(?P<z>[0-9]{2})")
_DECADE = re.compile(r"(?P<q>['’‘´`])?(?P<y>[0-9]0|[0-9]{3}0)['’]?(?:s|er)(?:\s{1,2}jahren?)?", re.IGNORECASE)
_DECADE_ES = re.compile(r"(?:los\s|los\saños\s|años\s|década\sde(?:\slos)?\s)(?P<y>[0-9]0|[0-9]{3}0)", re.IGNORECASE)
_CENTURIES = range(18, 22)  # of a day written in eight digits: others are numbers of another kind


Width: TypeAlias = tuple[int, bool]  # how many digits at least (0: any), and whether the text tells


def pads(*numbers: str, default: bool) -> list[Width]:
    """The widths of day and month: a leading zero or a single digit tells, else the other number, else the default."""
    told = [number[0] == "0" if number[0] == "0" or len(number) == 1 else None for number in numbers]
    hint = next((tell for tell in told if tell is not None), None)
    best = [hint if tell is None else tell for tell in told]
    return [(2 if (default if tell is None else tell) else 0, tell is not None) for tell in best]


def year_field(match: re.Match[str], ways: Ways, group: str = "y") -> tuple[int, Field]:
    """The year of a matched group, and the place of its digits."""
    digits = match[group].lstrip("'’‘´`")
    end = match.end(group)
    year = int(digits) if len(digits) == 4 else ways.full_year(int(digits))
    return year, Field(end - len(digits), end, "year", pad=len(digits))


def number_field(match: re.Match[str], group: str, role: str, width: Width) -> Field:
    """The place of a day or a month written in digits."""
    pad, told = width
    return Field(match.start(group), match.end(group), "day" if role == "day" else "month", pad=pad, told=told)


def read_numbers(text: str, start: int, end: int, ways: Ways) -> list[Point] | None:
    """The point (for 1998-99, two points) that digits spell, in the order of `ways` only; None if there is none."""
    span = (text, start, end)
    if match := _YEAR_FIRST.fullmatch(*span):
        return _three(match, ("b", "c"), "md", ways)
    if match := _YEAR_LAST.fullmatch(*span):
        if ways.order != "ymd":
            return _three(match, ("a", "b"), ways.order[:2], ways)
        match = _SHORT_YEAR_FIRST.fullmatch(*span)
        return _three(match, ("b", "c"), "md", ways) if match else None
    if (match := _YEAR_MONTH.fullmatch(*span)) and 1 <= int(match["b"]) <= 12:
        year, place = year_field(match, ways)
        (pad,) = pads(match["b"], default=True)
        return [Point("month", year, int(match["b"]), fields=(place, number_field(match, "b", "month", pad)))]
    if match := _YEARS.fullmatch(*span):
        return _years(match, ways)
    if match := _YEAR_ALONE.fullmatch(*span):
        year, place = year_field(match, ways)
        return [Point("year", year, fields=(place,))]
    if _EIGHT.fullmatch(*span):
        return _eight(text, start, ways)
    return _two(text, start, end, ways)


def _three(match: re.Match[str], groups: Sequence[str], order: str, ways: Ways) -> list[Point] | None:
    """A day whose two numbers are in `groups`, the one that is the month told by `order` (md or dm)."""
    first, second = (match[group] for group in groups)
    kinds = {match["s"].strip(), match["t"].strip()}
    if len(kinds) > 1 and kinds not in ({".", ""}, {"/", ""}, {"/", "//"}):
        return None
    year, place = year_field(match, ways)
    if "" in kinds and place.pad == 2:  # three bare numbers are a date only with a four-digit year
        return None
    roles = ("month", "day") if order == "md" else ("day", "month")
    widths = pads(first, second, default=True)
    fields = [number_field(match, g, role, pad) for g, role, pad in zip(groups, roles, widths, strict=True)]
    month, day = (int(first), int(second)) if order == "md" else (int(second), int(first))
    return [Point("day", year, month, day, fields=(*fields, place))]


def _two(text: str, start: int, end: int, ways: Ways) -> list[Point] | None:
    """A month and year (3/98, 03/1998, 6/00, 3/04) or a month and day (3/4, 03/04, and 3.4. which is the 3rd).

    Two digits are a year when they cannot be a day, and after an unpadded month when they begin with 0: who writes 3
    for March writes 4 for the fourth.
    """
    if match := _TWO.fullmatch(text, start, end):
        first, second = match["a"], match["y"]
        unpadded = len(first) == 1 and second[0] == "0" and text[end : end + 1] != "."
        if not second.isdigit() or len(second) == 4 or int(second) > 31 or second == "00" or unpadded:
            year, place = year_field(match, ways)
            (pad,) = pads(first, default=True)
            return [Point("month", year, int(first), fields=(number_field(match, "a", "month", pad), place))]
    match = _TWO_SHORT.fullmatch(text, start, end)
    if match is None:
        return None
    day_first = ways.order == "dmy" or ("." in match["s"] and text[end : end + 1] == ".")
    widths = pads(match["a"], match["b"], default=False)
    roles = ("day", "month") if day_first else ("month", "day")
    fields = tuple(number_field(match, g, role, pad) for g, role, pad in zip("ab", roles, widths, strict=True))
    month, day = (match["b"], match["a"]) if day_first else (match["a"], match["b"])
    return [Point("month-day", None, int(month), int(day), fields=fields)]


def _eight(text: str, start: int, ways: Ways) -> list[Point] | None:
    """A day in eight digits: year first, or else last and in the order of `ways`."""
    places = {"y": (0, 4), "m": (4, 6), "d": (6, 8)}
    if int(text[start : start + 2]) not in _CENTURIES or not 1 <= int(text[start + 4 : start + 6]) <= 12:
        if ways.order == "ymd" or int(text[start + 4 : start + 6]) not in _CENTURIES:
            return None
        places = {ways.order[0]: (0, 2), ways.order[1]: (2, 4), "y": (4, 8)}
    year, month, day = (int(text[start + places[key][0] : start + places[key][1]]) for key in "ymd")
    fields = (
        Field(start + places["y"][0], start + places["y"][1], "year", pad=4),
        Field(start + places["m"][0], start + places["m"][1], "month", pad=2),
        Field(start + places["d"][0], start + places["d"][1], "day", pad=2),
    )
    return [Point("day", year, month, day, fields=fields)]


def _years(match: re.Match[str], ways: Ways) -> list[Point] | None:
    """Two years, the second without its century: 1998-99, 1999/00."""
    year, place = year_field(match, ways)
    later = year - year % 100 + int(match["z"])
    later += 100 if later < year else 0
    second = Field(match.start("z"), match.end("z"), "year", pad=2)
    return [Point("year", year, fields=(place,)), Point("year", later, fields=(second,))]


def read_decade(text: str, start: int, end: int, ways: Ways) -> list[Point] | None:
    """The decade of 1990s, '90s, 90er Jahre or los 90; two digits mean one that is over by the latest year."""
    match = _DECADE.fullmatch(text, start, end) or _DECADE_ES.fullmatch(text, start, end)
    if match is None:
        return None
    digits = match["y"]
    year = int(digits) if len(digits) == 4 else ways.full_year(int(digits) + 9) - 9
    return [Point("decade", year, fields=(Field(match.start("y"), match.end("y"), "decade", pad=len(digits)),))]
