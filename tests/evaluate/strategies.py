"""Generated pairs of gold and predicted spans; spans may overlap, repeat and cut tokens."""

from __future__ import annotations

from hypothesis import strategies as st

from chaffinch.evaluate import Pair
from chaffinch.text import Document, Span

TEXT = "Ann Lee, 61, saw Dr. Penn on 9 March."
LABELS = ("NAME", "DATE", "AGE")


@st.composite
def spans(draw: st.DrawFn, length: int = len(TEXT)) -> Span:
    """A span of the text; short ones, so that places meet often."""
    start = draw(st.integers(0, length - 1))
    end = draw(st.integers(start + 1, min(length, start + 9)))
    return Span(start, end, draw(st.sampled_from(LABELS)), draw(st.sampled_from([1.0, 0.75, 0.5])))


def layers(length: int = len(TEXT)) -> st.SearchStrategy[list[Span]]:
    """A few spans."""
    return st.lists(spans(length), max_size=6)


@st.composite
def pairs(draw: st.DrawFn) -> Pair:
    """One document; some predictions are gold spans, so that there are hits."""
    gold = draw(layers())
    copied = draw(st.lists(st.sampled_from(gold), max_size=4)) if gold else []
    found = draw(layers()) + copied
    return Pair(Document.make(TEXT, id="1"), tuple(sorted(set(gold))), tuple(sorted(set(found))))


def note(text: str, spans: list[Span], *, number: str = "1", layer: str = "gold") -> Document:
    """A document with one layer."""
    return Document.make(text, id=number, layers={layer: spans})


def at(text: str, words: str, label: str) -> Span:
    """The span of the words, which must occur once."""
    assert text.count(words) == 1
    start = text.index(words)
    return Span(start, start + len(words), label)
