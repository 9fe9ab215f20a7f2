"""LocText's anndoc files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from recipes.corpora import loctext

from chaffinch.errors import DataError
from chaffinch.text import Argument, Relation, Span
from tests.recipes.files import tar_gz

HTML = """<!DOCTYPE html >
<html id="k-1" xmlns="http://www.w3.org/1999/xhtml"><head><title>k-1</title></head><body><article>
<section><h2 id="s1h1">Foo1p is found in yeast.</h2></section>
<section><h2 id="s2h1">Abstract</h2><div><p id="s2p1">We saw <i>Foo1p</i> &amp; bar in the nucleus.</p></div></section>
</article></body></html>
"""


def entity(part: str, start: int, text: str, kind: str, concept: str | None = None) -> dict[str, Any]:
    normal = {"n": {"source": {"id": concept, "name": "X"}}} if kind != "e_4" else {}
    return {"part": part, "classId": kind, "offsets": [{"start": start, "text": text}], "normalizations": normal}


RECORD = {
    "annotatable": {"parts": ["s1h1", "s2h1", "s2p1"]},
    "entities": [
        entity("s2p1", 26, "nucleus", "e_2", "GO:1"),
        entity("s1h1", 0, "Foo1p", "e_1", "P1"),
        entity("s1h1", 18, "yeast", "e_3", None),
        entity("s2p1", 7, "Foo1p", "e_1", "P1"),
        entity("s2p1", 3, "saw", "e_4"),
    ],
    "relations": [
        {"classId": "r_5", "directed": False, "entities": ["s2p1|26,33", "s2p1|7,12"]},
        {"classId": "r_6", "directed": False, "entities": ["s1h1|0,5", "s1h1|18,23"]},
    ],
}


def archive(path: Path, record: object) -> Path:
    return tar_gz(
        path / "loctext.tar.gz",
        {
            "c/anndoc_original_without_normalizations/json/k-1.ann.json": "{}",
            "c/anndoc_original_without_normalizations/html/k-1.plain.html": HTML,
            "c/annjson_with_normalizations/k-1.ann.json": json.dumps(record),
        },
    )


def test_offsets_inside_parts_become_offsets_of_the_document(tmp_path: Path) -> None:
    (doc,) = loctext.read(archive(tmp_path, RECORD))
    assert doc.text == "Foo1p is found in yeast.\n\nAbstract\n\nWe saw Foo1p & bar in the nucleus."
    assert doc.meta["parts"] == {"s1h1": [0, 24], "s2h1": [26, 34], "s2p1": [36, 70]}
    assert [(doc.text[s.start : s.end], s.label, s.concept) for s in doc.layer("gold")] == [
        ("Foo1p", "protein", "P1"),
        ("yeast", "organism", ""),
        ("saw", "e_4", ""),
        ("Foo1p", "protein", "P1"),
        ("nucleus", "location", "GO:1"),
    ]


def test_the_protein_is_the_first_argument(tmp_path: Path) -> None:
    (doc,) = loctext.read(archive(tmp_path, RECORD))
    place = (Argument("protein", (Span(43, 48, "protein"),)), Argument("location", (Span(62, 69, "location"),)))
    life = (Argument("protein", (Span(0, 5, "protein"),)), Argument("organism", (Span(18, 23, "organism"),)))
    assert doc.relations == (Relation("protein-location", place), Relation("protein-organism", life))


@pytest.mark.parametrize(
    "record",
    [
        {**RECORD, "entities": [entity("s1h1", 1, "Foo1p", "e_1", "P1")]},
        {**RECORD, "entities": [entity("s9h9", 0, "Foo1p", "e_1", "P1")]},
        {**RECORD, "entities": []},
        [],
    ],
)
def test_a_broken_annotation_is_refused_by_name_and_without_its_text(tmp_path: Path, record: object) -> None:
    with pytest.raises(DataError) as caught:
        list(loctext.read(archive(tmp_path, record)))
    assert "k-1.ann.json" in str(caught.value)
    assert "Foo1p" not in str(caught.value)
