"""Label Studio's JSON export: a list of tasks with annotations and predictions.

The first annotation that was not cancelled is the gold layer, further ones are "annotation:2", "annotation:3", …;
a prediction is a layer of its own, named by its model_version, or "predictions" without one. The other fields of
"data" are meta fields; "id" and "group" in "data" outlive an import into Label Studio, which renumbers tasks.

Offsets: since 2022 Label Studio counts code points (its pull request 1559); before, it counted UTF-16 units. Where a
region has its text beside it, that text decides for the whole task; without any, code points are taken.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import numpy as np

from chaffinch.errors import DataError
from chaffinch.text.document import Document
from chaffinch.text.formats._shared.json_records import convert, default_id, flat_fields, group_of, id_of, meta_of
from chaffinch.text.formats.base import Capabilities, Entry, Losses, ReadOptions, WriteOptions
from chaffinch.text.formats.doccano import ROLES, binary_relations
from chaffinch.text.formats.units import BOM, Record, Unit, record_units
from chaffinch.text.span import Argument, Relation, Span

_RESERVED = ("id", "text")
_TASK = re.compile(rb'\[\s*\{.*"(?:annotations|predictions|data)"\s*:\s*[\[{]', re.DOTALL)


class LabelItem(msgspec.Struct):
    """One item of a result: a labelled region, a relation, or something that is neither."""

    type: str = ""
    id: str | None = None
    to_name: str = ""
    value: dict[str, Any] = {}
    score: float | None = None
    from_id: str = ""
    to_id: str = ""
    direction: str | None = None
    labels: list[str] | None = None


class AnnotationResult(msgspec.Struct):
    """An annotation or a prediction."""

    result: list[LabelItem] = []
    was_cancelled: bool | None = None
    model_version: str | None = None
    score: float | None = None


class Task(msgspec.Struct):
    """One task: a text with its annotations and predictions."""

    data: dict[str, Any]
    id: int | str | None = None
    annotations: list[AnnotationResult] = []
    predictions: list[AnnotationResult] = []
    meta: Any = None


class RegionValue(msgspec.Struct):
    """The value of a labelled region of text."""

    start: int
    end: int
    labels: list[str]
    text: str | None = None


@dataclass(frozen=True, slots=True)
class LabelStudio:
    """The JSON format of Label Studio."""

    name: str = "labelstudio"
    about: str = "JSON tasks as Label Studio exports and imports them, with predictions"
    folder: bool = False
    suffixes: tuple[str, ...] = (".labelstudio.json", ".json")
    can: ClassVar[Capabilities] = Capabilities("record", exact=True, layers="many")

    def recognises(self, entry: Entry, head: bytes) -> bool:
        """Tell whether a file is a JSON list whose first object looks like a task."""
        return _TASK.match(head.removeprefix(b"\xef\xbb\xbf").lstrip()) is not None

    def units(self, files: Sequence[Entry], options: ReadOptions) -> Iterator[Unit]:
        """Yield a unit per task; errors name the number of the task in its file, counted from 1."""
        for file in files:
            yield from record_units(file, _tasks(file, files), partial(_parse_task, options), "task")

    def write(self, documents: Iterable[Document], target: Path, options: WriteOptions) -> int:
        """Write a JSON list, one task per document, offsets in code points; count losses; return how many documents."""
        encoder = msgspec.json.Encoder()
        count = 0
        with target.open("wb") as stream:
            stream.write(b"[")
            for count, doc in enumerate(documents, start=1):
                stream.write((b",\n" if count > 1 else b"\n") + encoder.encode(_task(doc, count, options)))
            stream.write(b"\n]\n")
        return count


def _document(task: Task, number: str, options: ReadOptions) -> Document:
    """Return a task's document, results as layers; `number` is its id if it has none; count losses; or DataError."""
    results = _results(task, options)
    regions_by_layer = {name: _regions(result, options.losses) for name, result in results.items()}
    key = _text_key(task.data, [item for found in regions_by_layer.values() for item, _ in found])
    text: str = task.data[key]
    to_code_points = _offset_counter(text, [region for found in regions_by_layer.values() for _, region in found])
    options.losses.add("meta of Label Studio tasks", bool(task.meta))
    layers: dict[str, list[Span]] = {}
    relations: list[Relation] = []
    for name, result in results.items():
        regions: dict[str, list[Span]] = {}
        for index, (item, region) in enumerate(regions_by_layer[name]):
            score = next((score for score in (item.score, result.score) if score is not None), 1.0)
            spans = [
                Span(to_code_points(region.start), to_code_points(region.end), label, score) for label in region.labels
            ]
            regions.setdefault(f"#{index}" if item.id is None else item.id, []).extend(spans)
        layers[name] = [span for spans in regions.values() for span in spans]
        relations.extend(_relations(result.result, regions, options.losses))
    return Document.make(
        text,
        id=id_of(task.data, number if task.id is None else str(task.id)),
        group=group_of(task.data),
        meta=meta_of(task.data, ("id", key)),
        layers=layers,
        relations=relations,
        split=options.split,
        max_chars=options.max_chars,
    )


