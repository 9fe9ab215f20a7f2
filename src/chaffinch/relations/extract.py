"""Learning an extractor from documents with relations, and the extractor itself.

N candidates, F features.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from chaffinch.bundle import Manifest
from chaffinch.errors import ConfigError, DataError
from chaffinch.kernels.lattice import Bools, Floats, Ints
from chaffinch.models.chunker import CHUNKS, POS
from chaffinch.models.phrase_segments import parsed
from chaffinch.models.phrasehmm_config import PhraseHMM
from chaffinch.relations import fitting, ranking, vectors
from chaffinch.relations.candidates import Candidate, Scene, scenes
from chaffinch.relations.fitting import Calibration, Weights
from chaffinch.relations.frames import Frame, frames
from chaffinch.relations.report import Report, gap
from chaffinch.relations.schema import Schema
from chaffinch.relations.settings import Extraction
from chaffinch.relations.vectors import Columns
from chaffinch.text import Document, Relation

SOURCE = "relations"  # who found a relation
BATCH = 64  # documents parsed and scored at a time
FEW = 500  # groups; below that any feature enters


class Reason(NamedTuple):
    """A feature of a candidate, the view it belongs to, and what it adds to the log-odds."""

    view: str
    feature: str
    weight: float


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """Candidates of training, scored by models that had not seen their documents."""

    scores: Floats  # (N,) calibrated
    right: Bools  # (N,)


@dataclass(frozen=True, slots=True, eq=False)
class Extractor:
    """Finds the relations of a schema in documents whose entities are known."""

    schema: Schema
    config: Extraction
    columns: Columns = field(repr=False)
    weights: Weights = field(repr=False)
    calibration: Calibration
    threshold: float
    held: Scored = field(repr=False)
    report: Report | None
    manifest: Manifest = field(repr=False)

    def extract(self, doc: Document) -> tuple[Relation, ...]:
        """The relations of a document whose score reaches the threshold, in order of occurrence."""
        return next(self.extract_all([doc]))

    def extract_all(self, docs: Iterable[Document]) -> Iterator[tuple[Relation, ...]]:
        """The relations of each document, in order."""
        for found in self.scored(docs):
            kept = [(one, score) for one, score in found if score >= self.threshold]
            yield tuple(self.schema.relation(one.spans, score=score, source=SOURCE) for one, score in kept)

    def annotate(self, docs: Iterable[Document]) -> Iterator[Document]:
        """The documents with the relations that were found in place of those of this name."""
        held = list(docs)
        for doc, found in zip(held, self.extract_all(held), strict=True):
            others = tuple(own for own in doc.relations if own.label != self.schema.name)
            yield replace(doc, relations=others + found)

    def scored(self, docs: Iterable[Document]) -> Iterator[list[tuple[Candidate, float]]]:
        """Every candidate of each document with the probability that the relation holds."""
        scorer = vectors.Scorer(self.columns, self.weights.values.tolist(), self.weights.bias)
        batch: list[Document] = []
        for doc in docs:
            batch.append(doc)
            if len(batch) == BATCH:
                yield from self._scored(batch, scorer)
                batch = []
        yield from self._scored(batch, scorer)

    def _scored(self, docs: Sequence[Document], scorer: vectors.Scorer) -> Iterator[list[tuple[Candidate, float]]]:
        found = read(docs, self.schema, self.config)
        scores = self.calibration(np.array([scorer(frame) for own in found for frame in own.frames])).tolist()
        at = 0
        for own in found:
            yield list(zip(own.candidates, scores[at : at + len(own.candidates)], strict=True))
            at += len(own.candidates)

    def explain(self, doc: Document, relation: Relation, *, top: int = 10) -> list[Reason]:
        """The features that speak loudest for and against a relation of the document, the loudest first."""
        wanted = {self.schema.key(spans) for spans in self.schema.tuples(relation)}
        (own,) = read([doc], self.schema, self.config)
        for one, frame in zip(own.candidates, own.frames, strict=True):
            if self.schema.key(one.spans) in wanted:
                return self._reasons(frame)[:top]
        raise DataError(f"{doc.id}: no candidate has the arguments of this relation; they must be in one sentence")

    def _reasons(self, frame: Frame) -> list[Reason]:
        named = [
            (view, name) for view, names in zip(self.columns.views, self.columns.names, strict=True) for name in names
        ]
        parts = [
            Reason(*named[column], float(value * self.weights.values[column]))
            for column, value in vectors.row(frame, self.columns)
        ]
        return sorted(parts, key=lambda own: (-abs(own.weight), own.view, own.feature))

    def with_precision(self, precision: float) -> Extractor:
        """The same extractor, its threshold the lowest that kept so much precision in cross-validation."""
        threshold = ranking.threshold_for(self.held.scores, self.held.right, precision)
        return replace(self, threshold=threshold)


class Read(NamedTuple):
    """A document's candidates and their frames."""

    candidates: list[Candidate]
    frames: list[Frame]


def read(docs: Sequence[Document], schema: Schema, config: Extraction) -> list[Read]:
    """The candidates of documents with their frames; sentences without a candidate are not parsed."""
    staged = [(doc, scenes(doc, schema, layer=config.layer)) for doc in docs]
    ready = _parsed(staged)
    out = []
    for doc, (_, own) in zip(ready, staged, strict=True):
        found = [frame for scene in own for frame in frames(doc, scene, schema, config.representation)]
        out.append(Read([one for scene in own for one in scene.candidates], found))
    return out


