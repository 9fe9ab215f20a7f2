"""The recipe of the packaged model of identifiers: what it takes from the notes of the train writers."""

from __future__ import annotations

from benchmarks.deid.writers.corpus import GUIDELINE_TYPES, read_notes

from chaffinch.deid.training.learn import DIAL, SOURCE
from recipes import deid_en

KEPT = {"w01", "w16", "w53"}  # telegraphic notes, dictated ones, and pages of a large record system


def test_written_notes_come_with_copies_on_which_no_dial_is_set() -> None:
    everything = read_notes("train")
    left_out = {doc.meta["writer"] for doc in everything} - KEPT
    notes = [doc for doc in everything if doc.meta["writer"] in KEPT]
    found = list(deid_en.written(left_out=left_out))
    assert len(found) == len(notes) * (1 + deid_en.COPIES)
    originals = [doc for doc in found if doc.meta.get(DIAL, True)]
    assert [doc.text for doc in originals] == [doc.text for doc in notes]
    assert [doc.meta[SOURCE] for doc in originals] == [doc.meta["writer"] for doc in notes]
    copies = [doc for doc in found if not doc.meta.get(DIAL, True)]
    assert {doc.patient for doc in copies} == {doc.patient for doc in notes}
    assert {span.label for doc in copies for span in doc.layer("gold")} <= GUIDELINE_TYPES
    texts = {note.text for note in notes}
    assert sum(doc.text in texts for doc in copies) < len(copies) / 2
