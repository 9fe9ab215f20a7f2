"""Headers of varied notes: fields with a label and a value, in one of many layouts.

The label of a field is never part of the identifier. Some of the fields identify nobody.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from chaffinch.deid.synth import personas
from chaffinch.deid.synth.page import NoteBuilder
from chaffinch.deid.synth.personas import pick

_USUAL = ("patient", "mrn", "visit", "born", "doctor")  # fields that most headers have
_HARMLESS = ("near", "near", "near")  # up to three fields that look like identifiers and are none


def layouts() -> list[dict[str, Any]]:
    """Return the layouts of headers, in the order of the file."""
    table: list[dict[str, Any]] = personas.table("varied/fields")["layout"]
    return table


def write_head(page: NoteBuilder, layout: dict[str, Any]) -> None:
    """Append the header of a note in a layout to the page: fields chosen at random, as items or as a table."""
    rng = page.rng
    fields = personas.table("varied/fields")["field"]
    case = pick(rng, ("", "", "", "upper", "lower", "title"))
    chosen = []
    for name in _choose_fields(rng, list(fields)):
        label = _change_case(pick(rng, fields[name]["labels"]), case)
        value = pick(rng, fields[name]["values"])
        if name == "near":
            label, _, value = pick(rng, page.scene.words["near"]).partition(": ")
        chosen.append((label, value))
    if "table" in layout:
        _write_table(page, chosen, pick(rng, layout["table"]))
    else:
        _write_items(page, chosen, layout)


def _choose_fields(rng: np.random.Generator, names: Sequence[str]) -> list[str]:
    """Choose names of fields, perhaps shuffled: most usual ones, one to six others, up to three harmless ones."""
    first = [name for name in _USUAL if rng.integers(5)] or ["patient"]
    rest = [str(name) for name in rng.choice([n for n in names if n not in _USUAL], int(rng.integers(1, 7)), False)]
    order = first + rest + list(_HARMLESS[: int(rng.integers(4))])
    if rng.integers(2):
        order = [order[number] for number in rng.permutation(len(order))]
    return order


def _change_case(label: str, case: str) -> str:
    """Return a label in upper, lower or title case; unchanged for other cases."""
    return {"upper": label.upper(), "lower": label.lower(), "title": label.title()}.get(case, label)


def _write_items(page: NoteBuilder, fields: Sequence[tuple[str, str]], layout: dict[str, Any]) -> None:
    """Append labels and filled values to the page one after another, joined as the layout says."""
    before, _, after = layout["item"].partition("{v}")
    join = pick(page.rng, layout["join"])
    pair = int(page.rng.integers(2, 4)) if "pair" in layout else 0
    for number, (label, value) in enumerate(fields):
        if number:
            page.put(layout["pair"] if pair and number % pair else join)
        page.put(before.format(l=label))
        page.add(value)
        page.put(after.format(l=label))


def _write_table(page: NoteBuilder, fields: Sequence[tuple[str, str]], between: str) -> None:
    """Append a row of labels, then a row of filled values to the page."""
    page.put(between.join(label for label, _ in fields) + "\n")
    for number, (_, value) in enumerate(fields):
        page.put(between if number else "")
        page.add(value.replace("\n", ", "))
