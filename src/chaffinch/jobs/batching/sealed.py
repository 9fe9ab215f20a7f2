"""Records that wait on the disk, sorted and encrypted under a key that lives in this process only.

    add  →  memory  →  runs on the disk, each sorted and sealed  →  merged, in the order of the keys

Little stays in memory and never reaches the disk. What does is in unnamed files, which the system removes when the
process ends in whatever way, and is sealed (AES-GCM): who reads the disk afterwards finds random bytes.
"""

from __future__ import annotations

import heapq
import os
import secrets
import struct
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from operator import itemgetter
from pathlib import Path
from typing import IO

from chaffinch.errors import StorageError

MEMORY = 1 << 26  # bytes of records that are kept in memory; more are written to the disk
_OVERHEAD = 200  # bytes that a record takes besides its own, about
_BLOCK = 1 << 18  # bytes of records that are sealed together: what a merge holds of each run
_SHARE = 1 << 6  # the least part of the memory that a block takes, so that a merge of many runs stays within it, about
_SMALLEST_BLOCK = 1 << 12
_FAN = 32  # runs of one level that are merged into one of the next: bounds open files and the memory of a merge
_LENGTHS = struct.Struct(">IQ")
_NONCE = struct.Struct(">4xQ")  # a counter: the key is never used for another process
_SIZE = struct.Struct(">Q")

_Record = tuple[bytes, bytes]


