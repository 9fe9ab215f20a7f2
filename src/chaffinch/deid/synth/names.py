"""Names of the varied notes: frequent ones, the long tail, accents, and names nobody has listed.

A name drawn for one half is never drawn for the other: its half is that of its words (`personas.half_of`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from chaffinch.deid.detect.word_lists import word_lists
from chaffinch.deid.surrogates.lists import entries
from chaffinch.deid.synth import personas
from chaffinch.deid.synth.personas import Half, Person, pick
from chaffinch.text.tokens import ABBREVIATIONS

_SOUND = re.compile(r"[^aeiouy]*[aeiouy]+[^\Waeiouy]")


@dataclass(frozen=True, slots=True)
class NamesOfHalf:
    """The names and cities of a half."""

    half: Half
    first: dict[bool, tuple[str, ...]]  # by female; the most frequent come first
    last: tuple[str, ...]
    words: tuple[str, ...]  # surnames that are common words too: Fields, Rose, Bishop
    rare: dict[str, tuple[str, ...]]  # F, M and L
    cities: tuple[str, ...]


@lru_cache(maxsize=8)
def names_of_half(half: Half, hidden: frozenset[str] = frozenset()) -> NamesOfHalf:
    """Return what a half draws its names from, without hidden words (`languages.hidden_words`); "all" is both."""

    def mine(names: Sequence[str]) -> tuple[str, ...]:
        fits = [name for name in dict.fromkeys(names) if name not in ABBREVIATIONS and len(name) > 1]
        fits = [name for name in fits if not hidden.intersection(name.lower().replace("-", " ").split())]
        return tuple(name for name in fits if half == "all" or personas.half_of(name.replace("-", " ")) == half)

    listed = personas.lists(half)
    more = entries("given-more")
    first = {
        female: mine([*listed.first[female], *(line[2:] for line in more if line[0] == mark)])
        for female, mark in ((True, "F"), (False, "M"))
    }
    cities = tuple(name for name in entries("cities") if half in ("all", personas.half_of(name.replace(" ", "-"))))
    cities = tuple(name for name in cities if not hidden.intersection(name.lower().split()))
    rare = {mark: mine(names) for mark, names in listed.rare.items()}
    last = mine([*listed.last, *entries("surnames-more")])
    return NamesOfHalf(half, first, last, tuple(filter(word_lists().is_common, last)), rare, cities)


class NameDrawer:
    """Draws people whose names differ from one another."""

    def __init__(self, half: Half, rng: np.random.Generator, hidden: frozenset[str] = frozenset()) -> None:
        self.known, self.rng, self.taken = names_of_half(half, hidden), rng, set[str]()

    def person(self, female: bool, label: str, *, last: str | None = None, kin: str = "") -> Person:
        """Someone new; a family member may bear the patient's surname."""
        first = self._new(lambda: self._first(female))
        middle = pick(self.rng, self.known.first[female])
        return Person(first, middle, last or self._new(self._last), female, label, kin)

    def surname(self) -> str:
        """A surname of someone who is not in the notes."""
        return self._new(self._last)

    def _new(self, draw: Callable[[], str]) -> str:
        while True:
            name = draw()
            if name.casefold() not in self.taken:
                self.taken.add(name.casefold())
                return name

    def _first(self, female: bool) -> str:
        chance = int(self.rng.integers(20))
        if chance == 0:
            return pick(self.rng, self.known.rare["F" if female else "M"])
        if chance < 4:
            return self._invented("first")
        name = self._listed(self.known.first[female])
        return f"{name}-{self._listed(self.known.first[female])}" if chance == 19 and "-" not in name else name

    def _last(self) -> str:
        chance = int(self.rng.integers(20))
        if chance == 0:
            return pick(self.rng, self.known.rare["L"])
        if chance < 4:
            return self._invented("surname")
        if chance in (5, 6) and self.known.words:
            return pick(self.rng, self.known.words)
        if chance == 4:
            particle: str = pick(self.rng, personas.table("varied/names")["surname"]["particles"].split(";"))
            joined = particle[-1] in "'-" or particle in ("Mc", "Mac", "Fitz")
            return particle + ("" if joined else " ") + self._invented("surname")
        name = self._listed(self.known.last)
        if chance == 19 and name.isalpha():
            return name + pick(self.rng, ("-", "-", " ")) + self._listed(self.known.last)
        return name

    def _listed(self, names: Sequence[str]) -> str:
        """A listed name: from the whole list, or from its frequent end."""
        upto = (
            len(names) if self.rng.integers(2) else 1 + int(self.rng.integers(1 + int(self.rng.integers(len(names)))))
        )
        return names[int(self.rng.integers(upto))]

    def _invented(self, kind: str) -> str:
        parts = personas.table("varied/names")[kind]
        while True:
            middle = pick(self.rng, parts["middles"].split()) if self.rng.integers(3) else ""
            name: str = pick(self.rng, parts["starts"].split()) + middle + pick(self.rng, parts["ends"].split())
            if 3 < len(name) < 14 and (self.known.half == "all" or personas.half_of(name) == self.known.half):
                return name


def nick(person: Person) -> str:
    """What friends call someone: the first sound of the first name, always the same for a name.

    >>> nick(Person("Robert", "A", "Hale", False, "PATIENT")), nick(Person("Susan", "A", "Hale", True, "PATIENT"))
    ('Robbie', 'Susi')
    """
    sound = _SOUND.match(person.first.lower())
    if sound is None or len(sound[0]) < 3:
        return person.first
    ending = ("", "i", f"{sound[0][-1]}ie", "o")[len(person.first) % 4]
    return (sound[0] + ending).capitalize()
