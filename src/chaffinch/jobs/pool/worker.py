"""The process of a worker: it gets a spec and its keys through a pipe, loads the engine once, and processes batches.

    spec, keys  →  ready;  batch  →  results;  batch  →  results;  …  end of the pipe

Nothing comes by the command line or the environment but the numbers of two pipes. A worker writes to its pipe only:
what libraries print goes nowhere, since it could quote a note. It ends with its parent.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

_PR_SET_DUMPABLE, _PR_SET_PDEATHSIG = 4, 1  # <linux/prctl.h>
_FAILED_START = 3  # the exit code of a worker that could not load its work, after it said why


@dataclass(frozen=True, slots=True)
class Setup:
    """What a worker makes its work of: objects that all units share, the spec and the keys."""

    shared: tuple[object, ...]
    spec: Any
    keys: Any


def turn_off_core_dumps() -> None:
    """Forbid core dumps of this process and its children, where the system can.

    The memory holds notes and keys, and a dump would write them to disk. The limit stops files; a program that the
    kernel pipes dumps to is stopped by `prctl` only.
    """
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _prctl(_PR_SET_DUMPABLE, 0)


def _prctl(option: int, value: int) -> None:
    """Set an option of this process on Linux; do nothing if that fails or on other systems."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def work_until_the_end(source: Connection, replies: int) -> None:
    """Process batches from one pipe, send results through the other; at its end exit the process."""
    turn_off_core_dumps()
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt means
    with suppress(EOFError, BrokenPipeError):
        _serve(source, Connection(replies, readable=False))
    os._exit(0)  # nothing is left to clean up, and libraries take their time


def _serve(source: Connection, target: Connection) -> None:
    """Load the work and report it, then process batches until the pipe ends; exit the process if loading fails."""
    from chaffinch.errors import ChaffinchError
    from chaffinch.jobs.batches import UnitCodec, process_batch
    from chaffinch.jobs.work import load_work

    content = source.recv_bytes()
    try:
        setup: Setup = pickle.loads(content)  # noqa: S301  (the pipe of the parent)
        work = load_work(setup.spec, setup.keys)
    except BaseException as error:
        known = str(error) if isinstance(error, ChaffinchError) else f"failed with {type(error).__name__}"
        target.send_bytes(pickle.dumps(known))
        os._exit(_FAILED_START)
    codec = UnitCodec(setup.shared)
    target.send_bytes(pickle.dumps(None))
    while True:
        batch: tuple[list[bytes], list[bytes | None]] = pickle.loads(source.recv_bytes())  # noqa: S301  (as above)
        results = process_batch(work, [codec.decode(content) for content in batch[0]], batch[1])
        target.send_bytes(pickle.dumps(results, pickle.HIGHEST_PROTOCOL))
