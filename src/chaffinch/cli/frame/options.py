"""Options that several verbs share, and what their values mean."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Protocol

import typer

from chaffinch.cli.frame.config_file import ConfigFile
from chaffinch.cli.frame.output import note
from chaffinch.errors import ConfigError, DataError
from chaffinch.text import MAX_CHARS, Corpus
from chaffinch.text.columns import ColumnChoice
from chaffinch.text.document import Splitter
from chaffinch.text.formats import read
from chaffinch.text.formats.base import AUTO_SENTENCES, ReadOptions

# A plain file name with a suffix: as a regular expression it would match almost no id, so it is a file that is missing.
_FILE_NAME = re.compile(r"[\w./~ -]+\.[A-Za-z]{2,5}")

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print results only.")]
Out = Annotated[Path, typer.Option("--output", "-o", help="Where to write.")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace what an earlier run wrote to the output; else it is refused.")
]
From = Annotated[str | None, typer.Option("--from", help="Format of the input; recognised from content when left out.")]
MaxChars = Annotated[int, typer.Option("--max-chars", min=1, help="Refuse documents of more characters than this.")]
Layer = Annotated[str | None, typer.Option("--layer", help="Layer of spans to read; default: gold, or the only one.")]
NewLayer = Annotated[str | None, typer.Option("--new-layer", help="Name of the layer that is added.")]
GroupBy = Annotated[
    str | None,
    typer.Option(
        "--group-by",
        metavar="REGEX|FILE",
        help="How to tell a document's patient: a regular expression on its id, whose group is the patient, or a file "
        "with lines of id, tab, patient.",
    ),
]
Lines = Annotated[
    bool | None, typer.Option("--lines/--prose", help="Take each line as a sentence, or find sentences (default).")
]
TextColumns = Annotated[
    list[str],
    typer.Option("--text-column", metavar="NAME", help="Column of the text, in CSV, Parquet or JSONL. Several times."),
]
IdColumn = Annotated[str | None, typer.Option("--id-column", metavar="NAME", help="Column of the document's id.")]
PatientColumn = Annotated[
    str | None, typer.Option("--patient-column", metavar="NAME", help="Column that names the patient.")
]
Documents = Annotated[
    str | None,
    typer.Option(
        "--documents",
        metavar="sentence|block:N|file",
        help=f"What a document is in column files without -DOCSTART-; default: block:{AUTO_SENTENCES}.",
    ),
]
Workers = Annotated[
    str,
    typer.Option(
        "--workers", metavar="N|auto", help="Processes at once; auto: one per core. Any number gives the same output."
    ),
]
TagNames = Annotated[str, typer.Option("--tag-names", help="Names of integer tags: O,B-NAME,I-NAME,…")]
DEFAULT_MAX_CHARS = MAX_CHARS


def file_of(config: object) -> ConfigFile | None:
    """Return the value of --config as a ConfigFile, which typer annotates as a path; None without --config."""
    return config if isinstance(config, ConfigFile) else None


def path_of(config: object) -> Path | None:
    """Return the path given with --config, or None."""
    file = file_of(config)
    return None if file is None else file.path


def read_group_by(value: str | None) -> tuple[str | None, dict[str, str] | None]:
    """Return (regex, None), (None, {id: patient}) of a file or (None, None) for --group-by; ConfigError, DataError."""
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


class ColumnOptions(Protocol):
    """The options by which a verb names the columns of a table."""

    @property
    def text_column(self) -> Sequence[str]:
        """Return the values of --text-column."""

    @property
    def id_column(self) -> str | None:
        """Return the value of --id-column, None if it is not given."""

    @property
    def patient_column(self) -> str | None:
        """Return the value of --patient-column, None if it is not given."""


def columns_of(options: ColumnOptions) -> ColumnChoice:
    """Return the columns that --text-column, --id-column and --patient-column name."""
    return ColumnChoice(tuple(options.text_column), options.id_column, options.patient_column)


def read_grouped(
    source: Path, form: str | None, how: ReadOptions, group_by: str | None, *, must_group: bool = True
) -> Corpus:
    """Return an input's documents with the patients of --group-by, read on each iteration; ConfigError or DataError."""
    pattern, table = read_group_by(group_by)
    return read(source, format=form, how=how, group=pattern, groups=table, must_group=must_group)


def documents_of(value: str | None) -> str:
    """Return the value of --documents, "auto" if it is not given; raise ConfigError if "auto" is given."""
    if value == "auto":
        raise ConfigError("--documents 'auto' is unknown; choose file, sentence or block:N (block:10)")
    return value or "auto"


def note_cut(options: ReadOptions, *, quiet: bool) -> None:
    """Print on stderr that column files without -DOCSTART- were cut into blocks, unless --documents was given."""
    if options.cut and options.documents == "auto":
        files = "A column file has" if len(options.cut) == 1 else f"{len(options.cut)} column files have"
        note(
            f"{files} no -DOCSTART-, so every {options.sentences} sentences are a document; --documents file, sentence "
            "or block:N decides otherwise.",
            quiet=quiet,
        )


def names_of_tags(value: str) -> tuple[str, ...]:
    """Parse --tag-names: return the names between commas, without blanks."""
    return tuple(name.strip() for name in value.split(",") if name.strip())


def split_of(lines: bool | None) -> Splitter:
    """Return how to split text into sentences: "lines" with --lines, else "prose"."""
    return "lines" if lines else "prose"


def count_workers(wanted: str) -> int:
    """Return the number of workers asked for: 1 to 1024, or "auto" for one per core; else raise ConfigError.

    >>> count_workers("3")
    3
    """
    if wanted == "auto":
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not wanted.isdecimal() or not 1 <= int(wanted) <= 1024:
        raise ConfigError(f"--workers {wanted!r} is neither auto nor a number from 1 to 1024")
    return int(wanted)
