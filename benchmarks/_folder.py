"""The folder of one run of a benchmark, and processes that leave their results there."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

ROOT = Path(__file__).resolve().parents[1]


def launch(module: str, job: Any) -> None:
    """Does a job in a process of its own."""
    command = [sys.executable, "-m", f"benchmarks.{module}", msgspec.json.encode(job).decode()]
    subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, start_new_session=True, check=True)


class Folder:
    """Where the corpora are, and a folder for results that goes when the run ends: `with Folder(data) as own`."""

    def __init__(self, data: Path) -> None:
        self.data = data.resolve()
        self._temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self._temporary.name)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._temporary.cleanup()
