"""The base of all formats: input files, output files, options, and counts of losses."""

from __future__ import annotations

import lzma
import os
import posixpath
import re
import tarfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO, Literal, Protocol, TypeAlias

from chaffinch.errors import ConfigError, DataError
from chaffinch.text.columns import ColumnChoice, Columns
from chaffinch.text.document import MAX_CHARS, Document, Splitter
from chaffinch.text.formats.temporary import temporary_folder
from chaffinch.text.span import Span

if TYPE_CHECKING:
    from chaffinch.text.formats.units import Unit

UnitKind: TypeAlias = Literal["file", "line", "row", "record", "stream"]
LayerKind: TypeAlias = Literal["none", "one", "many"]

# What opening and reading a file, compressed or not, can raise.
READ_ERRORS = (OSError, EOFError, zlib.error, zipfile.BadZipFile, tarfile.TarError, lzma.LZMAError)


@dataclass(frozen=True, slots=True)
class Entry:
    """One file to read: in a folder, compressed, or a member of an archive; nothing is unpacked to disk.

    `name` is the path inside what the user named, without a compression suffix; `where` is for messages.
    """

    name: str
    where: str
    open: Callable[[], BinaryIO]

    @property
    def stem(self) -> str:
        """Return the name without its last suffix: the document id in formats with one file per document."""
        return posixpath.splitext(self.name)[0]

    @property
    def suffix(self) -> str:
        """Return the last suffix in lower case, dot included; "" if there is none."""
        return posixpath.splitext(self.name)[1].lower()

    def content(self) -> bytes:
        """Return all bytes of the file; raise DataError if it cannot be read."""
        try:
            with self.open() as stream:
                return stream.read()
        except READ_ERRORS as error:
            raise read_error(self.where, error) from None

    def text(self) -> str:
        """Return the whole file decoded from UTF-8, nothing removed; DataError if it cannot be read or decoded."""
        return decode(self.content(), self.where)

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield (line number from 1, decoded line without its end and byte order mark); DataError if unreadable."""
        try:
            with self.open() as stream:
                for number, raw in enumerate(stream, start=1):
                    line = decode(raw, self.where, number)
                    if number == 1:
                        line = line.removeprefix("\ufeff")
                    yield number, line.removesuffix("\n").removesuffix("\r")
        except READ_ERRORS as error:
            raise read_error(self.where, error) from None

    def head(self, size: int = 65536) -> bytes:
        """Return at most the first `size` bytes, for recognising the format; DataError if the file cannot be read."""
        try:
            with self.open() as stream:
                return stream.read(size)
        except READ_ERRORS as error:
            raise read_error(self.where, error) from None


def decode(raw: bytes, where: str, line: int | None = None) -> str:
    """Return the text of UTF-8 bytes; DataError with position and line of a bad byte, never with text around it."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"byte {error.start} (0x{raw[error.start]:02x}) is not valid UTF-8; convert it first: iconv -t UTF-8"
        raise DataError(message, path=where, line=line or raw.count(b"\n", 0, error.start) + 1) from None


