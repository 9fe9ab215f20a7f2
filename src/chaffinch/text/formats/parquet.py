"""Parquet: one document per row, everything kept; read and written in batches of rows.

Files of Chaffinch have the columns id, text, group, layers (a map from layer names to lists of structs), tokens and
sentences (null unless given), and JSON in meta, relations and soft. A file from elsewhere needs a text column, called
as in CSV, or "tokens" that are words, as Hugging Face datasets have; its "spans" or "entities" are read where they
are structs of start, end and label; all other columns are meta fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

import msgspec

from chaffinch.errors import DataError, MissingExtraError
from chaffinch.text.columns import BETWEEN, ColumnChoice
from chaffinch.text.document import Document
from chaffinch.text.formats import hf, jsonl
from chaffinch.text.formats._shared.columns import (
    SAMPLE,
    TEXT_NAMES,
    ChosenColumns,
    choose_columns,
    choose_for_files,
)
from chaffinch.text.formats._shared.json_records import default_id, note_numbers, spool
from chaffinch.text.formats.base import READ_ERRORS, Capabilities, Entry, ReadOptions, WriteOptions, group_of_meta
from chaffinch.text.formats.units import Record, Unit, record_units

_Kind: TypeAlias = Literal["native", "other", "tokens"]  # of a file: written by us, with a text column, with words

_JSON = ("meta", "relations", "soft")
_SPANS = ("spans", "entities")
# A row group ends at either limit; raised, writing needs more memory.
_ROWS = 1000
_CHARS = 1 << 24  # of text


@dataclass(frozen=True, slots=True)
class Parquet:
    """The Parquet format; needs pyarrow, the extra `parquet`."""

    name: str = "parquet"
    about: str = "Parquet with one document per row; keeps everything"
    folder: bool = False
    suffixes: tuple[str, ...] = (".parquet", ".pq")
    can: ClassVar[Capabilities] = Capabilities(
        "record",
        exact=True,
        columns=True,
        layers="many",
        span_sources=True,
        votes=True,
        vote_links=True,
        soft=True,
        names_tags=True,
    )

    def recognises(self, entry: Entry, head: bytes) -> bool:
        """Tell whether a file begins with the four bytes of every Parquet file."""
        return head.startswith(b"PAR1")

    def units(self, files: Sequence[Entry], options: ReadOptions) -> Iterator[Unit]:
        """Yield a unit per row; the line in errors is the number of the row, counted from 1."""
        chosen = choose_for_files(files, partial(_choose, options.columns))
        for index, file in enumerate(files):
            records = _records(file, files, chosen[index])
            yield from record_units(file, records, partial(_document, options, chosen[index]))

    def write(self, documents: Iterable[Document], target: Path, options: WriteOptions) -> int:
        """Write in row groups, by the first document's columns if it has them; count losses; return how many documents.

        MissingExtraError without pyarrow, DataError if only some documents have columns.
        """
        pa, pq = _pyarrow()
        documents = iter(documents)
        first = next(documents, None)
        if first is not None:
            documents = chain([first], documents)
            if options.columns_of(first, self.name) is not None:
                return _write_columns(documents, target, options)
        schema = _schema()
        count = 0
        with pq.ParquetWriter(target, schema, compression="zstd") as writer:
            for rows in _batches(documents, options):
                writer.write_table(pa.Table.from_pylist(rows, schema=schema))
                count += len(rows)
        return count


def _pyarrow() -> tuple[Any, Any]:
    """Import pyarrow, and return it and its Parquet module; raise MissingExtraError without it."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtraError("pyarrow", "parquet") from None
    return pa, pq


def _schema() -> Any:
    """Return the Arrow schema of our own Parquet files; MissingExtraError without pyarrow."""
    pa, _ = _pyarrow()
    place = [("start", pa.int64()), ("end", pa.int64())]
    texts = [(name, pa.string()) for name in ("source", "concept")]
    span = pa.struct([*place, ("label", pa.string()), ("score", pa.float64()), *texts])
    places = pa.list_(pa.struct(place))
    return pa.schema(
        [
            *[(name, pa.string()) for name in ("id", "text", "group")],
            ("layers", pa.map_(pa.string(), pa.list_(span))),
            ("tokens", places),
            ("sentences", places),
            *[(name, pa.string()) for name in _JSON],
        ]
    )


def _batches(documents: Iterable[Document], options: WriteOptions) -> Iterator[list[dict[str, Any]]]:
    """Yield documents' rows in lists of at most `_ROWS` rows and about `_CHARS` characters; count lost numbers."""
    rows: list[dict[str, Any]] = []
    size = 0
    for doc in documents:
        note_numbers(doc, options.losses)
        rows.append(_row(doc))
        size += len(doc.text)
        if len(rows) == _ROWS or size >= _CHARS:
            yield rows
            rows, size = [], 0
    if rows:
        yield rows


