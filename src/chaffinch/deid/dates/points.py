"""What a date text was understood as: points in the calendar, each with the places in the text that spell it."""

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

LATEST = 2030  # without a reference year, two digits mean a year of 1931 to 2030
AHEAD = 10  # with one, a year from 89 before to 10 after it
_PLAIN, _LEAP = 2001, 2000  # the years of a day without a year, where none is given


@dataclass(frozen=True, slots=True)
class Ways:
    """How to read what can be read in several ways."""

    order: Order = "mdy"
    reference_year: int | None = None
    language: str | None = None

    def full_year(self, two_digits: int) -> int:
        """The four-digit year of two digits: 1931 to 2030 (31–99, 00–30), or from 89 before the reference year."""
        latest = LATEST if self.reference_year is None else self.reference_year + AHEAD
        return latest - (latest - two_digits) % 100


@dataclass(frozen=True, slots=True)
class Field:
    """One place in the text that a shift writes anew; `pad` is its width in digits, 0 for as many as needed.

    `told` is False where the text does not tell the width: 12/14 could be of one who writes 3/4 or 03/04.
    """

    start: int
    end: int
    role: Role
    pad: int = 0
    told: bool = True
    name: Name | None = None
    like: str = field(default="", repr=False)  # of an implied month's name: the word whose case it takes
    before: str = field(default="", repr=False)  # what an implied month brings with it when it must be written
    after: str = field(default="", repr=False)
    beside: int = 0  # of an implied month: the neighbour (-1 or 1) whose month it shares while they are the same


@dataclass(frozen=True, slots=True)
class Point:
    """A day, month, year, decade, season, holiday or weekday as the text has it. Its repr tells the precision only.

    `year` is None where neither the text nor its other end tells it; `year_known` is False where it was assumed.
    `part` is 1, 3 or 5 sixths: early, the middle, late.
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
        """The first and last day that it can mean; None for a weekday, a relative text, or without a year.

        Raises ValueError for a day that does not exist, as 31 February.
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
        """The day that stands for it when it is shifted: the middle of its span, or earlier or later by `part`."""
        span = self.span()
        return None if span is None else span[0] + timedelta((span[1] - span[0]).days * self.part // 6)

    def in_year(self, year: int | None, *, known: bool) -> Point:
        """The point with a year it did not have; 29 February of an assumed year takes the nearest leap year."""
        more: dict[Precision, Precision] = {"month-day": "day", "month-only": "month"}
        if not known and (self.month, self.day) == (2, 29):
            year = (
                _LEAP if year is None else min(range(year - 8, year + 9), key=lambda y: (not _leap(y), abs(y - year)))
            )
        precision = more.get(self.precision, self.precision) if known else self.precision
        return replace(self, precision=precision, year=_PLAIN if year is None else year, year_known=known)


def _month_start(year: int, month: int) -> date:
    return date(year + (month - 1) // 12, (month - 1) % 12 + 1, 1)


def _month_end(year: int, month: int) -> date:
    return date(year, 12, 31) if month == 12 else date(year, month + 1, 1) - timedelta(1)


def _leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
