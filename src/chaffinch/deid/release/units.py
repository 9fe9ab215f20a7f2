"""The input of a release: its documents one by one, and all files that cannot be read, so that none is passed over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from chaffinch.errors import DataError
from chaffinch.text import Document
from chaffinch.text.formats import Format, ReadOptions, Unit, by_name, find_format
from chaffinch.text.formats.base import Entry, entries
from chaffinch.text.formats.units import failing_unit

_REST = "this document could not be read, and with it all that stand behind it in the file: "


@dataclass(frozen=True, slots=True)
class UnitSource:
    """An input: its format, and its units, walked as often as wanted."""

    form: Format
    walk: Callable[[], Iterator[Unit]] = field(repr=False)

    def __iter__(self) -> Iterator[Unit]:
        return self.walk()


def open_source(
    path: str | Path,
    *,
    form: str | None = None,
    how: ReadOptions | None = None,
    grouping: Callable[[Document], Document] = lambda doc: doc,
) -> UnitSource:
    """Return the documents of a file, folder or archive, numbered, each readable apart from the others if it can be.

    A file of another format is a unit that cannot be read. `grouping` gives each document its patient.
    """
    files, reading = entries(Path(path)), how or ReadOptions()
    found = by_name(form) if form else find_format([file for file in files if _opens(file)], Path(path))
    chosen = [file for file in files if file.suffix in found.suffixes or len(files) == 1]
    strange = DataError(f"is no {' or '.join(found.suffixes)} file, as {found.name} has")

    def units() -> Iterator[Unit]:
        yield from found.units(chosen, reading)
        for file in files:
            if file not in chosen:
                yield failing_unit(file.name, strange)

    def walk() -> Iterator[Unit]:
        for number, unit in enumerate(units(), start=1):
            yield replace(unit, number=number, parse=partial(_parse, unit.parse, grouping))

    return UnitSource(found, walk)


def read_unit(unit: Unit) -> Document:
    """Return the document of a unit; the error of one that stands for all that follow says so."""
    try:
        return unit.read()
    except DataError as error:
        if not unit.rest:
            raise
        raise DataError(_REST + error.message) from None


def _parse(parse: Callable[[bytes], Document], grouping: Callable[[Document], Document], content: bytes) -> Document:
    return grouping(parse(content))


def _opens(file: Entry) -> bool:
    try:
        file.head(1)
    except DataError:
        return False
    return True
