"""Acting: nothing outside a span changes, every replacement can be undone, order of documents does not matter."""

from __future__ import annotations

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaffinch.deid.keys import Secret
from chaffinch.deid.kinds import kind_of
from chaffinch.deid.policy import Policy, PolicyRule, action
from chaffinch.deid.release import replace as acting
from chaffinch.deid.release.replace import (
    FoundIdentifier,
    Memory,
    ReplacedText,
    Replacement,
    originals,
    replace_identifiers,
    separate_spans,
    undo,
)
from chaffinch.errors import ConfigError, DataError
from chaffinch.text import Document, Span
from tests.deid.releases import SECRET
from tests.deid.texts import LABELS, documents

POLICIES = [
    *(Policy(name, PolicyRule(name)) for name in ("tag", "number", "mask", "remove", "keep")),
    Policy.read("safe-harbor"),
    Policy.read("limited-dataset"),
    Policy.read("i2b2-surrogate"),
]
policies = st.sampled_from(POLICIES)


@given(documents(overlaps=True), policies)
@settings(max_examples=600)
def test_every_replacement_can_be_undone_and_nothing_outside_changes(doc: Document, policy: Policy) -> None:
    acted = replace_identifiers(doc, "found", policy, SECRET)
    assert undo(originals(doc.text, acted), acted) == doc.text
    made = acted.replacements
    for one, two in pairwise(made):
        assert one.end <= two.start
        assert doc.text[one.end : two.start] == acted.text[one.out_end : two.out_start]
    if not made:
        assert acted.text == doc.text
        return
    assert doc.text[: made[0].start] == acted.text[: made[0].out_start]
    assert doc.text[made[-1].end :] == acted.text[made[-1].out_end :]


@given(documents(sure=True), policies)
@settings(max_examples=600)
def test_each_span_becomes_what_its_operator_says_and_neighbours_stay_apart(doc: Document, policy: Policy) -> None:
    acted = replace_identifiers(doc, "found", policy, SECRET)
    spans = doc.layer("found")
    assert [(one.start, one.end, one.label) for one in acted.replacements] == [(s.start, s.end, s.label) for s in spans]
    memory = Memory(SECRET, [doc.text[s.start : s.end] for s in spans if s.label == "DATE"])
    for span, one in zip(spans, acted.replacements, strict=True):
        rule = policy.rule(span.label)
        before, after = doc.text[: span.start][-40:], doc.text[span.end :][:40]
        quote = doc.text[span.start : span.end]
        seen = FoundIdentifier(quote, kind_of(span.label), span.label, doc.patient, doc.id, before, after)
        made = acted.text[one.out_start : one.out_end]
        if span.label == "DATE" and policy.age_limit("DATE") and (made, one.operator) == ("[DATE]", "generalise"):
            continue  # it may tell of an age
        assert made == action(rule)(seen, memory)
        assert one.operator == rule.operator


@given(documents(overlaps=True))
@settings(max_examples=600)
def test_where_spans_overlap_no_marked_character_gets_through(doc: Document) -> None:
    acted = replace_identifiers(doc, "found", Policy("all", PolicyRule("remove")), SECRET)
    covered = {at for span in doc.layer("found") for at in range(span.start, span.end)}
    gone = {at for one in acted.replacements for at in range(one.start, one.end)}
    assert gone <= covered
    assert all(unicodedata.category(doc.text[at])[0] in "ZPC" for at in covered - gone)


@given(documents(overlaps=True, sure=True))
@settings(max_examples=200)
def test_a_kept_span_shields_no_other(doc: Document) -> None:
    policy = Policy("most", PolicyRule("remove"), {"STATE": PolicyRule("keep"), "PHONE": PolicyRule("keep")})
    acted = replace_identifiers(doc, "found", policy, SECRET)
    marked = {
        at for s in doc.layer("found") if s.label not in ("STATE", "PHONE") for at in range(s.start, s.end)
    }  # fmt: skip
    gone = {at for one in acted.replacements if one.operator == "remove" for at in range(one.start, one.end)}
    assert gone <= marked
    assert all(unicodedata.category(doc.text[at])[0] in "ZPC" for at in marked - gone)


