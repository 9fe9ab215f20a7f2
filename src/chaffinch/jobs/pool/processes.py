"""Processes that work on batches of patients, one batch at a time each; what kills one of them is found and withheld.

    batches  →  open_pool  →  (batch, results), in the order in which they are finished

Workers are new interpreters, not copies of this process: they load the engine from a spec (`jobs.work`), get keys and
notes through pipes, and give results back through pipes. A worker that dies is replaced and its batch tried again; if
the batch kills the second one, too, it is divided until the documents that do it are known. These are withheld, and all
others get the results they would have without them.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import groupby
from multiprocessing.connection import Connection, wait

from chaffinch.deid import keys as secret_keys
from chaffinch.deid.release.patient import Withheld
from chaffinch.deid.state import VARIABLE as STATE_VARIABLE
from chaffinch.deid.vault import VARIABLE as VAULT_VARIABLE
from chaffinch.errors import ChaffinchError, ConfigError
from chaffinch.jobs.batches import Batch, UnitCodec, process_batch
from chaffinch.jobs.job import ReleaseJob
from chaffinch.jobs.pool.worker import Setup, UnitSetup
from chaffinch.jobs.run import WorkItem
from chaffinch.jobs.work import BatchWork, Keys, WorkSpec

Results = Sequence[bytes | Withheld]
Each = Callable[[Iterable[Batch]], Iterator[tuple[Batch, Results]]]

_TRIES = 2  # times that a batch, and at last a document, may end its worker before it is blamed: one may be an accident
_STARTS = 3  # workers in a row that may die before they are ready; then something else than a document is wrong
_MAIN = (
    "import pickle, sys; from multiprocessing.connection import Connection; "
    "pipe = Connection(int(sys.argv[1]), writable=False); sys.path[:] = pickle.loads(pipe.recv_bytes()); "
    "from chaffinch.jobs.pool.worker import work_until_the_end; work_until_the_end(pipe, int(sys.argv[2]))"
)


@contextmanager
def open_pool(job: ReleaseJob, codec: UnitCodec, workers: int, *, salt: str = "") -> Iterator[Each]:
    """Yield a function from batches to (batch, results) pairs: here if workers == 1, else in a pool of processes.

    One worker is this process. `salt` is that of vault and state. Raise ConfigError if the detector is an object of
    this process, which no other can load.
    """
    keys = Keys(job.release.secret, job.vault.key, job.state.key) if salt else Keys(job.release.secret)
    if workers == 1:
        work = BatchWork.of(job.release, job.detector, keys, salt)
        yield lambda batches: ((batch, _process_here(work, codec, batch)) for batch in batches)
        return
    check_workers(job, workers)
    if job.detector_source is None:
        raise AssertionError  # checked above
    spec = WorkSpec.of(job.release, job.detector_source, salt=salt)
    setup = UnitSetup(codec.shared, spec, keys)
    pool = Pool(setup, workers)
    try:
        yield pool.map
    finally:
        pool.close()


def check_workers(job: ReleaseJob, workers: int) -> None:
    """Raise ConfigError for fewer than 1 worker, or for several with a detector that they cannot load."""
    if workers < 1:
        raise ConfigError(f"workers must be at least 1, got {workers}")
    if workers > 1 and job.detector_source is None:
        raise ConfigError(
            "workers load the detector by themselves, and this one is an object of this process; give a "
            "chaffinch.jobs.work.DetectorSpec, or leave out workers"
        )


def _process_here(work: BatchWork, codec: UnitCodec, batch: Batch) -> Results:
    """Decode and process a batch in this process; return its results."""
    return process_batch(work, [codec.decode(item.payload) for item in batch], [item.memory for item in batch])


class _WorkerDied(Exception):  # noqa: N818  (an event, handled in this module)
    """A worker ended while it worked; `how` says in words what ended it."""

    def __init__(self, how: str) -> None:
        """Keep how the worker ended, in words."""
        super().__init__(how)
        self.how = how


@dataclass(eq=False, slots=True)
class _Worker:
    """A process, the two pipes to it, and the batch that it works on."""

    process: subprocess.Popen[bytes]
    requests: Connection
    replies: Connection
    batch: Batch = ()
    ready: bool = False

    @classmethod
    def start(cls, setup: bytes) -> _Worker:
        """Start a worker process, and send it search path, settings and secrets through its pipe; return it."""
        (theirs, ours), (back, forth) = os.pipe(), os.pipe()
        try:
            process = subprocess.Popen(  # noqa: S603  (this interpreter, with a constant program)
                [sys.executable, "-c", _MAIN, str(theirs), str(forth)],
                pass_fds=(theirs, forth), env=_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, process_group=0,
            )  # fmt: skip  # a group of its own: Ctrl-C is for the parent
        finally:
            os.close(theirs)
            os.close(forth)
        worker = cls(process, Connection(ours, readable=False), Connection(back, writable=False))
        with suppress(BrokenPipeError):  # it died already; reading from it says so
            worker.requests.send_bytes(pickle.dumps(sys.path))
            worker.requests.send_bytes(setup)
        return worker

    def send(self, batch: Batch) -> None:
        """Give the worker a batch: now, or when it is ready to read it; if it is dead, `receive` says so."""
        self.batch = batch
        if self.ready:
            self._transmit()

    def _transmit(self) -> None:
        """Write the batch to the worker's pipe; do nothing if the worker is dead."""
        batch = self.batch
        with suppress(BrokenPipeError):
            content = [(item.payload, item.memory) for item in batch]  # a memory of several items is sent once
            self.requests.send_bytes(pickle.dumps(content, pickle.HIGHEST_PROTOCOL))

    def receive(self) -> Results | None:
        """Return a batch's results, or None when it has loaded; ConfigError if it cannot load, or _WorkerDied."""
        try:
            reply = pickle.loads(self.replies.recv_bytes())  # noqa: S301  (the pipe of our own worker)
        except (EOFError, OSError):
            raise _WorkerDied(self._explain_end()) from None
        if self.ready:
            results: Results = reply
            return results
        if reply is not None:
            raise ConfigError(f"a worker could not load its work: {reply}")
        self.ready = True
        if self.batch:
            self._transmit()
        return None

    def _explain_end(self) -> str:
        """Wait for the process to end, and return how it did: its code, or the signal's name."""
        code = self.process.wait()
        return f"ended with code {code}" if code >= 0 else f"was ended by {signal.Signals(-code).name}"

    def close(self) -> None:
        """Kill the process, wait for its end, and close its pipes."""
        self.process.kill()
        self.process.wait()
        self.requests.close()
        self.replies.close()


