"""Known identifiers: the entries of an admission file, found in the patient's notes in every usual spelling.

The file is CSV, with one row per patient or one per identifier, or JSON. It is held in memory only: nothing of it is
written, logged or shown. A name matches in full, surname first, by its parts, and as initial and surname, with or
without accents; a number matches with any punctuation between its digits, or none.
"""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chaffinch import languages
from chaffinch.checks import did_you_mean
from chaffinch.deid.detect.word_lists import word_lists
from chaffinch.deid.kinds import HANDLING, KINDS, is_known, kind_of
from chaffinch.deid.patterns.pattern import matcher_of
from chaffinch.errors import ConfigError, DataError
from chaffinch.text import Document, Span, resolve
from chaffinch.text.view import plain_text

PATIENT_COLUMNS = ("patient", "group", "patient_id", "subject", "subject_id")
_SEVERAL_PATIENTS = f"has several columns of the patient ({', '.join(PATIENT_COLUMNS)}); keep one"
# The scores of a whole identifier, and of one part of a name alone, which is less certain.
SCORE, PART_SCORE = 1.0, 0.95
# The fewest characters of a name's part and the fewest digits of a number that are searched for: shorter ones would
# match initials, doses and counts everywhere.
SHORTEST_PART, SHORTEST_NUMBER = 2, 4
SHORTEST_HALF = 3  # letters of one half of a double name that is searched for alone: not the Al of Al-Rashid
LONGEST = 120  # characters of one identifier; a longer value raises DataError
_LABEL_OF = {column: name for name, row in HANDLING.items() for column in row.columns}
_HYPHEN = "[-‐‑–]"
_NAME_PART = re.compile(rf"[^\W\d_]+(?:(?:{_HYPHEN}|['’])[^\W\d_]+)*")  # a word, or a double name
_SUFFIXES: Mapping[str, str] = languages.table("en", "patterns/places")["street_abbreviations"]


@dataclass(frozen=True, slots=True)
class Identifier:
    """One known identifier: its label and its text. The text is kept out of the repr."""

    label: str
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True, repr=False)
class KnownIdentifiers:
    """A source of known identifiers by patient; those of the patient "" are searched for in every document.

    >>> known = KnownIdentifiers({"p1": (Identifier("PATIENT", "José Penn"), Identifier("MEDICALRECORD", "123-4567"))})
    >>> note = Document.make("PENN, JOSE (1234567): J. Penn was seen.", group="p1")
    >>> [note.text[span.start : span.end] for span in known(note)]
    ['PENN, JOSE', '1234567', 'J. Penn']
    """

    patients: Mapping[str, tuple[Identifier, ...]]
    name: str = "known"
    too_short: int = 0  # values that are not searched for, as they would match everywhere

    @classmethod
    def read(cls, path: str | Path) -> KnownIdentifiers:
        """Read an admission file (CSV, TSV, JSON, JSON lines); raise DataError or ConfigError, without its values."""
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8-sig")
        except OSError as error:
            raise DataError(f"cannot be read ({error.strerror}); check the path", path=path) from None
        except UnicodeDecodeError:
            raise DataError("is not UTF-8; save the file as UTF-8", path=path) from None
        rows = _json_rows(text, path) if text.lstrip()[:1] in ("{", "[") else _csv_rows(text, path)
        known = cls.of(rows)
        if not any(known.patients.values()):
            raise ConfigError(f"{path}: has no identifier that could be searched for; give a row for each patient")
        return known

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> KnownIdentifiers:
        """Build from rows with patient and identifier columns, too short values counted; DataError for a bad row."""
        by_patient: defaultdict[str, list[Identifier]] = defaultdict(list)
        too_short = 0
        for number, row in enumerate(rows, start=1):
            names = [name for name in _patient_columns(row) if row[name] is not None]
            if len(names) > 1 or any(isinstance(row[name], list) for name in names):
                raise DataError(f"known identifiers: row {number} {_SEVERAL_PATIENTS}")
            patient = str(row[names[0]]) if names else ""
            for column, value in row.items():
                if column_key(column) in PATIENT_COLUMNS or value is None:
                    continue
                label = _label_at(column, number)
                for item in value if isinstance(value, list) else [value]:
                    found = _identifiers(label, item, number)
                    too_short += not found and bool(str(item).strip())
                    by_patient[patient] += found
            by_patient[patient] += _whole_name(row)
        patients = {patient: tuple(dict.fromkeys(identifiers)) for patient, identifiers in by_patient.items()}
        return cls(patients, too_short=too_short)

    def __repr__(self) -> str:
        """Return the numbers of patients and identifiers, never a value."""
        return f"KnownIdentifiers({len(self.patients)} patients, {sum(map(len, self.patients.values()))} identifiers)"

    def __call__(self, doc: Document) -> list[Span]:
        """Return spans of the identifiers of the document's patient, in any usual spelling; the longest of overlaps."""
        identifiers = (*self.patients.get("", ()), *self.patients.get(doc.patient, ()))
        if not identifiers:
            return []
        plain, offsets = fold_text(doc.text)
        spans: list[Span] = []
        for identifier in identifiers:
            for pattern, score, capital in _patterns(identifier):
                spans += _find_pattern(doc.text, plain, offsets, pattern, (identifier.label, score, capital))
        return list(resolve(spans, "longest"))


