"""Training of a cascade: a linear chain by passive-aggressive steps (or by likelihood), in one stage or two.

One stage (the default) tags types directly (IOBES) and then reads each document again, with features for how the first
reading tagged the same words elsewhere in the document. Two stages, as published: find segments, then classify them,
where "none of these" is a class. Second readings and second stages learn from first readings by jack-knife, never from
those of a model on text it learnt from.

N tokens with pads between sentences, K states, D documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from chaffinch.errors import ConfigError
from chaffinch.features import observe as window
from chaffinch.features import vocabulary
from chaffinch.features.bio_patterns import with_published_features
from chaffinch.features.observe import Column
from chaffinch.kernels.linear import Target, Weights
from chaffinch.models.cascade import segments, token_stage
from chaffinch.models.cascade.config import Cascade
from chaffinch.models.cascade.likelihood import climb
from chaffinch.models.cascade.model import Model, columns_for
from chaffinch.models.core.confidence import Calibration
from chaffinch.models.core.labels import Labels
from chaffinch.models.core.linear import Linear
from chaffinch.models.core.methods import TrainingSet
from chaffinch.models.core.privacy import decide_privacy, first_identifier
from chaffinch.models.core.resources import Resources
from chaffinch.models.core.runs import span_f1
from chaffinch.models.core.tasks import Task, hard_target, runs_of
from chaffinch.models.core.training import Each, Lesson, Scorer, Watcher, calibrate_held_out, jackknife, learn
from chaffinch.text import Document


def fit(
    data: TrainingSet,
    config: Cascade,
    *,
    resources: Resources | None = None,
    start: Model | None = None,
    each: Each = map,
    watcher: Watcher | None = None,
) -> Model:
    """Train a cascade on spans or soft labels; ConfigError if two stages would keep words of identifiers.

    With dev documents each part stops when their F1 no longer rises and its best weights are kept. With `start` the
    model of an earlier fit continues to learn, new labels included. An interrupt ends the part that is being learnt;
    the weights learnt so far are kept.
    """
    names = () if start is None else start.names
    task = Task.of(data.documents, layer=data.layer, soft=data.soft, names=names)
    if config.features == "published":
        task = replace(task, seen=with_published_features(task.seen))
    identifier = first_identifier(task.names)
    if config.private is None and config.stages == 2 and identifier is not None:
        raise ConfigError(
            f"label {identifier!r} names identifiers, and two stages keep the words inside spans; use stages=1, "
            "or set private=False if the model may contain them"
        )
    config = decide_privacy(config, task.names)
    kept = start.resources if start is not None and resources is None else resources or Resources()
    folds = task.folds(config.folds, config.seed)
    watcher = watcher or Watcher()
    watcher.scores |= task.fitted.summary()
    if config.objective == "lbfgs" and data.dev:
        raise ConfigError("objective lbfgs never stops early; leave out dev, or use objective pa or crf")
    run = _Run(task, config, kept, start, each, watcher, tuple(data.dev), data.layer, folds)
    return run.two_stages() if config.stages == 2 else run.one_stage()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Run:
    """One run of `fit`: its task, settings, resources and helpers."""

    task: Task
    config: Cascade
    resources: Resources
    start: Model | None
    each: Each
    watcher: Watcher
    dev: tuple[Document, ...]
    layer: str | None
    folds: NDArray[np.int64] | None  # (S,) of each sentence

    def one_stage(self) -> Model:
        """Train the readings, then the calibration; return the model."""
        labels = self.config.labels(self.task.names)
        model, lesson = self.readings(self.task, labels)
        return replace(model, calibration=self.calibration(lesson, self.folds, model, self.config))

    def two_stages(self) -> Model:
        """Train the segmenter, then a classifier of its segments, calibrated, or of their tokens; return the model."""
        task, config, whole = self.task, self.config, self.task.segments()
        labels = config.labels(whole.names)
        model, lesson = self.readings(whole, labels)
        if config.classify == "tokens":
            return replace(model, names=task.names, classifier=self.token_classes(lesson.target, labels, model.stops))
        states, certain = lesson.target.gold, np.zeros(len(lesson.target.gold), np.float32)
        if self.folds is not None and not self.watcher.should_stop():
            states, certain = jackknife("jack-knife", lesson, config, self.watcher, self.folds, self.each)
        gold = segments.gold_segments(task.seen, task.pieces)
        seen, tags, halves = segments.examples(task.seen, segments.find_segments(labels, states), gold, certain)
        classes = Labels(task.names, "tokens")
        known = vocabulary.learn(seen, [], patients=task.patients, cutoff=config.cutoff, floor=self.floor)
        lesson = Lesson.of(classes, known, seen, [], hard_target(seen, tags, classes))
        gentle = replace(config, aggressiveness=config.aggressiveness / 2)  # few segments make a sentence
        model = replace(model, names=task.names, classifier=learn("classes", lesson, gentle, self.watcher))
        fold = None if self.folds is None else task.fold_of(self.folds, seen.owners[seen.begins])
        if fold is not None:  # right segments of the fold held out are neither learnt from nor judged
            fold[(np.arange(len(fold)) >= halves) & (fold == 0)] = -1
        return replace(model, calibration=self.calibration(lesson, fold, model, gentle))

    def token_classes(self, target: Target, labels: Labels, stops: NDArray[np.uint64]) -> Linear:
        """Train the published second stage: classes of tokens, which see the right segments as features."""
        task, config, classes = self.task, self.config, token_stage.labels_of(self.task.names)
        columns = columns_for(config, task.seen, task.docs, stops, self.resources)
        columns.append(token_stage.segmentation(task.seen, labels, target.gold))
        known = vocabulary.learn(task.seen, columns, patients=task.patients, cutoff=config.cutoff, floor=self.floor)
        tags = token_stage.tags_of(task)
        lesson = Lesson.of(classes, known, task.seen, columns, hard_target(task.seen, tags, classes))
        return learn("classes", lesson, config, self.watcher)

    def readings(self, task: Task, labels: Labels) -> tuple[Model, Lesson]:
        """Train one reading, or two if settings and documents allow; return (model, the last one's training data)."""
        config, target = self.config, task.target(labels)
        stops = self.stops(target, labels)
        columns = columns_for(config, task.seen, task.docs, stops, self.resources)
        lesson = self.lesson(labels, columns, target, 0)
        model = Model(config, task.names, stops, (), resources=self.resources, floor=self.floor)
        if config.objective == "lbfgs":
            return replace(model, readings=(climb("reading", lesson, config.epochs, self.watcher),)), lesson
        first = learn("reading", lesson, config, self.watcher, start=self.earlier(lesson, 0), score=self.scorer(model))
        model = replace(model, readings=(first,))
        if self.folds is None or not (config.documents and task.repeats) or self.watcher.should_stop():
            return model, lesson
        if self.start is not None and len(self.start.readings) == 2:  # it never saw these documents
            states = self.start.readings[0].decode(task.seen, columns)
        else:
            states = jackknife("first readings", lesson, config, self.watcher, self.folds, self.each)[0]
        if self.watcher.should_stop():
            return model, lesson
        columns = columns + window.elsewhere(task.seen, states, labels.states.K)
        lesson = self.lesson(labels, columns, target, 1)
        del columns  # the lesson holds what it needs
        again = learn(
            "second reading", lesson, config, self.watcher, start=self.earlier(lesson, 1), score=self.scorer(model)
        )
        return replace(model, readings=(first, again)), lesson

    def calibration(
        self, lesson: Lesson, folds: NDArray[np.int64] | None, model: Model, schedule: Cascade
    ) -> Calibration:
        """Return a calibration on folds not learnt from; if that cannot be, the earlier or the neutral one."""
        if folds is None or self.watcher.should_stop() or not self.config.calibrate or len(lesson.target.weights):
            return model.calibration if self.start is None else self.start.calibration
        return calibrate_held_out("calibration", lesson, schedule, self.watcher, folds, each=self.each)

    @property
    def floor(self) -> int:
        """Return how many patients must have shown a feature."""
        return self.task.floor(self.config.floor)

    def stops(self, target: Target, labels: Labels) -> NDArray[np.uint64]:
        """Return keys of words that end runs: the earlier model's, else learnt; none with published features."""
        if self.start is not None:
            return self.start.stops
        if labels.scheme == "tokens" or self.config.features == "published":
            return np.zeros(0, np.uint64)
        inside = _inside(target, labels)
        return window.stop_words(self.task.seen, inside, patients=self.task.patients, floor=self.floor)

    def lesson(self, labels: Labels, columns: Sequence[Column], target: Target, reading: int) -> Lesson:
        """Return a reading's training data; an earlier model's features come first in its vocabulary."""
        hidden = _inside(target, labels) if self.config.private else None
        known = vocabulary.learn(
            self.task.seen, columns, patients=self.task.patients, hidden=hidden,
            cutoff=self.config.cutoff, floor=self.floor,
        )  # fmt: skip
        if self.start is not None and reading < len(self.start.readings):
            known = self.start.readings[reading].vocabulary.union(known)
        return Lesson.of(labels, known, self.task.seen, columns, target)

    def earlier(self, lesson: Lesson, reading: int) -> Weights | None:
        """Return the earlier model's weights of a reading in the layout of this training data; None without one."""
        if self.start is None or reading >= len(self.start.readings):
            return None
        return self.start.readings[reading].expand_to(lesson.labels, lesson.vocabulary)

    def scorer(self, model: Model) -> Scorer | None:
        """Return a function from one more reading to F1 on dev documents (of segments in two stages); None without."""
        if not self.dev:
            return None
        gold = [runs_of(doc, self.layer, whole=self.config.stages == 2) for doc in self.dev]
        seen, columns = model.observe(self.dev, reread=bool(model.readings))

        def score(part: Linear) -> float:
            """Return span F1 on the dev documents with this linear part."""
            return span_f1(gold, map(part.labels.runs, seen.gather(part.decode(seen, columns))))

        return score


def _inside(target: Target, labels: Labels) -> NDArray[np.bool_]:
    """Return (N,) which tokens are in a span; with soft targets, where the likeliest tag is not O."""
    inside = np.asarray(labels.tag_of[np.maximum(target.gold, 0)] > 0)
    if len(target.weights):
        likely = labels.tag_of[target.weights[:, : labels.states.K].argmax(axis=1)] > 0
        inside = np.where(target.gold < 0, (likely & ~target.free)[target.which], inside)
    return inside
