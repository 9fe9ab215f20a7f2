"""BioC documents, for both XML and JSON: passages at their offsets, annotations, relations, and infons of each.

A record here is a document in the shape of BioC JSON; an annotation read from XML also has its "line". The text of a
document is its passages put at their offsets; the gap before a passage ends with a line feed and is blank otherwise.

Kept: the infon "type" as label, "identifier" as concept, "score", "source"; the document's infons as its meta, "group"
as the patient; passages other than one plain one, with their infons, as meta "passages". Relations between concepts
have the concept of every role as an infon, and their mentions as nodes. Counted as losses of reading: sentences
(their annotations are kept), the holes of annotations with several locations, and infons that have no place. The
header of a collection (source, date, key) belongs to no document and is passed over.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeAlias

from chaffinch.errors import DataError, LimitError
from chaffinch.text.document import Document
from chaffinch.text.formats._shared.standoff import (
    check_offsets,
    check_quote,
    mentions_by_concept,
    note_no_layer,
    note_relation,
    whole_number,
)
from chaffinch.text.formats.base import Losses, ReadOptions, WriteOptions, group_of_meta
from chaffinch.text.span import Argument, Relation, Span

Record: TypeAlias = Mapping[str, Any]

_CONCEPT = ("identifier", "Identifier", "MESH")  # as PubTator, NCBI tools and BC5CDR name it
_TYPE = ("type", "relation")  # BC5CDR names the type of a relation "relation"


def parse_record(options: ReadOptions, _: str, record: Record) -> Document:
    """Return a BioC record as a document, and count losses; DataError, with its number, for a broken annotation."""
    passages = _objects(record, "passages")
    text, structure = _layout(passages, options)
    spans, by_id = [], {}
    for number, item in enumerate(_all_levels(record, "annotations"), start=1):
        try:
            span = _span(item, text, options.losses)
        except DataError as error:
            raise DataError(f"annotation {number}: {error.message}", line=_line(item)) from None
        if span is not None:
            spans.append(span)
            by_id[str(item.get("id"))] = span
    relations = [_relation(item, by_id, spans, options.losses) for item in _all_levels(record, "relations")]
    infons = _infons(record)
    meta = {key: value for key, value in infons.items() if key not in ("group", "passages")}
    options.losses.add("infons called passages", "passages" in infons)
    if structure != _one_passage(text) and structure:
        meta["passages"] = structure
    return Document.make(
        text,
        id=str(record.get("id", "")),
        group=group_of_meta(infons),
        meta=meta,
        layers={options.layer: spans},
        relations=[relation for relation in relations if relation is not None],
        split=options.split,
        max_chars=options.max_chars,
    )


def to_record(doc: Document, options: WriteOptions, *, keeps: Callable[[object], bool]) -> dict[str, Any]:
    """Return the BioC record of a document; count losses; `keeps` tells if the file keeps an infon's key or value."""
    options.drop(doc, "soft", "given")
    note_no_layer(doc, options)
    spans = options.spans(doc)
    structure = _structure(doc, keeps)
    passages: list[dict[str, Any]] = [
        {
            "offset": part["offset"],
            "infons": part["infons"],
            "text": doc.text[part["offset"] : part["offset"] + part["length"]],
            "sentences": [],
            "annotations": [],
            "relations": [],
        }
        for part in structure
    ]
    starts = [part["offset"] for part in structure]
    ids: dict[Span, str] = {}
    for number, span in enumerate(spans, start=1):
        key = f"T{number}"
        ids.setdefault(span, key)
        passages[max(0, bisect_right(starts, span.start) - 1)]["annotations"].append(_annotation(key, span, doc.text))
    by_id = {f"T{number}": span for number, span in enumerate(spans, start=1)}
    return {
        "id": doc.id,
        "infons": _document_infons(doc, options, keeps),
        "passages": passages,
        "annotations": [],
        "relations": list(_relation_records(doc, ids, by_id, options)),
    }


def _line(record: Record) -> int | None:
    """Return the line at which an XML item begins; None if it is not known."""
    line = record.get("line")
    return line if isinstance(line, int) else None


def _objects(record: Record, key: str) -> list[dict[str, Any]]:
    """Return the list of objects under a key, [] if absent; raise DataError if it is anything else."""
    items = record.get(key) or []
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise DataError(f'"{key}" must be a list of objects', line=_line(record))
    return items


def _all_levels(record: Record, key: str) -> Iterator[dict[str, Any]]:
    """Yield the annotations or relations (`key`) of a document, its passages and sentences; DataError if not lists."""
    yield from _objects(record, key)
    for passage in _objects(record, "passages"):
        yield from _objects(passage, key)
        for sentence in _objects(passage, "sentences"):
            yield from _objects(sentence, key)


