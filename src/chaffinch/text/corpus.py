"""A stream of documents that can be iterated more than once, and split without dividing a patient."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, overload

from chaffinch.errors import ConfigError
from chaffinch.text.document import Document


class Corpus:
    """Documents that are read again on each iteration and never all held in memory at once.

    A corpus in memory (`Corpus.of`, `load`) has a length and documents by number, as a list has.

    >>> notes = Corpus.of([Document.make("One."), Document.make("Two.")])
    >>> [doc.text for doc in notes]
    ['One.', 'Two.']
    >>> len(notes), notes[-1].text
    (2, 'Two.')
    """

    __slots__ = ("_documents", "_open", "format")

    def __init__(self, open: Callable[[], Iterator[Document]], format: str = "") -> None:  # noqa: A002  (plain words)
        """Make a corpus whose documents are read by calling `open` on each iteration."""
        self._open, self.format = open, format
        self._documents: tuple[Document, ...] | None = None  # those in memory

    @classmethod
    def of(cls, documents: Iterable[Document], format: str = "") -> Corpus:  # noqa: A002  (plain words)
        """Read all of these documents, and return a corpus that holds them in memory."""
        in_memory = tuple(documents)
        corpus = cls(lambda: iter(in_memory), format)
        corpus._documents = in_memory
        return corpus

    def __iter__(self) -> Iterator[Document]:
        """Iterate over the documents from the beginning."""
        return self._open()

    def __len__(self) -> int:
        """Return the number of documents; raise TypeError unless the corpus is in memory."""
        return len(self._in_memory("its length"))

    @overload
    def __getitem__(self, place: int) -> Document:
        """Return the document at an index."""

    @overload
    def __getitem__(self, place: slice) -> Corpus:
        """Return a corpus of the documents of a slice."""

    def __getitem__(self, place: int | slice) -> Document | Corpus:
        """Return the document at an index, or a corpus of a slice; IndexError, or TypeError unless in memory."""
        found = self._in_memory("a document by its number")[place]
        return found if isinstance(found, Document) else Corpus.of(found, self.format)

    def __bool__(self) -> bool:
        """Tell whether there is a document; a corpus that is not in memory opens its input and reads the first one."""
        return next(iter(self), None) is not None

    def _in_memory(self, what: str) -> tuple[Document, ...]:
        """Return the documents held in memory; raise TypeError, which names `what`, if they are read from files."""
        if self._documents is None:
            raise TypeError(f"this corpus is read as it is iterated, so {what} is unknown; hold it in memory: load()")
        return self._documents

    def __repr__(self) -> str:
        """Return the format's name only, never text."""
        return f"Corpus({self.format})"

    def map(self, step: Callable[[Document], Document]) -> Corpus:
        """Return a corpus with `step` applied to each document, lazily unless the corpus is in memory."""
        if self._documents is not None:
            return Corpus.of(map(step, self._documents), self.format)
        return Corpus(lambda: map(step, self._open()), self.format)

    def filter(self, keep: Callable[[Document], bool]) -> Corpus:
        """Return a corpus of the documents for which `keep` returns True, lazily unless the corpus is in memory."""
        if self._documents is not None:
            return Corpus.of(filter(keep, self._documents), self.format)
        return Corpus(lambda: filter(keep, self._open()), self.format)

    def load(self) -> Corpus:
        """Read all documents, and return a corpus that holds them in memory."""
        return Corpus.of(self._open(), self.format)

    @classmethod
    def from_pandas(
        cls,
        frame: Any,
        *,
        text: str = "text",
        id: str | None = None,  # noqa: A002  (the field's name)
        patient: str | None = None,
    ) -> Corpus:
        """Return a corpus with a document per row of a pandas frame, other columns as meta; ConfigError for bad names.

        `text`, `id` and `patient` are names of columns; without `id`, a document's id is its row's label in the index.
        The iteration raises DataError at a row without a text.
        """
        from chaffinch.text.formats.frames import from_pandas

        return from_pandas(frame, text=text, id=id, patient=patient)

    def to_pandas(self, *, layer: str | None = None, spans: bool = False) -> Any:
        """Return a pandas frame with a row per document, or with `spans` per span of a layer; or MissingExtraError."""
        from chaffinch.text.formats.frames import to_pandas

        return to_pandas(self, layer=layer, spans=spans)

    @classmethod
    def from_datasets(cls, dataset: Any, *, layer: str = "gold", text: str = "text") -> Corpus:
        """Return a corpus of a Hugging Face dataset's rows (tokens and tags, or text); ConfigError without either."""
        from chaffinch.text.formats.frames import from_datasets

        return from_datasets(dataset, layer=layer, text=text)

    def to_datasets(self, *, layer: str | None = None) -> Any:
        """Return a Hugging Face dataset of id, tokens, ner_tags (named numbers); MissingExtraError, or DataError.

        DataError if spans overlap or cut tokens.
        """
        from chaffinch.text.formats.frames import to_datasets

        return to_datasets(self, layer=layer)

    def split(
        self, fraction: float, *, by: Literal["group", "document"] = "group", seed: int = 0
    ) -> tuple[Corpus, Corpus]:
        """Return two corpora, about `fraction` of documents in the first; by="group" splits no patient; or ConfigError.

        Whole groups (or documents) are assigned to the first side in the order of a hash of seed and key, so the split
        does not depend on the order of the documents. With two groups or more neither side is empty.
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
    """Return the key of the document's patient: its group, else its id."""
    return doc.patient


def _identity(doc: Document) -> str:
    """Return the document's id."""
    return doc.id


def _first_part(sizes: dict[str, int], fraction: float, seed: int) -> set[str]:
    """Return keys, chosen in seeded hash order till their documents are about `fraction` of all; never all of them.

    `sizes` has the number of documents of each key. Of a single key, nothing is returned.
    """
    order = sorted(sizes, key=lambda key: hashlib.blake2b(f"{seed}\0{key}".encode()).digest())
    target, taken = fraction * sum(sizes.values()), 0
    first: set[str] = set()
    for key in order[:-1]:
        if first and abs(taken + sizes[key] - target) > abs(taken - target):
            break
        first.add(key)
        taken += sizes[key]
    return first
