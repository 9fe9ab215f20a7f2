"""Extractor of relations between given entities.

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
from chaffinch.relations.candidates import Candidate, SentencePlace, sentence_of_both
from chaffinch.relations.config import Extraction
from chaffinch.relations.entities.frames_of import read_candidates
from chaffinch.relations.entities.logistic import LogisticWeights, PairCalibration
from chaffinch.relations.evaluate import ranking
from chaffinch.relations.evaluate.report import RelationReport, TupleScores
from chaffinch.relations.features import vectors
from chaffinch.relations.features._compiled._pieces import MOST, PieceNumbers
from chaffinch.relations.features.frames import Frame
from chaffinch.relations.features.vectors import FeatureColumns
from chaffinch.relations.schema import Schema
from chaffinch.text import Document, Relation, Span

SOURCE = "relations"  # the source of extracted relations
BATCH = 64  # documents parsed and scored at a time; larger batches need more memory


class Reason(NamedTuple):
    """A feature of a candidate, the view it belongs to, and its contribution to the log-odds."""

    view: str
    feature: str
    weight: float


def sentence_with(doc: Document, spans: Iterable[Span]) -> SentencePlace:
    """Return the sentence in which all spans start; DataError if there is none."""
    found = sentence_of_both(doc, spans)
    if found is None:
        raise DataError(f"{doc.id}: no sentence has all arguments of this relation; they must be in one sentence")
    return found


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutScores:
    """Scores of training candidates by models that had not seen their documents."""

    scores: Floats  # (N,) calibrated
    right: Bools  # (N,)


@dataclass(frozen=True, slots=True, eq=False)
class Extractor:
    """Extractor of the relations of a schema from documents whose entities are known."""

    schema: Schema
    config: Extraction
    columns: FeatureColumns = field(repr=False)
    weights: LogisticWeights = field(repr=False)
    calibration: PairCalibration
    threshold: float
    held: HeldOutScores = field(repr=False)
    report: RelationReport | None
    manifest: Manifest = field(repr=False)
    scorer: vectors.Scorer = field(init=False, repr=False)  # of columns and weights

    def __post_init__(self) -> None:
        """Build the scorer from columns and weights."""
        object.__setattr__(self, "scorer", vectors.Scorer(self.columns, *self.weights))

    @property
    def representation(self) -> Representation:
        """Return the segments that the features use; never "auto" after training."""
        return "phrase" if self.config.representation == "auto" else self.config.representation

    def extract(self, doc: Document) -> tuple[Relation, ...]:
        """Return the relations of a document whose score is at or above the threshold, by place in the text."""
        return next(self.extract_all([doc]))

    def extract_all(self, docs: Iterable[Document]) -> Iterator[tuple[Relation, ...]]:
        """Yield for each document its relations with a score at or above the threshold, by place."""
        for found in self.score_candidates(docs):
            kept = [(candidate.spans, score) for candidate, score in found if score >= self.threshold]
            yield tuple(self.schema.relation(spans, score=score, source=SOURCE) for spans, score in kept)

    def annotate(self, docs: Iterable[Document]) -> Iterator[Document]:
        """Yield copies of the documents, their relations of this name replaced by the extracted ones."""
        documents = list(docs)
        for doc, found in zip(documents, self.extract_all(documents), strict=True):
            others = tuple(relation for relation in doc.relations if relation.label != self.schema.name)
            yield replace(doc, relations=others + found)

    def score_candidates(self, docs: Iterable[Document]) -> Iterator[list[tuple[Candidate, float]]]:
        """Yield each document's list of (candidate, calibrated probability), read in batches."""
        number = PieceNumbers()
        batch: list[Document] = []
        for doc in docs:
            batch.append(doc)
            if len(batch) == BATCH:
                yield from self._score_batch(batch, number)
                batch, number = [], PieceNumbers() if len(number) > MOST else number
        yield from self._score_batch(batch, number)

    def _score_batch(self, docs: Sequence[Document], number: PieceNumbers) -> Iterator[list[tuple[Candidate, float]]]:
        """Yield for each document its candidates with probabilities; `number` keeps the pieces of earlier batches."""
        found = read_candidates(docs, self.schema, self.config.layer, self.representation)
        frames = [frame for item in found for frame in item.frames]
        scores = self.calibration(self.scorer(frames, number)).tolist()
        start = 0
        for item in found:
            yield list(zip(item.candidates, scores[start : start + len(item.candidates)], strict=True))
            start += len(item.candidates)

    def score_tuples(self, docs: Iterable[Document]) -> Iterator[TupleScores]:
        """Yield each document's candidates' probabilities, flags of right ones, and number of stated tuples."""
        documents = list(docs)
        for doc, found in zip(documents, self.score_candidates(documents), strict=True):
            stated = {self.schema.key(spans) for relation in doc.relations for spans in self.schema.tuples(relation)}
            right = np.array([candidate.stated for candidate, _ in found], bool)
            yield TupleScores(np.array([score for _, score in found]), right, len(stated))

    def explain(self, doc: Document, relation: Relation, *, top: int = 10) -> list[Reason]:
        """Return the `top` features by weight, for or against; DataError if no candidate has the arguments."""
        wanted = {self.schema.key(spans) for spans in self.schema.tuples(relation)}
        (item,) = read_candidates([doc], self.schema, self.config.layer, self.representation)
        for candidate, frame in zip(item.candidates, item.frames, strict=True):
            if self.schema.key(candidate.spans) in wanted:
                return self._reasons(frame)[:top]
        raise DataError(f"{doc.id}: no candidate has the arguments of this relation; they must be in one sentence")

    def sentence_of(self, doc: Document, relation: Relation) -> SentencePlace:
        """Return the sentence that has all arguments of a relation; DataError if none has."""
        return sentence_with(doc, [argument.spans[0] for argument in relation.arguments])

    def _reasons(self, frame: Frame) -> list[Reason]:
        """Return each known feature of a frame with its part of the log-odds, the largest in size first."""
        named = [
            (view, name) for view, names in zip(self.columns.views, self.columns.names, strict=True) for name in names
        ]
        parts = [
            Reason(*named[column], float(value * self.weights.values[column]))
            for column, value in vectors.row(frame, self.columns)
        ]
        return sorted(parts, key=lambda reason: (-abs(reason.weight), reason.view, reason.feature))

    def with_precision(self, precision: float) -> Extractor:
        """Return a copy with the lowest threshold of this cross-validated precision; ConfigError if none has it."""
        threshold = ranking.threshold_for(self.held.scores, self.held.right, precision)
        return replace(self, threshold=threshold)
