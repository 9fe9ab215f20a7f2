"""What every format shares: where bytes come from, how files are written, and the account of losses."""

from __future__ import annotations

import errno
import gzip
import io
import os
import posixpath
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO, Literal, Protocol, TypeAlias, cast

from chaffinch.errors import DataError
from chaffinch.text.document import MAX_CHARS, Document, Splitter
from chaffinch.text.span import Span

if TYPE_CHECKING:
    from chaffinch.text.formats.units import Unit

UnitKind: TypeAlias = Literal["file", "line", "row", "record", "stream"]
LayerKind: TypeAlias = Literal["none", "one", "many"]

# What opening and reading a file, compressed or not, can raise.
UNREADABLE = (OSError, EOFError, zlib.error, zipfile.BadZipFile, tarfile.TarError)


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
        """The name without its last suffix; the id of a document that is a file of its own."""
        return posixpath.splitext(self.name)[0]

    @property
    def suffix(self) -> str:
        """The last suffix in lower case, dot included."""
        return posixpath.splitext(self.name)[1].lower()

    def content(self) -> bytes:
        """The whole content."""
        try:
            with self.open() as stream:
                return stream.read()
        except UNREADABLE as error:
            raise unreadable(self.where, error) from None

    def text(self) -> str:
        """The whole content as UTF-8, every character kept: byte order mark, carriage returns, NUL."""
        return decode(self.content(), self.where)

    def lines(self) -> Iterator[tuple[int, str]]:
        """Numbered lines without their end (LF or CR LF), decoded one by one; a leading byte order mark is dropped."""
        try:
            with self.open() as stream:
                for number, raw in enumerate(stream, start=1):
                    line = decode(raw, self.where, number)
                    if number == 1:
                        line = line.removeprefix("\ufeff")
                    yield number, line.removesuffix("\n").removesuffix("\r")
        except UNREADABLE as error:
            raise unreadable(self.where, error) from None

    def head(self, size: int = 65536) -> bytes:
        """The first bytes, for recognising the format."""
        try:
            with self.open() as stream:
                return stream.read(size)
        except UNREADABLE as error:
            raise unreadable(self.where, error) from None


def decode(raw: bytes, where: str, line: int | None = None) -> str:
    """UTF-8 text, or an error that says where the bad byte is and never what stood around it."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"byte {error.start} (0x{raw[error.start]:02x}) is not valid UTF-8; convert it first: iconv -t UTF-8"
        raise DataError(message, path=where, line=line or raw.count(b"\n", 0, error.start) + 1) from None


def unreadable(where: str, error: Exception) -> DataError:
    """The error for a file that cannot be opened or is damaged."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else "the file is damaged or truncated"
    return DataError(f"cannot be read ({reason}); check the path, its permissions and its size", path=where)


def entries(path: Path) -> list[Entry]:
    """The files behind a path, sorted by name: a file, a folder, a .gz, .zip or .tar(.gz)."""
    if not path.exists():
        raise DataError("does not exist; check the path", path=path)
    if path.is_dir():
        return [entry for name in sorted(_names_below(path)) for entry in _of_file(f"{path}/{name}", name)]
    return _of_file(str(path), path.name)


def _names_below(folder: Path) -> Iterator[str]:
    """The files of a folder and its folders, as paths with slashes; hidden ones are left out."""
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        above = os.path.relpath(place, folder).replace(os.sep, "/") + "/"
        for name in files:
            if not name.isprintable() and any("\ud800" <= c <= "\udfff" for c in name):
                raise DataError("has a file whose name is not UTF-8; rename it", path=folder)
            if not name.startswith("."):
                yield (above + name).removeprefix("./")


