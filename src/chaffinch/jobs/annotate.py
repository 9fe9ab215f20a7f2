"""Documents through a model in several processes, in order: each process loads the model once, by its path.

documents  →  batches  →  processes: `AnnotationStep.build()`  →  documents with more in them, in order
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Protocol

from chaffinch.errors import ChaffinchError
from chaffinch.garbage import collect_rarely, keep_loaded
from chaffinch.jobs.pool.worker import turn_off_core_dumps
from chaffinch.models.core.batching import batches
from chaffinch.text import Document

_BATCH_TOKENS = 10_000  # of a batch: enough to outweigh the way to another process and back
_AHEAD = 2  # batches for each process that are read before their turn

Annotate = Callable[[Sequence[Document]], Iterable[Document]]


class AnnotationStep(Protocol):
    """What is done with documents: a small value that can be pickled, from which a process builds its function."""

    def build(self) -> Annotate:
        """Load the model, and return a function that annotates documents, each without regard to the others."""


@dataclass(frozen=True, slots=True)
class ExtractRelations:
    """Add the relations that a trained extractor finds; with `precision`, those that reached it in validation."""

    model: Path
    precision: float | None = None

    def build(self) -> Annotate:
        """Load the extractor, at `precision` if given, and return its function that adds relations to documents."""
        from chaffinch.relations.storage import load

        extractor = load(self.model)
        return (extractor if self.precision is None else extractor.with_precision(self.precision)).annotate


def annotate_documents(documents: Iterable[Document], step: AnnotationStep, workers: int) -> Iterator[Document]:
    """Yield the documents with what the step adds, in order; ChaffinchError if one of `workers` processes dies."""
    parts = batches(documents, _BATCH_TOKENS)
    if workers == 1:
        annotate = step.build()
        for docs in parts:
            yield from annotate(docs)
        return
    pool = ProcessPoolExecutor(workers, get_context("spawn"), _load, (step,))
    try:
        waiting = [pool.submit(_annotate, docs) for docs in islice(parts, workers * _AHEAD)]
        while waiting:
            done = waiting.pop(0).result()
            waiting += [pool.submit(_annotate, docs) for docs in islice(parts, 1)]
            yield from done
    except BrokenProcessPool:
        raise ChaffinchError(
            "a worker process ended before its work was done, as when memory runs out; use fewer workers"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


_loaded: list[Annotate] = []  # the function of this process, if it is a worker


def _load(step: AnnotationStep) -> None:
    """Load the step's model into a global of this worker process, with core dumps turned off."""
    turn_off_core_dumps()
    collect_rarely()
    _loaded[:] = [step.build()]
    keep_loaded()


def _annotate(docs: Sequence[Document]) -> list[Document]:
    """Return a batch of documents with what the step loaded in this process adds."""
    return list(_loaded[0](docs))
