"""UIMA CAS JSON and XMI, as INCEpTION writes and reads them; DKPro's own library reads ours and writes what we read."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import cassis
import pytest
from hypothesis import given, settings

from chaffinch.text import Document, Span
from chaffinch.text.formats import ReadOptions, find_format, read, write
from chaffinch.text.formats.walk import entries
from tests.text.formats.refusal import CANARY, assert_refused
from tests.text.formats.roundtrip import through
from tests.text.strategies import documents

ENTITY = "de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity"
TOKEN = "de.tudarmstadt.ukp.dkpro.core.api.segmentation.type.Token"
TEXT = f"🧑‍⚕️ Anna\r\nsaw cafe\u0301 Leeds\t😀 {CANARY}."
SPANS = (
    Span(TEXT.index("Anna"), TEXT.index("Anna") + 4, "PATIENT", concept="http://x/1"),
    Span(TEXT.index("Leeds"), TEXT.index("Leeds") + 5, "CITY"),
    Span(TEXT.index("😀"), TEXT.index("😀") + 1, "OTHER"),
)
DOC = Document.make(TEXT, id="n1", layers={"gold": SPANS})
both = pytest.mark.parametrize("form", ["uima-json", "uima-xmi"])
SUFFIX = {"uima-json": ".json", "uima-xmi": ".xmi"}


def dkpro_types() -> Any:
    """The types that INCEpTION has from the start; the library still opens its file in an old way."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return cassis.load_dkpro_core_typesystem()


def load(path: Path) -> Any:
    """Read a file with DKPro's library."""
    if path.suffix == ".json":
        with path.open("rb") as stream:
            return cassis.load_cas_from_json(stream)
    with path.open("rb") as stream:
        return cassis.load_cas_from_xmi(stream, typesystem=dkpro_types())


def save(cas: Any, path: Path) -> None:
    """Write a file with DKPro's library."""
    if path.suffix == ".json":
        cas.to_json(path)
    else:
        cas.to_xmi(path)


@both
def test_the_official_library_reads_what_is_written(form: str, tmp_path: Path) -> None:
    write([DOC], tmp_path / "out", format=form)
    cas = load(tmp_path / "out" / f"n1{SUFFIX[form]}")
    assert cas.sofa_string == TEXT
    found = [(one.get_covered_text(), one.value, one.identifier) for one in cas.select(ENTITY)]
    assert found == [("Anna", "PATIENT", "http://x/1"), ("Leeds", "CITY", None), ("😀", "OTHER", None)]


@both
def test_what_the_official_library_writes_is_read(form: str, tmp_path: Path) -> None:
    types = dkpro_types()
    custom = types.create_type("webanno.custom.Phi", supertypeName="uima.tcas.Annotation")
    types.create_feature(custom, "kind", "uima.cas.String")
    flag = types.create_type("webanno.custom.Flag", supertypeName="uima.tcas.Annotation")
    cas = cassis.Cas(typesystem=types)
    cas.sofa_string, cas.sofa_mime = TEXT, "text/plain"
    entity, token = types.get_type(ENTITY), types.get_type(TOKEN)
    cas.add(entity(begin=SPANS[0].start, end=SPANS[0].end, value="PATIENT", identifier="http://x/1"))
    cas.add(custom(begin=SPANS[1].start, end=SPANS[1].end, kind="CITY"))
    cas.add(flag(begin=SPANS[2].start, end=SPANS[2].end))
    cas.add(entity(begin=0, end=1))
    for start, end in Document.make(TEXT).tokens.tolist():
        cas.add(token(begin=start, end=end))
    save(cas, tmp_path / f"n1{SUFFIX[form]}")
    how = ReadOptions()
    (doc,) = read(tmp_path / f"n1{SUFFIX[form]}", how=how)
    assert (doc.id, doc.text) == ("n1", TEXT)
    assert [(span.start, span.end, span.label, span.concept) for span in doc.layer()] == [
        (SPANS[0].start, SPANS[0].end, "PATIENT", "http://x/1"),
        (SPANS[1].start, SPANS[1].end, "CITY", ""),
        (SPANS[2].start, SPANS[2].end, "Flag", ""),
    ]
    assert how.losses.counts == {"spans without a label": 1}


