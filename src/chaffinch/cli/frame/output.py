"""How commands print: tables or JSON on stdout, remarks and progress on stderr; checks of where outputs go."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import msgspec

from chaffinch.errors import ChaffinchError, ConfigError

if TYPE_CHECKING:
    from rich.table import Table  # rich is loaded when something is shown: a quiet run needs none

T = TypeVar("T")


def emit(
    result: msgspec.Struct | Mapping[str, Any],
    *,
    as_json: bool,
    tables: Iterable[Table | str] = (),
    stream: TextIO | None = None,
) -> None:
    """Print a result to stdout or `stream`: as indented JSON, or as tables (200 columns wide if not a terminal)."""
    target = stream or sys.stdout
    if as_json:
        target.write(msgspec.json.format(msgspec.json.encode(result), indent=2).decode() + "\n")
        return
    from rich.console import Console

    console = Console(file=target)
    if not console.is_terminal:
        console = Console(width=200)
    with console.capture() as printed:
        for table in tables:
            console.print(table, markup=False, highlight=False)
    target.write("".join(line.rstrip() + "\n" for line in printed.get().splitlines()))


def note(message: str, *, quiet: bool) -> None:
    """Print a remark on stderr, unless quiet."""
    if not quiet:
        sys.stderr.write(message + "\n")


def label_of(key: str) -> str:
    """Return a JSON key as words: underscores become blanks."""
    return key.replace("_", " ")


def table_of(rows: Sequence[Mapping[str, Any]], *, title: str = "") -> Table:
    """Return a table of rows with a column per key; columns of numbers are aligned right."""
    from rich.table import Table

    table = Table(title=title or None, title_justify="left", show_edge=False, pad_edge=False, box=None)
    for key in rows[0] if rows else ():
        numeric = all(isinstance(row[key], int | float) or row[key] in ("", "-") for row in rows)
        table.add_column(label_of(key), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(f"{value:.4g}" if isinstance(value, float) else str(value) for value in row.values()))
    return table


def facts_table(facts: Mapping[str, Any]) -> Table:
    """Return a table of two columns without header: keys as words, and values."""
    from rich.table import Table

    table = Table(show_header=False, show_edge=False, pad_edge=False, box=None)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for key, value in facts.items():
        words = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
        table.add_row(label_of(key), words)
    return table


def progress(items: Iterable[T], what: str, *, quiet: bool, total: int | None = None) -> Iterator[T]:
    """Yield the items unchanged; show a progress bar on stderr if it is a terminal and not quiet."""
    if quiet or not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield from bar.track(items, total=total)


@contextmanager
def live_line(first: str, words: Callable[[T], str], *, quiet: bool) -> Iterator[Callable[[T], None] | None]:
    """Yield a callback that shows `words(step)` on one line of stderr; None if quiet or stderr is no terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as live:
        task = live.add_task(first, total=None)
        yield lambda step: live.update(task, description=words(step))


@contextmanager
def name_unwritable(output: Path) -> Iterator[None]:
    """Turn an OSError inside the block into a ChaffinchError that names the output path."""
    try:
        yield
    except OSError as error:
        raise ChaffinchError(f"{output}: could not be written ({error.strerror}); nothing was changed there") from None


def check_page(page: Path | None, *taken: Path | None) -> None:
    """Raise ConfigError if the file of --html cannot be written, or lies in one of the `taken` paths; None passes."""
    if page is None:
        return
    if not page.parent.is_dir():
        raise ConfigError(f"the folder {page.parent} of --html does not exist; make it first")
    if page.is_dir() or any(page.resolve().is_relative_to(path.resolve()) for path in taken if path is not None):
        raise ConfigError(f"--html {page} is a folder, or in the input or the output; name a file beside them")
    if page.exists() and not page.is_file():
        raise ConfigError(f"--html {page} is not an ordinary file; name another")
    try:
        with tempfile.TemporaryFile(dir=page.parent):
            pass
    except OSError as error:
        raise ConfigError(f"--html {page} cannot be written ({error.strerror}); name another place") from None
