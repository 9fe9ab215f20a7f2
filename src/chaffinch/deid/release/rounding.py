"""Roundings of 45 CFR 164.514(b)(2)(i)(B) and (C): ZIP codes to their first three digits, dates to their year.

Ages are rounded in `dates/ages.py`. A rounding returns None for a text that cannot be read.
"""

from __future__ import annotations

import re

from chaffinch.deid.dates import shift
from chaffinch.deid.dates.telling_ages import FULL_YEAR

# The first three digits of ZIP codes whose areas had at most 20,000 inhabitants in the census of 2000.
SMALL_AREAS = frozenset("036 059 063 102 203 556 692 790 821 823 830 831 878 879 884 890 893".split())

_ZIP = re.compile(r"\s*([0-9]{3})(?:[0-9]{2}(?:[-–\s]?[0-9]{4})?)?\s*")


def round_date(text: str, reference_year: int | None = None) -> str | None:
    """Return the year of a date's text, or "first-last" of several years; None if there is none.

    >>> round_date("March 3, 1999"), round_date("12/30-1/2/98"), round_date("31/02/1998"), round_date("May 3")
    ('1999', '1997-1998', '1998', None)
    """
    parsed = shift.parse(text, reference_year=reference_year)
    years = sorted(parsed.years if parsed else {int(year) for year in FULL_YEAR.findall(text)})
    if not years:
        return None
    return str(years[0]) if len(years) == 1 else f"{years[0]}-{years[-1]}"


def round_zip(text: str) -> str | None:
    """Return the first three digits of a ZIP code, "000" for a sparsely populated area; None if it is no ZIP code.

    >>> round_zip("02139-4307"), round_zip("03601"), round_zip("SW1A 2AA")
    ('021', '000', None)
    """
    match = _ZIP.fullmatch(text)
    if match is None:
        return None
    return "000" if match[1] in SMALL_AREAS else match[1]