def _infons(record: Record) -> dict[str, Any]:
    """Return the infons of a record, {} if absent, with "" for null; DataError if they are not an object."""
    infons = record.get("infons") or {}
    if not isinstance(infons, dict):
        raise DataError('"infons" must be an object', line=_line(record))
    return {key: "" if value is None else value for key, value in infons.items()}


@dataclass(slots=True)
class _TextBuilder:
    """A text built of pieces at their offsets; the gap before a piece is blank and ends with `last`."""

    last: str
    limit: int
    parts: list[str] = field(default_factory=list)
    length: int = 0

    def put(self, offset: int, more: object) -> None:
        """Append text at its offset, blanks in the gap; DataError if it overlaps or is no text, LimitError if long."""
        gap = offset - self.length
        if gap < 0 or not isinstance(more, str):
            raise DataError(
                f"a passage or sentence at offset {offset} starts inside the {self.length} characters before it, "
                "or has no text; offsets count code points from the start of the document"
            )
        if offset + len(more) > self.limit:
            raise LimitError(
                f"{offset + len(more):,} characters, the limit is {self.limit:,}; raise it with --max-chars"
            )
        self.parts += [" " * (gap - 1), self.last if self.length else " "] if gap else []
        self.parts.append(more)
        self.length = offset + len(more)

    @property
    def text(self) -> str:
        """Return the pieces joined, with the blanks between them."""
        return "".join(self.parts)


def _layout(passages: Sequence[Record], options: ReadOptions) -> tuple[str, list[dict[str, Any]]]:
    """Return passages joined at their offsets, and {offset, length, infons} of each; DataError if one is broken."""
    page, structure = _TextBuilder("\n", options.max_chars), []
    for passage in passages:
        try:
            start = whole_number(passage.get("offset"), "the offset of a passage")
            text = _passage_text(passage, start, options)
            page.put(start, text)
        except DataError as error:
            raise type(error)(error.message, line=error.line or _line(passage)) from None
        structure.append({"offset": start, "length": len(text), "infons": _infons(passage)})
    return page.text, structure


def _passage_text(passage: Record, start: int, options: ReadOptions) -> str:
    """Return a passage's text, else its joined sentences; count sentences as lost; DataError if no text.

    The offsets of sentences are those of the document; `start` is the passage's.
    """
    sentences = _objects(passage, "sentences")
    options.losses.add("sentences of passages", len(sentences))
    text = passage.get("text") or ""
    if not isinstance(text, str):
        raise DataError('"text" must be a string')
    page = _TextBuilder(" ", options.max_chars)
    for sentence in () if text else sentences:
        page.put(whole_number(sentence.get("offset"), "the offset of a sentence") - start, sentence.get("text") or "")
    return text or page.text


def _span(item: Record, text: str, losses: Losses) -> Span | None:
    """Return the span that covers an annotation's locations, None without any; count losses; DataError if broken."""
    places = []
    for location in _objects(item, "locations"):
        start = whole_number(location.get("offset"), "the offset")
        places.append((start, start + whole_number(location.get("length"), "the length")))
    infons = _infons(item)
    label = infons.get("type")
    if not isinstance(label, str):
        raise DataError('has no infon "type", which is the label')
    if not places:
        losses.add("annotations without a location")
        return None
    for location_range in places:
        check_offsets(*location_range, text)
    first, last = min(start for start, _ in places), max(end for _, end in places)
    if item.get("text"):
        check_quote(str(item["text"]), [text[a:b] for a, b in places], first, last)
    gaps = (text[a:b] for (_, a), (b, _) in pairwise(sorted(places)))
    losses.add("holes of discontinuous spans (read as the span that covers them)", any(gap.strip() for gap in gaps))
    concept, used = next(((str(infons[key]), {key}) for key in _CONCEPT if infons.get(key)), ("", set()))
    score, source = _details(infons)
    losses.add("other infons of annotations", len(set(infons) - used - {"type", "score", "source"} - set(_CONCEPT)))
    return Span(first, last, label, score, source, concept)


def _details(infons: Record) -> tuple[float, str]:
    """Return (score, source) of infons; the score is 1 if absent or no number in [0, 1], the source "" if absent."""
    try:
        score = float(infons.get("score", 1.0))
    except (TypeError, ValueError):
        score = 1.0
    return score if 0 <= score <= 1 else 1.0, str(infons.get("source", ""))


