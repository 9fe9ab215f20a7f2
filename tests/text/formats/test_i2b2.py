"""i2b2 2014 XML and MEDDOCAN."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaffinch.errors import LimitError
from chaffinch.text import Document, Span
from chaffinch.text.formats import ReadOptions, read, write
from tests.text.formats.annotated import CANARY, annotated, legal_in_xml, refusal
from tests.text.formats.roundtrip import assert_kept, assert_kept_or_reported, through
from tests.text.strategies import TEXTS, corpora, documents, simple_documents

BOTH = pytest.mark.parametrize("form", ["i2b2", "meddocan"])
XML_TEXTS = TEXTS.map(legal_in_xml)

ENGLISH = """<?xml version="1.0" encoding="UTF-8" ?>
<deIdi2b2>
<TEXT><![CDATA[Record date: 2071-03-09

Ms. Ada Quill, 61, seen at R&D <East> by Dr. Penn.
]]></TEXT>
<TAGS>
<DATE id="P0" start="13" end="23" text="2071-03-09" TYPE="DATE" comment="" />
<NAME id="P1" start="29" end="38" text="Ada Quill" TYPE="PATIENT" comment="" />
<AGE id="P2" start="40" end="42" text="61" TYPE="AGE" comment="" />
<LOCATION id="P3" start="52" end="62" text="R&amp;D &lt;East&gt;" TYPE="HOSPITAL" comment="" />
<NAME id="P4" start="70" end="74" text="Penn" TYPE="DOCTOR" comment="" />
</TAGS>
</deIdi2b2>
"""
SPANISH = """<?xml version='1.0' encoding='UTF-8'?>
<MEDDOCAN>
  <TEXT><![CDATA[Nombre: Ada Peña. Edad: 61 años.]]></TEXT>
  <TAGS>
    <NAME id="T1" start="8" end="16" text="Ada Peña" TYPE="NOMBRE_SUJETO_ASISTENCIA" comment=""/>
    <AGE id="T2" start="24" end="31" text="61 años" TYPE="EDAD_SUJETO_ASISTENCIA" comment=""/>
  </TAGS>
