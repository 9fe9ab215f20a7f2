"""Run a release job: process batches into a ledger, build the outputs from it, then move all to their paths.

    batches  →  process_batch  →  ledger  →  build_outputs  →  publish

Until the end everything is in `OUT.part` beside the output, without an id of the input; lists of such ids are in
`OUT.private.part` while the outputs are built. Then there are also `OUT.manifest.json`, which may be
published, and `OUT.private/`, which only its owner can open: `documents.jsonl` (offsets and hashes), `ids.jsonl` (from
ids in the output to those of the input), `risks.jsonl`, `withheld.jsonl` and `excluded.jsonl`. The output itself is
moved last.
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
from chaffinch.deid.release.patient import LAYER, Released, Withheld, unseal_record
from chaffinch.deid.release.verify import digest_files
from chaffinch.deid.vault import Seal, write_vault
from chaffinch.errors import ChaffinchError, ConfigError, DataError
from chaffinch.jobs.batches import BatchWork, batches, process_batch, release_units
from chaffinch.jobs.job import ReleaseJob
from chaffinch.jobs.ledger import Ledger, open_ledger, remove_empty
from chaffinch.jobs.run import Interrupted, KeptKey, WorkItem, in_order, process_batches
from chaffinch.text import Document
from chaffinch.text.formats import Unit, WriteOptions
from chaffinch.text.formats.base import Excluded

_MOST_SYNCED_FILES = 1000  # more files than this are synced by one call for the whole system
_LISTS = ("documents.jsonl", "ids.jsonl", "risks.jsonl", "withheld.jsonl", "excluded.jsonl")
_IDS, _OPTIONAL_LISTS = "ids.jsonl", _LISTS[2:]  # the latter exist only if they have a line

Tick = Callable[[int], None]


def dry_run(job: ReleaseJob, *, tick: Tick = lambda _: None) -> dict[str, Any]:
    """De-identify all notes in memory, and return the manifest; nothing is written."""
    account, work = Account(job.settings), BatchWork(job.release, job.detector)
    seen: set[str] = set()
    for batch in batches(job):
        for result in release_units(work, [item.payload for item in batch]):
            account.add(reject_bad_id(result, job, seen))
        tick(len(batch))
    for item in job.source.excluded:
        account.exclude(item.rule)
    account.check_count(job.source.seen)
    return account.manifest(warnings=list(job.warnings))


def run_release(job: ReleaseJob, *, resume: bool = False, tick: Tick = lambda _: None) -> dict[str, Any]:
    """De-identify a job's notes, write all outputs and return the manifest; after a crash or Ctrl-C it can be resumed.

    Raise Interrupted on Ctrl-C. With `resume`, an earlier run of the same job is finished; its output is the same, byte
    for byte, as that of an uninterrupted run.
    """
    remove_empty(job.work)
    _check_paths(job, resume=resume)
    work = (
        None if (job.work / "ledger").exists() else batches(job)
    )  # an impossible job is refused before anything is written
    notes = {} if job.vault.key is None else {"salt": secrets.token_hex(32)}
    with open_ledger(job.work, job.digest, notes=notes, resume=resume) as ledger:
        try:
            if work is not None and not len(ledger):
                _check_taken(job, ledger)  # again: another run may have finished since
            if not ledger.is_marked("placing"):
                done = _process_job(job, work or batches(job), ledger, tick)
                try:
                    build_outputs(job, done)
                except BaseException:  # lists of ids are for finished runs only
                    shutil.rmtree(job.private_part, ignore_errors=True)
                    raise
                ledger.mark("placing")
            manifest: dict[str, Any] = msgspec.json.decode(_manifest_bytes(job))
            publish(job)
        except KeyboardInterrupt:
            raise Interrupted(len(ledger)) from None
        ledger.remove()
    return manifest


def _check_taken(job: ReleaseJob, ledger: Ledger) -> None:
    """Raise an error if an output path is taken; then delete the ledger that was just made."""
    try:
        _check_targets(job)
    except ChaffinchError:
        ledger.remove()
        raise


def _check_paths(job: ReleaseJob, *, resume: bool) -> None:
    """Raise an error, before any work, if an output path is a link, is taken, or has no parent folder."""
    if job.output.is_symlink():
        raise ConfigError(f"{job.output} is a symbolic link; name the path that it leads to")
    for path in (job.work, job.private_part, job.manifest, *filter(None, [job.vault.path, job.vault.part])):
        if path.is_symlink():
            raise ConfigError(f"{path} is a symbolic link, and the run would replace it; remove it")
    if job.manifest.is_dir():
        raise ConfigError(f"{job.manifest} is a folder, and the manifest would replace it; choose another output")
    if not job.output.parent.is_dir():
        raise ConfigError(f"the folder {job.output.parent} of the output does not exist; make it first")
    vault = job.vault.path
    if vault is not None and not vault.parent.is_dir():
        raise ConfigError(f"the folder {vault.parent} of the vault does not exist; make it first")
    if (job.work / "ledger").exists():
        return
    if resume and job.output.exists() and job.manifest.exists():
        raise ConfigError(
            f"{job.output} is complete, so nothing is left to resume; leave out --resume and choose another output to "
            "release again"
        )
    _check_targets(job)


def _check_targets(job: ReleaseJob) -> None:
    """Raise an error if a new run would overwrite something at the output, the private folder or the vault."""
    vault = job.vault.path
    if job.output.is_dir() and any(job.output.iterdir()):
        raise DataError("is a folder that is not empty; choose a new or empty folder", path=job.output)
    if job.output.exists() and job.output.is_dir() != job.form.folder:
        kind = "a folder" if job.form.folder else "a file"
        raise DataError(f"exists, but {job.form.name} is written to {kind}; choose another path", path=job.output)
    if job.private.is_symlink() or (job.private.exists() and not _is_private_folder(job.private)):
        raise DataError(
            "has files that no release wrote, and would be replaced; choose another output", path=job.private
        )
    if vault is not None and vault.exists():
        raise ConfigError(f"{vault} exists, and a vault is never overwritten; choose another name")


def _is_private_folder(target: Path) -> bool:
    """Tell whether a folder holds only files that an earlier release writes into its private folder."""
    return target.is_dir() and all(path.name in _LISTS for path in target.iterdir())


@dataclass(frozen=True, slots=True)
class _Origin:
    """What no file of an unfinished run holds: the file, the id and the patient of a document in the input."""

    file: str
    id: str
    group: str | None

    @classmethod
    def of(cls, unit: Unit) -> _Origin:
        """Return the file, id and patient of a unit; if it cannot be read, its id and no patient."""
        try:
            doc = unit.read()
        except Exception:  # it is withheld, and the reason is given there
            return cls(unit.name, unit.id, None)
        return cls(unit.name, doc.id, doc.group)


@dataclass(frozen=True, slots=True)
class _Processed:
    """The outcome of all units: results in the ledger or here, the origin of each unit, and the seal if any."""

    outcomes: Mapping[int, KeptKey | Withheld]
    origins: Mapping[int, _Origin]
    ledger: Ledger
    seal: Seal | None

    def results(self, job: ReleaseJob) -> Iterator[tuple[int, Released | Withheld]]:
        """Yield the number and the result of every unit, in input order; results are read from the ledger each time."""
        seen: set[str] = set()
        for number, stored in in_order(self.outcomes, self.ledger):
            origin = self.origins[number]
            result = Released.unpack(stored, origin.id, origin.group) if isinstance(stored, bytes) else stored
            yield number, reject_bad_id(result, job, seen)


def _process_job(job: ReleaseJob, work: Iterable[Sequence[WorkItem[Unit]]], ledger: Ledger, tick: Tick) -> _Processed:
    """De-identify the batches whose results are not in the ledger, store them there, and return the outcome of all."""
    key = job.vault.key
    seal = None if key is None else Seal.new(key, bytes.fromhex(ledger.notes["salt"]))
    origins: dict[int, _Origin] = {}

    def note_batch(batch: Sequence[WorkItem[Unit]]) -> None:
        """Record the origins of a finished batch, and report its size as progress."""
        origins.update((item.number, _Origin.of(item.payload)) for item in batch)
        tick(len(batch))

    step = partial(process_batch, BatchWork(job.release, job.detector, seal))
    return _Processed(process_batches(work, step, ledger, done=note_batch), origins, ledger, seal)


def reject_bad_id(result: Released | Withheld, job: ReleaseJob, seen: set[str]) -> Released | Withheld:
    """Return the result, or `Withheld` if each document becomes a file and its id cannot name a new file.

    `seen` has the ids of earlier documents; this one is added.
    """
    if isinstance(result, Withheld) or not job.form.folder:
        return result
    fault = _find_fault(result.id, seen)
    seen.add(result.id)
    return Withheld(result.id, result.original, fault) if fault else result


def _find_fault(name: str, seen: set[str]) -> str:
    """Return the reason why an id cannot name a new file: taken, hidden or empty parts, NUL; empty if it can."""
    if name in seen:
        return "has the id of an earlier document; make the ids differ"
    parts = name.split("/")
    if "\0" in name or any(not part or part.startswith(".") for part in parts):
        return "has an id that cannot be a file name; change the id, or leave out --ids keep"
    return ""


def build_outputs(job: ReleaseJob, done: _Processed) -> None:
    """Write private lists, vault, released documents and manifest to the work folders, in input order."""
    for path in (*_list_staging_paths(job), _backup_path(job), *filter(None, [job.vault.part])):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    account = Account(job.settings)
    _write_lists(job, done, account)
    _write_vault(job, done)
    options = WriteOptions(keep_columns=True)
    released = (result for _, result in done.results(job) if isinstance(result, Released))
    job.form.write((to_document(result, job) for result in released), job.work / "output", options)
    lost = dict(sorted(options.losses.counts.items()))
    manifest = account.manifest(files=digest_files(job.work / "output"), lost=lost, warnings=list(job.warnings))
    (job.work / "manifest.json").write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
    _sync(_list_staging_paths(job))


def _write_lists(job: ReleaseJob, done: _Processed, account: Account) -> None:
    """Write the private lists of all results and exclusions, and count them in the account."""
    folder = _make_private_folder(job.private_part)
    with ExitStack() as stack:
        chosen = [name for name in _LISTS if name != _IDS or not job.release.keep_ids]
        lists = _PrivateLists({name: stack.enter_context(_create_private(folder / name)) for name in chosen})
        for number, result in done.results(job):
            lists.add(result, account.add(result), done.origins[number].file)
        for item in job.source.excluded:
            lists.exclude(item, account.exclude(item.rule))
    account.check_count(job.source.seen)
    for path in (folder / name for name in _OPTIONAL_LISTS):
        if not path.stat().st_size:
            path.unlink()


def _write_vault(job: ReleaseJob, done: _Processed) -> None:
    """Write the encrypted originals of all released documents to the unfinished vault, if the job has one."""
    part, key, seal = job.vault.part, job.vault.key, done.seal
    if part is None or key is None or seal is None:
        return
    with write_vault(part, key, beside=False) as vault:
        for _, result in done.results(job):
            if isinstance(result, Released) and result.sealed is not None:
                vault.add(unseal_record(result.sealed, seal))


def to_document(result: Released, job: ReleaseJob) -> Document:
    """Return a released result as a document with the tokens and layer that the output format needs."""
    can = job.form.can
    doc = result.document(spans=job.release.spans, tokens=can.needs_tokens)
    return doc.with_layer(LAYER, ()) if can.needs_layer and not doc.layers else doc


class _PrivateLists:
    """The private files, written line by line."""

    def __init__(self, files: Mapping[str, BinaryIO]) -> None:
        """Keep the open files of the lists, by name."""
        self._files = files

    def add(self, result: Released | Withheld, line: bytes, file: str) -> None:
        """Write a result to the lists it belongs to; `line` is its line of documents.jsonl, `file` its input file."""
        self._files["documents.jsonl"].write(line)
        if isinstance(result, Withheld):
            self._put("withheld.jsonl", {"id": result.id, "reason": result.reason, "file": file})
        elif result.risk is not None:
            self._put("risks.jsonl", result.risk)
        if _IDS in self._files:
            self._put(_IDS, {"id": result.id, "document": result.original, "file": file})

    def exclude(self, item: Excluded, line: bytes) -> None:
        """Write an excluded item to documents.jsonl (its `line`) and excluded.jsonl (its name and rule)."""
        self._files["documents.jsonl"].write(line)
        self._put("excluded.jsonl", {"file": item.name, "reason": item.rule})

    def _put(self, name: str, row: dict[str, Any]) -> None:
        """Append a row to the named list, as a line of JSON."""
        self._files[name].write(msgspec.json.encode(row) + b"\n")


def _make_private_folder(path: Path) -> Path:
    """Make a folder of mode 0700, whatever the umask, and return it."""
    path.mkdir(mode=0o700)
    path.chmod(0o700)
    return path


def _create_private(path: Path) -> BinaryIO:
    """Create a new file of mode 0600, whatever the umask, and return it open for writing."""
    file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
    path.chmod(0o600)
    return file


def _list_staging_paths(job: ReleaseJob) -> list[Path]:
    """Return the temporary paths of private lists, manifest and output, before they are moved."""
    return [job.private_part, job.work / "manifest.json", job.work / "output"]


def _backup_path(job: ReleaseJob) -> Path:
    """Return the path to which an earlier release's private folder is moved while it is replaced."""
    return job.private.with_name(job.private.name + ".old")


