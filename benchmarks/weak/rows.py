"""The rows of the weak-supervision benchmark, and what was published of the same systems."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, stdev
from typing import Any, TypeAlias

import numpy as np

import chaffinch as cf
from benchmarks.hmmdp.scores import DRAWS, Change
from benchmarks.hmmdp.worker import FOUND
from chaffinch import Document
from chaffinch.evaluate.results import Score

Row: TypeAlias = dict[str, Any]

COLUMNS = (
    "part", "corpus", "sources", "system", "recommended", "spans", "coverage", "estimated P", "P", "R", "F1",
    "interval", "spread", "seeds", "published", "Brier", "fit CPU s", "apply CPU s", "text alone CPU s", "beside CPU s",
    "threshold", "best loop", "loop", "aggregator F1", "student F1", "tokens per CPU s", "RSS MB", "absent",
)  # fmt: skip
DIGITS = {"fit CPU s": 2, "apply CPU s": 2, "text alone CPU s": 2, "RSS MB": None, "best loop": None}

# Strict F1 on test as published (mean of 5 seeds; dev labels stop training; a biomedical BERT on a GPU is the student).
_CORPORA = "CoNLL", "NCBI-Disease", "BC5CDR"
_FIGURES = {
    "supervised encoder": (0.9074, 0.8889, 0.8881),
    "best consensus": (0.8918, 0.8160, 0.8758),
    "Snorkel": (0.6640, 0.7341, 0.8224),
    "MV": (0.5840, 0.7394, 0.8073),
    "HMM": (0.6884, 0.7306, 0.8057),
    "iid": (0.6857, 0.7169, 0.7937),
    "CHMM": (0.7011, 0.7888, 0.8239),
    "phase I": (0.7430, 0.8287, 0.8433),
    "CHMM-ALT": (0.7554, 0.8502, 0.8512),
    "MV-ALT": (0.6664, 0.8083, 0.8278),
    "HMM-ALT": (0.7404, 0.8299, 0.8334),
    "iid-ALT": (0.7384, 0.8315, 0.8317),
    "CHMM-ALT, restarted": (None, 0.8430, 0.8471),
}
PUBLISHED = {
    (name, corpus): figure
    for name, figures in _FIGURES.items()
    for corpus, figure in zip(_CORPORA, figures, strict=True)
    if figure is not None
}


def score(docs: Sequence[Document]) -> Score:
    """The strict score of the layer "found" against "gold"."""
    return cf.evaluate(docs, docs, layer="gold", predicted_layer=FOUND).micro


def scored(name: str, found: Sequence[Score]) -> Row:
    """A row of a system: means over seeds, the interval of the seed in the middle, and the spread of F1."""
    row: Row = {"system": name}
    row |= {"P": fmean(s.precision for s in found), "R": fmean(s.recall for s in found), "F1": mean_f1(found)}
    row = {key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()}
    if len(found) > 1:
        row |= {"spread": round(stdev(s.f1 for s in found), 4), "seeds": len(found)}
    centre = found[middle(found)]
    return row | ({"interval": edges(*centre.f1_interval)} if centre.f1_interval else {})


def mean_f1(found: Sequence[Score]) -> float:
    """The mean of F1."""
    return fmean(one.f1 for one in found)


def middle(found: Sequence[Score]) -> int:
    """The number of the score that is in the middle by F1."""
    return sorted(range(len(found)), key=lambda place: found[place].f1)[(len(found) - 1) // 2]


def costing(costs: Sequence[Mapping[str, float]]) -> Row:
    """Costs as means over seeds, with as many digits as were measured."""
    out: Row = {}
    for name in costs[0]:
        if name in COLUMNS:
            digits = DIGITS.get(name, 4)
            out[name] = round(fmean(one[name] for one in costs), digits)
    return out


def difference(name: str, found: Change, column: str = "F1") -> Row:
    """A row of a difference in F1, or in another column."""
    return {"system": name, column: round(found.value, 4), "interval": edges(found.low, found.high)}


def error_change(first: Sequence[float], second: Sequence[float], tokens: Sequence[int], seed: int = 0) -> Change:
    """The squared error per token of the second less that of the first; documents are drawn anew, both together.

    >>> error_change([2.0, 2.0], [1.0, 1.0], [10, 10])
    Change(value=-0.1, low=-0.1, high=-0.1)
    """
    gap, size = np.subtract(second, first), np.asarray(tokens, np.float64)
    chosen = np.random.default_rng(seed).integers(len(gap), size=(DRAWS, len(gap)))
    drawn = gap[chosen].sum(axis=1) / np.maximum(size[chosen].sum(axis=1), 1.0)
    low, high = np.quantile(drawn, [0.025, 0.975]).tolist()
    return Change(float(gap.sum() / max(size.sum(), 1.0)), low, high)


def edges(low: float, high: float) -> str:
    """An interval in words."""
    return f"{low:.4f}–{high:.4f}"


def table(rows: Iterable[Mapping[str, Any]]) -> list[Row]:
    """The rows with every column that one of them has; a dash where there is nothing to say."""
    held = list(rows)
    used = [key for key in COLUMNS if any(key in row for row in held)]
    return [{key: row.get(key, "-") for key in used} for row in held]
