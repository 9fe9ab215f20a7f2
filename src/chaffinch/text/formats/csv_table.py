"""CSV and TSV: one document per row, with a header.

The user names the columns of text, id and patient. Otherwise the text is in the one column called text, note,
note_text, report or content, the id in id, note_id, doc_id or row_id, the patient in group, patient, patient_id or
subject_id, in capitals or not. All other columns are meta fields, always
text, and are written back. Spans, if any, are JSON in a column "spans" (or "labels"): a list of objects with start,
end, label, or of [start, end, label]. Every character of a cell is kept, line ends and NUL included.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from chaffinch.errors import DataError
from chaffinch.text.columns import ColumnChoice
from chaffinch.text.document import Document
from chaffinch.text.formats._shared.columns import (
    ID_NAMES,
    PATIENT_NAMES,
    SAMPLE,
    TEXT_NAMES,
    ChosenColumns,
    choose_columns,
    choose_for_files,
)
from chaffinch.text.formats._shared.json_records import SpanItem, convert, default_id, span_record, spans_of, spool
from chaffinch.text.formats.base import (
    READ_ERRORS,
    Capabilities,
    Entry,
    Losses,
    ReadOptions,
    WriteOptions,
    decode,
    group_of_meta,
    read_error,
)
from chaffinch.text.formats.units import BOM, Unit, failing_unit, same_bytes

_SPAN_NAMES = ("spans", "labels")
FAMILY = "csv"  # the formats that keep the names of one another's columns
_NO_CHOICE = ColumnChoice()
_DELIMITERS = ",\t;"
_LONGEST_CELL = (1 << 31) - 1  # the largest limit that the csv module accepts on every platform


@dataclass(frozen=True, slots=True)
class Table:
    """A table format, written with one delimiter and read with comma, tab or semicolon."""

    name: str
    about: str
    delimiter: str
    suffixes: tuple[str, ...]
    folder: bool = False
    can: ClassVar[Capabilities] = Capabilities("row", 4, exact=True, columns=True, variants=((".tsv", "tsv"),))

    def recognises(self, entry: Entry, head: bytes) -> bool:
        """Tell whether a text column heads rows of equal width; with an unusual suffix, an id column is needed too."""
        if self.delimiter != ",":
            return False
        lines = [line + "\n" for line in head.decode("utf-8", "replace").removeprefix("\ufeff").split("\n")]
        delimiter = _delimiter(lines[0])
        if not delimiter:
            return False
        try:
            rows = [row for row in csv.reader(lines, delimiter=delimiter, strict=True) if row]
        except csv.Error:  # the head may end inside a quoted cell; the header is enough
            rows = [row for row in csv.reader(lines[:1], delimiter=delimiter) if row]
        names = [name.lower() for name in rows[0]]
        known = entry.suffix in self.suffixes or _index_of_first(ID_NAMES, names) is not None
        whole = rows[1:-1] if len(head) >= 65536 else rows[1:]
        return known and _index_of_first(TEXT_NAMES, names) is not None and all(len(row) == len(names) for row in whole)

    def units(self, files: Sequence[Entry], options: ReadOptions) -> Iterator[Unit]:
        """Yield a unit per row; errors name the line on which the row ends."""
        chosen = choose_for_files(files, partial(_choose, options.columns))
        for index, file in enumerate(files):
            yield from _row_units(file, chosen[index], partial(default_id, files), options)

    def write(self, documents: Iterable[Document], target: Path, options: WriteOptions) -> int:
        """Write a header of all columns used and a row per document; count losses; return the number of documents."""
        count = 0
        columns: dict[str, str] = {}  # in the order of their first use
        with spool(target.parent) as rows, target.open("w", encoding="utf-8", newline="") as stream:
            for doc in documents:
                row = _row(doc, options)
                columns |= dict.fromkeys(row, "")
                rows.add(row)
            writer = csv.writer(stream, delimiter=self.delimiter)
            columns = columns or {"id": "", "text": ""}
            writer.writerow(columns)
            for count, row in enumerate(rows, start=1):  # noqa: B007  (the last number is the answer)
                absent = [name for name in columns if name not in row and name not in ("group", "spans")]
                options.losses.add("that meta fields were absent (they come back empty)", len(absent))
                writer.writerow((columns | row).values())
        return count


def _index_of_first(wanted: Iterable[str], names: Sequence[str]) -> int | None:
    """Return the index in `names` of the first wanted name that is there, or None."""
    return next((names.index(name) for name in wanted if name in names), None)


def _delimiter(header: str, wanted: ColumnChoice = _NO_CHOICE) -> str:
    """Return the first delimiter that gives the header a usual text column, or one in `wanted`; "" if none."""
    texts = [name.strip().lower() for name in wanted.texts] or TEXT_NAMES
    for delimiter in _DELIMITERS:
        try:
            cells = next(csv.reader([header], delimiter=delimiter), [])
        except csv.Error:  # a bare carriage return, as in binary files: no header of ours
            continue
        if _index_of_first(texts, [cell.strip().lower() for cell in cells]) is not None:
            return delimiter
    return ""


@dataclass(frozen=True, slots=True)
class _RawRow:
    """The bytes of a row in its file, and the line on which it ends."""

    line: int
    content: bytes

    def cells(self, delimiter: str, where: str) -> list[str]:
        """Split the row into cells; raise DataError if it is not valid CSV or UTF-8."""
        text = decode(self.content, where, self.line)
        try:
            return next(_reader([text], delimiter), [])
        except csv.Error:
            raise _invalid(where, self.line) from None


@dataclass(frozen=True, slots=True)
class _Header:
    """The first row of a file, the file's path for messages, the delimiter of its rows, and what its columns are."""

    row: _RawRow
    where: str
    delimiter: str
    chosen: ChosenColumns | str  # or why no columns could be chosen