def label_of(column: str) -> str:
    """Return the label for an admission file's column ("MRN": MEDICALRECORD); raise ConfigError if it is unknown.

    The message does not show the name of the column: in a file without a header it is a name of a patient.

    >>> label_of("Last name"), label_of("MRN"), label_of("ssn")
    ('PATIENT', 'MEDICALRECORD', 'SSN')
    """
    label = find_label(column)
    if label is not None:
        return label
    hint = did_you_mean(column_key(column), (*PATIENT_COLUMNS, *_LABEL_OF, *map(str.lower, KINDS)))
    raise ConfigError(f"known identifiers: a column has an unknown name; {hint}")


def _label_at(column: str, row: int) -> str:
    """Return the label for a column; raise ConfigError with the row number, not the column's name, if unknown."""
    try:
        return label_of(column)
    except ConfigError as error:
        hint = str(error).partition("; ")[2]
        raise ConfigError(
            f"known identifiers: row {row} has a value in a column without a known name ({hint}); is the first line a "
            "header?"
        ) from None


def find_label(column: str) -> str | None:
    """Return the label for an admission file's column ("MRN": MEDICALRECORD), or None if it is unknown."""
    if column_key(column) in _LABEL_OF:
        return _LABEL_OF[column_key(column)]
    return kind_of(column).name if is_known(column) else None


def fold_text(text: str) -> tuple[str, list[int]]:
    """Return the text in lower case without accents, and for each of its characters, and its end, the offset in `text`.

    >>> fold_text("Zoë")[0]
    'zoe'
    """
    if text.isascii():
        return text.lower(), list(range(len(text) + 1))
    out, offsets = [], []
    for offset, character in enumerate(text):
        for part in unicodedata.normalize("NFKD", character).lower():
            if not unicodedata.combining(part):
                out.append(part)
                offsets.append(offset)
    return "".join(out), [*offsets, len(text)]


def _find_pattern(
    text: str, plain: str, offsets: list[int], pattern: str, settings: tuple[str, float, bool]
) -> Iterator[Span]:
    """Yield spans of `text` where a pattern matches whole words of its folded form; `settings`: label, score, capital.

    `settings` are the label and the score of the spans, and whether they must begin with a capital.
    """
    label, score, capital = settings
    for match in matcher_of(pattern)[0].finditer(plain):
        start, end = match.span(1)
        if (start and plain[start - 1].isalnum()) or (end < len(plain) and plain[end].isalnum()):
            continue
        first, last = offsets[start], offsets[end - 1] + 1
        while last < len(text) and unicodedata.combining(text[last]):
            last += 1
        if not capital or text[first].isupper():
            yield Span(first, last, label, score, "known")


