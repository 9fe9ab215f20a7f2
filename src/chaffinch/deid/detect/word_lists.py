"""Lists with rates: what a word is among names, places, jobs and common words; and terms that identify nobody.

Names, places and jobs come from the English language pack, in whose lists a word is "hi" if it is likelier there than
in the language at large, else "lo"; protected terms from `protected/*.txt`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from itertools import accumulate

from chaffinch import languages
from chaffinch.deid.patterns.pattern import ByteText, either, matcher_of, matches
from chaffinch.features.lexicon import Lexicon
from chaffinch.text import Document, Span, resolve

LANGUAGE = "en"
LAYER = "cue:protected"  # where votes are kept once they were asked for
_DRUG_ENDINGS = languages.lines(LANGUAGE, "protected/drug-endings")
REMEMBERED = 1 << 15  # words whose answers are held
_TIME = re.compile(r"(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d)?")
_LINKS = ("'s", "’s", "-")  # tokens between an eponym and its head noun
_APART = "\x00"  # between texts that are read as one: no phrase has it, and it is no blank
_ENDING_LENGTH = 7  # letters that a word with such an ending has at least


@cache
def _pack() -> languages.Pack:
    """The pack, but for the words left out for now (`without`)."""
    return languages.pack(LANGUAGE)


def words_of(name: str) -> tuple[str, ...]:
    """The entries of a packaged list of protected terms."""
    return languages.lines(LANGUAGE, f"protected/{name}")


@lru_cache(maxsize=REMEMBERED)
def rate(word: str, name: str) -> str:
    """How a word stands in a list (first, last, city, state, hospital, job): "hi", "lo", or "" if it is not there.

    >>> rate("Smith", "last"), rate("penicillin", "last")
    ('hi', '')
    """
    return _pack().lexica[name].get(languages.fold(word), "")


@contextmanager
def without(words: Iterable[str]) -> Iterator[None]:
    """While it lasts, the lists of names and cities lack these words: for measuring on names that no list has.

    Patterns, cues and features made inside are without them. It is for one thread.

    >>> with without(["Smith"]):
    ...     rate("Smith", "last")
    ''
    """
    try:
        with languages.without(words):
            _forget()
            yield
    finally:
        _forget()


def listed() -> list[str]:
    """The words of all lists, left out or not, and the common words, sorted."""
    return sorted(_pack().common.union(*_pack().lexica.values(), languages.left_out()))


def is_left_out(word: str) -> bool:
    """Whether the lists lack a word for now."""
    return languages.fold(word) in languages.left_out()


def _forget() -> None:
    for remembered in (_pack, rate, is_drug, is_term, is_name, is_plain, is_frequent, _kind):
        remembered.cache_clear()


@lru_cache(maxsize=REMEMBERED)
def is_common(word: str) -> bool:
    """Whether a word is frequent in ordinary and clinical text."""
    return languages.fold(word) in _pack().common


@lru_cache(maxsize=REMEMBERED)
def is_frequent(word: str) -> bool:
    """Whether a word is among the most frequent of the common ones; the others may well be part of a place's name."""
    return languages.fold(word) in _pack().frequent


def common_words() -> frozenset[str]:
    """The words that are frequent in ordinary and clinical text, in lower case."""
    return _pack().common


@cache
def _single(name: str) -> frozenset[str]:
    return frozenset(languages.fold(word) for word in words_of(name) if " " not in word)


def is_section(word: str) -> bool:
    """Whether a word stands in headers, or is a service of a hospital."""
    return languages.fold(word) in _single("sections")


@lru_cache(maxsize=REMEMBERED)
def is_drug(word: str) -> bool:
    """Whether a word is a brand or drug of the list, or ends as drugs do."""
    small = languages.fold(word)
    if small in _single("drugs"):
        return True
    return len(small) >= _ENDING_LENGTH and small.endswith(_DRUG_ENDINGS) and rate(word, "last") != "hi"


@lru_cache(maxsize=REMEMBERED)
def is_term(word: str) -> bool:
    """Whether a word is a unit, a test, a drug or a word of headers."""
    small = languages.fold(word)
    return small in _single("units") or small in _single("tests") or is_section(word) or is_drug(word)


@lru_cache(maxsize=REMEMBERED)
def is_name(word: str) -> bool:
    """Whether a capitalised word may be a person's name: listed as one, or neither common nor a clinical term.

    >>> is_name("Okonkwo"), is_name("Smith"), is_name("Patient"), is_name("Lipitor")
    (True, True, False, False)
    """
    if is_term(word):
        return False
    return "hi" in (rate(word, "first"), rate(word, "last")) or not is_common(word)


@lru_cache(maxsize=REMEMBERED)
def is_plain(word: str, begins: bool) -> bool:
    """Whether a word is a common one that says little of names: in small letters, in capitals, or at a beginning.

    Jobs in small letters are not, nor words with a capital that are often names.
    """
    if not word.isalpha() or len(word) < 2 or not (is_common(word) or is_term(word)):
        return False
    if word.islower():
        return rate(word, "job") != "hi"
    often = any(rate(word, name) == "hi" for name in ("first", "last", "city", "state"))
    return (word.isupper() or begins) and not often


