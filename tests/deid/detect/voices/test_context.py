"""The contextual voice: joined chances, decoded runs, the detector with and without it, and its file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaffinch import deid
from chaffinch.deid.detect import cues
from chaffinch.deid.detect.detector import LAYER, detector, with_dial
from chaffinch.deid.detect.model import Model, load
from chaffinch.deid.detect.token_scores import TokenIndex
from chaffinch.deid.detect.voices.context import ContextVoice, decode, join
from chaffinch.errors import ConfigError, ModelError
from chaffinch.models.cascade.config import Cascade
from chaffinch.models.reader.config import Reader
from chaffinch.models.reader.fit import fit
from chaffinch.models.tagger import train
from chaffinch.text import Document, Soft
from tests.features import tiny_encoder

NOTES = deid.notes(12, 1, seed=4, names="held-out")


@pytest.fixture(scope="module")
def fast() -> Model:
    notes = list(cues.with_cues(deid.notes(25, 1, seed=3, names="train")))
    return with_dial(Model((train(notes, Cascade(layers=cues.LAYERS), layer="gold"),)), NOTES, gold="gold")


@pytest.fixture(scope="module")
def whole(fast: Model, tmp_path_factory: pytest.TempPathFactory) -> Model:
    folder = tiny_encoder.make(tmp_path_factory.mktemp("encoder"))
    config = Reader(str(folder), layers=(0, 1), epochs=2, rate=5e-3, head=2.0, pieces=256, length=60, overlap=12)
    reader = fit(lambda _: NOTES[:6], ["AGE", "DATE", "DOCTOR", "PATIENT", "BIOID"], config)
    return with_dial(replace(fast, context=ContextVoice(reader, fast.dial)), NOTES, gold="gold")


def layers(model: Model, *, fast: bool = False) -> list[tuple[object, ...]]:
    bare = [replace(doc, layers={}) for doc in NOTES]
    return [(doc.layer(LAYER), doc.soft[LAYER].values.tolist()) for doc in detector(model, fast=fast)(bare)]


def test_fast_leaves_no_trace_of_the_reader(fast: Model, whole: Model) -> None:
    assert layers(whole, fast=True) == layers(fast)
    assert layers(whole) != layers(fast)
    assert detector(whole, fast=True).digest == detector(fast).digest
    assert detector(whole).digest != detector(fast).digest
    assert whole.fast().labels == fast.labels
    assert "BIOID" in whole.labels


def test_fast_is_refused_where_there_is_no_reader(fast: Model) -> None:
    with pytest.raises(ConfigError, match="has none"):
        detector(fast, fast=True)


def test_a_file_keeps_the_reader_and_both_dials(fast: Model, whole: Model, tmp_path: Path) -> None:
    saved = whole.save(tmp_path / "whole.cfm")
    again = load(tmp_path / "whole.cfm")
    assert again.checksum == saved.checksum
    assert layers(again) == layers(whole)
    assert layers(again, fast=True) == layers(fast)
    assert detector(again).digest == detector(whole).digest
    fast.save(tmp_path / "fast.cfm")
    assert load(tmp_path / "fast.cfm").context is None


def test_a_file_whose_reader_is_damaged_is_refused(whole: Model, tmp_path: Path) -> None:
    from chaffinch import bundle

    whole.save(tmp_path / "whole.cfm")
    found = bundle.load(tmp_path / "whole.cfm")
    arrays = {name: array for name, array in found.arrays.items() if name != "context.words"}
    bundle.save(tmp_path / "damaged.cfm", found.manifest, arrays, found.strings)
    with pytest.raises(ModelError):
        load(tmp_path / "damaged.cfm")


def test_neighbours_change_nothing(whole: Model) -> None:
    alone = [next(iter(detector(whole)([replace(doc, layers={})]))) for doc in NOTES[:4]]
    together = list(detector(whole)([replace(doc, layers={}) for doc in NOTES[:4]]))
    for one, other in zip(alone, together, strict=True):
        assert one.layer(LAYER) == other.layer(LAYER)
        np.testing.assert_array_equal(one.soft[LAYER].values, other.soft[LAYER].values)


chances = st.lists(st.floats(0, 1), min_size=1, max_size=6)


@given(chances, st.floats(0, 1), st.floats(0, 1))
def test_joined_chances_lie_between_both_and_sum_to_one(outside: list[float], weight: float, types: float) -> None:
    values = np.array([[own, 1 - own] for own in outside])
    other = values[::-1]
    both = join(Soft(("O", "A"), values), Soft(("O", "B"), other), weight=weight, types=types)
    np.testing.assert_allclose(both.values.sum(axis=1), 1.0, rtol=0, atol=1e-9)
    low, high = np.minimum(values[:, 0], other[:, 0]), np.maximum(values[:, 0], other[:, 0])
    assert (both.values[:, 0] >= low - 2e-6).all()
    assert (both.values[:, 0] <= high + 2e-6).all()


def test_a_voice_without_weight_changes_no_chance() -> None:
    fast = Soft(("O", "A"), np.array([[0.3, 0.7], [0.9, 0.1]]))
    read = Soft(("O", "B"), np.array([[1.0, 0.0], [0.0, 1.0]]))
    both = join(fast, read, weight=0.0, types=0.0)
    np.testing.assert_allclose(both.values, [[0.3, 0.7, 0.0], [0.9, 0.1, 0.0]], rtol=0, atol=1e-9)


def test_runs_end_with_a_label_a_line_and_a_document() -> None:
    docs = [Document.make("Ann Lee\nLee York"), Document.make("Ann")]
    rows = [[0.1, 0.9, 0.0]] * 3 + [[0.2, 0.0, 0.8]] + [[0.4, 0.6, 0.0]]
    none = np.zeros(5, np.bool_)
    found = decode(TokenIndex.of(docs), Soft(("O", "NAME", "TOWN"), np.array(rows)), none)
    shown = [[(span.start, span.end, span.label, round(span.score, 3)) for span in own] for own in found]
    assert shown == [[(0, 7, "NAME", 0.9), (8, 11, "NAME", 0.9), (12, 16, "TOWN", 0.8)], [(0, 3, "NAME", 0.6)]]


def test_a_flagged_token_is_in_a_span_and_a_doubtful_label_yields_to_its_neighbours() -> None:
    docs = [Document.make(""), Document.make("Ann May Lee came")]
    rows = [[0.1, 0.8, 0.1], [0.4, 0.25, 0.35], [0.1, 0.8, 0.1], [0.8, 0.15, 0.05]]
    soft, index = Soft(("O", "NAME", "TOWN"), np.array(rows)), TokenIndex.of(docs)
    flags = np.array([True, True, True, False])
    assert [[(span.start, span.end, span.label) for span in own] for own in decode(index, soft, flags)] == [
        [], [(0, 11, "NAME")],
    ]  # fmt: skip
    assert [(span.start, span.end) for span in decode(index, soft, np.ones(4, np.bool_))[1]] == [(0, 16)]
    assert [(span.start, span.end) for span in decode(index, soft, np.zeros(4, np.bool_))[1]] == [(0, 3), (8, 11)]
