"""Read the date in a span's text, and shift it by days in the same format.

    >>> shift("March 3rd, 1998", days=29), shift("04MAR98", days=-4), shift("4 de marzo de 2001", days=30)
    ('April 1st, 1998', '28FEB98', '3 de abril de 2001')

A shift is a whole number of days, the same for all notes of a patient, so the days between any two full dates stay
exactly the same, and times of day stay as written. An incomplete date is shifted so that it agrees with full dates:

- A day without a year (3/4) is shifted in `reference_year`, so it moves like the full date. Without one, a year of
  365 days is assumed; 29 February takes the nearest leap year.
- A month (March 1998) becomes the month of its shifted middle day (14 of 28 days, 15 of 29 or 30, 16 of 31). No other
  month holds more of its shifted days, so a full date of the month falls into the shifted one as often as can be.
- A year, a decade and a season are shifted by their middle day too, early and late ones by the day at one sixth and at
  five sixths. Seasons are those of the northern hemisphere, of three whole months; winter 1998 has January 1998.
- A holiday becomes the name of the month its shifted day falls in (Christmas 1997 → January 1998), never itself.
- A weekday moves by `days` modulo 7, also beside a date; with whole weeks it stays.
- Both ends of a range move; an end without a year takes the other's, so that time runs forward (12/30-1/2/98 begins
  in 1997). Where two days that shared a month fall into two, the second month is written too (March 29-April 2).
- Relative expressions (yesterday, 3 days later) are unchanged: they stay true.

Numbers are read in the given order (month first by default) if that gives a date, else in the first other order that
does; Spanish or German words beside them mean day first; `order_of` infers the order from all dates of a document.
3/98, 6/00 and 3/04 are month and year, 3/4 and 03/04 month and day. Two-digit years are 1931 to 2030, or lie around
the reference year (89 before to 10 after). What cannot be read, or does not exist (31/02/1998), or would leave the
years 1 to 9999, gives None: replace it by a tag. So does a day alone (the 4th), whose month is unknown.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from typing import Protocol

from chaffinch.deid.dates.named import foreign_language_of
from chaffinch.deid.dates.order import count_orders
from chaffinch.deid.dates.parse import LONGEST, has_letters, read_points
from chaffinch.deid.dates.points import Conventions, Order, Point, Precision
from chaffinch.deid.dates.relative import is_relative
from chaffinch.deid.dates.render import write_shifted
from chaffinch.errors import ConfigError

ORDERS: tuple[Order, ...] = ("mdy", "dmy", "ymd")
LEAST_DAYS = 31  # from this size on, a month of a year never stays the same
MOST_DAYS = 3 * 365  # keeps treatments and ages plausible, and leaves 1,025 possible sizes
_YEAR_DAYS = 365.2425  # mean length of a Gregorian year
_YEAR_MARGIN = 7  # days; a shift this close to a whole number of years nearly keeps the day and month
_FEWEST_SIZES = 20  # forty shifts with the sign: knowing a weekday or season must not narrow them to a few
_LONGEST_SHIFT = 36_525  # days, a century; beyond it two-digit years are ambiguous


class Numbers(Protocol):
    """The part of a secret that `days_for` needs: keyed numbers below `bound`, fixed by the secret and the parts."""

    def number(self, bound: int, *parts: str) -> int:
        """Return a number in [0, bound) that depends on the secret and the parts only."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A parsed date text: one point, or several for a range or list. Its repr does not show the text."""

    text: str = field(repr=False)
    points: tuple[Point, ...]

    @property
    def precision(self) -> Precision:
        """Return the precision of the first date: day, month, year, season, …."""
        return self.points[0].precision

    @property
    def dates(self) -> tuple[date, ...]:
        """Return the full dates of the text: days with a known year."""
        spans = (point.span() for point in self.points if point.precision == "day" and point.year_known)
        return tuple(span[0] for span in spans if span is not None)

    @property
    def years(self) -> tuple[int, ...]:
        """Return the dates' years, each once, sorted: stated, or inferred from a range's end; none of decades."""
        with_years = (point for point in self.points if point.precision not in ("weekday", "relative", "decade"))
        return tuple(sorted({point.year for point in with_years if point.year is not None and point.year_known}))

    def shift(self, days: int) -> str | None:
        """Return the text with its dates moved by `days`; None if one would leave the years 1 to 9999."""
        return write_shifted(self.text, self.points, days)


