"""The ledger of a job: finished results by number and key, stored on disk so that they survive a crash.

A folder (mode 0700) with a lock and three files. `results` has the results one after the other. `index` has a record
of fixed size for each item, at the place of its number: the key of the item, offset and size of its result, and a
checksum over all of these and the result. `ledger` has the settings of the job and the steps that are done. A record is
written when its result is safe on the disk; one that was cut off or torn, or points to other bytes, has a wrong
checksum and counts as missing. Memory does not grow with the number of results.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import msgspec

from chaffinch.errors import ChaffinchError, ConfigError, DataError

_FORMAT = 3
_LEDGER, _NEW_LEDGER, _LOCK, _INDEX, _RESULTS = "ledger", "ledger.new", "lock", "index", "results"
_BUFFER = 1 << 20  # bytes of results after which they are synced; a crash loses about this much at most
_RECORD = struct.Struct(">20sQQ16s")  # key, offset and size of the result, checksum
_NONE = bytes(_RECORD.size)  # the record of an item without a result
_SCAN = 1 << 14  # records that are counted at a time


class _Head(msgspec.Struct):
    """The first line: the format, the digest of the job's settings, and notes of the job."""

    format: int
    settings: str
    notes: dict[str, str] = {}


class _Line(msgspec.Struct):
    """A mark that a step of the job is done."""

    mark: str


class Ledger:
    """Results by number and key, stored on disk; open it with `open_ledger`."""

    def __init__(self, folder: Path, head: _Head, marks: BinaryIO, index: BinaryIO, results: BinaryIO) -> None:
        """Use open files of a ledger's folder; count the records that it has."""
        self.folder, self.notes = folder, head.notes
        self._marked, self._index, self._results = marks, index, results
        self._waiting: dict[int, bytes] = {}
        self._marks: set[str] = set()
        self._size, self._waiting_bytes = os.fstat(results.fileno()).st_size, 0
        self._number = self._count_records()

    def __len__(self) -> int:
        """Return the number of results."""
        return self._number

    def __repr__(self) -> str:
        """Return the number of results only."""
        return f"Ledger({len(self)} results)"

    def get(self, number: int, key: str | None = None) -> bytes | None:
        """Return the result of an item, stored under `key` if given; None if there is none or it changed on disk."""
        if not self._number:
            return None
        record = self._record(number)
        stored_key, at, size, checksum = _RECORD.unpack(record)
        if record == _NONE or at + size > self._size or (key is not None and bytes.fromhex(key) != stored_key):
            return None
        self._results.flush()
        content = os.pread(self._results.fileno(), size, at)
        return content if _checksum(number, stored_key, at, content) == checksum else None

    def put(self, number: int, key: str, result: bytes) -> None:
        """Add the result of an item under its key; it is on disk after the next `sync`, which a full buffer causes."""
        name = bytes.fromhex(key)
        self._replace(number, _RECORD.pack(name, self._size, len(result), _checksum(number, name, self._size, result)))
        self._results.write(result)
        self._size += len(result)
        self._waiting_bytes += len(result) + _RECORD.size
        if self._waiting_bytes >= _BUFFER:
            self.sync()

    def forget(self, number: int) -> None:
        """Remove the result of an item, if it has one."""
        if self._number and self._record(number) != _NONE:
            self._replace(number, _NONE)

    def mark(self, name: str) -> None:
        """Record permanently that a step of the job is done."""
        self.sync()
        self._marks.add(name)
        self._marked.write(msgspec.json.encode(_Line(name)) + b"\n")
        _flush(self._marked)

    def is_marked(self, name: str) -> bool:
        """Tell whether the named step was marked as done, in this run or an earlier one."""
        return name in self._marks

    def sync(self) -> None:
        """Write and fsync all waiting results, then the records that refer to them."""
        if not self._waiting:
            return
        _flush(self._results)
        for number, record in sorted(self._waiting.items()):
            os.pwrite(self._index.fileno(), record, number * _RECORD.size)
        os.fsync(self._index.fileno())
        self._waiting.clear()
        self._waiting_bytes = 0

    def recall(self, lines: list[bytes]) -> None:
        """Load the marks of an earlier run from the lines after the head; raise DataError if one is damaged."""
        for number, raw in enumerate(lines, start=2):
            try:
                self._marks.add(msgspec.json.decode(raw, type=_Line).mark)
            except (msgspec.DecodeError, UnicodeError):
                raise DataError("is damaged; remove the folder and run again", path=self.folder, line=number) from None

    def _record(self, number: int) -> bytes:
        """Return the record of an item, also one that waits to be written; `_NONE` if there is none."""
        waiting = self._waiting.get(number)
        if waiting is not None:
            return waiting
        record = os.pread(self._index.fileno(), _RECORD.size, number * _RECORD.size)
        return record if len(record) == _RECORD.size else _NONE

    def _replace(self, number: int, record: bytes) -> None:
        """Keep an item's new record until `sync` writes it, and update the count; `_NONE` deletes the item."""
        before = self._record(number) if self._number else _NONE
        self._number += (record != _NONE) - (before != _NONE)
        self._waiting[number] = record

    def _count_records(self) -> int:
        """Return how many items have a record; their checksums are not compared yet."""
        count = place = 0
        while content := os.pread(self._index.fileno(), _SCAN * _RECORD.size, place):
            whole = len(content) - len(content) % _RECORD.size
            count += sum(content[i : i + _RECORD.size] != _NONE for i in range(0, whole, _RECORD.size))
            place += len(content)
        return count

    def remove(self) -> None:
        """Delete the job's folder; the ledger file goes last, so that a run killed meanwhile can be resumed."""
        for path in self.folder.iterdir():
            if path.name not in (_LEDGER, _NEW_LEDGER, _LOCK):
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        (self.folder / _LEDGER).unlink()
        _remove_lock(self.folder)


