"""The memory of earlier releases in a job: which notes are new, what is known of their patients, and the next state.

    STATE  →  settle_notes: new | released before | changed  →  batches, each patient with its memory
           →  StateUpdate: note memories of released notes  →  STATE.part  →  STATE, moved after the output

`STATE.part` exists from the first step of a run to its last. It belongs to the run whose salt is in its header, and
while it is there no other run may use the state. A run that is killed leaves the old state whole; resumed, it puts the
new one in its place, after the output.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import msgspec

from chaffinch.deid.release.memory import PATIENT_KEY, NoteMemory, PatientMemory, RememberedNote, patient_key
from chaffinch.deid.release.patient import Release, Released
from chaffinch.deid.release.sealed_file import Seal, read_salt
from chaffinch.deid.release.state import STATE, NewNote, ReleaseState, StateHead, StateRelease, write_state
from chaffinch.errors import ConfigError, DataError
from chaffinch.jobs.batching.sealed import SealedRecords
from chaffinch.jobs.job import ReleaseJob, StateTarget
from chaffinch.jobs.ledger import Ledger

RELEASED_BEFORE = "was released before with the same text, as the state says"  # a rule that excludes a note
CHANGED = "was released before with another text; give the new version an id of its own"
MOVED = "was released before as a note of another patient; correct the patient, or give the note an id of its own"
TWICE = "has the id of an earlier document; make the ids differ"

_ID = 16  # bytes of the digest of an id
_EARLIER, _NEW = b"\0", b"\1"
_EXCLUDED, _WITHHELD = b"x", b"w"


def open_state(target: StateTarget) -> ReleaseState | None:
    """Open the state of a job; None if the job has none, or if its file does not exist yet."""
    if target.path is None or target.key is None or not target.path.exists():
        return None
    return ReleaseState.open(target.path, target.key)


def check_state(state: ReleaseState | None, target: StateTarget, release: Release, option: str) -> None:
    """Raise ConfigError if the state of a job is of releases with another policy, secret or order of dates."""
    if state is not None and target.path is not None:
        state.head.check(release, target.path, option)


def check_state_paths(job: ReleaseJob) -> None:
    """Raise ConfigError if the state is among the outputs, is a link, or has no folder."""
    path, part, option = job.state.path, job.state.part, job.option_names.of("state")
    if path is None or part is None:
        return
    for one in (path, part):
        if one.is_symlink():
            raise ConfigError(f"{one} is a symbolic link, and the run would replace it; remove it")
    if not path.parent.is_dir():
        raise ConfigError(f"the folder {path.parent} of the state does not exist; make it first")
    folders = [job.output, job.private, job.work, job.private_part, job.manifest]
    folders += [one for one in (job.vault.path, job.vault.part) if one is not None]
    if any(one.resolve().is_relative_to(folder.resolve()) for one in (path, part) for folder in folders):
        raise ConfigError(f"{option} {path} is among the outputs of the run; name another path")


def check_state_output(job: ReleaseJob) -> None:
    """Raise ConfigError if the state remembers a release to this output: its notes would not be released again."""
    path, option = job.state.path, job.option_names.of("state")
    if job.earlier is not None and any(one.output == _output_name(job) for one in job.earlier.head.releases):
        raise ConfigError(
            f"{option} {path} remembers notes in {job.output}, and they are not released again; choose another output"
        )


def claim_state(job: ReleaseJob, ledger: Ledger) -> None:
    """Make the unfinished state of this run, unless it is there or in place already; ConfigError if another run has it.

    Raise ConfigError if the state changed since this run began, or if another run uses it or left it unfinished.
    """
    path, part, key = job.state.path, job.state.part, job.state.key
    if path is None or part is None or key is None:
        return
    salt = bytes.fromhex(ledger.notes["salt"])
    now = read_salt(path, STATE) if path.exists() else b""
    if now == salt:
        return
    if now.hex() != ledger.notes.get("state", ""):
        raise ConfigError(f"{path} changed since this run began; remove {job.work}, and run again without --resume")
    if not _create_with_header(part, salt, Seal.new(key, salt, STATE).header):
        with suppress(DataError):
            if read_salt(part, STATE) == salt:
                return
        raise ConfigError(
            f"another run uses {path}, or stopped before its end and left {part}: wait for it, or finish it with "
            f"--resume; if neither is possible, remove {part} and the unfinished output of that run"
        )


def _create_with_header(part: Path, salt: bytes, header: bytes) -> bool:
    """Create a file that has its header from its first moment; return False, and change nothing, if it exists.

    It is written beside and linked, so that a run that is killed at any moment leaves a file by which it is known.
    """
    beside = part.with_name(f"{part.name}.{salt.hex()[:16]}")  # a resumed run has the same salt, and removes it
    try:
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as stream:
            stream.write(header)
            stream.flush()
            os.fsync(stream.fileno())
        try:
            os.link(beside, part)
        except FileExistsError:
            return False
        except OSError:  # a disk without links: two runs that begin in the same instant are not told apart
            if part.exists():
                return False
            beside.replace(part)
    finally:
        beside.unlink(missing_ok=True)
    return True


def publish_state(job: ReleaseJob) -> None:
    """Put the new state in the place of the old one; do nothing if that was done."""
    path, part = job.state.path, job.state.part
    if path is not None and part is not None and part.exists():
        part.replace(path)
        with suppress(OSError):  # some systems have no handles of folders
            handle = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def _output_name(job: ReleaseJob) -> str:
    """Return the path of the output relative to the folder of the state."""
    path = job.state.path
    return str(job.output) if path is None else os.path.relpath(job.output.resolve(), path.resolve().parent)


def output_path(state: Path, release: StateRelease) -> Path:
    """Return the path of a release that a state remembers, resolved from the state's; it may have been moved since."""
    return Path(os.path.normpath(state.parent / release.output))


