"""The JSONL export of doccano for sequence labelling, with and without relations.

{"id", "text", "label": [[start, end, label], …], "Comments": […]}, or, in projects with relations, {"id", "text",
"entities": [{"id", "label", "start_offset", "end_offset"}], "relations": [{"id", "from_id", "to_id", "type"}],
"Comments"}. Meta fields lie flat beside these, as doccano has them. A relation's arguments are Arg1 and Arg2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from chaffinch.errors import DataError
from chaffinch.text.document import Document
from chaffinch.text.formats._shared.json_records import (
    convert,
    first_object,
    flat_fields,
    group_of,
    id_of,
    meta_of,
    object_units,
    write_lines,
)
from chaffinch.text.formats.base import Capabilities, Entry, Losses, ReadOptions, WriteOptions
from chaffinch.text.formats.units import Unit
from chaffinch.text.span import Argument, Relation, Span

_RESERVED = ("id", "text", "data", "label", "labels", "entities", "relations")
ROLES = ("Arg1", "Arg2")


class EntityRecord(msgspec.Struct):
    """An entity of the export with relations."""

    id: int | str
    label: str
    start_offset: int
    end_offset: int


class RelationRecord(msgspec.Struct):
    """A relation between two entities of the same document."""

    from_id: int | str
    to_id: int | str
    type: str


@dataclass(frozen=True, slots=True)
class Doccano:
    """The doccano JSONL format."""

    name: str = "doccano"
    about: str = "JSON lines as doccano exports them, with relations where there are any"
    folder: bool = False
    suffixes: tuple[str, ...] = (".doccano.jsonl", ".jsonl", ".ndjson", ".json")
    can: ClassVar[Capabilities] = Capabilities("line", 2, exact=True)

    def recognises(self, entry: Entry, head: bytes) -> bool:
        """Tell whether the first object has a text and doccano's label lists, start_offset entities or Comments."""
        record = first_object(entry, head)
        if record is None or not isinstance(record.get("text", record.get("data")), str) or "layers" in record:
            return False
        entities, relations = record.get("entities"), record.get("relations")
        if isinstance(entities, list) and isinstance(relations, list):
            return all(isinstance(item, dict) and "start_offset" in item for item in entities)
        return isinstance(record.get("label"), list) or isinstance(record.get("Comments"), list)

    def units(self, files: Sequence[Entry], options: ReadOptions) -> Iterator[Unit]:
        """Yield a unit per line that is not blank."""
        return object_units(files, partial(_document, options=options))

    def write(self, documents: Iterable[Document], target: Path, options: WriteOptions) -> int:
        """Write a line per document, with relations in the form with entities; count losses; return how many lines."""
        return write_lines(documents, target, lambda doc: _record(doc, options))


def _document(record: Mapping[str, Any], number: str, options: ReadOptions) -> Document:
    """Return the document of a doccano record; `number` is its id if it has none; DataError if malformed."""
    text = record.get("text", record.get("data"))
    if not isinstance(text, str):
        raise DataError('has no "text"; expected an object with "text" and "label" or "entities"')
    by_id: dict[int | str, Span] = {}
    spans = None
    key = next((key for key in ("entities", "label", "labels") if isinstance(record.get(key), list)), None)
    if key == "entities" and all(isinstance(item, dict) for item in record[key]):
        entities = convert(record[key], list[EntityRecord])
        by_id = {e.id: Span(e.start_offset, e.end_offset, e.label) for e in entities}
        if len(by_id) < len(entities):
            raise DataError("two entities have the same id; make the ids differ")
        spans = list(by_id.values())
    elif key is not None:
        spans = [Span(*item) for item in convert(record[key], list[tuple[int, int, str]])]
    meta = meta_of(record, _RESERVED)
    if not meta.get("Comments", True):
        del meta["Comments"]
    return Document.make(
        text,
        id=id_of(record, number),
        group=group_of(record),
        meta=meta,
        layers={} if spans is None else {options.layer: spans},
        relations=[_relation(item, by_id) for item in convert(record.get("relations") or [], list[RelationRecord])],
        split=options.split,
        max_chars=options.max_chars,
    )


def _relation(item: RelationRecord, by_id: Mapping[int | str, Span]) -> Relation:
    """Return the relation between two entities by their ids; raise DataError if one does not exist."""
    for end in (item.from_id, item.to_id):
        if end not in by_id:
            raise DataError("a relation names an entity that does not exist; check its from_id and to_id")
    ends = (by_id[item.from_id], by_id[item.to_id])
    return Relation(item.type, tuple(Argument(role, (span,)) for role, span in zip(ROLES, ends, strict=True)))


def _record(doc: Document, options: WriteOptions) -> dict[str, Any]:
    """Return a doccano record with entities if there are relations, else plain labels; count what is lost."""
    options.drop(doc, "soft", "given")
    record: dict[str, Any] = {"id": doc.id, "text": doc.text}
    spans: Sequence[Span] = ()
    if doc.layers:
        spans = options.spans(doc)
        options.drop_from_spans(spans, "score", "source", "concept")
    pairs = list(binary_relations(doc.relations, spans, options.losses))
    if pairs:
        record["entities"] = [
            {"id": i, "label": s.label, "start_offset": s.start, "end_offset": s.end} for i, s in enumerate(spans)
        ]
        record["relations"] = [
            {"id": i, "from_id": a, "to_id": b, "type": relation.label} for i, (relation, a, b) in enumerate(pairs)
        ]
    elif doc.layers:
        record["label"] = [[span.start, span.end, span.label] for span in spans]
    options.losses.add("meta fields", not doc.meta.get("Comments", True))  # none are read from an empty list
    return record | {"Comments": []} | flat_fields(doc, _RESERVED, options.losses)


def binary_relations(
    relations: Iterable[Relation], spans: Sequence[Span], losses: Losses
) -> Iterator[tuple[Relation, int, int]]:
    """Yield the relations between two of the spans, with the indices of both; count the others as lost."""
    indices = {astuple(span): index for index, span in enumerate(spans)}
    for relation in relations:
        ends = [indices.get(astuple(span)) for argument in relation.arguments for span in argument.spans]
        if len(relation.arguments) != 2 or len(ends) != 2 or ends[0] is None or ends[1] is None:
            losses.add("relations")
            continue
        losses.add("roles of relations", tuple(a.role for a in relation.arguments) != ROLES)
        losses.add("concepts of relations", any(a.concept for a in relation.arguments))
        losses.add("scores and sources of relations", relation.score != 1.0 or relation.source != "")
        yield relation, ends[0], ends[1]


DOCCANO = Doccano()
FORMATS = (DOCCANO,)
