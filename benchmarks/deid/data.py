"""The notes of the de-identification benchmark: Spanish ones, English ones in folds, and plain prose.

`older_notes/dev.txt` and `older_notes/test.txt` are notes of thirteen invented hospitals, written for this benchmark
with every identifier marked as [[LABEL:text]]. Nothing is learnt from them, but developers know them; `writers` reads
the notes that nobody tuned on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Literal, TypeAlias

from benchmarks.hmmdp import data as spanish
from chaffinch import Document, Span
from chaffinch.deid.synth import notes as synth
from recipes import abstracts, deid_en

Fold: TypeAlias = Literal["aci-phi", "asq-phi", "sites ab", "sites cd", "sites ef", "written"]

FOLDS: tuple[Fold, ...] = ("aci-phi", "asq-phi", "sites ab", "sites cd", "sites ef")
CORPORA: tuple[Fold, ...] = ("aci-phi", "asq-phi")  # neither reader nor second stage of the packaged model knows them
SITES: Fold = "sites ef"  # where one fold of generated notes is enough
WRITTEN: Fold = "written"  # all corpora and sites are learnt from
PATIENTS, NOTES_EACH = 40, 3  # of held-out sites
PROSE = {"ncbi-disease/NCBItestset_corpus.txt.gz": 100, "bc5cdr/CDR_TestSet.PubTator.txt.gz": 100}


def meddocan(data: Path, split: str) -> tuple[list[Document], list[Document], list[Document]]:
    """Notes to learn from, notes for the dial, notes to measure on; with split "dev", all are training notes."""
    train, held = spanish.documents(data, spanish.Sample(split="dev"))
    if split == "test":
        return train, held, spanish.documents(data, spanish.Sample(split="test"))[1]
    order = sorted(train, key=lambda doc: spanish.digest(spanish.stem(doc)))
    return order[spanish.HELD_OUT :], order[: spanish.HELD_OUT], held


def english(data: Path, fold: Fold, split: str = "test") -> tuple[list[Document], list[Document]]:
    """Notes to learn from and notes to measure on, which share no corpus or site, and no name where we invent them."""
    parts = deid_en.corpora(data, names="train")
    test = list(written(split)) if fold == WRITTEN else parts.pop(fold) if fold in parts else other_sites(fold)
    sites = {f"site-{site}" for site in _sites(fold)}
    return [doc for docs in parts.values() for doc in docs if doc.meta["source"] not in sites], test


def written(split: str) -> Iterator[Document]:
    """The notes written with marks, those to look at ("dev") or those to report on ("test")."""
    text = (Path(__file__).parent / "older_notes" / f"{split}.txt").read_text(encoding="utf-8")
    for number, own in enumerate(re.split(r"(?m)^=====\n", text), 1):
        yield marked(own, f"written-{split}-{number:02d}")


def marked(text: str, name: str) -> Document:
    """The document of a text with marks.

    >>> marked("Dr. [[DOCTOR:Penn]] came.", "a").layer("gold")[0].end
    8
    """
    parts, spans, size = [], [], 0
    for plain, label, own in re.findall(r"(.*?)(?:\[\[([A-Z-]+):([^\[\]]+)\]\]|\Z)", text, re.DOTALL):
        parts += [plain, own]
        size += len(plain) + len(own)
        spans += [Span(size - len(own), size, label)] if label else []
    return Document.make("".join(parts), id=name, layers={"gold": spans})


def other_sites(fold: Fold = SITES, patients: int = PATIENTS, seed: int = 1) -> list[Document]:
    """Notes of the sites of a fold and of the half of names that are kept out of training."""
    return synth.notes(patients, NOTES_EACH, seed=seed, names="held-out", style="varied", sites=_sites(fold))


def _sites(fold: Fold) -> str:
    return fold.removeprefix("sites ") if fold.startswith("sites ") else ""


def prose(data: Path) -> list[Document]:
    """Abstracts without identifiers, of which none is learnt from."""
    return [doc for place, count in PROSE.items() for doc in islice(abstracts.plain(data / place), count)]


def halves(docs: Sequence[Document]) -> tuple[list[Document], list[Document]]:
    """The documents of every other patient, and those of the rest."""
    patients = {name: place for place, name in enumerate(dict.fromkeys(doc.patient for doc in docs))}
    even = [patients[doc.patient] % 2 == 0 for doc in docs]
    first = [doc for doc, own in zip(docs, even, strict=True) if own]
    return first, [doc for doc, own in zip(docs, even, strict=True) if not own]
