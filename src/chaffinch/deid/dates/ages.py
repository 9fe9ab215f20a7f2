"""Ages over a limit, in figures or in English words, become one group."""

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
_NO_AGE = re.compile(r"\d{4}|\d\s*[-/.]\s*\d+\s*[-/.]\s*\d")  # a year, a number, a date
_OTHER_TONGUES = re.compile(
    r"novent|cien|nonagenari(?!an)|centenari(?!an)|neunzig|hundert|hochbetagt|quatre.vingt.dix|\bcent\b|novant",
    re.IGNORECASE,
)
_OLDEST = 130


def capped_age(text: str, over: int) -> str | None:
    """The text with every age over a limit as one group, or None if it cannot be read as an age.

    Months, weeks and days are turned into years first. Words are read in English; in other tongues, figures only.

    >>> capped_age("92-year-old", 89), capped_age("ninety-two", 89), capped_age("95 months", 89)
    ('90+-year-old', '90+', '95 months')
    >>> capped_age("75", 89), capped_age("of old age", 89)
    ('75', None)
    """
    found = list(_AGE.finditer(text))
    if not found or _NO_AGE.search(text) or _OTHER_TONGUES.search(text):
        return None
    pieces: list[str] = []
    at = 0
    for match in found:
        parts = _PARTS_OF_YEARS.match(text, match.end())
        years = _value(match) // (_PER_YEAR[str(parts.lastgroup)] if parts else 1)
        if years > _OLDEST or (parts and years > over):
            return None
        pieces += (text[at : match.start()], f"{over + 1}+" if years > over else match[0])
        at = match.end()
    return "".join([*pieces, text[at:]])


def _value(match: re.Match[str]) -> int:
    if match["figures"]:
        return int(match["figures"])
    words = re.split(r"[\s-]+", match["words"].lower())
    if "hundred" in words:
        return 100 + sum(_VALUES.get(word, 0) for word in words[words.index("hundred") + 1 :])
    return sum(_VALUES[word] for word in words)
