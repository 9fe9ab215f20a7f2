"""Training of extractors of relations between given entities, with checks of the documents.

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
from chaffinch.relations.entities.extractor import BATCH, Extractor, HeldOutScores
from chaffinch.relations.entities.frames_of import DocumentCandidates, read_candidates
from chaffinch.relations.entities.logistic import LogisticWeights
from chaffinch.relations.evaluate import ranking
from chaffinch.relations.evaluate.report import RelationReport, gap
from chaffinch.relations.features import vectors
from chaffinch.relations.features.frames import Frame
from chaffinch.relations.features.vectors import FeatureColumns
from chaffinch.relations.schema import Schema
from chaffinch.text import Document

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


class _Examples(NamedTuple):
    """Training examples: for each candidate whether it is stated, its group and its fold; and the floor."""

    right: Bools
    groups: list[str]
    fold: Ints
    floor: int


class _Trial(NamedTuple):
    """Features of the candidates with their held-out log-odds, under the best of the strengths."""

    columns: FeatureColumns
    matrix: csr_matrix
    strength: float
    held: Floats  # (N,)
    auc: float


def train(docs: Iterable[Document], schema: Schema, config: Extraction | PhraseHMM | None = None) -> Extractor:
    """Return an extractor between given entities, trained; DataError if nothing can be learnt; or ConfigError.

    All tuples of entities in one sentence are examples; those that the documents state are positive. From a PhraseHMM
    only the representation and the seed are used.
    """
    chosen = Extraction.of_hmm(config) if isinstance(config, PhraseHMM) else config or Extraction()
    if chosen.mode != "entities":
        raise ConfigError(f"train is for the mode entities; for the mode {chosen.mode} call train_{chosen.mode}")
    documents = list(docs)
    kinds = REPRESENTATIONS if chosen.representation == "auto" else (chosen.representation,)
    found = _read(documents, schema, chosen, kinds[0])
    groups = [doc.patient for doc, item in zip(documents, found, strict=True) for _ in item.candidates]
    right = np.array([candidate.stated for item in found for candidate in item.candidates], bool)
    check(documents, schema, chosen, right)
    fold = fitting.folds(groups, min(chosen.folds, len(set(groups))), seed=chosen.seed)
    examples = _Examples(right, groups, fold, chosen.floor_for(len(set(groups))))
    rows = _frames(found)
    best = _trial(rows, examples, chosen.views, chosen.strengths)
    kind = kinds[0]
    for other in kinds[1:]:
        trial = _trial(_frames(_read(documents, schema, chosen, other)), examples, chosen.views, chosen.strengths)
        best, kind = (trial, other) if trial.auc > best.auc else (best, kind)
    words = best if chosen.views == ("words",) else _trial(rows, examples, ("words",), chosen.strengths)
    return _extractor(documents, schema, replace(chosen, representation=kind), examples, (best, words))


def _read(
    docs: Sequence[Document], schema: Schema, config: Extraction, kind: Representation
) -> list[DocumentCandidates]:
    """Return the candidates of all documents, read `BATCH` documents at a time."""
    starts = range(0, len(docs), BATCH)
    return [
        item for start in starts for item in read_candidates(docs[start : start + BATCH], schema, config.layer, kind)
    ]


def _frames(found: Iterable[DocumentCandidates]) -> list[Frame]:
    """Return the frames of all documents in one list."""
    return [frame for item in found for frame in item.frames]


def _trial(rows: Sequence[Frame], examples: _Examples, views: Sequence[str], strengths: Sequence[float]) -> _Trial:
    """Return features and held-out log-odds under the strength of the best AUC, by cross-validation of the views."""
    columns = vectors.learn(zip(rows, examples.groups, strict=True), views, floor=examples.floor)
    matrix = vectors.matrix(rows, columns)
    tried = fitting.held_out(matrix, examples.right, examples.fold, strengths)
    areas = [ranking.auc(scores, examples.right) for scores in tried]
    best = max(range(len(tried)), key=lambda n: (areas[n], -n))
    return _Trial(columns, matrix, strengths[best], tried[best], areas[best])


def _extractor(
    docs: Sequence[Document], schema: Schema, config: Extraction, examples: _Examples, trials: tuple[_Trial, _Trial]
) -> Extractor:
    """Return the extractor of the best trial, fitted on all examples, calibrated; `trials` is (best, words).

    Calibration, threshold and report come from held-out log-odds.
    """
    (best, words), right = trials, examples.right
    weights = fitting.fit(best.matrix, right, strength=best.strength)
    weights = LogisticWeights(weights.values.astype(np.float32).astype(np.float64), weights.bias)
    calibration = fitting.calibrate(best.held, right)
    held_out = HeldOutScores(calibration(best.held), right)
    report = RelationReport(
        documents=len(docs), candidates=len(right), stated=int(right.sum()),missed=_count_missed(docs, schema, right),
        strength=best.strength, quality=ranking.quality(best.held, right), baseline=ranking.quality(words.held, right),
        gap=gap(best.held, words.held, right, examples.groups, seed=config.seed), floor=examples.floor,
        representation=config.representation,
    )  # fmt: skip
    manifest = Manifest(
        "relations", labels=(schema.name,), seed=config.seed, documents=len(docs),
        patients=len({doc.patient for doc in docs}), vocabulary_floor=examples.floor,
        metrics={"AUC": report.quality.auc, "F1": report.quality.f1, "baseline AUC": report.baseline.auc},
    )  # fmt: skip
    threshold = ranking.best_threshold(held_out.scores, right)
    return Extractor(schema, config, best.columns, weights, calibration, threshold, held_out, report, manifest)


def check(docs: Sequence[Document], schema: Schema, config: Extraction, right: Bools) -> None:
    """Raise DataError that names what is missing: entities of a role, candidates of both kinds, two patients."""
    labels = {span.label for doc in docs for span in doc.layer(config.layer)}
    for role, kind in zip(schema.roles, schema.types, strict=True):
        if kind not in labels:
            raise DataError(
                f"role {role!r} needs entities labelled {kind!r}; the documents have {len(labels)} other labels"
            )
    if not len(right):
        raise DataError("no sentence has an entity for every role; check the entities, and how sentences are split")
    if not right.any():
        others = {relation.label for doc in docs for relation in doc.relations} - {schema.name}
        raise DataError(
            f"no sentence states a relation {schema.name!r} between its entities; the documents have {len(others)} "
            "relations of other names"
        )
    if right.all():
        raise DataError(
            f"all {len(right):,} candidates are stated relations; add sentences with entities that are not related"
        )
    if len({doc.patient for doc in docs}) < 2:
        raise DataError("all documents belong to one patient, and cross-validation needs two or more; add documents")


def _count_missed(docs: Sequence[Document], schema: Schema, right: Bools) -> int:
    """Return how many stated tuples of single mentions are no candidates; tuples of concepts are not counted."""
    total = 0
    for doc in docs:
        stated: set[tuple[tuple[int, int], ...]] = set()
        for relation in doc.relations:
            arguments = schema.arguments(relation)
            if arguments is not None and all(len(argument.spans) == 1 for argument in arguments):
                stated.add(schema.key(tuple(argument.spans[0] for argument in arguments)))
        total += len(stated)
    return max(0, total - int(right.sum()))
