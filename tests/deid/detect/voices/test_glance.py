"""A glance at doubtful words: which it changes and by how much, files, and that neighbours change nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from chaffinch.deid.detect.detector import HybridDetector
from chaffinch.deid.detect.explain import explain
from chaffinch.deid.detect.model import Model, load
from chaffinch.deid.detect.token_scores import TokenIndex
from chaffinch.deid.detect.voices.glance import SUREST, GlanceVoice
from chaffinch.deid.detect.voices.stacking import LEAST, MOST
from chaffinch.errors import ConfigError, ModelError
from chaffinch.text import Document, Soft
from tests.models.reader.glance.random_glance import glance_of

LABELS = ("CITY", "DOCTOR")
DOCS = [Document.make("Dr. Penn saw her ."), Document.make(""), Document.make("in Salem")]
CHANCES = [LEAST - 0.001, 0.4, MOST + 0.001, 0.5, 0.5, 0.02, 0.94]
VOICE = GlanceVoice(glance_of(LABELS), 0.25)


def softs() -> Soft:
    """Soft labels of all tokens; of an identifier, three quarters are DOCTOR."""
    assert sum(len(doc.tokens) for doc in DOCS) == len(CHANCES)
    return Soft(("O", *LABELS), np.array([[1 - chance, chance / 4, 3 * chance / 4] for chance in CHANCES]))


def test_doubtful_words_get_the_weighted_mean_of_log_odds_and_keep_their_types() -> None:
    before = softs()
    after = VOICE.join(before, TokenIndex.of(DOCS), DOCS)
    words = [word for doc in DOCS for word in doc.words()]
    alone = [
        value
        for doc in DOCS
        for value in np.clip(VOICE.glance.log_odds(doc, doc, np.arange(len(doc.tokens))), -SUREST, SUREST)
    ]
    for place, word in enumerate(words):
        chance = 1 - before.values[place, 0]
        changes = LEAST < chance < MOST and word.isalpha()
        wanted = np.log(chance / (1 - chance))
        if changes:
            wanted = 0.75 * wanted + 0.25 * alone[place]
        got = 1 - after.values[place, 0]
        assert np.log(got / (1 - got)) == pytest.approx(wanted), word
        assert (after.values[place] != before.values[place]).any() == changes
    np.testing.assert_allclose(after.values[:, 2] / after.values[:, 1], 3.0)
    np.testing.assert_allclose(after.values.sum(axis=1), 1.0)


def test_a_document_does_not_depend_on_its_neighbours() -> None:
    index, before = TokenIndex.of(DOCS), softs()
    together = VOICE.join(before, index, DOCS).values
    parts = [
        VOICE.join(Soft(before.labels, rows), TokenIndex.of([doc]), [doc]).values
        for doc, rows in zip(DOCS, index.split_rows(before.values), strict=True)
    ]
    np.testing.assert_array_equal(np.concatenate(parts), together)


def test_a_weight_is_a_share() -> None:
    with pytest.raises(ConfigError, match="weight"):
        GlanceVoice(VOICE.glance, 1.5)


def test_it_is_saved_with_the_model_and_changes_its_digest(tmp_path: Path) -> None:
    packaged = load("deid-en").fast()
    model = replace(packaged, glance=VOICE, checksum="")
    saved = model.save(tmp_path / "a.cfm")
    again = load(tmp_path / "a.cfm")
    assert again.glance is not None
    assert again.glance.weight == VOICE.weight
    docs = [Document.make("Penn of Salem came to see her, age 4, on Monday; Ward B called.")]
    chances = [HybridDetector(each).soft_labels(docs).values for each in (saved, again, packaged)]
    np.testing.assert_array_equal(chances[0], chances[1])
    assert (chances[0] != chances[2]).any()
    digests = {
        HybridDetector(replace(model, glance=glance)).digest
        for glance in (None, VOICE, replace(VOICE, weight=0.3), GlanceVoice(glance_of(LABELS, seed=1), 0.25))
    }
    assert len(digests) == 4


def test_a_part_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    state = VOICE.glance.state()
    broken = replace(VOICE.glance, weights=replace(state, arrays={**state.arrays, "edge": np.zeros(3, np.float32)}))
    Model(load("deid-en").taggers, glance=replace(VOICE, glance=broken)).save(tmp_path / "b.cfm")
    with pytest.raises(ModelError, match="fit together"):
        load(tmp_path / "b.cfm")


def test_explain_says_what_the_glance_says() -> None:
    detect = HybridDetector(replace(load("deid-en").fast(), glance=VOICE))
    doc = Document.make("Seen by Dr. Penn on 3/4/1998.")
    found = explain(doc, detect)
    voices = [voice for each in found for voice in each.voices if voice.kind == "glance"]
    assert voices
    assert all(voice.chance is not None and 0 < voice.chance < 1 for voice in voices)
