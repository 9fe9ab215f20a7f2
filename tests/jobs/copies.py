"""Workers of a pool that are copies of this process: true processes, pipes and signals, and ready at once.

A new interpreter loads the engine for half a second, and a note that ends processes costs ten or twenty of them before
it is found. That a worker loads everything by itself is tested with new interpreters: one such note of `test_pool.py`
and one of `test_large_patients.py` are found by these, and every test of equal bytes has them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

_MOST_FILES = 1 << 16


@dataclass(slots=True)
class Copy:
    """A copy of this process; what the pool asks of a `subprocess.Popen`."""

    pid: int
    returncode: int | None = None

    def poll(self) -> int | None:
        """Return its exit code, negative for a signal; None while it runs."""
        return self._reap(os.WNOHANG)

    def wait(self) -> int | None:
        """Wait for its end, and return its exit code."""
        return self._reap(0)

    def kill(self) -> None:
        """End it, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def _reap(self, how: int) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, how)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode


def start_copy(command: Sequence[str], *, pass_fds: Sequence[int], env: Mapping[str, str], **more: Any) -> Copy:
    """Start a program, `[python, "-c", program, *arguments]`, in a copy of this process instead of a new one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a copy has one thread; the program needs no other
        pid = os.fork()
    if pid:
        return Copy(pid)
    try:
        os.setpgid(0, 0)
        null = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(null, stream)
        for kept, following in pairwise([2, *sorted(pass_fds), _MOST_FILES]):
            os.closerange(kept + 1, following)
        os.environ.clear()
        os.environ.update(env)
        sys.argv[:] = ["-c", *command[3:]]
        exec(command[2], {})
    finally:
        os._exit(1)


@pytest.fixture
def copied_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the pool start copies of this process; whatever else starts processes is as before."""
    instead = SimpleNamespace(Popen=start_copy, DEVNULL=subprocess.DEVNULL)
    monkeypatch.setattr("chaffinch.jobs.pool.processes.subprocess", instead)
