"""The HMM with Dirichlet-process sub-tags: learnt by variational Bayes, then perhaps discriminatively.

Every tag owns sub-tags that nobody labelled; they learn what comes before and after it ("worked as" before a
profession). The generative chain is learnt first; with the discriminative stage it goes on as a conditional random
field over the same latent states, which began from the generative one.

S tags, Z states, N tokens with pads between sentences, M without, D documents.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from chaffinch.errors import ConfigError
from chaffinch.features import observe as window
from chaffinch.features import symbols as symbol
from chaffinch.features import vocabulary
from chaffinch.features.vocabulary import Vocabulary, salted
from chaffinch.kernels import Active, Batch, Floats, Ints
from chaffinch.kernels.linear import Weights
from chaffinch.models.core.confidence import Calibration
from chaffinch.models.core.evidence import Evidence
from chaffinch.models.core.labels import Labels, Scheme
from chaffinch.models.core.linear import Linear
from chaffinch.models.core.methods import TrainingSet
from chaffinch.models.core.privacy import decide_privacy
from chaffinch.models.core.resources import Resources, columns_of
from chaffinch.models.core.runs import span_f1
from chaffinch.models.core.tasks import Task, runs_of
from chaffinch.models.core.training import Lesson, Plan, Progress, Scorer, Watcher, held_out, learn
from chaffinch.models.hmmdp import variational as vb
from chaffinch.models.hmmdp.config import HMMDP, MANY_NOTES
from chaffinch.models.hmmdp.emissions import Emissions, Known
from chaffinch.models.hmmdp.model import Model, Portrait, chosen, emissions_for, single, symbol_columns, table_sizes
from chaffinch.models.hmmdp.schedule import Course
from chaffinch.models.hmmdp.variational import Globals, LogTables, Priors, Sentences, Shape
from chaffinch.models.latent import decode as decoding
from chaffinch.models.latent.span_probabilities import calibrate
from chaffinch.text import Document, Span

SCHEME: Scheme = "IOB2"  # tags are doubled: a span's first token, and the others
FOLDS, CALIBRATION_EPOCHS = 5, 2


def fit(
    data: TrainingSet,
    config: HMMDP,
    *,
    resources: Resources | None = None,
    start: Model | None = None,
    watcher: Watcher | None = None,
) -> Model:
    """Learn a model.

    Rows of soft labels with zeros alone leave a token open, rows with several ones leave a choice, other rows weigh the
    tags. Dev documents choose the best epoch of the discriminative stage. With `start` that stage goes on from the
    weights of a model, whose labels, symbols, sub-tags and lists it keeps. An interrupt ends what is being learnt.
    """
    documents, dev, layer = data.documents, data.dev, data.layer
    if config.rules is not None:
        documents = [_in_categories(doc, layer, config) for doc in documents]
        dev = [_in_categories(doc, layer, config) for doc in dev]
    known = () if start is None else start.labels.names
    task, watcher = Task.of(documents, layer=layer, soft=data.soft, names=known), watcher or Watcher()
    if start is not None and task.names != known:
        new = ", ".join(task.names[len(known) :])
        raise ConfigError(
            f"an HMM-DP goes on with the labels it has, and {new} is new; leave out the model to go on from"
        )
    config = decide_privacy(config, task.names if config.rules is None else (*task.names, *config.rules.names))
    watcher.scores |= task.fitted.told()
    evidence = Evidence.of(task, Labels(task.names, SCHEME))
    lists = start.resources if start is not None and resources is None else resources or Resources()
    run = _Run(task, evidence, config, lists, watcher, tuple(dev), layer)
    if start is not None:
        return run.discriminative(replace(start, config=config))
    model = run.generative()
    if config.discriminative and not watcher.stopped():
        model = run.discriminative(model)
    return model


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Run:
    """One run of `fit`."""

    task: Task
    evidence: Evidence
    config: HMMDP
    resources: Resources
    watcher: Watcher
    dev: tuple[Document, ...]
    layer: str | None

    def generative(self) -> Model:
        """The generative chain: symbols, tables and sub-tags."""
        config, seen, evidence = self.config, self.task.seen, self.evidence
        symbols = symbol.learn(
            seen, config.language, patients=self.task.patients, min_count=config.min_count,
            min_groups=self.min_patients, hidden=evidence.inside if config.private else None,
            names_hidden=self.resources.hidden,
        )  # fmt: skip
        every = symbols(seen)
        known = chosen(symbols, every, config.emissions)
        types = _types(symbols, every) if config.emissions == "backoff" else None
        emissions = emissions_for(config, table_sizes(symbols, config.emissions), types, self.alpha_emission)
        subs = np.array([config.outside, *[config.inside] * (len(evidence.plain.tags) - 1)])
        shape = Shape(np.repeat(np.arange(len(subs)), subs), evidence.follows, evidence.occurs)
        alpha = 1.0 if config.alpha_sticks is None else config.alpha_sticks
        priors = Priors(alpha, config.alpha_subtags, config.alpha_tags)
        course = Course(config, _batches(evidence, known, config.batches), self.watcher)
        shape, tables, mass = self.learnt(course, shape, priors, emissions)
        used = tuple(np.bincount(shape.tag_of, minlength=shape.S).tolist())  # fewer, if it was interrupted
        labels = Labels(self.task.names, SCHEME, subs=used)
        names = self.task.names if config.rules is None else config.rules.names
        portrait = Portrait(mass, np.array(course.trace))
        model = Model(config, names, labels, symbols, emissions, tables, portrait, floor=self.min_patients)
        return single(model)

    def learnt(
        self, course: Course, shape: Shape, priors: Priors, emissions: Emissions
    ) -> tuple[Shape, LogTables, Floats]:
        """The states of a course, their tables, and how many tokens each has."""
        config = self.config
        if config.form == "atoms":
            from chaffinch.models.hmmdp.published import atoms

            _, counts = course.begin(shape, priors, emissions, np.random.default_rng(config.seed))
            tables, counts = atoms.fit(
                shape, priors, emissions, course.on(shape), passes=config.passes, q_z=config.states, start=counts,
                watch=lambda _, bound: course.trace.append(bound),
            )  # fmt: skip
            return shape, tables, counts.mass
        q, counts = course.run(shape, priors, emissions)
        if config.learn_priors:
            self.watcher.scores |= _told(q)
        return q.shape, (vb.means if config.parameters == "mean" else vb.expected)(q), counts.mass

    def discriminative(self, model: Model) -> Model:
        """The same chain as a latent-state CRF: log-parameters as first weights, more features, gradient steps.

        A model that has such weights goes on from them.
        """
        config, task, before = self.config, self.task, model.latent
        target, inside = self.evidence.target(model.labels), self.evidence.inside
        stops = model.stops
        if before is None:
            stops = window.stop_words(task.seen, inside, patients=task.patients, floor=self.floor)
        model = replace(model, stops=stops, resources=self.resources, floor=min(model.floor, self.floor))
        known = chosen(model.symbols, model.symbols(task.seen), config.emissions)
        columns = columns_of(task.seen, task.docs, stops, (), self.resources)
        words = vocabulary.learn(
            task.seen, columns, patients=task.patients, hidden=inside if config.private else None, floor=self.floor
        )
        features = (words if before is None else before.vocabulary.joined(words)).joined(_symbol_features(model.tables))
        lesson = Lesson.of(model.labels, features, task.seen, columns + symbol_columns(task.seen, known), target)
        start = _first_weights(model, features) if before is None else before.placed(model.labels, features)
        plan = Plan("adagrad", config.epochs, 1.0, config.rate, "cost", config.dropout, config.seed)
        walks: list[Progress] = []

        def tell(now: Progress) -> None:
            walks.append(now)
            if self.watcher.tell is not None:
                self.watcher.tell(now)

        stage = Watcher(tell, scores=self.watcher.scores)
        found = learn("discriminative", lesson, plan, stage, start=start, score=self.scorer(model))
        self.watcher.interrupted |= stage.interrupted
        if not walks:  # an interrupt came so early that the chain by itself is better
            return replace(model, latent=before)
        if before is not None:
            return replace(model, latent=found)
        return single(replace(model, latent=found, calibration=self.calibration(model, lesson, plan, start)))

    def calibration(self, model: Model, lesson: Lesson, plan: Plan, start: Weights) -> Calibration:
        """How sure the chain may be, found on a fold of patients that its gradient did not see; none without folds."""
        folds = self.task.folds(FOLDS, self.config.seed)
        hard = self.task.soft is None and self.config.calibrate
        if folds is None or not hard or self.watcher.stopped():
            return model.calibration
        tags = self.evidence.tags

        def judge(batch: Batch, places: Ints) -> Calibration:
            found = decoding.decode(batch, model.labels.tag_of)
            return calibrate(batch, model.labels, tags[places], found.tags)

        quick = replace(plan, epochs=min(plan.epochs, CALIBRATION_EPOCHS))
        return held_out("calibration", lesson, quick, self.watcher, folds, judge=judge, start=start)

    @property
    def alpha_emission(self) -> float:
        """The prior of symbols: weaker where there are few documents."""
        if self.config.alpha_emission is not None:
            return self.config.alpha_emission
        return 0.5 if len(self.task.docs) >= MANY_NOTES else 0.2

    @property
    def floor(self) -> int:
        """How many patients must have shown a feature."""
        return self.task.floor(self.config.floor)

    @property
    def min_patients(self) -> int:
        """How many patients must have used a word."""
        return min(self.config.min_patients, int(self.task.patients.max()) + 1)

    def scorer(self, model: Model) -> Scorer | None:
        """The F1 on the dev documents of a model with those weights, read as it will be."""
        if not self.dev:
            return None
        gold = [runs_of(doc, self.layer) for doc in self.dev]

        def score(part: Linear) -> float:
            return span_f1(gold, replace(model, latent=part).categories(self.dev))

        return score


def _batches(evidence: Evidence, known: Known, count: int) -> list[Sentences]:
    """Return the sentences in so many batches, with lists of tags."""
    bounds = evidence.bounds
    lists, which = evidence.lists()
    cuts = np.unique(np.linspace(0, len(bounds) - 1, min(count, len(bounds) - 1) + 1).astype(np.int64))
    batches = []
    for first, end in pairwise(cuts.tolist()):
        tokens = slice(int(bounds[first]), int(bounds[end]))
        weights = None if evidence.logs is None else evidence.logs[tokens][evidence.allowed[tokens]]
        active = Active.of(lists, which[tokens])
        batches.append(Sentences(known[tokens], active, bounds[first : end + 1] - bounds[first], weights))
    return batches


def _told(q: Globals) -> dict[str, float]:
    """The concentrations that were learnt, for the manifest; of each kind of symbol where there are several."""
    sizes, alphas = q.emissions.sizes, q.emissions.alphas
    if len(sizes) == 1:
        found = {"alpha_emission": alphas[0]}
    else:
        kinds = symbol.KINDS if len(sizes) == len(symbol.KINDS) else symbol.KINDS[: symbol.SIGNATURE + 1]  # of back-off
        found = {f"alpha_emission of {kind}": alpha for kind, alpha in zip(kinds, alphas, strict=False)}
    return {name: round(own, 6) for name, own in {"alpha_tags": q.priors.alpha_T, **found}.items()}


def _in_categories(doc: Document, layer: str | None, config: HMMDP) -> Document:
    spans = [Span(own.start, own.end, config.rules.category(own.label)) for own in doc.layer(layer)]  # type: ignore[union-attr]
    return doc.with_layer(layer or "gold", spans)


def _types(symbols: symbol.Symbols, every: Ints) -> Ints:
    """How many words each signature stands for."""
    pairs = np.unique(every[:, [symbol.SIGNATURE, symbol.WORD]], axis=0)
    return np.maximum(np.bincount(pairs[:, 0], minlength=symbols.sizes[symbol.SIGNATURE]), 1)


def _symbol_features(tables: LogTables) -> Vocabulary:
    """Every symbol of every kind as a feature."""
    keys, kinds = [], []
    for kind, own in enumerate(tables.emit, start=window.SYMBOLS):
        keys.append(salted(np.arange(1, len(own) + 1).astype(np.uint64), kind))
        kinds.append(np.full(len(own), kind, np.uint8))
    return Vocabulary(np.concatenate(keys), np.concatenate(kinds))


def _first_weights(model: Model, features: Vocabulary) -> Weights:
    """The log-parameters of the chain, tempered, as weights; those of all other features are 0.

    At full strength they explain the training text so well that little is left for the other features to learn. Every
    token has one symbol of each kind, so what a state gives to any symbol is moved to the steps into the state: the
    weights of symbols that it never had are 0.
    """
    states, tables, offset = model.labels.states, model.tables, model.config.offset
    floors = [own.min(axis=0) for own in tables.emit]
    rows = np.zeros((features.height, states.W), np.float32)
    own = _symbol_features(tables)
    above = [emit - floor for emit, floor in zip(tables.emit, floors, strict=True)]
    rows[features.rows[features.find(own.keys)], : states.K] = offset * np.concatenate(above)
    moves = states.moves.reshape(states.K + 2, states.W).copy()
    moves[:, : states.K] = offset * np.vstack([tables.trans, tables.start, tables.end])
    moves[: states.K + 1, : states.K] += offset * np.sum(floors, axis=0)
    return Weights(rows.ravel(), moves.ravel())
