"""A whole input released: units read, worked on in parcels, results in a ledger, and all outputs placed at the end.

Until then everything is in `OUT.part` beside the output. Beside the output come `OUT.manifest.json`, which may be
published, and `OUT.private/`, which only its owner can open: `documents.jsonl` (offsets and hashes), `ids.jsonl` (from
ids in the output to those of the input), `risks.jsonl` and `withheld.jsonl`. The output itself is placed last.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from chaffinch.deid.release.account import Account
from chaffinch.deid.release.patient import LAYER, Released, Withheld, unsealed
from chaffinch.deid.release.units import Unit
from chaffinch.deid.vault import Seal, writing
from chaffinch.errors import ConfigError, DataError
from chaffinch.jobs.batches import EXACT, Job, apart, packed, parcels, worked
from chaffinch.jobs.ledger import Ledger, opened
from chaffinch.jobs.run import Interrupted, WorkItem, run
from chaffinch.text import Document
from chaffinch.text.formats import Losses, Writing

_MANY = 1000  # files that are not synced one by one
_LISTS = ("documents.jsonl", "ids.jsonl", "risks.jsonl", "withheld.jsonl")
_PRIVATE = "private"  # their folder until they are placed
_IDS, _IF_ANY = "ids.jsonl", ("risks.jsonl", "withheld.jsonl")  # the latter are there only if they have a line

Tick = Callable[[int], None]


def counted(job: Job, *, tick: Tick = lambda _: None) -> dict[str, Any]:
    """The manifest of a release that is not made: nothing is written anywhere."""
    account = Account(job.told())
    seen: set[str] = set()
    for parcel in parcels(job):
        for one in apart(worked([item.payload for item in parcel], job, None), job, seen):
            account.add(one)
        tick(len(parcel))
    return account.manifest()


def released(job: Job, *, resume: bool = False, tick: Tick = lambda _: None) -> dict[str, Any]:
    """Releases an input, and returns the manifest; what is done outlives Ctrl-C, a full disk and kill -9.

    Interrupted on Ctrl-C. With `resume`, an earlier run of the same job is finished; its output is the same, byte for
    byte, as that of a run nobody stopped.
    """
    _check_places(job)
    work = None if (job.work / "ledger").exists() else parcels(job)  # what cannot be is refused before all writing
    notes = {} if job.key is None else {"salt": secrets.token_hex(32)}
    with opened(job.work, job.digest(), notes=notes, resume=resume) as ledger:
        try:
            if not ledger.marked("placing"):
                _made(job, work or parcels(job), ledger, tick)
                ledger.mark("placing")
            manifest: dict[str, Any] = msgspec.json.decode(_manifest_bytes(job))
            _place(job)
        except KeyboardInterrupt:
            raise Interrupted(len(ledger)) from None
    shutil.rmtree(job.work, ignore_errors=True)
    return manifest


def _check_places(job: Job) -> None:
    """Refuses places that are taken before any work is done; but those of a run that was stopped while placing."""
    if not job.output.parent.is_dir():
        raise ConfigError(f"the folder {job.output.parent} of the output does not exist; make it first")
    if job.vault is not None and not job.vault.parent.is_dir():
        raise ConfigError(f"the folder {job.vault.parent} of the vault does not exist; make it first")
    if (job.work / "ledger").exists():
        return
    if job.output.is_dir() and any(job.output.iterdir()):
        raise DataError("is a folder that is not empty; choose a new one, so that nothing is mixed", path=job.output)
    if job.output.exists() and job.output.is_dir() != job.form.folder:
        kind = "a folder" if job.form.folder else "a file"
        raise DataError(f"is there already, and {job.form.name} is written to {kind}; choose another", path=job.output)
    if job.private.is_symlink() or (job.private.exists() and not _is_earlier(job.private)):
        raise DataError("holds what no release wrote, and would be replaced; choose another output", path=job.private)
    if job.vault is not None and job.vault.exists():
        raise ConfigError(f"{job.vault} exists, and a vault is never overwritten; choose another name")


def _is_earlier(place: Path) -> bool:
    """Return whether a place is the private folder of an earlier release."""
    return place.is_dir() and all(path.name in _LISTS for path in place.iterdir())


def _noted(parcels: Iterable[list[WorkItem[Unit]]], names: dict[int, str]) -> Iterator[list[WorkItem[Unit]]]:
    """The parcels; on their way, the name of each unit's file is noted."""
    for parcel in parcels:
        names |= {item.number: item.payload.name for item in parcel}
        yield parcel


