"""The rows of the HMM-DP benchmark's table: scores of a system, of its labels, and what one change does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from benchmarks.hmmdp.scores import Change, Scores
from chaffinch.evaluate.results import Score

COLUMNS = (
    "table", "system", "label", "P", "R", "F1", "interval", "strict F1", "strict interval", "leaked", "of", "binary P",
    "published", "train CPU s", "tokens per CPU s", "MB", "RSS MB", "absent",
)  # fmt: skip
DIGITS = {"train CPU s": 1, "tokens per CPU s": 0, "MB": 2, "RSS MB": 0}

Row: TypeAlias = dict[str, Any]


def scored(name: str, found: Scores) -> Row:
    """The scores of a system."""
    tokens, strict, binary = found.categories, found.strict, found.binary
    return {
        "system": name,
        "P": round(tokens.precision, 4), "R": round(tokens.recall, 4), "F1": round(tokens.f1, 4),
        "interval": _edges(*(tokens.f1_interval or (tokens.f1, tokens.f1))),
        "strict F1": round(strict.f1, 4), "strict interval": _edges(*(strict.f1_interval or (strict.f1, strict.f1))),
        "leaked": found.leaked, "of": binary.gold, "binary P": round(binary.precision, 4),
    }  # fmt: skip


def costing(costs: Mapping[str, float]) -> Row:
    """The costs of a system, with as many digits as were measured."""
    return {key: round(value, DIGITS[key] or None) for key, value in costs.items()}


def labels(name: str, found: Scores) -> Iterator[Row]:
    """A row for each category and each type: token scores."""
    for kind, scores in (("category", found.by_category), ("type", found.by_type)):
        for label, one in scores.items():
            values = {"P": round(one.precision, 4), "R": round(one.recall, 4), "F1": round(one.f1, 4)}
            yield {"system": f"{name}, by {kind}", "label": label, "of": one.gold, **values}


def values(score: Score) -> Row:
    """Precision, recall, F1 and its interval."""
    row = {"P": round(score.precision, 4), "R": round(score.recall, 4), "F1": round(score.f1, 4)}
    return row | ({"interval": _edges(*score.f1_interval)} if score.f1_interval else {})


def difference(name: str, token: Change, strict: Change, leaked: int) -> Row:
    """The differences in F1, and that in leaked tokens."""
    return {
        "system": f"{name}: difference", "F1": round(token.value, 4), "interval": _edges(token.low, token.high),
        "strict F1": round(strict.value, 4), "strict interval": _edges(strict.low, strict.high),
        "leaked": leaked,
    }  # fmt: skip


def table(rows: Iterable[Mapping[str, Any]]) -> list[Row]:
    """The rows with every column that one of them has; a dash where there is nothing to say."""
    held = list(rows)
    used = [key for key in COLUMNS if any(key in row for row in held)]
    return [{key: row.get(key, "-") for key in used} for row in held]


def _edges(low: float, high: float) -> str:
    return f"{low:.4f}–{high:.4f}"
