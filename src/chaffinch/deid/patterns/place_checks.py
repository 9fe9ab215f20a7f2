"""Checks that decide which words of a run of capitalised words are a place or an institution."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from chaffinch import languages
from chaffinch.deid.detect.word_lists import WordLists

CAP = r"[\p{Lu}ʻ][\p{L}\p{M}'’ʻ.\-]*\p{L}"  # a capitalised word
WORDS = languages.words("en", "patterns/places")
UNSURE_COUNTRIES = WORDS["countries_and_words"]
# Degrees, tests and words that are also codes of states: the city must be known, or a postcode follow.
ALSO_WORDS = frozenset(WORDS["codes_and_words"])
_SMALL, _PARTS = frozenset(WORDS["never_begin"]), frozenset(WORDS["parts_of_places"])
_GENERIC = frozenset(WORDS["generic_institutions"])


@dataclass(frozen=True, slots=True)
class PlaceChecks:
    """Checks of places by word lists. Those that return offsets cut a match to its place; None rejects the match."""

    lists: WordLists

    def city_before_state(self, text: str) -> tuple[int, int] | None:
        """Return (start, end) of the city in "City ST"; None if the state's code is also a word, or no city is left."""
        return None if text.rsplit(maxsplit=1)[-1] in ALSO_WORDS else self.any_city(text)

    def any_city(self, text: str) -> tuple[int, int] | None:
        """Return (start, end) of a run of words that may be a city, after any that may not; None if nothing is left."""
        words = _words_in(text)
        while words and self._is_no_city(words[0].group()):
            words.pop(0)
        if not words or text[words[0].start() :].rstrip(".") in _not_cities():
            return None
        end = words[0].end()
        for word in words[1:]:
            plain = word.group().rstrip(".")
            if self._is_no_city(plain):
                break
            end = word.end()
        return words[0].start(), len(text[:end].rstrip("."))

    def _is_no_city(self, word: str) -> bool:
        """Tell whether a word cannot be part of a city's name: a small word, a drug, or an unlisted common word."""
        plain = word.rstrip(".,")
        if plain.lower() in _SMALL or self.lists.is_drug(plain):
            return True
        return self.lists.rate(plain, "city") == "" and self._is_no_place(plain) and not _is_part_of_place(plain)

    def is_city(self, name: str) -> bool:
        """Tell whether a name is on the list of cities and not hidden, or one word, likely a city and not common."""
        small = name.lower().strip(" .,")
        return (small in _city_names() and not self.lists.is_hidden(small)) or (
            " " not in small and self.lists.rate(small, "city") == "hi" and not self.lists.is_common(small)
        )

    def unmistakable_city(self, text: str) -> tuple[int, int] | None:
        """Return (0, end) of the longest listed city at the start; None if a lone common word or likely name."""
        found = self.city_in_lists(text)
        name = "" if found is None else text[slice(*found)]
        other = self.lists.is_common(name) or "hi" in (self.lists.rate(name, "last"), self.lists.rate(name, "first"))
        return None if " " not in name and other else found

    def city_in_lists(self, text: str) -> tuple[int, int] | None:
        """Return (0, end) of the longest listed city at the start, not just a common word; else None."""
        words = _words_in(text)
        for count in range(len(words), 0, -1):
            name = text[: words[count - 1].end()].rstrip(".,")
            if self.is_city(name) and (
                count > 1 or not self.lists.is_common(name) or self.lists.rate(name, "city") == "hi"
            ):
                return 0, len(name)
        return None

    def city_before_code(self, text: str) -> tuple[int, int] | None:
        """Return (start, end) of the listed city before the comma; None if none, or after a person's name."""
        name = text.rpartition(",")[0]
        words = _words_in(name)
        first = words[0].group().rstrip(".")
        if len(words) > 1 and (
            len(first) == 1 or (self.lists.rate(first, "first") == "hi" and self.lists.rate(first, "city") != "hi")
        ):
            return None  # a person with a degree
        for skip in range(len(words)):
            if self.is_city(name[words[skip].start() :]):
                return words[skip].start(), len(name)
        return None

    def state_after_city(self, text: str) -> tuple[int, int] | None:
        """Return (start, end) of the state's code at the text's end if a listed city is before it; else None."""
        return (len(text) - 2, len(text)) if text[-2:] not in ("MD", "PT") and self.city_before_code(text) else None

    def institution(self, text: str) -> tuple[int, int] | None:
        """Return (start, end) of an institution, from its first proper word; None if all are generic or one is left."""
        words = _words_in(text)
        while words and (words[0].group().lower() in _SMALL or words[0].group().lower() in ("department", "division")):
            words.pop(0)
        proper = [word for word in words if word.group().lower().rstrip(".,") not in _GENERIC]
        if not proper or all(
            self._is_no_place(word.group()) and not _is_part_of_place(word.group()) for word in proper
        ):
            return None
        while (
            words
            and self._is_no_place(words[0].group())
            and words[0].group().lower() not in _GENERIC
            and not _is_part_of_place(words[0].group())
        ):
            words.pop(0)
        return (words[0].start(), len(text)) if len(words) > 1 else None

    def institution_after_verb(self, text: str) -> tuple[int, int] | None:
        """Return (0, end) of words up to one that no institution has; None if none is proper or the first is small."""
        words = _words_in(text)
        last = words[-1].end() if words else 0
        proper = 0
        for word in words:
            plain = word.group().lower().rstrip(".,")
            if (
                self._is_no_place(word.group())
                and plain not in _GENERIC
                and not _is_part_of_place(word.group())
                and plain not in ("of", "and", "&", "the")
            ):
                last = word.start()
                break
            proper += plain not in _GENERIC and not self.lists.is_term(word.group()) and not word.group().isupper()
        return (0, len(text[:last].rstrip(" .,"))) if proper and words[0].group().lower() not in _SMALL else None

    def company(self, text: str) -> tuple[int, int] | None:
        """Return (start, end) of a company's name without generic words before it; None below two words."""
        words = _words_in(text)
        while words and (self._is_no_place(words[0].group()) or words[0].group().lower() in _GENERIC):
            words.pop(0)
        return (words[0].start(), len(text)) if len(words) > 1 else None

    def _is_no_place(self, word: str) -> bool:
        """Tell whether a word is a frequent word, a header or a drug, and so no name of a place."""
        plain = re.sub(r"['’]s$", "", word).rstrip(".,:")
        hi = "hi" in (self.lists.rate(plain, "city"), self.lists.rate(plain, "last"), self.lists.rate(plain, "first"))
        return (
            (self.lists.is_frequent(plain) and not hi)
            or self.lists.is_section(plain)
            or self.lists.is_drug(plain)
            or plain.lower() in _SMALL
        )


@cache
def countries() -> tuple[str, ...]:
    """Return the names of countries that are unambiguous, sorted."""
    listed = languages.lines("en", "surrogates/countries")
    return tuple(sorted({*listed, *WORDS["more_countries"]} - {*UNSURE_COUNTRIES, ""}))


@cache
def _not_cities() -> frozenset[str]:
    """Return the names of countries and states, cached."""
    return frozenset([*countries(), *UNSURE_COUNTRIES, *WORDS["states"]])


@cache
def _city_names() -> frozenset[str]:
    """Return the names of all listed cities, in lower case."""
    listed = languages.lines("en", "surrogates/cities")
    return frozenset(name.lower() for name in listed if name)


def _words_in(text: str) -> list[re.Match[str]]:
    """Return the words of a text (between white space) as matches, with their offsets."""
    return list(re.finditer(r"\S+", text))


def _is_part_of_place(word: str) -> bool:
    """Tell whether a word is common in place names, such as Lake or St."""
    return word.rstrip(".") in _PARTS