class NoteIndex:
    """All notes of the state and of a run by their ids, to tell which are new. In memory, then sealed on the disk."""

    def __init__(self, folder: Path | None, earlier: Iterable[PatientMemory]) -> None:
        """Enter the notes of the state."""
        self._notes = SealedRecords(folder)
        for memory in earlier:
            patient = patient_key(memory.patient)
            for note in memory.notes:
                self._notes.add(_id_key(note.id), _EARLIER + patient + note.content)

    def add(self, place: bytes, name: str, content: bytes) -> None:
        """Add a note of the run: `name` is its id, `place` its patient's digest and its number, `content` a digest."""
        self._notes.add(_id_key(name), _NEW + place + content)

    def settle(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield (place, verdict) of all notes of the run that are not to be released; in no order."""
        size = PATIENT_KEY
        for _, records in groupby(self._notes, key=itemgetter(0)):
            known: bytes | None = None
            met = False
            for _, record in records:
                if record.startswith(_EARLIER):
                    known = record[1:]
                    continue
                place, content = record[1 : 1 + size + 8], record[1 + size + 8 :]
                if known is None:
                    verdict = _WITHHELD + TWICE.encode() if met else b""
                elif known[:size] != place[:size]:
                    verdict = _WITHHELD + MOVED.encode()
                elif known[size:] != content:
                    verdict = _WITHHELD + CHANGED.encode()
                else:
                    verdict = _EXCLUDED + RELEASED_BEFORE.encode()
                met = True
                if verdict:
                    yield place, verdict

    def __enter__(self) -> NoteIndex:
        """Return self; the block's end drops all notes."""
        return self

    def __exit__(self, *_: object) -> None:
        """Drop all notes."""
        self._notes.close()


def _id_key(name: str) -> bytes:
    """Return a digest of the id of a note."""
    return hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=_ID).digest()


def is_excluded(verdict: bytes) -> tuple[bool, str]:
    """Return whether a verdict of `NoteIndex.settle` excludes a note or withholds it, and the rule or reason."""
    return verdict.startswith(_EXCLUDED), verdict[1:].decode()


class StateUpdate:
    """The next state of a job: what its released notes add to the earlier state."""

    def __init__(self, job: ReleaseJob, seal: Seal) -> None:
        """Begin with nothing learnt; `seal` is that of the note memories and of the next state."""
        self._job, self._seal = job, seal
        self._new_notes = SealedRecords(job.output.parent)
        self._release = 0 if job.earlier is None else len(job.earlier.head.releases)

    def __enter__(self) -> StateUpdate:
        """Return self; the block's end drops what was learnt."""
        return self

    def __exit__(self, *_: object) -> None:
        """Drop all that was learnt."""
        self._new_notes.close()

    def add(self, patient: str, result: Released) -> None:
        """Add a released note of a patient, in the order of the input; DataError if its memory changed on the disk."""
        if result.note_memory is None:
            raise DataError("a result lacks what the state needs; remove the folder and run again", path=self._job.work)
        note_memory = NoteMemory.open(result.note_memory, self._seal)
        note = RememberedNote(result.original, note_memory.content, result.id, self._release)
        key = patient_key(patient) + len(self._new_notes).to_bytes(8, "big")
        self._new_notes.add(key, msgspec.msgpack.encode(NewNote(patient, note, note_memory)))

    def write(self, part: Path) -> None:
        """Write the next state to a path, complete and flushed to the disk."""
        job, earlier = self._job, self._job.earlier
        head = StateHead.of(job.release)
        before = [] if earlier is None else earlier.head.releases
        order = head.date_order if earlier is None else head.date_order or earlier.head.date_order
        release = StateRelease(_output_name(job), len(self._new_notes))
        head = msgspec.structs.replace(head, date_order=order, releases=[*before, release])
        write_state(part, self._seal, head, earlier or (), self._new_notes)
