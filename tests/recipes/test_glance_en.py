"""The recipe of the glance: what it learns from has cues, and its file holds all of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from chaffinch.deid.detect import cues
from chaffinch.text import Document, Span
from recipes import glance_en
from tests.models.reader.glance.random_glance import glance_of


def test_notes_come_as_the_detector_shows_them() -> None:
    name, before = "Penn\u200b", "SEEN BY DR. "
    doc = Document.make(f"{before}{name}.\nMRN: 4471923", layers={"gold": [Span(12, 17, "DOCTOR")]})
    found = glance_en.with_cues(doc)
    assert found.doc.text.endswith("Penn.\nMRN: 4471923")  # without the character that nobody sees
    assert [(span.start, span.end) for span in found.doc.layer("gold")] == [(12, 16)]
    assert set(cues.LAYERS) <= set(found.cued.layers)
    assert [span.label for span in found.cued.layers[cues.FIELD]] == ["id"]


def test_small_letters_alone_have_cues_in_capitals() -> None:
    found = glance_en.with_cues(Document.make("seen by dr. penn.", layers={"gold": []}))
    assert (found.doc.text, found.cued.text) == ("seen by dr. penn.", "SEEN BY DR. PENN.")


def test_a_file_holds_the_glance(tmp_path: Path) -> None:
    glance, doc = glance_of(["CITY"]), Document.make("To Salem and back.")
    glance_en.save(glance, tmp_path / "glance.cfm")
    again, every = glance_en.load(tmp_path / "glance.cfm"), np.arange(len(doc.tokens))
    np.testing.assert_array_equal(again.log_odds(doc, doc, every), glance.log_odds(doc, doc, every))
    assert (again.names, again.config) == (glance.names, glance.config)
