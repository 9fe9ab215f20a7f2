"""JSONL, the native format of Chaffinch: one document per line, nothing lost.

{"id", "text", "group", "meta", "layers": {name: [{"start", "end", "label", …}]}, "relations", "tokens", "sentences",
"soft"}. Short forms are read as well: "spans", "entities", "label" or "labels" with objects or [start, end, label]
lists instead of "layers"; fields of other names go to the meta fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeAlias

import msgspec
import numpy as np

from chaffinch.errors import DataError
from chaffinch.text.columns import BETWEEN, ColumnChoice, Columns
from chaffinch.text.document import Document, Soft
from chaffinch.text.formats._shared.columns import SAMPLE, ChosenColumns, choose_columns
from chaffinch.text.formats._shared.json_records import (
    SpanItem,
    convert,
    first_object,
    group_of,
    id_of,
    meta_of,
    note_numbers,
    object_units,
    span_record,
    spans_of,
    write_lines,
)
from chaffinch.text.formats.base import Capabilities, Entry, ReadOptions, WriteOptions
from chaffinch.text.formats.units import BOM, Unit
from chaffinch.text.span import Argument, Relation

_SHORT = ("spans", "entities", "labels", "label")
Place: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]


class ArgumentRecord(msgspec.Struct):
    """One filled role of a relation as a JSON object."""

    role: str
    spans: list[SpanItem]
    concept: str = ""


class RelationRecord(msgspec.Struct):
    """A relation as a JSON object."""

    label: str
    arguments: list[ArgumentRecord]
    score: float = 1.0
    source: str = ""


class SoftRecord(msgspec.Struct):
    """Token distributions as a JSON object: one row of values per token."""

    labels: tuple[str, ...]
    values: list[list[float]]


class DocumentRecord(msgspec.Struct):
    """The fields of a document record that have a fixed type."""

    text: str
    meta: dict[str, Any] | None = None
    layers: dict[str, list[SpanItem]] | None = None
    relations: list[RelationRecord] | None = None
    soft: dict[str, SoftRecord] | None = None
    tokens: list[tuple[Place, Place]] | None = None
    sentences: list[tuple[Place, Place]] | None = None


_RESERVED = ("id", *DocumentRecord.__struct_fields__)


@dataclass(frozen=True, slots=True)
class JsonLines:
    """The JSONL format of Chaffinch."""

    name: str = "jsonl"
    about: str = "JSON lines with character spans; keeps everything"
    folder: bool = False
    suffixes: tuple[str, ...] = (".jsonl", ".ndjson", ".json")
    can: ClassVar[Capabilities] = Capabilities(
        "line", 3, exact=True, columns=True, layers="many", span_sources=True, votes=True, vote_links=True, soft=True
    )

    def recognises(self, entry: Entry, head: bytes) -> bool:
        """Tell whether a file's first line is an object with a text; more special formats are tried before."""
        record = first_object(entry, head)
        return record is not None and isinstance(record.get("text"), str)

    def units(self, files: Sequence[Entry], options: ReadOptions) -> Iterator[Unit]:
        """Yield a unit per line that is not blank; a record without an id gets its number in the file."""
        chosen = _choose_fields(files, options.columns)
        return object_units(files, partial(document_of, options=options, chosen=chosen))

    def write(self, documents: Iterable[Document], target: Path, options: WriteOptions) -> int:
        """Write a line per document; infinite numbers and NaN are lost (counted); return how many documents."""
        return write_lines(documents, target, lambda doc: _record(doc, options))


def _choose_fields(files: Sequence[Entry], wanted: ColumnChoice) -> ChosenColumns | None:
    """Return the fields of text, id and patient, by the first records; None without records; ConfigError if unsure."""
    rows: list[dict[str, Any]] = []
    for file in files:
        try:
            lines = file.head().removeprefix(BOM).split(b"\n")
        except DataError:  # reading the file says what is wrong
            continue
        rows += islice(filter(None, map(_parse_quietly, lines)), SAMPLE)
    if not rows:
        return None
    names = list(dict.fromkeys(name for row in rows for name in row))
    return choose_columns(names, rows, wanted, ids_are=("id",))


def _parse_quietly(line: bytes) -> dict[str, Any] | None:
    """Return the JSON object on a line, or None if there is none; raise nothing."""
    try:
        record = msgspec.json.decode(line) if line.strip() else None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def document_of(
    record: Mapping[str, Any], number: str, options: ReadOptions, chosen: ChosenColumns | None = None
) -> Document:
    """Return the document of a JSON object, by chosen columns if any; `number` is its default id; or DataError.

    `chosen` are the fields of text, id and patient, if they are not called as in our own files.
    """
    texts = ("text",) if chosen is None else chosen.texts
    absent = [name for name in texts if name not in record]
    if len(absent) == len(texts):
        raise DataError(f'has no "{absent[0]}"; expected an object with "{absent[0]}" and "layers" or "spans"')
    wanted = options.columns
    taken = {*texts, *(name for name in (wanted.id, wanted.patient) if name is not None)}
    others = {name: value for name, value in record.items() if name not in taken}
    if len(texts) == 1:
        others["text"] = record[texts[0]]
    else:
        others["text"] = BETWEEN.join(convert(record.get(name) or "", str) for name in texts)
    if chosen is not None and wanted.id is not None:
        others["id"] = record.get(str(chosen.id))
    if chosen is not None and wanted.patient is not None:
        others["group"] = None if (patient := record.get(str(chosen.patient))) in (None, "") else str(patient)
    doc = _document(others, number, options)
    columns = None if chosen is None else chosen.join(record, JSONL.name, doc.meta.keys() & record.keys())[1]
    return replace(doc, columns=columns)


