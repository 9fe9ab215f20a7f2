"""Identifiers found by rules: every pattern is a source that votes one sub-type; this module reads and settles them.

The patterns themselves stand by idea in the modules beside this one, each with a function `patterns`. Their time is
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

LAYER = "patterns"
PIECE = "piece"  # the source of what sticks out of a longer span: no pattern knows it in this form
UNSURE = 0.8  # votes for names and places below this give way to protected terms


@lru_cache(maxsize=4)
def patterns(lists: WordLists | None = None) -> tuple[Pattern, ...]:
    """Return all patterns, each a source with a name; those of one idea side by side. The lists serve their checks."""
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
    """Return the names of the patterns that leave no doubt about the label; see `Pattern`."""
    return frozenset(pattern.name for pattern in patterns() if pattern.exact)


def find(doc: Document, sources: Iterable[Pattern] | None = None, lists: WordLists | None = None) -> list[Span]:
    """Return the identifiers that patterns find, sorted, never overlapping; `source` names the pattern, or is "piece".

    >>> note = Document.make("Seen 3/4/1998, BP 120/80, call 555-123-4567.")
    >>> [(span.label, note.text[span.start : span.end]) for span in find(note)]
    [('DATE', '3/4/1998'), ('PHONE', '555-123-4567')]
    """
    return find_in([doc], sources, lists)[0]


def find_in(
    docs: Sequence[Document], sources: Iterable[Pattern] | None = None, lists: WordLists | None = None
) -> list[list[Span]]:
    """Return the same for many documents at once, which is quicker."""
    known = lists or word_lists()
    page = ByteText.of([doc.text for doc in docs])
    votes: list[list[Span]] = [[] for _ in docs]
    for pattern in patterns(known) if sources is None else sources:
        for number, span in pattern.on(page):
            votes[number].append(span)
    return [list(resolve_votes(_without_protected(doc, spans, known))) for doc, spans in zip(docs, votes, strict=True)]


def _without_protected(doc: Document, votes: list[Span], lists: WordLists) -> list[Span]:
    """Return the votes but for unsure ones over terms that identify nobody ("for Wilson disease")."""
    unsure = [span for span in votes if span.score < UNSURE and kind_of(span.label).is_proper_name]
    if not unsure:
        return votes
    terms = [span for span in lists.protected(doc) if span.score == 1.0]
    starts = [term.start for term in terms]

    def is_protected(span: Span) -> bool:
        near = terms[max(0, bisect_left(starts, span.start) - 2) : bisect_left(starts, span.end)]
        return any(span.overlaps(term) for term in near)

    gone = {id(span) for span in unsure if is_protected(span)}
    return [span for span in votes if id(span) not in gone]


def resolve_votes(votes: Iterable[Span]) -> tuple[Span, ...]:
    """The spans that are left: of those over one place the surest, then of those that overlap the longest."""
    best: dict[tuple[int, int], Span] = {}
    for span in votes:
        held = best.get((span.start, span.end))
        if held is None or span.score > held.score:
            best[span.start, span.end] = span
    longest = resolve(best.values(), "longest")
    return tuple(_in_two(best.values(), longest))


def _in_two(votes: Iterable[Span], kept: tuple[Span, ...]) -> list[Span]:
    """The kept spans, and the ends of others that stick out of them: what a pattern found stays found."""
    rest = [replace(piece, score=piece.score * 0.9, source=PIECE) for piece in subtract_spans(votes, kept)]
    return sorted([*kept, *resolve(rest, "longest")])
