"""Batched and threaded reading of documents, and the conversion of token runs to spans."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from typing import Any

from chaffinch.errors import ConfigError
from chaffinch.models.core.runs import Run
from chaffinch.text import Document, Span

# A batch is closed once it has this many tokens. Larger batches amortise each model's fixed cost and use more memory.
BATCH_TOKENS = 60_000
# Batches per worker that are submitted before the reader needs them. Higher uses more memory; lower may idle threads.
AHEAD = 2


def to_spans(doc: Document, runs: Sequence[Run], kind: str, chances: Iterable[float] | None = None) -> list[Span]:
    """Return runs of tokens (first, end, label) as spans with source `kind`; their scores are the chances, else 1."""
    starts = doc.tokens[[first for first, _, _ in runs], 0].tolist()
    ends = doc.tokens[[end - 1 for _, end, _ in runs], 1].tolist()
    scores = [1.0] * len(runs) if chances is None else [float(chance) for chance in chances]
    return [
        Span(start, end, label, score, kind)
        for start, end, (_, _, label), score in zip(starts, ends, runs, scores, strict=True)
    ]


def batches(documents: Iterable[Document], tokens: int) -> Iterator[list[Document]]:
    """Yield the documents in lists that end once they have `tokens` tokens; the last list may have fewer."""
    batch: list[Document] = []
    size = 0
    for doc in documents:
        batch.append(doc)
        size += len(doc.tokens)
        if size >= tokens:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


@contextmanager
def without_collection() -> Iterator[None]:
    """Put off the search for cyclic garbage until the end of the block, which must make little of it.

    A batch makes so many spans that Python would search all objects of the process again and again.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def mapper(workers: int) -> Iterator[Callable[..., Iterable[Any]]]:
    """Yield a map function: the built-in for one worker, else one over threads, in order; ConfigError below 1."""
    if workers < 1:
        raise ConfigError(f"workers must be at least 1, got {workers}")
    if workers == 1:
        yield map
        return
    pool = ThreadPoolExecutor(workers)
    try:

        def each(step: Callable[..., Any], items: Iterable[Any]) -> Iterator[Any]:
            """Yield a step's results for the items, in order, from threads; `workers * AHEAD` items in memory."""
            source = iter(items)
            waiting = [pool.submit(step, item) for item in islice(source, workers * AHEAD)]
            while waiting:
                done = waiting.pop(0).result()
                waiting += [pool.submit(step, item) for item in islice(source, 1)]
                yield done

        yield each
    finally:
        pool.shutdown(cancel_futures=True)
