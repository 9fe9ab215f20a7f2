"""Expected leaks, samples, estimates and sample sizes: cases worked by hand, and properties of every sample."""

from __future__ import annotations

import itertools
from collections import Counter
from functools import cache

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, hypergeom

from chaffinch.deid.leakage import (
    Left,
    Reader,
    Reviewed,
    Risk,
    Sample,
    calibration,
    estimate,
    expected,
    leaking_upper,
    queue,
    risk,
    sample,
    sample_size,
)
from chaffinch.errors import ConfigError, DataError

EXACT = Reader(recall=1.0)


def corpus(n: int, seed: int = 0) -> tuple[dict[str, int], dict[str, float]]:
    rng = np.random.default_rng(seed)
    ids = [f"n{number:04}" for number in range(n)]
    return dict.fromkeys(ids, 100), dict(zip(ids, rng.gamma(0.3, 0.1, n).tolist(), strict=True))


def read_all(drawn: Sample, leaks: dict[str, int]) -> list[Reviewed]:
    return [Reviewed(name, leaks.get(name, 0), 100) for name in drawn.ids]


# ------------------------------------------------------------------------------------------------- expected leaks


def test_expected_leaks_by_hand() -> None:
    first = risk(Left("a", 10, np.array([0.5, 0.2, 0.1]), np.array([2, 3, 7]), {"NAME": np.array([0.5, 0.1, 0.0])}))
    assert first.expected == pytest.approx(0.8)
    assert first.spans == pytest.approx(0.5 + 0.2 * 0.5 + 0.1)  # 2 and 3 are neighbours, 7 stands alone
    assert first.any_leak == pytest.approx(1 - 0.5 * 0.8 * 0.9)
    assert first.categories == pytest.approx({"NAME": 0.6})
    second = risk(Left("b", 30, np.zeros(0)))
    assert (second.expected, second.spans, second.any_leak) == (0, 0, 0)
    total = expected([first, second])
    assert [total.per_note, total.per_1000] == pytest.approx([0.4, 20.0])
    assert total.as_dict()["categories"]["NAME"]["per_1000"] == pytest.approx(15.0)


def test_spans_of_independent_tokens_against_listing_every_labelling() -> None:
    p = np.array([0.3, 0.9, 0.5, 0.2])
    total = 0.0
    for labels in itertools.product((0, 1), repeat=4):
        runs = sum(now and not before for before, now in itertools.pairwise((0, *labels)))
        total += runs * float(np.prod(np.where(labels, p, 1 - p)))
    assert risk(Left("a", 4, p)).spans == pytest.approx(total)


@pytest.mark.parametrize(
    ("tokens", "p", "places", "categories"),
    [
        (3, [0.5, 1.5], None, {}),
        (3, [0.5, float("nan")], None, {}),
        (1, [0.5, 0.5], None, {}),
        (3, [0.5, 0.5], [4, 4], {}),
        (3, [0.5, 0.5], None, {"NAME": [0.6, 0.1]}),
        (3, [0.5, 0.5], None, {"NAME": [0.6]}),
    ],
)
def test_probabilities_that_cannot_be(
    tokens: int, p: list[float], places: list[int] | None, categories: dict[str, list[float]]
) -> None:
    with pytest.raises(DataError):
        Left(
            "a", tokens, np.array(p), None if places is None else np.array(places),
            {name: np.array(row) for name, row in categories.items()},
        )  # fmt: skip


def test_calibration_bins() -> None:
    rng = np.random.default_rng(1)
    p = rng.beta(0.3, 5, 20_000)
    good = calibration(p, rng.random(len(p)) < p)
    assert sum(row.tokens for row in good.bins) == len(p)
    assert good.gap < 0.01
    assert good.ratio == pytest.approx(1, abs=0.1)
    assert sum(row.interval[0] <= row.promised <= row.interval[1] for row in good.bins) >= 8
    sure = calibration(p, rng.random(len(p)) < p / 2)  # promises twice what is there
    assert sure.ratio == pytest.approx(0.5, abs=0.1)
    one = calibration([0.25] * 4, [1, 0, 0, 0], bins=3)
    assert len(one.bins) == 1
    assert (one.gap, one.ratio, one.bins[0].identifiers) == (0, 1, 1)
    for wrong, gold in (([0.5], [1, 0]), ([], []), ([2.0], [1])):
        with pytest.raises(DataError):
            calibration(wrong, gold)


def test_the_queue_has_the_riskiest_first() -> None:
    rows = [Risk("b", 9, 0.1), Risk("c", 9, 2.0), Risk("a", 9, 0.1)]
    assert [row.id for row in queue(rows)] == ["c", "a", "b"]


