"""The network on embeddings: its slopes against finite differences, and that it learns."""

from __future__ import annotations

import numpy as np

from chaffinch.weak.training import network as students_network
from chaffinch.weak.training.network import _choose_tokens, _slopes


def loss(weights: list[np.ndarray], x: np.ndarray, y: np.ndarray, kept: np.ndarray) -> float:
    into, lift, out, shift = weights
    scores = np.maximum(x @ into + lift, 0) * kept @ out + shift
    log_z = np.log(np.exp(scores).sum(axis=1))
    decay = students_network.DECAY / 2 * ((into**2).sum() + (out**2).sum())
    return float((log_z - scores[np.arange(len(y)), y]).mean() + decay)


def test_slopes_are_those_of_finite_differences() -> None:
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal(shape) for shape in ((4, 5), (5,), (5, 3), (3,))]
    x, y = rng.standard_normal((7, 4)), rng.integers(0, 3, 7)
    kept = (rng.random((7, 5)) > 0.3) / 0.7
    slopes = _slopes(weights, x, y, kept)  # type: ignore[arg-type]
    for own, slope in zip(weights, slopes, strict=True):
        for place in np.ndindex(own.shape):
            was, step = own[place], 1e-5
            own[place] = was + step
            high = loss(weights, x, y, kept)
            own[place] = was - step
            low = loss(weights, x, y, kept)
            own[place] = was
            np.testing.assert_allclose(slope[place], (high - low) / (2 * step), rtol=0, atol=1e-5)


def test_tokens_near_spans_are_all_learnt_from() -> None:
    tags = np.zeros(1000, np.int64)
    tags[500] = 1
    chosen = _choose_tokens(tags, np.random.default_rng(0))
    assert chosen[498:503].all()
    assert 200 < chosen.sum() < 400


def test_it_learns_and_is_the_same_again() -> None:
    rng = np.random.default_rng(1)
    tags = [rng.integers(0, 3, 300) for _ in range(10)]
    rows = [np.eye(3, dtype=np.float32)[own] + rng.normal(0, 0.1, (300, 3)).astype(np.float32) for own in tags]
    network = students_network.learn(rows, tags, 1)
    chances = network(rows[0])
    np.testing.assert_allclose(chances.sum(axis=1), 1.0, rtol=0, atol=1e-5)
    assert ((chances[:, 1] > 0.5) == (tags[0] > 0)).mean() > 0.95
    again = students_network.learn(rows, tags, 1)
    assert all(np.array_equal(a, b) for a, b in zip(network.arrays().values(), again.arrays().values(), strict=True))
