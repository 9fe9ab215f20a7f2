"""Run a release job: process batches into a ledger, build the outputs from it, then move all to their paths.

    Gathered.batches  →  process_batch, here or in a pool  →  ledger  →  build_outputs  →  publish

Until the end everything is in `OUT.part` beside the output, without an id of the input; lists of such ids are in
`OUT.private.part` while the outputs are built. Then there are also `OUT.manifest.json`, which may be
published, and `OUT.private/`, which only its owner can open: `documents.jsonl` (offsets and hashes), `ids.jsonl` (from
ids in the output to those of the input), `risks.jsonl`, `withheld.jsonl` and `excluded.jsonl`. The output itself is
moved last, and after it the state of releases, if there is one.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from chaffinch.deid.release.account import Account
from chaffinch.deid.release.patient import LAYER, Released, Withheld, unseal_record
from chaffinch.deid.release.sealed_file import Seal
from chaffinch.deid.release.state import STATE
from chaffinch.deid.release.verify import digest_files
from chaffinch.deid.vault import write_vault
from chaffinch.errors import ChaffinchError, ConfigError, DataError
from chaffinch.jobs.batching.batches import Gathered, Origin
from chaffinch.jobs.batching.sealed import SealedRecords
from chaffinch.jobs.job import ReleaseJob
from chaffinch.jobs.ledger import Ledger, open_ledger, remove_empty
from chaffinch.jobs.pool.processes import check_workers, open_pool
from chaffinch.jobs.run import Interrupted, process_batches
from chaffinch.jobs.state import StateUpdate, check_state_output, check_state_paths, claim_state, publish_state
from chaffinch.text import Document
from chaffinch.text.formats import WriteOptions
from chaffinch.text.formats.base import Excluded

_MOST_SYNCED_FILES = 1000  # more files than this are synced by one call for the whole system
_WITHHELD, _EXCLUDED = b"\xc1w", b"\xc1x"  # a byte that MessagePack never uses
_LISTS = ("documents.jsonl", "ids.jsonl", "risks.jsonl", "withheld.jsonl", "excluded.jsonl")
_IDS, _OPTIONAL_LISTS = "ids.jsonl", _LISTS[2:]  # the latter exist only if they have a line

Tick = Callable[[int], None]
Outcome = Released | Withheld | Excluded


def dry_run(job: ReleaseJob, *, workers: int = 1, tick: Tick = lambda _: None) -> dict[str, Any]:
    """Process a job without writing any output; return the manifest of the release, but for files and losses."""
    account, seen = Account(job.settings), set[str]()
    with ExitStack() as stack:
        for _, result in results_in_memory(job, stack, workers=workers, tick=tick):
            checked = reject_bad_id(result, job, seen)
            account.exclude(checked.rule) if isinstance(checked, Excluded) else account.add(checked)
    for item in job.source.excluded:
        account.exclude(item.rule)
    account.check_count(job.source.seen)
    return account.manifest(warnings=list(job.warnings), **_state_facts(job))


def results_in_memory(
    job: ReleaseJob, stack: ExitStack, *, workers: int = 1, tick: Tick = lambda _: None
) -> Iterator[tuple[int, Outcome]]:
    """Yield (number, result) of every unit, in input order, after all are processed; no ledger, no output.

    `stack` closes what waits on the disk until its turn.
    """
    gathered = stack.enter_context(Gathered(job))
    waiting = stack.enter_context(SealedRecords())
    for number, outcome in gathered.outcomes():
        waiting.add(number.to_bytes(8, "big"), _pack_result(outcome))
        tick(1)
    with open_pool(job, gathered.codec, workers) as each:
        for batch, results in each(gathered.batches()):
            for item, result in zip(batch, results, strict=True):
                waiting.add(item.number.to_bytes(8, "big"), _pack_result(result))
            tick(len(batch))
    for (key, content), origin in zip(waiting, gathered.origins(), strict=True):
        number = int.from_bytes(key, "big")
        yield number, _unpack_result(content, number, origin, job)


def run_release(
    job: ReleaseJob,
    *,
    resume: bool = False,
    overwrite: bool = False,
    workers: int = 1,
    tick: Tick = lambda _: None,
) -> dict[str, Any]:
    """Release an input, and return the manifest; finished work survives Ctrl-C (Interrupted), full disk and kill -9.

    Raise Interrupted on Ctrl-C. With `resume`, an earlier run of the same job is finished; its output is the same, byte
    for byte, as that of an uninterrupted run, and for any number of `workers` (processes). With `overwrite`, the output
    of an earlier release is replaced; nothing else ever is.
    """
    check_workers(job, workers)
    remove_empty(job.work)
    _check_paths(job, resume=resume, overwrite=overwrite)
    with ExitStack() as stack:
        gathered = None
        if not (job.work / "ledger").exists():  # an impossible job is refused before anything is written
            gathered = stack.enter_context(Gathered(job, job.output.parent))
        return _run_with_ledger(job, gathered, stack, resume=resume, overwrite=overwrite, workers=workers, tick=tick)


def _run_with_ledger(
    job: ReleaseJob,
    gathered: Gathered | None,
    stack: ExitStack,
    *,
    resume: bool,
    overwrite: bool,
    workers: int,
    tick: Tick,
) -> dict[str, Any]:
    """Process what the ledger lacks, build the outputs and publish them; return the manifest; Interrupted on Ctrl-C."""
    sealing = job.vault.key is not None or job.state.key is not None
    notes = {"salt": secrets.token_hex(32)} if sealing else {}
    notes |= {} if job.earlier is None else {"state": job.earlier.salt.hex()}
    with open_ledger(job.work, job.digest, notes=notes, resume=resume) as ledger:
        try:
            if gathered is not None and not len(ledger):
                _begin_or_leave(job, ledger, overwrite=overwrite)
            else:
                claim_state(job, ledger)
            if not ledger.is_marked("placing"):
                gathered = gathered or stack.enter_context(Gathered(job, job.output.parent))
                done = _process_job(job, gathered, ledger, stack, workers=workers, tick=tick)
                try:
                    build_outputs(job, done)
                except BaseException:  # lists of ids are for finished runs only
                    shutil.rmtree(job.private_part, ignore_errors=True)
                    raise
                ledger.mark("placing")
            manifest: dict[str, Any] = msgspec.json.decode(_manifest_bytes(job))
            publish(job, overwrite=overwrite)
        except KeyboardInterrupt:
            raise Interrupted(len(ledger)) from None
        ledger.remove()
    return manifest


def _begin_or_leave(job: ReleaseJob, ledger: Ledger, *, overwrite: bool) -> None:
    """Check the output paths and claim the state; if one is taken, delete the ledger just made and raise an error."""
    try:
        _check_targets(job, overwrite=overwrite)  # again: another run may have finished since
        claim_state(job, ledger)
    except ChaffinchError:
        ledger.remove()
        raise


def _check_paths(job: ReleaseJob, *, resume: bool, overwrite: bool) -> None:
    """Raise ConfigError or DataError if an output is a link, is taken and has no stopped run, or lacks a parent."""
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
    check_state_paths(job)
    if (job.work / "ledger").exists():
        return
    if resume and job.output.exists() and job.manifest.exists():
        raise ConfigError(
            f"{job.output} is complete, so nothing is left to resume; leave out --resume and choose another output to "
            "release again"
        )
    check_state_output(job)
    _check_targets(job, overwrite=overwrite)


def _check_targets(job: ReleaseJob, *, overwrite: bool) -> None:
    """Raise an error if a new run would replace something: with `overwrite`, anything but an earlier release."""
    vault = job.vault.path
    if job.output.exists() and job.output.is_dir() != job.form.folder and not _is_empty_folder(job.output):
        kind = "a folder" if job.form.folder else "a file"
        raise DataError(f"exists, but {job.form.name} is written to {kind}; choose another path", path=job.output)
    for path in (job.output, job.private, job.manifest):
        _check_free(job, path, overwrite=overwrite)
    if job.private.is_symlink() or (job.private.exists() and not _is_private_folder(job.private)):
        raise DataError(
            "has files that no release wrote, and would be replaced; choose another output", path=job.private
        )
    if vault is not None and vault.exists():
        raise ConfigError(f"{vault} exists, and a vault is never overwritten; choose another name")


def _check_free(job: ReleaseJob, path: Path, *, overwrite: bool) -> None:
    """Raise DataError if an output's path is taken; with `overwrite`, only if it is a folder that no release wrote."""
    if not path.exists() or _is_empty_folder(path):
        return
    option = job.option_names.of("overwrite")
    if not overwrite:
        what = "a folder that is not empty" if path.is_dir() else "a file that is there already"
        raise DataError(f"is {what}; choose another output, or replace an earlier release with {option}", path=path)
    if path == job.output and path.is_dir() and not job.manifest.is_file():
        raise DataError(
            f"is a folder that no release wrote, and {option} would delete its files; choose another output", path=path
        )


