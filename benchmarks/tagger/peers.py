"""The peers of the tagger's benchmark: python-crfsuite with the published features, spaCy's blank NER."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any, Protocol

from benchmarks._crf import CRF, sentences
from chaffinch import Document, Span
from chaffinch.text.tags import encode

_CAPITALS = (re.compile("^[A-Z][a-z]"), re.compile("[A-Z]{2,}"), re.compile("[a-z]+[A-Z]+"))
_DIGITS = tuple(
    map(
        re.compile,
        ("[0-9]+", "^[0-9]$", "^[0-9]{2}$", "^[0-9]+$", "^[0-9]+[.,][0-9]+", "[A-Za-z]+[0-9]+", "[0-9]+[A-Za-z]+"),
    )
)
_SIGNS = (re.compile("-"), re.compile("^-"), re.compile("-$"), re.compile(r"^\W+$"))


class Peer(Protocol):
    """Trains on documents, tags one."""

    size: int

    def train(self, docs: Sequence[Document]) -> None: ...
    def tag(self, doc: Document) -> Sequence[Span]: ...


def _shapes(word: str) -> list[str]:
    """Word class, brief class, patterns and length: what is looked at from one before to one after."""
    shape = re.sub("[^Aa0]", "_", re.sub("[0-9]", "0", re.sub("[a-z]", "a", re.sub("[A-Z]", "A", word))))
    found = [f"c={shape}", "b=" + re.sub(r"(.)\1+", r"\1", shape), f"l={len(word)}"]
    for name, patterns in (("C", _CAPITALS), ("D", _DIGITS), ("S", _SIGNS)):
        found += [f"{name}{number}" for number, pattern in enumerate(patterns) if pattern.search(word)]
    return found


@cache
def _placed(word: str, offset: int) -> list[str]:
    return [f"{offset}{shape}" for shape in _shapes(word)]


def features(words: Sequence[str]) -> list[list[str]]:
    """The published features of every token of a sentence, part of speech and lexicons apart."""
    padded = ["<s>", "<s>", *words, "</s>", "</s>"]
    out = []
    for t, word in enumerate(words):
        own = [f"w{o}={padded[t + 2 + o]}" for o in range(-2, 3)]
        own += [f"w{o}{o + 1}={padded[t + 2 + o]}|{padded[t + 3 + o]}" for o in range(-2, 2)]
        own += [f"w{o}{o + 1}{o + 2}={'|'.join(padded[t + 2 + o : t + 5 + o])}" for o in range(-2, 1)]
        for offset in (-1, 0, 1):
            if 0 <= t + offset < len(words):
                own += _placed(words[t + offset], offset)
        out.append(own + _affixes(word))
    return out


@cache
def _affixes(word: str) -> list[str]:
    sizes = range(1, min(5, len(word)) + 1)
    return [f"p={word[:size]}" for size in sizes] + [f"s={word[-size:]}" for size in sizes]


def _tags(docs: Sequence[Document]) -> Iterator[list[str]]:
    """The tags of every document's gold spans."""
    return (encode(doc.layer("gold"), doc.tokens) for doc in docs)


class SpaCy:
    """spaCy's blank English NER, 4 epochs."""

    size = 0

    def train(self, docs: Sequence[Document]) -> None:
        """Updates an empty pipeline on the documents' sentences."""
        import random

        import spacy
        from spacy.tokens import Doc
        from spacy.training import Example
        from spacy.util import minibatch

        self._doc: Callable[..., Any] = Doc
        self._pipeline = spacy.blank("en")
        recogniser = self._pipeline.add_pipe("ner")
        examples = []
        for doc in docs:
            tags = encode(doc.layer("gold"), doc.tokens, "IOBES")
            bilou = [{"E": "L", "S": "U"}.get(tag[0], tag[0]) + tag[1:] for tag in tags]
            for first, end, words in sentences(doc):
                made = Doc(self._pipeline.vocab, words=words)
                examples.append(Example.from_dict(made, {"entities": bilou[first:end]}))
        for label in sorted({span.label for doc in docs for span in doc.layer("gold")}):
            recogniser.add_label(label)
        self._pipeline.initialize(lambda: examples[:1000])
        for epoch in range(4):
            random.Random(epoch).shuffle(examples)  # noqa: S311  (order of training)
            for batch in minibatch(examples, 64):
                self._pipeline.update(batch)
        self.size = len(self._pipeline.to_bytes())

    def tag(self, doc: Document) -> Sequence[Span]:
        """Tags one document, sentence by sentence."""
        spans = []
        for first, _, words in sentences(doc):
            made = self._doc(self._pipeline.vocab, words=words)
            for span in self._pipeline.get_pipe("ner")(made).ents:
                start, end = doc.tokens[first + span.start, 0], doc.tokens[first + span.end - 1, 1]
                spans.append(Span(int(start), int(end), span.label_))
        return spans


PEERS: dict[str, Callable[[], Any]] = {
    "crfsuite": partial(CRF, features, _tags, algorithm="pa", iterations=20),
    "spacy": SpaCy,
}