def test_relations_and_other_layers_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a.xmi").write_text(
        '<?xml version="1.0" encoding="UTF-8"?><xmi:XMI xmlns:xmi="http://www.omg.org/XMI" '
        'xmlns:cas="http:///uima/cas.ecore" xmlns:custom="http:///webanno/custom.ecore" '
        'xmlns:pos="http:///de/tudarmstadt/ukp/dkpro/core/api/lexmorph/type/pos.ecore" xmi:version="2.0">'
        '<cas:NULL xmi:id="0"/><pos:POS xmi:id="2" sofa="12" begin="0" end="4" PosValue="NN"/>'
        '<custom:Relation xmi:id="68" sofa="12" begin="5" end="7" Governor="2" Dependent="2" value="nsubj"/>'
        '<custom:Phi xmi:id="3" sofa="12" begin="0" end="4" kind="NAME" note="seen"/>'
        '<custom:Phi xmi:id="4" sofa="12" begin="4" end="4" kind="NAME"/>'
        '<custom:Phi xmi:id="5" sofa="13" begin="0" end="1" kind="NAME"/>'
        '<cas:Sofa xmi:id="13" sofaNum="2" sofaID="other" sofaString="x"/>'
        '<cas:Sofa xmi:id="12" sofaNum="1" sofaID="_InitialView" sofaString="This is a test ."/>'
        '<cas:View sofa="12" members="2 3"/></xmi:XMI>'
    )
    how = ReadOptions()
    (doc,) = read(tmp_path / "a.xmi", how=how)
    assert doc.layer() == (Span(0, 4, "NAME"),)
    assert how.losses.counts == {
        "annotations of other layers": 1,
        "relations": 1,
        "features of annotations": 1,
        "annotations without a character": 1,
        "annotations of other views": 1,
    }


@both
@settings(max_examples=40)
@given(doc=documents())
def test_spans_are_at_their_places_whatever_the_text(form: str, doc: Document) -> None:
    (back,), losses = through([Document.make(doc.text, id="d", layers={"gold": doc.layer()})], form)
    if not losses.counts:
        assert (back.text, back.layer()) == (doc.text, doc.layer())


@both
def test_an_offset_inside_a_character_is_refused(form: str, tmp_path: Path) -> None:
    write([DOC], tmp_path / "out", format=form)
    file = tmp_path / "out" / f"n1{SUFFIX[form]}"
    place = len(TEXT[: SPANS[2].start].encode("utf-16-le")) // 2
    old, new = (f'"begin":{place}', f'"begin":{place + 1}')
    if form == "uima-xmi":
        old, new = (f'begin="{place}"', f'begin="{place + 1}"')
    content = file.read_text()
    assert content.count(old) == 1
    assert_refused(content.replace(old, new), form, "inside a character", line=None)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (f'{{"%TYPES":{{"{CANARY}":1}}}}', "FEATURE_STRUCTURES"),
        (f'{{"%TYPES":{{"{CANARY}":1}},"%FEATURE_STRUCTURES":[],"%VIEWS":{{}}}}', "no text"),
        (f'{{"%FEATURE_STRUCTURES":[{{"%ID":1,"%TYPE":"uima.cas.Sofa","sofaString":["{CANARY}"]}}]}}', "no text"),
        (f'{{"%TYPES":{{}},"%FEATURE_STRUCTURES":["{CANARY}"]}}', "FEATURE_STRUCTURES"),
        (f'{{"%TYPES":"{CANARY}"', "not valid JSON"),
    ],
)
def test_broken_files_are_refused(content: str, says: str) -> None:
    assert_refused(content, "uima-json", says, line=None)


def test_numbers_that_are_none_are_refused() -> None:
    rows = [
        {"%ID": 1, "%TYPE": "uima.cas.Sofa", "sofaID": "_InitialView", "sofaString": CANARY},
        {"%ID": 2, "%TYPE": ENTITY, "@sofa": 1, "begin": CANARY, "end": 3, "value": CANARY},
    ]
    content = {"%TYPES": {}, "%FEATURE_STRUCTURES": rows, "%VIEWS": {"_InitialView": {"%SOFA": 1, "%MEMBERS": [2]}}}
    assert_refused(json.dumps(content), "uima-json", "whole number", line=None)
    rows[1]["begin"] = 99
    assert_refused(json.dumps(content), "uima-json", "does not fit", line=None)


@both
def test_the_form_is_recognised(form: str, tmp_path: Path) -> None:
    write([DOC], tmp_path / "out", format=form)
    assert find_format(entries(tmp_path / "out"), tmp_path).name == form
