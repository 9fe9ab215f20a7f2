"""Reading and writing documents: one file per format, recognised from content, losses reported."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path, PurePosixPath

from chaffinch.errors import ConfigError, DataError, LossError
from chaffinch.text.corpus import Corpus
from chaffinch.text.document import Document
from chaffinch.text.formats.base import Entry, Format, Losses, ReadOptions, Writing, entries, replacing
from chaffinch.text.formats.units import Unit
from chaffinch.text.grouping import Grouping


def _discover() -> tuple[Format, ...]:
    """Return the formats that the modules beside this one list, in the order in which they are asked for a file."""
    names = [module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")]
    modules = [import_module(f"{__name__}.{name}") for name in names]
    found: list[Format] = [form for module in modules for form in getattr(module, "FORMATS", ())]
    return tuple(sorted(found, key=lambda form: form.can.generality))


FORMATS: tuple[Format, ...] = _discover()

_GENERAL = {"", ".txt", ".json", ".xml"}  # suffixes that tell nothing

__all__ = [
    "FORMATS",
    "Format",
    "Losses",
    "ReadOptions",
    "Unit",
    "Writing",
    "by_name",
    "find_format",
    "output_format",
    "output_variant",
    "read",
    "write",
]


def by_name(name: str) -> Format:
    """The format of that name."""
    for form in FORMATS:
        if form.name == name:
            return form
    raise ConfigError(f"unknown format {name!r}; choose one of {', '.join(sorted(f.name for f in FORMATS))}")


def find_format(files: Sequence[Entry], path: Path) -> Format:
    """The one format of the files, from their content; none or several is an error that says what to do."""
    if not files:
        raise DataError("has no files that can be read; check the path and its permissions", path=path)
    found: dict[str, Format] = {}
    for file in files:
        head = file.head()
        form = next((form for form in FORMATS if form.recognises(file, head)), None)
        if form is not None:
            found[form.name] = form
    if not found:  # broken content; the name of the file tells what it should be, and reading what is wrong
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
) -> Corpus:
    """The documents of a file, folder or archive, as a stream that can be walked many times.

    `format` is recognised from content when not given. `group` is a regular expression on the document's id
    whose first group (or whole match) is the patient; `groups` maps ids to patients.
    """
    files = entries(Path(path))
    form = by_name(format) if format else find_format(files, Path(path))
    chosen = [file for file in files if file.suffix in form.suffixes or len(files) == 1]
    if not chosen:
        raise DataError(f"has no {' or '.join(form.suffixes)} file, as {form.name} has", path=path)
    if "!" in chosen[0].where:
        chosen = _without_common_folder(chosen)
    reading = how or ReadOptions()

    grouping = Grouping(group, groups)

    def walk() -> Iterator[Document]:
        reading.losses.counts.clear()  # the account is that of the last walk
        return (grouping(unit.read()) for unit in form.units(chosen, reading))

    return Corpus(walk, form.name)


def write(
    documents: Iterable[Document],
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002  (the word users know)
    layer: str | None = None,
    strict: bool = False,
    losses: Losses | None = None,
) -> Losses:
    """Writes documents and returns the account of what could not be kept; `strict` makes that an error.

    The output appears complete or not at all. `format` follows from the suffix of `path` when not given. Give the
    `losses` of the `ReadOptions` to have one account of both ways.
    """
    target = Path(path)
    form = output_format(target, format)
    how = Writing(losses if losses is not None else Losses(), layer)
    with replacing(target) as beside:
        form.write(documents, beside, how)
        if strict and how.losses:
            lost = ", ".join(f"{what} ({number})" for what, number in sorted(how.losses.counts.items()))
            raise LossError(f"not kept in {form.name}: {lost}; choose another format, or leave --strict out")
    return how.losses


def output_format(target: Path, name: str | None = None) -> Format:
    """The format to write: the one named, or the one that the suffix of the path tells."""
    if name:
        return by_name(name)
    found = [form for form in FORMATS if not form.folder and target.name.endswith(form.suffixes[0])]
    if found:
        return max(found, key=lambda form: len(form.suffixes[0]))  # ".hf.jsonl" before ".jsonl"
    raise ConfigError(f"the suffix {target.suffix!r} does not tell the output format; name it with --to")


def output_variant(form: Format, target: Path) -> Format:
    """Return the format in which documents of a format are written to a path: itself, or the variant of that suffix."""
    name = dict(form.can.variants).get(target.suffix)
    return form if name is None else by_name(name)


def _without_common_folder(files: Sequence[Entry]) -> list[Entry]:
    """Members of an archive, without the folders that all of them share."""
    folders = [PurePosixPath(file.name).parent.parts for file in files]
    shared = 0
    while all(len(parts) > shared and parts[shared] == folders[0][shared] for parts in folders):
        shared += 1
    return [replace(file, name="/".join(PurePosixPath(file.name).parts[shared:])) for file in files]
