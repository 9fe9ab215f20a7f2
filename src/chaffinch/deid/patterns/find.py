"""Search by rules: every pattern is a source that votes for one sub-type; this module resolves the votes.

The patterns are grouped by topic in the other modules of this package, each with a function `patterns`. Their time is
linear in the text.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache, lru_cache

from chaffinch.deid.detect.merge import subtract_spans
from chaffinch.deid.detect.word_lists import WordLists, word_lists
from chaffinch.deid.kinds import kind_of
from chaffinch.deid.patterns import (
    ages,
    contacts,
    dates,
    ids,
    institutions,
    names_by_title,
    names_in_prose,
    places,
    professions,
)
from chaffinch.deid.patterns.pattern import ByteText, Pattern
from chaffinch.text import Document, Span, resolve
from chaffinch.text.view import narrow_view

LAYER = "patterns"
PIECE = "piece"  # the source of a piece that sticks out of a longer span; no pattern matches it in this form
# Votes for names and places with a lower score give way to protected terms. Raised, more eponyms and drugs are spared,
# and more names that equal one are missed.
UNSURE = 0.8


@lru_cache(maxsize=4)
def patterns(lists: WordLists | None = None) -> tuple[Pattern, ...]:
    """Return all patterns, each a named source, grouped by topic; `lists` are the word lists of their checks."""
    known = lists or word_lists()
    return (
        *dates.patterns(),
        *ages.patterns(),
        *contacts.patterns(),
        *ids.patterns(),
        *places.patterns(known),
        *institutions.patterns(known),
        *names_by_title.patterns(known),
        *names_in_prose.patterns(known),
        *professions.patterns(known),
    )


@cache
def exact() -> frozenset[str]:
    """Return the names of the patterns that leave no doubt about the label, cached."""
    return frozenset(pattern.name for pattern in patterns() if pattern.exact)


def find(doc: Document, sources: Iterable[Pattern] | None = None, lists: WordLists | None = None) -> list[Span]:
    """Return the identifiers that patterns find in a document, sorted, never overlapping; `source` is the pattern.

    >>> note = Document.make("Seen 3/4/1998, BP 120/80, call 555-123-4567.")
    >>> [(span.label, note.text[span.start : span.end]) for span in find(note)]
    [('DATE', '3/4/1998'), ('PHONE', '555-123-4567')]
    """
    return find_in([doc], sources, lists)[0]


def find_in(
    docs: Sequence[Document], sources: Iterable[Pattern] | None = None, lists: WordLists | None = None
) -> list[list[Span]]:
    """Return the identifiers of `find` for many documents at once, which is faster."""
    return [list(resolve_votes(votes)) for votes in votes_in(docs, sources, lists)]


def votes_in(
    docs: Sequence[Document], sources: Iterable[Pattern] | None = None, lists: WordLists | None = None
) -> list[list[Span]]:
    """Return by document the votes of `sources` (by default all), without unsure names in protected terms."""
    known = lists or word_lists()
    views = [(number, view) for number, doc in enumerate(docs) if (view := narrow_view(doc.text))]
    texts = ByteText.of([*(doc.text for doc in docs), *(view.text for _, view in views)])
    votes: list[list[Span]] = [[] for _ in texts.texts]
    for pattern in patterns(known) if sources is None else sources:
        for number, span in pattern.find_in(texts):
            votes[number].append(span)
    for (number, view), narrow in zip(views, votes[len(docs) :], strict=True):
        votes[number] += _more_votes(votes[number], view.spans_back(resolve_votes(narrow)))
    return [_without_protected(doc, spans, known) for doc, spans in zip(docs, votes, strict=False)]


def _more_votes(votes: Sequence[Span], narrow: Iterable[Span]) -> list[Span]:
    """Return the spans of `narrow`: whole if all votes they overlap are inside and of their label, else the rest."""
    more: list[Span] = []
    ordered = sorted(votes)
    starts, longest = [vote.start for vote in ordered], max(map(len, votes), default=0)
    for span in narrow:
        near = ordered[bisect_left(starts, span.start - longest) : bisect_left(starts, span.end)]
        met = [vote for vote in near if vote.overlaps(span)]
        if all(span.start <= vote.start and vote.end <= span.end and vote.label == span.label for vote in met):
            more.append(span)
        else:
            more += subtract_spans([span], resolve(met, "longest"))
    return more


def _without_protected(doc: Document, votes: list[Span], lists: WordLists) -> list[Span]:
    """Return the votes without unsure proper names that overlap sure protected terms ("Wilson disease")."""
    unsure = [span for span in votes if span.score < UNSURE and kind_of(span.label).is_proper_name]
    if not unsure:
        return votes
    terms = [span for span in lists.find_protected(doc) if span.score == 1.0]
    starts = [term.start for term in terms]

    def is_protected(span: Span) -> bool:
        """Tell whether a span overlaps a protected term."""
        near = terms[max(0, bisect_left(starts, span.start) - 2) : bisect_left(starts, span.end)]
        return any(span.overlaps(term) for term in near)

    dropped = {id(span) for span in unsure if is_protected(span)}
    return [span for span in votes if id(span) not in dropped]


def resolve_votes(votes: Iterable[Span]) -> tuple[Span, ...]:
    """Resolve overlaps: keep the surest of equal spans, then the longest of overlapping ones, and cut-off pieces."""
    best: dict[tuple[int, int], Span] = {}
    for span in votes:
        other = best.get((span.start, span.end))
        if other is None or span.score > other.score:
            best[span.start, span.end] = span
    longest = resolve(best.values(), "longest")
    return tuple(_with_pieces(best.values(), longest))


def _with_pieces(votes: Iterable[Span], kept: tuple[Span, ...]) -> list[Span]:
    """Return the kept spans and the pieces of others that stick out of them, so that all matches stay covered."""
    rest = [replace(piece, score=piece.score * 0.9, source=PIECE) for piece in subtract_spans(votes, kept)]
    return sorted([*kept, *resolve(rest, "longest")])
