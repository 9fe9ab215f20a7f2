"""The bound of learning with sub-tags: its terms, exact evidence above it, and no step that lowers it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import digamma, gammaln
from scipy.stats import beta, dirichlet

from chaffinch.kernels import Floats
from chaffinch.models.hmmdp import variational as vb
from chaffinch.models.hmmdp.sticks import Update
from chaffinch.models.hmmdp.variational import Shape
from tests.models.hmmdp.test_variational import (
    EMISSIONS,
    PRIORS,
    RICH,
    WORDS,
    begun,
    corpus,
    cut,
    learnt,
    sentences,
    shaped,
)


def test_one_sub_tag_per_tag_has_the_exact_evidence_as_its_bound() -> None:
    """Nothing is hidden then, and q of the parameters is their posterior."""
    rng = np.random.default_rng(3)
    shape, part = corpus(rng, (1, 1, 1))
    q, counts = begun(shape, part, rng)
    q, counts = learnt(q, counts, part, 1)
    tags = np.hstack([counts.moves, np.append(counts.end, 0.0)[:, None]])
    exact = sum(polya(row[ok], np.full(int(ok.sum()), 0.5)) for row, ok in zip(tags, shape.follows, strict=True))
    exact += sum(polya(column, np.full(WORDS, 0.4)) for column in counts.emit[0].T)
    assert vb.bound(q, counts) == pytest.approx(exact, abs=1e-4)


def polya(counts: Floats, alpha: Floats) -> float:
    """Log evidence of counts under a Dirichlet."""
    total = gammaln(alpha.sum()) - gammaln(alpha.sum() + counts.sum())
    return float(total + (gammaln(alpha + counts) - gammaln(alpha)).sum())


@pytest.mark.parametrize("kind", RICH)
@pytest.mark.parametrize("update", ["W2", "W3"])
@pytest.mark.parametrize("seed", range(2))
def test_no_step_lowers_the_bound(kind: str, update: Update, seed: int) -> None:
    rng = np.random.default_rng(seed)
    emissions = RICH[kind]
    kinds = {"words": (WORDS,), "tempered": (WORDS, 3), "backoff": (WORDS, 3)}[kind]
    shape, part = corpus(rng, (3, 1, 2), 15, open_=0.2 * (seed % 2), sizes_=kinds)
    q, counts = begun(shape, part, rng, emissions)
    q, counts = learnt(q, counts, part, 1, update)
    last = vb.bound(q, counts)
    for _ in range(12):
        for step in range(2):
            if step == 0:
                q = vb.global_step(q, counts, update)
            else:
                counts = vb.local_step(part, vb.expected_logs(q), emissions)
            now = vb.bound(q, counts)
            assert now >= last - 1e-8 * abs(last)
            last = now


@pytest.mark.parametrize("update", ["W2", "W3"])
def test_no_memoised_step_lowers_the_bound(update: Update) -> None:
    rng = np.random.default_rng(11)
    shape, part = corpus(rng, (3, 2), 20)
    parts = cut(part, [6, 13])
    q, counts = begun(shape, part, rng)
    q = vb.global_step(q, counts, update)
    memo = [vb.local_step(own, vb.expected_logs(q), EMISSIONS) for own in parts]
    last = vb.bound(q, vb.sum_counts(memo))
    for visit in range(15):
        q = vb.global_step(q, vb.sum_counts(memo), update)
        now = vb.bound(q, vb.sum_counts(memo))
        assert now >= last - 1e-8 * abs(last)
        last, number = now, visit % 3
        memo[number] = vb.local_step(parts[number], vb.expected_logs(q), EMISSIONS)
        now = vb.bound(q, vb.sum_counts(memo))
        assert now >= last - 1e-8 * abs(last)
        last = now


def test_the_global_step_is_the_best_for_its_counts() -> None:
    rng = np.random.default_rng(5)
    shape, part = corpus(rng)
    q, counts = learnt(*begun(shape, part, rng), part, 3, "W3")
    best = replace(vb.global_step(q, counts, "W3"), sticks=q.sticks)  # rows before the sticks that follow them
    top = vb.bound(best, counts)

    def shaken(values: Floats) -> Floats:
        return values * np.exp(0.1 * rng.normal(size=values.shape))

    for _ in range(5):
        assert vb.bound(replace(best, emit=(shaken(best.emit[0]),)), counts) < top
        assert vb.bound(replace(best, tags=shaken(best.tags)), counts) < top
        subs = np.where(shape.observable, shaken(best.subs), best.subs)
        assert vb.bound(replace(best, subs=subs), counts) < top


def expected_log_density(q: Floats, p: Floats, normaliser: float | None = None) -> float:
    """E of log Dir(x | p) under Dir(q)."""
    if normaliser is None:
        normaliser = float(gammaln(p.sum()) - gammaln(p).sum())
    return float(normaliser + ((p - 1) * (digamma(q) - digamma(q.sum()))).sum())


@pytest.mark.parametrize("update", ["W2", "W3"])
def test_the_bound_is_its_terms(update: Update) -> None:
    """E log p less E log q, factor by factor; scipy has the entropies."""
    rng = np.random.default_rng(6)
    shape, part = corpus(rng, (2, 3))
    q, counts = learnt(*begun(shape, part, rng), part, 2, update)
    total, alpha_t = counts.entropy + vb.energy(counts, vb.expected_logs(q)), PRIORS.alpha_t
    for column in q.emit[0].T:
        total += dirichlet(column).entropy() + expected_log_density(column, np.full(WORDS, EMISSIONS.alpha))
    for row in q.tags:
        own = row[row > 0]
        total += dirichlet(own).entropy() + expected_log_density(own, np.full(len(own), PRIORS.alpha_T))
    for tag, (block, sticks) in enumerate(zip(shape.blocks(), q.sticks, strict=True)):
        K = block.stop - block.start
        if update == "W2":
            normaliser = (K - 1) * math.log(alpha_t) + float(sticks.log_pi.sum())
            for a, b in zip(sticks.a, sticks.b, strict=True):
                total += beta(a, b).entropy() - float(gammaln(1) + gammaln(PRIORS.alpha) - gammaln(1 + PRIORS.alpha))
                total += (PRIORS.alpha - 1) * float(digamma(b) - digamma(a + b))
        else:
            normaliser = float(gammaln(alpha_t) - gammaln(alpha_t * sticks.mean_pi).sum())
            total += float(beta(1, PRIORS.alpha).logpdf(sticks.a).sum())
        for row in range(shape.Z + 1):
            if shape.occurs[shape.tags[row], tag]:
                own = q.subs[row, block]
                total += dirichlet(own).entropy() + expected_log_density(own, alpha_t * sticks.mean_pi, normaliser)
    assert vb.bound(q, counts) == pytest.approx(float(total), abs=1e-7)


TOY_TAGS = [[[0], [1], [0], [0]], [[1], [0]]]
TOY_WORDS = [[0, 2, 0, 1], [2, 1]]


def log_evidence_given(v: Floats, shape: Shape, paths: Sequence[tuple[int, ...]]) -> Floats:
    """(P,) the log of p(words, tags, path | v), all Dirichlets integrated out, for v (2,): two sub-tags of two tags."""
    pi = np.array([v[0], 1 - v[0], v[1], 1 - v[1]])
    lengths = [len(own) for own in TOY_WORDS]
    words = [word for sentence in TOY_WORDS for word in sentence]
    out = []
    for path in paths:
        tags, subs, emit = np.zeros((5, 3)), np.zeros((5, 4)), np.zeros((4, WORDS))
        n = 0
        for length in lengths:
            before = 4
            for state in path[n : n + length]:
                tags[before, state // 2] += 1
                subs[before, state] += 1
                before = state
            tags[before, 2] += 1
            n += length
        for state, word in zip(path, words, strict=True):
            emit[state, word] += 1
        total = sum(polya(row, np.full(3, PRIORS.alpha_T)) for row in tags[:4])
        total += polya(tags[4, :2], np.full(2, PRIORS.alpha_T))
        total += sum(polya(row, np.full(WORDS, EMISSIONS.alpha)) for row in emit)
        total += sum(polya(row[a : a + 2], PRIORS.alpha_t * pi[a : a + 2]) for row in subs for a in (0, 2))
        out.append(total)
    return np.array(out)


@pytest.mark.parametrize("update", ["W1", "W2", "W3"])
@pytest.mark.parametrize("seed", range(2))
def test_the_bound_is_below_the_exact_evidence(update: Update, seed: int) -> None:
    """Paths are listed, Dirichlets integrated in closed form and sticks by quadrature.

    W3 has a point for the sticks: its bound is on log p(words, tags, v) at that point.
    """
    shape = shaped((2, 2), TOY_TAGS)
    part = sentences(shape, TOY_WORDS, TOY_TAGS)
    q, counts = learnt(*begun(shape, part, np.random.default_rng(seed)), part, 12, update)
    found = vb.bound(q, counts)
    tags = [own[0] for sentence in TOY_TAGS for own in sentence]
    paths = list(itertools.product(*[(2 * tag, 2 * tag + 1) for tag in tags]))
    if update == "W3":
        v = np.array([own.a[0] for own in q.sticks])
        exact = float(np.logaddexp.reduce(log_evidence_given(v, shape, paths)) + beta(1, PRIORS.alpha).logpdf(v).sum())
    else:
        nodes, weights = np.polynomial.legendre.leggauss(8)
        places = 0.5 * (nodes + 1)
        logs = np.log(0.5 * weights) + beta(1, PRIORS.alpha).logpdf(places)
        values = [
            np.logaddexp.reduce(log_evidence_given(places[[i, j]], shape, paths)) + logs[i] + logs[j]
            for i, j in itertools.product(range(8), repeat=2)
        ]
        exact = float(np.logaddexp.reduce(values))
    assert exact - 12.0 < found < exact  # the surrogate of W2 costs a little for every row
