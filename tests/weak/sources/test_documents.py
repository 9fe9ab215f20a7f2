"""Abbreviations and document history: published examples, and a naive reader of repeated strings."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaffinch.errors import ConfigError
from chaffinch.text import Document, Span
from chaffinch.weak.sources import Abbreviations, History, Lexicon


def texts(doc: Document, spans: list[Span]) -> list[str]:
    return [doc.text[span.start : span.end] for span in spans]


@pytest.mark.parametrize(
    ("text", "long", "short"),
    [  # the examples of Schwartz and Hearst (2003), and the two ways round
        ("We study heat shock transcription factor (HSF) here.", "heat shock transcription factor", "HSF"),
        ("the Gcn5-related N-acetyltransferase (GNAT) superfamily", "Gcn5-related N-acetyltransferase", "GNAT"),
        ("with acute lymphoblastic leukaemia (ALL).", "acute lymphoblastic leukaemia", "ALL"),
        ("DMD (Duchenne muscular dystrophy) is", "Duchenne muscular dystrophy", "DMD"),
    ],
)
def test_published_pairs(text: str, long: str, short: str) -> None:
    doc = Document.make(text)
    assert set(texts(doc, Abbreviations("a", label="X")(doc))) == {long, short}


def test_an_abbreviation_has_the_label_of_its_long_form_everywhere() -> None:
    text = "😀 DMDs\r\nand Duchenne muscular dystrophy (DMD); a computed scan (CS). DMD, not DMDX; CS."
    doc = Document.make(
        text, layers={"source:list": Lexicon("list", ["muscular dystrophy"], label="Disease")(Document.make(text))}
    )
    found = Abbreviations("short", ["list"])(doc)
    assert texts(doc, found) == ["DMDs", "DMD", "DMD"]
    assert {span.label for span in found} == {"Disease"}
    assert Abbreviations("short", ["none"])(doc) == []


def test_the_longest_labelled_span_decides_and_not_an_entity_decides_nothing() -> None:
    text = "renal tubular acidosis (RTA)"
    spans = {"source:a": [Span(14, 22, "Finding")], "b": [Span(0, 22, "Disease")], "c": [Span(0, 22, "O")]}
    doc = Document.make(text, layers=spans)
    assert [span.label for span in Abbreviations("s", ["a", "b", "c"])(doc)] == ["Disease"]
    assert Abbreviations("s", ["c"])(doc) == []


def test_heads_choose_the_long_forms() -> None:
    doc = Document.make("polycystic kidney diseases (PKD) and positron emission tomography (PET); PKD and PET")
    found = Abbreviations("s", label="Disease", heads=["Disease"])(doc)
    assert texts(doc, found) == ["polycystic kidney diseases", "PKD", "PKD"]


def naive_history(words: list[str], labelled: dict[int, str]) -> list[int]:
    """The places of words that carry a label elsewhere, and none here."""
    known = {words[place].lower() for place in labelled}
    return [place for place, word in enumerate(words) if word.lower() in known and place not in labelled]


@given(
    st.lists(st.sampled_from(["fever", "Fever", "cough", "asthma", "and"]), min_size=1, max_size=15),
    st.dictionaries(st.integers(0, 14), st.just("Disease"), max_size=4),
)
def test_history_agrees_with_comparing_every_word(words: list[str], labelled: dict[int, str]) -> None:
    labelled = {place: label for place, label in labelled.items() if place < len(words)}
    doc = Document.make(" ".join(words))
    tokens = doc.tokens.tolist()
    doc = doc.with_layer("source:s", [Span(tokens[at][0], tokens[at][1], label) for at, label in labelled.items()])
    found = [tokens.index([span.start, span.end]) for span in History("h", ["s"])(doc)]
    assert found == naive_history(words, labelled)


def test_history_knows_other_spellings_and_longer_strings_first() -> None:
    text = "Breast-cancer\r\nand cancer. Breast cancers, AS; as cancer's breast cancer"
    doc = Document.make(text, layers={"list": [Span(0, 13, "A"), Span(19, 25, "B"), Span(43, 45, "C")]})
    found = History("h", ["list"], min_length=2)(doc)
    assert [(doc.text[s.start : s.end], s.label) for s in found] == [
        ("Breast cancers", "A"),
        ("cancer", "B"),
        ("breast cancer", "A"),
    ]


def test_the_majority_speaks_everywhere_if_asked_to() -> None:
    text = "asthma asthma asthma asthma"
    layer = [Span(0, 6, "B"), Span(7, 13, "A"), Span(14, 20, "B")]
    doc = Document.make(text, layers={"source:s": layer})
    assert Counter(s.label for s in History("h", ["s"])(doc)) == {"B": 1}
    assert Counter(s.label for s in History("h", ["s"], everywhere=True)(doc)) == {"B": 4}
    tie = Document.make(text, layers={"source:s": layer[:2]})
    assert {s.label for s in History("h", ["s"])(tie)} == {"A"}


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigError, match="one of `on` and `label`"):
        Abbreviations("a")
    with pytest.raises(ConfigError, match="one of `on` and `label`"):
        Abbreviations("a", ["b"], label="X")
    with pytest.raises(ConfigError, match="heads go with a label"):
        Abbreviations("a", ["b"], heads=["disease"])
    with pytest.raises(ConfigError, match="on is empty"):
        History("h", [])
