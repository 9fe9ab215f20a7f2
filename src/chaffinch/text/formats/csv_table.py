"""CSV and TSV: one document per row, with a header.

The text is in a column called text, note, note_text, report or content, the id in id, note_id, doc_id or row_id, the
patient in group, patient, patient_id or subject_id, in capitals or not. All other columns are meta fields, always
text, and are written back. Spans, if any, are JSON in a column "spans" (or "labels"): a list of objects with start,
end, label, or of [start, end, label]. Every character of a cell is kept, line ends and NUL included.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from chaffinch.errors import DataError, LimitError
from chaffinch.text.document import Document
from chaffinch.text.formats._shared.json_records import SpanItem, numbered, span_record, spans_of, spool, typed
from chaffinch.text.formats.base import (
    UNREADABLE,
    Entry,
    Losses,
    ReadOptions,
    Writing,
    decode,
    group_of_meta,
    unreadable,
)

TEXT_NAMES = ("text", "note", "note_text", "report", "content")
ID_NAMES = ("id", "note_id", "doc_id", "row_id")
_SPAN_NAMES = ("spans", "labels")
_OWN = ("id", "text", "group", *_SPAN_NAMES)
_DELIMITERS = ",\t;"
_LONGEST_CELL = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Table:
    """The format itself, written with one delimiter; read with comma, tab or semicolon."""

    name: str
    about: str
    delimiter: str
    suffixes: tuple[str, ...]
    folder: bool = False

    def recognises(self, entry: Entry, head: bytes) -> bool:
        """A header with a text column, and rows as wide as it; a file of another suffix needs an id column too."""
        if self.delimiter != ",":
            return False
        lines = [line + "\n" for line in head.decode("utf-8", "replace").removeprefix("\ufeff").split("\n")]
        delimiter = _delimiter(lines[0])
        if not delimiter:
            return False
        try:
            rows = [row for row in csv.reader(lines, delimiter=delimiter, strict=True) if row]
        except csv.Error:  # the head may end inside a quoted cell; the rows before tell enough
            rows = [row for row in csv.reader(lines[:1], delimiter=delimiter) if row]
        names = [name.lower() for name in rows[0]]
        known = entry.suffix in self.suffixes or _first(ID_NAMES, names) is not None
        whole = rows[1:-1] if len(head) >= 65536 else rows[1:]
        return known and _first(TEXT_NAMES, names) is not None and all(len(row) == len(names) for row in whole)

    def read(self, files: Sequence[Entry], how: ReadOptions) -> Iterator[Document]:
        """One document per row; errors name the line on which the row ends."""
        for file in files:
            rows = _rows(file, how.max_chars)
            line, header = next(rows, (1, []))
            places = _places(header, file, line)
            for index, (line, row) in enumerate(rows):
                if len(row) != len(header):
                    message = f"{len(row)} cells where the header has {len(header)}; mend the row or its quotes"
                    raise DataError(message, path=file.where, line=line)
                try:
                    yield _document(dict(zip(header, row, strict=True)), places, numbered(files, file, index), how)
                except DataError as error:
                    raise error.at(file.where, line) from None

    def write(self, documents: Iterable[Document], target: Path, how: Writing) -> int:
        """A header and one row per document; the columns are those that any document needs."""
        count = 0
        columns = {"id": "", "text": ""}  # kept in the order of their first use
        with spool(target.parent) as rows, target.open("w", encoding="utf-8", newline="") as stream:
            for doc in documents:
                row = _row(doc, how)
                columns |= dict.fromkeys(row, "")
                rows.add(row)
            writer = csv.writer(stream, delimiter=self.delimiter)
            writer.writerow(columns)
            for count, row in enumerate(rows, start=1):  # noqa: B007  (the last number is the answer)
                absent = [name for name in columns if name not in row and name not in ("group", "spans")]
                how.losses.add("that meta fields were absent (they come back empty)", len(absent))
                writer.writerow((columns | row).values())
        return count


def _first(wanted: Iterable[str], names: Sequence[str]) -> int | None:
    """Where the first of the wanted names that is there stands."""
    return next((names.index(name) for name in wanted if name in names), None)


def _delimiter(header: str) -> str:
    """The delimiter with which the header has a text column, or none."""
    for delimiter in _DELIMITERS:
        try:
            cells = next(csv.reader([header], delimiter=delimiter), [])
        except csv.Error:  # a bare carriage return, as in binary files: no header of ours
            continue
        if _first(TEXT_NAMES, [cell.strip().lower() for cell in cells]) is not None:
            return delimiter
    return ""


def _lines(file: Entry) -> Iterator[str]:
    """The lines with their ends, decoded one by one, so that a bad byte has its line in the message."""
    try:
        with file.open() as stream:
            for number, raw in enumerate(stream, start=1):
                line = decode(raw, file.where, number)
                yield line.removeprefix("\ufeff") if number == 1 else line
    except UNREADABLE as error:
        raise unreadable(file.where, error) from None


def _rows(file: Entry, max_chars: int) -> Iterator[tuple[int, list[str]]]:
    csv.field_size_limit(max(csv.field_size_limit(), min(max_chars, _LONGEST_CELL)))  # one limit for the process
    lines = _lines(file)
    first = next(lines, "")
    reader = csv.reader(chain([first], lines), delimiter=_delimiter(first) or ",", strict=True)
    try:
        for row in reader:
            if row:
                yield reader.line_num, row
    except csv.Error as error:
        if "field limit" in str(error):
            message = f"a cell has more than {csv.field_size_limit():,} characters; raise the limit with --max-chars"
            raise LimitError(message, path=file.where, line=reader.line_num) from None
        message = 'is not valid CSV: a quote is open at the end, or is not doubled inside a cell; mend it ("")'
        raise DataError(message, path=file.where, line=reader.line_num) from None


@dataclass(frozen=True, slots=True)
class _Places:
    """The names of the columns that are not meta fields."""

    text: str
    id: str | None
    spans: str | None


def _places(header: Sequence[str], file: Entry, line: int) -> _Places:
    names = [name.strip().lower() for name in header]
    text, name, spans = (_first(wanted, names) for wanted in (TEXT_NAMES, ID_NAMES, _SPAN_NAMES))
    if text is None:
        # Without a header, these cells are a document; they are shown only where one of them is surely a name.
        sure = name is not None or _group(dict.fromkeys(header, "some")) is not None
        found = ", ".join(map(repr, header)) if sure else f"{len(header)} that may be no header at all"
        message = f"no column is called {', '.join(TEXT_NAMES)}; the columns are {found}; name the one with the text"
        raise DataError(message, path=file.where, line=line)
    if len(set(header)) < len(header):
        raise DataError("two columns have the same name; make the names differ", path=file.where, line=line)
    return _Places(header[text], *(None if place is None else header[place] for place in (name, spans)))


def _document(row: Mapping[str, str], places: _Places, number: str, how: ReadOptions) -> Document:
    cell = row[places.spans] if places.spans is not None else ""
    listed = cell.lstrip().startswith("[")
    if cell and not listed and places.spans is not None and places.spans.strip().lower() == "spans":
        raise DataError('the column "spans" must hold a JSON list or nothing')
    taken = {places.text, places.id, places.spans if listed or not cell else None}
    meta = {name: value for name, value in row.items() if name not in taken and name.strip().lower() != "group"}
    return Document.make(
        row[places.text],
        id=row[places.id] if places.id is not None else number,
        group=_group(row),
        meta=meta,
        layers={how.layer: spans_of(typed(_json(cell), list[SpanItem]))} if listed else {},
        split=how.split,
        max_chars=how.max_chars,
    )


def _group(row: Mapping[str, Any]) -> str | None:
    return group_of_meta({name.strip().lower(): value for name, value in row.items()})


def _json(cell: str) -> Any:
    try:
        return msgspec.json.decode(cell)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise DataError("the cell with the spans is not valid JSON") from None


def _row(doc: Document, how: Writing) -> dict[str, str]:
    how.drop(doc, "soft", "relations", "given")
    row = {"id": doc.id, "text": doc.text, **_meta_cells(doc, how.losses)}
    if doc.group is not None and _group(row) != doc.group:
        row["group"] = doc.group
    how.losses.add("groups (patients)", _group(row) != doc.group)
    if doc.layers:
        row["spans"] = msgspec.json.encode([span_record(span) for span in how.spans(doc)]).decode()
    return row


def _meta_cells(doc: Document, losses: Losses) -> dict[str, str]:
    cells = {}
    for name, value in doc.meta.items():
        if name.strip().lower() in _OWN:
            losses.add("meta fields")
            continue
        losses.add("types of meta fields (they come back as text)", not isinstance(value, str))
        cells[name] = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return cells


CSV = Table("csv", "a table with a column of texts, comma-separated", ",", (".csv", ".tsv"))
TSV = Table("tsv", "a table with a column of texts, tab-separated", "\t", (".tsv", ".csv"))
