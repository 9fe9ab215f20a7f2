"""The corpora of the weak-supervision benchmark: votes to learn from, gold that may stop it, documents to label.

Learnt from are the votes of train and valid, where the corpus has both; with split "dev", valid is labelled, the votes
to learn from are those of train, and the test file is not read. Corpora without train learn from valid. A document
keeps its gold only where it may be looked at. Of meta.json nothing is read but the names of the sources.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

import chaffinch as cf
from benchmarks.hmmdp.data import digest
from chaffinch import Document, Span

Corpus = Literal["NCBI-Disease", "BC5CDR", "CoNLL", "MIT-Restaurants", "own"]
FOLDERS: Mapping[str, str] = {
    "NCBI-Disease": "chmm-alt-weak/NCBI-Disease", "BC5CDR": "chmm-alt-weak/BC5CDR", "CoNLL": "chmm-alt-weak/CoNLL",
    "MIT-Restaurants": "mit-restaurants-weak",
}  # fmt: skip
ABSTRACTS: tuple[Corpus, ...] = ("NCBI-Disease", "BC5CDR")
CORPORA: tuple[Corpus, ...] = (*ABSTRACTS, "CoNLL", "MIT-Restaurants")
STOPPING = 100  # train documents whose gold stops alternate training with split "dev"
SOURCE, GOLD = "source:", "gold"


@dataclass(frozen=True, slots=True)
class Sample:
    """A corpus, the part that is labelled, its sources; `gold` above 0 adds so many gold documents, the `draw`-th.

    The corpus "own" is the user's: `folder` has its files, as the publication lays them out.
    """

    corpus: Corpus = "NCBI-Disease"
    split: Literal["dev", "test"] = "test"
    sources: Literal["recommended", "all"] = "recommended"
    gold: int = 0
    draw: int = 0
    folder: str = ""


class Texts(NamedTuple):
    """The documents of a sample."""

    votes: list[Document]  # to learn from, without gold
    train: list[Document]  # those of train alone, or those but for the ones that stop; with gold
    stop: list[Document]  # with gold
    test: list[Document]  # to label, with gold
    known: list[Document]  # as many gold documents as the sample adds; of `votes`, but with gold


class Names(msgspec.Struct):
    """The only fields of a meta.json that are read: names of all sources, and of those that are recommended, if any."""

    lf: list[str]
    lf_rec: list[str] = []


def files(sample: Sample) -> tuple[str, ...]:
    """What is read for a sample, relative to the folder of the corpora."""
    parts = ("valid",) if sample.split == "dev" else ("valid", "test")
    if sample.corpus in (*ABSTRACTS, "own"):
        parts = ("train", *parts)
    folder = sample.folder or FOLDERS[sample.corpus]
    plain = {part for part in parts if sample.folder and (Path(folder) / f"{part}.json").is_file()}
    return (f"{folder}/meta.json", *(f"{folder}/{part}.json{'' if part in plain else '.gz'}" for part in parts))


def documents(data: Path, sample: Sample) -> Texts:
    """The documents of a sample."""
    meta, *paths = files(sample)
    names = msgspec.json.decode((data / meta).read_bytes(), type=Names)
    kept = (names.lf_rec if sample.sources == "recommended" else []) or names.lf
    parts = {Path(path).name.partition(".")[0]: _read(data / path, kept) for path in paths}
    test = parts["valid" if sample.split == "dev" else "test"]
    train, stop = parts.get("train", []), parts["valid"]
    if train and sample.split == "dev":
        stop = sorted(train, key=_place)[: min(STOPPING, len(train) // 2)]
        train = sorted(train, key=_place)[len(stop) :]
    votes = [*parts.get("train", []), *([] if sample.split == "dev" and train else parts["valid"])]
    known = sorted(votes, key=lambda doc: digest(f"{sample.draw}:{doc.id}"))[: sample.gold]
    return Texts([bare(doc) for doc in votes], train or votes, stop, test, known)


def bare(doc: Document) -> Document:
    """The document without gold."""
    return replace(doc, layers={name: spans for name, spans in doc.layers.items() if name != GOLD})


def with_gold_source(docs: Sequence[Document], known: Iterable[Document]) -> list[Document]:
    """Documents with one more source, "gold", that says all of the known ones and nothing of others.

    Where it has no span it votes for "not an entity", token by token.

    >>> doc = Document.make("Ann came", id="a", layers={"gold": [Span(0, 3, "PER")]})
    >>> [(span.start, span.label) for span in with_gold_source([bare(doc)], [doc])[0].layer("source:gold")]
    [(0, 'PER'), (4, 'O')]
    """
    right = {doc.id: doc.layer(GOLD) for doc in known}
    return [doc.with_layer(SOURCE + GOLD, _said(doc, right[doc.id]) if doc.id in right else []) for doc in docs]


def consensus(docs: Sequence[Document], layer: str) -> list[Document]:
    """The documents with a layer of what the best choice among the sources' spans would be: those that are right."""
    return [
        doc.with_layer(layer, sorted(set(doc.layer(GOLD)) & {
            span for name, spans in doc.layers.items() if name.startswith(SOURCE) for span in spans
        }))
        for doc in docs
    ]  # fmt: skip


def _read(path: Path, kept: Sequence[str]) -> list[Document]:
    """The documents of a file with gold and some of its sources; ids say the file too."""
    wanted = (GOLD, *(SOURCE + name for name in kept))
    part = path.name.partition(".")[0]
    return [
        replace(doc, id=f"{part}-{doc.id}", layers={name: doc.layers.get(name, ()) for name in wanted})
        for doc in cf.read(path, format="weak")
    ]


def _said(doc: Document, gold: Sequence[Span]) -> list[Span]:
    inside = {place for span in gold for place in range(span.start, span.end)}
    free = [(a, b) for a, b in doc.tokens.tolist() if not inside & set(range(a, b))]
    return sorted([*gold, *(Span(a, b, "O") for a, b in free)])


def _place(doc: Document) -> str:
    return digest(doc.id)
