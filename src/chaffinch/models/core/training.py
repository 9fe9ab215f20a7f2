"""The parts a cascade is learnt of: one chain with an eye on dev documents, and first readings by jack-knife.

N tokens with pads between sentences, S sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from chaffinch.features.observe import Column, Observed
from chaffinch.features.vocabulary import Vocabulary
from chaffinch.kernels import Batch, linear
from chaffinch.kernels.linear import Learner, Places, SparseInput, Target, Weights
from chaffinch.models.core.confidence import SENTENCES, Calibration, calibrate
from chaffinch.models.core.labels import Labels
from chaffinch.models.core.linear import Linear, Schedule, learner_for, rounded, train

Each: TypeAlias = Callable[..., Iterable["Reading"]]  # map, or the map of a pool of threads
Judge: TypeAlias = Callable[[Batch, NDArray[np.int64]], Calibration]
Reading: TypeAlias = tuple[Places, NDArray[np.float32]]  # (N,) states, and how certain they are

# Smaller weights are dropped at the end; steps that adapt move all that they touch, and far.
LEAST: Mapping[linear.Objective, float] = {"pa": 1e-3, "crf": 1e-3, "adagrad": 0.02}
JACKKNIFE_EPOCHS = 5
PATIENCE = 3  # epochs without a better score on the dev documents


@dataclass(frozen=True, slots=True)
class Progress:
    """How far learning is; `score` is the F1 on the dev documents, if there are any."""

    part: str
    epoch: int
    epochs: int
    loss: float
    score: float | None = None


class Scorer(Protocol):
    """Says how good a part is on dev documents."""

    def __call__(self, part: Linear) -> float: ...


@dataclass(slots=True)
class Watcher:
    """Who listens, and whether an interrupt has come."""

    tell: Callable[[Progress], None] | None = None
    interrupted: bool = False
    scores: dict[str, float] = field(default_factory=dict)  # the best F1 on dev documents; spans that did not fit

    def stopped(self) -> bool:
        """An interrupt has come."""
        return self.interrupted


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Lesson:
    """What a part learns from."""

    labels: Labels
    vocabulary: Vocabulary
    view: SparseInput
    kinds: NDArray[np.uint8]  # (Q,) of the listed features
    target: Target

    @classmethod
    def of(
        cls, labels: Labels, vocabulary: Vocabulary, seen: Observed, columns: Sequence[Column], target: Target
    ) -> Lesson:
        """The lesson of those observations."""
        known = vocabulary.find(seen.keys) >= 0
        return cls(labels, vocabulary, vocabulary.view(seen, columns), seen.kinds[known], target)


def learn(
    name: str, lesson: Lesson, schedule: Schedule, watcher: Watcher,
    *, start: Weights | None = None, score: Scorer | None = None,
) -> Linear:  # fmt: skip
    """The part that this lesson teaches, rounded as it will be saved; the best by `score` if there is one.

    An interrupt ends the lesson; what was learnt till then is kept.
    """
    learner = learner_for(lesson.vocabulary.height, lesson.labels, schedule)
    learner.restart(start)
    best: list[tuple[float, int, Weights]] = []

    def watch(epoch: int, loss: float, learner: Learner) -> bool:
        found = None
        if score is not None:
            weights = learner.averaged()
            found = score(Linear(lesson.labels, lesson.vocabulary, weights))
            if not best or found > best[0][0]:
                best[:] = [(found, epoch, weights)]
        if watcher.tell is not None:
            watcher.tell(Progress(name, epoch + 1, schedule.epochs, loss, found))
        return bool(best) and epoch - best[0][1] >= PATIENCE

    try:
        weights = train(lesson.view, lesson.kinds, lesson.target, learner, schedule, watch)
    except KeyboardInterrupt:
        watcher.interrupted = True
        weights = learner.averaged()
    del learner  # its working space
    if best:
        watcher.scores[f"{name} F1 on dev"] = best[0][0]
    return rounded(lesson.labels, lesson.vocabulary, best[0][2] if best else weights, least=LEAST[schedule.objective])


def jackknife(
    name: str, lesson: Lesson, schedule: Schedule, watcher: Watcher, folds: NDArray[np.int64], each: Each = map
) -> Reading:
    """Readings of every fold (S,) by a chain that learnt from the other folds."""
    total = int(folds.max()) + 1

    def read(fold: int) -> Reading:
        learner = learner_for(lesson.vocabulary.height, lesson.labels, schedule)
        others, own = (lesson.view.choose(np.flatnonzero(chosen)) for chosen in (folds != fold, folds == fold))
        weights = train(others, lesson.kinds, lesson.target, learner, _shorter(schedule))
        return _decoded(own, weights, lesson.labels)

    states, certain = np.zeros(len(lesson.view.types), np.int32), np.zeros(len(lesson.view.types), np.float32)
    try:
        for fold, (own, sure) in enumerate(each(read, range(total))):
            states += own
            certain += sure
            if watcher.tell is not None:
                watcher.tell(Progress(name, fold + 1, total, 0.0))
    except KeyboardInterrupt:
        watcher.interrupted = True
    return states, certain


def held_out(
    name: str, lesson: Lesson, schedule: Schedule, watcher: Watcher, folds: NDArray[np.int64],
    *, judge: Judge | None = None, start: Weights | None = None,
) -> Calibration:  # fmt: skip
    """The calibration of a chain that learnt from all folds but the first, on the first.

    `judge` is told the chain's batch and the places of its tokens; without it, tags are states.
    """
    others, own = (lesson.view.choose(np.flatnonzero(chosen)) for chosen in (folds > 0, folds == 0))
    if not len(others.begins) or not len(own.begins):
        return Calibration()
    own = own.choose(np.arange(min(len(own.begins), SENTENCES)))
    learner = learner_for(lesson.vocabulary.height, lesson.labels, schedule)
    learner.restart(start)
    try:
        weights = train(others, lesson.kinds, lesson.target, learner, _shorter(schedule))
    except KeyboardInterrupt:
        watcher.interrupted = True
        return Calibration()
    del learner  # its working space
    places = own.places
    batch = linear.batch(own, weights, lesson.labels.states)
    if watcher.tell is not None:
        watcher.tell(Progress(name, 1, 1, 0.0))
    if judge is not None:
        return judge(batch, places)
    states = linear.decode(own, weights, lesson.labels.states)[places].astype(np.int64)
    return calibrate(batch, lesson.labels, lesson.target.gold[places].astype(np.int64), states)


def decoded(part: Linear, seen: Observed, columns: Sequence[Column]) -> Reading:
    """The best states of a part, and how certain each is."""
    return _decoded(part.vocabulary.view(seen, columns), part.weights, part.labels)


def _decoded(view: SparseInput, weights: Weights, labels: Labels) -> Reading:
    states = linear.decode(view, weights, labels.states)
    return states, certainty(view, weights, labels, states)


def certainty(view: SparseInput, weights: Weights, labels: Labels, states: Places) -> NDArray[np.float32]:
    """(N,) by how much each state's own score exceeds the best state with another tag; 0 outside of sentences."""
    out, places = np.zeros(len(states), np.float32), view.places
    scores = linear.scores(view, weights, labels.states)[:, : labels.states.K]
    own = states[places]
    chosen = scores[np.arange(len(own)), own]
    scores[labels.tag_of == labels.tag_of[own][:, None]] = -np.inf
    out[places] = chosen - scores.max(axis=1)
    return out


@dataclass(frozen=True, slots=True)
class Plan:
    """A schedule by itself."""

    objective: linear.Objective
    epochs: int
    aggressiveness: float
    rate: float
    violator: str
    dropout: float
    seed: int


def _shorter(schedule: Schedule) -> Schedule:
    names = ("objective", "aggressiveness", "rate", "violator", "dropout", "seed")
    return Plan(epochs=min(schedule.epochs, JACKKNIFE_EPOCHS), **{name: getattr(schedule, name) for name in names})
