"""What the formats with offsets share: whole numbers, places in a text, and text that is quoted beside them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import astuple

from chaffinch.errors import DataError
from chaffinch.text.document import Document
from chaffinch.text.formats.base import Writing
from chaffinch.text.span import Relation, Span

_WHOLE = re.compile(r"[0-9]{1,12}", re.ASCII)


def whole(value: object, what: str) -> int:
    """A whole number, from digits or an integer."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        return int(value)
    raise DataError(f"{what} is not a whole number; offsets count characters from 0")


def check_place(start: int, end: int, text: str) -> None:
    """Refuses a place that is empty or not inside the text."""
    if not 0 <= start < end <= len(text):
        raise DataError(
            f"the place [{start}, {end}) does not fit a text of {len(text)} characters; offsets count "
            "code points from 0, the end is exclusive"
        )


def check_quote(quote: str, pieces: Sequence[str], start: int, end: int) -> None:
    """Refuses a quoted text that is not what stands at the place.

    Runs of blanks and line ends count as one blank, and a blank may stand for punctuation, as it does in corpora
    whose tools wrote it for quotation marks.
    """
    text = " ".join(pieces)
    blanked = len(quote) == len(text) and all(
        a == b or (a == " " and not b.isalnum()) for a, b in zip(quote, text, strict=True)
    )
    if not blanked and quote.split() != text.split():
        raise DataError(
            f"the text quoted for [{start}, {end}) is not the one at that place; the offsets may count bytes, "
            "UTF-16 units or CR LF as one, or belong to another version of the text"
        )


def by_concept(spans: Iterable[Span]) -> dict[str, tuple[Span, ...]]:
    """The mentions of every concept; a span of several ("D006470|D003556") is a mention of each."""
    found: dict[str, list[Span]] = {}
    for span in spans:
        for concept in dict.fromkeys((span.concept, *re.split(r"[|;,]", span.concept))):
            if concept:
                found.setdefault(concept, []).append(span)
    return {concept: tuple(mentions) for concept, mentions in found.items()}


def note_no_layer(doc: Document, how: Writing) -> None:
    """Notes that a document without any layer will be read with an empty one."""
    how.losses.add("the lack of a layer (read as an empty one)", not doc.layers)


def note_relation(relation: Relation, as_read: Relation, how: Writing) -> None:
    """Notes a relation that will be read with other scores, sources, roles or mentions than it has."""
    how.losses.add("details of relations", astuple(relation) != astuple(as_read))
