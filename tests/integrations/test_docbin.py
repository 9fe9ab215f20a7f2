"""DocBin files: texts, tokens and layers come back."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest
import spacy
from hypothesis import given, settings
from spacy.tokens import DocBin

import chaffinch as cf
from chaffinch.errors import DataError
from chaffinch.integrations.docbin import read_docbin, write_docbin
from tests.text.strategies import TEXTS


def test_documents_come_back(tmp_path: Path) -> None:
    notes = list(cf.deid.notes(patients=2, seed=4))
    notes[0] = notes[0].with_layer("other", [notes[0].layer()[0], cf.Span(0, notes[0].layer()[0].end, "WIDE")])
    assert write_docbin(notes, tmp_path / "notes.spacy") == len(notes)
    for doc, note in zip(read_docbin(tmp_path / "notes.spacy"), notes, strict=True):
        assert (doc.id, doc.group, doc.text) == (note.id, note.group, note.text)
        assert doc.layers == note.layers
        assert doc.tokens.tolist() == note.tokens.tolist()


@settings(max_examples=100)
@given(text=TEXTS)
def test_every_character_comes_back(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("docbin") / "one.spacy"
    write_docbin([cf.Document.make(text)], path)
    (back,) = read_docbin(path)
    assert back.text == text


def test_spacy_reads_what_we_write_and_we_what_it_writes(tmp_path: Path) -> None:
    note = cf.Document.make("Dr. Penn came.", layers={"gold": [cf.Span(4, 8, "DOCTOR")]})
    write_docbin([note], tmp_path / "ours.spacy")
    nlp = spacy.blank("en")
    (doc,) = DocBin().from_disk(tmp_path / "ours.spacy").get_docs(nlp.vocab)
    assert [(ent.text, ent.label_) for ent in doc.ents] == [("Penn", "DOCTOR")]
    theirs = nlp("Dr. Penn came.")
    theirs.set_ents([theirs.char_span(4, 8, "DOCTOR")])
    DocBin(docs=[theirs]).to_disk(tmp_path / "theirs.spacy")
    (back,) = read_docbin(tmp_path / "theirs.spacy")
    assert (back.id, back.text, back.layer()) == ("0", note.text, note.layer())


def test_what_cannot_be_is_refused_without_text(tmp_path: Path) -> None:
    inside = cf.Document.make("Quillfeather came.", layers={"gold": [cf.Span(0, 5, "NAME")]})
    with pytest.raises(DataError, match=r"span \[0, 5\) ends inside a token") as caught:
        write_docbin([inside], tmp_path / "x.spacy")
    assert "Quillfeather" not in str(caught.value)
    assert not (tmp_path / "x.spacy").exists()
    for content in (b"Quillfeather", zlib.compress(b"Quillfeather"), zlib.compress(b"\0" * 10_000_000)):
        (tmp_path / "bad.spacy").write_bytes(content)
        with pytest.raises(DataError) as caught:
            list(read_docbin(tmp_path / "bad.spacy"))
        assert "Quillfeather" not in str(caught.value)
