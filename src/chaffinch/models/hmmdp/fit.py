"""Training of an HMM with Dirichlet-process sub-tags: variational Bayes, then an optional discriminative stage.

Every tag has sub-tags that nobody labelled; they learn what comes before and after it ("worked as" before a
profession). The generative chain is learnt first; the discriminative stage continues with a conditional random
field over the same latent states, whose first weights are the parameters of the generative chain.

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
from chaffinch.features.vocabulary import Vocabulary, salt_keys
from chaffinch.kernels import Active, Batch, Floats, Ints
from chaffinch.kernels.linear import Weights
from chaffinch.models.core.confidence import Calibration, HeldOut
from chaffinch.models.core.evidence import Evidence
from chaffinch.models.core.labels import Labels
from chaffinch.models.core.linear import Linear
from chaffinch.models.core.methods import TrainingSet
from chaffinch.models.core.privacy import decide_privacy
from chaffinch.models.core.resources import Resources, columns_of
from chaffinch.models.core.runs import span_f1
from chaffinch.models.core.tasks import Task, runs_of
from chaffinch.models.core.training import Lesson, Plan, Progress, Scorer, Watcher, calibrate_held_out, learn
from chaffinch.models.hmmdp import variational as vb
from chaffinch.models.hmmdp.config import HMMDP, MANY_NOTES
from chaffinch.models.hmmdp.emissions import Emissions, Known
from chaffinch.models.hmmdp.model import (
    Model,
    Portrait,
    cut_sentences,
    emissions_for,
    round_to_stored,
    scheme_of,
    select_symbols,
    symbol_columns,
    table_sizes,
)
from chaffinch.models.hmmdp.schedule import TrainingRun
from chaffinch.models.hmmdp.variational import Globals, LogTables, Priors, Sentences, Shape
from chaffinch.models.latent import decode as decoding
from chaffinch.models.latent.span_probabilities import hold_out
from chaffinch.text import Document, Span

# Calibration trains once more, on 4 of 5 folds of patients, and only briefly: more epochs make training slower.
FOLDS, CALIBRATION_EPOCHS = 5, 2


def fit(
    data: TrainingSet,
    config: HMMDP,
    *,
    resources: Resources | None = None,
    start: Model | None = None,
    watcher: Watcher | None = None,
) -> Model:
    """Train an HMM-DP on spans or soft labels, or further from `start`; ConfigError for a label that `start` lacks.

    A row of soft labels that is all zeros leaves a token open, one with several ones leaves a choice, others weigh the
    tags. Dev documents choose the best epoch of the discriminative stage. With `start`, that stage continues from the
    weights of a model and keeps its labels, symbols, sub-tags and lists. An interrupt ends the current stage early.
    """
    documents, dev, layer = cut_sentences(data.documents, config), cut_sentences(data.dev, config), data.layer
    if config.rules is not None:
        documents = [_to_categories(doc, layer, config) for doc in documents]
        dev = [_to_categories(doc, layer, config) for doc in dev]
    known = () if start is None else start.labels.names
    task, watcher = Task.of(documents, layer=layer, soft=data.soft, names=known), watcher or Watcher()
    if start is not None and task.names != known:
        new = ", ".join(task.names[len(known) :])
        raise ConfigError(
            f"an HMM-DP goes on with the labels it has, and {new} is new; leave out the model to go on from"
        )
    config = decide_privacy(config, task.names if config.rules is None else (*task.names, *config.rules.names))
    watcher.scores |= task.fitted.summary()
    evidence = Evidence.of(task, Labels(task.names, scheme_of(config)))
    lists = start.resources if start is not None and resources is None else resources or Resources()
    run = _Run(task, evidence, config, lists, watcher, tuple(dev), layer)
    if start is not None:
        return run.fit_discriminative(replace(start, config=config))
    model = run.fit_generative()
    if config.discriminative and not watcher.should_stop():
        model = run.fit_discriminative(model)
    return model


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Run:
    """Data and settings of one call of `fit`."""

    task: Task
    evidence: Evidence
    config: HMMDP
    resources: Resources
    watcher: Watcher
    dev: tuple[Document, ...]
    layer: str | None

    def fit_generative(self) -> Model:
        """Learn symbols, sub-tags and tables by variational Bayes; return the model, rounded as it is stored."""
        config, seen, evidence = self.config, self.task.seen, self.evidence
        symbols = symbol.learn(
            seen, config.language, patients=self.task.patients, min_count=config.min_count,
            min_groups=self.min_patients, hidden=evidence.inside if config.private else None,
            names_hidden=self.resources.hidden, classes=config.word_classes,
        )  # fmt: skip
        all_symbols = symbols(seen)
        known = select_symbols(symbols, all_symbols, config.emissions)
        types = _words_per_signature(symbols, all_symbols) if config.emissions == "backoff" else None
        emissions = emissions_for(config, table_sizes(symbols, config.emissions), types, self.alpha_emission)
        subs = np.array([config.outside, *[config.inside] * (len(evidence.plain.tags) - 1)])
        shape = Shape(np.repeat(np.arange(len(subs)), subs), evidence.follows, evidence.occurs)
        alpha = 1.0 if config.alpha_sticks is None else config.alpha_sticks
        priors = Priors(alpha, config.alpha_subtags, config.alpha_tags)
        run = TrainingRun(config, _batches(evidence, known, config.batches), self.watcher)
        shape, tables, mass = self.learn_tables(run, shape, priors, emissions)
        sizes = tuple(np.bincount(shape.tag_of, minlength=shape.S).tolist())  # smaller after an interrupt
        labels = Labels(self.task.names, scheme_of(config), subs=sizes)
        names = self.task.names if config.rules is None else config.rules.names
        portrait = Portrait(mass, np.array(run.trace))
        model = Model(config, names, labels, symbols, emissions, tables, portrait, floor=self.min_patients)
        return round_to_stored(model)

    def learn_tables(
        self, run: TrainingRun, shape: Shape, priors: Priors, emissions: Emissions
    ) -> tuple[Shape, LogTables, Floats]:
        """Return the learnt shape of states, their log tables, and the expected tokens of each state (Z,)."""
        config = self.config
        if config.form == "atoms":
            from chaffinch.models.hmmdp.published import atoms

            _, counts = run.initialise(shape, priors, emissions, np.random.default_rng(config.seed))
            tables, counts = atoms.fit(
                shape, priors, emissions, run.batches_on(shape), passes=config.passes, q_z=config.states, start=counts,
                watch=lambda _, bound: run.trace.append(bound),
            )  # fmt: skip
            return shape, tables, counts.mass
        q, counts = run.run(shape, priors, emissions)
        if config.learn_priors:
            self.watcher.scores |= _concentrations(q)
        return q.shape, (vb.log_means if config.parameters == "mean" else vb.expected_logs)(q), counts.mass

    def fit_discriminative(self, model: Model) -> Model:
        """Return the model with its chain trained further as a latent-state CRF; as before if interrupted at once.

        A model that already has CRF weights continues from them.
        """
        config, task, before = self.config, self.task, model.latent
        target, inside = self.evidence.target(model.labels), self.evidence.inside
        stops = model.stops
        if before is None:
            stops = window.stop_words(task.seen, inside, patients=task.patients, floor=self.floor)
        model = replace(model, stops=stops, resources=self.resources, floor=min(model.floor, self.floor))
        known = select_symbols(model.symbols, model.symbols(task.seen), config.emissions)
        columns = columns_of(task.seen, task.docs, stops, (), self.resources)
        words = vocabulary.learn(
            task.seen, columns, patients=task.patients, hidden=inside if config.private else None, floor=self.floor
        )
        features = (words if before is None else before.vocabulary.union(words)).union(_symbol_features(model.tables))
        lesson = Lesson.of(model.labels, features, task.seen, columns + symbol_columns(task.seen, known), target)
        start = _first_weights(model, features) if before is None else before.expand_to(model.labels, features)
        plan = Plan("adagrad", config.epochs, 1.0, config.rate, "cost", config.dropout, config.seed)
        steps: list[Progress] = []

        def tell(now: Progress) -> None:
            """Keep a step of progress, and pass it on to the caller's callback."""
            steps.append(now)
            if self.watcher.tell is not None:
                self.watcher.tell(now)

        stage = Watcher(tell, scores=self.watcher.scores)
        latent = learn("discriminative", lesson, plan, stage, start=start, score=self.scorer(model))
        self.watcher.interrupted |= stage.interrupted
        if not steps:  # interrupted before the first step: the generative chain is better
            return replace(model, latent=before)
        if before is not None:
            return replace(model, latent=latent)
        return round_to_stored(
            replace(model, latent=latent, calibration=self.fit_calibration(model, lesson, plan, start))
        )

    def fit_calibration(self, model: Model, lesson: Lesson, plan: Plan, start: Weights) -> Calibration:
        """Return the calibration fitted on held-out patients; the model's own if too few, labels soft, or it is off."""
        folds = self.task.folds(FOLDS, self.config.seed)
        hard = self.task.soft is None and self.config.calibrate
        if folds is None or not hard or self.watcher.should_stop():
            return model.calibration
        tags = self.evidence.tags

        def judge(batch: Batch, places: Ints) -> HeldOut:
            """Decode a held-out batch, and return what calibration needs of it."""
            result = decoding.decode(batch, model.labels.tag_of)
            return hold_out(batch, model.labels, tags[places], result.tags)

        quick = replace(plan, epochs=min(plan.epochs, CALIBRATION_EPOCHS))
        return calibrate_held_out("calibration", lesson, quick, self.watcher, folds, judge=judge, start=start)

    @property
    def alpha_emission(self) -> float:
        """Return the prior concentration of symbols: as set, else 0.5, or 0.2 for fewer than `MANY_NOTES` documents."""
        if self.config.alpha_emission is not None:
            return self.config.alpha_emission
        return 0.5 if len(self.task.docs) >= MANY_NOTES else 0.2

    @property
    def floor(self) -> int:
        """Return the least number of patients that must show a feature."""
        return self.task.floor(self.config.floor)

    @property
    def min_patients(self) -> int:
        """Return the least number of patients that must use a word, never more than there are."""
        return min(self.config.min_patients, int(self.task.patients.max()) + 1)

    def scorer(self, model: Model) -> Scorer | None:
        """Return a function from a CRF part to F1 on the dev documents; None without dev."""
        if not self.dev:
            return None
        gold = [runs_of(doc, self.layer) for doc in self.dev]

        def score(part: Linear) -> float:
            """Return span F1 on the dev documents with this linear part."""
            return span_f1(gold, replace(model, latent=part).categories(self.dev))

        return score


