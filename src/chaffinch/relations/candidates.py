"""Candidates of a relation: all tuples of entities of the right types within one sentence."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import combinations, product
from math import prod
from typing import NamedTuple

from chaffinch.errors import DataError
from chaffinch.relations.schema import Schema
from chaffinch.text import Document, Span

# Candidates of one sentence; more raise DataError, since sentences were then most likely not split.
LIMIT = 20_000


class Mention(NamedTuple):
    """An entity and the tokens `first` to `end` of the document, half-open, that its span overlaps."""

    span: Span
    first: int
    end: int


class Candidate(NamedTuple):
    """A tuple of mentions in the order of the roles, with its sentence (number, tokens `first` to `end`).

    `stated` is whether the document states the relation.
    """

    sentence: int
    first: int
    end: int
    arguments: tuple[Mention, ...]
    stated: bool

    @property
    def spans(self) -> tuple[Span, ...]:
        """Return the mentions as spans, in the order of the roles."""
        return tuple(mention.span for mention in self.arguments)


class SentencePlace(NamedTuple):
    """A sentence of a document: its number from 1, and its offsets."""

    number: int
    start: int
    end: int


class Scene(NamedTuple):
    """A sentence with its mentions of any type, and its candidates."""

    sentence: int
    first: int
    end: int
    mentions: tuple[Mention, ...]
    candidates: tuple[Candidate, ...]


def scenes(doc: Document, schema: Schema, *, layer: str | None = None) -> list[Scene]:
    """Return the sentences that have a candidate, in order, with mentions and candidates; DataError above `LIMIT`.

    A mention belongs to the sentence in which it starts. Two arguments may overlap but not be the same mention.
    """
    stated = {schema.key(spans) for relation in doc.relations for spans in schema.tuples(relation)}
    mentions = locate(doc, doc.layer(layer))
    starts = [mention.first for mention in mentions]
    out: list[Scene] = []
    for number, (first, end) in enumerate(doc.sentence_tokens().tolist()):
        inside = mentions[bisect_left(starts, first) : bisect_left(starts, end)]
        cut = tuple(Mention(mention.span, mention.first, min(mention.end, end)) for mention in inside)
        found = tuple(
            Candidate(number, first, end, chosen, schema.key(tuple(mention.span for mention in chosen)) in stated)
            for chosen in _tuples(doc, cut, schema)
        )
        if found:
            out.append(Scene(number, first, end, cut, found))
    return out


def candidates(doc: Document, schema: Schema, *, layer: str | None = None) -> list[Candidate]:
    """Return tuples of mentions in one sentence that fit the roles, marked stated or not; DataError above `LIMIT`.

    >>> from chaffinch.text import Span
    >>> doc = Document.make("A sits in B.", layers={"gold": [Span(0, 1, "Protein"), Span(10, 11, "Location")]})
    >>> [candidate.spans[1].start for candidate in candidates(doc, Schema("localises", ("Protein", "Location")))]
    [10]
    """
    return [candidate for scene in scenes(doc, schema, layer=layer) for candidate in scene.candidates]


def sentence_of_both(doc: Document, spans: Iterable[Span]) -> SentencePlace | None:
    """Return the sentence in which all spans start; None if there is none, or a span covers no token.

    >>> doc = Document.make("It rains. A sits in B.")
    >>> sentence_of_both(doc, [Span(10, 11, "Protein"), Span(20, 21, "Location")])
    SentencePlace(number=2, start=10, end=22)
    """
    mentions = [locate(doc, [span]) for span in spans]
    starts = [found[0].first for found in mentions if found]
    if len(starts) < len(mentions):
        return None
    for number, (first, end) in enumerate(doc.sentence_tokens().tolist()):
        if all(first <= start < end for start in starts):
            return SentencePlace(number + 1, *map(int, doc.sentences[number]))
    return None


def locate(doc: Document, spans: Iterable[Span]) -> list[Mention]:
    """Return a mention, which has its tokens, for each distinct span that covers a token, sorted by token."""
    distinct = sorted(set(spans))
    ranges = zip(distinct, doc.token_ranges(distinct).tolist(), strict=True)
    out = [Mention(span, first, end) for span, (first, end) in ranges if first < end]
    return sorted(out, key=lambda mention: (mention.first, mention.end, mention.span))


def _tuples(doc: Document, mentions: Sequence[Mention], schema: Schema) -> list[tuple[Mention, ...]]:
    """Return all tuples of one mention per role, by type, at different places; DataError above `LIMIT`.

    Of a symmetric relation, each set of mentions is in it once.
    """
    fillers = [[mention for mention in mentions if mention.span.label == kind] for kind in schema.types]
    count = prod(len(group) for group in fillers)
    if count > LIMIT:
        raise DataError(
            f"{doc.id}: {count:,} candidates in one sentence, the limit is {LIMIT:,}; check how sentences are split"
        )
    every = combinations(fillers[0], len(fillers)) if schema.symmetric else product(*fillers)
    return [
        chosen for chosen in every if len({(mention.span.start, mention.span.end) for mention in chosen}) == len(chosen)
    ]
