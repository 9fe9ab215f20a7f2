"""Abstracts of papers that hold no identifier, as they are and in the layout of notes, to learn what is none."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np

import chaffinch
from chaffinch.deid.training.learn import DIAL, SOURCE
from chaffinch.text import Document

ABSTRACTS = {"bc5cdr/CDR_TrainingSet.PubTator.txt.gz": 150, "ncbi-disease/NCBItrainset_corpus.txt.gz": 100}
TITLES = (
    "ASSESSMENT AND PLAN", "PHYSICAL EXAMINATION", "Review of Systems:", "RESULTS", "Impression", "HPI:", "VITALS",
    "PAST HISTORY", "Medical", "CHIEF COMPLAINT", "Plan:", "INSTRUCTIONS", "Findings", "Data Reviewed", "Medications:",
)  # fmt: skip
LEADS = (
    "Pain: ", "Inspection: ", "Palpation: ", "Neuro: ", "Medical Reasoning: ", "Normal. ", "Testing: ", "1. ",
    "Patient reports ", "The patient has ", "Positive for ", "General: ", "Phone: none. ", "Her ", "His ",
)  # fmt: skip


def abstracts(data: Path) -> list[Document]:
    """The first abstracts of the training sets of BC5CDR and NCBI Disease, and the same in the layout of notes."""
    found = [doc for place, number in ABSTRACTS.items() for doc in islice(plain(data / place), number)]
    return [*found, *in_layout(found)]


def plain(path: Path) -> Iterator[Document]:
    """Abstracts of a PubTator file, with an empty layer "gold"."""
    for number, doc in enumerate(chaffinch.read(path, format="pubtator")):
        source = {SOURCE: f"abstracts-{number % 3}", DIAL: False}
        yield Document.make(doc.text, id=f"{path.name}-{doc.id}", meta=source, layers={"gold": []})


def in_layout(docs: Iterable[Document]) -> Iterator[Document]:
    """The sentences of abstracts in the layout of notes: under titles, in lists, and cut so that any word begins one.

    So words that identify nobody stand where names often do, with a capital.
    """
    for doc in docs:
        rng = np.random.default_rng(int(hashlib.sha256(doc.id.encode()).hexdigest()[:12], 16))
        lines = [f"{rng.choice(TITLES)}\n"]
        bullet = str(rng.choice(["", "", "- ", "* ", "• ", "#. "]))
        for number, sentence in enumerate(re.split(r"(?<=[.?!]) +(?=[A-Z])", doc.text.replace("\n", " ")), 1):
            words = sentence.split()
            start = int(rng.integers(len(words))) if rng.integers(2) and words else 0
            clause = " ".join(words[start : start + int(rng.integers(2, 25))])
            lead = str(rng.choice(LEADS)) if rng.integers(4) == 0 else ""
            lines.append(bullet.replace("#", str(number)) + lead + clause[:1].upper() + clause[1:])
            lines += [f"\n{rng.choice(TITLES)}\n"] if rng.integers(5) == 0 else []
        text = "\n".join(lines) if rng.integers(3) else " ".join(lines)
        yield Document.make(text, id=f"{doc.id} in layout", meta=doc.meta, layers={"gold": []})
