"""Sentences: never inside a name or after a title; blank lines, bullets and headers end one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from chaffinch.text.sentences import line_offsets, sentence_offsets, stop_offsets
from chaffinch.text.tokens import token_offsets
from tests.text.strategies import TEXTS


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_offsets(text, token_offsets(text))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Seen by Dr.\nWhittaker. Will return.", ["Seen by Dr.\nWhittaker.", "Will return."]),
        ("Attending: Dr.\r\nWhittaker", ["Attending: Dr.\r\nWhittaker"]),
        ("John J. Smith came. He left.", ["John J. Smith came.", "He left."]),
        ("He has hepatitis B. Patients do well.", ["He has hepatitis B.", "Patients do well."]),
        ("wrapped\nover two lines", ["wrapped\nover two lines"]),
        ("one\n\ntwo", ["one", "two"]),
        ("one\r\n \r\ntwo", ["one", "two"]),
        ("Plan:\n- rest\n- fluids\n1. home", ["Plan:", "- rest", "- fluids", "1. home"]),
        ("Name: Ada Quill\nAge: 61\nHe is well", ["Name: Ada Quill", "Age: 61", "He is well"]),
        ("PAST HISTORY\nNone known", ["PAST HISTORY", "None known"]),
        ("Is it? Yes! (It is.) Fine.", ["Is it?", "Yes!", "(It is.)", "Fine."]),
        ("given e.g. aspirin, vs. Placebo", ["given e.g. aspirin, vs. Placebo"]),
        ("3.5 mg. of it", ["3.5 mg. of it"]),
        ("Came at 5 p.m. Left early.", ["Came at 5 p.m.", "Left early."]),
        ("東京。大阪", ["東京。", "大阪"]),
        ("el Dr. Pérez y la Dra. Gil. Alta.", ["el Dr. Pérez y la Dra. Gil.", "Alta."]),
        ("", []),
        (" \n ", []),
    ],
)
def test_sentences_end_where_they_should(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@given(TEXTS)
def test_sentences_hold_every_token_once_in_order(text: str) -> None:
    tokens = token_offsets(text)
    for split in (sentence_offsets, line_offsets):
        found = split(text, tokens)
        assert (np.diff(found.ravel()) >= 0).all()
        inside = (tokens[:, None, 0] >= found[None, :, 0]) & (tokens[:, None, 1] <= found[None, :, 1])
        assert (inside.sum(axis=1) == 1).all()


def test_lines_are_sentences_on_request() -> None:
    text = "one two\r\n\r\nthree\nfour."
    assert [text[a:b] for a, b in line_offsets(text, token_offsets(text))] == ["one two", "three", "four."]


@given(TEXTS)
def test_stops_and_lines_only_cut_sentences_further(text: str) -> None:
    tokens = token_offsets(text)
    given_sentences = sentence_offsets(text, tokens)
    found = stop_offsets(text, tokens, given_sentences)
    of = {
        t: s
        for s, (a, b) in enumerate(given_sentences.tolist())
        for t, (x, _) in enumerate(tokens.tolist())
        if a <= x < b
    }
    finer = {t: s for s, (a, b) in enumerate(found.tolist()) for t, (x, _) in enumerate(tokens.tolist()) if a <= x < b}
    assert of.keys() == finer.keys()
    brk = "\r" if "\n" not in text else "\n"
    for t in range(1, len(tokens)):
        before, after = tokens[t - 1], tokens[t]
        cut = of[t] != of[t - 1] or text[before[0] : before[1]] == "." or brk in text[before[1] : after[0]]
        assert (finer[t] != finer[t - 1]) == cut
