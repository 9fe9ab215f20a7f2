"""Relations between concepts that a whole document states, found through its sentences, with the evidence.

P tuples of concepts, G features. The candidates of a tuple of concepts are the tuples of its mentions that share a
sentence. A second regression weighs their scores, and where and how often the document names the concepts.
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
from chaffinch.relations.candidates import Candidate, SentencePlace
from chaffinch.relations.concepts import Concepts, concept_key, concepts_of, relation_concepts
from chaffinch.relations.config import Extraction
from chaffinch.relations.entities import logistic as fitting
from chaffinch.relations.entities.extractor import SOURCE, Extractor, HeldOutScores, Reason
from chaffinch.relations.entities.logistic import LogisticWeights, PairCalibration
from chaffinch.relations.entities.train import train
from chaffinch.relations.evaluate import ranking
from chaffinch.relations.evaluate.report import Rates, Summary, TupleScores
from chaffinch.relations.schema import Schema
from chaffinch.text import Argument, Document, Relation, Span

STRENGTH = 0.1  # of the merging regression; raised, the few weights are regularised less


class Finding(NamedTuple):
    """A relation between concepts, the sentence with the highest score for it, and the mentions there."""

    relation: Relation
    sentence: int
    evidence: tuple[Span, ...]


class _Pair(NamedTuple):
    """A tuple of concepts with its candidates and their scores."""

    concepts: Concepts
    candidates: list[tuple[Candidate, float]]


@dataclass(frozen=True, slots=True, eq=False)
class DocumentExtractor:
    """Extractor of relations between concepts: a sentence extractor, and weights that merge its scores."""

    sentences: Extractor
    weights: LogisticWeights = field(repr=False)
    centre: Floats = field(repr=False)  # (G,) means of the features
    spread: Floats = field(repr=False)  # (G,) standard deviations of the features
    calibration: PairCalibration
    threshold: float
    held: HeldOutScores = field(repr=False)
    missed: int  # stated tuples of concepts that share no sentence
    report: Summary | None
    manifest: Manifest = field(repr=False)

    @property
    def schema(self) -> Schema:
        """Return the schema of the relation."""
        return self.sentences.schema

    @property
    def config(self) -> Extraction:
        """Return the settings, in the mode "documents"."""
        return replace(self.sentences.config, mode="documents")

    def extract(self, doc: Document) -> tuple[Finding, ...]:
        """Return relations of concepts at or above the threshold, most probable first, each with evidence."""
        return next(self.extract_all([doc]))

    def extract_all(self, docs: Iterable[Document]) -> Iterator[tuple[Finding, ...]]:
        """Yield for each document its relations at or above the threshold, most probable first, with evidence."""
        for doc, pairs, scores in self._score_documents(docs):
            kept = [(score, pair) for score, pair in zip(scores, pairs, strict=True) if score >= self.threshold]
            ranked = sorted(kept, key=lambda item: (-item[0], item[1].concepts))
            yield tuple(self._finding(doc, pair, score) for score, pair in ranked)

    def annotate(self, docs: Iterable[Document]) -> Iterator[Document]:
        """Yield copies of the documents, their relations of this name replaced by the extracted ones."""
        documents = list(docs)
        for doc, found in zip(documents, self.extract_all(documents), strict=True):
            others = tuple(relation for relation in doc.relations if relation.label != self.schema.name)
            yield replace(doc, relations=(*others, *(finding.relation for finding in found)))

    def score_tuples(self, docs: Iterable[Document]) -> Iterator[TupleScores]:
        """Yield each document's tuples' probabilities, flags of right ones, and number of stated tuples."""
        for doc, pairs, scores in self._score_documents(docs):
            stated = relation_concepts(doc, self.schema)
            right = np.array([pair.concepts in stated for pair in pairs], bool)
            yield TupleScores(np.array(scores), right, len(stated))

    def explain(self, doc: Document, relation: Relation, *, top: int = 10) -> list[Reason]:
        """Return the `top` features of a relation's best sentence by weight; DataError if it has no sentence."""
        best = self._best(doc, relation)
        return self.sentences.explain(doc, self.schema.relation(best.spans), top=top)

    def sentence_of(self, doc: Document, relation: Relation) -> SentencePlace:
        """Return the sentence with the highest score for a relation; DataError if its concepts share none."""
        best = self._best(doc, relation)
        return SentencePlace(best.sentence + 1, *map(int, doc.sentences[best.sentence]))

    def _best(self, doc: Document, relation: Relation) -> Candidate:
        """Return the candidate of the highest score for a relation's concepts; DataError if there is none."""
        for named in sorted(relation_concepts(replace(doc, relations=(relation,)), self.schema)):
            for _, pairs, _ in self._score_documents([doc]):
                for pair in pairs:
                    if pair.concepts == named:
                        return max(pair.candidates, key=lambda item: item[1])[0]
        raise DataError(f"{doc.id}: the concepts of this relation share no sentence, so there is nothing to explain")

    def with_precision(self, precision: float) -> DocumentExtractor:
        """Return a copy with the lowest threshold of this cross-validated precision; ConfigError if none has it."""
        return replace(self, threshold=ranking.threshold_for(self.held.scores, self.held.right, precision))

    def _score_documents(self, docs: Iterable[Document]) -> Iterator[tuple[Document, list[_Pair], list[float]]]:
        """Yield each document with its tuples of concepts and their calibrated probabilities."""
        documents = list(docs)
        for doc, found in zip(documents, self.sentences.score_candidates(documents), strict=True):
            pairs = _pairs(found, self.schema)
            yield doc, pairs, self.score(doc, pairs)

    def score(self, doc: Document, pairs: Sequence[_Pair]) -> list[float]:
        """Return the calibrated probability of each tuple of concepts; an empty list for none."""
        if not pairs:
            return []
        rows = (_features(doc, pairs, self.sentences) - self.centre) / self.spread
        return [float(chance) for chance in self.calibration(rows @ self.weights.values + self.weights.bias)]

    def _finding(self, doc: Document, pair: _Pair, score: float) -> Finding:
        """Return a tuple of concepts as a relation of all their mentions; its best candidate is the evidence."""
        schema = self.sentences.schema
        best = max(pair.candidates, key=lambda item: item[1])[0]
        spans = doc.layer(self.sentences.config.layer)
        mentions = [
            tuple(span for span in spans if span.label == kind and concept in concepts_of(span))
            for kind, concept in zip(schema.types, pair.concepts, strict=True)
        ]
        named = zip(schema.roles, mentions, pair.concepts, strict=True)
        arguments = tuple(Argument(role, spans, concept) for role, spans, concept in named)
        return Finding(Relation(schema.name, arguments, score, SOURCE), best.sentence, best.spans)


