"""The packaged lists from which surrogates are drawn, and the gender and role of the names in them.

First names and surnames are those of the generated notes and of the census, with more from `lists`; more
first names are known from the language packs. `recipes/surrogate_lists.py` makes the larger lists.

Every initial has equally many names of a role, so that the initial of a surrogate carries no information: where the
census has fewer, names are composed of the beginnings and ends of others, each when it is drawn.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias, overload

import numpy as np
import numpy.typing as npt

from chaffinch import languages
from chaffinch.deid.surrogates.letters import fold

FEMALE, MALE, BOTH, UNKNOWN_GENDER, SURNAME = "F", "M", "B", "U", "S"
# Names of each initial. First names are known words, which never collide: as many as the census has with its commonest
# initial are enough. A surname may be any word: with 2¹⁷, two of a patient's 50 that no list has collide in 1 of 1,800
# patients (initials as in the census; in 1 of 1,000 if every third name of the patient begins with the same letter).
SIZES: Mapping[str, int] = {FEMALE: 512, MALE: 128, SURNAME: 1 << 17}
_SHORTEST, _LONGEST = 5, 11  # letters of a composed name
_LONGEST_NAME = 16  # letters of a real name; a test says that no list has a longer one

_BLOCK = 1 << 10  # pairs of a beginning and an end that are looked through to find one of them

Flags: TypeAlias = npt.NDArray[np.bool_]
Places: TypeAlias = npt.NDArray[np.int32]
Letters: TypeAlias = npt.NDArray[np.bytes_]  # as bytes they take a tenth of what Python's strings take


@dataclass(frozen=True, slots=True)
class NameLists:
    """All names: their roles by folded word, and the real names by role (F, M or S) and initial, in list order."""

    roles: Mapping[str, str]  # F and M; B both; U a first name of unknown gender; S a surname
    real: Mapping[tuple[str, str], tuple[str, ...]]

    def index(self, role: str, word: str) -> int | None:
        """Return the index of a folded word among the real names of a role and its initial that may be drawn."""
        order, folded = _sorted_names(role, word[0])
        place = int(np.searchsorted(folded, word.encode("ascii", "replace"))) if len(word) <= _LONGEST_NAME else 0
        return int(order[place]) if place < len(order) and folded[place] == word.encode() else None

    def drawable(self, role: str, letter: str) -> Sequence[str]:
        """Return all names of a role and initial that may be drawn: equally many for every initial."""
        return _drawable(role, letter)


def entries(name: str) -> tuple[str, ...]:
    """Return the entries of a packaged English list for surrogates, such as "cities"."""
    return languages.lines("en", f"surrogates/{name}")


def surnames() -> tuple[str, ...]:
    """Return the surnames of the census, the frequent ones first."""
    return entries("surnames")


class _NamePool(Sequence[str]):
    """The names of a role and initial that may be drawn, by index: real names, then composed ones.

    A beginning ends with a vowel and an end begins with a consonant, so no name can be composed in two ways.
    """

    def __init__(self, role: str, letter: str) -> None:
        """Read the real names, and choose as many composed ones as the size of the role still needs."""
        parts = languages.table("en", "surrogates/name-parts")[role]
        self._real = names().real[role, letter][: SIZES[role]]
        self._heads: Sequence[str] = parts["heads"][letter.upper()].split()
        self._tails = _tails(role)
        known = {*_common_words()[letter], *map(str.lower, self._real)}
        free = self._find_unknown_words(known)
        free = np.pad(free, (0, -len(free) % _BLOCK)).reshape(-1, _BLOCK)
        self._bits = np.packbits(free, axis=1)  # an eighth of a byte a pair: there are pools of 26 letters
        self._before: list[int] = [0, *np.cumsum(free.sum(axis=1)).tolist()]  # free pairs before each block
        self._number = min(self._before[-1], SIZES[role] - len(self._real))

    def _find_unknown_words(self, known: Collection[str]) -> Flags:
        """Return whether each pair of a beginning and an end fits in length and is not `known`, the likeliest first."""
        lengths = np.add.outer([len(tail) for tail in self._tails], [len(head) for head in self._heads])
        free = (lengths >= _SHORTEST) & (lengths <= _LONGEST)
        heads = {head.lower(): index for index, head in enumerate(self._heads)}
        tails = {tail: index for index, tail in enumerate(self._tails)}
        longest = max(map(len, heads)) + 1
        for word in known:
            if not _SHORTEST <= len(word) <= _LONGEST:
                continue
            for cut in range(2, min(longest, len(word))):
                if (head := heads.get(word[:cut])) is not None and (tail := tails.get(word[cut:])) is not None:
                    free[tail, head] = False
        return free.ravel()

    def __len__(self) -> int:
        """Return the number of real and composed names."""
        return len(self._real) + self._number

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...

    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        """Return the name at an index, a real one or else a composed one; a list of names for a slice."""
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if index < len(self._real):
            return self._real[index]
        rank = index - len(self._real)
        if not 0 <= rank < self._number:
            raise IndexError(index)
        block = bisect_right(self._before, rank) - 1
        place = np.flatnonzero(np.unpackbits(self._bits[block]))[rank - self._before[block]]
        tail, head = divmod(block * _BLOCK + int(place), len(self._heads))
        return self._heads[head] + self._tails[tail]


@cache
def _tails(role: str) -> Sequence[str]:
    """Return the ends of composed names of a role, the same for every initial, cached."""
    tails: Sequence[str] = languages.table("en", "surrogates/name-parts")[role]["tails"].split()
    return tails


@cache
def _common_words() -> Mapping[str, Sequence[str]]:
    """Return the common words of the language by first character, cached; empty for one that begins no word."""
    by_initial: defaultdict[str, list[str]] = defaultdict(list)
    for word in languages.pack("en").common:
        by_initial[word[:1]].append(word)
    return by_initial


@cache
def _drawable(role: str, letter: str) -> _NamePool:
    """Return the pool of names of a role that begin with a letter, cached."""
    return _NamePool(role, letter)


@cache
def _sorted_names(role: str, letter: str) -> tuple[Places, Letters]:
    """Return the folded names of a role that begin with a letter, sorted, and the index of each; cached."""
    pool = names().real.get((role, letter), ())[: SIZES[role]]
    folded = np.array([name.lower() for name in pool], f"S{_LONGEST_NAME}")
    order = np.argsort(folded, kind="stable")
    return order.astype(np.int32), folded[order]


@cache
def names() -> NameLists:
    """Return the roles of known names and pools of real names by (role, first letter); read once."""
    first_names = dict.fromkeys(entries("names-first-female"), FEMALE)
    first_names |= {name: BOTH if name in first_names else MALE for name in entries("names-first-male")}
    first_names |= {line[2:]: line[0] for line in entries("given-more")}
    frequent = dict.fromkeys([*entries("names-last"), *entries("surnames-more")], SURNAME)
    pools = {role: [name for name, other in first_names.items() if other == role] for role in (FEMALE, MALE)}
    pools[SURNAME] = [*frequent, *surnames()]
    real = {(role, letter): names for role, pool in pools.items() for letter, names in _by_initial(pool).items()}
    roles = _names_of_unknown_gender() | dict.fromkeys(map(fold, frequent), SURNAME)
    roles |= {fold(line[2:]): line[0] for line in entries("names-more") if line[0] in "FM"}
    roles |= {fold(name): role for name, role in first_names.items()}
    return NameLists(roles, real)


def _by_initial(pool: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return plain names by their first letter, in order; McCoy and Mccoy count as one name, the first of them."""
    plain = [name for name in pool if name.isascii() and name.isalpha()]
    folded = "\n".join(plain).lower().split("\n") if plain else []
    first = dict(zip(reversed(folded), reversed(plain), strict=True))
    by_initial: defaultdict[str, list[str]] = defaultdict(list)
    for word in dict.fromkeys(folded):
        by_initial[word[0]].append(first[word])
    return {letter: tuple(names) for letter, names in by_initial.items()}


def _names_of_unknown_gender() -> dict[str, str]:
    """Return {folded word: role U} of words that some language pack has as a first name and none as a surname."""
    last, first = (
        {word for name in languages.pack_names() for word in languages.words_of(name, lexicon)}
        for lexicon in ("last", "first")
    )
    return {fold(word): UNKNOWN_GENDER for word in sorted(first - last) if word.isalpha() and len(word) > 2}


@cache
def states() -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return two maps to state codes: from the code and from the name, both in lower case."""
    rows = state_names().items()
    return {code.lower(): code for code, _ in rows}, {name.lower(): code for code, name in rows}


@cache
def state_names() -> Mapping[str, str]:
    """Return the names of the states by code."""
    return {line[:2]: line[3:] for line in entries("states")}
