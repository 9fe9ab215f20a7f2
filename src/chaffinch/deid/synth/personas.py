"""Invented patients: their people, places, numbers and dates, and the written forms of each."""

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
_EVERY_BRAND = {"brand": 2, "device": 8}  # of the invented brands, every second is a drug, every eighth a device
_PATTERN = re.compile(r"#|\[(\w+)\]")
_KIN = {True: ("daughter", "sister", "niece", "mother", "aunt"), False: ("son", "brother", "nephew", "father", "uncle")}
_MONTHS = "January February March April May June July August September October November December".split()
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_SEASONS = ("winter", "spring", "summer", "fall")


@dataclass(frozen=True, slots=True)
class Person:
    """A person in a note; `kin` is the word for a family member, and empty for others."""

    first: str
    middle: str
    last: str
    female: bool
    label: str
    kin: str = ""


@dataclass(frozen=True, slots=True)
class Patient:
    """A patient, and the facts that all notes of the patient share."""

    key: str
    person: Person
    family: tuple[Person, ...]
    clinicians: tuple[Person, ...]
    born: date
    event: date  # the onset of the illness
    visits: tuple[date, ...]  # one per note, with one before the first and one after the last
    phone: Mapping[str, str]
    facts: Mapping[str, str]  # mrn, account, email, street, city, hospital, profession


@dataclass(frozen=True, slots=True)
class Lists:
    """The names, words and templates of one half; `words` are look-alikes and other words that identify nobody."""

    first: Mapping[bool, tuple[str, ...]]  # by female; the most frequent names come first
    last: tuple[str, ...]
    rare: Mapping[str, tuple[str, ...]]  # F, M and L: names with accents and particles
    words: Mapping[str, tuple[str, ...]]
    templates: Mapping[str, tuple[str, ...]]


def pick(rng: np.random.Generator, choices: Sequence[T]) -> T:
    """Draw one of the choices, all equally likely."""
    return choices[int(rng.integers(len(choices)))]


@cache
def lines(name: str) -> tuple[str, ...]:
    """Return the lines of a packaged text file without comments; a written \\n becomes a line end."""
    text = (files("chaffinch.deid.synth") / "templates" / f"{name}.txt").read_text(encoding="utf-8")
    return tuple(line.replace("\\n", "\n") for line in text.splitlines() if line and not line.startswith("# "))


@cache
def pages(name: str) -> tuple[str, ...]:
    """Return the whole notes of a packaged text file, which lines of ===== separate."""
    text = (files("chaffinch.deid.synth") / "templates" / f"{name}.txt").read_text(encoding="utf-8")
    return tuple(page.strip("\n") for page in re.split(r"(?m)^=====$", text) if page.strip())


@cache
def table(name: str) -> dict[str, Any]:
    """Return the content of a TOML file among the packaged templates, such as `table("forms")`."""
    return tomllib.loads((files("chaffinch.deid.synth") / "templates" / f"{name}.toml").read_text(encoding="utf-8"))


@cache
def pools() -> dict[str, tuple[str, ...]]:
    """Return all pools of templates by name: sentences, headers and closings of notes."""
    folder = files("chaffinch.deid.synth") / "templates" / "sentences"
    names = sorted(file.name.removesuffix(".txt") for file in folder.iterdir() if file.name.endswith(".txt"))
    ends = ("headers", "letterheads", "signatures", "closings")
    return {name: lines(f"sentences/{name}") for name in names} | {name: lines(name) for name in ends}


def half_of(name: str) -> Half | None:
    """Return "train" or "held-out" for a name, by a hash of its words; None if its words are of different halves.

    >>> half_of("de la Torre") == half_of("TORRE")
    True
    """
    plain = "".join(c for c in unicodedata.normalize("NFD", name.casefold()) if not unicodedata.combining(c))
    words = [word for word in plain.split() if word not in _PARTICLES] or [plain]
    odd = {_hash(word) & 1 for word in words}
    return None if len(odd) > 1 else "held-out" if odd.pop() else "train"


def _hash(text: str) -> int:
    """Return the first byte of a text's SHA-256, which is the same in every run."""
    return hashlib.sha256(text.encode()).digest()[0]


@cache
def jobs(half: Half) -> tuple[str, ...]:
    """Return the professions for "train" or for "held-out", divided by a hash; for "all" every one."""
    every = lines("varied/professions")
    return every if half == "all" else tuple(job for job in every if (_hash(job) & 1) == (half == "held-out"))


def _has_template(half: Half, template: str) -> bool:
    """Tell whether notes of a half may use a template: a fifth is for train alone, a fifth for held-out alone."""
    share = _hash(template) % 5
    return half == "all" or share > 1 or (half == "train") == (share == 0)


