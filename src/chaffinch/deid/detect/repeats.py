"""Repeats of names: a word that is surely part of a name in one place is a name wherever else it has a capital.

Words that are also common words, terms, drugs or headings are left to the models and to alignment.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence

from chaffinch.deid.detect.word_lists import WordLists
from chaffinch.deid.kinds import handling_of, kind_of
from chaffinch.text import Document, Span

SOURCE = "repeat"
SURE = 0.9  # the least score of a name that is looked for elsewhere, and the score of what is found there
LEAST = 3  # letters


def names_of(docs: Sequence[Document], layer: str, lists: WordLists) -> dict[str, str]:
    """By word, in small letters, the label that most names with it have, for words that are nothing but names."""
    labels: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for doc in docs:
        for span in doc.layers[layer]:
            if span.score >= SURE and handling_of(kind_of(span.label)).person:
                for word in _words(doc, span):
                    if _is_name(word, lists):
                        labels[word.casefold()][span.label] += 1
    return {word: min(own, key=lambda label: (-own[label], label)) for word, own in labels.items()}


def repeats(doc: Document, layer: str, names: Mapping[str, str]) -> list[Span]:
    """The words of a document that are such names and that no span touches, each a span of its own."""
    if not names:
        return []
    found: list[Span] = []
    spans, at = doc.layers[layer], 0
    for start, end in doc.tokens.tolist():
        word = doc.text[start:end]
        if not word[0].isupper() or word.casefold() not in names:
            continue
        while at < len(spans) and spans[at].end <= start:
            at += 1
        if at == len(spans) or spans[at].start >= end:
            found.append(Span(start, end, names[word.casefold()], SURE, SOURCE))
    return found


def _words(doc: Document, span: Span) -> Collection[str]:
    ((first, end),) = doc.token_ranges([span]).tolist()
    return [doc.text[a:b] for a, b in doc.tokens[first:end].tolist()]


def _is_name(word: str, lists: WordLists) -> bool:
    return (
        len(word) >= LEAST
        and word.isalpha()
        and word[0].isupper()
        and not lists.is_common(word)
        and not lists.is_term(word)
        and not lists.is_drug(word)
        and not lists.is_section(word)
    )
