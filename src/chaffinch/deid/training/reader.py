"""The contextual reader of a model adapted to reviewed notes of a site, of which it sees no marked identifier.

    reviewed notes  →  every identifier drawn again, in each epoch  →  the reader learns further
    generated notes, so that it forgets nothing                     →

What may move in it is in `models.reader.further`: no word vector and no matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec

from chaffinch.deid.detect.model import Model
from chaffinch.deid.detect.voices.context import ContextVoice
from chaffinch.deid.synth import notes as synth
from chaffinch.deid.training.course import Course, Notes, read_types
from chaffinch.deid.training.learn import GOLD, ProgressCallback
from chaffinch.deid.training.rewrite.redraw import Redrawer
from chaffinch.errors import ConfigError, DataError, MissingExtraError
from chaffinch.models.core.training import Watcher
from chaffinch.models.reader.config import Reader
from chaffinch.models.reader.further import fit_further
from chaffinch.text import Document
from chaffinch.text.view import ShownDocument

MODULES = ("torch", "transformers")  # what learning imports, of the extra `EXTRA`
EXTRA = "neural"
# Reviewed notes; a check learns from half of them, and with ten the gain on dev writers is within the noise.
FEWEST = 20
FEWEST_PATIENTS = 2  # of them: the dial is set on one that the reader did not learn from
# Trials on dev writers: a rate of 2e-3, or new parts that learn five times as fast, undo what the reader knows.
EPOCHS, RATE, HEAD, PIECES = 5, 5e-4, 1.0, 640
GENERATED = 60  # notes that are generated for an epoch at most; else as many as were reviewed
LENDERS = 60  # generated notes that lend institutions and places


def adapt_reader(
    voice: ContextVoice, reviewed: Sequence[Document], *, seed: int = 0, tell: ProgressCallback | None = None
) -> ContextVoice:
    """Return the voice with its reader adapted to notes with a layer "gold"; DataError if none, MissingExtraError.

    No identifier of that layer is shown to the reader: each is replaced by an invented one of its kind, by another in
    every epoch. Dates and ages in words stay. The same notes, seed and versions give the same reader.
    """
    if not reviewed:
        raise DataError("there are no reviewed notes that the reader could learn from; review some")
    labels = frozenset(voice.reader.names)
    # Identifiers of other kinds than the reader's stay marked: they are drawn again, and not learnt from.
    written = [read_types(ShownDocument.of(doc).shown).document(doc.id) for doc in reviewed]
    course = Course(redrawn=1.0, own_style=True, generated=min(len(reviewed), GENERATED), plain=0, seed=seed)
    redraw = Redrawer.of(synth.notes(LENDERS, 1, seed=seed + 11, style="varied"), hide=True)
    notes, watcher = Notes(written, labels), Watcher(tell=tell)
    config = Reader(epochs=EPOCHS, rate=RATE, head=HEAD, pieces=PIECES, seed=seed)
    reader = fit_further(
        voice.reader, lambda number: course.epoch(notes, redraw, number), config, layer=GOLD, watcher=watcher
    )
    if watcher.interrupted:
        raise KeyboardInterrupt
    return replace(voice, reader=reader, adapted=voice.adapted + len(reviewed))


def require_enough(model: Model, reviewed: Sequence[Document]) -> None:
    """Raise MissingExtraError, ConfigError or DataError unless a model's reader can learn from this number of notes."""
    if model.context is None:
        raise ConfigError(
            "this model has no contextual reader to adapt; begin with deid-en, or leave out --adapt-reader"
        )
    if len(reviewed) < FEWEST:
        raise DataError(
            f"{len(reviewed)} reviewed notes are too few for the contextual reader; review {FEWEST} or more, or leave "
            "out --adapt-reader"
        )
    if len({doc.patient for doc in reviewed}) < FEWEST_PATIENTS:
        raise DataError(
            "all reviewed notes are of one patient, so that none is left to set the dial of the contextual reader on; "
            "review notes of another patient, or leave out --adapt-reader"
        )
    for module in MODULES:
        if find_spec(module) is None:
            raise MissingExtraError(module, EXTRA)


def describe_reader(model: Model) -> list[str]:
    """Return in a sentence what became of the contextual reader of an adapted model; nothing if it has none."""
    if model.context is None:
        return []
    both = "the dials with it and without it (--fast) were set anew."
    if not model.context.adapted:
        return [f"The contextual reader was not adapted and reads as before; {both}"]
    return [
        f"The contextual reader has learnt from {model.context.adapted:,} reviewed notes, with invented identifiers in "
        f"place of those that are marked; {both}"
    ]
