"""The process of a worker: it gets a setup through a pipe, loads the engine once, and processes batches.

    setup  →  ready;  batch  →  results;  batch  →  results;  …  end of the pipe

Nothing comes by the command line or the environment but the numbers of two pipes. A worker writes to its pipe only:
what libraries print goes nowhere, since it could quote a note. It ends with its parent.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from chaffinch.garbage import collect_rarely, keep_loaded
from chaffinch.threads import limit_process

if TYPE_CHECKING:
    from pathlib import Path

    from chaffinch.deid.release.patient import Withheld
    from chaffinch.jobs.work import Keys, WorkSpec

Payload: TypeAlias = tuple[bytes, bytes | None]  # the unit of an item, and what earlier releases say of its patient

_PR_SET_DUMPABLE, _PR_SET_PDEATHSIG = 4, 1  # <linux/prctl.h>
_FAILED_START = 3  # the exit code of a worker that could not load its work, after it said why


@dataclass(frozen=True, slots=True)
class PatientStep:
    """A step of the work on a large patient: the next `units` for the first pass, or how many results to `take`."""

    units: tuple[bytes, ...] = field(default=(), repr=False)
    memory: bytes | None = field(default=None, repr=False)  # what earlier releases say of the patient
    begins: bool = False
    take: int = 0


Request: TypeAlias = "Sequence[Payload] | PatientStep"


class Setup(Protocol):
    """What a worker makes its work of: a value that can be pickled."""

    def load(self) -> Callable[[Any], Sequence[bytes | Withheld]]:
        """Load the engine; return the function from the payloads of a batch to their results, in order.

        It also gets the steps of large patients, if the pool is given any; their results are those that they ask for.
        """


@dataclass(frozen=True, slots=True)
class UnitSetup:
    """The setup of a release: objects that all units share, the spec, the keys, and a folder for sealed files."""

    shared: tuple[object, ...]
    spec: WorkSpec
    keys: Keys
    folder: Path | None = None

    def load(self) -> Callable[[Request], Sequence[bytes | Withheld]]:
        """Load the work of the spec; return the function from encoded units to packed documents."""
        from chaffinch.jobs.batching.batches import UnitCodec, process_batch
        from chaffinch.jobs.batching.large_patient import PatientWork
        from chaffinch.jobs.work import load_work

        work, codec = load_work(self.spec, self.keys), UnitCodec(self.shared)
        patients: list[PatientWork] = []  # the one that is worked on

        def process(request: Request) -> Sequence[bytes | Withheld]:
            """Process a batch, or a step of a large patient; return the results, none for a step that adds units."""
            if not isinstance(request, PatientStep):
                return process_batch(
                    work, [codec.decode(unit) for unit, _ in request], [memory for _, memory in request]
                )
            if request.begins:
                patients[:] = [PatientWork(work, request.memory, self.folder)]
            if request.units:
                patients[0].add(map(codec.decode, request.units))
            return patients[0].take(request.take) if request.take else ()

        return process


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
    """Process batches from the pipe `source`, write results to descriptor `replies`; exit the process at its end."""
    turn_off_core_dumps()
    limit_process()
    collect_rarely()
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt means
    with suppress(EOFError, BrokenPipeError):
        _serve(source, Connection(replies, readable=False))
    os._exit(0)  # nothing is left to clean up, and libraries take their time


def _serve(source: Connection, target: Connection) -> None:
    """Load the work and report it, then process batches until the pipe ends; exit the process if loading fails."""
    from chaffinch.errors import ChaffinchError, StorageError

    content = source.recv_bytes()
    try:
        setup: Setup = pickle.loads(content)  # noqa: S301  (the pipe of the parent)
        process = setup.load()
    except BaseException as error:
        known = str(error) if isinstance(error, ChaffinchError) else f"failed with {type(error).__name__}"
        target.send_bytes(pickle.dumps(known))
        os._exit(_FAILED_START)
    keep_loaded()
    target.send_bytes(pickle.dumps(None))
    while True:
        try:
            results: Sequence[bytes | Withheld] | StorageError = process(pickle.loads(source.recv_bytes()))  # noqa: S301  (as above)
        except StorageError as error:  # no fault of the notes: the parent stops
            results = error
        target.send_bytes(pickle.dumps(results, pickle.HIGHEST_PROTOCOL))
