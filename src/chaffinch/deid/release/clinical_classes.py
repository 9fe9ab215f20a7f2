"""Clinical classes of words: what a word would be if it identified nobody. They tell what was over-redacted.

The first class that fits is taken, in the order of `CLASSES`. The words are data of the language (`protected/`); for a
language without such data every word is ordinary.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Final

from chaffinch import languages
from chaffinch.deid.detect.word_lists import LANGUAGE, word_lists
from chaffinch.languages import fold
from chaffinch.text import Document, Span

CLASSES: Final = (
    "drug or brand", "eponym or test", "anatomy", "clinical number", "number", "title", "credential", "kin word",
    "field label", "abbreviation", "ordinary word",
)  # fmt: skip
# Classes that name nobody wherever they stand; a number or an ordinary word in a span may well be an identifier.
PROTECTED: Final = tuple(name for name in CLASSES if name not in ("number", "ordinary word"))
_VERTEBRA: Final = re.compile(r"[CTLS](?:1[0-2]|[1-9])(?:[-/][CTLS]?\d{1,2})?")
# Days, weeks, months of treatment (3/7, 2/52, 6/12), gestation (38+4), doses (5mg, 10%), thresholds (<10, >=65).
_CLINICAL: Final = re.compile(r"\d{1,2}/(?:7|52|12)|\d{2}\+[0-6]|[<>≤≥]=?\d+(?:\.\d+)?|\d+(?:[.,]\d+)?(%|[A-Za-zµ]+)")
_CAPITALS: Final = re.compile(r"[A-Z]{2,6}s?|(?:[A-Za-z]\.){2,}[A-Za-z]?|[A-Za-z](?:/[A-Za-z])+")
_LABEL: Final = re.compile(r"(?:^|  |\t|\|)[ \t*#>-]*((?:[^\s:|]+ ){0,4}[^\s:|]+) ?:(?=\s|$)", re.MULTILINE)


def classes_of(doc: Document, language: str = LANGUAGE) -> list[str]:
    """Return the clinical class of every token, by itself and by its neighbours; "" for punctuation.

    >>> classes_of(Document.make("Allergies: aspirin 81 mg, daughter"))
    ['field label', '', 'drug or brand', 'clinical number', 'clinical number', '', 'kin word']
    """
    return _classes_at(doc, range(len(doc.tokens)), language)


def _classes_at(doc: Document, places: Iterable[int], language: str) -> list[str]:
    """Return the clinical class of the tokens at some places, as `classes_of` returns those of all."""
    text, tokens = doc.text, doc.tokens.tolist()
    labels = cache(lambda start, end: [match.span(1) for match in _LABEL.finditer(text, start, end)])  # by line
    out = []
    for place in places:
        start, end = tokens[place]
        word = text[start:end]
        found = _class_of(word, language) if any(map(str.isalnum, word)) else ""
        if found == "number":
            following = text[slice(*tokens[place + 1])] if place + 1 < len(tokens) else ""
            found = "clinical number" if following and _is_unit(following, language) else found
        elif found == "ordinary word" and _CAPITALS.fullmatch(word):
            around = (text[a:b] for a, b in (*tokens[max(0, place - 1) : place], *tokens[place + 1 : place + 2]))
            if not any(other.isupper() and len(other) > 1 for other in around):  # in running capitals it is a word
                found = "abbreviation"
        if found in ("abbreviation", "ordinary word"):
            line, rest = text.rfind("\n", 0, start) + 1, text.find("\n", end)  # no label goes beyond its line
            if any(a <= start and end <= b for a, b in labels(line, len(text) if rest < 0 else rest)):
                found = "field label"
        out.append(found)
    return out


def count_flagged(doc: Document, spans: Iterable[Span], language: str = LANGUAGE) -> dict[str, int]:
    """Return {protected class: number of words in the spans}, without zeros: a hint of what was over-redacted."""
    chosen = list(spans)
    if not chosen:
        return {}
    tokens = {token for first, end in doc.token_ranges(chosen).tolist() for token in range(first, end)}
    counts = Counter(_classes_at(doc, sorted(tokens), language))
    return {name: counts[name] for name in PROTECTED if counts[name]}


@lru_cache(maxsize=1 << 15)
def _class_of(word: str, language: str) -> str:
    """Return the first class that fits a word: drug, eponym, anatomy, number, title …, else "ordinary word"."""
    plain, lists = fold(word), word_lists(language)
    frequent = lists.is_frequent(word)
    if lists.is_drug(word):
        return "drug or brand"
    if word[:1].isupper() and not frequent and _is_eponym(plain, language):
        return "eponym or test"
    if plain in _words(language, "tests") and not frequent:
        return "eponym or test"
    if plain in _words(language, "anatomy") or (_words(language, "anatomy") and _VERTEBRA.fullmatch(word)):
        return "anatomy"
    if _is_unit(word, language) or _is_clinical_number(word, language):
        return "clinical number"
    if any(map(str.isdigit, word)):
        return "number"
    if plain.rstrip(".") in _words(language, "titles"):
        return "title"
    if len(word) > 1 and word in languages.lines(language, "protected/credentials"):
        return "credential"
    if plain in _words(language, "kin"):
        return "kin word"
    if word[:1].isupper() and lists.is_section(word):
        return "field label"
    return "abbreviation" if _CAPITALS.fullmatch(word) and not frequent else "ordinary word"


def _is_eponym(plain: str, language: str) -> bool:
    """Tell whether a folded word is an eponym, a frequent or a rarer one."""
    return plain in _words(language, "eponyms") or plain in _words(language, "surnames")


def _is_unit(word: str, language: str) -> bool:
    """Tell whether a word is in the language's list of units."""
    return fold(word) in _words(language, "units")


def _is_clinical_number(word: str, language: str) -> bool:
    """Tell whether a word is a number that notes have and people do not: a dose, a course in weeks, a threshold."""
    match = _CLINICAL.fullmatch(word)
    return match is not None and (match.group(1) in (None, "%") or _is_unit(match.group(1), language))


@lru_cache(maxsize=64)
def _words(language: str, name: str) -> frozenset[str]:
    """Return the folded single words of a class: its word list plus `classes.toml`, cached."""
    shipped = language in languages.languages_with("protected/classes.toml")
    more = languages.words(language, "protected/classes").get(name, ()) if shipped else ()
    listed = () if name == "titles" else languages.lines(language, f"protected/{name}")  # titles.txt has those of notes
    return frozenset(fold(word) for word in (*listed, *more) if " " not in word)
