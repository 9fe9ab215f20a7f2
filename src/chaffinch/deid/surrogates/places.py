"""Surrogates of addresses, places, institutions, departments and professions.

Words that name the kind of place (Street, Hospital, County) are kept, numbers get other digits, and each run of other
words becomes one entry of a list: "12 Oak Street Apt 3" keeps its structure, and "Boston Medical Center" gets the
surrogate of Boston.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeAlias

from chaffinch.deid.surrogates.ids import zip_code
from chaffinch.deid.surrogates.letters import (
    SurrogateSource,
    bases,
    copy_case,
    fold,
    fold_phrase,
    initials,
    is_significant,
    is_word,
    join_pieces,
    pieces,
    reshape,
)
from chaffinch.deid.surrogates.lists import entries, names, state_names, states
from chaffinch.deid.surrogates.names import name_word
from chaffinch.languages import kept_words

Namer: TypeAlias = Callable[[str, SurrogateSource], str]  # replaces a run of words

SMALL, SAINTS, SIDES, STREETS = map(kept_words, ("small_words_in_places", "saints", "sides", "streets"))
SMALLER, INSTITUTIONS, REGIONS, WARDS = map(kept_words, ("small_words", "institutions", "regions", "wards"))
ALIASES = kept_words("country_aliases")
_STREET_ENDING = re.compile("(.{3,}?)(stra(?:ß|ss)e|str|weg|platz|gasse|allee)", re.IGNORECASE)
_PARTS = re.compile(r"([,;\n\r]+)")
_ZIP = re.compile(r"(?<![0-9])[0-9]{5}(?:-[0-9]{4})?(?![0-9])")
_VOWELS = frozenset("aeiouy")


def _replace_phrase(text: str, kept: frozenset[str], namer: Namer, source: SurrogateSource) -> str:
    """Replace runs of words not in `kept` (the first word if all are) by the namer; redraw numbers and letters."""
    parts = pieces(text)
    plain = {i for i, part in enumerate(parts) if is_word(part) and fold(part) not in kept and len(fold(part)) > 1}
    plain -= {i for i in plain if _is_ordinal(parts, i)}
    numbers = {i for i, part in enumerate(parts) if is_significant(part[0]) and not is_word(part)}
    if not plain and not numbers:  # only words that name the kind of place: the first of them is replaced
        longer = [i for i, part in enumerate(parts) if is_word(part) and len(part) > 1]
        plain = set(([i for i in longer if fold(parts[i]) not in SMALLER] or longer)[:1])
    letters = {i for i, part in enumerate(parts) if is_word(part) and len(part) == 1} - plain
    drawn = {i: reshape(parts[i], source, "number", leading=False) for i in numbers}
    drawn |= {i: _ordinal_suffix(drawn[i - 1], parts[i]) for i in range(1, len(parts)) if _is_ordinal(parts, i)}
    drawn |= {i: initials(parts[i], source) for i in letters if fold(parts[i]) not in kept}
    for run in _group_adjacent(parts, plain):
        drawn |= dict.fromkeys(range(run[0], run[-1] + 1), "")
        drawn[run[0]] = _replace_run(parts, run, namer, source)
    return join_pieces(parts, drawn)


def _group_adjacent(parts: Sequence[str], plain: set[int]) -> list[list[int]]:
    """Group the indices of plain words that have no comma or number between them."""
    runs: list[list[int]] = []
    for i in sorted(plain):
        beside = runs and runs[-1][-1] == i - 2 and not parts[i - 1].strip(" \t.-'’")
        if beside:
            runs[-1].append(i)
        else:
            runs.append([i])
    return runs


def _replace_run(parts: Sequence[str], run: Sequence[int], namer: Namer, source: SurrogateSource) -> str:
    """Return one entry of the namer for a run of words; after a saint's title, the words replaced as names."""
    text = "".join(parts[run[0] : run[-1] + 1])
    if run[0] > 1 and fold(parts[run[0] - 2]) in SAINTS:
        return "".join(name_word(part, source) if is_word(part) else part for part in pieces(text))
    return namer(text, source)


