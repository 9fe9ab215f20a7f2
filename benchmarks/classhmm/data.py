"""The corpora of the class HMM's benchmark: what is trained on, what is given without tags, and what is tagged.

With split "dev", CoNLL-2003's testa or held-out abstracts of JNLPBA are tagged and no test file is read. IE-ER is cut
to the seven types of MUC-7 and tagged by folds, chosen by a hash of the stories' names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import chaffinch as cf
from benchmarks.hmmdp.data import FOLDS, digest
from benchmarks.tagger import worker as others
from chaffinch import Document, Span

MUC = frozenset("DATE LOCATION MONEY ORGANIZATION PERCENT PERSON TIME".split())
TAGGED = 100, 500, 2_000  # sentences of the learning curve; those without tags come after the last of these
UNTAGGED = 0, 1_000, 10_000


@dataclass(frozen=True, slots=True)
class Sample:
    """What to train on and what to tag; `tagged` above 0 trains on so many sentences, the `draw`-th choice of them."""

    corpus: Literal["conll2003", "jnlpba", "ieer"] = "conll2003"
    split: Literal["dev", "test"] = "test"  # for CoNLL and JNLPBA
    fold: int = 0  # for IE-ER: the fold that is tagged
    tagged: int = 0
    untagged: int = 0  # further sentences, without tags
    draw: int = 0


class Texts(NamedTuple):
    """The documents of a sample."""

    train: list[Document]
    untagged: list[Document]
    test: list[Document]


def files(sample: Sample) -> tuple[str, ...]:
    """What is read for a sample, relative to the folder of the corpora."""
    if sample.corpus == "ieer":
        return ("ieer",)
    if sample.corpus == "jnlpba":
        return others.JNLPBA if sample.split == "test" else others.JNLPBA[:1]
    return others.CONLL[0], others.CONLL[1 if sample.split == "test" else 2]


def documents(data: Path, sample: Sample) -> Texts:
    """Documents to train on, documents without tags, documents to tag."""
    if sample.corpus == "ieer":
        docs = list(_stories(data / "ieer"))
        apart = [doc for doc in docs if fold_of(doc) != sample.fold]
        return Texts(apart, [], [doc for doc in docs if fold_of(doc) == sample.fold])
    train, test = others.documents(data, sample.corpus, sample.split)
    if not sample.tagged:
        return Texts(train, [], test)
    drawn = sorted(sentences(train), key=lambda doc: digest(f"{sample.draw}:{doc.id}"))
    after = drawn[max(TAGGED) :][: sample.untagged]
    return Texts(drawn[: sample.tagged], [_bare(doc) for doc in after], test)


def fold_of(doc: Document) -> int:
    """The fold of a story."""
    return int(digest(doc.id), 16) % FOLDS


def sentences(docs: Sequence[Document]) -> Iterator[Document]:
    """Every sentence that has a token, as a document of its own with the layer "gold".

    >>> spans, cuts = {"gold": [Span(11, 14, "PER")]}, [(0, 10), (11, 21)]
    >>> doc = Document.make("Ann left . Lee came .", id="a", layers=spans, sentences=cuts)
    >>> [(one.id, one.text, [span.start for span in one.layer("gold")]) for one in sentences([doc])]
    [('a-0', 'Ann left .', []), ('a-1', 'Lee came .', [0])]
    """
    for doc in docs:
        gold = doc.layer("gold")
        for number, (first, last) in enumerate(doc.sentence_tokens().tolist()):
            if last == first:
                continue
            tokens = doc.tokens[first:last]
            start, end = int(tokens[0, 0]), int(tokens[-1, 1])
            spans = [Span(s.start - start, s.end - start, s.label) for s in gold if start <= s.start and s.end <= end]
            yield Document.make(
                doc.text[start:end], id=f"{doc.id}-{number}", layers={"gold": spans}, tokens=tokens - start,
                sentences=[(0, end - start)],
            )  # fmt: skip


def _bare(doc: Document) -> Document:
    """The document without what is known of it."""
    return Document.make(doc.text, id=doc.id, tokens=doc.tokens, sentences=doc.sentences)


def _stories(path: Path) -> Iterator[Document]:
    """The stories with MUC-7's types alone; of overlapping spans the longest stays."""
    from recipes.corpora import READERS

    for doc in READERS["ieer"](path):
        spans = [span for span in doc.layer("gold") if span.label in MUC]
        yield Document.make(doc.text, id=doc.id, layers={"gold": cf.resolve(spans)})