def _relation(item: Record, by_id: Mapping[str, Span], spans: Iterable[Span], losses: Losses) -> Relation | None:
    """Return a BioC relation of spans (its nodes) or concepts (its infons); None, counted, if unfit; or DataError."""
    infons = _infons(item)
    kind = next((key for key in _TYPE if isinstance(infons.get(key), str)), None)
    nodes = [(str(node.get("role", "")), str(node.get("refid"))) for node in _objects(item, "nodes")]
    if kind is None or any(key not in by_id for _, key in nodes):
        losses.add("relations without a type, or between other things than annotations")
        return None
    score, source = _details(infons)
    others = {key: value for key, value in infons.items() if key not in (kind, "score", "source")}
    concepts = {role: value for role, value in others.items() if isinstance(value, str)}
    if concepts and {role for role, _ in nodes} <= set(concepts):
        mentions = {} if nodes else mentions_by_concept(sorted(spans))
        arguments = [
            Argument(
                role,
                tuple(by_id[key] for node_role, key in nodes if node_role == role) or mentions.get(value, ()),
                value,
            )
            for role, value in concepts.items()
        ]
        losses.add("other infons of relations", len(others) - len(concepts))
    else:
        arguments = [Argument(role, (by_id[key],)) for role, key in nodes]
        losses.add("other infons of relations", len(others))
    return Relation(infons[kind], tuple(arguments), score, source)


def _one_passage(text: str) -> list[dict[str, Any]]:
    """Return the passage structure of a text: one passage without infons."""
    return [{"offset": 0, "length": len(text), "infons": {}}]


def _structure(doc: Document, keeps: Callable[[object], bool]) -> list[dict[str, Any]]:
    """Return the passages in the meta if they give the text and `keeps` all infons, else one passage for all."""
    passages = doc.meta.get("passages")
    page, fit = _TextBuilder("\n", len(doc.text)), isinstance(passages, list) and bool(passages)
    try:
        for part in passages if isinstance(passages, list) else ():
            start, infons = part["offset"], part["infons"]
            text = doc.text[start : start + part["length"]]
            page.put(start, text)
            fit &= part == {"offset": start, "length": len(text), "infons": infons}
            fit &= all(keeps(value) for pair in infons.items() for value in pair)
    except (DataError, TypeError, KeyError, AttributeError):
        fit = False
    return list(passages or ()) if fit and page.text == doc.text else _one_passage(doc.text)


def _document_infons(doc: Document, options: WriteOptions, keeps: Callable[[object], bool]) -> dict[str, Any]:
    """Return meta fields, and the group as "group", as infons; count as lost what would not come back."""
    kept = "passages" in doc.meta and _structure(doc, keeps) == doc.meta["passages"] != _one_passage(doc.text)
    names = [key for key in doc.meta if key not in ("group", "passages") and keeps(doc.meta[key]) and keeps(key)]
    options.losses.add("meta fields", len(doc.meta) - len(names) - kept)
    infons = {key: doc.meta[key] for key in names}
    if doc.group is not None:
        infons["group"] = doc.group
    options.losses.add("groups (patients)", group_of_meta(infons) != doc.group)
    return infons


def _annotation(key: str, span: Span, text: str) -> dict[str, Any]:
    """Return a span as a BioC annotation under the id `key`: infons (type, concept, marks), text, location."""
    infons = {"type": span.label} | _marks(span)
    if span.concept:
        infons["identifier"] = span.concept
    location = {"offset": span.start, "length": len(span)}
    return {"id": key, "infons": infons, "text": text[span.start : span.end], "locations": [location]}


def _marks(item: Span | Relation) -> dict[str, str]:
    """Return {"score", "source"} of a span or relation as infons, each only if it is not the default."""
    score = {} if item.score == 1.0 else {"score": repr(float(item.score))}
    return score | ({"source": item.source} if item.source else {})


def _relation_records(
    doc: Document, ids: Mapping[Span, str], by_id: Mapping[str, Span], options: WriteOptions
) -> Iterator[dict[str, Any]]:
    """Yield the records of relations whose spans are all written; count the others, and lost details, as lost."""
    for relation in doc.relations:
        if any(span not in ids for argument in relation.arguments for span in argument.spans):
            options.losses.add("relations over spans that are not written")
            continue
        infons = {"type": relation.label} | _marks(relation)
        if any(argument.concept or len(argument.spans) != 1 for argument in relation.arguments):
            infons |= {argument.role: argument.concept for argument in relation.arguments}
        nodes = [
            {"refid": ids[span], "role": argument.role} for argument in relation.arguments for span in argument.spans
        ]
        record = {"id": "", "infons": infons, "nodes": nodes}
        as_read = _relation(record, by_id, by_id.values(), Losses())
        if as_read is not None:
            note_relation(relation, as_read, options)
        yield record