def _patterns(identifier: Identifier) -> Iterator[tuple[str, float, bool]]:
    """Yield (pattern for folded text, score, whether a match needs a capital) for an identifier's spellings."""
    plain = " ".join(fold_text(identifier.text)[0].split())
    if kind_of(identifier.label).category == "NAME":
        yield from _name_patterns(plain)
        return
    digits = sum(map(str.isdigit, plain))
    if digits >= SHORTEST_NUMBER and 2 * digits >= sum(map(str.isalnum, plain)):
        signs = map(re.escape, filter(str.isalnum, plain))
        yield "(" + r"[\s./()_-]{0,2}".join(signs) + ")", SCORE, False
    words = re.findall(r"[^\W_]+", plain)
    if sum(map(len, words)) >= SHORTEST_PART:
        yield (
            "(" + r"[\s,.;:/#'’-]{1,4}".join(map(_word, words)) + ")",
            SCORE,
            len(words) == 1 and word_lists().is_common(plain),
        )


def _word(word: str) -> str:
    """Return a regex for a word; a street suffix matches in full or abbreviated ("street", "st")."""
    other = _SUFFIXES.get(word) or next((long for long, short in _SUFFIXES.items() if short == word), "")
    return f"(?:{re.escape(word)}|{other})" if other else re.escape(word)


def _name_patterns(plain: str) -> Iterator[tuple[str, float, bool]]:
    """Yield (pattern, score, needs a capital) for a name: in full, surname first, with initial, each part alone.

    A double name ("smith-jones", "o'neil") is one part, and so are both halves of a hyphen if they are long enough.
    """
    last, _, first = plain.partition(",")
    given, family = _NAME_PART.findall(first), _NAME_PART.findall(last)
    if not first and len(family) > 1:
        given, family = family[:-1], family[-1:]
    parts = [*given, *family]
    if not parts:
        return
    gap = r"[\s.,'’-]{1,3}"
    surname = r"[\s'’-]{0,2}".join(map(_name_part, family))
    if given and family:
        middle = "|".join(form for name in given[1:] for form in (_name_part(name), name[0])) or "x"
        forename = rf"{_name_part(given[0])}(?:{gap}(?:{middle})){{0,3}}"
        yield rf"({forename}{gap}{surname})", SCORE, False
        yield rf"({surname},?\s?{forename})", SCORE, False
        yield rf"({given[0][0]}\.?(?:\s?[a-z]\.?)?\s?{surname})", SCORE, True
        yield rf"({surname},\s?{given[0][0]}\b\.?)", SCORE, True
    halves = [half for part in parts for half in re.split(_HYPHEN, part) if half != part and len(half) >= SHORTEST_HALF]
    for part in (*parts, *halves):
        if len(part) >= SHORTEST_PART:
            ordinary = word_lists().is_common(part) or len(part) < 3
            yield rf"({_name_part(part)})", PART_SCORE, ordinary


def _name_part(part: str) -> str:
    """Return a regex for a part of a name; between its halves may be a hyphen, apostrophe, blank or nothing.

    A line may end after the hyphen.
    """
    return r"(?:\s?[-‐‑–'’]\s{0,2}|\s)?".join(re.escape(piece) for piece in re.findall(r"[^\W\d_]+", part))


def _identifiers(label: str, value: object, row: int) -> list[Identifier]:
    """Return a cell as a list of one identifier, [] if too short; raise DataError if too long or not text."""
    if not isinstance(value, str | int):
        raise DataError(f"known identifiers, row {row}: {label} must be text or a number, got {type(value).__name__}")
    text = plain_text(str(value)).strip()
    if len(text) > LONGEST:
        raise DataError(f"known identifiers, row {row}: {label} has {len(text)} characters, the limit is {LONGEST}")
    return [Identifier(label, text)] if sum(map(str.isalnum, text)) >= SHORTEST_PART else []


