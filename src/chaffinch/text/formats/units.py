"""Units of input: the bytes of one document each, and the function that parses them.

Every format cuts its files into units, so that a document that cannot be read keeps no other from being read. Units
hold no open file, only values and functions of modules, so that another process can parse them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Generic, TypeVar

import msgspec

from chaffinch.errors import DataError
from chaffinch.text.document import Document
from chaffinch.text.formats.base import READ_ERRORS, Entry, decode, read_error

R = TypeVar("R")

BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Unit:
    """One document of an input that is not parsed yet.

    `name` is its file (and record), for private lists only; `id` is its name if it cannot be read. `rest`: it cannot be
    read, and represents all that follow it in its file. `number` is its position in the input, from 1 on; 0 until the
    units are counted.
    """

    name: str = field(repr=False)
    id: str = field(repr=False)
    content: Callable[[], bytes] = field(repr=False)
    parse: Callable[[bytes], Document] = field(repr=False)
    rest: bool = False
    number: int = 0

    def read(self) -> Document:
        """Return the document; DataError if it cannot be read."""
        return self.parse(self.content())

    def hold(self) -> Unit:
        """Return the unit with its bytes in memory, read from its file once; DataError if that fails."""
        return replace(self, content=partial(same_bytes, self.content()))


@dataclass(frozen=True, slots=True)
class Record(Generic[R]):
    """One document of a file: the name it has if it has no id, its line, and its value."""

    name: str
    line: int | None
    value: R = field(repr=False)


def file_units(files: Iterable[Entry], make: Callable[[str, str, bytes], Document]) -> Iterator[Unit]:
    """Yield a unit per file; reading it calls `make` with the file's stem, its path for messages, and its bytes."""
    for file in files:
        yield Unit(file.name, file.stem, file.content, partial(make, file.stem, file.where))


def record_units(
    file: Entry, records: Iterable[Record[R]], make: Callable[[str, R], Document], word: str = ""
) -> Iterator[Unit]:
    """Yield a unit per record; reading it calls `make`; where `records` raises DataError, a failing unit is the last.

    If the records can no longer be separated, all that follow are one unit that fails. Messages begin with `word` and
    the number of the record, for files in which line numbers do not help.
    """
    number = 0
    try:
        for number, record in enumerate(records, start=1):
            place = f"{word} {number}: " if word else ""
            parse = partial(_parse_record, make, record, file.where, place)
            yield Unit(f"{file.name}:{number}", record.name, partial(_encode, record.value), parse)
    except DataError as error:
        yield failing_unit(f"{file.name}:{number + 1}", error.at(file.where), rest=True)


def line_units(
    files: Sequence[Entry], make: Callable[[str, str, int, str], Document], *, make_id: Callable[[Entry, int], str]
) -> Iterator[Unit]:
    """Yield a unit per line that is not blank; reading it calls `make`; a file that breaks off ends in a failing unit.

    `make` gets the text of the line, the path of its file and its number in it, and the name of a document that has no
    id, which `make_id` makes of the file and the index of the document.
    """
    for file in files:
        index = 0
        try:
            for number, line in _lines(file):
                name = make_id(file, index)
                index += 1
                parse = partial(_parse_line, make, file.where, number, name)
                yield Unit(f"{file.name}:{index}", name, partial(same_bytes, line), parse)
        except DataError as error:
            yield failing_unit(f"{file.name}:{index + 1}", error, rest=True)


def failing_unit(name: str, error: DataError, *, rest: bool = False) -> Unit:
    """Return a unit that raises the error when it is read; with `rest`, it represents all that follow in its file."""
    return Unit(name, name, partial(_fail, error), _parse_nothing, rest)


def same_bytes(content: bytes) -> bytes:
    """Return the content unchanged; with `partial`, a unit's function for content that is in memory."""
    return content


def _lines(file: Entry) -> Iterator[tuple[int, bytes]]:
    """Yield (line number from 1, bytes with line end) of lines that are not blank; DataError if unreadable."""
    try:
        with file.open() as stream:
            for number, line in enumerate(stream, start=1):
                if line.removeprefix(BOM).strip():
                    yield number, line
    except READ_ERRORS as error:
        raise read_error(file.where, error) from None


def _parse_line(
    make: Callable[[str, str, int, str], Document], where: str, number: int, name: str, line: bytes
) -> Document:
    """Return the document that `make` returns for a line of UTF-8; a DataError names the path and line."""
    text = decode(line.removeprefix(BOM), where, number)
    try:
        return make(text, where, number, name)
    except DataError as error:
        raise error.at(where, number) from None


def _parse_record(make: Callable[[str, R], Document], record: Record[R], where: str, place: str, _: bytes) -> Document:
    """Return the document that `make` returns for a record; a DataError names the path, the line and its place.

    The last parameter, the unit's bytes, is not used: the record is parsed already.
    """
    try:
        return make(record.name, record.value)
    except DataError as error:
        error.message = place + error.message
        raise error.at(where, record.line) from None


def _encode(value: object) -> bytes:
    """Return bytes that represent a value, to hash it: MessagePack, or `repr` where that fails."""
    try:
        return msgspec.msgpack.encode(value, enc_hook=repr)
    except OverflowError:  # a number of more than 64 bits
        return repr(value).encode("utf-8", "surrogatepass")


def _fail(error: DataError) -> bytes:
    """Raise the error: what reads the content of a unit that cannot be read."""
    raise error


def _parse_nothing(_: bytes) -> Document:
    """Return an empty document; the parser of a unit whose content already failed."""
    return Document.make("")
