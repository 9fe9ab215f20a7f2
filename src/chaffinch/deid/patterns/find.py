"""Identifiers found by rules: every pattern is a source that votes one sub-type; this module reads and settles them.

The patterns themselves stand by idea in `patterns_dates`, `patterns_ages`, `patterns_contacts`, `patterns_ids`,
`patterns_places`, `patterns_houses`, `patterns_names`, `patterns_prose` and `patterns_jobs`. Their time is linear.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache

from chaffinch.deid.detect import word_lists as lexicons
from chaffinch.deid.kinds import kind_of
from chaffinch.deid.patterns import ages as patterns_ages
from chaffinch.deid.patterns import contacts as patterns_contacts
from chaffinch.deid.patterns import dates as patterns_dates
from chaffinch.deid.patterns import ids as patterns_ids
from chaffinch.deid.patterns import institutions as patterns_houses
from chaffinch.deid.patterns import names_by_title as patterns_names
from chaffinch.deid.patterns import names_in_prose as patterns_prose
from chaffinch.deid.patterns import places as patterns_places
from chaffinch.deid.patterns import professions as patterns_jobs
from chaffinch.deid.patterns.pattern import ByteText, Pattern
from chaffinch.text import Document, Span, resolve

LAYER = "patterns"
PIECE = "piece"  # the source of what sticks out of a longer span: no pattern knows it in this form
UNSURE = 0.8  # votes for names and places below this give way to protected terms


@cache
def patterns() -> tuple[Pattern, ...]:
    """All patterns, each a source with a name; those of one idea side by side."""
    ideas = (
        patterns_dates.patterns(),
        patterns_ages.patterns(),
        patterns_contacts.patterns(),
        patterns_ids.patterns(),
        patterns_places.patterns(),
        patterns_houses.patterns(),
        patterns_names.patterns(),
        patterns_prose.patterns(),
        patterns_jobs.patterns(),
    )
    return tuple(pattern for idea in ideas for pattern in idea)


@cache
def exact() -> frozenset[str]:
    """Return the names of the patterns that leave no doubt about the label; see `Pattern`."""
    return frozenset(pattern.name for pattern in patterns() if pattern.exact)


def found(doc: Document, sources: Iterable[Pattern] | None = None) -> list[Span]:
    """The identifiers that patterns find, sorted, never overlapping; `source` is the name of the pattern, or "piece".

    >>> note = Document.make("Seen 3/4/1998, BP 120/80, call 555-123-4567.")
    >>> [(span.label, note.text[span.start : span.end]) for span in found(note)]
    [('DATE', '3/4/1998'), ('PHONE', '555-123-4567')]
    """
    return found_in([doc], sources)[0]


def found_in(docs: Sequence[Document], sources: Iterable[Pattern] | None = None) -> list[list[Span]]:
    """The same for many documents at once, which is quicker."""
    page = ByteText.of([doc.text for doc in docs])
    votes: list[list[Span]] = [[] for _ in docs]
    for own in patterns() if sources is None else sources:
        for number, span in own.on(page):
            votes[number].append(span)
    return [list(settle(_without_protected(doc, own))) for doc, own in zip(docs, votes, strict=True)]


def _without_protected(doc: Document, votes: list[Span]) -> list[Span]:
    """The votes but for unsure ones over terms that identify nobody ("for Wilson disease")."""
    unsure = [span for span in votes if span.score < UNSURE and kind_of(span.label).is_proper_name]
    if not unsure:
        return votes
    shields = [span for span in lexicons.protected(doc) if span.score == 1.0]
    starts = [shield.start for shield in shields]

    def shielded(span: Span) -> bool:
        near = shields[max(0, bisect_left(starts, span.start) - 2) : bisect_left(starts, span.end)]
        return any(span.overlaps(shield) for shield in near)

    gone = {id(span) for span in unsure if shielded(span)}
    return [span for span in votes if id(span) not in gone]


def settle(votes: Iterable[Span]) -> tuple[Span, ...]:
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
    from chaffinch.deid.detect.merge import uncovered

    rest = [replace(piece, score=piece.score * 0.9, source=PIECE) for piece in uncovered(votes, kept)]
    return sorted([*kept, *resolve(rest, "longest")])
