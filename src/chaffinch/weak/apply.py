"""Applying sources: every source reads every document, and its spans become a layer.

A source that fails is reported by name, with the type and number of its errors only: error messages may contain text
of the document.
"""

from __future__ import annotations

import inspect
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
from types import CodeType
from typing import Any, TypeAlias

from chaffinch.checks import did_you_mean
from chaffinch.errors import ConfigError, DataError
from chaffinch.models.core.batching import AHEAD, batches, mapper
from chaffinch.text import Document, Span
from chaffinch.weak.journal import RememberedSource
from chaffinch.weak.sources import Source, describe_source, is_plain_data, layer_of, needs, order_sources
from chaffinch.weak.sources.base import SourceKind, collect_spans, plain_name
from chaffinch.weak.votes import SOURCE

BATCH_TOKENS = 20_000  # documents go to a worker together up to this many tokens; fewer cost more overhead
UNREAD = "document of the file that was not read"


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of one source: documents with spans, spans, errors by kind, and CPU seconds."""

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
    hints: tuple[str, ...] = ()  # what its settings do that is easily overlooked; why it may have found nothing

    @property
    def failures(self) -> int:
        """Return the total number of errors of the source."""
        return sum(self.errors.values())


@dataclass(frozen=True, slots=True)
class ApplyReport:
    """The number of documents, and the counts of every source."""

    documents: int
    sources: tuple[Tally, ...]

    @property
    def faulty_sources(self) -> tuple[str, ...]:
        """Return the names of the sources that had errors."""
        return tuple(tally.name for tally in self.sources if tally.errors)


@dataclass(frozen=True, slots=True)
class Applied:
    """The documents, each with a layer for every source, and the report of the run."""

    documents: tuple[Document, ...] = field(repr=False)
    report: ApplyReport

    def __iter__(self) -> Iterator[Document]:
        """Iterate over the documents."""
        return iter(self.documents)

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.documents)


@dataclass(frozen=True, slots=True)
class _Answer:
    """The spans, errors and CPU seconds of one source on one document."""

    spans: list[Span] = field(default_factory=list, repr=False)
    errors: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


_Answers: TypeAlias = list[_Answer]  # of one document, in the order in which sources were given


def apply(
    sources: Sequence[Source],
    documents: Iterable[Document],
    *,
    workers: int = 1,
    strict: bool = False,
    hints: bool = True,
) -> Applied:
    """Run sources on documents; return these with layers "source:NAME", and a report; DataError at a fault if `strict`.

    A source that raises an error casts no votes on that document, and a result that is no span of the text is dropped;
    both are counted, with the line of the source's file. A source that found nothing gets a hint, and so does one whose
    settings are easily misread (unless `hints=False`). With `strict` the first failure or hint raises DataError.
    Sources that build on others run after them. Any number of `workers` gives the same documents in the same order:
    processes if all sources are plain data, so that a script needs the usual `if __name__ == "__main__":` around the
    call; threads otherwise.

    >>> from chaffinch.weak.sources import Regex
    >>> voted = apply([Regex("dose", r"\\d+ ?mg", label="Dose")], [Document.make("Take 20 mg.")])
    >>> [(span.start, span.end) for span in voted.documents[0].layers["source:dose"]]
    [(5, 10)]
    """
    sources = tuple(sources)
    order_sources(sources)
    out: list[Document] = []
    tallies = [Tally(**{**describe_source(source), "on": needs(source)}) for source in sources]
    with _map_batches(sources, workers) as each:
        for docs, answers in each(batches(documents, BATCH_TOKENS)):
            for doc, doc_answers in zip(docs, answers, strict=True):
                out.append(_with_layers(doc, sources, doc_answers))
                if strict:
                    _reject_failures(sources, doc_answers, len(out))
                tallies = [_add_answer(tally, answer) for tally, answer in zip(tallies, doc_answers, strict=True)]
    _check_needs(sources, out)
    tallies = list(_with_unread(sources, tallies, out, strict))
    if hints:
        tallies = [_add_hints(tally, source, out) for tally, source in zip(tallies, sources, strict=True)]
    if strict:
        _reject_hints(tallies)
    return Applied(tuple(out), ApplyReport(len(out), tuple(tallies)))


def votes_of(doc: Document, sources: Sequence[Source]) -> list[_Answer]:
    """Run the sources on a document, each after those it builds on; return (spans, errors, seconds) in given order."""
    answers: dict[str, _Answer] = {}
    for source in order_sources(sources):
        answer = _ask(source, doc)
        answers[source.name] = answer
        doc = doc.with_layer(layer_of(source), answer.spans)
    return [answers[source.name] for source in sources]


def _ask(source: Source, doc: Document) -> _Answer:
    """Run a source on a document; return its valid spans, counted errors (never the message), and seconds of CPU."""
    began = time.thread_time()
    spans: list[Span] = []
    try:
        spans, errors = collect_spans(source(doc), str(getattr(source, "label", "")), len(doc.text))
        errors += source.misfits(doc) if hasattr(source, "misfits") else Counter()
    except (Exception, SystemExit) as error:  # the run goes on; the message may contain text
        errors = Counter([type(error).__name__ + _line_of_source(error, source)])
    return _Answer(spans, errors, time.thread_time() - began)


def _line_of_source(error: BaseException, source: Source) -> str:
    """Return " at line N", the last line of the source's file that an error came through; "" if it has no file."""
    code = _code_of(source)
    lines, trace = list[int](), error.__traceback__
    while trace is not None and code is not None:
        lines += [trace.tb_lineno] if trace.tb_frame.f_code.co_filename == code.co_filename else []
        trace = trace.tb_next
    return f" at line {lines[-1]}" if lines else ""