def _whole_name(row: Mapping[str, Any]) -> list[Identifier]:
    """Return the row's "last, first middle" as a list of one PATIENT identifier; [] if first or last is missing."""
    by_column = {
        column_key(name): plain_text(value).strip()
        for name, value in row.items()
        if isinstance(value, str) and value.strip()
    }
    first = by_column.get("first") or by_column.get("first_name") or by_column.get("given") or ""
    middle = by_column.get("middle") or by_column.get("middle_name") or ""
    last = by_column.get("last") or by_column.get("last_name") or by_column.get("surname") or ""
    return [Identifier("PATIENT", f"{last}, {first} {middle}".strip())] if first and last else []


def _csv_rows(text: str, path: Path) -> list[Mapping[str, Any]]:
    """Parse CSV into dicts, without empty cells, repeated columns as lists; DataError for a bad row or bad quotes.

    The header tells the delimiter: tab, semicolon or comma.
    """
    delimiter = "\t" if "\t" in text.partition("\n")[0] else ";" if ";" in text.partition("\n")[0] else ","
    # Strict: a quote that is never closed would take all rows after it into one cell; nobody would search for them.
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows: list[Mapping[str, Any]] = []
    try:
        header = next(reader, [])
        if len(_patient_columns(header)) > 1:
            raise DataError(_SEVERAL_PATIENTS, path=path, line=1)
        for fields in reader:
            if len(fields) > len(header):
                raise DataError("has more fields than the header has columns", path=path, line=reader.line_num)
            if fields:
                rows.append(_gather_values((name, value) for name, value in zip(header, fields, strict=False) if value))
    except csv.Error:
        fault = "has a quotation mark that is not closed, or text after one that is; double the marks inside a cell"
        raise DataError(fault, path=path, line=reader.line_num) from None
    return rows


def _patient_columns(names: Iterable[str]) -> list[str]:
    """Return the columns that name the patient."""
    return [name for name in names if column_key(name) in PATIENT_COLUMNS]


def _gather_values(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return {column: value} of a row; a column that occurs several times holds the list of its values.

    >>> _gather_values([("phone", "1"), ("ssn", "2"), ("phone", "3")])
    {'phone': ['1', '3'], 'ssn': '2'}
    """
    row: dict[str, Any] = {}
    for name, value in pairs:
        if name not in row:
            row[name] = value
        else:
            before = row[name] if isinstance(row[name], list) else [row[name]]
            row[name] = [*before, *(value if isinstance(value, list) else [value])]
    return row


def _json_rows(text: str, path: Path) -> list[Mapping[str, Any]]:
    """Parse JSON or JSON lines; return one dict per patient, or per row. Raise DataError if it is neither."""
    try:
        content = json.loads(text, object_pairs_hook=_gather_values)
    except json.JSONDecodeError:
        try:
            content = [json.loads(line, object_pairs_hook=_gather_values) for line in text.split("\n") if line.strip()]
        except json.JSONDecodeError as error:
            raise DataError(f"is neither JSON nor JSON lines (column {error.colno}); correct it", path=path) from None
    if isinstance(content, dict) and all(isinstance(row, dict) for row in content.values()):
        content = [{"patient": patient, **row} for patient, row in content.items()]
    rows = content if isinstance(content, list) else [content]
    if not all(isinstance(row, dict) for row in rows):
        raise DataError('must hold one object per patient; write [{"patient": …, "name": …}, …]', path=path)
    return rows


def column_key(column: str) -> str:
    """Return a column's name in lower case, with underscores for blanks and hyphens."""
    return column.strip().lower().replace(" ", "_").replace("-", "_")
