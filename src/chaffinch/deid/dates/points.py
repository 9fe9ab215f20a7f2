"""Points in the calendar that a date text spells, each with the fields of the text that spell it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Literal, TypeAlias

from chaffinch.deid.dates.calendar_words import Name, holiday_date

Order: TypeAlias = Literal["mdy", "dmy", "ymd"]
Precision: TypeAlias = Literal[
    "day", "month-day", "month", "month-only", "year", "decade", "season", "holiday", "weekday", "relative"
]
Role: TypeAlias = Literal[
    "day", "ordinal", "month", "name", "year", "decade", "weekday", "season", "holiday", "implied"
]

LATEST = 2030  # without a reference year, a two-digit year is one of 1931 to 2030
AHEAD = 10  # with a reference year, it is one from 89 years before to 10 years after it
_PLAIN, _LEAP = 2001, 2000  # the years assumed for a day (for 29 February: the second) when nothing tells the year


@dataclass(frozen=True, slots=True)
class Conventions:
    """Conventions that resolve ambiguous dates: order of the numbers, reference year and language."""

    order: Order = "mdy"
    reference_year: int | None = None
    language: str | None = None

    def full_year(self, two_digits: int) -> int:
        """Return the four-digit year of two digits: in 1931–2030, or from 89 before to 10 after the reference year."""
        latest = LATEST if self.reference_year is None else self.reference_year + AHEAD
        return latest - (latest - two_digits) % 100


@dataclass(frozen=True, slots=True)
class Field:
    """A stretch of the text that a shift rewrites; `pad` is its width in digits, 0 for as many as needed.

    `width_known` is False where the text does not show the width: the writer of 12/14 may write 3/4 or 03/04.
    """

    start: int
    end: int
    role: Role
    pad: int = 0
    width_known: bool = True
    name: Name | None = None
    like: str = field(default="", repr=False)  # for an implied month's name: the word whose case it takes
    before: str = field(default="", repr=False)  # text written before an implied month when it must be written
    after: str = field(default="", repr=False)  # text written after it
    beside: int = 0  # for an implied month: the neighbour (-1 or 1); nothing is written while both are in one month


@dataclass(frozen=True, slots=True)
class Point:
    """A day, month, year, decade, season, holiday or weekday as written. Its repr shows the precision only.

    `year` is None where neither the text nor the other end of its range gives it; `year_known` is False where it was
    assumed. `part` is the position of the anchor in sixths of the span: 1 early, 3 middle, 5 late.
    """

    precision: Precision
    year: int | None = field(default=None, repr=False)
    month: int | None = field(default=None, repr=False)  # of a season, its middle month
    day: int | None = field(default=None, repr=False)
    rule: tuple[int, ...] = field(default=(), repr=False)  # of a holiday
    part: int = field(default=3, repr=False)
    fields: tuple[Field, ...] = field(default=(), repr=False)
    year_known: bool = field(default=True, repr=False)

    def span(self) -> tuple[date, date] | None:
        """Return the (first, last) day it can mean; None for weekday, relative, no year; ValueError if no such day.

        Raises ValueError for a day that does not exist, such as 31 February.
        """
        year, month = self.year, self.month
        if self.precision in ("weekday", "relative") or year is None:
            return None
        if self.precision == "holiday":
            return (holiday_date(self.rule, year),) * 2
        if self.precision == "season" and month is not None:
            return _month_start(year, month - 1), _month_start(year, month + 2) - timedelta(1)
        if self.precision in ("year", "decade") or month is None:
            return date(year, 1, 1), date(year + (9 if self.precision == "decade" else 0), 12, 31)
        if self.day is not None:
            return (date(year, month, self.day),) * 2
        return date(year, month, 1), _month_end(year, month)

    def anchor(self) -> date | None:
        """Return the day that a shift moves: `part` sixths into its span, by default the middle; None without span."""
        span = self.span()
        return None if span is None else span[0] + timedelta((span[1] - span[0]).days * self.part // 6)

    def in_year(self, year: int | None, *, known: bool) -> Point:
        """Return the date with `year` (any if None); if `known` as a full date, else 29 February gets a leap year."""
        with_year: dict[Precision, Precision] = {"month-day": "day", "month-only": "month"}
        if not known and (self.month, self.day) == (2, 29):
            year = (
                _LEAP if year is None else min(range(year - 8, year + 9), key=lambda y: (not _leap(y), abs(y - year)))
            )
        precision = with_year.get(self.precision, self.precision) if known else self.precision
        return replace(self, precision=precision, year=_PLAIN if year is None else year, year_known=known)


def _month_start(year: int, month: int) -> date:
    """Return the first day of a month; months over 12 or under 1 run into other years."""
    return date(year + (month - 1) // 12, (month - 1) % 12 + 1, 1)


def _month_end(year: int, month: int) -> date:
    """Return the last day of a month."""
    return date(year, 12, 31) if month == 12 else date(year, month + 1, 1) - timedelta(1)


def _leap(year: int) -> bool:
    """Tell whether a year is a leap year."""
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