def _choose(wanted: ColumnChoice, file: Entry) -> ChosenColumns:
    """Return a file's columns, by header and first rows; ConfigError if unsure, DataError if no row can be read."""
    sample: list[list[str]] = []
    try:
        for row, delimiter in islice(_split_rows(file, wanted), SAMPLE + 1):
            sample.append(row.cells(delimiter, file.where))
    except DataError:
        if not sample:
            raise
    names = sample[0] if sample else []
    rows = [dict(zip(names, cells, strict=False)) for cells in sample[1:]]
    known = {*TEXT_NAMES, *ID_NAMES, *PATIENT_NAMES, *_SPAN_NAMES}
    # Without a header, these cells are a document; they are shown only where one of them is surely a name.
    sure = any(name.strip().lower() in known for name in names)
    return choose_columns(names, rows, wanted, show=sure)


def _row_units(
    file: Entry, chosen: ChosenColumns | str, make_id: Callable[[Entry, int], str], options: ReadOptions
) -> Iterator[Unit]:
    """Yield a unit per row below the header, its id from `make_id`; a damaged file ends in a failing unit."""
    header: _Header | None = None
    index = 0
    try:
        for row, delimiter in _split_rows(file, options.columns):
            if header is None:
                header = _Header(row, file.where, delimiter, chosen)
                continue
            name = make_id(file, index)
            index += 1
            parse = partial(_parse_row, header, row.line, name, options)
            yield Unit(f"{file.name}:{index}", name, partial(same_bytes, row.content), parse)
    except DataError as error:
        yield failing_unit(f"{file.name}:{index + 1}", error, rest=True)
        return
    if not index:  # without rows, nothing else would report a fault of the header
        try:
            _columns(header or _Header(_RawRow(1, b""), file.where, ",", chosen))
        except DataError as error:
            yield failing_unit(f"{file.name}:1", error)


def _split_rows(file: Entry, wanted: ColumnChoice) -> Iterator[tuple[_RawRow, str]]:
    """Yield (raw row, the file's delimiter), header first, blank rows left out; DataError if unreadable.

    Bytes are read as Latin-1, which has the same quotes and delimiters, so that invalid UTF-8 spoils one row only.
    """
    taken: list[bytes] = []
    line = 0

    def lines(stream: Iterable[bytes]) -> Iterator[str]:
        """Yield the stream's lines as text for the CSV parser, and keep their bytes."""
        nonlocal line
        for line, raw in enumerate(stream, start=1):
            taken.append(raw.removeprefix(BOM) if line == 1 else raw)
            yield taken[-1].decode("latin-1")

    try:
        with file.open() as stream:
            texts = lines(stream)
            first = next((text for text in texts if text.strip("\r\n")), "")
            del taken[:-1]
            delimiter = _delimiter(first, wanted) or ","
            for row in _reader(chain([first], texts), delimiter):
                if row:
                    yield _RawRow(line, b"".join(taken)), delimiter
                taken.clear()
    except READ_ERRORS as error:
        raise read_error(file.where, error) from None
    except csv.Error:
        raise _invalid(file.where, line - len(taken) + 1) from None  # the line on which the row begins


def _reader(lines: Iterable[str], delimiter: str) -> Iterator[list[str]]:
    """Return a CSV reader of lines; lift the process's limit on cells, as texts that are too long are refused later."""
    csv.field_size_limit(_LONGEST_CELL)  # one limit for the process, set here only
    return csv.reader(lines, delimiter=delimiter, strict=True)


def _invalid(where: str, line: int) -> DataError:
    """Return (not raise) the DataError for a row that is not valid CSV."""
    message = 'is not valid CSV: a quote is open at the end, or is not doubled inside a cell; correct it ("")'
    return DataError(message, path=where, line=line)


