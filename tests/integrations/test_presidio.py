"""Our detector as a recogniser inside Presidio's analyzer."""

from __future__ import annotations

import spacy
from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
from presidio_analyzer.nlp_engine import SpacyNlpEngine

import chaffinch as cf
from chaffinch.integrations.presidio import ChaffinchRecognizer

NOTE = "MARGARET PENN, seen by Dr. Margaret Penn on 3/4/1998."


class Blank(SpacyNlpEngine):  # type: ignore[misc]  # Presidio has no types here
    """spaCy's tokeniser without a model."""

    def __init__(self) -> None:
        super().__init__()
        self.nlp = {"en": spacy.blank("en")}


def test_an_analyzer_with_our_recogniser_finds_what_the_detector_finds() -> None:
    registry = RecognizerRegistry([ChaffinchRecognizer(model=None)], supported_languages=["en"])
    engine = AnalyzerEngine(registry, Blank(), supported_languages=["en"])
    (note,) = cf.deid.detector(None)([cf.Document.make(NOTE)])
    expected = {(span.start, span.end, span.score) for span in note.layer("deid")}
    found = engine.analyze(NOTE, "en", return_decision_process=True)
    assert {(each.start, each.end, each.score) for each in found} == expected
    assert {each.entity_type for each in found} == {"PERSON", "DATE_TIME"}
    assert found[0].analysis_explanation.recognizer == "ChaffinchRecognizer"
    assert {each.entity_type for each in engine.analyze(NOTE, "en", entities=["DATE_TIME"])} == {"DATE_TIME"}


def test_types_can_be_ours() -> None:
    recognizer = ChaffinchRecognizer(model=None, native=True)
    assert {each.entity_type for each in recognizer.analyze(NOTE, [])} >= {"DOCTOR", "DATE"}
    assert "DOCTOR" in recognizer.get_supported_entities()
