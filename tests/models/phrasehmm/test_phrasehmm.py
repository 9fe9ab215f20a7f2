"""Reading with a phrase HMM agrees with listing every path; counts and m-estimates agree with hand-worked ones."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest

from chaffinch.errors import ConfigError, DataError, ModelError
from chaffinch.models.phrasehmm.fit import Model, PhraseHMM, Sentence, fit, split
from chaffinch.models.phrasehmm.states import AFTER, BEFORE, BETWEEN, LABELLED, NONE, NULL, POSITIVE
from tests.models.phrasehmm import oracle
from tests.models.phrasehmm.phrases import DOMAINS, grammar

CONFIGS = [
    PhraseHMM(),
    PhraseHMM(zones=False),
    PhraseHMM(zones=False, combined=True),
    PhraseHMM(combined=True),
    PhraseHMM(states=2, zones=False, passes=3),
    PhraseHMM(context=True, lengths=True),
    PhraseHMM(hierarchical=True, zones=False),
    PhraseHMM(hierarchical=True, inner_states=2, passes=3),
    PhraseHMM.published("phrase"),
]
NAMES = ["zones", "plain", "combined", "combined zones", "copies", "context", "hierarchy", "inner 2", "published"]


@pytest.fixture(scope="module", params=range(len(CONFIGS)), ids=NAMES)
def model(request: pytest.FixtureRequest) -> Model:
    sentences, _ = grammar(24, entities=True)
    uneven = [own for number, own in enumerate(sentences) if number % 6 != 1]  # 12 positive, 8 negative
    return fit(uneven, DOMAINS, CONFIGS[request.param])


def short() -> list[Sentence]:
    """Known and unknown words and types, with and without entities, and only one segment."""
    return [
        Sentence(("NP", "VP", "NP"), (("the", "p1"), ("local",), ("membrane",)), (1, 0, 2)),
        Sentence(("NP", "VP", "NP"), (("the", "p1"), ("local",), ("membrane",)), (1, 0, 2), (1, 0, 2)),
        Sentence(("NP", "VP", "NP"), (("new",), ("bind",), ("the", "p2")), (), (1, 0, 0)),
        Sentence(("NP", "INTJ", "NP"), (("p2",), ("oh",), ("nucleus",)), (2, 0, 1)),
        Sentence(("NP",), (("p2", "nucleus"),), (1,)),
        Sentence(("VP", "."), (("local",), (".",))),
    ]


def test_likelihoods_agree_with_listing_every_path(model: Model) -> None:
    priors = model.log_priors
    for sentence, reading in zip(short(), model.readings(short()), strict=True):
        listed = list(oracle.paths(model, sentence, entities=model.config.entities))
        for sub, value in ((POSITIVE, reading.positive), (NULL, reading.null)):
            wanted = oracle.total([path for path in listed if path.sub == sub]) - priors[sub]
            assert value == pytest.approx(wanted, abs=1e-9)


def test_the_best_path_and_its_shares_agree_with_listing_every_path(model: Model) -> None:
    for sentence, reading in zip(short(), model.readings(short()), strict=True):
        listed = list(oracle.paths(model, sentence, entities=model.config.entities))
        if not model.config.combined:
            listed = [path for path in listed if path.sub == POSITIVE]
        if not listed:
            assert reading.log_confidence == -math.inf
            assert reading.confidence == 0.0
            assert not reading.extracted
            continue
        best, everything = max(listed), oracle.total(listed)
        assert reading.labels == oracle.labels(model, best)
        assert reading.log_confidence == pytest.approx(best.score - everything, abs=1e-9)
        assert 0.0 < reading.confidence <= 1.0 + 1e-12
        same = [path for path in listed if oracle.labels(model, path) == reading.labels]
        assert reading.log_label_posterior == pytest.approx(oracle.total(same) - everything, abs=1e-9)
        for domain in (0, 1):
            for at in range(len(sentence.types)):
                mine = [path for path in listed if oracle.labels(model, path)[at] >> domain & 1]
                wanted = math.exp(oracle.total(mine) - everything)
                assert reading.chances[at, domain] == pytest.approx(wanted, abs=1e-9)
        if model.states.unlabelled_inner and best.sub == POSITIVE:
            for label, own, inside in zip(reading.labels, reading.arguments, best.inner, strict=True):
                assert own == tuple(label > 0 and j == 1 for j in inside)


def test_pair_scores_agree_with_listing_every_path_of_those_labels(model: Model) -> None:
    priors = model.log_priors
    scores = model.pair_scores(short())
    for sentence, score in zip(short(), scores.tolist(), strict=True):
        wanted = tuple(sentence.labels) or (0,) * len(sentence.types)
        listed = list(oracle.paths(model, sentence, entities=False, lenient=True))
        given = [path for path in listed if path.sub == POSITIVE and oracle.labels(model, path) == wanted]
        null = oracle.total([path for path in listed if path.sub == NULL])
        assert score == pytest.approx(oracle.total(given) - priors[POSITIVE] - null + priors[NULL], abs=1e-9)
        assert model.pair_score(sentence._replace(labels=()), sentence.labels) == pytest.approx(score, abs=1e-12)


def test_a_label_without_states_is_scored_by_states_that_share_a_domain() -> None:
    sentences, groups = grammar(24)
    model = fit(sentences, DOMAINS, PhraseHMM(), groups=groups)
    both = Sentence(("NP", "VP"), (("p1", "nucleus"), ("local",)), (3, 0))
    assert math.isfinite(model.pair_scores([both])[0])


@pytest.mark.parametrize("config", CONFIGS, ids=NAMES)
def test_the_relation_is_found_if_and_only_if_the_verb_says_so(config: PhraseHMM) -> None:
    known, groups = grammar(120, entities=True)
    model = fit(known, DOMAINS, config, groups=groups)
    sentences, _ = grammar(60, seed=5, entities=True)
    for sentence, reading in zip(sentences, model.readings(sentences), strict=True):
        assert reading.extracted == sentence.positive
        if sentence.positive:
            assert reading.labels == sentence.labels
        if model.states.unlabelled_inner and sentence.positive:
            assert reading.arguments == tuple(
                tuple(inside and label > 0 for inside in own)
                for label, own in zip(sentence.labels, sentence.arguments or (), strict=True)
            )


def test_labels_are_not_looked_at_in_reading(model: Model) -> None:
    known, _ = grammar(12, seed=6, entities=True)
    sentences = [*known, *(own._replace(entities=(0,) * len(own.types)) for own in known)]  # labels without an entity
    bare = [own._replace(labels=(), arguments=None) for own in sentences]
    for one, other in zip(model.readings(sentences), model.readings(bare), strict=True):
        assert one[:7] == other[:7]


def test_sentences_read_alone_and_together_are_the_same(model: Model) -> None:
    for one, other in zip(model.readings(short()), map(model.read, short()), strict=True):
        assert one.labels == other.labels
        assert one[:2] == other[:2]


# ---- counting ------------------------------------------------------------------------------------------------------

CORPUS = [
    Sentence(("NP", "VP", "NP"), (("x", "gene"), ("bind",), ("dna",)), (1, 0, 2)),
    Sentence(("NP", "VP", "VP", "NP"), (("gene",), ("may",), ("bind",), ("dna", "x")), (1, 0, 0, 2)),
    Sentence(("NP", "VP"), (("gene",), ("fail",))),
    Sentence(("NP", "VP", "NP"), (("x",), ("fail",), ("gene",))),
]
PLAIN = PhraseHMM(zones=False, shrinkage=False, min_count=1, transition_m=0.5, emission_m=0.25)


def _state(model: Model, sub: int, kind: str, label: int, zone: int | None = None) -> int:
    states = model.states
    found = [
        q for q in range(states.size)
        if (int(states.sub[q]), states.types[int(states.type[q])], int(states.label[q])) == (sub, kind, label)
        and zone in (None, int(states.zone[q]))
    ]  # fmt: skip
    assert len(found) == 1
    return found[0]


def test_counts_and_m_estimates_by_hand() -> None:
    model = fit(CORPUS, DOMAINS, PLAIN)
    first, verb, second = (_state(model, POSITIVE, *row) for row in (("NP", 1), ("VP", 0), ("NP", 2)))
    null_noun, null_verb = _state(model, NULL, "NP", 0), _state(model, NULL, "VP", 0)
    assert model.states.size == 5
    moves = np.exp(model.tables.moves)
    # Entered in the positive model: NP:1 twice, VP three times, NP:2 twice, the end twice; m is 0.5 times 3 states.
    m = 1.5
    assert moves[verb, second] == pytest.approx((2 + m * 2 / 9) / (3 + m))
    assert moves[verb, verb] == pytest.approx((1 + m * 3 / 9) / (3 + m))
    assert moves[verb, 5] == pytest.approx((0 + m * 2 / 9) / (3 + m))
    assert moves[5, first] == pytest.approx(0.5 * (2 + m * 2 / 7) / (2 + m))
    assert moves[5, second] == pytest.approx(0.5 * (0 + m * 2 / 7) / (2 + m))
    # In the null model: NP three times, VP twice, the end twice; m is 0.5 times 2 states.
    assert moves[null_verb, null_noun] == pytest.approx((1 + 1.0 * 3 / 7) / (2 + 1.0))
    assert moves[5, null_noun] == pytest.approx(0.5 * (2 + 1.0 * 3 / 5) / (2 + 1.0))
    assert moves[first, null_verb] == 0.0
    # 14 words, and the unknown word counted once; 7 symbols, m is 0.25 times 7.
    words = dict(zip(model.symbols.names[0], np.exp(model.tables.emissions[0]), strict=True))
    m = 1.75
    assert words["bind"][verb] == pytest.approx((2 + m * 2 / 15) / (3 + m))
    assert words["gene"][first] == pytest.approx((2 + m * 4 / 15) / (3 + m))
    assert words["<unk>"][second] == pytest.approx((0 + m * 1 / 15) / (3 + m))
    assert words["fail"][null_verb] == pytest.approx((2 + m * 2 / 15) / (2 + m))


def test_shrinkage_goes_by_way_of_the_label() -> None:
    config = replace(PLAIN, shrinkage=True)
    model = fit([*CORPUS, Sentence(("NP", "PP", "NP"), (("x",), ("to",), ("dna",)), (1, 0, 2))], DOMAINS, config)
    preposition = _state(model, POSITIVE, "PP", 0)
    words = dict(zip(model.symbols.names[0], np.exp(model.tables.emissions[0]), strict=True))
    # The unlabelled words of positive sentences: bind, may, bind, to. All words: 17 and the unknown one.
    pooled = (2 + 50 * 2 / 18) / (4 + 50)
    m = 0.25 * 8
    assert words["bind"][preposition] == pytest.approx((0 + m * pooled) / (1 + m))


def test_the_uniform_background() -> None:
    model = fit(CORPUS, DOMAINS, replace(PLAIN, background="uniform"))
    words = dict(zip(model.symbols.names[0], np.exp(model.tables.emissions[0]), strict=True))
    assert words["bind"][_state(model, POSITIVE, "VP", 0)] == pytest.approx((2 + 1.75 / 7) / (3 + 1.75))


def test_words_seen_once_are_unknown() -> None:
    model = fit(CORPUS, DOMAINS, replace(PLAIN, min_count=2))
    assert model.symbols.names[0] == ("<unk>", "bind", "dna", "fail", "gene", "x")


def test_every_row_of_chances_sums_to_one(model: Model) -> None:
    for logs, axis in model.tables.rows():
        sums = np.exp(logs).sum(axis=axis)
        used = np.isfinite(logs).any(axis=axis)
        np.testing.assert_allclose(sums[used], 1.0, rtol=0, atol=1e-9)


def test_a_known_path_scores_the_sum_of_what_it_uses() -> None:
    model = fit(CORPUS, DOMAINS, replace(PLAIN, zones=True))
    sentence = Sentence(("NP", "VP", "VP", "NP"), (("gene",), ("may",), ("bind",), ("dna",)), (1, 0, 0, 2))
    first, second = (_state(model, POSITIVE, "NP", label, LABELLED) for label in (1, 2))
    verb, edge = _state(model, POSITIVE, "VP", 0, BETWEEN), model.states.size
    moves, words = model.tables.moves, dict(zip(model.symbols.names[0], model.tables.emissions[0], strict=True))
    score = moves[edge, first] + moves[first, verb] + moves[verb, verb] + moves[verb, second] + moves[second, edge]
    score += words["gene"][first] + words["may"][verb] + words["bind"][verb] + words["dna"][second]
    wanted = score - model.log_priors[POSITIVE] - model.read(sentence).null
    assert model.pair_score(sentence, sentence.labels) == pytest.approx(wanted, abs=1e-9)


# ---- structure and edges -------------------------------------------------------------------------------------------


def untyped(sentences: Sequence[Sentence]) -> list[Sentence]:
    """The same with every word a segment of one type."""
    out = []
    for own in sentences:
        labels = own.labels or (0,) * len(own.types)
        flat = [(word, label) for part, label in zip(own.words, labels, strict=True) for word in part]
        words = tuple((word,) for word, _ in flat)
        out.append(Sentence(("WORD",) * len(flat), words, tuple(label for _, label in flat)))
    return out


def test_the_token_models_have_the_states_of_the_publication() -> None:
    sentences, groups = grammar(40)
    one = fit(untyped(sentences), DOMAINS, PhraseHMM.published("token 1"), groups=groups)
    assert sorted(zip(one.states.sub.tolist(), one.states.label.tolist(), strict=True)) == [
        (0, 0),
        (0, 1),
        (0, 2),
        (1, 0),
    ]
    two = fit(untyped(sentences), DOMAINS, PhraseHMM.published("token 2"), groups=groups)
    zones = sorted(two.states.zone.tolist())
    assert zones == sorted([BEFORE, BETWEEN, AFTER, LABELLED, LABELLED, NONE])
    moves = np.exp(two.tables.moves)
    at = {zone: int(np.flatnonzero(two.states.zone == zone)[0]) for zone in (BEFORE, BETWEEN, AFTER, NONE)}
    edge = two.states.size
    for one_zone, other in ((BEFORE, BETWEEN), (BEFORE, AFTER), (BETWEEN, AFTER), (AFTER, BETWEEN), (BETWEEN, BEFORE)):
        assert moves[at[one_zone], at[other]] == 0.0
    assert moves[at[BEFORE], edge] == moves[at[BETWEEN], edge] == 0.0
    assert moves[edge, at[BETWEEN]] == moves[edge, at[AFTER]] == 0.0
    assert moves[at[AFTER], edge] > 0


def test_entities_forbid_labels_elsewhere() -> None:
    sentences, groups = grammar(40, entities=True)
    model = fit(sentences, DOMAINS, PhraseHMM(zones=False), groups=groups)
    blind = [own._replace(entities=(0,) * len(own.types)) for own in sentences]
    assert not any(any(reading.labels) or reading.extracted for reading in model.readings(blind))
    heedless = replace(model, config=replace(model.config, entities=False))
    assert [own.extracted for own in heedless.readings(blind)] == [own.positive for own in sentences]
    zoned = fit(sentences, DOMAINS, PhraseHMM(), groups=groups)
    assert {reading.positive for reading in zoned.readings(blind)} == {-math.inf}  # no argument can be anywhere


def test_both_conditions_must_hold() -> None:
    sentences, groups = grammar(40)
    model = fit(sentences, DOMAINS, PhraseHMM(zones=False), groups=groups)
    found = model.readings(sentences)
    strict = replace(model, config=replace(model.config, threshold=1e6)).readings(sentences)
    assert any(own.extracted for own in found)
    assert not any(own.extracted for own in strict)
    half = Sentence(("NP", "VP", "PP"), (("the", "p1"), ("local",), ("to",)))
    reading = replace(model, config=replace(model.config, threshold=-1e6)).read(half)
    assert not reading.extracted  # no second argument


def test_the_combined_model_is_both_models_weighed_by_their_priors() -> None:
    sentences, groups = grammar(40)
    separate = fit(sentences, DOMAINS, PhraseHMM(zones=False, balance=False), groups=groups)
    combined = fit(sentences, DOMAINS, PhraseHMM(zones=False, balance=False, combined=True), groups=groups)
    np.testing.assert_allclose(np.exp(combined.log_priors), [0.5, 0.5], rtol=0, atol=1e-12)
    test, _ = grammar(40, seed=9)
    for one, other in zip(separate.readings(test), combined.readings(test), strict=True):
        assert one[:2] == pytest.approx(other[:2], abs=1e-9)
        assert one.extracted == other.extracted
        if one.extracted:
            assert one.labels == other.labels


def test_unknown_types_are_read_by_unlabelled_states_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    sentences, groups = grammar(24)
    model = fit(sentences, DOMAINS, PhraseHMM(zones=False), groups=groups)
    with caplog.at_level(logging.INFO, logger="chaffinch.models"):
        reading = model.read(Sentence(("NP", "CANARY"), (("the", "p1"), ("canaryword",))))
    assert math.isfinite(reading.positive)
    assert math.isfinite(reading.null)
    assert "1 of 2 segments" in caplog.text
    assert "canary" not in caplog.text.lower()


def test_empty_and_odd_sentences() -> None:
    sentences, groups = grammar(24)
    for config in CONFIGS:
        model = fit(sentences, DOMAINS, config, groups=groups)
        empty = Sentence((), ())
        reading = model.read(empty)
        assert (reading.labels, reading.extracted, reading.chances.shape) == ((), False, (0, 2))
        assert model.readings([]) == []
        assert len(model.pair_scores([])) == 0
        mixed = model.readings([empty, sentences[0], empty])
        assert mixed[1].labels == model.read(sentences[0]).labels
    fit([*sentences, Sentence((), ())], DOMAINS, PhraseHMM(), groups=[*groups, "e"])


def test_bad_input_is_refused_without_quoting_it() -> None:
    good = CORPUS[0]
    cases: list[tuple[list[Sentence], str]] = [
        ([good], "no negative sentence"),
        ([CORPUS[2]], "no positive sentence"),
        ([], "no positive sentence"),
        ([good._replace(words=(("canary",),))], "1 segments"),
        ([good._replace(words=((), ("a",), ("b",)))], "needs a word"),
        ([good._replace(labels=(1, 0, 4))], "masks of 2 domains"),
        ([good._replace(labels=(1,))], "labels must be 3"),
        ([good._replace(entities=(1, -1, 0))], "entities must be 3"),
        ([good._replace(arguments=((True,), (False,), (True,)))], "arguments must have one value per word"),
    ]
    for sentences, message in cases:
        with pytest.raises(DataError, match=message) as caught:
            fit(sentences, DOMAINS, PhraseHMM())
        assert "canary" not in str(caught.value)
    with pytest.raises(DataError, match="1 to 8 domains"):
        fit(CORPUS, (), PhraseHMM())
    with pytest.raises(DataError, match="2 groups for 4 sentences"):
        fit(CORPUS, DOMAINS, PhraseHMM(), groups=["a", "b"])
    assert "gene" not in repr(CORPUS[0])


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"representation": "tree"}, "representation must be"), ({"states": 0}, "states must be a whole number"),
        ({"trainer": "krogh"}, "combined=True"), ({"rate": 0.0}, "rate must be a number above 0"),
        ({"held_out": 0.0, "tune": True}, "set held_out above 0"),
        ({"held_out": 1.0}, "held_out must be"), ({"emission_m": -1.0}, "emission_m must be a number above 0"),
    ],
)  # fmt: skip
def test_bad_settings_are_refused(choice: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        PhraseHMM(**choice)
    with pytest.raises(ConfigError, match="the publication has the models"):
        PhraseHMM.published("trees")


def test_negatives_are_balanced_and_groups_kept_apart() -> None:
    sentences, groups = grammar(60)
    few = [own for own in sentences if not own.positive] + [own for own in sentences if own.positive][:10]
    model = fit(few, DOMAINS, PhraseHMM())
    np.testing.assert_allclose(np.exp(model.log_priors), [0.5, 0.5], rtol=0, atol=1e-12)
    model = fit(few, DOMAINS, PhraseHMM(balance=False))
    np.testing.assert_allclose(np.exp(model.log_priors), [0.25, 0.75], rtol=0, atol=1e-12)
    inside, outside = split(groups, 0.2, 0)
    assert not {groups[n] for n in inside} & {groups[n] for n in outside}
    assert sorted(inside + outside) == list(range(60))


def test_a_model_comes_back_from_its_state(model: Model) -> None:
    state = replace(model.state(), config=asdict(model.config))
    arrays, again = state.arrays, Model.of(state)
    for one, other in zip(model.readings(short()), again.readings(short()), strict=True):
        assert one[:7] == other[:7]
        np.testing.assert_array_equal(one.chances, other.chances)
    with pytest.raises(ModelError, match="do not fit"):
        Model.of(replace(state, arrays={**arrays, "moves": arrays["moves"][1:]}))
    with pytest.raises(ModelError, match="cannot be read"):
        Model.of(replace(state, arrays={}))


def test_the_same_seed_gives_the_same_numbers() -> None:
    sentences, groups = grammar(30)
    for config in CONFIGS:
        one, other = (fit(sentences, DOMAINS, config, groups=groups).state().arrays for _ in range(2))
        assert all(np.array_equal(one[name], other[name]) for name in one)