# -------------------------------------------------------------------------------------------------------- samples


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from([0.0, 0.001, 0.1, 0.1, 0.5, 3.0]), min_size=1, max_size=60),
    st.data(),
    st.sampled_from([1, 2, 4, (0.5, 0.8, 0.95), (0.9,)]),
    st.integers(1, 8),
    st.sampled_from(["mixed", "neyman", "proportional"]),
)
def test_every_sample_holds_together(
    values: list[float], data: st.DataObject, strata: int, least: int, how: str
) -> None:
    risks = {f"d{number}": value for number, value in enumerate(values)}
    n = data.draw(st.integers(1, len(risks)))
    tokens = dict.fromkeys(risks, 7)
    drawn = sample(tokens, risks, n, seed=3, strata=strata, least=least, allocation=how)  # type: ignore[arg-type]
    assert len(drawn.ids) == len(set(drawn.ids)) == n
    assert (drawn.notes, drawn.tokens) == (len(risks), 7 * len(risks))
    for part in drawn.strata:
        assert min(least, n // len(drawn.strata), part.size) <= len(part.drawn) <= part.size
        assert part.size == sum(part.lowest_risk <= value <= part.highest_risk for value in values)  # in no other one
        assert all(part.lowest_risk <= risks[name] <= part.highest_risk for name in part.drawn)
    turned = dict(reversed(risks.items()))
    assert sample(tokens, turned, n, seed=3, strata=strata, least=least, allocation=how) == drawn  # type: ignore[arg-type]
    assert Sample.from_json(drawn.to_json()) == drawn
    assert sorted(drawn.reading_order()) == sorted(drawn.ids)


def test_within_a_stratum_every_set_is_equally_likely() -> None:
    tokens, risks = dict.fromkeys("abcde", 1), dict.fromkeys("abcde", 0.0)
    times = Counter(tuple(sorted(sample(tokens, risks, 2, seed=seed, strata=1).ids)) for seed in range(1500))
    assert len(times) == 10
    # Chi-square of 9 degrees of freedom: above 27.9 with probability 0.001.
    assert sum((number - 150) ** 2 / 150 for number in times.values()) < 27.9


def test_neyman_by_hand() -> None:
    # Half of 200 notes never leak as far as the risks know: they get the least. The others leak with probability 1/2
    # and 1/10: standard deviations 0.5 and 0.3, sizes 60 and 40, so shares 30 : 12.
    half, tenth = -np.log(0.5), -np.log(0.9)
    risks = (
        {f"a{i}": 0.0 for i in range(100)} | {f"b{i}": tenth for i in range(40)} | {f"c{i}": half for i in range(60)}
    )
    drawn = sample(dict.fromkeys(risks, 5), risks, 47, seed=0, strata=(0.5, 0.7), allocation="neyman")
    assert [(part.size, len(part.drawn)) for part in drawn.strata] == [(100, 5), (40, 12), (60, 30)]
    mixed = sample(dict.fromkeys(risks, 5), risks, 70, seed=0, strata=(0.5, 0.7))
    assert [len(part.drawn) for part in mixed.strata] == [round(35 / 2), 17, 35]  # 35 by 50:20:30, 35 by 0:10:25
    equal = sample(dict.fromkeys(risks, 5), risks, 40, seed=0, strata=(0.5, 0.7), allocation="proportional")
    assert [len(part.drawn) for part in equal.strata] == [20, 8, 12]


def test_a_sample_file_holds_ids_and_numbers() -> None:
    drawn = sample(*corpus(40), 12, seed=1)
    content = msgspec.json.decode(drawn.to_json())
    assert set(content) == {"strata", "seed", "allocation", "format"}
    assert set(content["strata"][0]) == {"size", "tokens", "lowest_risk", "highest_risk", "expected", "drawn"}
    for damaged in (b"", b"[]", b'{"strata": []}', drawn.to_json().replace(b"sample-1", b"sample-9")):
        with pytest.raises(DataError, match="sample"):
            Sample.from_json(damaged)


def test_samples_that_cannot_be_drawn() -> None:
    tokens, risks = corpus(10)
    with pytest.raises(ConfigError, match="from 1 to the 10 notes"):
        sample(tokens, risks, 11, seed=0)
    with pytest.raises(ConfigError, match="rising"):
        sample(tokens, risks, 5, seed=0, strata=(0.8, 0.5))
    with pytest.raises(ConfigError, match="allocation"):
        sample(tokens, risks, 5, seed=0, allocation="best")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="1 notes have no risk"):
        sample(tokens | {"x": 3}, risks, 5, seed=0)
    with pytest.raises(DataError, match="at least 0"):
        sample(tokens, dict.fromkeys(tokens, -1.0), 5, seed=0)


