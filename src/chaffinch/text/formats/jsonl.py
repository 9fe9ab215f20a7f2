"""JSONL, the format of our own: one document per line, nothing lost; also token and tag lists.

Character spans: {"id", "text", "group", "meta", "layers": {name: [{"start", "end", "label", …}]}, "relations",
"tokens", "sentences", "soft"}. Short forms are read as well: "spans", "entities", "label" or "labels" with
objects or [start, end, label] lists instead of "layers".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from chaffinch.errors import DataError
from chaffinch.text.document import Document, Soft
from chaffinch.text.formats.base import Entry, Reading, Writing, group_of_meta
from chaffinch.text.span import Argument, Relation, Span

_SHORT = ("spans", "entities", "labels", "label")


def records(file: Entry) -> Iterator[tuple[int, dict[str, Any]]]:
    """The numbered JSON objects of a file, one per line; blank lines are passed over."""
    for number, line in file.lines():
        if line.strip():
            yield number, parse_object(line, file.where, number)


def parse_object(line: str, where: str, number: int | None) -> dict[str, Any]:
    """One JSON object, or an error that says where it is broken."""
    try:
        record = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise DataError("is not valid JSON; each line must be one object", path=where, line=number) from None
    if not isinstance(record, dict):
        raise DataError(f"holds a JSON {type(record).__name__}, not an object", path=where, line=number)
    return record


@dataclass(frozen=True, slots=True)
class JsonLines:
    """The format itself."""

    name: str = "jsonl"
    about: str = "JSON lines with character spans; keeps everything"
    folder: bool = False
    suffixes: tuple[str, ...] = (".jsonl", ".ndjson", ".json")

    def recognises(self, entry: Entry, head: bytes) -> bool:
        """Lines of objects with a text and any form of spans, layers or nothing at all."""
        record = first_object(head)
        return record is not None and isinstance(record.get("text"), str) and "label" not in record

    def read(self, files: Sequence[Entry], how: Reading) -> Iterator[Document]:
        """One document per line; a record without an id gets its number in the file."""
        for file in files:
            for index, (line, record) in enumerate(records(file)):
                try:
                    yield _document(record, str(index), how)
                except DataError as error:
                    raise error.at(file.where, line) from None

    def write(self, documents: Iterable[Document], target: Path, how: Writing) -> int:
        """One line per document; a document given as JSON and read back is the same."""
        encoder = msgspec.json.Encoder()
        count = 0
        with target.open("wb") as stream:
            for count, doc in enumerate(documents, start=1):  # noqa: B007  (the last number is the answer)
                stream.write(encoder.encode(_record(doc)) + b"\n")
        return count


def first_object(head: bytes) -> dict[str, Any] | None:
    """The object on the first line of a file's head, or None; a line cut short by the head counts as none."""
    line = head.removeprefix(b"\xef\xbb\xbf").lstrip().split(b"\n", 1)[0]
    try:
        record = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _document(record: Mapping[str, Any], number: str, how: Reading) -> Document:
    text = record.get("text")
    if not isinstance(text, str):
        raise DataError('has no "text"; expected an object with "text" and "layers" or "spans"')
    short = next((record[key] for key in _SHORT if isinstance(record.get(key), list)), None)
    layers = dict(record.get("layers") or {})
    if short is not None:
        layers.setdefault(how.layer, short)
    return Document.make(
        text,
        id=str(record.get("id", number)),
        group=group_of_meta(record),
        meta=record.get("meta") or {},
        layers={name: [_span(item) for item in items] for name, items in layers.items()},
        relations=[_relation(item) for item in record.get("relations") or ()],
        soft={name: _soft(item) for name, item in (record.get("soft") or {}).items()},
        tokens=record.get("tokens"),
        sentences=record.get("sentences"),
        split=how.split,
        max_chars=how.max_chars,
    )


def _span(item: Any) -> Span:
    match item:
        case {"start": int(start), "end": int(end), "label": str(label)}:
            return Span(
                start, end, label, float(item.get("score", 1.0)), item.get("source", ""), item.get("concept", "")
            )
        case [int(start), int(end), str(label)]:
            return Span(start, end, label)
    raise DataError('a span must be {"start": int, "end": int, "label": str} or [start, end, label]')


def _relation(item: Any) -> Relation:
    match item:
        case {"label": str(label), "arguments": list(arguments)}:
            filled = tuple(
                Argument(a["role"], tuple(_span(s) for s in a["spans"]), a.get("concept", "")) for a in arguments
            )
            return Relation(label, filled, float(item.get("score", 1.0)), item.get("source", ""))
    raise DataError('a relation must be {"label": str, "arguments": [{"role": str, "spans": […]}]}')


def _soft(item: Mapping[str, Any]) -> Soft:
    labels = tuple(item["labels"])
    return Soft(labels, np.array(item["values"], np.float64).reshape(-1, len(labels)))


def _record(doc: Document) -> dict[str, Any]:
    record: dict[str, Any] = {"id": doc.id, "text": doc.text}
    if doc.group is not None:
        record["group"] = doc.group
    if doc.meta:
        record["meta"] = dict(doc.meta)
    record["layers"] = {name: [_span_record(span) for span in spans] for name, spans in doc.layers.items()}
    if doc.relations:
        record["relations"] = [_relation_record(relation) for relation in doc.relations]
    if doc.given:
        record["tokens"], record["sentences"] = doc.tokens.tolist(), doc.sentences.tolist()
    if doc.soft:
        record["soft"] = {
            name: {"labels": soft.labels, "values": soft.values.tolist()} for name, soft in doc.soft.items()
        }
    return record


def _span_record(span: Span) -> dict[str, Any]:
    record: dict[str, Any] = {"start": span.start, "end": span.end, "label": span.label}
    for key, value, empty in (("score", span.score, 1.0), ("source", span.source, ""), ("concept", span.concept, "")):
        if value != empty:
            record[key] = value
    return record


def _relation_record(relation: Relation) -> dict[str, Any]:
    arguments = [
        {"role": a.role, "spans": [_span_record(span) for span in a.spans], "concept": a.concept}
        for a in relation.arguments
    ]
    record: dict[str, Any] = {"label": relation.label, "arguments": arguments}
    if relation.score != 1.0:
        record["score"] = relation.score
    if relation.source:
        record["source"] = relation.source
    return record


JSONL = JsonLines()
