"""A release with two workers, for a drill to disturb it: python -m tests.jobs.drill_job NOTES OUTPUT [BYTES].

With BYTES, no file may become larger: as if the disk were full.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from chaffinch.deid.policy import Policy
from chaffinch.deid.release.patient import Release
from chaffinch.deid.release.units import open_source
from chaffinch.jobs.batching import batches, sealed
from chaffinch.jobs.job import ReleaseJob
from chaffinch.jobs.release import run_release
from chaffinch.text.grouping import Grouping
from tests.deid.releases import SECRET
from tests.jobs.pool_detectors import SlowSource


@contextmanager
def small_batches() -> Iterator[None]:
    """Make batches small and sort them on the disk, in the block."""
    before = batches._BATCH_DOCUMENTS, sealed.MEMORY
    batches._BATCH_DOCUMENTS, sealed.MEMORY = 2, 2_000
    try:
        yield
    finally:
        batches._BATCH_DOCUMENTS, sealed.MEMORY = before


def release(notes: Path, output: Path, *, resume: bool) -> None:
    """Release notes by two workers."""
    given = open_source(notes, grouping=Grouping(r"-(p\d)$"))
    how = Release(Policy.read("i2b2-surrogate"), SECRET, counted_order="mdy")
    source = SlowSource()
    job = ReleaseJob(given, output, how, source.build(), detector_source=source)
    run_release(job, resume=resume, workers=2)


if __name__ == "__main__":
    target = Path(sys.argv[2])
    if len(sys.argv) > 3:
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), limit))
    with small_batches():
        release(Path(sys.argv[1]), target, resume=target.with_name(f"{target.name}.part").exists())
