"""Run a release job: batches through the detector and the policy into a ledger, outputs from it, then all in place.

    batches  →  process_batch  →  ledger  →  build_outputs  →  publish

Until the end everything is in `OUT.part` beside the output. Beside the output come `OUT.manifest.json`, which may be
published, and `OUT.private/`, which only its owner can open: `documents.jsonl` (offsets and hashes), `ids.jsonl` (from
ids in the output to those of the input), `risks.jsonl` and `withheld.jsonl`. The output itself is placed last.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from chaffinch.deid.release.account import Account
from chaffinch.deid.release.patient import LAYER, Released, Withheld, unsealed
from chaffinch.deid.vault import Seal, writing
from chaffinch.errors import ConfigError, DataError
from chaffinch.jobs.batches import BatchWork, batches, process_batch, release_units
from chaffinch.jobs.job import ReleaseJob
from chaffinch.jobs.ledger import Ledger, opened
from chaffinch.jobs.run import Interrupted, KeptKey, WorkItem, in_order, process_batches
from chaffinch.text import Document
from chaffinch.text.formats import Unit, Writing

_MANY = 1000  # files that are not synced one by one
_LISTS = ("documents.jsonl", "ids.jsonl", "risks.jsonl", "withheld.jsonl")
_PRIVATE = "private"  # their folder until they are placed
_IDS, _IF_ANY = "ids.jsonl", ("risks.jsonl", "withheld.jsonl")  # the latter are there only if they have a line

Tick = Callable[[int], None]


def dry_run(job: ReleaseJob, *, tick: Tick = lambda _: None) -> dict[str, Any]:
    """Return the manifest of a release that is not made: nothing is written anywhere."""
    account, work = Account(job.settings), BatchWork(job.release, job.detector)
    seen: set[str] = set()
    for batch in batches(job):
        for result in release_units(work, [item.payload for item in batch]):
            account.add(reject_bad_id(result, job, seen))
        tick(len(batch))
    return account.manifest()


def run_release(job: ReleaseJob, *, resume: bool = False, tick: Tick = lambda _: None) -> dict[str, Any]:
    """Release an input, and return the manifest; what is done outlives Ctrl-C, a full disk and kill -9.

    Interrupted on Ctrl-C. With `resume`, an earlier run of the same job is finished; its output is the same, byte for
    byte, as that of a run nobody stopped.
    """
    _check_places(job)
    work = None if (job.work / "ledger").exists() else batches(job)  # what cannot be is refused before all writing
    notes = {} if job.vault.key is None else {"salt": secrets.token_hex(32)}
    with opened(job.work, job.digest, notes=notes, resume=resume) as ledger:
        try:
            if not ledger.marked("placing"):
                done = _process(job, work or batches(job), ledger, tick)
                build_outputs(job, done)
                ledger.mark("placing")
            manifest: dict[str, Any] = msgspec.json.decode(_manifest_bytes(job))
            publish(job)
        except KeyboardInterrupt:
            raise Interrupted(len(ledger)) from None
    shutil.rmtree(job.work, ignore_errors=True)
    return manifest


def _check_places(job: ReleaseJob) -> None:
    """Refuse places that are taken before any work is done; but those of a run that was stopped while placing."""
    if not job.output.parent.is_dir():
        raise ConfigError(f"the folder {job.output.parent} of the output does not exist; make it first")
    vault = job.vault.path
    if vault is not None and not vault.parent.is_dir():
        raise ConfigError(f"the folder {vault.parent} of the vault does not exist; make it first")
    if (job.work / "ledger").exists():
        return
    if job.output.is_dir() and any(job.output.iterdir()):
        raise DataError("is a folder that is not empty; choose a new one, so that nothing is mixed", path=job.output)
    if job.output.exists() and job.output.is_dir() != job.form.folder:
        kind = "a folder" if job.form.folder else "a file"
        raise DataError(f"is there already, and {job.form.name} is written to {kind}; choose another", path=job.output)
    if job.private.is_symlink() or (job.private.exists() and not _is_earlier(job.private)):
        raise DataError("holds what no release wrote, and would be replaced; choose another output", path=job.private)
    if vault is not None and vault.exists():
        raise ConfigError(f"{vault} exists, and a vault is never overwritten; choose another name")


def _is_earlier(place: Path) -> bool:
    """Return whether a place is the private folder of an earlier release."""
    return place.is_dir() and all(path.name in _LISTS for path in place.iterdir())


@dataclass(frozen=True, slots=True)
class _Processed:
    """What became of all units: results in the ledger or here, the name of each unit's file, and the seal if any."""

    outcomes: Mapping[int, KeptKey | Withheld]
    names: Mapping[int, str]
    ledger: Ledger
    seal: Seal | None

    def results(self, job: ReleaseJob) -> Iterator[tuple[int, Released | Withheld]]:
        """Yield the number and the result of every unit, in the order of the input; as often as it is asked for."""
        seen: set[str] = set()
        for number, kept in in_order(self.outcomes, self.ledger):
            result = Released.unpack(kept) if isinstance(kept, bytes) else kept
            yield number, reject_bad_id(result, job, seen)


def _process(job: ReleaseJob, work: Iterable[Sequence[WorkItem[Unit]]], ledger: Ledger, tick: Tick) -> _Processed:
    """Do the work that is not done, batch by batch, into the ledger."""
    key = job.vault.key
    seal = None if key is None else Seal.new(key, bytes.fromhex(ledger.notes["salt"]))
    names: dict[int, str] = {}

    def note_batch(batch: Sequence[WorkItem[Unit]]) -> None:
        names.update((item.number, item.payload.name) for item in batch)
        tick(len(batch))

    step = partial(process_batch, BatchWork(job.release, job.detector, seal))
    return _Processed(process_batches(work, step, ledger, done=note_batch), names, ledger, seal)


