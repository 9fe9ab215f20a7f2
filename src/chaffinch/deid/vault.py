"""The vault: the original texts of all replacements in one encrypted file; with the key a release can be undone.

It is a sealed file (`deid.release.sealed_file`) with a record for each released document.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from chaffinch.deid.keys import Secret
from chaffinch.deid.release.replace import ReplacedText, Replacement, originals, undo
from chaffinch.deid.release.sealed_file import VAULT, RecordWriter, Seal, open_seal, read_records, read_sealed
from chaffinch.errors import ConfigError, DataError
from chaffinch.text import Document
from chaffinch.text.columns import Columns
from chaffinch.text.formats import ReadOptions, jsonl
from chaffinch.text.formats.temporary import TEMPORARY, hold, remove_left_overs

VARIABLE = "CHAFFINCH_VAULT_KEY"


@dataclass(frozen=True, slots=True)
class UndoRecord:
    """The record that undoes the release of one document; its repr shows no text.

    `id` and `digest` (SHA-256) are those of the released document, `original` is the rest of the input document as
    JSON, `places` are (start, end, out_start, out_end), `pieces` are the original texts at these places.
    """

    id: str
    digest: str
    original: Mapping[str, Any] = field(repr=False)
    places: tuple[tuple[int, int, int, int], ...] = ()
    pieces: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, doc: Document, replaced: ReplacedText, name: str) -> UndoRecord:
        """Return the record that restores a document from its released text: original pieces, offsets, fields."""
        rest = {key: value for key, value in jsonl.record_of(doc).items() if key != "text"}
        places = tuple((one.start, one.end, one.out_start, one.out_end) for one in replaced.replacements)
        return cls(name, digest(replaced.text), rest, places, originals(doc.text, replaced))

    def restore(self, text: str) -> Document:
        """Return the input document, given the released text; DataError if that was changed since."""
        if digest(text) != self.digest:
            raise DataError("a document was changed after its release, so its original cannot be restored")
        replacements = tuple(Replacement(start, end, "", "", out, out_end) for start, end, out, out_end in self.places)
        whole = {**self.original, "text": undo(self.pieces, ReplacedText(self.id, text, replacements))}
        return jsonl.document_of(whole, self.id, ReadOptions(max_chars=len(whole["text"])))


def digest(text: str) -> str:
    """Return the SHA-256 of a text, in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


class Writer(RecordWriter):
    """A vault that is being written; `add` appends one record."""

    def add(self, record: UndoRecord) -> None:
        """Encrypt and append the record that undoes one document."""
        self.put(msgspec.json.encode(record), "document")


@contextmanager
def write_vault(path: str | Path, secret: Secret, *, replace: bool = False, beside: bool = True) -> Iterator[Writer]:
    """Yield a writer of a vault that appears (mode 0600) only if all goes well; ConfigError if the path is taken.

    Without `beside`, it is written at the path itself, for a caller that removes unfinished files and renames it at
    the end: a process that is killed then leaves no file of another name.
    """
    path = Path(path)
    if path.exists() and not replace:
        raise ConfigError(f"{path} exists, and a vault is never overwritten; choose another name")
    if not path.parent.is_dir():
        raise ConfigError(f"the folder {path.parent} of the vault does not exist; make it first")
    if beside:
        remove_left_overs(path.parent)
        handle, name = tempfile.mkstemp(prefix=TEMPORARY, dir=path.parent)  # mode 0600
        temporary = Path(name)
    else:
        handle, temporary = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), path
    try:
        with os.fdopen(handle, "wb") as stream:
            hold(stream.fileno())
            writer = Writer(stream, Seal.new(secret))
            yield writer
            writer.end()
        if beside:
            temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@dataclass(frozen=True, slots=True, eq=False)
class Vault:
    """A vault whose every record was opened once and is unchanged; `Vault.open(path, secret)`."""

    path: Path
    _seal: Seal
    _places: Mapping[str, tuple[int, ...]] = field(repr=False)  # by id, numbers of records
    _starts: tuple[int, ...] = field(repr=False)

    @classmethod
    def open(cls, path: str | Path, secret: Secret) -> Vault:
        """Open a vault; raise ConfigError for a wrong key, DataError if anything in it was changed or cut off."""
        path = Path(path)
        try:
            with path.open("rb") as stream:
                seal = open_seal(stream, secret, VAULT)
                places: dict[str, list[int]] = {}
                starts: list[int] = []
                for start, plain in read_records(stream, seal, VAULT, ("document",)):
                    record = msgspec.json.decode(plain, type=UndoRecord)
                    places.setdefault(record.id, []).append(len(starts))
                    starts.append(start)
        except OSError as error:
            raise DataError(f"cannot be read ({error.strerror}); check the path", path=path) from None
        except DataError as error:
            raise error.at(path) from None
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from None
        return cls(path, seal, {name: tuple(numbers) for name, numbers in places.items()}, tuple(starts))

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self._starts)

    def __iter__(self) -> Iterator[UndoRecord]:
        """Yield the record of each document, in the order of their release."""
        with self.path.open("rb") as stream:
            for number in range(len(self)):
                yield self._read_record(stream, number)

    def find(self, name: str) -> Iterator[UndoRecord]:
        """Yield the records of documents that were released under a name: mostly one, in order if several."""
        with self.path.open("rb") as stream:
            for number in self._places.get(name, ()):
                yield self._read_record(stream, number)

    def _read_record(self, stream: BinaryIO, number: int) -> UndoRecord:
        """Return the record of a number; raise DataError if it does not open."""
        stream.seek(self._starts[number])
        plain = self._seal.open(read_sealed(stream, VAULT), "document", number)
        if plain is None:
            raise DataError(VAULT.damaged, path=self.path)
        return msgspec.json.decode(plain, type=UndoRecord)


def rekey(path: str | Path, old: Secret, new: Secret) -> int:
    """Encrypt a vault with a new key, all or nothing; return its number of documents; ConfigError if keys are equal."""
    if old == new:
        raise ConfigError(f"{path}: the new key is the old one; make another with: chaffinch deid secret new FILE")
    vault = Vault.open(path, old)
    with write_vault(path, new, replace=True) as writer:
        for record in vault:
            writer.add(record)
    return len(vault)


def _restore_columns(released: Document, restored: Document) -> Columns | None:
    """Return the released columns fitted to the restored text; None unless there is exactly one text column."""
    columns = released.columns
    if columns is None or len(columns.texts) != 1:
        return None
    return replace(columns, texts=((columns.texts[0][0], len(restored.text)),), fields=())


def restore(documents: Iterable[Document], vault: Vault) -> Iterator[Document]:
    """Yield the input documents of released ones, in order; DataError if one is not in the vault or was changed.

    Raise DataError if the vault has no record of a document, or the document was changed since its release.
    """
    seen = Counter[tuple[str, str]]()  # documents of one name and text are distinguished by their order
    for number, doc in enumerate(documents, start=1):
        records = list(vault.find(doc.id))
        same = [record for record in records if record.digest == digest(doc.text)]
        before = seen[doc.id, digest(doc.text)]
        seen[doc.id, digest(doc.text)] += 1
        try:
            if not records:
                raise DataError("the vault has no record of it; is it the vault of this release?")
            restored = (same[before] if before < len(same) else records[0]).restore(doc.text)
            yield replace(restored, columns=_restore_columns(doc, restored))
        except DataError as error:
            raise DataError(f"document {number}: {error.message}") from None
