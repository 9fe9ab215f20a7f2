"""Pairs of long and short forms, against cases worked by hand."""

from __future__ import annotations

import pytest

from chaffinch.text import Document, Span
from chaffinch.weak.propagate.abbreviations import is_short_form, long_form_start, pairs, singular


def found(text: str) -> list[tuple[str, str]]:
    doc = Document.make(text)
    return [(text[a.start : a.end], text[b.start : b.end]) for a, b in pairs(doc)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Duchenne muscular dystrophy (DMD) is rare.", [("Duchenne muscular dystrophy", "DMD")]),
        ("Duchenne muscular dystrophy ( DMD ) is rare .", [("Duchenne muscular dystrophy", "DMD")]),
        ("two congenital tumours (CTs) were seen", [("congenital tumours", "CTs")]),
        ("DMD (Duchenne muscular dystrophy) is rare.", [("Duchenne muscular dystrophy", "DMD")]),
        ("renal failure (RF; see below) came", [("renal failure", "RF")]),
        ("renal failure [RF] came", [("renal failure", "RF")]),
        ("acute (sudden) renal failure (RF) came", [("renal failure", "RF")]),
        ("found (in acute renal failure (ARF) alone)", [("acute renal failure", "ARF")]),
        ("tumour necrosis factor (TNF) and interleukin 2 (IL2)",
         [("tumour necrosis factor", "TNF"), ("interleukin 2", "IL2")]),
        ("glucose-6-phosphate dehydrogenase (G6PD)", [("glucose-6-phosphate dehydrogenase", "G6PD")]),
        ("5-hydroxytryptamine (5-HT) rose", [("5-hydroxytryptamine", "5-HT")]),
        ("IL-2 (interleukin-2) rose", [("interleukin-2", "IL-2")]),
        ("as we saw (Table) before", []),
        ("renal failure (see above)", []),
        ("renal failure (XYZ)", []),
        ("renal failure (RF", []),
        ("renal failure) RF (", []),
        ("(RF)", []),
        ("", []),
    ],
)  # fmt: skip
def test_pairs_worked_by_hand(text: str, wanted: list[tuple[str, str]]) -> None:
    assert found(text) == wanted


def test_a_long_form_stays_in_its_sentence() -> None:
    text = "Acute renal. Failure (ARF) came."
    doc = Document.make(text, sentences=[(0, 12), (13, len(text))])
    assert pairs(doc) == []
    whole = Document.make(text, sentences=[(0, len(text))])
    assert pairs(whole) == [(Span(0, 20, "long form"), Span(22, 25, "short form"))]


def test_the_first_letter_must_begin_a_word() -> None:
    assert long_form_start(["subacute", "renal", "failure"], "ARF") is None
    assert long_form_start(["sub-acute", "renal", "failure"], "ARF") == 0  # a whole token, after its hyphen


def test_plurals_of_short_forms() -> None:
    assert [singular(word) for word in ("CTs", "CT's", "AIDS", "Bs", "T2s", "cells")] == [
        "CT", "CT", "AIDS", "Bs", "T2", "cells"
    ]  # fmt: skip


def test_what_may_be_a_short_form() -> None:
    assert not any(is_short_form(word) for word in ("a", "dmd", "2004", "-AB", "ABCDEFGHIJKLM", ""))
    assert all(is_short_form(word) for word in ("AB", "mTOR", "2D", "IL-2", "5-HT"))
