"""A class that a policy keeps must be sure: exact patterns keep their type, and doubtful spans are hidden."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaffinch.deid.detect import class_doubt
from chaffinch.deid.detect.admission import KnownIdentifiers
from chaffinch.deid.detect.class_doubt import LIMIT, class_layer, settle_classes
from chaffinch.deid.detect.detector import LAYER, HybridDetector, detector
from chaffinch.deid.detect.merge import _overlap_finder, merge_by_rank, widen
from chaffinch.deid.detect.model import Model
from chaffinch.deid.operators import OPERATORS
from chaffinch.deid.policy import Policy, PolicyRule
from chaffinch.deid.release.patient import NumberedDocument, Release, Released, release
from chaffinch.deid.release.replace import ReplacedText, replace_identifiers
from chaffinch.models.core.runs import Run
from chaffinch.models.tagger import Tagger
from chaffinch.text import Document, Soft, Span
from chaffinch.weak import Regex
from tests.deid.releases import SECRET, FunctionDetector

LIMITED = Policy.read("limited-dataset")
SAFE = Policy.read("safe-harbor")
SURROGATE = Policy.read("i2b2-surrogate")
Chances = dict[str, float]


@dataclass(frozen=True)
class StubTagger:
    """A tagger with fixed class probabilities for the words of `told`; a run of such words is one span."""

    told: dict[str, Chances] = field(default_factory=dict)
    manifest: Any = field(default_factory=lambda: SimpleNamespace(checksum="stub"))

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(sorted({label for chances in self.told.values() for label in chances} - {"O"}))

    def read_runs(self, docs: Iterable[Document]) -> Iterator[tuple[list[Run], np.ndarray[Any, Any]]]:
        for doc in docs:
            ((spans, rows),) = self.read([doc])
            places = zip(doc.token_ranges(spans).tolist(), spans, strict=True)
            yield [(first, end, span.label) for (first, end), span in places], rows

    def read(self, docs: Iterable[Document]) -> Iterator[tuple[list[Span], np.ndarray[Any, Any]]]:
        labels = ("O", *self.labels)
        for doc in docs:
            rows, spans = np.zeros((len(doc.tokens), len(labels))), list[Span]()
            for row, (start, end) in zip(rows, doc.tokens.tolist(), strict=True):
                chances = self.told.get(doc.text[start:end], {})
                for label, chance in chances.items():
                    row[labels.index(label)] = chance
                row[0] += 1.0 - row.sum()
                best = labels[int(row.argmax())]
                if best == "O":
                    continue
                if spans and spans[-1].label == best and start - spans[-1].end <= 1:
                    spans[-1] = Span(spans[-1].start, end, best)
                else:
                    spans.append(Span(start, end, best))
            yield spans, rows


def finder(told: dict[str, Chances], **more: Any) -> HybridDetector:
    return detector(Model((cast(Tagger, StubTagger(told)),)), **more)


def words(doc: Document) -> list[tuple[str, str]]:
    return [(span.label, doc.text[span.start : span.end]) for span in doc.layer(LAYER)]


def released(find: HybridDetector, text: str, policy: Policy = LIMITED) -> str:
    (doc,) = find([Document.make(text)])
    return replace_identifiers(doc, LAYER, policy, SECRET).text


def with_chances(text: str, spans: Sequence[Span], chances: Sequence[Chances], score: float = 1.0) -> Document:
    """Return a document whose tokens have these class probabilities."""
    doc = Document.make(text, layers={"found": [Span(s.start, s.end, s.label, score) for s in spans]})
    labels = ("O", *sorted({label for row in chances for label in row} - {"O"}))
    values = np.array([[row.get(label, 0.0) for label in labels] for row in chances]).reshape(len(chances), len(labels))
    values[:, 0] += 1.0 - values.sum(axis=1)
    return doc.with_soft(class_layer("found"), Soft(labels, values))


# Exact patterns keep their type


DATE_LIKE = {"DATE": 0.95, "IDNUM": 0.03}


@pytest.mark.parametrize(
    ("text", "code", "label"),
    [
        ("Pump serial no 12/04/2019-778 replaced.", "12/04/2019-778", "DEVICE"),
        ("Pump serial no 12/04/2019 replaced.", "12/04/2019", "DEVICE"),
        ("Check SN: 2019-03-04-11 again.", "2019-03-04-11", "DEVICE"),
        ("Infusion device ID 03-04-1998-A checked.", "03-04-1998-A", "DEVICE"),
        ("Baclofen pump SN 04122019.", "04122019", "DEVICE"),
        ("The SSN is 123-45-6789.", "123-45-6789", "SSN"),
        ("The MRN: 19980304 is old.", "19980304", "MEDICALRECORD"),
        ("Driver License 1998-03-0412 lost.", "1998-03-0412", "LICENSE"),
        ("Her plate: 1998-AB-3 was seen.", "1998-AB-3", "VEHICLE"),
        ("Write to 617-555-1998 soon.", "617-555-1998", "PHONE"),
        ("Fax: 617-555-1998 soon.", "617-555-1998", "FAX"),
    ],
)
def test_an_exact_pattern_keeps_its_type_against_a_model_that_is_sure_of_a_date(
    text: str, code: str, label: str
) -> None:
    doc = Document.make(text)
    start = text.index(code)
    inside = [text[a:b] for a, b in doc.tokens.tolist() if a < start + len(code) and b > start]
    find = finder(dict.fromkeys(inside, DATE_LIKE))
    (found,) = find([doc])
    assert (label, code) in words(found)
    assert code not in released(find, text)


def test_what_a_model_marks_around_an_exact_pattern_stays_marked() -> None:
    text = "Tag SN: 2019-03-04-11 Friday 617-555-1998."
    find = finder({word: {"DATE": 0.99} for word in ("SN", ":", "2019-03-04-11", "Friday", "617-555-1998")})
    (doc,) = find([Document.make(text)])
    assert words(doc) == [("DATE", "SN"), ("DEVICE", "2019-03-04-11"), ("DATE", "Friday"), ("PHONE", "617-555-1998")]


def test_an_exact_span_takes_what_is_glued_to_it() -> None:
    text = "SN 2019-03-04/A7. on"
    exact, wide = Span(3, 13, "DEVICE"), Span(0, 20, "DATE")
    assert [(s.start, s.end, s.label) for s in widen(text, [exact], [wide])] == [(3, 17, "DEVICE")]
    pair = [Span(3, 7, "DEVICE"), Span(8, 10, "IDNUM")]
    assert [(s.start, s.end) for s in widen(text, pair, [wide])] == [(3, 8), (8, 17)]
    account = [Span(0, 4, "ACCOUNT")]
    assert [(s.start, s.end) for s in widen("4424 6575 on", account, [Span(0, 9, "IDNUM")])] == [(0, 9)]
    assert [(s.start, s.end) for s in widen("4424 6575 on", account, [Span(0, 9, "DATE")])] == [(0, 4)]


@settings(max_examples=300, deadline=None)
@given(
    st.text("a1 .-", min_size=1, max_size=24),
    st.lists(st.tuples(st.integers(0, 23), st.integers(1, 9)), max_size=3),
    st.lists(st.tuples(st.integers(0, 23), st.integers(1, 9)), max_size=4),
)
def test_widening_covers_what_was_covered_and_stays_inside_the_others(
    text: str, first: list[tuple[int, int]], second: list[tuple[int, int]]
) -> None:
    def spans(places: list[tuple[int, int]], label: str) -> list[Span]:
        made = [Span(start, min(start + size, len(text)), label) for start, size in places if start < len(text)]
        return [s for s in made if s.end > s.start]

    exact = [
        span
        for number, span in enumerate(sorted(spans(first, "DEVICE")))
        if all(other.end <= span.start for other in sorted(spans(first, "DEVICE"))[:number])
    ]
    others = spans(second, "DATE")
    out = widen(text, exact, others)
    assert len(out) == len(exact)
    assert all(a.end <= b.start for a, b in pairwise(out))
    allowed = {place for span in (*exact, *others) for place in range(span.start, span.end)}
    for old, new in zip(exact, out, strict=True):
        assert new.start <= old.start < old.end <= new.end
        assert set(range(new.start, new.end)) <= allowed


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 20)), max_size=12), st.integers(0, 40), st.integers(1, 9))
def test_overlapping_spans_are_found_in_their_order(places: list[tuple[int, int]], start: int, size: int) -> None:
    spans = [Span(place, place + length, str(number)) for number, (place, length) in enumerate(places)]
    given_span = Span(start, start + size, "DEVICE")
    expected = [span for span in spans if span.start < given_span.end and given_span.start < span.end]
    assert _overlap_finder(spans)(given_span) == expected


def test_of_spans_over_one_place_the_surest_stays() -> None:
    assert [s.label for s in merge_by_rank([[Span(0, 5, "CITY", 0.65), Span(0, 5, "HOSPITAL", 0.97)]])] == ["HOSPITAL"]
    assert [s.label for s in merge_by_rank([[Span(0, 5, "HOSPITAL", 0.9), Span(0, 5, "CITY", 0.9)]])] == ["CITY"]


# A span is kept only where its class is sure


@pytest.mark.parametrize(
    ("chances", "label"),
    [
        ({"DATE": 0.95, "IDNUM": 0.04}, "DATE"),
        ({"DATE": 0.6, "IDNUM": 0.38}, "IDNUM"),
        ({"DATE": 0.5, "AGE": 0.3, "ZIP": 0.2}, "DATE"),  # all of them are kept
        ({"DATE": 0.6}, "DATE"),  # the rest is no identifier
        ({"DATE": 0.6, "DEVICE": 0.15, "IDNUM": 0.2}, "IDNUM"),
        ({"DATE": 0.2, "O": 0.8}, "DATE"),
    ],
)
def test_limited_dataset_keeps_what_is_surely_kept(chances: Chances, label: str) -> None:
    doc = with_chances("on 0412 ok", [Span(3, 7, "DATE")], [{}, chances, {}])
    acted = replace_identifiers(doc, "found", LIMITED)
    (one,) = acted.replacements
    assert (one.label, one.operator) == (label, "keep" if label == "DATE" else "tag")
    assert acted.text == ("on 0412 ok" if label == "DATE" else f"on [{label}] ok")


def test_one_doubtful_token_is_enough() -> None:
    rows: list[Chances] = [{}, {}, {"CITY": 0.9}, {"CITY": 0.5, "HOSPITAL": 0.45}, {}]
    doc = with_chances("came from Maple Court today", [Span(10, 21, "CITY")], rows)
    assert replace_identifiers(doc, "found", LIMITED).text == "came from [HOSPITAL] today"


def test_of_plausible_classes_the_one_whose_operator_hides_most_decides() -> None:
    policy = Policy(
        "p",
        PolicyRule("tag"),
        {"DATE": PolicyRule("keep"), "ZIP": PolicyRule("generalise"), "DOCTOR": PolicyRule("surrogate")},
    )
    row: Chances = {"DATE": 0.4, "ZIP": 0.25, "DOCTOR": 0.2, "IDNUM": 0.15}
    doc = with_chances("x 02139 y", [Span(2, 7, "DATE")], [{}, row, {}])
    assert [(r.label, r.operator) for r in replace_identifiers(doc, "found", policy, SECRET).replacements] == [
        ("IDNUM", "tag")
    ]
    row = {"DATE": 0.4, "ZIP": 0.36, "DOCTOR": 0.2, "IDNUM": 0.04}  # a number is not plausible
    doc = with_chances("x 02139 y", [Span(2, 7, "DATE")], [{}, row, {}])
    assert [(r.label, r.operator) for r in replace_identifiers(doc, "found", policy, SECRET).replacements] == [
        ("DOCTOR", "surrogate")
    ]


@pytest.mark.parametrize(("policy", "kind"), [(SAFE, "DATE"), (SAFE, "ZIP"), (SAFE, "AGE"), (SURROGATE, "DATE")])
def test_generalised_and_shifted_classes_must_be_sure_as_well(policy: Policy, kind: str) -> None:
    text, place = "no 03/04/1998 x", Span(3, 13, kind)
    sure = replace_identifiers(with_chances(text, [place], [{}, {kind: 0.95}, {}]), "found", policy, SECRET)
    assert [(r.label, r.operator) for r in sure.replacements] == [(kind, policy.rule(kind).operator)]
    doubt = replace_identifiers(
        with_chances(text, [place], [{}, {kind: 0.55, "DEVICE": 0.4}, {}]), "found", policy, SECRET
    )
    assert [(r.label, r.operator) for r in doubt.replacements] == [("DEVICE", policy.rule("DEVICE").operator)]


def test_without_soft_labels_the_score_is_the_chance_of_the_class() -> None:
    def said(label: str, score: float, policy: Policy = LIMITED) -> tuple[str, str]:
        doc = Document.make("in Boston", layers={"found": [Span(3, 9, label, score)]})
        (one,) = replace_identifiers(doc, "found", policy).replacements
        return one.label, one.operator

    assert said("CITY", 0.95) == ("CITY", "keep")
    assert said("CITY", 0.5) == ("LOCATION", "tag")  # some place; the next wider class
    assert said("DATE", 0.5) == ("OTHER", "tag")
    everything = Policy("p", PolicyRule("keep"))
    assert said("CITY", 0.1, everything) == ("CITY", "keep")
    towns = Policy("p", PolicyRule("tag"), {"LOCATION": PolicyRule("keep")})
    assert said("CITY", 0.1, towns) == ("CITY", "keep")


def test_without_class_chances_the_soft_labels_of_the_layer_count() -> None:
    doc = with_chances("on 0412 ok", [Span(3, 7, "DATE")], [{}, {"DATE": 0.5, "IDNUM": 0.4}, {}])
    moved = Document.make(doc.text, layers=doc.layers, soft={"found": doc.soft[class_layer("found")]})
    assert replace_identifiers(moved, "found", LIMITED).text == "on [IDNUM] ok"
    alone = Document.make(doc.text, layers=doc.layers, soft={"found": doc.soft[class_layer("found")]})
    assert replace_identifiers(alone, None, LIMITED).text == "on [IDNUM] ok"  # the only layer there is


KINDS = ("DATE", "AGE", "CITY", "ZIP", "DOCTOR", "IDNUM", "HOSPITAL")
rules = st.sampled_from(["keep", "tag", "remove", "mask"]).map(PolicyRule)
odds = st.lists(st.integers(0, 20), min_size=len(KINDS) + 1, max_size=len(KINDS) + 1).filter(any)


@settings(max_examples=400, deadline=None)
@given(
    st.lists(odds, min_size=1, max_size=6), st.lists(st.sampled_from(KINDS), min_size=6, max_size=6),
    st.lists(rules, min_size=len(KINDS), max_size=len(KINDS)), rules, st.booleans(),
)  # fmt: skip
def test_nothing_that_may_be_of_a_hidden_class_is_released_unchanged(
    weights: list[list[int]], labels: list[str], chosen: list[PolicyRule], default: PolicyRule, together: bool
) -> None:
    rows = np.array(weights, np.float64)
    rows /= rows.sum(axis=1, keepdims=True)
    text = " ".join("abcdef"[number] * 3 for number in range(len(rows)))
    edges = [(4 * number, 4 * number + 3) for number in range(len(rows))]
    spans = (
        [Span(0, len(text), labels[0])]
        if together
        else [Span(*e, label) for e, label in zip(edges, labels, strict=False)]
    )
    soft = Soft(("O", *KINDS), rows)
    doc = Document.make(text, layers={"found": spans}, soft={class_layer("found"): soft}, tokens=edges)
    policy = Policy("p", default, dict(zip(KINDS, chosen, strict=True)))
    acted = replace_identifiers(doc, "found", policy)
    hidden = np.array([policy.rule(kind).operator != "keep" for kind in KINDS])
    for (start, end), row in zip(edges, rows, strict=True):
        if row[1:][hidden].sum() > LIMIT + 1e-9:
            assert text[start:end] not in acted.text
    again = doc.with_layer("found", settle_classes(doc, "found", policy))
    assert settle_classes(again, "found", policy) == again.layer("found")
    assert replace_identifiers(again, "found", policy) == acted


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_every_operator_says_how_much_it_hides(name: str) -> None:
    order = ["keep", "generalise shift", "surrogate", "tag number mask remove"]
    assert OPERATORS[name].hides == next(rank for rank, names in enumerate(order) if name in names.split())


# The detector carries the doubt about classes to where the policy acts


def test_the_doubt_of_models_reaches_the_policy() -> None:
    care_home = {"Maple": {"HOSPITAL": 0.4, "CITY": 0.6}, "Court": {"HOSPITAL": 0.4, "CITY": 0.6}}
    text = "She came from Maple Court to the ward."
    assert released(finder(care_home), text) == "She came from [HOSPITAL] to the ward."
    town = {"Maple": {"CITY": 0.97}, "Court": {"CITY": 0.97}}
    assert released(finder(town), text) == text


def test_a_class_that_rules_alone_tell_is_as_sure_as_the_pattern() -> None:
    find = detector()
    assert released(find, "He lives in Boston, MA 02139.") == "He lives in Boston, MA 02139."
    sentence = "Seen 3/4/1998, then on March 9, 1998, aged 45."
    assert released(find, sentence) == sentence
    assert released(find, "A cousin outside Springfield drove.") == "A cousin outside [LOCATION] drove."
    assert released(finder({"drove": {"DATE": 0.01}}), "A cousin outside Springfield drove.") == (
        "A cousin outside [LOCATION] drove."
    )


def test_a_model_that_overrules_leaves_out_what_patterns_find_but_no_exact_code() -> None:
    """A pattern trebles the odds of its words: .2 of 1 become 3/7, .4 become 2/3, and half is the threshold."""
    text = "Seen by Dr. Penn, SSN 219-09-9999."
    for chance, kept in ((0.0, ["219-09-9999"]), (0.2, ["219-09-9999"]), (0.4, ["Penn", "219-09-9999"])):
        stub = cast(Tagger, StubTagger({"Penn": {"DOCTOR": chance}}))
        heeding, overruling = (detector(Model((stub,), overrules=overrules)) for overrules in (False, True))
        (doc,) = overruling([Document.make(text)])
        assert [word for _, word in words(doc)] == kept
        (doc,) = heeding([Document.make(text)])
        assert [word for _, word in words(doc)] == ["Penn", "219-09-9999"]


@pytest.mark.parametrize(("chance", "kept"), [(0.0, "WILMA"), (0.02, "WILMA"), (0.05, "WILMA SAYS")])
def test_a_model_that_overrules_cuts_words_it_is_sure_of_from_the_edges_of_names(chance: float, kept: str) -> None:
    """The odds under a pattern are trebled: .02 becomes .058, .05 becomes .136, and the limit is .1."""
    text = "HER SISTER WILMA SAYS SHE FELL."
    stub = cast(Tagger, StubTagger({"WILMA": {"FAMILY": 0.9}, "SAYS": {"CITY": chance}}))
    for overrules, expected in ((True, kept), (False, "WILMA SAYS")):
        (doc,) = detector(Model((stub,), overrules=overrules))([Document.make(text)])
        assert [word for _, word in words(doc)] == [expected]


def test_no_model_overrules_a_pattern_of_a_type_that_it_never_learnt() -> None:
    stub = cast(Tagger, StubTagger({"Suite": {"HOSPITAL": 0.1}}))
    (doc,) = detector(Model((stub,), overrules=True))([Document.make("DEPT: Infusion Suite B\nPCP: Penn\n")])
    assert words(doc) == [("DEPARTMENT", "Infusion Suite B")]


def test_dates_of_patterns_stay_whole() -> None:
    """A model that never saw a year such as 2085 must not cut it off: the rest of the date would say when."""
    stub = cast(Tagger, StubTagger({"May": {"DATE": 0.9}}))
    (doc,) = detector(Model((stub,), overrules=True))([Document.make("Seen on May 27, 2085.")])
    assert [word for _, word in words(doc)] == ["May 27, 2085"]


def test_what_people_are_at_is_no_town() -> None:
    find = finder({"Willow": {"CITY": 0.98}, "Creek": {"CITY": 0.98}})
    assert released(find, "Lives at Willow Creek since 3 May 2019.") == "Lives at [LOCATION] since 3 May 2019."
    assert released(find, "Lives in Willow Creek since 3 May 2019.") == "Lives in Willow Creek since 3 May 2019."
    assert released(finder({}, deny={"CITY": ["Willow Creek"]}), "Lives at Willow Creek.") == "Lives at Willow Creek."


@pytest.mark.parametrize(
    ("before", "after", "hidden"),
    [
        ("Returned to", " in the evening.", True),
        ("she was transferred back to", ".", True),
        ("Readmitted from the", " on Sunday.", True),
        ("BROUGHT FROM", " BY AMBULANCE.", True),
        ("Returned to", ", OH in the evening.", False),
        ("Returned to", ", Ohio in the evening.", False),
        ("His sister moved to", " in May.", False),
        ("Referred to the bus from", ".", False),
    ],
)
def test_where_patients_are_moved_is_no_town_unless_a_state_follows(before: str, after: str, hidden: bool) -> None:
    text = f"{before} Willow Creek{after}"
    out = released(finder({"Willow": {"CITY": 0.98}, "Creek": {"CITY": 0.98}}), text)
    assert ("Willow Creek" not in out) == hidden


def test_lists_and_types_of_the_user_are_sure_of_their_class() -> None:
    policy = Policy("p", PolicyRule("tag"), {"CITY": PolicyRule("keep"), "Arm": PolicyRule("keep")}, ("Arm",))
    told = {word: {"HOSPITAL": 0.9} for word in ("Wren", "Blue")}
    find = finder(told, deny={"CITY": ["Wren"]}, types=[Regex("arm", "Blue", label="Arm")])
    assert released(find, "At Wren on Blue today", policy) == "At Wren on Blue today"


def test_known_identifiers_do_not_make_a_class_sure() -> None:
    known = KnownIdentifiers.of([{"patient": "p", "city": "Salem"}])
    for chances, out in (({"HOSPITAL": 0.9}, "Seen in [HOSPITAL] today"), ({"CITY": 0.95}, "Seen in Salem today")):
        (doc,) = finder({"Salem": chances}, known=known)([Document.make("Seen in Salem today", group="p")])
        assert replace_identifiers(doc, LAYER, LIMITED).text == out


def test_class_chances_survive_repeats_and_are_no_layer_of_cues() -> None:
    told = {"Penn": {"DOCTOR": 0.99}, "Harlow": {"CITY": 0.6, "HOSPITAL": 0.39}}
    text = "Dr. Penn of Harlow. Penn came. Later Harlow again."
    (doc,) = finder(told)([Document.make(text)])
    assert set(doc.soft) == {LAYER, class_layer(LAYER)}
    assert set(doc.layers) == {LAYER}
    np.testing.assert_allclose(doc.soft[class_layer(LAYER)].values.sum(axis=1), 1.0, atol=1e-9)
    assert (
        replace_identifiers(doc, LAYER, LIMITED).text
        == "Dr. [DOCTOR] of [HOSPITAL]. [DOCTOR] came. Later [HOSPITAL] again."
    )


def test_class_chances_do_not_depend_on_neighbours() -> None:
    docs = [Document.make("Outside Tarrington."), Document.make("SN: 2019-03-04-11"), Document.make("seen 3/4/1998")]
    together = [doc.soft[class_layer(LAYER)] for doc in detector()(docs)]
    assert together == [next(detector()([doc])).soft[class_layer(LAYER)] for doc in docs]


def test_a_release_counts_spans_under_the_class_that_was_acted_on() -> None:
    find = finder({"Maple": {"HOSPITAL": 0.4, "CITY": 0.6}})
    (one,) = release([NumberedDocument(1, Document.make("From Maple today"))], Release(LIMITED), FunctionDetector(find))
    assert isinstance(one, Released)
    assert one.text == "From [HOSPITAL] today"
    assert set(one.bands) == {"HOSPITAL"}


# With the packaged model

PUMPS = [
    "Pump serial no 12/04/2019-778 was exchanged at the bedside.",
    "Insulin pump interrogated. SN: 2019-03-04-11. No alarms.",
    "Infusion device ID 03-04-1998-A was checked by biomed.",
    "Baclofen pump SN 04122019 was refilled today.",
    "Her pacemaker (model 3830, serial number 1998-06) was checked.",
    "The Alaris pump 02/2018/4471 is in use on the ward.",
    "The insulin pump, s/n 19-0412-03, was interrogated.",
    "PCA pump serial number 11/04/2018 was returned to the store.",
    "Ventricular assist device serial # 2011-10-05 replaced in March.",
    "Feeding pump, serial no. 20170412, goes home with her.",
]
HOMES = [
    "She was transferred from Maple Court to the unit.",
    "He was transferred from Maple Court to Boston Medical Center.",
    "The patient came in from Sunrise Manor by ambulance.",
    "She has been a resident of Oak Hollow for two years.",
    "Staff at Golden Acres report that she fell in the bathroom.",
    "He returned to Brookside in the evening after dialysis.",
    "She was placed at Elmwood after her last discharge.",
    "Resides at Kirksey House, room 308.",
    "She stays at Pine Ridge, an assisted living facility.",
    "The nurse at Laurel Glen called about his wound.",
]  # fmt: skip


@pytest.fixture(scope="module")
def packaged() -> HybridDetector:
    return detector("deid-en")


@pytest.mark.parametrize("text", PUMPS)
def test_no_serial_number_of_a_pump_is_released(packaged: HybridDetector, text: str) -> None:
    out = released(packaged, text)
    assert not any(code in out for code in ("12/04", "2019-03", "03-04", "04122019", "1998-06", "2018", "0412"))
    assert "2011-10" not in out


@pytest.mark.parametrize("text", HOMES)
def test_no_care_home_is_released(packaged: HybridDetector, text: str) -> None:
    out = released(packaged, text)
    names = "Maple Court,Sunrise,Hollow,Golden,Brookside,Elmwood,Kirksey,Pine,Laurel".split(",")
    assert not any(name in out for name in names)


def test_dates_ages_and_towns_are_still_kept(packaged: HybridDetector) -> None:
    text = "Mr. Cole is 72 years old and lives in Springfield, MA 01103. He was seen on 3/4/1998 and on May 7, 2001."
    out = released(packaged, text)
    assert out == text.replace("Cole", "[PATIENT]")


def test_nothing_is_left_of_the_doubt_when_all_is_kept() -> None:
    doc = with_chances("on 0412 ok", [Span(3, 7, "DATE")], [{}, {"DATE": 0.1, "IDNUM": 0.9}, {}])
    acted: ReplacedText = replace_identifiers(doc, "found", Policy("all", PolicyRule("keep")))
    assert acted.text == doc.text
    assert class_doubt.LIMIT == LIMIT