def _row(doc: Document) -> dict[str, Any]:
    """Return the row of a document: its JSON object, with JSON text for meta, relations and soft labels."""
    record = jsonl.record_of(doc)
    row: dict[str, Any] = {name: record.get(name) for name in ("id", "text", "group")}
    full = {"score": 1.0, "source": "", "concept": ""}
    row["layers"] = [(name, [full | span for span in spans]) for name, spans in record["layers"].items()]
    for name in ("tokens", "sentences"):
        row[name] = [{"start": a, "end": b} for a, b in record[name]] if doc.given else None
    for name in _JSON:
        row[name] = msgspec.json.encode(record[name]).decode() if name in record else None
    return row


def _write_columns(documents: Iterable[Document], target: Path, options: WriteOptions) -> int:
    """Write documents under their columns' names; count losses; return how many; DataError if one has no columns.

    Meta fields become typed columns.
    """
    pa, pq = _pyarrow()
    kinds: dict[str, set[type]] = {}
    with spool(target.parent) as rows:
        count = 0
        for count, doc in enumerate(documents, start=1):  # noqa: B007  (the last number is the answer)
            note_numbers(doc, options.losses)
            row = _row_by_columns(doc, options)
            for name, value in row.items():
                kinds.setdefault(name, set()).add(type(value))
            rows.add(row)
        schema = pa.schema([(name, _column_type(pa, kind)) for name, kind in kinds.items()])
        with pq.ParquetWriter(target, schema, compression="zstd") as writer:
            stored = iter(rows)
            while batch := list(islice(stored, _ROWS)):
                full = [{name: _cell(row.get(name), schema.field(name).type, pa) for name in kinds} for row in batch]
                writer.write_table(pa.Table.from_pylist(full, schema=schema))
    return count


def _row_by_columns(doc: Document, options: WriteOptions) -> dict[str, Any]:
    """Return a document's row under the names of its columns; count losses; DataError if it has no columns."""
    columns = options.columns_of(doc, PARQUET.name)
    if columns is None:
        raise DataError("documents with columns and without cannot be written to one file; write two files")
    row: dict[str, Any] = {columns.id or "id": doc.id, **columns.cut(doc.text)}
    taken = {*row, "spans"}
    options.losses.add("meta fields", len(taken & doc.meta.keys()))
    row |= {name: value for name, value in doc.meta.items() if name not in taken}
    if doc.group is not None:
        row[columns.patient or "group"] = doc.group
    options.drop(doc, "soft", "relations", "given")
    if doc.layers:
        spans = options.spans(doc)
        options.drop_from_spans(spans, "score", "source", "concept")
        row["spans"] = [{"start": span.start, "end": span.end, "label": span.label} for span in spans]
    return row


