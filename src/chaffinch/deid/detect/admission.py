"""Known identifiers: what an admission file says of a patient, found in the notes however it is written.

The file is CSV, with one row per patient or one per identifier, or JSON. It is held in memory only: nothing of it is
written, logged or shown. A name is found whole, turned round, by its parts, and as initials with the surname, with or
without accents; a number with any signs between its digits, or none.
"""

from __future__ import annotations

import csv
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
from chaffinch.deid.kinds import HANDLING, KINDS, folded, is_known, kind_of
from chaffinch.deid.patterns.pattern import matcher_of
from chaffinch.errors import ConfigError, DataError
from chaffinch.text import Document, Span, resolve

PATIENT_COLUMNS = ("patient", "group", "patient_id", "subject", "subject_id")
SCORE, PART_SCORE = 1.0, 0.95
SHORTEST_PART, SHORTEST_NUMBER = 2, 4  # characters of a name's part, digits of a number
LONGEST = 120  # characters of one identifier
_LABEL_OF = {column: name for name, row in HANDLING.items() for column in row.columns}
_SUFFIXES: Mapping[str, str] = languages.table("en", "patterns/places")["street_abbreviations"]


@dataclass(frozen=True, slots=True)
class Identifier:
    """One known identifier: its label, and its text, which is never shown."""

    label: str
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True, repr=False)
class KnownIdentifiers:
    """Known identifiers by patient; those of the patient "" are looked for in every document. A source.

    >>> known = KnownIdentifiers({"p1": (Identifier("PATIENT", "José Penn"), Identifier("MEDICALRECORD", "123-4567"))})
    >>> note = Document.make("PENN, JOSE (1234567): J. Penn was seen.", group="p1")
    >>> [note.text[span.start : span.end] for span in known(note)]
    ['PENN, JOSE', '1234567', 'J. Penn']
    """

    patients: Mapping[str, tuple[Identifier, ...]]
    name: str = "known"

    @classmethod
    def read(cls, path: str | Path) -> KnownIdentifiers:
        """The identifiers of a CSV, TSV, JSON or JSON-lines file; DataError or ConfigError that shows no value."""
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8-sig")
        except OSError as error:
            raise DataError(f"cannot be read ({error.strerror}); check the path", path=path) from None
        except UnicodeDecodeError:
            raise DataError("is not UTF-8; save the file as UTF-8", path=path) from None
        rows = _json_rows(text, path) if text.lstrip()[:1] in ("{", "[") else _csv_rows(text, path)
        return cls.of(rows)

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> KnownIdentifiers:
        """The identifiers of rows; columns name the patient, and identifiers by what they are called or by kind."""
        found: defaultdict[str, list[Identifier]] = defaultdict(list)
        for number, row in enumerate(rows, start=1):
            patient = next(
                (str(row[name]) for name in row if _folded(name) in PATIENT_COLUMNS and row[name] is not None), ""
            )
            for column, value in row.items():
                if _folded(column) in PATIENT_COLUMNS or value is None:
                    continue
                label = label_of(column)
                for own in value if isinstance(value, list) else [value]:
                    found[patient] += _identifiers(label, own, number)
            found[patient] += _whole_name(row)
        return cls({patient: tuple(dict.fromkeys(own)) for patient, own in found.items()})

    def __repr__(self) -> str:
        return f"KnownIdentifiers({len(self.patients)} patients, {sum(map(len, self.patients.values()))} identifiers)"

    def __call__(self, doc: Document) -> list[Span]:
        """The known identifiers of the document's patient, the longest where they overlap."""
        own = (*self.patients.get("", ()), *self.patients.get(doc.patient, ()))
        if not own:
            return []
        plain, places = folded_text(doc.text)
        spans: list[Span] = []
        for identifier in own:
            for pattern, score, capital in _patterns(identifier):
                spans += _found(doc.text, plain, places, pattern, (identifier.label, score, capital))
        return list(resolve(spans, "longest"))


def label_of(column: str) -> str:
    """The label a column stands for; ConfigError with the nearest name if there is none.

    >>> label_of("Last name"), label_of("MRN"), label_of("ssn")
    ('PATIENT', 'MEDICALRECORD', 'SSN')
    """
    if _folded(column) in _LABEL_OF:
        return _LABEL_OF[_folded(column)]
    if is_known(column):
        return kind_of(column).name
    hint = did_you_mean(_folded(column), (*PATIENT_COLUMNS, *_LABEL_OF, *map(str.lower, KINDS)))
    raise ConfigError(f"known identifiers: unknown column {folded(column)!r}; {hint}")


def folded_text(text: str) -> tuple[str, list[int]]:
    """The text in lower case without accents, and for every character of it the place it came from; the end as well.

    >>> folded_text("Zoë")[0]
    'zoe'
    """
    if text.isascii():
        return text.lower(), list(range(len(text) + 1))
    out, places = [], []
    for place, sign in enumerate(text):
        for part in unicodedata.normalize("NFKD", sign).lower():
            if not unicodedata.combining(part):
                out.append(part)
                places.append(place)
    return "".join(out), [*places, len(text)]


