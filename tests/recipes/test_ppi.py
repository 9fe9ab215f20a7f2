"""The unified PPI XML."""

from __future__ import annotations

from pathlib import Path

import pytest
from recipes.corpora import ppi

from chaffinch.errors import DataError
from chaffinch.text import Argument, Relation, Span
from tests.recipes.files import gz

XML = """<?xml version="1.0" encoding="UTF-8"?>
<corpus source="BioInfer"><document id="B.d0" origId="123" set="train">
<sentence charOffset="0-12" id="B.d0.s0" text="Abc is here."/>
<sentence charOffset="13-47" id="B.d0.s1" text="Heart and liver foo binds 5&#181; Abc. ">
<entity charOffset="0-5,16-19" id="B.d0.s1.e0" text="Heart foo" type="Gene"/>
<entity charOffset="10-19" id="B.d0.s1.e1" text="liver foo" type="Gene"/>
<entity charOffset="29-32" id="B.d0.s1.e2" text="Abc" type="Individual_protein"/>
<interaction e1="B.d0.s1.e2" e2="B.d0.s1.e0" id="B.d0.s1.i0" type="PPI"/>
</sentence></document></corpus>
"""


def test_sentences_stand_at_their_offsets_and_pieces_are_covered_by_one_span(tmp_path: Path) -> None:
    (doc,) = ppi.read(gz(tmp_path / "B-train.xml.gz", XML))
    assert doc.text == "Abc is here. Heart and liver foo binds 5µ Abc. "
    assert doc.sentences.tolist() == [[0, 12], [13, 47]]
    heart, liver, abc = Span(13, 32, "protein"), Span(23, 32, "protein"), Span(42, 45, "protein")
    assert doc.layer("gold") == (heart, liver, abc)
    assert doc.layer("types") == (
        Span(13, 32, "Gene"),
        Span(23, 32, "Gene"),
        Span(42, 45, "Individual_protein"),
    )
    assert doc.meta["fragments"] == [[[13, 18], [29, 32]]]
    assert (doc.id, doc.meta["corpus"], doc.meta["split"], doc.meta["pmid"]) == ("B.d0", "BioInfer", "train", "123")


def test_an_interaction_keeps_the_order_of_the_file(tmp_path: Path) -> None:
    (doc,) = ppi.read(gz(tmp_path / "B-train.xml.gz", XML))
    first, second = Argument("e1", (Span(42, 45, "protein"),)), Argument("e2", (Span(13, 32, "protein"),))
    assert doc.relations == (Relation("PPI", (first, second)),)


def test_types_that_are_identifiers_become_concepts(tmp_path: Path) -> None:
    file = gz(tmp_path / "H.xml.gz", XML.replace("BioInfer", "HPRD50").replace("Individual_protein", "pm7"))
    (doc,) = ppi.read(file)
    assert [span.concept for span in doc.layer("gold")] == ["Gene", "Gene", "pm7"]
    assert list(doc.layers) == ["gold"]


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ('charOffset="29-32"', 'charOffset="28-31"'),  # not where its text is
        ('charOffset="29-32"', 'charOffset="29-99"'),
        ('charOffset="29-32"', 'charOffset="here"'),
        ('charOffset="13-47"', 'charOffset="11-45"'),  # overlaps the sentence before
        ('charOffset="13-47"', 'charOffset="13-46"'),  # not as long as the text
        ('e2="B.d0.s1.e0"', 'e2="B.d0.s1.e9"'),
        ('<entity charOffset="29-32" id', "<entity id"),
        ("</corpus>", ""),
    ],
)
def test_a_broken_file_is_refused_by_name_and_without_its_text(tmp_path: Path, good: str, bad: str) -> None:
    assert good in XML
    file = gz(tmp_path / "B.xml.gz", XML.replace(good, bad))
    with pytest.raises(DataError) as caught:
        list(ppi.read(file))
    assert "B.xml.gz" in str(caught.value)
    assert "Abc" not in str(caught.value)
    assert "foo" not in str(caught.value)


def test_a_folder_is_read_file_by_file_and_its_other_files_are_passed_over(tmp_path: Path) -> None:
    gz(tmp_path / "b.xml.gz", XML)
    gz(tmp_path / "a.xml.gz", XML.replace("B.d0", "A.d0"))
    (tmp_path / "README.md").write_text("about")
    assert [doc.id for doc in ppi.read(tmp_path)] == ["A.d0", "B.d0"]


def test_a_folder_without_a_file_of_the_corpus_is_refused(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("about")
    with pytest.raises(DataError, match="holds no PPI XML"):
        list(ppi.read(tmp_path))
