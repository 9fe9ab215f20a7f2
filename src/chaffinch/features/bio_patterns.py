"""The features of a word that the publication of the online cascade lists, and no others.

V types, Q features of all types. The word, its class and brief class, its length, affixes up to five characters, and
fourteen patterns that are searched for inside the word: "IL-2" and "p53" have digits, "IL-2" a dash.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from chaffinch.features import observe
from chaffinch.features.observe import BRIEF, CLASS, LENGTH, PREFIX, SUFFIX, WORD, Observed
from chaffinch.features.word_types import hash_name, words_of

KEPT = (WORD, CLASS, BRIEF, LENGTH, PREFIX, SUFFIX)  # kinds of `observe` that the publication has
# Capitals, digits, dashes, punctuation: the order of the publication. Where it names a pattern in words ("exactly one
# digit") the expression is our reading of them.
PATTERNS = (
    ("capital, then small", r"^[A-Z][a-z]"),
    ("capitals", r"[A-Z]{2,}"),
    ("small, then capitals", r"[a-z]+[A-Z]+"),
    ("digits", r"[0-9]+"),
    ("exactly one digit", r"^[^0-9]*[0-9][^0-9]*\Z"),
    ("exactly two digits", r"^[^0-9]*[0-9][^0-9]*[0-9][^0-9]*\Z"),
    ("all digits", r"^[0-9]+\Z"),
    ("digits with comma or period", r"[0-9]+[,.][0-9]+"),
    ("letters, then digits", r"[A-Za-z]+[0-9]+"),
    ("digits, then letters", r"[0-9]+[A-Za-z]+"),
    ("dash", r"-"),
    ("leading dash", r"^-"),
    ("trailing dash", r"-\Z"),
    ("punctuation", r"[^A-Za-z0-9]"),
)
_SEARCHES = tuple((name, re.compile(pattern).search) for name, pattern in PATTERNS)


def patterns(word: str) -> tuple[str, ...]:
    """Return the names of the patterns that a word shows, in the order of the list.

    >>> patterns("p53")
    ('digits', 'exactly two digits', 'letters, then digits')
    """
    return tuple(name for name, search in _SEARCHES if search(word))


def name_of(key: int) -> str:
    """Return the name of the pattern whose hashed name is this key; StopIteration if there is none."""
    return next(name for name, _ in PATTERNS if hash_name(name) == key)


def with_published_features(seen: Observed) -> Observed:
    """Return the tokens with the published features for each type, and no others; a pad keeps its word.

    >>> from chaffinch import Document
    >>> seen = with_published_features(observe.observe([Document.make("IL-2")]))
    >>> int(np.count_nonzero(seen.kinds == observe.NAMED))  # capitals, digits, one digit, a dash, punctuation
    5
    """
    kept = np.isin(seen.kinds, KEPT)
    names = [(), *(patterns(word) for word in words_of(seen)[1:])]
    sizes = np.add.reduceat(kept, seen.lists[:-1], dtype=np.int64)
    more = np.array([len(row) for row in names], np.int64)
    lists = np.concatenate([[0], np.cumsum(sizes + more)])
    keys, kinds = np.empty(lists[-1], np.uint64), np.full(lists[-1], observe.NAMED, np.uint8)
    kept_at = np.repeat(lists[:-1] - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
    keys[kept_at], kinds[kept_at] = seen.keys[kept], seen.kinds[kept]
    added_at = np.repeat(lists[1:] - np.cumsum(more), more) + np.arange(more.sum())
    keys[added_at] = np.array([hash_name(name) for row in names for name in row], np.uint64)
    return replace(seen, keys=keys, kinds=kinds, lists=lists.astype(np.int32))