def _is_empty_folder(path: Path) -> bool:
    """Tell whether a path is a folder without entries."""
    return path.is_dir() and not any(path.iterdir())


def _is_private_folder(target: Path) -> bool:
    """Tell whether a folder holds only files that an earlier release writes into its private folder."""
    return target.is_dir() and all(path.name in _LISTS for path in target.iterdir())


@dataclass(frozen=True, slots=True)
class _Processed:
    """The outcome of all units: released ones in the ledger, the reasons of withheld ones here, and the seal if any."""

    gathered: Gathered
    withheld: SealedRecords
    ledger: Ledger
    seal: Seal | None
    state_seal: Seal | None

    def results(self, job: ReleaseJob) -> Iterator[tuple[Origin, Outcome]]:
        """Yield (origin, result) of all units in input order, from the first at each call; DataError if one is lost."""
        seen: set[str] = set()
        aside = iter(self.withheld)
        next_aside = next(aside, None)
        for number, origin in enumerate(self.gathered.origins(), start=1):
            if next_aside is not None and int.from_bytes(next_aside[0], "big") == number:
                content: bytes | None = next_aside[1]
                next_aside = next(aside, None)
            else:
                content = self.ledger.get(number)
            if content is None:
                raise DataError("a result changed on the disk; remove the folder and run again", path=job.work)
            yield origin, reject_bad_id(_unpack_result(content, number, origin, job), job, seen)


