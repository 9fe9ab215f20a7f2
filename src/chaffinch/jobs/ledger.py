"""The ledger of a job: which results are there already, on the disk for good, whatever happens to the process.

A folder (mode 0700) with two files that only grow. `results` has the results one after the other; a line of `ledger`
says where one of them stands and what its checksum is. A line is written when its result is safe on the disk, so a
line that was cut off, or points beyond the end, is of a result that was never finished, and is forgotten.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import msgspec

from chaffinch.errors import ChaffinchError, ConfigError, DataError

_FORMAT = 1
_BUFFER = 1 << 20  # bytes of results that wait for the next sync, about


class _Head(msgspec.Struct):
    """The first line: the format, the settings of the job, and what it noted for itself."""

    format: int
    settings: str
    notes: dict[str, str] = {}


class _Line(msgspec.Struct, omit_defaults=True):
    """Where the result of a key stands; or a mark, that a step of the job is done."""

    key: str = ""
    at: int = 0
    size: int = 0
    sum: str = ""
    mark: str = ""


class Ledger:
    """Results by key, kept on disk; open it with `opened`."""

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
        """The result of a key, or None if there is none, or not as it was written."""
        line = self._lines.get(key)
        if line is None:
            return None
        self._results.flush()
        content = os.pread(self._results.fileno(), line.size, line.at)
        return content if _sum(content) == line.sum else None

    def put(self, key: str, result: bytes) -> None:
        """Adds a result; it is safe after the next `sync`, which comes by itself when much is waiting."""
        line = _Line(key, self._size, len(result), _sum(result))
        self._results.write(result)
        self._size += len(result)
        self._lines[key] = line
        self._waiting.append(line)
        self._waiting_bytes += len(result)
        if self._waiting_bytes >= _BUFFER:
            self.sync()

    def mark(self, name: str) -> None:
        """Notes for good that a step of the job is done."""
        self._marks.add(name)
        self._waiting.append(_Line(mark=name))
        self.sync()

    def marked(self, name: str) -> bool:
        """Whether a step was done, now or in an earlier run."""
        return name in self._marks

    def sync(self) -> None:
        """Makes all results safe: first the results, then the lines that tell of them."""
        if not self._waiting:
            return
        _flush(self._results)
        self._ledger.write(b"".join(msgspec.json.encode(line) + b"\n" for line in self._waiting))
        _flush(self._ledger)
        self._waiting.clear()
        self._waiting_bytes = 0

    def recall(self, lines: list[bytes]) -> None:
        """Takes up what an earlier run left; unfinished ends of both files are cut off."""
        self._size = os.fstat(self._results.fileno()).st_size
        reached = 0
        good = 0
        for number, raw in enumerate(lines, start=2):
            try:
                line = msgspec.json.decode(raw, type=_Line)
            except (msgspec.DecodeError, UnicodeError):
                raise DataError("is damaged; remove the folder and run again", path=self.folder, line=number) from None
            if line.at + line.size > self._size:
                break
            good += len(raw)
            reached = max(reached, line.at + line.size)
            if line.mark:
                self._marks.add(line.mark)
            else:
                self._lines[line.key] = line
        self._ledger.truncate(self._ledger.seek(-sum(map(len, lines)) + good, os.SEEK_END))
        self._results.truncate(self._results.seek(reached))
        self._size = reached


@contextmanager
def opened(
    folder: Path, settings: str, *, notes: dict[str, str] | None = None, resume: bool = False
) -> Iterator[Ledger]:
    """A ledger in a folder of its own; what was put is safe even if the block ends by an error or Ctrl-C.

    An earlier run's is taken up with `resume`, if it had the same settings. `notes` are kept from the first run.
    """
    fresh = not (folder / "ledger").exists()
    if not fresh and not resume:
        raise ConfigError(
            f"an earlier run stopped before its end and left {folder}; add --resume to finish it, or remove that folder"
        )
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        folder.chmod(0o700)
        if fresh:
            _begin(folder, _Head(_FORMAT, settings, notes or {}))
        with (folder / "ledger").open("r+b") as lines, (folder / "results").open("a+b") as results:
            _lock(lines, folder)
            ledger = _taken_up(folder, settings, lines, results)
            try:
                yield ledger
            finally:
                with suppress(ValueError):  # closed
                    ledger.sync()
    except OSError as error:
        raise full(folder, error) from None


def full(folder: Path, error: OSError) -> ChaffinchError:
    """The error for a disk that takes no more."""
    reason = error.strerror or type(error).__name__
    return ChaffinchError(
        f"{folder}: could not be written ({reason}); what is done is kept there: "
        "mend that, then run the same command with --resume"
    )


def _begin(folder: Path, head: _Head) -> None:
    """Writes the first line beside its place, so that a ledger has it whole or is not there."""
    beside = folder / "ledger.new"
    with beside.open("wb") as stream:
        stream.write(msgspec.json.encode(head) + b"\n")
        _flush(stream)
    beside.replace(folder / "ledger")


def _taken_up(folder: Path, settings: str, lines: BinaryIO, results: BinaryIO) -> Ledger:
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


def _lock(stream: BinaryIO, folder: Path) -> None:
    try:
        import fcntl
    except ImportError:  # no locks on this system
        return
    try:
        fcntl.flock(stream.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ConfigError(f"another run is at work in {folder}; wait for it, or choose another output") from None


def _flush(stream: BinaryIO) -> None:
    stream.flush()
    os.fsync(stream.fileno())


def _sum(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
