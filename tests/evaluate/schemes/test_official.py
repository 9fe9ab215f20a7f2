"""The official schemes on cases worked by hand from the scorers' source; the arithmetic is in the comments."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaffinch.evaluate import Pair, evaluate, score
from chaffinch.evaluate.pairing import pair
from chaffinch.evaluate.schemes.official import (
    I2B2_HIPAA,
    I2B2_TAGS,
    i2b2_relaxed,
    i2b2_strict,
    i2b2_token,
    meddocan_merged,
    meddocan_ner,
    meddocan_spans,
)
from chaffinch.text import Document, Span
from tests.evaluate.strategies import at, note

RECORD = "Penn's patient Ada Quill, 2071-03-09, no. 4711, tel 555-0100."
GOLD = [
    at(RECORD, "Penn", "DOCTOR"),
    at(RECORD, "Ada Quill", "PATIENT"),
    at(RECORD, "2071-03-09", "DATE"),
    at(RECORD, "4711", "IDNUM"),
]
FOUND = [
    at(RECORD, "Penn's", "DOCTOR"),  # its end is off by two
    at(RECORD, "Ada", "PATIENT"),  # by six
    at(RECORD, "2071-03-09", "DATE"),
    at(RECORD, "4711", "IDNUM"),
    at(RECORD, "555-0100", "PHONE"),
]


def two_records() -> tuple[list[Document], list[Document]]:
    """The record, an empty one, and one that nobody predicted."""
    gold = [note(RECORD, GOLD, number="1-01"), note("Nil.", [], number="1-02"), note(RECORD, GOLD, number="2-01")]
    return gold, [note(RECORD, FOUND, number="1-01"), note("Nil.", [], number="1-02")]


@pytest.mark.parametrize(
    ("table", "tp", "fp", "fn"),
    [
        ("i2b2_strict", 2, 3, 2),  # DATE and IDNUM right; DOCTOR, PATIENT, PHONE false; DOCTOR, PATIENT missed
        ("i2b2_relaxed", 3, 2, 1),  # and DOCTOR right
        ("i2b2_token", 6, 3, 1),  # Penn Ada 2071 03 09 4711 right; s 555 0100 false; Quill missed
        ("i2b2_hipaa_strict", 1, 2, 1),  # of PATIENT and DATE: DATE right; PATIENT, PHONE false; IDNUM is no HIPAA
        ("i2b2_hipaa_relaxed", 1, 2, 1),
        ("i2b2_hipaa_token", 4, 2, 1),  # Ada 2071 03 09 right; 555 0100 false; Quill missed
    ],
)
def test_i2b2_by_hand(table: str, tp: int, fp: int, fn: int) -> None:
    gold, found = two_records()
    scores = evaluate(gold, found, scheme="i2b2", intervals=False)[table]
    micro = scores.micro
    assert (micro.tp, micro.fp, micro.fn) == (tp, fp, fn)
    assert (micro.precision, micro.recall) == pytest.approx((tp / (tp + fp), tp / (tp + fn)))
    # Macro over the two documents in both folders; the empty one has P = R = 0.
    precision, recall = tp / (tp + fp) / 2, tp / (tp + fn) / 2
    assert (scores.macro.precision, scores.macro.recall) == pytest.approx((precision, recall))
    assert scores.macro.f1 == pytest.approx(2 * precision * recall / (precision + recall))
    # The SD of x and 0 is x / 2 (numpy's, divided by n).
    assert scores.facts == pytest.approx({"precision_sd": precision, "recall_sd": recall})


def test_i2b2_leaves_out_what_was_not_predicted_and_says_so() -> None:
    report = evaluate(*two_records(), scheme=("i2b2_strict", "strict"), intervals=False)
    assert (report["i2b2_strict"].micro.gold, report["strict"].micro.gold, report.missing) == (4, 8, 1)


def relaxed_counts(gold: list[Span], found: list[Span]) -> list[int]:
    one = Pair(Document.make("x" * 40), tuple(gold), tuple(found))
    return [int(n) for n in i2b2_relaxed([one]).values.sum(axis=(0, 1))]


def test_i2b2_relaxed_oddities() -> None:
    def spans(*ends: int) -> list[Span]:
        return [Span(4, end, "CITY") for end in ends]

    assert relaxed_counts(spans(10), spans(8)) == [1, 0, 0]  # off by two, either way
    assert relaxed_counts(spans(10), spans(12)) == [1, 0, 0]
    assert relaxed_counts(spans(10), spans(13)) == [0, 1, 1]  # by three
    assert relaxed_counts([Span(5, 10, "CITY")], spans(10)) == [0, 1, 1]  # the start may not move
    # One gold tag answers two predictions that are not alike themselves; hits are counted on the smaller side.
    assert relaxed_counts(spans(10), spans(8, 12)) == [1, 0, 0]
    assert relaxed_counts(spans(8, 12), spans(10)) == [1, 0, 0]
    # Of two predictions that are alike the second is dropped.
    assert relaxed_counts(spans(10), spans(10, 11)) == [1, 0, 0]
    assert relaxed_counts([], spans(20, 21)) == [0, 1, 0]


@dataclass(frozen=True, slots=True)
class Alike:
    """A tag that is "equal" to others with nearly its end; Python's own sets then do what the scorer's did."""

    label: str
    start: int
    end: int

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Alike):
            return NotImplemented
        return (self.label, self.start) == (other.label, other.start) and abs(self.end - other.end) <= 2

    def __hash__(self) -> int:
        return hash((self.label, self.start))


def tag(start: int, size: int, label: str) -> Span:
    return Span(start, start + size, label)


TAGS = st.builds(tag, st.integers(0, 2), st.integers(1, 12), st.sampled_from(["CITY", "DATE"]))


@given(st.lists(TAGS, max_size=8, unique=True), st.lists(TAGS, max_size=8, unique=True))
def test_i2b2_relaxed_agrees_with_sets_of_such_tags(gold: list[Span], found: list[Span]) -> None:
    a = {Alike(s.label, s.start, s.end) for s in sorted(gold)}
    b = {Alike(s.label, s.start, s.end) for s in sorted(found)}
    expected = [len(a & b), sum(tag not in a for tag in b), sum(tag not in b for tag in a)]
    assert relaxed_counts(sorted(gold), sorted(found)) == expected


def test_i2b2_case_and_empty_tokens() -> None:
    doc = Document.make("call -- 7")
    upper, lower = (Span(8, 9, "ROOM"),), (Span(8, 9, "room"),)
    assert i2b2_strict([Pair(doc, upper, lower)]).values.sum(axis=(0, 1)).tolist() == [1, 0, 0]
    assert i2b2_token([Pair(doc, upper, lower)]).values.sum(axis=(0, 1)).tolist() == [0, 1, 1]  # tokens keep case
    dashes = (Span(5, 7, "PHONE"),)  # no letter or digit: one empty token all the same
    assert i2b2_token([Pair(doc, dashes, dashes)]).values.sum(axis=(0, 1)).tolist() == [1, 0, 0]
    assert i2b2_token([Pair(doc, dashes, ())]).values.sum(axis=(0, 1)).tolist() == [0, 0, 1]


def test_i2b2_types() -> None:
    assert len(I2B2_TAGS) == 31
    wanted = {"DOCTOR": "NAME", "LOCATION-OTHER": "LOCATION", "IDNUM": "ID", "URL": "CONTACT", "OTHER": "OTHER"}
    assert {kind: I2B2_TAGS[kind] for kind in wanted} == wanted
    assert I2B2_TAGS.keys() > I2B2_HIPAA
    assert not I2B2_HIPAA & {"IDNUM", "DOCTOR", "HOSPITAL", "STATE", "URL"}


SPANISH = "Ana Ruiz vive en Sol 5. Fin."


def spanish(found: list[Span]) -> Pair:
    gold = [at(SPANISH, "Ana", "NOMBRE"), at(SPANISH, "Ruiz", "NOMBRE"), at(SPANISH, "Sol 5", "CALLE")]
    doc = Document.make(SPANISH, id="s", sentences=[(0, 23), (24, 28)])
    return Pair(doc, tuple(gold), tuple(found))


def test_meddocan_by_hand() -> None:
    one = spanish([at(SPANISH, "Ana Ruiz", "NOMBRE"), at(SPANISH, "Sol", "CALLE")])
    # Strict: nothing is right. Merged: gold's Ana and Ruiz become Ana Ruiz, which is right; it holds the prediction
    # Ana Ruiz and the gold spans Ana and Ruiz, so Sol is false and Sol 5 is missed.
    assert meddocan_spans([one]).values.sum(axis=(0, 1)).tolist() == [0, 2, 3]
    assert meddocan_merged([one]).values.sum(axis=(0, 1)).tolist() == [1, 1, 1]


def test_meddocan_ner_and_leak() -> None:
    one = spanish([at(SPANISH, "Ana", "NOMBRE"), at(SPANISH, "Ruiz", "CALLE")])
    counts = meddocan_ner([one])
    assert counts.values.sum(axis=(0, 1)).tolist() == [1, 1, 2]
    assert counts.facts == {"leak": 1.0, "sentences": 2}  # 2 missed in 2 sentences
    assert meddocan_ner([one], sentences={"s": 8}).facts["leak"] == 0.25
    assert meddocan_spans([one]).values.sum(axis=(0, 1)).tolist() == [2, 0, 1]


def test_meddocan_merged_counts_neighbours_three_times() -> None:
    one = spanish([at(SPANISH, "Ana", "X"), at(SPANISH, "Ruiz", "X"), at(SPANISH, "Sol 5", "X")])
    # Ana, Ruiz, Sol 5 unmerged, and Ana Ruiz merged; four hits of three gold spans.
    counts = meddocan_merged([one])
    assert (counts.values.sum(axis=(0, 1)).tolist(), counts.sizes.tolist()) == ([4, 0, 0], [[3, 3]])


def test_meddocan_merged_is_cut_short_by_a_span_inside_another() -> None:
    doc = Document.make("Ana Ruiz")
    one = Pair(doc, (Span(0, 8, "X"), Span(4, 6, "X")), (Span(0, 6, "X"),))
    # Gold merges to (0, 6), which is right. (4, 6) lies in it, (0, 8) does not.
    assert meddocan_merged([one]).values.sum(axis=(0, 1)).tolist() == [1, 0, 1]


def test_official_tables_of_a_perfect_system_are_perfect() -> None:
    pairs = pair(
        [note(RECORD, GOLD), note(SPANISH, [], number="2")], [note(RECORD, GOLD), note(SPANISH, [], number="2")]
    )
    for table in score(pairs, scheme=("i2b2", "meddocan")).tables:
        assert table.micro.f1 == 1.0
