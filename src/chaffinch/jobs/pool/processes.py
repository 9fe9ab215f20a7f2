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
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import groupby
from multiprocessing.connection import Connection, wait
from pathlib import Path

from chaffinch.deid import keys as secret_keys
from chaffinch.deid.release.patient import Withheld
from chaffinch.deid.release.state import VARIABLE as STATE_VARIABLE
from chaffinch.deid.vault import VARIABLE as VAULT_VARIABLE
from chaffinch.errors import ChaffinchError, ConfigError, StorageError
from chaffinch.jobs.batching.batches import Task, UnitCodec, process_batch
from chaffinch.jobs.batching.large_patient import Batch, LargePatient, PatientResults, PatientWork, Results
from chaffinch.jobs.job import ReleaseJob
from chaffinch.jobs.pool.worker import PatientStep, Request, Setup, UnitSetup
from chaffinch.jobs.run import WorkItem
from chaffinch.jobs.work import BatchWork, Keys, WorkSpec

Each = Callable[[Iterable[Task]], Iterator[tuple[Batch, Results]]]

_TRIES = 2  # times that a batch, and at last a document, may end its worker before it is blamed: one may be an accident
_STARTS = 3  # workers in a row that may die before they are ready; then something else than a document is wrong
_MAIN = (
    "import pickle, sys; from multiprocessing.connection import Connection; "
    "pipe = Connection(int(sys.argv[1]), writable=False); sys.path[:] = pickle.loads(pipe.recv_bytes()); "
    "from chaffinch.jobs.pool.worker import work_until_the_end; work_until_the_end(pipe, int(sys.argv[2]))"
)


@contextmanager
def open_pool(
    job: ReleaseJob, codec: UnitCodec, workers: int, *, salt: str = "", folder: Path | None = None
) -> Iterator[Each]:
    """Yield a function from batches to (batch, results) pairs: in this process if `workers` is 1, else in a pool.

    One worker is this process. The results of a large patient come in several pairs. `salt` is that of vault and state;
    sealed files are made in `folder`. Raise ConfigError if the detector is an object of this process, which no other
    can load.
    """
    keys = Keys(job.release.secret, job.vault.key, job.state.key) if salt else Keys(job.release.secret)
    if workers == 1:
        work = BatchWork.of(job.release, job.detector, keys, salt)
        yield lambda batches: (pair for task in batches for pair in _process_here(work, codec, task, folder))
        return
    check_workers(job, workers)
    if job.detector_source is None:
        raise AssertionError  # checked above
    spec = WorkSpec.of(job.release, job.detector_source, salt=salt)
    setup = UnitSetup(codec.shared, spec, keys, folder)
    pool = Pool(setup, workers)
    try:
        yield pool.map
    finally:
        pool.close()


def check_workers(job: ReleaseJob, workers: int) -> None:
    """Raise ConfigError for fewer than 1 worker, or for several if they cannot load the job's detector."""
    if workers < 1:
        raise ConfigError(f"workers must be at least 1, got {workers}")
    if workers > 1 and job.detector_source is None:
        raise ConfigError(
            "workers load the detector by themselves, and this one is an object of this process; give a "
            "chaffinch.jobs.work.DetectorSpec, or leave out workers"
        )


def _process_here(
    work: BatchWork, codec: UnitCodec, task: Task, folder: Path | None
) -> Iterator[tuple[Batch, Results]]:
    """Decode and process a batch or a large patient in this process; yield (items, results) pairs."""
    if not isinstance(task, LargePatient):
        units = [codec.decode(item.payload) for item in task]
        yield task, process_batch(work, units, [item.memory for item in task])
        return
    with closing(task), closing(PatientWork(work, task.memory, folder)) as patient:
        for tile in task.tiles():
            patient.add(codec.decode(item.payload) for item in tile)
        for tile in task.tiles():
            yield tile, patient.take(len(tile))


class _WorkerDied(Exception):  # noqa: N818  (an event, handled in this module)
    """A worker ended while it worked; `how` says in words what ended it.

    Of a large patient, `tile` are the notes it worked on; `settling` if it may have been all of them together.
    """

    def __init__(self, how: str, tile: Batch = (), *, settling: bool = False) -> None:
        """Keep how the worker ended, in words, and what it worked on."""
        super().__init__(how)
        self.how, self.tile, self.settling = how, tile, settling


