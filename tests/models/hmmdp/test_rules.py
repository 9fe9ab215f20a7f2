"""Rules that name the sub-categories of categories: by hand, and at the end of a tagger."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from chaffinch.errors import ConfigError
from chaffinch.models.hmmdp.config import HMMDP
from chaffinch.models.hmmdp.model import Model
from chaffinch.models.hmmdp.rules import REACH, Rules, TagRule
from chaffinch.models.tagger import Tagger, train
from chaffinch.text import Document, Span
from chaffinch.text.identifiers import KINDS, kind_of
from tests.models.notes import hit_rate, notes
from tests.models.test_soft import softened

CATEGORIES = (("DOCTOR", "NAME"), ("PATIENT", "NAME"), ("DATE", "WHEN"), ("AGE", "WHEN"))
RULES = Rules(
    CATEGORIES,
    (
        TagRule("NAME", "DOCTOR", words=("Prof",)),
        TagRule("NAME", "PATIENT", triggers=("Mr.", "Mrs.")),
        TagRule("NAME", "DOCTOR", triggers=("Dr.", "MD")),
        TagRule("WHEN", "DATE", pattern=r"\d/\d"),
    ),
    (("NAME", "PATIENT"),),
)


@pytest.mark.parametrize(
    ("category", "text", "around", "label"),
    [
        ("NAME", "Ann Penn", "seen by dr.", "DOCTOR"),
        ("NAME", "Ann Penn", "seen by", "PATIENT"),  # the default named
        ("NAME", "Ann Penn", "mr. dr.", "PATIENT"),  # the first rule that fits
        ("NAME", "PROF Penn", "mr. dr.", "DOCTOR"),  # an even earlier one
        ("WHEN", "3/4", "", "DATE"),
        ("WHEN", "34", "dr.", "AGE"),  # the default is the last label; rules of other categories do not count
    ],
)
def test_the_first_rule_that_fits_names_the_label(category: str, text: str, around: str, label: str) -> None:
    assert RULES.label(category, text, text.lower().split(), around.split()) == label


def test_all_that_a_rule_says_must_fit() -> None:
    rule = TagRule("NAME", "DOCTOR", pattern="^P", words=("penn",), triggers=("dr.",))
    assert rule.fits("Penn", ["penn"], ["dr."])
    assert not rule.fits("Ann Penn", ["ann", "penn"], ["dr."])
    assert not rule.fits("Pym", ["pym"], ["dr."])
    assert not rule.fits("Penn", ["penn"], ["mr."])
    assert TagRule("NAME", "DOCTOR").fits("anything", [], [])


def test_categories_names_and_defaults() -> None:
    assert RULES.names == ("AGE", "DATE", "DOCTOR", "PATIENT")
    assert [RULES.category(label) for label in RULES.names] == ["WHEN", "WHEN", "NAME", "NAME"]
    assert (RULES.default("NAME"), RULES.default("WHEN")) == ("PATIENT", "AGE")


def test_a_pattern_that_cannot_be_read_is_refused_once_and_in_words(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError, match="the pattern of the rule for DOCTOR cannot be read") as caught:
        TagRule("NAME", "DOCTOR", pattern="(")
    with pytest.raises(ConfigError, match="the pattern of the rule for DOCTOR cannot be read"):
        TagRule("NAME", "DOCTOR", pattern=r"(a)\1")  # no back-references: matching takes linear time
    assert "b'" not in str(caught.value)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("defaults", "message"),
    [
        ((("NAME", "NOBODY"),), "NOBODY cannot be the default of NAME"),
        ((("WHAT", "DOCTOR"),), "DOCTOR cannot be the default of WHAT; its category is NAME"),
        ((("NAME", "DATE"),), "DATE cannot be the default of NAME; its category is WHEN"),
    ],
)
def test_defaults_are_labels_of_their_category(defaults: tuple[tuple[str, str], ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Rules(CATEGORIES, (), defaults)


def test_a_label_has_one_category() -> None:
    with pytest.raises(ConfigError, match="a label has two categories; give each label one"):
        Rules((("DOCTOR", "NAME"), ("DOCTOR", "WHO")))


def test_a_label_without_a_category_is_refused() -> None:
    with pytest.raises(ConfigError, match="a label has no category; name one for every label in `categories`"):
        RULES.category("TOWN")
    with pytest.raises(ConfigError, match="a rule puts TOWN under WHERE; its category is none"):
        Rules(CATEGORIES, (TagRule("WHERE", "TOWN"),))
    with pytest.raises(ConfigError, match="a rule puts DATE under NAME; its category is WHEN"):
        Rules(CATEGORIES, (TagRule("NAME", "DATE"),))
    with pytest.raises(ConfigError, match="a label has no category"):
        train(notes(4), HMMDP.submitted(RULES))


def test_rules_survive_the_way_to_a_file() -> None:
    config = HMMDP.submitted(RULES)
    assert msgspec.convert(msgspec.json.decode(msgspec.json.encode(config)), HMMDP) == config


@pytest.fixture(scope="module")
def tagger() -> Tagger:
    docs = []
    for number, name in enumerate("Penn Lowe Hart Ford Byrd Cole Dale Nash".split()):
        for title, label in (("Dr.", "DOCTOR"), ("Mr.", "PATIENT")):
            text = f"Today {title} {name} came."
            docs.append(Document.make(text, id=f"{label}{number}", layers={"gold": [Span(10, 10 + len(name), label)]}))
    return train(docs, replace(HMMDP.submitted(RULES), outside=3, inside=2, passes=3, min_count=2))


def labels_of(tagger: Tagger, text: str) -> list[str]:
    return [span.label for span in tagger(Document.make(text)).layer("hmmdp")]


def test_triggers_count_within_three_tokens_of_a_span(tagger: Tagger) -> None:
    assert REACH == 3
    assert labels_of(tagger, "Today Dr. Voss came.") == ["DOCTOR"]
    assert labels_of(tagger, "Today Mr. Voss came.") == ["PATIENT"]
    assert labels_of(tagger, "Today Mr. Voss came. MD here") == ["PATIENT"]
    assert isinstance(tagger.model, Model)
    model, doc = tagger.model, Document.make("w0 Dr. w2 w3 Voss w5 w6 MD w8 w9 Reed w11 w12 w13 MD")
    words = list(doc.words())
    cut = {word: words.index(word) for word in ("Voss", "Reed")}
    found = model.name_categories(
        [doc], [[(cut["Voss"], cut["Voss"] + 1, "NAME"), (cut["Reed"], cut["Reed"] + 1, "NAME")]]
    )
    assert [label for _, _, label in found[0]] == ["DOCTOR", "DOCTOR"]  # MD stands three after Voss, three before Reed
    far = Document.make("Dr. w1 w2 w3 Voss w5 w6 w7 MD")
    assert [label for _, _, label in model.name_categories([far], [[(4, 5, "NAME")]])[0]] == ["PATIENT"]


MEDICINE = replace(
    HMMDP.submitted(
        Rules(
            (("DOSE", "MEDICINE"), ("DRUG", "MEDICINE"), ("NAME", "WHO"), ("TOWN", "WHERE")),
            (TagRule("MEDICINE", "DOSE", pattern="[0-9]"),),
        )
    ),
    outside=4, inside=2, passes=3, min_count=2, tags="IOB2",  # a drug and its dose side by side are two spans
)  # fmt: skip
TEST = notes(15, 1)


@pytest.fixture(scope="module")
def medicine() -> Tagger:
    return train(notes(30), MEDICINE)


def test_a_tagger_with_rules_gives_sub_categories_alone(medicine: Tagger) -> None:
    assert medicine.labels == ("DOSE", "DRUG", "NAME", "TOWN")
    found = list(medicine.annotate(TEST, confidence=True))
    assert {span.label for doc in found for span in doc.layer("hmmdp")} == {"DOSE", "DRUG", "NAME", "TOWN"}
    assert hit_rate(found, "hmmdp") > 0.9
    others = medicine.alternatives(found[0], 5)
    assert {span.label for own in others for span in own.layer("hmmdp")} <= set(medicine.labels)


def test_posteriors_give_a_span_the_label_that_rules_give_it(medicine: Tagger) -> None:
    labels = []
    for doc, own in zip(TEST, medicine.posteriors(TEST), strict=True):
        soft = own.soft["hmmdp"]
        np.testing.assert_allclose(soft.values.sum(axis=1), 1, rtol=0, atol=1e-9)
        for span in medicine(doc).layer("hmmdp"):
            inside = (doc.tokens[:, 0] >= span.start) & (doc.tokens[:, 1] <= span.end)
            found = soft.values[inside]
            if found.max(axis=1).min() > 0.9:
                labels.append(span.label)
                assert {soft.labels[n] for n in found.argmax(axis=1)} == {span.label}
                if span.label == "DOSE":  # nothing is left to the usual label of the category
                    assert (found[:, soft.labels.index("DRUG")] == 0).all()
    assert {"DOSE", "DRUG"} <= set(labels)


@pytest.mark.parametrize("bias", [{"TOWN": -1000.0}, {"O": 1.0, "DOSE": 1.0}], ids=str)
def test_bias_under_rules_leans_on_o_alone(medicine: Tagger, bias: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="with rules, bias can only name O"):
        list(medicine.annotate(TEST, bias=bias))
    less, usual, more = (
        sum(len(doc.layer("hmmdp")) for doc in medicine.annotate(TEST, bias=own))
        for own in ({"O": 1000.0}, {}, {"O": -20.0})
    )
    assert 0 == less < usual < more


def test_soft_labels_and_rules_do_not_go_together() -> None:
    with pytest.raises(ConfigError, match="rules name sub-categories of spans; with soft labels leave them out"):
        train([softened(doc) for doc in notes(4)], MEDICINE, soft="votes")


def test_a_tagger_learns_categories_from_any_layer() -> None:
    rules = Rules((("DOSE", "ALL"), ("DRUG", "ALL"), ("NAME", "ALL"), ("TOWN", "ALL")))
    docs = [Document.make(doc.text, id=doc.id, layers={"mine": doc.layer("gold")}) for doc in notes(10)]
    config = replace(HMMDP.submitted(rules), outside=2, inside=2, passes=2, min_count=2)
    tagger = train(docs, config, layer="mine")
    assert {span.label for doc in tagger.annotate(docs) for span in doc.layer("hmmdp")} == {"TOWN"}  # the last
    assert all(span.label in rules.names for doc in docs for span in doc.layer("mine"))  # documents are as they were


@pytest.mark.parametrize(
    ("category", "text", "around", "label"),
    [
        ("NAME", "Ada Quill", "seen by dr.", "DOCTOR"),
        ("NAME", "Ada Quill", "ms. was", "PATIENT"),
        ("NAME", "aq12", "by", "USERNAME"),
        ("LOCATION", "02139", "", "ZIP"),
        ("LOCATION", "12 Elm Street", "", "STREET"),
        ("LOCATION", "New Mexico", "", "STATE"),
        ("LOCATION", "Quillville", "lives in", "CITY"),
        ("LOCATION", "Saint Ada Hospital", "lives in", "HOSPITAL"),
        ("CONTACT", "a@b.org", "fax", "EMAIL"),
        ("CONTACT", "555-0100", "fax :", "FAX"),
        ("CONTACT", "555-0100", "", "PHONE"),
        ("ID", "123-45-6789", "mrn", "SSN"),
        ("ID", "37947241ZGJ", "mrn :", "MEDICALRECORD"),
        ("ID", "37947241ZGJ", "", "IDNUM"),
        ("AGE", "61", "", "AGE"),
    ],
)
def test_the_rules_of_i2b2_name_its_sub_categories(category: str, text: str, around: str, label: str) -> None:
    assert Rules.i2b2().label(category, text, text.lower().split(), around.split()) == label


def test_the_rules_of_i2b2_have_the_categories_of_the_kinds_and_name_every_default() -> None:
    rules = Rules.i2b2()
    official = set(KINDS) - {"FAMILY", "NAME", "LOCATION", "CONTACT", "ID"}  # those are labels of other guidelines
    assert set(rules.names) == official
    assert all(kind_of(label).category == rules.category(label) for label in official)
    assert {category for category, _ in rules.defaults} == {category for _, category in rules.categories}
    assert HMMDP.submitted().rules == rules
    assert HMMDP.submitted(RULES).rules == RULES


def test_the_published_systems_differ_in_sub_tags_decoder_and_rules_alone() -> None:
    submitted, updated = HMMDP.submitted(), HMMDP.published()
    assert replace(submitted, outside=updated.outside, decode=updated.decode, rules=None) == updated
    assert (submitted.outside, submitted.inside, submitted.decode) == (20, 8, "brute")
