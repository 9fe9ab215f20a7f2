"""Sources over documents: every source reads every document, and its spans become a layer.

A source that fails is named and counted, with the kind of its error and nothing else, for messages of errors may hold
what the document says.
"""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from multiprocessing import get_context
from typing import Any, TypeAlias

from chaffinch.checks import did_you_mean
from chaffinch.errors import ConfigError, DataError
from chaffinch.models.core.batching import AHEAD, batches, mapper
from chaffinch.text import Document, Span
from chaffinch.weak.sources import Source, about, in_order, is_plain_data, layer_of, needs
from chaffinch.weak.sources.base import plain_name, settle
from chaffinch.weak.votes import SOURCE

BATCH_TOKENS = 20_000  # documents go to a worker together up to this many tokens
UNREAD = "document of the file that was not read"


@dataclass(frozen=True, slots=True)
class Tally:
    """What one source did: in how many documents it said something, its spans, its errors by kind, its CPU time."""

    name: str
    kind: str
    layer: str
    label: str = ""
    on: tuple[str, ...] = ()
    negative_reliable: bool = False
    documents: int = 0
    spans: int = 0
    errors: Mapping[str, int] = field(default_factory=dict)
    seconds: float = field(default=0.0, compare=False)  # of CPU

    @property
    def failures(self) -> int:
        """How many errors there were."""
        return sum(self.errors.values())


@dataclass(frozen=True, slots=True)
class ApplyReport:
    """The number of documents, and what every source did."""

    documents: int
    sources: tuple[Tally, ...]

    @property
    def failed(self) -> tuple[str, ...]:
        """The names of the sources that had errors."""
        return tuple(own.name for own in self.sources if own.errors)


@dataclass(frozen=True, slots=True)
class Applied:
    """The documents, each with a layer for every source, and the report of the run."""

    documents: tuple[Document, ...] = field(repr=False)
    report: ApplyReport

    def __iter__(self) -> Iterator[Document]:
        return iter(self.documents)

    def __len__(self) -> int:
        return len(self.documents)


@dataclass(frozen=True, slots=True)
class _Answer:
    """What one source said of one document."""

    spans: list[Span] = field(default_factory=list, repr=False)
    errors: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


_Answers: TypeAlias = list[_Answer]  # of one document, in the order in which sources were given


def apply(
    sources: Sequence[Source], documents: Iterable[Document], *, workers: int = 1, strict: bool = False
) -> Applied:
    """The documents with a layer "source:NAME" for every source ("link:NAME" for linking rules), and a report.

    A source that raises, or gives what is no span of the text, says nothing there and is counted; `strict` makes the
    first such failure a DataError. Sources that build on others run after them. Any number of `workers` gives the same
    documents in the same order: processes if all sources are plain data, so that a script needs the usual
    `if __name__ == "__main__":` around the call; threads otherwise.

    >>> from chaffinch.weak.sources import Regex
    >>> voted = apply([Regex("dose", r"\\d+ ?mg", label="Dose")], [Document.make("Take 20 mg.")])
    >>> [(span.start, span.end) for span in voted.documents[0].layers["source:dose"]]
    [(5, 10)]
    """
    given = tuple(sources)
    in_order(given)
    out: list[Document] = []
    tallies = [Tally(**{**about(own), "on": needs(own)}) for own in given]
    with _mapped(given, workers) as each:
        for docs, answers in each(batches(documents, BATCH_TOKENS)):
            for doc, own in zip(docs, answers, strict=True):
                out.append(_with_layers(doc, given, own))
                if strict:
                    _refuse(given, own, len(out))
                tallies = [_added(tally, answer) for tally, answer in zip(tallies, own, strict=True)]
    _check_needs(given, out)
    return Applied(tuple(out), ApplyReport(len(out), tuple(_with_unread(given, tallies, out, strict))))


def votes_of(doc: Document, sources: Sequence[Source]) -> list[_Answer]:
    """What each source says of a document, in the order given; those that build on others see their layers."""
    answers: dict[str, _Answer] = {}
    for own in in_order(sources):
        answer = _asked(own, doc)
        answers[own.name] = answer
        doc = doc.with_layer(layer_of(own), answer.spans)
    return [answers[own.name] for own in sources]


