"""BioC XML and JSON; the bioc library is the independent reader and writer."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bioc import biocjson, biocxml
from hypothesis import given
from hypothesis import strategies as st

from chaffinch.errors import DataError, LimitError
from chaffinch.text import Argument, Document, Relation, Span
from chaffinch.text.formats import ReadOptions, read, write
from tests.text.formats.annotated import CANARY, annotated, legal_in_xml, refusal
from tests.text.formats.roundtrip import assert_kept, assert_kept_or_reported, exact, through
from tests.text.strategies import TEXTS, corpora, documents, simple_documents

BOTH = pytest.mark.parametrize("form", ["bioc-xml", "bioc-json"])

GOLDEN = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE collection SYSTEM "BioC.dtd">
<collection>
  <source>PubTator</source><date/><key>BioC.key</key>
  <document>
    <id>227508</id>
    <infon key="journal">Life Sci</infon>
    <passage>
      <infon key="type">title</infon>
      <offset>0</offset>
      <text>Naloxone &amp; clonidine.</text>
      <annotation id="2">
        <infon key="identifier">MESH:D009270</infon>
        <infon key="type">Chemical</infon>
        <location offset="0" length="8"/>
        <text>Naloxone</text>
      </annotation>
    </passage>
    <passage>
      <infon key="type">abstract</infon>
      <offset>22</offset>
      <sentence>
        <offset>22</offset>
        <text>Severe and mild pain.</text>
        <annotation id="3">
          <infon key="type">Disease</infon>
          <infon key="annotator">A1</infon>
          <location offset="22" length="6"/>
          <location offset="38" length="4"/>
          <text>Severe pain</text>
        </annotation>
      </sentence>
      <sentence><offset>44</offset><text>End.</text></sentence>
    </passage>
    <relation id="R1">
      <infon key="type">CID</infon>
      <node refid="2" role="Chemical"/>
      <node refid="3" role="Disease"/>
    </relation>
    <relation id="R2">
      <infon key="relation">CID</infon>
      <infon key="Chemical">MESH:D009270</infon>
      <infon key="Disease">D000000</infon>
    </relation>
  </document>
</collection>
"""


@BOTH
@given(docs=corpora(documents))
def test_any_document_is_kept_or_reported(form: str, docs: list[Document]) -> None:
    assert_kept_or_reported(docs, form)


@BOTH
@given(docs=corpora(simple_documents))
def test_simple_documents_are_kept(form: str, docs: list[Document]) -> None:
    assert_kept(docs, form)


@st.composite
def rich(draw: st.DrawFn, *, number: int = 0, texts: st.SearchStrategy[str] = TEXTS) -> Document:
    """A document with concepts, scores, relations, a patient and meta."""
    doc = draw(annotated(number=number, texts=texts, concepts=["", "MESH:D1", "D1|D2"], related=True))
    spans = [replace(span, score=0.1, source="rules") for span in doc.layers["gold"]]
    again = {span: span for span in spans}
    mention = [
        replace(one, arguments=tuple(replace(a, spans=tuple(again[s] for s in a.spans)) for a in one.arguments))
        for one in doc.relations
    ]
    concept = Relation("CID", (Argument("Drug", tuple(spans[:2]), "D1"), Argument("Effect", tuple(spans[2:]), "D7")))
    relations = (*mention, *([concept] if spans else []))
    return replace(doc.with_layer("gold", spans), group="patient-1", meta={"ward": "7B"}, relations=relations)


@given(corpora(rich))
def test_json_keeps_scores_concepts_relations_patients_and_meta(docs: list[Document]) -> None:
    assert_kept(docs, "bioc-json")


@given(corpora(rich, texts=TEXTS.map(legal_in_xml)))
def test_xml_keeps_the_same_on_any_legal_text(docs: list[Document]) -> None:
    assert_kept(docs, "bioc-xml")


def _check_golden(doc: Document, how: ReadOptions) -> None:
    drug, pain = Span(0, 8, "Chemical"), Span(22, 42, "Disease")
    assert doc.text == "Naloxone & clonidine.\nSevere and mild pain. End."
    assert doc.layers == {"gold": (drug, pain)}
    assert doc.layers["gold"][0].concept == "MESH:D009270"
    assert doc.meta == {
        "journal": "Life Sci",
        "passages": [
            {"offset": 0, "length": 21, "infons": {"type": "title"}},
            {"offset": 22, "length": 26, "infons": {"type": "abstract"}},
        ],
    }
    assert doc.relations == (
        Relation("CID", (Argument("Chemical", (drug,)), Argument("Disease", (pain,)))),
        Relation("CID", (Argument("Chemical", (drug,), "MESH:D009270"), Argument("Disease", (), "D000000"))),
    )
    assert how.losses.counts == {
        "sentences of passages": 2,
        "holes of discontinuous spans (read as the span that covers them)": 1,
        "other infons of annotations": 1,
    }


