"""Intervals against theory, and the paired comparison."""

from __future__ import annotations

import time

import numpy as np
import pytest
from scipy.stats import binom

from chaffinch.errors import ConfigError, DataError
from chaffinch.evaluate import bootstrap
from chaffinch.evaluate.bootstrap import f1_difference, intervals
from chaffinch.evaluate.counts import Item, MatchCounts, count_sets

D = 1500


def system(hit_rate: float, *, seed: int = 3) -> MatchCounts:
    """One gold span in each document, found or not."""
    rng = np.random.default_rng(seed)
    gold: set[Item] = {("NAME", 0)}
    return count_sets((gold, gold if rng.random() < hit_rate else set()) for _ in range(D))


def test_the_interval_of_a_recall_is_the_binomial_one() -> None:
    counts = system(0.8)
    hits = int(counts.values[..., 0].sum())
    # Drawing D documents with replacement makes the number of hits binomial(D, hits / D), exactly.
    low, high = binom.ppf([0.025, 0.975], D, hits / D) / D
    drawn = intervals(counts, seed=1)
    assert drawn is not None
    assert drawn.micro[1] is not None
    # An end of 1,000 draws wobbles by 0.084 standard deviations; four of those.
    sd = np.sqrt(hits / D * (1 - hits / D) / D)
    np.testing.assert_allclose(drawn.micro[1], (low, high), rtol=0, atol=4 * 0.084 * sd)
    assert drawn.micro[0] == (1.0, 1.0)


def test_the_interval_of_a_macro_over_documents_is_the_normal_one() -> None:
    values = np.random.default_rng(0).integers(0, 9, size=(D, 1, 3))
    counts = MatchCounts(("NAME",), values, np.zeros((1, 2), np.int64), macro="documents")
    recall = values[:, 0, 0] / np.maximum(values[:, 0, 0] + values[:, 0, 2], 1)
    sd = recall.std() / np.sqrt(D)
    drawn = intervals(counts, seed=1)
    assert drawn is not None
    expected = recall.mean() - 1.96 * sd, recall.mean() + 1.96 * sd
    assert drawn.macro[1] == pytest.approx(expected, abs=4 * 0.084 * sd)


def test_an_interval_comes_from_the_draws_in_which_its_score_is_defined() -> None:
    # RARE is in one document of four, so about a third of the draws do not have it; never is it wrong.
    both: set[Item] = {("COMMON", 0), ("RARE", 1)}
    common: set[Item] = {("COMMON", 0)}
    drawn = intervals(count_sets([(both, both), *[(common, common)] * 3]))
    assert drawn is not None
    assert drawn.labels[1] == ((1.0, 1.0), (1.0, 1.0), (1.0, 1.0))
    assert drawn.macro == ((1.0, 1.0), (1.0, 1.0), (1.0, 1.0))


def test_a_label_that_is_never_predicted_has_no_interval_of_precision() -> None:
    drawn = intervals(count_sets([({("NAME", 0)}, set())] * 3))
    assert drawn is not None
    assert drawn.labels == ((None, (0.0, 0.0), (0.0, 0.0)),)
    assert drawn.macro == ((0.0, 0.0), (0.0, 0.0), (0.0, 0.0))


def test_one_document_or_no_span_has_no_interval() -> None:
    assert intervals(count_sets([({("NAME", 0)}, {("NAME", 0)})])) is None
    assert intervals(count_sets([(set(), set())] * 3)) is None


def test_the_same_seed_gives_the_same_interval_however_draws_are_blocked(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = system(0.7)
    first = intervals(counts, seed=4)
    assert first == intervals(counts, seed=4)
    assert first != intervals(counts, seed=5)
    monkeypatch.setattr(bootstrap, "_BLOCK", 7 * D)
    assert first == intervals(counts, seed=4)


def test_identical_systems_do_not_differ() -> None:
    found = f1_difference(system(0.8), system(0.8))
    assert (found.value, found.interval, found.p) == (0.0, (0.0, 0.0), 1.0)


def test_the_comparison_is_symmetric() -> None:
    there, back = f1_difference(system(0.8), system(0.78, seed=9)), f1_difference(system(0.78, seed=9), system(0.8))
    assert there.value == -back.value
    assert there.p == back.p
    assert there.interval is not None
    assert back.interval is not None
    assert there.interval == pytest.approx((-back.interval[1], -back.interval[0]), abs=1e-12)


def test_a_clear_difference_is_found_and_noise_is_not() -> None:
    clear = f1_difference(system(0.9), system(0.8, seed=9))
    assert clear.interval is not None
    assert clear.interval[0] > 0
    assert clear.p == pytest.approx(2 / 1001)
    noise = f1_difference(system(0.8), system(0.8, seed=9)).p
    assert noise is not None
    assert noise > 0.05


def test_about_one_in_twenty_pairs_of_equal_systems_differ_at_the_five_percent_level() -> None:
    small = 150
    rejected = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        sides = [np.zeros((small, 1, 3), np.int64) for _ in range(2)]
        for side in sides:
            hit = rng.random(small) < 0.8
            side[:, 0, 0], side[:, 0, 2] = hit, ~hit
        a, b = (MatchCounts(("N",), side, np.zeros((1, 2), np.int64)) for side in sides)
        p = f1_difference(a, b, draws=400).p
        rejected += p is not None and p < 0.05
    assert binom.ppf(0.001, 200, 0.05) <= rejected <= binom.ppf(0.999, 200, 0.05)


def test_systems_on_other_numbers_of_documents_are_refused() -> None:
    with pytest.raises(DataError, match="1500 documents against 2"):
        f1_difference(system(0.8), count_sets([(set(), set())] * 2))


@pytest.mark.parametrize("options", [{"draws": 0}, {"level": 1.0}])
def test_impossible_options_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match="must"):
        intervals(system(0.8), **options)


def test_ten_thousand_documents_take_seconds() -> None:
    values = np.random.default_rng(0).integers(0, 5, size=(10_000, 25, 3))
    begin = time.process_time()
    intervals(MatchCounts(tuple(map(str, range(25))), values, np.zeros((25, 2), np.int64)))
    assert time.process_time() - begin < 10
