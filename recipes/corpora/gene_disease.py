"""GAD and EU-ADR: sentences in which a gene and a disease are masked, and may be associated.

One document per sentence with the spans GENE and DISEASE over the placeholders @GENE$ and @DISEASE$; a relation
"association" with the roles gene and disease if the sentence is positive, none if it is negative. Each file is
one test fold: `meta["fold"]` has its number, and training for a fold takes the other nine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from chaffinch.errors import DataError
from chaffinch.text import Argument, Document, Relation, Span
from chaffinch.text.formats._shared.json_records import records
from chaffinch.text.formats.base import Entry
from recipes.corpora._common import files, one_sentence

GENE, DISEASE = "@GENE$", "@DISEASE$"
_FOLD = re.compile(r"fold_(\d+)")


def read_gad(path: Path) -> Iterator[Document]:
    """The sentences of GAD: tab-separated index, sentence and label (0 or 1) under a header line."""
    for file in files(path, lambda entry: entry.suffix == ".tsv", "fold (fold_1.tsv …)"):
        fold = _fold(file)
        for number, line in file.lines():
            if number > 1 and line:
                try:
                    yield _gad(line, fold)
                except DataError as error:
                    raise error.at(file.where, number) from None


def read_eu_adr(path: Path) -> Iterator[Document]:
    """The sentences of EU-ADR: JSON lines, each with one relation that is positive or negative."""
    for file in files(path, lambda entry: entry.suffix == ".json", "fold (fold_0.json …)"):
        fold = _fold(file)
        for number, record in records(file):
            try:
                yield _eu_adr(record, fold)
            except DataError as error:
                raise error.at(file.where, number) from None


def _fold(file: Entry) -> int:
    found = _FOLD.search(file.name)
    if found is None:
        raise DataError("the name of a fold must have its number, as in fold_3", path=file.where)
    return int(found[1])


def _gad(line: str, fold: int) -> Document:
    match line.split("\t"):
        case [index, text, ("0" | "1") as label]:
            return _document(text, f"{fold}-{index}", fold, positive=label == "1")
    raise DataError("expected three columns: index, sentence and the label 0 or 1")


def _eu_adr(record: Mapping[str, Any], fold: int) -> Document:
    match record:
        case {"id": str(name), "text": str(text), "relation": [{"relation_type": "positive" | "negative" as kind}]}:
            return _document(text, name, fold, positive=kind == "positive")
    raise DataError("expected an id, a text and one relation that is positive or negative")


def _document(text: str, name: str, fold: int, *, positive: bool) -> Document:
    spans = []
    for mask in (GENE, DISEASE):
        if text.count(mask) != 1:
            raise DataError(f"expected {mask} once, found it {text.count(mask)} times")
        spans.append(Span(text.index(mask), text.index(mask) + len(mask), mask[1:-1]))
    association = Relation("association", tuple(Argument(span.label.lower(), (span,)) for span in spans))
    relations = [association] if positive else []
    return one_sentence(text, id=name, gold=spans, relations=relations, meta={"fold": fold})
