"""The GENIA treebank."""

from __future__ import annotations

from pathlib import Path

import pytest
from recipes.corpora import genia_treebank

from chaffinch.errors import DataError
from chaffinch.text import Span
from tests.recipes.files import tar_gz

XML = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE Annotation>
<Annotation><PubmedArticle><PMID>42</PMID><Article>
<ArticleTitle><sentence id="S1"><cons cat="NP"><tok cat="NN">Foo- bar</tok></cons></sentence></ArticleTitle>
<Abstract><AbstractText><sentence id="S2"><cons cat="S"><cons cat="NP" id="i1" role="SBJ"><cons cat="NP">\
<tok cat="NN">X</tok></cons> <cons cat="PRN"><tok cat="LRB">(</tok><cons cat="NP"><tok cat="NN">Y</tok></cons>\
<tok cat="RRB">)</tok></cons></cons> <cons cat="VP"><tok cat="VBD">fell</tok> <cons cat="NP" ref="i1" null="NONE">\
</cons></cons><tok cat="PERIOD">.</tok></cons></sentence>
</AbstractText></Abstract></Article></PubmedArticle></Annotation>
"""


def corpus(path: Path, xml: str = XML) -> Path:
    tar_gz(path / "genia.tar.gz", {"G/42.xml": xml, "G/README": "about"})
    (path / "mclosky_train.pmids").write_text("00000041\n")
    (path / "mclosky_future_use.pmids").write_text("00000042\n")
    return path


def test_tokens_sentences_and_parts_of_speech_are_those_of_the_trees(tmp_path: Path) -> None:
    (doc,) = genia_treebank.read(corpus(tmp_path))
    assert doc.text == "Foo- bar\nX (Y) fell ."
    assert doc.words() == ["Foo- bar", "X", "(", "Y", ")", "fell", "."]
    assert doc.meta["columns"] == {"1": ["NN", "NN", "LRB", "NN", "RRB", "VBD", "PERIOD"]}
    assert doc.sentences.tolist() == [[0, 8], [9, 21]]
    assert (doc.id, doc.given, doc.meta["split"]) == ("42", True, "future_use")


def test_the_constituents_keep_nesting_and_null_elements(tmp_path: Path) -> None:
    (doc,) = genia_treebank.read(corpus(tmp_path))
    assert doc.meta["constituents"] == [
        [-1, "NP", 0, 1, {}],
        [-1, "S", 1, 7, {}],
        [1, "NP", 1, 5, {"id": "i1", "role": "SBJ"}],
        [2, "NP", 1, 2, {}],
        [2, "PRN", 2, 5, {}],
        [4, "NP", 3, 4, {}],
        [1, "VP", 5, 6, {}],
        [6, "NP", 6, 6, {"ref": "i1", "null": "NONE"}],
    ]
    assert doc.layer("constituents") == (
        Span(0, 8, "NP"),
        Span(9, 10, "NP"),
        Span(9, 14, "NP"),
        Span(9, 21, "S"),
        Span(11, 14, "PRN"),
        Span(12, 13, "NP"),
        Span(15, 19, "VP"),
    )


def test_an_archive_alone_has_no_split(tmp_path: Path) -> None:
    (doc,) = genia_treebank.read(corpus(tmp_path) / "genia.tar.gz")
    assert "split" not in doc.meta


@pytest.mark.parametrize(("good", "bad"), [("<PMID>42</PMID>", ""), ('<tok cat="VBD">fell</tok>', "<b>fell</b>")])
def test_a_broken_file_is_refused_by_name(tmp_path: Path, good: str, bad: str) -> None:
    with pytest.raises(DataError, match=r"42\.xml") as caught:
        list(genia_treebank.read(corpus(tmp_path, XML.replace(good, bad))))
    assert "fell" not in str(caught.value)
