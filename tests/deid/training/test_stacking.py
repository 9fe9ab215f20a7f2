"""Training of the second stage over taggers."""

from __future__ import annotations

import numpy as np
import pytest

from chaffinch.deid.detect.model import Model
from chaffinch.deid.detect.token_scores import Flags
from chaffinch.deid.detect.voices.stacking import count_features
from chaffinch.deid.training.stacking import StackLesson, StackSample, _Net, fit_stack, stack_sample
from chaffinch.errors import ConfigError, DataError
from chaffinch.kernels.lattice import Floats

LABELS = ("CITY", "DOCTOR")
SIZE = count_features(2, len(LABELS))


def drawn(seed: int, number: int = 3000) -> StackSample:
    """Tokens that are identifiers if the sixth feature and the first say so, whatever the mean log-odds."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(number, SIZE))
    gold = rng.random(number) < 1 / (1 + np.exp(-rows[:, 0] - 3 * np.maximum(rows[:, 5], 0) + 1.5))
    return StackSample(rows, gold)


def loss(odds: Floats, gold: Flags) -> float:
    return float(np.logaddexp(0, np.where(gold, -odds, odds)).mean())


def test_what_was_learnt_holds_on_other_tokens() -> None:
    stack, other = fit_stack([drawn(0), drawn(1)], LABELS, 2), drawn(2)
    before, after = (loss(other.rows[:, 0] + more, other.gold) for more in (0.0, stack.log_odds(other.rows)))
    truth = loss(other.rows[:, 0] + 3 * np.maximum(other.rows[:, 5], 0) - 1.5, other.gold)
    assert after - truth < 0.5 * (before - truth)


def test_the_nets_are_averaged() -> None:
    plan = StackLesson(nets=2, epochs=1, hidden=4)
    rows = drawn(3).rows
    both = fit_stack([drawn(0)], LABELS, 2, plan)
    single = fit_stack([drawn(0)], LABELS, 2, StackLesson(nets=1, epochs=1, hidden=4))
    first = both.outer.copy()
    first[4:] = 0
    alone = np.maximum((rows - both.centre) / both.scale @ both.inner + both.bias, 0) @ (2 * first)
    np.testing.assert_allclose(alone + single.offset, single.log_odds(rows))
    assert both.inner.shape == (SIZE, 8)


def test_the_same_seed_gives_the_same_net() -> None:
    plan = StackLesson(epochs=1)
    nets = [fit_stack([drawn(0)], LABELS, 2, plan).inner.tobytes() for _ in range(2)]
    assert nets[0] == nets[1] != fit_stack([drawn(0)], LABELS, 2, StackLesson(epochs=1, seed=1)).inner.tobytes()


def test_gradients_agree_with_differences() -> None:
    rng = np.random.default_rng(0)
    net = _Net.draw(5, 3, rng)
    net.weights[2], net.weights[3] = rng.normal(size=3), rng.normal(size=1)
    rows, odds, gold = rng.normal(size=(20, 5)), rng.normal(size=20), (rng.random(20) < 0.5).astype(np.float64)
    kept = (rng.random((20, 3)) > 0.3) / 0.7

    def measured() -> float:
        inner, bias, outer, offset = net.weights
        return loss(odds + np.maximum(rows @ inner + bias, 0) * kept @ outer + offset, gold > 0)

    for part, slopes in zip(net.weights, net.gradients(rows, odds, gold, kept), strict=True):
        for place in np.ndindex(part.shape):
            held, step = part[place], 1e-6
            part[place] = held + step
            above = measured()
            part[place] = held - step
            below = measured()
            part[place] = held
            assert slopes[place] == pytest.approx((above - below) / (2 * step), abs=1e-7)


def test_notes_that_teach_nothing_are_refused() -> None:
    sample = drawn(0)
    with pytest.raises(DataError, match="all identifiers or none"):
        fit_stack([StackSample(sample.rows, np.ones(len(sample.gold), np.bool_))], LABELS, 2)
    with pytest.raises(DataError, match="no notes"):
        stack_sample(Model(), [], LABELS)
    with pytest.raises(ConfigError, match="nets"):
        StackLesson(nets=0)
