"""The model of a detector: its taggers and their dial, saved in one file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from chaffinch import bundle
from chaffinch.bundle import Bundle, Manifest, State
from chaffinch.deid.detect import token_scores
from chaffinch.deid.detect.recall_dial import Dial
from chaffinch.deid.detect.token_scores import TokenIndex
from chaffinch.deid.detect.voices.context import ContextVoice
from chaffinch.deid.detect.voices.glance import GlanceVoice
from chaffinch.deid.detect.voices.stacking import Stack
from chaffinch.models import registry as methods
from chaffinch.models.alignment import model as alignment
from chaffinch.models.tagger import Step, Tagger
from chaffinch.models.tagger import load as load_tagger
from chaffinch.text import Document, Soft

KIND = "deid"
CONTEXT = "context"  # the part of a file that holds the reader
STACK = "stack"  # the part of a file that holds the second stage over the taggers
GLANCE = "glance"  # the part of a file that holds the glance
# The share of title-cased words up to which a document counts as caseless. Raised, sparsely capitalised notes are
# upper-cased too and lose the little their capitals tell; lowered, notes with a few stray capitals keep their case.
TITLED = 0.04


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """Taggers, whose probabilities are averaged, and their dial; without taggers, rules alone.

    `stack` is a second stage that scores doubtful words again, from what the taggers say around them; `glance` then
    looks at the words around those that are still doubtful, but only in a model without a reader, which sees more.

    The rules are for English; `rules=False` turns them off, for notes in other languages. `context` is a reader
    beside the taggers; the dial is then of both, and `fast` returns the model without it. A model that `overrules` may
    leave out what patterns find: that needs taggers that have learnt from notes of many writers.
    """

    taggers: tuple[Tagger, ...] = ()
    dial: Dial = field(default_factory=Dial)
    checksum: str = ""
    rules: bool = True
    context: ContextVoice | None = None
    overrules: bool = False
    stack: Stack | None = None
    glance: GlanceVoice | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the labels that any tagger or the reader can assign, sorted."""
        names = {name for tagger in self.taggers for name in tagger.labels}
        return tuple(sorted(names.union(() if self.context is None else self.context.reader.names)))

    def join_taggers(self, index: TokenIndex, docs: Sequence[Document], softs: Sequence[Soft]) -> Soft:
        """Return (N, L) the soft labels of all taggers as one: their mean, or what second stage and glance make of it.

        `index` holds the documents with cues, `docs` the same as they are written.
        """
        soft = token_scores.mean(softs) if self.stack is None else self.stack.rescore(index, softs)
        return soft if self.glance is None or self.context is not None else self.glance.join(soft, index, docs)

    def fast(self) -> Model:
        """Return the model without its contextual reader, with the dial of the taggers alone; itself if it has none."""
        return self if self.context is None else replace(self, dial=self.context.fast_dial, context=None)

    @property
    def digest(self) -> str:
        """Return the checksum of the model file; of a model without one, the joined checksums of its taggers."""
        return self.checksum or " ".join(tagger.manifest.checksum for tagger in self.taggers)

    def save(self, path: str | Path, *, corpus: str = "", notes: str = "") -> Model:
        """Write all parts, dial and rules to one file, atomically; return the model with the file's checksum."""
        state = State()
        for number, tagger in enumerate(self.taggers):
            state = state.with_child(f"tagger{number}", _state(tagger))
        taggers = [_tagger_config(tagger) for tagger in self.taggers]
        config = {"taggers": taggers, "dial": self.dial.to_dict(), "rules": self.rules, "overrules": self.overrules}
        if self.context is not None:
            state = state.with_child(CONTEXT, self.context.reader.state())
            config[CONTEXT] = self.context.describe()
        if self.stack is not None:
            state = state.with_child(STACK, self.stack.state())
            config[STACK] = {"taggers": self.stack.taggers}
        if self.glance is not None:
            state = state.with_child(GLANCE, self.glance.glance.state())
            config[GLANCE] = self.glance.describe()
        first = self.taggers[0].manifest if self.taggers else Manifest(KIND)
        floors = [tagger.manifest.vocabulary_floor for tagger in self.taggers]
        manifest = Manifest(
            KIND,
            config,
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
    """Load a detector's model by path or packaged name; a tagger's file gives one without dial; ModelError if bad."""
    found = bundle.load(path)
    if found.manifest.kind != KIND:
        tagger = load_tagger(path)
        return Model((tagger,), checksum=found.manifest.checksum)
    config = found.manifest.config
    with bundle.building(path):
        taggers = tuple(_tagger(found, number, part) for number, part in enumerate(config["taggers"]))
        dial = Dial.from_dict(config["dial"])
        voice = ContextVoice.of(config[CONTEXT], found.state.child(CONTEXT)) if CONTEXT in config else None
        rules, overrules = bool(config.get("rules", True)), bool(config.get("overrules", False))
        stack = Stack.of(found.state.child(STACK), int(config[STACK]["taggers"])) if STACK in config else None
        glance = GlanceVoice.of(config[GLANCE], found.state.child(GLANCE)) if GLANCE in config else None
        return Model(taggers, dial, found.manifest.checksum, rules, voice, overrules, stack, glance)


def upper_if_caseless(doc: Document) -> Document:
    """Return the document in upper case if at most 4 % of its words are title-cased; else unchanged.

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
    """Return the learnt arrays of a tagger's steps and, if it has one, of its aligner, for saving."""
    state = State()
    for number, step in enumerate(tagger.steps):
        state = state.with_child(f"step{number}", step.model.state())
    return state if tagger.aligner is None else state.with_child("align", tagger.aligner.state())


def _tagger_config(tagger: Tagger) -> dict[str, Any]:
    """Return the settings of a tagger's steps and aligner, for the manifest."""
    config: dict[str, Any] = {"steps": [step.manifest_entry for step in tagger.steps]}
    return config | ({} if tagger.aligner is None else {"align": asdict(tagger.aligner.config)})


def _tagger(found: Bundle, number: int, config: Mapping[str, Any]) -> Tagger:
    """Rebuild the tagger of this number from a model file and its settings in the manifest."""
    state = found.state.child(f"tagger{number}")
    parts = [
        state.child(f"step{position}", kind=step["kind"], config=step["config"], labels=step["labels"])
        for position, step in enumerate(config["steps"])
    ]
    layers, models = [step["layer"] for step in config["steps"]], list(map(methods.model_of, parts))
    aligner = alignment.Model.of(state.child("align", config=config["align"])) if "align" in config else None
    before = tuple(map(Step, layers[:-1], models[:-1]))
    return Tagger(models[-1], found.manifest.for_part(parts[-1]), before, layers[-1], aligner)