def _asked(source: Source, doc: Document) -> _Answer:
    began = time.thread_time()
    spans: list[Span] = []
    try:
        spans, errors = settle(source(doc), str(getattr(source, "label", "")), len(doc.text))
        errors += source.misfits(doc) if hasattr(source, "misfits") else Counter()
    except (Exception, SystemExit) as error:  # whatever it is, the run goes on; its message is not ours to print
        errors = Counter([type(error).__name__])
    return _Answer(spans, errors, time.thread_time() - began)


def _batch(sources: Sequence[Source], docs: Sequence[Document]) -> list[_Answers]:
    return [votes_of(doc, sources) for doc in docs]


_held: list[Sequence[Source]] = []  # the sources of a worker process


def _hold(sources: Sequence[Source]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent answers for an interrupt
    _held[:] = [sources]


def _batch_of_held(docs: Sequence[Document]) -> list[_Answers]:
    return _batch(_held[0], docs)


@contextmanager
def _mapped(sources: Sequence[Source], workers: int) -> Iterator[Any]:
    """A function from batches of documents to pairs of batch and answers, in order, over so many workers."""
    if workers > 1 and all(map(is_plain_data, sources)):
        pool = ProcessPoolExecutor(workers, get_context("spawn"), _hold, (sources,))
        try:
            yield partial(_over_processes, pool, workers)
        except BrokenProcessPool:
            raise ConfigError(
                'worker processes could not start or were ended; put the call under `if __name__ == "__main__":`, or '
                "use one worker"
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)
        return
    with mapper(workers) as each:
        yield lambda parts: each(lambda docs: (docs, _batch(sources, docs)), parts)


def _over_processes(
    pool: ProcessPoolExecutor, workers: int, parts: Iterable[list[Document]]
) -> Iterator[tuple[list[Document], list[_Answers]]]:
    source = iter(parts)
    waiting = [(docs, pool.submit(_batch_of_held, docs)) for docs in islice(source, workers * AHEAD)]
    while waiting:
        docs, future = waiting.pop(0)
        answers = future.result()
        waiting += [(more, pool.submit(_batch_of_held, more)) for more in islice(source, 1)]
        yield docs, answers


def _with_layers(doc: Document, sources: Sequence[Source], answers: _Answers) -> Document:
    for own, answer in zip(sources, answers, strict=True):
        doc = doc.with_layer(layer_of(own), answer.spans)
    return doc


def _added(tally: Tally, answer: _Answer) -> Tally:
    return replace(
        tally,
        documents=tally.documents + bool(answer.spans),
        spans=tally.spans + len(answer.spans),
        errors=dict(Counter(tally.errors) + answer.errors) if answer.errors else tally.errors,
        seconds=tally.seconds + answer.seconds,
    )


def _refuse(sources: Sequence[Source], answers: _Answers, number: int) -> None:
    """DataError for the first source that failed on a document."""
    for own, answer in zip(sources, answers, strict=True):
        for kind in answer.errors:
            raise DataError(
                f"the source {own.name!r} failed on document {number} ({kind}); correct it, or be less strict"
            )


def _check_needs(sources: Sequence[Source], docs: Sequence[Document]) -> None:
    """Refuses a source that builds on what is neither a source nor a layer of any document."""
    names = {own.name for own in sources}
    layers = set(chain.from_iterable(doc.layers for doc in docs))
    for own in sources:
        for name in needs(own) if docs else ():
            if plain_name(name) not in names and not {name, SOURCE + name} & layers:
                known = [*sorted(names - {own.name}), *sorted(layers)]
                raise ConfigError(
                    f"{own.name!r} builds on {name!r}, which is no source and no layer; {did_you_mean(name, known)}"
                )


def _with_unread(
    sources: Sequence[Source], tallies: Iterable[Tally], docs: Sequence[Document], strict: bool
) -> Iterator[Tally]:
    """The tallies, with the documents counted that a file of spans names and that were not among those read."""
    ids = {doc.id for doc in docs}
    for own, tally in zip(sources, tallies, strict=True):
        unread = len(frozenset(getattr(own, "documents", ())) - ids)
        if unread and strict:
            raise DataError(f"the source {own.name!r} has spans for {unread} documents that were not read")
        yield replace(tally, errors={**tally.errors, UNREAD: unread}) if unread else tally
