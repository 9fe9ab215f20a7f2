"""The bounds against listing every sample, every population and every allocation; and against values worked by hand."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
import pytest
from scipy.stats import beta, binom, hypergeom

from chaffinch.deid.leakage import bounds as leakage_bounds
from chaffinch.deid.leakage import branch_and_bound as leakage_search
from chaffinch.deid.leakage.bounds import Stratum, detection_chances, leaking_upper, leaks_upper, notes_upper
from chaffinch.errors import ConfigError

Design = tuple[tuple[int, int], ...]  # of each stratum: its size, and how many are read
DESIGNS: list[Design] = [
    ((4, 1), (6, 3)),
    ((5, 2), (7, 2)),
    ((1, 1), (11, 1)),
    ((6, 6), (6, 2)),
    ((3, 1), (4, 2), (4, 2)),
    ((2, 1), (2, 1), (2, 1), (3, 1)),
]


@cache
def notes_bound(design: Design, found: tuple[int, ...], recall: float = 1.0, alpha: float = 0.05) -> int:
    strata = [Stratum(size, read, hits) for (size, read), hits in zip(design, found, strict=True)]
    return notes_upper(strata, recall=recall, alpha=alpha)


@cache
def leaks_bound(design: Design, found: tuple[int, ...], most: int, recall: float = 1.0) -> int:
    strata = [Stratum(size, read, hits) for (size, read), hits in zip(design, found, strict=True)]
    return leaks_upper(strata, most=most, recall=recall)


@cache
def drawn_chances(size: int, marked: int, read: int) -> list[float]:
    return list(map(float, hypergeom.pmf(np.arange(read + 1), size, marked, read)))


@cache
def seen_chances(drawn: int, recall: float) -> list[float]:
    return list(map(float, binom.pmf(np.arange(drawn + 1), drawn, recall)))


def samples(design: Design) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Every sample the design can draw, all equally likely."""
    return itertools.product(*(itertools.combinations(range(size), read) for size, read in design))


def test_by_hand() -> None:
    # Of 10 notes 5 are read and none leaks: 3 leaking ones would be missed in C(7,5)/C(10,5) = 21/252 of the samples,
    # 4 in 6/252 = 0.024.
    assert leaking_upper(10, 5, 0) == 3
    assert leaking_upper(10, 10, 4) == 4
    assert leaking_upper(10, 0, 0) == 10
    assert leaking_upper(1, 1, 0, recall=0.9) == 1  # a reader who misses a tenth has not shown that it is clean
    assert leaking_upper(1, 1, 0, recall=0.96) == 0
    assert leaking_upper(100, 1, 1) == 100


@pytest.mark.parametrize("found", [0, 1, 2, 7, 40])
def test_a_large_corpus_gives_clopper_and_pearson(found: int) -> None:
    size = 2_000_000
    upper = leaking_upper(size, 300, found) / size
    assert upper == pytest.approx(beta.ppf(0.95, found + 1, 300 - found), rel=2e-4)
    assert leaking_upper(size, 300, found, recall=0.8) / size == pytest.approx(upper / 0.8, rel=2e-4)


def test_nothing_found_is_the_rule_of_three() -> None:
    assert leaking_upper(1_000_000, 1000, 0) / 1e6 == pytest.approx(3 / 1000, rel=0.005)
    proportional = [Stratum(5000, 50, 0), Stratum(3000, 30, 0), Stratum(2000, 20, 0)]
    assert notes_upper(proportional) == pytest.approx(leaking_upper(10_000, 100, 0), rel=0.02)
    # Otherwise the least-read stratum sets it: there a twentieth of the chance hides the most notes.
    assert notes_upper([Stratum(5000, 20, 0), Stratum(5000, 80, 0)]) == leaking_upper(5000, 20, 0)
    assert leaks_upper([Stratum(10_000, 100, 0)], most=7) == pytest.approx(7 * leaking_upper(10_000, 100, 0), abs=6)