def _parsed(staged: Sequence[tuple[Document, list[Scene]]]) -> list[Document]:
    """The documents with parts of speech and chunks, at least in the sentences that have candidates."""
    parts = []
    for doc, own in staged:
        if not own or {POS, CHUNKS} <= doc.layers.keys():
            parts.append(replace(doc, layers={POS: (), CHUNKS: (), **doc.layers}))
            continue
        tokens = np.concatenate([doc.tokens[scene.first : scene.end] for scene in own])
        layers = {name: doc.layers[name] for name in (POS, CHUNKS) if name in doc.layers}
        sentences = doc.sentences[[scene.sentence for scene in own]]
        parts.append(replace(doc, tokens=tokens, sentences=sentences, layers=layers, given=True, soft={}))
    out = []
    for (doc, _), ready in zip(staged, parsed(parts), strict=True):
        out.append(replace(doc, layers={**doc.layers, POS: ready.layers[POS], CHUNKS: ready.layers[CHUNKS]}))
    return out


def train(docs: Iterable[Document], schema: Schema, config: Extraction | PhraseHMM | None = None) -> Extractor:
    """An extractor learnt from documents with entities and relations; `report` says what it is worth.

    All tuples of entities in one sentence are examples; those that the documents state are the right ones.
    """
    chosen = Extraction(hmm=config) if isinstance(config, PhraseHMM) else config or Extraction()
    if chosen.mode != "entities":
        raise ConfigError('train learns extractors of given entities; for the mode "joint" call train_joint')
    held = list(docs)
    found = [own for at in range(0, len(held), BATCH) for own in read(held[at : at + BATCH], schema, chosen)]
    groups = [doc.patient for doc, own in zip(held, found, strict=True) for _ in own.candidates]
    right = np.array([one.stated for own in found for one in own.candidates], bool)
    check(held, schema, chosen, right)
    rows = [frame for own in found for frame in own.frames]
    floor = 1 if len(set(groups)) < FEW else chosen.floor
    columns = vectors.learn(zip(rows, groups, strict=True), chosen.views, floor=floor)
    matrix = vectors.matrix(rows, columns)
    fold = fitting.folds(groups, min(chosen.folds, len(set(groups))), seed=chosen.seed)
    tried = fitting.held_out(matrix, right, fold, chosen.strengths)
    best = max(range(len(tried)), key=lambda n: (ranking.auc(tried[n], right), -n))
    weights = fitting.fit(matrix, right, strength=chosen.strengths[best])
    weights = Weights(weights.values.astype(np.float32).astype(np.float64), weights.bias)
    calibration = fitting.calibrate(tried[best], right)
    scored = Scored(calibration(tried[best]), right)
    baseline = _baseline(rows, right, groups, fold, chosen) if chosen.views != ("words",) else tried[best]
    report = Report(
        documents=len(held), candidates=len(right), stated=int(right.sum()), missed=_missed(held, schema, right),
        strength=chosen.strengths[best], own=ranking.quality(tried[best], right),
        baseline=ranking.quality(baseline, right), gap=gap(tried[best], baseline, right, groups, seed=chosen.seed),
    )  # fmt: skip
    manifest = Manifest(
        "relations", labels=(schema.name,), seed=chosen.seed, documents=len(held),
        patients=len({doc.patient for doc in held}), vocabulary_floor=floor,
        metrics={"AUC": report.own.auc, "F1": report.own.f1, "baseline AUC": report.baseline.auc},
    )  # fmt: skip
    threshold = ranking.best_threshold(scored.scores, right)
    return Extractor(schema, chosen, columns, weights, calibration, threshold, scored, report, manifest)


def _baseline(rows: Sequence[Frame], right: Bools, groups: Sequence[str], fold: Ints, config: Extraction) -> Floats:
    """The held-out log-odds of the bag of words on the same folds, its strength chosen in the same way."""
    floor = 1 if len(set(groups)) < FEW else config.floor
    columns = vectors.learn(zip(rows, groups, strict=True), ("words",), floor=floor)
    tried = fitting.held_out(vectors.matrix(rows, columns), right, fold, config.strengths)
    return max(tried, key=lambda own: ranking.auc(own, right))


def check(docs: Sequence[Document], schema: Schema, config: Extraction, right: Bools) -> None:
    """DataError that says what is missing, if nothing can be learnt from the documents."""
    labels: dict[str, int] = {}
    for doc in docs:
        for span in doc.layer(config.layer):
            labels[span.label] = labels.get(span.label, 0) + 1
    for role, kind in zip(schema.roles, schema.types, strict=True):
        if kind not in labels:
            known = ", ".join(sorted(labels)) or "no entities at all"
            raise DataError(f"role {role!r} needs entities labelled {kind!r}, and there are none; there is: {known}")
    if not len(right):
        raise DataError("no sentence has an entity for every role; check the entities, and how sentences are cut")
    if not right.any():
        labels = {}
        for doc in docs:
            for own in doc.relations:
                labels[own.label] = labels.get(own.label, 0) + 1
        known = ", ".join(sorted(labels)) or "none at all"
        raise DataError(
            f"no sentence states a relation {schema.name!r} between its entities; relations in the documents: {known}"
        )
    if right.all():
        raise DataError(
            f"all {len(right):,} candidates are stated relations, so there is nothing to tell them from; "
            "add sentences with entities that are not related"
        )
    if len({doc.patient for doc in docs}) < 2:
        raise DataError("all documents belong to one group, and folds need two or more; add documents")


def _missed(docs: Sequence[Document], schema: Schema, right: Bools) -> int:
    """The tuples of mentions stated of two spans or more that are no candidates; those of concepts are not counted."""
    total = 0
    for doc in docs:
        stated: set[tuple[tuple[int, int], ...]] = set()
        for relation in doc.relations:
            found = schema.arguments(relation)
            if found is not None and all(len(own.spans) == 1 for own in found):
                stated.add(schema.key(tuple(own.spans[0] for own in found)))
        total += len(stated)
    return max(0, total - int(right.sum()))
