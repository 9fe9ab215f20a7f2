"""The packaged lists from which surrogates are drawn, and what they tell of a name.

First names and surnames are those of the generated notes and of the census, with more from `lists`; which words are
first names is also read off the language packs. `recipes/surrogate_lists.py` makes the larger lists.

Every initial has equally many names of a sort, so that the initial of a surrogate says nothing: where the census has
fewer, names are put together of the beginnings and ends of others.
"""

from __future__ import annotations

import gzip
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import Any

from chaffinch.deid import personas
from chaffinch.deid.surrogate_letters import fold
from chaffinch.features import packs

FEMALE, MALE, BOTH, UNTOLD, SURNAME = "F", "M", "B", "U", "S"
# Names of each initial. First names are known words, which never meet: as many as the census has with its commonest
# initial will do. A surname may be any word: of 32,768, two of a patient's 50 met in 10 of 6,000 patients if no list
# has any of them, in 4 of 6,000 if the lists have nine of ten, never if they have all; a run settles the rest.
SIZES: Mapping[str, int] = {FEMALE: 512, MALE: 128, SURNAME: 1 << 15}
_LETTERS = range(5, 12)  # of a name that is put together


@dataclass(frozen=True, slots=True)
class Names:
    """All names by folded word, and by role (F, M or S) and first letter, in the order of the lists."""

    roles: Mapping[str, str]  # F and M; B both; U a first name of untold gender; S a surname
    real: Mapping[tuple[str, str], tuple[str, ...]]

    def places(self, role: str, letter: str) -> Mapping[str, int]:
        """Return the place of each folded name of a role and initial among those that are drawn for one another."""
        return _places(role, letter)

    def drawable(self, role: str, letter: str) -> tuple[str, ...]:
        """Return all names of a role and initial that may be drawn: equally many for every initial."""
        return _drawable(role, letter)


@cache
def entries(name: str) -> tuple[str, ...]:
    """The lines of a packaged list."""
    text = (files("chaffinch.deid") / "lists" / f"{name}.txt").read_text(encoding="utf-8")
    return tuple(text.splitlines())


@cache
def surnames() -> tuple[str, ...]:
    """Return the surnames of the census, the frequent ones first."""
    content = (files("chaffinch.deid") / "lists" / "surnames.txt.gz").read_bytes()
    return tuple(gzip.decompress(content).decode().splitlines())


@cache
def _name_parts() -> Mapping[str, Any]:
    return tomllib.loads((files("chaffinch.deid") / "lists" / "name-parts.toml").read_text(encoding="utf-8"))


@cache
def _drawable(role: str, letter: str) -> tuple[str, ...]:
    real = names().real[role, letter][: SIZES[role]]
    known = packs.pack("en").common | {name.lower() for name in real}
    return (*real, *islice(_put_together(role, letter, known), SIZES[role] - len(real)))


def _put_together(role: str, letter: str, known: frozenset[str]) -> Iterator[str]:
    """Give names of beginnings and ends of others that are no known words, the likeliest first, each once."""
    parts = _name_parts()[role]
    heads = [(head, head.lower()) for head in parts["heads"][letter.upper()].split()]
    given: set[str] = set()
    for tail in parts["tails"].split():
        for head, folded in heads:
            word = folded + tail
            if len(word) in _LETTERS and word not in known and word not in given:
                given.add(word)
                yield head + tail


@cache
def _places(role: str, letter: str) -> Mapping[str, int]:
    return {fold(name): place for place, name in enumerate(names().real[role, letter][: SIZES[role]])}


@cache
def names() -> Names:
    """The names, read once."""
    told = dict.fromkeys(personas.lines("names-first-female"), FEMALE)
    told |= {name: BOTH if name in told else MALE for name in personas.lines("names-first-male")}
    told |= {line[2:]: line[0] for line in entries("given-more")}
    frequent = dict.fromkeys([*personas.lines("names-last"), *entries("surnames-more")], SURNAME)
    real: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    seen: set[tuple[str, str]] = set()  # McCoy and Mccoy are one
    sure = {name: role for name, role in told.items() if role in (FEMALE, MALE)}
    for name, role in [*sure.items(), *dict.fromkeys([*frequent, *surnames()], SURNAME).items()]:
        if name.isascii() and name.isalpha() and (role, name.lower()) not in seen:
            seen.add((role, name.lower()))
            real[role, name[0].lower()].append(name)
    roles = _untold() | dict.fromkeys(map(fold, frequent), SURNAME)
    roles |= {fold(line[2:]): line[0] for line in personas.lines("names-more") if line[0] in "FM"}
    roles |= {fold(name): role for name, role in told.items()}
    return Names(roles, {key: tuple(pool) for key, pool in real.items()})


def _untold() -> dict[str, str]:
    """Words that some language pack has as a first name and none as a surname."""
    known = [packs.pack(name).lexica for name in packs.shipped()]
    last = {word for lexica in known for word in lexica.get("last", {})}
    first = {word for lexica in known for word in lexica.get("first", {})}
    return {fold(word): UNTOLD for word in sorted(first - last) if word.isalpha() and len(word) > 2}


@cache
def states() -> tuple[Mapping[str, str], Mapping[str, str]]:
    """The states by folded code and by folded name; both lead to the code."""
    rows = state_names().items()
    return {code.lower(): code for code, _ in rows}, {name.lower(): code for code, name in rows}


@cache
def state_names() -> Mapping[str, str]:
    """The name of the state of a code."""
    return {line[:2]: line[3:] for line in entries("states")}
