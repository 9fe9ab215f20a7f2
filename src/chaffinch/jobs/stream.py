"""Release notes to a stream: nothing is kept on the disk, no list, no manifest, nothing to resume."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from chaffinch.deid.release.account import Account
from chaffinch.deid.release.patient import Released
from chaffinch.errors import ConfigError
from chaffinch.jobs.job import ReleaseJob
from chaffinch.jobs.release import Tick, reject_bad_id, results_in_memory, to_document
from chaffinch.text.formats import WriteOptions
from chaffinch.text.formats.base import Excluded


def release_to_bytes(job: ReleaseJob, *, workers: int = 1, tick: Tick = lambda _: None) -> tuple[dict[str, Any], bytes]:
    """De-identify a job in memory; return its manifest and the bytes of the released file, empty if all is withheld.

    The format must be one of one file, as `check_stream` tells.
    """
    check_stream(job)
    account, options, seen = Account(job.settings), WriteOptions(keep_columns=True), set[str]()
    with ExitStack() as stack:
        results = results_in_memory(job, stack, workers=workers, tick=tick)
        checked = [reject_bad_id(result, job, seen) for _, result in results]
    for result in checked:
        account.exclude(result.rule) if isinstance(result, Excluded) else account.add(result)
    with tempfile.TemporaryDirectory(prefix="chaffinch-") as folder:
        target = Path(folder) / job.output.name
        released = (to_document(result, job) for result in checked if isinstance(result, Released))
        job.form.write(released, target, options)
        content = target.read_bytes() if target.exists() else b""
    lost = dict(sorted(options.losses.counts.items()))
    return account.manifest(lost=lost, warnings=list(job.warnings)), content


def check_stream(job: ReleaseJob) -> None:
    """Raise ConfigError if the output format needs a folder, or if the job has a vault or a state."""
    if job.form.folder:
        raise ConfigError(f"{job.form.name} is written to a folder, and -o - takes one file; name a folder with -o")
    if job.vault.path is not None:
        raise ConfigError("--vault restores files, and -o - writes none; name an output with -o, or leave --vault out")
    if job.state.path is not None:
        raise ConfigError("--state remembers which file holds a note, and -o - writes none; name an output with -o")
