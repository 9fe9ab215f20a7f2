"""Lists with rates: what a word is among names, places, jobs and common words; and terms that identify nobody.

Names, places and jobs come from the English language pack, in whose lists a word is "hi" if it is likelier there than
in the language at large, else "lo"; protected terms from `protected/*.txt`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from importlib.resources import files
from itertools import accumulate

from chaffinch.deid.pattern import Page, either, matcher_of, matches
from chaffinch.features import lexicon, packs
from chaffinch.features.lexicon import Lexicon
from chaffinch.text import Document, Span, resolve

LANGUAGE = "en"
LAYER = "cue:protected"  # where votes are kept once they were asked for
PROTECTED = ("units", "tests", "drugs", "sections", "eponyms")
# Endings that international drug names share.
_DRUG_ENDINGS = (
    "pril",
    "prilat",
    "olol",
    "statin",
    "mab",
    "azole",
    "cillin",
    "mycin",
    "oxacin",
    "sartan",
    "dipine",
    "prazole",
    "tidine",
    "gliptin",
    "gliflozin",
    "parin",
    "xaban",
    "triptan",
    "setron",
    "lukast",
    "cycline",
    "caine",
    "barbital",
    "azepam",
    "zolam",
    "oxetine",
    "traline",
    "pramine",
    "triptyline",
    "tinib",
    "ciclovir",
    "vudine",
    "navir",
    "sone",
    "solone",
    "thiazide",
    "semide",
    "terol",
    "tropium",
    "glitazone",
    "formin",
    "dronate",
    "fibrate",
    "profen",
    "coxib",
    "codone",
    "morphone",
)
REMEMBERED = 1 << 15  # words whose answers are held
_APART = "\x00"  # between texts that are read as one: no phrase has it, and it is no blank
_ENDING_LENGTH = 7  # letters that a word with such an ending has at least


@cache
def _pack() -> packs.Pack:
    """The pack, but for the words left out for now (`without`)."""
    return packs.pack(LANGUAGE)


@cache
def words_of(name: str) -> tuple[str, ...]:
    """The entries of a packaged list of protected terms."""
    text = (files("chaffinch.deid") / "protected" / f"{name}.txt").read_text(encoding="utf-8")
    return tuple(line for line in map(str.strip, text.splitlines()) if line and not line.startswith("#"))


@lru_cache(maxsize=REMEMBERED)
def rate(word: str, name: str) -> str:
    """How a word stands in a list (first, last, city, state, hospital, job): "hi", "lo", or "" if it is not there.

    >>> rate("Smith", "last"), rate("penicillin", "last")
    ('hi', '')
    """
    return _pack().lexica[name].get(packs.fold(word), "")


@contextmanager
def without(words: Iterable[str]) -> Iterator[None]:
    """While it lasts, the lists of names and cities lack these words: for measuring on names that no list has.

    Patterns, cues and features made inside are without them. It is for one thread.

    >>> with without(["Smith"]):
    ...     rate("Smith", "last")
    ''
    """
    try:
        with packs.without(words):
            _forget()
            yield
    finally:
        _forget()


def listed() -> list[str]:
    """The words of all lists, left out or not, and the common words, sorted."""
    return sorted(_pack().common.union(*_pack().lexica.values(), packs.left_out()))


def is_left_out(word: str) -> bool:
    """Whether the lists lack a word for now."""
    return packs.fold(word) in packs.left_out()


def _forget() -> None:
    for remembered in (_pack, rate, is_drug, is_term, is_name):
        remembered.cache_clear()


@lru_cache(maxsize=REMEMBERED)
def is_common(word: str) -> bool:
    """Whether a word is frequent in ordinary and clinical text."""
    return packs.fold(word) in _pack().common


def common_words() -> frozenset[str]:
    """The words that are frequent in ordinary and clinical text, in lower case."""
    return _pack().common


@cache
def _single(name: str) -> frozenset[str]:
    return frozenset(packs.fold(word) for word in words_of(name) if " " not in word)


def is_section(word: str) -> bool:
    """Whether a word stands in headers, or is a service of a hospital."""
    return packs.fold(word) in _single("sections")


@lru_cache(maxsize=REMEMBERED)
def is_drug(word: str) -> bool:
    """Whether a word is a brand or drug of the list, or ends as drugs do."""
    small = packs.fold(word)
    if small in _single("drugs"):
        return True
    return len(small) >= _ENDING_LENGTH and small.endswith(_DRUG_ENDINGS) and rate(word, "last") != "hi"


@lru_cache(maxsize=REMEMBERED)
def is_term(word: str) -> bool:
    """Whether a word is a unit, a test, a drug or a word of headers."""
    small = packs.fold(word)
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


def features(*, extra: Iterable[tuple[str, Iterable[str]]] = ()) -> Lexicon:
    """The lists with their rates as one lexicon for taggers, labels such as "last-hi"; `extra` lists go first."""
    lists: dict[str, Iterable[str]] = dict(extra)
    for name, words in _pack().lexica.items():
        for bucket in packs.BUCKETS:
            chosen = [word for word, own in words.items() if own == bucket and len(word) >= lexicon.SHORTEST]
            lists[f"{name}-{bucket}"] = chosen
    return Lexicon.make({f"protected-{name}": words_of(name) for name in PROTECTED} | lists)


@cache
def _phrases() -> Lexicon:
    lists = {name: words_of(name) for name in ("tests", "drugs", "titles")}
    return Lexicon.make(lists)


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
    page = Page.of([doc.text for doc in docs])
    certain, bare = _eponyms()
    spans: list[list[Span]] = [[] for _ in docs]
    for pattern, score, source in ((certain, 1.0, "protected"), (bare, 0.5, "eponym")):
        for number, (_, _, start, end) in matches(page, pattern):
            spans[number].append(Span(start, end, "O", score, source))
    shifts = list(accumulate((len(doc.text) + len(_APART) for doc in docs), initial=0))
    for start, end, _ in _phrases().find(_APART.join(doc.text for doc in docs)):
        number = bisect_right(shifts, start) - 1
        spans[number].append(Span(start - shifts[number], end - shifts[number], "O", 1.0, "term"))
    for doc, own in zip(docs, spans, strict=True):
        words = doc.words()
        drugs = {word for word in set(words) if word.isalpha() and is_drug(word)}
        for place in [place for place, word in enumerate(words) if word in drugs] if drugs else ():
            start, end = doc.tokens[place].tolist()
            own.append(Span(start, end, "O", 1.0, "drug"))
    return [_free(doc.text, own) for doc, own in zip(docs, spans, strict=True)]


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
