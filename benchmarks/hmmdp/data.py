"""The corpora of the HMM-DP benchmark: what is trained on and what is tagged, and the category of every type.

MEDDOCAN's own development notes are the test set; with split "dev" they are not read, and 100 training notes, chosen
by a hash of their names, are tagged instead. Lines are sentences everywhere.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Literal

import chaffinch as cf
from chaffinch import Document, Span
from chaffinch.models.hmmdp.rules import Rules
from chaffinch.text.formats import ReadOptions
from chaffinch.text.formats.walk import entries

FOLDS = 5
HELD_OUT = 100  # training notes that are tagged with split "dev"
TRAIN = "meddocan/meddocan-train.tar.gz"
TEST = "meddocan/meddocan-dev.tar.gz"
ACI = "aci-phi/aci-phi-xml.tar.gz"
PATIENTS = 100, 60  # generated: to train on, to test on
NOTES_EACH = 6
_TAG = re.compile(r'<([A-Z]+) [^<>]*?\bTYPE="([^"]+)"')

Corpus = Literal["meddocan", "grascco", "aci", "synth", "notes", "i2b2"]


@dataclass(frozen=True, slots=True)
class Sample:
    """What to train on and what to tag; `notes` above 0 trains on so many, the `draw`-th choice of them."""

    corpus: Corpus = "meddocan"
    split: Literal["dev", "test"] = "test"  # for MEDDOCAN
    fold: int = 0  # for GraSCCo and aci-phi: the fold that is tagged
    notes: int = 0
    draw: int = 0
    folder: str = ""  # of a corpus in the layout of i2b2 2014


def documents(data: Path, sample: Sample) -> tuple[list[Document], list[Document]]:
    """Documents to train on, documents to tag."""
    train, test = _both(data, sample)
    if sample.notes:
        train = sorted(train, key=lambda doc: digest(f"{sample.draw}:{doc.id}"))[: sample.notes]
    return train, test


def _both(data: Path, sample: Sample) -> tuple[list[Document], list[Document]]:
    if sample.corpus == "synth":
        return _generated()
    if sample.corpus in ("notes", "i2b2"):
        from benchmarks.hmmdp import tables

        return tables.read_own() if sample.corpus == "notes" else tables.read_layout(Path(sample.folder))
    if sample.corpus == "meddocan":
        train = _meddocan(data / TRAIN)
        if sample.split == "test":
            return train, _meddocan(data / TEST)
        held = {doc.id for doc in sorted(train, key=lambda doc: digest(stem(doc)))[:HELD_OUT]}
        return [doc for doc in train if doc.id not in held], [doc for doc in train if doc.id in held]
    docs = _grascco(data / "grascco-phi") if sample.corpus == "grascco" else _lines(data / ACI)
    inside = [int(digest(stem(doc)), 16) % FOLDS == sample.fold for doc in docs]
    apart = [doc for doc, own in zip(docs, inside, strict=True) if not own]
    return apart, [doc for doc, own in zip(docs, inside, strict=True) if own]


def stem(doc: Document) -> str:
    """The name of the document's file, without folders."""
    return PurePosixPath(doc.id).name


def digest(name: str) -> str:
    """A hash that chooses documents by their names."""
    return hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()


def _meddocan(path: Path) -> list[Document]:
    return list(cf.read(path, format="brat", how=ReadOptions(split="lines")))


def _lines(path: Path) -> list[Document]:
    return list(cf.read(path, how=ReadOptions(split="lines")))


def _grascco(path: Path) -> list[Document]:
    """The letters with our tokens and lines, as for the other corpora; of overlapping spans the longest stays."""
    from recipes.corpora import READERS

    return [
        Document.make(doc.text, id=doc.id, layers={"gold": cf.resolve(doc.layer("gold"))}, split="lines")
        for doc in READERS["grascco-phi"](path)
    ]


def _generated() -> tuple[list[Document], list[Document]]:
    """Notes of patients who do not exist; no name of the second list is in the first."""
    from chaffinch.deid.synth import notes as synth  # type: ignore[attr-defined,import-not-found,unused-ignore]

    train = synth.notes(PATIENTS[0], NOTES_EACH, seed=1, names="train")
    return list(train), list(synth.notes(PATIENTS[1], NOTES_EACH, seed=2, names="held-out"))


@cache
def categories(data: Path, corpus: Corpus) -> Mapping[str, str]:
    """The category of every type, as the tags of the training XML pair them (the most frequent pair counts)."""
    if corpus == "grascco":
        labels = {span.label for doc in _grascco(data / "grascco-phi") for span in doc.layer("gold")}
        return {label: label.partition("_")[0] for label in labels}
    if corpus in ("notes", "i2b2"):
        return dict(Rules.i2b2().categories)
    seen: Counter[tuple[str, str]] = Counter()
    for file in entries(data / (TRAIN if corpus == "meddocan" else ACI)):
        if file.suffix == ".xml":
            seen.update(_TAG.findall(file.text()))
    return {kind: category for (category, kind), _ in reversed(seen.most_common())}


def category(label: str, table: Mapping[str, str]) -> str:
    """The category of a type; one that training never had goes by how its name begins, else to OTHER.

    >>> category("ID_NEW", {"ID_OLD": "ID", "CITY": "LOCATION"}), category("SHOE", {"CITY": "LOCATION"})
    ('ID', 'OTHER')
    """
    known = set(table.values())
    return table.get(label) or next((one for one in sorted(known) if label.partition("_")[0] == one), "OTHER")


def as_categories(docs: Iterable[Document], layer: str, table: Mapping[str, str]) -> list[Document]:
    """The documents with the layer's types replaced by their categories."""
    return [doc.with_layer(layer, renamed(doc.layer(layer), table)) for doc in docs]


def renamed(spans: Sequence[Span], table: Mapping[str, str]) -> list[Span]:
    """The spans under the names of their categories."""
    return [replace(span, label=category(span.label, table)) for span in spans]