class _Dialogue:
    """What is asked of a worker for a large patient, step by step, and the results that came."""

    def __init__(self, patient: LargePatient) -> None:
        """Begin with the first step."""
        self.results = PatientResults(patient.folder)
        self.tile: Batch = ()  # of the step
        self.settling = False
        self._steps = self._ask(patient)
        self.step: PatientStep | None = next(self._steps, None)

    def answer(self, results: Results) -> None:
        """Take the results of the current `step`, and set `step` to the next one; None after the last."""
        try:
            self.step = self._steps.send(results)
        except StopIteration:
            self.step = None

    def _ask(self, patient: LargePatient) -> Generator[PatientStep, Results, None]:
        """Yield the steps: the units to read, then how many results to take; store the results that are sent in."""
        for number, self.tile in enumerate(patient.tiles()):
            units = tuple(item.payload for item in self.tile)
            yield PatientStep(units, patient.memory, begins=True) if number == 0 else PatientStep(units)
        self.settling = True
        for self.tile in patient.tiles():
            answers = yield PatientStep(take=len(self.tile))
            self.settling = False
            for item, result in zip(self.tile, answers, strict=True):
                self.results.add(item.number, result)


@dataclass(eq=False, slots=True)
class _Worker:
    """A process, the two pipes to it, and the batch or large patient that it works on."""

    process: subprocess.Popen[bytes]
    requests: Connection
    replies: Connection
    task: Task = ()
    dialogue: _Dialogue | None = None  # about a large patient
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

    def send(self, task: Task) -> None:
        """Give the worker a batch or a large patient: now, or when it is ready; if it is dead, `receive` says so."""
        self.task = task
        self.dialogue = _Dialogue(task) if isinstance(task, LargePatient) else None
        if self.ready:
            self._transmit()

    def _transmit(self) -> None:
        """Write the batch or the next step to the worker's pipe; do nothing if the worker is dead."""
        request: Request | None = None
        if self.dialogue is not None:
            request = self.dialogue.step
        elif not isinstance(self.task, LargePatient):
            request = [(item.payload, item.memory) for item in self.task]  # a memory of several items is sent once
        with suppress(BrokenPipeError):
            self.requests.send_bytes(pickle.dumps(request, pickle.HIGHEST_PROTOCOL))

    def receive(self) -> Results | PatientResults | None:
        """Wait for a reply; return the task's results, None if more must come; _WorkerDied, or ConfigError at start.

        ConfigError if it cannot load; StorageError if it cannot write its sealed files.
        """
        try:
            reply = pickle.loads(self.replies.recv_bytes())  # noqa: S301  (the pipe of our own worker)
        except (EOFError, OSError):
            how, dialogue = self._explain_end(), self.dialogue
            if dialogue is None:
                raise _WorkerDied(how) from None
            dialogue.results.close()
            raise _WorkerDied(how, dialogue.tile, settling=dialogue.settling) from None
        if isinstance(reply, StorageError):
            raise reply
        if not self.ready:
            if reply is not None:
                raise ConfigError(f"a worker could not load its work: {reply}")
            self.ready = True
            if self.task:
                self._transmit()
            return None
        results: Results = reply
        if self.dialogue is None:
            return results
        self.dialogue.answer(results)
        if self.dialogue.step is None:
            return self.dialogue.results
        self._transmit()
        return None

    def _explain_end(self) -> str:
        """Wait for the process to end, and return how as a phrase: "ended with code 1", "was ended by SIGKILL"."""
        code = self.process.wait()
        return f"ended with code {code}" if code >= 0 else f"was ended by {signal.Signals(-code).name}"

    def close(self) -> None:
        """Kill the process, wait for its end, and close its pipes."""
        self.process.kill()
        self.process.wait()
        self.requests.close()
        self.replies.close()


