"""The probability of a span against labellings listed one by one, with sub-tags and without; calibration against data
from a known chain, and against a search over scales.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaffinch.kernels import Batch, sample, viterbi
from chaffinch.models.core.confidence import CHUNK, Calibration, HeldOut, calibrate, calibrate_on, span_chances
from chaffinch.models.core.labels import Labels, Scheme
from chaffinch.models.latent import span_probabilities as latent_spans
from chaffinch.models.latent.span_probabilities import run_chances
from tests.kernels import oracle

Run = tuple[int, int, str]


def chain(labels: Labels, rng: np.random.Generator, lengths: list[int], spread: float = 1.5) -> Batch:
    """Random scores under the labels' moves; with pairs the moves weigh nothing, so that tags are a chain."""
    K = labels.states.K
    moves = labels.states.moves.reshape(K + 2, -1)[:, :K].astype(np.float64)
    if not labels.pairs:
        moves = moves + rng.normal(0, spread, moves.shape)
    emit = rng.normal(0, spread, (sum(lengths), K))
    return Batch(moves[K], moves[:K], emit, moves[K + 1], np.cumsum([0, *lengths]))


def listed(batch: Batch, labels: Labels) -> list[dict[Run, float]]:
    """For each sentence the probability of every span, counted over all labellings."""
    found: list[dict[Run, float]] = []
    for s in range(len(batch)):
        listing = oracle.listing(batch[s])
        chances: dict[Run, float] = {}
        for score, path in listing.paths:
            for run in labels.runs(np.array(path, np.int32)):
                chances[run] = chances.get(run, 0.0) + math.exp(score - listing.log_z)
        found.append(chances)
    return found


def compare(labels: Labels, batch: Batch) -> None:
    """The chances of all spans of some labelling, by the module and by the list."""
    states = np.concatenate([viterbi(batch[s]).states for s in range(len(batch))])
    wanted = listed(batch, labels)
    for s in range(len(batch)):  # every span that can be, one at a time
        begin = int(batch.bounds[s])
        for (first, end, name), chance in wanted[s].items():
            piece = (begin + first, begin + end, labels.names.index(name))
            tags = labels.encode([piece], len(batch.emit))
            got = span_chances(batch, labels, tags, [(begin + first, begin + end)])
            assert got[0] == pytest.approx(chance, abs=1e-9)
    runs = labels.runs(states.astype(np.int32))
    found = span_chances(batch, labels, labels.tag_of[states], [(first, end) for first, end, _ in runs])
    sentence = [int(np.searchsorted(batch.bounds, first, side="right")) - 1 for first, _, _ in runs]
    for (first, end, name), s, chance in zip(runs, sentence, found, strict=True):
        begin = int(batch.bounds[s])
        assert chance == pytest.approx(wanted[s][first - begin, end - begin, name], abs=1e-9)


