"""The queue: bounded, in time, and what is run together is of different patients."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from chaffinch.web.api.work import Work, WorkQueue
from chaffinch.web.metrics import Metrics
from chaffinch.web.problems import Problem
from chaffinch.web.settings import Limits


class Recorder:
    """Work that records what is run together, and can be held."""

    def __init__(self) -> None:
        self.calls: list[list[Any]] = []
        self.free = threading.Event()

    def run(self, payloads: Sequence[Any]) -> list[Any]:
        self.free.wait(30)
        self.calls.append(list(payloads))
        if "bad" in payloads:
            raise ValueError("bad")
        return [f"done {payload}" for payload in payloads]

    def work(self, payload: str, key: Any = "k", patients: Sequence[str] = (), characters: int = 1) -> Work:
        return Work(self.run, payload, 1, characters, key, frozenset(patients))


def _submit_all(works: Sequence[Work], recorder: Recorder, limits: Limits | None = None) -> list[Any]:
    """Submit works while the thread is held with the first of them, then let it go; return results and errors."""
    queue = WorkQueue(limits or Limits(), Metrics())

    async def run() -> list[Any]:
        queue.start()
        tasks = [asyncio.create_task(queue.submit(works[0]))]
        await asyncio.sleep(0.1)
        tasks += [asyncio.create_task(queue.submit(work)) for work in works[1:]]
        await asyncio.sleep(0.1)
        recorder.free.set()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.to_thread(queue.stop)
        return results

    return asyncio.run(run())


def test_works_of_one_key_and_different_patients_are_run_together() -> None:
    recorder = Recorder()
    make = recorder.work
    works = [
        make("first"), make("a", "k", ["p"]), make("b", "other"), make("c", "k", ["q"]), make("d", "k", ["p"]),
        make("e", None), make("f", None),
    ]  # fmt: skip
    assert _submit_all(works, recorder) == [f"done {each}" for each in ("first", "a", "b", "c", "d", "e", "f")]
    assert recorder.calls == [["first"], ["a", "c"], ["b"], ["d"], ["e"], ["f"]]


def test_a_failure_reaches_its_own_client_only() -> None:
    recorder = Recorder()
    first, good, bad = _submit_all([recorder.work(each) for each in ("first", "good", "bad")], recorder)
    assert (first, good) == ("done first", "done good")
    assert isinstance(bad, ValueError)


def test_a_full_queue_refuses_with_advice() -> None:
    recorder = Recorder()
    results = _submit_all([recorder.work(str(n)) for n in range(5)], recorder, Limits(waiting=2))
    assert results[:3] == ["done 0", "done 1", "done 2"]
    for refused in results[3:]:
        assert isinstance(refused, Problem)
        assert refused.status == 429
        assert int(refused.headers["retry-after"]) >= 1


def test_waiting_text_is_bounded_too() -> None:
    recorder = Recorder()
    works = [recorder.work(str(n), characters=40) for n in range(4)]
    results = _submit_all(works, recorder, Limits(waiting_characters=100))
    assert results[:3] == ["done 0", "done 1", "done 2"]
    assert results[3].status == 429


def test_an_answer_that_takes_too_long_is_given_up_and_not_worked_on() -> None:
    recorder = Recorder()
    queue = WorkQueue(Limits(seconds=0.2), Metrics())

    async def run() -> list[Any]:
        queue.start()
        tasks = [asyncio.create_task(queue.submit(recorder.work(each, None))) for each in ("a", "b")]
        results = await asyncio.gather(*tasks, return_exceptions=True)
        recorder.free.set()
        await asyncio.to_thread(queue.stop)
        return results

    for result in asyncio.run(run()):
        assert isinstance(result, Problem)
        assert (result.status, result.code) == (503, "too_slow")
    assert recorder.calls == [["a"]]


def test_what_waits_is_finished_when_the_queue_stops_and_new_work_is_refused() -> None:
    recorder = Recorder()
    queue = WorkQueue(Limits(), Metrics())

    async def run() -> list[Any]:
        queue.start()
        tasks = [asyncio.create_task(queue.submit(recorder.work(each, None))) for each in ("a", "b")]
        await asyncio.sleep(0.1)
        stop = asyncio.create_task(asyncio.to_thread(queue.stop))
        await asyncio.sleep(0.1)
        with pytest.raises(Problem):
            await queue.submit(recorder.work("c"))
        recorder.free.set()
        results = await asyncio.gather(*tasks)
        await stop
        return results

    assert asyncio.run(run()) == ["done a", "done b"]
