"""Entities of the PPI and DDI files: character ranges inside a sentence, sometimes in several pieces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from chaffinch.errors import DataError
from chaffinch.text import Argument, Relation, Span
from chaffinch.text.formats._shared.xml import Element
from recipes.corpora._common import attribute

Piece = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Notation:
    """How a corpus writes the pieces of an entity."""

    separator: str
    inclusive: bool  # whether the last number is the last character, not the one after it

    def pieces(self, ranges: str) -> tuple[Piece, ...]:
        """Half-open ranges.

        >>> Notation(";", inclusive=True).pieces("10-14;20-24")
        ((10, 15), (20, 25))
        """
        try:
            bounds = [tuple(map(int, part.split("-"))) for part in ranges.split(self.separator)]
            return tuple((start, end + self.inclusive) for start, end in bounds)
        except ValueError:
            raise DataError("a charOffset is not a list of character ranges, as in 0-4") from None


@dataclass(frozen=True, slots=True)
class Mention:
    """One entity: the span that covers all its pieces, and the pieces, in characters of the document."""

    span: Span
    pieces: tuple[Piece, ...]


def mention(entity: Element, label: str, notation: Notation, *, sentence: str, begin: int) -> Mention:
    """The mention in the document's offsets; a mention in one piece must be the text the corpus states.

    Pieces are covered by one span from the first to the last character: "heart and liver globin" as a whole
    stands for "heart … globin".
    """
    found = notation.pieces(attribute(entity, "charOffset"))
    start, end = min(a for a, _ in found), max(b for _, b in found)
    fits = 0 <= start < end <= len(sentence)
    if not fits or (len(found) == 1 and attribute(entity, "text") != sentence[start:end]):
        raise DataError(f"the place [{start}, {end}) of entity {attribute(entity, 'id')} is not where its text is")
    return Mention(Span(begin + start, begin + end, label), tuple((begin + a, begin + b) for a, b in found))


def relation(node: Element, label: str, mentions: Mapping[str, Mention]) -> Relation:
    """The relation between the two mentions that the attributes e1 and e2 name."""
    ends = {role: attribute(node, role) for role in ("e1", "e2")}
    for name in ends.values():
        if name not in mentions:
            raise DataError(f"{attribute(node, 'id')} names {name}, which is not there")
    return Relation(label, tuple(Argument(role, (mentions[name].span,)) for role, name in ends.items()))


def fragments(mentions: Iterable[Mention]) -> list[list[list[int]]]:
    """For `meta`: the pieces of every mention that has more than one, as [[start, end], …]."""
    return [[list(piece) for piece in m.pieces] for m in mentions if len(m.pieces) > 1]
