"""Dates written with words: March 4, 1998; 04MAR98; 4. März 2001; enero de 2001; spring 1998; Christmas; Monday."""

from __future__ import annotations

import re
from dataclasses import replace

from chaffinch import languages
from chaffinch.deid.dates.calendar_words import HOLIDAYS, MONTHS, SEASONS, WEEKDAYS, Name, holiday
from chaffinch.deid.dates.numeric import YEAR, number_field, pads, read_decade, year_field
from chaffinch.deid.dates.points import Field, Point, Role, Ways

_NO_LETTER = r"(?![^\W\d_])"
_MONTH = rf"(?P<mon>{MONTHS.pattern}){_NO_LETTER}"
_DAY = r"(?P<d>[0-9]{1,2})(?P<th>\s?(?:st|nd|rd|th)(?![^\W\d_])|\.?[ºª°])?"
_GAP = r"[\s.,/–‑-]{0,3}"
_OF_YEAR = rf"(?P<t>{_GAP}(?:(?:of|de|del|in)\s{{1,2}})?(?:(?:the\s)?(?:year|año|ano|jahr|jahres)\s{{1,2}})?)"
_OF_MONTH = rf"(?P<s>{_GAP}(?:day\s)?(?:(?:of|de|del)\s{{1,2}})?(?:mes\sde\s)?)"
_TO_DAY = rf"(?P<s>{_GAP}(?:the\s{{1,2}})?)"


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


_DAY_MONTH = _pattern(rf"{_DAY}{_OF_MONTH}{_MONTH}(?:{_OF_YEAR}{YEAR})?")
_MONTH_YEAR = _pattern(rf"{_MONTH}{_OF_YEAR}{YEAR}")
_MONTH_DAY = _pattern(rf"{_MONTH}{_TO_DAY}{_DAY}(?:(?=[^0-9]){_OF_YEAR}{YEAR})?")
_YEAR_MONTH_DAY = _pattern(rf"(?P<y>[0-9]{{4}})(?P<t>{_GAP}){_MONTH}{_TO_DAY}(?:{_DAY})?")
_MONTH_ALONE = _pattern(_MONTH)
_SEASON = _pattern(rf"(?P<word>{SEASONS.pattern}){_NO_LETTER}(?:{_OF_YEAR}{YEAR})?")
_HOLIDAY = _pattern(rf"(?P<word>{HOLIDAYS}){_NO_LETTER}(?:{_OF_YEAR}{YEAR})?")
_WEEKDAY = _pattern(rf"(?P<word>{WEEKDAYS.pattern})(?:s{_NO_LETTER}|{_NO_LETTER})")
_WEEKDAY_FIRST = _pattern(_WEEKDAY.pattern + r"[.,]{0,2}\s{0,2}(?:(?:the|den|dem|der|el|,)\s{1,2})?")
_WEEKDAY_LAST = _pattern(r"[\s,]{1,2}\(?" + _WEEKDAY.pattern + r"\.?\)?\Z")
_SPOKEN = {name: _pattern(calendar.spoken) for name, calendar in languages.calendars().items() if calendar.spoken}


def spoken(text: str) -> str | None:
    """Return the language, other than English, whose small words stand in the text."""
    return next((language for language, words in _SPOKEN.items() if words.search(text)), None)


def language_of(text: str, ways: Ways) -> str | None:
    """The language whose small words stand in the text, else the one of `ways`."""
    return spoken(text) or ways.language


def read_named(text: str, start: int, end: int, ways: Ways) -> list[Point] | None:
    """The point that a text with words spells (weekdays aside); None if there is none."""
    span = (text, start, end)
    if match := _DAY_MONTH.fullmatch(*span):
        return _month_form(match, ways, glued=not match["s"])
    if match := _YEAR_MONTH_DAY.fullmatch(*span):
        return _month_form(match, ways)
    if (match := _MONTH_YEAR.fullmatch(*span)) and _is_year(match, ways):
        return _month_form(match, ways)
    if (match := _MONTH_DAY.fullmatch(*span)) and not _is_days(match):
        return _month_form(match, ways)
    if match := _MONTH_ALONE.fullmatch(*span):
        return _month_form(match, ways)
    if match := _SEASON.fullmatch(*span):
        name = SEASONS.find(match["word"], language=language_of(text, ways))
        return None if name is None else _worded(match, ways, Point("season", None, 3 * name.number + 1), name)
    if match := _HOLIDAY.fullmatch(*span):
        found = holiday(match["word"])
        if found is None:
            return None
        return _worded(match, ways, Point("holiday", rule=found[1]), Name(found[0], 0, short=False))
    return read_decade(*span, ways)