def _pack_result(result: bytes | Withheld | Excluded) -> bytes:
    """Return a result as bytes: of a document not released its reason or rule, after a mark that no packed one has."""
    if isinstance(result, Excluded):
        return _EXCLUDED + result.rule.encode()
    return result if isinstance(result, bytes) else _WITHHELD + result.reason.encode("utf-8", "surrogatepass")


def _unpack_result(content: bytes, number: int, origin: Origin, job: ReleaseJob) -> Outcome:
    """Return the result that `_pack_result` packed, with the ids of its origin."""
    if content.startswith(_EXCLUDED):
        return Excluded(origin.file, content.removeprefix(_EXCLUDED).decode())
    if content.startswith(_WITHHELD):
        why = content.removeprefix(_WITHHELD).decode("utf-8", "surrogatepass")
        return Withheld(job.release.name(origin.id, number), origin.id, why)
    return Released.unpack(content, origin.id, origin.group)


def _process_job(
    job: ReleaseJob, gathered: Gathered, ledger: Ledger, stack: ExitStack, *, workers: int, tick: Tick
) -> _Processed:
    """Process the batches whose results the ledger lacks, store them there; return ledger, units, withheld results."""
    salt = ledger.notes.get("salt", "")
    given, key, state_key = bytes.fromhex(salt), job.vault.key, job.state.key
    seal = None if key is None else Seal.new(key, given)
    state_seal = None if state_key is None else Seal.new(state_key, given, STATE)
    withheld = stack.enter_context(SealedRecords(job.output.parent))

    def set_aside(number: int, result: Withheld | Excluded) -> None:
        """Keep, under its number, the result of a document that is not released."""
        withheld.add(number.to_bytes(8, "big"), _pack_result(result))

    for number, outcome in gathered.outcomes():
        set_aside(number, outcome)
        tick(1)
    with open_pool(job, gathered.codec, workers, salt=salt, folder=job.output.parent) as each:
        process_batches(gathered.batches(), each, ledger, set_aside=set_aside, done=tick)
    return _Processed(gathered, withheld, ledger, seal, state_seal)


