"""Linking rules: what they write, and what votes make of it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from chaffinch.errors import ConfigError
from chaffinch.models.cascade.config import Cascade
from chaffinch.models.tagger import train
from chaffinch.text import Document, Span
from chaffinch.weak.sources import ChunkLink, Link
from chaffinch.weak.votes import collect_votes

QUICK = Cascade(objective="crf", documents=False, calibrate=False, epochs=3)


def linked(doc: Document, source: Any) -> list[tuple[str, str]]:
    return [(doc.text[span.start : span.end], span.label) for span in source(doc)]


def test_capitals_hyphens_and_phrases() -> None:
    doc = Document.make("we saw Ada Mary Penn - twice. Then IL-2-induced flu; breast\r\ncancer")
    assert linked(doc, Link("l", "capitalised")) == [("Ada Mary Penn", "TOGETHER"), ("Then IL-2", "TOGETHER")]
    assert linked(doc, Link("l", "hyphen")) == [("IL-2-induced", "TOGETHER")]
    assert linked(doc, Link("l", "phrases", ["Breast cancer", "flu"])) == [("breast\r\ncancer", "TOGETHER")]


def test_links_end_with_the_sentence() -> None:
    doc = Document.make("Seen by Ada Penn. Lowe came.")
    assert linked(doc, Link("l", "phrases", ["Penn. Lowe"])) == [("Penn.", "TOGETHER")]
    assert linked(Document.make(""), Link("l", "capitalised", apart=True)) == []


def test_the_edges_are_apart_if_asked_for() -> None:
    doc = Document.make("we saw Ada Penn twice. Ada Lowe left")
    found = linked(doc, Link("l", "capitalised", apart=True))
    assert found == [
        ("saw Ada", "APART"),
        ("Ada Penn", "TOGETHER"),
        ("Penn twice", "APART"),
        ("Ada Lowe", "TOGETHER"),
        ("Lowe left", "APART"),
    ]
    shared = Document.make("aa bb-cc dd", tokens=[(0, 2), (3, 8), (9, 11)])  # two phrases that share a token
    assert linked(shared, Link("l", "phrases", ["aa bb", "cc dd"], apart=True)) == [("aa bb-cc dd", "TOGETHER")]
    source = Link("l", "capitalised", apart=True)
    votes = collect_votes([doc.with_layer(source.layer, source(doc))])
    assert votes.rules == ("l",)
    assert votes.links[:, 0].tolist() == [0, 0, -1, 1, -1, 0, 0, 1, -1]


def test_phrases_of_our_own_parser() -> None:
    text = "the old cough went"
    gold = [Span(0, 13, "NP"), Span(14, 18, "VP")]
    notes = [Document.make(text, id=str(n), layers={"chunks": gold}) for n in range(8)]
    parser = train(notes, QUICK, layer="chunks", name="chunks")
    found = linked(Document.make(text), ChunkLink("np", parser, apart=True))
    assert found == [("the old cough", "TOGETHER"), ("cough went", "APART")]
    with pytest.raises(ConfigError, match=re.escape("no label 'PP'")):
        ChunkLink("np", parser, labels=("PP",))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("capital",), "did you mean 'capitalised'"),
        (("phrases",), "needs phrases"),
        (("hyphen", ["a b"]), "has no phrases"),
    ],
)
def test_what_cannot_be_is_refused(arguments: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Link("l", *arguments)