def read_error(where: str, error: Exception) -> DataError:
    """Return (not raise) the DataError for a file at `where` that cannot be opened or is damaged."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else "the file is damaged or truncated"
    return DataError(f"cannot be read ({reason}); check the path, its permissions and its size", path=where)


@dataclass(frozen=True, slots=True)
class Excluded:
    """An item of an input that a rule leaves out: its name in the input, for private lists only, and the rule."""

    name: str = field(repr=False)
    rule: str


@dataclass(frozen=True, slots=True)
class Unread:
    """An item of an input that cannot be read: its name, for private lists only; its path for messages; the reason.

    `container`: a folder or an archive, which may hold notes whatever its name.
    """

    name: str = field(repr=False)
    where: str = field(repr=False)
    reason: str
    container: bool = False

    def error(self) -> DataError:
        """Return (not raise) the DataError that reports the item, with its reason and path."""
        return DataError(self.reason, path=self.where)


@dataclass(frozen=True, slots=True)
class InputTree:
    """The items of an input, each in one list: files to read, items that a rule excludes, items that cannot be read."""

    files: list[Entry] = field(default_factory=list)
    excluded: list[Excluded] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)

    def add(self, other: InputTree) -> None:
        """Append the files, excluded and unread items of another tree to these lists."""
        self.files.extend(other.files)
        self.excluded.extend(other.excluded)
        self.unread.extend(other.unread)


# Sentences of a document that is cut from a file without marks: enough for a document to repeat its words, and few
# enough for a small file to have documents to hold out and to draw.
AUTO_SENTENCES = 10
_BLOCK = re.compile(r"block:[1-9][0-9]{0,8}")


@dataclass(slots=True)
class Losses:
    """Counts of what was not kept in reading or writing, by kind of loss."""

    counts: Counter[str] = field(default_factory=Counter)

    def add(self, what: str, number: int = 1) -> None:
        """Count `number` more things of this kind as not kept, if it is not 0; `what` never has document text."""
        if number:
            self.counts[what] += number

    def __bool__(self) -> bool:
        """Tell whether anything was lost."""
        return bool(self.counts)


_NO_CHOICE = ColumnChoice()


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options of reading, besides the format."""

    layer: str = "gold"  # the name given to the spans of formats that hold one layer
    split: Splitter = "prose"
    max_chars: int = MAX_CHARS
    tag_names: Sequence[str] = ()  # names of integer tags, as in Hugging Face datasets
    losses: Losses = field(default_factory=Losses)  # what the files hold and a document has no place for
    columns: ColumnChoice = _NO_CHOICE  # of tables and records, as the user names them
    # What a document is in column files without marks: "file", "sentence", "block:N" (N sentences), or "auto", which
    # cuts longer files into blocks and notes their names in `cut`, so that the caller can say so.
    documents: str = "file"
    lenient: bool = False  # whether an input for which `documents` or `tag_names` mean nothing is read without them
    cut: set[str] = field(default_factory=set, repr=False)

    def __post_init__(self) -> None:
        """Raise ConfigError if `documents` is none of file, sentence, auto and block:N."""
        if self.documents not in ("file", "sentence", "auto") and not _BLOCK.fullmatch(self.documents):
            raise ConfigError(f"documents {self.documents!r} is unknown; choose file, sentence or block:N (block:10)")

    @property
    def asks_to_cut(self) -> bool:
        """Tell whether the user set the size of documents (not lenient), which marks in a file would contradict."""
        return self.documents not in ("file", "auto") and not self.lenient

    @property
    def sentences(self) -> int | None:
        """Return how many sentences of a file without document marks are one document; None for all."""
        known = {"file": None, "sentence": 1, "auto": AUTO_SENTENCES}
        return known[self.documents] if self.documents in known else int(self.documents.removeprefix("block:"))


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Options of writing: the layer, for formats that hold one, and the counts of losses."""

    losses: Losses = field(default_factory=Losses)
    layer: str | None = None  # None: "gold", else the only one
    keep_columns: bool = False  # tables and records keep the names of the columns that documents were made of

    def columns_of(self, doc: Document, form: str) -> Columns | None:
        """Return the document's columns if their names are to be kept and it came from format `form`; else None."""
        columns = doc.columns
        return columns if self.keep_columns and columns is not None and columns.format == form else None

    def spans(self, doc: Document) -> tuple[Span, ...]:
        """Return the layer's spans to write; count other layers, and its name unless gold, as lost; or DataError."""
        chosen = doc.layer(self.layer)
        name = self.layer or ("gold" if "gold" in doc.layers or len(doc.layers) != 1 else next(iter(doc.layers)))
        others = [spans for other, spans in doc.layers.items() if other != name]
        self.losses.add("layers other than the one written", len(others))
        if name != "gold" and name in doc.layers:
            self.losses.add("names of layers")
        return chosen

    def drop(self, doc: Document, *fields: str) -> None:
        """Count as lost those of the named fields of a document that are not empty: the format cannot hold them."""
        for name in fields:
            value = getattr(doc, name)
            if name == "group":
                self.losses.add("groups (patients)", value is not None)
            elif name == "given":
                self.losses.add("given tokens and sentences", bool(value))
            else:
                self.losses.add(_LOSS_NAMES[name], len(value))

    def drop_from_spans(self, spans: Iterable[Span], *fields: str) -> None:
        """Count as lost each named field (score, source, concept) of a span that is not the default."""
        empty = {"score": 1.0, "source": "", "concept": ""}
        for span in spans:
            for name in fields:
                self.losses.add(f"{name}s of spans", getattr(span, name) != empty[name])


