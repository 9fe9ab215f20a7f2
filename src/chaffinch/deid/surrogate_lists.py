"""The packaged lists from which surrogates are drawn, and what they tell of a name.

First names and surnames are those of the generated notes, with more from `lists`; which words are first names is also
read off the language packs. `recipes/surrogate_lists.py` makes the larger lists.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from chaffinch.deid import personas
from chaffinch.deid.surrogate_letters import fold
from chaffinch.features import packs

FEMALE, MALE, BOTH, UNTOLD, SURNAME = "F", "M", "B", "U", "S"


@dataclass(frozen=True, slots=True)
class Names:
    """All names by folded word; `pools` by role (F, M or S) and first letter, in the order of the lists."""

    roles: Mapping[str, str]  # F and M; B both; U a first name of untold gender; S a surname
    pools: Mapping[tuple[str, str], tuple[str, ...]]


@cache
def entries(name: str) -> tuple[str, ...]:
    """The lines of a packaged list."""
    text = (files("chaffinch.deid") / "lists" / f"{name}.txt").read_text(encoding="utf-8")
    return tuple(text.splitlines())


@cache
def names() -> Names:
    """The names, read once."""
    told = dict.fromkeys(personas.lines("names-first-female"), FEMALE)
    told |= {name: BOTH if name in told else MALE for name in personas.lines("names-first-male")}
    told |= {line[2:]: line[0] for line in entries("given-more")}
    surnames = dict.fromkeys([*personas.lines("names-last"), *entries("surnames-more")], SURNAME)
    pools: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for name, role in (surnames | told).items():
        if role in {FEMALE, MALE, SURNAME} and name.isascii() and name.isalpha():
            pools[role, name[0].lower()].append(name)
    roles = _untold() | dict.fromkeys(map(fold, surnames), SURNAME)
    roles |= {fold(line[2:]): line[0] for line in personas.lines("names-more") if line[0] in "FM"}
    roles |= {fold(name): role for name, role in told.items()}
    return Names(roles, {key: tuple(pool) for key, pool in pools.items()})


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
