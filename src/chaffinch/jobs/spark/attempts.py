"""Batches of notes into rows, whatever a note does to the process that works on it.

    first attempt of a task   →  in Spark's Python worker
    any later one             →  in a process beside it, by the pool of one worker: what ends it is found and withheld

Spark repeats a task whose Python worker ends, with a number for each attempt. So only a task that died pays for a
process of its own, and its notes reach no code in Spark's worker that could end it again.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from chaffinch.deid.release.patient import Withheld
from chaffinch.garbage import collect_rarely
from chaffinch.jobs.pool.processes import Pool
from chaffinch.jobs.pool.worker import Payload, turn_off_core_dumps
from chaffinch.jobs.run import WorkItem
from chaffinch.jobs.spark.batches import Note
from chaffinch.jobs.spark.table import quiet_pandas

Rows = Sequence[Mapping[str, Any]]


class NoteWork(Protocol):
    """What is done with notes: a value that can be pickled, from which a process loads its function."""

    def load(self) -> Callable[[Sequence[Note]], Rows]:
        """Load the engine, once per process; return the function from a batch of notes to their rows, in order."""

    def withhold(self, note: Note, reason: str) -> Mapping[str, Any]:
        """Return the row of a note that is withheld for a reason."""


def map_notes(work: NoteWork, batches: Iterable[Sequence[Note]]) -> Iterator[Rows]:
    """Yield the rows of each batch; in later attempts of a task, a note that ends its process is withheld."""
    turn_off_core_dumps()
    collect_rarely()
    if not count_failed_attempts():
        yield from map(work.load(), batches)
        return
    pool = Pool(_RowSetup(work), 1)
    try:
        for notes in batches:
            yield _map_in_pool(work, pool, notes)
    finally:
        pool.close()


def count_failed_attempts() -> int:
    """Return how often Spark has tried this task before; 0 outside of Spark."""
    with quiet_pandas():
        from pyspark import TaskContext
    context = TaskContext.get()
    return 0 if context is None else context.attemptNumber()


def _map_in_pool(work: NoteWork, pool: Pool, notes: Sequence[Note]) -> Rows:
    """Return the rows of a batch, made by the pool's worker; a note that ends the worker is withheld."""
    items = [
        WorkItem(place, "", pickle.dumps(note, pickle.HIGHEST_PROTOCOL), note.patient or note.id or "")
        for place, note in enumerate(notes)
    ]
    ((_, results),) = pool.map([items])
    return [
        work.withhold(note, result.reason) if isinstance(result, Withheld) else pickle.loads(result)  # noqa: S301
        for note, result in zip(notes, results, strict=True)  # from the pipe of our own worker
    ]


@dataclass(frozen=True, slots=True)
class _RowSetup:
    """The setup of the process beside Spark's worker."""

    work: NoteWork

    def load(self) -> Callable[[Sequence[Payload]], list[bytes | Withheld]]:
        """Load the work; return the function from pickled notes to pickled rows."""
        make_rows = self.work.load()

        def process(batch: Sequence[Payload]) -> list[bytes | Withheld]:
            """Return the pickled rows of a batch of pickled notes."""
            rows = make_rows([pickle.loads(note) for note, _ in batch])  # noqa: S301  (as above)
            return [pickle.dumps(row, pickle.HIGHEST_PROTOCOL) for row in rows]

        return process
