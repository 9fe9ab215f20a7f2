"""Process work items in batches, resumably: finished results are stored in a ledger, and nothing is done twice."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from chaffinch.jobs.ledger import Ledger

P = TypeVar("P")
R = TypeVar("R")
W = TypeVar("W", bound="Work")


class Interrupted(Exception):  # noqa: N818  (not an error: finished results are kept)
    """The user stopped the job; `done` results are stored in its ledger."""

    def __init__(self, done: int) -> None:
        """Keep the number of documents done."""
        super().__init__(done)
        self.done = done

    def __str__(self) -> str:
        """Return how many documents are done and how to finish the run."""
        return f"interrupted; {self.done:,} documents are done and kept: run the same command with --resume to finish"


@dataclass(frozen=True, slots=True)
class WorkItem(Generic[P]):
    """One work item: its number in the input, a key for everything that its result depends on, and the payload.

    Items of one `group` depend on one another. `memory` is what earlier releases tell of their patient; None without
    a state.
    """

    number: int
    key: str
    payload: P
    group: str = ""
    memory: bytes | None = None


class Work(Protocol):
    """Work items that are processed together: a list, or what reads them from the disk each time."""

    def __len__(self) -> int:
        """Return the number of items."""

    def __iter__(self) -> Iterator[WorkItem[Any]]:
        """Yield the items, from the first at each call."""


def key_of(*parts: str | bytes) -> str:
    """Return a hex hash of the parts in order, each with its length, so that different parts have different keys.

    >>> key_of("ab", "c") == key_of("a", "bc")
    False
    """
    whole = KeyHash()
    for part in parts:
        whole.add(part)
    return whole.hexdigest()


class KeyHash:
    """The hash of `key_of`, of parts that are added one by one."""

    def __init__(self) -> None:
        """Begin without parts."""
        self._hash = hashlib.blake2b(digest_size=20)

    def add(self, part: str | bytes) -> None:
        """Add the next part to the hash, with its length."""
        content = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        self._hash.update(len(content).to_bytes(8, "big") + content)

    def hexdigest(self) -> str:
        """Return the hash of the parts so far."""
        return self._hash.hexdigest()


def process_batches(
    batches: Iterable[W],
    each: Callable[[Iterable[W]], Iterable[tuple[Sequence[WorkItem[P]], Sequence[bytes | R]]]],
    ledger: Ledger,
    *,
    set_aside: Callable[[int, R], None],
    done: Callable[[int], None] = lambda _: None,
) -> None:
    """Process the batches that lack results in the ledger; store results that are bytes, give others to `set_aside`.

    `each` gets the batches that lack a result and yields each with its results, in any order, whole or in parts:
    results within a batch may depend on one another. A second run reads what is stored; a result that is not is
    computed again, with its whole batch. `done` is called with the number of results that are there.
    """

    def missing() -> Iterator[W]:
        """Yield the batches of which the ledger lacks a result; report the others as done."""
        for batch in batches:
            if len(ledger) and all(ledger.get(item.number, item.key) is not None for item in batch):
                done(len(batch))
            else:
                yield batch

    for batch, results in each(missing()):
        _store(batch, results, ledger, set_aside)
        done(len(batch))
    ledger.sync()


def _store(
    batch: Sequence[WorkItem[P]],
    results: Sequence[bytes | R],
    ledger: Ledger,
    set_aside: Callable[[int, R], None],
) -> None:
    """Put a batch's new results into the ledger; one that is not bytes is set aside, and its old one forgotten."""
    for item, result in zip(batch, results, strict=True):
        if not isinstance(result, bytes):
            ledger.forget(item.number)
            set_aside(item.number, result)
        elif ledger.get(item.number, item.key) != result:
            ledger.put(item.number, item.key, result)