@given(documents(overlaps=True))
@settings(max_examples=200)
def test_the_longest_span_stays_whole(doc: Document) -> None:
    spans = doc.layer("found")
    if spans:
        longest = max(len(span) for span in spans)
        left = separate_spans(spans, doc.text, POLICIES[0])
        assert any(len(span) == longest and span in spans for span in left)
        assert all(a.end <= b.start for a, b in pairwise(left))


@given(st.lists(documents(overlaps=True), min_size=1, max_size=4), st.randoms(use_true_random=False), policies)
@settings(max_examples=200)
def test_the_order_of_documents_does_not_matter(docs: list[Document], random: object, policy: Policy) -> None:
    alone = [replace_identifiers(doc, "found", policy, SECRET) for doc in docs]
    places = list(range(len(docs)))
    random.shuffle(places)  # type: ignore[attr-defined]  # a random.Random
    again = {at: replace_identifiers(docs[at], "found", policy, SECRET) for at in places}
    assert [again[at] for at in range(len(docs))] == alone


def test_the_same_name_of_one_patient_is_the_same_in_all_documents() -> None:
    docs = [
        Document.make(text, id=key, group=group, layers={"gold": [Span(at, at + 4, "DOCTOR")]})
        for key, group, text, at in [("a", "p", "Dr. Penn", 4), ("b", "p", "PENN left", 0), ("c", "q", "Penn", 0)]
    ]
    first, second, other = (
        replace_identifiers(doc, None, Policy.read("i2b2-surrogate"), SECRET).text[one.out_start : one.out_end]
        for doc in docs
        for one in replace_identifiers(doc, None, Policy.read("i2b2-surrogate"), SECRET).replacements
    )
    assert first.upper() == second != other.upper()
    again = replace_identifiers(docs[0], None, Policy.read("i2b2-surrogate"), Secret.new())
    assert again.text[4:] != first


def test_adjacent_spans_make_two_tags() -> None:
    doc = Document.make("PennQuill", layers={"gold": [Span(0, 4, "DOCTOR"), Span(4, 9, "DOCTOR")]})
    acted = replace_identifiers(doc, "gold", POLICIES[0], None)
    assert acted.text == "[DOCTOR][DOCTOR]"
    assert acted.replacements == (Replacement(0, 4, "DOCTOR", "tag", 0, 8), Replacement(4, 9, "DOCTOR", "tag", 8, 16))


@pytest.mark.parametrize(
    ("text", "spans", "expected"),
    [
        ("John Smith Road", [Span(0, 10, "PATIENT"), Span(5, 15, "STREET")], "[PATIENT][STREET]"),
        ("John Smith Road", [Span(0, 4, "PATIENT"), Span(0, 15, "STREET")], "[STREET]"),
        ("a Smith b Penn c", [Span(0, 16, "STREET"), Span(2, 7, "PATIENT")], "[STREET]"),
        ("Smith, J.", [Span(0, 5, "PATIENT"), Span(0, 7, "DOCTOR")], "[DOCTOR]J."),
        ("Smith, J.", [Span(0, 7, "DOCTOR"), Span(5, 8, "PATIENT")], "[DOCTOR][PATIENT]."),
        ("1234", [Span(0, 4, "ZIP", 0.5), Span(0, 4, "IDNUM", 0.9)], "[IDNUM]"),
        ("1234", [Span(0, 4, "ZIP", 0.9), Span(0, 4, "IDNUM", 0.5)], "[ZIP]"),
        ("1234", [Span(0, 4, "ZIP"), Span(0, 4, "ZIP")], "[ZIP]"),
        ("Smith, Penn", [Span(0, 6, "PATIENT"), Span(5, 11, "DOCTOR")], "[PATIENT][DOCTOR]"),
    ],
)
def test_overlaps_by_hand(text: str, spans: list[Span], expected: str) -> None:
    assert replace_identifiers(Document.make(text, layers={"x": spans}), "x", POLICIES[0], None).text == expected


def test_of_equal_spans_the_one_that_hides_more_acts() -> None:
    doc = Document.make("57", layers={"x": [Span(0, 2, "AGE", 0.9), Span(0, 2, "ROOM", 0.1)]})
    assert replace_identifiers(doc, "x", Policy.read("safe-harbor"), None).text == "[ROOM]"


