"""Files of encrypted records under the user's key: what the vault and the state are made of.

    header | record 0 | record 1 | … | end

The header has a random salt; scrypt derives from the user's key and the salt the key of this file and a check value
that detects a wrong key at once. Every record is sealed with AES-256-GCM under a separate nonce; the header and the
record's kind and number are authenticated with it: no record can be changed, moved, omitted or taken from another file,
and without the end record nothing is read.
"""

from __future__ import annotations

import hmac
import os
import secrets
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from chaffinch.deid.keys import COST, Secret, stretch
from chaffinch.errors import ConfigError, DataError

if TYPE_CHECKING:  # imported when it is used
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_VERSION = 1
_COST = COST
_COSTS = range(14, 21)  # accepted in a header
_HEADER = struct.Struct(">16sBB32s32s")  # magic, version, cost, salt, check of the key
_LENGTH = struct.Struct(">I")
_NUMBER = struct.Struct(">Q")
_NONCE = 12  # bytes, as AES-GCM recommends
_SHORTEST_SEALED = _NONCE + 16  # bytes of a sealed record: nonce and tag
_LONGEST_SEALED = (1 << 32) - 1  # bytes, the greatest length that the format can store


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of sealed file: its name ("vault"), with which it begins, and how files of it come about, for messages."""

    name: str
    written_by: str

    @property
    def magic(self) -> bytes:
        """Return the 16 bytes with which a file of this kind begins."""
        return f"chaffinch {self.name}".encode().ljust(16, b"\0")

    @property
    def damaged(self) -> str:
        """Return what to say of a file of this kind that was changed."""
        return f"the {self.name} was damaged or changed; take an untouched copy"


VAULT = FileKind("vault", "deid run --vault")


@dataclass(frozen=True, slots=True)
class Seal:
    """The key of one file, derived from the user's key and the salt in the header."""

    header: bytes
    _key: bytes = field(repr=False)

    @classmethod
    def new(cls, secret: Secret, salt: bytes | None = None, kind: FileKind = VAULT) -> Seal:
        """Return a seal with a key derived from the secret and a salt, random if None, for a new file."""
        salt = secrets.token_bytes(32) if salt is None else salt
        key, check = _derive_keys(kind.name, secret, salt, _COST)
        return cls(_HEADER.pack(kind.magic, _VERSION, _COST, salt, check), key)

    @classmethod
    def of(cls, header: bytes, secret: Secret, kind: FileKind = VAULT) -> Seal:
        """Return the seal of a file's header; DataError if it is of no such file, ConfigError if the key is another."""
        salt_of(header, kind)
        _, version, cost, salt, check = _HEADER.unpack(header)
        if version != _VERSION or cost not in _COSTS:
            raise DataError(
                f"is a {kind.name} of format {version}; this version reads format {_VERSION}; update Chaffinch"
            )
        key, expected = _derive_keys(kind.name, secret, salt, cost)
        if not hmac.compare_digest(expected, check):
            raise ConfigError(f"the key does not open this {kind.name}; give the key with which it was written")
        return cls(header, key)

    def close(self, plain: bytes, kind: str, number: int) -> bytes:
        """Encrypt bytes so that they open only as the same kind and number; return nonce and ciphertext."""
        nonce = secrets.token_bytes(_NONCE)
        return nonce + self._cipher().encrypt(nonce, plain, self._gcm_associated_data(kind, number))

    def open(self, sealed: bytes, kind: str, number: int) -> bytes | None:
        """Return the sealed bytes in plain, or None if they were changed or are of another kind, number or file."""
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


def salt_of(header: bytes, kind: FileKind) -> bytes:
    """Return the salt in the header of a file of this kind; DataError if it is the header of no such file."""
    if len(header) != _HEADER.size or not header.startswith(kind.magic):
        raise DataError(f"is not a {kind.name}, or is cut short; name the file that {kind.written_by} wrote")
    salt: bytes = _HEADER.unpack(header)[3]
    return salt


def read_salt(path: Path, kind: FileKind) -> bytes:
    """Return the salt of a file of this kind, no key needed; DataError if it is no such file or cannot be read."""
    try:
        with path.open("rb") as stream:
            return salt_of(stream.read(_HEADER.size), kind)
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror}); check the path", path=path) from None
    except DataError as error:
        raise error.at(path) from None


def _derive_keys(kind: str, secret: Secret, salt: bytes, cost: int) -> tuple[bytes, bytes]:
    """Return (key of a file, check value of the key), derived slowly from secret and salt."""
    derived = stretch(f"chaffinch {kind} 1\0".encode() + secret.key, salt, length=64, cost=cost)
    return derived[:32], derived[32:]


class RecordWriter:
    """A sealed file that is being written; `put` appends one record."""

    def __init__(self, stream: BinaryIO, seal: Seal) -> None:
        """Write the seal's header to the stream; no record yet."""
        self._stream, self._seal, self.records = stream, seal, 0
        stream.write(seal.header)

    def put(self, plain: bytes, kind: str) -> None:
        """Encrypt and append a record of this kind; raise DataError if it is over 4 GB."""
        self._append(plain, kind)
        self.records += 1

    def end(self) -> None:
        """Append the end record, and flush the file to the disk; a file without it is never read."""
        self._append(_NUMBER.pack(self.records), "end")
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def _append(self, plain: bytes, kind: str) -> None:
        """Encrypt a record of this kind and append it after its length; raise DataError if it is over 4 GB."""
        sealed = self._seal.close(plain, kind, self.records)
        if len(sealed) > _LONGEST_SEALED:
            raise DataError("the record of one document or patient is over 4 GB; lower --max-chars")
        self._stream.write(_LENGTH.pack(len(sealed)) + sealed)


def open_seal(stream: BinaryIO, secret: Secret, kind: FileKind) -> Seal:
    """Read the header of a sealed file and return its seal; raise as `Seal.of`."""
    return Seal.of(stream.read(_HEADER.size), secret, kind)


def read_records(stream: BinaryIO, seal: Seal, kind: FileKind, names: tuple[str, ...]) -> Iterator[tuple[int, bytes]]:
    """Yield (offset, plain bytes) of the records, of kinds `names`; DataError unless the file is whole and unchanged.

    `names` are the kinds of the records: the first ones of their own kind each, all others of the last.
    """
    number = 0
    while True:
        start = stream.tell()
        sealed = read_sealed(stream, kind)
        plain = seal.open(sealed, names[min(number, len(names) - 1)], number)
        if plain is None:
            end = seal.open(sealed, "end", number)
            if end != _NUMBER.pack(number) or stream.read(1):
                raise DataError(f"record {number} does not open: {kind.damaged}")
            return
        yield start, plain
        number += 1


def read_sealed(stream: BinaryIO, kind: FileKind) -> bytes:
    """Return the sealed bytes of the next record; raise DataError if the file ends too early."""
    head = stream.read(_LENGTH.size)
    size = _LENGTH.unpack(head)[0] if len(head) == _LENGTH.size else -1
    sealed = stream.read(size) if size >= 0 else b""
    if len(sealed) != size:
        raise DataError(f"ends too early: {kind.damaged}")
    return sealed
