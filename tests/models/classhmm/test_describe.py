"""States described and set against roles: by hand, and by plain formulas."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaffinch import bundle
from chaffinch.errors import DataError
from chaffinch.features import observe as window
from chaffinch.features import signatures as oov
from chaffinch.features import vocabulary
from chaffinch.features import word_types as types
from chaffinch.models.classhmm.config import ClassHMM
from chaffinch.models.classhmm.describe import features as substructure_features
from chaffinch.models.classhmm.describe import states as substructure
from chaffinch.models.classhmm.describe.features import StateFeatures, in_words
from chaffinch.models.classhmm.describe.report import Measure, Roles, Substructure, has_parts, verdict
from chaffinch.models.classhmm.describe.roles import (
    ABBREVIATION,
    COMMON,
    FAMILY,
    GIVEN,
    INITIAL,
    RARE,
    compare,
    measure,
    nmi,
    role,
    role_set,
    term_role,
)
from chaffinch.models.classhmm.describe.states import Class
from chaffinch.models.classhmm.model import Model
from chaffinch.models.hmmdp.config import HMMDP
from chaffinch.models.latent.parts import state_names
from chaffinch.models.tagger import Tagger, load, train
from chaffinch.text import Document, Soft, Span
from tests.models.notes import notes

GIVEN_NAMES = "Mary Linda Susan Karen Nancy Betty Helen Sandra Donna Carol Deborah Sharon Michelle Laura Sarah".split()
FAMILIES = (
    "Smith Johnson Jones Brown Garcia Miller Wright Moore Anderson Jackson White Harris Peterson Robinson Hall".split()
)
CONFIGS: dict[str, ClassHMM | HMMDP] = {
    "joint": ClassHMM(2, private=False, objective="joint", evaluations=20, calibrate=False),
    "crf": ClassHMM(2, private=False, outside_states=1, evaluations=10, calibrate=False),
    "IOB2": ClassHMM(2, private=False, objective="joint", classes="IOB2", evaluations=10, calibrate=False),
    "hmmdp": HMMDP(2, 2, min_count=2, passes=3, discriminative=False),
}


def only_names(docs: Sequence[Document]) -> list[Document]:
    """The documents with one label, so that paths can be listed."""
    return [replace(doc, layers={"gold": tuple(s for s in doc.layer() if s.label == "NAME")}) for doc in docs]


@cache
def tagger(name: str) -> Tagger:
    return train(only_names(notes(30)), CONFIGS[name])


def model_of(tagger: Tagger) -> Model:
    assert isinstance(tagger.model, Model)
    return tagger.model


def substructure_of(tagger: Tagger) -> Substructure:
    found = model_of(tagger).substructure
    assert found is not None
    return found


# Normalised mutual information


def by_formula(pairs: Sequence[tuple[int, int]]) -> tuple[float, float]:
    """I and the mean of both entropies, by their definitions."""
    n, both = len(pairs), Counter(pairs)
    one, other = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    information = sum(c / n * math.log(c * n / (one[a] * other[b])) for (a, b), c in both.items())
    entropies = [-sum(c / n * math.log(c / n) for c in counts.values()) for counts in (one, other)]
    return information, sum(entropies) / 2


def test_nmi_by_hand() -> None:
    rows = [(0, 0)] * 3 + [(0, 1), (1, 0)] + [(1, 1)] * 3
    expected = (0.75 * math.log(1.5) + 0.25 * math.log(0.5)) / math.log(2)
    assert expected == pytest.approx(0.18872, abs=1e-5)
    assert nmi(*np.array(rows).T) == pytest.approx(expected)
    same = np.array([0, 0, 1, 2])
    assert nmi(same, same) == pytest.approx(1.0)
    assert nmi(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])) == pytest.approx(0.0)
    assert nmi(np.zeros(4, int), np.zeros(4, int)) == 0.0
    assert nmi(np.zeros(0, int), np.zeros(0, int)) == 0.0


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=40))
def test_nmi_is_its_formula(rows: list[tuple[int, int, int]]) -> None:
    states, roles, places = np.array(rows).T
    information, mean = by_formula([(a, b) for a, b, _ in rows])
    assert nmi(states, roles) == pytest.approx(information / mean if mean > 1e-9 else 0.0, abs=1e-9)
    inside = [by_formula([(a, b) for a, b, c in rows if c == place]) for place in range(3) if (places == place).any()]
    weights = [(places == place).mean() for place in range(3) if (places == place).any()]
    information = sum(weight * terms[0] for weight, terms in zip(weights, inside, strict=True))
    mean = sum(weight * terms[1] for weight, terms in zip(weights, inside, strict=True))
    assert nmi(states, roles, places) == pytest.approx(information / mean if mean > 1e-9 else 0.0, abs=1e-9)


def test_chance_reaches_the_baseline_as_often_as_it_should() -> None:
    rng, above = np.random.default_rng(0), 0
    for _ in range(30):
        found = measure(rng.integers(3, size=120), rng.integers(2, size=120))
        assert 0 < found.mean < found.high < 0.1
        above += found.nmi > found.high
        assert not found.clear
    assert above <= 5  # one or two are expected
    roles = rng.integers(2, size=120)
    noisy = np.where(rng.random(120) < 0.1, 1 - roles, roles)
    assert measure(noisy, roles).clear
    assert measure(noisy, roles) == measure(noisy, roles)


def test_position_alone_wins_nothing_given_the_position() -> None:
    place = np.repeat([0, 1], 50)
    assert nmi(place, place) == pytest.approx(1.0)
    found = measure(place, place, place)
    assert (found.nmi, found.mean, found.high) == (0.0, 0.0, 0.0)
    mixed = np.tile([0, 0, 1, 1, 1], 20)  # states and roles agree within each place as well
    assert measure(mixed, mixed, place).nmi == pytest.approx(1.0)
    assert measure(mixed, mixed, place).high < 0.2


# Roles


@pytest.mark.parametrize(
    ("word", "expected"),
    [("Mary", GIVEN), ("Jones", FAMILY), ("J.", INITIAL), ("J", INITIAL), ("É.", INITIAL), ("Thomas", ""), ("j", ""),
     ("England", ""), ("12", ""), (".", ""), ("JR.", "")],
)  # fmt: skip
def test_roles_of_words(word: str, expected: str) -> None:
    assert role(word, oov.pack("en")) == expected


@pytest.mark.parametrize(
    ("word", "expected"),
    [("COPD", ABBREVIATION), ("APC", ABBREVIATION), ("heart", COMMON), ("Heart", COMMON), ("Wiskott", RARE),
     ("Mary", RARE), ("the", COMMON), ("T", ""), ("12", ""), ("p53", ""), ("-", ""), ("ONCOLOGY", COMMON)],
)  # fmt: skip
def test_roles_of_words_of_terms(word: str, expected: str) -> None:
    assert term_role(word, oov.pack("en")) == expected


@pytest.mark.parametrize(
    ("label", "roles"),
    [("PER", (GIVEN, FAMILY, INITIAL)), ("DOCTOR", (GIVEN, FAMILY, INITIAL)),
     ("Disease", (ABBREVIATION, COMMON, RARE)), ("LOC", (ABBREVIATION, COMMON, RARE))],
)  # fmt: skip
def test_roles_are_those_of_the_label(label: str, roles: tuple[str, ...]) -> None:
    assert role_set(label).roles == roles


def test_diseases_are_not_compared_with_names_of_persons() -> None:
    words = ["COPD", "APC", "ALS", "DMD", "HIV", "BRCA", "carcinoma", "fibrosis", "hepatitis", "melanoma", "anemia"]
    found = [((word,), (1 if word.isupper() else 2,)) for word in words for _ in range(9)]
    diseases, people = compare(found, oov.pack("en"), "Disease"), compare(found, oov.pack("en"), "PERSON")
    assert diseases.known[ABBREVIATION] == 54
    assert not {GIVEN, FAMILY, INITIAL} & set(diseases.known)
    assert diseases.single is not None
    assert diseases.single.clear
    assert people.single is None


def mentions(rng: np.random.Generator, mistakes: float, count: int = 200) -> list[tuple[tuple[str], tuple[int]]]:
    """One-token mentions whose state is 1 for given names and 2 for families, but for mistakes by word."""
    wrong = {word: rng.random() < mistakes for word in (*GIVEN_NAMES, *FAMILIES)}
    found = []
    for _ in range(count):
        kind = int(rng.integers(2))
        word = str(rng.choice([GIVEN_NAMES, FAMILIES][kind]))
        found.append(((word,), (1 + (kind ^ int(wrong[word])),)))
    return found


def test_states_that_follow_roles_are_seen_and_others_are_not() -> None:
    rng, pack = np.random.default_rng(1), oov.pack("en")
    found = compare(mentions(rng, 0.1), pack)
    assert found.single is not None
    assert found.words is not None
    assert found.clear
    assert found.mentions == 200
    assert found.known[GIVEN] + found.known[FAMILY] == found.single.mentions == 200
    assert found.words.mentions <= 30
    assert not compare(mentions(rng, 0.5), pack).clear


def test_a_few_frequent_words_do_not_make_sub_structure() -> None:
    """Four words with two states agree with their roles by luck; counted once, they say nothing."""
    frequent = [(("Mary",), (1,)), (("Linda",), (1,)), (("Jones",), (2,)), (("Brown",), (2,))] * 50
    found = compare(frequent, oov.pack("en"))
    assert found.single is not None
    assert found.words is not None
    assert found.single.clear
    assert found.single.nmi == pytest.approx(1.0)
    assert not found.words.clear
    assert not found.clear


def test_longer_mentions_are_compared_given_their_place() -> None:
    single = mentions(np.random.default_rng(0), 0.0)
    long = [((GIVEN_NAMES[n % 15], FAMILIES[n % 15]), (1, 2)) for n in range(60)]
    found = compare([*single, *long], oov.pack("en")).longer
    assert found is not None
    assert (found.mentions, found.nmi) == (120, 0.0)  # the place says all
    turned = [((FAMILIES[n % 15], GIVEN_NAMES[n % 15]), (2, 1)) for n in range(60)]
    both = compare([*single, *long, *turned], oov.pack("en")).longer
    assert both is not None
    assert both.nmi == pytest.approx(1.0)
    assert both.clear


def test_no_roles_no_measure() -> None:
    towns = [((f"Town{n}",), (1 + n % 2,)) for n in range(100)]
    found = compare([*towns, *mentions(np.random.default_rng(0), 0.0, 10)], oov.pack("en"))
    assert (found.single, found.words, found.clear) == (None, None, False)
    assert found.reason == "no role is known for these mentions (10 of 110 have one)"
    alike = compare([(("Mary",), (1,))] * 90 + [(("Jones",), (2,))] * 4, oov.pack("en"))
    assert alike.reason == "the roles of these mentions do not differ enough (given name 90, family name 4)"
    few = compare(mentions(np.random.default_rng(0), 0.0, 20), oov.pack("en"))
    assert few.reason == "too few mentions have a known role (20 of 20)"
    assert alike.single is few.single is None


GOOD, POOR = Measure(100, 0.4, 0.01, 0.03), Measure(100, 0.04, 0.01, 0.03)


@pytest.mark.parametrize(
    ("single", "words", "held_out", "expected"),
    [
        (GOOD, GOOD, (-2.0, -2.1), True),
        (GOOD, GOOD, (-2.1, -2.0), False),
        (GOOD, POOR, (-2.0, -2.1), False),
        (POOR, GOOD, (-2.0, -2.1), False),
        (GOOD, GOOD, (), None),
        (POOR, POOR, (), False),
        (None, None, (-2.0, -2.1), None),
    ],
)
def test_verdicts(
    single: Measure | None, words: Measure | None, held_out: tuple[float, ...], expected: bool | None
) -> None:
    states = substructure_of(tagger("joint")).classes[1].states
    klass = Class("PER", 10, 5, states, Roles(100, {}, single, words, None, "" if single else "no role is known"), ())
    assert has_parts(klass, held_out) is expected
    sentence = verdict(klass, held_out)
    head = {True: "PER has sub-structure:", False: "PER has no sub-structure", None: "Whether PER has sub-structure"}
    assert sentence.startswith(head[expected])
    assert (".400" in sentence) == (GOOD in (single, words))
    assert ("not likelier" in sentence) == (held_out == (-2.1, -2.0))
    one = Class("PER", 10, 5, states[:1], Roles(), ())
    assert has_parts(one, held_out) is None
    assert "one state" in verdict(one, held_out)


# Descriptions


def people(count: int, seed: int = 0) -> list[Document]:
    """Notes with given names, families, and both in turn, and nothing around them that tells which."""
    rng, docs = np.random.default_rng(seed), []
    for number in range(count):
        kind = number % 3
        words = [str(rng.choice(GIVEN_NAMES)), str(rng.choice(FAMILIES))]
        name = " ".join(words if kind == 0 else words[kind - 1 : kind])
        text = f"Seen by {name} today ."
        docs.append(Document.make(text, id=str(number), layers={"gold": [Span(8, 8 + len(name), "PER")]}))
    return docs


def test_planted_structure_is_found() -> None:
    config = ClassHMM(
        2, private=False, outside_states=1, objective="joint", evaluations=60, kappa=0.05, seed=1, restarts=3
    )
    trained_tagger = train(people(480), config)
    model, found = model_of(trained_tagger), substructure_of(trained_tagger).classes[1]
    assert found.roles.single is not None
    assert found.roles.single.nmi > 0.8
    assert has_parts(found, tuple(model.portrait.held_out.tolist())) is True
    assert "PER has sub-structure" in verdict(found, tuple(model.portrait.held_out.tolist()))
    given, family = sorted(found.states, key=lambda state: -state.positions[0])
    assert {word.name for word in given.words} <= set(GIVEN_NAMES)
    assert {word.name for word in family.words} <= set(FAMILIES)
    assert "often a first name" in {feature.name for feature in given.features}
    assert dict(given.after)[family.name] == pytest.approx(given.positions[0], abs=0.05)
    assert dict(family.after)["end"] == pytest.approx(1.0, abs=0.05)
    pairs = [[piece.number for piece in one] for one in found.examples if len(one) == 2]
    assert pairs
    assert all(pair == [given.number, family.number] for pair in pairs)
    elsewhere = substructure.measure(model, people(90, seed=5))["PER"].single
    assert elsewhere is not None
    assert elsewhere.nmi > 0.8


@pytest.mark.parametrize("name", ["joint", "crf", "IOB2"])
def test_descriptions_are_counts_of_the_best_path(name: str) -> None:
    docs, trained_tagger = only_names(notes(30)), tagger(name)
    model, found = model_of(trained_tagger), substructure_of(trained_tagger)
    names, counts, positions = state_names(model.labels), Counter[str](), Counter[tuple[str, str]]()
    words, follow = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for doc in docs:
        spans = trained_tagger.substructure(doc, "gold")
        for span in doc.layer():
            tokens = [n for n, (a, _) in enumerate(doc.tokens.tolist()) if span.start <= a < span.end]
            path = [next(p.label for p in spans if p.start <= doc.tokens[n, 0] < p.end) for n in tokens]
            for at, (n, here) in enumerate(zip(tokens, path, strict=True)):
                ends = {(True, True): "single", (True, False): "first", (False, True): "last"}
                positions[here, ends.get((at == 0, at == len(tokens) - 1), "inner")] += 1
                counts[here] += 1
                words[here, doc.words()[n]] += 1
                follow[here, "end" if at == len(tokens) - 1 else path[at + 1]] += 1
    label = found.classes[1]
    assert label.tokens == sum(counts.values())
    assert [state.name for state in label.states] == [one for one in names if not one.startswith("O/")]
    for state in label.states:
        assert state.tokens == counts[state.name]
        assert state.share == pytest.approx(counts[state.name] / label.tokens, abs=1e-4)
        total = max(state.tokens, 1)
        for place, share in zip(("first", "inner", "last", "single"), state.positions, strict=True):
            assert share == pytest.approx(positions[state.name, place] / total, abs=1e-4)
        for after, share in state.after:
            assert share == pytest.approx(follow[state.name, after] / total, abs=1e-4)
        for word in state.words:
            assert word.tokens == words[state.name, word.name]
            whole = sum(words[other.name, word.name] for other in label.states)
            expected = (word.tokens + 1) / (whole * state.tokens / label.tokens + 1)
            assert word.lift == pytest.approx(expected, abs=1e-3)
    mass = dict(zip(names, model.portrait.mass.tolist(), strict=True))
    assert mass == {state.name: state.tokens for one in found.classes for state in one.states}
    assert sum(mass.values()) == sum(len(doc.tokens) for doc in docs)


def test_it_survives_a_file(tmp_path: pytest.TempPathFactory) -> None:
    trained_tagger = tagger("joint")
    path = f"{tmp_path}/m.cfm"
    trained_tagger.save(path)
    again = load(path)
    assert substructure_of(again) == substructure_of(trained_tagger)
    np.testing.assert_array_equal(model_of(again).portrait.mass, model_of(trained_tagger).portrait.mass)
    found = bundle.load(path)
    older = {name: words for name, words in found.strings.items() if name != "substructure"}
    bundle.save(path, found.manifest, found.arrays, older)
    assert model_of(load(path)).substructure is None


def test_where_position_would_win_roles_are_not_measured() -> None:
    assert "position would win" in substructure_of(tagger("IOB2")).classes[1].roles.reason
    sideways = ClassHMM(2, private=False, objective="joint", topology="left-right", evaluations=3, calibrate=False)
    assert "position would win" in substructure_of(train(people(60), sideways)).classes[1].roles.reason
    single = ClassHMM(1, private=False, objective="joint", evaluations=3, calibrate=False)
    assert substructure_of(train(people(60), single)).classes[1].roles.reason == "there is one state"


def test_soft_labels_are_described_by_what_the_chain_makes_of_them() -> None:
    docs = []
    for doc in only_names(notes(12)):
        values = np.zeros((len(doc.tokens), 2))
        for n, (start, _) in enumerate(doc.tokens.tolist()):
            values[n, int(any(span.start <= start < span.end for span in doc.layer()))] = n % 4 > 0
        docs.append(doc.with_soft("votes", Soft(("O", "NAME"), values)))
    trained_tagger = train(docs, CONFIGS["joint"], soft="votes")
    assert model_of(trained_tagger).portrait.mass.sum() == sum(len(doc.tokens) for doc in docs)


def test_documents_with_other_labels_are_refused() -> None:
    with pytest.raises(DataError, match="the model has no label DOSE, DRUG, TOWN; it has NAME"):
        substructure.measure(model_of(tagger("joint")), notes(20))


@pytest.mark.parametrize(
    ("name", "words"),
    [("state=hi", "often a state"), ("job=lo", "sometimes an occupation"), ("suf=son", "suffix son"),
     ("InitialCap", "capitalised"), ("‹DATE", "date"), ("digits=4", "digits 4"), ("(", "(")],
)  # fmt: skip
def test_named_features_in_words(name: str, words: str) -> None:
    assert in_words(name) == words


# Words and features of states set by hand

PATIENTS = ["Anna saw Annika Quill", "Anna Berg Annika Quilt", "Bergson went to Berg Quilo"]
STATES = np.array([1, 0, 1, 2, 1, 2, 1, 2, 2, 0, 0, 2, 2])  # O is 0; a class has 1 and 2


def shown_by_hand(need: int, *, private: bool = False) -> StateFeatures:
    seen = types.with_features(window.observe([Document.make(text) for text in PATIENTS]), "rich", oov.pack("en"))
    known = vocabulary.learn(seen, [], patients=np.arange(3))
    return StateFeatures.of(
        seen, known, ("rich", oov.pack("en")), np.arange(3), STATES > 0, need, private=private
    )  # fmt: skip


def fits(name: str, word: str) -> bool | None:
    """Tell whether a word has the feature of that name; None if the name does not determine it."""
    letters = re.sub("[A-Z]", "A", re.sub("[a-z]", "a", word))
    for head, holds in (("begins with ", word.startswith), ("ends with ", word.endswith)):
        if name.startswith(head):
            return holds(name.removeprefix(head))
    if name.endswith(" characters"):
        return len(word) == int(name.split(maxsplit=1)[0])
    if name.startswith("shape "):
        return letters == name.removeprefix("shape ")
    if name.startswith("brief shape "):
        return "".join(sign for sign, _ in groupby(letters)) == name.removeprefix("brief shape ")
    return word.islower() if name == "all small" else None


@pytest.mark.parametrize("need", [1, 2])
def test_features_are_those_of_the_words_and_of_enough_patients(need: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("FEATURES", 1000), ("ECHO", 1.0), ("ABOVE", 0.0)):
        monkeypatch.setattr(substructure_features, name, value)
    tokens = [(word, patient) for patient, text in enumerate(PATIENTS) for word in text.split()]
    inside = [(word, patient, int(state)) for (word, patient), state in zip(tokens, STATES, strict=True) if state]
    checked = set[str]()
    for state, (words, features) in zip(
        (1, 2), shown_by_hand(need).describe_states(STATES, np.array([1, 2])), strict=True
    ):
        for word in words:
            users = {patient for used, patient, _ in inside if used == word.name}
            assert len(users) >= need
            assert word.tokens == sum(used == word.name and here == state for used, _, here in inside)
        for feature in features:
            holds = [token for token in inside if fits(feature.name, token[0])]
            if fits(feature.name, "") is not None:
                assert feature.tokens == sum(here == state for _, _, here in holds), feature.name
                assert len({patient for _, patient, _ in holds}) >= need
                checked.add(feature.name)
    assert len(checked) > 6
    alone = [name for name in checked if sum(bool(fits(name, word)) for word, _ in tokens) == 1]
    assert bool(alone) == (need == 1)


def test_private_features_need_patients_outside_of_spans() -> None:
    """Of words that begin with Quil, and Anna, none stands outside; words outside are saw, went and to."""
    shown = shown_by_hand(2, private=True)
    words, features = shown.publishable(STATES > 0)
    assert not words.any()
    named = {shown.name(int(f)) for f in np.flatnonzero(features)}
    assert not {name for name in named if name.startswith(("begins with", "ends with"))}
    assert "5 characters" in named
    plain = shown_by_hand(2)
    listed = {plain.name(int(f)) for f in np.flatnonzero(plain.publishable(STATES > 0)[1])}
    assert {"begins with Ann", "begins with Quil", "ends with a"} <= listed


# Privacy


CANARY = "Quillfeather"


def clinic(shared: bool, *, group: str | None = None) -> list[Document]:
    """Notes in which a rare name stands: with one patient, or with two; and affixes of it."""
    docs = people(24)
    for number in range(3):
        name = f"{CANARY} Jones" if number < 2 else CANARY
        patient = group or f"canary-{number % 2 if shared else 0}"
        text = f"Seen by {name} today ."
        span = Span(8, 8 + len(name), "PER")
        docs.append(Document.make(text, id=f"c{number}", group=patient, layers={"gold": [span]}))
    return docs


@pytest.mark.parametrize("objective", ["joint", "crf"])
def test_a_word_of_one_patient_is_nowhere(objective: str) -> None:
    config = ClassHMM(2, private=False, objective=objective, evaluations=5, calibrate=False, cutoff=1, floor=1)  # type: ignore[arg-type]
    alone = substructure_of(train(clinic(shared=False), config))
    assert alone.patients == 2
    text = alone.json()
    for part in (CANARY, "Quil", "ther", CANARY.lower()):
        assert part not in text
    assert any(f'"{name}"' in text for name in FAMILIES)
    assert CANARY in substructure_of(train(clinic(shared=True), config)).json()
    many = replace(config, floor=3)
    assert CANARY not in substructure_of(train(clinic(shared=True), many)).json()


def test_where_there_is_one_patient_words_are_told() -> None:
    config = ClassHMM(2, private=False, objective="joint", evaluations=5, calibrate=False, cutoff=1)
    docs = [replace(doc, group="one") for doc in clinic(shared=False, group="one")]
    found = substructure_of(train(docs, config))
    assert found.patients == 1
    assert CANARY in found.json()


@pytest.mark.parametrize("objective", ["joint", "crf"])
def test_private_models_tell_no_names(objective: str) -> None:
    config = ClassHMM(2, objective=objective, evaluations=5, calibrate=False, private=True)  # type: ignore[arg-type]
    found = substructure_of(train(clinic(shared=True), config))
    text = found.json()
    assert found.private
    assert all(klass.examples == () for klass in found.classes)
    for name in (*GIVEN_NAMES, *FAMILIES, CANARY):
        assert f'"{name}"' not in text
        assert f"with {name[:4]}" not in text
        assert f"with {name[-4:]}" not in text
    assert any(state.features for state in found.classes[1].states)
    assert '"today"' in text or '"Seen"' in text


def test_words_are_hidden_from_repr() -> None:
    found = substructure_of(
        train(clinic(shared=True), ClassHMM(2, private=False, objective="joint", evaluations=5, calibrate=False))
    )
    assert CANARY in found.json()
    assert CANARY not in repr(found)
