"""Categories of words that are not plain: dates, telephone numbers, numbers, network names, identifiers.

Each function takes a word and returns the fields of its symbol (see `signatures`), or None if the word is not of that
category. A digit is a decimal digit (`str.isdecimal`, which is what `\\d` matches): "²" is none. Also recognised, since
they would else be identifiers: dates with points, months of a year (3/1998), ISO dates with other separators, shortened
years ('98), telephone numbers that begin with +, and numbers with a sign.
"""

from __future__ import annotations

import re
from itertools import groupby

from chaffinch.languages import Pack, fold

LONGEST_NUMBER = 40  # characters of a date, a telephone number or a number; longer words are identifiers
LONGEST_HOST = 255  # characters; the most that the domain name system allows
MASK_CHARS, MASK_RUNS = 64, 8  # a mask covers at most these; "+" at its end marks that there is more

_DIGIT, _DIGITS = re.compile(r"\d"), re.compile(r"\d+")
_DATE = re.compile(
    r"\d{1,2}[/-]\d{1,2}(?:[/-]\d{2,4})?|\d{1,2}\.\d{1,2}\.\d{2,4}|\d{4}([-/.])\d{1,2}\1\d{1,2}"
    r"|(?:0?[1-9]|1[0-2])[/-](?:19|20)\d\d"
)
_DECADE = re.compile(r"(['’]?)((?:\d\d)?\d0)(['’]?[^\W\d_]+)")
_SHORT_YEAR = re.compile(r"['’]\d\d")
_MONTH = re.compile(r"(?:(\d{1,2})[-/.]?)?([^\W\d_]{3,12})(\.?)(?:([-/.,'’]{1,2})(\d{4}|\d{1,2})|(\d{4}|\d{2}))?")
_ABROAD = re.compile(r"\(?\+\d[\d\s()./-]{6,30}")
_NUMBER = re.compile(r"[-+−]?(?:(\d+)((?:[.,]\d+)*)[.,]?|[.,]\d+)(%?)")
_GROUP = re.compile(r"([.,])(\d+)")
_DOMAINS = "com|org|net|edu|gov|mil|int|info|health|es|de|at|ch|uk|us|fr|it|eu|nl|pt|mx|ar|cl|ca|au|io"
_HOST = re.compile(rf"\w[\w-]{{1,62}}\.(?:\w[\w-]{{0,62}}\.){{0,7}}(?:{_DOMAINS})(:\d+)?(/\S*)?", re.IGNORECASE)
_ADDRESS = re.compile(r"(?:\d{1,3}\.){3}\d{1,3}")
_KEPT = frozenset("-/._:#&+(),'")  # marks that an identifier's mask keeps


def has_digit(word: str) -> bool:
    """Tell whether the word has a decimal digit."""
    return _DIGIT.search(word) is not None


def count_digits(word: str) -> str:
    """Return the number of decimal digits as text, "7+" from 7 on; "" if there is none."""
    count = len(_DIGIT.findall(word))
    return _digits(count) if count else ""


def _digits(count: int) -> str:
    """Return a number of digits as text, "7+" from 7 on."""
    return str(count) if count < 7 else "7+"


def is_punctuation(word: str) -> bool:
    """Tell whether the word has neither a letter nor a decimal digit; true of the empty word."""
    return not any(char.isalpha() or char.isdecimal() for char in word)


def punctuation(word: str) -> str:
    """Return "CHARACTER|run=LENGTH" of punctuation: the first ("bar" for "|"), and its length 1, 2 or 3+."""
    char = "bar" if word[0] == "|" else word[0]
    return f"{char}|run={len(word) if len(word) < 3 else '3+'}"


def date(word: str, pack: Pack) -> str | None:
    """Return the mask, number of fields, digits of the year and whether a month is possible; None if it is no date.

    The year is the field of four digits, else the third field if there is one. A month's name becomes Mon.
    """
    if len(word) > LONGEST_NUMBER or (word.isalpha() and not _names_a_date(word, pack)):
        return None
    if _DATE.fullmatch(word):
        numbers = _DIGITS.findall(word)
        lengths = [len(number) for number in numbers]
        year_field = lengths.index(4) if 4 in lengths else 2
        year = lengths[year_field] if year_field < len(numbers) else 0
        month = any(1 <= int(number) <= 12 for n, number in enumerate(numbers) if n != year_field)
        return _date_fields(_DIGIT.sub("0", word), len(numbers), year if year != 3 else 0, month)
    if _SHORT_YEAR.fullmatch(word):
        return _date_fields("'00", 1, 2, False)
    decade = _DECADE.fullmatch(word)
    if decade and fold(decade[3]).replace("’", "'") in pack.decade_endings:
        years = len(decade[2])
        return _date_fields(f"{chr(39) if decade[1] else ''}{'0' * years}s", 1, years, False)
    if fold(word) in pack.decades:
        return _date_fields("decade", 1, 0, False)
    return _month_fields(word, pack)


def _names_a_date(word: str, pack: Pack) -> bool:
    """Tell whether a word is a month or a decade of the language."""
    lower = fold(word)
    return lower in pack.months or lower in pack.decades


def _date_fields(mask: str, fields: int, year: int, month: bool) -> str:
    """Return the class of a date as text: its mask, number of fields, digits of the year, named month."""
    return f"{mask}|fields={fields}|year={year}|month={int(month)}"


