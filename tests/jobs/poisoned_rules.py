"""The rules as a detector that other processes load by a small value, and that can end its process.

A worker imports this module, so it imports no test and no pytest: each of many workers would load them first.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from chaffinch.deid.detect.detector import HybridDetector, detector
from chaffinch.text import Document
from chaffinch.weak.sources import source

POISON = "POISONED"  # in a text: the process ends


@dataclass(frozen=True, slots=True)
class RulesSource:
    """The rules, by patient, which end the process at a poisoned note; with `once`, only if that file is not there."""

    once: Path | None = None

    def build(self) -> HybridDetector:
        """Return the detector of this process."""

        @source("poison", label="Own")
        def poison(doc: Document) -> list[tuple[int, int]]:
            if POISON in doc.text and not (self.once and self.once.exists()):
                if self.once is not None:
                    self.once.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return []

        return detector(types=[poison], by_patient=True)
