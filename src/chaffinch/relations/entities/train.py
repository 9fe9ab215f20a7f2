"""Learning an extractor of relations between given entities, and what may be wrong with the documents.

N candidates, F features.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from chaffinch.bundle import Manifest
from chaffinch.errors import ConfigError, DataError
from chaffinch.kernels.lattice import Bools, Floats, Ints
from chaffinch.models.phrasehmm.config import PhraseHMM
from chaffinch.models.phrasehmm.segments import REPRESENTATIONS, Representation
from chaffinch.relations.config import Extraction
from chaffinch.relations.entities import logistic as fitting
from chaffinch.relations.entities.extractor import BATCH, Extractor, Scored
from chaffinch.relations.entities.frames_of import Read, read
from chaffinch.relations.entities.logistic import LogisticWeights
from chaffinch.relations.evaluate import ranking
from chaffinch.relations.evaluate.report import RelationReport, gap
from chaffinch.relations.features import vectors
from chaffinch.relations.features.frames import Frame
from chaffinch.relations.features.vectors import Columns
from chaffinch.relations.schema import Schema
from chaffinch.text import Document

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


class _Examples(NamedTuple):
    """What is learnt from: for each candidate whether it is stated, its group and its fold; and the floor."""

    right: Bools
    groups: list[str]
    fold: Ints
    floor: int


class _Trial(NamedTuple):
    """Views of candidates with the log-odds that folds gave them, under the best of the strengths."""

    columns: Columns
    matrix: csr_matrix
    strength: float
    held: Floats  # (N,)
    auc: float


def train(docs: Iterable[Document], schema: Schema, config: Extraction | PhraseHMM | None = None) -> Extractor:
    """An extractor learnt from documents with entities and relations; `report` says what it is worth.

    All tuples of entities in one sentence are examples; those that the documents state are the right ones. Of a
    PhraseHMM the representation is used.
    """
    chosen = Extraction.of_hmm(config) if isinstance(config, PhraseHMM) else config or Extraction()
    if chosen.mode != "entities":
        raise ConfigError(
            f"train learns extractors of given entities; for the mode {chosen.mode} call train_{chosen.mode}"
        )
    held = list(docs)
    kinds = REPRESENTATIONS if chosen.representation == "auto" else (chosen.representation,)
    found = _read(held, schema, chosen, kinds[0])
    groups = [doc.patient for doc, own in zip(held, found, strict=True) for _ in own.candidates]
    right = np.array([one.stated for own in found for one in own.candidates], bool)
    check(held, schema, chosen, right)
    fold = fitting.folds(groups, min(chosen.folds, len(set(groups))), seed=chosen.seed)
    examples = _Examples(right, groups, fold, chosen.floor_for(len(set(groups))))
    rows = _frames(found)
    best = _trial(rows, examples, chosen.views, chosen.strengths)
    kind = kinds[0]
    for other in kinds[1:]:
        trial = _trial(_frames(_read(held, schema, chosen, other)), examples, chosen.views, chosen.strengths)
        best, kind = (trial, other) if trial.auc > best.auc else (best, kind)
    words = best if chosen.views == ("words",) else _trial(rows, examples, ("words",), chosen.strengths)
    return _extractor(held, schema, replace(chosen, representation=kind), examples, (best, words))


def _read(docs: Sequence[Document], schema: Schema, config: Extraction, kind: Representation) -> list[Read]:
    starts = range(0, len(docs), BATCH)
    return [own for at in starts for own in read(docs[at : at + BATCH], schema, config.layer, kind)]


def _frames(found: Iterable[Read]) -> list[Frame]:
    return [frame for own in found for frame in own.frames]


def _trial(rows: Sequence[Frame], examples: _Examples, views: Sequence[str], strengths: Sequence[float]) -> _Trial:
    columns = vectors.learn(zip(rows, examples.groups, strict=True), views, floor=examples.floor)
    matrix = vectors.matrix(rows, columns)
    tried = fitting.held_out(matrix, examples.right, examples.fold, strengths)
    areas = [ranking.auc(own, examples.right) for own in tried]
    best = max(range(len(tried)), key=lambda n: (areas[n], -n))
    return _Trial(columns, matrix, strengths[best], tried[best], areas[best])


def _extractor(
    docs: Sequence[Document], schema: Schema, config: Extraction, examples: _Examples, trials: tuple[_Trial, _Trial]
) -> Extractor:
    """The extractor of the best trial, beside that of the words."""
    (best, words), right = trials, examples.right
    weights = fitting.fit(best.matrix, right, strength=best.strength)
    weights = LogisticWeights(weights.values.astype(np.float32).astype(np.float64), weights.bias)
    calibration = fitting.calibrate(best.held, right)
    scored = Scored(calibration(best.held), right)
    report = RelationReport(
        documents=len(docs), candidates=len(right), stated=int(right.sum()), missed=_missed(docs, schema, right),
        strength=best.strength, own=ranking.quality(best.held, right), baseline=ranking.quality(words.held, right),
        gap=gap(best.held, words.held, right, examples.groups, seed=config.seed), floor=examples.floor,
        representation=config.representation,
    )  # fmt: skip
    manifest = Manifest(
        "relations", labels=(schema.name,), seed=config.seed, documents=len(docs),
        patients=len({doc.patient for doc in docs}), vocabulary_floor=examples.floor,
        metrics={"AUC": report.own.auc, "F1": report.own.f1, "baseline AUC": report.baseline.auc},
    )  # fmt: skip
    threshold = ranking.best_threshold(scored.scores, right)
    return Extractor(schema, config, best.columns, weights, calibration, threshold, scored, report, manifest)


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
