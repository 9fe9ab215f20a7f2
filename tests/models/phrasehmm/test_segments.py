"""Segments cover a sentence, words are normalised as the publication did, stems are Porter's own examples."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaffinch.errors import ConfigError, DataError
from chaffinch.models.phrasehmm.segments import REPRESENTATIONS, Representation, Segment, add_parses, normal, segments
from chaffinch.models.phrasehmm.stems import stem
from chaffinch.text import Document, Span

# The examples that Porter's article prints beside its rules, carried through all steps by the program he published.
PORTER = """caresses caress ponies poni ties ti caress caress cats cat feed feed agreed agre plastered plaster bled bled
motoring motor sing sing conflated conflat troubled troubl sized size hopping hop tanned tan falling fall hissing hiss
fizzed fizz failing fail filing file happy happi sky sky relational relat conditional condit rational ration valenci
valenc hesitanci hesit digitizer digit conformabli conform radicalli radic differentli differ vileli vile analogousli
analog vietnamization vietnam predication predic operator oper feudalism feudal decisiveness decis hopefulness hope
callousness callous formaliti formal sensitiviti sensit sensibiliti sensibl triplicate triplic formative form formalize
formal electriciti electr electrical electr hopeful hope goodness good revival reviv allowance allow inference infer
airliner airlin gyroscopic gyroscop adjustable adjust defensible defens irritant irrit replacement replac adjustment
adjust dependent depend adoption adopt homologou homolog communism commun activate activ angulariti angular homologous
homolog effective effect bowdlerize bowdler probate probat rate rate cease ceas controll control roll roll""".split()


@pytest.mark.parametrize(("word", "wanted"), list(zip(PORTER[::2], PORTER[1::2], strict=True)))
def test_stems_are_those_of_the_article(word: str, wanted: str) -> None:
    assert stem(word) == wanted


def test_words_are_normalised() -> None:
    found = [normal(word) for word in ["Binding", "1,000", "5%", "1998-2001", "p53", "<E1>", "is", "α-actin", "²"]]
    assert found == ["bind", "<num>", "<num>", "<num>", "p53", "<E1>", "is", "α-actin", "²"]


def sentence() -> Document:
    """The protein binds to DNA, not RNA."""
    text = "The protein binds to DNA , not RNA . And more ."
    edges = [(at, at + len(word)) for at, word in _words(text)]
    tags = ["DT", "NN", "VBZ", "TO", "NN", ",", "RB", "NN", ".", "CC", "JJR", "."]
    chunks = [Span(0, 11, "NP"), Span(12, 17, "VP"), Span(18, 20, "PP"), Span(21, 24, "NP"), Span(31, 34, "NP")]
    pos = [Span(a, b, tag) for (a, b), tag in zip(edges, tags, strict=True)]
    cuts = [(0, 36), (37, len(text))]
    return Document.make(text, tokens=edges, sentences=cuts, layers={"pos": pos, "chunks": chunks})


def _words(text: str) -> list[tuple[int, str]]:
    at, out = 0, []
    for word in text.split(" "):
        out.append((at, word))
        at += len(word) + 1
    return out


def test_phrases_and_the_words_between_them() -> None:
    wanted = [
        Segment("NP", 0, 2), Segment("VP", 2, 3), Segment("PP", 3, 4), Segment("NP", 4, 5), Segment(",", 5, 6),
        Segment("R", 6, 7), Segment("NP", 7, 8), Segment(".", 8, 9),
    ]  # fmt: skip
    doc = sentence()
    assert segments(doc, 0, 9, "phrase") == wanted
    assert segments(doc, 9, 12, "phrase") == [Segment("CC", 9, 10), Segment("J", 10, 11), Segment(".", 11, 12)]
    assert [part.type for part in segments(doc, 0, 4, "pos")] == ["DT", "NN", "VBZ", "TO"]
    assert {part.type for part in segments(doc, 0, 9, "token")} == {"WORD"}


@given(st.integers(0, 12), st.integers(0, 12), st.sampled_from(REPRESENTATIONS))
def test_every_token_is_in_one_segment(low: int, high: int, representation: Representation) -> None:
    low, high = min(low, high), max(low, high)
    found = segments(sentence(), low, high, representation)
    covered = [t for part in found for t in range(part.first, part.end)]
    assert covered == list(range(low, high))
    assert all(one.end == other.first for one, other in pairwise(found))


def test_bad_requests_are_refused() -> None:
    with pytest.raises(ConfigError, match="representation must be one of"):
        segments(sentence(), 0, 2, "tree")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="no layer 'pos'"):
        segments(Document.make("No layers."), 0, 2, "pos")


def test_parsing_adds_what_is_missing_and_keeps_what_is_there() -> None:
    bare = Document.make("The protein Rad52 localizes to the nucleus.", id="a")
    done = sentence()
    odd = Document.make("It binds.", id="c", layers={"chunks": [Span(0, 8, "ADJP")]})
    found = add_parses([bare, done, odd])
    assert [part.type for part in segments(found[0], 0, 8, "phrase")] == ["NP", "VP", "PP", "NP", "."]
    assert found[1] is done
    assert found[2].layers["chunks"] == (Span(0, 8, "ADJP"),)
    assert [span.label for span in found[2].layers["pos"]] == ["PRP", "VBZ", "."]
    assert add_parses([]) == []
