"""Alignment word by word, for a patient with more documents than fit into memory.

    documents, one at a time → WordCensus → occurrences, sorted by word elsewhere → changes of labels

The words of a patient are decided independently of one another, so only the occurrences of one word are needed at a
time. The model must weigh the word alone, not what stands beside it, as `Model.default` does.

N occurrences, L labels with "O".
"""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import msgspec
import numpy as np

from chaffinch.errors import ConfigError
from chaffinch.models.alignment import graph
from chaffinch.models.alignment.graph import RepeatedWords
from chaffinch.models.alignment.model import Model, decide_labels, has_likenesses
from chaffinch.text import Document

_TOGETHER = 2_000  # occurrences of whole words that are decided in one call: more take more memory, fewer more calls
_DIGEST = 16  # bytes by which the occurrences of one word are brought together
_NUMBER = 8  # bytes of the number of a document or token in a key


class Change(NamedTuple):
    """The new label of a token, by number of the document and of the token in it."""

    document: int
    token: int
    label: str
    score: float


class Occurrence(msgspec.Struct, frozen=True, array_like=True):
    """A token of a word that may be linked: where it is, and what the tagger says of it. The repr shows no text."""

    document: int
    token: int
    folded: str
    written: str
    tag: int
    chances: bytes  # (L,)

    def __repr__(self) -> str:
        """Return the place only."""
        return f"Occurrence({self.document}, {self.token})"


class WordCensus:
    """What must be known of all documents before words are linked: labels, and how often each word was found."""

    def __init__(self) -> None:
        """Begin without documents."""
        self._labels: set[str] = set()
        self._found: Counter[str] = Counter()  # tokens inside spans, by folded word

    def add(self, doc: Document, layer: str) -> None:
        """Count a document's found words; DataError without its layer of spans or soft labels."""
        self._labels.update(graph.label_names([doc], layer))
        found = {
            token
            for span, (first, end) in zip(doc.layers[layer], doc.token_ranges(doc.layers[layer]).tolist(), strict=True)
            if span.label != "O"
            for token in range(first, end)
        }
        self._found.update(doc.text[a:b].casefold() for a, b in doc.tokens[sorted(found)].tolist())

    @property
    def names(self) -> tuple[str, ...]:
        """Return "O", then all other labels, sorted."""
        return ("O", *sorted(self._labels - {"O"}))

    def linkable(self, common: frozenset[str]) -> frozenset[str]:
        """Return the folded words that may be linked: those found at all, but those in `common` only if found twice."""
        return frozenset(word for word, times in self._found.items() if times > 1 or word not in common)


def find_occurrences(
    doc: Document, layer: str, *, number: int, names: Sequence[str], words: frozenset[str]
) -> Iterator[tuple[bytes, bytes]]:
    """Yield a (key, packed occurrence) for each token with a letter or digit whose folded word is in `words`.

    Sorted by key, the occurrences of a word come together, in the order of the documents' numbers. A document without
    patient and id is aligned by itself.
    """
    index = {name: place for place, name in enumerate(names)}
    written = doc.words()
    chosen = [token for token, word in enumerate(written) if word.casefold() in words and any(map(str.isalnum, word))]
    if not chosen:
        return
    soft = doc.soft[layer]
    chances = np.zeros((len(chosen), len(names)))
    chances[:, [index[name] for name in soft.labels]] = soft.values[chosen]
    tags = graph.token_labels(doc, doc.layers[layer], index)
    alone = number.to_bytes(_NUMBER, "big") if doc.group is None and not doc.id else b""
    for token, row in zip(chosen, chances, strict=True):
        word = written[token].casefold()
        one = Occurrence(number, token, word, written[token], int(tags[token]), row.tobytes())
        digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass") + alone, digest_size=_DIGEST).digest()
        yield (
            digest + number.to_bytes(_NUMBER, "big") + token.to_bytes(_NUMBER, "big"),
            msgspec.msgpack.encode(one),
        )


def find_changes(
    records: Iterable[tuple[bytes, bytes]], model: Model, *, names: Sequence[str], mode: str
) -> Iterator[Change]:
    """Yield each token that `align` would relabel, with its new label, from a patient's occurrences sorted by key.

    Raise ConfigError if the model weighs more than the word.
    """
    if len(model.keys) or has_likenesses(model.weights):
        raise ConfigError("this alignment weighs the words around a word; align all documents of a patient together")
    for part in _gather(records, len(names)):
        words = part.observe()
        tags, scores = decide_labels(words, graph.link_words(words, model.common), model, names, mode)
        for place in np.flatnonzero(tags != words.tags).tolist():
            yield Change(part.documents[place], part.tokens[place], names[int(tags[place])], float(scores[place]))


class _Part:
    """All occurrences (N,) of some words, as columns: those of a frequent word take little memory."""

    def __init__(self, L: int) -> None:
        """Begin without words; occurrences have L chances."""
        self.documents, self.tokens = array("q"), array("q")
        self._L, self._tags, self._written, self._chances = L, array("q"), array("q"), bytearray()
        self._spellings: list[str] = []
        self._folded: list[int] = []  # of each spelling, its place in `_folds`
        self._folds: list[str] = []

    def __len__(self) -> int:
        """Return the number of occurrences."""
        return len(self.tokens)

    def add_word(self, packed: Iterable[bytes]) -> None:
        """Add all occurrences of one word, each packed as MessagePack."""
        table: dict[str, int] = {}
        for content in packed:
            one = msgspec.msgpack.decode(content, type=Occurrence)
            if not table:
                self._folds.append(one.folded)
            if one.written not in table:
                table[one.written] = len(self._spellings)
                self._spellings.append(one.written)
                self._folded.append(len(self._folds) - 1)
            self.documents.append(one.document)
            self.tokens.append(one.token)
            self._tags.append(one.tag)
            self._written.append(table[one.written])
            self._chances += one.chances

    def observe(self) -> RepeatedWords:
        """Return the words as `graph.observe` does, each occurrence as if it stood in a line of its own."""
        return RepeatedWords(
            np.array(self.documents, np.int64),
            np.array(self._written, np.int64),
            np.arange(len(self))[:, None] + np.array([0, 1]),
            np.array(self._tags, np.int64),
            np.frombuffer(self._chances).reshape(-1, self._L),
            *graph.describe_words(tuple(self._spellings), self._folded, tuple(self._folds)),
        )


def _gather(records: Iterable[tuple[bytes, bytes]], L: int) -> Iterator[_Part]:
    """Yield whole words in parts; a part ends once it has `_TOGETHER` occurrences."""
    part = _Part(L)
    for _, group in groupby(records, key=lambda record: record[0][:_DIGEST]):
        part.add_word(content for _, content in group)
        if len(part) >= _TOGETHER:
            yield part
            part = _Part(L)
    if len(part):
        yield part
