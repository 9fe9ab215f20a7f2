"""Relations that a whole document states between concepts, found through its sentences, with the evidence kept.

P tuples of concepts, G features. A tuple of concepts has as many candidates as there are tuples of its mentions in one
sentence; their scores, and where and how often the concepts are named, are what a second regression weighs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

import numpy as np

from chaffinch.errors import DataError
from chaffinch.kernels.lattice import Bools, Floats
from chaffinch.relations import fitting, ranking
from chaffinch.relations.candidates import Candidate
from chaffinch.relations.extract import SOURCE, Extractor, Scored, train
from chaffinch.relations.fitting import Calibration, Weights
from chaffinch.relations.schema import Schema
from chaffinch.relations.settings import Extraction
from chaffinch.text import Argument, Document, Relation, Span

UNKNOWN = ("", "-1", "-")  # concepts that stand for none
SPLIT = re.compile(r"[|,;]")  # several concepts of one mention
STRENGTH = 0.1
Concepts = tuple[str, ...]


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
    weights: Weights = field(repr=False)
    centre: Floats = field(repr=False)  # (G,) means of the features, and
    spread: Floats = field(repr=False)  # (G,) their deviations
    calibration: Calibration
    threshold: float
    held: Scored = field(repr=False)
    missed: int  # stated tuples of concepts that share no sentence

    def extract(self, doc: Document) -> tuple[Finding, ...]:
        """The relations of a document, the likeliest first, each with its evidence."""
        return next(self.extract_all([doc]))

    def extract_all(self, docs: Iterable[Document]) -> Iterator[tuple[Finding, ...]]:
        """The relations of each document, in order."""
        held = list(docs)
        for doc, found in zip(held, self.sentences.scored(held), strict=True):
            pairs = _pairs(found, self.sentences.schema)
            scores = self.score(doc, pairs)
            kept = [(score, pair) for score, pair in zip(scores, pairs, strict=True) if score >= self.threshold]
            ranked = sorted(kept, key=lambda own: (-own[0], own[1].concepts))
            yield tuple(self._finding(doc, pair, score) for score, pair in ranked)

    def score(self, doc: Document, pairs: Sequence[_Pair]) -> list[float]:
        """The probability of each tuple of concepts."""
        if not pairs:
            return []
        rows = (_features(doc, pairs, self.sentences) - self.centre) / self.spread
        return [float(own) for own in self.calibration(rows @ self.weights.values + self.weights.bias)]

    def _finding(self, doc: Document, pair: _Pair, score: float) -> Finding:
        schema = self.sentences.schema
        best = max(pair.candidates, key=lambda own: own[1])[0]
        mentions = [
            tuple(span for span in doc.layer(self.sentences.config.layer) if concept in concepts_of(span))
            for concept in pair.concepts
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
    own = train(held, schema, config)
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
    threshold = ranking.best_threshold(scored.scores, right, int(right.sum()) + missed)
    return DocumentExtractor(own, weights, *scale, calibration, threshold, scored, missed)


def concepts_of(span: Span) -> tuple[str, ...]:
    """The concepts of a mention; one that is composed has several.

    >>> concepts_of(Span(0, 1, "Disease", concept="D001|D002")), concepts_of(Span(0, 1, "Disease", concept="-1"))
    (('D001', 'D002'), ())
    """
    return tuple(own for own in SPLIT.split(span.concept) if own not in UNKNOWN)


def stated_concepts(doc: Document, schema: Schema) -> set[Concepts]:
    """The tuples of concepts between which a document states the relation."""
    out: set[Concepts] = set()
    for relation in doc.relations:
        found = schema.arguments(relation)
        if found is not None:
            named = [(own.concept,) if own.concept else _shared(own.spans) for own in found]
            out |= {_key(concepts, schema) for concepts in product(*named)}
    return out


def _shared(spans: Sequence[Span]) -> tuple[str, ...]:
    return tuple(sorted({concept for span in spans for concept in concepts_of(span)}))


def _key(concepts: Concepts, schema: Schema) -> Concepts:
    return tuple(sorted(concepts)) if schema.symmetric else concepts


def _pairs(found: Sequence[tuple[Candidate, float]], schema: Schema) -> list[_Pair]:
    """The tuples of concepts of candidates; a tuple of one concept with itself is none."""
    out: dict[Concepts, list[tuple[Candidate, float]]] = {}
    for one, score in found:
        for concepts in product(*(concepts_of(span) for span in one.spans)):
            if len(set(concepts)) == len(concepts):
                out.setdefault(_key(concepts, schema), []).append((one, score))
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