@cache
def words_with_capital() -> frozenset[str]:
    """Return, case-folded, words that templates and lists capitalise, which as names would go unlabelled."""
    words = table("words")
    texts = [text for pool in pools().values() for text in pool]
    for part in table("kinds").values():
        texts += [title for entry in part.values() for title in entry["titles"]]
    texts += [*words["split"].values(), *words["word"].values(), _brand_names()]
    found = re.findall(r"[^\W\d_]+", " ".join(re.sub(r"\{.*?\}", " ", text) for text in texts))
    return frozenset(word.casefold() for word in found if word[0].isupper())


def _brand_names() -> str:
    """Return all invented brand names, separated by blanks."""
    parts = table("words")["invented"]
    return " ".join(start + end for start in parts["starts"].split() for end in parts["ends"].split())


@cache
def lists(half: Half) -> Lists:
    """Return names, words and templates of one half, without names that look like other words; "all" is both."""

    def select(names: Sequence[str]) -> tuple[str, ...]:
        """Return the names of the chosen half, without abbreviations and words that need their capital."""
        of_half = [name for name in names if half in ("all", half_of(name)) and name not in ABBREVIATIONS]  # "Jan."
        return tuple(
            name for name in of_half if not words_with_capital() & set(re.findall(r"[^\W\d_]+", name.casefold()))
        )

    def look_alikes(text: str) -> tuple[str, ...]:
        """Return the entries of a list, split at semicolons or else at blanks, that belong to the half."""
        words = [word.strip() for word in (text.split(";") if ";" in text else text.split())]
        return tuple(word for word in words if half in ("all", half_of(word.replace(" ", "-"))))

    rare = {mark: select([line[2:] for line in entries("names-more") if line[0] == mark]) for mark in "FML"}
    words = {key: look_alikes(text) for key, text in table("words")["split"].items()}
    words |= {key: words[key] + look_alikes(_brand_names())[::every] for key, every in _EVERY_BRAND.items()}
    words |= {key: tuple(text.split(";")) for key, text in table("words")["word"].items()}
    first = {
        True: select(entries("names-first-female")),
        False: select(entries("names-first-male")),
    }
    templates = {key: tuple(text for text in pool if _has_template(half, text)) for key, pool in pools().items()}
    return Lists(first, select(entries("names-last")), rare, words, templates)


def fill_digits(pattern: str, rng: np.random.Generator) -> str:
    """Fill a pattern at random: # is any digit, [xyz] one of these characters."""
    return _PATTERN.sub(lambda match: pick(rng, match[1] or "0123456789"), pattern)


def draw_patient(number: int, notes: int, half: Half, rng: np.random.Generator) -> Patient:
    """Draw a patient: family, clinicians, dates of `notes` + 2 visits, birth and event, phone and facts."""
    names = _Names(lists(half), rng)
    female = bool(rng.integers(2))
    person = names.person(female, "PATIENT")
    family = []
    for index in range(int(rng.integers(1, 4))):
        theirs = bool(rng.integers(2)) if index else not female
        kin = pick(rng, _KIN[theirs]) if index else "husband" if female else "wife"
        last = person.last if rng.integers(4) else None
        family.append(names.person(theirs, "FAMILY", last=last, kin=kin))
    clinicians = [names.person(bool(rng.integers(2)), "DOCTOR") for _ in range(int(rng.integers(2, 5)))]
    visits = [date(int(rng.integers(1996, 2024)), 1, 1) + timedelta(int(rng.integers(365)))]
    for _ in range(notes + 1):
        visits.append(visits[-1] + timedelta(int(rng.integers(8, 15 if rng.integers(3) == 0 else 200))))
    event = visits[0] - timedelta(int(rng.integers(30, 365 * 6)))
    born = event - timedelta(int(rng.integers(365 * 18, 365 * 88)))
    phone = {
        "a": fill_digits("[2345679][0123456789]#", rng),
        "b": fill_digits("[23456789]##", rng),
        "c": fill_digits("####", rng),
    }
    phone["e"] = fill_digits("[123456789]###", rng)
    facts = _facts(person, rng)
    return Patient(f"p{number:04d}", person, tuple(family), tuple(clinicians), born, event, tuple(visits), phone, facts)


