"""Signatures: symbols made of features, which replace words too rare to be known.

A symbol is a mark that begins no token, a category, and fields separated by bars:

    Smith        ‹ALPHA|Cap|first=0|last=hi|city=hi|state=0|hospital=0|job=0|common=0|suf=0|len=5-8|hyphen=0
    12/03/1998   ‹DATE|00/00/0000|fields=3|year=4|month=1
    37947241ZGJ  ‹ID|0{7-8}A{3}

A token of `text.tokens` may be the mark ‹ alone, but never begins with it; so a string that begins with the mark and
has the form of a symbol is a symbol, and its signature is itself. A field without = is the case of ALPHA, the
character of PUNCT, the kind of NET, and the mask of the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from chaffinch.errors import DataError
from chaffinch.features.signatures import word_classes as classes
from chaffinch.languages import LEXICA, Pack, fold, pack

__all__ = [
    "CATEGORIES",
    "CATEGORIES_OF",
    "FLAGS",
    "MARK",
    "ORDER",
    "Pack",
    "WordClasses",
    "add_flags",
    "back_off",
    "category",
    "is_symbol",
    "pack",
    "signature",
]  # fmt: skip

MARK = "‹"
WordClasses: TypeAlias = Literal["seven", "five"]

CATEGORIES = ("PUNCT", "DATE", "PHONE", "NUM", "ID", "NET", "ALPHA")
# "five" are the published ones: a mixed word with a digit is a number, a network name without one a word of letters.
CATEGORIES_OF: Mapping[WordClasses, tuple[str, ...]] = {
    "seven": CATEGORIES,
    "five": tuple(name for name in CATEGORIES if name not in ("ID", "NET")),
}
# The order in which fields of an unseen symbol are dropped. Letters: length first; the lexica from the one that
# matches fewest tokens of notes to the one that matches most. Other categories: least informative of the label first.
ORDER = (
    "len", "suf", "line", "hyphen", "case", "job", "hospital", "state", "first", "city", "last", "common",
    "thousands", "pct", "dec", "range", "digits", "age",
    "mask", "month", "year", "fields", "ext", "area", "kind", "run", "char",
)  # fmt: skip
FLAGS: Mapping[str, int] = {"line": 1, "age": 2}  # first token of a line; a number followed by a word for an age

_BARE = {"ALPHA": "case", "DATE": "mask", "PHONE": "mask", "ID": "mask", "NET": "kind", "PUNCT": "char"}
_FLAG_OF = {"ALPHA": "line", "NUM": "age"}  # the flag that a category can have
_SYMBOL = re.compile(
    rf"{MARK}(?:PUNCT(?:\|(?:bar|[^|]))?|ALPHA(?:\|(?:lower|Cap|ALL|Mixed|init\.?))?|NET(?:\|(?:email|url|host))?|NUM"
    rf"|(?:DATE|PHONE|ID)(?:\|(?:Mon|decade|[Aa]\{{|[^\w|=]|[\dsx_]){{1,96}})?)(?:\|(?:{'|'.join(ORDER)})=[a-z0-9+-]{{1,12}})*",
    re.DOTALL,
)
_INNER_MARKS = str.maketrans("", "", "'’.")
_PARTS = re.compile(r"[-'’.]+")
_MOST_PARTS = 4  # parts of a compound that are looked up; bounds the work on a long one


def is_symbol(word: str) -> bool:
    """Tell whether the word has the form of a symbol, as `signature` returns it."""
    return word.startswith(MARK) and _SYMBOL.fullmatch(word) is not None


def category(word: str, pack: Pack) -> str:
    """Return the category of a word or symbol, the first part of its signature: PUNCT, DATE, ..., or ALPHA.

    >>> [category(word, pack("en")) for word in ("Smith", "3194S62727", "12/03", "…")]
    ['ALPHA', 'ID', 'DATE', 'PUNCT']
    """
    return signature(word, pack).partition("|")[0].removeprefix(MARK)


def signature(word: str, pack: Pack, among: WordClasses = "seven") -> str:
    """Return the symbol of a word, without its context; a symbol is returned unchanged. The empty word is bare PUNCT.

    Network names are tried before identifiers, and every other word with a digit is an identifier, so that no word is
    left without a category. Among "five" classes there are neither: such a word is a number if it has a digit.

    >>> signature("37947241ZGJ", pack("en"), "five")
    '‹NUM|digits=7+'
    >>> signature("37947241ZGJ", pack("en"))
    '‹ID|0{7-8}A{3}'
    """
    if word.startswith(MARK) and _SYMBOL.fullmatch(word):
        return word
    if not word.isalpha():
        if not word:
            return f"{MARK}PUNCT"
        if classes.is_punctuation(word):
            return f"{MARK}PUNCT|{classes.punctuation(word)}"
        if fields := classes.date(word, pack):
            return f"{MARK}DATE|{fields}"
        if classes.has_digit(word):
            if fields := classes.phone(word, pack):
                return f"{MARK}PHONE|{fields}"
            if fields := classes.number(word, pack):
                return f"{MARK}NUM|{fields}"
        if fields := _code_mixed_word(word, among):
            return f"{MARK}{fields}"
    elif fields := classes.date(word, pack):
        return f"{MARK}DATE|{fields}"
    return f"{MARK}ALPHA|{_letters(word, pack)}"


def _code_mixed_word(word: str, among: WordClasses) -> str | None:
    """Return "CATEGORY|fields" of a word that is no date or phone number; None if it is a word of letters."""
    if among == "five":
        digits = classes.count_digits(word)
        return f"NUM|digits={digits}" if digits else None
    if fields := classes.net(word):
        return f"NET|{fields}"
    return f"ID|{classes.identifier(word)}" if classes.has_digit(word) else None


def add_flags(signature: str, flags: int) -> str:
    """Return the symbol with those flags that its category can have, added once: line for ALPHA, age for NUM.

    >>> add_flags("‹NUM|digits=2", FLAGS["age"] | FLAGS["line"])
    '‹NUM|digits=2|age=1'
    """
    if not flags:
        return signature
    name = _FLAG_OF.get(signature.partition("|")[0].removeprefix(MARK))
    if name is None or not flags & FLAGS[name] or signature.endswith(f"|{name}=1"):
        return signature
    return f"{signature}|{name}=1"


def back_off(symbol: str, order: Sequence[str] = ORDER) -> Iterator[str]:
    """Yield the symbol, then shorter ones as fields of `order` go, last its category; DataError for other words.

    >>> list(back_off("‹PHONE|000-0000|area=0|ext=0"))
    ['‹PHONE|000-0000|area=0|ext=0', '‹PHONE|area=0|ext=0', '‹PHONE|area=0', '‹PHONE']
    """
    if not is_symbol(symbol):
        raise DataError(f"a word of {len(symbol)} characters is not a symbol; take its signature first")
    head, *texts = symbol.split("|")
    bare = _BARE.get(head.removeprefix(MARK), "")
    fields = {text.partition("=")[0] if "=" in text[1:] else bare: text for text in texts}
    yield symbol
    for name in order:
        if fields.pop(name, None) is not None:
            yield "|".join([head, *fields.values()])
    if fields:  # some fields are not in `order`
        yield head


def _letters(word: str, pack: Pack) -> str:
    """Return the signature fields of a word of letters: case, lists, common or not, suffix, length and hyphen."""
    plain = fold(word).strip("'’").rstrip(".")
    if plain.endswith(("'s", "’s")):
        plain = plain[:-2]
    keys, hyphen = [plain], "-" in plain
    if not plain.isalpha():
        keys.append(plain.translate(_INNER_MARKS))
        keys += [part for part in _PARTS.split(plain, maxsplit=_MOST_PARTS)[:_MOST_PARTS] if len(part) > 1]
    lexica = "|".join([f"{name}={_bucket(keys, pack.lexica[name])}" for name in LEXICA])
    common = plain in pack.common or (hyphen and all(part in pack.common for part in plain.split("-")))
    return (
        f"{_case(word)}|{lexica}|common={int(common)}|suf={_suffix(plain, pack)}|len={_length(plain)}"
        f"|hyphen={int(hyphen)}"
    )


def _bucket(keys: Sequence[str], lexicon: Mapping[str, str]) -> str:
    """Return how frequent any of the keys is in the lexicon: "hi" if one is, else the first found, else "0"."""
    if len(keys) == 1:
        return lexicon.get(keys[0], "0")
    buckets = [lexicon[key] for key in keys if key in lexicon]
    return "hi" if "hi" in buckets else buckets[0] if buckets else "0"


def _case(word: str) -> str:
    """Return lower, Cap, ALL, Mixed, init (J) or init. (J.); a word of letters without case is lower."""
    if word == word.lower():
        return "lower"
    if word.isupper():
        return "init" if len(word) == 1 else "init." if len(word) == 2 and word[1] == "." else "ALL"
    return "Cap" if word.istitle() or (word[0].isupper() and word[1:] == word[1:].lower()) else "Mixed"


def _suffix(plain: str, pack: Pack) -> str:
    """Return the name of the first class with an ending that leaves two letters or more before it, else "0"."""
    for name, endings in pack.suffixes.items():
        if plain.endswith(endings) and any(plain.endswith(end) and len(plain) - len(end) >= 2 for end in endings):
            return name
    return "0"


def _length(plain: str) -> str:
    """Return the class of a word's length: 1-2, 3-4, 5-8 or 9+."""
    count = len(plain)
    return "1-2" if count <= 2 else "3-4" if count <= 4 else "5-8" if count <= 8 else "9+"