def train_documents(docs: Iterable[Document], schema: Schema, config: Extraction | None = None) -> DocumentExtractor:
    """Return an extractor between concepts, trained; DataError without tuples of both kinds; or ConfigError.

    The sentence extractor learns from every tuple of mentions of related concepts; the merging regression learns from
    held-out scores of the sentence extractor.
    """
    documents = list(docs)
    chosen = config or Extraction(mode="documents")
    if chosen.mode == "joint":
        raise ConfigError("train_documents merges relations between given entities; the mode joint is not supported")
    extractor = train(documents, schema, replace(chosen, mode="entities"))
    scores = iter(extractor.held.scores.tolist())
    rows, right, groups, missed = [], [], [], 0
    for doc, found in zip(documents, extractor.score_candidates(documents), strict=True):
        pairs = _pairs([(candidate, next(scores)) for candidate, _ in found], schema)
        stated = relation_concepts(doc, schema)
        missed += len(stated - {pair.concepts for pair in pairs})
        if pairs:
            rows.append(_features(doc, pairs, extractor))
            right += [pair.concepts in stated for pair in pairs]
            groups += [doc.patient] * len(pairs)
    truth = np.array(right, bool)
    if not truth.any() or truth.all():
        raise DataError("all tuples of concepts are related, or none is; check the concepts of mentions and relations")
    matrix = np.concatenate(rows)
    centre, spread = matrix.mean(axis=0), np.maximum(matrix.std(axis=0), 1e-6)
    return _train_merging(extractor, (matrix - centre) / spread, truth, groups, (centre, spread), missed)


def _train_merging(
    extractor: Extractor, rows: Floats, right: Bools, groups: Sequence[str], scale: tuple[Floats, Floats], missed: int
) -> DocumentExtractor:
    """Return the extractor: merging regression trained on standardised rows, calibrated, with a threshold.

    `right` tells which rows are related, `groups` are their patients, `scale` has means and deviations of features.
    """
    from scipy.sparse import csr_matrix

    matrix = csr_matrix(rows)
    fold = fitting.folds(groups, min(extractor.config.folds, len(set(groups))), seed=extractor.config.seed + 1)
    (held_scores,) = fitting.held_out(matrix, right, fold, [STRENGTH])
    calibration = fitting.calibrate(held_scores, right)
    held_out = HeldOutScores(calibration(held_scores), right)
    weights = fitting.fit(matrix, right, strength=STRENGTH)
    stated = int(right.sum()) + missed
    threshold = ranking.best_threshold(held_out.scores, right, stated)
    taken = held_out.scores >= threshold
    found, every = Rates(int(right[taken].sum()), int(taken.sum()), stated), Rates(int(right.sum()), len(right), stated)
    report = Summary(
        documents=extractor.manifest.documents, missed=missed, rates=found, every=every,
        floor=extractor.manifest.vocabulary_floor, representation=extractor.representation, sentences=extractor.report,
    )  # fmt: skip
    manifest = replace(extractor.manifest, metrics={"F1": found.f1, "F1 of every tuple": every.f1})
    return DocumentExtractor(extractor, weights, *scale, calibration, threshold, held_out, missed, report, manifest)


def _pairs(found: Sequence[tuple[Candidate, float]], schema: Schema) -> list[_Pair]:
    """Return scored candidates by tuple of their concepts, in order; tuples that repeat a concept are left out."""
    out: dict[Concepts, list[tuple[Candidate, float]]] = {}
    for candidate, score in found:
        for concepts in product(*(concepts_of(span) for span in candidate.spans)):
            if len(set(concepts)) == len(concepts):
                out.setdefault(concept_key(concepts, schema), []).append((candidate, score))
    return [_Pair(concepts, candidates) for concepts, candidates in out.items()]


def _features(doc: Document, pairs: Sequence[_Pair], extractor: Extractor) -> Floats:
    """Return (P, G) features, not standardised, of P tuples, at least one: scores, numbers, places, title."""
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
        sentences = {candidate.sentence for candidate, _ in pair.candidates}
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
    """Return the log-odds of a score, clipped to stay finite."""
    clipped = min(max(float(score), 1e-6), 1 - 1e-6)
    return float(np.log(clipped / (1 - clipped)))
