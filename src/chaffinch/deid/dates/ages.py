"""Cap ages: ages over a limit, in digits or in English words, become one group (90+)."""

from __future__ import annotations

import re

from chaffinch import languages

_NUMBERS = languages.number_words("en")
_UNITS, _TEENS, _TENS, _DECADES, _PEOPLE = (
    _NUMBERS.units,
    _NUMBERS.teens,
    _NUMBERS.tens,
    _NUMBERS.decades,
    _NUMBERS.people,
)
_VALUES = {
    **{word: number for number, word in enumerate([*_UNITS, *_TEENS], start=1)},
    **{word: 10 * number for number, word in enumerate(_TENS, start=2)},
    **{word: 10 * number for number, word in enumerate(_DECADES, start=2)},
    **_PEOPLE,
}
_SMALL = "|".join(sorted([*_UNITS, *_TEENS, *_TENS], key=len, reverse=True))
_WORDS = rf"(?:(?:an?|one)\s+)?hundred(?:\s+(?:and\s+)?(?:{_SMALL})(?:[\s-]+(?:{'|'.join(_UNITS)}))?)?" + (
    rf"|(?:{'|'.join(_TENS)})(?:[\s-]+(?:{'|'.join(_UNITS)})(?![a-z]))?|{'|'.join([*_DECADES, *_PEOPLE])}"
    rf"|{'|'.join(sorted([*_TEENS, *_UNITS], key=len, reverse=True))}"
)
_AGE = re.compile(rf"(?P<figures>\d+)(?:[.,]\d+)?(?:['’]?s\b)?|(?<![a-z])(?P<words>{_WORDS})s?(?![a-z])", re.IGNORECASE)
_PARTS_OF_YEARS = re.compile(
    r"[\s-]*(?:(?P<months>mo\b|mos\b|months?|mes\b|meses|monate?n?)"
    r"|(?P<weeks>wks?\b|weeks?|semanas?|wochen?)|(?P<days>days?|d\b|d[ií]as?|tage?n?)|(?P<hours>h\b|hrs?\b|hours?))",
    re.IGNORECASE,
)
_PER_YEAR = {"months": 12, "weeks": 52, "days": 365, "hours": 8760}
_NOT_AN_AGE = re.compile(r"\d{4}|\d\s*[-/.]\s*\d+\s*[-/.]\s*\d")  # a year, a number, a date
_OTHER_LANGUAGES = re.compile(
    r"novent|cien|nonagenari(?!an)|centenari(?!an)|neunzig|hundert|hochbetagt|quatre.vingt.dix|\bcent\b|novant",
    re.IGNORECASE,
)
_MAX_AGE = 130  # years; a greater number is no age, and the text is not read


def cap_ages(text: str, over: int) -> str | None:
    """Return the text with each age above `over` replaced by a group ("90+" if over=89); None if none can be read.

    Months, weeks, days and hours are converted to years first. Number words are read in English only; a text with
    number words of another language gives None, and so does a year, a date, or an age over 130.

    >>> cap_ages("92-year-old", 89), cap_ages("ninety-two", 89), cap_ages("95 months", 89)
    ('90+-year-old', '90+', '95 months')
    >>> cap_ages("75", 89), cap_ages("of old age", 89)
    ('75', None)
    """
    matches = list(_AGE.finditer(text))
    if not matches or _NOT_AN_AGE.search(text) or _OTHER_LANGUAGES.search(text):
        return None
    pieces: list[str] = []
    done = 0
    for match in matches:
        parts = _PARTS_OF_YEARS.match(text, match.end())
        years = _age_of(match) // (_PER_YEAR[str(parts.lastgroup)] if parts else 1)
        if years > _MAX_AGE or (parts and years > over):
            return None
        pieces += (text[done : match.start()], f"{over + 1}+" if years > over else match[0])
        done = match.end()
    return "".join([*pieces, text[done:]])


def _age_of(match: re.Match[str]) -> int:
    """Return the number that a match spells, in digits or English words."""
    if match["figures"]:
        return int(match["figures"])
    words = re.split(r"[\s-]+", match["words"].lower())
    if "hundred" in words:
        return 100 + sum(_VALUES.get(word, 0) for word in words[words.index("hundred") + 1 :])
    return sum(_VALUES[word] for word in words)