def _is_year(match: re.Match[str], ways: Ways) -> bool:
    """Return whether the number after a month is a year.

    It is if it is never a day, if the language writes no day there, with 'of', or as in Mar-04.
    """
    digits = match["y"]
    if not digits.isdigit() or len(digits) == 4 or int(digits) > 31 or digits == "00":
        return True
    name = MONTHS.find(match["mon"], language=language_of(match.string, ways))
    apart = match["t"].strip()
    return (
        apart == "-"
        or apart[-1:].isalpha()
        or (name is not None and not languages.calendars()[name.language].day_after_month)
    )


def _is_days(match: re.Match[str]) -> bool:
    """Whether the last number after month and day is a second day: March 13-17, or has a slash of its own."""
    apart = (match["t"] or "").strip()
    if not apart or match["y"] is None or match["s"].strip() == apart:
        return False
    return "/" in apart or (apart in "-–‑" and len(match["y"]) == 2 and int(match["y"]) <= 31)


def _month_form(match: re.Match[str], ways: Ways, *, glued: bool = False) -> list[Point] | None:
    """The point of a matched month name with its day and year, as far as the groups of the match have them."""
    groups = match.groupdict()
    apart = {(groups.get("s") or "").strip(), (groups.get("t") or "").strip()}
    dotted = match.string[match.end("mon") : match.end()].startswith(".")
    compact = glued or dotted or bool(apart & {"-", "/"})
    name = MONTHS.find(match["mon"], language=language_of(match.string, ways), short=compact)
    if name is None:
        return None
    fields = [Field(match.start("mon"), match.end("mon"), "name", name=name)]
    year, day = None, None
    if groups.get("y"):
        year, place = year_field(match, ways)
        fields.append(place)
    if groups.get("d"):
        day = int(match["d"])
        fields.extend(day_fields(match, default=glued or apart & {"-"} != set()))
    if day is not None:
        return [Point("month-day" if year is None else "day", year, name.number + 1, day, fields=tuple(fields))]
    return [Point("month-only" if year is None else "month", year, name.number + 1, fields=tuple(fields))]


def day_fields(match: re.Match[str], *, default: bool, day: str = "d", th: str = "th") -> list[Field]:
    """The places of a day and of its ordinal ending, if it has an English one."""
    (pad,) = pads(match[day], default=default)
    fields = [number_field(match, day, "day", pad)]
    if match[th] and match[th][-1].isalpha() and match[th][-1] not in "ºª":
        fields.append(Field(match.end(th) - 2, match.end(th), "ordinal"))
    return fields


def _worded(match: re.Match[str], ways: Ways, point: Point, name: Name) -> list[Point]:
    """A season or a holiday with its year, if it has one."""
    role: Role = "season" if point.precision == "season" else "holiday"
    fields = [Field(match.start("word"), match.end("word"), role, name=name)]
    year = None
    if match["y"]:
        year, place = year_field(match, ways)
        fields.append(place)
    return [replace(point, year=year, fields=tuple(fields))]


def weekday_field(match: re.Match[str], ways: Ways) -> Field | None:
    """The place of a weekday's name."""
    name = WEEKDAYS.find(match["word"], language=language_of(match.string, ways))
    return None if name is None else Field(match.start("word"), match.end("word"), "weekday", name=name)


def weekday_first(text: str, start: int, end: int) -> re.Match[str] | None:
    """The weekday that a text begins with, as a match that ends where the rest begins."""
    return _WEEKDAY_FIRST.match(text, start, end)


def weekday_last(text: str, start: int, end: int) -> re.Match[str] | None:
    """The weekday that a text ends with, as a match that begins where the rest ends."""
    return _WEEKDAY_LAST.search(text, start, end)