def _sync(paths: Iterable[Path]) -> None:
    """Flush the files at these paths, and inside them, to the disk."""
    files = [file for path in paths for file in (path.rglob("*") if path.is_dir() else (path,)) if file.is_file()]
    if len(files) > _MOST_SYNCED_FILES and hasattr(os, "sync"):
        os.sync()
        return
    for file in files:
        with file.open("rb") as stream:
            os.fsync(stream.fileno())


def _manifest_bytes(job: ReleaseJob) -> bytes:
    """Return the content of the manifest, from the work folder, or from its final path if it was moved."""
    staged = job.work / "manifest.json"
    return (staged if staged.exists() else job.manifest).read_bytes()


def publish(job: ReleaseJob) -> None:
    """Move vault, private lists, manifest and then the output to their final paths; skip what was moved before."""
    part, vault = job.vault.part, job.vault.path
    moves = [] if part is None or vault is None else [(part, vault)]
    for staged, target in [
        *moves,
        *zip(_list_staging_paths(job), (job.private, job.manifest, job.output), strict=True),
    ]:
        if staged.exists():
            if target == job.private and target.exists():  # of an earlier release
                target.replace(_backup_path(job))
            elif target.is_dir():
                target.rmdir()
            staged.replace(target)
    shutil.rmtree(_backup_path(job), ignore_errors=True)
