"""Tokenisation of clinical and biomedical text, with exact offsets.

The pattern below matches every character of any text, so lengths add up to offsets. Where a choice had to be
made, the edge of an entity decides it: "IL-2-induced" is IL-2 | - | induced, "57-year-old" sets the age free,
"5mg/kg" is 5 | mg | / | kg; while a date, a phone number, an identifier, an e-mail address, a URL, "Dr." and
"O'Brien" are one token each. T tokens.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from itertools import accumulate
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

RangeMode: TypeAlias = Literal["touch", "inside", "exact"]

# Titles and abbreviations that keep their full stop; a title is never the end of a sentence.
_TITLES = (
    "Dr Dra Drs Mr Mrs Ms Mx Prof Profa Sr Sra Srta Fr Hr St Ste Rev Hon Capt Lt Col Sgt Gen "
    "Dipl Ing med dent vet habil mult Priv Doz DDr Univ Prim Mme Mlle Dña"
).split()
TITLES = frozenset([*_TITLES, *(title.upper() for title in _TITLES)])
ABBREVIATIONS = TITLES | frozenset(
    "vs approx ca cf al etc Fig Figs fig Ref Eq Inc Ltd Co Corp Dept Ave Blvd Rd Apt Mt Ft "
    "Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec bzw ggf inkl evtl usw Str Tel tel Abt "
    "Avda Av Urb Ctra Crta Carr Cra Pza Nnal EE Städt pág núm dcha izda".split()
)

# A lower-case word of five letters or more after a hyphen is a token of its own ("cocaine-induced": the part
# before is the entity), and so are these short ones; Greek letters belong to the name.
_SHORT_TAILS = "avid|day|days|fold|free|gene|hour|hours|hr|like|min|month|months|old|rich|type|week|weeks|year|years"
_GREEK = "alpha|beta|gamma|delta|epsilon|zeta|theta|kappa|lambda|sigma|omega"
_UNITS = (
    "mcg|mg|ug|µg|μg|ng|pg|kg|g|ml|mL|dl|dL|cl|l|L|cc|mm|cm|m|km|nm|µm|μm|um|mmHg|mmol|mol|umol|µmol|nmol|mEq|meq|"
    "IU|UI|U|units|kcal|cal|Hz|kHz|kDa|kd|kD|bp|kb|mM|µM|μM|uM|nM|pM|h|hr|hrs|hours|min|mins|sec|s|d|days|wk|wks|weeks|"
    "mo|months|yo|yr|yrs|years|year|x|F|C|lb|lbs|in|ft|oz|am|pm|AM|PM"
)
MONTHS = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    "nov(?:ember)?|dec(?:ember)?|ene|enero|febrero|marzo|abr|abril|mayo|junio|julio|ago|agosto|septiembre|octubre|"
    "noviembre|dic|diciembre|okt|dez|mai|januar|februar|märz|juni|juli|oktober|dezember"
)
_DOMAINS = "com|org|net|edu|gov|mil|int|info|health|es|de|at|ch|uk|us|fr|it|eu|nl|pt|mx|ar|cl|ca|au|io"
_IDEOGRAPHS = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_KANA = "\u3040-\u30ff"
_EMOJI = "[\U0001f000-\U0001faff\u2600-\u27bf\u2b50\u2b55\u2190-\u21ff\u2300-\u23ff]"


# The basic plane from the first combining mark on, without ideographs, Hangul, surrogates and private use, which have
# none: the category of every code point takes some hundredths of a second.
_BLOCKS_WITH_MARKS = ((0x300, 0x3400), (0xA000, 0xAC00), (0xD7A4, 0xD800), (0xF900, 0xFE00))


def _combining_marks() -> str:
    """Return the combining marks of the basic plane, as characters for a regex class."""
    chars = (chr(c) for block in _BLOCKS_WITH_MARKS for c in range(*block))
    return "".join(c for c in chars if unicodedata.category(c) in {"Mn", "Mc"})


@cache
def token_pattern() -> re.Pattern[str]:
    """Return the token pattern, compiled on first use; its matches cover the text, with blanks after a token."""
    marks = _combining_marks()
    letter, sign = rf"[^\W\d_{_IDEOGRAPHS}{_KANA}]", rf"[^\W_{_IDEOGRAPHS}{_KANA}]"
    signs = rf"{sign}++(?:[{marks}]++{sign}*+)*+"  # letters and digits, with the marks that belong to them
    ends = r"(?!\w)"
    tail = rf"(?:(?!(?:{_GREEK}){ends})[a-zà-öø-ÿ]{{5,}}|{_SHORT_TAILS}|\d{{5,}}){ends}"
    shorts = "|".join([*_TITLES, *sorted(ABBREVIATIONS.difference(_TITLES))])  # the usual ones first
    numbers = [
        rf"(?i:\d{{1,2}}[-/.](?:{MONTHS})[-/.]\d{{2,4}}){ends}",  # 12-Mar-1998
        rf"\d++(?:[.,]\d++)*+(?={letter})(?=(?:{_UNITS})(?![\w-]))",  # 5mg, 40years
        r"(?:19|20)\d\d(?=-(?:19|20)\d\d(?!\d))",  # the first of two years
        rf"\d++(?:(?:-\d++)++|(?:/\d++)++|(?::\d++)++|(?:[.,]\d++)++)?+{ends}",  # dates, phones, times, decimals
    ]
    words = [
        r"(?i:https?://|www\.)[^\s<>\"]*[^\s<>\".,;:!?)\]}'’]",
        r"[Nn][oOr]\.(?=\s?\d)",
        rf"(?={sign}{{1,6}}\.)(?:(?:{letter}\.){{2,}}(?!{letter})|(?:{shorts})\.)",  # U.S., e.g., Dr.
        rf"(?:\w[\w-]{{0,62}}\.){{1,8}}(?:{_DOMAINS}){ends}(?![.@]\w)",
        rf"{letter}/{letter}{ends}",  # s/p, y/o
        rf"{signs}(?:(?:-(?!{tail})|['’](?![sS]{ends})|_+|(?<=\d)\.(?=\d)){signs})*",
    ]
    # The usual cases are decided at once, by sets of characters that fit the engine's bitmap.
    plain, blank = r"[A-Za-zÀ-ÖØ-öø-ÿ]", r"[ \n\r\t]"
    low = "|".join(sorted(word for word in ABBREVIATIONS if len(word) >= 4 and word.islower()))
    parts = [
        rf"(?:{plain}++{blank}++)++",
        rf"{plain}++(?=[ \n\r\t,;)]|:(?!/))|(?!(?:{low})\.)(?:[a-z]{{4,}}+|{plain}{{7,}}+)(?=\.{blank})",
        r"[,;:()\[\]\"%!?/+]|\.(?!\.\.)",
        r"(?=[\w+-])[\w.+-]{1,64}+@\w[\w-]{0,62}(?:\.\w[\w-]{0,62}){1,8}",
        rf"(?=\d)(?:{'|'.join(numbers)})",
        rf"(?={sign})(?:{'|'.join(words)})",
        rf"['’][sS]{ends}",
        rf"[{_IDEOGRAPHS}]|[{_KANA}]+",
        rf"[\U0001f1e6-\U0001f1ff]{{2}}|{_EMOJI}(?:[\ufe0f\U0001f3fb-\U0001f3ff]|\u200d{_EMOJI})*",
        r"\.{3,}+|-+|=+|\*+|_+|#+|~+|<+|>+",
        r"\s++|\S",
    ]
    return re.compile(rf"(?:{'|'.join(parts)}){blank}*+")


def token_offsets(text: str) -> NDArray[np.int32]:
    """Return (T, 2) start and end of every token, in code points; white space is in no token.

    >>> text = "IL-2-induced, 5mg/kg on 12/03/1998"
    >>> [text[a:b] for a, b in token_offsets(text)]
    ['IL-2', '-', 'induced', ',', '5', 'mg', '/', 'kg', 'on', '12/03/1998']
    """
    if not text:
        return np.zeros((0, 2), np.int32)
    pieces = token_pattern().findall(text)
    space = _space_mask(text)
    edge = np.zeros(len(text) + 1, np.bool_)  # a token begins or ends where a piece does, and at white space
    edge[np.fromiter(accumulate(map(len, pieces)), np.int64, len(pieces))] = True
    edge[0] = True
    edge[1:] |= space
    edge[:-1] |= space
    edges = edge.nonzero()[0].astype(np.int32)
    kept = (~space[edges[:-1]]).nonzero()[0]
    offsets = np.empty((len(kept), 2), np.int32)
    offsets[:, 0] = edges[kept]
    offsets[:, 1] = edges[kept + 1]
    return offsets


def _space_mask(text: str) -> NDArray[np.bool_]:
    """Return an array (n,) that tells for each character whether it is white space."""
    if text.isascii():
        return np.frombuffer(text.encode().translate(_ASCII_SPACE), np.bool_)
    units = text.encode("utf-16-le")
    if len(units) == 2 * len(text):
        return _white_space_table()[np.frombuffer(units, np.uint16)]
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    return _white_space_table()[np.minimum(codes, 0xFFFF)]  # beyond the basic plane there is none, nor at U+FFFF


_ASCII_SPACE = bytes(chr(c).isspace() for c in range(256))


@cache
def _white_space_table() -> NDArray[np.bool_]:
    """Return an array (65536,) that tells for each code point of the basic plane whether it is white space."""
    return np.array([chr(c).isspace() for c in range(0x10000)])


def ranges_of_spans(
    tokens: NDArray[np.integer], starts: NDArray[np.integer], ends: NDArray[np.integer], mode: RangeMode = "touch"
) -> NDArray[np.int64]:
    """Return (n, 2) half-open token indices of n spans, by token offsets (T, 2); modes as in `token_ranges`.

    >>> tokens = np.array([[0, 3], [4, 7], [8, 12]])
    >>> ranges_of_spans(tokens, np.array([2]), np.array([7])).tolist()
    [[0, 2]]
    """
    if mode == "touch":
        firsts = np.searchsorted(tokens[:, 1], starts, side="right")
        stops = np.searchsorted(tokens[:, 0], ends, side="left")
    elif mode == "inside":
        firsts = np.searchsorted(tokens[:, 0], starts, side="left")
        stops = np.searchsorted(tokens[:, 1], ends, side="right")
    else:
        firsts = np.searchsorted(tokens[:, 0], starts, side="left")
        lasts = np.searchsorted(tokens[:, 1], ends, side="left")
        fits = (firsts < len(tokens)) & (lasts < len(tokens))
        fits[fits] = (tokens[firsts[fits], 0] == starts[fits]) & (tokens[lasts[fits], 1] == ends[fits])
        stops = np.where(fits, lasts + 1, firsts)
    return np.stack([firsts, np.maximum(firsts, stops)], axis=1)
