"""The recipe of the reader: epochs differ but are the same each time, labels are the guideline's, dials are set."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.deid.writers.corpus import GUIDELINE_TYPES, read_notes
from recipes.deid_en import calibrated, with_glance
from recipes.reader_en import learn

from chaffinch.deid.detect.model import Model, load
from chaffinch.deid.training.course import Course, Notes
from chaffinch.deid.training.rewrite.redraw import Redrawer
from chaffinch.errors import ModelError
from chaffinch.models.reader.config import Reader
from chaffinch.text import Document
from tests.features import tiny_encoder
from tests.models.reader.glance.random_glance import glance_of

COURSE = Course(generated=3, plain=2)


def test_an_epoch_is_drawn_by_its_number() -> None:
    notes = read_notes("train")[:6]
    plain = [Document.make(f"Abstract {number}.", layers={"gold": []}) for number in range(4)]
    redraw, every = Redrawer.of(notes), Notes(notes, GUIDELINE_TYPES, plain)
    first, again, second = (list(COURSE.epoch(every, redraw, number)) for number in (0, 0, 1))
    assert [doc.text for doc in first] == [doc.text for doc in again]
    assert [doc.text for doc in first] != [doc.text for doc in second]
    assert len(first) == 6 + 3 + 2
    assert {span.label for doc in first for span in doc.layer("gold")} <= GUIDELINE_TYPES


@pytest.mark.slow
def test_a_detector_gets_a_reader_a_glance_and_two_dials(tmp_path: Path) -> None:
    notes = read_notes("train")[:4]
    folder = tiny_encoder.make(tmp_path / "encoder")
    config = Reader(str(folder), layers=(0,), epochs=1, pieces=256, length=60, overlap=12)
    reader = learn(Notes(notes, GUIDELINE_TYPES), config, COURSE)
    left = [replace(doc, meta={"writer": str(number % 2)}) for number, doc in enumerate(read_notes("train")[4:8])]
    whole = calibrated(load("deid-en").fast(), reader, glance_of(["CITY"]), left)
    assert whole.dial.labels == whole.labels
    assert whole.fast().dial.labels == whole.fast().labels
    assert (whole.dial.notes, whole.dial.groups) == (4, 2)
    other = with_glance(whole, glance_of(["CITY"], seed=1), left)
    assert other.dial is whole.dial
    assert other.fast().dial.to_dict() != whole.fast().dial.to_dict()
    with pytest.raises(ModelError, match="no reader"):
        with_glance(whole.fast(), glance_of(["CITY"]), left)
    whole.save(tmp_path / "whole.cfm")
    again: Model = load(tmp_path / "whole.cfm")
    assert again.context is not None
    assert again.glance is not None
    assert again.fast().glance is not None
    assert again.dial.to_dict() == whole.dial.to_dict()
