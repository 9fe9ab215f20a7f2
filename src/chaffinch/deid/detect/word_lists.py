"""Lists with rates: what a word is among names, places, jobs and common words; and terms that identify nobody.

Names, places and jobs come from a language pack, in whose lists a word is "hi" if it is likelier there than in the
language at large, else "lo"; protected terms from `protected/*.txt` of the language.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import accumulate

from chaffinch import languages
from chaffinch.deid.patterns.pattern import ByteText, either, matcher_of, matches
from chaffinch.features.lexicon import Lexicon
from chaffinch.languages import fold
from chaffinch.text import Document, Span, resolve

LANGUAGE = "en"
LAYER = "cue:protected"  # where votes are kept once they were asked for
REMEMBERED = 1 << 15  # words whose answers are held
_TIME = re.compile(r"(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d)?")
_LINKS = ("'s", "’s", "-")  # tokens between an eponym and its head noun
_APART = "\x00"  # between texts that are read as one: no phrase has it, and it is no blank
_ENDING_LENGTH = 7  # letters that a word with such an ending has at least
_TITLE_BEFORE = (
    r"(?:\b(?i:dr|drs|mr|mrs|ms|miss|prof|doctor|nurse|attending|pcp|patient|name|dear)\b[.:]?\s|"
    r"\b[A-Z]\.\s)$"
)
_PERSON_AFTER = r"(?:,?\s(?:MD|M\.D\.|DO|RN|NP|PA-C|PhD)\b|,\s[A-Z]\.?(?:\s|$))"


def word_lists(language: str = LANGUAGE, hidden: Iterable[str] = ()) -> WordLists:
    """Return the lists of a language, those of names and cities without the hidden words and their parts.

    Hidden words are for measuring on names that no list has, and for learning as if lists lacked some.

    >>> word_lists().rate("Smith", "last"), word_lists(hidden=["Smith"]).rate("Smith", "last")
    ('hi', '')
    """
    return _word_lists(language, languages.hidden_words(hidden))


@lru_cache(maxsize=4)
def _word_lists(language: str, hidden: frozenset[str]) -> WordLists:
    return WordLists(language, hidden)


class WordLists:
    """The lists of a language without the hidden words, and the answers for words met so far. Made by `word_lists`.

    A value that does not change: any number of threads may use it, and others with other hidden words beside it.
    """

    def __init__(self, language: str, hidden: frozenset[str]) -> None:
        self.language, self.hidden, self._pack = language, hidden, languages.pack(language, hidden)
        self._drug_endings = languages.lines(language, "protected/drug-endings")
        self._sections, self._units, self._tests, self._drugs, self._heads = (
            frozenset(fold(word) for word in languages.lines(language, f"protected/{name}") if " " not in word)
            for name in ("sections", "units", "tests", "drugs", "heads")
        )
        self._surnames = frozenset(  # rarer eponyms, each with a capital alone and in capitals alone
            form for word in languages.lines(language, "protected/surnames") for form in (word, word.upper())
        )
        self._credentials = frozenset(languages.lines(language, "protected/credentials"))
        remember = lru_cache(maxsize=REMEMBERED)
        self.rate: Callable[[str, str], str] = remember(self._rate)
        self.is_common: Callable[[str], bool] = remember(self._is_common)
        self.is_frequent: Callable[[str], bool] = remember(self._is_frequent)
        self.is_drug: Callable[[str], bool] = remember(self._is_drug)
        self.is_term: Callable[[str], bool] = remember(self._is_term)
        self.is_name: Callable[[str], bool] = remember(self._is_name)
        self.is_plain: Callable[[str, bool], bool] = remember(self._is_plain)
        self._harmless: Callable[[str], str] = remember(self._find_harmless)

    def __repr__(self) -> str:
        return f"WordLists({self.language!r}, {len(self.hidden)} words hidden)"

    def __reduce__(self) -> tuple[Callable[[str, frozenset[str]], WordLists], tuple[str, frozenset[str]]]:
        return _word_lists, (self.language, self.hidden)

    def hiding(self, words: Iterable[str]) -> WordLists:
        """Return the lists without these words as well."""
        return _word_lists(self.language, self.hidden | languages.hidden_words(words))

    @property
    def every_word(self) -> list[str]:
        """The words of all lists, hidden or not, and the common words, sorted."""
        return sorted(self._pack.common.union(*self._pack.lexica.values(), self.hidden))

    @property
    def common_words(self) -> frozenset[str]:
        """The words that are frequent in ordinary and clinical text, in lower case."""
        return self._pack.common

    def is_hidden(self, word: str) -> bool:
        """Return whether a word is hidden."""
        return fold(word) in self.hidden

    def is_section(self, word: str) -> bool:
        """Return whether a word stands in headers, or is a service of a hospital."""
        return fold(word) in self._sections

    def protected(self, doc: Document) -> list[Span]:
        """Return votes for "not an entity", labelled O: score 1 for terms no person bears, 0.5 for a bare eponym.

        A drug in running text has 1 as well. A term beside a person's name or title ("Dr. Foley") gets no vote.

        >>> note = Document.make("Foley removed, Parkinson disease stable, Dr. Foley agrees.")
        >>> [note.text[span.start : span.end] for span in word_lists().protected(note)]
        ['Foley', 'Parkinson disease']
        """
        return list(doc.layers[LAYER]) if LAYER in doc.layers else self.protected_in([doc])[0]

    def protected_in(self, docs: Sequence[Document]) -> list[list[Span]]:
        """Return the same for many documents at once, which is quicker."""
        page = ByteText.of([doc.text for doc in docs])
        spans: list[list[Span]] = [[] for _ in docs]
        for pattern, score, source in _eponyms(self.language):
            for number, (_, _, start, end) in matches(page, pattern):
                spans[number].append(Span(start, end, "O", score, source))
        shifts = list(accumulate((len(doc.text) + len(_APART) for doc in docs), initial=0))
        for start, end, _ in _phrases(self.language).find(_APART.join(doc.text for doc in docs)):
            number = bisect_right(shifts, start) - 1
            spans[number].append(Span(start - shifts[number], end - shifts[number], "O", 1.0, "term"))
        return [
            self._not_beside_people(doc.text, [*votes, *self._protected_words(doc)])
            for doc, votes in zip(docs, spans, strict=True)
        ]

    def _rate(self, word: str, name: str) -> str:
        """Return how a word stands in a list (first, last, city, state, hospital, job): "hi", "lo", or "" if not."""
        return self._pack.lexica[name].get(fold(word), "")

    def _is_common(self, word: str) -> bool:
        """Return whether a word is frequent in ordinary and clinical text."""
        return fold(word) in self._pack.common

    def _is_frequent(self, word: str) -> bool:
        """Return whether a word is among the most frequent common ones; others may well be part of a place's name."""
        return fold(word) in self._pack.frequent

    def _is_drug(self, word: str) -> bool:
        """Return whether a word is a brand or drug of the list, or ends as drugs do."""
        small = fold(word)
        if small in self._drugs:
            return True
        return len(small) >= _ENDING_LENGTH and small.endswith(self._drug_endings) and self.rate(word, "last") != "hi"

    def _is_term(self, word: str) -> bool:
        """Return whether a word is a unit, a test, a drug or a word of headers."""
        small = fold(word)
        return small in self._units or small in self._tests or self.is_section(word) or self.is_drug(word)

    def _is_name(self, word: str) -> bool:
        """Return whether a capitalised word may be a person's name: listed, or neither common nor a clinical term.

        >>> [word_lists().is_name(word) for word in ("Okonkwo", "Smith", "Patient", "Lipitor")]
        [True, True, False, False]
        """
        if self.is_term(word):
            return False
        return "hi" in (self.rate(word, "first"), self.rate(word, "last")) or not self.is_common(word)

    def _is_plain(self, word: str, begins: bool) -> bool:
        """Return whether a word is common and says little of names: in small letters, in capitals, or at a beginning.

        Jobs in small letters are not, nor words with a capital that are often names.
        """
        if not word.isalpha() or len(word) < 2 or not (self.is_common(word) or self.is_term(word)):
            return False
        if word.islower():
            return self.rate(word, "job") != "hi"
        often = any(self.rate(word, name) == "hi" for name in ("first", "last", "city", "state"))
        return (word.isupper() or begins) and not often

    def _find_harmless(self, word: str) -> str:
        """Return what a single word may be that identifies nobody, or nothing."""
        if word.isalpha() and self.is_drug(word):
            return "drug"
        if word in self._surnames:
            return "eponym"
        if len(word) > 2 and word in self._credentials:
            return "credential"
        return "time" if _TIME.fullmatch(word) else ""

    def _protected_words(self, doc: Document) -> Iterator[Span]:
        """Vote for single words: drugs, rarer eponyms before a head noun, times of day, credentials after a name."""
        words = doc.words()
        sources = {word: source for word in set(words) if (source := self._harmless(word))}
        for place in [place for place, word in enumerate(words) if word in sources] if sources else ():
            source = sources[words[place]]
            if source == "eponym" and not self._begins_with_head(words[place + 1 : place + 3]):
                continue
            if source == "credential" and not _ends_in_name(words[max(0, place - 2) : place]):
                continue
            start, end = doc.tokens[place].tolist()
            yield Span(start, end, "O", 0.5 if source == "eponym" else 1.0, source)

    def _begins_with_head(self, after: Sequence[str]) -> bool:
        """Return whether the words after an eponym begin with a head noun."""
        return next((fold(word) for word in after if word not in _LINKS), "") in self._heads

    def _not_beside_people(self, text: str, spans: Iterable[Span]) -> list[Span]:
        """Return the spans that do not stand beside a person's name or title, settled."""
        free = sorted((span for span in spans if not self._beside_person(text, span)), key=lambda span: -span.score)
        return list(resolve(free, "longest"))

    def _beside_person(self, text: str, span: Span) -> bool:
        before, after = text[max(0, span.start - 24) : span.start], text[span.end : span.end + 24]
        if matcher_of(_TITLE_BEFORE)[0].search(before) or matcher_of(_PERSON_AFTER)[0].match(after):
            return True
        last = before.split()[-1:] if before[-1:] == " " else []
        return bool(last) and last[0][:1].isupper() and self.rate(last[0], "first") == "hi"


def _ends_in_name(before: Sequence[str]) -> bool:
    """Return whether the words before a credential end in a name or another credential, perhaps with a comma."""
    last = next((word for word in reversed(before) if word not in (",", "/", "-")), "")
    return last[:1].isupper()


@cache
def _phrases(language: str) -> Lexicon:
    names = ("tests", "drugs", "titles", "products")
    return Lexicon.make({name: languages.lines(language, f"protected/{name}") for name in names})


@cache
def _eponyms(language: str) -> tuple[tuple[str, float, str], ...]:
    """Return patterns of eponyms with a head noun and of bare ones, each with the score and source of its votes."""
    words, nouns = (languages.lines(language, f"protected/{name}") for name in ("eponyms", "heads"))
    if not words or not nouns:
        return ()
    names, heads = either(word.replace(".", r"\.") for word in words), either(nouns)
    between = r"(?:['’]s|['’])?(?:-[A-Z]\p{L}+)?"
    certain = rf"\b({names}{between}[ -](?:(?i:body|cell|bone|nerve|node|type)[ -])?(?i:{heads}))\b"
    bare = rf"\b({names}{between})(?:$|[^\p{{L}}\p{{N}}])"
    return (certain, 1.0, "protected"), (bare, 0.5, "eponym")
