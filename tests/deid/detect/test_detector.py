"""The detector: no span is lost or merged, lists and the dial work as documented, files keep everything."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaffinch import deid
from chaffinch.deid.detect import cues
from chaffinch.deid.detect import recall_dial as dial
from chaffinch.deid.detect.admission import KnownIdentifiers
from chaffinch.deid.detect.detector import LAYER, HybridDetector, detector, with_dial
from chaffinch.deid.detect.merge import cut_hours, merge_by_rank, trim_punctuation
from chaffinch.deid.detect.model import Model, load
from chaffinch.deid.detect.recall_dial import Dial, DialSample
from chaffinch.deid.detect.token_scores import TokenIndex, mean, spans_of
from chaffinch.errors import ConfigError, DataError
from chaffinch.models.cascade.config import Cascade
from chaffinch.models.tagger import train
from chaffinch.text import Document, Soft, Span
from chaffinch.weak import Regex
from tests.deid.texts import texts

NOTE = "Patient: Ada Okonkwo\nMRN: 1234567\n\nSeen by Dr. Penn on 3/4/1998. Okonkwo is well; Penn agrees. Foley out."


def words(doc: Document) -> list[tuple[str, str]]:
    return [(span.label, doc.text[span.start : span.end]) for span in doc.layer(LAYER)]


@pytest.fixture(scope="module")
def model() -> Model:
    notes = list(cues.with_cues(deid.notes(25, 1, seed=3, names="train")))
    tagger = train(notes, Cascade(layers=cues.LAYERS), layer="gold")
    return with_dial(Model((tagger,)), deid.notes(12, 1, seed=4, names="held-out"), gold="gold")


@pytest.mark.parametrize(
    ("text", "span", "kept"),
    [
        ("Signed 2024-02-29T15:58:03.", "2024-02-29T15", "2024-02-29"),
        ("Next weds 19 feb 4pm.", "weds 19 feb 4", "weds 19 feb"),
        ("Seen 3/4/98, 10:30 today.", "3/4/98, 10", "3/4/98"),
        ("Seen May 4 pm.", "May 4", "May 4"),  # perhaps the day
        ("Seen 11/05 am.", "11/05", "11/05"),
        ("Seen 4 Feb 12 am well.", "4 Feb 12", "4 Feb 12"),  # perhaps a year
        ("Seen 4 Feb 98:30.", "4 Feb 98", "4 Feb 98"),
        ("Seen 4 May 1998: 3 weeks.", "4 May 1998", "4 May 1998"),
        ("Seen May 98:12 on.", "May 98", "May 98"),
    ],
)
def test_no_date_ends_in_the_hour_of_a_time_of_day(text: str, span: str, kept: str) -> None:
    start = text.index(span)
    (found,) = cut_hours(text, [Span(start, start + len(span), "DATE")])
    assert text[found.start : found.end] == kept
    other = Span(start, start + len(span), "IDNUM")
    assert cut_hours(text, [other]) == [other]


def test_rules_alone_find_and_repeat_names() -> None:
    (doc,) = detector()([Document.make(NOTE, id="a", group="g")])
    assert words(doc) == [
        ("PATIENT", "Ada Okonkwo"), ("MEDICALRECORD", "1234567"), ("DOCTOR", "Penn"), ("DATE", "3/4/1998"),
        ("PATIENT", "Okonkwo"), ("DOCTOR", "Penn"),
    ]  # fmt: skip
    assert (doc.id, doc.group, set(doc.layers)) == ("a", "g", {LAYER})


def test_names_are_repeated_across_a_patient_only_if_asked() -> None:
    docs = [Document.make("Dr. Okonkwo came.", id="1", group="p"), Document.make("Okonkwo slept.", id="2", group="p")]
    alone, together = detector(), detector(by_patient=True)
    assert [words(doc) for doc in alone(docs)][1] == []
    assert [words(doc) for doc in together(docs)][1] == [("DOCTOR", "Okonkwo")]
    other = [docs[0], Document.make("Okonkwo slept.", id="2", group="q")]
    assert [words(doc) for doc in together(other)][1] == []


def test_documents_do_not_depend_on_their_neighbours() -> None:
    docs = [Document.make("Dr. Okonkwo came."), Document.make("Okonkwo agrees."), Document.make(NOTE)]
    assert [words(doc) for doc in detector()(docs)] == [words(next(detector()([doc]))) for doc in docs]


def test_lists_and_types_of_the_user_count() -> None:
    text = "Dr. Penn of Project Wren at Mayo Clinic, trial T-99, 3/4/1998."
    trial = Regex("trial", r"T-\d+", label="Trial")
    find = detector(allow=["Mayo Clinic", "3/4/1998"], deny={"CODE": ["Project Wren"]}, types=[trial])
    (doc,) = find([Document.make(text)])
    assert words(doc) == [("DOCTOR", "Penn"), ("CODE", "Project Wren"), ("Trial", "T-99")]


def test_known_and_denied_identifiers_are_never_allowed_away() -> None:
    known = KnownIdentifiers.of([{"patient": "p", "name": "Foley"}])
    find = detector(known=known, allow=["Foley", "wren"], deny=["wren"])
    (doc,) = find([Document.make("Foley out. a wren", group="p")])
    assert words(doc) == [("PATIENT", "Foley"), ("OTHER", "wren")]


def test_adjacent_entities_stay_apart() -> None:
    (doc,) = detector()([Document.make("MRN: 1234567 3/4/1998 617-555-1234\nAge: 45")])
    assert [label for label, _ in words(doc)] == ["MEDICALRECORD", "DATE", "PHONE", "AGE"]


@settings(max_examples=60, deadline=None)
@given(st.lists(texts, min_size=1, max_size=3))
def test_any_text_is_read_and_kept(found: list[str]) -> None:
    docs = [Document.make(text, id=str(place), group="p") for place, text in enumerate(found)]
    for find in (detector(), detector(by_patient=True)):
        for before, after in zip(docs, find(docs), strict=True):
            assert (after.text, after.id, after.group) == (before.text, before.id, before.group)
            assert all(a.end <= b.start for a, b in pairwise(after.layer(LAYER)))
            np.testing.assert_allclose(after.soft[LAYER].values.sum(axis=1), 1.0, atol=1e-9)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9), st.sampled_from("AB")), max_size=6), max_size=3)
)
def test_joined_spans_cover_all_and_overlap_nowhere(ranks: list[list[tuple[int, int, str]]]) -> None:
    spans = [[Span(start, start + length, label) for start, length, label in rank] for rank in ranks]
    out = merge_by_rank(spans)
    covered = {place for rank in spans for span in rank for place in range(span.start, span.end)}
    assert {place for span in out for place in range(span.start, span.end)} == covered
    assert all(a.end <= b.start for a, b in pairwise(out))
    if spans:
        first = set(spans[0])
        assert all(span in out for span in first if not any(span.overlaps(other) for other in first - {span}))


def test_trimmed_spans_lose_signs_and_not_letters() -> None:
    assert trim_punctuation("(Penn), MD", [Span(0, 6, "A"), Span(6, 10, "A"), Span(5, 7, "A")]) == [
        Span(1, 5, "A"),
        Span(8, 10, "A"),
    ]


def test_runs_of_flagged_tokens_stop_at_lines_labels_and_decoded_spans() -> None:
    doc = Document.make("Ada Penn Lowe\nHart 7")
    values = np.array([[0.2, 0.8, 0.0], [0.2, 0.8, 0.0], [0.6, 0.4, 0.0], [0.6, 0.4, 0.0], [0.6, 0.0, 0.4]])
    soft, flags = Soft(("O", "NAME", "ID"), np.tile(values, (2, 1))), np.ones(10, np.bool_)
    first, found = spans_of(TokenIndex.of([doc, doc]), soft, flags, [[], [Span(0, 8, "NAME")]])
    assert first == [Span(0, 13, "NAME"), Span(14, 18, "NAME"), Span(19, 20, "ID")]
    assert found == [Span(0, 8, "NAME"), Span(9, 13, "NAME"), Span(14, 18, "NAME"), Span(19, 20, "ID")]
    assert found[0].score == pytest.approx(0.8)


def test_the_mean_of_models_knows_all_labels() -> None:
    one = Soft(("O", "B"), np.array([[0.5, 0.5]]))
    other = Soft(("O", "A"), np.array([[0.9, 0.1]]))
    assert mean([one, other]).labels == ("O", "A", "B")
    np.testing.assert_allclose(mean([one, other]).values, [[0.7, 0.05, 0.25]])


def test_the_dial_reaches_each_recall_with_the_highest_thresholds() -> None:
    """Fit on ten identifiers of one type at chances 0.05, 0.15, …, 0.95, none flagged by rules, and nothing else."""
    chances = np.arange(0.05, 1, 0.1)
    read = DialSample(chances, np.zeros(10, np.int64), np.zeros(10, np.bool_), np.ones(10, np.bool_))
    found = dial.fit(read, ["A"], recalls=(0.5, 1.0))
    assert found.reached[1] == 1.0
    assert (chances >= found.at(1.0)["A"]).all()
    assert found.reached[0] >= 0.5


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10_000))
def test_thresholds_flag_the_recall_they_promise_and_fall_as_it_rises(seed: int) -> None:
    rng = np.random.default_rng(seed)
    gold = rng.random(300) < 0.3
    chances = np.clip(rng.normal(np.where(gold, 0.7, 0.3), 0.25), 0.001, 1.0)
    types, ruled = rng.integers(0, 3, 300), rng.random(300) < 0.2
    found = dial.fit(DialSample(chances, types, ruled, gold), ["A", "B", "C"])
    assert (np.diff(found.thresholds, axis=0) <= 1e-12).all()
    for recall, reached, row in zip(found.recalls, found.reached, found.thresholds, strict=True):
        flagged = ruled | (chances >= row[types])
        assert (flagged & gold).sum() / gold.sum() >= reached - 1e-9
        assert reached >= recall - 1e-9
        assert (row <= dial.HIGHEST).all()
    again = Dial.from_dict(found.to_dict())
    assert dict(again.at(0.99)) == dict(found.at(0.99))


def test_a_dial_with_a_lowest_level_tells_what_it_reaches() -> None:
    """Fit on ten identifiers at the chances 0.05, 0.15, …, 0.95, and ten other tokens below all of them."""
    chances = np.concatenate([np.arange(0.05, 1, 0.1), np.full(10, 0.01)])
    gold = np.arange(20) < 10
    read = DialSample(chances, np.zeros(20, np.int64), np.zeros(20, np.bool_), gold)
    free, bound = (dial.fit(read, ["A"], recalls=(0.5, 1.0), lowest=lowest) for lowest in (0.0, 0.5))
    assert free.reaches(1.0) == 1.0
    assert 0.5 <= bound.reaches(1.0) < 1.0
    assert bound.reaches(1.0) == (chances[:10] >= bound.at(1.0)["A"]).mean()


def _group(rng: np.random.Generator, missed: float, size: int = 200) -> DialSample:
    """A document with identifiers, of which a share has a low chance, among as many other words."""
    gold = np.arange(2 * size) < size
    low = rng.random(2 * size) < np.where(gold, missed, 0.95)
    return DialSample(np.where(low, 0.05, 0.9), np.zeros(2 * size, np.int64), np.zeros(2 * size, np.bool_), gold)


def test_what_a_dial_expects_is_measured_on_groups_it_was_not_fitted_on() -> None:
    """Half of the groups are easy; one that was left out is as hard as it is, whatever the row says of the others."""
    rng = np.random.default_rng(0)
    samples = [_group(rng, 0.0 if number % 2 else 0.1) for number in range(20)]
    found = dial.fit_by_group(samples, [str(number) for number in range(20)], ["A"], lowest=0.5)
    missed = sum(int((sample.gold & (sample.chances < 0.5)).sum()) for sample in samples)
    assert found.outlook(None).expected == pytest.approx(1 - missed / 4000)
    assert found.outlook(1.0).expected == pytest.approx(1 - missed / 4000)
    assert (found.notes, found.groups) == (20, 20)
    assert found.outlook(1.0).limit == pytest.approx(0.1 ** (1 / 20))
    assert Dial.from_dict(found.to_dict()).outlook(0.99) == found.outlook(0.99)


def test_promised_recalls_hold_for_most_sets_of_ten_other_groups() -> None:
    """Groups differ in what they hide; promises from 20 of them are checked on ten drawn by the same law."""
    rng, kept = np.random.default_rng(1), []
    for _ in range(100):
        seen, unseen = ([_group(rng, rng.beta(1, 20), 50) for _ in range(number)] for number in (20, 10))
        found = dial.fit_by_group(seen, [str(number) for number in range(20)], ["A"], lowest=0.5)
        hits = sum(found.count_hits(sample)[0] for sample in unseen) / 500
        promised = found.outlook(None).promised
        assert promised is not None
        kept.append(hits >= promised)
    assert 0.85 <= np.mean(kept) <= 0.99


def test_no_setting_flags_less_than_the_balanced_one() -> None:
    rng = np.random.default_rng(2)
    found = dial.fit(DialSample.join(_group(rng, 0.1) for _ in range(5)), ["A"])
    assert (found.thresholds <= np.array(found.balanced) + 1e-12).all()


def test_a_dial_that_was_not_measured_expects_nothing() -> None:
    assert Dial().outlook(None) == (None, None, None)


def test_a_dial_refuses_what_it_cannot_do() -> None:
    none = DialSample(np.ones(2), np.zeros(2, np.int64), np.zeros(2, np.bool_), np.zeros(2, np.bool_))
    with pytest.raises(DataError, match="no identifier"):
        dial.fit(none, ["A"])
    with pytest.raises(ConfigError, match="no dial"):
        Dial().at(0.99)
    with pytest.raises(ConfigError, match="above 0"):
        Dial(("A",), (0.9,), (0.9,), np.ones((1, 1)), (0.5,), (0.5,)).at(1.5)
    with pytest.raises(ConfigError, match="give a model"):
        detector(recall=0.99)


def test_models_join_rules_and_the_dial_finds_more(model: Model) -> None:
    notes = deid.notes(10, 1, seed=9, names="held-out")

    def caught(find: HybridDetector) -> tuple[float, int]:
        total = hit = flagged = 0
        for doc in find(notes):
            gold = {place for span in doc.layer("gold") for place in range(span.start, span.end)}
            found = {place for span in doc.layer(LAYER) for place in range(span.start, span.end)}
            total, hit, flagged = total + len(gold), hit + len(gold & found), flagged + len(found)
        return hit / total, flagged

    rules, balanced, safe = (caught(find) for find in (detector(), detector(model), detector(model, recall=0.995)))
    assert rules[0] < balanced[0] <= safe[0]
    assert safe[0] > 0.95
    assert safe[1] > balanced[1]


def test_protected_terms_are_not_flagged_by_models(model: Model) -> None:
    doc = Document.make("Plan:\nFoley catheter removed. Parkinson disease stable. Lipitor continued. Lasix given.")
    (found,) = detector(model, recall=0.999)([doc])
    terms = ("Foley", "Parkinson", "Lipitor", "Lasix")
    assert not [text for _, text in words(found) if any(term in text for term in terms)]


def test_a_file_keeps_models_and_dial(model: Model, tmp_path: Path) -> None:
    saved = model.save(tmp_path / "a.cfm", corpus="generated")
    again = load(tmp_path / "a.cfm")
    notes = deid.notes(4, 1, seed=21)
    for recall in (None, 0.99):
        before, after = (list(detector(each, recall=recall)(notes)) for each in (saved, again))
        assert before == after
    assert detector(saved).digest == detector(again).digest != detector(again, recall=0.99).digest
    model.taggers[0].save(tmp_path / "one.cfm")
    assert len(load(tmp_path / "one.cfm").taggers) == 1


def test_detectors_show_no_text() -> None:
    find = detector(
        known=KnownIdentifiers.of([{"patient": "p", "name": "CANARY"}]), allow=["CANARY"], deny=["CANARY word"]
    )
    assert "CANARY" not in repr(find)
