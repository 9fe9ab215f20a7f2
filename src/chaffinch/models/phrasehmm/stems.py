"""Stems of English words by Porter's rules of 1980, so that "localizes" and "localized" are one word.

M. F. Porter, An algorithm for suffix stripping, Program 14(3), 1980. The five steps are in his order.
"""

from __future__ import annotations

import re
from functools import lru_cache

# Steps 2, 3 and 4: a suffix and its replacement. The longest suffix that fits decides.
_SECOND = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "abli": "able", "alli": "al",
    "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate", "ator": "ate", "alism": "al",
    "iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al", "iviti": "ive", "biliti": "ble",
}  # fmt: skip
_THIRD = {"icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": ""}
_FOURTH = dict.fromkeys(
    "al ance ence er ic able ible ant ement ment ent sion tion ou ism ate iti ous ive ize".split(), ""
)


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """Return the Porter stem of a lower-case word; one of up to two letters, or not only of a to z, is unchanged.

    >>> [stem(word) for word in ("localizes", "localization", "bindings", "associated", "happy")]
    ['local', 'local', 'bind', 'associ', 'happi']
    """
    if len(word) <= 2 or not (word.isascii() and word.isalpha()):
        return word
    word = _strip_plural(word)
    word = _strip_past(word)
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    word = _replace_suffix(word, _SECOND, 0)
    word = _replace_suffix(word, _THIRD, 0)
    word = _replace_suffix(word, _FOURTH, 1)
    return _drop_final_e(word)


def _shape(word: str) -> str:
    """Return c (consonant) or v (vowel) for every letter; y is a vowel after a consonant."""
    out: list[str] = []
    for letter in word:
        vowel = letter in "aeiou" or (letter == "y" and bool(out) and out[-1] == "c")
        out.append("v" if vowel else "c")
    return "".join(out)


def _measure(word: str) -> int:
    """Return Porter's m: how many times a run of vowels is followed by consonants."""
    return len(re.findall("v+c+", _shape(word)))


def _has_vowel(word: str) -> bool:
    """Tell whether a word has a vowel, as Porter's stemmer counts them (y after a consonant)."""
    return "v" in _shape(word)


def _ends_in_double(word: str) -> bool:
    """Tell whether a word ends in a double consonant, as Porter's stemmer counts consonants."""
    return len(word) >= 2 and word[-1] == word[-2] and _shape(word)[-1] == "c"


def _short(word: str) -> bool:
    """Tell whether a word ends in consonant, vowel, consonant, the last not w, x or y (Porter's *o)."""
    return _shape(word)[-3:] == "cvc" and word[-1] not in "wxy"


def _strip_plural(word: str) -> str:
    """Return the word after Porter's step 1a: "sses" to "ss", "ies" to "i", "ss" kept, any other final "s" dropped."""
    for suffix, ending in (("sses", "ss"), ("ies", "i"), ("ss", "ss"), ("s", "")):
        if word.endswith(suffix):
            return word[: -len(suffix)] + ending
    return word


def _strip_past(word: str) -> str:
    """Return the word after Porter's step 1b: "eed" to "ee" after a measure; "ed", "ing" dropped after a vowel."""
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for suffix in ("ed", "ing"):
        if word.endswith(suffix):
            return _repair_ending(word[: -len(suffix)]) if _has_vowel(word[: -len(suffix)]) else word
    return word


def _repair_ending(word: str) -> str:
    """Return a stem that lost "ed" or "ing", repaired: an e added, or a doubled consonant made single."""
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if _ends_in_double(word) and word[-1] not in "lsz":
        return word[:-1]
    return word + "e" if _measure(word) == 1 and _short(word) else word


def _replace_suffix(word: str, rules: dict[str, str], floor: int) -> str:
    """Return the word, its longest suffix in `rules` replaced if the measure before it is above `floor`."""
    for length in range(min(len(word), 7), 1, -1):
        suffix = word[-length:]
        if suffix in rules:
            kept = len(word) - (3 if suffix in ("sion", "tion") and rules is _FOURTH else length)
            return word[:kept] + rules[suffix] if _measure(word[:kept]) > floor else word
    return word


def _drop_final_e(word: str) -> str:
    """Return the word after step 5: a final e, and one l of a final ll, dropped after long enough stems."""
    if word.endswith("e"):
        count = _measure(word[:-1])
        if count > 1 or (count == 1 and not _short(word[:-1])):
            word = word[:-1]
    if word.endswith("ll") and _measure(word) > 1:
        word = word[:-1]
    return word
