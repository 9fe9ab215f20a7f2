"""The rows of the class HMM's benchmark: a line per system and label, beside what was published."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import chaffinch as cf
from benchmarks.hmmdp.scores import Change
from benchmarks.hmmdp.worker import FOUND
from chaffinch import Document
from chaffinch.evaluate.results import Score
from chaffinch.models.classhmm.describe.report import Roles

Row: TypeAlias = dict[str, Any]

ALL = "all"
SETS: tuple[Literal["basic", "capitalisation", "shape"], ...] = ("basic", "capitalisation", "shape")
STATES = 1, 2, 5
COLUMNS = (
    "part", "system", "label", "P", "R", "F1", "interval", "published, testb", "train CPU s", "tokens per CPU s", "MB",
    "RSS MB", "objective", "steps", "held out", "held out, one state", "mentions", "NMI", "by chance",
    "95 % of chance", "absent",
)  # fmt: skip
DIGITS = {
    "train CPU s": 1, "tokens per CPU s": None, "MB": 2, "RSS MB": None, "objective": 1, "steps": None, "mentions": None
}  # fmt: skip

# F1 on CoNLL-2003 testb as published, by features and states: LOC, MISC, ORG, PER, all. LOC and MISC are interleaved
# in the text at hand; the larger of each pair is read as LOC.
_LABELS = "LOC", "MISC", "ORG", "PER", ALL
_FIGURES = {
    ("basic", 1): (0.7451, 0.6500, 0.5129, 0.5732, 0.6276),
    ("basic", 2): (0.7247, 0.6039, 0.3959, 0.6355, 0.6105),
    ("basic", 5): (0.7082, 0.6364, 0.4664, 0.6630, 0.6342),
    ("capitalisation", 1): (0.8135, 0.7386, 0.6654, 0.8297, 0.7744),
    ("capitalisation", 2): (0.7809, 0.6517, 0.5934, 0.7989, 0.7197),
    ("capitalisation", 5): (0.7565, 0.6700, 0.6172, 0.7938, 0.7228),
    ("shape", 1): (0.7999, 0.7301, 0.6443, 0.8191, 0.7607),
    ("shape", 2): (0.7844, 0.7383, 0.6662, 0.8124, 0.7584),
    ("shape", 5): (0.7537, 0.6724, 0.6440, 0.7987, 0.7277),
}
PUBLISHED = {cell: dict(zip(_LABELS, figures, strict=True)) for cell, figures in _FIGURES.items()}


def scores(gold: Sequence[Document], found: Sequence[Document]) -> dict[str, Score]:
    """The strict scores of all spans and of every label, the layer "found" against "gold"."""
    report = cf.evaluate(gold, found, layer="gold", predicted_layer=FOUND)
    return {ALL: report.micro, **report.labels}


def scored(
    name: str, found: Mapping[str, Score], costs: Mapping[str, float], published: Mapping[str, float] | None = None
) -> Iterator[Row]:
    """A row for all spans, with the costs, and one for each label."""
    for label, one in found.items():
        row: Row = {"system": name, "label": label}
        row |= {"P": round(one.precision, 4), "R": round(one.recall, 4), "F1": round(one.f1, 4)}
        if one.f1_interval is not None:
            row["interval"] = edges(*one.f1_interval)
        if published and label in published:
            row["published, testb"] = published[label]
        yield row | (costing(costs) if label == ALL else {})


def costing(costs: Mapping[str, float]) -> Row:
    """The costs of a system, with as many digits as were measured."""
    return {key: round(value, DIGITS.get(key, 4)) for key, value in costs.items()}


def difference(name: str, found: Change) -> Row:
    """A row of a difference in F1."""
    return {"system": name, "label": ALL, "F1": round(found.value, 4), "interval": edges(found.low, found.high)}


def measured(name: str, label: str, told: Roles) -> Iterator[Row]:
    """A row for each way to measure how states follow roles, or one that says why there is none."""
    if told.single is None:
        yield {"system": name, "label": label, "mentions": told.mentions, "absent": told.reason}
    ways = {"one-token mentions": told.single, "each word once": told.words, "longer, given the place": told.longer}
    for way, one in ways.items():
        if one is not None:
            chance = {"by chance": round(one.mean, 4), "95 % of chance": round(one.high, 4)}
            row = {"system": f"{name}: {way}", "label": label, "mentions": one.mentions, "NMI": round(one.nmi, 4)}
            yield row | chance


def edges(low: float, high: float) -> str:
    """An interval in words."""
    return f"{low:.4f}–{high:.4f}"


def table(rows: Iterable[Mapping[str, Any]]) -> list[Row]:
    """The rows with every column that one of them has; a dash where there is nothing to say."""
    held = list(rows)
    used = [key for key in COLUMNS if any(key in row for row in held)]
    return [{key: row.get(key, "-") for key in used} for row in held]
