"""Calendar words of all languages: months, weekdays, seasons and holidays, with their spelling and case."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta

from chaffinch import languages


@dataclass(frozen=True, slots=True)
class Name:
    """A recognised calendar word: its language, its number from 0, and whether it is a short form."""

    language: str
    number: int
    short: bool


class CalendarWords:
    """The words of one calendar unit: finds a word's number, and writes another number in the same form."""

    def __init__(self, kind: str) -> None:
        """Collect the words of a kind (months, weekdays or seasons) from the calendars of all languages."""
        self._forms: dict[tuple[str, bool], tuple[str, ...]] = {}
        names_by_word: dict[str, list[Name]] = {}
        more: list[tuple[str, Name]] = []
        for language, calendar in languages.calendars().items():
            for short, prefix in ((False, ""), (True, "short_")):
                if words := getattr(calendar, f"{prefix}{kind}"):
                    self._forms[language, short] = words
                for number, word in enumerate(words):
                    names_by_word.setdefault(word.casefold(), []).append(Name(language, number, short))
                spellings = getattr(calendar, f"more_{prefix}{kind}")
                more += [(word, Name(language, number - 1, short)) for word, number in spellings.items()]
        for word, name in more:
            names_by_word.setdefault(word.casefold(), []).append(name)
        self._names_by_word = names_by_word
        self.pattern = alternation(names_by_word)

    def find(self, word: str, *, language: str | None, short: bool = False) -> Name | None:
        """Return the language, number and length of a word, preferably in `language`, then `short`; None if unknown."""
        found = self._names_by_word.get(unicodedata.normalize("NFC", word).casefold(), [])
        return max(found, key=lambda name: (name.language == language, name.short == short), default=None)

    def write(self, name: Name, number: int, *, like: str) -> str:
        """Return the calendar word of a number (from 0), in the language and length of `name`, case of `like`."""
        return match_case(self._forms[name.language, name.short][number], like)


def alternation(words: Iterable[str]) -> str:
    """Return a regular expression that matches any of the words, longest first, accents composed or separate."""
    spelled = {form for word in words for form in (word, unicodedata.normalize("NFD", word))}
    ordered = sorted(spelled, key=lambda word: (-len(word), word))
    return "(?:" + "|".join(re.escape(word).replace(r"\ ", r"\s{1,2}") for word in ordered) + ")"


def match_case(word: str, like: str) -> str:
    """Return the word in upper case, lower case or capitalised, as `like` is written.

    >>> match_case("June", "MAR"), match_case("june", "March"), match_case("Juni", "märz")
    ('JUNE', 'June', 'juni')
    """
    if like.isupper():
        return word.upper()
    return word.lower() if like.islower() else word.capitalize()


def ordinal_suffix(day: int) -> str:
    """Return the English ordinal suffix of a day: st, nd, rd or th."""
    return "th" if 11 <= day <= 13 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")


MONTHS, WEEKDAYS, SEASONS = CalendarWords("months"), CalendarWords("weekdays"), CalendarWords("seasons")


def easter(year: int) -> date:
    """Return Easter Sunday of the Gregorian calendar (Meeus, Jones and Butcher)."""
    a, (b, c) = year % 19, divmod(year, 100)
    d, e = divmod(b, 4)
    g = (8 * b + 13) // 25
    h = (19 * a + b - d - g + 15) % 30
    i, k = divmod(c, 4)
    m = (a + 11 * h) // 319
    r = (2 * e + 2 * i - k - h + m + 32) % 7
    month = (h - m + r + 90) // 25
    return date(year, month, (h - m + r + month + 19) % 32)


_RULE_OF_HOLIDAY = {  # by name: the language and the rule of `holiday_date`
    word: (language, rule)
    for language, calendar in languages.calendars().items()
    for word, rule in calendar.holidays.items()
}
HOLIDAYS = alternation(_RULE_OF_HOLIDAY).replace("'", "['’]")


def find_holiday(words: str) -> tuple[str, tuple[int, ...]] | None:
    """Return the language of a holiday's name and the rule for its date (see `holiday_date`), or None."""
    plain = " ".join(unicodedata.normalize("NFC", words).casefold().replace("’", "'").split())
    return _RULE_OF_HOLIDAY.get(plain)


def holiday_date(rule: tuple[int, ...], year: int) -> date:
    """Return a holiday's date: rule (days from Easter), (month, day), or (month, weekday, nth; not positive: last).

    A rule is a fixed day (month, day), the nth weekday of a month (month, weekday from 0, n; -1 is the last), or a
    number of days after Easter (days,).

    >>> holiday_date((11, 3, 4), 1997)  # Thanksgiving: the fourth Thursday of November
    datetime.date(1997, 11, 27)
    """
    if len(rule) == 1:
        return easter(year) + timedelta(rule[0])
    if len(rule) == 2:
        return date(year, rule[0], rule[1])
    month, weekday, nth = rule
    if nth > 0:
        first = date(year, month, 1)
        return first + timedelta((weekday - first.weekday()) % 7 + 7 * (nth - 1))
    last = date(year, month + 1, 1) - timedelta(1)
    return last - timedelta((last.weekday() - weekday) % 7)