def _tasks(file: Entry, files: Sequence[Entry]) -> Iterator[Record[Any]]:
    """Yield the tasks of a file as records with default ids; raise DataError if it is no JSON list."""
    try:
        tasks = msgspec.json.decode(file.content().removeprefix(BOM))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise DataError("is not valid JSON; export it again, as JSON") from None
    if not isinstance(tasks, list):
        raise DataError("is not a list of tasks; export it again, as JSON")
    for index, task in enumerate(tasks):
        yield Record(default_id(files, file, index), None, task)


def _parse_task(options: ReadOptions, name: str, task: Any) -> Document:
    """Return the document of a task, `name` its default id; DataError if a field is wrong."""
    return _document(convert(task, Task), name, options)


def _results(task: Task, options: ReadOptions) -> dict[str, AnnotationResult]:
    """Return {layer: annotation or prediction} of a task, in order; count cancelled ones as lost."""
    valid = [result for result in task.annotations if not result.was_cancelled]
    options.losses.add("cancelled annotations", len(task.annotations) - len(valid))
    found = {options.layer if n == 1 else f"annotation:{n}": result for n, result in enumerate(valid, start=1)}
    for number, result in enumerate(task.predictions, start=1):
        name = result.model_version or "predictions"
        found[name if name not in (*found, options.layer) else f"predictions:{number}"] = result
    return found


def _regions(result: AnnotationResult, losses: Losses) -> list[tuple[LabelItem, RegionValue]]:
    """Return the labelled regions of plain text; count other items, except relations, as lost; or DataError."""
    found = []
    for item in result.result:
        if item.type == "labels" and not isinstance(item.value.get("start"), str):
            found.append((item, convert(item.value, RegionValue)))
        elif item.type != "relation":
            losses.add("results that are not labels on plain text")
    return found


def _text_key(data: Mapping[str, Any], items: Sequence[LabelItem]) -> str:
    """Return the field the first region names, else "text", else the only string; DataError with none or several."""
    texts = [key for key, value in data.items() if isinstance(value, str)]
    for key in (*(item.to_name for item in items[:1]), "text"):
        if key in texts:
            return key
    if len(texts) != 1:
        raise DataError(
            f'"data" has {len(texts)} fields of text and none is called text; rename the one to read to text'
        )
    return texts[0]


def _offset_counter(text: str, regions: Sequence[RegionValue]) -> Callable[[int], int]:
    """Return a function from offset to code point: the same if all regions fit so, else from UTF-16; or DataError."""
    units = np.zeros(1, np.int64)  # how many units there are before each character

    def of_units(offset: int) -> int:
        """Return the code point at an offset of UTF-16 units; -1 if it is inside a character."""
        index = int(np.searchsorted(units, offset))
        return index if index < len(units) and units[index] == offset else -1

    if all(_fits(text, region.start, region.end, region.text) for region in regions):
        return int
    units = np.concatenate([units, np.cumsum([1 + (c > "\uffff") for c in text])])
    if all(_fits(text, of_units(region.start), of_units(region.end), region.text) for region in regions):
        return of_units
    raise DataError("a region lies outside the text, or its offsets do not match its text; export the task again")


