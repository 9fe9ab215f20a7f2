"""Repeats of names: a word that is surely part of a person's name is a name wherever else it has a capital.

Words that are also common words, terms, drugs or headings are left to the models and to alignment.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TypeAlias

from chaffinch.deid.detect.word_lists import WordLists
from chaffinch.deid.kinds import handling_of, kind_of
from chaffinch.text import Document, Span

NameCounts: TypeAlias = dict[str, dict[str, int]]  # by case-folded word and label: how often it is a name

SOURCE = "repeat"
# The least score of a name whose words are searched for, and the score of the repeats. Lowered, more names repeat, and
# so do more mistakes.
SURE = 0.9
LEAST = 3  # letters of a word that is searched for; shorter words are more often initials or abbreviations than names


def count_names(doc: Document, layer: str, lists: WordLists, *, least: float = SURE) -> NameCounts:
    """Return {case-folded word: {label: times}} of the not ordinary words of person spans scored `least` or more."""
    counts: NameCounts = {}
    for span in doc.layers[layer]:
        if span.score >= least and handling_of(kind_of(span.label)).person:
            for word in _words(doc, span):
                if _is_name(word, lists):
                    add_counts(counts, {word.casefold(): {span.label: 1}})
    return counts


def add_counts(total: NameCounts, more: NameCounts) -> None:
    """Add counts of names to a total, which is changed."""
    for word, times in more.items():
        by_label = total.setdefault(word, {})
        for label, number in times.items():
            by_label[label] = by_label.get(label, 0) + number


def choose_labels(notes: Iterable[NameCounts]) -> dict[str, str]:
    """Return {case-folded word: most frequent label} over the counts of several notes; of equals the first by name."""
    total: NameCounts = {}
    for counts in notes:
        add_counts(total, counts)
    return {word: min(times, key=lambda label: (-times[label], label)) for word, times in total.items()}


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