@given(st.sampled_from(["IOBES", "IOB2", "tokens"]), st.booleans(), st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_the_chance_of_a_span_is_that_of_all_labellings_with_it(scheme: Scheme, two: bool, seed: int) -> None:
    labels = Labels(("A", "B")[: 1 + two], scheme)
    compare(labels, chain(labels, np.random.default_rng(seed), [4, 1, 3] if scheme != "IOBES" or not two else [3, 2]))


@pytest.mark.parametrize("scheme", ["IOB2", "IOBES", "tokens"])
def test_the_chance_of_a_span_is_exact_with_label_pairs(scheme: Scheme) -> None:
    labels = Labels(("A",), scheme, pairs=True)
    for seed in range(3):
        compare(labels, chain(labels, np.random.default_rng(seed), [4, 2]))


def test_the_chance_of_a_span_is_exact_with_weighted_moves_between_pairs() -> None:
    labels, rng = Labels(("A",), "IOB2", pairs=True), np.random.default_rng(0)
    batch, K = chain(labels, rng, [4]), labels.states.K
    moves = batch.trans + rng.normal(0, 1.5, (K, K))
    compare(labels, Batch(batch.start, moves, batch.emit, batch.end, batch.bounds))


def test_long_texts_are_read_in_parts_that_change_nothing() -> None:
    labels, rng = Labels(("A",)), np.random.default_rng(0)
    batch = chain(labels, rng, [3, CHUNK - 1, 2, CHUNK + 5, 4])
    states = viterbi(batch).states
    runs = [(first, end) for first, end, _ in labels.runs(states.astype(np.int32))]
    together = span_chances(batch, labels, labels.tag_of[states], runs)
    for s, (begin, end) in enumerate(itertools.pairwise(batch.bounds.tolist())):
        inside = [number for number, (first, _) in enumerate(runs) if begin <= first < end]
        part = Batch(batch.start, batch.trans, batch[s].emit, batch.end, np.array([0, end - begin]))
        alone = span_chances(
            part, labels, labels.tag_of[states[begin:end]], [(runs[k][0] - begin, runs[k][1] - begin) for k in inside]
        )
        np.testing.assert_allclose(together[inside], alone, rtol=0, atol=1e-9)


@pytest.mark.parametrize("factor", [0.4, 3.0])
def test_calibration_finds_the_scale_and_gives_honest_probabilities(factor: float) -> None:
    labels, rng = Labels(("A", "B"), "IOB2"), np.random.default_rng(1)
    honest = chain(labels, rng, [12] * 700)
    drawn = [sample(honest[s], rng, 1)[0] for s in range(len(honest))]
    gold = np.concatenate(drawn).astype(np.int64)
    loud = Batch(honest.start * factor, honest.trans * factor, honest.emit * factor, honest.end * factor, honest.bounds)
    found = viterbi(loud).states
    half = 350 * 12
    first = Batch(loud.start, loud.trans, loud.emit[:half], loud.end, loud.bounds[:351])
    calibration = calibrate(first, labels, gold[:half], found[:half])
    assert calibration.scale == pytest.approx(1 / factor, rel=0.1)
    quiet = Batch(
        loud.start * calibration.scale, loud.trans * calibration.scale, loud.emit[half:] * calibration.scale,
        loud.end * calibration.scale, loud.bounds[:351],
    )  # fmt: skip
    runs = labels.runs(found[half:].astype(np.int32))
    chances = calibration(span_chances(quiet, labels, labels.tag_of[found[half:]], [(a, b) for a, b, _ in runs]))
    right = set(labels.runs(gold[half:].astype(np.int32)))
    hits = np.array([run in right for run in runs])
    order = np.argsort(chances)
    for part in np.array_split(order, 4):
        assert chances[part].mean() == pytest.approx(hits[part].mean(), abs=0.06)


def test_no_calibration_leaves_probabilities_as_they_are() -> None:
    chances = np.array([0.0, 0.1, 0.5, 1.0])
    np.testing.assert_allclose(Calibration()(chances), chances, rtol=0, atol=2e-6)
    assert (np.diff(Calibration(1.0, 0.5, -1.0)(chances)) > 0).all()


# Chains with sub-tags


def random_batch(rng: np.random.Generator, labels: Labels, lengths: Sequence[int]) -> Batch:
    K = labels.states.K
    moves = rng.normal(0, 1, (K + 2, K)) + labels.states.moves.reshape(K + 2, -1)[:, :K]
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    return Batch(moves[K], moves[:K], rng.normal(0, 1, (int(bounds[-1]), K)), moves[K + 1], bounds)


def chances_by_listing(batch: Batch, labels: Labels, sentence: int) -> dict[tuple[int, ...], float]:
    """The probability of every sequence of tags, sub-tags summed out."""
    first, end = batch.bounds[sentence], batch.bounds[sentence + 1]
    found: dict[tuple[int, ...], float] = {}
    for path in itertools.product(range(len(batch.start)), repeat=int(end - first)):
        total = batch.start[path[0]] + batch.end[path[-1]] + sum(batch.emit[first + t, x] for t, x in enumerate(path))
        total += sum(batch.trans[a, b] for a, b in itertools.pairwise(path))
        if total > -np.inf:
            tags = tuple(int(labels.tag_of[x]) for x in path)
            found[tags] = found.get(tags, 0.0) + math.exp(total)
    scale = math.fsum(found.values())
    return {tags: weight / scale for tags, weight in found.items()}


@pytest.mark.parametrize("seed", range(8))
def test_chances_of_runs_are_those_of_all_readings_that_hold_the_span(seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels, plain = Labels(("X", "Y"), "IOB2", subs=(2, 1, 2, 1, 1)), Labels(("X", "Y"), "IOB2")
    lengths = [3, 1, 4]
    batch = random_batch(rng, labels, lengths)
    listed = [chances_by_listing(batch, labels, sentence) for sentence in range(3)]
    tags = np.concatenate([list(sequences)[rng.integers(len(sequences))] for sequences in listed]).astype(np.int64)
    starts, ends, names = plain.run_arrays(tags.astype(np.int32))
    assert len(starts) or seed
    found = run_chances(batch, labels, tags, starts, ends)
    assert found.shape == starts.shape
    for start, end, label, chance in zip(starts, ends, names, found, strict=True):
        sentence = int(np.searchsorted(batch.bounds, start, side="right")) - 1
        first = batch.bounds[sentence]
        run = int(start - first), int(end - first), plain.names[label]
        wanted = sum(chance for path, chance in listed[sentence].items() if run in plain.runs(np.array(path, np.int32)))
        assert chance == pytest.approx(wanted, abs=1e-9)


def test_there_may_be_no_runs() -> None:
    labels = Labels(("X",), "IOB2", subs=(2, 1, 1))
    batch = random_batch(np.random.default_rng(0), labels, [2])
    nothing = np.zeros(0, np.int64)
    assert run_chances(batch, labels, np.zeros(2, np.int64), nothing, nothing).shape == (0,)


def likeliest_scale(batch: Batch, known: Sequence[set[tuple[int, ...]]], prior: float) -> float:
    """The scale under which one of the known paths of each sentence is likeliest, paths listed, by trying many."""
    listings = [oracle.listing(batch[s]).paths for s in range(len(batch))]
    every = [np.array([score for score, _ in paths]) for paths in listings]
    right = [
        np.array([score for score, path in paths if tuple(path) in valid])
        for paths, valid in zip(listings, known, strict=True)
    ]
    logs = np.linspace(math.log(0.05), math.log(20), 2000)
    losses = [
        sum(
            np.logaddexp.reduce(math.exp(x) * a) - np.logaddexp.reduce(math.exp(x) * b)
            for a, b in zip(every, right, strict=True)
        )
        + prior * x**2 / 2
        for x in logs
    ]
    return math.exp(logs[int(np.argmin(losses))])


@pytest.mark.parametrize("subs", [(), (2, 1, 1)], ids=["tags", "sub-tags"])
def test_a_text_without_mistakes_does_not_send_the_scale_away(subs: tuple[int, ...]) -> None:
    labels, plain = Labels(("A",), "IOB2", subs=subs), Labels(("A",), "IOB2")
    batch = random_batch(np.random.default_rng(2), labels, [3, 4, 2, 3])
    best, known = [], []
    for s in range(len(batch)):
        chances = chances_by_listing(batch, labels, s)
        best.append(max(chances, key=lambda tags: chances[tags]))
        paths = [tuple(path) for _, path in oracle.listing(batch[s]).paths]
        known.append({path for path in paths if tuple(labels.tag_of[list(path)].tolist()) == best[-1]})
    tags = np.concatenate(best).astype(np.int64)
    found = latent_spans.calibrate(batch, labels, tags, tags) if subs else calibrate(batch, plain, tags, tags)
    assert likeliest_scale(batch, known, prior=0.0) > 19
    assert found.scale == pytest.approx(likeliest_scale(batch, known, prior=1.0), rel=0.02)
    assert found.scale < 10


def test_a_curve_that_is_far_off_is_still_found() -> None:
    """A full Newton step from the identity overshoots here; it once ended at a slope of -286."""
    rng = np.random.default_rng(3)
    logits = np.concatenate([rng.normal(12, 3, 900), rng.normal(3, 2, 100)])
    truth = 1 / (1 + np.exp(-(0.2 * logits - 0.5)))
    right = (rng.random(1000) < truth).astype(np.float64)
    chances = 1 / (1 + np.exp(-logits))
    found = calibrate_on([HeldOut(1.0, lambda _: (chances, right))])
    assert 0.05 < found.slope < 0.5
    assert found(chances).mean() == pytest.approx(right.mean(), abs=0.01)


def test_parts_are_fitted_together_at_one_scale() -> None:
    rng = np.random.default_rng(4)
    chances = rng.uniform(0.05, 0.95, 4000)
    right = (rng.random(4000) < chances).astype(np.float64)
    asked: list[float] = []

    def part(begin: int, end: int, scale: float) -> HeldOut:
        def judge(scale: float) -> tuple[np.ndarray, np.ndarray]:
            asked.append(scale)
            return chances[begin:end], right[begin:end]

        return HeldOut(scale, judge)

    found = calibrate_on([part(0, 1000, 1.0), part(1000, 4000, 4.0)])
    assert asked == [pytest.approx(2.0)] * 2
    assert found.slope == pytest.approx(1.0, abs=0.1)
    assert found.intercept == pytest.approx(0.0, abs=0.1)
    assert found != Calibration()


def test_a_curve_bends_where_spans_are_many_and_never_falls() -> None:
    rng = np.random.default_rng(5)
    chances = 1 / (1 + np.exp(-rng.uniform(-1, 8, 5000)))
    logits = np.log(chances / (1 - chances))
    truth = np.interp(logits, [-1, 1, 5, 8], [0.2, 0.8, 0.82, 0.99])  # a plateau, as on real corpora
    right = (rng.random(5000) < truth).astype(np.float64)
    found = calibrate_on([HeldOut(1.0, lambda _: (chances, right))])
    assert np.abs(found(chances) - truth).mean() < 0.025
    assert (np.diff(found(np.linspace(0.001, 0.999, 500))) > 0).all()
    few = calibrate_on([HeldOut(1.0, lambda _: (chances[:80], right[:80]))])
    assert few.knots == ()


def test_calibrations_are_stored_as_numbers_and_those_of_earlier_files_are_read() -> None:
    bent = Calibration(2.0, 0.5, 0.1, (-1.0, 0.5, 3.0), (-0.5, 0.4, 1.0))
    assert Calibration.of(bent.array()) == bent
    assert Calibration.of(np.array([2.0, 0.5, 0.1])) == Calibration(2.0, 0.5, 0.1)