@cache
def _phrases() -> Lexicon:
    lists = {name: words_of(name) for name in ("tests", "drugs", "titles", "products")}
    return Lexicon.make(lists)


@cache
def _surnames() -> frozenset[str]:
    """Rarer eponyms, each with a capital alone and in capitals alone."""
    return frozenset(form for word in words_of("surnames") for form in (word, word.upper()))


def _by_words(doc: Document) -> Iterator[Span]:
    """The votes for single words: drugs, rarer eponyms before a head noun, times of day, credentials behind a name."""
    words = doc.words()
    kinds = {word: kind for word in set(words) if (kind := _kind(word))}
    for place in [place for place, word in enumerate(words) if word in kinds] if kinds else ():
        kind = kinds[words[place]]
        if kind == "eponym" and not _heads(words[place + 1 : place + 3]):
            continue
        if kind == "credential" and not _behind_name(words[max(0, place - 2) : place]):
            continue
        start, end = doc.tokens[place].tolist()
        yield Span(start, end, "O", 0.5 if kind == "eponym" else 1.0, kind)


@lru_cache(maxsize=REMEMBERED)
def _kind(word: str) -> str:
    """What a single word may be that identifies nobody, or nothing."""
    if word.isalpha() and is_drug(word):
        return "drug"
    if word in _surnames():
        return "eponym"
    if len(word) > 2 and word in _single_as_written("credentials"):
        return "credential"
    return "time" if _TIME.fullmatch(word) else ""


def _behind_name(before: Sequence[str]) -> bool:
    """Whether the words before a credential end in a name or another credential, perhaps with a comma."""
    last = next((word for word in reversed(before) if word not in (",", "/", "-")), "")
    return last[:1].isupper()


@cache
def _single_as_written(name: str) -> frozenset[str]:
    return frozenset(words_of(name))


def _heads(after: Sequence[str]) -> bool:
    """Whether the words after an eponym begin with a head noun."""
    return next((languages.fold(word) for word in after if word not in _LINKS), "") in _single("heads")


@cache
def _eponyms() -> tuple[str, str]:
    names = either(word.replace(".", r"\.") for word in words_of("eponyms"))
    heads = either(words_of("heads"))
    between = r"(?:['’]s|['’])?(?:-[A-Z]\p{L}+)?"
    return (
        rf"\b({names}{between}[ -](?:(?i:body|cell|bone|nerve|node|type)[ -])?(?i:{heads}))\b",
        rf"\b({names}{between})(?:$|[^\p{{L}}\p{{N}}])",
    )


def protected(doc: Document) -> list[Span]:
    """Votes for "not an entity", labelled O: score 1 for terms no person bears, 0.5 for a bare eponym or drug.

    A term beside a person's name or title ("Dr. Foley", "Mary Wells") gets no vote.

    >>> note = Document.make("Foley removed, Parkinson disease stable, Dr. Foley agrees.")
    >>> [note.text[span.start : span.end] for span in protected(note)]
    ['Foley', 'Parkinson disease']
    """
    return list(doc.layers[LAYER]) if LAYER in doc.layers else protected_in([doc])[0]


def protected_in(docs: Sequence[Document]) -> list[list[Span]]:
    """The same for many documents at once, which is quicker."""
    page = ByteText.of([doc.text for doc in docs])
    certain, bare = _eponyms()
    spans: list[list[Span]] = [[] for _ in docs]
    for pattern, score, source in ((certain, 1.0, "protected"), (bare, 0.5, "eponym")):
        for number, (_, _, start, end) in matches(page, pattern):
            spans[number].append(Span(start, end, "O", score, source))
    shifts = list(accumulate((len(doc.text) + len(_APART) for doc in docs), initial=0))
    for start, end, _ in _phrases().find(_APART.join(doc.text for doc in docs)):
        number = bisect_right(shifts, start) - 1
        spans[number].append(Span(start - shifts[number], end - shifts[number], "O", 1.0, "term"))
    return [_free(doc.text, [*own, *_by_words(doc)]) for doc, own in zip(docs, spans, strict=True)]


def _free(text: str, spans: Iterable[Span]) -> list[Span]:
    """The spans that do not stand beside a person's name or title, settled."""
    free = sorted((span for span in spans if not _beside_person(text, span)), key=lambda span: -span.score)
    return list(resolve(free, "longest"))


_TITLE_BEFORE = (
    r"(?:\b(?i:dr|drs|mr|mrs|ms|miss|prof|doctor|nurse|attending|pcp|patient|name|dear)\b[.:]?\s|"
    r"\b[A-Z]\.\s)$"
)
_PERSON_AFTER = r"(?:,?\s(?:MD|M\.D\.|DO|RN|NP|PA-C|PhD)\b|,\s[A-Z]\.?(?:\s|$))"


def _beside_person(text: str, span: Span) -> bool:
    before, after = text[max(0, span.start - 24) : span.start], text[span.end : span.end + 24]
    if matcher_of(_TITLE_BEFORE)[0].search(before) or matcher_of(_PERSON_AFTER)[0].match(after):
        return True
    last = before.split()[-1:] if before[-1:] == " " else []
    return bool(last) and last[0][:1].isupper() and rate(last[0], "first") == "hi"
