"""Training of one linear chain: early stopping on dev documents, jack-knife readings, and calibration.

N tokens with pads between sentences, S sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from chaffinch.features.observe import Column, Observed
from chaffinch.features.vocabulary import Vocabulary
from chaffinch.kernels import Batch, linear
from chaffinch.kernels.linear import Learner, Places, SparseInput, Target, Weights
from chaffinch.models.core.confidence import SENTENCES, Calibration, HeldOut, calibrate_on, hold_out
from chaffinch.models.core.labels import Labels
from chaffinch.models.core.linear import Goal, Linear, Schedule, learner_for, round_weights, train

Each: TypeAlias = Callable[..., Iterable[Any]]  # map, or the map of a pool of threads
Judge: TypeAlias = Callable[[Batch, NDArray[np.int64]], HeldOut]
Reading: TypeAlias = tuple[Places, NDArray[np.float32]]  # (N,) states, and how certain they are

# Smaller weights are dropped at the end of training. Adagrad's steps are large for every weight they touch, so that its
# limit is higher. Raising a limit makes model files smaller.
LEAST: Mapping[Goal, float] = {"pa": 1e-3, "crf": 1e-3, "lbfgs": 1e-3, "adagrad": 0.02}
JACKKNIFE_EPOCHS = 5  # at most, for each fold of a jack-knife: more costs time for each fold
# Folds that are held out for a calibration, one after the other. One fold alone is too few spans; five cost more time
# than they are worth on the four corpora of `bench tagger --only calibration`.
CALIBRATION_FOLDS = 3
PATIENCE = 3  # epochs without a better score on the dev documents


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of training; `score` is the F1 on the dev documents, if there are any."""

    part: str
    epoch: int
    epochs: int
    loss: float
    score: float | None = None


class Scorer(Protocol):
    """A function that returns the F1 of a part on dev documents."""

    def __call__(self, part: Linear) -> float:
        """Return the span F1 of a chain on the dev documents."""


@dataclass(slots=True)
class Watcher:
    """Progress callback, interrupt flag and dev scores of one training run."""

    tell: Callable[[Progress], None] | None = None
    interrupted: bool = False
    scores: dict[str, float] = field(default_factory=dict)  # the best F1 on dev documents; spans that did not fit

    def should_stop(self) -> bool:
        """Tell whether training was interrupted, so that what follows must not begin."""
        return self.interrupted


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Lesson:
    """The training data of one linear chain: labels, vocabulary, sparse features and target."""

    labels: Labels
    vocabulary: Vocabulary
    view: SparseInput
    kinds: NDArray[np.uint8]  # (Q,) of the listed features
    target: Target

    @classmethod
    def of(
        cls, labels: Labels, vocabulary: Vocabulary, seen: Observed, columns: Sequence[Column], target: Target
    ) -> Lesson:
        """Return a chain's training data: the known features of observations and columns, and the target."""
        known = vocabulary.find(seen.keys) >= 0
        return cls(labels, vocabulary, vocabulary.view(seen, columns), seen.kinds[known], target)


def learn(
    name: str, lesson: Lesson, schedule: Schedule, watcher: Watcher,
    *, start: Weights | None = None, score: Scorer | None = None,
) -> Linear:  # fmt: skip
    """Return a chain trained, rounded; with `score`, its best epoch; interrupts and best score are noted in `watcher`.

    An interrupt is noted in the watcher, as is the best score on dev documents.
    """
    learner = learner_for(lesson.vocabulary.height, lesson.labels, schedule)
    learner.restart(start)
    best: list[tuple[float, int, Weights]] = []

    def watch(epoch: int, loss: float, learner: Learner) -> bool:
        """Score the averaged weights, keep the best epoch's, report; return True after `PATIENCE` epochs in vain."""
        f1 = None
        if score is not None:
            weights = learner.average()
            f1 = score(Linear(lesson.labels, lesson.vocabulary, weights))
            if not best or f1 > best[0][0]:
                best[:] = [(f1, epoch, weights)]
        if watcher.tell is not None:
            watcher.tell(Progress(name, epoch + 1, schedule.epochs, loss, f1))
        return bool(best) and epoch - best[0][1] >= PATIENCE

    try:
        weights = train(lesson.view, lesson.kinds, lesson.target, learner, schedule, watch)
    except KeyboardInterrupt:
        watcher.interrupted = True
        weights = learner.average()
    del learner  # its working space
    if best:
        watcher.scores[f"{name} F1 on dev"] = best[0][0]
    return round_weights(
        lesson.labels, lesson.vocabulary, best[0][2] if best else weights, least=LEAST[schedule.objective]
    )


