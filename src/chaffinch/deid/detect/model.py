"""The models of a detector and their dial in one file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from chaffinch import bundle
from chaffinch.bundle import Bundle, Manifest, State
from chaffinch.deid.detect.context import ContextVoice
from chaffinch.deid.detect.recall_dial import Dial
from chaffinch.errors import ModelError
from chaffinch.models import registry as methods
from chaffinch.models.alignment import model as alignment
from chaffinch.models.tagger import Step, Tagger
from chaffinch.models.tagger import load as load_tagger
from chaffinch.text import Document

KIND = "deid"
CONTEXT = "context"  # the part of a file that holds the reader
TITLED = 0.04  # the share of words with a capital that documents have at least in which capitals tell anything


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """Taggers, whose chances are averaged, and the dial that was set for them; without taggers, rules alone.

    The rules are for English; `rules=False` leaves out what they find, for notes in other languages. `context` is a
    reader beside the taggers; the dial is then of both, and `fast` gives the model without it.
    """

    taggers: tuple[Tagger, ...] = ()
    dial: Dial = field(default_factory=Dial)
    checksum: str = ""
    rules: bool = True
    context: ContextVoice | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels the taggers and the reader know."""
        names = {name for tagger in self.taggers for name in tagger.labels}
        return tuple(sorted(names.union(() if self.context is None else self.context.reader.names)))

    def fast(self) -> Model:
        """Return the model without its reader, with the dial that was set without it; itself if it has none."""
        return self if self.context is None else replace(self, dial=self.context.fast_dial, context=None)

    @property
    def digest(self) -> str:
        """The checksum of its file, else those of its taggers."""
        return self.checksum or " ".join(tagger.manifest.checksum for tagger in self.taggers)

    def save(self, path: str | Path, *, corpus: str = "", notes: str = "") -> Model:
        """Write one file, complete or not at all; return the model with the file's checksum."""
        state = State()
        for number, tagger in enumerate(self.taggers):
            state = state.with_child(f"tagger{number}", _state(tagger))
        told = {"taggers": [_told(tagger) for tagger in self.taggers], "dial": self.dial.told(), "rules": self.rules}
        if self.context is not None:
            state = state.with_child(CONTEXT, self.context.reader.state())
            told[CONTEXT] = self.context.describe()
        first = self.taggers[0].manifest if self.taggers else Manifest(KIND)
        floors = [tagger.manifest.vocabulary_floor for tagger in self.taggers]
        manifest = Manifest(
            KIND,
            told,
            self.labels,
            first.seed,
            corpus or first.corpus,
            first.documents,
            first.patients,
            min(floors, default=0),
            first.metrics,
            notes or first.notes,
        )
        return replace(self, checksum=bundle.save(path, manifest, state.arrays, state.strings).checksum)


def load(path: str | Path) -> Model:
    """The model of a file or of a packaged name; a file of one tagger is a model of one tagger without a dial."""
    found = bundle.load(path)
    if found.manifest.kind != KIND:
        tagger = load_tagger(path)
        return Model((tagger,), checksum=found.manifest.checksum)
    told = found.manifest.config
    try:
        taggers = tuple(_tagger(found, number, own) for number, own in enumerate(told["taggers"]))
        voice = ContextVoice.of(told[CONTEXT], found.state.child(CONTEXT)) if CONTEXT in told else None
        return Model(taggers, Dial.of(told["dial"]), found.manifest.checksum, bool(told.get("rules", True)), voice)
    except (KeyError, TypeError, ValueError):
        raise ModelError("its settings cannot be read; train it anew", path=bundle.find(path)) from None
    except ModelError as error:
        raise ModelError(error.message, path=bundle.find(path)) from None


def upper_if_caseless(doc: Document) -> Document:
    """Return the document in capitals if its casing says nothing (few words begin with a capital), else as it is.

    >>> upper_if_caseless(Document.make("seen by dr. penn.")).text
    'SEEN BY DR. PENN.'
    """
    codes = np.frombuffer(f" {doc.text} ".encode("ascii", "replace"), np.uint8)
    small = (codes >= ord("a")) & (codes <= ord("z"))
    large = (codes >= ord("A")) & (codes <= ord("Z"))
    begins = ~(small | large)[:-2] & small[2:]  # of words whose second letter is small
    titled, plain = np.count_nonzero(begins & large[1:-1]), np.count_nonzero(begins & small[1:-1])
    text = doc.text if titled > TITLED * (titled + plain) else doc.text.upper()
    return replace(doc, text=text) if len(text) == len(doc.text) else doc


def _state(tagger: Tagger) -> State:
    """Return what a tagger learnt, step by step."""
    state = State()
    for number, step in enumerate(tagger.steps):
        state = state.with_child(f"step{number}", step.model.state())
    return state if tagger.aligner is None else state.with_child("align", tagger.aligner.state())


def _told(tagger: Tagger) -> dict[str, Any]:
    told: dict[str, Any] = {"steps": [step.told for step in tagger.steps]}
    return told | ({} if tagger.aligner is None else {"align": asdict(tagger.aligner.config)})


def _tagger(found: Bundle, number: int, told: Mapping[str, Any]) -> Tagger:
    """Return one of the taggers of a model file, as its manifest describes it."""
    state = found.state.child(f"tagger{number}")
    parts = [
        state.child(f"step{place}", kind=step["kind"], config=step["config"], labels=step["labels"])
        for place, step in enumerate(told["steps"])
    ]
    layers, models = [step["layer"] for step in told["steps"]], list(map(methods.model_of, parts))
    aligner = alignment.Model.of(state.child("align", config=told["align"])) if "align" in told else None
    before = tuple(map(Step, layers[:-1], models[:-1]))
    return Tagger(models[-1], found.manifest.for_part(parts[-1]), before, layers[-1], aligner)
