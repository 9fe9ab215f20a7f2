"""How hard a secret is to guess: stretches that follow a pattern count little, however long they are.

Patterns are words and whatever reads like a language, repetitions, sequences, walks on the keyboard, dates, short
numbers, and the digits of famous constants, each also in l33t spelling. People compose what they call random from
these; lists of quotations and rules for such compositions exist, so a long sentence is no better than a short one.
"""

from __future__ import annotations

import math
import re
import string
import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from chaffinch import languages

STRETCH_BITS = 8.0  # of one stretch of any length that follows a pattern

_LOOKED_AT = 512  # bytes of a key; more of them would only add to the estimate
_SHORTEST = 4  # characters of a word, a repetition, a sequence
_SHORTEST_L33T = 5  # of a word with digits for letters
_SHORTEST_HEX = 6  # of such a word among hex digits: by chance they spell many short ones
_LONGEST_GAP = 3  # letters between two words, as in "bestOFtimes"
_LONGEST_WORD = 16
# Letters are prose if a language is likelier to have made them than chance by this many bits. Random letters are taken
# for prose at most once in two to the power of this (Markov's inequality), about once in a million.
_EVIDENCE = 20.0
_LETTER, _L33T_LETTER = math.log2(26), math.log2(62 / 3)  # bits of random letters; of the likeliest l33t one in base64
_TRUST_IN_PAIRS = 10.0  # as many triples are counted as the pairs lead one to expect
_SHORTEST_NUMBER = 6  # digits of a famous constant

_SEPARATORS = " \t\r\n-_.,;:/|+&#@!?'\"()[]{}<>*="
_GROUPING = " -"  # between the groups of a UUID: worth nothing
_HEX = frozenset(string.hexdigits + "- \n")
_L33T = str.maketrans("013457890@$!+|", "oieastbgoasitl")
_VOWEL = re.compile("[aeiouy]")
_RUN = re.compile("[a-z]+")
_WORD_BETWEEN_BLANKS = re.compile(r"(?<![^ ])[\"'(]*[a-z]{1,20}[\"').,;:!?]*(?![^ ])")
_SHORT_TOKEN = re.compile(r"(?<![^ \-_.,;:/'])(?:[a-z]{1,3}|[0-9]{1,4})(?![^ \-_.,;:/'])")
_MONTH, _DAY, _YEAR = "(?:0[1-9]|1[0-2])", "(?:0[1-9]|[12][0-9]|3[01])", "(?:19|20)[0-9]{2}"
_DATE = re.compile(
    f"(?<![0-9])(?:{_YEAR}|(?:{_YEAR}{_MONTH}{_DAY})+|(?:{_DAY}{_MONTH}{_YEAR})+|(?:{_MONTH}{_DAY}{_YEAR})+"
    f"|{_DAY}{_MONTH}[0-9]{{2}}|{_MONTH}{_DAY}[0-9]{{2}}|[0-9]{{2}}{_MONTH}{_DAY})(?![0-9])"
)
# pi, e, the golden ratio, the root of two, the numbers of Fibonacci, primes, powers of two
_FAMOUS = (
    "314159265358979323846264338327950288419716939937510582097494459230781640628620899",
    "271828182845904523536028747135266249775724709369995957496696762772407663035354759",
    "161803398874989484820458683436563811772030917980576286213544862270526046281890244",
    "141421356237309504880168872420969807856967187537694807317667973799073247846210703",
    "011235813213455891442333776109871597258441816765109461771128657463687502512139319",
    "235711131719232931374143475359616771737983899710110310710911312713113713914915115",
    "124816326412825651210242048409681921638432768655361310722621445242881048576209715",
    "1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik,9ol.0p;/",  # the columns of the keyboard
    "qazwsxedcrfvtgbyhnujmikolp",
    "zaq1xsw2cde3vfr4bgt5nhy6mju7,ki8.lo9/;p0",
)
_ROWS = ("`1234567890-=", " qwertyuiop[]", " asdfghjkl;'", " zxcvbnm,./")
_SHIFTED = str.maketrans('~!@#$%^&*()_+{}:"<>?', "`1234567890-=[];',./")