def reject_bad_id(result: Released | Withheld, job: ReleaseJob, seen: set[str]) -> Released | Withheld:
    """Return the result; where each document is a file, one whose id cannot name a new file is withheld.

    `seen` are the ids of earlier documents, and gets this one.
    """
    if isinstance(result, Withheld) or not job.form.folder:
        return result
    fault = _find_fault(result.id, seen)
    seen.add(result.id)
    return Withheld(result.id, result.original, fault) if fault else result


def _find_fault(name: str, seen: set[str]) -> str:
    if name in seen:
        return "has the id of an earlier document; make the ids differ"
    parts = name.split("/")
    if "\0" in name or any(not part or part.startswith(".") for part in parts):
        return "has an id that cannot be the name of a file; give it another, or leave out --ids keep"
    return ""


def build_outputs(job: ReleaseJob, done: _Processed) -> None:
    """Write all outputs to the folder of unfinished things, in the order of the input: lists, vault, documents."""
    for path in (*_staged(job), *filter(None, [job.vault.part])):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    account = Account(job.settings)
    _write_lists(job, done, account)
    _write_vault(job, done)
    how = Writing()
    released = (result for _, result in done.results(job) if isinstance(result, Released))
    job.form.write((_to_document(result, job) for result in released), job.work / "output", how)
    manifest = account.manifest(**{"not kept": dict(sorted(how.losses.counts.items()))})
    (job.work / "manifest.json").write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
    _sync(_staged(job))


def _write_lists(job: ReleaseJob, done: _Processed, account: Account) -> None:
    """Write the private lists, and count all results."""
    folder = _make_private_folder(job.work / _PRIVATE)
    with ExitStack() as stack:
        chosen = [name for name in _LISTS if name != _IDS or not job.release.keep_ids]
        lists = _PrivateLists({name: stack.enter_context(_create_private(folder / name)) for name in chosen})
        for number, result in done.results(job):
            lists.add(result, account.add(result), done.names[number])
    for path in (folder / name for name in _IF_ANY):
        if not path.stat().st_size:
            path.unlink()


def _write_vault(job: ReleaseJob, done: _Processed) -> None:
    """Write the originals of all documents that go out, encrypted, if they are wanted."""
    part, key, seal = job.vault.part, job.vault.key, done.seal
    if part is None or key is None or seal is None:
        return
    with writing(part, key) as vault:
        for _, result in done.results(job):
            if isinstance(result, Released) and result.sealed is not None:
                vault.add(unsealed(result.sealed, seal))


def _to_document(result: Released, job: ReleaseJob) -> Document:
    """Return the document as the format wants it."""
    can = job.form.can
    doc = result.document(spans=job.release.spans, tokens=can.needs_tokens)
    return doc.with_layer(LAYER, ()) if can.needs_layer and not doc.layers else doc


class _PrivateLists:
    """The private files, line by line."""

    def __init__(self, files: Mapping[str, BinaryIO]) -> None:
        self._files = files

    def add(self, result: Released | Withheld, line: bytes, file: str) -> None:
        """Add a result, with its line of the account and the name of its file."""
        self._files["documents.jsonl"].write(line)
        if isinstance(result, Withheld):
            self._put("withheld.jsonl", {"id": result.id, "reason": result.reason, "file": file})
        elif result.risk is not None:
            self._put("risks.jsonl", result.risk)
        if _IDS in self._files:
            self._put(_IDS, {"id": result.id, "document": result.original, "file": file})

    def _put(self, name: str, row: dict[str, Any]) -> None:
        self._files[name].write(msgspec.json.encode(row) + b"\n")


def _make_private_folder(path: Path) -> Path:
    """Make a folder that only its owner can open, whatever the umask."""
    path.mkdir(mode=0o700)
    path.chmod(0o700)
    return path


def _create_private(path: Path) -> BinaryIO:
    """Return a new file that only its owner can read, whatever the umask."""
    file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
    path.chmod(0o600)
    return file


def _staged(job: ReleaseJob) -> list[Path]:
    return [job.work / name for name in (_PRIVATE, "manifest.json", "output")]


def _sync(paths: Iterable[Path]) -> None:
    """Make sure that all files are on the disk."""
    files = [file for path in paths for file in (path.rglob("*") if path.is_dir() else (path,)) if file.is_file()]
    if len(files) > _MANY and hasattr(os, "sync"):
        os.sync()
        return
    for file in files:
        with file.open("rb") as stream:
            os.fsync(stream.fileno())


def _manifest_bytes(job: ReleaseJob) -> bytes:
    staged = job.work / "manifest.json"
    return (staged if staged.exists() else job.manifest).read_bytes()


def publish(job: ReleaseJob) -> None:
    """Move everything to its place, the output last; what an earlier run has moved is there already."""
    part, vault = job.vault.part, job.vault.path
    moves = [] if part is None or vault is None else [(part, vault)]
    for staged, place in [*moves, *zip(_staged(job), (job.private, job.manifest, job.output), strict=True)]:
        if staged.exists():
            if place == job.private and place.exists():  # of an earlier release: it goes with all that is unfinished
                place.replace(job.work / "replaced")
            elif place.is_dir():
                place.rmdir()
            staged.replace(place)