def test_chances_against_scipy() -> None:
    leaking = np.array([0, 1, 5, 17, 30])
    exact = detection_chances(30, 12, leaking, 1.0, 6)
    np.testing.assert_allclose(exact, hypergeom.pmf(np.arange(7)[None], 30, leaking[:, None], 12), rtol=0, atol=1e-12)
    thinned = detection_chances(30, 12, leaking, 0.7, 6)
    for row, marked in zip(thinned, leaking, strict=True):
        # The other way round: which leaking notes would be seen, then which of these are drawn.
        seen = binom.pmf(np.arange(marked + 1), marked, 0.7)
        expected = [sum(p * hypergeom.pmf(y, 30, j, 12) for j, p in enumerate(seen)) for y in range(7)]
        np.testing.assert_allclose(row, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("design", DESIGNS)
def test_coverage_over_every_sample_of_every_population_of_leaking_notes(design: Design) -> None:
    drawn = list(samples(design))
    for leaking in itertools.product(*(range(size + 1) for size, _ in design)):
        outcomes = Counter(
            tuple(sum(note < marked for note in part) for part, marked in zip(sample, leaking, strict=True))
            for sample in drawn
        )
        held = sum(times for found, times in outcomes.items() if notes_bound(design, found) >= sum(leaking))
        assert held >= 0.95 * len(drawn)


@pytest.mark.parametrize("recall", [0.5, 0.9])
@pytest.mark.parametrize("design", [DESIGNS[0], DESIGNS[3]])
def test_coverage_with_a_reader_who_misses_some(design: Design, recall: float) -> None:
    for leaking in itertools.product(*(range(size + 1) for size, _ in design)):
        held = 0.0
        for drawn in itertools.product(*(range(read + 1) for _, read in design)):
            parts = list(zip(design, leaking, drawn, strict=True))
            chance = math.prod(drawn_chances(size, marked, read)[x] for (size, read), marked, x in parts)
            if chance > 0:
                for found in itertools.product(*(range(x + 1) for x in drawn)):
                    seen = math.prod(seen_chances(x, recall)[y] for y, x in zip(found, drawn, strict=True))
                    held += chance * seen * (notes_bound(design, found, recall) >= sum(leaking))
        assert held >= 0.95 - 1e-9


@pytest.mark.parametrize("design", [((3, 1), (4, 2)), ((2, 2), (4, 1)), ((6, 1),), ((6, 4),)])
def test_coverage_over_every_population_of_counts(design: Design) -> None:
    most, drawn = 3, list(samples(design))
    counts = [itertools.combinations_with_replacement(range(most + 1), size) for size, _ in design]
    for population in itertools.product(*counts):
        total = sum(map(sum, population))
        outcomes = Counter(
            tuple(sum(part[note] for note in notes) for part, notes in zip(population, sample, strict=True))
            for sample in drawn
        )
        held = sum(times for found, times in outcomes.items() if leaks_bound(design, found, most) >= total)
        assert held >= 0.95 * len(drawn)


def test_coverage_of_counts_when_the_reader_overlooks_whole_notes() -> None:
    # The worst dependence: all leaks of a note are seen together, or none.
    design, most, recall = ((3, 2), (4, 2)), 3, 0.6
    drawn = list(samples(design))
    for population in itertools.product(itertools.product((0, 1, 3), repeat=3), itertools.product((0, 3), repeat=4)):
        held = 0.0
        for sample in drawn:
            notes = [(part, note) for part, chosen in enumerate(sample) for note in chosen]
            for awake in itertools.product((False, True), repeat=len(notes)):
                found = [0] * len(design)
                for (part, note), seen in zip(notes, awake, strict=True):
                    found[part] += population[part][note] * seen
                chance = math.prod(recall if seen else 1 - recall for seen in awake)
                held += chance * (leaks_bound(design, tuple(found), most, recall) >= sum(map(sum, population)))
        assert held >= 0.95 * len(drawn)


def largest_by_listing(strata: Sequence[Stratum], weights: Sequence[int], alpha: float) -> int:
    """The largest total of all allocations that the weighted count does not reject; each listed, scipy's chances."""
    seen = sum(weight * part.found for weight, part in zip(weights, strata, strict=True))
    best = 0
    for leaking in itertools.product(*(range(p.found, p.size - p.read + p.found + 1) for p in strata)):
        if sum(leaking) <= best:
            continue
        chance = 0.0
        for drawn in itertools.product(*(range(p.read + 1) for p in strata)):
            if sum(w * x for w, x in zip(weights, drawn, strict=True)) <= seen:
                each = zip(drawn, strata, leaking, strict=True)
                chance += math.prod(drawn_chances(p.size, k, p.read)[x] for x, p, k in each)
        if chance > alpha:
            best = sum(leaking)
    return best


@pytest.mark.parametrize(
    ("strata", "weights"),
    [
        ([Stratum(9, 3, 1), Stratum(10, 5, 1)], [12, 8]),
        ([Stratum(12, 3, 0), Stratum(9, 3, 2)], [12, 9]),
        ([Stratum(8, 4, 1), Stratum(6, 3, 0), Stratum(5, 1, 0)], [5, 5, 12]),
    ],
)
def test_the_search_finds_the_worst_allocation(strata: list[Stratum], weights: list[int]) -> None:
    assert notes_upper(strata) == largest_by_listing(strata, weights, 0.05)


def test_a_search_cut_short_gives_more_never_less(monkeypatch: pytest.MonkeyPatch) -> None:
    strata = [Stratum(400, 20, 1), Stratum(300, 15, 1), Stratum(200, 10, 0)]
    exact = notes_upper(strata)
    monkeypatch.setattr(leakage_search, "_MOST_POINTS", 300)
    assert exact < notes_upper(strata) < 1.5 * exact
    monkeypatch.setattr(leakage_bounds, "_MOST_CELLS", 30)
    assert exact < notes_upper(strata) < 1.5 * exact


def test_no_spread_of_leaks_hides_better_than_the_one_assumed() -> None:
    size, read, most, recall, slope = 5, 3, 3, 0.8, 0.4
    part = leakage_bounds._Part(size, read, 1, 0, size * most)
    losses = leakage_bounds._Table.of(part, most).losses(slope, recall)
    worst = np.zeros(size * most + 1)
    for counts in itertools.combinations_with_replacement(range(most + 1), size):
        factors = [1 - recall * (1 - math.exp(-slope * count)) for count in counts]
        mean = np.mean([math.prod(chosen) for chosen in itertools.combinations(factors, read)])
        worst[sum(counts)] = max(worst[sum(counts)], mean)
    np.testing.assert_allclose(np.exp(-losses), worst, rtol=1e-7)


@pytest.mark.parametrize("leaking", [(2, 0), (25, 0), (0, 5), (34, 1)])
def test_coverage_in_a_larger_corpus(leaking: tuple[int, int]) -> None:
    design: Design = ((180, 15), (20, 10))
    chances = [drawn_chances(size, marked, read) for (size, read), marked in zip(design, leaking, strict=True)]
    held = left = 0.0
    for found in itertools.product(*(range(read + 1) for _, read in design)):
        chance = math.prod(row[hits] for row, hits in zip(chances, found, strict=True))
        if chance > 1e-4:
            held += chance * (notes_bound(design, found) >= sum(leaking))
        else:
            left += chance
    assert left < 0.003
    assert held + left >= 0.95
    assert held >= 0.95 - 0.003


def test_more_found_never_gives_less() -> None:
    design: Design = ((40, 4), (30, 5))
    bounds = np.array([[notes_bound(design, (a, b)) for b in range(6)] for a in range(5)])
    assert (np.diff(bounds, axis=0) >= 0).all()
    assert (np.diff(bounds, axis=1) >= 0).all()
    assert (bounds >= np.add.outer(np.arange(5), np.arange(6))).all()


def test_strata_nobody_read_count_in_full() -> None:
    assert notes_upper([Stratum(50, 0, 0), Stratum(10, 5, 0)]) == 50 + leaking_upper(10, 5, 0)
    assert leaks_upper([Stratum(50, 0, 0), Stratum(10, 10, 4)], most=3) == 150 + 4
    assert notes_upper([Stratum(50, 50, 3), Stratum(10, 10, 4)]) == 7


@pytest.mark.parametrize(
    ("stratum", "most", "recall", "alpha"),
    [
        (Stratum(10, 11, 0), 3, 1.0, 0.05),
        (Stratum(10, -1, 0), 3, 1.0, 0.05),
        (Stratum(10, 2, 7), 3, 1.0, 0.05),
        (Stratum(10, 2, -1), 3, 1.0, 0.05),
        (Stratum(10, 2, 0), 0, 1.0, 0.05),
        (Stratum(10, 2, 0), 3, 0.0, 0.05),
        (Stratum(10, 2, 0), 3, 1.01, 0.05),
        (Stratum(10, 2, 0), 3, 1.0, 0.0),
        (Stratum(10, 2, 0), 3, 1.0, 1.0),
        (Stratum(10, 2, 0), 3, float("nan"), 0.05),
    ],
)
def test_a_review_that_cannot_be_has_no_bound(stratum: Stratum, most: int, recall: float, alpha: float) -> None:
    with pytest.raises(ConfigError):
        leaks_upper([Stratum(50, 5, 1), stratum], most=most, recall=recall, alpha=alpha)