def _code_of(source: Source) -> CodeType | None:
    """Return the code object of a user's source: its function, or its class's `__call__`; None if there is none."""
    source = source.source if isinstance(source, RememberedSource) else source
    if isinstance(source, SourceKind):
        candidates: list[Any] = [getattr(source, "function", None)]
    else:
        candidates = [source, type(source).__call__]
    codes = (getattr(inspect.unwrap(one), "__code__", None) for one in candidates if callable(one))
    return next((code for code in codes if code is not None), None)


def _batch(sources: Sequence[Source], docs: Sequence[Document]) -> list[_Answers]:
    """Return for each document of a batch the answers of all sources."""
    return [votes_of(doc, sources) for doc in docs]


_worker_sources: list[Sequence[Source]] = []  # of a worker process: one sequence, set by `_hold`


def _hold(sources: Sequence[Source]) -> None:
    """Store the sources in a global of this worker process, and make it ignore SIGINT."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles an interrupt
    _worker_sources[:] = [sources]


def _batch_in_worker(docs: Sequence[Document]) -> list[_Answers]:
    """Return for each document of a batch the answers of the sources stored in this worker process."""
    return _batch(_worker_sources[0], docs)


@contextmanager
def _map_batches(sources: Sequence[Source], workers: int) -> Iterator[Any]:
    """Yield a map of batches to (batch, answers), by processes or threads; ConfigError if a process dies."""
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
    """Yield (batch, answers) in order, computed by a pool of processes."""
    remaining = iter(parts)
    waiting = [(docs, pool.submit(_batch_in_worker, docs)) for docs in islice(remaining, workers * AHEAD)]
    while waiting:
        docs, future = waiting.pop(0)
        answers = future.result()
        waiting += [(more, pool.submit(_batch_in_worker, more)) for more in islice(remaining, 1)]
        yield docs, answers


def _with_layers(doc: Document, sources: Sequence[Source], answers: _Answers) -> Document:
    """Return the document with each source's spans as a layer "source:NAME" (or "link:NAME")."""
    for source, answer in zip(sources, answers, strict=True):
        doc = doc.with_layer(layer_of(source), answer.spans)
    return doc


def _add_answer(tally: Tally, answer: _Answer) -> Tally:
    """Return the counts of a source with one more answer added."""
    return replace(
        tally,
        documents=tally.documents + bool(answer.spans),
        spans=tally.spans + len(answer.spans),
        errors=dict(Counter(tally.errors) + answer.errors) if answer.errors else tally.errors,
        seconds=tally.seconds + answer.seconds,
    )


def _reject_failures(sources: Sequence[Source], answers: _Answers, number: int) -> None:
    """Raise DataError if a source failed on the document of this number."""
    for source, answer in zip(sources, answers, strict=True):
        for kind in answer.errors:
            raise DataError(
                f"the source {source.name!r} failed on document {number} ({kind}); correct it, or leave strict out"
            )


def _add_hints(tally: Tally, source: Source, docs: Sequence[Document]) -> Tally:
    """Return the tally with its hints replaced: on easily misread settings, and on why it found nothing."""
    hints = [source.remark()] if hasattr(source, "remark") else []
    if docs and not tally.spans and not tally.errors:
        reason = source.hint(docs) if hasattr(source, "hint") else ""
        hints.append(f"it found nothing in {len(docs)} documents; {reason or 'check it against the text'}")
    return replace(tally, hints=tuple(hint for hint in hints if hint))


def _reject_hints(tallies: Iterable[Tally]) -> None:
    """Raise DataError for the first source with a hint."""
    for tally in tallies:
        for hint in tally.hints:
            raise DataError(f"the source {tally.name!r}: {hint}; or leave strict out")


def _check_needs(sources: Sequence[Source], docs: Sequence[Document]) -> None:
    """Raise ConfigError if a source builds on a name that is neither a source nor a layer of any document."""
    names = {source.name for source in sources}
    layers = set(chain.from_iterable(doc.layers for doc in docs))
    for source in sources:
        for name in needs(source) if docs else ():
            if plain_name(name) not in names and not {name, SOURCE + name} & layers:
                known = [*sorted(names - {source.name}), *sorted(layers)]
                raise ConfigError(
                    f"{source.name!r} builds on {name!r}, which is neither a source nor a layer; "
                    f"{did_you_mean(name, known)}"
                )


def _with_unread(
    sources: Sequence[Source], tallies: Iterable[Tally], docs: Sequence[Document], strict: bool
) -> Iterator[Tally]:
    """Yield each tally, its errors with a count of annotated documents that were not read; DataError if strict."""
    ids = {doc.id for doc in docs}
    for source, tally in zip(sources, tallies, strict=True):
        unread = len(frozenset(getattr(source, "documents", ())) - ids)
        if unread and strict:
            raise DataError(f"the source {source.name!r} has spans for {unread} documents that were not read")
        yield replace(tally, errors={**tally.errors, UNREAD: unread}) if unread else tally
