"""Notes of a DataFrame are tagged and related as by the models themselves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import chaffinch as cf
from chaffinch.errors import ConfigError
from chaffinch.jobs import spark
from chaffinch.relations import Schema, train
from chaffinch.relations.storage import save
from chaffinch.text import Document, Relation, Span
from chaffinch.text.span import Argument
from tests.jobs.spark.conftest import QUIET

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, *QUIET]

TEXTS = {
    "a": "IL-2 gene expression and NF-kappa B activation through CD28 requires reactive oxygen production.",
    "b": "The p65 subunit binds to the IL-2 promoter in T cells.",
    "c": "",
}


def test_spans_equal_those_of_the_tagger(session: SparkSession) -> None:
    df = session.createDataFrame([*TEXTS.items(), ("none", None)], "id string, text string")
    rows = {row["id"]: row for row in spark.tag(df, "genia").toArrow().to_pylist()}
    tagger = cf.load("genia")
    for name, text in TEXTS.items():
        (tagged,) = tagger.annotate([Document.make(text, id=name)], layer="new")
        spans = [(span["start"], span["end"], span["label"]) for span in rows[name]["spans"]]
        assert spans == [(span.start, span.end, span.label) for span in tagged.layers["new"]]
        assert rows[name]["text"] == text
    assert any(row["spans"] for row in rows.values())
    assert (rows["none"]["status"], rows["none"]["reason"], rows["none"]["spans"]) == ("withheld", "has no text", None)


def _example(name: str, verb: str, *, related: bool) -> Document:
    """Return a sentence of a protein and a place, related or not."""
    text = f"Alpha{name} {verb} the nucleus."
    protein, place = Span(0, 5 + len(name), "Protein"), Span(len(text) - 8, len(text) - 1, "Location")
    found = Relation("localises", (Argument("Protein", (protein,)), Argument("Location", (place,))))
    return Document.make(text, id=name, layers={"gold": [protein, place]}, relations=[found] if related else [])


def test_relations_equal_those_of_the_extractor(session: SparkSession, tmp_path: Path) -> None:
    docs = [_example(f"{n}", "sits in" if n % 2 else "never saw", related=bool(n % 2)) for n in range(40)]
    extractor = train(docs, Schema("localises", roles=("Protein", "Location")))
    save(extractor, tmp_path / "model.cfm")
    rows = [(doc.id, doc.text, [(s.start, s.end, s.label) for s in doc.layers["gold"]]) for doc in docs[:6]]
    df = session.createDataFrame(rows, "id string, text string, found array<struct<start:int,end:int,label:string>>")
    out = spark.relate(df, tmp_path / "model.cfm", entities="found").toArrow().to_pylist()
    expected = {doc.id: len(found.relations) for doc, found in zip(docs[:6], extractor.annotate(docs[:6]), strict=True)}
    assert {row["id"]: len(row["relations"]) for row in out} == expected
    assert sum(expected.values()) > 0
    related = next(row for row in out if row["relations"])
    assert [argument["role"] for argument in related["relations"][0]["arguments"]] == ["Protein", "Location"]


def test_models_of_other_kinds_are_refused(session: SparkSession) -> None:
    df = session.createDataFrame([], "id string, text string")
    with pytest.raises(ConfigError, match="finds no relations"):
        spark.relate(df, "genia")
    with pytest.raises(ConfigError, match="align joins the notes of a patient"):
        spark.tag(df, "genia", align="recall")