def parse(
    text: str, *, order: Order = "mdy", reference_year: int | None = None, language: str | None = None
) -> Parsed | None:
    """Parse dates or a relative time: in this order (day first by foreign words), else in another; None if it is none.

    >>> parse("12/30-1/2/98").dates
    (datetime.date(1997, 12, 30), datetime.date(1998, 1, 2))
    """
    return None if len(text) > LONGEST else _parse(text, Conventions(order, reference_year, language))


@lru_cache(maxsize=4096)  # dates are read for the document's order and year, and for ages, before they are shifted
def _parse(text: str, conventions: Conventions) -> Parsed | None:
    """Parse the text of a date, which is not too long, by conventions of which the order comes first."""
    first_order = order = conventions.order
    if has_letters(text):
        if is_relative(text):
            return Parsed(text, (Point("relative"),))
        first_order = "dmy" if foreign_language_of(text) else order
    for candidate in dict.fromkeys((first_order, order, *ORDERS)):
        points = read_points(text, Conventions(candidate, conventions.reference_year, conventions.language))
        if points is not None:
            return Parsed(text, points)
    return None


def shift(
    text: str,
    days: int,
    *,
    reference_year: int | None = None,
    order: Order = "mdy",
    language: str | None = None,
) -> str | None:
    """Return a date text moved by `days` in the same format; None if it cannot be read (use a tag then)."""
    parsed = parse(text, order=order, reference_year=reference_year, language=language)
    return None if parsed is None else parsed.shift(days)


def order_of(texts: Iterable[str]) -> Order | None:
    """Return the order (mdy or dmy) that most unambiguous date texts need; None if none does, or on a draw.

    >>> order_of(["03/04/1998", "25/12/1997", "March 4"])
    'dmy'
    """
    votes = count_orders(texts)
    if votes["mdy"] == votes["dmy"]:
        return None
    return "mdy" if votes["mdy"] > votes["dmy"] else "dmy"


def usual_year(texts: Iterable[str], *, order: Order = "mdy") -> int | None:
    """Return the most frequent year of the full dates in the texts, the latest of a draw; None without any."""
    years = Counter(day.year for text in texts if (parsed := parse(text, order=order)) for day in parsed.dates)
    return max(years, key=lambda candidate: (years[candidate], candidate), default=None)


def days_for(
    secret: Numbers, patient: str, *, weeks: bool = False, least: int = LEAST_DAYS, most: int = MOST_DAYS
) -> int:
    """Return the patient's date shift in days: a size of `shift_sizes` with a sign, drawn by the secret.

    The days depend only on the secret, the patient and the options.
    """
    sizes = shift_sizes(least, most, weeks=weeks)
    drawn = secret.number(2 * len(sizes), "date-shift", "weeks" if weeks else "days", patient)
    size = sizes[drawn // 2]
    return size if drawn % 2 else -size


@lru_cache(maxsize=64)
def shift_sizes(least: int, most: int, *, weeks: bool = False) -> tuple[int, ...]:
    """Return the sizes in days, `least` to `most`, not near whole years, by 7s if `weeks`; ConfigError if too few.

    No size is within 7 days of a whole number of years: such a shift would keep the day and month, or nearly so.

    >>> sizes = shift_sizes(31, 1095)
    >>> len(sizes), sizes[0], sizes[-1], 357 in sizes, 358 in sizes, 373 in sizes, 374 in sizes
    (1025, 31, 1087, True, False, False, True)
    """
    if not 1 <= least <= most <= _LONGEST_SHIFT:
        raise ConfigError(
            f"a date shift needs 1 ≤ least ≤ most ≤ {_LONGEST_SHIFT} days, got least = {least} and most = {most}"
        )
    step = 7 if weeks else 1
    sizes = tuple(days for days in range(-(-least // step) * step, most + 1, step) if not _is_near_years(days))
    if len(sizes) < _FEWEST_SIZES:
        raise ConfigError(
            f"a date shift of {least} to {most} days{' by whole weeks' if weeks else ''} leaves {len(sizes)} sizes "
            f"that are not within {_YEAR_MARGIN} days of whole years; at least {_FEWEST_SIZES} are needed, because "
            "fewer are easy to guess: lower least or raise most"
        )
    return sizes


def _is_near_years(days: int) -> bool:
    """Tell whether days are within 7 of a whole number of years (one or more)."""
    years = round(days / _YEAR_DAYS)
    near = (math.floor(years * _YEAR_DAYS), math.ceil(years * _YEAR_DAYS))
    return years > 0 and any(abs(days - candidate) <= _YEAR_MARGIN for candidate in near)
