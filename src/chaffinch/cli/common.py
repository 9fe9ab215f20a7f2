"""What every verb shares: options, tables or JSON on stdout, progress on stderr, and configuration files."""

from __future__ import annotations

import inspect
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Annotated, Any, TextIO, TypeVar, cast, get_type_hints

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from typer.core import TyperCommand

from chaffinch.cli.config_file import Config, ConfigFile
from chaffinch.errors import ChaffinchError, ConfigError, DataError
from chaffinch.text import MAX_CHARS
from chaffinch.text.document import Splitter
from chaffinch.text.formats.base import AUTO_SENTENCES, ReadOptions

__all__ = [
    "DEFAULT_MAX_CHARS", "CheckedCommand", "Config", "Documents", "From", "GroupBy", "IdColumn", "Json", "Layer",
    "Lines", "MaxChars", "NewLayer", "Out", "PatientColumn", "Quiet", "StoppedEarly", "TagNames", "TextColumns",
    "check_page", "documents_of", "emit", "facts_table", "file_of", "live_line", "name_unwritable", "names_of_tags",
    "note", "note_cut", "path_of", "progress", "read_group_by", "split_of", "table_of", "takes",
]  # fmt: skip

T = TypeVar("T")
Options = TypeVar("Options")

# A plain file name with a suffix: as a regular expression it would match almost no id, so it is a file that is missing.
_FILE_NAME = re.compile(r"[\w./~ -]+\.[A-Za-z]{2,5}")