</MEDDOCAN>
"""


@BOTH
@given(docs=corpora(documents))
def test_any_document_is_kept_or_reported(form: str, docs: list[Document]) -> None:
    if docs:
        assert_kept_or_reported(docs, form)


@BOTH
@given(docs=corpora(annotated, texts=XML_TEXTS))
def test_spans_are_kept_on_any_legal_text(form: str, docs: list[Document]) -> None:
    if docs:
        assert_kept(docs, form)


@BOTH
@given(docs=corpora(simple_documents))
def test_simple_documents_are_kept(form: str, docs: list[Document]) -> None:
    if docs:
        assert_kept(docs, form)


@given(annotated(texts=XML_TEXTS, name="117-0{}"), st.sampled_from(["117", "118", None]))
def test_the_patient_is_in_the_name_or_reported(doc: Document, group: str | None) -> None:
    back, losses = through([replace(doc, group=group)], "i2b2")
    assert [one.group for one in back] == ["117"]
    assert bool(losses) == (group != "117")


def test_i2b2_is_recognised_read_and_written_back_to_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "220-03.xml").write_bytes(ENGLISH.encode())
    how = ReadOptions()
    (doc,) = read(tmp_path / "in", how=how)
    assert (doc.id, doc.group, dict(doc.meta)) == ("220-03", "220", {})
    assert doc.layers["gold"] == (
        Span(13, 23, "DATE"),
        Span(29, 38, "PATIENT"),
        Span(40, 42, "AGE"),
        Span(52, 62, "HOSPITAL"),
        Span(70, 74, "DOCTOR"),
    )
    assert not how.losses
    assert not write([doc], tmp_path / "out", format="i2b2")
    assert (tmp_path / "out" / "220-03.xml").read_bytes() == ENGLISH.encode()


def test_meddocan_is_recognised_read_and_written_back_to_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "S0004-06-1.xml").write_bytes(SPANISH.encode())
    (doc,) = read(tmp_path / "in")
    assert doc.group is None
    assert doc.layers["gold"] == (Span(8, 16, "NOMBRE_SUJETO_ASISTENCIA"), Span(24, 31, "EDAD_SUJETO_ASISTENCIA"))
    assert not write([doc], tmp_path / "out", format="meddocan")
    assert (tmp_path / "out" / "S0004-06-1.xml").read_bytes() == SPANISH.encode()


@pytest.mark.parametrize(("form", "content"), [("meddocan", ENGLISH), ("i2b2", SPANISH)])
def test_each_reads_the_files_of_the_other(tmp_path: Path, form: str, content: str) -> None:
    (tmp_path / "a.xml").write_text(content, encoding="utf-8")
    assert [doc.layers for doc in read(tmp_path, format=form)] == [doc.layers for doc in read(tmp_path)]


def test_an_unusual_element_name_is_kept_and_comments_are_counted(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    odd = ENGLISH.replace("<NAME", "<PERSON").replace('TYPE="AGE" comment=""', 'TYPE="AGE" comment="over 60"')
    (tmp_path / "in" / "1.xml").write_text(odd)
    how = ReadOptions()
    (doc,) = read(tmp_path / "in", how=how)
    assert doc.meta == {"tags": {"PATIENT": "PERSON", "DOCTOR": "PERSON"}}
    assert how.losses.counts == {"comments of tags": 1}
    assert not write([doc], tmp_path / "out", format="i2b2")
    assert "<PERSON id=" in (tmp_path / "out" / "1.xml").read_text()


def test_characters_that_xml_has_not_are_replaced_in_place_and_reported() -> None:
    doc = Document.make("a\x00b\x07c", id="a", layers={"gold": [Span(4, 5, "ID")]})
    (back,), losses = through([doc], "i2b2")
    assert (back.text, back.layers) == ("a\ufffdb\ufffdc", doc.layers)
    assert losses.counts == {"characters XML cannot hold (written as U+FFFD)": 2}


def _record(tag: str, *, text: str = f"Dr. {CANARY} here") -> str:
    return f"<deIdi2b2>\n<TEXT><![CDATA[{text}]]></TEXT>\n<TAGS>\n{tag}\n</TAGS>\n</deIdi2b2>\n"


@pytest.mark.parametrize(
    ("content", "line", "says"),
    [
        (_record('<NAME start="4" end="99" text="x" TYPE="DOCTOR"/>'), 4, "does not fit"),
        (_record('<NAME start="0" end="3" text="Dr!" TYPE="DOCTOR"/>'), 4, "not the one at that place"),
        (_record('<NAME start="0" text="Dr." TYPE="DOCTOR"/>'), 4, "end is not a whole number"),
        (_record('<NAME start="-1" end="3" text="Dr." TYPE="DOCTOR"/>'), 4, "start is not a whole number"),
        (_record("<NAME"), 5, "not well-formed XML"),
        (_record("<NAME></PENN>"), 4, "not well-formed XML (ERR_TAG_NAME_MISMATCH)"),
        (_record(f"&{CANARY};"), 4, "not well-formed XML"),
        (f"<record>{CANARY}</record>", 1, "has no <TEXT>"),
        (b"<a>\n<TEXT>\xff</TEXT></a>", 2, "not well-formed XML (ERR_INVALID_ENCODING)"),
        ("", 1, "not well-formed XML"),
    ],
)
@BOTH
def test_a_bad_file_is_refused_with_its_place(
    tmp_path: Path, form: str, content: str | bytes, line: int, says: str
) -> None:
    error = refusal(tmp_path, form, a_xml=content)
    assert error.line == line
    assert says in str(error)


BOMB = '<!DOCTYPE a [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;">]>\n<a><TEXT>&b;</TEXT></a>'
LEVELS = "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in pairwise("abcdefghij"))
LAUGHS = f'<!DOCTYPE a [<!ENTITY a "lol">{LEVELS}]>\n<a x="&j;"><TEXT>&j;</TEXT></a>'
OUTSIDE = '<!DOCTYPE a [<!-- <a> --><!ENTITY x SYSTEM "file:///etc/hostname">]>\n<a><TEXT>&x;</TEXT></a>'


@pytest.mark.parametrize("content", [BOMB, LAUGHS, OUTSIDE, '<?xml version="1.0" encoding="UTF-16"?>' + BOMB])
def test_entities_are_refused_before_they_are_read(tmp_path: Path, content: str) -> None:
    raw = content.encode("utf-16" if "UTF-16" in content else "utf-8")
    assert "declares entities" in str(refusal(tmp_path, "i2b2", a_xml=raw))


def test_the_limit_on_size_holds(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(ENGLISH)
    with pytest.raises(LimitError, match="the limit is 10"):
        list(read(tmp_path, how=ReadOptions(max_chars=10)))
