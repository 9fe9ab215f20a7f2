"""The words of the calendar in English, Spanish and German: months, weekdays, seasons and holidays, and their case."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal, TypeAlias

Language: TypeAlias = Literal["en", "es", "de"]

_MONTHS: Mapping[Language, tuple[str, str]] = {  # full names, short names
    "en": (
        "January February March April May June July August September October November December",
        "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec",
    ),
    "es": (
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
        "ene feb mar abr may jun jul ago sep oct nov dic",
    ),
    "de": (
        "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
        "Jan Feb Mär Apr Mai Jun Jul Aug Sep Okt Nov Dez",
    ),
}
_WEEKDAYS: Mapping[Language, tuple[str, str]] = {
    "en": ("Monday Tuesday Wednesday Thursday Friday Saturday Sunday", "Mon Tue Wed Thu Fri Sat Sun"),
    "es": ("lunes martes miércoles jueves viernes sábado domingo", "lun mar mié jue vie sáb dom"),
    "de": ("Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag", "Mo Di Mi Do Fr Sa So"),
}
_SEASONS: Mapping[Language, tuple[str, str]] = {  # winter first: it is the season of the year's first day
    "en": ("winter spring summer fall", ""),
    "es": ("invierno primavera verano otoño", ""),
    "de": ("Winter Frühling Sommer Herbst", ""),
}
# Other spellings: word, language, number counted from 0, and whether the word is a short form.
_MORE_MONTHS = (
    ("Sept", "en", 8, True), ("setiembre", "es", 8, False), ("sept", "es", 8, True), ("set", "es", 8, True),
    ("Maerz", "de", 2, False), ("Marz", "de", 2, False), ("Mrz", "de", 2, True), ("Jänner", "de", 0, False),
    ("Feber", "de", 1, False), ("Sept", "de", 8, True),
)  # fmt: skip
_MORE_WEEKDAYS = (
    ("Tues", "en", 1, True), ("Weds", "en", 2, True), ("Thur", "en", 3, True), ("Thurs", "en", 3, True),
    ("miercoles", "es", 2, False), ("sabado", "es", 5, False), ("mie", "es", 2, True), ("sab", "es", 5, True),
    ("Sonnabend", "de", 5, False),
)  # fmt: skip
_MORE_SEASONS = (("autumn", "en", 3, False), ("otono", "es", 3, False), ("Frühjahr", "de", 1, False))


@dataclass(frozen=True, slots=True)
class Name:
    """A calendar word that was understood: its language, its number from 0, and whether it is a short form."""

    language: Language
    number: int
    short: bool


class CalendarWords:
    """One kind of calendar words: finds a word's number, and writes another number in the same manner."""

    def __init__(
        self, names: Mapping[Language, tuple[str, str]], more: Iterable[tuple[str, Language, int, bool]] = ()
    ) -> None:
        self._forms = {(lang, bool(i)): both[i].split() for lang, both in names.items() for i in (0, 1) if both[i]}
        known: dict[str, list[Name]] = {}
        for (language, short), words in self._forms.items():
            for number, word in enumerate(words):
                known.setdefault(word.casefold(), []).append(Name(language, number, short))
        for word, language, number, short in more:
            known.setdefault(word.casefold(), []).append(Name(language, number, short))
        self._known = known
        self.pattern = alternation(known)

    def find(self, word: str, *, language: Language | None, short: bool = False) -> Name | None:
        """The meaning of a word, in `language` if it has it; May is the full word unless `short` says otherwise."""
        found = self._known.get(unicodedata.normalize("NFC", word).casefold(), [])
        return max(found, key=lambda name: (name.language == language, name.short == short), default=None)

    def write(self, name: Name, number: int, *, like: str) -> str:
        """The word of another number, in the language, length and case of `like`."""
        return cased(self._forms[name.language, name.short][number], like)


def alternation(words: Iterable[str]) -> str:
    """A pattern for any of these words, longest first, also with their accents as separate characters."""
    spelled = {form for word in words for form in (word, unicodedata.normalize("NFD", word))}
    ordered = sorted(spelled, key=lambda word: (-len(word), word))
    return "(?:" + "|".join(re.escape(word).replace(r"\ ", r"\s{1,2}") for word in ordered) + ")"


def cased(word: str, like: str) -> str:
    """The word in capitals, small letters or with one capital, as `like` is.

    >>> cased("June", "MAR"), cased("june", "March"), cased("Juni", "märz")
    ('JUNE', 'June', 'juni')
    """
    if like.isupper():
        return word.upper()
    return word.lower() if like.islower() else word.capitalize()