def _made(job: Job, work: Iterable[list[WorkItem[Unit]]], ledger: Ledger, tick: Tick) -> None:
    """Does the work that is not done, and makes all outputs in the folder of unfinished things."""
    seal = None if job.key is None else Seal.new(job.key, bytes.fromhex(ledger.notes["salt"]))

    names: dict[int, str] = {}  # by number, the file
    results = run(_noted(work, names), lambda units: packed(units, job, seal), ledger, tick=tick)
    unpacked = (Released.unpack(one) if isinstance(one, bytes) else one for one in results)
    losses, account = Losses(), Account(job.told())
    staged = _staged(job)
    for path in (*staged, *filter(None, [_vault_part(job)])):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    with ExitStack() as stack:
        private = _make_private_folder(job.work / _PRIVATE)
        chosen = [name for name in _LISTS if name != _IDS or not job.how.keep_ids]
        files = {name: stack.enter_context(_private(private / name)) for name in chosen}
        lists = _Lists(files, names)
        part = _vault_part(job)
        vault = stack.enter_context(writing(part, job.key)) if part is not None and job.key is not None else None

        def documents() -> Iterator[Document]:
            for number, one in enumerate(apart(unpacked, job, set()), start=1):
                lists.add(number, one, account.add(one))
                if isinstance(one, Released):
                    if vault is not None and seal is not None and one.sealed is not None:
                        vault.add(unsealed(one.sealed, seal))
                    yield _to_write(one, job)

        job.form.write(documents(), job.work / "output", Writing(losses))
    for path in (job.work / _PRIVATE / name for name in _IF_ANY):
        if not path.stat().st_size:
            path.unlink()
    manifest = account.manifest(**{"not kept": dict(sorted(losses.counts.items()))})
    (job.work / "manifest.json").write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
    _sync(staged)


def _to_write(one: Released, job: Job) -> Document:
    """The document as the format wants it: a brat folder is one by its .ann files, empty or not."""
    doc = one.document(spans=job.how.spans, tokens=job.form.name not in EXACT)
    return doc if doc.layers or job.form.name != "brat" else doc.with_layer(LAYER, ())


class _Lists:
    """The private files, line by line."""

    def __init__(self, files: dict[str, BinaryIO], names: dict[int, str]) -> None:
        self._files, self._names = files, names

    def add(self, number: int, one: Released | Withheld, line: bytes) -> None:
        self._files["documents.jsonl"].write(line)
        if isinstance(one, Withheld):
            self._put("withheld.jsonl", {"id": one.id, "reason": one.reason, "file": self._names[number]})
        elif one.risk is not None:
            self._put("risks.jsonl", one.risk)
        if _IDS in self._files:
            self._put(_IDS, {"id": one.id, "document": one.original, "file": self._names[number]})

    def _put(self, name: str, row: dict[str, Any]) -> None:
        self._files[name].write(msgspec.json.encode(row) + b"\n")


def _make_private_folder(path: Path) -> Path:
    """Make a folder that only its owner can open, whatever the umask."""
    path.mkdir(mode=0o700)
    path.chmod(0o700)
    return path


def _private(path: Path) -> BinaryIO:
    """Return a new file that only its owner can read, whatever the umask."""
    file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
    path.chmod(0o600)
    return file


def _staged(job: Job) -> list[Path]:
    return [job.work / name for name in (_PRIVATE, "manifest.json", "output")]


def _vault_part(job: Job) -> Path | None:
    return None if job.vault is None else job.vault.with_name(job.vault.name + ".part")


def _sync(paths: Iterable[Path]) -> None:
    """Makes sure that all files are on the disk."""
    files = [file for path in paths for file in (path.rglob("*") if path.is_dir() else (path,)) if file.is_file()]
    if len(files) > _MANY and hasattr(os, "sync"):
        os.sync()
        return
    for file in files:
        with file.open("rb") as stream:
            os.fsync(stream.fileno())


def _manifest_bytes(job: Job) -> bytes:
    staged = job.work / "manifest.json"
    return (staged if staged.exists() else job.manifest).read_bytes()


def _place(job: Job) -> None:
    """Moves everything to its place, the output last; what an earlier run has moved is there already."""
    part = _vault_part(job)
    moves = [] if part is None or job.vault is None else [(part, job.vault)]
    for staged, place in [*moves, *zip(_staged(job), (job.private, job.manifest, job.output), strict=True)]:
        if staged.exists():
            if place == job.private and place.exists():  # of an earlier release: it goes with all that is unfinished
                place.replace(job.work / "replaced")
            elif place.is_dir():
                place.rmdir()
            staged.replace(place)