def _environment() -> dict[str, str]:
    """Return this process's environment variables, but for those that hold secrets, for workers."""
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

    def map(self, tasks: Iterable[Task]) -> Iterator[tuple[Batch, Results]]:
        """Yield (batch, results) as they finish: one task per worker and one ahead; retry tasks of dead workers.

        The results of a large patient come in several pairs, when it is finished.
        """
        waiting = iter(tasks)
        following = next(waiting, None)
        while following is not None or any(worker.task for worker in self._workers):
            worker = self._find_idle() if following is not None else None
            if worker is not None and following is not None:
                worker.send(following)
                following = next(waiting, None)
                continue
            for worker in self._wait_for_replies():
                task = worker.task
                try:
                    results = worker.receive()
                    if results is None:  # it is ready, and works on its task now
                        continue
                except _WorkerDied:
                    self._remove(worker)
                    results = self._try_again(task)
                worker.task, worker.dialogue = (), None
                yield from _pair(task, results)

    def close(self) -> None:
        """End all workers, the spare one too."""
        if self._spare is not None:
            self._workers.append(self._spare)
            self._spare = None
        while self._workers:
            self._workers.pop().close()

    def _find_idle(self) -> _Worker | None:
        """Return a worker without a batch, started if there are fewer than allowed; None if all are busy."""
        idle = next((worker for worker in self._workers if not worker.task), None)
        if idle is None and len(self._workers) < self.size:
            self._packed = self._packed or pickle.dumps(self.setup, pickle.HIGHEST_PROTOCOL)
            idle = _Worker.start(self._packed)
            self._workers.append(idle)
        return idle

    def _wait_for_replies(self) -> list[_Worker]:
        """Wait until a busy worker replies or dies, and return all workers that did."""
        busy = {worker.replies: worker for worker in self._workers if worker.task}
        return [busy[each] for each in wait(list(busy)) if isinstance(each, Connection)]

    def _remove(self, worker: _Worker) -> None:
        """Take a worker out of the pool and end it."""
        self._workers.remove(worker)
        worker.close()

    def _try_again(self, task: Task) -> Results | PatientResults:
        """Run the task of a dead worker again, alone, else by parts; return its results, culprits withheld."""
        try:
            return self._run_alone(task)
        except _WorkerDied as death:
            return self._shrink(task, death) if isinstance(task, LargePatient) else self._divide(task, death)

    def _run_alone(self, task: Task) -> Results | PatientResults:
        """Run a task in the spare worker, started if needed, and return its results; _WorkerDied if the worker ends."""
        worker = self._spare or self._start_until_ready()
        self._spare = None
        results: Results | PatientResults | None = None
        try:
            worker.send(task)
            while results is None:
                results = worker.receive()
        except BaseException:
            worker.close()
            raise
        self._spare = worker
        return results

    def _run_batch(self, batch: Batch) -> Results:
        """Run a batch in the spare worker, and return its results; _WorkerDied if the worker ends."""
        results = self._run_alone(batch)
        return () if isinstance(results, PatientResults) else results

    def _shrink(self, patient: LargePatient, death: _WorkerDied) -> PatientResults:
        """Return the results of a large patient that ends workers; the notes that do it are withheld."""
        withheld: dict[int, Withheld] = {}
        while True:
            poison = self._search(death.tile)
            rest = patient.without(withheld.keys())
            blamed = rest if poison is None and death.settling else death.tile if poison is None else [poison]
            withheld |= {item.number: Withheld("", "", _explain(death.how)) for item in blamed}
            rest = patient.without(withheld.keys())
            try:
                results = self._run_alone(rest) if len(rest) else PatientResults(patient.folder)
            except _WorkerDied as again:
                death = again
                continue
            if isinstance(results, PatientResults):
                for number, result in withheld.items():
                    results.add(number, result)
                return results

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
                results += self._run_batch(items)
            except _WorkerDied as again:
                results += self._divide(items, again)
        return results

    def _find_poison(self, patient: Batch, death: _WorkerDied) -> Results:
        """Return the results of one patient's batch that ends workers; the documents to blame are withheld.

        If only many of them together do it, all are withheld.
        """
        good, withheld = list(patient), dict[int, Withheld]()
        while good:
            poison = self._search(good)
            for item in good if poison is None else [poison]:
                withheld[item.number] = Withheld("", "", _explain(death.how))
            good = [item for item in good if item.number not in withheld]
            try:
                results = iter(self._run_batch(good) if good else ())
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


def _pair(task: Task, results: Results | PatientResults) -> Iterator[tuple[Batch, Results]]:
    """Yield (items, results) of a task, those of a large patient in parts; then close that and its results."""
    if isinstance(task, LargePatient) and isinstance(results, PatientResults):
        with closing(task), closing(results):
            yield from results.of(task)
    elif not isinstance(task, LargePatient) and not isinstance(results, PatientResults):
        yield task, results


def _explain(how: str) -> str:
    """Return why a document is withheld, as a sentence with `how` its process ended ("was ended by SIGKILL") in it."""
    return (
        f"the process that works on it {how}, each time, as when memory runs out; shorten it, or release it alone on a "
        "larger machine"
    )
