"""Reading and writing of documents: one module per format; formats are recognised from content, losses counted."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path, PurePosixPath

from chaffinch.errors import ConfigError, DataError, LossError
from chaffinch.text.corpus import Corpus
from chaffinch.text.document import Document
from chaffinch.text.formats._shared.single_file import SingleFile, has_one_file
from chaffinch.text.formats.base import Entry, Format, Losses, ReadOptions, WriteOptions, atomic_output
from chaffinch.text.formats.units import Unit
from chaffinch.text.formats.walk import walk_input
from chaffinch.text.grouping import Grouping


def _discover() -> tuple[Format, ...]:
    """Import this folder's public modules; return their formats in the order they are tried, most general last."""
    names = [module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")]
    modules = [import_module(f"{__name__}.{name}") for name in names]
    found: list[Format] = [form for module in modules for form in getattr(module, "FORMATS", ())]
    return tuple(sorted(found, key=lambda form: form.can.generality))


FORMATS: tuple[Format, ...] = _discover()

_PACKED = {".gz", ".tgz", ".zip", ".tar"}
_GENERAL = {"", ".txt", ".json", ".xml"}  # suffixes that do not identify a format

__all__ = [
    "FORMATS",
    "Format",
    "Losses",
    "ReadOptions",
    "Unit",
    "WriteOptions",
    "by_name",
    "check_columns",
    "check_suffix",
    "find_format",
    "has_suffix",
    "output_format",
    "output_variant",
    "read",
    "write",
]


def by_name(name: str) -> Format:
    """Return the format of this name; ConfigError, which lists all names, if there is none."""
    for form in FORMATS:
        if form.name == name:
            return form
    raise ConfigError(f"unknown format {name!r}; choose one of {', '.join(sorted(f.name for f in FORMATS))}")


def find_format(files: Sequence[Entry], path: Path) -> Format:
    """Return the files' one format, by content, else by suffix; DataError if there is none or several, or no file."""
    if not files:
        raise DataError("has no files that can be read; check the path and its permissions", path=path)
    found: dict[str, Format] = {}
    for file in files:
        head = file.head()
        form = next((form for form in FORMATS if form.recognises(file, head)), None)
        if form is not None:
            found[form.name] = form
    if not found:  # broken content: the suffix gives the intended format, and reading then reports the fault
        suffixes = {file.suffix for file in files} - _GENERAL
        found = {form.name: form for form in FORMATS for suffix in suffixes if suffix == form.suffixes[0]}
    # A text beside its annotations is part of another format.
    found = {name: form for name, form in found.items() if form.can.annotated_as not in found}
    if not found:
        raise DataError("no known format was recognised; name it with --from", path=path)
    if len(found) > 1:
        raise DataError(f"holds several formats ({', '.join(found)}); choose one with --from", path=path)
    return next(iter(found.values()))


def read(
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002  (the word users know)
    how: ReadOptions | None = None,
    group: str | None = None,
    groups: Mapping[str, str] | None = None,
    must_group: bool = True,
) -> Corpus:
    """Return a corpus that reads a file, folder or archive on each iteration; DataError, or ConfigError for options.

    `format` is recognised from content when not given. `group` is a regular expression on the document's id
    whose first group (or whole match) is the patient; `groups` maps ids to patients. If they assign a patient to no
    document, the iteration ends in ConfigError, unless `must_group` is False (for a second file of the same job).
    Links are followed. Raise DataError for a note, folder or archive that cannot be read.
    """
    tree = walk_input(Path(path))
    files = tree.files
    if not files and tree.unread:
        raise tree.unread[0].error()
    form = by_name(format) if format else find_format(files, Path(path))
    for item in tree.unread:
        if item.container or has_suffix(item.name, form):
            raise item.error()
    chosen = [file for file in files if file.suffix in form.suffixes or len(files) == 1]
    if not chosen:
        raise DataError(f"has no {' or '.join(form.suffixes)} file, as {form.name} has", path=path)
    if "!" in chosen[0].where:
        chosen = _strip_common_folder(chosen)
    reading = how or ReadOptions()
    check_columns(form, reading)
    _check_options(form, reading)
    grouping = Grouping(group, groups, option="--group-by")

    def walk() -> Iterator[Document]:
        """Set the counts of losses to zero; return an iterator of the documents with their patients assigned."""
        reading.losses.counts.clear()  # losses are those of the last iteration
        return grouping.assign((unit.read() for unit in form.units(chosen, reading)), must=must_group)

    return Corpus(walk, form.name)


def write(
    documents: Iterable[Document],
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002  (the word users know)
    layer: str | None = None,
    strict: bool = False,
    losses: Losses | None = None,
    keep_columns: bool = False,
) -> Losses:
    """Write documents to a path, whole or not at all; return what was lost; `strict`: then LossError, nothing written.

    The output appears complete or not at all. `format` follows from the suffix of `path` when not given. Give the
    `losses` of the `ReadOptions` to count the losses of reading and writing together. With `keep_columns`, tables keep
    the names of the columns they were read from.
    """
    target = Path(path)
    form = output_format(target, format)
    options = WriteOptions(losses if losses is not None else Losses(), layer, keep_columns)
    with atomic_output(target) as beside:
        form.write(documents, beside, options)
        if strict and options.losses:
            lost = ", ".join(f"{what} ({number})" for what, number in sorted(options.losses.counts.items()))
            raise LossError(f"not kept in {form.name}: {lost}; choose another format, or leave --strict out")
    return options.losses


def check_columns(form: Format, options: ReadOptions) -> None:
    """Raise ConfigError if the user names columns for a format without columns; else do nothing."""
    if options.columns and not form.can.columns:
        named = ", ".join(other.name for other in FORMATS if other.can.columns)
        raise ConfigError(f"{form.name} has no columns, so none can be named; columns are of {named}")


def has_suffix(name: str, form: Format) -> bool:
    """Tell whether a file name, with or without .gz, has a suffix of the format."""
    return name.lower().removesuffix(".gz").endswith(form.suffixes)


def output_format(target: Path, name: str | None = None) -> Format:
    """Return the format of this name, else of the path's suffix (no folder formats); ConfigError if unknown."""
    if name:
        return by_name(name)
    found = [form for form in FORMATS if not form.folder and target.name.endswith(form.suffixes[0])]
    if found:
        return max(found, key=lambda form: len(form.suffixes[0]))  # ".hf.jsonl" before ".jsonl"
    raise ConfigError(f"the suffix {target.suffix!r} does not identify the output format; name it with --to")


def output_variant(form: Format, target: Path, *, single: bool = False) -> Format:
    """Return the format's variant for the output's suffix, or one for a single file; else the format itself.

    With `single` there is one input file: a format of one file per document can then be written to one file.
    """
    name = dict(form.can.variants).get(target.suffix)
    if name is not None:
        return by_name(name)
    named = target.suffix.lower() in form.suffixes or target.name == "-"
    return SingleFile(form) if single and named and has_one_file(form) else form


def check_suffix(form: Format, target: Path) -> None:
    """Raise ConfigError if the output's suffix is of another format, or of an archive; none at all is allowed."""
    suffix = target.suffix.lower()
    if suffix in _PACKED:
        raise ConfigError(f"{target.name} would be an archive, and outputs are not compressed; leave {suffix} out")
    usual = ("",) if form.folder else ("", *form.suffixes)
    others = sorted(other.name for other in FORMATS if suffix in other.suffixes)
    if suffix not in usual and others:
        remedy = "name a folder" if form.folder else f"name it {target.stem}{form.suffixes[0]}"
        raise ConfigError(
            f"the output is {form.name}, the format of the input, and {suffix} is the suffix of {', '.join(others)}; "
            f"{remedy}, and convert it afterwards"
        )


def _check_options(form: Format, options: ReadOptions) -> None:
    """Raise ConfigError for read options that the format does not use, unless they are lenient."""
    asked = {"--documents": (options.asks_to_cut, "cuts"), "--tag-names": (bool(options.tag_names), "names_tags")}
    for option, (given, ability) in asked.items():
        if given and not options.lenient and not getattr(form.can, ability):
            able = ", ".join(other.name for other in FORMATS if getattr(other.can, ability))
            raise ConfigError(f"{option} means nothing for {form.name}, only for {able}; leave it out")


def _strip_common_folder(files: Sequence[Entry]) -> list[Entry]:
    """Return the members of an archive, the leading folders common to all removed from their names."""
    folders = [PurePosixPath(file.name).parent.parts for file in files]
    shared = 0
    while all(len(parts) > shared and parts[shared] == folders[0][shared] for parts in folders):
        shared += 1
    return [replace(file, name="/".join(PurePosixPath(file.name).parts[shared:])) for file in files]
