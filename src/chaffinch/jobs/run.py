"""One folder or stream through a function: order kept, nothing done twice, and what is done outlives the process."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from chaffinch.errors import DataError
from chaffinch.jobs.ledger import Ledger

P = TypeVar("P")
R = TypeVar("R")


class Interrupted(Exception):  # noqa: N818  (no error: what is done is kept)
    """The user stopped the job; `done` results are kept in its ledger."""

    def __init__(self, done: int) -> None:
        super().__init__(done)
        self.done = done

    def __str__(self) -> str:
        return f"interrupted; {self.done:,} documents are done and kept: run the same command with --resume to finish"


@dataclass(frozen=True, slots=True)
class WorkItem(Generic[P]):
    """One piece of work: its place in the input, a key that stands for all that its result depends on, and itself."""

    number: int
    key: str
    payload: P


def key_of(*parts: str | bytes) -> str:
    """A key for parts; each is length-prefixed, so that no other parts have it.

    >>> key_of("ab", "c") == key_of("a", "bc")
    False
    """
    whole = hashlib.blake2b(digest_size=20)
    for part in parts:
        content = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        whole.update(len(content).to_bytes(8, "big") + content)
    return whole.hexdigest()


def run(
    parcels: Iterable[Sequence[WorkItem[P]]],
    work: Callable[[Sequence[P]], Sequence[bytes | R]],
    ledger: Ledger,
    *,
    tick: Callable[[int], None] = lambda _: None,
) -> Iterator[bytes | R]:
    """The result of every item, in the order of their numbers, once all are there.

    `work` gets all items of a parcel, or none if all have a result: results within a parcel may depend on one another.
    A result of bytes goes to the ledger, and a second run takes it from there; any other is tried again by a second
    run, with its whole parcel. `tick` hears how many items are through. Interrupted on Ctrl-C, with all in the ledger
    that was done.
    """
    order: dict[int, str | R] = {}
    try:
        for parcel in parcels:
            order |= _through(parcel, work, ledger)
            tick(len(parcel))
        ledger.sync()
    except KeyboardInterrupt:
        ledger.sync()
        raise Interrupted(len(ledger)) from None
    for number in sorted(order):
        result = order[number]
        yield _kept(ledger, result) if isinstance(result, str) else result


def _through(
    parcel: Sequence[WorkItem[P]], work: Callable[[Sequence[P]], Sequence[bytes | R]], ledger: Ledger
) -> dict[int, str | R]:
    """Return by the number of each item the key of its result, or the result itself if it is not kept."""
    order: dict[int, str | R] = {item.number: item.key for item in parcel}
    before = {item.key: ledger.get(item.key) for item in parcel}
    if None not in before.values():
        return order
    results = zip(parcel, work([item.payload for item in parcel]), strict=True)
    # What is missing is put last: a run that is killed before that does this parcel once more.
    for item, result in sorted(results, key=lambda pair: before[pair[0].key] is None):
        if not isinstance(result, bytes):
            order[item.number] = result
        elif result != before[item.key]:
            ledger.put(item.key, result)
    return order


def _kept(ledger: Ledger, key: str) -> bytes:
    content = ledger.get(key)
    if content is None:
        raise DataError("a result changed on the disk; remove the folder and run again", path=ledger.folder)
    return content
