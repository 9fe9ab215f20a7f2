"""The extractor of relations between given entities.

N candidates, F features.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from chaffinch.bundle import Manifest
from chaffinch.errors import DataError
from chaffinch.kernels.lattice import Bools, Floats
from chaffinch.models.phrasehmm.segments import Representation
from chaffinch.relations.candidates import Candidate
from chaffinch.relations.config import Extraction
from chaffinch.relations.entities.frames_of import read
from chaffinch.relations.entities.logistic import LogisticWeights, PairCalibration
from chaffinch.relations.evaluate import ranking
from chaffinch.relations.evaluate.report import Judged, RelationReport
from chaffinch.relations.features import vectors
from chaffinch.relations.features._compiled._pieces import MOST, Numbered
from chaffinch.relations.features.frames import Frame
from chaffinch.relations.features.vectors import Columns
from chaffinch.relations.schema import Schema
from chaffinch.text import Document, Relation

SOURCE = "relations"  # who found a relation
BATCH = 64  # documents parsed and scored at a time


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
    weights: LogisticWeights = field(repr=False)
    calibration: PairCalibration
    threshold: float
    held: Scored = field(repr=False)
    report: RelationReport | None
    manifest: Manifest = field(repr=False)
    scorer: vectors.Scorer = field(init=False, repr=False)  # of columns and weights

    def __post_init__(self) -> None:
        object.__setattr__(self, "scorer", vectors.Scorer(self.columns, *self.weights))

    @property
    def representation(self) -> Representation:
        """The segments that it sees; never "auto" once it is learnt."""
        return "phrase" if self.config.representation == "auto" else self.config.representation

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
        number = Numbered()
        batch: list[Document] = []
        for doc in docs:
            batch.append(doc)
            if len(batch) == BATCH:
                yield from self._scored(batch, number)
                batch, number = [], Numbered() if len(number) > MOST else number
        yield from self._scored(batch, number)

    def _scored(self, docs: Sequence[Document], number: Numbered) -> Iterator[list[tuple[Candidate, float]]]:
        found = read(docs, self.schema, self.config.layer, self.representation)
        frames = [frame for own in found for frame in own.frames]
        scores = self.calibration(self.scorer(frames, number)).tolist()
        at = 0
        for own in found:
            yield list(zip(own.candidates, scores[at : at + len(own.candidates)], strict=True))
            at += len(own.candidates)

    def judged(self, docs: Iterable[Document]) -> Iterator[Judged]:
        """For each document the score of every candidate, whether it is stated, and how many tuples are stated."""
        held = list(docs)
        for doc, found in zip(held, self.scored(held), strict=True):
            stated = {self.schema.key(spans) for own in doc.relations for spans in self.schema.tuples(own)}
            right = np.array([one.stated for one, _ in found], bool)
            yield Judged(np.array([score for _, score in found]), right, len(stated))

    def explain(self, doc: Document, relation: Relation, *, top: int = 10) -> list[Reason]:
        """The features that speak loudest for and against a relation of the document, the loudest first."""
        wanted = {self.schema.key(spans) for spans in self.schema.tuples(relation)}
        (own,) = read([doc], self.schema, self.config.layer, self.representation)
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
