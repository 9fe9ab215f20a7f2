"""JSON records, shared by several formats: lines of objects, checked types, spans, and flat meta fields."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import msgspec

from chaffinch.errors import DataError
from chaffinch.text.document import Document
from chaffinch.text.formats.base import Entry, Losses, group_of_meta
from chaffinch.text.formats.units import Unit, line_units
from chaffinch.text.span import Span

T = TypeVar("T")

_WHOLE_LINE = 1 << 26  # a first line longer than this many bytes (64 MiB) is not recognised; bounds memory
_GROUP_NAMES = ("group", "patient", "patient_id", "subject_id")


class SpanRecord(msgspec.Struct):
    """A span as a JSON object."""

    start: int
    end: int
    label: str
    score: float = 1.0
    source: str = ""
    concept: str = ""


SpanItem: TypeAlias = SpanRecord | tuple[int, int, str]  # an object, or [start, end, label]


def records(file: Entry) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, JSON object) of each line that is not blank; DataError for a line that is no object."""
    for number, line in file.lines():
        if line.strip():
            yield number, parse_object(line, file.where, number)


def object_units(files: Sequence[Entry], make: Callable[[dict[str, Any], str], Document]) -> Iterator[Unit]:
    """Yield a unit per line that is not blank; reading it calls `make` with the JSON object and a default id."""
    return line_units(files, partial(_parse_object_line, make), make_id=partial(default_id, files))


def _parse_object_line(
    make: Callable[[dict[str, Any], str], Document], line: str, where: str, number: int, name: str
) -> Document:
    """Return the document that `make` returns for the JSON object on a line; DataError if it has none."""
    return make(parse_object(line, where, number), name)


def write_lines(documents: Iterable[Document], target: Path, record: Callable[[Document], dict[str, Any]]) -> int:
    """Write the JSON object that `record` returns for each document to a line of a file; return how many documents."""
    encoder = msgspec.json.Encoder()
    count = 0
    with target.open("wb") as stream:
        for count, doc in enumerate(documents, start=1):  # noqa: B007  (the last number is the answer)
            stream.write(encoder.encode(record(doc)) + b"\n")
    return count


def parse_object(line: str | bytes, where: str, number: int | None = None) -> dict[str, Any]:
    """Return the JSON object in a text; DataError with path and line if it is broken or no object."""
    what = "each line must be one object" if number is not None else "the file must be one JSON value"
    try:
        record = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise DataError(f"is not valid JSON; {what}", path=where, line=number) from None
    if not isinstance(record, dict):
        raise DataError(f"holds a JSON {type(record).__name__}, not an object", path=where, line=number)
    return record


def first_object(entry: Entry, head: bytes) -> dict[str, Any] | None:
    """Return the JSON object on a file's first line, None if it has none; `head` is the beginning of the file."""
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not start.startswith(b"{"):
        return None
    if b"\n" not in start:
        start = entry.head(_WHOLE_LINE).removeprefix(b"\xef\xbb\xbf").lstrip()
    try:
        record = msgspec.json.decode(start.split(b"\n", 1)[0])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def convert(value: Any, kind: type[T]) -> T:
    """Return a value converted to that type; DataError with the field and the types, never the value."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise DataError(f"{error}; correct that field") from None


def spans_of(items: Iterable[SpanItem]) -> list[Span]:
    """Return the spans of JSON items after `convert`: `SpanRecord` objects, or tuples of start, end, label."""
    return [
        Span(*item)
        if isinstance(item, tuple)
        else Span(*(getattr(item, name) for name in SpanRecord.__struct_fields__))
        for item in items
    ]


def span_record(span: Span) -> dict[str, Any]:
    """Return a span as a JSON object; score, source and concept only if they differ from the default."""
    record: dict[str, Any] = {"start": span.start, "end": span.end, "label": span.label}
    for key, value, empty in (("score", span.score, 1.0), ("source", span.source, ""), ("concept", span.concept, "")):
        if value != empty:
            record[key] = value
    return record


def id_of(record: Mapping[str, Any], otherwise: str) -> str:
    """Return the record's id as text, or `otherwise` if it has none; DataError if it is no text or number."""
    name = convert(record.get("id"), str | int | None)  # type: ignore[arg-type]  # a union is a type to msgspec
    return otherwise if name is None else str(name)


def group_of(record: Mapping[str, Any]) -> str | None:
    """Return the patient in the first filled field for it, else None; DataError unless it is text or a number."""
    for name in _GROUP_NAMES:
        if not isinstance(record.get(name), str | int | float | None):
            raise DataError(f'"{name}" is a JSON {type(record[name]).__name__}; the patient must be text or a number')
    return group_of_meta(record)


def meta_of(record: Mapping[str, Any], reserved: Collection[str | None]) -> dict[str, Any]:
    """Return the meta fields of a flat record: those that are neither `reserved` by the format nor "group"."""
    return {name: value for name, value in record.items() if name not in reserved and name != "group"}


def flat_fields(doc: Document, reserved: Collection[str | None], losses: Losses) -> dict[str, Any]:
    """Return group and meta as fields of a flat record; count as lost what clashes with the `reserved` fields."""
    fields = meta_of(doc.meta, reserved)
    note_numbers(doc, losses)
    losses.add("meta fields", len(doc.meta) - len(fields))
    if doc.group is not None and group_of_meta(fields) != doc.group:
        fields["group"] = doc.group
    losses.add("groups (patients)", group_of_meta(fields) != doc.group)
    return fields


def note_numbers(doc: Document, losses: Losses) -> None:
    """Count as lost the numbers in a document's meta that JSON cannot hold (infinite or NaN)."""
    losses.add("numbers that are not finite (they come back as null)", _count_not_finite(doc.meta))


def _count_not_finite(value: object) -> int:
    """Return how many numbers in a nested value are infinite or NaN."""
    if isinstance(value, Mapping):
        return sum(map(_count_not_finite, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(_count_not_finite, value))
    return isinstance(value, float) and not math.isfinite(value)


def default_id(files: Sequence[Entry], file: Entry, number: int) -> str:
    """Return the id of a record without one: its number in the file, after the file's stem if there are more files."""
    return str(number) if len(files) == 1 else f"{file.stem}-{number}"


class Spool:
    """Records kept in an unnamed temporary file until all are known; can be iterated in order, many times."""

    def __init__(self, folder: Path) -> None:
        """Open a temporary file in the folder, which has no name and disappears when closed."""
        self._stream = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  (closed by `spool`)
        self._encoder = msgspec.json.Encoder()

    def add(self, record: Any) -> None:
        """Append a record to the temporary file, as JSON."""
        self._stream.write(self._encoder.encode(record) + b"\n")

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the records from the first one on."""
        self._stream.seek(0)
        return map(msgspec.json.decode, self._stream)

    def close(self) -> None:
        """Close the file, which also removes it from the disk."""
        self._stream.close()


@contextmanager
def spool(folder: Path) -> Iterator[Spool]:
    """Yield a spool of records on disk, removed at the end, for formats whose first line needs all documents."""
    records = Spool(folder)
    try:
        yield records
    finally:
        records.close()
