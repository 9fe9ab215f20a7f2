"""Tables 3 and 4 of the HMM-DP publication: three systems, tokens by category and by sub-category.

The corpus is a folder in the layout of i2b2 2014 (`--corpus`): folders whose names begin with "train" and "test", with
one NNN-MM.xml for each record. Without one, the notes written for this project stand in, by patient: those of train
writers are learnt from, those of dev writers tagged. Alignment is learnt, from readings by taggers that saw other
patients.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import chaffinch as cf
from benchmarks.hmmdp import rows
from benchmarks.hmmdp.scores import Scores
from benchmarks.hmmdp.worker import System
from chaffinch import Document
from chaffinch.errors import ConfigError
from chaffinch.evaluate.results import Score
from chaffinch.models.hmmdp.rules import Rules
from chaffinch.text.formats import ReadOptions
from chaffinch.text.identifiers import kind_of

Key: TypeAlias = tuple[str, str, str]  # system, table, label

SUBMITTED = System("HMMDP", "submitted")
UPDATED = System("HMMDP", "published", align=True)
ALL = "all"
# What is known of the published tables, of i2b2 2014: P, R or F1.
PUBLISHED: Mapping[Key, str] = {
    ("submitted", "Table 3", ALL): "F1 .910",
    ("submitted", "Table 3", "ID"): "R .874",
    ("submitted", "Table 4", "ID, its sub-categories"): "R .623",
}


@dataclass(frozen=True, slots=True)
class Tagged:
    """A system by its published name: its scores on a corpus, and what it cost."""

    name: str
    scores: Scores
    costs: Mapping[str, float]


def read_layout(folder: Path) -> tuple[list[Document], list[Document]]:
    """Return the records to learn from and those to tag; ConfigError if the folder or its labels are not of i2b2 2014.

    Labels are those of i2b2, under their usual names (IPADDRESS is IPADDR).
    """
    if not folder.is_dir():
        raise ConfigError("--corpus must be a folder that has folders train… and test…, in the layout of i2b2 2014")
    sides = []
    for side in ("train", "test"):
        places = sorted(p for p in folder.iterdir() if p.is_dir() and p.name.lower().startswith(side))
        docs = [doc for p in places for doc in cf.read(p, format="i2b2", how=ReadOptions(split="lines"))]
        if not docs:
            raise ConfigError(
                f"--corpus has no record in a folder whose name begins with {side}; it needs {side}…/NNN-MM.xml"
            )
        sides.append([_rename(doc) for doc in docs])
    known = set(Rules.i2b2().names)
    unknown = {span.label for docs in sides for doc in docs for span in doc.layer("gold")} - known
    if unknown:
        raise ConfigError(f"--corpus has {len(unknown)} labels that i2b2 2014 has not; rename them in its files")
    return sides[0], sides[1]


def read_own() -> tuple[list[Document], list[Document]]:
    """Return this project's notes of train writers and of dev writers, with the patient as group."""
    from benchmarks.deid.writers.corpus import read_notes

    train, dev = (read_notes(split) for split in ("train", "dev"))
    return [_by_lines(doc) for doc in train], [_by_lines(doc) for doc in dev]


def tables(found: Sequence[Tagged], categories: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of Table 3 (categories) and Table 4 (sub-categories), system by system, published figures beside.

    Table 4 has a row for all sub-categories of each category as well.
    """
    for one in found:
        yield from _rows(one, "Table 3", {ALL: one.scores.categories, **one.scores.by_category})
        groups: dict[str, Score] = {}
        for name in dict.fromkeys(categories.values()):
            inside = [score for label, score in one.scores.by_type.items() if categories.get(label) == name]
            if len(inside) > 1:
                groups[f"{name}, its sub-categories"] = _sum(inside)
        yield from _rows(one, "Table 4", {ALL: one.scores.types, **one.scores.by_type, **groups})


def _rows(one: Tagged, table: str, scores: Mapping[str, Score]) -> Iterator[dict[str, Any]]:
    """Yield a row for each label of a table; the first has the costs as well."""
    for label, score in scores.items():
        row = {"table": table, "system": one.name, "label": label, **rows.values(score), "of": score.gold}
        if (one.name, table, label) in PUBLISHED:
            row["published"] = PUBLISHED[one.name, table, label]
        if label == ALL and table == "Table 3":
            row |= {**rows.costing(one.costs), "leaked": one.scores.leaked}
        yield row


def _sum(scores: Sequence[Score]) -> Score:
    """Return the score of several labels together, without an interval.

    >>> _sum([Score(0.5, 1, 0.67, 1, 1, 0, 1, 2), Score(1, 0.33, 0.5, 1, 0, 2, 3, 1)]).recall
    0.5
    """
    tp, fp, fn = (sum(getattr(score, name) for score in scores) for name in ("tp", "fp", "fn"))
    precision, recall = (tp / whole if whole else 0.0 for whole in (tp + fp, tp + fn))
    f1 = 2 * tp / (2 * tp + fp + fn) if tp else 0.0
    return Score(precision, recall, f1, tp, fp, fn, tp + fn, tp + fp)


def _rename(doc: Document) -> Document:
    """Return the document with every label under the name that i2b2 2014 has for it."""
    spans = cf.resolve(doc.layer("gold"))
    return doc.with_layer("gold", [replace(span, label=_name(span.label)) for span in spans])


def _name(label: str) -> str:
    """Return the name that i2b2 2014 has for a label: relatives are PATIENT there, PHI says no more than OTHER."""
    if label in ("OTHER", "PHI"):
        return "OTHER"
    name = kind_of(label).name
    return "PATIENT" if name == "FAMILY" else name


def _by_lines(doc: Document) -> Document:
    """Return the document with lines as sentences, as a training command reads notes."""
    gold = {"gold": cf.resolve(doc.layer("gold"))}
    return Document.make(doc.text, id=doc.id, group=doc.group, meta=doc.meta, layers=gold, split="lines")
