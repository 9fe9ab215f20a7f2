"""Concepts of mentions, and the tuples of concepts that a document relates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product

from chaffinch.relations.schema import Schema
from chaffinch.text import Document, Span

UNKNOWN = ("", "-1", "-")  # how corpora write "no concept"
SPLIT = re.compile(r"[|,;]")  # several concepts of one mention
Concepts = tuple[str, ...]


def concepts_of(span: Span) -> tuple[str, ...]:
    """Return the concepts of a mention: several of a composite one, none of an unknown one.

    >>> concepts_of(Span(0, 1, "Disease", concept="D001|D002")), concepts_of(Span(0, 1, "Disease", concept="-1"))
    (('D001', 'D002'), ())
    """
    return _split(span.concept)


def relation_concepts(doc: Document, schema: Schema) -> set[Concepts]:
    """Return the tuples of concepts that a document's relations of the schema state, sorted if it is symmetric."""
    out: set[Concepts] = set()
    for relation in doc.relations:
        arguments = schema.arguments(relation)
        if arguments is not None:
            named = [
                _split(argument.concept) if argument.concept else _concepts_of_spans(argument.spans)
                for argument in arguments
            ]
            out |= {concept_key(concepts, schema) for concepts in product(*named)}
    return out


def _split(concept: str) -> tuple[str, ...]:
    """Return the concepts in a concept field, without placeholders for "unknown"."""
    return tuple(part for part in SPLIT.split(concept) if part not in UNKNOWN)


def _concepts_of_spans(spans: Sequence[Span]) -> tuple[str, ...]:
    """Return the distinct concepts of the spans, sorted, without "unknown"."""
    return tuple(sorted({concept for span in spans for concept in concepts_of(span)}))


def concept_key(concepts: Concepts, schema: Schema) -> Concepts:
    """Return a tuple of concepts as a key: sorted if the relation is symmetric, else as it is."""
    return tuple(sorted(concepts)) if schema.symmetric else concepts
