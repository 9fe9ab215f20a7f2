"""Cross-validated scores of the relation benchmark, and the intervals and differences that go with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.relations.data import Sample, split
from chaffinch.kernels.lattice import Bools, Floats
from chaffinch.relations import Extraction, train
from chaffinch.relations.evaluate.ranking import auc, points, precision_at
from chaffinch.relations.evaluate.report import gap

DRAWS = 500


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Candidates of all folds: scores of models that had not seen the fold, what was extracted, what is right."""

    scores: Floats
    taken: Bools
    right: Bools
    groups: list[str]

    def f1(self, rows: Any = slice(None)) -> float:
        """F1 of what was extracted, among candidates."""
        hits = int((self.taken[rows] & self.right[rows]).sum())
        total = int(self.taken[rows].sum() + self.right[rows].sum())
        return 2 * hits / total if total else 0.0

    def auc(self, rows: Any = slice(None)) -> float:
        """The area under the ROC curve."""
        return auc(self.scores[rows], self.right[rows])

    def precise(self, rows: Any = slice(None)) -> float:
        """Precision at recall .1."""
        return precision_at(points(self.scores[rows], self.right[rows]), 0.1)


def judged(sample: Sample, config: Extraction) -> Judged:
    """An extractor with these settings, learnt for each fold from the other folds."""
    scores: list[float] = []
    taken: list[bool] = []
    right: list[bool] = []
    groups: list[str] = []
    for fold in sorted(set(sample.fold)):
        known, held = split(sample, fold)
        extractor = train(known, sample.schema, config)
        for doc, found in zip(held, extractor.score_candidates(held), strict=True):
            scores += [score for _, score in found]
            taken += [score >= extractor.threshold for _, score in found]
            right += [one.stated for one, _ in found]
            groups += [doc.id] * len(found)
    return Judged(np.array(scores), np.array(taken, bool), np.array(right, bool), groups)


def interval(own: Judged, figure: Callable[[Any], float]) -> tuple[float, float]:
    """A percentile interval of a figure, documents drawn anew."""
    names, number = np.unique(np.array(own.groups), return_inverse=True)
    rows = [np.flatnonzero(number == n) for n in range(len(names))]
    rng = np.random.default_rng(0)
    drawn = [figure(np.concatenate([rows[n] for n in rng.integers(len(names), size=len(names))])) for _ in range(DRAWS)]
    low, high = np.quantile(drawn, [0.025, 0.975])
    return round(float(low), 4), round(float(high), 4)


def difference(own: Judged, other: Judged) -> dict[str, Any]:
    """AUC of the first less that of the second, documents drawn anew for both together."""
    found = gap(own.scores, other.scores, own.right, own.groups, draws=DRAWS)
    return {"AUC less baseline": round(found.value, 4), "low": round(found.low, 4), "high": round(found.high, 4)}


def row(name: str, corpus: str, own: Judged) -> dict[str, Any]:
    """The figures of a system on a corpus."""
    figures = {"AUC": own.auc(), "F1": own.f1(), "precision at recall .1": own.precise()}
    kept = {key: round(value, 4) for key, value in figures.items()}
    return {"corpus": corpus, "system": name, **kept, "candidates": len(own.right), "stated": int(own.right.sum())}


def table(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows with one set of columns."""
    columns = list(dict.fromkeys(key for one in rows for key in one))
    return [{key: one.get(key, "-") for key in columns} for one in rows]
