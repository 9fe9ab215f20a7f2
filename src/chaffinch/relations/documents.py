"""Relations that a whole document states between concepts, found through its sentences, with the evidence kept.

P tuples of concepts, G features. A tuple of concepts has as many candidates as there are tuples of its mentions in one
sentence; their scores, and where and how often the concepts are named, are what a second regression weighs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import NamedTuple

import numpy as np

from chaffinch.bundle import Manifest
from chaffinch.errors import ConfigError, DataError
from chaffinch.kernels.lattice import Bools, Floats
from chaffinch.relations.candidates import Candidate
from chaffinch.relations.concepts import Concepts, concept_key, concepts_of, stated_concepts
from chaffinch.relations.config import Extraction
from chaffinch.relations.entities import logistic as fitting
from chaffinch.relations.entities.extractor import SOURCE, Extractor, Reason, Scored
from chaffinch.relations.entities.logistic import LogisticWeights, PairCalibration
from chaffinch.relations.entities.train import train
from chaffinch.relations.evaluate import ranking
from chaffinch.relations.evaluate.report import Judged, Rates, Summary
from chaffinch.relations.schema import Schema
from chaffinch.text import Argument, Document, Relation, Span

STRENGTH = 0.1


class Finding(NamedTuple):
    """A relation between concepts, the sentence that speaks for it most, and the mentions there."""

    relation: Relation
    sentence: int
    evidence: tuple[Span, ...]


class _Pair(NamedTuple):
    """A tuple of concepts with its candidates and their scores."""

    concepts: Concepts
    candidates: list[tuple[Candidate, float]]


@dataclass(frozen=True, slots=True, eq=False)
class DocumentExtractor:
    """Finds relations between concepts: an extractor for sentences, and weights that merge what it says."""

    sentences: Extractor
    weights: LogisticWeights = field(repr=False)
    centre: Floats = field(repr=False)  # (G,) means of the features, and
    spread: Floats = field(repr=False)  # (G,) their deviations
    calibration: PairCalibration
    threshold: float
    held: Scored = field(repr=False)
    missed: int  # stated tuples of concepts that share no sentence
    report: Summary | None
    manifest: Manifest = field(repr=False)

    @property
    def schema(self) -> Schema:
        """The relation it finds."""
        return self.sentences.schema

    @property
    def config(self) -> Extraction:
        """What was chosen."""
        return replace(self.sentences.config, mode="documents")

    def extract(self, doc: Document) -> tuple[Finding, ...]:
        """The relations of a document, the likeliest first, each with its evidence."""
        return next(self.extract_all([doc]))

    def extract_all(self, docs: Iterable[Document]) -> Iterator[tuple[Finding, ...]]:
        """The relations of each document, in order."""
        for doc, pairs, scores in self._scored(docs):
            kept = [(score, pair) for score, pair in zip(scores, pairs, strict=True) if score >= self.threshold]
            ranked = sorted(kept, key=lambda own: (-own[0], own[1].concepts))
            yield tuple(self._finding(doc, pair, score) for score, pair in ranked)

    def annotate(self, docs: Iterable[Document]) -> Iterator[Document]:
        """The documents with the relations that were found in place of those of this name."""
        held = list(docs)
        for doc, found in zip(held, self.extract_all(held), strict=True):
            others = tuple(own for own in doc.relations if own.label != self.schema.name)
            yield replace(doc, relations=(*others, *(one.relation for one in found)))

    def judged(self, docs: Iterable[Document]) -> Iterator[Judged]:
        """For each document the score of every tuple of concepts, whether it is stated, and how many are stated."""
        for doc, pairs, scores in self._scored(docs):
            stated = stated_concepts(doc, self.schema)
            yield Judged(np.array(scores), np.array([pair.concepts in stated for pair in pairs], bool), len(stated))

    def explain(self, doc: Document, relation: Relation, *, top: int = 10) -> list[Reason]:
        """The features of the sentence that speaks most for a relation of the document, the loudest first."""
        for named in sorted(stated_concepts(replace(doc, relations=(relation,)), self.schema)):
            for _, pairs, _ in self._scored([doc]):
                for pair in pairs:
                    if pair.concepts == named:
                        best = max(pair.candidates, key=lambda own: own[1])[0]
                        return self.sentences.explain(doc, self.schema.relation(best.spans), top=top)
        raise DataError(f"{doc.id}: the concepts of this relation share no sentence, so nothing speaks for it")

    def with_precision(self, precision: float) -> DocumentExtractor:
        """The same extractor, its threshold the lowest that kept so much precision in cross-validation."""
        return replace(self, threshold=ranking.threshold_for(self.held.scores, self.held.right, precision))

    def _scored(self, docs: Iterable[Document]) -> Iterator[tuple[Document, list[_Pair], list[float]]]:
        held = list(docs)
        for doc, found in zip(held, self.sentences.scored(held), strict=True):
            pairs = _pairs(found, self.schema)
            yield doc, pairs, self.score(doc, pairs)

    def score(self, doc: Document, pairs: Sequence[_Pair]) -> list[float]:
        """The probability of each tuple of concepts."""
        if not pairs:
            return []
        rows = (_features(doc, pairs, self.sentences) - self.centre) / self.spread
        return [float(own) for own in self.calibration(rows @ self.weights.values + self.weights.bias)]

    def _finding(self, doc: Document, pair: _Pair, score: float) -> Finding:
        schema = self.sentences.schema
        best = max(pair.candidates, key=lambda own: own[1])[0]
        spans = doc.layer(self.sentences.config.layer)
        mentions = [
            tuple(span for span in spans if span.label == kind and concept in concepts_of(span))
            for kind, concept in zip(schema.types, pair.concepts, strict=True)
        ]
        named = zip(schema.roles, mentions, pair.concepts, strict=True)
        arguments = tuple(Argument(role, spans, concept) for role, spans, concept in named)
        return Finding(Relation(schema.name, arguments, score, SOURCE), best.sentence, best.spans)


def train_documents(docs: Iterable[Document], schema: Schema, config: Extraction | None = None) -> DocumentExtractor:
    """An extractor of relations between concepts, learnt from documents whose mentions have concepts.

    The sentence extractor learns from every tuple of mentions of related concepts; the merging learns from the scores
    that its folds gave to documents they had not seen.
    """
    held = list(docs)
    chosen = config or Extraction(mode="documents")
    if chosen.mode == "joint":
        raise ConfigError("train_documents merges what is found between given entities, not in the mode joint")
    own = train(held, schema, replace(chosen, mode="entities"))
    scores = iter(own.held.scores.tolist())
    rows, right, groups, missed = [], [], [], 0
    for doc, found in zip(held, own.scored(held), strict=True):
        pairs = _pairs([(one, next(scores)) for one, _ in found], schema)
        stated = stated_concepts(doc, schema)
        missed += len(stated - {pair.concepts for pair in pairs})
        if pairs:
            rows.append(_features(doc, pairs, own))
            right += [pair.concepts in stated for pair in pairs]
            groups += [doc.patient] * len(pairs)
    truth = np.array(right, bool)
    if not truth.any() or truth.all():
        raise DataError("tuples of concepts are all related, or none is; do mentions and relations have concepts?")
    matrix = np.concatenate(rows)
    centre, spread = matrix.mean(axis=0), np.maximum(matrix.std(axis=0), 1e-6)
    return _merging(own, (matrix - centre) / spread, truth, groups, (centre, spread), missed)


def _merging(
    own: Extractor, rows: Floats, right: Bools, groups: Sequence[str], scale: tuple[Floats, Floats], missed: int
) -> DocumentExtractor:
    from scipy.sparse import csr_matrix

    matrix = csr_matrix(rows)
    fold = fitting.folds(groups, min(own.config.folds, len(set(groups))), seed=own.config.seed + 1)
    (held,) = fitting.held_out(matrix, right, fold, [STRENGTH])
    calibration = fitting.calibrate(held, right)
    scored = Scored(calibration(held), right)
    weights = fitting.fit(matrix, right, strength=STRENGTH)
    stated = int(right.sum()) + missed
    threshold = ranking.best_threshold(scored.scores, right, stated)
    taken = scored.scores >= threshold
    found, every = Rates(int(right[taken].sum()), int(taken.sum()), stated), Rates(int(right.sum()), len(right), stated)
    report = Summary(
        documents=own.manifest.documents, missed=missed, own=found, every=every, floor=own.manifest.vocabulary_floor,
        representation=own.representation, sentences=own.report,
    )  # fmt: skip
    manifest = replace(own.manifest, metrics={"F1": found.f1, "F1 of every tuple": every.f1})
    return DocumentExtractor(own, weights, *scale, calibration, threshold, scored, missed, report, manifest)


def _pairs(found: Sequence[tuple[Candidate, float]], schema: Schema) -> list[_Pair]:
    """The tuples of concepts of candidates; a tuple of one concept with itself is none."""
    out: dict[Concepts, list[tuple[Candidate, float]]] = {}
    for one, score in found:
        for concepts in product(*(concepts_of(span) for span in one.spans)):
            if len(set(concepts)) == len(concepts):
                out.setdefault(concept_key(concepts, schema), []).append((one, score))
    return [_Pair(concepts, own) for concepts, own in out.items()]


def _features(doc: Document, pairs: Sequence[_Pair], extractor: Extractor) -> Floats:
    """(P, G) what a document says of each tuple of concepts."""
    counts: Counter[str] = Counter()
    title: set[str] = set()
    heading = int(doc.sentences[0, 1]) if len(doc.sentences) else 0
    for span in doc.layer(extractor.config.layer):
        counts.update(concepts_of(span))
        if span.start < heading:
            title.update(concepts_of(span))
    best = [max(score for _, score in pair.candidates) for pair in pairs]
    top = max(best)
    often = [max(counts[pair.concepts[k]] for pair in pairs) for k in range(len(pairs[0].concepts))]
    last = max(len(doc.sentences) - 2, 1)
    rows = []
    for pair, highest in zip(pairs, best, strict=True):
        logits = sorted((_logit(score) for _, score in pair.candidates), reverse=True)
        misses = float(np.sum(np.log1p(-np.array([min(score, 1 - 1e-9) for _, score in pair.candidates]))))
        sentences = {one.sentence for one, _ in pair.candidates}
        named = [counts[concept] for concept in pair.concepts]
        rows.append([
            logits[0], logits[min(1, len(logits) - 1)], sum(logits) / len(logits), _logit(-np.expm1(misses)),
            np.log2(1 + len(sentences)), np.log2(len(pair.candidates)), float(0 in sentences),
            float(max(sentences) >= last), *np.log2(named), *(float(a == b) for a, b in zip(named, often, strict=True)),
            *(float(concept in title) for concept in pair.concepts), float(highest == top),
            _logit(highest) - _logit(top), np.log2(len(pairs)),
            float(all(concept in title for concept in pair.concepts)),
        ])  # fmt: skip
    return np.array(rows, np.float64)


def _logit(score: float) -> float:
    clipped = min(max(float(score), 1e-6), 1 - 1e-6)
    return float(np.log(clipped / (1 - clipped)))
