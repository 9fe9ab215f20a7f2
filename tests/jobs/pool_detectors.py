"""Detectors that other processes can load by a small value, and that can end their process."""

from __future__ import annotations

import gc
import os
import resource
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from chaffinch.deid.detect.protocol import Detector
from chaffinch.text import Document
from chaffinch.threads import is_command
from tests.deid.releases import detector, find

POISON = "POISONED"  # in a text: the process ends
LARGE = "LARGE"  # in a text: more memory is asked for than the process may have


@dataclass(frozen=True, slots=True)
class TestDetectorSource:
    """The detector of tests, as a value. With `limit`, bytes of address space that a process gets beyond what it has.

    `once`: a file that is made by the first process that dies, so that later ones do not.
    """

    __test__ = False

    limit: int = 0
    once: Path | None = None
    by_patient: bool = True

    def build(self) -> Detector:
        """Return the detector of this process."""
        if self.limit:
            used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + self.limit, used + self.limit))
        return detector(self._find, by_patient=self.by_patient)

    def _find(self, docs: Sequence[Document]) -> Iterator[Document]:
        for doc in docs:
            if POISON in doc.text and not (self.once and self.once.exists()):
                if self.once is not None:
                    self.once.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            if LARGE in doc.text:
                self._take_memory()
        return find(docs)

    def _take_memory(self) -> None:
        """Ask for all the memory there is, as native code does: who gets none ends the process."""
        try:
            bytearray(max(self.limit, 1 << 30))
        except MemoryError:
            os.abort()


@dataclass(frozen=True, slots=True)
class SlowSource:
    """The detector of the pool's tests, which takes its time."""

    def build(self) -> Detector:
        """Return the detector of this process."""
        usual = TestDetectorSource().build()

        def slowly(docs: Sequence[Document]) -> Iterator[Document]:
            time.sleep(0.02 * len(docs))
            return iter(usual(docs))

        return detector(slowly, by_patient=True)


@dataclass(frozen=True, slots=True)
class HousekeepingSetup:
    """A setup whose results say how a worker looks for cycles, and whether it is a process of ours."""

    def load(self) -> Callable[[Sequence[object]], list[bytes]]:
        """Return the function from a batch to what its process says of itself."""
        return lambda batch: (
            [msgspec.json.encode([gc.get_threshold()[0], gc.get_freeze_count(), is_command()])] * len(batch)
        )
