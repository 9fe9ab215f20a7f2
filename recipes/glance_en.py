"""Makes the glance of `deid-en`: a small net that reads doubtful words among their neighbours, for `--fast` as well.

Needs the extras neural and minilm, and about 5 CPU minutes. `recipes.deid_en` makes the packaged model with it. It
learns from what the reader learns from (`recipes.reader_en`), from other copies.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks.deid.writers.corpus import GUIDELINE_TYPES

from chaffinch import bundle
from chaffinch.bundle import Manifest
from chaffinch.deid.detect import cues
from chaffinch.deid.detect.model import upper_if_caseless
from chaffinch.deid.detect.word_lists import word_lists
from chaffinch.deid.training.course import Course
from chaffinch.deid.training.rewrite.redraw import Redrawer
from chaffinch.models.core.training import Progress, Watcher
from chaffinch.models.reader.glance.config import Glance
from chaffinch.models.reader.glance.fit import Cued, fit
from chaffinch.models.reader.glance.model import KIND, Model
from chaffinch.text import Document
from chaffinch.text.view import ShownDocument
from recipes import reader_en

SEED = 1  # of the copies: other ones than the reader's


def with_cues(doc: Document) -> Cued:
    """Return a document as a detector shows it to its voices, with its gold layer, and the same with cues."""
    shown = ShownDocument.of(doc).shown
    (cued,) = cues.with_cues([upper_if_caseless(replace(shown, layers={}))], word_lists())
    return Cued(shown, cued)


def make(data: Path, config: Glance | None = None) -> Model:
    """Return the glance of the packaged model, learnt from the train writers and a folder of corpora."""
    notes, course = reader_en.read(data), Course(seed=SEED)
    redraw = Redrawer.of(notes.written)

    def epoch(number: int) -> Iterator[Cued]:
        """Yield the notes of an epoch, most of them with other identifiers."""
        yield from map(with_cues, course.epoch(notes, redraw, number))

    return fit(epoch, sorted(GUIDELINE_TYPES), config or Glance(layers=cues.LAYERS), watcher=Watcher(tell=_tell))


def save(model: Model, path: Path) -> None:
    """Write a glance to a file of its own."""
    from dataclasses import asdict

    state = model.state()
    bundle.save(path, Manifest(KIND, asdict(model.config), model.names), state.arrays, state.strings)


def load(path: Path) -> Model:
    """Read the glance of a file."""
    found = bundle.load(path)
    with bundle.building(path):
        return Model.of(found.state)


def _tell(progress: Progress) -> None:
    sys.stderr.write(f"epoch {progress.epoch} of {progress.epochs}: loss {progress.loss:.4f}\n")
    sys.stderr.flush()


def main() -> None:
    """Reads the notes, learns, writes the file."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--output", type=Path, required=True, help="the file to write")
    arguments.add_argument("--data", default=os.environ.get("CHAFFINCH_DATA"), help="folder of the corpora")
    arguments.add_argument("--epochs", type=int, default=Glance().epochs)
    chosen = arguments.parse_args()
    if not chosen.data:
        arguments.error("name the folder of the corpora with --data or CHAFFINCH_DATA")
    save(make(Path(chosen.data), Glance(layers=cues.LAYERS, epochs=chosen.epochs)), chosen.output)


if __name__ == "__main__":
    main()