class _Names:
    """A random source of people whose first names and surnames all differ."""

    def __init__(self, names: Lists, rng: np.random.Generator) -> None:
        """Begin with these lists of names, and none drawn yet."""
        self.names, self.rng, self.taken = names, rng, set[str]()

    def person(self, female: bool, label: str, *, last: str | None = None, kin: str = "") -> Person:
        """Draw a person whose first name and surname nobody else has; `last` gives family the patient's surname."""
        first = self._draw(self.names.first[female], self.names.rare["F" if female else "M"])
        middle = pick(self.rng, self.names.first[female])
        if last is None:
            last = self._draw(self.names.last, self.names.rare["L"])
            if self.rng.integers(40) == 0 and " " not in last and "-" not in last:
                last = f"{last}-{self._draw(self.names.last, self.names.last)}"
        return Person(first, middle, last, female, label, kin)

    def _draw(self, common: Sequence[str], rare: Sequence[str]) -> str:
        """Draw a name that is not taken: one in fourteen rare, the others half frequent, half from the long tail."""
        while True:
            if self.rng.integers(14) == 0:
                name = pick(self.rng, rare)
            else:  # the frequent names and the long tail, half and half
                name = common[int(self.rng.integers(_limit(len(common), self.rng)))]
            if name.casefold() not in self.taken:
                self.taken.add(name.casefold())
                return name


def _limit(number: int, rng: np.random.Generator) -> int:
    """Draw how many of the most frequent names may be chosen: half of the time all, else mostly few."""
    return number if rng.integers(2) else 1 + int(rng.integers(1 + int(rng.integers(number))))


def _facts(person: Person, rng: np.random.Generator) -> dict[str, str]:
    """Draw a person's record number, account, e-mail, city, street, hospital and profession, by slot name."""
    forms = table("forms")
    host = pick(rng, forms["email"]["hosts"])
    plain = {key: plain_letters(value) for key, value in (("f", person.first), ("l", person.last))}
    email = pick(rng, forms["email"]["any"]).format(
        f=plain["f"][0], l=plain["l"], first=plain["f"], last=plain["l"], n=fill_digits("##", rng), host=host
    )
    city = pick(rng, forms["place"]["city"]).format(p=_place(rng))
    return {
        "mrn": fill_digits(pick(rng, forms["pattern"]["mrn"]), rng),
        "account": fill_digits(pick(rng, forms["pattern"]["account"]), rng),
        "email": email,
        "city": city,
        "street": _street(rng),
        "hospital": pick(rng, forms["place"]["hospital"]).format(
            p=_place(rng), s=pick(rng, forms["place"]["saints"].split()) + "'s"
        ),
        "profession": pick(rng, entries("professions")),
    }


def plain_letters(name: str) -> str:
    """Return the letters a to z of a name in lower case, as in e-mail addresses."""
    swaps = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "ß": "ss"})
    return re.sub(r"[^a-z]", "", unicodedata.normalize("NFD", name.lower().translate(swaps)))


def _place(rng: np.random.Generator) -> str:
    """Draw an invented place name from a beginning and an end."""
    place = table("forms")["place"]
    return f"{pick(rng, place['starts'].split())}{pick(rng, place['ends'].split())}"


def _street(rng: np.random.Generator) -> str:
    """Write an invented street address by a drawn pattern."""
    place = table("forms")["place"]
    text: str = pick(rng, place["street"]).format(
        n=fill_digits(pick(rng, ["[123456789]#", "[123456789]##", "[123456789]###"]), rng),
        p=_place(rng),
        k=pick(rng, place["roads"].split()),
        t=pick(rng, place["trees"].split()),
        u=fill_digits(pick(rng, ["[123456789]", "[123456789][ABCD]", "[123]##"]), rng),
        w=pick(rng, ["N.", "South", "W", "East"]),
        o=pick(rng, place["ordinals"].split()),
    )
    return text


def write_name(person: Person, form: str, rng: np.random.Generator) -> str:
    """Write a name in a form: full, plain, last, first, listed, initial or initials; also with _upper or _lower."""
    kind, _, case = form.partition("_")
    text: str = pick(rng, table("forms")["person"][kind]).format(
        F=person.first, M=person.middle, L=person.last, f=person.first[0], m=person.middle[0], l=person.last[0].upper()
    )
    return text.upper() if case == "upper" else text.lower() if case == "lower" else text


def write_date(day: date, form: str, rng: np.random.Generator) -> str:
    """Write a date in a form: any, number, short, month, year or weekday.

    >>> write_date(date(2012, 3, 7), "number", np.random.default_rng(0))
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
    """Return a short name of a hospital: its initials, its name without the last word, or its first words."""
    words = name.split()
    letters = "".join(word[0] for word in words if word[0].isupper())
    shorter = [" ".join(words[:-1]), " ".join(words[: 2 if len(words[0]) < 6 else 1])]
    return pick(rng, [letters, *shorter] if len(letters) > 2 else shorter)