def guessing_bits(key: bytes) -> float:
    """Return a low estimate of the bits that a guesser of this key lacks.

    >>> guessing_bits(b"correct horse battery staple, 12 May 1998")
    8.0
    >>> guessing_bits(b"3cbca3244aadd588a943bf7421d9449e8e667f0d5a38d71ba1aa01fdc117ea9f")
    256.0
    """
    text, typed = _decode(key[:_LOOKED_AT])
    folded = "".join(map(_fold, text))
    follows = bytearray(len(folded))
    for start, end in _patterns(folded):
        follows[start:end] = b"\1" * (end - start)
    if typed:  # random bytes are not UTF-8
        for at, char in enumerate(folded):
            follows[at] |= not char.isascii()
    marks = _absorb_separators(folded, follows.decode("latin-1"))
    stretches = sum(1 for part in marks.split("\0") if part)
    rest = [char for char, mark in zip(text, marks, strict=True) if mark == "\0" and char not in _GROUPING]
    return STRETCH_BITS * stretches + len(rest) * _character_bits(rest)


def _decode(key: bytes) -> tuple[str, bool]:
    """Return the key as text without NULs (UTF-16 has them), and whether it is UTF-8."""
    content = key.replace(b"\0", b"")
    try:
        return content.decode("utf-8"), True
    except UnicodeDecodeError:
        return content.decode("latin-1"), False


def _fold(char: str) -> str:
    """Return the small letter without its accent."""
    return char.lower() if char.isascii() else unicodedata.normalize("NFKD", char)[0].lower()[0]


def _character_bits(rest: list[str]) -> float:
    """Return the bits of one random character, from the classes of characters that occur."""
    if not rest:
        return 0.0
    seen = set(rest)
    if seen <= set(string.digits):
        return math.log2(10)
    if seen <= set(string.hexdigits.lower()) or seen <= set(string.hexdigits.upper()):
        return 4.0
    if any(not char.isascii() for char in seen):
        return 8.0
    classes = (string.digits, string.ascii_lowercase, string.ascii_uppercase)
    size = sum(len(letters) for letters in classes if seen & set(letters))
    return math.log2(size + sum(not char.isalnum() for char in seen))


def _absorb_separators(folded: str, marks: str) -> str:
    """Return the marks with separators beside a marked stretch marked, too."""
    shown = "".join(
        "s" if mark == "\0" and char in _SEPARATORS else mark for char, mark in zip(folded, marks, strict=True)
    )
    shown = re.sub("(?<=\1)s+|s+(?=\1)", lambda found: "\1" * len(found[0]), shown)
    return shown.replace("s", "\0")


def _patterns(folded: str) -> Iterator[tuple[int, int]]:
    """Yield the places that follow a pattern; they may overlap."""
    yield from _repetitions(folded)
    yield from _sequences(folded)
    yield from _numbers(folded)
    l33t = folded.translate(_L33T)
    if set(folded) <= _HEX:  # six letters make no prose
        yield from _words(folded, _SHORTEST)
        yield from _words(l33t, _SHORTEST_HEX)
        return
    yield from _words(folded, _SHORTEST)
    yield from _words(l33t, _SHORTEST_L33T)
    for view, chance in ((folded, _LETTER), (l33t, _L33T_LETTER)):
        yield from (run.span() for run in _RUN.finditer(view) if _is_prose(run[0], chance))
    if _is_prose("".join(_RUN.findall(folded)), _LETTER):
        yield from (run.span() for run in _RUN.finditer(folded))


def _repetitions(folded: str) -> Iterator[tuple[int, int]]:
    seen: set[str] = set()
    for at in range(len(folded) - _SHORTEST + 1):
        piece = folded[at : at + _SHORTEST]
        if piece in seen or piece[::-1] in seen or len(set(piece)) == 1:
            yield at, at + _SHORTEST
        seen.add(piece)


def _sequences(folded: str) -> Iterator[tuple[int, int]]:
    """Yield walks (abcd, 4321, qwer, 1qaz) and interleaved sequences (a1b2c3, 00112233)."""
    keys = folded.translate(_SHIFTED)
    steps = _steps()
    for lag in range(1, 5):
        began = 0
        for at in range(len(keys) - lag + 1):
            near = steps if lag == 1 else _SUCCESSORS
            if at < len(keys) - lag and keys[at + lag] in near.get(keys[at], keys[at]):
                continue
            if at - began >= max(_SHORTEST - lag, 2 * lag) or (lag == 1 and at - began >= _SHORTEST - 1):
                yield began, at + lag
            began = at + 1


