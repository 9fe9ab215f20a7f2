"""Generated documents of given tokens, as column files and token lists hold them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import strategies as st

from chaffinch.text import Argument, Document, Relation, Soft, Span
from chaffinch.text.formats._shared.token_tags import lay_out
from tests.text.strategies import LABELS

# A token may hold anything but what rows are made of, odd blanks and control characters included.
WORDS = st.one_of(
    st.sampled_from(
        ["IL-2", "Anna", "-", "O", "B-X", "\xa0", "\u2028", "\x85", "\ufeff", "😀", "\x00", "###MEDLINE:7", "#"]
    ),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters=" \t\n\r"), min_size=1, max_size=4),
)
ODD_IDS = st.sampled_from(["doc", "A 1", "x%20y", "", "é\xa0\t\n", "out", "out-1"])


@st.composite
def token_documents(draw: st.DrawFn, *, number: int = 0, columns: int = 0, sources: tuple[str, ...] = ()) -> Document:
    """A document whose text is its tokens, joined, with a gold layer (and sources) on token edges."""
    sizes = draw(st.lists(st.integers(1, 4), max_size=3))
    words = draw(st.lists(WORDS, min_size=sum(sizes), max_size=sum(sizes)))
    text, tokens, sentences = lay_out(words, sizes)
    gold: list[Span] = []
    begin = 0
    for size in sizes:
        edges = sorted(draw(st.sets(st.integers(begin, begin + size), max_size=4)))
        for a, b in pairwise(edges):
            if draw(st.booleans()):
                gold.append(Span(int(tokens[a, 0]), int(tokens[b - 1, 1]), draw(LABELS)))
        begin += size
    meta: dict[str, Any] = {}
    if columns and words:
        cells = st.lists(st.sampled_from(["NN", "I-NP", "-X-"]), min_size=len(words), max_size=len(words))
        meta["columns"] = {str(i): draw(cells) for i in range(1, columns + 1)}
    layers = {"gold": gold, **{f"source:{name}": draw(st.sampled_from([[], gold[:1], gold])) for name in sources}}
    name = f"{draw(ODD_IDS)}{number or ''}"
    return Document.make(text, id=name, meta=meta, layers=layers, tokens=tokens, sentences=sentences)


@st.composite
def enriched_documents(draw: st.DrawFn, *, number: int = 0) -> Document:
    """A document of tokens and one thing more, so that nothing else can hide that it was not reported."""
    doc = draw(token_documents(number=number))
    spans, length = doc.layer(), len(doc.text)
    choices = [
        replace(doc, group="p1"),
        replace(doc, meta={"ward": "7B"}),
        replace(doc, meta={"tokens": 1, "text": 1, "id": 1, "sentences": 1}),
        replace(doc, meta={"patient_id": "p1"}),
        replace(doc, meta={"columns": {"1": ["x"]}}),
        replace(doc, meta={"conll": {"separator": " ", "mark": "###MEDLINE:7"}}),
        replace(doc, layers={}),
        replace(doc, layers={"rules": spans}),
        doc.with_layer("rules", spans),
        doc.with_soft("votes", Soft(("O",), np.ones((len(doc.tokens), 1)))),
        replace(doc, given=False),
        replace(doc, sentences=doc.sentences[:0]),
        replace(doc, sentences=doc.sentences[:1]),
    ]
    for span in spans[:1]:
        arguments = (Argument("Arg1", (span,)), Argument("Arg2", (span,)))
        choices += [
            replace(doc, relations=(Relation("r", arguments),)),
            doc.with_layer("gold", [replace(span, score=0.5)]),
            doc.with_layer("gold", [replace(span, source="rules")]),
            doc.with_layer("gold", [replace(span, concept="D1")]),
            doc.with_layer("gold", [replace(span, label=draw(st.sampled_from(["", "a\tb", "a b", "x\r"])))]),
            doc.with_layer(
                "gold", [*spans, Span(0, length, "ALL"), Span(0, 1, "ONE"), Span(length - 1, length, "TWO")]
            ),
            doc.with_layer("gold", [*spans, Span(0, length, "ALL")]),
        ]
    return draw(st.sampled_from(choices))
