"""Concepts of mentions, and the tuples of concepts between which a document states a relation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product

from chaffinch.relations.schema import Schema
from chaffinch.text import Document, Span

UNKNOWN = ("", "-1", "-")  # concepts that stand for none
SPLIT = re.compile(r"[|,;]")  # several concepts of one mention
Concepts = tuple[str, ...]


def concepts_of(span: Span) -> tuple[str, ...]:
    """The concepts of a mention; one that is composed has several.

    >>> concepts_of(Span(0, 1, "Disease", concept="D001|D002")), concepts_of(Span(0, 1, "Disease", concept="-1"))
    (('D001', 'D002'), ())
    """
    return _split(span.concept)


def stated_concepts(doc: Document, schema: Schema) -> set[Concepts]:
    """The tuples of concepts between which a document states the relation."""
    out: set[Concepts] = set()
    for relation in doc.relations:
        found = schema.arguments(relation)
        if found is not None:
            named = [_split(own.concept) if own.concept else _shared(own.spans) for own in found]
            out |= {concept_key(concepts, schema) for concepts in product(*named)}
    return out


def _split(concept: str) -> tuple[str, ...]:
    return tuple(own for own in SPLIT.split(concept) if own not in UNKNOWN)


def _shared(spans: Sequence[Span]) -> tuple[str, ...]:
    return tuple(sorted({concept for span in spans for concept in concepts_of(span)}))


def concept_key(concepts: Concepts, schema: Schema) -> Concepts:
    """What two equal tuples of concepts share."""
    return tuple(sorted(concepts)) if schema.symmetric else concepts
