"""Less exact, still useful: ages over 89 become 90+, ZIP codes their first three digits, dates their year.

These are the roundings of 45 CFR 164.514(b)(2)(i)(B) and (C). What cannot be read becomes a tag.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from chaffinch.deid import dates
from chaffinch.deid.acting import Memory, Seen
from chaffinch.deid.operators.ages import capped_age
from chaffinch.deid.operators.tag import named
from chaffinch.errors import ConfigError

# The first three digits of ZIP codes whose areas had at most 20,000 inhabitants in the census of 2000.
SMALL_AREAS = frozenset("036 059 063 102 203 556 692 790 821 823 830 831 878 879 884 890 893".split())

_ZIP = re.compile(r"\s*([0-9]{3})(?:[0-9]{2}(?:[-–\s]?[0-9]{4})?)?\s*")
_YEAR = re.compile(r"(?<![0-9])(?:1[89]|2[01])[0-9]{2}(?![0-9])")
_BIRTH = re.compile(r"\b(?:born|birth\w*|d\.?o\.?b\b|b\.|geb\b|geboren\w*|nacid[oa]|nacimiento)", re.IGNORECASE)
_OLDEST = 115  # years; hardly anybody is older
_NEAR = 25  # characters before a date in which a word for birth makes it one


@dataclass(frozen=True, slots=True)
class Generalise:
    """Rounds ages, ZIP codes and dates; `over` is the greatest age that may stay.

    A year that tells of an age over it goes too (the rule says so): one that lies further before the last year of the
    document; a year of birth when the document has no later year to compare it with; and one of two digits that may
    be of the century before: a recent year of birth, or a year later than all that have four digits.
    """

    over: int = 89
    only: ClassVar[tuple[str, ...]] = ("AGE", "ZIP", "DATE")
    never: ClassVar[tuple[str, ...]] = ()
    keyed: ClassVar[bool] = False
    hides: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if self.over < 1:
            raise ConfigError(f"over must be at least 1 (years of age), got {self.over}")

    def __call__(self, seen: Seen, memory: Memory) -> str:
        match seen.kind.name:
            case "AGE":
                rounded = capped_age(seen.text, self.over)
            case "ZIP":
                rounded = area(seen.text)
            case "DATE":
                rounded = self._year(seen, memory)
            case _:
                rounded = None
        return f"[{named(seen)}]" if rounded is None else rounded

    def _year(self, seen: Seen, memory: Memory) -> str | None:
        years = _years(seen.text)
        if not years:
            return None
        every = memory.once("years", lambda: [year for text in memory.dates for year in _years(text)])
        full = memory.once("full years", lambda: [int(year) for text in memory.dates for year in _YEAR.findall(text)])
        last = max([*every, *years])
        born = _BIRTH.search(seen.before[-_NEAR:]) is not None
        short = not _YEAR.search(seen.text)
        age = last - years[0]
        old = age > self.over or (born and (age <= 0 or (short and age + 100 <= _OLDEST)))
        if old or (short and years[-1] > max(full, default=years[-1])):
            return None
        return str(years[0]) if len(years) == 1 else f"{years[0]}-{years[-1]}"


def _years(text: str) -> list[int]:
    """The years that the text of a date tells, sorted; of one that is no date, its numbers that look like years."""
    parsed = dates.parse(text)
    return sorted(parsed.years if parsed else {int(year) for year in _YEAR.findall(text)})


def area(text: str) -> str | None:
    """The first three digits of a ZIP code, 000 where few live there, or None if it is no such code.

    >>> area("02139-4307"), area("03601"), area("SW1A 2AA")
    ('021', '000', None)
    """
    found = _ZIP.fullmatch(text)
    if found is None:
        return None
    return "000" if found[1] in SMALL_AREAS else found[1]
