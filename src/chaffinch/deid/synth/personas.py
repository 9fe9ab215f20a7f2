"""Invented patients: their people, places, numbers and dates, and the many ways to write each of them."""

from __future__ import annotations

import hashlib
import re
import tomllib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from importlib.resources import files
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np

from chaffinch.deid.surrogates.lists import entries
from chaffinch.text.tokens import ABBREVIATIONS

Half: TypeAlias = Literal["train", "held-out", "all"]
T = TypeVar("T")

_PARTICLES = frozenset("de la del van der den von di st. dos le bin ó uí".split())
_INVENTED = {"brand": 2, "device": 8}  # of the invented brands, every second is a drug, every eighth a device
_PATTERN = re.compile(r"#|\[(\w+)\]")
_KIN = {True: ("daughter", "sister", "niece", "mother", "aunt"), False: ("son", "brother", "nephew", "father", "uncle")}
_MONTHS = "January February March April May June July August September October November December".split()
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_SEASONS = ("winter", "spring", "summer", "fall")


@dataclass(frozen=True, slots=True)
class Person:
    """Someone in a note; `kin` is the word for a family member, and empty for others."""

    first: str
    middle: str
    last: str
    female: bool
    label: str
    kin: str = ""


@dataclass(frozen=True, slots=True)
class Patient:
    """One patient and all that stays the same from note to note."""

    key: str
    person: Person
    family: tuple[Person, ...]
    clinicians: tuple[Person, ...]
    born: date
    event: date  # when the trouble began
    visits: tuple[date, ...]  # one per note, with one before the first and one after the last
    phone: Mapping[str, str]
    facts: Mapping[str, str]  # mrn, account, email, street, city, hospital, profession


@dataclass(frozen=True, slots=True)
class Lists:
    """What one half of the names draws on; `words` are look-alikes and other words that identify nobody."""

    first: Mapping[bool, tuple[str, ...]]  # by female; the most frequent names come first
    last: tuple[str, ...]
    rare: Mapping[str, tuple[str, ...]]  # F, M and L: names with accents and particles
    words: Mapping[str, tuple[str, ...]]
    templates: Mapping[str, tuple[str, ...]]


def pick(rng: np.random.Generator, choices: Sequence[T]) -> T:
    """One of the choices, each as likely."""
    return choices[int(rng.integers(len(choices)))]


@cache
def lines(name: str) -> tuple[str, ...]:
    """The lines of a packaged text file, without remarks; a written \\n is a line end."""
    text = (files("chaffinch.deid.synth") / "templates" / f"{name}.txt").read_text(encoding="utf-8")
    return tuple(line.replace("\\n", "\n") for line in text.splitlines() if line and not line.startswith("# "))


@cache
def pages(name: str) -> tuple[str, ...]:
    """The whole notes of a packaged text file, between lines of =====."""
    text = (files("chaffinch.deid.synth") / "templates" / f"{name}.txt").read_text(encoding="utf-8")
    return tuple(own.strip("\n") for own in re.split(r"(?m)^=====$", text) if own.strip())


@cache
def table(name: str) -> dict[str, Any]:
    """The content of a packaged TOML file."""
    return tomllib.loads((files("chaffinch.deid.synth") / "templates" / f"{name}.toml").read_text(encoding="utf-8"))


@cache
def pools() -> dict[str, tuple[str, ...]]:
    """Every pool of templates, by name: sentences, heads and feet of notes."""
    folder = files("chaffinch.deid.synth") / "templates" / "sentences"
    names = sorted(file.name.removesuffix(".txt") for file in folder.iterdir() if file.name.endswith(".txt"))
    ends = ("headers", "letterheads", "signatures", "closings")
    return {name: lines(f"sentences/{name}") for name in names} | {name: lines(name) for name in ends}


def half_of(name: str) -> Half | None:
    """The half a name belongs to, by a hash of its words; None if its words belong to different ones.

    >>> half_of("de la Torre") == half_of("TORRE")
    True
    """
    plain = "".join(c for c in unicodedata.normalize("NFD", name.casefold()) if not unicodedata.combining(c))
    words = [word for word in plain.split() if word not in _PARTICLES] or [plain]
    odd = {_hash(word) & 1 for word in words}
    return None if len(odd) > 1 else "held-out" if odd.pop() else "train"


def _hash(text: str) -> int:
    return hashlib.sha256(text.encode()).digest()[0]


@cache
def jobs(half: Half) -> tuple[str, ...]:
    """The professions of a half."""
    own = lines("varied/professions")
    return own if half == "all" else tuple(job for job in own if (_hash(job) & 1) == (half == "held-out"))


