"""Long notes: work grows with the length, not with its square. Work is counted in calls, never in seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaffinch.deid.detect.detector import detector
from chaffinch.errors import ConfigError
from chaffinch.text import Document, Span, resolve

FIND = detector(by_patient=True)


def count_calls(work: Callable[[], Any]) -> int:
    calls = 0

    def count(_frame: object, event: str, _value: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls


def write_note(lines: int) -> Document:
    """Return a note with names that come back without a cue, protected terms, dates and phones."""
    letters = "abcdefghij"
    names = ["Quorn" + "".join(letters[int(digit)] for digit in f"{number:04d}") for number in range(lines)]
    text = "".join(
        f"Seen by Dr. {name} on 3/{1 + number % 28}/2019, call 555-123-{number:04d}.\n"
        f"{name} came, aspirin and a Foley were given; Parkinson disease is stable.\n"
        for number, name in enumerate(names)
    )
    return Document.make(text, id="long", max_chars=10**7)


def test_calls_grow_with_the_length_of_a_note() -> None:
    list(FIND([write_note(20)]))  # lists are loaded, patterns compiled
    notes = [write_note(lines) for lines in (100, 800)]
    short, long = (count_calls(partial(list, FIND([note]))) for note in notes)
    assert long < 8 * 1.2 * short


spans = st.builds(
    lambda start, size, label: Span(start, start + size, label),
    st.integers(0, 30),
    st.integers(0, 6),
    st.sampled_from("AB"),
)


@given(st.lists(spans, max_size=12), st.sampled_from(["longest", "shortest", "first"]))
@settings(max_examples=200, deadline=None)
def test_overlaps_are_resolved_as_by_asking_every_pair(given_spans: list[Span], rule: str) -> None:
    sizes = {"longest": lambda s: (-len(s),), "shortest": lambda s: (len(s),), "first": lambda s: (s.start, -len(s))}
    rank: Callable[[Span], tuple[int, ...]] = sizes[rule]
    kept: list[Span] = []
    for span in sorted(given_spans, key=lambda s: (rank(s), s.start, -s.end, s.label)):
        if not any(span.overlaps(other) for other in kept):
            kept.append(span)
    assert list(resolve(given_spans, rule)) == sorted(kept)


def test_an_unknown_rule_is_refused_without_spans_too() -> None:
    with pytest.raises(ConfigError, match="unknown overlap rule"):
        resolve([], "widest")