def _environment() -> dict[str, str]:
    """Return this process's environment variables without secrets, for workers."""
    hidden = (secret_keys.VARIABLE, VAULT_VARIABLE, STATE_VARIABLE)
    return {name: value for name, value in os.environ.items() if name not in hidden}


@dataclass(eq=False, slots=True)
class Pool:
    """Workers of one setup; `map` gives them batches, `close` ends them. They are started when there is work."""

    setup: Setup
    size: int
    _workers: list[_Worker] = field(default_factory=list)
    _packed: bytes = field(default=b"", repr=False)
    _spare: _Worker | None = None  # a worker beside the others, for batches that ended theirs

    def map(self, batches: Iterable[Batch]) -> Iterator[tuple[Batch, Results]]:
        """Yield (batch, results) as they finish: one batch per worker and one ahead; retry batches of dead workers."""
        waiting = iter(batches)
        following = next(waiting, None)
        while following is not None or any(worker.batch for worker in self._workers):
            worker = self._find_idle() if following is not None else None
            if worker is not None and following is not None:
                worker.send(following)
                following = next(waiting, None)
                continue
            for worker in self._wait_for_replies():
                batch = worker.batch
                try:
                    results = worker.receive()
                    if results is None:  # it is ready, and works on its batch now
                        continue
                except _WorkerDied:
                    self._remove(worker)
                    results = self._try_again(batch)
                worker.batch = ()
                yield batch, results

    def close(self) -> None:
        """End all workers, the spare one too."""
        if self._spare is not None:
            self._workers.append(self._spare)
            self._spare = None
        while self._workers:
            self._workers.pop().close()

    def _find_idle(self) -> _Worker | None:
        """Return a worker without a batch, started if there are fewer than allowed; None if all are busy."""
        idle = next((worker for worker in self._workers if not worker.batch), None)
        if idle is None and len(self._workers) < self.size:
            self._packed = self._packed or pickle.dumps(self.setup, pickle.HIGHEST_PROTOCOL)
            idle = _Worker.start(self._packed)
            self._workers.append(idle)
        return idle

    def _wait_for_replies(self) -> list[_Worker]:
        """Wait until a busy worker replies or dies, and return all workers that did."""
        busy = {worker.replies: worker for worker in self._workers if worker.batch}
        return [busy[each] for each in wait(list(busy)) if isinstance(each, Connection)]

    def _remove(self, worker: _Worker) -> None:
        """Take a worker out of the pool and end it."""
        self._workers.remove(worker)
        worker.close()

    def _try_again(self, batch: Batch) -> Results:
        """Return the results of a batch whose worker died: run alone, else by parts, without what kills workers."""
        try:
            return self._run_alone(batch)
        except _WorkerDied as death:
            return self._divide(batch, death)

    def _run_alone(self, batch: Batch) -> Results:
        """Return the results of a batch by the spare worker, which it starts if needed; _WorkerDied if it ends."""
        worker = self._spare or self._start_until_ready()
        self._spare = None
        try:
            worker.send(batch)
            results = worker.receive()
        except BaseException:
            worker.close()
            raise
        self._spare = worker
        return results or ()

    def _start_until_ready(self) -> _Worker:
        """Return a worker that has loaded its work; raise ChaffinchError if several in a row cannot."""
        for _ in range(_STARTS):
            worker = _Worker.start(self._packed)
            try:
                worker.receive()
            except _WorkerDied:
                worker.close()
            except BaseException:
                worker.close()
                raise
            else:
                return worker
        raise ChaffinchError(
            "workers end before they are ready to work; use fewer of them (--workers), or give them more memory"
        )

    def _divide(self, batch: Batch, death: _WorkerDied) -> Results:
        """Return the results of a batch that ends workers, tried by halves of its patients; culprits are withheld."""
        patients = [list(items) for _, items in groupby(batch, key=lambda item: item.group)]
        if len(patients) == 1:
            return self._find_poison(batch, death)
        results: list[bytes | Withheld] = []
        for part in (patients[: len(patients) // 2], patients[len(patients) // 2 :]):
            items = [item for patient in part for item in patient]
            try:
                results += self._run_alone(items)
            except _WorkerDied as again:
                results += self._divide(items, again)
        return results

    def _find_poison(self, patient: Batch, death: _WorkerDied) -> Results:
        """Return the results of a patient's documents; those that end a worker by themselves are withheld.

        If only many of them together do it, all are withheld.
        """
        good, withheld = list(patient), dict[int, Withheld]()
        while good:
            poison = self._search(good)
            for item in good if poison is None else [poison]:
                withheld[item.number] = Withheld("", "", _explain(death.how))
            good = [item for item in good if item.number not in withheld]
            try:
                results = iter(self._run_alone(good) if good else ())
            except _WorkerDied as again:
                death = again
                continue
            return [withheld.get(item.number) or next(results) for item in patient]
        return [withheld[item.number] for item in patient]

    def _search(self, items: Sequence[WorkItem[bytes]]) -> WorkItem[bytes] | None:
        """Return an item that ends each worker that gets it alone, by bisection; None if there is none."""
        while len(items) > 1:
            halves = (items[: len(items) // 2], items[len(items) // 2 :])
            bad = next((half for half in halves if self._dies(half)), None)
            if bad is None:
                return None
            items = bad
        return items[0] if self._dies(items) else None

    def _dies(self, items: Sequence[WorkItem[bytes]]) -> bool:
        """Tell whether the items end a worker; a single one must do so `_TRIES` times."""
        for _ in range(_TRIES if len(items) == 1 else 1):
            try:
                self._run_alone(items)
            except _WorkerDied:
                continue
            return False
        return True


def _explain(how: str) -> str:
    """Return the reason, in words, for withholding a document that ended its process."""
    return (
        f"the process that works on it {how}, each time, as when memory runs out; shorten it, or release it alone on a "
        "larger machine"
    )