def jackknife(
    name: str, lesson: Lesson, schedule: Schedule, watcher: Watcher, folds: NDArray[np.int64], each: Each = map
) -> Reading:
    """Return (states, certainty) (N,) of tokens, each fold read by a chain trained on others; 0 once interrupted."""
    total = int(folds.max()) + 1

    def read(fold: int) -> Reading:
        """Train on the other folds, for fewer epochs; return this fold's states and certainty, 0 elsewhere."""
        learner = learner_for(lesson.vocabulary.height, lesson.labels, schedule)
        others, part = (lesson.view.choose(np.flatnonzero(chosen)) for chosen in (folds != fold, folds == fold))
        weights = train(others, lesson.kinds, lesson.target, learner, _shorter(schedule))
        return _decode_view(part, weights, lesson.labels)

    states, certain = np.zeros(len(lesson.view.types), np.int32), np.zeros(len(lesson.view.types), np.float32)
    try:
        for fold, (fold_states, fold_certain) in enumerate(each(read, range(total))):
            states += fold_states
            certain += fold_certain
            if watcher.tell is not None:
                watcher.tell(Progress(name, fold + 1, total, 0.0))
    except KeyboardInterrupt:
        watcher.interrupted = True
    return states, certain


def calibrate_held_out(
    name: str, lesson: Lesson, schedule: Schedule, watcher: Watcher, folds: NDArray[np.int64],
    *, judge: Judge | None = None, start: Weights | None = None, each: Each = map,
) -> Calibration:  # fmt: skip
    """Return the calibration fitted to spans held out by a chain per fold; neutral if interrupted or below two folds.

    The chains learn as long as the one they represent, because longer training makes a chain surer of itself. Sentences
    of fold -1 are neither learnt from nor judged. `judge` makes the held-out spans of a chain's batch and the positions
    of its tokens; without it, tags are states. Interrupted or without two folds: the neutral calibration.
    """
    present = np.unique(folds[folds >= 0]).tolist()

    def read(fold: int) -> HeldOut:
        """Train on the other folds; return what calibration needs of at most `SENTENCES` of this fold."""
        chosen = (folds >= 0) & (folds != fold), folds == fold
        others, part = (lesson.view.choose(np.flatnonzero(sentences)) for sentences in chosen)
        part = part.choose(np.arange(min(len(part.begins), SENTENCES)))
        learner = learner_for(lesson.vocabulary.height, lesson.labels, schedule)
        learner.restart(start)
        weights = train(others, lesson.kinds, lesson.target, learner, schedule)
        places, batch = part.places, linear.batch(part, weights, lesson.labels.states)
        if judge is not None:
            return judge(batch, places)
        states = linear.decode(part, weights, lesson.labels.states)[places].astype(np.int64)
        return hold_out(batch, lesson.labels, lesson.target.gold[places].astype(np.int64), states)

    if len(present) < 2:
        return Calibration()
    parts: list[HeldOut] = []
    try:
        for part in each(read, present[:CALIBRATION_FOLDS]):
            parts.append(part)
            if watcher.tell is not None:
                watcher.tell(Progress(name, len(parts), min(len(present), CALIBRATION_FOLDS), 0.0))
    except KeyboardInterrupt:
        watcher.interrupted = True
        return Calibration()
    return calibrate_on(parts)


def decode_with_certainty(part: Linear, seen: Observed, columns: Sequence[Column]) -> Reading:
    """Return (best states, certainty) (N,) of a chain on observations; certainty is the lead in score."""
    return _decode_view(*part.view(seen, columns), part.labels)


def _decode_view(view: SparseInput, weights: Weights, labels: Labels) -> Reading:
    """Return (best states, certainty of each) (N,) of all tokens; certainty is as of `certainty`."""
    states = linear.decode(view, weights, labels.states)
    return states, certainty(view, weights, labels, states)


def certainty(view: SparseInput, weights: Weights, labels: Labels, states: Places) -> NDArray[np.float32]:
    """Return (N,) how far each state's score is above the best with another tag; 0 outside of sentences."""
    out, places = np.zeros(len(states), np.float32), view.places
    scores = linear.scores(view, weights, labels.states)[:, : labels.states.K]
    best = states[places]
    chosen = scores[np.arange(len(best)), best]
    scores[labels.tag_of == labels.tag_of[best][:, None]] = -np.inf
    out[places] = chosen - scores.max(axis=1)
    return out


@dataclass(frozen=True, slots=True)
class Plan:
    """A training schedule without a method's other settings."""

    objective: Goal
    epochs: int
    aggressiveness: float
    rate: float
    violator: str
    dropout: float
    seed: int


def _shorter(schedule: Schedule) -> Schedule:
    """Return the schedule with `JACKKNIFE_EPOCHS` epochs at most."""
    names = ("objective", "aggressiveness", "rate", "violator", "dropout", "seed")
    return Plan(epochs=min(schedule.epochs, JACKKNIFE_EPOCHS), **{name: getattr(schedule, name) for name in names})
