"""Process work items in batches, resumably: finished results are stored in a ledger, and nothing is done twice."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from chaffinch.errors import DataError
from chaffinch.jobs.ledger import Ledger

P = TypeVar("P")
R = TypeVar("R")


class Interrupted(Exception):  # noqa: N818  (not an error: finished results are kept)
    """The user stopped the job; `done` results are stored in its ledger."""

    def __init__(self, done: int) -> None:
        super().__init__(done)
        self.done = done

    def __str__(self) -> str:
        return f"interrupted; {self.done:,} documents are done and kept: run the same command with --resume to finish"


@dataclass(frozen=True, slots=True)
class WorkItem(Generic[P]):
    """One work item: its number in the input, a key for everything that its result depends on, and the payload."""

    number: int
    key: str
    payload: P


@dataclass(frozen=True, slots=True)
class KeptKey:
    """The key of a result that is stored in the ledger."""

    key: str


def key_of(*parts: str | bytes) -> str:
    """Return a hex hash of the parts in order, each with its length, so that different parts have different keys.

    >>> key_of("ab", "c") == key_of("a", "bc")
    False
    """
    whole = hashlib.blake2b(digest_size=20)
    for part in parts:
        content = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        whole.update(len(content).to_bytes(8, "big") + content)
    return whole.hexdigest()


def process_batches(
    batches: Iterable[Sequence[WorkItem[P]]],
    work: Callable[[Sequence[P]], Sequence[bytes | R]],
    ledger: Ledger,
    *,
    done: Callable[[Sequence[WorkItem[P]]], None] = lambda _: None,
) -> dict[int, KeptKey | R]:
    """Work on all batches, and store results in the ledger; return by item number a stored key, or the result itself.

    `work` gets all items of a batch, or is not called if all have a result: results within a batch may depend on one
    another. A result of bytes is stored in the ledger, and a second run reads it from there; any other result is
    computed again by a second run, with its whole batch. `done` is called after each batch.
    """
    outcomes: dict[int, KeptKey | R] = {}
    for batch in batches:
        outcomes |= _process_batch(batch, work, ledger)
        done(batch)
    ledger.sync()
    return outcomes


def in_order(outcomes: Mapping[int, KeptKey | R], ledger: Ledger) -> Iterator[tuple[int, bytes | R]]:
    """Yield the number and the result of every item by number; stored results are read from the ledger."""
    for number in sorted(outcomes):
        outcome = outcomes[number]
        yield number, _read_result(ledger, outcome.key) if isinstance(outcome, KeptKey) else outcome


def _process_batch(
    batch: Sequence[WorkItem[P]], work: Callable[[Sequence[P]], Sequence[bytes | R]], ledger: Ledger
) -> dict[int, KeptKey | R]:
    """Work on a batch unless the ledger has all its results; return by item number a stored key, or the result."""
    outcomes: dict[int, KeptKey | R] = {item.number: KeptKey(item.key) for item in batch}
    earlier = {item.key: ledger.get(item.key) for item in batch}
    if None not in earlier.values():
        return outcomes
    results = zip(batch, work([item.payload for item in batch]), strict=True)
    # Missing results are stored last: a run that is killed before that processes this batch again.
    for item, result in sorted(results, key=lambda pair: earlier[pair[0].key] is None):
        if not isinstance(result, bytes):
            outcomes[item.number] = result
        elif result != earlier[item.key]:
            ledger.put(item.key, result)
    return outcomes


def _read_result(ledger: Ledger, key: str) -> bytes:
    """Return the stored result of a key; raise DataError if it is missing or its bytes changed on the disk."""
    content = ledger.get(key)
    if content is None:
        raise DataError("a result changed on the disk; remove the folder and run again", path=ledger.folder)
    return content
