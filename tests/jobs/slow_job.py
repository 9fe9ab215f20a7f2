"""A release that takes its time, for a test to kill it: python -m tests.jobs.slow_job NOTES OUTPUT."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from chaffinch.deid.policy import Policy
from chaffinch.deid.release.patient import Release
from chaffinch.deid.release.units import open_source
from chaffinch.jobs.batching import batches
from chaffinch.jobs.job import ReleaseJob
from chaffinch.jobs.release import run_release
from chaffinch.text import Document
from chaffinch.text.grouping import Grouping
from tests.deid.releases import SECRET, detector, find


def slowly(docs: Sequence[Document]) -> Iterable[Document]:
    """What the usual detector finds, later."""
    time.sleep(0.05)
    return find(docs)


if __name__ == "__main__":
    batches._BATCH_DOCUMENTS = 1
    given = open_source(sys.argv[1], grouping=Grouping(r"^(p\d+)-"))
    how = Release(Policy.read("i2b2-surrogate"), SECRET, counted_order="mdy")
    run_release(ReleaseJob(given, Path(sys.argv[2]), how, detector(slowly)))