class CheckedCommand(TyperCommand):
    """A command that refuses an option given twice, of which one would have no effect, and tells of unused tables."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Raise ConfigError if an option that takes one value is given several times."""
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        for option, times in Counter(given).items():
            plain_flag = getattr(option, "is_flag", False) and not getattr(option, "secondary_opts", ())
            if times > 1 and option.param_type_name == "option" and not option.multiple and not plain_flag:
                name = max(option.opts, key=len)
                raise ConfigError(f"{name} is given {times} times, and takes one value; give it once")
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; tables of other commands in its configuration file are a warning, or an error if strict."""
        config = ctx.params.get("config")
        for warning in config.warnings if isinstance(config, ConfigFile) else ():
            if ctx.params.get("strict"):
                raise ConfigError(f"--strict: {warning}")
            shown = self.name == "run"  # `deid run` has it in its table and manifest
            note(f"warning: {warning}", quiet=shown or bool(ctx.params.get("quiet")))
        return super().invoke(ctx)


class StoppedEarly(Exception):  # noqa: N818  (no error: what is done is kept)
    """The user stopped a command; what was done so far is kept, and the message says where."""


Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print results only.")]
Out = Annotated[Path, typer.Option("--output", "-o", help="Where to write.")]
From = Annotated[str | None, typer.Option("--from", help="Format of the input; recognised from content when left out.")]
MaxChars = Annotated[int, typer.Option("--max-chars", min=1, help="Refuse documents longer than this.")]
Layer = Annotated[str | None, typer.Option("--layer", help="Layer of spans to read; default: gold, or the only one.")]
NewLayer = Annotated[str | None, typer.Option("--new-layer", help="Name of the layer that is added.")]
GroupBy = Annotated[
    str | None,
    typer.Option(
        "--group-by",
        metavar="REGEX|FILE",
        help="The patient of a document: a regular expression on its id (the group in it), or a file of lines: id, "
        "tab, patient.",
    ),
]
Lines = Annotated[
    bool | None, typer.Option("--lines/--prose", help="Take each line as a sentence, or find sentences (default).")
]

TextColumns = Annotated[
    list[str],
    typer.Option("--text-column", metavar="NAME", help="Column of a text, in CSV, Parquet or JSONL. Several times."),
]
IdColumn = Annotated[str | None, typer.Option("--id-column", metavar="NAME", help="Column of the document's id.")]
PatientColumn = Annotated[str | None, typer.Option("--patient-column", metavar="NAME", help="Column of the patient.")]
Documents = Annotated[
    str | None,
    typer.Option(
        "--documents",
        metavar="sentence|block:N|file",
        help=f"What a document is in column files without -DOCSTART-; default: block:{AUTO_SENTENCES}.",
    ),
]
TagNames = Annotated[str, typer.Option("--tag-names", help="Names of integer tags: O,B-NAME,I-NAME,…")]

DEFAULT_MAX_CHARS = MAX_CHARS


def emit(
    result: msgspec.Struct | Mapping[str, Any],
    *,
    as_json: bool,
    tables: Iterable[Table | str] = (),
    stream: TextIO | None = None,
) -> None:
    """Print a result as one JSON object or as tables; a pipe gets wide lines, so that nothing is cut."""
    target = stream or sys.stdout
    if as_json:
        target.write(msgspec.json.format(msgspec.json.encode(result), indent=2).decode() + "\n")
        return
    console = Console(file=target)
    if not console.is_terminal:
        console = Console(width=200)
    with console.capture() as printed:
        for table in tables:
            console.print(table, markup=False, highlight=False)
    target.write("".join(line.rstrip() + "\n" for line in printed.get().splitlines()))


def note(message: str, *, quiet: bool) -> None:
    """Print a remark for people on stderr."""
    if not quiet:
        sys.stderr.write(message + "\n")


def label_of(key: str) -> str:
    """Return a key of a result in words, for people."""
    return key.replace("_", " ")


def table_of(rows: Sequence[Mapping[str, Any]], *, title: str = "") -> Table:
    """Return a table with one column per key of the rows; numbers are aligned right."""
    table = Table(title=title or None, title_justify="left", show_edge=False, pad_edge=False, box=None)
    for key in rows[0] if rows else ():
        numeric = all(isinstance(row[key], int | float) or row[key] in ("", "-") for row in rows)
        table.add_column(label_of(key), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(f"{value:.4g}" if isinstance(value, float) else str(value) for value in row.values()))
    return table


def facts_table(facts: Mapping[str, Any]) -> Table:
    """Return a table of two columns: keys and values."""
    table = Table(show_header=False, show_edge=False, pad_edge=False, box=None)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for key, value in facts.items():
        words = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
        table.add_row(label_of(key), words)
    return table


def progress(items: Iterable[T], what: str, *, quiet: bool, total: int | None = None) -> Iterator[T]:
    """Yield the items, with a progress bar on stderr if that is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield from items
        return
    columns = (SpinnerColumn(), TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield from bar.track(items, total=total)


@contextmanager
def live_line(first: str, words: Callable[[T], str], *, quiet: bool) -> Iterator[Callable[[T], None] | None]:
    """Yield a callback that shows each step on one live terminal line; None where stderr is no terminal."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as live:
        task = live.add_task(first, total=None)
        yield lambda step: live.update(task, description=words(step))


@contextmanager
def name_unwritable(output: Path) -> Iterator[None]:
    """Turn an OSError of the block into a ChaffinchError that names the output."""
    try:
        yield
    except OSError as error:
        raise ChaffinchError(f"{output}: could not be written ({error.strerror}); nothing was changed there") from None


def check_page(page: Path | None, *taken: Path | None) -> None:
    """Raise ConfigError, before any work is done, if a page cannot be written, or would overwrite what is `taken`."""
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


def file_of(config: object) -> ConfigFile | None:
    """Return the configuration file of a command: its option holds one, whatever its annotation says."""
    return config if isinstance(config, ConfigFile) else None


def path_of(config: object) -> Path | None:
    """Return the path of a command's configuration file."""
    file = file_of(config)
    return None if file is None else file.path


def read_group_by(value: str | None) -> tuple[str | None, dict[str, str] | None]:
    """Return the pattern or the table that --group-by names; a file has lines of id, tab or comma, patient."""
    if value is None:
        return None, None
    path = Path(value)
    if not path.is_file():
        if _FILE_NAME.fullmatch(value):
            raise ConfigError(f"--group-by {value}: no such file; give an existing file, or a regular expression")
        return value, None
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
            if groups.setdefault(key.strip(), group.strip()) != group.strip():
                raise DataError("an id has two patients; keep one line for each id", path=path, line=number)
    if not groups:
        raise ConfigError(f"--group-by {value}: the file has no line; write lines of: id, tab, patient")
    return None, groups


def documents_of(value: str | None) -> str:
    """Return what --documents names; without it, "auto": blocks of sentences, where a file marks no documents."""
    if value == "auto":
        raise ConfigError("--documents 'auto' is unknown; choose file, sentence or block:N (block:10)")
    return value or "auto"


def note_cut(options: ReadOptions, *, quiet: bool) -> None:
    """Say that column files without marks were cut into documents, unless that was asked for."""
    if options.cut and options.documents == "auto":
        files = "A column file has" if len(options.cut) == 1 else f"{len(options.cut)} column files have"
        note(
            f"{files} no -DOCSTART-, so every {options.sentences} sentences are a document; --documents file, sentence "
            "or block:N decides otherwise.",
            quiet=quiet,
        )


def names_of_tags(value: str) -> tuple[str, ...]:
    """Return the names of integer tags that --tag-names lists."""
    return tuple(name.strip() for name in value.split(",") if name.strip())


def split_of(lines: bool | None) -> Splitter:
    """Return how to cut text into sentences: at line ends if --lines was given."""
    return "lines" if lines else "prose"


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
