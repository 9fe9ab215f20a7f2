"""Heads of the varied notes: fields with a name and a value, in one of many layouts.

The name of a field is never part of the identifier. Fields that identify nobody stand among the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from chaffinch.deid.synth import personas
from chaffinch.deid.synth.page import NoteBuilder
from chaffinch.deid.synth.personas import pick

_MANDATORY = ("patient", "mrn", "visit", "born", "doctor")
_AFTER = ("near", "near", "near")


def layouts() -> list[dict[str, Any]]:
    """Every layout of fields, in the order of the file."""
    found: list[dict[str, Any]] = personas.table("varied/fields")["layout"]
    return found


def write_head(page: NoteBuilder, layout: dict[str, Any]) -> None:
    """Writes the head of a note in a layout."""
    rng = page.rng
    fields = personas.table("varied/fields")["field"]
    case = pick(rng, ("", "", "", "upper", "lower", "title"))
    chosen = []
    for name in _chosen(rng, list(fields)):
        label = _cased(pick(rng, fields[name]["labels"]), case)
        value = pick(rng, fields[name]["values"])
        if name == "near":
            label, _, value = pick(rng, page.scene.words["near"]).partition(": ")
        chosen.append((label, value))
    if "table" in layout:
        _table(page, chosen, pick(rng, layout["table"]))
    else:
        _items(page, chosen, layout)


def _chosen(rng: np.random.Generator, names: Sequence[str]) -> list[str]:
    """Names of fields: some of those most heads have, a few of the rest, and a few that identify nobody."""
    first = [name for name in _MANDATORY if rng.integers(5)] or ["patient"]
    rest = [str(name) for name in rng.choice([n for n in names if n not in _MANDATORY], int(rng.integers(1, 7)), False)]
    order = first + rest + list(_AFTER[: int(rng.integers(4))])
    if rng.integers(2):
        order = [order[at] for at in rng.permutation(len(order))]
    return order


def _cased(label: str, case: str) -> str:
    return {"upper": label.upper(), "lower": label.lower(), "title": label.title()}.get(case, label)


def _items(page: NoteBuilder, fields: Sequence[tuple[str, str]], layout: dict[str, Any]) -> None:
    before, _, after = layout["item"].partition("{v}")
    join = pick(page.rng, layout["join"])
    pair = int(page.rng.integers(2, 4)) if "pair" in layout else 0
    for at, (label, value) in enumerate(fields):
        if at:
            page.put(layout["pair"] if pair and at % pair else join)
        page.put(before.format(l=label))
        page.add(value)
        page.put(after.format(l=label))


def _table(page: NoteBuilder, fields: Sequence[tuple[str, str]], between: str) -> None:
    page.put(between.join(label for label, _ in fields) + "\n")
    for at, (_, value) in enumerate(fields):
        page.put(between if at else "")
        page.add(value.replace("\n", ", "))
