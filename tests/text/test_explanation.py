"""Explanations as values: words without text, offsets moved, and occlusion against a model whose weights are known."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from chaffinch.errors import DataError
from chaffinch.text import Document, Span
from chaffinch.text.explanation import (
    Explanation,
    Feature,
    Floats,
    PathState,
    Voice,
    explain_by_occlusion,
    likeliest_spans,
)

NOTE = Document.make("Seen by Dr. Quillfeather today")
SPAN = Span(12, 24, "NAME")
LABELS = ("O", "NAME")


def read(docs: Sequence[Document]) -> list[Floats]:
    """A model: log-odds of a name are -1, +3 after "Dr.", +0.5 two words after "by"; blank words are no names."""
    out = []
    for doc in docs:
        words = doc.words()
        odds = np.full(len(words), -1.0)
        for place, word in enumerate(words):
            odds[place + 1 : place + 2] += 3.0 * (word == "Dr.")
            odds[place + 2 : place + 3] += 0.5 * (word == "by")
        chance = np.where([bool(word.strip()) for word in words], 1 / (1 + np.exp(-odds)), 0.0)
        out.append(np.column_stack([1 - chance, chance]))
    return out


def test_occlusion_gives_each_word_the_log_odds_that_it_adds() -> None:
    why = explain_by_occlusion(NOTE, SPAN, read, LABELS, name="toy")
    weights = {NOTE.text[one.start : one.end]: one.weight for one in why.features}
    assert weights == pytest.approx({"Dr.": 3.0, "by": 0.5, "Seen": 0.0, "today": 0.0}, abs=1e-9)
    assert [(one.name, one.quote) for one in why.features[:2]] == [("word at -1", "Dr."), ("word at -2", "by")]
    assert why.chance == pytest.approx(1 / (1 + math.exp(-2.5)))
    (other,) = why.runner_up
    assert other.label == "O"
    assert other.score == pytest.approx(1 / (1 + math.exp(2.5)))


def test_a_word_of_a_span_of_several_is_judged_by_the_others() -> None:
    doc = Document.make("Dr. Quill Feather")
    why = explain_by_occlusion(doc, Span(0, 9, "NAME"), read, LABELS)
    (title,) = (one for one in why.features if one.quote == "Dr.")
    assert title.weight == pytest.approx(3.0)
    assert title.name == "word"


def test_a_span_that_cuts_a_token_is_refused_without_its_text() -> None:
    with pytest.raises(DataError, match="not a run of whole tokens") as caught:
        explain_by_occlusion(NOTE, Span(12, 20, "NAME"), read, LABELS)
    assert "Quill" not in str(caught.value)


def test_likeliest_spans_are_whole_runs_and_touch_the_span() -> None:
    rows = np.array([[0.1, 0.9], [0.2, 0.8], [0.9, 0.1], [0.3, 0.7]])
    doc = Document.make("Ann Penn saw Bo")
    assert likeliest_spans(doc, rows, LABELS, Span(4, 8, "NAME")) == (Span(0, 8, "NAME"),)
    assert likeliest_spans(doc, rows, LABELS, Span(4, 15, "NAME")) == (Span(0, 8, "NAME"), Span(13, 15, "NAME"))
    assert likeliest_spans(doc, rows, LABELS, Span(9, 12, "NAME")) == ()


WHY = Explanation(
    Span(3, 9, "NAME", 0.8),
    (
        Voice(
            "tagger",
            "toy",
            (Span(3, 9, "NAME", 0.7),),
            0.7,
            1.5,
            (Feature("word", 2.0, 3, 9, "Mallory"),),
            (PathState("B-NAME", 3, 9, "Mallory"),),
            ('shows "Trent"',),
        ),
        Voice("list", "last:hi", (Span(3, 9, "last"),)),
    ),
    (Span(3, 9, "TOWN", 0.1),),
    0.8,
    0.25,
)


def test_words_are_quoted_only_where_they_are_asked_for() -> None:
    for text in (str(WHY), repr(WHY), str(WHY.to_dict())):
        assert "Mallory" not in text
        assert "Trent" not in text
    for text in (WHY.in_words(with_text=True), str(WHY.to_dict(with_text=True))):
        assert "Mallory" in text
        assert "Trent" in text
    assert str(WHY).splitlines() == [
        "[3, 9) NAME: chance .800, threshold .250, margin +1.500 over [3, 9) TOWN .100",
        "tagger toy: [3, 9) NAME .700, chance .700, margin +1.500",
        "  B-NAME",
        "    +2.000  [3, 9)         word",
        "list last:hi: [3, 9) last",
    ]


def test_all_offsets_move() -> None:
    moved = WHY.move(lambda start, end: (start + 10, end + 11)).to_dict()

    def places(value: object) -> list[tuple[int, int]]:
        if isinstance(value, dict):
            here = [(value["start"], value["end"])] if "start" in value else []
            return here + [pair for each in value.values() for pair in places(each)]
        return [pair for each in value for pair in places(each)] if isinstance(value, list) else []

    assert places(moved) == [(13, 20)] * 6
