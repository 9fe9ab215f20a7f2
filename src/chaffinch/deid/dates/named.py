"""Dates with words: March 4, 1998; 04MAR98; 4. März 2001; enero de 2001; spring 1998; Christmas; Monday."""

from __future__ import annotations

import re
from dataclasses import replace

from chaffinch import languages
from chaffinch.deid.dates.calendar_words import HOLIDAYS, MONTHS, SEASONS, WEEKDAYS, Name, find_holiday
from chaffinch.deid.dates.numeric import YEAR, digit_widths, number_field, read_decade, year_field
from chaffinch.deid.dates.points import Conventions, Field, Point, Role

_NO_LETTER = r"(?![^\W\d_])"
_MONTH = rf"(?P<mon>{MONTHS.pattern}){_NO_LETTER}"
_DAY = r"(?P<d>[0-9]{1,2})(?P<th>\s?(?:st|nd|rd|th)(?![^\W\d_])|\.?[ºª°])?"
_GAP = r"[\s.,/–‑-]{0,3}"
_OF_YEAR = rf"(?P<t>{_GAP}(?:(?:of|de|del|in)\s{{1,2}})?(?:(?:the\s)?(?:year|año|ano|jahr|jahres)\s{{1,2}})?)"
_OF_MONTH = rf"(?P<s>{_GAP}(?:day\s)?(?:(?:of|de|del)\s{{1,2}})?(?:mes\sde\s)?)"
_TO_DAY = rf"(?P<s>{_GAP}(?:the\s{{1,2}})?)"


def _pattern(text: str) -> re.Pattern[str]:
    """Compile a regular expression that ignores case."""
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
_FUNCTION_WORDS = {
    name: _pattern(calendar.spoken) for name, calendar in languages.calendars().items() if calendar.spoken
}


def foreign_language_of(text: str) -> str | None:
    """Return the first language other than English whose function words occur in the text, or None."""
    return next((language for language, words in _FUNCTION_WORDS.items() if words.search(text)), None)


def language_of(text: str, conventions: Conventions) -> str | None:
    """Return the language whose function words occur in the text, else that of the conventions, which may be None."""
    return foreign_language_of(text) or conventions.language


def read_named(text: str, start: int, end: int, conventions: Conventions) -> list[Point] | None:
    """Parse a date with words, such as "4 March 1998" or "spring 1998", in text[start:end]; None if it is none."""
    span = (text, start, end)
    if match := _DAY_MONTH.fullmatch(*span):
        return _read_month_form(match, conventions, glued=not match["s"])
    if match := _YEAR_MONTH_DAY.fullmatch(*span):
        return _read_month_form(match, conventions)
    if (match := _MONTH_YEAR.fullmatch(*span)) and _is_year(match, conventions):
        return _read_month_form(match, conventions)
    if (match := _MONTH_DAY.fullmatch(*span)) and not _ends_with_day(match):
        return _read_month_form(match, conventions)
    if match := _MONTH_ALONE.fullmatch(*span):
        return _read_month_form(match, conventions)
    if match := _SEASON.fullmatch(*span):
        name = SEASONS.find(match["word"], language=language_of(text, conventions))
        return (
            None
            if name is None
            else _read_season_or_holiday(match, conventions, Point("season", None, 3 * name.number + 1), name)
        )
    if match := _HOLIDAY.fullmatch(*span):
        named_holiday = find_holiday(match["word"])
        if named_holiday is None:
            return None
        return _read_season_or_holiday(
            match, conventions, Point("holiday", rule=named_holiday[1]), Name(named_holiday[0], 0, short=False)
        )
    return read_decade(*span, conventions)


def _is_year(match: re.Match[str], conventions: Conventions) -> bool:
    """Tell whether the number after a month's name is a year rather than a day, by size, separator and language.

    It is a year if it cannot be a day, if the language never writes a day after the month, after a word such as 'of',
    or after a hyphen (Mar-04).
    """
    digits = match["y"]
    if not digits.isdigit() or len(digits) == 4 or int(digits) > 31 or digits == "00":
        return True
    name = MONTHS.find(match["mon"], language=language_of(match.string, conventions))
    separator = match["t"].strip()
    return (
        separator == "-"
        or separator[-1:].isalpha()
        or (name is not None and not languages.calendars()[name.language].day_after_month)
    )


def _ends_with_day(match: re.Match[str]) -> bool:
    """Tell whether the number after "month day" is a second day: past another separator, slash or dash."""
    separator = (match["t"] or "").strip()
    if not separator or match["y"] is None or match["s"].strip() == separator:
        return False
    return "/" in separator or (separator in "-–‑" and len(match["y"]) == 2 and int(match["y"]) <= 31)


def _read_month_form(match: re.Match[str], conventions: Conventions, *, glued: bool = False) -> list[Point] | None:
    """Return the date of a match with a month's name, and its day and year if matched; None for an unknown name."""
    groups = match.groupdict()
    separators = {(groups.get("s") or "").strip(), (groups.get("t") or "").strip()}
    dotted = match.string[match.end("mon") : match.end()].startswith(".")
    compact = glued or dotted or bool(separators & {"-", "/"})
    name = MONTHS.find(match["mon"], language=language_of(match.string, conventions), short=compact)
    if name is None:
        return None
    fields = [Field(match.start("mon"), match.end("mon"), "name", name=name)]
    year, day = None, None
    if groups.get("y"):
        year, field = year_field(match, conventions)
        fields.append(field)
    if groups.get("d"):
        day = int(match["d"])
        fields.extend(day_fields(match, default=glued or separators & {"-"} != set()))
    if day is not None:
        return [Point("month-day" if year is None else "day", year, name.number + 1, day, fields=tuple(fields))]
    return [Point("month-only" if year is None else "month", year, name.number + 1, fields=tuple(fields))]


def day_fields(match: re.Match[str], *, default: bool, day: str = "d", th: str = "th") -> list[Field]:
    """Return the parts of a matched day that a shift rewrites: digits (padded by `default` if unclear), ordinal."""
    (pad,) = digit_widths(match[day], default=default)
    fields = [number_field(match, day, "day", pad)]
    if match[th] and match[th][-1].isalpha() and match[th][-1] not in "ºª":
        fields.append(Field(match.end(th) - 2, match.end(th), "ordinal"))
    return fields


def _read_season_or_holiday(match: re.Match[str], conventions: Conventions, point: Point, name: Name) -> list[Point]:
    """Return the season or holiday `point` with the year, if written, and the stretches that a shift rewrites."""
    role: Role = "season" if point.precision == "season" else "holiday"
    fields = [Field(match.start("word"), match.end("word"), role, name=name)]
    year = None
    if match["y"]:
        year, field = year_field(match, conventions)
        fields.append(field)
    return [replace(point, year=year, fields=tuple(fields))]


def weekday_field(match: re.Match[str], conventions: Conventions) -> Field | None:
    """Return the stretch of a matched weekday's name that a shift rewrites; None if the word is not known."""
    name = WEEKDAYS.find(match["word"], language=language_of(match.string, conventions))
    return None if name is None else Field(match.start("word"), match.end("word"), "weekday", name=name)


def weekday_first(text: str, start: int, end: int) -> re.Match[str] | None:
    """Match a weekday at the beginning of text[start:end], up to where the rest begins; None if there is none."""
    return _WEEKDAY_FIRST.match(text, start, end)


def weekday_last(text: str, start: int, end: int) -> re.Match[str] | None:
    """Match a weekday at the end of text[start:end], from where the rest ends; None if there is none."""
    return _WEEKDAY_LAST.search(text, start, end)
