"""The DDI corpus."""

from __future__ import annotations

from pathlib import Path

import pytest
from recipes.corpora import ddi

from chaffinch.errors import DataError
from chaffinch.text import Argument, Relation, Span
from tests.recipes.files import zipped

XML = """<?xml version="1.0" encoding="UTF-8"?>
<document id="X.d1">
<sentence id="X.d1.s0" text="Do not mix:&#13;&#10;"/>
<sentence id="X.d1.s1" text=""/>
<sentence id="X.d1.s2" text="Alpha- or beta-foxin with Zedol or bar.">
<entity id="e0" charOffset="0-5;15-19" type="group" text="Alpha-foxin"/>
<entity id="e1" charOffset="10-19" type="group" text="beta-foxin"/>
<entity id="e2" charOffset="26-30" type="brand" text="Zedol"/>
<entity id="e3" charOffset="35-37" type="drug_n" text="bar"/>
<pair id="p0" e1="e0" e2="e2" ddi="true" type="effect"/>
<pair id="p1" e1="e1" e2="e2" ddi="true"/>
<pair id="p2" e1="e2" e2="e3" ddi="false"/>
</sentence></document>
"""


def archive(path: Path) -> Path:
    return zipped(
        path / "DDI.zip",
        {
            "DDI/.DS_Store": "\x00",
            "DDI/Train/MedLine/1.xml": XML,
            "DDI/Test/Test for DDI Extraction task/DrugBank/2.xml": XML.replace("X.d1", "X.d2"),
            "DDI/Test/Test for DrugNER task/MedLine/3.xml": XML.replace("X.d1", "X.d3"),
        },
    )


def test_ends_are_inclusive_and_pieces_are_covered_by_one_span(tmp_path: Path) -> None:
    doc = next(doc for doc in ddi.read(archive(tmp_path)) if doc.id == "X.d1")
    assert doc.text == "Do not mix:\r\n\n\nAlpha- or beta-foxin with Zedol or bar."
    assert doc.sentences.tolist() == [[0, 13], [14, 14], [15, 54]]
    alpha, beta, zedol, bar = (
        Span(15, 35, "group"),
        Span(25, 35, "group"),
        Span(41, 46, "brand"),
        Span(50, 53, "drug_n"),
    )
    assert doc.layer("gold") == (alpha, beta, zedol, bar)
    assert [doc.text[s.start : s.end] for s in (beta, zedol, bar)] == ["beta-foxin", "Zedol", "bar"]
    assert doc.meta["fragments"] == [[[15, 21], [30, 35]]]


def test_only_positive_pairs_are_relations(tmp_path: Path) -> None:
    doc = next(doc for doc in ddi.read(archive(tmp_path)) if doc.id == "X.d1")
    alpha, beta, zedol = Span(15, 35, "group"), Span(25, 35, "group"), Span(41, 46, "brand")
    assert doc.relations == (
        Relation("effect", (Argument("e1", (alpha,)), Argument("e2", (zedol,)))),
        Relation("ddi", (Argument("e1", (beta,)), Argument("e2", (zedol,)))),
    )


def test_split_and_source_come_from_the_folders(tmp_path: Path) -> None:
    found = {doc.id: (doc.meta["split"], doc.meta["source"]) for doc in ddi.read(archive(tmp_path))}
    assert found == {
        "X.d1": ("train", "MedLine"),
        "X.d2": ("test-ddi", "DrugBank"),
        "X.d3": ("test-ner", "MedLine"),
    }


def test_an_entity_that_is_not_where_its_text_is_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "1.xml"
    file.write_text(XML.replace("26-30", "27-31"))
    with pytest.raises(DataError, match=r"1\.xml: the place \[27, 32\) of entity e2") as caught:
        list(ddi.read(file))
    assert "Zedol" not in str(caught.value)
