"""The vault: what stood at every replacement, in one encrypted file, so that a release can be undone with the key.

    header | record 0 | record 1 | … | end

The header has a random salt; scrypt makes from the user's key and the salt the key of this file and a check that tells
a wrong key at once. Every record is sealed with AES-256-GCM under a nonce of its own, together with the header and its
number: no record can be changed, moved, left out or taken from another vault, and without the end nothing is read.
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
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from chaffinch.deid.keys import COST, Secret, stretch
from chaffinch.deid.release.replace import Acted, Replacement, originals, undo
from chaffinch.errors import ConfigError, DataError
from chaffinch.text import Document
from chaffinch.text.formats import ReadOptions, jsonl

if TYPE_CHECKING:  # loaded when it is used
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

VARIABLE = "CHAFFINCH_VAULT_KEY"

_MAGIC = b"chaffinch vault\0"
_VERSION = 1
_COST = COST
_COSTS = range(14, 21)  # that are believed of a file
_HEADER = struct.Struct(">16sBB32s32s")  # magic, version, cost, salt, check of the key
_LENGTH = struct.Struct(">I")
_NUMBER = struct.Struct(">Q")
_NONCE = 12
_LEAST = _NONCE + 16  # bytes of a sealed record: nonce and tag
_LONGEST = (1 << 32) - 1
_DAMAGED = "the vault was damaged or changed; take an untouched copy"


@dataclass(frozen=True, slots=True)
class Kept:
    """What undoes the release of one document; its repr shows no text.

    `id` and `digest` (SHA-256) are those of the document that was released, `original` is the rest of the input
    document as JSON, `places` are (start, end, out_start, out_end), `pieces` is what stood there.
    """

    id: str
    digest: str
    original: Mapping[str, Any] = field(repr=False)
    places: tuple[tuple[int, int, int, int], ...] = ()
    pieces: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, doc: Document, acted: Acted, name: str) -> Kept:
        """What undoes the replacements in a document that is released under a name."""
        rest = {key: value for key, value in jsonl.record_of(doc).items() if key != "text"}
        places = tuple((one.start, one.end, one.out_start, one.out_end) for one in acted.replacements)
        return cls(name, digest(acted.text), rest, places, originals(doc.text, acted))

    def undone(self, text: str) -> Document:
        """The input document, from the text that was released."""
        if digest(text) != self.digest:
            raise DataError("a document was changed after its release, so its original cannot be put together")
        made = tuple(Replacement(start, end, "", "", out, out_end) for start, end, out, out_end in self.places)
        whole = {**self.original, "text": undo(self.pieces, Acted(self.id, text, made))}
        return jsonl.document_of(whole, self.id, ReadOptions(max_chars=len(whole["text"])))


def digest(text: str) -> str:
    """SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Seal:
    """The key of one vault, made from the user's key and the salt in the header."""

    header: bytes
    _key: bytes = field(repr=False)

    @classmethod
    def new(cls, secret: Secret, salt: bytes | None = None) -> Seal:
        """A seal for a new vault."""
        salt = secrets.token_bytes(32) if salt is None else salt
        key, check = _derived(secret, salt, _COST)
        return cls(_HEADER.pack(_MAGIC, _VERSION, _COST, salt, check), key)

    @classmethod
    def of(cls, header: bytes, secret: Secret) -> Seal:
        """The seal of a vault with that header; ConfigError if the key is another."""
        if len(header) != _HEADER.size or not header.startswith(_MAGIC):
            raise DataError("is not a vault, or is cut short; name the file that deid run --vault wrote")
        _, version, cost, salt, check = _HEADER.unpack(header)
        if version != _VERSION or cost not in _COSTS:
            raise DataError(f"is a vault of format {version}; this version reads format {_VERSION}; update Chaffinch")
        key, expected = _derived(secret, salt, cost)
        if not hmac.compare_digest(expected, check):
            raise ConfigError("the key does not open this vault; give the key with which it was written")
        return cls(header, key)

    def close(self, plain: bytes, kind: str, number: int) -> bytes:
        """Sealed bytes that only open as the same kind and number: nonce, then ciphertext."""
        nonce = secrets.token_bytes(_NONCE)
        return nonce + self._cipher().encrypt(nonce, plain, self._bound(kind, number))

    def open(self, sealed: bytes, kind: str, number: int) -> bytes | None:
        """What was sealed, or None if it was changed or is another."""
        from cryptography.exceptions import InvalidTag

        if len(sealed) < _LEAST:
            return None
        try:
            return self._cipher().decrypt(sealed[:_NONCE], sealed[_NONCE:], self._bound(kind, number))
        except InvalidTag:
            return None

    def _cipher(self) -> AESGCM:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        return AESGCM(self._key)

    def _bound(self, kind: str, number: int) -> bytes:
        return self.header + _NUMBER.pack(number) + kind.encode()


def _derived(secret: Secret, salt: bytes, cost: int) -> tuple[bytes, bytes]:
    made = stretch(b"chaffinch vault 1\0" + secret.key, salt, length=64, cost=cost)
    return made[:32], made[32:]


