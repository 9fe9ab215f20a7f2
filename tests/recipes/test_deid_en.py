"""The recipe of the packaged model of identifiers: the sentences it takes from presidio-synth."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from recipes.corpora import READERS

from chaffinch import Document, Span
from chaffinch.deid.training.learn import DIAL, SOURCE
from recipes import deid_en


def test_sentences_keep_what_i2b2_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(_: Path) -> Iterator[Document]:
        spans = [Span(0, 3, "PREFIX"), Span(4, 9, "PERSON"), Span(19, 26, "GPE"), Span(30, 37, "NRP")]
        yield Document.make("Mr. Silva lives in Chicago; a Swedish man.", id="1", layers={"gold": spans})
        yield Document.make("Call {name}.", id="2", layers={"gold": []})

    monkeypatch.setitem(READERS, "presidio-synth", read)
    (doc,) = deid_en._sentences(Path())
    assert [(doc.text[span.start : span.end], span.label) for span in doc.layer("gold")] == [
        ("Silva", "PATIENT"), ("Chicago", "CITY"),
    ]  # fmt: skip
    assert (doc.meta[SOURCE], doc.meta[DIAL]) == ("presidio-synth", False)