def ordinal(day: int) -> str:
    """The English ending of a day: st, nd, rd or th."""
    return "th" if 11 <= day <= 13 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")


MONTHS = CalendarWords(_MONTHS, _MORE_MONTHS)  # type: ignore[arg-type]  # the literals of the table are languages
WEEKDAYS = CalendarWords(_WEEKDAYS, _MORE_WEEKDAYS)  # type: ignore[arg-type]  # the same
SEASONS = CalendarWords(_SEASONS, _MORE_SEASONS)  # type: ignore[arg-type]  # the same


def easter(year: int) -> date:
    """Easter Sunday of the Gregorian calendar (Meeus, Jones and Butcher)."""
    a, (b, c) = year % 19, divmod(year, 100)
    d, e = divmod(b, 4)
    g = (8 * b + 13) // 25
    h = (19 * a + b - d - g + 15) % 30
    i, k = divmod(c, 4)
    m = (a + 11 * h) // 319
    r = (2 * e + 2 * i - k - h + m + 32) % 7
    month = (h - m + r + 90) // 25
    return date(year, month, (h - m + r + month + 19) % 32)


# A holiday is a fixed day (month, day), the nth weekday of a month (month, weekday from 0, n; -1 is the last), or a
# number of days after Easter (days,).
_HOLIDAYS: Mapping[Language, Mapping[str, tuple[int, ...]]] = {
    "en": {
        "christmas": (12, 25), "christmas day": (12, 25), "xmas": (12, 25), "christmas eve": (12, 24),
        "boxing day": (12, 26), "new year's eve": (12, 31), "new years eve": (12, 31), "new year's day": (1, 1),
        "new years day": (1, 1), "new year's": (1, 1), "new years": (1, 1), "new year": (1, 1),
        "valentine's day": (2, 14), "valentines day": (2, 14), "st. patrick's day": (3, 17),
        "st patrick's day": (3, 17), "independence day": (7, 4), "fourth of july": (7, 4), "halloween": (10, 31),
        "veterans day": (11, 11), "veteran's day": (11, 11), "juneteenth": (6, 19), "groundhog day": (2, 2),
        "mlk day": (1, 0, 3), "martin luther king day": (1, 0, 3), "presidents' day": (2, 0, 3),
        "presidents day": (2, 0, 3), "president's day": (2, 0, 3), "mother's day": (5, 6, 2), "mothers day": (5, 6, 2),
        "memorial day": (5, 0, -1), "father's day": (6, 6, 3), "fathers day": (6, 6, 3), "labor day": (9, 0, 1),
        "labour day": (9, 0, 1), "columbus day": (10, 0, 2), "thanksgiving": (11, 3, 4),
        "thanksgiving day": (11, 3, 4), "easter": (0,), "easter sunday": (0,), "easter monday": (1,),
        "good friday": (-2,), "palm sunday": (-7,), "ash wednesday": (-46,), "mardi gras": (-47,), "pentecost": (49,),
    },
    "es": {
        "navidad": (12, 25), "nochebuena": (12, 24), "nochevieja": (12, 31), "año nuevo": (1, 1), "reyes": (1, 6),
        "día de reyes": (1, 6), "semana santa": (-3,), "viernes santo": (-2,), "domingo de ramos": (-7,),
        "día de todos los santos": (11, 1), "todos los santos": (11, 1),
    },
    "de": {
        "weihnachten": (12, 25), "heiligabend": (12, 24), "heiliger abend": (12, 24), "silvester": (12, 31),
        "neujahr": (1, 1), "ostern": (0,), "ostersonntag": (0,), "ostermontag": (1,), "karfreitag": (-2,),
        "pfingsten": (49,), "pfingstsonntag": (49,), "pfingstmontag": (50,), "christi himmelfahrt": (39,),
        "rosenmontag": (-48,), "aschermittwoch": (-46,), "allerheiligen": (11, 1),
        "tag der deutschen einheit": (10, 3), "nikolaus": (12, 6),
    },
}  # fmt: skip
_HOLIDAY_OF = {word: (language, rule) for language, rules in _HOLIDAYS.items() for word, rule in rules.items()}
HOLIDAYS = alternation(_HOLIDAY_OF).replace("'", "['’]")


def holiday(words: str) -> tuple[Language, tuple[int, ...]] | None:
    """The language of a holiday's name and the rule that gives its day (see `holiday_date`), or None."""
    plain = " ".join(unicodedata.normalize("NFC", words).casefold().replace("’", "'").split())
    return _HOLIDAY_OF.get(plain)


def holiday_date(rule: tuple[int, ...], year: int) -> date:
    """The day of a holiday in a year.

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
