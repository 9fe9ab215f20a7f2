"""Surrogates of addresses, places, institutions, departments and professions.

Words that say what a place is (Street, Hospital, County) are kept, numbers get other digits, and each run of other
words becomes one entry of a list: "12 Oak Street Apt 3" keeps its structure, "Boston Medical Center" holds the city
that stands for Boston.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeAlias

from chaffinch.deid.surrogates.ids import zip_code
from chaffinch.deid.surrogates.letters import (
    Keyed,
    bases,
    bears,
    fold,
    fold_phrase,
    initials,
    is_word,
    joined,
    pieces,
    reshaped,
    styled,
)
from chaffinch.deid.surrogates.lists import entries, names, state_names, states
from chaffinch.deid.surrogates.names import name_word
from chaffinch.languages import kept_words

Namer: TypeAlias = Callable[[str, Keyed], str]  # what stands for a run of words

SMALL, SAINTS, SIDES, STREETS = map(kept_words, ("small_words_in_places", "saints", "sides", "streets"))
SMALLER, INSTITUTIONS, REGIONS, WARDS = map(kept_words, ("small_words", "institutions", "regions", "wards"))
ALIASES = kept_words("country_aliases")
_STREET_ENDING = re.compile("(.{3,}?)(stra(?:ß|ss)e|str|weg|platz|gasse|allee)", re.IGNORECASE)
_PARTS = re.compile(r"([,;\n\r]+)")
_ZIP = re.compile(r"(?<![0-9])[0-9]{5}(?:-[0-9]{4})?(?![0-9])")
_VOWELS = frozenset("aeiouy")


def _phrase(text: str, kept: frozenset[str], namer: Namer, keyed: Keyed) -> str:
    """The text with numbers reshaped and every run of words that are not kept replaced by one entry."""
    parts = pieces(text)
    plain = {at for at, part in enumerate(parts) if is_word(part) and fold(part) not in kept and len(fold(part)) > 1}
    plain -= {at for at in plain if _is_ordinal(parts, at)}
    numbers = {at for at, part in enumerate(parts) if bears(part[0]) and not is_word(part)}
    if not plain and not numbers:  # only words that say what it is: the first of them has to go
        longer = [at for at, part in enumerate(parts) if is_word(part) and len(part) > 1]
        plain = set(([at for at in longer if fold(parts[at]) not in SMALLER] or longer)[:1])
    letters = {at for at, part in enumerate(parts) if is_word(part) and len(part) == 1} - plain
    drawn = {at: reshaped(parts[at], keyed, "number", leading=False) for at in numbers}
    drawn |= {at: _ordinal(drawn[at - 1], parts[at]) for at in range(1, len(parts)) if _is_ordinal(parts, at)}
    drawn |= {at: initials(parts[at], keyed) for at in letters if fold(parts[at]) not in kept}
    for run in _runs(parts, plain):
        drawn |= dict.fromkeys(range(run[0], run[-1] + 1), "")
        drawn[run[0]] = _run_name(parts, run, namer, keyed)
    return joined(parts, drawn)


def _runs(parts: Sequence[str], plain: set[int]) -> list[list[int]]:
    """The plain words that stand side by side, without a comma or a number between them."""
    runs: list[list[int]] = []
    for at in sorted(plain):
        beside = runs and runs[-1][-1] == at - 2 and not parts[at - 1].strip(" \t.-'’")
        if beside:
            runs[-1].append(at)
        else:
            runs.append([at])
    return runs


def _run_name(parts: Sequence[str], run: Sequence[int], namer: Namer, keyed: Keyed) -> str:
    text = "".join(parts[run[0] : run[-1] + 1])
    if run[0] > 1 and fold(parts[run[0] - 2]) in SAINTS:
        return "".join(name_word(part, keyed) if is_word(part) else part for part in pieces(text))
    return namer(text, keyed)


def _is_ordinal(parts: Sequence[str], at: int) -> bool:
    return at > 0 and fold(parts[at]) in {"st", "nd", "rd", "th"} and parts[at - 1].isdecimal()


def _ordinal(number: str, ending: str) -> str:
    """The ending that fits the number: 21st, 12th."""
    fitting = "th" if number[-2:-1] == "1" else {"1": "st", "2": "nd", "3": "rd"}.get(number[-1], "th")
    return fitting.upper() if ending.isupper() else fitting


def _from(name: str, entry: str) -> Namer:
    """Draws from a list; letters such as MGH become the letters that stand for them in names."""

    def namer(text: str, keyed: Keyed) -> str:
        run = " ".join(fold(part) for part in pieces(text) if is_word(part))
        if len(run) <= 4 and not (_VOWELS & set(run) and (len(run) == 4 or _is_listed(run))):
            return initials(text, keyed)
        return styled(keyed.pick(entries(name), entry, text=run), text)

    return namer


def _is_listed(word: str) -> bool:
    return word in names().roles or word.capitalize() in entries("streets")


_city, _street_name, _field = _from("cities", "place"), _from("streets", "street"), _from("departments", "department")


def city(text: str, keyed: Keyed) -> str:
    """A place in the same form; states and zip codes after it are replaced as such."""
    parts = _PARTS.split(text)
    return "".join(_place_part(part, keyed, first=not at) for at, part in enumerate(parts))


def _place_part(text: str, keyed: Keyed, *, first: bool) -> str:
    if not any(map(bears, text)):
        return text
    codes, by_name = states()
    if not first and " ".join(text.lower().split()) in by_name:
        return state(text, keyed)
    code = re.search(r"(?<![^\W_])([A-Z]{2})(?=[\s.]*(?:[0-9]{5}(?:-[0-9]{4})?)?\s*$)", text)
    if code and code[1].lower() in codes and not (first and not text[: code.start()].strip()):
        before, after = text[: code.start()], text[code.end() :]
        before = _phrase(before, REGIONS | SMALL, _city, keyed) if before.strip() else before
        return before + state(code[1], keyed) + _zips(after, keyed)
    found = _ZIP.search(text)
    if found:
        before, after = text[: found.start()], text[found.end() :]
        return "".join((_rest(before, keyed), zip_code(found[0], keyed), _rest(after, keyed)))
    return _rest(text, keyed)


def _rest(text: str, keyed: Keyed) -> str:
    return _phrase(text, REGIONS | SMALL, _city, keyed) if any(map(bears, text)) else text


def _zips(text: str, keyed: Keyed) -> str:
    return _ZIP.sub(lambda found: zip_code(found[0], keyed), text)


def state(text: str, keyed: Keyed) -> str:
    """Another state, as a code or in full as it was; what is no state of ours becomes a place."""
    codes, by_name = states()
    core = _core(text)
    plain = " ".join(core.lower().split())
    code = codes.get(plain.replace(".", "").replace(" ", "")) or by_name.get(plain)
    if code is None:
        return city(text, keyed)
    drawn = keyed.pick(_state_codes(), "state", text=code.lower())
    entry = state_names()[drawn] if plain in by_name else ".".join(drawn) + "." if "." in core else drawn
    return text.replace(core, styled(entry, core), 1)


@cache
def _state_codes() -> tuple[str, ...]:
    return tuple(state_names())


def _core(text: str) -> str:
    """The text without what surrounds it; the last point of "N.Y." belongs to it."""
    core = text.strip(" \t\r\n,")
    return core if "." in core[:-1] else core.rstrip(".")


def country(text: str, keyed: Keyed) -> str:
    """Another country."""
    core = _core(text)
    if not core:
        return reshaped(text, keyed, "country")
    found = keyed.pick(entries("countries"), "country", text=fold_phrase(core))
    return text.replace(core, found if bases(core) in ALIASES else styled(found, core), 1)


def street(text: str, keyed: Keyed) -> str:
    """An address of the same structure, with other numbers and another name; lines after it are places."""
    head, mark, rest = text.partition(",")
    if mark and any(map(bears, rest)) and not STREETS & {fold(part) for part in pieces(rest) if is_word(part)}:
        return street(head, keyed) + mark + _place_part(rest, keyed, first=False)
    return _phrase(text, STREETS | SIDES | SMALLER, _way, keyed)


def _way(text: str, keyed: Keyed) -> str:
    """The name of a street; an ending such as -straße is kept."""
    ending = _STREET_ENDING.fullmatch(text)
    return _street_name(text, keyed) if ending is None else _street_name(ending[1], keyed) + ending[2]


def place(text: str, keyed: Keyed) -> str:
    """The surrogate of a place of untold kind: an address if it has a number and a word for streets."""
    parts = pieces(text)
    numbered = any(bears(part[0]) and not is_word(part) for part in parts)
    named = any(is_word(part) and fold(part) in STREETS - SAINTS for part in parts)
    return street(text, keyed) if numbered and named else city(text, keyed)


def institution(text: str, keyed: Keyed) -> str:
    """A hospital or organisation of the same sort under another name."""
    return _phrase(text, INSTITUTIONS | SMALLER | SAINTS, _city, keyed)


def department(text: str, keyed: Keyed) -> str:
    """Another department; short forms such as ICU become others."""
    return _phrase(text, WARDS | SMALLER | SIDES, _ward, keyed)


def _ward(text: str, keyed: Keyed) -> str:
    short = bases(text)
    if len(short) > 3 and short.upper() not in entries("wards"):
        return _field(text, keyed)
    found = keyed.pick(entries("wards"), "ward", text=short)
    return found.lower() if text.islower() else found


def profession(text: str, keyed: Keyed) -> str:
    """Another profession, which takes the same article: "a" or "an"."""
    found = keyed.pick(_professions(vowel=bases(text)[:1] in _VOWELS), "profession", text=fold_phrase(text))
    letters = [part for part in pieces(text) if is_word(part)]
    if text.isupper():
        return found.upper()
    if letters and letters[0][0].isupper():
        return found.title() if all(part[0].isupper() for part in letters) else found.capitalize()
    return found


@cache
def _professions(*, vowel: bool) -> tuple[str, ...]:
    return tuple(name for name in entries("professions") if (name[0] in _VOWELS) == vowel)
