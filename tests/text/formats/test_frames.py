"""Data frames and datasets: what goes in comes out."""

from __future__ import annotations

import datasets
import pandas
import pytest

import chaffinch as cf
from chaffinch.errors import ConfigError, DataError


def test_a_frame_becomes_documents_and_back() -> None:
    frame = pandas.DataFrame(
        {"note": ["Seen by Dr. Penn.", "🙂\r\n"], "row": [7, 8], "who": ["p1", None], "ward": ["B", "C"]},
        index=["a", "b"],
    )
    corpus = cf.Corpus.from_pandas(frame, text="note", id="row", patient="who")
    first, second = corpus
    assert (first.id, first.text, first.group, first.meta) == ("7", "Seen by Dr. Penn.", "p1", {"ward": "B"})
    assert (second.text, second.group) == ("🙂\r\n", None)
    assert [doc.id for doc in cf.Corpus.from_pandas(frame, text="note")] == ["a", "b"]
    tagged = cf.Corpus.of(cf.deid.detector(None)(list(corpus)))
    again = tagged.to_pandas(layer="deid")
    assert again["text"].tolist() == frame["note"].tolist()
    assert again["spans"][0][0]["label"] == "DOCTOR"
    spans = tagged.to_pandas(layer="deid", spans=True)
    assert spans[["id", "label", "text"]].values.tolist() == [["7", "DOCTOR", "Penn"]]
    assert cf.Corpus.of([]).to_pandas(spans=True).empty


def test_columns_that_are_not_there_and_missing_texts_are_refused() -> None:
    frame = pandas.DataFrame({"text": ["a", None]})
    for wrong in ({"text": "note"}, {"id": "x"}, {"patient": "x"}):
        with pytest.raises(ConfigError):
            cf.Corpus.from_pandas(frame, **wrong)
    with pytest.raises(DataError, match="no text"):
        list(cf.Corpus.from_pandas(frame))


def test_documents_become_a_dataset_and_back() -> None:
    notes = [
        cf.Document.make("Dr. Penn came.", id="a", layers={"gold": [cf.Span(4, 8, "DOCTOR")]}),
        cf.Document.make("Nobody came on 3 May.", id="b", layers={"gold": [cf.Span(15, 20, "DATE")]}),
    ]
    made = cf.Corpus.of(notes).to_datasets()
    assert made.features["ner_tags"].feature.names == ["O", "B-DATE", "I-DATE", "B-DOCTOR", "I-DOCTOR"]
    assert made[0] == {"id": "a", "tokens": ["Dr.", "Penn", "came", "."], "ner_tags": [0, 3, 0, 0]}
    back = list(cf.Corpus.from_datasets(made))
    assert [doc.words() for doc in back] == [doc.words() for doc in notes]
    for doc, note in zip(back, notes, strict=True):
        found = [(doc.text[span.start : span.end], span.label) for span in doc.layer()]
        assert found == [(note.text[span.start : span.end], span.label) for span in note.layer()]


def test_a_dataset_of_texts_is_read() -> None:
    made = datasets.Dataset.from_dict({"text": ["One.", "Two."], "year": [1998, 1999]})
    first, second = cf.Corpus.from_datasets(made)
    assert (first.id, first.text, second.meta) == ("0", "One.", {"year": 1999})
    with pytest.raises(ConfigError):
        cf.Corpus.from_datasets(made.remove_columns("text"))
