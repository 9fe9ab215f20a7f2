"""Documents as a tagger reads them: in batches, over threads, and runs of tokens back to spans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from typing import Any

from chaffinch.errors import ConfigError
from chaffinch.models.core.runs import Run
from chaffinch.text import Document, Span

BATCH_TOKENS = 60_000  # documents are read together up to this many tokens
AHEAD = 2  # batches a worker may be ahead of the reader


def to_spans(doc: Document, runs: Sequence[Run], kind: str, chances: Iterable[float] | None = None) -> list[Span]:
    """The spans of a document's runs of tokens, by a model of that kind; their scores are the chances, else 1."""
    starts = doc.tokens[[first for first, _, _ in runs], 0].tolist()
    ends = doc.tokens[[end - 1 for _, end, _ in runs], 1].tolist()
    scores = [1.0] * len(runs) if chances is None else [float(chance) for chance in chances]
    return [
        Span(start, end, label, score, kind)
        for start, end, (_, _, label), score in zip(starts, ends, runs, scores, strict=True)
    ]


def batches(documents: Iterable[Document], tokens: int) -> Iterator[list[Document]]:
    """The documents in lists of about so many tokens."""
    held: list[Document] = []
    size = 0
    for doc in documents:
        held.append(doc)
        size += len(doc.tokens)
        if size >= tokens:
            yield held
            held, size = [], 0
    if held:
        yield held


@contextmanager
def mapper(workers: int) -> Iterator[Callable[..., Iterable[Any]]]:
    """A map: plain, or over threads, in the order of the items and a few of them ahead."""
    if workers < 1:
        raise ConfigError(f"workers must be at least 1, got {workers}")
    if workers == 1:
        yield map
        return
    pool = ThreadPoolExecutor(workers)
    try:

        def each(step: Callable[..., Any], items: Iterable[Any]) -> Iterator[Any]:
            source = iter(items)
            waiting = [pool.submit(step, item) for item in islice(source, workers * AHEAD)]
            while waiting:
                done = waiting.pop(0).result()
                waiting += [pool.submit(step, item) for item in islice(source, 1)]
                yield done

        yield each
    finally:
        pool.shutdown(cancel_futures=True)
