"""Estimate how hard a secret is to guess: stretches that follow a pattern count little, however long they are.

Patterns are words and whatever reads like a language, repetitions, sequences, walks on the keyboard, dates, short
numbers, and the digits of famous constants, each also in l33t spelling. People compose
supposedly random text from these, and guessers have lists of quotations and rules for such compositions, so a long
sentence is no better than a short one.
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

STRETCH_BITS = 8.0  # credited for one stretch of any length that follows a pattern; lower refuses more secrets

_MOST_BYTES = 512  # of a key that are examined; more of them could only raise the estimate
_SHORTEST = 4  # characters of a word, a repetition, a sequence
_SHORTEST_L33T = 5  # of a word with digits for letters
_SHORTEST_HEX = 6  # of such a word among hex digits, which spell many short ones by chance
_LONGEST_GAP = 3  # letters between two words, as in "bestOFtimes"
_LONGEST_WORD = 16  # letters; longer stretches are not looked up as one word
# Letters are prose if their log-likelihood ratio, language to chance, is at least this many bits. Random letters are
# taken for prose with probability at most 2 to the power of minus this (Markov's inequality), about one in a million.
_PROSE_BITS = 20.0
_LETTER_BITS, _L33T_LETTER_BITS = (
    math.log2(26),
    math.log2(62 / 3),
)  # of a random letter; of the likeliest l33t letter in base64
_PAIR_WEIGHT = 10.0  # pseudo-counts of triples, distributed as the pairs predict
_SHORTEST_NUMBER = 6  # digits of a famous constant

_SEPARATORS = " \t\r\n-_.,;:/|+&#@!?'\"()[]{}<>*="
_GROUPING = " -"  # between the groups of a UUID: they count no bits
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
_FAMOUS_STRINGS = (
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
    """Return a low estimate of a key's bits: few for each guessable stretch, full ones for other characters.

    >>> guessing_bits(b"correct horse battery staple, 12 May 1998")
    8.0
    >>> guessing_bits(b"3cbca3244aadd588a943bf7421d9449e8e667f0d5a38d71ba1aa01fdc117ea9f")
    256.0
    """
    text, is_utf8 = _decode(key[:_MOST_BYTES])
    folded = "".join(map(_fold, text))
    is_pattern = bytearray(len(folded))
    for start, end in _find_patterns(folded):
        is_pattern[start:end] = b"\1" * (end - start)
    if is_utf8:  # random bytes are not UTF-8
        for i, char in enumerate(folded):
            is_pattern[i] |= not char.isascii()
    marks = _absorb_separators(folded, is_pattern.decode("latin-1"))
    stretches = sum(1 for part in marks.split("\0") if part)
    rest = [char for char, mark in zip(text, marks, strict=True) if mark == "\0" and char not in _GROUPING]
    return STRETCH_BITS * stretches + len(rest) * _character_bits(rest)


def _decode(key: bytes) -> tuple[str, bool]:
    """Return (the key as text without NUL bytes, True) if it is UTF-8, else (as Latin-1, False)."""
    content = key.replace(b"\0", b"")
    try:
        return content.decode("utf-8"), True
    except UnicodeDecodeError:
        return content.decode("latin-1"), False


def _fold(char: str) -> str:
    """Return a character in lower case without its accent."""
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
    """Return the marks of guessable characters, with separators beside a marked stretch marked too."""
    shown = "".join(
        "s" if mark == "\0" and char in _SEPARATORS else mark for char, mark in zip(folded, marks, strict=True)
    )
    shown = re.sub("(?<=\1)s+|s+(?=\1)", lambda match: "\1" * len(match[0]), shown)
    return shown.replace("s", "\0")


def _find_patterns(folded: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of what is easy to guess: repeats, sequences, numbers, words, prose; may overlap."""
    yield from _find_repetitions(folded)
    yield from _find_sequences(folded)
    yield from _find_numbers(folded)
    l33t = folded.translate(_L33T)
    if set(folded) <= _HEX:  # prose cannot be written with six letters
        yield from _find_words(folded, _SHORTEST)
        yield from _find_words(l33t, _SHORTEST_HEX)
        return
    yield from _find_words(folded, _SHORTEST)
    yield from _find_words(l33t, _SHORTEST_L33T)
    for view, chance in ((folded, _LETTER_BITS), (l33t, _L33T_LETTER_BITS)):
        yield from (run.span() for run in _RUN.finditer(view) if _is_prose(run[0], chance))
    if _is_prose("".join(_RUN.findall(folded)), _LETTER_BITS):
        yield from (run.span() for run in _RUN.finditer(folded))


