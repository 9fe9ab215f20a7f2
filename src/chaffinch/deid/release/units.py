"""The input of a release: its documents one by one, and every file that cannot be read, so that none is skipped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from chaffinch.errors import DataError
from chaffinch.text import Document
from chaffinch.text.formats import Format, ReadOptions, Unit, by_name, find_format, has_suffix
from chaffinch.text.formats.base import Entry, Excluded, InputTree
from chaffinch.text.formats.units import failing_unit
from chaffinch.text.formats.walk import walk_input
from chaffinch.text.grouping import Grouping

T = TypeVar("T")
NO_GROUPING = Grouping()

_REST = "this document could not be read, nor any document after it in the file: "


class _Count:
    """The number of units that the last iteration yielded so far."""

    units: int = 0


@dataclass(frozen=True, slots=True)
class UnitSource:
    """An input: its format, its units, which can be iterated repeatedly, and the items that a rule excludes."""

    form: Format
    walk: Callable[[], Iterator[Unit]] = field(repr=False)
    excluded: tuple[Excluded, ...] = ()
    _count: _Count = field(default_factory=_Count, repr=False)

    def __iter__(self) -> Iterator[Unit]:
        """Yield the units, numbered from 1, and count them for `seen`."""
        self._count.units = 0
        for number, unit in enumerate(self.walk(), start=1):
            self._count.units = number
            yield replace(unit, number=number)

    @property
    def seen(self) -> int:
        """Return the number of units of the last iteration plus the number of excluded items.

        The reader counts them here, whatever becomes of them later.
        """
        return self._count.units + len(self.excluded)


def open_source(
    path: str | Path,
    *,
    form: str | None = None,
    options: ReadOptions | None = None,
    grouping: Callable[[Document], Document] = NO_GROUPING,
    given: Sequence[Entry] | None = None,
    follow: bool = False,
) -> UnitSource:
    """Return a path's documents as units; unreadable ones fail when read; DataError if no format fits.

    An item that cannot be read is a unit that fails. Files of another format are excluded, as are hidden ones and,
    without `follow`, links that lead out of a folder. `grouping` assigns each document its patient.
    `given` files are read instead of those at the path.
    """
    tree = walk_input(Path(path), follow=follow) if given is None else InputTree(list(given))
    read_options = options or ReadOptions()
    files = tree.files
    if not files and tree.unread and not form:
        raise tree.unread[0].error()
    format_ = by_name(form) if form else find_format([file for file in files if _opens(file)], Path(path))
    chosen, others = _divide(files, lambda file: file.suffix in format_.suffixes or len(files) == 1)
    unread, no_notes = _divide(tree.unread, lambda item: item.container or has_suffix(item.name, format_))
    rule = f"is no {' or '.join(format_.suffixes)} file, which {format_.name} needs"
    names = [*(file.name for file in others), *(item.name for item in no_notes)]
    excluded = (*tree.excluded, *(Excluded(name, rule) for name in names))

    def walk() -> Iterator[Unit]:
        """Yield the units of all files of the format, then a failing unit for each item that cannot be read."""
        for unit in format_.units(chosen, read_options):
            yield replace(unit, parse=partial(_parse, unit.parse, grouping))
        for item in unread:
            yield failing_unit(item.name, item.error())

    return UnitSource(format_, walk, tuple(sorted(excluded, key=lambda item: item.name)))


def read_unit(unit: Unit) -> Document:
    """Parse a unit; raise DataError if it fails, which says if all following documents of the file are lost too."""
    try:
        return unit.read()
    except DataError as error:
        if not unit.rest:
            raise
        line = "" if error.line is None else f"line {error.line}: "
        raise DataError(_REST + line + error.message, line=error.line) from None


def _parse(parse: Callable[[bytes], Document], grouping: Callable[[Document], Document], content: bytes) -> Document:
    """Parse bytes to a document, and assign its patient."""
    return grouping(parse(content))


def _divide(items: Iterable[T], belongs: Callable[[T], bool]) -> tuple[list[T], list[T]]:
    """Return (items for which `belongs` is true, the other items)."""
    parts: tuple[list[T], list[T]] = ([], [])
    for item in items:
        parts[not belongs(item)].append(item)
    return parts


def _opens(file: Entry) -> bool:
    """Tell whether the beginning of a file can be read."""
    try:
        file.head()
    except DataError:
        return False
    return True