def _of_file(path: str, name: str) -> list[Entry]:
    try:
        if name.endswith((".tar.gz", ".tgz", ".tar")):
            return _of_tar(path)
        if name.endswith(".zip"):
            return _of_zip(path)
    except UNREADABLE as error:
        raise unreadable(path, error) from None
    if name.endswith(".gz"):
        return [Entry(name.removesuffix(".gz"), path, lambda: cast(BinaryIO, gzip.open(_plain(path), "rb")))]
    return [Entry(name, path, lambda: open(_plain(path), "rb"))]  # noqa: PTH123  (a plain string is quicker)


def _plain(path: str) -> str:
    """The path of a plain file; OSError for a pipe or a device, which could keep us waiting for ever."""
    if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116  (as above)
        raise OSError(errno.EINVAL, "it is no plain file")
    return path


def _of_tar(path: str) -> list[Entry]:
    # A compressed archive cannot be searched, so its members are read once and held; corpora fit in memory.
    found = []
    with tarfile.open(path) as archive:
        for member in archive:
            stream = archive.extractfile(member) if member.isfile() else None
            if stream is not None:
                found.append(_of_bytes(member.name, f"{path}!{member.name}", stream.read()))
    return sorted(found, key=lambda entry: entry.name)


def _of_zip(path: str) -> list[Entry]:
    found = []
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if not info.is_dir():
                found.append(_of_bytes(info.filename, f"{path}!{info.filename}", archive.read(info)))
    return sorted(found, key=lambda entry: entry.name)


def _of_bytes(name: str, where: str, content: bytes) -> Entry:
    if name.endswith(".gz"):
        return Entry(name.removesuffix(".gz"), where, lambda: cast(BinaryIO, gzip.open(io.BytesIO(content), "rb")))
    return Entry(name, where, lambda: io.BytesIO(content))


@dataclass(slots=True)
class Losses:
    """The account of what was not kept on the way in or out: how often, by kind of loss."""

    counts: Counter[str] = field(default_factory=Counter)

    def add(self, what: str, number: int = 1) -> None:
        """Notes that `number` things of this kind were not kept; `what` never carries document text."""
        if number:
            self.counts[what] += number

    def __bool__(self) -> bool:
        return bool(self.counts)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to read: what the user may choose beside the format."""

    layer: str = "gold"  # the name given to the spans of formats that hold one layer
    split: Splitter = "prose"
    max_chars: int = MAX_CHARS
    tag_names: Sequence[str] = ()  # names of integer tags, as in Hugging Face datasets
    losses: Losses = field(default_factory=Losses)  # what the files hold and a document has no place for


@dataclass(frozen=True, slots=True)
class Writing:
    """How to write: the layer, for formats that hold one, and where losses are noted."""

    losses: Losses = field(default_factory=Losses)
    layer: str | None = None  # None: "gold", else the only one

    def spans(self, doc: Document) -> tuple[Span, ...]:
        """The one layer that is written; every other layer of the document counts as lost."""
        chosen = doc.layer(self.layer)
        name = self.layer or ("gold" if "gold" in doc.layers or len(doc.layers) != 1 else next(iter(doc.layers)))
        others = [spans for other, spans in doc.layers.items() if other != name]
        self.losses.add("layers other than the one written", len(others))
        if name != "gold" and name in doc.layers:
            self.losses.add("names of layers")
        return chosen

    def drop(self, doc: Document, *fields: str) -> None:
        """Notes the fields of a document that the format has no place for, where they hold something."""
        for name in fields:
            value = getattr(doc, name)
            if name == "group":
                self.losses.add("groups (patients)", value is not None)
            elif name == "given":
                self.losses.add("given tokens and sentences", bool(value))
            else:
                self.losses.add(_PLAIN[name], len(value))

    def drop_from_spans(self, spans: Iterable[Span], *fields: str) -> None:
        """Notes the scores, sources or concepts of spans that the format has no place for."""
        empty = {"score": 1.0, "source": "", "concept": ""}
        for span in spans:
            for name in fields:
                self.losses.add(f"{name}s of spans", getattr(span, name) != empty[name])


_PLAIN = {"meta": "meta fields", "soft": "soft layers", "relations": "relations", "layers": "layers"}


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a format can hold and how it is read: said by each format, asked by everybody else.

    `generality`: formats are asked in rising order whether they know a file. 0: its content begins as that of no other;
    1 and 2: records with fields of its own; 3: any record with a text; 4: rows and columns; 5: any text.
    """

    unit: UnitKind = "stream"  # what can be read apart from the others; of a "stream" all that follow a fault are lost
    generality: int = 0
    exact: bool = False  # keeps every character of a text, but for those that its own syntax cannot hold
    needs_tokens: bool = False  # writes tokens, so documents must have them
    layers: LayerKind = "one"
    span_sources: bool = False  # keeps who found a span, beside the spans of others
    votes: bool = False  # keeps the layers of weak sources
    vote_links: bool = False  # keeps the links by which a vote follows another
    soft: bool = False  # keeps soft labels
    needs_layer: bool = False  # without a layer, empty or not, an output is not recognised as of this format
    annotated_as: str = ""  # of a format without layers: the name of the one that adds them beside the same files
    variants: tuple[tuple[str, str], ...] = ()  # suffixes of outputs, each with the format that is written instead


