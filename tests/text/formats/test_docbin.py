"""DocBin: what we write spaCy reads, what it writes we read, and texts, spans and layers come back."""

from __future__ import annotations

import sys
import zlib
from pathlib import Path
from typing import Any

import msgspec
import pytest
import spacy
from hypothesis import given
from spacy.tokens import DocBin, Span

import chaffinch as cf
from chaffinch.errors import DataError, MissingExtraError
from chaffinch.text.formats import ReadOptions, read, write
from chaffinch.text.formats.docbin import DocBinFormat
from chaffinch.text.formats.walk import entries
from tests.text.formats.annotated import CANARY, annotated
from tests.text.formats.roundtrip import assert_kept
from tests.text.strategies import corpora

NOTE = cf.Document.make("Dr. Penn came.", id="n1", layers={"gold": [cf.Span(4, 8, "DOCTOR", concept="P-7")]})


@given(corpora(annotated, concepts=("", "D009270", "a b")))
def test_spans_anywhere_in_any_text_are_kept(docs: list[cf.Document]) -> None:
    assert_kept(docs, "docbin")


def test_notes_with_several_layers_scores_and_patients_are_kept() -> None:
    notes = list(cf.deid.notes(patients=2, seed=4))
    first = notes[0].layer()[0]
    wide = [cf.Span(first.start, first.end, "NAME", 0.5, "rules"), cf.Span(0, first.end, "WIDE")]
    assert_kept([notes[0].with_layer("other", wide), *notes[1:]], "docbin")


def test_spacy_reads_what_we_write(tmp_path: Path) -> None:
    write([NOTE], tmp_path / "ours.spacy")
    (doc,) = DocBin().from_disk(tmp_path / "ours.spacy").get_docs(spacy.blank("en").vocab)
    assert [token.text for token in doc] == ["Dr.", "Penn", "came", "."]
    assert [(ent.text, ent.label_, ent.kb_id_) for ent in doc.ents] == [("Penn", "DOCTOR", "P-7")]
    assert [(span.text, span.label_) for span in doc.spans["gold"]] == [("Penn", "DOCTOR")]


def test_we_read_what_spacy_writes(tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    theirs = nlp("Dr. Penn came.  She left.")
    theirs.set_ents([theirs.char_span(4, 8, "DOCTOR")])
    theirs.spans["sc"] = [theirs.char_span(0, 8, "TITLED")]
    DocBin(docs=[theirs]).to_disk(tmp_path / "theirs.spacy")
    (back,) = read(tmp_path / "theirs.spacy")  # recognised by its content
    assert (back.id, back.text, back.group) == ("0", theirs.text, None)
    assert back.layers == {"gold": (cf.Span(4, 8, "DOCTOR"),), "sc": (cf.Span(0, 8, "TITLED"),)}
    assert back.words() == ["Dr.", "Penn", "came", ".", "She", "left", "."]
    assert back.sentences.tolist() == [[0, 14], [16, 25]]
    (named,) = read(tmp_path / "theirs.spacy", how=ReadOptions(layer="ner"))
    assert set(named.layers) == {"ner", "sc"}


def test_a_file_that_is_no_docbin_is_refused_without_its_text(tmp_path: Path) -> None:
    path = tmp_path / "bad.spacy"
    bomb = zlib.compress(b"\0" * 50_000_000)
    for content in (CANARY.encode(), zlib.compress(CANARY.encode()), bomb, b"", zlib.compress(b"\x80")):
        path.write_bytes(content)
        with pytest.raises(DataError) as caught:
            list(read(path, format="docbin"))
        assert CANARY not in str(caught.value)
        assert str(path) in str(caught.value)


def test_what_follows_a_damaged_document_is_lost_with_it_and_counted_as_the_rest(tmp_path: Path) -> None:
    def made(text: str) -> Any:
        return spacy.blank("en")(text)

    docs = [made("First."), made("Second."), made("Third.")]
    for doc in docs:
        doc.spans["gold"] = [Span(doc, 0, 1, "X")]
    content = msgspec.msgpack.decode(zlib.decompress(DocBin(docs=docs).to_bytes()))
    content["span_groups"][1] = CANARY.encode()
    path = tmp_path / "damaged.spacy"
    path.write_bytes(zlib.compress(msgspec.msgpack.encode(content)))
    units = list(DocBinFormat().units(entries(path), ReadOptions()))
    assert [unit.rest for unit in units] == [False, True]
    assert units[0].read().text == "First."
    with pytest.raises(DataError, match=r"no DocBin file that spaCy reads") as caught:
        units[1].read()
    assert CANARY not in str(caught.value)


def test_without_spacy_the_pip_line_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write([NOTE], tmp_path / "one.spacy")
    monkeypatch.setitem(sys.modules, "spacy", None)
    for attempt in (lambda: list(read(tmp_path / "one.spacy")), lambda: write([NOTE], tmp_path / "two.spacy")):
        with pytest.raises(MissingExtraError, match=r"chaffinch\[spacy\]"):
            attempt()
    assert not (tmp_path / "two.spacy").exists()
