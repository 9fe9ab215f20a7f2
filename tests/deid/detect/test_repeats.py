"""Repeats of names: a sure name is found wherever else it has a capital, and nothing else is."""

from __future__ import annotations

from chaffinch.deid.detect import repeats
from chaffinch.deid.detect.detector import detector
from chaffinch.deid.detect.word_lists import word_lists
from chaffinch.text import Document, Span


def _doc(text: str, *spans: Span, group: str | None = None) -> Document:
    return Document.make(text, id=text[:4], group=group, layers={"deid": spans})


def test_a_sure_name_is_found_again_and_takes_the_label_it_mostly_has() -> None:
    first = _doc("Ilse Quorn. Quorn came.", Span(0, 10, "PATIENT", 0.95), Span(12, 17, "DOCTOR", 0.95))
    second = _doc("QUORN slept; Quorn woke.", Span(0, 5, "PATIENT", 0.95))
    names = repeats.choose_labels(repeats.count_names(doc, "deid", word_lists()) for doc in (first, second))
    assert names == {"ilse": "PATIENT", "quorn": "PATIENT"}
    again = repeats.find_repeats(second, "deid", names)
    assert [(span.start, span.end, span.label) for span in again] == [(13, 18, "PATIENT")]
    assert repeats.find_repeats(first, "deid", names) == []


def test_neither_unsure_names_nor_common_words_nor_small_letters_nor_places_are_looked_for() -> None:
    doc = _doc(
        "Hope Zyrle, Mr. Vorlin of Trask. hope vorlin Vorlin Trask Zyrle Hope",
        Span(0, 10, "PATIENT", 0.95), Span(16, 22, "PATIENT", 0.5), Span(26, 31, "CITY", 0.99),
    )  # fmt: skip
    names = repeats.choose_labels([repeats.count_names(doc, "deid", word_lists())])
    assert set(names) == {"zyrle"}
    assert [doc.text[span.start : span.end] for span in repeats.find_repeats(doc, "deid", names)] == ["Zyrle"]


def test_words_that_a_span_touches_stay_as_they_are() -> None:
    doc = _doc("Quorn Quorn-Behl Quorn", Span(0, 5, "PATIENT", 0.95), Span(6, 16, "FAMILY", 0.6))
    assert [span.start for span in repeats.find_repeats(doc, "deid", {"quorn": "PATIENT"})] == [17]


def test_the_detector_finds_a_patients_name_in_other_notes_only_if_it_may_look_there() -> None:
    notes = [
        Document.make("Patient Name: Quorndale, Ilse", id="1", group="p"),
        Document.make("Walks well. Quorndale denies pain.", id="2", group="p"),
        Document.make("Walks well. Quorndale denies pain.", id="3", group="q"),
    ]
    together, alone = ([doc.layer("deid") for doc in detector(by_patient=way)(notes)] for way in (True, False))
    found = [any(span.start == 12 for span in spans) for spans in together]
    assert found[1:] == [True, any(span.start == 12 for span in alone[2])]
    assert len(together[1]) >= len(alone[1])
    assert all(set(doc.layers) == {"deid"} for doc in detector(by_patient=True)(notes))


def test_names_of_earlier_notes_are_found_and_counted_with_those_of_new_ones() -> None:
    find = detector(by_patient=True)
    first = Document.make("Patient Name: Quorndale, Ilse", id="1", group="p")
    later = Document.make("Walks well. Quorndale left early.", id="2", group="p")
    other = Document.make("Walks well. Quorndale left early.", id="3", group="q")
    ((_, names),) = find.read([first], {})
    assert names == {"quorndale": {"PATIENT": 1}, "ilse": {"PATIENT": 1}}
    found = [doc.layer("deid") for doc, _ in find.read([later, other], {"p": names})]
    assert [any(span.start == 12 for span in spans) for spans in found] == [True, False]
    whole = [doc.layer("deid") for doc in find([first, later])]
    assert found[0] == whole[1], "as if the notes had been read together"
    alone = [doc.layer("deid") for doc, _ in detector(by_patient=False).read([later], {"p": names})]
    assert alone == [doc.layer("deid") for doc in find([later])], "each note alone"
    assert [names for _, names in find.read([later])] == [{}], "nothing is counted if nobody remembers"
    nurse = {"quorndale": {"DOCTOR": 2, "PATIENT": 1}}
    ((doc, _),) = find.read([later], {"p": nurse})
    assert [span.label for span in doc.layer("deid") if span.start == 12] == ["DOCTOR"], "as most notes say"
