"""What a patient's notes tell one another: names that repeat, and words that are aligned.

The notes are held together where they are few (`HybridDetector.read`), else read one by one, twice:

    notes → PatientReading.add: each is detected, and waits sealed → settle: names, changes of labels → notes, tagged
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from chaffinch.deid.detect import repeats
from chaffinch.deid.detect.merge import overlaps_any
from chaffinch.deid.detect.token_scores import tokens_of
from chaffinch.deid.detect.word_lists import word_lists
from chaffinch.deid.kinds import kind_of
from chaffinch.models.alignment import graph
from chaffinch.models.alignment import model as alignment
from chaffinch.models.alignment.by_word import WordCensus, find_changes, find_occurrences
from chaffinch.models.core.batching import batches
from chaffinch.text import Document, Span
from chaffinch.text.view import ShownDocument

if TYPE_CHECKING:
    from chaffinch.deid.detect.detector import HybridDetector

SHORTEST = 3  # characters of a word whose repeats are searched for; shorter words repeat by chance
MODE = "recall"  # of alignment: an identifier never becomes O
TILE_TOKENS = 3_000  # tokens of notes that are detected together: more take more memory, fewer more time per note
_NUMBER = 8  # bytes of a number in a key


class Records(Protocol):
    """Records of a key and a payload that come back sorted by key, each time they are asked for."""

    def add(self, key: bytes, payload: bytes) -> None:
        """Add a record; records of equal keys keep their order."""

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield all records in the order of their keys."""

    def close(self) -> None:
        """Drop all records."""


NewRecords = Callable[[], Records]


class SpanWords:
    """The words inside the spans of a patient's notes, to tell whether one of them occurs outside of spans too."""

    def __init__(self) -> None:
        """Begin without notes."""
        self._times: Counter[str] = Counter()  # inside spans, by folded word
        self._searched: set[str] = set()  # those of names and codes

    def add(self, doc: Document, layer: str) -> None:
        """Add the words of a note's spans."""
        spans, text = doc.layers[layer], doc.text
        tokens, sizes = tokens_of(*doc.token_ranges(spans).T)
        words = [text[start:end].casefold() for start, end in doc.tokens[tokens].tolist()]
        self._times.update(words)
        repeating = np.repeat([label_repeats(span.label) for span in spans], sizes).tolist()
        self._searched.update(
            word for word, repeats in zip(words, repeating, strict=True) if repeats and len(word) >= SHORTEST
        )

    def recur(
        self, docs: Callable[[], Iterable[Document]], common: frozenset[str], *, notes: int | None = None
    ) -> bool:
        """Tell whether a word of a name or code occurs outside spans; common words need two spans.

        `docs` yields the notes from the first at each call; it is called once more only if no token is such a word, and
        there is more than one note: all words of the one note are its own. `notes` is how many there are, if known.
        """
        words = {word for word in self._searched if self._times[word] > 1 or word not in common}
        if not words:
            return False
        counts: Counter[str] = Counter()
        for whole in (True,) if notes == 1 else (False, True):  # first each note's own words, nearly always enough
            counts.clear()
            for doc in docs():
                text = doc.text.casefold()
                for word in words if whole else words.intersection(map(str.casefold, doc.words())):
                    counts[word] += _count_whole_words(word, text)
                    if counts[word] > self._times[word]:
                        return True
        return False


def align(docs: Sequence[Document], layer: str, language: str) -> list[Document]:
    """Return the documents of patients, with their repeated words relabelled in the layer."""
    return alignment.align(docs, _aligner(language), layer=layer, mode=MODE)


