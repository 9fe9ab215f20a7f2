"""Clinical classes of words: what a word would be if it identified nobody. They tell what was over-redacted.

The first class that fits is taken, in the order of `CLASSES`. The words are data of the language (`protected/`); for a
language without such data every word is ordinary.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
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
    words, labels = doc.words(), [match.span(1) for match in _LABEL.finditer(doc.text)]
    out = [_class_of(word, language) if any(map(str.isalnum, word)) else "" for word in words]
    for place, (start, end) in enumerate(doc.tokens.tolist()):
        if out[place] == "number" and place + 1 < len(words) and _is_unit(words[place + 1], language):
            out[place] = "clinical number"
        elif out[place] == "ordinary word" and _CAPITALS.fullmatch(words[place]):
            around = (*words[max(0, place - 1) : place], *words[place + 1 : place + 2])
            if not any(word.isupper() and len(word) > 1 for word in around):  # in running capitals it is a word
                out[place] = "abbreviation"
        if out[place] in ("abbreviation", "ordinary word") and any(a <= start and end <= b for a, b in labels):
            out[place] = "field label"
    return out


def count_flagged(doc: Document, spans: Iterable[Span], language: str = LANGUAGE) -> dict[str, int]:
    """Return {protected class: number of words in the spans}, without zeros: a hint of what was over-redacted."""
    chosen = list(spans)
    if not chosen:
        return {}
    classes = classes_of(doc, language)
    tokens = {token for first, end in doc.token_ranges(chosen).tolist() for token in range(first, end)}
    counts = Counter(classes[token] for token in sorted(tokens))
    return {name: counts[name] for name in PROTECTED if counts[name]}


@lru_cache(maxsize=1 << 15)
def _class_of(word: str, language: str) -> str:
    """Return the first class that fits a word: drug, eponym, anatomy, number, title …, else "ordinary word"."""
    plain, lists = fold(word), word_lists(language)
    frequent = lists.is_frequent(word)
    if lists.is_drug(word):
        return "drug or brand"
    if word[:1].isupper() and not frequent and plain in (_words(language, "eponyms") | _words(language, "surnames")):
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
