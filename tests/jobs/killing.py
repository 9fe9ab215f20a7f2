"""Runs that end as if the process had gone, and what such a process leaves on the disk."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chaffinch.jobs.ledger import Ledger

ROOT = Path(__file__).parents[2]


class Killed(BaseException):
    """As if the process had gone."""


@contextmanager
def killed_after(puts: int) -> Iterator[None]:
    """Expect that the block ends when the ledger has this number of results, as if the process had gone."""
    usual, done = Ledger.put, 0

    def put_some(self: Ledger, number: int, key: str, result: bytes) -> None:
        nonlocal done
        if done == puts:
            raise Killed
        usual(self, number, key, result)
        self.sync()
        done += 1

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ledger, "put", put_some)
        with pytest.raises(Killed):
            yield


def open_files_of(script: str, folder: Path, *arguments: str) -> list[bytes]:
    """Return what is in the open files below a folder of a process that runs a script, then kill it with signal 9.

    The script gets the folder and the arguments, and prints "ready" when its files are written.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    child = subprocess.Popen(
        [sys.executable, "-c", script, str(folder), *arguments], stdout=subprocess.PIPE, env=environment
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        files = [link for link in Path(f"/proc/{child.pid}/fd").iterdir() if str(folder) in str(link.readlink())]
        return [link.read_bytes() for link in files]
    finally:
        child.send_signal(signal.SIGKILL)
        child.communicate()
