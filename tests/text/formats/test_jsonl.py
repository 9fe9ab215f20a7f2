"""Our own JSONL: short forms, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaffinch.text import Span
from chaffinch.text.formats import read
from tests.text.formats.refusal import CANARY, assert_refused


@pytest.mark.parametrize("key", ["spans", "entities", "labels", "label"])
def test_short_forms_are_read(tmp_path: Path, key: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"text":"Anna","{key}":[[0,4,"PER"],{{"start":0,"end":1,"label":"A","score":0.5}}]}}\n')
    (doc,) = read(path, format="jsonl")
    assert doc.layer() == (Span(0, 1, "A"), Span(0, 4, "PER"))
    assert (doc.layer()[0].score, doc.meta) == (0.5, {})


def test_fields_of_other_names_are_meta_fields(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text":"Anna","patient_id":7,"ward":"7B","label":"positive","meta":{"x":1}}\n')
    (doc,) = read(path)
    assert (doc.id, doc.group) == ("0", "7")
    assert doc.meta == {"patient_id": 7, "ward": "7B", "label": "positive", "x": 1}


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ('"group":["x"]', '"group" is a JSON list'),
        ('"meta":"x"', "Expected `object | null`"),
        ('"id":{}', "Expected"),
        ('"layers":[]', "Expected `object"),
        ('"layers":{"gold":[{"start":0,"end":1}]}', "missing required field `label`"),
        ('"layers":{"gold":[{"start":0,"end":1,"label":"A","score":"high"}]}', "Expected `float`"),
        ('"layers":{"gold":[{"start":0,"end":1,"label":"A","source":3}]}', "Expected `str`"),
        ('"layers":{"gold":[{"start":false,"end":1,"label":"A"}]}', "Expected `int`"),
        ('"layers":{"gold":[[0,99,"A"]]}', "does not fit"),
        ('"spans":[3]', "Expected"),
        ('"relations":{}', "Expected `array"),
        ('"relations":[{"label":"r"}]', "missing required field `arguments`"),
        ('"relations":[{"label":"r","arguments":[{"role":"a"}]}]', "missing required field `spans`"),
        ('"relations":[{"label":"r","arguments":[{"role":1,"spans":[]}]}]', "Expected `str`"),
        ('"soft":{"v":{"labels":["O"]}}', "missing required field `values`"),
        ('"soft":{"v":{"labels":["O","A"],"values":[[1.0]]}}', "one value for each of its 2 labels"),
        ('"soft":{"v":{"labels":["O"],"values":[["x"]]}}', "Expected `float`"),
        ('"soft":{"v":{"labels":["O"],"values":[]}}', "shape"),
        ('"tokens":[[0]]', "Expected `array` of length 2"),
        ('"tokens":[[0,99999999999]]', "Expected `int`"),
        ('"tokens":[[3,1]]', "must rise"),
        ('"sentences":["x"]', "Expected `array`"),
    ],
)
def test_wrong_types_are_refused_with_their_place(fields: str, says: str) -> None:
    assert_refused(f'{{"text":"ok"}}\n\n{{"text":"{CANARY}",{fields}}}\n', "jsonl", says, line=3)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (f'{{"note":"{CANARY}"}}'.encode(), 'has no "text"'),
        (f'{{"text":["{CANARY}"]}}'.encode(), "Expected `str`"),
        (f'["{CANARY}"]'.encode(), "not an object"),
        (f'{{"text":"{CANARY}'.encode(), "not valid JSON"),
        (f'{{"text":"{CANARY}'.encode() + b'\xff"}', "UTF-8"),
        (f'{{"text":"{CANARY} \\ud800"}}'.encode(), "not valid JSON"),
    ],
)
def test_broken_lines_are_refused_with_their_place(line: bytes, says: str) -> None:
    assert_refused(b'{"text":"ok"}\n' + line + b"\n", "jsonl", says, line=2)
