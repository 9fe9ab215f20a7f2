"""The corpora of the relation benchmark: documents with parts of speech and chunks, a schema, and folds."""

from __future__ import annotations

import gzip
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from recipes.corpora import READERS

from benchmarks.hmmdp.data import digest
from chaffinch import Document, read
from chaffinch.models.phrasehmm.segments import add_parses
from chaffinch.relations import Schema
from chaffinch.relations.entities.logistic import folds

PROTEINS = Schema("PPI", ("e1", "e2"), ("protein", "protein"), symmetric=True)
LOCATIONS = Schema("protein-location", ("protein", "location"))
GENES = Schema("association", ("gene", "disease"), ("GENE", "DISEASE"))
INDUCED = Schema("CID", ("Chemical", "Disease"))
INTERACTIONS = ("AIMed", "HPRD50", "IEPA", "LLL")
FOLDS = 10


@dataclass(frozen=True, slots=True)
class Sample:
    """Documents, the relation to find, and the fold of each document."""

    name: str
    docs: list[Document]
    schema: Schema
    fold: list[int]

    @property
    def groups(self) -> list[str]:
        """What is learnt from or tested on together: a given fold, or else a document."""
        return [str(doc.meta["fold"]) if "fold" in doc.meta else doc.id for doc in self.docs]

    def some(self, count: int) -> Sample:
        """So many of the documents, chosen by a hash of their ids."""
        order = sorted(range(len(self.docs)), key=lambda n: digest(self.docs[n].id))[:count]
        kept = sorted(order)
        name = self.name if count >= len(self.docs) else f"{self.name}, {len(kept):,} sentences"
        return replace(self, name=name, docs=[self.docs[n] for n in kept], fold=[self.fold[n] for n in kept])


def own_pairs(data: Path, corpus: str) -> int:
    """Pairs of proteins in a sentence, counted in the corpus' files without our documents."""
    from math import comb

    from lxml import etree

    count = 0
    for path in sorted((data / "ppi-5corpora").glob(f"{corpus}-*.xml.gz")):
        root = etree.fromstring(gzip.decompress(path.read_bytes()))
        for sentence in root.iter("sentence"):
            places = {entity.get("charOffset") for entity in sentence.iter("entity")}
            count += comb(len(places), 2)
    return count


def interactions(data: Path, corpus: str) -> Sample:
    """One of the five corpora of protein-protein interactions, ten folds by document."""
    docs = [doc for doc in READERS["ppi-5corpora"](data / "ppi-5corpora") if doc.meta["corpus"] == corpus]
    return _by_document(corpus, docs, PROTEINS)


def locations(data: Path) -> Sample:
    """LocText, ten folds by document."""
    return _by_document("LocText", list(READERS["loctext"](data / "loctext")), LOCATIONS)


def genes(data: Path, corpus: str) -> Sample:
    """GAD or EU-ADR with the given folds; of sentences that are there twice the first stays."""
    seen: dict[str, Document] = {}
    for doc in READERS[corpus](data / corpus):
        seen.setdefault(" ".join(doc.text.split()), doc)
    docs = sorted(seen.values(), key=lambda doc: doc.id)
    numbers = sorted({doc.meta["fold"] for doc in docs})
    return Sample(corpus, add_parses(docs), GENES, [numbers.index(doc.meta["fold"]) for doc in docs])


def induced(data: Path, part: str) -> list[Document]:
    """A part of BC5CDR: "Training", "Development" or "Test"."""
    return add_parses(read(data / "bc5cdr" / f"CDR_{part}Set.PubTator.txt.gz"))


def without_parse(docs: list[Document]) -> list[Document]:
    """The documents with their gold layer alone."""
    return [replace(doc, layers={"gold": doc.layers["gold"]}) for doc in docs]


def _by_document(name: str, docs: list[Document], schema: Schema) -> Sample:
    ready = [replace(doc, layers={**doc.layers}) for doc in add_parses(docs)]
    plain = [replace(doc, layers={key: own for key, own in doc.layers.items() if key != "types"}) for doc in ready]
    return Sample(name, plain, schema, folds([doc.id for doc in plain], FOLDS, seed=0).tolist())


def split(sample: Sample, fold: int) -> tuple[list[Document], list[Document]]:
    """The documents outside a fold, and those in it."""
    numbers = np.array(sample.fold)
    held = set(np.flatnonzero(numbers == fold).tolist())
    return (
        [doc for n, doc in enumerate(sample.docs) if n not in held],
        [doc for n, doc in enumerate(sample.docs) if n in held],
    )
