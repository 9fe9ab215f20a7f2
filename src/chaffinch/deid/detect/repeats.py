"""Repeats of names: a word that is surely part of a person's name is a name wherever else it has a capital.

Words that are also common words, terms, drugs or headings are left to the models and to alignment.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence

from chaffinch.deid.detect.word_lists import WordLists
from chaffinch.deid.kinds import handling_of, kind_of
from chaffinch.text import Document, Span

SOURCE = "repeat"
# The least score of a name whose words are searched for, and the score of the repeats. Lowered, more names repeat, and
# so do more mistakes.
SURE = 0.9
LEAST = 3  # letters of a word that is searched for; shorter words are more often initials or abbreviations than names


def names_of(docs: Sequence[Document], layer: str, lists: WordLists) -> dict[str, str]:
    """Return {case-folded word: most frequent label} for words of sure person spans that are no ordinary words."""
    labels: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for doc in docs:
        for span in doc.layers[layer]:
            if span.score >= SURE and handling_of(kind_of(span.label)).person:
                for word in _words(doc, span):
                    if _is_name(word, lists):
                        labels[word.casefold()][span.label] += 1
    return {word: min(counts, key=lambda label: (-counts[label], label)) for word, counts in labels.items()}


def find_repeats(doc: Document, layer: str, names: Mapping[str, str]) -> list[Span]:
    """Return a span for each capitalised token that is one of `names` and that no span of the layer touches."""
    if not names:
        return []
    found: list[Span] = []
    spans, number = doc.layers[layer], 0
    for start, end in doc.tokens.tolist():
        word = doc.text[start:end]
        if not word[0].isupper() or word.casefold() not in names:
            continue
        while number < len(spans) and spans[number].end <= start:
            number += 1
        if number == len(spans) or spans[number].start >= end:
            found.append(Span(start, end, names[word.casefold()], SURE, SOURCE))
    return found


def _words(doc: Document, span: Span) -> Collection[str]:
    """Return the tokens of a document that a span touches, as strings."""
    ((first, end),) = doc.token_ranges([span]).tolist()
    return [doc.text[a:b] for a, b in doc.tokens[first:end].tolist()]


def _is_name(word: str, lists: WordLists) -> bool:
    """Tell whether a word is capitalised, of 3 or more letters, and neither a common word nor a clinical term."""
    return (
        len(word) >= LEAST
        and word.isalpha()
        and word[0].isupper()
        and not lists.is_common(word)
        and not lists.is_term(word)
        and not lists.is_drug(word)
        and not lists.is_section(word)
    )
