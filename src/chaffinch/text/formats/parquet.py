"""Parquet: one document per row, everything kept; read and written in batches of rows.

Files of Chaffinch have the columns id, text, group, layers (a map from layer names to lists of structs), tokens and
sentences (null unless given), and JSON in meta, relations and soft. A file from elsewhere needs a text column, called
as in CSV, or "tokens" that are words, as Hugging Face datasets have; its "spans" or "entities" are read where they
are structs of start, end and label; all other columns are meta fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

import msgspec

from chaffinch.errors import DataError, MissingExtraError
from chaffinch.text.document import Document
from chaffinch.text.formats import hf, jsonl
from chaffinch.text.formats._shared.json_records import default_id, note_numbers
from chaffinch.text.formats.base import READ_ERRORS, Capabilities, Entry, ReadOptions, WriteOptions, group_of_meta
from chaffinch.text.formats.csv_table import ID_NAMES, TEXT_NAMES
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
        "record", exact=True, layers="many", span_sources=True, votes=True, vote_links=True, soft=True, names_tags=True
    )

    def recognises(self, entry: Entry, head: bytes) -> bool:
        """Recognise the four bytes with which every Parquet file begins."""
        return head.startswith(b"PAR1")

    def units(self, files: Sequence[Entry], options: ReadOptions) -> Iterator[Unit]:
        """Yield one document per row; the line in errors is the number of the row, counted from 1."""
        for file in files:
            yield from record_units(file, _records(file, files), partial(_document, options))

    def write(self, documents: Iterable[Document], target: Path, options: WriteOptions) -> int:
        """Write row groups of at most `_ROWS` documents and about `_CHARS` characters."""
        pa, pq = _pyarrow()
        schema = _schema()
        count = 0
        with pq.ParquetWriter(target, schema, compression="zstd") as writer:
            for rows in _batches(documents, options):
                writer.write_table(pa.Table.from_pylist(rows, schema=schema))
                count += len(rows)
        return count


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtraError("pyarrow", "parquet") from None
    return pa, pq


def _schema() -> Any:
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


def _records(file: Entry, files: Sequence[Entry]) -> Iterator[Record[tuple[_Kind, dict[str, Any]]]]:
    """Yield every row, with the kind of its file."""
    pa, pq = _pyarrow()
    try:
        with file.open() as stream:
            table = pq.ParquetFile(stream)
            schema = table.schema_arrow
            native = "layers" in schema.names and pa.types.is_map(schema.field("layers").type)
            kind: _Kind = "tokens" if _words_only(pa, schema) else "native" if native else "other"
            index = 0
            for batch in table.iter_batches(batch_size=64):
                for row in batch.to_pylist():
                    yield Record(default_id(files, file, index), index + 1, (kind, row))
                    index += 1
    except (pa.ArrowException, *READ_ERRORS):
        raise DataError("is not a Parquet file, or is damaged; check how it was made", path=file.where) from None


def _document(options: ReadOptions, name: str, value: tuple[_Kind, dict[str, Any]]) -> Document:
    """Return the document of a row, by way of the equivalent JSON object."""
    kind, row = value
    if kind == "tokens":
        return hf.document_of(row, name, options)
    return jsonl.document_of(_native_record(row) if kind == "native" else _other_record(row), name, options)


def _words_only(pa: Any, schema: Any) -> bool:
    """Tell whether a file has a list of words instead of a text column; DataError if it has neither."""
    names = [name.lower() for name in schema.names]
    if any(name in names for name in TEXT_NAMES):
        return False
    listed = "tokens" in schema.names and pa.types.is_list(schema.field("tokens").type)
    if not listed or not pa.types.is_string(schema.field("tokens").type.value_type):
        found = ", ".join(repr(name) for name in schema.names)
        raise DataError(f"no column is called {', '.join(TEXT_NAMES)}; there is {found}; rename the one with the text")
    return True


def _native_record(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON object of a row that Chaffinch wrote."""
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
    try:
        return msgspec.json.decode(cell)
    except (msgspec.DecodeError, UnicodeError, RecursionError, TypeError):
        raise DataError(
            f'the column "{name}" does not hold JSON; only files of Chaffinch have a map in "layers"'
        ) from None


def _other_record(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON object of a row that another program wrote, with its other columns as meta fields."""
    columns = {column.lower(): column for column in reversed(list(row))}
    text = next(columns[name] for name in TEXT_NAMES if name in columns)
    name = next((columns[name] for name in ID_NAMES if name in columns), None)
    spans = next((columns[name] for name in _SPANS if name in columns and _are_spans(row[columns[name]])), None)
    taken = (text, name, spans, columns.get("group"))
    record: dict[str, Any] = {
        "text": row[text],
        "group": group_of_meta({lower: row[column] for lower, column in columns.items()}),
        "meta": {key: msgspec.to_builtins(value) for key, value in row.items() if key not in taken},
    }
    if name is not None:
        record["id"] = row[name]
    if spans is not None:
        record["spans"] = [{key: value for key, value in item.items() if value is not None} for item in row[spans]]
    return record


def _are_spans(value: Any) -> bool:
    wanted = {"start", "end", "label"}
    return isinstance(value, list) and all(isinstance(item, dict) and wanted <= item.keys() for item in value)


PARQUET = Parquet()
FORMATS = (PARQUET,)
