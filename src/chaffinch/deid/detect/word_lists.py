"""Word lists of a language: rates of names, places and jobs, common words, and terms that identify nobody.

Names, places and jobs come from a language pack. Its lists rate a word "hi" if it is likelier as such a name than as a
word of the language, else "lo". Protected terms come from `protected/*.txt` of the language.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import accumulate

from chaffinch import languages
from chaffinch.deid.patterns.pattern import ByteText, either, matcher_of, matches
from chaffinch.features.lexicon import Lexicon
from chaffinch.languages import fold
from chaffinch.text import Document, Span, resolve

LANGUAGE = "en"
LAYER = "cue:protected"  # the layer that stores the votes for protected terms
REMEMBERED = 1 << 14  # words whose answers are cached, per question; more costs memory, fewer costs time
_TIME = re.compile(r"(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d)?")
_LINKS = ("'s", "’s", "-")  # tokens between an eponym and its head noun
_APART = "\x00"  # separates texts that are searched as one: no phrase contains it, and it is no blank
_ENDING_LENGTH = 7  # the fewest letters of a drug found by its ending; lower takes more ordinary words for drugs
_TITLE_BEFORE = (
    r"(?:\b(?i:dr|drs|mr|mrs|ms|miss|prof|doctor|nurse|attending|pcp|patient|name|dear)\b[.:]?\s|"
    r"\b[A-Z]\.\s)$"
)
_PERSON_AFTER = r"(?:,?\s(?:MD|M\.D\.|DO|RN|NP|PA-C|PhD)\b|,\s[A-Z]\.?(?:\s|$))"

_DEGREES_BEGIN = frozenset("MDRNP")  # one of these follows the blank if no comma does


def word_lists(language: str = LANGUAGE, hidden: Iterable[str] = ()) -> WordLists:
    """Return the word lists of a language, cached; its names and cities lack the hidden words and their parts.

    Words are hidden to measure on names that no list has, and to train as if the lists were incomplete.

    >>> word_lists().rate("Smith", "last"), word_lists(hidden=["Smith"]).rate("Smith", "last")
    ('hi', '')
    """
    return _word_lists(language, languages.hidden_words(hidden))


@lru_cache(maxsize=4)
def _word_lists(language: str, hidden: frozenset[str]) -> WordLists:
    """Return the lists of a language without the hidden words; the last four results are cached."""
    return WordLists(language, hidden)


class WordLists:
    """The lists of a language without the hidden words, with cached answers for words. Built by `word_lists`.

    The value is immutable: threads may share it, and others with other hidden words may exist at the same time.
    """

    def __init__(self, language: str, hidden: frozenset[str]) -> None:
        """Load the lists of the language without hidden words, and cache the answers about single words."""
        self.language, self.hidden, self._pack = language, hidden, languages.pack(language, hidden)
        self._drug_endings = languages.lines(language, "protected/drug-endings")
        self._sections, self._units, self._tests, self._drugs, self._heads = (
            frozenset(fold(word) for word in languages.lines(language, f"protected/{name}") if " " not in word)
            for name in ("sections", "units", "tests", "drugs", "heads")
        )
        self._surnames = frozenset(  # rarer eponyms, which match only with a capital or in capitals
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
        self._harmless: Callable[[str], str] = remember(self._find_harmless)

    def __repr__(self) -> str:
        """Return the language and the number of hidden words, never a word."""
        return f"WordLists({self.language!r}, {len(self.hidden)} words hidden)"

    def __reduce__(self) -> tuple[Callable[[str, frozenset[str]], WordLists], tuple[str, frozenset[str]]]:
        """Pickle as language and hidden words; the lists are loaded again where it is unpickled."""
        return _word_lists, (self.language, self.hidden)

    def hide_words(self, words: Iterable[str]) -> WordLists:
        """Return the lists of the language with these words hidden too."""
        return _word_lists(self.language, self.hidden | languages.hidden_words(words))

    @property
    def every_word(self) -> list[str]:
        """Return all words of the lists of names and places, hidden ones too, and the common words, sorted."""
        return sorted(self._pack.common.union(*self._pack.lexica.values(), self.hidden))

    @property
    def common_words(self) -> frozenset[str]:
        """Return the words that are frequent in ordinary and clinical text, in lower case."""
        return self._pack.common

    def is_hidden(self, word: str) -> bool:
        """Tell whether a word is hidden from the lists, whatever its case."""
        return fold(word) in self.hidden

    def is_section(self, word: str) -> bool:
        """Tell whether a word occurs in section headers, or names a hospital service, whatever its case."""
        return fold(word) in self._sections

    def find_protected(self, doc: Document) -> list[Span]:
        """Return spans labelled O of terms that name nobody (score 1), and of eponyms without a noun (score 0.5).

        A drug in running text has score 1 as well. A term next to a person's name or title ("Dr. Foley") gets no vote.

        >>> note = Document.make("Foley removed, Parkinson disease stable, Dr. Foley agrees.")
        >>> [note.text[span.start : span.end] for span in word_lists().find_protected(note)]
        ['Foley', 'Parkinson disease']
        """
        return list(doc.layers[LAYER]) if LAYER in doc.layers else self.find_protected_in([doc])[0]

    def find_protected_in(self, docs: Sequence[Document]) -> list[list[Span]]:
        """Return `find_protected` for many documents in one pass, which is faster; existing layers are ignored."""
        texts = ByteText.of([doc.text for doc in docs])
        spans: list[list[Span]] = [[] for _ in docs]
        for pattern, score, source in _eponyms(self.language):
            for number, (_, _, start, end) in matches(texts, pattern):
                spans[number].append(Span(start, end, "O", score, source))
        shifts = list(accumulate((len(doc.text) + len(_APART) for doc in docs), initial=0))
        for start, end, _ in _phrases(self.language).find(_APART.join(doc.text for doc in docs)):
            number = bisect_right(shifts, start) - 1
            spans[number].append(Span(start - shifts[number], end - shifts[number], "O", 1.0, "term"))
        words = [doc.words() for doc in docs]
        sources = {word: source for word in set().union(*words) if (source := self._harmless(word))}
        return [
            self._not_beside_people(doc.text, [*votes, *self._find_protected_words(doc, in_doc, sources)])
            for doc, votes, in_doc in zip(docs, spans, words, strict=True)
        ]

    def _rate(self, word: str, name: str) -> str:
        """Return the rate of a word in a list (first, last, city, state, hospital, job): "hi", "lo" or "" (absent)."""
        return self._pack.lexica[name].get(fold(word), "")

    def _is_common(self, word: str) -> bool:
        """Tell whether a word is in the list of common words, whatever its case."""
        return fold(word) in self._pack.common

    def _is_frequent(self, word: str) -> bool:
        """Tell whether a word is one of the most frequent common words, which hardly occur in place names."""
        return fold(word) in self._pack.frequent

    def _is_drug(self, word: str) -> bool:
        """Tell whether a word is a listed drug, or has 7 or more letters, a drug's ending and is no likely surname."""
        small = fold(word)
        if small in self._drugs:
            return True
        return len(small) >= _ENDING_LENGTH and small.endswith(self._drug_endings) and self.rate(word, "last") != "hi"

    def _is_term(self, word: str) -> bool:
        """Tell whether a word is a unit, a test, a drug or a word of section headers."""
        small = fold(word)
        return small in self._units or small in self._tests or self.is_section(word) or self.is_drug(word)

    def _is_name(self, word: str) -> bool:
        """Tell whether a capitalised word may be a name: no clinical term, and likely as a name or not common.

        >>> [word_lists().is_name(word) for word in ("Okonkwo", "Smith", "Patient", "Lipitor")]
        [True, True, False, False]
        """
        if self.is_term(word):
            return False
        return "hi" in (self.rate(word, "first"), self.rate(word, "last")) or not self.is_common(word)

    def _find_harmless(self, word: str) -> str:
        """Return the kind of a word that names nobody ("drug", "eponym", "credential", "time"); "" if it is none."""
        if word.isalpha() and self.is_drug(word):
            return "drug"
        if word in self._surnames:
            return "eponym"
        if len(word) > 2 and word in self._credentials:
            return "credential"
        return "time" if _TIME.fullmatch(word) else ""

    def _find_protected_words(self, doc: Document, words: Sequence[str], sources: Mapping[str, str]) -> Iterator[Span]:
        """Yield O spans of drugs, times, eponyms before a head noun, and credentials after a name.

        `words` are the document's tokens; `sources` are the kinds of those words that name nobody.
        """
        for token in [token for token, word in enumerate(words) if word in sources] if sources else ():
            source = sources[words[token]]
            if source == "eponym" and not self._begins_with_head(words[token + 1 : token + 3]):
                continue
            if source == "credential" and not _ends_in_name(words[max(0, token - 2) : token]):
                continue
            start, end = doc.tokens[token].tolist()
            yield Span(start, end, "O", 0.5 if source == "eponym" else 1.0, source)

    def _begins_with_head(self, after: Sequence[str]) -> bool:
        """Tell whether the first word after an eponym, links skipped, is a head noun such as "disease"."""
        return next((fold(word) for word in after if word not in _LINKS), "") in self._heads

    def _not_beside_people(self, text: str, spans: Iterable[Span]) -> list[Span]:
        """Return the spans that are not next to a title or name of a person; the longest of overlapping ones."""
        free = sorted((span for span in spans if not self._beside_person(text, span)), key=lambda span: -span.score)
        return list(resolve(free, "longest"))

    def _beside_person(self, text: str, span: Span) -> bool:
        """Tell whether a title, initial or likely first name is before a span, or a degree or initial after it."""
        before, after = text[max(0, span.start - 24) : span.start], text[span.end : span.end + 24]
        if before[-1:].isspace() and matcher_of(_TITLE_BEFORE)[0].search(before):
            return True
        if (after[:1] == "," or after[1:2] in _DEGREES_BEGIN) and matcher_of(_PERSON_AFTER)[0].match(after):
            return True
        last = before.split()[-1:] if before[-1:] == " " else []
        return bool(last) and last[0][:1].isupper() and self.rate(last[0], "first") == "hi"


