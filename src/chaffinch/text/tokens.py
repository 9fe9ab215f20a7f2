"""Tokens of clinical and biomedical text, with exact offsets.

The pattern below matches every character of any text, so lengths add up to offsets. Where a choice had to be
made, the edge of an entity decides it: "IL-2-induced" is IL-2 | - | induced, "57-year-old" sets the age free,
"5mg/kg" is 5 | mg | / | kg; while a date, a phone number, an identifier, an e-mail address, a URL, "Dr." and
"O'Brien" are one token each. T tokens.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

import numpy as np
from numpy.typing import NDArray

# Titles and abbreviations that keep their full stop; a title is never the end of a sentence.
TITLES = frozenset(
    [
        "Dr",
        "Dra",
        "Drs",
        "Mr",
        "Mrs",
        "Ms",
        "Mx",
        "Prof",
        "Profa",
        "Sr",
        "Sra",
        "Srta",
        "Fr",
        "Hr",
        "St",
        "Ste",
        "Rev",
        "Hon",
        "Capt",
        "Lt",
        "Col",
        "Sgt",
        "Gen",
        "Dipl",
        "Ing",
        "med",
        "dent",
        "vet",
        "habil",
        "Priv",
        "Doz",
        "Mme",
        "Mlle",
        "Dña",
    ]
)
ABBREVIATIONS = TITLES | frozenset(
    [
        "vs",
        "no",
        "No",
        "approx",
        "ca",
        "cf",
        "al",
        "etc",
        "Fig",
        "Figs",
        "fig",
        "ref",
        "Ref",
        "Eq",
        "Inc",
        "Ltd",
        "Co",
        "Corp",
        "Dept",
        "Ave",
        "Blvd",
        "Rd",
        "Apt",
        "Ste",
        "Mt",
        "Ft",
        "Jan",
        "Feb",
        "Mar",
        "Apr",
        "Jun",
        "Jul",
        "Aug",
        "Sep",
        "Sept",
        "Oct",
        "Nov",
        "Dec",
        "bzw",
        "ggf",
        "inkl",
        "evtl",
        "usw",
        "Str",
        "Tel",
        "tel",
        "Abt",
        "Stat",
        "Avda",
        "Av",
        "Urb",
        "Ctra",
        "pág",
        "núm",
        "dcha",
        "izda",
    ]
)

# A word after a hyphen that starts a token of its own: what stands before is the entity.
_SUFFIXES = (
    "associated|based|bearing|binding|blocking|bound|coated|containing|day|days|deficient|dependent|derived|directed|"
    "driven|encoded|evoked|exposed|expressing|fold|free|hour|hours|hr|independent|induced|infected|inducible|initiated|"
    "like|linked|loaded|mediated|min|minute|minutes|month|months|naive|negative|old|positive|pretreated|producing|"
    "reactive|refractory|related|resistant|responsive|restricted|rich|secreting|sensitive|specific|stimulated|"
    "transfected|treated|type|week|weeks|year|years"
)
_UNITS = (
    "mcg|mg|ug|µg|μg|ng|pg|kg|g|ml|mL|dl|dL|cl|l|L|cc|mm|cm|m|km|nm|µm|μm|um|mmHg|mmol|mol|umol|µmol|nmol|mEq|meq|"
    "IU|UI|U|units|kcal|cal|Hz|kHz|kDa|kd|kD|bp|kb|mM|µM|μM|uM|nM|pM|h|hr|hrs|hours|min|mins|sec|s|d|days|wk|wks|weeks|"
    "mo|months|yo|yr|yrs|years|year|x|F|C|lb|lbs|in|ft|oz|am|pm|AM|PM"
)
_MONTHS = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    "nov(?:ember)?|dec(?:ember)?|ene|enero|febrero|marzo|abr|abril|mayo|junio|julio|ago|agosto|septiembre|octubre|"
    "noviembre|dic|diciembre|okt|dez|mai|januar|februar|märz|juni|juli|oktober|dezember"
)
_DOMAINS = "com|org|net|edu|gov|mil|int|info|health|es|de|at|ch|uk|us|fr|it|eu|nl|pt|mx|ar|cl|ca|au|io"
_IDEOGRAPHS = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_KANA = "\u3040-\u30ff"
_EMOJI = "[\U0001f000-\U0001faff\u2600-\u27bf\u2b50\u2b55\u2190-\u21ff\u2300-\u23ff]"


def _marks() -> str:
    """Combining marks of the basic plane as a regex class: they belong to the letter before them."""
    chars = (chr(c) for c in range(0x300, 0xFE00))
    return "".join(c for c in chars if unicodedata.category(c) in {"Mn", "Mc"})


@cache
def pattern() -> re.Pattern[str]:
    """The token pattern, compiled on first use; alternatives stand in the order they are tried."""
    marks = _marks()
    letter, sign = rf"[^\W\d_{_IDEOGRAPHS}{_KANA}]", rf"[^\W_{_IDEOGRAPHS}{_KANA}]"
    signs = rf"{sign}++(?:[{marks}]++{sign}*+)*+"  # letters and digits, with the marks that belong to them
    ends = rf"(?![\w{marks}])"
    shorts = "|".join(sorted(ABBREVIATIONS, key=len, reverse=True))
    numbers = [
        rf"(?i:\d{{1,2}}[-/.](?:{_MONTHS})[-/.]\d{{2,4}}){ends}",  # 12-Mar-1998
        rf"\d++(?:[.,]\d++)*+(?=(?:{_UNITS})(?![\w-]))",  # 5mg, 40years
        rf"\d++(?:[-./:,]\d++)*+{ends}",  # dates, times, phone numbers, decimals
    ]
    words = [
        r"(?i:https?://|www\.)[^\s<>\"]*[^\s<>\".,;:!?)\]}'’]",
        rf"(?={sign}{{1,6}}\.)(?:(?:{letter}\.){{2,}}(?!{letter})|(?:{shorts})\.)",  # U.S., e.g., Dr.
        rf"(?:\w[\w-]{{0,62}}\.){{1,8}}(?:{_DOMAINS}){ends}(?![.@]\w)",
        rf"{letter}/{letter}{ends}",  # s/p, y/o
        rf"{signs}(?:(?:-(?!(?:{_SUFFIXES}){ends})|['’](?![sS]{ends})|_+|(?<=\d)\.(?=\d)){signs})*",
    ]
    parts = [
        rf"{letter}++(?=[\s,;)]|:\s)",  # the usual cases, decided at once
        r"[,;:()\[\]\"%!?/+]|\.(?!\.)",
        r"(?=[\w+-])[\w.+-]{1,64}+@\w[\w-]{0,62}(?:\.\w[\w-]{0,62}){1,8}",
        rf"(?=\d)(?:{'|'.join(numbers)})",
        rf"(?={sign})(?:{'|'.join(words)})",
        rf"['’][sS]{ends}",
        rf"[{_IDEOGRAPHS}]|[{_KANA}]+",
        rf"[\U0001f1e6-\U0001f1ff]{{2}}|{_EMOJI}(?:[\ufe0f\U0001f3fb-\U0001f3ff]|\u200d{_EMOJI})*",
        r"\.+|-+|=+|\*+|_+|#+|~+|<+|>+",
        r"\S",
    ]
    return re.compile(rf"(?:{'|'.join(parts)})\s*+")


def token_offsets(text: str) -> NDArray[np.int32]:
    """(T, 2) start and end of every token, in code points; white space is in no token.

    >>> text = "IL-2-induced, 5mg/kg on 12/03/1998"
    >>> [text[a:b] for a, b in token_offsets(text)]
    ['IL-2', '-', 'induced', ',', '5', 'mg', '/', 'kg', 'on', '12/03/1998']
    """
    before = len(text) - len(text.lstrip())
    pieces = pattern().findall(text, before)  # each a token and the white space behind it
    lengths = np.fromiter(map(len, pieces), np.int32, len(pieces))
    starts = np.cumsum(lengths, dtype=np.int32) - lengths + np.int32(before)
    widths = np.fromiter(map(len, map(str.rstrip, pieces)), np.int32, len(pieces))
    return np.stack([starts, starts + widths], axis=1)
