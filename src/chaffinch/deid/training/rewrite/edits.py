"""Replace pieces of an annotated text; its spans move along."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from chaffinch.text import Document, Span


class Edit(NamedTuple):
    """Characters start to end become `text`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True, repr=False)
class Marked:
    """A text with its identifiers."""

    text: str
    spans: tuple[Span, ...]

    @classmethod
    def of(cls, doc: Document, layer: str = "gold") -> Marked:
        """Return the text of a document with the spans of a layer."""
        return cls(doc.text, tuple(doc.layer(layer)))

    def document(self, name: str, layer: str = "gold") -> Document:
        """Return a document with the spans as its layer."""
        return Document.make(self.text, id=name, layers={layer: list(self.spans)})

    def inside(self, place: int) -> bool:
        """Tell whether the character at an offset belongs to a span."""
        at = bisect_right(self.spans, place, key=lambda span: span.start) - 1
        return at >= 0 and place < self.spans[at].end

    def apply_edits(self, edits: Iterable[Edit]) -> Marked:
        """Return text and spans after edits, which are sorted and each inside or outside of a span; lost spans drop.

        Spans lose blanks at their edges; those of which nothing is left go.

        >>> note = Marked("seen by Dr Penn", (Span(11, 15, "DOCTOR"),))
        >>> note.apply_edits([Edit(5, 7, "with"), Edit(11, 15, "Van Dyck")])
        Marked(21 characters, 1 spans)
        """
        made = list(edits)
        parts, last = [], 0
        for edit in made:
            parts += [self.text[last : edit.start], edit.text]
            last = edit.end
        text = "".join([*parts, self.text[last:]])
        moves = _Moves.of(made)
        return Marked(text, tuple(filter(None, (_tight(text, moves.move(span)) for span in self.spans))))

    def __repr__(self) -> str:
        """Return the numbers of characters and spans, never text."""
        return f"Marked({len(self.text)} characters, {len(self.spans)} spans)"


@dataclass(frozen=True, slots=True)
class _Moves:
    """By how much the places of a text move."""

    starts: Sequence[int]
    ends: Sequence[int]
    sums: Sequence[int]  # by how much the text has grown before each edit, and in all

    @classmethod
    def of(cls, edits: Sequence[Edit]) -> _Moves:
        """Return the offsets at which sorted edits lengthen or shorten a text, and by how much in total."""
        grown = accumulate((len(edit.text) - (edit.end - edit.start) for edit in edits), initial=0)
        return cls([edit.start for edit in edits], [edit.end for edit in edits], list(grown))

    def move(self, span: Span) -> Span:
        """Return the span with its offsets moved to the edited text."""
        start = span.start + self.sums[bisect_left(self.starts, span.start)]
        return Span(start, span.end + self.sums[bisect_right(self.ends, span.end)], span.label)


def _tight(text: str, span: Span) -> Span | None:
    """Return the span without blanks at its edges; None if nothing is left."""
    inside = text[span.start : span.end]
    start = span.end - len(inside.lstrip())
    end = span.start + len(inside.rstrip())
    return Span(start, end, span.label) if start < end else None