def _mine(template: str, half: Half) -> bool:
    """A fifth of the templates is for train alone and a fifth for held-out alone: each site has habits of its own."""
    share = _hash(template) % 5
    return half == "all" or share > 1 or (half == "train") == (share == 0)


@cache
def reserved() -> frozenset[str]:
    """Words that templates and word lists write with a capital: nobody is called so, or a name would go unlabelled."""
    words = table("words")
    texts = [text for pool in pools().values() for text in pool]
    for part in table("kinds").values():
        texts += [title for own in part.values() for title in own["titles"]]
    texts += [*words["split"].values(), *words["word"].values(), _invented()]
    found = re.findall(r"[^\W\d_]+", " ".join(re.sub(r"\{.*?\}", " ", text) for text in texts))
    return frozenset(word.casefold() for word in found if word[0].isupper())


def _invented() -> str:
    parts = table("words")["invented"]
    return " ".join(start + end for start in parts["starts"].split() for end in parts["ends"].split())


@cache
def lists(half: Half) -> Lists:
    """The names and words of a half; "all" is both."""

    def own(names: Sequence[str]) -> tuple[str, ...]:
        mine = [name for name in names if half in ("all", half_of(name)) and name not in ABBREVIATIONS]  # "Jan."
        return tuple(name for name in mine if not reserved() & set(re.findall(r"[^\W\d_]+", name.casefold())))

    def looks_alike(text: str) -> tuple[str, ...]:
        words = [word.strip() for word in (text.split(";") if ";" in text else text.split())]
        return tuple(word for word in words if half in ("all", half_of(word.replace(" ", "-"))))

    rare = {mark: own([line[2:] for line in entries("names-more") if line[0] == mark]) for mark in "FML"}
    words = {key: looks_alike(text) for key, text in table("words")["split"].items()}
    words |= {key: words[key] + looks_alike(_invented())[::every] for key, every in _INVENTED.items()}
    words |= {key: tuple(text.split(";")) for key, text in table("words")["word"].items()}
    first = {
        True: own(entries("names-first-female")),
        False: own(entries("names-first-male")),
    }
    templates = {key: tuple(text for text in pool if _mine(text, half)) for key, pool in pools().items()}
    return Lists(first, own(entries("names-last")), rare, words, templates)


def digits(pattern: str, rng: np.random.Generator) -> str:
    """A number of the pattern: # is any digit, [xyz] one of these."""
    return _PATTERN.sub(lambda found: pick(rng, found[1] or "0123456789"), pattern)


def draw(number: int, notes: int, half: Half, rng: np.random.Generator) -> Patient:
    """A patient with the given number of notes to come."""
    names = _Names(lists(half), rng)
    female = bool(rng.integers(2))
    person = names.person(female, "PATIENT")
    family = []
    for place in range(int(rng.integers(1, 4))):
        theirs = bool(rng.integers(2)) if place else not female
        kin = pick(rng, _KIN[theirs]) if place else "husband" if female else "wife"
        last = person.last if rng.integers(4) else None
        family.append(names.person(theirs, "FAMILY", last=last, kin=kin))
    clinicians = [names.person(bool(rng.integers(2)), "DOCTOR") for _ in range(int(rng.integers(2, 5)))]
    visits = [date(int(rng.integers(1996, 2024)), 1, 1) + timedelta(int(rng.integers(365)))]
    for _ in range(notes + 1):
        visits.append(visits[-1] + timedelta(int(rng.integers(8, 15 if rng.integers(3) == 0 else 200))))
    event = visits[0] - timedelta(int(rng.integers(30, 365 * 6)))
    born = event - timedelta(int(rng.integers(365 * 18, 365 * 88)))
    phone = {"a": digits("[2345679][0123456789]#", rng), "b": digits("[23456789]##", rng), "c": digits("####", rng)}
    phone["e"] = digits("[123456789]###", rng)
    facts = _facts(person, rng)
    return Patient(f"p{number:04d}", person, tuple(family), tuple(clinicians), born, event, tuple(visits), phone, facts)