def _find_repetitions(folded: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of four characters that occurred before, also backwards, or are all equal."""
    seen: set[str] = set()
    for i in range(len(folded) - _SHORTEST + 1):
        piece = folded[i : i + _SHORTEST]
        if piece in seen or piece[::-1] in seen or len(set(piece)) == 1:
            yield i, i + _SHORTEST
        seen.add(piece)


def _find_sequences(folded: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of walks (abcd, 4321, qwer, 1qaz) and interleaved sequences (a1b2c3, 00112233)."""
    keys = folded.translate(_SHIFTED)
    steps = _keyboard_steps()
    for lag in range(1, 5):
        start = 0
        for i in range(len(keys) - lag + 1):
            near = steps if lag == 1 else _SUCCESSORS
            if i < len(keys) - lag and keys[i + lag] in near.get(keys[i], keys[i]):
                continue
            if i - start >= max(_SHORTEST - lag, 2 * lag) or (lag == 1 and i - start >= _SHORTEST - 1):
                yield start, i + lag
            start = i + 1


def _find_numbers(folded: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of dates, short tokens, words between blanks, and parts of famous strings."""
    for match in (*_DATE.finditer(folded), *_SHORT_TOKEN.finditer(folded), *_WORD_BETWEEN_BLANKS.finditer(folded)):
        yield match.span()
    substrings = _famous_substrings()
    for i in range(len(folded) - _SHORTEST_NUMBER + 1):
        if folded[i : i + _SHORTEST_NUMBER] in substrings:
            yield i, i + _SHORTEST_NUMBER


def _find_words(folded: str, shortest: int) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of known words of `shortest` letters or more, and of short gaps between words of a run."""
    runs = [run for run in _RUN.finditer(folded) if len(run[0]) >= shortest]
    if not runs:
        return
    known_words = _pack_words()
    for run in runs:
        words: list[tuple[int, int]] = []
        for start in range(run.start(), run.end() - shortest + 1):
            for end in range(min(run.end(), start + _LONGEST_WORD), start + shortest - 1, -1):
                if folded[start:end] in known_words:
                    words.append((start, end))
                    break
        yield from words
        if len(words) > 1:  # the letters between and beside consecutive words
            for (_, end), (start, _) in pairwise([(0, run.start()), *words, (run.end(), 0)]):
                if 0 < start - end <= _LONGEST_GAP:
                    yield end, start


def _is_prose(letters: str, chance: float) -> bool:
    """Tell whether a language is likelier to produce these letters than chance at `chance` bits a letter."""
    codes = np.frombuffer(letters.encode("ascii"), np.uint8) - ord("a")
    return float((chance - _letter_bits()[codes[:-2], codes[1:-1], codes[2:]]).sum()) >= _PROSE_BITS


@cache
def _pack_words() -> frozenset[str]:
    """Return words, names and places of all language packs, without accents; only those with a vowel."""
    words: set[str] = set()
    for pack in map(languages.pack, languages.pack_names()):
        words.update(pack.common, *pack.lexica.values())
    plain = (word.lower() if word.isascii() else "".join(map(_fold, word)) for word in words)
    return frozenset(word for word in plain if _VOWEL.search(word))  # abbreviations do not count as words


@cache
def _letter_bits() -> NDArray[np.float64]:
    """Return the bits of each letter given the two before it in the known words: (26, 26, 26), in reading order."""
    codes = np.frombuffer("\n".join(sorted(_pack_words())).encode("ascii", "replace"), np.uint8).astype(np.int64) - ord(
        "a"
    )
    letter = (codes >= 0) & (codes < 26)
    pairs = (26 * codes[:-1] + codes[1:])[letter[:-1] & letter[1:]]
    triples = (676 * codes[:-2] + 26 * codes[1:-1] + codes[2:])[letter[:-2] & letter[1:-1] & letter[2:]]
    after_one = np.bincount(pairs, minlength=26**2).reshape(26, 26) + 1.0
    after_one /= after_one.sum(axis=1, keepdims=True)
    after_two = np.bincount(triples, minlength=26**3).reshape(26, 26, 26) + _PAIR_WEIGHT * after_one
    bits: NDArray[np.float64] = -np.log2(after_two / after_two.sum(axis=2, keepdims=True))
    return bits


@cache
def _famous_substrings() -> frozenset[str]:
    """Return all six-character substrings of the famous strings."""
    return frozenset(
        number[i : i + _SHORTEST_NUMBER]
        for number in _FAMOUS_STRINGS
        for i in range(len(number) - _SHORTEST_NUMBER + 1)
    )


def _neighbours() -> dict[str, str]:
    """Return {character: itself and its neighbours} in the rows 0-9-0, 9-a-f and a-z."""
    successors: dict[str, str] = {}
    for row in ("01234567890", "9abcdef", string.ascii_lowercase):
        for i, char in enumerate(row):
            successors[char] = successors.get(char, char) + row[max(i - 1, 0)] + row[min(i + 1, len(row) - 1)]
    return successors


_SUCCESSORS = _neighbours()


@cache
def _keyboard_steps() -> dict[str, str]:
    """Return {character: its successors in sequences and its neighbours on the keyboard}, cached."""
    steps = dict(_SUCCESSORS)
    position = {char: (i, number) for number, row in enumerate(_ROWS) for i, char in enumerate(row) if char != " "}
    for char, (i, number) in position.items():
        near = [
            other
            for other, (x, y) in position.items()
            if (y == number and abs(x - i) == 1)
            or (y == number - 1 and x - i in {0, 1})
            or (y == number + 1 and i - x in {0, 1})
        ]
        steps[char] = steps.get(char, char) + "".join(near)
    return steps
