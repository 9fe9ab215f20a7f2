"""Generated documents: any text that is legal, layers that overlap, relations, soft labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from chaffinch.text import Argument, Document, Relation, Soft, Span

# Everything that once broke somebody's offsets: CR LF, BOM, NUL, astral and combining characters, odd blanks.
ODD = [
    "\r\n",
    "\n",
    "\ufeff",
    "\x00",
    "😀",
    "👩\u200d⚕️",
    "é",
    "\u2028",
    "\x85",
    "\xa0",
    "]]>",
    "&amp;",
    "<b>",
    "東京",
    "\t",
    '"',
    ",",
    "Dr. Penn",
    "IL-2",
    " ",
    "12/03/1998",
    ".",
]
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
TEXTS = st.lists(st.one_of(st.sampled_from(ODD), ANY_TEXT), max_size=12).map("".join)
PLAIN_WORDS = st.sampled_from(["Anna", "Smith", "IL-2", "é", "saw", "12/03", "😀", "."])
PLAIN_TEXTS = st.lists(PLAIN_WORDS, min_size=1, max_size=10).map(" ".join)
LABELS = st.sampled_from(["NAME", "DATE", "cell_type", "LOCATION-OTHER"])


@st.composite
def spans(draw: st.DrawFn, length: int, *, plain: bool = False) -> Span:
    """A span inside a text of that length, with score, source and concept unless `plain`."""
    start = draw(st.integers(0, length - 1))
    end = draw(st.integers(start + 1, length))
    if plain:
        return Span(start, end, draw(LABELS))
    score = draw(st.sampled_from([1.0, 0.25]))
    source, concept = draw(st.sampled_from([("", ""), ("rules", ""), ("", "D009270")]))
    return Span(start, end, draw(LABELS), score, source, concept)


def unique(found: list[Span]) -> list[Span]:
    """The spans without repeats: a layer is a set of places and labels."""
    return list(dict.fromkeys(found))


@st.composite
def documents(draw: st.DrawFn, texts: st.SearchStrategy[str] = TEXTS, *, number: int = 0) -> Document:
    """Any document at all: whatever a format cannot keep, it must report."""
    text = draw(texts)
    layers: dict[str, Any] = {}
    if text:
        for name in draw(st.sampled_from([("gold",), ("gold",), ("gold", "rules"), ("rules",), ()])):
            layers[name] = unique(draw(st.lists(spans(len(text)), max_size=4)))
    doc = Document.make(
        text,
        id=f"doc-{number}",
        group=draw(st.sampled_from([None, None, "patient-1"])),
        meta=draw(st.sampled_from([{}, {}, {"ward": "7B"}])),
        layers=layers,
    )
    gold = [span for found in doc.layers.values() for span in found]
    wanted: bool = draw(st.booleans())
    if gold and wanted:
        chosen = draw(st.lists(st.sampled_from(gold), min_size=2, max_size=2))
        arguments = tuple(Argument(role, (span,)) for role, span in zip(("Arg1", "Arg2"), chosen, strict=True))
        doc = replace(doc, relations=(Relation("treats", arguments),))
    if len(doc.tokens) and draw(st.integers(0, 5)) == 0:
        doc = doc.with_soft("votes", Soft(("O", "NAME"), np.full((len(doc.tokens), 2), 0.5)))
    return doc


@st.composite
def simple_documents(draw: st.DrawFn, *, number: int = 0) -> Document:
    """A document that every span format can hold: one gold layer on token edges, no overlaps, nothing else."""
    doc = Document.make(draw(PLAIN_TEXTS), id=f"doc-{number}")
    edges = sorted(draw(st.sets(st.integers(0, len(doc.tokens)), max_size=6)))
    pairs = zip(edges[::2], edges[1::2], strict=False)
    found = [Span(int(doc.tokens[a, 0]), int(doc.tokens[b - 1, 1]), draw(LABELS)) for a, b in pairs]
    return doc.with_layer("gold", found)


def corpora(one: Callable[..., st.SearchStrategy[Document]], **options: Any) -> st.SearchStrategy[list[Document]]:
    """Up to three documents with different ids."""
    return st.integers(0, 3).flatmap(lambda size: st.tuples(*(one(number=i, **options) for i in range(size)))).map(list)
