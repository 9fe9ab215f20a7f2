"""The documents of an input one by one, so that one that cannot be read keeps no other from being released.

Files with a document each, lines of JSON and rows of CSV are read apart from one another. Of other formats (Parquet,
BioC, …) a file is read from its start, and where reading fails, that document and all behind it in the file are one
unit that cannot be read.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import BinaryIO, NoReturn

import msgspec

from chaffinch.errors import ConfigError, DataError, LimitError
from chaffinch.text import Document
from chaffinch.text.formats import Format, ReadOptions, by_name, find_format, jsonl
from chaffinch.text.formats._shared.json_records import numbered
from chaffinch.text.formats.base import UNREADABLE, Entry, entries, unreadable
from chaffinch.text.formats.csv_table import TEXT_NAMES

_BY_FILE = ("txt", "i2b2", "meddocan")
_BY_LINE = ("jsonl", "doccano", "hf")
_BY_ROW = ("csv", "tsv")
_NAMELESS = "\0"  # the name of a file that gives its only record, if it has no id, an id nobody else has
_LONGEST_CELL = (1 << 31) - 1
_NO_LIMIT = (1 << 31) - 1
_BEHIND = "this document could not be read, and with it all that stand behind it in the file: "


@dataclass(frozen=True, slots=True)
class Unit:
    """One document of the input that was not read yet.

    `name` is its file (and row), for the private list of names only; `id` is what it is called if it cannot be read.
    """

    number: int
    name: str = field(repr=False)
    id: str = field(repr=False)
    content: Callable[[], bytes] = field(repr=False)
    parse: Callable[[bytes], Document] = field(repr=False)

    def read(self) -> Document:
        """The document, or DataError."""
        return self.parse(self.content())


@dataclass(frozen=True, slots=True)
class UnitSource:
    """An input: its format, and its units, walked as often as wanted."""

    form: Format
    walk: Callable[[], Iterator[Unit]] = field(repr=False)

    def __iter__(self) -> Iterator[Unit]:
        return self.walk()


Grouping = Callable[[Document], Document]


def source(
    path: str | Path, *, form: str | None = None, how: ReadOptions | None = None, grouping: Grouping = lambda doc: doc
) -> UnitSource:
    """The documents of a file, folder or archive, each readable apart from the others where the format allows it."""
    files, reading = entries(Path(path)), how or ReadOptions()
    found = by_name(form) if form else find_format([file for file in files if _opens(file)], Path(path))
    chosen = [file for file in files if file.suffix in found.suffixes or len(files) == 1]

    def walk() -> Iterator[Unit]:
        numbers = count(1)
        for unit in _units(found, chosen, reading, numbers):
            yield replace(unit, parse=_then(unit.parse, grouping))
        wanted = " or ".join(found.suffixes)
        for file in files:
            if file not in chosen:
                yield _failing(next(numbers), file.name, DataError(f"is no {wanted} file, as {found.name} has"))

    return UnitSource(found, walk)


def grouping(pattern: str | None = None, groups: Mapping[str, str] | None = None) -> Grouping:
    """Gives a document its patient: from a table by id, else by a pattern on the id (its group, or the match)."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        matcher = re2.compile(pattern, options) if pattern else None
    except re2.error:
        raise ConfigError(f"--group-by {pattern!r} is neither a file nor a regular expression") from None

    def grouped(doc: Document) -> Document:
        group = groups.get(doc.id) if groups else None
        match = matcher.search(doc.id) if matcher is not None and group is None else None
        if match:
            group = match.group(1 if match.re.groups else 0)
        return doc if group is None else replace(doc, group=group)

    return grouped


def _then(parse: Callable[[bytes], Document], step: Grouping) -> Callable[[bytes], Document]:
    return lambda content: step(parse(content))


def _opens(file: Entry) -> bool:
    try:
        file.head(1)
    except DataError:
        return False
    return True


def _units(form: Format, files: Sequence[Entry], how: ReadOptions, numbers: Iterator[int]) -> Iterator[Unit]:
    if form.name in _BY_FILE:
        for file in files:
            yield Unit(next(numbers), file.name, file.stem, file.content, _parser(form, [file], how))
    elif form.name == "brat":
        yield from _pairs(form, files, how, numbers)
    else:
        split = _lines if form.name in _BY_LINE else _rows if form.name in _BY_ROW else None
        for file in files:
            if split is None:
                yield from _stream(form, file, len(files), how, numbers)
            else:
                yield from _records(form, file, len(files), how, numbers, split)


def _parser(form: Format, files: Sequence[Entry], how: ReadOptions) -> Callable[[bytes], Document]:
    """Reads the document of the first file from its content; the other files are opened then."""
    first, *others = files

    def parse(content: bytes) -> Document:
        return _only(form.read([replace(first, open=lambda: io.BytesIO(content)), *others], how))

    return parse


def _only(documents: Iterator[Document]) -> Document:
    found = next(documents, None)
    if found is None or next(documents, None) is not None:
        raise DataError("is not exactly one document")
    return found


