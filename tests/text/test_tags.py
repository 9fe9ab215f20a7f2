"""Tag schemes: spans to tags and back under generated input, and errors where tags cannot say it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaffinch.errors import DataError
from chaffinch.text import Span
from chaffinch.text.tags import SCHEMES, Run, Scheme, decode, encode, runs, tags_of_runs, valid_runs

LENGTH = 8


@st.composite
def run_lists(draw: st.DrawFn) -> list[Run]:
    """Sorted runs over eight tokens that do not overlap, often touching."""
    edges = sorted(draw(st.sets(st.integers(0, LENGTH), max_size=LENGTH)))
    found = [(a, b, draw(st.sampled_from("XY"))) for a, b in pairwise(edges)]
    return [run for run in found if draw(st.integers(0, 2))]


@given(run_lists(), st.sampled_from(SCHEMES))
def test_tags_say_exactly_the_runs(found: list[Run], scheme: Scheme) -> None:
    tags = tags_of_runs(found, LENGTH, scheme)
    assert runs(tags) == found
    assert valid_runs(tags, scheme) == found


@given(st.lists(st.sampled_from(["O", "B-X", "I-X", "E-X", "S-X", "B-Y", "I-Y"]), max_size=LENGTH))
def test_any_tags_give_disjoint_runs_that_cover_what_is_not_o(tags: list[str]) -> None:
    covered = [t for begin, end, _ in runs(tags) for t in range(begin, end)]
    assert covered == [t for t, tag in enumerate(tags) if tag != "O"]


@pytest.mark.parametrize(
    ("tags", "scheme", "lenient", "strict"),
    [
        ("I-X I-X O B-X", "IOB2", [(0, 2, "X"), (3, 4, "X")], [(3, 4, "X")]),
        ("I-X B-X I-X", "IOB1", [(0, 1, "X"), (1, 3, "X")], [(0, 1, "X"), (1, 3, "X")]),
        ("B-X I-Y", "IOB2", [(0, 1, "X"), (1, 2, "Y")], [(0, 1, "X")]),
        ("B-X E-X S-Y B-X I-X", "IOBES", [(0, 2, "X"), (2, 3, "Y"), (3, 5, "X")], [(0, 2, "X"), (2, 3, "Y")]),
        ("B-X L-X U-Y", "IOBES", [(0, 2, "X"), (2, 3, "Y")], [(0, 2, "X"), (2, 3, "Y")]),
    ],
)
def test_worked_cases(tags: str, scheme: Scheme, lenient: list[Run], strict: list[Run]) -> None:
    assert runs(tags.split()) == lenient
    assert valid_runs(tags.split(), scheme) == strict


TOKENS = np.array([[0, 3], [4, 7], [8, 9]], np.int32)


def test_spans_become_tags_and_spans_again() -> None:
    spans = (Span(0, 7, "NAME"), Span(8, 9, "DATE"))
    assert encode(spans, TOKENS, "IOBES") == ["B-NAME", "E-NAME", "S-DATE"]
    assert decode(encode(spans, TOKENS), TOKENS) == spans


def test_overlaps_and_cut_tokens_are_errors_only_here() -> None:
    with pytest.raises(DataError, match=r"\[0, 7\) NAME and \[4, 9\) DATE overlap"):
        encode((Span(0, 7, "NAME"), Span(4, 9, "DATE")), TOKENS)
    with pytest.raises(DataError, match=r"\[0, 2\) NAME cuts a token"):
        encode((Span(0, 2, "NAME"),), TOKENS)


def test_wrong_tags_are_named() -> None:
    with pytest.raises(DataError, match="a tag is not O, nor one of B-, I-, E-, S- and a label"):
        runs(["X-Y"])
    with pytest.raises(DataError, match="1 tags for 3 tokens"):
        decode(["O"], TOKENS)
