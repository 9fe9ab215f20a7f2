"""Invented documents with a relation of three roles whose truth is known: a protein moves from one place to another.

Sentences of the first group state the relation, those of the second do not, though they name a protein and two places
as well; two proteins may move together, or one may stay. The grammar is the whole truth, so what an extractor misses
or adds is its fault.
"""

from __future__ import annotations

import random

from chaffinch import Document, Relation, Span
from chaffinch.relations import Schema

MOVES = Schema("moves", ("protein", "source", "target"), ("Protein", "Place", "Compartment"))
PLACES = ("the nucleus", "the cytosol", "the Golgi", "the endoplasmic reticulum", "the plasma membrane")
TARGETS = ("mitochondria", "vacuoles", "peroxisomes", "endosomes")
# The slots are protein, place, compartment, and a second protein; then the proteins that move.
STATED = (
    ("{0} moves from {1} to {2} after heat shock", (0,)),
    ("In starved cells {0} was transported from {1} into {2}", (0,)),
    ("From {1} , {0} is exported to {2}", (0,)),
    ("Both {0} and {3} relocate from {1} to the {2} of yeast", (0, 3)),
    ("While {3} stays , {0} moves from {1} to {2}", (0,)),
)
UNSTATED = (
    ("{0} was absent from {1} and from {2}", ()),
    ("In starved cells {0} was compared between {1} and {2}", ()),
    ("We show that {0} is not needed in {1} for the growth of {2}", ()),
    ("{0} never moves from {1} to {2} after heat shock", ()),
    ("Mutants of {0} and {3} lost contacts of {1} with {2}", ()),
)


def documents(count: int, *, seed: int = 0, sentences: int = 6) -> list[Document]:
    """So many documents of a few sentences, about half of which state the relation."""
    return [_document(number, seed, sentences) for number in range(count)]


def _document(number: int, seed: int, sentences: int) -> Document:
    rng = random.Random(f"{seed}-{number}")  # noqa: S311  (invented text, no secret)
    text = ""
    spans: list[Span] = []
    stated: list[Relation] = []
    for _ in range(sentences):
        sentence, moving = rng.choice(rng.choice((STATED, UNSTATED)))
        words = (_protein(rng), rng.choice(PLACES), rng.choice(TARGETS), _protein(rng))
        found: dict[int, Span] = {}
        for part in _parts(sentence):
            if isinstance(part, int):
                found[part] = Span(len(text), len(text) + len(words[part]), (*MOVES.types, "Protein")[part])
            text += words[part] if isinstance(part, int) else part
        text += " . "
        spans += found.values()
        stated += [MOVES.relation((found[protein], found[1], found[2])) for protein in moving]
    return Document.make(text.strip(), id=f"moves-{seed}-{number}", layers={"gold": spans}, relations=stated)


def _protein(rng: random.Random) -> str:
    return f"{rng.choice('ABCDM')}{rng.choice('dknpt')}{rng.randrange(1, 60)}p"


def _parts(sentence: str) -> list[str | int]:
    """The sentence cut at its slots.

    >>> _parts("{0} left {1}")
    [0, ' left ', 1]
    """
    out: list[str | int] = []
    for piece in sentence.split("{"):
        slot, mark, rest = piece.partition("}")
        out += [int(slot), rest] if mark else [piece]
    return [part for part in out if part != ""]