def _batches(evidence: Evidence, known: Known, count: int) -> list[Sentences]:
    """Return the sentences in at most `count` batches, with the possible tags of each token."""
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


def _concentrations(q: Globals) -> dict[str, float]:
    """Return the learnt concentrations of tags and of each kind of symbol, rounded, by name."""
    sizes, alphas = q.emissions.sizes, q.emissions.alphas
    if len(sizes) == 1:
        named = {"alpha_emission": alphas[0]}
    else:
        kinds = symbol.KINDS if len(sizes) == len(symbol.KINDS) else symbol.KINDS[: symbol.SIGNATURE + 1]  # of back-off
        named = {f"alpha_emission of {kind}": alpha for kind, alpha in zip(kinds, alphas, strict=False)}
    return {name: round(alpha, 6) for name, alpha in {"alpha_tags": q.priors.alpha_T, **named}.items()}


def _to_categories(doc: Document, layer: str | None, config: HMMDP) -> Document:
    """Return the document with the spans of the layer (None: "gold") labelled by category, without scores."""
    spans = [Span(span.start, span.end, config.rules.category(span.label)) for span in doc.layer(layer)]  # type: ignore[union-attr]
    return doc.with_layer(layer or "gold", spans)


def _words_per_signature(symbols: symbol.Symbols, all_symbols: Ints) -> Ints:
    """Return the number of distinct words of each signature, at least 1."""
    pairs = np.unique(all_symbols[:, [symbol.SIGNATURE, symbol.WORD]], axis=0)
    return np.maximum(np.bincount(pairs[:, 0], minlength=symbols.sizes[symbol.SIGNATURE]), 1)


