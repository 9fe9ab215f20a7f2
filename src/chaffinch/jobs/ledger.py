"""The ledger of a job: finished results by key, stored on disk so that they survive a crash.

A folder (mode 0700) with a lock and two append-only files. `results` has the results one after the other; a line of
`ledger` has the offset, size and checksum of one of them. A line is written when its result is safe on the disk, so a
line that was cut off, or points beyond the end, belongs to a result that was never finished, and is dropped.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import msgspec

from chaffinch.errors import ChaffinchError, ConfigError, DataError

_FORMAT = 2
_LEDGER, _NEW_LEDGER, _LOCK = "ledger", "ledger.new", "lock"
_BUFFER = 1 << 20  # bytes of results after which they are synced; a crash loses about this much at most


class _Head(msgspec.Struct):
    """The first line: the format, the digest of the job's settings, and notes of the job."""

    format: int
    settings: str
    notes: dict[str, str] = {}


class _Line(msgspec.Struct, omit_defaults=True):
    """The position of a key's result; or a mark that a step of the job is done."""

    key: str = ""
    at: int = 0
    size: int = 0
    sum: str = ""
    mark: str = ""


class Ledger:
    """Results by key, stored on disk; open it with `open_ledger`."""

    def __init__(self, folder: Path, head: _Head, ledger: BinaryIO, results: BinaryIO) -> None:
        self.folder, self.notes = folder, head.notes
        self._ledger, self._results = ledger, results
        self._lines: dict[str, _Line] = {}
        self._waiting: list[_Line] = []
        self._marks: set[str] = set()
        self._size = self._waiting_bytes = 0

    def __len__(self) -> int:
        return len(self._lines)

    def __repr__(self) -> str:
        return f"Ledger({len(self)} results)"

    def get(self, key: str) -> bytes | None:
        """Return the stored result of a key; None if there is none, or if its bytes changed on the disk."""
        line = self._lines.get(key)
        if line is None:
            return None
        self._results.flush()
        content = os.pread(self._results.fileno(), line.size, line.at)
        return content if _checksum(content) == line.sum else None

    def put(self, key: str, result: bytes) -> None:
        """Append a result under a key; it survives a crash after the next `sync`, which runs by itself after 1 MB."""
        line = _Line(key, self._size, len(result), _checksum(result))
        self._results.write(result)
        self._size += len(result)
        self._lines[key] = line
        self._waiting.append(line)
        self._waiting_bytes += len(result)
        if self._waiting_bytes >= _BUFFER:
            self.sync()

    def mark(self, name: str) -> None:
        """Record on the disk, at once, that the named step of the job is done."""
        self._marks.add(name)
        self._waiting.append(_Line(mark=name))
        self.sync()

    def is_marked(self, name: str) -> bool:
        """Tell whether the named step was marked as done, in this run or an earlier one."""
        return name in self._marks

    def sync(self) -> None:
        """Flush waiting results to the disk, then the lines that describe them."""
        if not self._waiting:
            return
        _flush(self._results)
        self._ledger.write(b"".join(msgspec.json.encode(line) + b"\n" for line in self._waiting))
        _flush(self._ledger)
        self._waiting.clear()
        self._waiting_bytes = 0

    def recall(self, lines: list[bytes]) -> None:
        """Load the lines of an earlier run; truncate results and lines that it left unfinished."""
        self._size = os.fstat(self._results.fileno()).st_size
        end = 0
        good_bytes = 0
        whole = True
        for number, raw in enumerate(lines, start=2):
            try:
                line = msgspec.json.decode(raw, type=_Line)
            except (msgspec.DecodeError, UnicodeError):
                raise DataError("is damaged; remove the folder and run again", path=self.folder, line=number) from None
            if line.mark:  # a step that is done stays done, also when the results that it needed were removed
                self._marks.add(line.mark)
            whole = whole and line.at + line.size <= self._size
            if whole:
                good_bytes += len(raw)
                end = max(end, line.at + line.size)
                self._lines |= {} if line.mark else {line.key: line}
        if self._marks and not whole:
            return
        self._ledger.truncate(self._ledger.seek(-sum(map(len, lines)) + good_bytes, os.SEEK_END))
        self._results.truncate(self._results.seek(end))
        self._size = end

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
    """Yield a locked ledger in `folder`, new or continued with `resume`; its results are synced when the block ends.

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
            with (folder / _LEDGER).open("r+b") as lines, (folder / "results").open("a+b") as results:
                ledger = _resume_ledger(folder, settings, lines, results)
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


def _resume_ledger(folder: Path, settings: str, lines: BinaryIO, results: BinaryIO) -> Ledger:
    """Return the ledger of open files with all earlier results; raise ConfigError if its settings were others."""
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
    ledger = Ledger(folder, head, lines, results)
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
    """Flush a stream, and its file to the disk."""
    stream.flush()
    os.fsync(stream.fileno())


def _checksum(content: bytes) -> str:
    """Return the 128-bit BLAKE2b hash of bytes, in hex."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()
