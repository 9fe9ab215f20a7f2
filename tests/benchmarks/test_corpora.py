"""The benchmark that compares what is read with what is stated."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from recipes.corpora import READERS

from benchmarks import corpora
from chaffinch.errors import ConfigError
from chaffinch.text import Document, Relation, Span
from tests.recipes.files import gz


@dataclass(frozen=True)
class Options:
    data: Path | None
    only: str | None = None


def test_without_data_the_message_says_how_to_name_it() -> None:
    with pytest.raises(ConfigError, match="give --data DIR or set CHAFFINCH_DATA"):
        corpora.run(Options(None))


def test_an_unknown_corpus_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"unknown corpus 'gaad'; choose one of .*\bgad\b"):
        corpora.run(Options(tmp_path, "gaad"))


def test_a_count_that_differs_lowers_the_bar(tmp_path: Path) -> None:
    (tmp_path / "eu-adr").mkdir()
    rows = [
        {"id": f"t{i}", "text": "@GENE$ and @DISEASE$", "relation": [{"relation_type": kind}]}
        for i, kind in enumerate(["positive"] * 262 + ["negative"] * 92)
    ]
    gz(tmp_path / "eu-adr" / "fold_0.json.gz", "".join(json.dumps(row) + "\n" for row in rows))
    result = corpora.run(Options(tmp_path, "eu-adr"))
    assert [(row["what"], row["expected"], row["found"], row["equal"]) for row in result["rows"]] == [
        ("sentences", 355, 354, False),
        ("documents with relations", 262, 262, True),
        ("documents without relations", 93, 92, False),
    ]
    (bar,) = result["bars"]
    assert (bar["id"], bar["value"], bar["floor"], bar["goal"], bar["better"]) == ("corpora_equal", 1, 3, 3, "higher")


def test_a_corpus_that_is_absent_is_reported_without_its_path(tmp_path: Path) -> None:
    rows = corpora.run(Options(tmp_path, "aci-phi"))["rows"]
    assert {row["equal"] for row in rows} == {False}
    assert rows[0]["found"] == "none"
    assert rows[1]["found"] == "does not exist; check the path"


def test_every_reader_is_compared() -> None:
    assert {part.corpus for part in corpora.PARTS if not part.format} == set(READERS)


def test_pairs_are_counted_inside_sentences() -> None:
    spans = [Span(0, 1, "P"), Span(2, 3, "P"), Span(2, 5, "P"), Span(6, 7, "Q"), Span(8, 9, "Q")]
    doc = Document.make(
        "A B C\nD E",
        layers={"gold": spans, "source:rules": []},
        relations=[Relation("binds", ())],
        tokens=[(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)],
        sentences=[(0, 5), (6, 9)],
        meta={"sections": [["TEXT", 0, 5]]},
    )
    tally = corpora.Tally()
    tally.add(doc)
    tally.add(Document.make("D E"))
    found = tally.counts()
    assert (found["pairs"], found["pairs without relation"], found["relation binds"]) == (3 + 1, 3, 1)
    assert (found["documents"], found["documents with entities"], found["documents without relations"]) == (2, 1, 1)
    assert (found["sentences"], found["tokens"], found["words"], found["words in TEXT"]) == (3, 7, 7, 3)
    assert (found["entities"], found["entity P"], found["entity Q"], found["sources"]) == (5, 3, 2, 1)
