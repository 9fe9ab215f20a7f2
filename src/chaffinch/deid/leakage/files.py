"""Files of a review: risks in, a form for the reader out, and the completed form back in.

Risks: JSON lines, one for each note of the corpus, `{"id": "n1", "tokens": 412, "expected": 0.31}`; other keys are
ignored. The form: CSV with the columns id, tokens, leaks and one more for each category, or JSON lines
`{"id", "tokens", "leaks", "categories"}`. `leaks` is empty (null) until the reader fills it in, 0 included; with
categories filled in, `leaks` may stay empty and is their sum. Errors name rows, never ids: an id may be a name. In
CSV, an id that a spreadsheet would run as a formula has an apostrophe in front, which is taken away in reading.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from chaffinch.deid.leakage.estimate import Reviewed
from chaffinch.deid.leakage.risk import Risk
from chaffinch.deid.leakage.sample import Sample
from chaffinch.deid.release.account import private_folder
from chaffinch.errors import DataError

_FILL_IN = "write a whole number of leaks, 0 if there are none"
_FIXED_COLUMNS = ("id", "tokens", "leaks")
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "'")


class _RiskRow(msgspec.Struct):
    id: str
    tokens: int
    expected: float
    categories: dict[str, float] = {}


class _FormRow(msgspec.Struct):
    id: str
    leaks: int | None = None
    tokens: int | None = None
    categories: dict[str, int | None] = {}


def parse_risks(content: str) -> list[Risk]:
    """Return the rows of a risk file; DataError if empty or damaged, an id repeats or a number is below 0."""
    rows: dict[str, Risk] = {}
    for line, text in _lines_with_numbers(content):
        try:
            row = msgspec.json.decode(text, type=_RiskRow)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            form = '{"id": "n1", "tokens": 412, "expected": 0.31}'
            raise DataError(f"is not a row such as {form}", line=line) from None
        if row.id in rows:
            raise DataError("has the id of an earlier row; give each note once", line=line)
        if row.tokens < 0 or not 0 <= row.expected < float("inf"):
            raise DataError("tokens and expected must be numbers, at least 0", line=line)
        rows[row.id] = Risk(row.id, row.tokens, row.expected, categories=row.categories)
    if not rows:
        raise DataError("has no rows; write one for each note of the corpus")
    return list(rows.values())


def form(sample: Sample, tokens: Mapping[str, int], *, categories: Sequence[str] = (), as_csv: bool = True) -> str:
    """Return the reader's form, CSV or JSON lines: drawn notes in an order that hides their risks, leaks empty."""
    ids = sample.reading_order()
    if not as_csv:
        rows = [_FormRow(name, None, tokens[name], dict.fromkeys(categories)) for name in ids]
        return "".join(msgspec.json.encode(row).decode() + "\n" for row in rows)
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([*_FIXED_COLUMNS, *map(_escape, categories)])
    writer.writerows([_escape(name), tokens[name], "", *([""] * len(categories))] for name in ids)
    return buffer.getvalue()


def _escape(cell: str) -> str:
    """Return a cell that no spreadsheet takes for a formula: with an apostrophe in front, if it needs one.

    >>> _escape("=1+1"), _escape("'x"), _escape("n1")
    ("'=1+1", "''x", 'n1')
    """
    return f"'{cell}" if cell.startswith(_FORMULA_STARTS) else cell


