"""Concentrations learnt from counts: against a direct search, planted values, and in training from end to end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

from chaffinch.cli.train.settings import TrainSettings
from chaffinch.errors import ConfigError
from chaffinch.kernels import Floats
from chaffinch.models.core.training import Watcher
from chaffinch.models.hmmdp import concentrations
from chaffinch.models.hmmdp import variational as vb
from chaffinch.models.hmmdp.concentrations import LEAST, MOST, iterate_fixed_point
from chaffinch.models.hmmdp.config import HMMDP
from chaffinch.models.hmmdp.emissions import BackOff, Emissions
from chaffinch.models.hmmdp.model import Model
from chaffinch.models.hmmdp.schedule import TrainingRun
from chaffinch.models.hmmdp.variational import Globals
from chaffinch.models.tagger import load, train
from tests.models.hmmdp.test_variational import PRIORS, begun, sentences, shaped
from tests.models.notes import notes

TAGS = [[[0], [1], [0], [0]], [[1], [1], [0]], [[0]], [[0], [0], [1]]]
WORDS = [[3, 1, 0, 2], [1, 1, 3], [2], [0, 3, 1]]
EMISSIONS = {
    "categorical": Emissions((4,), 0.4),
    "tempered": Emissions((4,), 0.4, 0.3),
    "factored": Emissions((4, 3), 0.4, 0.3),
    "backoff": BackOff((4, 3, 2), 0.4, types=np.array([2, 3, 1])),
}
CHAIN = HMMDP(3, 2, min_count=2, passes=10, discriminative=False, learn_priors=True)


def likelihood(counts: Floats, alpha: float, base: Floats | None = None) -> float:
    """The log Dirichlet-multinomial likelihood of rows, row by row and cell by cell."""
    total = 0.0
    for row, weights in zip(counts, np.broadcast_to(1.0 if base is None else base, counts.shape), strict=True):
        cells = [(n, alpha * w) for n, w in zip(row, weights, strict=True) if w > 0]
        mass = sum(own for _, own in cells)
        total += gammaln(mass) - gammaln(mass + sum(n for n, _ in cells))
        total += sum(gammaln(own + n) - gammaln(own) for n, own in cells)
    return float(total)


def drawn(alpha: float, rng: np.random.Generator, *, rows: int = 40, base: Floats | None = None, V: int = 12) -> Floats:
    """(rows, V) counts of 5 to 60 tokens each."""
    weights = np.ones(V) if base is None else base
    chances = rng.dirichlet(alpha * weights, size=rows)
    return np.stack([rng.multinomial(rng.integers(5, 60), own) for own in chances]).astype(float)


def best(counts: Floats, base: Floats | None = None) -> float:
    """The optimum by a search on log alpha that knows nothing of derivatives."""
    found = minimize_scalar(
        lambda x: -likelihood(counts, float(np.exp(x)), base), bounds=(-8, 8), method="bounded", options={"xatol": 1e-9}
    )
    return float(np.exp(found.x))


@pytest.mark.parametrize("alpha", [0.05, 0.4, 3.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_fixed_point_is_the_optimum_of_the_likelihood(alpha: float, seed: int) -> None:
    counts = drawn(alpha, np.random.default_rng(seed))
    assert iterate_fixed_point(counts, 1.0, steps=3000) == pytest.approx(best(counts), rel=1e-4)


def test_the_fixed_point_is_the_optimum_for_counts_that_are_not_whole() -> None:
    counts = 0.3 * drawn(0.5, np.random.default_rng(7))
    assert iterate_fixed_point(counts, 1.0, steps=3000) == pytest.approx(best(counts), rel=1e-4)


def test_a_base_measure_scales_the_concentration_of_each_symbol() -> None:
    rng = np.random.default_rng(3)
    base = rng.uniform(0.2, 3.0, size=12)
    counts = drawn(0.6, rng, base=base)
    found = iterate_fixed_point(counts, 1.0, base=base, steps=3000)
    assert found == pytest.approx(best(counts, base), rel=1e-4)
    assert found != pytest.approx(iterate_fixed_point(counts, 1.0, steps=3000), rel=0.02)


def test_symbols_that_cannot_be_are_no_part_of_a_row() -> None:
    rng = np.random.default_rng(4)
    base = (rng.random((40, 12)) < 0.6).astype(float)
    base[:, 0] = 1.0
    counts = np.where(base > 0, drawn(0.5, rng), 0.0)
    found = iterate_fixed_point(counts, 1.0, base=base, steps=3000)
    assert found == pytest.approx(best(counts, base), rel=1e-4)
    assert found > 1.1 * iterate_fixed_point(counts, 1.0, steps=3000)


def test_symbols_never_seen_count_as_part_of_the_vocabulary() -> None:
    counts = np.hstack([drawn(0.5, np.random.default_rng(5)), np.zeros((40, 30))])
    found = iterate_fixed_point(counts, 1.0, steps=3000)
    assert found == pytest.approx(best(counts), rel=1e-4)
    assert found < 0.7 * iterate_fixed_point(counts[:, :12], 1.0, steps=3000)


@pytest.mark.parametrize("planted", [0.05, 0.3, 2.0])
def test_a_planted_concentration_is_found_again(planted: float) -> None:
    counts = drawn(planted, np.random.default_rng(11), rows=1000, V=20)
    assert iterate_fixed_point(counts, 1.0, steps=400) == pytest.approx(planted, rel=0.06)


@given(seed=st.integers(0, 10_000), alpha=st.floats(1e-3, 1e3), share=st.floats(0.05, 2.0))
def test_no_step_lowers_the_likelihood(seed: int, alpha: float, share: float) -> None:
    rng = np.random.default_rng(seed)
    counts = share * drawn(10 ** rng.uniform(-1.5, 1), rng, rows=6, V=5)
    base = rng.uniform(0.1, 2.0, size=(6, 5))
    before = likelihood(counts, alpha, base)
    for _ in range(4):
        alpha = iterate_fixed_point(counts, alpha, base=base, steps=1)
        after = likelihood(counts, alpha, base)
        assert after >= before - 1e-8 * abs(before)
        before = after


@pytest.mark.parametrize("counts", [np.zeros((3, 4)), np.zeros((0, 4)), np.full((2, 3), 1e-12)])
def test_without_counts_the_concentration_stays(counts: Floats) -> None:
    assert iterate_fixed_point(counts, 0.37) == 0.37


def test_counts_without_a_finite_optimum_end_at_an_edge() -> None:
    assert iterate_fixed_point(50.0 * np.eye(6), 0.5, steps=5000) == pytest.approx(LEAST)
    assert iterate_fixed_point(np.full((4, 3), 9.0), 0.5, steps=5000) <= MOST
    assert iterate_fixed_point(np.full((4, 3), 9.0), MOST, steps=50) == MOST
    assert iterate_fixed_point(50.0 * np.eye(6), 1e-7) == pytest.approx(1e-7)  # chosen below the edge: it stays
    assert iterate_fixed_point(np.array([[4.0], [2.0]]), 0.5) == pytest.approx(0.5)  # one symbol says nothing


def passed(emissions: Emissions, rounds: int) -> tuple[Globals, vb.Counts, vb.Sentences]:
    shape = shaped((3, 2), TAGS)
    part = sentences(shape, WORDS, TAGS)
    kinds = len(emissions.sizes) - isinstance(emissions, BackOff)
    part = replace(part, known=np.stack([part.known[:, 0], part.known[:, 0] % 3], axis=1)[:, :kinds])
    q, counts = begun(shape, part, np.random.default_rng(2), emissions)
    for _ in range(rounds):
        q = vb.global_step(q, counts, "W3")
        counts = vb.local_step(part, vb.expected_logs(q), emissions)
    return vb.global_step(q, counts, "W3"), counts, part


def many(shape: vb.Shape, rng: np.random.Generator) -> vb.Counts:
    """Counts of many tokens whose rows were drawn: words with 0.3, tags with 0.6."""
    rows = drawn(0.6, rng, rows=shape.Z + 1, V=shape.S + 1)
    pairs = np.zeros((shape.Z + 1, shape.Z))
    pairs[:, shape.firsts[:-1]] = rows[:, :-1]
    return vb.Counts(pairs[-1], pairs[:-1], rows[:-1, -1], (drawn(0.3, rng, rows=shape.Z, V=4).T,), 0.0)


@pytest.mark.parametrize("name", EMISSIONS)
def test_learning_the_priors_raises_the_bound(name: str) -> None:
    q, counts, part = passed(EMISSIONS[name], 3)
    before = vb.bound(q, counts)
    for _ in range(4):
        q = concentrations.learn_concentrations(q, counts)
        q = replace(vb.global_step(q, counts, "W3"), sticks=q.sticks, subs=q.subs)  # nothing else moves
        after = vb.bound(q, counts)
        assert after > before
        counts = vb.local_step(part, vb.expected_logs(q), q.emissions)
        assert vb.bound(q, counts) >= after - 1e-9
        before = vb.bound(q, counts)


def test_each_kind_of_symbol_has_its_own_concentration_and_the_bound_knows_it() -> None:
    q, counts, _ = passed(EMISSIONS["factored"], 3)
    now = concentrations.learn_concentrations(q, counts)
    first, second = now.emissions.alphas
    assert first != second
    assert now.emissions.sizes == (4, 3)
    temper = 0.3
    for own, alpha, rows in zip(now.emissions.posterior(counts.emit), (first, second), counts.emit, strict=True):
        np.testing.assert_allclose(own, temper * (alpha + rows), rtol=0, atol=1e-12)
    now = vb.global_step(now, counts)
    nothing = replace(now.emissions, learnt_alphas=())
    assert vb.bound(now, counts) != pytest.approx(vb.bound(replace(now, emissions=nothing), counts), abs=1e-3)


def test_the_optimum_of_a_tempered_kind_is_that_of_its_tempered_counts() -> None:
    q = vb.prior_globals(shaped((3, 2), TAGS), PRIORS, EMISSIONS["tempered"])
    counts = many(q.shape, np.random.default_rng(1))
    for _ in range(600):
        q = concentrations.learn_concentrations(q, counts)
    assert 0.3 * q.emissions.alphas[0] == pytest.approx(best(0.3 * counts.emit[0].T), rel=1e-4)


def test_the_switch_of_back_off_keeps_its_prior() -> None:
    q, counts, _ = passed(EMISSIONS["backoff"], 2)
    now = concentrations.learn_concentrations(q, counts).emissions.alphas
    assert now[2] == EMISSIONS["backoff"].alphas[2] == 1.0
    assert 0.4 not in now


def test_the_concentration_of_tags_is_over_tags_that_may_follow() -> None:
    q = vb.prior_globals(shaped((3, 2), TAGS), PRIORS, EMISSIONS["categorical"])
    counts = many(q.shape, np.random.default_rng(1))
    for _ in range(600):
        q = concentrations.learn_concentrations(q, counts)
    tags = vb.tag_counts(q.shape, counts)
    base = q.shape.follows[q.shape.tags].astype(float)
    assert base.sum() == base.size - 1  # no empty sentence
    assert q.priors.alpha_T == pytest.approx(best(tags, base), rel=1e-4)
    assert q.priors.alpha_T != pytest.approx(best(tags), rel=1e-3)


def test_no_tokens_leave_all_priors_as_they_were() -> None:
    q = vb.prior_globals(shaped((3, 2), TAGS), PRIORS, EMISSIONS["factored"])
    none = vb.Counts(np.zeros(5), np.zeros((5, 5)), np.zeros(5), (np.zeros((4, 5)), np.zeros((3, 5))), 0.0)
    now = concentrations.learn_concentrations(q, none)
    assert now.priors == PRIORS
    assert now.emissions.alphas == pytest.approx((0.4, 0.4))


def course(**options: object) -> tuple[TrainingRun, vb.Shape]:
    shape = shaped((3, 2), TAGS)
    plain = shaped((1, 1), TAGS)
    parts = [sentences(plain, WORDS[:2], TAGS[:2]), sentences(plain, WORDS[2:], TAGS[2:])]
    settings = replace(HMMDP(discriminative=False, start="random", learn_priors=True), **options)  # type: ignore[arg-type]
    return TrainingRun(settings, parts, Watcher()), shape


@pytest.mark.parametrize("passes", [4, 5, 9, 10])
def test_priors_are_learnt_every_fifth_pass(passes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    own = concentrations.learn_concentrations

    def counted(q: Globals, counts: vb.Counts) -> Globals:
        calls.append(len(run.trace) + 1)
        return own(q, counts)

    monkeypatch.setattr(concentrations, "learn_concentrations", counted)
    run, shape = course(passes=passes)
    q, _ = run.run(shape, PRIORS, EMISSIONS["categorical"])
    assert calls == list(range(5, passes + 1, 5))
    assert (q.priors.alpha_T != PRIORS.alpha_T) == bool(calls)


def test_what_is_learnt_ends_with_dirichlets_of_the_learnt_priors() -> None:
    run, shape = course(passes=5, sticks="W3")
    q, _ = run.run(shape, PRIORS, EMISSIONS["categorical"])
    there = q.shape.follows[q.shape.tags]
    assert q.tags[there].min() >= q.priors.alpha_T * (1 - 1e-12)
    assert q.emit[0].min() >= q.emissions.alphas[0] * (1 - 1e-12)
    assert q.emit[0].sum() == pytest.approx(sum(map(len, WORDS)) + q.emit[0].size * q.emissions.alphas[0])


@pytest.mark.parametrize("batches", [1, 3])
@pytest.mark.parametrize("emissions", ["factored", "categorical", "backoff"])
def test_training_learns_saves_and_reads_with_learnt_priors(batches: int, emissions: str, tmp_path: Path) -> None:
    docs = notes(20)
    config = replace(CHAIN, batches=batches, emissions=emissions)  # type: ignore[arg-type]
    tagger = train(docs, config)
    metrics = tagger.manifest.metrics
    kinds = {"factored": 6, "categorical": 1, "backoff": 2}[emissions]
    learnt = {name: value for name, value in metrics.items() if name.startswith("alpha_")}
    assert len(learnt) == 1 + kinds
    assert learnt.pop("alpha_tags") != config.alpha_tags
    assert all(np.isfinite(value) and value != 0.2 for value in learnt.values())
    tagger.save(tmp_path / "m.cfm")
    again = load(tmp_path / "m.cfm")
    assert again.manifest.metrics == metrics
    assert again(docs[0]).layers == tagger(docs[0]).layers
    plain = train(docs, replace(config, learn_priors=False))
    assert not any(name.startswith("alpha_") for name in plain.manifest.metrics)
    assert isinstance(plain.model, Model)
    assert isinstance(tagger.model, Model)
    assert not np.allclose(plain.model.tables.emit[0], tagger.model.tables.emit[0])


def test_stochastic_learning_takes_the_option_too() -> None:
    tagger = train(notes(20), replace(CHAIN, batches=3, stochastic=True))
    assert tagger.manifest.metrics["alpha_tags"] != CHAIN.alpha_tags


def test_the_option_reaches_the_config_from_the_command_line() -> None:
    assert TrainSettings.read("hmmdp", ["learn_priors=true"]).config(None, None) == HMMDP(learn_priors=True)
    with pytest.raises(ConfigError, match="cascade has no setting 'learn_priors'; it is one of hmmdp"):
        TrainSettings.read("cascade", ["learn_priors=true"])


def test_atoms_are_learnt_with_the_priors_given() -> None:
    with pytest.raises(ConfigError, match="learn_priors"):
        HMMDP(form="atoms", start="context", learn_priors=True)
