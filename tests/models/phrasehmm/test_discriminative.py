"""Learning of phrase HMMs: Baum-Welch climbs, slopes agree with finite differences, what does not help is not kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest

from chaffinch.errors import DataError
from chaffinch.models.phrasehmm import estimate as estimates
from chaffinch.models.phrasehmm.chain import PhraseTables, normalise
from chaffinch.models.phrasehmm.choice import argument_f1, choose, cross_validate, folds
from chaffinch.models.phrasehmm.discriminative import Pairs, krogh, lbfgs, log_odds_gradient, step
from chaffinch.models.phrasehmm.encoding import text_of
from chaffinch.models.phrasehmm.fit import FACTORS, TUNING_SPLITS, Model, PhraseHMM, Sentence, fit, split
from chaffinch.models.phrasehmm.model import PhraseReading
from chaffinch.models.phrasehmm.segments import Representation
from chaffinch.models.phrasehmm.selection import Platt, calibrate
from chaffinch.models.phrasehmm.states import NULL, POSITIVE
from tests.models.phrasehmm import oracle
from tests.models.phrasehmm.phrases import DOMAINS, grammar

COMBINED = PhraseHMM(combined=True, zones=False)
KINDS = [COMBINED, replace(COMBINED, zones=True), replace(COMBINED, hierarchical=True), replace(COMBINED, context=True)]
NAMES = ["plain", "zones", "hierarchy", "context"]


def small(config: PhraseHMM) -> Model:
    sentences, groups = grammar(16)
    return fit(sentences, DOMAINS, config, groups=groups)


def pairs(model: Model, sentences: list[Sentence]) -> Pairs:
    """Sentences to train with; inner states are left open."""
    bare = [own._replace(arguments=None) for own in sentences]
    return Pairs.of(model.states, text_of(bare, model.states, model.symbols, masked=True, learning=True))


def hard() -> list[Sentence]:
    """A positive sentence that looks negative and a negative one that looks positive."""
    return [
        Sentence(("NP", "VP", "NP"), (("p1",), ("bind",), ("nucleus",)), (1, 0, 2), None, None, (("T",),) * 3),
        Sentence(("NP", "VP"), (("the", "p2"), ("local",)), (), None, None, (("T", "T"), ("T",))),
    ]


def log_conditional(model: Model, tables: PhraseTables, sentence: Sentence) -> float:
    """log P(labels | words), by listing every path."""
    listed = list(oracle.paths(replace(model, tables=tables), sentence))
    wanted = tuple(sentence.labels) or (0,) * len(sentence.types)
    return oracle.total([path for path in listed if oracle.labels(model, path) == wanted]) - oracle.total(listed)


@pytest.mark.parametrize("config", KINDS, ids=NAMES)
def test_the_chance_of_right_labels_agrees_with_listing_every_path(config: PhraseHMM) -> None:
    model = small(config)
    wanted = sum(log_conditional(model, model.tables, own) for own in hard())
    data = pairs(model, hard())
    assert data.log_conditional(model.tables) == pytest.approx(wanted, abs=1e-9)
    assert data.difference(model.tables, data.usable)[0] == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("config", KINDS, ids=NAMES)
def test_slopes_agree_with_finite_differences(config: PhraseHMM) -> None:
    model, size = small(config), 1e-5
    data = pairs(model, hard())
    _, difference = data.difference(model.tables, data.usable)
    rng = np.random.default_rng(0)
    for number, ((logs, axis), (gap, _)) in enumerate(zip(model.tables.rows(), difference.rows(), strict=True)):
        told = log_odds_gradient(np.exp(logs), gap, axis)
        free = np.argwhere(np.isfinite(logs) & (np.abs(told) > 1e-9))
        for place in rng.permutation(free)[:8].tolist():
            values = []
            for sign in (1, -1):
                moved = [own.copy() for own, _ in model.tables.rows()]
                moved[number][tuple(place)] += sign * size
                moved[number] = normalise(moved[number], axis)
                tables = PhraseTables.of_rows(model.tables, moved)
                values.append(sum(log_conditional(model, tables, own) for own in hard()))
            assert told[tuple(place)] == pytest.approx((values[0] - values[1]) / (2 * size), abs=1e-6)


@pytest.mark.parametrize("config", KINDS, ids=NAMES)
def test_a_small_exponentiated_step_raises_the_chance_of_right_labels(config: PhraseHMM) -> None:
    model = small(config)
    for sentence in hard():
        data = pairs(model, [sentence])
        value, difference = data.difference(model.tables, data.usable)
        moved = step(model.tables, difference, replace(config, rate=1e-3))
        assert log_conditional(model, moved, sentence) > value


@pytest.mark.parametrize("update", ["plain", "exponentiated"])
def test_steps_keep_chances_that_sum_to_one_and_what_is_impossible(update: Literal["plain", "exponentiated"]) -> None:
    model = small(replace(COMBINED, zones=True))
    data = pairs(model, hard())
    config = replace(model.config, rate=0.5, update=update)
    *_, moved = krogh(model.tables, data, config)
    for (before, axis), (after, _) in zip(model.tables.rows(), moved.rows(), strict=True):
        np.testing.assert_array_equal(np.isfinite(before), np.isfinite(after))
        np.testing.assert_allclose(np.exp(after).sum(axis=axis), 1.0, rtol=0, atol=1e-9)
    assert data.log_conditional(moved) > data.log_conditional(model.tables)


def test_a_plain_step_by_hand() -> None:
    model = small(COMBINED)
    gap = PhraseTables.zeros(model.states, model.symbols.sizes)
    gap.emissions[0][3, 0], gap.emissions[0][4, 0] = 1.0, -1.0
    moved = step(model.tables, gap, replace(COMBINED, update="plain", rate=0.1)).emissions[0][:, 0]
    before = np.exp(model.tables.emissions[0][:, 0])
    wanted = before.copy()
    wanted[3], wanted[4] = before[3] + 0.1, max(before[4] - 0.1, 1e-8)
    np.testing.assert_allclose(np.exp(moved), wanted / wanted.sum(), rtol=0, atol=1e-12)


def test_lbfgs_climbs_and_the_penalty_holds_it_back() -> None:
    model = small(COMBINED)
    data = pairs(model, hard())
    begin = data.log_conditional(model.tables)
    far, near = (lbfgs(model.tables, data, replace(COMBINED, penalty=penalty))[-1] for penalty in (0.01, 100.0))
    assert data.log_conditional(far) > data.log_conditional(near) > begin
    gaps = [np.abs(own.emissions[0] - model.tables.emissions[0]).max() for own in (far, near)]
    assert gaps[0] > 10 * gaps[1]


@pytest.mark.parametrize(
    "config",
    [
        PhraseHMM(states=3, passes=12),
        PhraseHMM(states=2, passes=12, zones=False, shrinkage=False),
        PhraseHMM(hierarchical=True, inner_states=2, passes=12),
        PhraseHMM(hierarchical=True, states=2, passes=12, context=True),
    ],
    ids=["copies", "published", "hierarchy", "both"],
)
def test_no_pass_of_baum_welch_goes_down(config: PhraseHMM, monkeypatch: pytest.MonkeyPatch) -> None:
    traces: list[np.ndarray] = []

    def watched(*told: object) -> estimates.PhraseEstimate:
        found = maximum(*told)  # type: ignore[arg-type]  # handed on
        traces.append(found.trace)
        return found

    maximum = estimates.fit_tables
    monkeypatch.setattr(estimates, "fit_tables", watched)
    monkeypatch.setattr(estimates, "TOLERANCE", -1.0)
    sentences, groups = grammar(40)
    fit([own._replace(arguments=None) for own in sentences], DOMAINS, config, groups=groups)
    assert len(traces[0]) == 12
    assert np.diff(traces[0]).min() > -1e-9
    assert traces[0][-1] > traces[0][0] + 1.0


def test_copies_learn_what_one_state_cannot() -> None:
    """Unlabelled phrases alternate between two vocabularies; two copies find the order."""
    rng = np.random.default_rng(1)
    rows = []
    for number in range(60):
        parts = [(str(rng.choice([["a", "b"], ["c", "d"]][at % 2])),) for at in range(8)]
        labels = (1, 0, 0, 0, 0, 0, 0, 2) if number % 2 else ()
        rows.append(Sentence(("X",) * 8, parts, labels))
    one, two = (fit(rows, DOMAINS, PhraseHMM(zones=False, states=n, passes=60)) for n in (1, 2))
    gain = [other.null - own.null for own, other in zip(one.readings(rows), two.readings(rows), strict=True)]
    assert np.mean(gain) > 3.0  # of 8 log 2 = 5.5 at the most


def noisy(count: int, seed: int) -> tuple[list[Sentence], list[str]]:
    """The grammar with much chatter that is no help, so that counting errs and training can help."""
    rng = np.random.default_rng(seed)
    sentences, groups = grammar(count, seed)
    out = []
    for own in sentences:
        extra = [("ADVP", (f"w{rng.integers(40)}",)) for _ in range(6)]
        swapped = rng.random() < 0.25
        words = [tuple("need" if word == "local" and swapped else word for word in part) for part in own.words]
        labels = tuple(own.labels) or (0,) * len(own.types)
        out.append(
            Sentence(
                (*own.types, *(kind for kind, _ in extra)), (*words, *(part for _, part in extra)),
                (*labels, *[0] * 6) if own.positive else (),
            )
        )  # fmt: skip
    return out, groups


@pytest.mark.parametrize("trainer", ["krogh", "lbfgs"])
def test_training_is_kept_where_held_out_groups_gain(trainer: Literal["krogh", "lbfgs"]) -> None:
    sentences, groups = noisy(150, 0)
    model = fit(sentences, DOMAINS, replace(COMBINED, trainer=trainer, rate=0.1), groups=groups)
    assert model.kept == int(np.argmax(model.held_out)) > 0
    test, _ = noisy(100, 3)
    plain = fit(sentences, DOMAINS, COMBINED, groups=groups)
    better, worse = (pairs(own, test).log_conditional(own.tables) for own in (model, plain))
    assert better > worse


def test_training_that_hurts_is_not_kept() -> None:
    sentences, groups = noisy(60, 0)
    rng = np.random.default_rng(0)
    mixed = [
        own._replace(labels=() if rng.random() < 0.5 else (1, *[0] * (len(own.types) - 2), 2)) for own in sentences
    ]
    plain = fit(mixed, DOMAINS, COMBINED, groups=groups)
    model = fit(mixed, DOMAINS, replace(COMBINED, trainer="krogh", rate=50.0, batch=1), groups=groups)
    assert model.kept == 0
    assert max(model.held_out) == model.held_out[0]
    np.testing.assert_array_equal(model.tables.moves, plain.tables.moves)


def test_too_few_groups_to_hold_out_any_means_counting(caplog: pytest.LogCaptureFixture) -> None:
    sentences, _ = grammar(20)
    model = fit(sentences, DOMAINS, replace(COMBINED, trainer="krogh", tune=True), groups=["one"] * 20)
    assert model.kept == 0
    assert len(model.held_out) == 0
    assert "too few groups" in caplog.text


def test_tuned_weights_are_those_under_which_held_out_labels_are_surest() -> None:
    sentences, groups = noisy(90, 0)
    model = fit(sentences, DOMAINS, replace(COMBINED, tune=True), groups=groups)
    sums = {}
    for factor in FACTORS["emission_m"]:
        config = replace(COMBINED, emission_m=factor * COMBINED.emission_weight)
        sums[config.emission_weight] = 0.0
        for number in range(TUNING_SPLITS):
            inside, outside = split(groups, 0.2, number)
            part = fit([sentences[n] for n in inside], DOMAINS, replace(config, balance=False))
            for n in outside:
                own = pairs(part, [sentences[n]])
                sums[config.emission_weight] += own.log_conditional(part.tables) if len(own.usable) else 0.0
    assert model.config.emission_m == max(sums, key=lambda weight: sums[weight])
    assert not model.config.tune


def test_folds_share_no_group_and_read_everything_once() -> None:
    sentences, groups = grammar(60)
    seen: list[int] = []
    for learn, own in folds(groups, 4, 0):
        assert not {groups[n] for n in learn} & {groups[n] for n in own}
        seen += own
    assert sorted(seen) == list(range(60))
    readings = cross_validate(sentences, DOMAINS, PhraseHMM(), groups=groups, count=4)
    assert np.mean([one.extracted == own.positive for one, own in zip(readings, sentences, strict=True)]) > 0.9
    learn, own = next(folds(groups, 4, 0))
    model = fit([sentences[n] for n in learn], DOMAINS, PhraseHMM(), groups=[groups[n] for n in learn])
    assert [readings[n].null for n in own] == [model.read(sentences[n]).null for n in own]


def test_the_representation_that_finds_arguments_is_chosen() -> None:
    sentences, groups = grammar(60)
    blind = [
        own._replace(words=tuple(("x",) for _ in own.words), types=("WORD",) * len(own.types)) for own in sentences
    ]
    blind = [own._replace(tags=None, arguments=None) for own in blind]
    candidates: dict[Representation, list[Sentence]] = {"token": blind, "phrase": sentences}
    choice = choose(candidates, DOMAINS, PhraseHMM(), groups=groups)
    assert choice.representation == "phrase"
    assert choice.scores["phrase"] > 0.9 > choice.scores["token"]


def test_argument_f1_by_hand() -> None:
    sentences = [Sentence(("A",) * 4, (("a",),) * 4, labels) for labels in ((1, 0, 2, 2), (), (1, 2, 0, 0))]
    found = [_reading((1, 0, 2, 2)), _reading((0, 1, 0, 2)), _reading((1, 0, 2, 0), extracted=False)]
    # Right: (0-1: 1), (2-4: 2). Found: 4. Known: 4.
    assert argument_f1(sentences, found) == pytest.approx(2 * 2 / (4 + 4))


def _reading(
    labels: tuple[int, ...], *, extracted: bool = True, posterior: float = -0.1, odds: float = 0.0
) -> PhraseReading:
    return PhraseReading(0.0, 0.0, labels, extracted, posterior, posterior, odds, np.zeros((len(labels), 2)))


def drawn(count: int) -> Iterator[tuple[PhraseReading, bool]]:
    """Readings that are right with the chance 1 / (1 + exp(-(1 + 2 odds)))."""
    rng = np.random.default_rng(0)
    for _ in range(count):
        odds = float(rng.normal())
        right = bool(rng.random() < 1 / (1 + np.exp(-1 - 2 * odds)))
        yield _reading((1, 0, 2), posterior=float(-rng.random()), odds=odds), right


def test_calibration_recovers_the_chances_that_answers_were_drawn_with() -> None:
    readings, right = zip(*drawn(4000), strict=True)
    found = calibrate(readings, right)
    for odds in (-1.0, 0.0, 1.0):
        wanted = 1 / (1 + np.exp(-1 - 2 * odds))
        assert found(_reading((1, 0, 2), posterior=-0.5, odds=odds)) == pytest.approx(wanted, abs=0.03)
    again = Platt.of(found.array())
    np.testing.assert_array_equal(again.chances(readings), found.chances(readings))


def test_calibration_of_readings_that_are_all_right_stays_short_of_certain() -> None:
    found = calibrate([_reading((1, 2))] * 5, [True] * 5)
    assert 0.8 < found(_reading((1, 2))) < 1.0
    assert 0.0 <= found(_reading((1, 2), posterior=-np.inf, odds=-np.inf)) <= 1.0
    with pytest.raises(DataError, match="0 readings"):
        calibrate([], [])


def test_sub_models_are_told_apart_by_their_sentences() -> None:
    model = small(COMBINED)
    assert {int(sub) for sub in model.states.sub} == {POSITIVE, NULL}
    assert (model.states.label[model.states.sub == NULL] == 0).all()


def test_without_held_out_groups_all_epochs_are_run_whatever_they_do() -> None:
    sentences, groups = grammar(24)
    config = PhraseHMM.published("phrase", combined=True, trainer="krogh")
    model = fit(sentences, DOMAINS, config, groups=groups)
    counted = fit(sentences, DOMAINS, replace(config, trainer="ml"), groups=groups)
    text = text_of(sentences, counted.states, counted.symbols, masked=config.entities, learning=True)
    *_, wanted = krogh(counted.tables, Pairs.of(counted.states, text), config)
    assert (model.kept, len(model.held_out)) == (config.epochs, 0)
    for (found, _), (expected, _) in zip(model.tables.rows(), wanted.rows(), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert not np.array_equal(model.tables.moves, counted.tables.moves)


def test_the_published_step_adds_the_rate_times_m_less_n_and_normalises() -> None:
    model = small(COMBINED)
    data = pairs(model, hard())
    _, difference = data.difference(model.tables, data.usable)
    config = PhraseHMM.published("phrase", trainer="krogh")
    assert (config.update, config.batch, config.held_out) == ("plain", 1, 0.0)
    moved = step(model.tables, difference, config)
    for (logs, axis), (gap, _), (found, _) in zip(model.tables.rows(), difference.rows(), moved.rows(), strict=True):
        added = np.where(np.isfinite(logs), np.maximum(np.exp(logs) + config.rate * gap, 1e-8), 0.0)
        total = added.sum(axis=axis, keepdims=True)
        np.testing.assert_allclose(np.exp(found), added / np.where(total > 0, total, 1.0), rtol=1e-12, atol=1e-15)