def remove_empty(folder: Path) -> None:
    """Delete the folder of a job if it holds nothing but a lock that no run has; otherwise do nothing."""
    with suppress(OSError, ConfigError):
        if {path.name for path in folder.iterdir()} <= {_LOCK, _NEW_LEDGER}:
            with (folder / _LOCK).open("ab") as stream:
                _lock_file(stream, folder)
                _remove_lock(folder)


def _remove_lock(folder: Path) -> None:
    """Delete the lock file and the folder, which must hold nothing else; the caller holds the lock."""
    (folder / _NEW_LEDGER).unlink(missing_ok=True)
    (folder / _LOCK).unlink()
    folder.rmdir()


@contextmanager
def open_ledger(
    folder: Path, settings: str, *, notes: dict[str, str] | None = None, resume: bool = False
) -> Iterator[Ledger]:
    """Yield a locked ledger, new or, with `resume`, continued, synced at the end; ConfigError if it may not be used.

    With `resume`, the ledger of an earlier run is continued if it had the same settings. `notes` are those of the first
    run.
    """
    if folder.is_symlink():
        raise ConfigError(f"{folder} is a symbolic link; remove it, or choose another output")
    try:
        with _lock(folder):
            is_new = not (folder / _LEDGER).exists()
            if not is_new and not resume:
                raise ConfigError(
                    f"an earlier run stopped before its end and left {folder}; add --resume to finish it, or remove "
                    "that folder"
                )
            if is_new:
                _write_head(folder, _Head(_FORMAT, settings, notes or {}))
            (folder / _INDEX).touch()
            with (
                (folder / _LEDGER).open("r+b") as lines,
                (folder / _INDEX).open("r+b") as index,
                (folder / _RESULTS).open("a+b") as results,
            ):
                ledger = _resume_ledger(folder, settings, lines, index, results)
                try:
                    yield ledger
                finally:
                    with suppress(ValueError):  # closed
                        ledger.sync()
    except OSError as error:
        raise disk_error(folder, error) from None


def disk_error(folder: Path, error: OSError) -> ChaffinchError:
    """Return a ChaffinchError that says a folder cannot be written, why, and how to resume."""
    reason = error.strerror or type(error).__name__
    return ChaffinchError(
        f"{folder}: could not be written ({reason}); finished results are kept there: "
        "solve the problem, then run the same command with --resume"
    )


def _write_head(folder: Path, head: _Head) -> None:
    """Write a new ledger with its first line, by a temporary file and a rename."""
    temporary = folder / _NEW_LEDGER
    with temporary.open("wb") as stream:
        stream.write(msgspec.json.encode(head) + b"\n")
        _flush(stream)
    temporary.replace(folder / _LEDGER)


def _resume_ledger(folder: Path, settings: str, lines: BinaryIO, index: BinaryIO, results: BinaryIO) -> Ledger:
    """Return the ledger with all earlier results; ConfigError if of other settings, DataError if damaged."""
    first, *rest = lines.read().splitlines(keepends=True) or [b""]
    try:
        head = msgspec.json.decode(first, type=_Head)
    except (msgspec.DecodeError, UnicodeError):
        raise DataError("is damaged; remove the folder and run again", path=folder) from None
    if head.format != _FORMAT or head.settings != settings:
        raise ConfigError(
            f"{folder} is of a run with other settings: another model, policy, secret, list, type, table of patients, "
            "option or version; run with the same ones, or remove that folder and start again"
        )
    if rest and not rest[-1].endswith(b"\n"):
        lines.truncate(lines.seek(-len(rest[-1]), os.SEEK_END))
        rest.pop()
    ledger = Ledger(folder, head, lines, index, results)
    ledger.recall(rest)
    return ledger


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Make the folder (mode 0700), and hold its lock for the block; raise ConfigError if another run holds it."""
    while True:
        folder.mkdir(mode=0o700, exist_ok=True)
        folder.chmod(0o700)
        with (folder / _LOCK).open("ab") as stream:
            _lock_file(stream, folder)
            if _is_file_at(stream, folder / _LOCK):  # else a run that has finished since removed it
                yield
                return


def _lock_file(stream: BinaryIO, folder: Path) -> None:
    """Lock an open file until it is closed; raise ConfigError if another run has it locked."""
    try:
        import fcntl
    except ImportError:  # no locks on this system
        return
    try:
        fcntl.flock(stream.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ConfigError(f"another run is working in {folder}; wait for it, or choose another output") from None


def _is_file_at(stream: BinaryIO, path: Path) -> bool:
    """Tell whether an open file is still the one at this path, neither deleted nor replaced."""
    try:
        return os.path.samestat(os.fstat(stream.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _flush(stream: BinaryIO) -> None:
    """Flush a stream, and fsync its file."""
    stream.flush()
    os.fsync(stream.fileno())


def _checksum(number: int, key: bytes, at: int, content: bytes) -> bytes:
    """Return the 16-byte checksum of an item's result with its number, key, size and offset `at`."""
    whole = hashlib.blake2b(_RECORD.pack(key, at, len(content), number.to_bytes(16, "big")), digest_size=16)
    whole.update(content)
    return whole.digest()
