"""Presidio-research: sentences with personal data, made from templates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from chaffinch.errors import DataError
from chaffinch.text import Document, Span
from recipes.corpora._common import files, parse_json


def read(path: Path) -> Iterator[Document]:
    """One document per sample of every JSON file; the group is the template.

    Many samples share a template, so a split by group keeps a template on one side. `meta` has the file's name as
    "dataset" and the template's text as "masked".
    """
    for file in files(path, lambda entry: entry.suffix == ".json", "JSON list of samples"):
        for number, sample in enumerate(parse_json(file)):
            try:
                yield _document(sample, file.stem, number)
            except (KeyError, TypeError):
                raise DataError(f"sample {number} is not a Presidio sample", path=file.where) from None
            except DataError as error:
                raise error.at(file.where) from None


def _document(sample: Mapping[str, Any], dataset: str, number: int) -> Document:
    text = sample["full_text"]
    spans = []
    for item in sample["spans"]:
        start, end = item["start_position"], item["end_position"]
        if text[start:end] != item["entity_value"]:
            raise DataError(f"sample {number}: the span [{start}, {end}) is not where its value is")
        spans.append(Span(start, end, item["entity_type"]))
    return Document.make(
        text,
        id=f"{dataset}-{number}",
        group=f"{dataset}-template-{sample['template_id']}",
        layers={"gold": spans},
        meta={"dataset": dataset, "masked": sample["masked"]},
    )