def _is_ordinal(parts: Sequence[str], i: int) -> bool:
    """Tell whether part `i` is the ordinal suffix of the number before it (5th)."""
    return i > 0 and fold(parts[i]) in {"st", "nd", "rd", "th"} and parts[i - 1].isdecimal()


def _ordinal_suffix(number: str, ending: str) -> str:
    """Return the suffix that fits the number: 21st, 12th."""
    fitting = "th" if number[-2:-1] == "1" else {"1": "st", "2": "nd", "3": "rd"}.get(number[-1], "th")
    return fitting.upper() if ending.isupper() else fitting


def _namer_from_list(name: str, purpose: str) -> Namer:
    """Return a function that draws an entry of the named list for a text, or for short forms other initials."""

    def namer(text: str, source: SurrogateSource) -> str:
        """Return a drawn entry in the text's case; for a short form that looks like initials, other initials."""
        run = " ".join(fold(part) for part in pieces(text) if is_word(part))
        if len(run) <= 4 and not (_VOWELS & set(run) and (len(run) == 4 or _is_listed(run))):
            return initials(text, source)
        return copy_case(source.pick(entries(name), purpose, text=run), text)

    return namer


def _is_listed(word: str) -> bool:
    """Tell whether a word is a listed name or street."""
    return word in names().roles or word.capitalize() in _street_names()


@cache
def _street_names() -> frozenset[str]:
    """Return the entries of the list of streets as a set, cached."""
    return frozenset(entries("streets"))


_draw_city, _draw_street_name, _draw_department = (
    _namer_from_list("cities", "place"),
    _namer_from_list("streets", "street"),
    _namer_from_list("departments", "department"),
)


def city(text: str, source: SurrogateSource) -> str:
    """Replace a place by one in the same form; states and zip codes after it are replaced as such."""
    parts = _PARTS.split(text)
    return "".join(_replace_place_part(part, source, first=not i) for i, part in enumerate(parts))


def _replace_place_part(text: str, source: SurrogateSource, *, first: bool) -> str:
    """Return a place's part between commas with its state, zip code and words replaced."""
    if not any(map(is_significant, text)):
        return text
    codes, by_name = states()
    if not first and " ".join(text.lower().split()) in by_name:
        return state(text, source)
    code = re.search(r"(?<![^\W_])([A-Z]{2})(?=[\s.]*(?:[0-9]{5}(?:-[0-9]{4})?)?\s*$)", text)
    if code and code[1].lower() in codes and not (first and not text[: code.start()].strip()):
        before, after = text[: code.start()], text[code.end() :]
        before = _replace_phrase(before, REGIONS | SMALL, _draw_city, source) if before.strip() else before
        return before + state(code[1], source) + _replace_zips(after, source)
    match = _ZIP.search(text)
    if match:
        before, after = text[: match.start()], text[match.end() :]
        return "".join(
            (_replace_place_words(before, source), zip_code(match[0], source), _replace_place_words(after, source))
        )
    return _replace_place_words(text, source)


def _replace_place_words(text: str, source: SurrogateSource) -> str:
    """Return the text with the words of a place replaced by surrogates; region words stay."""
    return _replace_phrase(text, REGIONS | SMALL, _draw_city, source) if any(map(is_significant, text)) else text


def _replace_zips(text: str, source: SurrogateSource) -> str:
    """Return the text with each ZIP code replaced by its surrogate."""
    return _ZIP.sub(lambda match: zip_code(match[0], source), text)


def state(text: str, source: SurrogateSource) -> str:
    """Replace a state by a drawn one, perhaps itself, as a code or in full as written; an unknown one as a place."""
    codes, by_name = states()
    core = _strip_surroundings(text)
    plain = " ".join(core.lower().split())
    code = codes.get(plain.replace(".", "").replace(" ", "")) or by_name.get(plain)
    if code is None:
        return city(text, source)
    drawn = source.pick(_state_codes(), "state", text=code.lower())
    entry = state_names()[drawn] if plain in by_name else ".".join(drawn) + "." if "." in core else drawn
    return text.replace(core, copy_case(entry, core), 1)


