"""Tuples of entities that may stand in a relation: all those of the right types in one sentence."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import combinations, product
from math import prod
from typing import NamedTuple

from chaffinch.errors import DataError
from chaffinch.relations.schema import Schema
from chaffinch.text import Document, Span

LIMIT = 20_000  # candidates of one sentence


class Mention(NamedTuple):
    """An entity and its tokens `first` to `end`, half-open, of the document; a token belongs to it if they overlap."""

    span: Span
    first: int
    end: int


class Candidate(NamedTuple):
    """A tuple of mentions in the order of the roles, its sentence (number, and tokens `first` to `end`), and whether
    the document states the relation."""

    sentence: int
    first: int
    end: int
    arguments: tuple[Mention, ...]
    stated: bool

    @property
    def spans(self) -> tuple[Span, ...]:
        """The mentions as spans, in the order of the roles."""
        return tuple(mention.span for mention in self.arguments)


class Scene(NamedTuple):
    """A sentence with its mentions, of whatever type, and its candidates."""

    sentence: int
    first: int
    end: int
    mentions: tuple[Mention, ...]
    candidates: tuple[Candidate, ...]


def scenes(doc: Document, schema: Schema, *, layer: str | None = None) -> list[Scene]:
    """The sentences of a document that have a candidate.

    A mention belongs to the sentence in which it starts. Two arguments may overlap but not be the same mention.
    """
    stated = {schema.key(spans) for relation in doc.relations for spans in schema.tuples(relation)}
    mentions = located(doc, doc.layer(layer))
    starts = [mention.first for mention in mentions]
    out: list[Scene] = []
    for number, (first, end) in enumerate(doc.sentence_tokens().tolist()):
        own = mentions[bisect_left(starts, first) : bisect_left(starts, end)]
        cut = tuple(Mention(one.span, one.first, min(one.end, end)) for one in own)
        found = tuple(
            Candidate(number, first, end, chosen, schema.key(tuple(one.span for one in chosen)) in stated)
            for chosen in _tuples(doc, cut, schema)
        )
        if found:
            out.append(Scene(number, first, end, cut, found))
    return out


def candidates(doc: Document, schema: Schema, *, layer: str | None = None) -> list[Candidate]:
    """All candidates of a document, sentence by sentence.

    >>> from chaffinch.text import Span
    >>> doc = Document.make("A sits in B.", layers={"gold": [Span(0, 1, "Protein"), Span(10, 11, "Location")]})
    >>> [one.spans[1].start for one in candidates(doc, Schema("localises", ("Protein", "Location")))]
    [10]
    """
    return [one for scene in scenes(doc, schema, layer=layer) for one in scene.candidates]


def located(doc: Document, spans: Iterable[Span]) -> list[Mention]:
    """The spans with their tokens, sorted, each once; a span that covers no token is left out."""
    distinct = sorted(set(spans))
    ranges = zip(distinct, doc.token_ranges(distinct).tolist(), strict=True)
    out = [Mention(span, first, end) for span, (first, end) in ranges if first < end]
    return sorted(out, key=lambda one: (one.first, one.end, one.span))


def _tuples(doc: Document, mentions: Sequence[Mention], schema: Schema) -> list[tuple[Mention, ...]]:
    fillers = [[one for one in mentions if one.span.label == kind] for kind in schema.types]
    count = prod(len(own) for own in fillers)
    if count > LIMIT:
        raise DataError(
            f"{doc.id}: {count:,} candidates in one sentence, the limit is {LIMIT:,}; check how sentences are cut"
        )
    every = combinations(fillers[0], len(fillers)) if schema.symmetric else product(*fillers)
    return [chosen for chosen in every if len({(one.span.start, one.span.end) for one in chosen}) == len(chosen)]
