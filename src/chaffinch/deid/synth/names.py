"""Names of varied notes: frequent and rare ones, with accents, and invented names that are on no list.

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
    """Return the names and cities for "train", "held-out" or "all", without abbreviations and hidden words, cached."""

    def select(names: Sequence[str]) -> tuple[str, ...]:
        """Return the names of the chosen half, each once, without abbreviations and hidden words."""
        fits = [name for name in dict.fromkeys(names) if name not in ABBREVIATIONS and len(name) > 1]
        fits = [name for name in fits if not hidden.intersection(name.lower().replace("-", " ").split())]
        return tuple(name for name in fits if half == "all" or personas.half_of(name.replace("-", " ")) == half)

    listed = personas.lists(half)
    more = entries("given-more")
    first = {
        female: select([*listed.first[female], *(line[2:] for line in more if line[0] == mark)])
        for female, mark in ((True, "F"), (False, "M"))
    }
    cities = tuple(name for name in entries("cities") if half in ("all", personas.half_of(name.replace(" ", "-"))))
    cities = tuple(name for name in cities if not hidden.intersection(name.lower().split()))
    rare = {mark: select(names) for mark, names in listed.rare.items()}
    last = select([*listed.last, *entries("surnames-more")])
    return NamesOfHalf(half, first, last, tuple(filter(word_lists().is_common, last)), rare, cities)


class NameDrawer:
    """A random source of people whose names all differ."""

    def __init__(self, half: Half, rng: np.random.Generator, hidden: frozenset[str] = frozenset()) -> None:
        """Begin with the names of a half, without the hidden ones, and none drawn yet."""
        self.known, self.rng, self.taken = names_of_half(half, hidden), rng, set[str]()

    def person(self, female: bool, label: str, *, last: str | None = None, kin: str = "") -> Person:
        """Draw a person with a first name and surname nobody has yet; `last` gives family the patient's surname."""
        first = self._new(lambda: self._first(female))
        middle = pick(self.rng, self.known.first[female])
        return Person(first, middle, last or self._new(self._last), female, label, kin)

    def surname(self) -> str:
        """Draw a new surname for someone who is not in the notes."""
        return self._new(self._last)

    def _new(self, draw: Callable[[], str]) -> str:
        """Call `draw` until its name, case ignored, is not taken; mark it as taken and return it."""
        while True:
            name = draw()
            if name.casefold() not in self.taken:
                self.taken.add(name.casefold())
                return name

    def _first(self, female: bool) -> str:
        """Draw a first name: one in 20 rare, three invented, one double if it can be, the others listed."""
        chance = int(self.rng.integers(20))
        if chance == 0:
            return pick(self.rng, self.known.rare["F" if female else "M"])
        if chance < 4:
            return self._invent("first")
        name = self._draw_listed(self.known.first[female])
        return f"{name}-{self._draw_listed(self.known.first[female])}" if chance == 19 and "-" not in name else name

    def _last(self) -> str:
        """Draw a surname: mostly listed, else rare, invented, a common word, with a particle or double."""
        chance = int(self.rng.integers(20))
        if chance == 0:
            return pick(self.rng, self.known.rare["L"])
        if chance < 4:
            return self._invent("surname")
        if chance in (5, 6) and self.known.words:
            return pick(self.rng, self.known.words)
        if chance == 4:
            particle: str = pick(self.rng, personas.table("varied/names")["surname"]["particles"].split(";"))
            joined = particle[-1] in "'-" or particle in ("Mc", "Mac", "Fitz")
            return particle + ("" if joined else " ") + self._invent("surname")
        name = self._draw_listed(self.known.last)
        if chance == 19 and name.isalpha():
            return name + pick(self.rng, ("-", "-", " ")) + self._draw_listed(self.known.last)
        return name

    def _draw_listed(self, names: Sequence[str]) -> str:
        """Draw a listed name: half of the time from the whole list, else from its most frequent names."""
        limit = (
            len(names) if self.rng.integers(2) else 1 + int(self.rng.integers(1 + int(self.rng.integers(len(names)))))
        )
        return names[int(self.rng.integers(limit))]

    def _invent(self, kind: str) -> str:
        """Invent a name of this half from syllables until its length fits; `kind` is "first" or "surname"."""
        parts = personas.table("varied/names")[kind]
        while True:
            middle = pick(self.rng, parts["middles"].split()) if self.rng.integers(3) else ""
            name: str = pick(self.rng, parts["starts"].split()) + middle + pick(self.rng, parts["ends"].split())
            if 3 < len(name) < 14 and (self.known.half == "all" or personas.half_of(name) == self.known.half):
                return name


def nickname(person: Person) -> str:
    """Return a nickname made of the first name's first syllable, always the same; the name itself if that is short.

    >>> [nickname(Person(first, "A", "Hale", False, "PATIENT")) for first in ("Robert", "Susan")]
    ['Robbie', 'Susi']
    """
    sound = _SOUND.match(person.first.lower())
    if sound is None or len(sound[0]) < 3:
        return person.first
    ending = ("", "i", f"{sound[0][-1]}ie", "o")[len(person.first) % 4]
    return (sound[0] + ending).capitalize()
