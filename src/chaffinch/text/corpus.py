"""A stream of documents that can be walked more than once, and split without cutting a patient in two."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

from chaffinch.errors import ConfigError
from chaffinch.text.document import Document


class Corpus:
    """Documents that are read anew on each walk and never all held at once.

    >>> notes = Corpus.of([Document.make("One."), Document.make("Two.")])
    >>> [doc.text for doc in notes]
    ['One.', 'Two.']
    """

    __slots__ = ("_open", "format")

    def __init__(self, open: Callable[[], Iterator[Document]], format: str = "") -> None:  # noqa: A002  (plain words)
        self._open, self.format = open, format

    @classmethod
    def of(cls, documents: Iterable[Document]) -> Corpus:
        """A corpus of documents that are in memory already."""
        held = tuple(documents)
        return cls(lambda: iter(held))

    def __iter__(self) -> Iterator[Document]:
        return self._open()

    def __repr__(self) -> str:
        return f"Corpus({self.format})"

    def map(self, step: Callable[[Document], Document]) -> Corpus:
        """A corpus whose documents have gone through `step`."""
        return Corpus(lambda: map(step, self._open()))

    def filter(self, keep: Callable[[Document], bool]) -> Corpus:
        """A corpus of the documents that `keep` says yes to."""
        return Corpus(lambda: filter(keep, self._open()))

    def load(self) -> Corpus:
        """The same corpus, held in memory, for many walks over a small one."""
        return Corpus.of(self._open())

    def split(
        self, fraction: float, *, by: Literal["group", "document"] = "group", seed: int = 0
    ) -> tuple[Corpus, Corpus]:
        """Two corpora; the first has about `fraction` of the documents, and no patient is in both.

        Whole groups (or documents) go to one side in the order of a hash of seed and key, so the split does not
        depend on the order of the documents. With two groups or more neither side is empty.
        """
        if not 0 < fraction < 1:
            raise ConfigError(f"fraction must lie between 0 and 1, got {fraction}")
        if by not in ("group", "document"):
            raise ConfigError(f"split by 'group' or 'document', got {by!r}")
        key = _patient if by == "group" else _identity
        sizes: dict[str, int] = {}
        for doc in self:
            sizes[key(doc)] = sizes.get(key(doc), 0) + 1
        first = _first_part(sizes, fraction, seed)
        return self.filter(lambda doc: key(doc) in first), self.filter(lambda doc: key(doc) not in first)


def _patient(doc: Document) -> str:
    return doc.patient


def _identity(doc: Document) -> str:
    return doc.id


def _first_part(sizes: dict[str, int], fraction: float, seed: int) -> set[str]:
    """The keys of the first part: as many, in hash order, as come nearest to the wanted number of documents."""
    order = sorted(sizes, key=lambda key: hashlib.blake2b(f"{seed}\0{key}".encode()).digest())
    wanted, taken = fraction * sum(sizes.values()), 0
    first: set[str] = set()
    for key in order[:-1]:
        if first and abs(taken + sizes[key] - wanted) > abs(taken - wanted):
            break
        first.add(key)
        taken += sizes[key]
    return first
