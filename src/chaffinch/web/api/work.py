"""The work of a process: requests wait in a bounded queue, and one thread answers those that fit together in one call.

A call to a model costs about as much for one note as for twenty, so requests that wait are put together. A result
depends on its own request alone: what is put together is of different patients, and documents of different patients
do not depend on one another.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from chaffinch.web.metrics import Metrics
from chaffinch.web.problems import Problem, busy
from chaffinch.web.settings import Limits

_TOGETHER_CHARACTERS = 200_000  # of a call: larger ones are no cheaper by character, and make others wait
_LONGEST_ADVICE = 60  # seconds after which a refused client may try again at the latest
_FIRST_RATE = 100_000.0  # characters a second, until one was measured


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """One request's work: `run` gets the payloads of several works with an equal key, and returns their results.

    Works without a key are run alone. `patients` of works that are run together must differ.
    """

    run: Callable[[Sequence[Any]], Sequence[Any]]
    payload: Any = field(repr=False)
    documents: int
    characters: int
    key: Hashable = None
    patients: frozenset[str] = field(default=frozenset(), repr=False)


@dataclass(slots=True, eq=False)
class _Waiting:
    """A work in the queue, and where its result goes."""

    work: Work
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]

    def finish(self, result: Any) -> None:
        """Give the result, or the error, to the request that waits, from the worker thread through its event loop."""
        self.loop.call_soon_threadsafe(self._settle, result)

    def _settle(self, result: Any) -> None:
        """Set the request's future to the result, or to the error if it is one, unless it is done already."""
        if self.future.done():
            return
        if isinstance(result, BaseException):
            self.future.set_exception(result)
        else:
            self.future.set_result(result)


class WorkQueue:
    """A queue with a bound, and the thread that works it off."""

    def __init__(self, limits: Limits, metrics: Metrics) -> None:
        """Begin with an empty queue and no thread."""
        self._limits, self._metrics = limits, metrics
        self._waiting: deque[_Waiting] = deque()
        self._characters = 0  # of works that wait
        self._rate = _FIRST_RATE
        self._changed = threading.Condition()
        self._closing = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread that works off the queue."""
        self._closing = False
        self._thread = threading.Thread(target=self._work_off, name="chaffinch-work", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Finish all waiting work, then end the thread."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    async def submit(self, work: Work) -> Any:
        """Queue a work and return its result; raise Problem if the queue is full, or it takes too long."""
        loop = asyncio.get_running_loop()
        waiting = _Waiting(work, loop, loop.create_future())
        with self._changed:
            too_many = len(self._waiting) >= self._limits.waiting
            too_much = self._characters > 0 and self._characters + work.characters > self._limits.waiting_characters
            if self._closing or too_many or too_much:
                raise busy(self._advice())
            self._waiting.append(waiting)
            self._characters += work.characters
            self._changed.notify_all()
        try:
            async with asyncio.timeout(self._limits.seconds):
                return await waiting.future
        except TimeoutError:
            text = f"the answer took longer than {self._limits.seconds:g} s; send fewer or shorter documents"
            raise Problem(503, "too_slow", text, {"retry-after": str(self._advice())}) from None

    def _advice(self) -> int:
        """Return the seconds until a refused client should retry: those to work off the queue, within limits."""
        return max(1, min(_LONGEST_ADVICE, math.ceil(self._characters / self._rate)))

    def _work_off(self) -> None:
        """Run works, several of one key at once, until the queue is closed and empty; update metrics and rate."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closing)
                if not self._waiting:
                    return
                together = self._take()
            started = time.perf_counter()
            _run(together)
            characters = sum(each.work.characters for each in together)
            self._metrics.note_documents(sum(each.work.documents for each in together), characters)
            self._rate = 0.8 * self._rate + 0.2 * (characters + 1) / max(time.perf_counter() - started, 1e-6)

    def _take(self) -> list[_Waiting]:
        """Remove and return the first work still waited for, and others of its key that fit and share no patient."""
        kept: deque[_Waiting] = deque()
        taken: list[_Waiting] = []
        patients: set[str] = set()
        characters = 0
        for each in self._waiting:
            work = each.work
            if each.future.done():  # its client was answered that it took too long
                self._characters -= work.characters
                continue
            fits = not taken or (
                work.key is not None
                and work.key == taken[0].work.key
                and characters + work.characters <= _TOGETHER_CHARACTERS
                and patients.isdisjoint(work.patients)
            )
            (taken if fits else kept).append(each)
            if fits:
                patients |= work.patients
                characters += work.characters
        self._waiting = kept
        self._characters -= characters
        return taken


def _run(together: Sequence[_Waiting]) -> None:
    """Run works in one call and hand out the results; if it fails, run each alone, so that each gets its own error."""
    if not together:
        return
    try:
        results = together[0].work.run([each.work.payload for each in together])
    except Exception as error:
        if len(together) == 1:
            together[0].finish(error)
            return
        for each in together:
            _run([each])
        return
    for each, result in zip(together, results, strict=True):
        each.finish(result)