def _unescape(cell: str) -> str:
    """Return a cell without the apostrophe that `_escape` put in front."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_FORMULA_STARTS) else cell


def parse_form(content: str) -> list[Reviewed]:
    """Return the reviewed notes of a completed CSV or JSON lines form; DataError for no, damaged or repeated rows."""
    content = content.removeprefix("\ufeff")
    rows = _json_rows(content) if content.lstrip().startswith("{") else _csv_rows(content)
    reviewed: dict[str, Reviewed] = {}
    for line, row in rows:
        if row.id in reviewed:
            raise DataError("has the id of an earlier row; keep one row for each note", line=line)
        reviewed[row.id] = _to_reviewed(row, line)
    if not reviewed:
        raise DataError("has no rows; fill in the form that came with the sample")
    return list(reviewed.values())


def _to_reviewed(row: _FormRow, line: int) -> Reviewed:
    """Return the reviewed note of a row, leaks summed if empty; DataError unless numbers are given and agree."""
    by_category = {name: number for name, number in row.categories.items() if number is not None}
    leaks = sum(by_category.values()) if row.leaks is None and by_category else row.leaks
    if leaks is None:
        raise DataError(f"leaks is empty; read the note, then {_FILL_IN}", line=line)
    if leaks < 0 or min(by_category.values(), default=0) < 0 or (row.tokens or 0) < 0:
        raise DataError(f"has a number below 0; {_FILL_IN}", line=line)
    if row.categories and sum(by_category.values()) != leaks:
        raise DataError(f"has {leaks} leaks, but {sum(by_category.values())} by category; make them agree", line=line)
    # A category left empty was looked for and not found: it counts 0, so that its bound is given too.
    return Reviewed(row.id, leaks, row.tokens, {name: by_category.get(name, 0) for name in row.categories})


def _json_rows(content: str) -> Iterator[tuple[int, _FormRow]]:
    """Yield the rows of a form in JSON lines, with line numbers; DataError for a damaged row."""
    for line, text in _lines_with_numbers(content):
        try:
            yield line, msgspec.json.decode(text, type=_FormRow)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            raise DataError(f"is not a row of the form, with id and leaks; {_FILL_IN}", line=line) from None


def _csv_rows(content: str) -> Iterator[tuple[int, _FormRow]]:
    """Yield the rows of a form in CSV, with line numbers; DataError for a damaged row or header."""
    try:
        delimiter = ";" if ";" in content.split("\n", 1)[0] else ","
        table = csv.reader(io.StringIO(content, newline=""), delimiter=delimiter, strict=True)
        header = [_unescape(name.strip()) for name in next(table, [])]
        if "id" not in header or "leaks" not in header or len(set(header)) != len(header):
            raise DataError("needs a first row with the columns id and leaks, each column once", line=1)
        for cells in table:
            if any(cell.strip() for cell in cells):
                yield (
                    table.line_num,
                    _csv_row(dict(zip(header, cells, strict=False)), len(cells), header, table.line_num),
                )
    except csv.Error:
        raise DataError("is not a CSV file; save the form as CSV with commas", line=None) from None


def _csv_row(cells: Mapping[str, str], width: int, header: Sequence[str], line: int) -> _FormRow:
    """Return one row of a form in CSV; DataError if a cell is no whole number or cells are missing."""
    if width != len(header):
        raise DataError(f"has {width} cells, the first row {len(header)}; restore the row of the form", line=line)
    numbers: dict[str, int | None] = {}
    for name in header:
        if name != "id":
            cell = cells[name].strip()
            if cell and not (cell.isascii() and cell.isdecimal()):
                raise DataError(f"column {header.index(name) + 1} is no whole number; {_FILL_IN}", line=line)
            numbers[name] = int(cell) if cell else None
    by_category = {name: number for name, number in numbers.items() if name not in _FIXED_COLUMNS}
    return _FormRow(_unescape(cells["id"]), numbers["leaks"], numbers.get("tokens"), by_category)


def _lines_with_numbers(content: str) -> Iterator[tuple[int, str]]:
    """Yield (line number, line) of each line that is not blank; numbers count all lines from 1, blank ones too."""
    for number, text in enumerate(content.removeprefix("\ufeff").split("\n"), start=1):
        if text.strip():
            yield number, text


def find_risks(path: Path) -> Path:
    """Return the risk file of a release's output, or a file as it is; DataError for a folder without risks."""
    risks = private_folder(path) / "risks.jsonl"
    if risks.is_file():
        return risks
    if path.is_dir():
        raise DataError(
            f"is a folder, and there is no {risks}; name the output of deid run, or a file of risks", path=path
        )
    return path


def read_text(path: Path) -> str:
    """Return the text of a file; raise DataError unless the path is one readable file."""
    from chaffinch.text.formats.walk import entries

    files = entries(path)
    if len(files) != 1:
        raise DataError(f"is {len(files)} files; name the one to read", path=path)
    return files[0].text()
