"""Values in notebooks: escaped, and text of documents only where a document itself is shown."""

from __future__ import annotations

import re

import chaffinch as cf
from chaffinch.text.document import Document
from chaffinch.text.span import Span

TEXT = "<script>alert(1)</script> Dr. Quillfeather & co"
NOTE = Document.make(TEXT, id="n", layers={"gold": [Span(30, 42, "<b>"), Span(30, 35, "X")]})


def shown(value: object) -> str:
    return value._repr_html_()  # type: ignore[attr-defined,no-any-return]  # what a notebook calls


def test_a_document_shows_its_text_escaped_with_marks() -> None:
    page = shown(NOTE)
    assert "<script" not in page
    assert "<b>" not in page
    assert page.count("<mark") == 1
    plain = re.sub(r"<small>.*?</small>|<[^>]+>", "", page).replace(" &lt;b&gt;", "")
    assert "Quillfeather" in plain
    assert "&lt;script&gt;alert(1)&lt;/script&gt; Dr. " in plain
    assert "<mark" not in shown(Document.make("plain"))


def test_a_long_document_is_cut_and_says_so() -> None:
    page = shown(Document.make("word " * 10_000, layers={"gold": [Span(0, 4, "A"), Span(49_000, 49_004, "A")]}))
    assert len(page) < 25_000
    assert "30,000 characters more" in page


def test_figures_and_explanations_show_no_text() -> None:
    gold = [cf.Document.make("Dr. Quillfeather came.", id="a", layers={"gold": [cf.Span(4, 16, "DOCTOR")]})]
    report = shown(cf.evaluate(gold, gold))
    votes = [cf.Document.make("Dr. Quillfeather came.", id="a", layers={"source:x": [cf.Span(4, 16, "DOCTOR")]})]
    analysis = shown(cf.weak.analyse(votes))
    (why,) = cf.deid.explain("Dr. Quillfeather came.", cf.deid.detector(None))
    for page, part in ((report, "precision"), (analysis, "tokens"), (shown(why), "DOCTOR: chance")):
        assert page.startswith("<pre>")
        assert part in page
        assert "Quillfeather" not in page