class Writer:
    """A vault being written; `add` appends one record."""

    def __init__(self, stream: BinaryIO, seal: Seal) -> None:
        self._stream, self._seal, self.documents = stream, seal, 0
        stream.write(seal.header)

    def add(self, kept: Kept) -> None:
        """Appends what undoes one document."""
        self._put(msgspec.json.encode(kept), "document")
        self.documents += 1

    def end(self) -> None:
        """Appends the end; only a vault that has it is ever read."""
        self._put(_NUMBER.pack(self.documents), "end")

    def _put(self, plain: bytes, kind: str) -> None:
        sealed = self._seal.close(plain, kind, self.documents)
        if len(sealed) > _LONGEST:
            raise DataError("the replacements of one document are over 4 GB; lower --max-chars")
        self._stream.write(_LENGTH.pack(len(sealed)) + sealed)


@contextmanager
def writing(path: str | Path, secret: Secret, *, replace: bool = False) -> Iterator[Writer]:
    """A writer of a vault that appears at its path (mode 0600) when all went well, and otherwise not at all."""
    path = Path(path)
    if path.exists() and not replace:
        raise ConfigError(f"{path} exists, and a vault is never overwritten; choose another name")
    if not path.parent.is_dir():
        raise ConfigError(f"the folder {path.parent} of the vault does not exist; make it first")
    handle, name = tempfile.mkstemp(prefix=".chaffinch-", dir=path.parent)  # mode 0600
    beside = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            writer = Writer(stream, Seal.new(secret))
            yield writer
            writer.end()
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True, eq=False)
class Vault:
    """A vault whose every record was opened once and found untouched; `Vault.open(path, secret)`."""

    path: Path
    _seal: Seal
    _places: Mapping[str, tuple[int, ...]] = field(repr=False)  # by id, numbers of records
    _starts: tuple[int, ...] = field(repr=False)

    @classmethod
    def open(cls, path: str | Path, secret: Secret) -> Vault:
        """The vault of a file; ConfigError for a wrong key, DataError if anything in it was changed or cut off."""
        path = Path(path)
        try:
            with path.open("rb") as stream:
                seal = Seal.of(stream.read(_HEADER.size), secret)
                places: dict[str, list[int]] = {}
                starts: list[int] = []
                for start, kept in _records(stream, seal):
                    places.setdefault(kept.id, []).append(len(starts))
                    starts.append(start)
        except OSError as error:
            raise DataError(f"cannot be read ({error.strerror}); check the path", path=path) from None
        except DataError as error:
            raise error.at(path) from None
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from None
        return cls(path, seal, {name: tuple(numbers) for name, numbers in places.items()}, tuple(starts))

    def __len__(self) -> int:
        return len(self._starts)

    def __iter__(self) -> Iterator[Kept]:
        """What was kept of each document, in the order of their release."""
        with self.path.open("rb") as stream:
            for number in range(len(self)):
                yield self._at(stream, number)

    def find(self, name: str) -> Iterator[Kept]:
        """What was kept of the documents that were released under a name: mostly one, in order if several."""
        with self.path.open("rb") as stream:
            for number in self._places.get(name, ()):
                yield self._at(stream, number)

    def _at(self, stream: BinaryIO, number: int) -> Kept:
        stream.seek(self._starts[number])
        plain = self._seal.open(_sealed(stream), "document", number)
        if plain is None:
            raise DataError(_DAMAGED, path=self.path)
        return msgspec.json.decode(plain, type=Kept)


def _records(stream: BinaryIO, seal: Seal) -> Iterator[tuple[int, Kept]]:
    """Where each record starts, and what it holds; DataError unless the file is whole to its last byte."""
    number = 0
    while True:
        start = stream.tell()
        sealed = _sealed(stream)
        plain = seal.open(sealed, "document", number)
        if plain is None:
            end = seal.open(sealed, "end", number)
            if end != _NUMBER.pack(number) or stream.read(1):
                raise DataError(f"record {number} does not open: {_DAMAGED}")
            return
        yield start, msgspec.json.decode(plain, type=Kept)
        number += 1


def _sealed(stream: BinaryIO) -> bytes:
    head = stream.read(_LENGTH.size)
    size = _LENGTH.unpack(head)[0] if len(head) == _LENGTH.size else -1
    sealed = stream.read(size) if size >= 0 else b""
    if len(sealed) != size:
        raise DataError(f"ends too early: {_DAMAGED}")
    return sealed


def rekey(path: str | Path, old: Secret, new: Secret) -> int:
    """Puts a vault under a new key, and returns how many documents it holds; the file changes whole or not at all."""
    if old == new:
        raise ConfigError(f"{path}: the new key is the old one; make another with: chaffinch deid secret new FILE")
    vault = Vault.open(path, old)
    with writing(path, new, replace=True) as writer:
        for kept in vault:
            writer.add(kept)
    return len(vault)


def restore(documents: Iterable[Document], vault: Vault) -> Iterator[Document]:
    """The input documents of documents that were released, in the order given, texts exactly as they were.

    DataError if the vault has nothing on a document, or the document was changed since its release.
    """
    seen = Counter[tuple[str, str]]()  # documents of one name and text are told apart by their order
    for number, doc in enumerate(documents, start=1):
        found = list(vault.find(doc.id))
        same = [kept for kept in found if kept.digest == digest(doc.text)]
        before = seen[doc.id, digest(doc.text)]
        seen[doc.id, digest(doc.text)] += 1
        try:
            if not found:
                raise DataError("the vault has nothing on it; is it the vault of this release?")
            yield (same[before] if before < len(same) else found[0]).undone(doc.text)
        except DataError as error:
            raise DataError(f"document {number}: {error.message}") from None
