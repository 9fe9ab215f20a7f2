"""The vault: the original texts of all replacements in one encrypted file; with the key a release can be undone.

    header | record 0 | record 1 | … | end

The header has a random salt; scrypt derives from the user's key and the salt the key of this file and a check value
that detects a wrong key at once. Every record is sealed with AES-256-GCM under a separate nonce; the header and the
record's number are authenticated with it: no record can be changed, moved, omitted or taken from another vault, and
without the end record nothing is read.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import struct
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from chaffinch.deid.keys import COST, Secret, stretch
from chaffinch.deid.release.replace import ReplacedText, Replacement, originals, undo
from chaffinch.errors import ConfigError, DataError
from chaffinch.text import Document
from chaffinch.text.columns import Columns
from chaffinch.text.formats import ReadOptions, jsonl
from chaffinch.text.formats.temporary import TEMPORARY, hold, remove_left_overs

if TYPE_CHECKING:  # imported when it is used
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

VARIABLE = "CHAFFINCH_VAULT_KEY"

_MAGIC = b"chaffinch vault\0"
_VERSION = 1
_COST = COST
_COSTS = range(14, 21)  # accepted in a header
_HEADER = struct.Struct(">16sBB32s32s")  # magic, version, cost, salt, check of the key
_LENGTH = struct.Struct(">I")
_NUMBER = struct.Struct(">Q")
_NONCE = 12  # bytes, as AES-GCM recommends
_SHORTEST_SEALED = _NONCE + 16  # bytes of a sealed record: nonce and tag
_LONGEST_SEALED = (1 << 32) - 1  # bytes, the greatest length that the format can store
_DAMAGED = "the vault was damaged or changed; take an untouched copy"


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


@dataclass(frozen=True, slots=True)
class Seal:
    """The key of one vault, derived from the user's key and the salt in the header."""

    header: bytes
    _key: bytes = field(repr=False)

    @classmethod
    def new(cls, secret: Secret, salt: bytes | None = None) -> Seal:
        """Return a seal with a key derived from the secret and a salt, random if None, for a new vault."""
        salt = secrets.token_bytes(32) if salt is None else salt
        key, check = _derive_keys(secret, salt, _COST)
        return cls(_HEADER.pack(_MAGIC, _VERSION, _COST, salt, check), key)

    @classmethod
    def of(cls, header: bytes, secret: Secret) -> Seal:
        """Return the seal of a vault's header; DataError if that is no vault's, ConfigError if the key is another."""
        if len(header) != _HEADER.size or not header.startswith(_MAGIC):
            raise DataError("is not a vault, or is cut short; name the file that deid run --vault wrote")
        _, version, cost, salt, check = _HEADER.unpack(header)
        if version != _VERSION or cost not in _COSTS:
            raise DataError(f"is a vault of format {version}; this version reads format {_VERSION}; update Chaffinch")
        key, expected = _derive_keys(secret, salt, cost)
        if not hmac.compare_digest(expected, check):
            raise ConfigError("the key does not open this vault; give the key with which it was written")
        return cls(header, key)

    def close(self, plain: bytes, kind: str, number: int) -> bytes:
        """Encrypt bytes so that they open only as the same kind and number; return nonce and ciphertext."""
        nonce = secrets.token_bytes(_NONCE)
        return nonce + self._cipher().encrypt(nonce, plain, self._gcm_associated_data(kind, number))

    def open(self, sealed: bytes, kind: str, number: int) -> bytes | None:
        """Return the sealed bytes in plain, or None if they were changed or are of another kind, number or vault."""
        from cryptography.exceptions import InvalidTag

        if len(sealed) < _SHORTEST_SEALED:
            return None
        try:
            return self._cipher().decrypt(sealed[:_NONCE], sealed[_NONCE:], self._gcm_associated_data(kind, number))
        except InvalidTag:
            return None

    def _cipher(self) -> AESGCM:
        """Return the AES-GCM cipher with the seal's key."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        return AESGCM(self._key)

    def _gcm_associated_data(self, kind: str, number: int) -> bytes:
        """Return the data that is authenticated with a record: header, number and kind."""
        return self.header + _NUMBER.pack(number) + kind.encode()


def _derive_keys(secret: Secret, salt: bytes, cost: int) -> tuple[bytes, bytes]:
    """Return (key of a vault, check value of the key), derived slowly from secret and salt."""
    derived = stretch(b"chaffinch vault 1\0" + secret.key, salt, length=64, cost=cost)
    return derived[:32], derived[32:]


class Writer:
    """A vault that is being written; `add` appends one record."""

    def __init__(self, stream: BinaryIO, seal: Seal) -> None:
        """Write the seal's header to the stream; no document yet."""
        self._stream, self._seal, self.documents = stream, seal, 0
        stream.write(seal.header)

    def add(self, record: UndoRecord) -> None:
        """Encrypt and append the record that undoes one document."""
        self._put(msgspec.json.encode(record), "document")
        self.documents += 1

    def end(self) -> None:
        """Append the end record; a vault without it is never read."""
        self._put(_NUMBER.pack(self.documents), "end")

    def _put(self, plain: bytes, kind: str) -> None:
        """Encrypt a record of this kind and append it after its length; raise DataError if it is over 4 GB."""
        sealed = self._seal.close(plain, kind, self.documents)
        if len(sealed) > _LONGEST_SEALED:
            raise DataError("the replacements of one document are over 4 GB; lower --max-chars")
        self._stream.write(_LENGTH.pack(len(sealed)) + sealed)


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
            stream.flush()
            os.fsync(stream.fileno())
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
                seal = Seal.of(stream.read(_HEADER.size), secret)
                places: dict[str, list[int]] = {}
                starts: list[int] = []
                for start, record in _records(stream, seal):
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
        plain = self._seal.open(_read_sealed(stream), "document", number)
        if plain is None:
            raise DataError(_DAMAGED, path=self.path)
        return msgspec.json.decode(plain, type=UndoRecord)


def _records(stream: BinaryIO, seal: Seal) -> Iterator[tuple[int, UndoRecord]]:
    """Yield (offset, record) in order; raise DataError unless the file is complete and unchanged."""
    number = 0
    while True:
        start = stream.tell()
        sealed = _read_sealed(stream)
        plain = seal.open(sealed, "document", number)
        if plain is None:
            end = seal.open(sealed, "end", number)
            if end != _NUMBER.pack(number) or stream.read(1):
                raise DataError(f"record {number} does not open: {_DAMAGED}")
            return
        yield start, msgspec.json.decode(plain, type=UndoRecord)
        number += 1


def _read_sealed(stream: BinaryIO) -> bytes:
    """Return the sealed bytes of the next record; raise DataError if the file ends too early."""
    head = stream.read(_LENGTH.size)
    size = _LENGTH.unpack(head)[0] if len(head) == _LENGTH.size else -1
    sealed = stream.read(size) if size >= 0 else b""
    if len(sealed) != size:
        raise DataError(f"ends too early: {_DAMAGED}")
    return sealed


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
