"""The written forms of names, dates, numbers, places, ages and jobs in varied notes, and the labels of slots."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

import numpy as np

from chaffinch import languages
from chaffinch.deid.surrogates.lists import entries, state_names
from chaffinch.deid.synth import personas
from chaffinch.deid.synth.names import NameDrawer, nickname
from chaffinch.deid.synth.personas import Person, pick

LABELS: Mapping[str, str] = {
    "username": "USERNAME", "profession": "PROFESSION", "industry": "PROFESSION", "hospital": "HOSPITAL",
    "org": "ORGANIZATION", "street": "STREET", "city": "CITY", "state": "STATE", "country": "COUNTRY", "zip": "ZIP",
    "place": "LOCATION-OTHER", "room": "ROOM", "dept": "DEPARTMENT", "age": "AGE", "phone": "PHONE", "ext": "PHONE",
    "pager": "PHONE", "fax": "FAX", "email": "EMAIL", "url": "URL", "ip": "IPADDR", "ssn": "SSN",
    "mrn": "MEDICALRECORD", "plan": "HEALTHPLAN", "account": "ACCOUNT", "license": "LICENSE", "vehicle": "VEHICLE",
    "serial": "DEVICE", "bioid": "BIOID", "idnum": "IDNUM", "accession": "IDNUM",
}  # fmt: skip
"""The label of the text in each slot. The label of a person is a field of `Person`; days are DATE."""

_CALENDAR, _NUMBERS = languages.calendars()["en"], languages.number_words("en")
_MONTHS, _DAYS, _SEASONS = _CALENDAR.months, _CALENDAR.weekdays, _CALENDAR.seasons
_SHORT = "Mon Tues Weds Thurs Fri Sat Sun".split()
_PATTERN = re.compile(r"#|@|\[(\w+)\]")
_TENS, _TENFOLD = _NUMBERS.decades, _NUMBERS.tens
_ONES = ("zero", *_NUMBERS.units, *_NUMBERS.teens)


def forms(kind: str) -> dict[str, Any]:
    """Return {form: patterns} of a kind of value, such as "person" or "date", from the packaged table."""
    table: dict[str, Any] = personas.table("varied/forms")[kind]
    return table


def fill_code(pattern: str, rng: np.random.Generator) -> str:
    """Fill a pattern at random: # is any digit, @ a capital letter, [xyz] one of these characters."""
    ends = {"#": "0123456789", "@": "ABCDEFGHJKLMNPRSTVWXYZ"}
    return _PATTERN.sub(lambda match: pick(rng, match[1] or ends[match[0]]), pattern)


def write_name(person: Person, pattern: str) -> str:
    """Write a person's name by a pattern with letters for its parts, such as "{F} {L}"."""
    return pattern.format(
        F=person.first, M=person.middle, L=person.last, N=nickname(person), f=person.first[0], m=person.middle[0],
        l=person.last[0].upper(),
    )  # fmt: skip