def _pairs(form: Format, files: Sequence[Entry], how: ReadOptions, numbers: Iterator[int]) -> Iterator[Unit]:
    """brat: a text and its annotations, whose content counts as well."""
    texts = {file.stem: file for file in files if file.suffix != ".ann"}
    notes = {file.stem: file for file in files if file.suffix == ".ann"}
    for stem, text in texts.items():
        own = [notes[stem]] if stem in notes else []

        def content(pair: Sequence[Entry] = (text, *own)) -> bytes:
            first, *rest = [file.content() for file in pair]
            return len(first).to_bytes(8, "big") + first + b"".join(rest)

        def parse(held: bytes, pair: Sequence[Entry] = (text, *own)) -> Document:
            size = int.from_bytes(held[:8], "big")
            parts = (held[8 : 8 + size], held[8 + size :])
            files = [replace(file, open=_bytes(part)) for file, part in zip(pair, parts, strict=False)]
            return _only(form.read(files, how))

        yield Unit(next(numbers), text.name, stem, content, parse)
    for stem in notes.keys() - texts.keys():
        yield _failing(next(numbers), notes[stem].name, DataError("has no .txt file beside it"))


def _bytes(content: bytes) -> Callable[[], BinaryIO]:
    return lambda: io.BytesIO(content)


Split = Callable[[Entry], Iterator[bytes]]


def _records(
    form: Format, file: Entry, files: int, how: ReadOptions, numbers: Iterator[int], split: Split
) -> Iterator[Unit]:
    """One unit for each record of a file; the last one fails if the file cannot be read to its end."""
    index = 0
    try:
        for index, content in enumerate(split(file)):
            name = numbered([file] * files, file, index)
            yield Unit(
                next(numbers), f"{file.name}:{index + 1}", name, _constant(content), _record_parser(form, name, how)
            )
    except DataError as error:
        yield _failing(next(numbers), f"{file.name}:{index + 2}", DataError(_BEHIND + error.message))


def _constant(content: bytes) -> Callable[[], bytes]:
    return lambda: content


def _record_parser(form: Format, name: str, how: ReadOptions) -> Callable[[bytes], Document]:
    def parse(content: bytes) -> Document:
        documents = form.read([Entry(_NAMELESS, "", _bytes(content)), _END], how)
        try:
            found = next(documents)
            next(documents)
        except _EndedError:
            return replace(found, id=name) if found.id == f"{_NAMELESS}-0" else found
        raise DataError("is not exactly one document")

    return parse


class _EndedError(Exception):
    """The file behind the last one was opened."""


def _ended() -> NoReturn:
    raise _EndedError


_END = Entry("end", "", _ended)  # formats number what has no id, and name the file as well where there are several


def _lines(file: Entry) -> Iterator[bytes]:
    """The lines that are not blank."""
    try:
        with file.open() as stream:
            for line in stream:
                if line.strip():
                    yield line
    except UNREADABLE as error:
        raise unreadable(file.where, error) from None


def _rows(file: Entry) -> Iterator[bytes]:
    """Each row with the header before it; bytes are looked at as if they were Latin-1, where quotes are the same."""
    taken: list[bytes] = []

    def lines(stream: Iterable[bytes]) -> Iterator[str]:
        for line in stream:
            taken.append(line)
            yield line.decode("latin-1")

    csv.field_size_limit(_LONGEST_CELL)  # one limit for the process; what is too long is found when it is read
    try:
        with file.open() as stream:
            if not any(csv.reader(lines(stream))):  # stops behind the first row that is not blank
                return
            header = b"".join(taken).lstrip(b"\r\n")
            taken.clear()
            for row in csv.reader(lines(stream), delimiter=_delimiter(header), strict=True):
                if row:
                    yield header + b"".join(taken)
                taken.clear()
    except UNREADABLE as error:
        raise unreadable(file.where, error) from None
    except csv.Error:
        raise DataError('is not valid CSV: a quote is open at the end, or is not doubled inside a cell ("")') from None


def _delimiter(header: bytes) -> str:
    text = header.removeprefix(b"\xef\xbb\xbf").decode("latin-1")
    for delimiter in ",\t;":
        cells = next(csv.reader([text], delimiter=delimiter), [])
        if any(cell.strip().lower() in TEXT_NAMES for cell in cells):
            return delimiter
    return ","


def _stream(form: Format, file: Entry, files: int, how: ReadOptions, numbers: Iterator[int]) -> Iterator[Unit]:
    """One unit for each document that the format's own reader gives; over-long ones fail alone."""
    limit = how.max_chars
    documents = form.read([file] if files == 1 else [file, _END], replace(how, max_chars=_NO_LIMIT))
    index = 0
    try:
        for index, doc in enumerate(documents):
            content = _constant(msgspec.json.encode(jsonl.record_of(doc)))
            yield Unit(next(numbers), f"{file.name}:{index + 1}", doc.id, content, _checked(doc, limit))
    except _EndedError:
        return
    except DataError as error:
        yield _failing(next(numbers), f"{file.name}:{index + 2}", DataError(_BEHIND + error.message))


def _checked(doc: Document, limit: int) -> Callable[[bytes], Document]:
    def parse(_: bytes) -> Document:
        if len(doc.text) > limit:
            raise LimitError(f"{len(doc.text):,} characters, the limit is {limit:,}; raise it with --max-chars")
        return doc

    return parse


def _failing(number: int, name: str, error: DataError) -> Unit:
    def content() -> bytes:
        raise error

    return Unit(number, name, name, content, lambda _: Document.make(""))
