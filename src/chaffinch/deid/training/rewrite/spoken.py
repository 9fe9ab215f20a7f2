"""Numbers and dates as people dictate them."""

from __future__ import annotations

import re

import numpy as np

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
    " eighteen nineteen"
).split()
_TENS = ". . twenty thirty forty fifty sixty seventy eighty ninety".split()
_ORDINALS = {
    1: "first", 2: "second", 3: "third", 5: "fifth", 8: "eighth", 9: "ninth", 12: "twelfth", 20: "twentieth",
    30: "thirtieth",
}  # fmt: skip
_MONTHS = "january february march april may june july august september october november december".split()
_DATE = re.compile(r"(\d{1,2})[/.-](\d{1,2})(?:[/.-](\d{4}|\d{2}))?")
_AS_HUNDREDS = 0.6  # the share of numbers of three digits that are not read digit by digit


def say_number(digits: str, rng: np.random.Generator) -> str:
    """Return digits in words: numbers up to 99, years, some hundreds, else digit by digit.

    >>> say_number("78", np.random.default_rng(0)), say_number("2024", np.random.default_rng(0))
    ('seventy eight', 'twenty twenty four')
    """
    if len(digits) == 1 or (len(digits) == 2 and digits[0] != "0"):
        return _small(int(digits))
    if len(digits) == 4 and digits[:2] in ("19", "20"):
        years = int(digits[2:])
        rest = _small(years) if years > 9 else f"oh {_ONES[years]}" if years else "hundred"
        return f"{_small(int(digits[:2]))} {rest}"
    if len(digits) == 3 and digits[0] != "0" and rng.random() < _AS_HUNDREDS:
        rest = _small(int(digits[1:])) if int(digits[1:]) else ""
        return f"{_ONES[int(digits[0])]} hundred {rest}".strip()
    zero = "zero" if rng.random() < 0.5 else "oh"
    return " ".join(zero if digit == "0" else _ONES[int(digit)] for digit in digits)


def say_date(text: str, rng: np.random.Generator) -> str | None:
    """Return a date of digits in words, month first, two-digit years as 20xx; None if it is none.

    >>> say_date("02/21/2024", np.random.default_rng(2))
    'february twenty first twenty twenty four'
    """
    found = _DATE.fullmatch(text)
    if found is None:
        return None
    month, day = int(found[1]), int(found[2])
    month, day = (day, month) if month > 12 else (month, day)
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    year = found[3] and (found[3] if len(found[3]) == 4 else f"20{found[3]}")
    spoken = f"{_MONTHS[month - 1]} {_ordinal(day) if rng.random() < 0.5 else _small(day)}"
    return f"{spoken} {say_number(year, rng)}" if year else spoken


def _small(number: int) -> str:
    """Return a number from 0 to 99 in English words."""
    if number < 20:
        return _ONES[number]
    return f"{_TENS[number // 10]} {_ONES[number % 10]}" if number % 10 else _TENS[number // 10]


def _ordinal(number: int) -> str:
    """Return an English ordinal number in words, such as "twenty first"."""
    if number in _ORDINALS:
        return _ORDINALS[number]
    return f"{_ONES[number]}th" if number < 20 else f"{_TENS[number // 10]} {_ordinal(number % 10)}"
