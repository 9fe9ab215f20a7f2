"""The input of a release: its documents one by one, and every file that cannot be read, so that none is skipped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from chaffinch.errors import DataError
from chaffinch.text import Document
from chaffinch.text.formats import Format, ReadOptions, Unit, by_name, find_format
from chaffinch.text.formats.base import Entry, entries
from chaffinch.text.formats.units import failing_unit

_REST = "this document could not be read, nor any document after it in the file: "


@dataclass(frozen=True, slots=True)
class UnitSource:
    """An input: its format, and its units, which can be iterated repeatedly."""

    form: Format
    walk: Callable[[], Iterator[Unit]] = field(repr=False)

    def __iter__(self) -> Iterator[Unit]:
        return self.walk()


def open_source(
    path: str | Path,
    *,
    form: str | None = None,
    options: ReadOptions | None = None,
    grouping: Callable[[Document], Document] = lambda doc: doc,
    files: Sequence[Entry] | None = None,
) -> UnitSource:
    """Return the numbered documents of a file, folder or archive, read independently of each other where possible.

    A file of another format is a unit that cannot be read. `grouping` assigns each document its patient. `files`
    are read instead of those at the path.
    """
    files, read_options = entries(Path(path)) if files is None else files, options or ReadOptions()
    format_ = by_name(form) if form else find_format([file for file in files if _opens(file)], Path(path))
    chosen = [file for file in files if file.suffix in format_.suffixes or len(files) == 1]
    wrong_format = DataError(f"is no {' or '.join(format_.suffixes)} file, which {format_.name} needs")

    def units() -> Iterator[Unit]:
        yield from format_.units(chosen, read_options)
        for file in files:
            if file not in chosen:
                yield failing_unit(file.name, wrong_format)

    def walk() -> Iterator[Unit]:
        for number, unit in enumerate(units(), start=1):
            yield replace(unit, number=number, parse=partial(_parse, unit.parse, grouping))

    return UnitSource(format_, walk)


def read_unit(unit: Unit) -> Document:
    """Return the document of a unit; if its failure also hides all following documents, the error says so."""
    try:
        return unit.read()
    except DataError as error:
        if not unit.rest:
            raise
        raise DataError(_REST + error.message) from None


def _parse(parse: Callable[[bytes], Document], grouping: Callable[[Document], Document], content: bytes) -> Document:
    return grouping(parse(content))


def _opens(file: Entry) -> bool:
    """Tell whether a file can be opened and read."""
    try:
        file.head(1)
    except DataError:
        return False
    return True