def _numbers(folded: str) -> Iterator[tuple[int, int]]:
    for found in (*_DATE.finditer(folded), *_SHORT_TOKEN.finditer(folded), *_WORD_BETWEEN_BLANKS.finditer(folded)):
        yield found.span()
    famous = _famous()
    for at in range(len(folded) - _SHORTEST_NUMBER + 1):
        if folded[at : at + _SHORTEST_NUMBER] in famous:
            yield at, at + _SHORTEST_NUMBER


def _words(folded: str, shortest: int) -> Iterator[tuple[int, int]]:
    runs = [found for found in _RUN.finditer(folded) if len(found[0]) >= shortest]
    if not runs:
        return
    listed = _listed()
    for run in runs:
        found: list[tuple[int, int]] = []
        for start in range(run.start(), run.end() - shortest + 1):
            for end in range(min(run.end(), start + _LONGEST_WORD), start + shortest - 1, -1):
                if folded[start:end] in listed:
                    found.append((start, end))
                    break
        yield from found
        if len(found) > 1:  # what lies between and beside words that follow one another
            for (_, end), (start, _) in pairwise([(0, run.start()), *found, (run.end(), 0)]):
                if 0 < start - end <= _LONGEST_GAP:
                    yield end, start


def _is_prose(letters: str, chance: float) -> bool:
    """Return whether a language is likelier to have made these letters than chance, at so many bits a letter."""
    codes = np.frombuffer(letters.encode("ascii"), np.uint8) - ord("a")
    return float((chance - _letter_bits()[codes[:-2], codes[1:-1], codes[2:]]).sum()) >= _EVIDENCE


@cache
def _listed() -> frozenset[str]:
    """Return the words, names and places of all language packs, without accents."""
    words: set[str] = set()
    for pack in map(languages.pack, languages.shipped()):
        words.update(pack.common, *pack.lexica.values())
    plain = ("".join(map(_fold, word)) for word in words)
    return frozenset(word for word in plain if _VOWEL.search(word))  # abbreviations are no words


@cache
def _letter_bits() -> NDArray[np.float64]:
    """Return the bits of each letter given the two before it in the listed words: (26, 26, 26), in reading order."""
    codes = np.frombuffer("\n".join(sorted(_listed())).encode("ascii", "replace"), np.uint8).astype(np.int64) - ord("a")
    letter = (codes >= 0) & (codes < 26)
    pairs = (26 * codes[:-1] + codes[1:])[letter[:-1] & letter[1:]]
    triples = (676 * codes[:-2] + 26 * codes[1:-1] + codes[2:])[letter[:-2] & letter[1:-1] & letter[2:]]
    after_one = np.bincount(pairs, minlength=26**2).reshape(26, 26) + 1.0
    after_one /= after_one.sum(axis=1, keepdims=True)
    after_two = np.bincount(triples, minlength=26**3).reshape(26, 26, 26) + _TRUST_IN_PAIRS * after_one
    bits: NDArray[np.float64] = -np.log2(after_two / after_two.sum(axis=2, keepdims=True))
    return bits


@cache
def _famous() -> frozenset[str]:
    return frozenset(
        number[at : at + _SHORTEST_NUMBER] for number in _FAMOUS for at in range(len(number) - _SHORTEST_NUMBER + 1)
    )


def _successors() -> dict[str, str]:
    """Return the characters one up and one down from each, and itself."""
    found: dict[str, str] = {}
    for row in ("01234567890", "9abcdef", string.ascii_lowercase):
        for at, char in enumerate(row):
            found[char] = found.get(char, char) + row[max(at - 1, 0)] + row[min(at + 1, len(row) - 1)]
    return found


_SUCCESSORS = _successors()


@cache
def _steps() -> dict[str, str]:
    """Return the successors of each character, and its neighbours on the keyboard."""
    found = dict(_SUCCESSORS)
    place = {char: (at, number) for number, row in enumerate(_ROWS) for at, char in enumerate(row) if char != " "}
    for char, (at, number) in place.items():
        near = [
            other
            for other, (x, y) in place.items()
            if (y == number and abs(x - at) == 1)
            or (y == number - 1 and x - at in {0, 1})
            or (y == number + 1 and at - x in {0, 1})
        ]
        found[char] = found.get(char, char) + "".join(near)
    return found