@cache
def _state_codes() -> tuple[str, ...]:
    """Return the two-letter codes of all states."""
    return tuple(state_names())


def _strip_surroundings(text: str) -> str:
    """Return the text without blanks and commas around it; the last dot of "N.Y." belongs to it."""
    core = text.strip(" \t\r\n,")
    return core if "." in core[:-1] else core.rstrip(".")


def country(text: str, source: SurrogateSource) -> str:
    """Replace a country by one drawn from a list, perhaps itself, in its case."""
    core = _strip_surroundings(text)
    if not core:
        return reshape(text, source, "country")
    drawn = source.pick(entries("countries"), "country", text=fold_phrase(core))
    return text.replace(core, drawn if bases(core) in ALIASES else copy_case(drawn, core), 1)


def street(text: str, source: SurrogateSource) -> str:
    """Replace the numbers and the name of a street address; parts after a comma are places."""
    head, mark, rest = text.partition(",")
    if mark and any(map(is_significant, rest)) and not STREETS & {fold(part) for part in pieces(rest) if is_word(part)}:
        return street(head, source) + mark + _replace_place_part(rest, source, first=False)
    return _replace_phrase(text, STREETS | SIDES | SMALLER, _replace_street_name, source)


def _replace_street_name(text: str, source: SurrogateSource) -> str:
    """Replace a street's name, given without a word such as Street; keep a German ending such as -straße."""
    ending = _STREET_ENDING.fullmatch(text)
    return _draw_street_name(text, source) if ending is None else _draw_street_name(ending[1], source) + ending[2]


def place(text: str, source: SurrogateSource) -> str:
    """Replace a place whose kind is unknown: as an address if it has a number and a word for streets."""
    parts = pieces(text)
    has_number = any(is_significant(part[0]) and not is_word(part) for part in parts)
    has_street_word = any(is_word(part) and fold(part) in STREETS - SAINTS for part in parts)
    return street(text, source) if has_number and has_street_word else city(text, source)


def institution(text: str, source: SurrogateSource) -> str:
    """Replace the name of a hospital or organisation; words for its kind are kept."""
    return _replace_phrase(text, INSTITUTIONS | SMALLER | SAINTS, _draw_city, source)


def department(text: str, source: SurrogateSource) -> str:
    """Replace a department by one drawn from a list; short forms such as ICU become drawn short forms."""
    return _replace_phrase(text, WARDS | SMALLER | SIDES, _replace_ward, source)


def _replace_ward(text: str, source: SurrogateSource) -> str:
    """Return a drawn ward for a short form such as ICU, and a drawn department for any other text."""
    short = bases(text)
    if len(short) > 3 and short.upper() not in entries("wards"):
        return _draw_department(text, source)
    drawn = source.pick(entries("wards"), "ward", text=short)
    return drawn.lower() if text.islower() else drawn


def profession(text: str, source: SurrogateSource) -> str:
    """Replace a profession by a listed one, perhaps itself, that takes the same article (a, an), in the text's case."""
    drawn = source.pick(_professions(vowel=bases(text)[:1] in _VOWELS), "profession", text=fold_phrase(text))
    letters = [part for part in pieces(text) if is_word(part)]
    if text.isupper():
        return drawn.upper()
    if letters and letters[0][0].isupper():
        return drawn.title() if all(part[0].isupper() for part in letters) else drawn.capitalize()
    return drawn


@cache
def _professions(*, vowel: bool) -> tuple[str, ...]:
    """Return the listed professions that begin with a vowel, or those that do not."""
    return tuple(name for name in entries("professions") if (name[0] in _VOWELS) == vowel)
