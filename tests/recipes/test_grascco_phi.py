"""GraSCCo_PHI's UIMA CAS JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from recipes.corpora import grascco_phi

from chaffinch.errors import DataError
from chaffinch.text import Span
from tests.recipes.files import tar_gz

SEGMENT = "de.tudarmstadt.ukp.dkpro.core.api.segmentation.type"
TEXT = "Frau Öhm,\n57-jährig."


def record(text: str) -> dict[str, Any]:
    items = [
        {"%TYPE": f"{SEGMENT}.Sentence", "begin": 10, "end": 20},
        {"%TYPE": f"{SEGMENT}.Sentence", "begin": 0, "end": 9},
        *({"%TYPE": f"{SEGMENT}.Token", "begin": a, "end": b} for a, b in [(0, 4), (5, 8), (8, 9), (10, 19), (19, 20)]),
        {"%TYPE": "uima.cas.Sofa", "sofaString": text},
        {"%TYPE": "webanno.custom.PHI", "begin": 10, "end": 12},
        {"%TYPE": "webanno.custom.PHI", "begin": 5, "end": 8, "kind": "NAME_PATIENT"},
        {"%TYPE": "webanno.custom.PHI", "begin": 0, "end": 4, "kind": "NAME_TITLE"},
    ]
    return {"%TYPES": {}, "%FEATURE_STRUCTURES": items, "%VIEWS": {}}


def test_tokens_sentences_and_kinds_are_those_of_the_file(tmp_path: Path) -> None:
    (doc,) = grascco_phi.read(tar_gz(tmp_path / "g.tar.gz", {"d/Muster.txt_phi.json": json.dumps(record(TEXT))}))
    assert (doc.id, doc.text, doc.given) == ("Muster.txt", TEXT, True)
    assert doc.words() == ["Frau", "Öhm", ",", "57-jährig", "."]
    assert doc.sentences.tolist() == [[0, 9], [10, 20]]
    # A span without a kind, inside a token.
    assert doc.layer("gold") == (Span(0, 4, "NAME_TITLE"), Span(5, 8, "NAME_PATIENT"), Span(10, 12, "PHI"))


@pytest.mark.parametrize(
    "content",
    [json.dumps(record(TEXT + "𝔸")), json.dumps(record("Frau")), "{}", "[1]", '{"%FEATURE_STRUCTURES": []}', "Frau"],
)
def test_a_broken_file_is_refused_by_name_and_without_its_text(tmp_path: Path, content: str) -> None:
    with pytest.raises(DataError, match=r"Muster\.txt_phi\.json") as caught:
        list(grascco_phi.read(tar_gz(tmp_path / "g.tar.gz", {"d/Muster.txt_phi.json": content})))
    assert "Frau" not in str(caught.value)