def _symbol_features(tables: LogTables) -> Vocabulary:
    """Return a vocabulary with one feature per symbol of each emission table."""
    keys, kinds = [], []
    for kind, table in enumerate(tables.emit, start=window.SYMBOLS):
        keys.append(salt_keys(np.arange(1, len(table) + 1).astype(np.uint64), kind))
        kinds.append(np.full(len(table), kind, np.uint8))
    return Vocabulary(np.concatenate(keys), np.concatenate(kinds))


def _first_weights(model: Model, features: Vocabulary) -> Weights:
    """Return first CRF weights: the chain's log-parameters times `offset` for symbols, 0 for other features.

    At full strength they fit the training text so well that the other features learn little. Every
    token has one symbol of each kind, so the least weight of a state's symbols is moved to the transitions into the
    state: the weights of symbols that it never had are 0.
    """
    states, tables, offset = model.labels.states, model.tables, model.config.offset
    floors = [table.min(axis=0) for table in tables.emit]
    rows = np.zeros((features.height, states.W), np.float32)
    symbol_features = _symbol_features(tables)
    above = [emit - floor for emit, floor in zip(tables.emit, floors, strict=True)]
    rows[features.rows[features.find(symbol_features.keys)], : states.K] = offset * np.concatenate(above)
    moves = states.moves.reshape(states.K + 2, states.W).copy()
    moves[:, : states.K] = offset * np.vstack([tables.trans, tables.start, tables.end])
    moves[: states.K + 1, : states.K] += offset * np.sum(floors, axis=0)
    return Weights(rows.ravel(), moves.ravel())
