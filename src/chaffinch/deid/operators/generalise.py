"""Less exact, still useful: ages over 89 become 90+, ZIP codes their first three digits, dates their year.

These are the roundings of 45 CFR 164.514(b)(2)(i)(B) and (C). What cannot be read becomes a tag.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from chaffinch.deid.dates import shift as dates
from chaffinch.deid.dates.ages import capped_age
from chaffinch.deid.dates.telling_ages import FULL_YEAR, OLDEST_TOLD
from chaffinch.deid.operators.tag import named
from chaffinch.deid.release.replace import FoundIdentifier, Memory
from chaffinch.errors import ConfigError

# The first three digits of ZIP codes whose areas had at most 20,000 inhabitants in the census of 2000.
SMALL_AREAS = frozenset("036 059 063 102 203 556 692 790 821 823 830 831 878 879 884 890 893".split())

_ZIP = re.compile(r"\s*([0-9]{3})(?:[0-9]{2}(?:[-–\s]?[0-9]{4})?)?\s*")


@dataclass(frozen=True, slots=True)
class Generalise:
    """Rounds ages, ZIP codes and dates; `over` is the greatest age that may stay.

    Dates that tell of an age over it never come here: `dates_ages` hides them, whatever the operator for dates.
    """

    over: int = OLDEST_TOLD
    only: ClassVar[tuple[str, ...]] = ("AGE", "ZIP", "DATE")
    never: ClassVar[tuple[str, ...]] = ()
    keyed: ClassVar[bool] = False
    hides: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if self.over < 1:
            raise ConfigError(f"over must be at least 1 (years of age), got {self.over}")

    def __call__(self, seen: FoundIdentifier, memory: Memory) -> str:
        match seen.kind.name:
            case "AGE":
                rounded = capped_age(seen.text, self.over)
            case "ZIP":
                rounded = area(seen.text)
            case "DATE":
                rounded = rounded_date(seen.text, memory.reference_year)
            case _:
                rounded = None
        return f"[{named(seen)}]" if rounded is None else rounded


def rounded_date(text: str, reference_year: int | None = None) -> str | None:
    """Return the years that the text of a date tells, of one that is no date its numbers that look like years, or None.

    >>> rounded_date("March 3, 1999"), rounded_date("12/30-1/2/98"), rounded_date("31/02/1998"), rounded_date("May 3")
    ('1999', '1997-1998', '1998', None)
    """
    parsed = dates.parse(text, reference_year=reference_year)
    years = sorted(parsed.years if parsed else {int(year) for year in FULL_YEAR.findall(text)})
    if not years:
        return None
    return str(years[0]) if len(years) == 1 else f"{years[0]}-{years[-1]}"


def area(text: str) -> str | None:
    """The first three digits of a ZIP code, 000 where few live there, or None if it is no such code.

    >>> area("02139-4307"), area("03601"), area("SW1A 2AA")
    ('021', '000', None)
    """
    found = _ZIP.fullmatch(text)
    if found is None:
        return None
    return "000" if found[1] in SMALL_AREAS else found[1]