def _found(text: str, plain: str, places: list[int], pattern: str, told: tuple[str, float, bool]) -> Iterator[Span]:
    label, score, capital = told
    for match in matcher_of(pattern)[0].finditer(plain):
        start, end = match.span(1)
        if (start and plain[start - 1].isalnum()) or (end < len(plain) and plain[end].isalnum()):
            continue
        first, last = places[start], places[end - 1] + 1
        while last < len(text) and unicodedata.combining(text[last]):
            last += 1
        if not capital or text[first].isupper():
            yield Span(first, last, label, score, "known")


def _patterns(identifier: Identifier) -> Iterator[tuple[str, float, bool]]:
    """Expressions for an identifier in folded text, their scores, and whether a capital must begin the match."""
    plain = " ".join(folded_text(identifier.text)[0].split())
    if kind_of(identifier.label).category == "NAME":
        yield from _name_patterns(plain)
        return
    digits = sum(map(str.isdigit, plain))
    if digits >= SHORTEST_NUMBER and 2 * digits >= sum(map(str.isalnum, plain)):
        yield "(" + r"[\s./()_-]{0,2}".join(re.escape(sign) for sign in plain if sign.isalnum()) + ")", SCORE, False
    words = re.findall(r"[^\W_]+", plain)
    if sum(map(len, words)) >= SHORTEST_PART:
        yield (
            "(" + r"[\s,.;:/#'’-]{1,4}".join(map(_word, words)) + ")",
            SCORE,
            len(words) == 1 and word_lists().is_common(plain),
        )


def _word(word: str) -> str:
    other = _SUFFIXES.get(word) or next((long for long, short in _SUFFIXES.items() if short == word), "")
    return f"(?:{re.escape(word)}|{other})" if other else re.escape(word)


def _name_patterns(plain: str) -> Iterator[tuple[str, float, bool]]:
    last, _, first = plain.partition(",")
    given = re.findall(r"[^\W\d_]+", first or "")
    family = re.findall(r"[^\W\d_]+", last)
    if not first and len(family) > 1:
        given, family = family[:-1], family[-1:]
    parts = [*given, *family]
    if not parts:
        return
    gap = r"[\s.,'’-]{1,3}"
    surname = r"[\s'’-]{0,2}".join(map(re.escape, family))
    if given and family:
        middle = "|".join(re.escape(own) for name in given[1:] for own in (name, name[0])) or "x"
        forename = rf"{re.escape(given[0])}(?:{gap}(?:{middle})){{0,3}}"
        yield rf"({forename}{gap}{surname})", SCORE, False
        yield rf"({surname},?\s?{forename})", SCORE, False
        yield rf"({given[0][0]}\.?(?:\s?[a-z]\.?)?\s?{surname})", SCORE, True
        yield rf"({surname},\s?{given[0][0]}\b\.?)", SCORE, True
    for part in parts:
        if len(part) >= SHORTEST_PART:
            ordinary = word_lists().is_common(part) or len(part) < 3
            yield rf"({re.escape(part)})", PART_SCORE, ordinary


def _identifiers(label: str, value: object, row: int) -> list[Identifier]:
    if not isinstance(value, str | int):
        raise DataError(f"known identifiers, row {row}: {label} must be text or a number, got {type(value).__name__}")
    text = str(value).strip()
    if len(text) > LONGEST:
        raise DataError(f"known identifiers, row {row}: {label} has {len(text)} characters, the limit is {LONGEST}")
    return [Identifier(label, text)] if sum(map(str.isalnum, text)) >= SHORTEST_PART else []


def _whole_name(row: Mapping[str, Any]) -> list[Identifier]:
    """First, middle and last name of a row joined, so that they are found together."""
    by = {_folded(name): str(value).strip() for name, value in row.items() if isinstance(value, str) and value.strip()}
    first = by.get("first") or by.get("first_name") or by.get("given") or ""
    middle = by.get("middle") or by.get("middle_name") or ""
    last = by.get("last") or by.get("last_name") or by.get("surname") or ""
    return [Identifier("PATIENT", f"{last}, {first} {middle}".strip())] if first and last else []


def _csv_rows(text: str, path: Path) -> list[Mapping[str, Any]]:
    delimiter = "\t" if "\t" in text.partition("\n")[0] else ";" if ";" in text.partition("\n")[0] else ","
    reader = csv.DictReader(text.splitlines(), delimiter=delimiter)
    rows: list[Mapping[str, Any]] = []
    for row in reader:
        if None in row:
            raise DataError("has more fields than the header has columns", path=path, line=reader.line_num)
        rows.append({name: value for name, value in row.items() if value})
    return rows


def _json_rows(text: str, path: Path) -> list[Mapping[str, Any]]:
    try:
        content = json.loads(text)
    except json.JSONDecodeError:
        try:
            content = [json.loads(line) for line in text.splitlines() if line.strip()]
        except json.JSONDecodeError as error:
            raise DataError(f"is neither JSON nor JSON lines (column {error.colno}); correct it", path=path) from None
    if isinstance(content, dict) and all(isinstance(own, dict) for own in content.values()):
        content = [{"patient": patient, **own} for patient, own in content.items()]
    rows = content if isinstance(content, list) else [content]
    if not all(isinstance(row, dict) for row in rows):
        raise DataError('must hold one object per patient; write [{"patient": …, "name": …}, …]', path=path)
    return rows


def _folded(column: str) -> str:
    return column.strip().lower().replace(" ", "_").replace("-", "_")
