"""Small documents with relations whose truth is known: a protein is in a place iff "localises to" is between."""

from __future__ import annotations

import random
from dataclasses import replace

from chaffinch import Document, Span
from chaffinch.relations import Schema

SCHEMA = Schema("localises", ("Protein", "Location"))


def document(number: int, *, sentences: int = 4, seed: int = 0) -> Document:
    """A document of a few sentences, half of which state the relation."""
    rng = random.Random(f"{seed}-{number}")
    text, spans, pairs = "", [], []
    for _ in range(sentences):
        protein, place = f"Abc{rng.randrange(50)}p", rng.choice(["nucleus", "membrane", "cytosol"])
        verb = rng.choice([" localises to the ", " is unrelated to the "])
        first = Span(len(text) + 4, len(text) + 4 + len(protein), "Protein")
        text += f"The {protein}{verb}"
        second = Span(len(text), len(text) + len(place), "Location")
        text += f"{place} in {rng.choice(['yeast', 'mice', 'cells'])}. "
        spans += [first, second]
        if "localises" in verb:
            pairs.append((first, second))
    relations = [SCHEMA.relation(pair) for pair in pairs]
    return Document.make(text, id=f"d{number}", layers={"gold": spans}, relations=relations)


def documents(count: int) -> list[Document]:
    """So many documents, all different."""
    return [document(number) for number in range(count)]


def with_concepts(doc: Document) -> Document:
    """The document with each mention's words as its concept."""
    spans = tuple(replace(s, concept=doc.text[s.start : s.end]) for s in doc.layers["gold"])
    places = {(s.start, s.end): s for s in spans}
    relations = tuple(
        SCHEMA.relation(tuple(places[a.spans[0].start, a.spans[0].end] for a in own.arguments)) for own in doc.relations
    )
    return replace(doc, layers={"gold": spans}, relations=relations)