class SealedRecords:
    """Records of a key and a payload, in the order of their keys, however many there are.

    >>> with SealedRecords() as records:
    ...     for word in (b"wren", b"lark"):
    ...         records.add(word, b"")
    ...     [key for key, _ in records]
    [b'lark', b'wren']
    """

    def __init__(self, folder: Path | None = None, *, memory: int | None = None) -> None:
        """Keep records in memory up to `memory` bytes, then in a folder: that of temporary files if None."""
        self._folder, self._memory = folder, MEMORY if memory is None else memory
        self._levels: list[list[_Run]] = []
        self._waiting: list[_Record] = []
        self._bytes, self._number = 0, 0
        self._sorted = True
        self._cipher = _Cipher()

    def __enter__(self) -> SealedRecords:
        """Return self; the block's end drops all records."""
        return self

    def __exit__(self, *_: object) -> None:
        """Drop all records."""
        self.close()

    def __len__(self) -> int:
        """Return the number of records."""
        return self._number

    def __repr__(self) -> str:
        """Return the numbers of records and runs only."""
        return f"SealedRecords({self._number} records, {sum(map(len, self._levels))} runs)"

    def add(self, key: bytes, payload: bytes) -> None:
        """Add a record, written to disk when memory is full; records of equal keys keep their order."""
        self._sorted = self._sorted and (not self._waiting or self._waiting[-1][0] <= key)
        self._waiting.append((key, payload))
        self._bytes += len(key) + len(payload) + _OVERHEAD
        self._number += 1
        if self._bytes > self._memory:
            self._write_run()

    def __iter__(self) -> Iterator[_Record]:
        """Yield all records in the order of their keys; it can be called repeatedly, between additions."""
        self._sort()
        runs = [run for level in reversed(self._levels) for run in level]  # earlier records first
        if not runs:
            return iter(self._waiting)
        return heapq.merge(*runs, self._waiting, key=itemgetter(0))

    def close(self) -> None:
        """Drop all records and close their temporary files."""
        for level in self._levels:
            for run in level:
                run.close()
        self._levels, self._waiting = [], []

    def __del__(self) -> None:
        """Drop the records that nobody closed."""
        self.close()

    def _sort(self) -> None:
        """Sort the records in memory by key, unless they are sorted."""
        if not self._sorted:
            self._waiting.sort(key=itemgetter(0))
            self._sorted = True

    def _write_run(self) -> None:
        """Write the records in memory to disk, sorted and encrypted, as a run or after the latest; empty the memory."""
        self._sort()
        latest = self._levels[0][-1] if self._levels and self._levels[0] else None
        if latest is not None and latest.last <= self._waiting[0][0]:
            _write(latest, self._waiting)  # of records that are added in order there is one run
        else:
            self._add_run(self._waiting, 0)
        self._waiting, self._bytes = [], 0

    def _add_run(self, records: Iterable[_Record], level: int) -> None:
        """Write sorted records as a run of this level; merge a full level into the next; StorageError if that fails."""
        try:
            run = _Run(self._folder, self._cipher, max(_SMALLEST_BLOCK, min(_BLOCK, self._memory // _SHARE)))
        except OSError as error:
            raise _cannot_write(error) from None
        _write(run, records)
        if level == len(self._levels):
            self._levels.append([])
        self._levels[level].append(run)
        if len(self._levels[level]) == _FAN:
            full, self._levels[level] = self._levels[level], []
            self._add_run(heapq.merge(*full, key=itemgetter(0)), level + 1)
            for old in full:
                old.close()


def _write(run: _Run, records: Iterable[_Record]) -> None:
    """Append sorted records to a run; close it and raise StorageError if the disk fails."""
    try:
        run.write(records)
    except OSError as error:
        run.close()
        raise _cannot_write(error) from None


def _cannot_write(error: OSError) -> StorageError:
    """Return the StorageError to raise for an error of the disk; it says why and what to do."""
    return StorageError(
        f"temporary files could not be written ({error.strerror or type(error).__name__}); make room beside the "
        "output, then run again: with --resume if the run had begun"
    )


class _Cipher:
    """A key of this process, and a counter of its nonces."""

    def __init__(self) -> None:
        """Make a random key, which is never stored."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._cipher, self._count = AESGCM(secrets.token_bytes(32)), 0

    def seal(self, plain: bytes) -> bytes:
        """Return a new nonce followed by the encrypted bytes."""
        self._count += 1
        nonce = _NONCE.pack(self._count)
        return nonce + self._cipher.encrypt(nonce, plain, None)

    def open(self, sealed: bytes) -> bytes:
        """Decrypt what `seal` returned; raise StorageError if it was changed on the disk."""
        from cryptography.exceptions import InvalidTag

        try:
            return self._cipher.decrypt(sealed[: _NONCE.size], sealed[_NONCE.size :], None)
        except InvalidTag:
            raise StorageError("temporary files changed on the disk; check the disk, then run again") from None


class _Run:
    """A sorted run in an unnamed file: blocks of records, each sealed, with its size before it."""

    def __init__(self, folder: Path | None, cipher: _Cipher, block: int) -> None:
        """Open a temporary file in the folder; `block` bytes of records or more are sealed together."""
        self._file: IO[bytes] = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  (closed by `close`)
        self._cipher, self._block = cipher, block
        self._end = 0  # bytes that were written
        self.last = b""  # the greatest key

    def write(self, records: Iterable[_Record]) -> None:
        """Append sorted records to the file in encrypted blocks."""
        parts: list[bytes] = []
        size = 0
        for key, payload in records:
            parts += (_LENGTHS.pack(len(key), len(payload)), key, payload)
            size += _LENGTHS.size + len(key) + len(payload)
            self.last = key
            if size >= self._block:
                self._put(b"".join(parts))
                parts, size = [], 0
        if parts:
            self._put(b"".join(parts))
        self._file.flush()

    def _put(self, plain: bytes) -> None:
        """Encrypt a block and append it after its size."""
        sealed = self._cipher.seal(plain)
        self._end += self._file.write(_SIZE.pack(len(sealed)) + sealed)

    def __iter__(self) -> Iterator[_Record]:
        """Yield the records in order, one block in memory at a time."""
        place = 0
        while place < self._end:
            (size,) = _SIZE.unpack(self._get(place, _SIZE.size))
            yield from _split_block(self._cipher.open(self._get(place + _SIZE.size, size)))
            place += _SIZE.size + size

    def _get(self, place: int, size: int) -> bytes:
        """Return so many bytes from a place; StorageError if the disk does not give them."""
        try:
            found = os.pread(self._file.fileno(), size, place) if place + size <= self._end else b""
        except OSError:
            found = b""
        if len(found) < size:
            raise StorageError("temporary files cannot be read; check the disk, then run again") from None
        return found

    def close(self) -> None:
        """Close the file, which also removes it."""
        with suppress(OSError):
            self._file.close()


def _split_block(block: bytes) -> Iterator[_Record]:
    """Yield the (key, payload) records of a decrypted block."""
    place = 0
    while place < len(block):
        key_size, size = _LENGTHS.unpack_from(block, place)
        place += _LENGTHS.size
        middle = place + key_size
        yield block[place:middle], block[middle : middle + size]
        place = middle + size