def test_how_much_an_operator_hides_ranks_equal_spans_not_its_name() -> None:
    rules = {"DATE": PolicyRule("shift"), "ID": PolicyRule("mask"), "AGE": PolicyRule("keep")}
    policy = Policy("mixed", PolicyRule("tag"), rules=rules)
    doc = Document.make("1998", layers={"x": [Span(0, 4, "DATE", 1.0), Span(0, 4, "ID", 0.2), Span(0, 4, "AGE", 1.0)]})
    assert [one.label for one in separate_spans(doc.layers["x"], doc.text, policy)] == ["ID"]


def test_no_repr_and_no_error_shows_text() -> None:
    doc = Document.make("Dr. Quillfeather", id="n1", layers={"x": [Span(4, 16, "DOCTOR")]})
    acted = replace_identifiers(doc, "x", Policy.read("limited-dataset"), None)
    seen = FoundIdentifier("Quillfeather", kind_of("DOCTOR"), "DOCTOR", "p", "n1", "by Quillfeather", "Quillfeather")
    kept = Memory(SECRET, ["Quillfeather 1999"])
    assert kept.number("DOCTOR", "Quillfeather") == 1
    for thing in (ReplacedText("n1", doc.text, ()), acted, seen, kept, [seen]):
        assert "Quillfeather" not in f"{thing!r} {thing}"


def test_a_failing_operator_withholds_without_text(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def __call__(self, seen: FoundIdentifier, memory: Memory) -> str:
            raise ValueError(f"cannot read {seen.text}")

    monkeypatch.setattr(Policy, "operator", lambda self, label: ("tag", Broken()))
    doc = Document.make("Dr. Quillfeather", layers={"x": [Span(4, 16, "DOCTOR")]})
    with pytest.raises(DataError, match=r"tag failed at \[4, 16\) DOCTOR: ValueError") as caught:
        replace_identifiers(doc, "x", POLICIES[0], None)
    assert "Quillfeather" not in str(caught.value)
    assert caught.value.__suppress_context__
    assert caught.value.__cause__ is None  # a traceback would print its message


def test_surrogates_without_a_secret_are_refused() -> None:
    doc = Document.make("Dr. Penn", layers={"x": [Span(4, 8, "DOCTOR")]})
    with pytest.raises(ConfigError, match="there is no secret; give --secret-file"):
        replace_identifiers(doc, "x", Policy.read("i2b2-surrogate"), None)


def test_undoing_with_the_wrong_originals_is_refused() -> None:
    acted = ReplacedText("n1", "[DOCTOR]", (Replacement(0, 4, "DOCTOR", "tag", 0, 8),))
    with pytest.raises(DataError, match="1 replacements cannot be undone with 2 originals"):
        undo(["Penn", "x"], acted)
    with pytest.raises(DataError, match="original 0 has 5 characters, but 4 were replaced"):
        undo(["Quill"], acted)


def test_context_is_forty_characters_of_the_original() -> None:
    seen: list[FoundIdentifier] = []

    class Watch(Policy):
        def operator(self, label: str) -> tuple[str, acting.Operator]:
            return "watch", lambda one, memory: seen.append(one) or "XXXXXXXX"  # type: ignore[func-returns-value]

    text = "a" * 50 + "Penn" + "Quill" + "b" * 50
    replace_identifiers(
        Document.make(text, layers={"x": [Span(50, 54, "DOCTOR"), Span(54, 59, "DOCTOR")]}), "x", Watch("w"), None
    )
    assert (seen[0].before, seen[0].after) == ("a" * 40, "Quill" + "b" * 35)
    assert (seen[1].before, seen[1].after) == ("a" * 36 + "Penn", "b" * 40)
    replace_identifiers(
        Document.make("Dr. Penn" + "b" * 50, layers={"x": [Span(4, 8, "DOCTOR")]}), "x", Watch("w"), None
    )
    assert (seen[2].before, seen[2].after) == ("Dr. ", "b" * 40)


def test_all_labels_of_the_generated_documents_have_a_rule() -> None:
    assert {POLICIES[0].rule(label).operator for label in LABELS} == {"tag"}