def _fits(text: str, start: int, end: int, wanted: str | None) -> bool:
    """Tell whether [start, end) is inside the text and, white space apart, equal to the wanted text."""
    # The browser changes line ends and blanks in the text it copies, so those are not compared.
    inside = 0 <= start < end <= len(text)
    return inside and (wanted is None or "".join(text[start:end].split()) == "".join(wanted.split()))


def _relations(items: Iterable[LabelItem], regions: Mapping[str, Sequence[Span]], losses: Losses) -> Iterator[Relation]:
    """Yield relations between the first spans of labelled regions, one per label; count the others as lost."""
    for item in items:
        if item.type != "relation":
            continue
        ends = [regions.get(item.from_id), regions.get(item.to_id)]
        if item.direction == "left":
            ends.reverse()
        if not ends[0] or not ends[1]:
            losses.add("relations of regions that are not labels on plain text")
            continue
        losses.add("directions of relations", item.direction == "bi")
        arguments = tuple(Argument(role, (spans[0],)) for role, spans in zip(ROLES, ends, strict=True) if spans)
        for label in item.labels or [""]:
            yield Relation(label, arguments)


def _task(doc: Document, number: int, options: WriteOptions) -> dict[str, Any]:
    """Return a document as a task; gold and "annotation:n" layers are annotations, others predictions; count losses."""
    options.drop(doc, "soft", "given")
    gold = options.layer or "gold"
    options.losses.add("names of layers", gold != "gold" and gold in doc.layers)
    layers = {name: [name, spans] for name, spans in doc.layers.items()}
    by_layer = _relations_by_layer(doc, options.losses)
    annotations: list[dict[str, Any]] = []
    while (name := gold if not annotations else f"annotation:{len(annotations) + 1}") in layers:
        del layers[name]
        annotations.append({"result": _items(doc, name, by_layer[name], options.losses)})
    predictions = []
    for name in layers:
        version = {} if name == "predictions" else {"model_version": name}
        predictions.append({**version, "result": _items(doc, name, by_layer[name], options.losses)})
        options.losses.add("names of layers", not name or name == "gold")
    data = {"id": doc.id, "text": doc.text, **flat_fields(doc, _RESERVED, options.losses)}
    return {"id": number, "data": data, "annotations": annotations, "predictions": predictions}


def _relations_by_layer(doc: Document, losses: Losses) -> dict[str, list[Relation]]:
    """Return {layer: relations}, each at the first layer with all its mentions; count the others as lost."""
    by_layer: dict[str, list[Relation]] = {name: [] for name in doc.layers}
    layer_spans = {name: {astuple(span) for span in spans} for name, spans in doc.layers.items()}
    for relation in doc.relations:
        mentions = {astuple(span) for argument in relation.arguments for span in argument.spans}
        layer = next((name for name, spans in layer_spans.items() if mentions <= spans), None)
        if layer is None:
            losses.add("relations")
        else:
            by_layer[layer].append(relation)
    return by_layer


def _items(doc: Document, name: str, relations: Sequence[Relation], losses: Losses) -> list[dict[str, Any]]:
    """Return a layer's spans and binary relations as items of a task's result; count what they cannot hold."""
    spans = doc.layers[name]
    WriteOptions(losses).drop_from_spans(spans, "source", "concept")
    found: list[dict[str, Any]] = []
    for index, span in enumerate(spans):
        value = {"start": span.start, "end": span.end, "text": doc.text[span.start : span.end], "labels": [span.label]}
        item = {"id": f"r{index}", "from_name": "label", "to_name": "text", "type": "labels", "value": value}
        found.append(item if span.score == 1.0 else {**item, "score": span.score})
    for relation, a, b in binary_relations(relations, spans, losses):
        ends = {"from_id": f"r{a}", "to_id": f"r{b}", "type": "relation", "direction": "right"}
        found.append({**ends, "labels": [relation.label] if relation.label else []})
    return found


LABELSTUDIO = LabelStudio()
FORMATS = (LABELSTUDIO,)
