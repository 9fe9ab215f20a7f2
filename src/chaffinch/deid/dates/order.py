"""The order of day and month in numeric dates: counted over a sample, over a patient's dates, over those of a note.

A date with a number over 12 in the place of the day or the month tells its order; 03/04/1998 does not. A note's own
dates decide first, then those of the patient, then the order of the job. Where none of them decides, nobody guesses.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from datetime import date
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from chaffinch.deid.dates.parse import LONGEST, depends_on_order, read_points
from chaffinch.deid.dates.points import Conventions, Order

DateOrder: TypeAlias = Literal["auto", "dmy", "mdy"]  # of a job; auto: as most dates of a sample of its notes

# The largest share of dates in the other order with which a sample still decides: some are misread, or misprints.
MOST_CONTRARY = 0.05
_DATE = re.compile(r"(?<![\w/.-])[0-9]{1,2}([/.-])[0-9]{1,2}\1(?:[0-9]{4}|[0-9]{2})(?![\w/-]|\.[0-9])")

_WITH_YEAR = re.compile(r"([0-9]{1,2})([/.-])([0-9]{1,2})\2([0-9]{4})")


class DateOrders(NamedTuple):
    """The orders that decide where a note's own dates do not: that of the patient's dates, and that of the job."""

    patient: Order | None = None
    job: Order | None = "mdy"


def count_orders(texts: Iterable[str]) -> Counter[Order]:
    """Count by order (mdy, dmy) the date texts that can be read in only one of them.

    >>> sorted(count_orders(["03/04/1998", "25/12/1997", "March 4"]).items())
    [('dmy', 1)]
    """
    return Counter(order for text in texts if len(text) <= LONGEST and (order := _only_order(text)) is not None)


@lru_cache(maxsize=4096)  # the dates of a note are counted for the note, for its patient, and where they are shifted
def _only_order(text: str) -> Order | None:
    """Return the only order, mdy or dmy, in which a date can be read; None if it can be read in both or in neither."""
    if not depends_on_order(text):
        return None
    if match := _WITH_YEAR.fullmatch(text):  # most dates: what `read_points` finds, without reading them twice
        first, second, year = int(match[1]), int(match[3]), int(match[4])
        month_first, day_first = _is_day(year, first, second), _is_day(year, second, first)
    else:
        month_first, day_first = (read_points(text, Conventions(order)) is not None for order in ("mdy", "dmy"))
    if month_first == day_first:
        return None
    return "mdy" if month_first else "dmy"


def _is_day(year: int, month: int, day: int) -> bool:
    """Tell whether a day exists."""
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True


def find_numeric_dates(text: str) -> list[str]:
    """Return the substrings that look like dates of three numbers with equal separators.

    >>> find_numeric_dates("seen 25/12/1997 and 3.4.98, BP 120/80, 617-555-0142")
    ['25/12/1997', '3.4.98']
    """
    return [match.group() for match in _DATE.finditer(text)]


def settle_order(votes: Counter[Order], *, most_contrary: float = 0.0) -> Order | None:
    """Return the order with most votes; None without votes, or if more than a share `most_contrary` of them differ.

    >>> settle_order(Counter(dmy=99, mdy=1)), settle_order(Counter(dmy=99, mdy=1), most_contrary=0.05)
    (None, 'dmy')
    """
    if not votes.total():
        return None
    order = max(votes, key=lambda name: (votes[name], name))
    return order if votes.total() - votes[order] <= most_contrary * votes.total() else None
