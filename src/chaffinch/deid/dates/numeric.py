"""Dates in digits only: 3/4/98, 2098-04-03, 04.03.2001, 3/4, 03/1998, 20980403, 1998, '98 and 1998-99."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

from chaffinch.deid.dates.points import Conventions, Field, Point

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
_CENTURIES = range(18, 22)  # of a date in eight digits; with any other century the digits are no date


Width: TypeAlias = tuple[int, bool]  # the least number of digits (0: any), and whether the text shows it


def digit_widths(*numbers: str, default: bool) -> list[Width]:
    """Return (2 if padded, else 0; whether shown) per number: by leading 0 or lone digit, another's, or `default`."""
    paddings = [number[0] == "0" if number[0] == "0" or len(number) == 1 else None for number in numbers]
    hint = next((padded for padded in paddings if padded is not None), None)
    resolved = [hint if padded is None else padded for padded in paddings]
    return [(2 if (default if padded is None else padded) else 0, padded is not None) for padded in resolved]


def year_field(match: re.Match[str], conventions: Conventions, group: str = "y") -> tuple[int, Field]:
    """Return the year that a group matched, completed to four digits, and the stretch of its digits."""
    digits = match[group].lstrip("'’‘´`")
    end = match.end(group)
    year = int(digits) if len(digits) == 4 else conventions.full_year(int(digits))
    return year, Field(end - len(digits), end, "year", pad=len(digits))


def number_field(match: re.Match[str], group: str, role: str, width: Width) -> Field:
    """Return the stretch of a matched day or month in digits, which a shift rewrites."""
    pad, width_known = width
    return Field(
        match.start(group), match.end(group), "day" if role == "day" else "month", pad=pad, width_known=width_known
    )


def read_numbers(text: str, start: int, end: int, conventions: Conventions) -> list[Point] | None:
    """Parse a date of numbers only in text[start:end], year first or in the order of `conventions`; None if none."""
    span = (text, start, end)
    if match := _YEAR_FIRST.fullmatch(*span):
        return _read_three_numbers(match, ("b", "c"), "md", conventions)
    if match := _YEAR_LAST.fullmatch(*span):
        if conventions.order != "ymd":
            return _read_three_numbers(match, ("a", "b"), conventions.order[:2], conventions)
        match = _SHORT_YEAR_FIRST.fullmatch(*span)
        return _read_three_numbers(match, ("b", "c"), "md", conventions) if match else None
    if (match := _YEAR_MONTH.fullmatch(*span)) and 1 <= int(match["b"]) <= 12:
        year, field = year_field(match, conventions)
        (pad,) = digit_widths(match["b"], default=True)
        return [Point("month", year, int(match["b"]), fields=(field, number_field(match, "b", "month", pad)))]
    if match := _YEARS.fullmatch(*span):
        return _read_years(match, conventions)
    if match := _YEAR_ALONE.fullmatch(*span):
        year, field = year_field(match, conventions)
        return [Point("year", year, fields=(field,))]
    if _EIGHT.fullmatch(*span):
        return _read_eight_digits(text, start, conventions)
    return _read_two_numbers(text, start, end, conventions)


def _read_three_numbers(
    match: re.Match[str], groups: Sequence[str], order: str, conventions: Conventions
) -> list[Point] | None:
    """Return the date of a year and two numbers, "md" or "dm" by `order`; None if signs or a short year do not fit."""
    first, second = (match[group] for group in groups)
    kinds = {match["s"].strip(), match["t"].strip()}
    if len(kinds) > 1 and kinds not in ({".", ""}, {"/", ""}, {"/", "//"}):
        return None
    year, field = year_field(match, conventions)
    if "" in kinds and field.pad == 2:  # three bare numbers are a date only with a four-digit year
        return None
    roles = ("month", "day") if order == "md" else ("day", "month")
    widths = digit_widths(first, second, default=True)
    fields = [number_field(match, g, role, pad) for g, role, pad in zip(groups, roles, widths, strict=True)]
    month, day = (int(first), int(second)) if order == "md" else (int(second), int(first))
    return [Point("day", year, month, day, fields=(*fields, field))]


def _read_two_numbers(text: str, start: int, end: int, conventions: Conventions) -> list[Point] | None:
    """Parse month and year (3/98, 3/04) or month and day (3/4, by the order) in text[start:end]; None if neither.

    Two digits are a year when they cannot be a day, and after an unpadded month when they begin with 0: whoever
    writes 3 for March writes 4 for the fourth.
    """
    if match := _TWO.fullmatch(text, start, end):
        first, second = match["a"], match["y"]
        unpadded = len(first) == 1 and second[0] == "0" and text[end : end + 1] != "."
        if not second.isdigit() or len(second) == 4 or int(second) > 31 or second == "00" or unpadded:
            year, field = year_field(match, conventions)
            (pad,) = digit_widths(first, default=True)
            return [Point("month", year, int(first), fields=(number_field(match, "a", "month", pad), field))]
    match = _TWO_SHORT.fullmatch(text, start, end)
    if match is None:
        return None
    day_first = conventions.order == "dmy" or ("." in match["s"] and text[end : end + 1] == ".")
    widths = digit_widths(match["a"], match["b"], default=False)
    roles = ("day", "month") if day_first else ("month", "day")
    fields = tuple(number_field(match, g, role, pad) for g, role, pad in zip("ab", roles, widths, strict=True))
    month, day = (match["b"], match["a"]) if day_first else (match["a"], match["b"])
    return [Point("month-day", None, int(month), int(day), fields=fields)]


def _read_eight_digits(text: str, start: int, conventions: Conventions) -> list[Point] | None:
    """Parse eight digits as a day: yyyymmdd, or else year last in the order of `conventions`; None if neither."""
    slices = {"y": (0, 4), "m": (4, 6), "d": (6, 8)}
    if int(text[start : start + 2]) not in _CENTURIES or not 1 <= int(text[start + 4 : start + 6]) <= 12:
        if conventions.order == "ymd" or int(text[start + 4 : start + 6]) not in _CENTURIES:
            return None
        slices = {conventions.order[0]: (0, 2), conventions.order[1]: (2, 4), "y": (4, 8)}
    year, month, day = (int(text[start + slices[key][0] : start + slices[key][1]]) for key in "ymd")
    fields = (
        Field(start + slices["y"][0], start + slices["y"][1], "year", pad=4),
        Field(start + slices["m"][0], start + slices["m"][1], "month", pad=2),
        Field(start + slices["d"][0], start + slices["d"][1], "day", pad=2),
    )
    return [Point("day", year, month, day, fields=fields)]


def _read_years(match: re.Match[str], conventions: Conventions) -> list[Point]:
    """Return two years as dates, the second of two digits and never earlier: 1998-99, 1999/00."""
    year, field = year_field(match, conventions)
    later = year - year % 100 + int(match["z"])
    later += 100 if later < year else 0
    second = Field(match.start("z"), match.end("z"), "year", pad=2)
    return [Point("year", year, fields=(field,)), Point("year", later, fields=(second,))]


def read_decade(text: str, start: int, end: int, conventions: Conventions) -> list[Point] | None:
    """Parse a decade (1990s, '90s, 90er Jahre, los 90) in text[start:end]; None if it is none."""
    match = _DECADE.fullmatch(text, start, end) or _DECADE_ES.fullmatch(text, start, end)
    if match is None:
        return None
    digits = match["y"]
    year = int(digits) if len(digits) == 4 else conventions.full_year(int(digits) + 9) - 9
    return [Point("decade", year, fields=(Field(match.start("y"), match.end("y"), "decade", pad=len(digits)),))]
