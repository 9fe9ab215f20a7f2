"""The HMM with Dirichlet-process sub-tags: learnt by variational Bayes, then perhaps discriminatively.

Every tag owns sub-tags that nobody labelled; they learn what comes before and after it ("worked as" before a
profession). The generative chain is learnt first; with the discriminative stage it goes on as a conditional random
field over the same latent states, which began from the generative one.

S tags, Z states, N tokens with pads between sentences, M without, D documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from chaffinch.errors import DataError, InfeasibleError
from chaffinch.features import oov, vocabulary, window
from chaffinch.features import symbols as symbol
from chaffinch.features.vocabulary import Vocabulary, salted
from chaffinch.kernels import Active, Batch, Floats, Ints
from chaffinch.kernels.lattice import Bools
from chaffinch.kernels.linear import Target, Weights
from chaffinch.models import decoding
from chaffinch.models import variational as vb
from chaffinch.models.cascade import MANY_PATIENTS
from chaffinch.models.emissions import Emissions, Known
from chaffinch.models.hmmdp_config import HMMDP, MANY_NOTES
from chaffinch.models.hmmdp_learning import Course
from chaffinch.models.hmmdp_model import Model, Portrait, chosen, emissions_for, single, symbol_columns
from chaffinch.models.labels import Labels
from chaffinch.models.latent_spans import calibrate
from chaffinch.models.linear import Linear
from chaffinch.models.parts import Lesson, Plan, Scorer, Watcher, held_out, learn
from chaffinch.models.resources import Resources, columns_of
from chaffinch.models.tasks import Task, runs_of
from chaffinch.models.variational import Priors, Sentences, Shape, Tables
from chaffinch.text import Document, Span

__all__ = ["HMMDP", "Model", "fit"]

FOLDS, CALIBRATION_EPOCHS = 5, 2


def fit(
    documents: Sequence[Document],
    config: HMMDP,
    *,
    layer: str | None = None,
    soft: str | None = None,
    dev: Sequence[Document] = (),
    resources: Resources | None = None,
    watcher: Watcher | None = None,
) -> Model:
    """The model of documents whose `layer` holds the spans, or whose soft labels of that name say what is known.

    Rows of soft labels with zeros alone leave a token open, rows with several ones leave a choice, other rows weigh the
    tags. `dev` documents choose the best epoch of the discriminative stage. An interrupt ends what is being learnt.
    """
    if config.rules is not None:
        documents = [_in_categories(doc, layer, config) for doc in documents]
        dev = [_in_categories(doc, layer, config) for doc in dev]
    task, watcher = Task.of(documents, layer=layer, soft=soft), watcher or Watcher()
    watcher.scores |= task.fitted.told()
    run = _Run(task, config, resources or Resources(), watcher, tuple(dev), layer)
    model = run.generative()
    if config.discriminative and not watcher.stopped():
        model = run.discriminative(model)
    return model


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Run:
    """One run of `fit`."""

    task: Task
    config: HMMDP
    resources: Resources
    watcher: Watcher
    dev: tuple[Document, ...]
    layer: str | None

    def generative(self) -> Model:
        """The chain of METHODS 1."""
        config, seen = self.config, self.task.seen
        plain = Labels(self.task.names, config.scheme)
        allowed, evidence = self.known_tags(plain)
        symbols = symbol.learn(
            seen, oov.pack(config.language), patients=self.task.patients, min_count=config.min_count,
            min_groups=self.min_patients, hidden=self.inside(allowed) if config.private else None,
        )  # fmt: skip
        every = symbols(seen)
        known = chosen(symbols, every, config.emissions)
        sizes, types = _sizes(symbols, every, config)
        emissions = emissions_for(config, sizes, types, self.alpha_emission)
        subs = (config.outside, *[config.inside] * (len(plain.tags) - 1))
        labels = Labels(self.task.names, config.scheme, subs=subs)
        bounds = np.concatenate([[0], np.cumsum((seen.ends - seen.begins).astype(np.int64))])
        shape = Shape(labels.tag_of, _follows(plain), _occurs(allowed, bounds))
        alpha = 1.0 if config.alpha_sticks is None else config.alpha_sticks
        priors = Priors(alpha, config.alpha_subtags, config.alpha_tags)
        course = Course(config, _parts(known, allowed, evidence, bounds, config.batches), self.watcher)
        tables, mass = self.learnt(course, shape, priors, emissions)
        names = self.task.names if config.rules is None else config.rules.names
        portrait = Portrait(mass, np.array(course.trace))
        model = Model(config, names, labels, symbols, emissions, tables, portrait, floor=self.min_patients)
        return single(model if config.discriminative else replace(model, latent=None))

    def learnt(self, course: Course, shape: Shape, priors: Priors, emissions: Emissions) -> tuple[Tables, Floats]:
        """The tables of a course, and how many tokens each state has."""
        try:
            if self.config.form == "atoms":
                from chaffinch.models import atoms

                q, counts = course.begin(shape, priors, emissions, np.random.default_rng(self.config.seed))
                tables, counts = atoms.fit(
                    shape, priors, emissions, course.on(shape), passes=self.config.passes, q_z=self.config.states,
                    start=counts, watch=lambda _, bound: course.trace.append(bound),
                )  # fmt: skip
                return tables, counts.mass
            q, counts = course.run(shape, priors, emissions)
        except InfeasibleError as error:
            raise DataError(
                f"the soft labels of a sentence allow no sequence of tags ({error.message}); allow more there"
            ) from None
        return (vb.means if self.config.parameters == "mean" else vb.expected)(q), counts.mass

    def discriminative(self, model: Model) -> Model:
        """The same chain as a latent-state CRF: log-parameters as first weights, more features, gradient steps."""
        config, task = self.config, self.task
        target = self.target(model.labels)
        inside = self.inside(self.known_tags(Labels(task.names, config.scheme))[0])
        stops = window.stop_words(task.seen, inside, patients=task.patients, floor=self.floor)
        model = replace(model, stops=stops, resources=self.resources, floor=min(model.floor, self.floor))
        known = chosen(model.symbols, model.symbols(task.seen), config.emissions)
        columns = columns_of(task.seen, task.docs, stops, (), self.resources)
        words = vocabulary.learn(
            task.seen, columns, patients=task.patients, hidden=inside if config.private else None, floor=self.floor
        )
        features = words.joined(_symbol_features(model.tables))
        lesson = Lesson.of(model.labels, features, task.seen, columns + symbol_columns(task.seen, known), target)
        start = _first_weights(model, features)
        plan = Plan("adagrad", config.epochs, 1.0, config.rate, "cost", config.dropout, config.seed)
        found = learn("discriminative", lesson, plan, self.watcher, start=start, score=self.scorer(model))
        return replace(model, latent=found, calibration=self.calibration(model, lesson, plan, start))

    def calibration(self, model: Model, lesson: Lesson, plan: Plan, start: Weights) -> Calibration:
        """How sure the chain may be, found on a fold of patients that its gradient did not see; none without folds."""
        folds = self.task.folds(FOLDS, self.config.seed)
        hard = self.task.soft is None and self.config.calibrate
        if folds is None or not hard or self.watcher.stopped():
            return model.calibration
        tags = np.zeros(len(self.task.seen.types), np.int64)
        tags[self.task.seen.places] = self.known_tags(model.plain)[0].argmax(axis=1)

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
        if self.config.floor is not None:
            return self.config.floor
        return 2 if int(self.task.patients.max()) + 1 >= MANY_PATIENTS else 1

    @property
    def min_patients(self) -> int:
        """How many patients must have used a word."""
        return min(self.config.min_patients, int(self.task.patients.max()) + 1)

    def known_tags(self, plain: Labels) -> tuple[Bools, Floats | None]:
        """(M, S) the tags each token may have, and log weights where soft labels weigh them."""
        places, S = self.task.seen.places, len(plain.tags)
        target = self.task.target(plain)
        if self.task.soft is None:
            allowed = np.zeros((len(places), S), np.bool_)
            allowed[np.arange(len(places)), target.gold[places]] = True
            return allowed, None
        weights = target.weights[target.which[places], :S].astype(float)
        allowed = weights > 0
        for edge, mask in ((self.task.seen.begins, plain.follows[S]), (self.task.seen.ends - 1, plain.follows[S + 1])):
            allowed[np.isin(places, edge)] &= mask
        empty = ~allowed.any(axis=1)
        if empty.any():
            number = int(self.task.seen.owners[places[np.argmax(empty)]]) + 1
            raise DataError(f"document {number}: the soft labels of a token allow no tag there; allow more")
        with np.errstate(divide="ignore"):
            logs = np.where(allowed, np.log(weights), 0.0)
        return allowed, logs if logs.any() else None

    def inside(self, allowed: Bools) -> NDArray[np.bool_]:
        """(N,) which tokens are known to be in a span."""
        inside = np.zeros(len(self.task.seen.types), np.bool_)
        inside[self.task.seen.places] = ~allowed[:, 0]
        return inside

    def target(self, labels: Labels) -> Target:
        """What the gradient is clamped to: the states of the tags each token may have."""
        allowed, logs = self.known_tags(Labels(labels.names, labels.scheme))
        rows = allowed if logs is None else np.where(allowed, np.exp(logs), 0.0)
        distinct, which = np.unique(rows, axis=0, return_inverse=True)
        weights = np.zeros((1 + len(distinct), labels.states.W), np.float32)
        weights[1:, : labels.states.K] = distinct[:, labels.tag_of]
        places, N = self.task.seen.places, len(self.task.seen.types)
        gold, rank = np.zeros(N, np.int32), np.zeros(N, np.int32)
        gold[places], rank[places] = -1, 1 + which.ravel()
        return Target(gold, rank, weights, np.ones(len(weights), np.bool_))

    def scorer(self, model: Model) -> Scorer | None:
        """The F1 on the dev documents of a model with those weights; joint decoding, which is quick."""
        if not self.dev:
            return None
        gold = [set(runs_of(doc, self.layer)) for doc in self.dev]
        plain = model.plain
        placeholder = Linear(model.labels, Vocabulary(np.zeros(0, np.uint64), np.zeros(0, np.uint8)), Weights(*_EMPTY))
        seen, _, columns = replace(model, latent=placeholder).observe(self.dev)

        def score(part: Linear) -> float:
            states = part.decode(seen, columns)
            found = [set(plain.runs(model.labels.tag_of[own].astype(np.int32))) for own in seen.gather(states)]
            right = sum(len(a & b) for a, b in zip(gold, found, strict=True))
            total = sum(map(len, gold)) + sum(map(len, found))
            return 2 * right / total if total else 1.0

        return score


_EMPTY = np.zeros(0, np.float32), np.zeros(0, np.float32)


def _in_categories(doc: Document, layer: str | None, config: HMMDP) -> Document:
    spans = [Span(own.start, own.end, config.rules.category(own.label)) for own in doc.layer(layer)]  # type: ignore[union-attr]
    return doc.with_layer(layer or "gold", spans)


def _sizes(symbols: symbol.Symbols, every: Ints, config: HMMDP) -> tuple[tuple[int, ...], Ints | None]:
    """How many symbols each table has; for back-off, how many words each signature stands for."""
    words, signatures = symbols.sizes[symbol.WORD], symbols.sizes[symbol.SIGNATURE]
    if config.emissions == "categorical":
        return (words + signatures,), None
    if config.emissions == "factored":
        return symbols.sizes, None
    pairs = np.unique(every[:, [symbol.SIGNATURE, symbol.WORD]], axis=0)
    return (words, signatures, 2), np.maximum(np.bincount(pairs[:, 0], minlength=signatures), 1)


def _follows(plain: Labels) -> Bools:
    """(S+1, S+1) which tag may follow which: row S begins a sentence, column S ends it."""
    follows = np.zeros((len(plain.tags) + 1,) * 2, np.bool_)
    follows[:, :-1] = plain.follows[:-1]
    follows[:-1, -1] = plain.follows[-1]
    return follows


def _occurs(allowed: Bools, bounds: Ints) -> Bools:
    """(S+1, S) pairs of tags that some sentence can show."""
    first = np.zeros(len(allowed), np.bool_)
    first[bounds[:-1]] = True
    here = allowed.astype(np.float32)
    pairs = here[:-1][~first[1:]].T @ here[1:][~first[1:]]
    return np.vstack([pairs > 0, here[first].sum(axis=0) > 0])


def _parts(known: Known, allowed: Bools, evidence: Floats | None, bounds: Ints, count: int) -> list[Sentences]:
    """The sentences in so many batches, with lists of tags: one for each tag, then one for each set of several."""
    S = allowed.shape[1]
    sets, which = np.unique(allowed, axis=0, return_inverse=True)
    several = sets.sum(axis=1) > 1
    number = np.where(several, S - 1 + np.cumsum(several), sets.argmax(axis=1))
    lists = [np.array([tag]) for tag in range(S)] + [np.flatnonzero(own) for own in sets[several]]
    which, parts = number[which.ravel()], []
    cuts = np.unique(np.linspace(0, len(bounds) - 1, min(count, len(bounds) - 1) + 1).astype(np.int64))
    for first, end in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        own = slice(int(bounds[first]), int(bounds[end]))
        weights = None if evidence is None else evidence[own][allowed[own]]
        active = Active.of(lists, which[own])
        parts.append(Sentences(known[own], active, bounds[first : end + 1] - bounds[first], weights))
    return parts


def _symbol_features(tables: Tables) -> Vocabulary:
    """Every symbol of every kind as a feature."""
    keys, kinds = [], []
    for kind, own in enumerate(tables.emit, start=window.SYMBOLS):
        keys.append(salted(np.arange(1, len(own) + 1).astype(np.uint64), kind))
        kinds.append(np.full(len(own), kind, np.uint8))
    return Vocabulary(np.concatenate(keys), np.concatenate(kinds))


def _first_weights(model: Model, features: Vocabulary) -> Weights:
    """The log-parameters of the chain as weights; those of all other features are 0."""
    states, tables = model.labels.states, model.tables
    rows = np.zeros((features.height, states.W), np.float32)
    own = _symbol_features(tables)
    rows[features.rows[features.find(own.keys)], : states.K] = np.concatenate(tables.emit)
    moves = states.moves.reshape(states.K + 2, states.W).copy()
    moves[:, : states.K] = np.vstack([tables.trans, tables.start, tables.end])
    return Weights(rows.ravel(), moves.ravel())
