"""Standoff annotation, shared by several formats: whole numbers, offsets into a text, and text quoted for them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import astuple

from chaffinch.errors import DataError
from chaffinch.text.document import Document
from chaffinch.text.formats.base import WriteOptions
from chaffinch.text.span import Relation, Span

_WHOLE = re.compile(r"[0-9]{1,12}", re.ASCII)


def whole_number(value: object, what: str) -> int:
    """Return an integer, or one in digits, from 0 on; DataError, which names `what`, for anything else."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        return int(value)
    raise DataError(f"{what} is not a whole number; offsets count characters from 0")


def check_offsets(start: int, end: int, text: str) -> None:
    """Raise DataError if a range is empty or not inside the text."""
    if not 0 <= start < end <= len(text):
        raise DataError(
            f"the range [{start}, {end}) does not fit a text of {len(text)} characters; offsets count "
            "code points from 0, the end is exclusive"
        )


def check_quote(quote: str, pieces: Sequence[str], start: int, end: int) -> None:
    """Raise DataError if a quoted text differs from the text at its offsets (`pieces`, one per fragment).

    Runs of blanks and line ends count as one blank, and a blank matches any punctuation, since the tools of some
    corpora wrote it for quotation marks.
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


def mentions_by_concept(spans: Iterable[Span]) -> dict[str, tuple[Span, ...]]:
    """Return {concept: its spans, in order}; a span of several ("D006470|D003556") counts for each and for all."""
    found: dict[str, list[Span]] = {}
    for span in spans:
        for concept in dict.fromkeys((span.concept, *re.split(r"[|;,]", span.concept))):
            if concept:
                found.setdefault(concept, []).append(span)
    return {concept: tuple(mentions) for concept, mentions in found.items()}


def note_no_layer(doc: Document, options: WriteOptions) -> None:
    """Count as a loss that a document without any layer will be read with an empty one."""
    options.losses.add("the lack of a layer (read as an empty one)", not doc.layers)


def note_relation(relation: Relation, as_read: Relation, options: WriteOptions) -> None:
    """Count as a loss that a relation will be read with another score, source, role or mention than it has."""
    options.losses.add("details of relations", astuple(relation) != astuple(as_read))
