"""How sure a chain with several states per tag is of a run of one tag: every path listed, both edges counted."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaffinch.kernels import Batch
from chaffinch.models.core.labels import Labels, Scheme
from chaffinch.models.latent.span_probabilities import calibrate, run_chances, runs_inside
from tests.models.core.test_confidence import chances_by_listing, likeliest_scale, random_batch

NAMES = ("X", "Y")
SUBS: dict[Scheme, tuple[int, ...]] = {"runs": (2, 1, 2), "IOB2": (2, 1, 2, 1, 1)}
LENGTHS = [3, 1, 4]


def listed(batch: Batch, labels: Labels, sentence: int) -> dict[tuple[int, int, str], float]:
    """The probability of every run of a sentence, all paths listed."""
    plain, found = Labels(labels.names, labels.scheme), dict[tuple[int, int, str], float]()
    for tags, chance in chances_by_listing(batch, labels, sentence).items():
        for run in plain.runs(np.array(tags, np.int32)):
            found[run] = found.get(run, 0.0) + chance
    return found


@given(st.integers(0, 10_000), st.sampled_from(["runs", "IOB2"]))
@settings(max_examples=25)
def test_the_chance_of_every_run_is_that_of_all_paths_that_hold_it(seed: int, scheme: Scheme) -> None:
    labels, plain = Labels(NAMES, scheme, subs=SUBS[scheme]), Labels(NAMES, scheme)
    batch = random_batch(np.random.default_rng(seed), labels, LENGTHS)
    for sentence, begin in enumerate(batch.bounds[:-1].tolist()):
        for (first, end, name), chance in listed(batch, labels, sentence).items():
            tags = plain.encode([(begin + first, begin + end, NAMES.index(name))], len(batch.emit))
            found = run_chances(batch, labels, tags, np.array([begin + first]), np.array([begin + end]))
            assert found[0] == pytest.approx(chance, abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_runs_of_a_whole_reading_are_judged_at_once(seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels, plain = Labels(NAMES, "runs", subs=SUBS["runs"]), Labels(NAMES, "runs")
    batch = random_batch(rng, labels, LENGTHS)
    tags = rng.integers(0, 3, sum(LENGTHS))
    starts, ends = runs_inside(plain, tags, batch.bounds)
    found = run_chances(batch, labels, tags, starts, ends)
    for start, end, chance in zip(starts.tolist(), ends.tolist(), found, strict=True):
        sentence = int(np.searchsorted(batch.bounds, start, side="right")) - 1
        begin = int(batch.bounds[sentence])
        chances_by_run = listed(batch, labels, sentence)
        assert chance == pytest.approx(chances_by_run[start - begin, end - begin, NAMES[tags[start] - 1]], abs=1e-9)


def test_a_run_that_may_go_on_to_either_side_is_less_sure_by_hand() -> None:
    """Three tokens, all readings alike: X at the second alone is O X O, one of eight readings, not one of two."""
    labels = Labels(("X",), "runs", subs=(1, 1))
    batch = Batch(np.zeros(2), np.zeros((2, 2)), np.zeros((3, 2)), np.zeros(2), np.array([0, 3]))
    middle = run_chances(batch, labels, np.array([0, 1, 0]), np.array([1]), np.array([2]))
    first = run_chances(batch, labels, np.array([1, 0, 0]), np.array([0]), np.array([1]))
    whole = run_chances(batch, labels, np.array([1, 1, 1]), np.array([0]), np.array([3]))
    assert [middle[0], first[0], whole[0]] == pytest.approx([1 / 8, 1 / 4, 1 / 8], abs=1e-12)


def test_a_neighbour_of_another_label_is_an_edge() -> None:
    labels = Labels(NAMES, "runs")
    batch = Batch(np.zeros(3), np.zeros((3, 3)), np.zeros((2, 3)), np.zeros(3), np.array([0, 2]))
    tags = np.array([1, 2])
    starts, ends = runs_inside(labels, tags, batch.bounds)
    assert (starts.tolist(), ends.tolist()) == ([0, 1], [1, 2])
    assert run_chances(batch, labels, tags, starts, ends) == pytest.approx([2 / 9, 2 / 9], abs=1e-12)


def test_runs_side_by_side_in_two_sentences_do_not_touch() -> None:
    """The neighbour over a sentence's end is no neighbour."""
    labels = Labels(("X",), "runs")
    batch = Batch(np.zeros(2), np.zeros((2, 2)), np.zeros((2, 2)), np.zeros(2), np.array([0, 1, 2]))
    starts, ends = runs_inside(labels, np.array([1, 1]), batch.bounds)
    assert (starts.tolist(), ends.tolist()) == ([0, 1], [1, 2])
    assert run_chances(batch, labels, np.array([1, 1]), starts, ends) == pytest.approx([0.5, 0.5], abs=1e-12)


def test_the_chances_of_all_runs_over_a_token_add_up_to_that_of_its_label() -> None:
    labels = Labels(NAMES, "runs", subs=SUBS["runs"])
    batch = random_batch(np.random.default_rng(5), labels, [4])
    tagged = chances_by_listing(batch, labels, 0)
    for t, (number, name) in itertools.product(range(4), enumerate(NAMES)):
        total = 0.0
        for first, end in itertools.combinations(range(5), 2):
            if first <= t < end:
                tags = np.zeros(4, np.int64)
                tags[first:end] = number + 1
                total += run_chances(batch, labels, tags, np.array([first]), np.array([end]))[0]
        wanted = math.fsum(chance for tags, chance in tagged.items() if labels.tags[tags[t]] == f"I-{name}")
        assert total == pytest.approx(wanted, abs=1e-9)


def test_calibration_finds_the_scale_of_known_tags() -> None:
    labels = Labels(("A",), "runs", subs=(2, 2))
    batch = random_batch(np.random.default_rng(2), labels, [3, 4, 2, 3])
    gold = np.random.default_rng(3).integers(0, 2, 12)
    known = [
        {
            path
            for path in itertools.product(range(4), repeat=int(end - first))
            if labels.tag_of[list(path)].tolist() == gold[first:end].tolist()
        }
        for first, end in itertools.pairwise(batch.bounds.tolist())
    ]
    found = calibrate(batch, labels, gold, gold)
    assert found.scale == pytest.approx(likeliest_scale(batch, known, prior=1.0), rel=0.02)


def test_calibration_of_nothing_is_none() -> None:
    labels, nothing = Labels(("A",), "runs", subs=(2, 2)), np.zeros(0, np.int64)
    batch = Batch(np.zeros(4), np.zeros((4, 4)), np.zeros((0, 4)), np.zeros(4), np.zeros(1, np.int64))
    found = calibrate(batch, labels, nothing, nothing)
    assert found.scale == pytest.approx(1.0, abs=0.01)
    assert np.isfinite(found(np.array([0.2, 0.9]))).all()