def reject_bad_id(result: Outcome, job: ReleaseJob, seen: set[str]) -> Outcome:
    """Return the result, or `Withheld` if documents are files and its id names no new one; add the id to `seen`.

    `seen` has the ids of earlier documents; this one is added.
    """
    if not isinstance(result, Released) or not job.form.folder:
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
    """Write private lists, vault, state, released documents and manifest to the work folders, in input order."""
    for path in (*_list_staging_paths(job), _backup_path(job), *filter(None, [job.vault.part])):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    account, options = Account(job.settings), WriteOptions(keep_columns=True)
    with _open_lists(job) as lists, _open_update(job, done) as update:
        released = _list_results(done.results(job), lists, account, update)
        job.form.write((to_document(result, job) for result in released), job.work / "output", options)
        for item in job.source.excluded:
            lists.exclude(item, account.exclude(item.rule))
        if update is not None and job.state.part is not None:
            update.write(job.state.part)
    account.check_count(job.source.seen)
    _write_vault(job, done)
    lost = dict(sorted(options.losses.counts.items()))
    manifest = account.manifest(
        files=digest_files(job.work / "output"), lost=lost, warnings=list(job.warnings), **_state_facts(job)
    )
    (job.work / "manifest.json").write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
    _sync(_list_staging_paths(job))


def _state_facts(job: ReleaseJob) -> dict[str, Any]:
    """Return {"state": what the state remembered of earlier releases}, in numbers; {} without a state."""
    if job.state.path is None:
        return {}
    return {"state": {"releases": 0, "patients": 0, "notes": 0} if job.earlier is None else job.earlier.facts()}


@contextmanager
def _open_update(job: ReleaseJob, done: _Processed) -> Iterator[StateUpdate | None]:
    """Yield the next state of the job, to which nothing is added yet; None if the job has none."""
    if done.state_seal is None:
        yield None
        return
    with StateUpdate(job, done.state_seal) as update:
        yield update


def _list_results(
    results: Iterable[tuple[Origin, Outcome]], lists: _PrivateLists, account: Account, update: StateUpdate | None
) -> Iterator[Released]:
    """Add all results to private lists, account and next state, and yield the released ones; each is unpacked once."""
    for origin, result in results:
        if isinstance(result, Excluded):
            lists.exclude(result, account.exclude(result.rule), document=origin.id)
            continue
        lists.add(result, account.add(result), origin.file)
        if isinstance(result, Released):
            if update is not None:
                update.add(origin.patient, result)
            yield result


@contextmanager
def _open_lists(job: ReleaseJob) -> Iterator[_PrivateLists]:
    """Yield the job's private lists, open for writing; at the end, delete optional lists without a line."""
    folder = _make_private_folder(job.private_part)
    with ExitStack() as stack:
        chosen = [name for name in _LISTS if name != _IDS or not job.release.keep_ids]
        yield _PrivateLists({name: stack.enter_context(_create_private(folder / name)) for name in chosen})
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
    """Return a released result as a document, with tokens and layer if the output format needs them."""
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

    def exclude(self, item: Excluded, line: bytes, *, document: str | None = None) -> None:
        """Write an excluded item to documents.jsonl (its `line`) and excluded.jsonl (name, rule, the id of a note)."""
        self._files["documents.jsonl"].write(line)
        of_note = {} if document is None else {"document": document}
        self._put("excluded.jsonl", {"file": item.name, **of_note, "reason": item.rule})

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
    """Flush the files at these paths, and inside folders, to the disk; all of the system's if they are many."""
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


def publish(job: ReleaseJob, *, overwrite: bool = False) -> None:
    """Move vault, private lists, manifest, the output and then the state to their paths; skip what was moved before.

    Raise DataError, before a path is replaced, if something came there since the run began, unless `overwrite`.
    """
    part, vault = job.vault.part, job.vault.path
    moves = [] if part is None or vault is None else [(part, vault)]
    finals = list(zip(_list_staging_paths(job), (job.private, job.manifest, job.output), strict=True))
    for staged, target in finals:
        if staged.exists():
            _check_free(job, target, overwrite=overwrite)
    for number, (staged, target) in enumerate([*moves, *finals]):
        if staged.exists():
            if target.is_dir():  # empty, or of an earlier release
                target.replace(_backup_path(job) if target == job.private else job.work / f"replaced-{number}")
            staged.replace(target)
    shutil.rmtree(_backup_path(job), ignore_errors=True)
    publish_state(job)
