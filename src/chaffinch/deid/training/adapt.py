"""A model made at home in the user's own notes, labels or none.

    notes  →  patterns, model, known words and protected terms vote  →  votes joined  →  each tagger learns on
           →  the taggers, and a dial set anew

Silence abstains: where nobody votes and the old model is not sure of O, the new tagger is told nothing. It learns from
generated notes as well, so that nothing is forgotten. T tokens, L tags, the first of which is O.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from chaffinch.deid.detect import cues
from chaffinch.deid.detect import recall_dial as dial
from chaffinch.deid.detect.detector import LAYER, HybridDetector
from chaffinch.deid.detect.model import Model, upper_if_caseless
from chaffinch.deid.detect.token_scores import over
from chaffinch.deid.detect.word_lists import WordLists, word_lists
from chaffinch.deid.kinds import kind_of
from chaffinch.deid.patterns import find as patterns
from chaffinch.deid.synth import notes as synth
from chaffinch.deid.training.learn import GOLD, LOWEST, DetectorLesson, Tell, as_learnt, learn, read, with_lists
from chaffinch.errors import ConfigError, DataError
from chaffinch.models import tagger
from chaffinch.models.core.labels import Fitted, Labels, pieces_of
from chaffinch.models.registry import METHODS, Config, method_of
from chaffinch.models.tagger import Tagger
from chaffinch.models.votes.multihmm.fit import MultiHMM
from chaffinch.text import Document, Soft, Span, resolve
from chaffinch.weak import aggregate
from chaffinch.weak.votes import SOURCE

FEWEST = 2  # notes to adapt on
SURE_OF_O = 0.98  # from here on the old model votes O
KNOWN_TIMES, KNOWN_SHARE = 2, 0.6  # a word is known by its place: found in so many notes, and most of the times
EPOCHS = 4
REPLAYED = 60  # patients of generated notes, with three notes each
HELD_OUT = 4  # every fourth patient's notes set the dial
_VOTED, _TOLD = "votes joined", "told"


def adapt(
    notes: Sequence[Document],
    model: Model | None,
    *,
    gold: Sequence[Document] | None = None,
    replay: Sequence[Document] | None = None,
    language: str | None = None,
    seed: int = 0,
    lists: WordLists | None = None,
    tell: Tell | None = None,
) -> Model:
    """The model of a site: learnt further on its notes, whose labels are not looked at, and on reviewed notes (`gold`).

    Without a model it learns from reviewed notes alone, in any language; `language` names word lists that help.
    `replay` are notes with gold that keep it from forgetting; generated ones unless given. The dial is set on reviewed
    notes where there are any, else on what votes say of notes held out and on generated ones. `lists` are the word
    lists of rules and taggers, the whole ones unless given.
    """
    known_lists = lists or word_lists()
    reviewed = [_gold(doc) for doc in gold or ()]
    if model is None:
        return learn(
            _checked(reviewed), seed=seed, tell=tell, lesson=DetectorLesson.elsewhere(language), lists=known_lists
        )
    if language is not None:
        raise ConfigError("language names lists for learning without a model; leave it out, or begin with none")
    if not model.taggers:
        raise DataError("this model has no tagger to go on from; adapt deid-en, or give no model and reviewed notes")
    for old in model.taggers:
        if not _adapts(old.model.config):
            able = [method.name for method in METHODS.values() if _adapts(method.config())]
            kind = old.manifest.kind
            raise DataError(f"a {kind} cannot go on learning; adapt deid-en, or a model of {' or '.join(able)}")
    model = with_lists(model, known_lists)
    known = {doc.id for doc in reviewed}
    own = [doc for doc in notes if doc.id not in known]
    if len(own) + len(reviewed) < FEWEST:
        raise DataError(f"there are {len(own) + len(reviewed)} notes; give at least {FEWEST} to adapt to")
    if replay is None:
        replay = synth.notes(REPLAYED, 3, seed=seed + 1, style="varied", hidden=known_lists.hidden)
    again = list(replay)
    if model.rules:
        own, reviewed, again = ([upper_if_caseless(doc) for doc in docs] for docs in (own, reviewed, again))
    told = [*voted(own, model, known_lists), *_told(reviewed, known_lists)]
    kept = _told(map(_gold, again), known_lists)
    fit = _Fit(model, seed, tell, known_lists)
    reads = list(fit.crossed(told, kept, reviewed))
    final = fit([*told, *kept])
    return replace(final, dial=dial.fit(dial.DialSample.join(reads), final.labels, lowest=LOWEST), checksum="")


def _adapts(config: Config) -> bool:
    """Return whether a model with those settings goes on from what votes say, and can hold no words of identifiers."""
    method = method_of(config)
    return method.learns("soft", config) and method.learns("model", config) and method.has_setting("private")


@dataclass(frozen=True, slots=True)
class _Fit:
    """The taggers of a model learning further."""

    model: Model
    seed: int
    tell: Tell | None
    lists: WordLists

    def __call__(self, docs: Sequence[Document]) -> Model:
        """The model with its taggers, each gone on learning."""
        return replace(self.model, taggers=tuple(self._further(old, docs) for old in self.model.taggers), checksum="")

    def _further(self, old: Tagger, docs: Sequence[Document]) -> Tagger:
        """The tagger that has learnt from the documents as well; of labels it cannot learn it is told nothing."""
        config: Any = replace(old.model.config, epochs=EPOCHS, seed=self.seed, private=True)
        if not method_of(config).new_labels:
            docs = [doc.with_soft(_TOLD, _known_labels(doc.soft[_TOLD], old.labels)) for doc in docs]
        return tagger.train(docs, config, soft=_TOLD, start=old, progress=self.tell)

    def crossed(
        self, told: Sequence[Document], kept: Sequence[Document], reviewed: Sequence[Document]
    ) -> Iterator[dial.DialSample]:
        """What the dial is set on: documents held out of a first fit, told or reviewed."""
        names = sorted({doc.patient for doc in told})
        held = set(names[::HELD_OUT]) if len(names) > 1 else set()
        some = [doc for place, doc in enumerate(kept) if place % HELD_OUT]
        model = self([*(doc for doc in told if doc.patient not in held), *some])
        marked = {doc.id: doc for doc in reviewed}
        apart = [doc for doc in told if doc.patient in held]
        if marked:
            apart = [marked[doc.id] for doc in apart if doc.id in marked]
        others = [] if any(doc.layer(GOLD) for doc in apart if doc.id in marked) else kept[::HELD_OUT]
        for doc, own in zip([*apart, *others], read(model, [*apart, *others], model.labels, self.lists), strict=True):
            yield own if doc.id in marked or _TOLD not in doc.soft else _said(own, doc.soft[_TOLD])


def _known_labels(soft: Soft, names: Sequence[str]) -> Soft:
    """The soft labels without the tags of other labels; tokens that may have one of these are left open."""
    known = np.array([tag == "O" or tag[2:] in names for tag in soft.labels])
    open_rows = soft.values[:, ~known].sum(axis=1) > 0
    labels = tuple(tag for tag, own in zip(soft.labels, known.tolist(), strict=True) if own)
    return Soft(labels, np.where(open_rows[:, None], 0.0, soft.values[:, known]))


def _said(own: dial.DialSample, soft: Soft) -> dial.DialSample:
    """The tokens of which something was said, and what."""
    rows = soft.values.sum(axis=1) > 0
    right = soft.values.argmax(axis=1) > 0
    return dial.DialSample(own.chances[rows], own.types[rows], own.ruled[rows], right[rows])


def voted(notes: Sequence[Document], model: Model, lists: WordLists) -> list[Document]:
    """The notes with cues, and with soft labels of what sources make of them: rows of zeros where nobody knows."""
    if not notes:
        return []
    bare = [replace(doc, layers={}, soft={}, relations=()) for doc in notes]
    found = list(HybridDetector(model, lists=lists)(bare))
    ready = _with_known([_votes(*pair, lists) for pair in zip(cues.with_cues(bare, lists), found, strict=True)], lists)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of sources that never speak
        settled = aggregate(ready, MultiHMM(), layer=_VOTED)
    return [_settled(*pair) for pair in zip(settled, found, strict=True)]


def _votes(doc: Document, found: Document, lists: WordLists) -> Document:
    """The document with a layer for each source; spans labelled O are votes for O."""
    by = {"patterns": list(doc.layers[patterns.LAYER])}
    by["model"] = [span for span in found.layers[LAYER] if span.source in ("model", "dial")]
    by["repeats"] = [span for span in found.layers[LAYER] if span.source in ("alignment", "repeat")]
    by["protected"] = [span for span in lists.protected(doc) if span.score == 1.0]
    for name, spans in by.items():
        doc = doc.with_layer(SOURCE + name, as_learnt(spans))
    return doc


def _with_known(docs: Sequence[Document], lists: WordLists) -> list[Document]:
    """The documents with one more source: words with a capital that are found as names nearly wherever they stand."""
    found, seen = Counter[tuple[str, str]](), Counter[str]()
    for doc in docs:
        spans = [*doc.layers[SOURCE + "model"], *doc.layers[SOURCE + "patterns"]]
        names = [span for span in spans if kind_of(span.label).is_proper_name]
        label = {word: span.label for span in names for word in doc.text[span.start : span.end].split()}
        inside = over(doc, names)
        words = doc.words()
        seen.update({word for word in words if _may_be_known(word, lists)})
        found.update({(word, label[word]) for word, at in zip(words, inside, strict=True) if at and word in label})
    known = {
        word: label
        for (word, label), times in found.items()
        if times >= KNOWN_TIMES and times >= KNOWN_SHARE * seen[word] and _may_be_known(word, lists)
    }
    return [doc.with_layer(SOURCE + "known", _known(doc, known)) for doc in docs]


def _may_be_known(word: str, lists: WordLists) -> bool:
    return len(word) > 2 and word.istitle() and word.isalpha() and lists.is_name(word)


def _known(doc: Document, known: Mapping[str, str]) -> Iterator[Span]:
    for start, end in doc.tokens.tolist():
        label = known.get(doc.text[start:end])
        if label:
            yield Span(start, end, label)


def _settled(doc: Document, found: Document) -> Document:
    """The document told what its votes came to: an identifier, O where the model is sure of it, else nothing."""
    soft, sure = doc.soft[_VOTED], found.soft[LAYER].values[:, 0] >= SURE_OF_O
    voted = np.zeros(len(doc.tokens), np.bool_)
    for name, spans in doc.layers.items():
        if name.startswith(SOURCE):
            voted |= over(doc, spans)
    best = soft.values.argmax(axis=1)
    rows = np.zeros_like(soft.values)
    rows[np.arange(len(best)), best] = 1.0
    rows[(best == 0) & ~sure & ~voted] = 0.0
    rows[(best == 0) & voted & ~sure & (soft.values[:, 0] < SURE_OF_O)] = 0.0
    return doc.with_layer(GOLD, doc.layers[_VOTED]).with_soft(_TOLD, Soft(soft.labels, rows))


def _told(docs: Iterable[Document], lists: WordLists) -> list[Document]:
    """Documents with cues, told their gold spans."""
    ready = [doc.with_layer(GOLD, as_learnt(doc.layers[GOLD])) for doc in cues.with_cues(docs, lists)]
    names = tuple(sorted({span.label for doc in ready for span in doc.layers[GOLD]}))
    labels, numbers = Labels(names, "IOB2"), {name: number for number, name in enumerate(names)}
    known = np.eye(len(labels.tags))
    out = []
    for doc in ready:
        tags = labels.encode(pieces_of(doc, doc.layers[GOLD], numbers, Fitted()), len(doc.tokens))
        out.append(doc.with_soft(_TOLD, Soft(labels.tags, known[tags])))
    return out


def _gold(doc: Document) -> Document:
    return replace(doc, layers={GOLD: resolve(doc.layer(), "longest")}, soft={}, relations=())


def _checked(reviewed: Sequence[Document]) -> Sequence[Document]:
    if not any(doc.layers[GOLD] for doc in reviewed):
        raise DataError("there is no reviewed note with an identifier; without a model, give notes with a gold layer")
    return reviewed
