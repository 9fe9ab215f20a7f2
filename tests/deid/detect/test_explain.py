"""Explanations of a detector: its spans, every voice that spoke, and no text unless it is asked for."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import chaffinch as cf
from chaffinch.deid.detect.admission import KnownIdentifiers
from chaffinch.deid.detect.detector import HybridDetector, detector
from chaffinch.deid.detect.explain import explain
from chaffinch.deid.detect.model import Model, load
from chaffinch.deid.detect.voices.context import ContextVoice
from chaffinch.errors import ConfigError
from chaffinch.text import Document
from chaffinch.text.explanation import Explanation, Voice
from chaffinch.weak.sources.rules import Regex
from tests.models.reader.random_reader import reader_of

NOTE = (
    "Patient: Marigold Quillfeather\nMRN: 4471209\nSeen on 3/4/1998 by Dr. Osric Penhaligon for Parkinson disease.\n"
    "Quillfeather denies pain. Trial NX-4471 continues at Fernhollow Clinic."
)


@cache
def model() -> Model:
    return load("deid-en")


@cache
def find() -> HybridDetector:
    return detector(model())


def voices(why: Explanation, kind: str) -> list[Voice]:
    return [voice for voice in why.voices if voice.kind == kind]


def by_text(told: list[Explanation], text: str, note: str = NOTE) -> Explanation:
    return next(why for why in told if note[why.span.start : why.span.end] == text)


@cache
def told() -> list[Explanation]:
    return explain(NOTE, find())


def test_the_spans_are_those_of_the_detector_with_and_without_features() -> None:
    expected = next(find()([Document.make(NOTE)])).layer("deid")
    assert [why.span for why in told()] == list(expected)
    quick = explain(NOTE, find(), features=False)
    assert [why.span for why in quick] == list(expected)
    assert [(why.chance, why.threshold, why.runner_up) for why in quick] == [
        (why.chance, why.threshold, why.runner_up) for why in told()
    ]
    assert not any(why.features for why in quick)
    assert any(why.features for why in told())


def test_patterns_speak_by_name_and_taggers_with_features_of_tokens() -> None:
    date = by_text(told(), "3/4/1998")
    assert "date-number" in [voice.name for voice in voices(date, "pattern")]
    taggers = voices(date, "tagger")
    assert [voice.name for voice in taggers] == [tagger.layer for tagger in model().taggers]
    cascade = taggers[0]
    assert cascade.features
    words = {NOTE[one.start : one.end] for one in cascade.features if one.name == "shape"}
    assert words <= {"3/4/1998"}
    assert all(voice.chance is not None and voice.chance > 0.5 for voice in taggers)


def test_chance_and_threshold_are_those_that_decide() -> None:
    doc = Document.make(NOTE)
    index, soft, _ = find().score_tokens([doc])
    chances, types = find().chances(index, soft)
    levels = model().dial.at(None)
    for why in told():
        ((first, end),) = doc.token_ranges([why.span]).tolist()
        surest = first + int(np.argmax(chances[first:end]))
        assert why.chance == pytest.approx(chances[surest])
        assert why.threshold == pytest.approx(levels[soft.labels[1 + types[surest]]])
        (other,) = why.runner_up
        assert other.label != why.span.label
        rest = [
            soft.values[first:end, column].mean() for column, name in enumerate(soft.labels) if name != why.span.label
        ]
        assert other.score == pytest.approx(max(rest))


def test_a_recall_moves_the_threshold() -> None:
    safe = explain(NOTE, detector(model(), recall=0.995), features=False)
    plain = {(why.span.start, why.span.end): why.threshold for why in told()}
    shared = [why for why in safe if (why.span.start, why.span.end) in plain]
    assert shared
    for why in shared:
        before = plain[why.span.start, why.span.end]
        assert why.threshold is not None
        assert before is not None
        assert why.threshold < before


def test_lists_and_protected_terms_are_voices() -> None:
    note = "Seen by Dr. James Smith for Parkinson disease."
    found = explain(note, detector(model(), deny=["Parkinson disease"]), features=False)
    name, term = by_text(found, "James Smith", note), by_text(found, "Parkinson disease", note)
    held = {voice.name: [note[span.start : span.end] for span in voice.spans] for voice in voices(name, "list")}
    assert held["first:hi"] == ["James"]
    assert "Smith" in held["last:hi"]
    assert not voices(name, "protected")
    (protected,) = voices(term, "protected")
    assert [(span.label, note[span.start : span.end]) for span in protected.spans] == [("O", "Parkinson disease")]


def test_the_users_lists_types_and_admission_file_are_voices() -> None:
    known = KnownIdentifiers.of([{"patient": "p1", "name": "Quillfeather, Marigold"}])
    asked = detector(model(), known=known, deny=["Fernhollow Clinic"], types=[Regex("trial", r"NX-\d+", label="TRIAL")])
    found = explain(Document.make(NOTE, group="p1"), asked, features=False)
    assert [voice.name for voice in voices(by_text(found, "Marigold Quillfeather"), "known")] == ["admission file"]
    assert len(voices(by_text(found, "Fernhollow Clinic"), "deny")) == 1
    assert [voice.name for voice in voices(by_text(found, "NX-4471"), "type")] == ["trial"]
    assert not voices(by_text(found, "3/4/1998"), "known")


def test_a_repeat_says_where_the_word_was_found() -> None:
    rules = detector(by_patient=True)
    first = Document.make("Attending: Dr. Osric Penhaligon.", id="1", group="p")
    second = Document.make("The plan was changed, which Penhaligon had wanted.", id="2", group="p")
    (why,) = explain(second, rules, others=[first])
    assert [voice.name for voice in voices(why, "repeat")] == ["other note 1"]
    both = Document.make(first.text + "\n" + second.text, id="3", group="q")
    again = explain(both, rules)[-1]
    (voice,) = voices(again, "repeat")
    assert (voice.name, both.text[voice.spans[0].start : voice.spans[0].end]) == ("this note", "Osric Penhaligon")
    with pytest.raises(ConfigError, match="by_patient"):
        explain(second, detector(), others=[first])


def test_the_contextual_reader_is_a_voice_with_words_around_the_span() -> None:
    voice = ContextVoice(reader_of(["PATIENT", "DATE"]), model().dial)
    found = explain(NOTE, detector(replace(model(), context=voice)), top=5)
    for why in found:
        (reader,) = voices(why, "reader")
        assert reader.chance is not None
        assert 0.0 <= reader.chance <= 1.0
        assert 0 < len(reader.features) <= 5
        assert {NOTE[one.start : one.end] == one.quote for one in reader.features} == {True}


def test_no_text_unless_it_is_asked_for() -> None:
    text = " ".join([*map(str, told()), *map(repr, told()), *(str(why.to_dict()) for why in told())])
    for word in ("Quillfeather", "Marigold", "4471209", "Penhaligon", "Fernhollow"):
        assert word not in text
    quoted = " ".join(why.in_words(with_text=True) for why in told())
    assert "Marigold" in quoted


def test_offsets_are_of_the_original_text_where_a_view_differs() -> None:
    broken = "Seen by Dr. Pen\u00adhali\u00adgon on 3/4/1998."
    (doctor, date) = explain(broken, detector())
    assert broken[doctor.span.start : doctor.span.end] == "Pen\u00adhali\u00adgon"
    assert broken[date.span.start : date.span.end] == "3/4/1998"
    assert {broken[s.start : s.end] for v in voices(date, "pattern") for s in v.spans if s.label == "DATE"} == {
        "3/4/1998"
    }


def test_rules_alone_have_no_threshold() -> None:
    (why,) = cf.deid.explain("Call 555-123-4567.", detector())
    assert why.threshold is None
    assert why.chance == why.span.score
    assert "phone" in [voice.name for voice in voices(why, "pattern")]