def _ends_in_name(before: Sequence[str]) -> bool:
    """Tell whether the last word before a credential, signs skipped, is capitalised."""
    last = next((word for word in reversed(before) if word not in (",", "/", "-")), "")
    return last[:1].isupper()


@cache
def _phrases(language: str) -> Lexicon:
    """Return the lexicon of protected tests, drugs, titles and products of a language, cached."""
    names = ("tests", "drugs", "titles", "products")
    return Lexicon.make({name: languages.lines(language, f"protected/{name}") for name in names})


@cache
def _eponyms(language: str) -> tuple[tuple[str, float, str], ...]:
    """Return (pattern, score, source) for eponyms with a head noun (1.0) and alone (0.5); () if a list is empty."""
    words, nouns = (languages.lines(language, f"protected/{name}") for name in ("eponyms", "heads"))
    if not words or not nouns:
        return ()
    names, heads = either(word.replace(".", r"\.") for word in words), either(nouns)
    between = r"(?:['’]s|['’])?(?:-[A-Z]\p{L}+)?"
    certain = rf"\b({names}{between}[ -](?:(?i:body|cell|bone|nerve|node|type)[ -])?(?i:{heads}))\b"
    bare = rf"\b({names}{between})(?:$|[^\p{{L}}\p{{N}}])"
    return (certain, 1.0, "protected"), (bare, 0.5, "eponym")