# ------------------------------------------------------------------------------------------------------ estimates


def test_a_plain_sample_by_hand() -> None:
    tokens, risks = corpus(1000)
    drawn = sample(tokens, risks, 100, seed=2, strata=1)
    result = estimate(drawn, read_all(drawn, {drawn.ids[0]: 2, drawn.ids[5]: 1}), reader=EXACT, most_per_note=5)
    total = result.total
    assert (total.found, total.leaking_found, result.read, result.tokens_read) == (3, 2, 100, 10_000)
    upper = max(k for k in range(1000) if hypergeom.cdf(2, 1000, k, 100) > 0.05)
    assert total.notes.estimate == pytest.approx(20)
    assert total.notes.upper == upper
    assert total.share.upper == upper / 1000
    assert total.per_note.estimate == pytest.approx(0.03)
    assert total.per_1000.estimate == pytest.approx(0.3)
    assert total.per_1000.upper == pytest.approx(10 * total.per_note.upper)  # 100 tokens in each note
    assert total.per_note.upper > total.share.upper


def test_strata_weigh_as_they_are_sampled() -> None:
    risks = {f"a{i}": 0.0 for i in range(90)} | {f"b{i}": 1.0 for i in range(10)}
    drawn = sample(dict.fromkeys(risks, 10), risks, 20, seed=0, strata=(0.9,), least=10)
    assert [len(part.drawn) for part in drawn.strata] == [10, 10]
    in_small = dict.fromkeys(drawn.strata[1].drawn[:2], 1)
    in_large = dict.fromkeys(drawn.strata[0].drawn[:2], 1)
    assert estimate(drawn, read_all(drawn, in_small), reader=EXACT).total.notes.estimate == pytest.approx(2)
    assert estimate(drawn, read_all(drawn, in_large), reader=EXACT).total.notes.estimate == pytest.approx(18)
    # The risky stratum was read in full: what was found there is all there is, and the bound knows.
    upper = estimate(drawn, read_all(drawn, in_small), reader=EXACT).total.notes.upper
    assert upper == 2 + leaking_upper(90, 10, 0)


def test_the_reader_enters() -> None:
    tokens, risks = corpus(2000)
    drawn = sample(tokens, risks, 200, seed=2, strata=1)
    rows = read_all(drawn, {drawn.ids[0]: 1})
    exact, known = estimate(drawn, rows, reader=EXACT), estimate(drawn, rows, reader=Reader(0.8))
    assert known.total.notes.estimate == pytest.approx(exact.total.notes.estimate / 0.8)
    assert known.total.share.upper == pytest.approx(exact.total.share.upper / 0.8, rel=0.02)
    measured = estimate(drawn, rows, reader=Reader(0.8, planted=50))
    low = beta.ppf(0.01, 40, 11)  # a fifth of the permitted 5 % goes to the recall
    assert measured.reader.least_recall(0.01) == pytest.approx(low)
    assert measured.total.notes.upper == leaking_upper(2000, 200, 1, recall=low, alpha=0.04)
    more = estimate(drawn, rows, reader=Reader(0.8, planted=5000))
    assert known.total.notes.upper < more.total.notes.upper < measured.total.notes.upper


def test_coverage_when_the_recall_is_measured() -> None:
    @cache
    def upper(planted: int, found: int) -> int:
        recall = Reader(planted / 20, planted=20).least_recall(0.01)
        return leaking_upper(500, 60, found, recall=recall, alpha=0.04)

    rng = np.random.default_rng(4)
    held, times, leaking, recall = 0, 400, 60, 0.7
    for _ in range(times):
        planted = max(1, int(rng.binomial(20, recall)))
        held += upper(planted, int(rng.binomial(rng.hypergeometric(leaking, 440, 60), recall))) >= leaking
    assert held >= 0.95 * times


def test_by_category() -> None:
    drawn = sample(*corpus(300), 60, seed=2)
    rows = [Reviewed(name, 0, 100, {"NAME": 0, "DATE": 0}) for name in drawn.ids]
    rows[0] = Reviewed(drawn.ids[0], 3, 100, {"NAME": 2, "DATE": 1})
    result = estimate(drawn, rows, most_per_note=3)
    assert {name: leaks.found for name, leaks in result.categories.items()} == {"DATE": 1, "NAME": 2}
    none = estimate(drawn, [Reviewed(name, 0, None, {"NAME": 0}) for name in drawn.ids], most_per_note=3)
    assert 0 < none.categories["NAME"].notes.upper <= result.categories["NAME"].notes.upper
    assert none.categories["NAME"] == none.total
    assert none.tokens_read is None
    assert [row["category"] for row in result.rows()] == ["DATE", "NAME", "all"]
    assert msgspec.json.decode(msgspec.json.encode(result.as_dict()))["total"]["found"] == 3


