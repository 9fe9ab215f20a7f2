"""Word types with the features of a published set, or with all of ours: those that need no context.

N tokens with pads between sentences, V types, Q features of all types.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b
from typing import Literal, TypeAlias

import numpy as np

from chaffinch.features import observe, signatures
from chaffinch.features.observe import FOLDED, GRAM, WORD, Observed
from chaffinch.features.signatures import Pack

WordSet: TypeAlias = Literal["basic", "capitalisation", "shape", "muc", "spelling", "rich"]

WORD_SETS: tuple[WordSet, ...] = ("basic", "capitalisation", "shape", "muc", "spelling", "rich")
IDENTITY = (WORD, FOLDED)  # kinds of features that name a word

# The thirteen features of the MUC task, by name and pattern; a word has at most one of each group, the first that fits.
_NUMBERS = (
    ("OneDigitNum", r"\d"),
    ("TwoDigitNum", r"\d\d"),
    ("FourDigitNum", r"\d{4}"),
    ("YearDecade", r"\d{4}s"),
    ("ContainsDigitAndDash", r"(?=.*\d).*-.*"),
    ("ContainsDigitAndOneSlash", r"(?=.*\d)[^/]*/[^/]*"),
    ("ContainsDigitAndComma", r"(?=.*\d).*,.*"),
    ("ContainsDigitAndPeriod", r"(?=.*\d).*\..*"),
)
_LETTERS = (
    ("CapPeriod", r"[A-Z]\."),
    ("CapPeriods", r"(?:[A-Z]\.){2,}"),
    ("AllCaps", r"[A-Z]+"),
    ("CapOtherPeriod", r"[A-Z].+\."),
    ("InitialCap", r"[A-Z].*"),
)
_MUC = tuple(
    tuple((name, re.compile(pattern, re.DOTALL).fullmatch) for name, pattern in group) for group in (_NUMBERS, _LETTERS)
)


def with_features(seen: Observed, features: WordSet, pack: Pack) -> Observed:
    """Return the tokens with a set's features, and those of an unknown word, beside their own word (or all but grams).

    All but grams are kept for the sets "spelling" and "rich". The pad keeps its word alone.

    >>> from chaffinch import Document
    >>> seen = observe.observe([Document.make("Penn left IBM in 1990.")])
    >>> seen = with_features(seen, "muc", signatures.pack("en"))
    >>> seen.kinds[seen.lists[1] : seen.lists[2]].tolist()  # Penn: itself, InitialCap, and if it were unknown
    [1, 21, 15, 15]
    """
    kept = seen.kinds != GRAM if features in ("spelling", "rich") else seen.kinds == WORD
    names = [()] + [_feature_names(word, features, pack) for word in words_of(seen)[1:]]
    counts = np.add.reduceat(kept, seen.lists[:-1], dtype=np.int64) if len(seen.kinds) else np.zeros(0, np.int64)
    more = np.array([len(row) + 2 * (v > 0) for v, row in enumerate(names)], np.int64)
    lists = np.concatenate([[0], np.cumsum(counts + more)])
    keys, kinds = np.empty(lists[-1], np.uint64), np.full(lists[-1], observe.NAMED, np.uint8)
    kept_at = np.repeat(lists[:-1] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
    keys[kept_at], kinds[kept_at] = seen.keys[kept], seen.kinds[kept]
    added_at = np.repeat(lists[1:] - np.cumsum(more), more) + np.arange(more.sum())
    added = [[*row, "unknown", f"unknown {' '.join(row)}"] if v else [] for v, row in enumerate(names)]
    keys[added_at] = np.array([hash_name(name) for row in added for name in row], np.uint64)
    kinds[added_at[np.array([name.startswith("unknown") for row in added for name in row], np.bool_)]] = observe.UNKNOWN
    return replace(seen, keys=keys, kinds=kinds, lists=lists.astype(np.int32))


def words_of(seen: Observed) -> list[str]:
    """Return the word of every type (V,); the pad is empty."""
    firsts = np.zeros(len(seen.lists) - 1, np.int64)
    firsts[seen.types[::-1]] = np.arange(len(seen.types))[::-1]
    text = seen.codes.tobytes().decode("utf-32-le", "surrogatepass")
    return [text[begin:end] for begin, end in seen.tokens[firsts].tolist()]


def capitalisation(word: str) -> tuple[str, ...]:
    """Return those of ("AllCaps", "InitialCap") that fit a word, in this order."""
    return ("AllCaps",) * word.isupper() + ("InitialCap",) * word[:1].isupper()


def shape(word: str) -> tuple[str, ...]:
    """Return ("XX",) for a word in capitals, ("Xx",) if it begins with one, else ("xx",); () without letters."""
    if not any(sign.isalpha() for sign in word):
        return ()
    return ("XX" if word.isupper() else "Xx" if word[:1].isupper() else "xx",)


def muc(word: str) -> tuple[str, ...]:
    """Return which of the thirteen MUC features fit: of those on digits the first, of those on capitals the first.

    >>> muc("N.Y."), muc("1990s"), muc("10,000"), muc("penn")
    (('CapPeriods',), ('YearDecade',), ('ContainsDigitAndComma',), ())
    """
    return tuple(first for group in _MUC for first in [name for name, fits in group if fits(word)][:1])


def signature_parts(word: str, pack: Pack) -> tuple[str, ...]:
    """Return the fields of a word's signature: its category, then the fields whose value is not 0."""
    head, *fields = signatures.signature(word, pack).split("|")
    return (head, *(field for field in fields if not field.endswith("=0")))


_SETS: dict[WordSet, Callable[[str], tuple[str, ...]]] = {
    "basic": lambda _: (), "capitalisation": capitalisation, "shape": shape, "muc": muc, "spelling": muc,
}  # fmt: skip


def _feature_names(word: str, features: WordSet, pack: Pack) -> tuple[str, ...]:
    """Return the names of a word's features in a named set; "rich" is muc and the signature's parts."""
    return muc(word) + signature_parts(word, pack) if features == "rich" else _SETS[features](word)


@lru_cache(maxsize=100_000)
def hash_name(name: str) -> int:
    """Return a 64-bit hash of a name, the same in every process."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little")
