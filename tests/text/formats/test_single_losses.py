"""Each thing a document can hold, alone: a format with offsets keeps it, or names it as lost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from chaffinch.text import Argument, Document, Relation, Soft, Span
from tests.text.formats.roundtrip import exact, through

FORMATS = ["brat", "i2b2", "meddocan", "pubtator", "bioc-xml", "bioc-json"]
BIOC = {"bioc-xml", "bioc-json"}

SPAN = Span(0, 4, "NAME")
PLAIN = Document.make("Anna saw Smith.", id="doc-0", layers={"gold": [SPAN]})
PAIR = (Argument("Arg1", (SPAN,)), Argument("Arg2", (SPAN,)))


def _with_span(**changes: object) -> Document:
    return PLAIN.with_layer("gold", [replace(SPAN, **changes)])  # type: ignore[arg-type]  # one field of a span


# What is added to the plain document, the formats that keep it, and how the others name the loss.
CASES = {
    "nothing": (PLAIN, set(FORMATS), ""),
    "score": (_with_span(score=0.25), BIOC, "scores of spans"),
    "source": (_with_span(source="rules"), BIOC, "sources of spans"),
    "concept": (_with_span(concept="D009270"), {"brat", "pubtator", *BIOC}, "concepts of spans"),
    "odd concept": (_with_span(concept="a b"), {"pubtator", *BIOC}, "concepts "),
    "line end in a label": (_with_span(label="a\nb"), {"i2b2", "meddocan", *BIOC}, "labels with|in labels"),
    "group": (replace(PLAIN, group="p"), BIOC, "groups (patients)"),
    "meta": (replace(PLAIN, meta={"ward": "7B"}), BIOC, "meta fields"),
    "meta that is no text": (replace(PLAIN, meta={"ward": [7]}), {"bioc-json"}, "meta fields"),
    "meta called group": (replace(PLAIN, meta={"patient": "p"}), set(), "groups (patients)|meta fields"),
    "second layer": (PLAIN.with_layer("rules", []), set(), "layers other than the one written"),
    "another name": (replace(PLAIN, layers={"rules": (SPAN,)}), set(), "names of layers"),
    "no layer": (replace(PLAIN, layers={}), {"brat", "i2b2", "meddocan"}, "the lack of a layer"),
    "soft labels": (PLAIN.with_soft("v", Soft(("O",), np.ones((4, 1)))), set(), "soft layers"),
    "given tokens": (replace(PLAIN, given=True), set(), "given tokens and sentences"),
    "relation": (replace(PLAIN, relations=(Relation("r", PAIR),)), {"brat", *BIOC}, "relations"),
    "scored relation": (replace(PLAIN, relations=(Relation("r", PAIR, 0.5),)), BIOC, "relations"),
    "lone relation": (replace(PLAIN, relations=(Relation("r", ()),)), BIOC, "relations"),
    "role like an infon": (
        replace(PLAIN, relations=(Relation("r", (Argument("type", (), "D1"),)),)),
        set(),
        "relations",
    ),
    "relation elsewhere": (
        replace(PLAIN, relations=(Relation("r", (Argument("a", (Span(5, 8, "X"),)),)),)),
        set(),
        "relations",
    ),
}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("case", CASES)
def test_it_is_kept_or_named(form: str, case: str) -> None:
    doc, keepers, loss = CASES[case]
    (back,), losses = through([doc], form)
    if form in keepers:
        assert not losses.counts
        assert exact(back) == exact(doc)
    else:
        assert any(name in what for what in losses.counts for name in loss.split("|"))
