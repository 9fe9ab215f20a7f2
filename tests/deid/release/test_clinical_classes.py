"""Clinical classes of words, and the hint of over-redaction in a release."""

from __future__ import annotations

from chaffinch.deid.detect.detector import detector
from chaffinch.deid.policy import Policy
from chaffinch.deid.release.account import Account
from chaffinch.deid.release.clinical_classes import CLASSES, PROTECTED, classes_of, count_flagged
from chaffinch.deid.release.patient import NumberedDocument, Release, Released, release
from chaffinch.deid.release.summary_page import _render_over_redaction
from chaffinch.text import Document, Span

NOTE = "Plan: metformin 500 mg for 6/12, her daughter Ann, RN, saw COPD at L4, Dr. Quill on 12/3/98 with 5 boxes."


def test_words_have_the_first_class_that_fits() -> None:
    doc = Document.make(NOTE)
    classes = dict(zip(doc.words(), classes_of(doc), strict=True))
    expected = {
        "Plan": "field label", "metformin": "drug or brand", "500": "clinical number", "mg": "clinical number",
        "6/12": "clinical number", "daughter": "kin word", "Ann": "ordinary word", "RN": "credential",
        "COPD": "abbreviation", "L4": "anatomy", "Dr.": "title", "Quill": "ordinary word", "12/3/98": "number",
        "5": "number", "boxes": "ordinary word", ",": "",
    }  # fmt: skip
    assert {word: classes[word] for word in expected} == expected
    assert set(classes.values()) <= {*CLASSES, ""}


def test_a_word_in_running_capitals_is_no_abbreviation() -> None:
    doc = Document.make("PATIENT WAS SEEN AND SENT HOME WITH COUGH")
    assert "abbreviation" not in classes_of(doc)


def test_a_language_without_data_has_no_protected_words() -> None:
    doc = Document.make("Herr Dr. Penn, Tochter, Abdomen")
    assert not set(classes_of(doc, "de")) & set(PROTECTED)


def test_flagged_words_are_counted_once_and_only_of_protected_classes() -> None:
    doc = Document.make("Dr. Ann Quill, daughter")
    spans = [Span(0, 13, "DOCTOR"), Span(4, 23, "PATIENT")]
    assert count_flagged(doc, spans) == {"title": 1, "kin word": 1}
    assert count_flagged(doc, []) == {}


def test_a_release_counts_them_without_text() -> None:
    denied = detector(deny=["metformin 500 mg", "her daughter Ann"])
    docs = [NumberedDocument(number, Document.make(NOTE, id=str(number), group=str(number))) for number in range(2)]
    account = Account({"chaffinch": "0", "policy": {}})
    for result in release(docs, Release(Policy.read("safe-harbor")), denied):
        assert isinstance(result, Released)
        assert Released.unpack(result.pack(), "a", None).over_redaction == result.over_redaction
        account.add(result)
    found = account.manifest()["over_redaction"]
    assert found["drug or brand"] == found["kin word"] == 2
    assert found["clinical number"] == 4
    page = _render_over_redaction({"over_redaction": found})
    assert "drug or brand" in page
    assert "metformin" not in page
    assert _render_over_redaction({"over_redaction": {}}) == ""