def _month_fields(word: str, pack: Pack) -> str | None:
    """Return the fields of a month's name, alone or with a day or a year; None if there is none.

    A name alone needs a capital unless the language writes months without ("may", "mar" are words), and two digits
    right after it need a day before it ("SEPT12" is a gene, "12Mar98" a date).
    """
    match = _MONTH.fullmatch(word)
    if not match:
        return None
    day, month, point, mark, separate, adjacent = match.groups()
    name, after = fold(month), separate or adjacent
    if name not in pack.months or (adjacent and len(adjacent) == 2 and not day):
        return None
    if not day and not after:
        if month[0].islower() and name not in pack.plain_months:
            return None
        return _date_fields(f"Mon{point}", 1, 0, True)
    is_year = after and (len(after) == 4 or (len(after) == 2 and bool(day or int(after) > 31 or mark in ("'", "’"))))
    mask = _DIGIT.sub("0", word.replace(month, "Mon").replace("’", "'"))
    return _date_fields(mask, 1 + bool(day) + bool(after), len(after) if is_year else 0, True)


def phone(word: str, pack: Pack) -> str | None:
    """Return a phone number's mask, whether it has an area code and an extension, as text; None if it is none.

    The mask leaves out the extension. A word for an extension or a pager followed by four digits or more is a telephone
    number as well: x12345.
    """
    if len(word) > LONGEST_NUMBER:
        return None
    number, extended = word, pack.extension.fullmatch(word)
    if extended:
        if not extended[1]:
            return f"x{'0' * len(extended[2])}|area=0|ext=1" if len(extended[2]) >= 4 else None
        number = extended[1]
    mask = " ".join(_DIGIT.sub("0", number).split())
    digits = mask.count("0")
    if mask not in pack.phones and not (_ABROAD.fullmatch(number) and 8 <= digits <= 15):
        return None
    area = digits >= 9 or "/" in mask or "(" in mask
    return f"{mask}|area={int(area)}|ext={int(extended is not None)}"


def number(word: str, pack: Pack) -> str | None:
    """Return a number's fields as text: digits, range, decimals, thousands, percent; None if the word is no number.

    The range of two digits is 12, 31, 89 (at most) or 90+, of four digits year (1900 to 2035); else it is 0. One group
    of three digits after the thousands mark is a group of thousands; anything else after a mark is decimals.
    """
    match = _NUMBER.fullmatch(word) if len(word) <= LONGEST_NUMBER else None
    if not match:
        return None
    whole, groups = match[1] or "0", _GROUP.findall(match[2] or "")
    thousands, decimals = 0, not match[1]
    if groups:
        *inner, (mark, last) = groups
        marks = {group[0] for group in inner}
        if len(marks) > 1 or any(len(digits) != 3 for _, digits in inner) or (inner and len(whole) > 3):
            return None
        separates_thousands = {mark} == marks if inner else mark != pack.decimal and len(whole) <= 3 and whole != "0"
        if inner and separates_thousands and len(last) != 3:
            return None
        decimals = not (separates_thousands and len(last) == 3)
        thousands = len(inner) + (not decimals)
    count, span = len(whole) + 3 * thousands, "0"
    if not groups and count == 2:
        span = next((str(most) for most in (12, 31, 89) if int(whole) <= most), "90+")
    elif not groups and count == 4 and 1900 <= int(whole) <= 2035:
        span = "year"
    return (
        f"digits={_digits(count)}|range={span}|dec={int(decimals)}"
        f"|thousands={int(thousands > 0)}|pct={int(bool(match[3]))}"
    )


def net(word: str) -> str | None:
    """Return "email" for a word with "@", "url", or "host" (also an IPv4 address); None for other words."""
    if "@" in word:
        return "email"
    if "://" in word or word[:4].lower() == "www.":
        return "url"
    if "." not in word or len(word) > LONGEST_HOST:
        return None
    if _ADDRESS.fullmatch(word) and all(int(part) <= 255 for part in word.split(".")):
        return "host"
    match = _HOST.fullmatch(word)
    return None if not match else "url" if match[2] else "host"


def identifier(word: str) -> str:
    """Return the mask of a word's runs: A capitals, a other letters, 0 digits, each with its length's class.

    >>> identifier("37947241ZGJ")
    '0{7-8}A{3}'
    """
    runs = [(kind, len(list(chars))) for kind, chars in groupby(word[:MASK_CHARS], _kind)]
    mask = "".join(f"{kind}{{{_bucket(length)}}}" if kind in "Aa0" else kind for kind, length in runs[:MASK_RUNS])
    return mask + "+" * (len(runs) > MASK_RUNS or len(word) > MASK_CHARS)


def _kind(char: str) -> str:
    """Return the class of a character: 0 for digits, A and a for letters, itself if a kept sign, else *."""
    if char.isdecimal():
        return "0"
    if char.isalpha():
        return "A" if char.isupper() else "a"
    return char if char in _KEPT else "*"


def _bucket(length: int) -> str:
    """Return the class of a length: 1 to 4, 5-6, 7-8 or 9+."""
    return str(length) if length <= 4 else "5-6" if length <= 6 else "7-8" if length <= 8 else "9+"
