"""python-crfsuite as a peer, with the features and tags of the benchmark that asks for it."""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from chaffinch import Document, Span
from chaffinch.text.tags import decode

Features: TypeAlias = Callable[[Sequence[str]], list[list[str]]]  # of every word of a sentence
Tags: TypeAlias = Callable[[Sequence[Document]], Iterable[Sequence[str]]]  # of the tokens of every document, IOB2


def sentences(doc: Document) -> Iterator[tuple[int, int, list[str]]]:
    """First token, one past the last, and words of every sentence that has a token."""
    words = doc.words()
    for first, end in doc.sentence_tokens().tolist():
        if end > first:
            yield first, end, words[first:end]


class CRF:
    """python-crfsuite, trained by one of its algorithms, such as "ap" (averaged perceptron) or "pa".

    It shuffles with the C library's `rand`, which has no option for a seed: two trainings in one process differ (by
    up to .004 strict F1 on MEDDOCAN) unless `srand` is called before each, which it is if there is a seed.
    """

    def __init__(
        self, features: Features, tags: Tags, *, algorithm: str, iterations: int = 20, seed: int | None = None
    ) -> None:
        import pycrfsuite

        self._crf, self._folder, self.size = pycrfsuite, tempfile.TemporaryDirectory(), 0
        self._features, self._tags = features, tags
        self._algorithm, self._iterations, self._seed = algorithm, iterations, seed

    def train(self, docs: Sequence[Document]) -> None:
        """Extraction and training."""
        trainer = self._crf.Trainer(algorithm=self._algorithm, verbose=False)
        trainer.set_params({"max_iterations": self._iterations})
        for doc, tags in zip(docs, self._tags(docs), strict=True):
            for first, end, words in sentences(doc):
                trainer.append(self._features(words), tags[first:end])
        path = Path(self._folder.name) / "model"
        if self._seed is not None:
            ctypes.CDLL(None).srand(self._seed + 1)  # 1 is what a new process begins with; 0 would be the same
        trainer.train(str(path))
        self.size = path.stat().st_size
        self._tagger = self._crf.Tagger()
        self._tagger.open(str(path))

    def tag(self, doc: Document) -> Sequence[Span]:
        """Extraction and tagging of one document."""
        tags = ["O"] * len(doc.tokens)
        for first, end, words in sentences(doc):
            tags[first:end] = self._tagger.tag(self._features(words))
        return decode(tags, doc.tokens)
