"""What every verb shares: options, tables or JSON on stdout, progress on stderr, and configuration files."""

from __future__ import annotations

import inspect
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast, get_type_hints

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from chaffinch.checks import did_you_mean
from chaffinch.errors import ChaffinchError, ConfigError, DataError
from chaffinch.text import MAX_CHARS

T = TypeVar("T")
Options = TypeVar("Options")


class StoppedEarly(Exception):  # noqa: N818  (no error: what is done is kept)
    """The user stopped a command; what was done so far is kept, and the message says where."""


def load_config(context: typer.Context, path: Path | None) -> Path | None:
    """Takes the values of a TOML file as defaults of the command's options; flags win."""
    if path is None:
        return None
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"--config {path} cannot be read ({reason})") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"--config {path} is not valid TOML: {error}") from None
    plain = {key: value for key, value in content.items() if not isinstance(value, dict)}
    chosen = {
        key.replace("-", "_"): value for key, value in {**plain, **content.get(context.command.name or "", {})}.items()
    }
    options = {option.lstrip("-").replace("-", "_"): p.name for p in context.command.params for option in p.opts}
    for key in chosen:
        if key not in options:
            raise ConfigError(f"--config {path}: unknown key {key!r}; {did_you_mean(key, options)}")
    context.default_map = {**(context.default_map or {}), **{str(options[key]): v for key, v in chosen.items()}}
    return path


Config = Annotated[
    Path | None,
    typer.Option("--config", is_eager=True, callback=load_config, help="TOML file with the same names; flags win."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print results only.")]
Out = Annotated[Path, typer.Option("--output", "-o", help="Where to write.")]
From = Annotated[str | None, typer.Option("--from", help="Format of the input; recognised from content when left out.")]
MaxChars = Annotated[int, typer.Option("--max-chars", min=1, help="Refuse documents longer than this.")]
Layer = Annotated[str | None, typer.Option("--layer", help="The layer of spans; default: gold, or the only one.")]

DEFAULT_MAX_CHARS = MAX_CHARS


def emit(result: Mapping[str, Any], *, as_json: bool, tables: Iterable[Table | str] = ()) -> None:
    """Prints a result: one JSON object, or its tables; a pipe gets wide lines, so that nothing is cut."""
    if as_json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(result), indent=2).decode() + "\n")
        return
    console = Console()
    if not console.is_terminal:
        console = Console(width=200)
    with console.capture() as printed:
        for table in tables:
            console.print(table, markup=False, highlight=False)
    sys.stdout.write("".join(line.rstrip() + "\n" for line in printed.get().splitlines()))


def note(message: str, *, quiet: bool) -> None:
    """A remark for people, on stderr."""
    if not quiet:
        sys.stderr.write(message + "\n")


def table_of(rows: Sequence[Mapping[str, Any]], *, title: str = "") -> Table:
    """A table with one column per key of the rows; numbers are set right."""
    table = Table(title=title or None, title_justify="left", show_edge=False, pad_edge=False, box=None)
    for key in rows[0] if rows else ():
        numeric = all(isinstance(row[key], int | float) or row[key] in ("", "-") for row in rows)
        table.add_column(key, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(f"{value:.4g}" if isinstance(value, float) else str(value) for value in row.values()))
    return table


def facts_table(facts: Mapping[str, Any]) -> Table:
    """A table of two columns: what, and its value."""
    table = Table(show_header=False, show_edge=False, pad_edge=False, box=None)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for key, value in facts.items():
        table.add_row(key, f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value))
    return table


def progress(items: Iterable[T], what: str, *, quiet: bool, total: int | None = None) -> Iterator[T]:
    """The items, with a bar on stderr while they pass; on a terminal only."""
    if quiet or not sys.stderr.isatty():
        yield from items
        return
    columns = (SpinnerColumn(), TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield from bar.track(items, total=total)


@contextmanager
def live_line(first: str, words: Callable[[T], str], *, quiet: bool) -> Iterator[Callable[[T], None] | None]:
    """Who is told of every step: one live line of words on a terminal, else nobody."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as live:
        task = live.add_task(first, total=None)
        yield lambda step: live.update(task, description=words(step))


@contextmanager
def naming_unwritable(output: Path) -> Iterator[None]:
    """Say in plain words that the disk refuses an output, inside a block that writes it."""
    try:
        yield
    except OSError as error:
        raise ChaffinchError(f"{output}: could not be written ({error.strerror}); nothing was changed there") from None


def read_groups(path: Path | None) -> dict[str, str] | None:
    """The table id → patient of a file with two tab- or comma-separated columns."""
    if path is None:
        return None
    groups: dict[str, str] = {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeError):
        raise DataError("cannot be read as UTF-8; it must hold lines of: id, tab, patient", path=path) from None
    for number, line in enumerate(lines, start=1):
        if line.strip():
            key, mark, group = line.partition("\t" if "\t" in line else ",")
            if not mark or not group.strip():
                raise DataError("expected two columns: id, tab, patient", path=path, line=number)
            groups[key.strip()] = group.strip()
    return groups


def takes(options: type[Options]) -> Callable[[Callable[[Options], None]], Callable[..., None]]:
    """Make a command of a function of one value: each field of the value's class is an option of the command."""
    hints = get_type_hints(options, include_extras=True)

    def wrap(run: Callable[[Options], None]) -> Callable[..., None]:
        def command(**given: Any) -> None:
            run(options(**given))

        parameters = [
            inspect.Parameter(
                each.name, inspect.Parameter.KEYWORD_ONLY, default=_default(each), annotation=hints[each.name]
            )
            for each in fields(cast(Any, options))
        ]
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__, command.__doc__, command.__name__ = hints, run.__doc__, run.__name__
        return command

    return wrap


def _default(option: Field[Any]) -> Any:
    if option.default_factory is not MISSING:
        return option.default_factory()
    return inspect.Parameter.empty if option.default is MISSING else option.default