def write_day(when: date, pattern: str, rng: np.random.Generator) -> str:
    """Write a date by a format pattern of the table, such as "{mm}/{dd}/{yyyy}"; the holiday is drawn.

    >>> write_day(date(2012, 3, 7), "{th} of {month} {yyyy}", np.random.default_rng(0))
    '7th of March 2012'
    """
    month, weekday = _MONTHS[when.month - 1], _DAYS[when.weekday()]
    ending = "th" if 10 < when.day < 14 else {1: "st", 2: "nd", 3: "rd"}.get(when.day % 10, "th")
    season = _SEASONS[when.month % 12 // 3]
    return pattern.format(
        d=when.day, dd=f"{when.day:02d}", m=when.month, mm=f"{when.month:02d}", mon=month[:3], month=month,
        MON=month[:3].upper(), yy=f"{when.year % 100:02d}", yyyy=when.year, wd=weekday[:3], weekday=weekday,
        th=f"{when.day}{ending}", season=season, Season=season.capitalize(), decade=when.year // 10 * 10,
        dec=f"{when.year // 10 % 10}0", dow=_SHORT[when.weekday()],
        holiday=pick(rng, forms("holidays")["names"][when.month - 1].split(";")),
    )  # fmt: skip


def spell_number(years: int) -> str:
    """Write a number below 100 in words, a larger one in figures.

    >>> spell_number(45), spell_number(17), spell_number(60)
    ('forty-five', 'seventeen', 'sixty')
    """
    if years < 20 or years > 99:
        return _ONES[years] if years < 20 else str(years)
    return _TENFOLD[years // 10 - 2] + (f"-{_ONES[years % 10]}" if years % 10 else "")


def write_age(years: int, form: str, rng: np.random.Generator) -> str:
    """Write an age in figures, in words or as a decade; "old" and "decade" draw a new age."""
    years = int(rng.integers(18, 99)) if form in ("old", "decade") else years
    pattern: str = pick(rng, forms("age")["any" if form == "old" else form])
    tens = min(max(years // 10, 2), 9)
    return pattern.format(n=years, words=spell_number(years), t=tens, tens=_TENS[tens - 2])


def write_phone(slot: str, parts: Mapping[str, str], pattern: str) -> str:
    """Write a telephone, fax or pager number by a pattern; a fax differs from the telephone in its last digits."""
    last = parts["c"] if slot != "fax" else parts["c"][::-1] if parts["c"][::-1] != parts["c"] else "0199"
    return pattern.format(a=parts["a"], b=parts["b"], c=last, e=parts["e"], x=parts["x"])


class Maker:
    """An inventor of the facts in a patient's notes: places, institutions, numbers, web and e-mail addresses."""

    def __init__(self, names: NameDrawer, rng: np.random.Generator) -> None:
        """Map the slots with special forms to the functions that invent their values."""
        self.names, self.rng = names, rng
        self.special: Mapping[str, Callable[[], str]] = {
            "street": self._street, "city": self._city, "dept": lambda: self._dept("any"),
            "dept:field": lambda: self._dept("field"), "country": lambda: pick(rng, entries("countries")),
            "state": lambda: pick(rng, entries("states"))[:2], "url": self._url,
            "state:name": lambda: state_names()[pick(rng, entries("states"))[:2]],
            "profession": lambda: pick(rng, personas.jobs(names.known.half)),
            "industry": lambda: pick(rng, personas.lines("varied/industries")),
            "ssn:part": lambda: fill_code(pick(rng, forms("id")["ssn_part"]), rng),
        }  # fmt: skip

    def make(self, slot: str) -> str:
        """Invent a new value for a slot such as "mrn", "hospital" or "dept:field"."""
        if slot in self.special:
            return self.special[slot]()
        if slot in ("hospital", "hospital:bare", "org", "place"):
            kind = {"hospital:bare": "bare", "org": "organization", "place": "other"}.get(slot, slot)
            return self._fill(pick(self.rng, forms("place")[kind]))
        return fill_code(pick(self.rng, forms("id")["idnum" if slot == "accession" else slot]), self.rng)

    def username(self, person: Person) -> str:
        """Invent the login of a person."""
        text: str = pick(self.rng, forms("username")["any"]).format(**self._plain(person))
        return text.upper() if self.rng.integers(4) == 0 else text

    def email(self, person: Person) -> str:
        """Invent the e-mail address of a person by a drawn pattern and host."""
        host = pick(self.rng, forms("email")["hosts"]).format(p=self._place().lower())
        names = self._plain(person)
        big = {"F": names["first"].capitalize(), "L": names["last"].capitalize()}
        text: str = pick(self.rng, forms("email")["any"]).format(**names, **big, host=host)
        return text

    def _plain(self, person: Person) -> dict[str, str]:
        """Return the fields of a login pattern: plain first and last name, initials, and a drawn number."""
        first, middle, last = (
            personas.plain_letters(part) or "x" for part in (person.first, person.middle, person.last)
        )
        number = fill_code(pick(self.rng, ("#", "##", "0#", "###", "19##")), self.rng)
        return {"first": first, "last": last, "f": first[0], "m": middle[0], "l": last[0], "n": number}

    def _place(self) -> str:
        """Draw an invented place name from a beginning and an end."""
        place = forms("place")
        return f"{pick(self.rng, place['starts'].split())}{pick(self.rng, place['ends'].split())}"

    def _fill(self, pattern: str) -> str:
        """Fill an institution's pattern with drawn surnames ({L}), place {p}, city {c}, saint {g} and number {n}."""
        number = fill_code(pick(self.rng, ("[123456789]", "[123456789]#", "[123456789]##")), self.rng)
        saint = pick(self.rng, forms("place")["saints"].split())
        cities = pick(self.rng, self.names.known.cities)
        surnames = iter([self.names.surname(), self.names.surname()])
        text = re.sub(r"\{L\}", lambda _: next(surnames), pattern)
        return text.format(p=self._place(), c=cities, g=saint, n=number)

    def _city(self) -> str:
        """Draw an invented city in one of the forms of cities."""
        return self._fill(pick(self.rng, forms("place")["city"]))

    def _street(self) -> str:
        """Write an invented street address by a drawn pattern."""
        rng, place = self.rng, forms("place")
        text: str = pick(rng, place["street"]).format(
            n=fill_code(pick(rng, ("[123456789]", "[123456789]#", "[123456789]##", "[123456789]###", "1####")), rng),
            p=self._place(), k=pick(rng, place["roads"].split()), s=pick(rng, entries("streets")),
            L=self.names.surname(), u=fill_code(pick(rng, ("[123456789]", "[123456789][ABCD]", "[123]##")), rng),
            w=pick(rng, ("N.", "South", "W", "East", "NW", "S.E.", "North")), o=pick(rng, place["ordinals"].split()),
        )  # fmt: skip
        return text

    def _dept(self, form: str) -> str:
        """Write an invented department, room or floor by a drawn pattern of the form."""
        rng, dept = self.rng, forms("dept")
        pattern = fill_code(pick(rng, dept[form]), rng)
        return pattern.format(
            p=self._place(), k=int(rng.integers(2, 15)), s=pick(rng, dept["services"].split(";")),
            t=pick(rng, dept["types"].split(";")), w=pick(rng, ("North", "South", "East", "West", "Main", "Tower")),
        )  # fmt: skip

    def _url(self) -> str:
        """Write an invented web address."""
        pattern: str = pick(self.rng, forms("url")["any"])
        person = self.names.surname()
        last = personas.plain_letters(person) or "page"
        return pattern.format(p=self._place().lower(), first="the", last=last, n=fill_code("###", self.rng))
