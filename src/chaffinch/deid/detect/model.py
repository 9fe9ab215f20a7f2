"""The models of a detector and their dial in one file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from chaffinch import bundle
from chaffinch.bundle import Bundle, Manifest
from chaffinch.deid.detect.recall_dial import Dial
from chaffinch.errors import ModelError
from chaffinch.models import registry as methods
from chaffinch.models.alignment import model as alignment
from chaffinch.models.alignment.config import Alignment
from chaffinch.models.tagger import Step, Tagger
from chaffinch.models.tagger import load as load_tagger
from chaffinch.text import Document

KIND = "deid"
TITLED = 0.04  # the share of words with a capital that documents have at least in which capitals tell anything


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """Taggers, whose chances are averaged, and the dial that was set for them; without taggers, rules alone.

    The rules are for English; `rules=False` leaves out what they find, for notes in other languages.
    """

    taggers: tuple[Tagger, ...] = ()
    dial: Dial = field(default_factory=Dial)
    checksum: str = ""
    rules: bool = True

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels the taggers know."""
        return tuple(sorted({name for tagger in self.taggers for name in tagger.labels}))

    @property
    def digest(self) -> str:
        """The checksum of its file, else those of its taggers."""
        return self.checksum or " ".join(tagger.manifest.checksum for tagger in self.taggers)

    def save(self, path: str | Path, *, corpus: str = "", notes: str = "") -> Model:
        """Writes one file, complete or not at all; returns the model with the file's checksum."""
        arrays: dict[str, Any] = {}
        strings: dict[str, tuple[str, ...]] = {}
        for number, tagger in enumerate(self.taggers):
            for prefix, own in _parts(tagger):
                more, words = own.arrays()
                arrays |= {f"tagger{number}.{prefix}{name}": array for name, array in more.items()}
                strings |= {f"tagger{number}.{prefix}{name}": word for name, word in words.items()}
        told = {"taggers": [_told(tagger) for tagger in self.taggers], "dial": self.dial.told(), "rules": self.rules}
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
        try:
            return replace(self, checksum=bundle.save(path, manifest, arrays, strings).checksum)
        except OSError as error:
            raise ModelError(f"cannot be written ({error.strerror}); an older file is as it was", path=path) from None


def load(path: str | Path) -> Model:
    """The model of a file or of a packaged name; a file of one tagger is a model of one tagger without a dial."""
    found = bundle.load(path)
    if found.manifest.kind != KIND:
        tagger = load_tagger(path)
        return Model((tagger,), checksum=found.manifest.checksum)
    told = found.manifest.config
    try:
        taggers = tuple(_tagger(found, number, own) for number, own in enumerate(told["taggers"]))
        return Model(taggers, Dial.of(told["dial"]), found.manifest.checksum, bool(told.get("rules", True)))
    except (KeyError, TypeError, ValueError):
        raise ModelError("its settings cannot be read; train it anew", path=bundle.find(path)) from None
    except ModelError as error:
        raise ModelError(error.message, path=bundle.find(path)) from None


def legible(doc: Document) -> Document:
    """The document as English taggers read it: one whose words all begin alike, where case says nothing, in capitals.

    >>> legible(Document.make("seen by dr. penn.")).text
    'SEEN BY DR. PENN.'
    """
    codes = np.frombuffer(f" {doc.text} ".encode("ascii", "replace"), np.uint8)
    small = (codes >= ord("a")) & (codes <= ord("z"))
    large = (codes >= ord("A")) & (codes <= ord("Z"))
    begins = ~(small | large)[:-2] & small[2:]  # of words whose second letter is small
    titled, plain = np.count_nonzero(begins & large[1:-1]), np.count_nonzero(begins & small[1:-1])
    text = doc.text if titled > TITLED * (titled + plain) else doc.text.upper()
    return replace(doc, text=text) if len(text) == len(doc.text) else doc


def _parts(tagger: Tagger) -> list[tuple[str, Any]]:
    """The models of a tagger with the prefixes of their arrays."""
    steps: list[tuple[str, Any]] = [(f"step{number}.", step.model) for number, step in enumerate(tagger.steps)]
    return steps + ([("align.", tagger.aligner)] if tagger.aligner is not None else [])


def _told(tagger: Tagger) -> dict[str, Any]:
    told: dict[str, Any] = {"steps": [step.told for step in tagger.steps]}
    return told | ({} if tagger.aligner is None else {"align": asdict(tagger.aligner.config)})


def _tagger(found: Bundle, number: int, told: Mapping[str, Any]) -> Tagger:
    prefix = f"tagger{number}."
    steps = []
    for place, own in enumerate(told["steps"]):
        manifest = replace(found.manifest, kind=own["kind"], config=own["config"], labels=tuple(own["labels"]))
        part = Bundle(manifest, *_within(found, f"{prefix}step{place}."))
        steps.append(Step(own["layer"], methods.model_of(part)))
    aligner = None
    if "align" in told:
        aligner = alignment.Model.of(msgspec.convert(told["align"], Alignment), *_within(found, f"{prefix}align."))
    last = told["steps"][-1]
    manifest = replace(found.manifest, kind=last["kind"], config=last["config"], labels=tuple(last["labels"]))
    return Tagger(steps[-1].model, manifest, tuple(steps[:-1]), last["layer"], aligner)


def _within(found: Bundle, prefix: str) -> tuple[dict[str, Any], dict[str, Any]]:
    arrays, strings = (
        {name.removeprefix(prefix): own for name, own in items.items() if name.startswith(prefix)}
        for items in (found.arrays, found.strings)
    )
    return arrays, strings
