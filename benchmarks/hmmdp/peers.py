"""The peer of the HMM-DP benchmark: python-crfsuite, averaged perceptron, on the same tokens and lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache, partial

from benchmarks import _crf as crf
from chaffinch import Document
from chaffinch.models.core.labels import Fitted, pieces_of
from chaffinch.text.tags import tags_of_runs

PIP = "pip install 'chaffinch[bench]'"
HEADER = 6  # words before a colon that may be a header
_BLANK = "<>"


def shape(word: str) -> str:
    """Capitals, small letters and digits as A, a and 0; other signs as they are.

    >>> shape("Penn-42")
    'Aaaa-00'
    """
    return "".join(
        "0" if sign.isdecimal() else "A" if sign.isupper() else "a" if sign.islower() else sign for sign in word
    )


@cache
def _own(word: str) -> list[str]:
    form = shape(word)
    sizes = range(1, min(4, len(word)) + 1)
    parts = [f"p={word[:size]}" for size in sizes] + [f"s={word[-size:]}" for size in sizes]
    brief = re.sub(r"(.)\1+", r"\1", form)
    return [f"w={word}", f"l={word.lower()}", f"f={form}", f"b={brief}", f"n={min(len(word), 9)}", *parts]


@cache
def _near(word: str, offset: int) -> list[str]:
    brief = re.sub(r"(.)\1+", r"\1", shape(word))
    return [f"{offset}l={word.lower()}", f"{offset}b={brief}"]


def header(words: Sequence[str]) -> str:
    """The words before the first colon near a line's beginning; empty without one.

    >>> header(["Name", ":", "Penn"]), header(["He", "came"])
    ('name', '')
    """
    for place, word in enumerate(words[: HEADER + 1]):
        if word == ":":
            return " ".join(words[:place]).lower()
    return ""


def features(words: Sequence[str]) -> list[list[str]]:
    """The usual features of every token of a line: words, shapes and affixes, two neighbours each side, header."""
    padded = [_BLANK, _BLANK, *words, _BLANK, _BLANK]
    small = [word.lower() for word in padded]
    head = header(words)
    out = []
    for t, word in enumerate(words):
        own = ["1", f"h={head}", f"first={small[2]}", *_own(word)]
        for offset in (-2, -1, 1, 2):
            own += _near(padded[t + 2 + offset], offset)
        own += [f"-10={small[t + 1]}|{small[t + 2]}", f"01={small[t + 2]}|{small[t + 3]}"]
        own += [f"-21={small[t]}|{small[t + 1]}", f"12={small[t + 3]}|{small[t + 4]}", f"h0={head}|{shape(word)}"]
        if t == 0:
            own.append("bol")
        if t == len(words) - 1:
            own.append("eol")
        out.append(own)
    return out


def _tags(docs: Sequence[Document]) -> Iterator[list[str]]:
    """The tags of every document's gold spans, fitted to its tokens."""
    names = sorted({span.label for doc in docs for span in doc.layer("gold")})
    index = {name: number for number, name in enumerate(names)}
    for doc in docs:
        runs = [(a, b, names[label]) for a, b, label in pieces_of(doc, doc.layer("gold"), index, Fitted())]
        yield tags_of_runs(runs, len(doc.tokens))


CRF = partial(crf.CRF, features, _tags, algorithm="ap", iterations=20, seed=0)