def _column_type(pa: Any, kinds: set[type]) -> Any:
    """Return the Arrow type of a column by those of its values; mixed types and objects are text, lists are spans."""
    found = kinds - {type(None)}
    if found == {list}:
        return pa.list_(pa.struct([("start", pa.int64()), ("end", pa.int64()), ("label", pa.string())]))
    plain = {bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
    if found <= {int, float} and found:
        return plain[float if float in found else int]
    return plain[bool] if found == {bool} else pa.string()


def _cell(value: Any, kind: Any, pa: Any) -> Any:
    """Return a value for a column of this type; in a column of text, other values become JSON."""
    return value if value is None or not pa.types.is_string(kind) or isinstance(value, str) else _to_json(value)


def _to_json(value: Any) -> str:
    """Return a value as JSON text."""
    return msgspec.json.encode(value).decode()


def _choose(wanted: ColumnChoice, file: Entry) -> ChosenColumns:
    """Return a file's columns by its schema and first rows; fixed ones for our own files; ConfigError if unsure."""
    ours = ChosenColumns(("text",), "id", "group")
    kind, names, rows = _look(file)
    return ours if kind != "other" and not wanted else choose_columns(names, rows, wanted)


def _look(file: Entry) -> tuple[_Kind, list[str], list[dict[str, Any]]]:
    """Return a file's kind (ours, tokens or other), column names and first rows; DataError if it is damaged."""
    pa, pq = _pyarrow()
    try:
        with file.open() as stream:
            table = pq.ParquetFile(stream)
            schema, batch = table.schema_arrow, next(table.iter_batches(batch_size=SAMPLE), None)
            return _kind_of(pa, schema), schema.names, [] if batch is None else batch.to_pylist()
    except (pa.ArrowException, *READ_ERRORS):
        raise DataError("is not a Parquet file, or is damaged; check how it was made", path=file.where) from None


def _records(
    file: Entry, files: Sequence[Entry], chosen: ChosenColumns | str
) -> Iterator[Record[tuple[_Kind, dict[str, Any]]]]:
    """Yield every row with its file's kind; DataError if columns could not be chosen or the file is damaged."""
    pa, pq = _pyarrow()
    if isinstance(chosen, str):
        raise DataError(chosen, path=file.where)
    try:
        with file.open() as stream:
            table = pq.ParquetFile(stream)
            kind = _kind_of(pa, table.schema_arrow)
            index = 0
            for batch in table.iter_batches(batch_size=64):
                for row in batch.to_pylist():
                    yield Record(default_id(files, file, index), index + 1, (kind, row))
                    index += 1
    except (pa.ArrowException, *READ_ERRORS):
        raise DataError("is not a Parquet file, or is damaged; check how it was made", path=file.where) from None


def _document(
    options: ReadOptions, chosen: ChosenColumns | str, name: str, value: tuple[_Kind, dict[str, Any]]
) -> Document:
    """Return the document of a row by its file's kind and chosen columns; DataError if a text is no string."""
    kind, row = value
    plain = replace(options, columns=ColumnChoice())
    if isinstance(chosen, ChosenColumns) and (kind == "other" or options.columns):
        record = _other_record(row, chosen, options.columns)
        doc = jsonl.document_of(record, name, plain)
        try:
            return replace(doc, columns=chosen.join(row, PARQUET.name, doc.meta)[1])
        except TypeError:
            raise DataError("a text column holds something else than text; name the right one") from None
    if kind == "tokens":
        return hf.document_of(row, name, options)
    return jsonl.document_of(_native_record(row), name, plain)


def _kind_of(pa: Any, schema: Any) -> _Kind:
    """Return "native" with a map of layers, "tokens" with a list of strings and no text column, else "other"."""
    names = [name.lower() for name in schema.names]
    if "layers" in schema.names and pa.types.is_map(schema.field("layers").type):
        return "native"
    if any(name in names for name in TEXT_NAMES):
        return "other"
    listed = "tokens" in schema.names and pa.types.is_list(schema.field("tokens").type)
    return "tokens" if listed and pa.types.is_string(schema.field("tokens").type.value_type) else "other"


def _native_record(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON object of a row that Chaffinch wrote; DataError if a cell that must be JSON is not."""
    record = {name: row.get(name) for name in ("id", "text", "group")}
    record["layers"] = dict(row["layers"] or ())
    for name in ("tokens", "sentences"):
        if row.get(name) is not None:
            record[name] = [(place["start"], place["end"]) for place in row[name]]
    for name in _JSON:
        if row.get(name) is not None:
            record[name] = _json(name, row[name])
    return record


def _json(name: str, cell: Any) -> Any:
    """Return the value of a cell of JSON text; DataError, which names the column, if it is not JSON."""
    try:
        return msgspec.json.decode(cell)
    except (msgspec.DecodeError, UnicodeError, RecursionError, TypeError):
        raise DataError(
            f'the column "{name}" does not hold JSON; only files of Chaffinch have a map in "layers"'
        ) from None


def _other_record(row: Mapping[str, Any], chosen: ChosenColumns, wanted: ColumnChoice) -> dict[str, Any]:
    """Return the JSON object of a row that another program wrote: text, group, id, spans, other columns as meta."""
    columns = {column.lower(): column for column in reversed(list(row))}
    spans = next((columns[name] for name in _SPANS if name in columns and _are_spans(row[columns[name]])), None)
    taken = (*chosen.texts, chosen.id, spans, columns.get("group"), wanted.patient and chosen.patient)
    texts = [row[name] for name in chosen.texts]
    patient = row[str(chosen.patient)] if wanted.patient is not None else None
    record: dict[str, Any] = {
        "text": texts[0] if len(texts) == 1 else BETWEEN.join("" if text is None else str(text) for text in texts),
        "group": group_of_meta({lower: row[column] for lower, column in columns.items()})
        if wanted.patient is None
        else None
        if patient in (None, "")
        else str(patient),
        "meta": {key: msgspec.to_builtins(value) for key, value in row.items() if key not in taken},
    }
    if chosen.id is not None:
        record["id"] = row[chosen.id]
    if spans is not None:
        record["spans"] = [{key: value for key, value in item.items() if value is not None} for item in row[spans]]
    return record


def _are_spans(value: Any) -> bool:
    """Tell whether a value is a list (perhaps empty) of objects with start, end and label."""
    wanted = {"start", "end", "label"}
    return isinstance(value, list) and all(isinstance(item, dict) and wanted <= item.keys() for item in value)


PARQUET = Parquet()
FORMATS = (PARQUET,)