def test_xml_is_recognised_and_read_to_exact_spans(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(GOLDEN)
    how = ReadOptions()
    (doc,) = read(tmp_path / "a.xml", how=how)
    _check_golden(doc, how)


@pytest.mark.parametrize("wrap", ["collection", "list", "pubtator3", "lines"])
def test_json_is_recognised_and_read_to_the_same(tmp_path: Path, wrap: str) -> None:
    collection = biocxml.loads(GOLDEN)
    content: dict[str, Any] = json.loads(biocjson.dumps(collection))
    document = content["documents"][0]
    shapes: dict[str, Any] = {"collection": content, "list": [content], "pubtator3": {"PubTator3": [document]}}
    lines = [json.dumps(document)] * 2 if wrap == "lines" else [json.dumps(shapes[wrap], indent=2)]
    (tmp_path / "a.json").write_text("\n".join(lines))
    how = ReadOptions()
    first = next(iter(read(tmp_path / "a.json", how=how)))
    _check_golden(first, how)


@BOTH
def test_passages_come_back_and_the_bioc_library_reads_them(tmp_path: Path, form: str) -> None:
    (tmp_path / "a.xml").write_text(GOLDEN)
    (doc,) = read(tmp_path / "a.xml")
    (back,), losses = through([doc], form)
    assert not losses
    assert exact(back) == exact(doc)
    write([doc], tmp_path / "out", format=form)
    written = (tmp_path / "out").read_text(encoding="utf-8")
    collection = biocxml.loads(written) if form == "bioc-xml" else biocjson.loads(written)
    (document,) = collection.documents
    assert [(p.offset, p.text, p.infons["type"]) for p in document.passages] == [
        (0, "Naloxone & clonidine.", "title"),
        (22, "Severe and mild pain. End.", "abstract"),
    ]
    found = [[(a.text, a.total_span.offset, a.infons["type"]) for a in p.annotations] for p in document.passages]
    assert found == [[("Naloxone", 0, "Chemical")], [("Severe and mild pain", 22, "Disease")]]
    assert [len(relation.nodes) for relation in document.relations] == [2, 1]


def test_passages_that_no_longer_fit_the_text_are_reported() -> None:
    meta = {"passages": [{"offset": 0, "length": 3, "infons": {"type": "title"}}]}
    doc = Document.make("longer", id="a", meta=meta, layers={"gold": []})
    (back,), losses = through([doc], "bioc-json")
    assert (back.text, dict(back.meta), losses.counts) == ("longer", {}, {"meta fields": 1})


def _json(annotation: dict[str, Any], **passage: Any) -> str:
    text = f"Dr. {CANARY} here"
    one = {"offset": 0, "infons": {}, "text": text, "annotations": [annotation], **passage}
    return json.dumps({"source": "", "infons": {}, "documents": [{"id": "a", "infons": {}, "passages": [one]}]})


def _annotation(offset: Any = 0, length: Any = 3, text: str = "Dr.", kind: str = "type") -> dict[str, Any]:
    return {"id": "1", "infons": {kind: "X"}, "text": text, "locations": [{"offset": offset, "length": length}]}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (_json(_annotation(length=99)), "document 1: annotation 1: the range [0, 99) does not fit"),
        (_json(_annotation(text="Dr!")), "not the one at that place"),
        (_json(_annotation(offset="x")), "not a whole number"),
        (_json(_annotation(kind="kind")), 'no infon "type"'),
        (_json(_annotation(), offset=-1), "not a whole number"),
        (_json(_annotation(), offset=10**9), "the limit is"),
        (_json(_annotation(length=99) | {"line": CANARY}), "does not fit"),
        (_json(_annotation(), text=7), '"text" must be a string'),
        (_json(_annotation(), annotations={CANARY: 1}), '"annotations" must be a list'),
        (_json(_annotation(), infons=[CANARY]), '"infons" must be an object'),
        ('{"documents": [{"text": "' + CANARY, "not valid JSON"),
        (f'{{"documents": ["{CANARY}"]}}', "something other than documents"),
        (b'{"documents": [{"text": "\xff"}]}', "not valid UTF-8"),
    ],
)
def test_bad_json_is_refused(tmp_path: Path, content: str | bytes, says: str) -> None:
    assert says in str(refusal(tmp_path, "bioc-json", a_json=content))


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ('length="8"', 'length="800"', 12, "document 1: annotation 1: the range [0, 800) does not fit"),
        ('length="8"', "", 12, "the length is not a whole number"),
        ("<text>Naloxone</text>", "<text>Naloxon</text>", 12, "not the one at that place"),
        ("<offset>22", "<offset>3", 19, "starts inside the 21 characters"),
        ("<offset>22", f"<offset>{CANARY}", 19, "not a whole number"),
        ("</passage>", f"</{CANARY}>", 18, "not well-formed XML"),
        ("<collection>", "<corpus>", 1, "another root element"),
        ('"BioC.dtd"', '"BioC.dtd" [<!ENTITY a "b">]', 1, "declares entities"),
    ],
)
def test_bad_xml_is_refused_with_its_place(tmp_path: Path, old: str, new: str, line: int, says: str) -> None:
    text = GOLDEN.replace("End.", CANARY)
    error = refusal(tmp_path, "bioc-xml", a_xml=text.replace(old, new, 1))
    assert says in str(error)
    assert error.line == line


@BOTH
def test_an_empty_collection_has_no_documents_and_another_root_is_refused(tmp_path: Path, form: str) -> None:
    write([], tmp_path / "out", format=form)
    assert list(read(tmp_path / "out")) == []
    (tmp_path / "other.xml").write_text("<corpus><document/></corpus>")
    with pytest.raises(DataError, match="another root element"):
        list(read(tmp_path / "other.xml", format="bioc-xml"))


def test_documents_deeper_down_are_read_one_by_one(tmp_path: Path) -> None:
    start, end = GOLDEN.index("<document>"), GOLDEN.index("</collection>")
    (tmp_path / "a.xml").write_text(f"<collection><part>{GOLDEN[start:end] * 3}</part></collection>")
    assert [doc.id for doc in read(tmp_path / "a.xml")] == ["227508"] * 3


def test_a_far_offset_costs_no_memory(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(GOLDEN.replace("<offset>0", "<offset>999999999999", 1))
    with pytest.raises(LimitError):
        list(read(tmp_path / "a.xml"))
