"""Maximum likelihood of label pairs: against the chain over pairs, and against finite differences."""

from __future__ import annotations

import numpy as np
import pytest

from chaffinch.features import observe, vocabulary
from chaffinch.kernels import forward_backward, linear
from chaffinch.models.cascade import likelihood as module
from chaffinch.models.cascade.likelihood import PairLikelihood, fit_likelihood
from chaffinch.models.core.labels import Labels
from chaffinch.models.core.tasks import Task
from chaffinch.models.core.training import Lesson
from tests.models.notes import notes


def make(scheme: str = "IOB2") -> PairLikelihood:
    task = Task.of(notes(6), layer=None, soft=None)
    labels = Labels(task.names, scheme, pairs=True, moves=False)  # type: ignore[arg-type]
    columns = observe.ngrams(task.seen)
    known = vocabulary.learn(task.seen, columns, patients=task.patients, cutoff=3)
    lesson = Lesson.of(labels, known, task.seen, columns, task.target(labels))
    gold = lesson.target.gold[lesson.view.places].astype(np.int64)
    return PairLikelihood(lesson.view, gold, labels, known.height, variance=2.0)


@pytest.mark.parametrize("scheme", ["IOB2", "IOBES"])
def test_the_value_is_that_of_the_chain_over_pairs(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TOKENS", 40)  # several batches
    found = make(scheme)
    assert len(found.cuts) > 2
    rng, states = np.random.default_rng(0), found.labels.states
    x = rng.normal(0, 0.3, found.height * states.W)
    batch = linear.batch(found.seen, found.weights(x), states)
    right = batch.emit[np.arange(len(found.gold)), found.gold].sum()
    wanted = right - forward_backward(batch).log_z.sum() - x @ x / 4.0
    assert found(x)[0] == pytest.approx(wanted, rel=1e-5)


def test_the_gradient_is_that_of_finite_differences() -> None:
    found = make()
    rng, states = np.random.default_rng(1), found.labels.states
    x = rng.normal(0, 0.2, found.height * states.W)
    columns = x.reshape(-1, states.W)
    columns[:, states.K + len(found.labels.tags) :] = 0.0  # columns that only fill up a row
    slope = found(x)[1]
    for _ in range(8):
        direction = rng.normal(0, 1, x.shape)
        direction.reshape(-1, states.W)[:, states.K + len(found.labels.tags) :] = 0.0
        direction /= np.linalg.norm(direction)
        near = (found(x + 0.05 * direction)[0] - found(x - 0.05 * direction)[0]) / 0.1
        assert near == pytest.approx(slope @ direction, abs=2e-3 * max(1.0, abs(near)))


def test_the_climb_raises_the_likelihood_and_reads_its_own_text() -> None:
    found = make()
    weights, interrupted = fit_likelihood(found, evaluations=30)
    assert not interrupted
    states = linear.decode(found.seen, weights, found.labels.states)[found.seen.places]
    assert (states == found.gold).mean() > 0.97
    assert found(weights.rows.astype(np.float64))[0] > found(np.zeros(len(weights.rows)))[0]