class PatientReading:
    """The detection of one patient's notes that are not held together; the answer is that of `HybridDetector.read`.

    In memory are the distinct names and words of spans, and the notes of a tile; the rest is in records.
    """

    def __init__(self, find: HybridDetector, new_records: NewRecords) -> None:
        """Begin without notes."""
        self._find, self._new_records = find, new_records
        self._found, self._order, self._changes = new_records(), new_records(), new_records()
        self._number = 0
        self._census, self._words = WordCensus(), SpanWords()
        self._names: repeats.NameCounts = {}
        self._labels: dict[str, str] = {}

    def add(self, documents: Iterable[Document]) -> None:
        """Detect in the next notes, each by itself, and keep what was found."""
        find = self._find
        for docs in batches((ShownDocument.of(doc).shown for doc in documents), TILE_TOKENS):
            for doc in find.detect(docs):
                number = self._number.to_bytes(_NUMBER, "big")
                self._number += 1
                self._found.add(number, pickle.dumps(doc, pickle.HIGHEST_PROTOCOL))
                self._order.add(_order_key(doc), number)
                self._census.add(doc, find.layer)
                self._words.add(doc, find.layer)
                repeats.add_counts(self._names, repeats.count_names(doc, find.layer, find.lists))

    def settle(self, remembered: repeats.NameCounts) -> None:
        """Decide, when all notes are added, which names are searched for and which words get other labels.

        `remembered` are the names of the patient's earlier notes.
        """
        find = self._find
        self._labels = repeats.choose_labels([remembered, self._names])
        if self._words.recur(self._documents, find.lists.common_words):
            self._align(_aligner(find.lists.language))

    def _align(self, model: alignment.Model) -> None:
        """Keep the changes of labels that the alignment of all notes makes, by note and token."""
        layer, names, words = self._find.layer, self._census.names, self._census.linkable(model.common)
        numbers = [int.from_bytes(number, "big") for _, number in self._order]  # of the notes, as alignment reads them
        places = [0] * len(numbers)
        for place, number in enumerate(numbers):
            places[number] = place
        occurrences = self._new_records()
        try:
            for number, doc in enumerate(self._documents()):
                for record in find_occurrences(doc, layer, number=places[number], names=names, words=words):
                    occurrences.add(*record)
            for change in find_changes(occurrences, model, names=names, mode=MODE):
                note = numbers[change.document].to_bytes(_NUMBER, "big")
                self._changes.add(note, pickle.dumps((change.token, change.label, change.score)))
        finally:
            occurrences.close()

    def tag_again(self, originals: Iterable[Document]) -> Iterator[tuple[Document, repeats.NameCounts]]:
        """Yield each note with its layer, and the counts of its names, as `HybridDetector.read` with memories does."""
        changes = iter(self._changes)
        change = next(changes, None)
        for original, (number, content) in zip(originals, self._found, strict=True):
            doc: Document = _unpickle(content)
            relabelled: dict[int, tuple[str, float]] = {}
            while change is not None and change[0] == number:
                token, label, score = _unpickle(change[1])
                relabelled[token] = (label, score)
                change = next(changes, None)
            again: list[Span] = []
            if relabelled:
                spans = doc.layers[self._find.layer]
                aligned = doc.with_layer(self._find.layer, graph.to_spans(doc, spans, relabelled))
                again = new_spans(spans, aligned.layers[self._find.layer])
            page = ShownDocument.of(original)
            tagged, names = self._find.finish(doc, page.shown, again, self._labels, remember=True)
            yield page.restore(tagged), names

    def close(self) -> None:
        """Drop all that is kept."""
        for records in (self._found, self._order, self._changes):
            records.close()

    def _documents(self) -> Iterator[Document]:
        """Yield the notes as they were detected, in order."""
        for _, content in self._found:
            yield _unpickle(content)


def _unpickle(content: bytes) -> Any:
    """Return what this process pickled and sealed."""
    return pickle.loads(content)  # noqa: S301  (records of our own, which nobody else can write)


def _order_key(doc: Document) -> bytes:
    """Return a key in whose order alignment reads notes: by id, then by text."""
    name, text = (part.encode("utf-8", "surrogatepass") for part in (doc.id, doc.text))
    return name.replace(b"\0", b"\0\xff") + b"\0\0" + text


def new_spans(before: Sequence[Span], after: Iterable[Span]) -> list[Span]:
    """Return the spans that were not there before."""
    kept = set(before)
    return [span for span in after if span not in kept]


def may_repeat(text: str, span: Span, terms: Sequence[Span]) -> bool:
    """Tell whether a repeat is a name or code of 3 or more characters, not in lower case, over no protected term.

    The terms are sorted and do not overlap.
    """
    if not label_repeats(span.label):
        return False
    words = text[span.start : span.end]
    plain = len(words) < SHORTEST or (words.islower() and words.isalpha())
    return not plain and not overlaps_any(span, terms)


def _count_whole_words(word: str, text: str) -> int:
    """Count the occurrences of a word in a text that have no letter or digit on either side."""
    count, start = 0, text.find(word)
    while start >= 0:
        end = start + len(word)
        count += not (text[max(0, start - 1) : start].isalnum() or text[end : end + 1].isalnum())
        start = text.find(word, end)
    return count


@cache
def label_repeats(label: str) -> bool:
    """Tell whether further mentions of spans with this label are searched for: proper names and codes."""
    return kind_of(label).is_proper_name or kind_of(label).is_code


@cache
def _aligner(language: str) -> alignment.Model:
    """Return the default alignment model in recall mode with a language's common words, cached."""
    return alignment.Model.default("recall", common=word_lists(language).common_words)