class _Names:
    """Draws people whose first names and surnames differ from one another."""

    def __init__(self, own: Lists, rng: np.random.Generator) -> None:
        self.own, self.rng, self.taken = own, rng, set[str]()

    def person(self, female: bool, label: str, *, last: str | None = None, kin: str = "") -> Person:
        first = self._draw(self.own.first[female], self.own.rare["F" if female else "M"])
        middle = pick(self.rng, self.own.first[female])
        if last is None:
            last = self._draw(self.own.last, self.own.rare["L"])
            if self.rng.integers(40) == 0 and " " not in last and "-" not in last:
                last = f"{last}-{self._draw(self.own.last, self.own.last)}"
        return Person(first, middle, last, female, label, kin)

    def _draw(self, common: Sequence[str], rare: Sequence[str]) -> str:
        while True:
            if self.rng.integers(14) == 0:
                name = pick(self.rng, rare)
            else:  # the frequent names and the long tail, half and half
                name = common[int(self.rng.integers(_upto(len(common), self.rng)))]
            if name.casefold() not in self.taken:
                self.taken.add(name.casefold())
                return name


def _upto(number: int, rng: np.random.Generator) -> int:
    return number if rng.integers(2) else 1 + int(rng.integers(1 + int(rng.integers(number))))


def _facts(person: Person, rng: np.random.Generator) -> dict[str, str]:
    forms = table("forms")
    host = pick(rng, forms["email"]["hosts"])
    plain = {key: letters(value) for key, value in (("f", person.first), ("l", person.last))}
    email = pick(rng, forms["email"]["any"]).format(
        f=plain["f"][0], l=plain["l"], first=plain["f"], last=plain["l"], n=digits("##", rng), host=host
    )
    city = pick(rng, forms["place"]["city"]).format(p=_place(rng))
    return {
        "mrn": digits(pick(rng, forms["pattern"]["mrn"]), rng),
        "account": digits(pick(rng, forms["pattern"]["account"]), rng),
        "email": email,
        "city": city,
        "street": _street(rng),
        "hospital": pick(rng, forms["place"]["hospital"]).format(
            p=_place(rng), s=pick(rng, forms["place"]["saints"].split()) + "'s"
        ),
        "profession": pick(rng, entries("professions")),
    }


def letters(name: str) -> str:
    """The plain letters of a name, as addresses in the net write it."""
    swaps = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "ß": "ss"})
    return re.sub(r"[^a-z]", "", unicodedata.normalize("NFD", name.lower().translate(swaps)))


def _place(rng: np.random.Generator) -> str:
    place = table("forms")["place"]
    return f"{pick(rng, place['starts'].split())}{pick(rng, place['ends'].split())}"


def _street(rng: np.random.Generator) -> str:
    place = table("forms")["place"]
    text: str = pick(rng, place["street"]).format(
        n=digits(pick(rng, ["[123456789]#", "[123456789]##", "[123456789]###"]), rng),
        p=_place(rng),
        k=pick(rng, place["roads"].split()),
        t=pick(rng, place["trees"].split()),
        u=digits(pick(rng, ["[123456789]", "[123456789][ABCD]", "[123]##"]), rng),
        w=pick(rng, ["N.", "South", "W", "East"]),
        o=pick(rng, place["ordinals"].split()),
    )
    return text


def written_name(person: Person, form: str, rng: np.random.Generator) -> str:
    """A form of a name: full, plain, last, first, listed, initial or initials; also with _upper or _lower."""
    kind, _, case = form.partition("_")
    text: str = pick(rng, table("forms")["person"][kind]).format(
        F=person.first, M=person.middle, L=person.last, f=person.first[0], m=person.middle[0], l=person.last[0].upper()
    )
    return text.upper() if case == "upper" else text.lower() if case == "lower" else text


def written_date(day: date, form: str, rng: np.random.Generator) -> str:
    """A form of a date: any, number, short, month, year or weekday.

    >>> written_date(date(2012, 3, 7), "number", np.random.default_rng(0))
    '20120307'
    """
    month, weekday = _MONTHS[day.month - 1], _DAYS[day.weekday()]
    ending = "th" if 10 < day.day < 14 else {1: "st", 2: "nd", 3: "rd"}.get(day.day % 10, "th")
    text: str = pick(rng, table("forms")["date"][form]).format(
        d=day.day, dd=f"{day.day:02d}", m=day.month, mm=f"{day.month:02d}", mon=month[:3], month=month,
        yy=f"{day.year % 100:02d}", yyyy=day.year, wd=weekday[:3], weekday=weekday, th=f"{day.day}{ending}",
        season=_SEASONS[day.month % 12 // 3], decade=day.year // 10 * 10,
    )  # fmt: skip
    return text


def short_hospital(name: str, rng: np.random.Generator) -> str:
    """What staff call a hospital: its letters, or its name without the last word."""
    words = name.split()
    letters = "".join(word[0] for word in words if word[0].isupper())
    shorter = [" ".join(words[:-1]), " ".join(words[: 2 if len(words[0]) < 6 else 1])]
    return pick(rng, [letters, *shorter] if len(letters) > 2 else shorter)