class Format(Protocol):
    """One file format; modules under `formats` list theirs in a constant `FORMATS`."""

    @property
    def name(self) -> str: ...
    @property
    def about(self) -> str:
        """One line for the list of formats."""

    @property
    def folder(self) -> bool:
        """Whether the output is a folder with one or more files per document."""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Suffixes of the files it reads; the first one is typical."""

    @property
    def can(self) -> Capabilities:
        """What it can hold."""

    def recognises(self, entry: Entry, head: bytes) -> bool:
        """Whether a file with one of the suffixes (or any other) looks like this format."""

    def units(self, files: Sequence[Entry], how: ReadOptions) -> Iterator[Unit]:
        """Yield the documents of those files, in order, each to be parsed apart from the others where that can be.

        Files of other suffixes were left out by the caller.
        """

    def write(self, documents: Iterable[Document], target: Path, how: Writing) -> int:
        """Writes the documents to a path that does not exist yet, and returns how many there were."""


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A path beside `target` to write to; moved into its place at the end, or removed if anything fails.

    A file is replaced; a folder must be empty or new. Nothing half-written is ever seen at `target`.
    """
    if target.is_dir() and any(target.iterdir()):
        raise DataError("is a folder that is not empty; choose a new one, so that nothing is mixed", path=target)
    if target.exists() and not (target.is_file() or target.is_dir()):
        raise DataError("is not an ordinary file, and the output would take its place; choose another", path=target)
    if not target.parent.is_dir():
        raise DataError("the folder of the output does not exist; make it first", path=target.parent)
    holder = Path(tempfile.mkdtemp(prefix=".chaffinch-", dir=target.parent))
    try:
        beside = holder / target.name
        yield beside
        if beside.is_file():
            sync(beside)
        if target.is_dir() and beside.is_dir():
            target.rmdir()
        os.replace(beside, target)  # noqa: PTH105  (one atomic call)
    finally:
        shutil.rmtree(holder, ignore_errors=True)


def sync(path: Path) -> None:
    """Makes sure that the bytes of a file are on the disk."""
    with path.open("rb") as stream:
        os.fsync(stream.fileno())


def file_of(folder: Path, name: str, suffix: str) -> Path:
    """Where a document of that id is written inside a folder; ids may have slashes, but lead nowhere else."""
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
    """Writes UTF-8, every character as it is."""
    path.write_bytes(text.encode("utf-8"))


def group_of_meta(meta: Mapping[str, object]) -> str | None:
    """The patient, where a record names one in a field of its own."""
    for key in ("group", "patient", "patient_id", "subject_id"):
        if meta.get(key) not in (None, ""):
            return str(meta[key])
    return None