def _document(record: Mapping[str, Any], number: str, options: ReadOptions) -> Document:
    """Return the document of an object with our field names, or short spans; `number`: default id; or DataError."""
    known = convert(record, DocumentRecord)
    layers = {name: spans_of(items) for name, items in (known.layers or {}).items()}
    short = next((key for key in _SHORT if isinstance(record.get(key), list)), None)
    if short is not None and options.layer not in layers:
        layers[options.layer] = spans_of(convert(record[short], list[SpanItem]))
    group = record.get("group")
    return Document.make(
        known.text,
        id=id_of(record, number),
        group=group if isinstance(group, str) else group_of(record),
        meta={**meta_of(record, (*_RESERVED, short)), **(known.meta or {})},
        layers=layers,
        relations=[relation_of(item) for item in known.relations or ()],
        soft={name: soft_of(item) for name, item in (known.soft or {}).items()},
        tokens=known.tokens,
        sentences=known.sentences,
        split=options.split,
        max_chars=options.max_chars,
    )


def relation_of(item: RelationRecord) -> Relation:
    """Return the relation of a JSON object whose types are checked."""
    arguments = tuple(Argument(a.role, tuple(spans_of(a.spans)), a.concept) for a in item.arguments)
    return Relation(item.label, arguments, item.score, item.source)


def soft_of(item: SoftRecord) -> Soft:
    """Return the token distributions of a checked JSON object; DataError if a row has another length than labels."""
    if any(len(row) != len(item.labels) for row in item.values):
        raise DataError(f"a soft layer must have one value for each of its {len(item.labels)} labels in a row")
    return Soft(item.labels, np.array(item.values, np.float64).reshape(len(item.values), len(item.labels)))


def record_of(doc: Document) -> dict[str, Any]:
    """Return a document as a JSON object; empty parts are left out, tokens kept only if they were given."""
    record: dict[str, Any] = {"id": doc.id, "text": doc.text}
    if doc.group is not None:
        record["group"] = doc.group
    if doc.meta:
        record["meta"] = dict(doc.meta)
    record["layers"] = {name: [span_record(span) for span in spans] for name, spans in doc.layers.items()}
    if doc.relations:
        record["relations"] = [relation_record(relation) for relation in doc.relations]
    if doc.given:
        record["tokens"], record["sentences"] = doc.tokens.tolist(), doc.sentences.tolist()
    if doc.soft:
        record["soft"] = {name: soft_record(soft) for name, soft in doc.soft.items()}
    return record


def _record(doc: Document, options: WriteOptions) -> dict[str, Any]:
    """Return a document as a JSON object, with its original field names if these are kept; count losses."""
    note_numbers(doc, options.losses)
    record, columns = record_of(doc), options.columns_of(doc, JSONL.name)
    return record if columns is None else _rename_fields(record, columns)


def _rename_fields(record: dict[str, Any], columns: Columns) -> dict[str, Any]:
    """Return a JSON object with the names its document came with, or ours where these clash; empties `record`.

    The given object is emptied.
    """
    named: dict[str, Any] = {columns.id or "id": record.pop("id"), **columns.cut(record.pop("text"))}
    if "group" in record and (columns.patient or "group") not in named:
        named[columns.patient or "group"] = record.pop("group")
    meta = record.pop("meta", {})
    flat = {name: meta.pop(name) for name in columns.fields if name in meta and name not in named}
    return {**named, **flat, **({"meta": meta} if meta else {}), **record}


def soft_record(soft: Soft) -> dict[str, Any]:
    """Return token distributions as a JSON object: the labels, and a list of values per token."""
    return {"labels": soft.labels, "values": soft.values.tolist()}


def relation_record(relation: Relation) -> dict[str, Any]:
    """Return a relation as a JSON object; a score of 1 and an empty source are left out."""
    arguments = [
        {"role": a.role, "spans": [span_record(span) for span in a.spans], "concept": a.concept}
        for a in relation.arguments
    ]
    record: dict[str, Any] = {"label": relation.label, "arguments": arguments}
    if relation.score != 1.0:
        record["score"] = relation.score
    if relation.source:
        record["source"] = relation.source
    return record


JSONL = JsonLines()
FORMATS = (JSONL,)