_LOSS_NAMES = {"meta": "meta fields", "soft": "soft layers", "relations": "relations", "layers": "layers"}


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a format can hold and how it is read, declared by each format.

    `generality`: formats are tried on a file in rising order. 0: its content begins as that of no other;
    1 and 2: records with fields of its own; 3: any record with a text; 4: rows and columns; 5: any text.
    """

    unit: UnitKind = "stream"  # what can be read apart from the others; of a "stream" all that follow a fault are lost
    generality: int = 0
    exact: bool = False  # keeps every character of a text, except those that its syntax cannot hold
    needs_tokens: bool = False  # writes tokens, so documents must have them
    layers: LayerKind = "one"
    span_sources: bool = False  # keeps the source of each span, and spans of several sources side by side
    votes: bool = False  # keeps the layers of weak sources
    vote_links: bool = False  # keeps the links by which a vote follows another
    soft: bool = False  # keeps soft labels
    needs_layer: bool = False  # without a layer, empty or not, an output is not recognised as of this format
    annotated_as: str = ""  # of a format without layers: the name of the one that adds them beside the same files
    columns: bool = False  # has columns or fields, which the user can name
    cuts: bool = False  # has files that do not say what a document is: `ReadOptions.documents` does
    names_tags: bool = False  # may have integer tags: `ReadOptions.tag_names` has their names
    variants: tuple[tuple[str, str], ...] = ()  # suffixes of outputs, each with the format that is written instead


class Format(Protocol):
    """One file format; modules under `formats` list theirs in a constant `FORMATS`."""

    @property
    def name(self) -> str:
        """Return the name by which users choose the format."""

    @property
    def about(self) -> str:
        """Return one line of description, for the list of formats."""

    @property
    def folder(self) -> bool:
        """Tell whether the output is a folder with one or more files per document."""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Return the suffixes of the files it reads; the first one is typical."""

    @property
    def can(self) -> Capabilities:
        """Return what it can hold and how it is read."""

    def recognises(self, entry: Entry, head: bytes) -> bool:
        """Tell whether a file looks like this format, whatever its suffix; `head` is its first bytes."""

    def units(self, files: Sequence[Entry], options: ReadOptions) -> Iterator[Unit]:
        """Yield a unit per document of those files, in order, each parsed separately where the format allows it.

        Files of other suffixes were left out by the caller.
        """

    def write(self, documents: Iterable[Document], target: Path, options: WriteOptions) -> int:
        """Write the documents to a path that does not exist yet; return how many there were."""


@contextmanager
def atomic_output(target: Path) -> Iterator[Path]:
    """Yield a temporary path, moved to `target` at the end, removed on failure; DataError if that is not replaceable.

    A file is replaced; a folder must be empty or new; a link is followed. Nothing half-written is ever seen at
    `target`, and what a process that was killed left beside it is removed.
    """
    if target.is_symlink():
        target = target.resolve()
    if target.is_dir() and any(target.iterdir()):
        raise DataError("the output folder is not empty; choose a new one or empty it", path=target)
    if target.exists() and not (target.is_file() or target.is_dir()):
        raise DataError("is not an ordinary file, so the output cannot replace it; choose another path", path=target)
    if not target.parent.is_dir():
        raise DataError("the folder of the output does not exist; make it first", path=target.parent)
    with temporary_folder(target.parent) as folder:
        temporary = folder / target.name
        yield temporary
        if temporary.is_file():
            sync(temporary)
        if target.is_dir() and temporary.is_dir():
            target.rmdir()
        os.replace(temporary, target)  # noqa: PTH105  (one atomic call)


def sync(path: Path) -> None:
    """Flush the bytes of a file to the disk (fsync)."""
    with path.open("rb") as stream:
        os.fsync(stream.fileno())


def output_file(folder: Path, name: str, suffix: str) -> Path:
    """Make the parents of `folder/name + suffix`, return the path; DataError if the name is unsafe or the file exists.

    Ids may contain slashes. DataError if the id would lead outside the folder, is hidden, or is already taken.
    """
    path = PurePosixPath(name)
    if not name or "\0" in name or str(path) != name or any(part.startswith((".", "/")) for part in path.parts):
        raise DataError(
            "a document's id cannot be a file name (empty, with a leading dot, or leading outside the folder); "
            "give it another"
        )
    file = folder / (name + suffix)
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.exists():
        raise DataError("two documents have the same id, and so the same file name; make the ids differ")
    return file


def write_text(path: Path, text: str) -> None:
    """Write a text as UTF-8, every character unchanged."""
    path.write_bytes(text.encode("utf-8"))


def group_of_meta(meta: Mapping[str, object]) -> str | None:
    """Return the first of group, patient, patient_id, subject_id that is not empty, as text; None if all are."""
    for key in ("group", "patient", "patient_id", "subject_id"):
        if meta.get(key) not in (None, ""):
            return str(meta[key])
    return None
