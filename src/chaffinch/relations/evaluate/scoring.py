"""Evaluation of an extractor on documents that state the relation, with bootstrap intervals over documents."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from chaffinch.errors import DataError
from chaffinch.evaluate.ranking import Curve
from chaffinch.kernels.lattice import Bools, Floats
from chaffinch.relations.evaluate.ranking import auc, points
from chaffinch.relations.storage import AnyExtractor
from chaffinch.text import Document

DRAWS = 500  # bootstrap samples of documents; more give steadier intervals and take longer


class Figure(NamedTuple):
    """A value with a 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """Scores of extracted relations; `curve` has a point for every threshold."""

    documents: int
    stated: int
    candidates: int
    extracted: int
    threshold: float
    precision: Figure
    recall: Figure
    f1: Figure
    auc: Figure
    curve: Curve

    def facts(self) -> dict[str, Any]:
        """Return all figures as plain values, the curve as points of recall, precision and threshold."""
        names = ("documents", "stated", "candidates", "extracted", "threshold")
        plain = {name: getattr(self, name) for name in names}
        figures = {name: getattr(self, name)._asdict() for name in ("precision", "recall", "f1", "auc")}
        columns = (self.curve.recall, self.curve.precision, self.curve.thresholds)
        return {**plain, **figures, "curve": np.column_stack(columns).round(4).tolist()}


def score(extractor: AnyExtractor, docs: Iterable[Document], *, draws: int = DRAWS, seed: int = 0) -> Outcome:
    """Return precision, recall, F1, AUC, with intervals; stated tuples that are no candidates are misses; or DataError.

    In the mode "documents" tuples are of concepts; in the mode "joint" the candidates are the tuples that the model
    found. There, without known entities, a segment that contains the argument is right.
    """
    documents = list(docs)
    scores: list[Floats] = []
    right: list[Bools] = []
    counts = []
    for doc_scores, truth, stated in extractor.score_tuples(documents):
        kept = doc_scores >= extractor.threshold if len(doc_scores) else np.zeros(0, bool)
        counts.append((int((kept & truth).sum()), int(kept.sum()), stated))
        scores.append(doc_scores)
        right.append(truth)
    table = np.array(counts, np.int64).reshape(-1, 3)
    if not table[:, 2].sum():
        raise DataError(f"the documents state no relation {extractor.schema.name!r}; scores need some")
    drawn = _bootstrap(table, scores, right, draws, seed)
    every, truth = np.concatenate(scores), np.concatenate(right)
    values = (*_rates(table.sum(axis=0)), auc(every, truth))
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0) if len(drawn) else (values, values)
    figures = [Figure(float(v), float(a), float(b)) for v, a, b in zip(values, low, high, strict=True)]
    _, taken, total = table.sum(axis=0).tolist()
    curve = points(every, truth, total)
    precision, recall, f1, area = figures
    size = (len(documents), total, len(every), taken)
    return Outcome(*size, extractor.threshold, precision, recall, f1, area, curve)


def _bootstrap(
    table: np.ndarray[Any, np.dtype[np.int64]], scores: list[Floats], right: list[Any], draws: int, seed: int
) -> Floats:
    """Return (draws, 4) precision, recall, F1 and AUC of documents drawn with replacement; no row for one document."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(draws if len(table) > 1 else 0):
        chosen = rng.integers(len(table), size=len(table))
        every = np.concatenate([scores[n] for n in chosen])
        truth = np.concatenate([right[n] for n in chosen])
        out.append((*_rates(table[chosen].sum(axis=0)), auc(every, truth)))
    return np.array(out, np.float64).reshape(-1, 4)


def _rates(counts: Any) -> tuple[float, float, float]:
    """Return precision, recall and F1 of counts of hits, extracted and stated tuples."""
    hits, taken, stated = (int(count) for count in counts)
    precision, recall = hits / taken if taken else 0.0, hits / stated if stated else 0.0
    return precision, recall, 2 * hits / (taken + stated) if taken + stated else 0.0
