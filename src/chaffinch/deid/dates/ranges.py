"""Two days or months that share a month or year: March 3-7, 1998; 3.-7.3.2001; 3/4-7/98; 03-05/1998."""

from __future__ import annotations

import re
from dataclasses import replace

from chaffinch.deid.dates.calendar_words import MONTHS
from chaffinch.deid.dates.named import day_fields, language_of
from chaffinch.deid.dates.numeric import YEAR, digit_widths, number_field, year_field
from chaffinch.deid.dates.points import Conventions, Field, Point

_AND = r"(?:to|through|thru|till|until|and|or|y|e|o|al?|und|bis|oder)"
_JOIN = rf"(?:\s{{0,2}}(?:[-–—‑/+&,]|,?\s{_AND}\s)\s{{0,2}}(?:(?:the|el|den)\s)?)"
_N = r"[0-9]{1,2}"
_TH = r"\s?(?:st|nd|rd|th)(?![^\W\d_])|\.?[ºª°]"
_DAYS = rf"(?P<d>{_N})(?P<th>{_TH})?\.?(?P<j>{_JOIN})(?P<e>{_N})(?P<eth>{_TH})?"
_MONTH = rf"(?P<mon>{MONTHS.pattern})(?![^\W\d_])"
_GAP = r"[\s.,/–‑-]{0,3}"
_OF_YEAR = rf"(?:{_GAP}(?:(?:of|de|del|in)\s{{1,2}})?(?:(?:año|jahr)\s{{1,2}})?{YEAR})?"
_MONTH_DAYS = re.compile(rf"{_MONTH}(?P<s>{_GAP}(?:the\s)?){_DAYS}(?:(?=[^0-9]){_OF_YEAR})", re.IGNORECASE)
_MONTH_DAYS_BARE = re.compile(rf"{_MONTH}(?P<s>{_GAP}(?:the\s)?){_DAYS}", re.IGNORECASE)
_DAYS_MONTH = re.compile(rf"{_DAYS}(?P<s>{_GAP}(?:(?:of|de|del)\s{{1,2}})?){_MONTH}{_OF_YEAR}", re.IGNORECASE)
_DAYS_NUMBER = re.compile(
    rf"(?P<d>{_N})(?P<dot>\.?){_JOIN}(?P<e>{_N})(?P<s>\s?[./]\s?)(?P<m>{_N})(?:\s?[./]\s?{YEAR})?", re.IGNORECASE
)
_NUMBER_DAYS = re.compile(rf"(?P<m>{_N})(?P<s>/)(?P<d>{_N})\s?[-–‑]\s?(?P<e>{_N})(?:/{YEAR})?")
_MONTHS_YEAR = re.compile(rf"(?P<m>{_N})\s?[-–‑]\s?(?P<n>{_N})\s?[/.]\s?{YEAR}")


def read_shared(text: str, start: int, end: int, conventions: Conventions) -> list[Point] | None:
    """Parse two days or months that write their month or year once, such as March 3-7, 1998; None if it is none."""
    span = (text, start, end)
    named = _MONTH_DAYS_BARE.fullmatch(*span) or _MONTH_DAYS.fullmatch(*span) or _DAYS_MONTH.fullmatch(*span)
    if named:
        return _read_named_days(named, conventions)
    if (match := _MONTHS_YEAR.fullmatch(*span)) and (len(match["y"]) != 2 or int(match["y"]) > 31):
        return _read_months(match, conventions)
    if conventions.order == "dmy" and (match := _DAYS_NUMBER.fullmatch(*span)):
        tail = Field(match.end("dot"), match.end("dot"), "implied", beside=1)
        step = match["s"].strip()
        return _read_numeric_days(match, conventions, replace(tail, before="" if match["dot"] else step, after=step))
    if conventions.order == "mdy" and (match := _NUMBER_DAYS.fullmatch(*span)):
        return _read_numeric_days(
            match, conventions, Field(match.start("e"), match.start("e"), "implied", after="/", beside=-1)
        )
    return None


def _read_named_days(match: re.Match[str], conventions: Conventions) -> list[Point] | None:
    """Return two days of a named month, one with an empty place where a shift may write a second month; or None."""
    name = MONTHS.find(match["mon"], language=language_of(match.string, conventions))
    if name is None or int(match["d"]) >= int(match["e"]):
        return None
    word = Field(match.start("mon"), match.end("mon"), "name", name=name)
    first = day_fields(match, default=False)
    second = day_fields(match, default=False, day="e", th="eth")
    year, years = _read_year(match, conventions)
    if match.start("mon") < match.start("d"):
        offset = match.start("e")
        second.append(Field(offset, offset, "implied", name=name, like=match["mon"], after=match["s"], beside=-1))
        first.append(word)
    else:
        offset = match.end("th") if match["th"] else match.end("d")
        dotted = match.string[offset] == "."
        gap = match["s"].removeprefix(".") if dotted else match["s"]
        offset += dotted
        first.append(Field(offset, offset, "implied", name=name, like=match["mon"], before=gap, beside=1))
        second.append(word)
    return _make_pair(match, year, name.number + 1, first, [*second, *years])


def _read_numeric_days(match: re.Match[str], conventions: Conventions, implied: Field) -> list[Point] | None:
    """Return two rising days of one numeric month, or None; a shift may write a second month at `implied`."""
    if int(match["d"]) >= int(match["e"]):
        return None
    pad_d, pad_e, pad_m = digit_widths(match["d"], match["e"], match["m"], default=False)
    first, second = [number_field(match, "d", "day", pad_d)], [number_field(match, "e", "day", pad_e)]
    month = number_field(match, "m", "month", pad_m)
    year, years = _read_year(match, conventions)
    implied = replace(implied, pad=pad_m[0], width_known=pad_m[1])
    if implied.beside > 0:
        return _make_pair(match, year, int(match["m"]), [*first, implied], [*second, month, *years])
    return _make_pair(match, year, int(match["m"]), [*first, month], [*second, implied, *years])


def _make_pair(
    match: re.Match[str], year: int | None, month: int, first: list[Field], second: list[Field]
) -> list[Point]:
    """Return the two matched days of one month as dates, each with the stretches that a shift rewrites."""
    kind = Point("month-day" if year is None else "day", year, month)
    return [
        replace(kind, day=int(match["d"]), fields=tuple(first)),
        replace(kind, day=int(match["e"]), fields=tuple(second)),
    ]


def _read_months(match: re.Match[str], conventions: Conventions) -> list[Point]:
    """Return two months in digits with one year, which is that of the second month."""
    year, years = _read_year(match, conventions)
    pad_m, pad_n = digit_widths(match["m"], match["n"], default=True)
    first, second = int(match["m"]), int(match["n"])
    before = year if year is None or first <= second else year - 1
    return [
        Point("month", before, first, fields=(number_field(match, "m", "month", pad_m),)),
        Point("month", year, second, fields=(number_field(match, "n", "month", pad_n), *years)),
    ]


def _read_year(match: re.Match[str], conventions: Conventions) -> tuple[int | None, list[Field]]:
    """Return the matched year and its stretch in a list; (None, []) if no year is written."""
    if not match.groupdict().get("y"):
        return None, []
    year, field = year_field(match, conventions)
    return year, [field]