@lru_cache(maxsize=16)
def _columns(header: _Header) -> tuple[list[str], ChosenColumns, str | None]:
    """Return all column names, the chosen ones, and the spans' column or None; DataError if unsure or repeated."""
    names = header.row.cells(header.delimiter, header.where)
    if isinstance(header.chosen, str):
        raise DataError(header.chosen, path=header.where, line=header.row.line)
    if len(set(names)) < len(names):
        message = "two columns have the same name; make the names differ"
        raise DataError(message, path=header.where, line=header.row.line)
    taken = (*header.chosen.texts, header.chosen.id)
    spans = _index_of_first(_SPAN_NAMES, ["" if name in taken else name.strip().lower() for name in names])
    return names, header.chosen, None if spans is None else names[spans]


def _parse_row(header: _Header, line: int, name: str, options: ReadOptions, content: bytes) -> Document:
    """Return the document of a row's bytes; raise DataError if its cells do not fit the header."""
    columns, chosen, spans = _columns(header)
    cells = _RawRow(line, content).cells(header.delimiter, header.where)
    if len(cells) != len(columns):
        message = f"{len(cells)} cells where the header has {len(columns)}; correct the row or its quotes"
        raise DataError(message, path=header.where, line=line)
    try:
        return _document(dict(zip(columns, cells, strict=True)), chosen, spans, name, options)
    except DataError as error:
        raise error.at(header.where, line) from None


def _document(
    row: Mapping[str, str], chosen: ChosenColumns, spans: str | None, number: str, options: ReadOptions
) -> Document:
    """Return the document of a row; `number` is its id without an id column; DataError for a bad cell of spans."""
    cell = row[spans] if spans is not None else ""
    listed = cell.lstrip().startswith("[")
    if cell and not listed and spans is not None and spans.strip().lower() == "spans":
        raise DataError('the column "spans" must hold a JSON list or nothing')
    taken = {*chosen.texts, chosen.id, spans if listed or not cell else None}
    meta = {name: value for name, value in row.items() if name not in taken and name.strip().lower() != "group"}
    text, columns = chosen.join(row, FAMILY, meta)
    return Document.make(
        text,
        id=row[chosen.id] if chosen.id is not None else number,
        group=_group(row) if options.columns.patient is None else row[str(chosen.patient)] or None,
        meta=meta,
        layers={options.layer: spans_of(convert(_json(cell), list[SpanItem]))} if listed else {},
        split=options.split,
        max_chars=options.max_chars,
        columns=columns,
    )


def _group(row: Mapping[str, Any]) -> str | None:
    """Return the patient in a row's column group, patient, patient_id or subject_id (in any case), or None."""
    return group_of_meta({name.strip().lower(): value for name, value in row.items()})


def _json(cell: str) -> Any:
    """Return the value of a cell of spans as JSON; DataError, without the cell's text, if it is no JSON."""
    try:
        return msgspec.json.decode(cell)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise DataError("the cell with the spans is not valid JSON") from None


def _row(doc: Document, options: WriteOptions) -> dict[str, str]:
    """Return a document as a CSV row under its own column names if it has them; count what it cannot hold."""
    options.drop(doc, "soft", "relations", "given")
    columns = options.columns_of(doc, FAMILY)
    name, texts = (None, {"text": doc.text}) if columns is None else (columns.id, columns.cut(doc.text))
    group = "group" if columns is None else columns.patient or "group"
    reserved = {(name or "id").strip().lower(), "group", *_SPAN_NAMES, *(text.strip().lower() for text in texts)}
    row = {name or "id": doc.id, **texts, **_meta_cells(doc, reserved, options.losses)}
    if group in row and row[group] != doc.group:
        group = "group"
    if doc.group is not None and (group != "group" or _group(row) != doc.group):
        row[group] = doc.group
    options.losses.add("groups (patients)", _group(row) != doc.group and (group == "group" or doc.group is None))
    if doc.layers:
        row["spans"] = msgspec.json.encode([span_record(span) for span in options.spans(doc)]).decode()
    return row


def _meta_cells(doc: Document, reserved: Collection[str], losses: Losses) -> dict[str, str]:
    """Return meta fields as cells, values other than text as JSON; count those and reserved names as lost."""
    cells = {}
    for name, value in doc.meta.items():
        if name.strip().lower() in reserved:
            losses.add("meta fields")
            continue
        losses.add("types of meta fields (they come back as text)", not isinstance(value, str))
        cells[name] = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return cells


CSV = Table("csv", "a table with a column of texts, comma-separated", ",", (".csv", ".tsv"))
TSV = Table("tsv", "a table with a column of texts, tab-separated", "\t", (".tsv", ".csv"))
FORMATS = (CSV, TSV)