def test_sentences() -> None:
    tokens, risks = corpus(12_000)
    drawn = sample(tokens, risks, 300, seed=2, strata=1)
    assert estimate(drawn, read_all(drawn, {drawn.ids[7]: 1}), reader=EXACT).sentence() == (
        "Of 12,000 notes, with 95 % confidence at most 186 (1.55 %) still contain an identifier; "
        "300 were read, 1 leak found."
    )
    assert str(estimate(drawn, read_all(drawn, {}), confidence=0.9)) == (
        "Of 12,000 notes, with 90 % confidence at most 100 (0.84 %) still contain an identifier; "
        "300 were read, no leaks found; a reader is taken to find 90 % of what is left."
    )
    measured = estimate(drawn, read_all(drawn, {}), reader=Reader(0.95, planted=200)).sentence()
    assert measured.endswith("no leaks found; the reader's recall is 95 % of 200 planted identifiers.")


def test_one_note_read() -> None:
    tokens, risks = corpus(50)
    drawn = sample(tokens, risks, 1, seed=0)
    result = estimate(drawn, read_all(drawn, {}))
    assert result.total.notes.upper == leaking_upper(50, 1, 0, recall=0.9)
    assert 40 < result.total.notes.upper <= 50
    assert result.total.per_note.upper <= 10


def test_reviews_that_do_not_hold_together() -> None:
    drawn = sample(*corpus(30), 6, seed=0)
    rows = read_all(drawn, {})
    with pytest.raises(DataError, match="1 of the 6 notes of the sample were not read"):
        estimate(drawn, rows[1:])
    with pytest.raises(DataError, match="reviewed note 7 is not in the sample"):
        estimate(drawn, [*rows, Reviewed("someone", 0)])
    with pytest.raises(DataError, match="twice"):
        estimate(drawn, [*rows, rows[0]])
    with pytest.raises(DataError, match="2 leaks, but 1 by category"):
        estimate(drawn, [Reviewed(drawn.ids[0], 2, 1, {"NAME": 1}), *rows[1:]])
    with pytest.raises(DataError, match="1 leaks, but 0 by category"):
        estimate(drawn, [Reviewed(drawn.ids[0], 1), Reviewed(drawn.ids[1], 1, 1, {"NAME": 1}), *rows[2:]])
    with pytest.raises(DataError, match="fewer than 0"):
        estimate(drawn, [Reviewed(drawn.ids[0], -1), *rows[1:]])
    with pytest.raises(ConfigError, match="12 leaks but most_per_note is 10"):
        estimate(drawn, [Reviewed(drawn.ids[0], 12), *rows[1:]])
    with pytest.raises(ConfigError, match="confidence"):
        estimate(drawn, rows, confidence=1.0)
    for recall, planted in ((0.0, None), (1.1, None), (0.01, 10), (0.5, 1)):
        with pytest.raises(ConfigError, match="recall"):
            Reader(recall, planted)


# --------------------------------------------------------------------------------------------------- sample sizes


@pytest.mark.parametrize(("bound", "found"), [(0.01, 0), (0.01, 3), (0.2, 1)])
def test_sample_size_is_the_first_that_is_enough(bound: float, found: int) -> None:
    n = sample_size(bound, expected=found)
    assert beta.ppf(0.95, found + 1, n - found) <= bound < beta.ppf(0.95, found + 1, n - 1 - found)
    finite = sample_size(bound, expected=found, notes=1000)
    assert leaking_upper(1000, finite, found) <= bound * 1000 < leaking_upper(1000, finite - 1, found)
    assert finite <= n
    assert sample_size(bound, expected=found, recall=0.5) == pytest.approx(2 * n, rel=0.15)


def test_sample_sizes_that_cannot_be() -> None:
    assert sample_size(0.05, notes=10) == 10  # one leaking note of ten is more than 5 %: read them all
    with pytest.raises(ConfigError, match="reading all 10 notes"):
        sample_size(0.05, notes=10, recall=0.9)
    with pytest.raises(ConfigError, match="reading all 10 notes"):
        sample_size(0.05, expected=11, notes=10)
    with pytest.raises(ConfigError, match="between 0 and 1"):
        sample_size(0.0)
