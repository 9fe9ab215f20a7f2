"""Learning a detector's model: notes with gold spans in, taggers and their dial out.

    notes  →  a cascade, with cues and rates of words as features, and an HMM-DP, with rates in its signatures
           →  their dial, set on notes of other templates

Names are learnt half blind: while taggers learn, the lists lack every third name, as they lack many of any other
hospital's, so that a listed and an unlisted name are both met; the finished taggers have the whole lists.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from chaffinch.deid import cues, detect, dial, lexicons
from chaffinch.deid.detect_file import Model
from chaffinch.deid.kinds import kind_of
from chaffinch.errors import DataError
from chaffinch.features import packs
from chaffinch.features.lexicon import Lexicon
from chaffinch.models import cascade, tagger
from chaffinch.models.cascade import Cascade
from chaffinch.models.hmmdp_config import HMMDP
from chaffinch.models.parts import Progress
from chaffinch.models.resources import Resources
from chaffinch.models.tagger import Tagger
from chaffinch.text import Document, Span

GOLD = "gold"
SOURCE = "source"  # in a document's meta: the corpus or site it is of; documents of one source share templates
DIAL = "dial"  # in a document's meta: false if the dial is not to be set on it
FOLDS = 3
CASED = 4  # every so many documents are learnt from in capitals too, and as many in small letters
LOWEST = 0.03  # of the dial's levels: below it English prose is flagged more than identifiers are found
HIDDEN = 3  # every so many names are hidden while the tagger learns
_NAMED = ("NAME", "LOCATION")

Tell = Callable[[Progress], None]


# Kinds that the tagger need not tell apart: rules do.
_JOINED = {
    "FAX": "PHONE",
    "EMAIL": "URL",
    "IPADDR": "URL",
    "LOCATION-OTHER": "CITY",
    **dict.fromkeys(("SSN", "HEALTHPLAN", "ACCOUNT", "LICENSE", "VEHICLE", "DEVICE", "BIOID"), "IDNUM"),
}


ENGLISH = (
    Cascade(
        scheme="IOB2", documents=False, layers=cues.LAYERS, objective="adagrad", epochs=6, rate=0.15, dropout=0.2,
        cutoff=2, calibrate=False,
    ),
    HMMDP(outside=4, inside=1, epochs=6, dropout=0.2, calibrate=False),
)  # fmt: skip
ELSEWHERE = (Cascade(scheme="IOBES", documents=True, objective="crf", rate=0.15, epochs=8),)  # any other language


@dataclass(frozen=True, slots=True)
class Lesson:
    """How a model is learnt: the taggers' settings, whether our English rules, cues and lists serve, hidden or not."""

    configs: tuple[Cascade | HMMDP, ...] = ENGLISH
    english: bool = True
    hide: bool = True  # every third name from the lists while the taggers learn


def learn(
    training: Sequence[Document],
    held_out: Sequence[Document] = (),
    *,
    seed: int = 0,
    lesson: Lesson | None = None,
    tell: Tell | None = None,
) -> Model:
    """The model of documents whose layer "gold", or only one, holds the identifiers.

    Its dial is set on `held_out`, whose templates should not be in training; without any, on what taggers of other
    sources (`meta["source"]`) make of each source (but for documents with a false `meta["dial"]`), before the final one
    learns from all. To measure on names that no list has, do all of it inside `lexicons.without(names_in(test))`.
    """
    chosen = lesson or Lesson()
    chosen = replace(chosen, configs=tuple(replace(config, seed=seed) for config in chosen.configs))
    bare = [
        replace(doc, layers={GOLD: tuple(joined(doc.layer()) if chosen.english else doc.layer())}) for doc in training
    ]
    course = _Course.of(chosen, tell)
    ready = course.prepared(_with_other_cases(bare) if chosen.english else bare)
    parts = [] if held_out else by_source(ready)
    reads: list[dial.Read] = []
    for part in parts if len(parts) > 1 else ():
        rest = [doc for other in parts if other is not part for doc in other]
        reads += read(course.model(rest), [doc for doc in part if _sets_dial(doc)], _labels(ready))
    model = course.model(ready)
    reads += read(model, held_out, model.labels)
    lowest = LOWEST if chosen.english else 0.0
    return replace(model, dial=dial.fit(dial.Read.joined(reads), model.labels, lowest=lowest)) if reads else model


@dataclass(frozen=True, slots=True)
class _Course:
    """A lesson with its lists: those of learning, and the whole ones that the finished taggers are used with."""

    lesson: Lesson
    lists: Resources
    whole: Resources
    tell: Tell | None

    @classmethod
    def of(cls, lesson: Lesson, tell: Tell | None) -> _Course:
        if not lesson.english:
            return cls(lesson, Resources(), Resources(), tell)
        with _hiding(lesson):
            lists = Resources(lexicon=words())
        return cls(lesson, lists, Resources(lexicon=words()), tell)

    def prepared(self, docs: Iterable[Document]) -> list[Document]:
        """The documents with cues, as lists that lack names give them."""
        if not self.lesson.english:
            return list(docs)
        with _hiding(self.lesson):
            return list(cues.with_cues(docs))

    def model(self, docs: Sequence[Document]) -> Model:
        """The model of prepared documents, without a dial."""
        return Model(tuple(self._tagger(docs, config) for config in self.lesson.configs), rules=self.lesson.english)

    def _tagger(self, docs: Sequence[Document], config: Cascade | HMMDP) -> Tagger:
        lists = self.lists if isinstance(config, Cascade) else None
        with _hiding(self.lesson):
            learnt = tagger.train(docs, config, layer=GOLD, resources=lists, progress=self.tell)
        return replace(learnt, model=with_lists(learnt.model, self.whole))


def with_lists(model: Any, whole: Resources) -> Any:
    """The model of a tagger with whole lists in the place of those it was learnt with."""
    if isinstance(model, cascade.Model):
        return replace(model, resources=whole)
    return replace(model, symbols=replace(model.symbols, pack=packs.pack(model.config.language)))


def _hiding(lesson: Lesson) -> AbstractContextManager[None]:
    return lexicons.without(_every(HIDDEN) if lesson.english and lesson.hide else ())


def _with_other_cases(docs: Iterable[Document]) -> Iterator[Document]:
    """The documents, and some of them once more in capitals or in small letters, as some houses write.

    A note in capitals is read in small letters (`detect_file.legible`), but is learnt from as it is: so a tagger learns
    that a title or a line in capitals need not be a name.
    """
    for number, doc in enumerate(docs):
        yield doc
        for turn, text in ((0, doc.text.upper()), (CASED // 2, doc.text.lower())):
            if number % CASED == turn and len(text) == len(doc.text):
                again = f"{doc.id} in other letters"
                yield replace(doc, id=again, group=doc.patient, text=text, meta={**doc.meta, DIAL: False})


def _sets_dial(doc: Document) -> bool:
    return bool(doc.meta.get(DIAL, True))


def read(model: Model, docs: Iterable[Document], labels: Sequence[str]) -> Iterator[dial.Read]:
    """What a model makes of documents as they come, with the whole lists; its labels are numbered as these are."""
    place = np.array([labels.index(name) for name in model.labels], np.int64)
    bare = (replace(doc, layers={GOLD: doc.layer()}) for doc in docs)
    for own in detect.Detector(model).read(bare, GOLD):
        yield replace(own, types=place[own.types])


def joined(spans: Iterable[Span]) -> list[Span]:
    """The spans by the kinds that a tagger tells apart."""
    return [replace(span, label=_JOINED.get(span.label, span.label)) for span in spans]


def words() -> Lexicon:
    """The lists as one lexicon: a label for each way a word can stand in all of them and each way it is written.

    So a tagger can tell a "Grant" from a "grant", and a word with a capital that no list has from both.
    """
    lists: defaultdict[str, list[str]] = defaultdict(list)
    for word in lexicons.listed():
        told = _standing(word)
        if told and len(word) > 1:
            plain: list[str] = [own for own in told if own in ("common", "term", "hospital-hi")][:1]
            plain += [own for own in told if own == "job-hi"]
            for how, own, written in (
                ("small", plain or told, word),
                ("title", told, word.title()),
                ("upper", told, word.upper()),
            ):
                lists[f"{how} {' '.join(own)}"].append(written)
    return Lexicon.make(dict(sorted(lists.items())), fold_case=False)


def _standing(word: str) -> list[str]:
    """How a word stands in the lists: where its rate is high; or "listed" where it is low everywhere."""
    rates = {name: lexicons.rate(word, name) for name in packs.LEXICA}
    high = [f"{name}-hi" for name, rate in rates.items() if rate == "hi"]
    told = ["term"] if lexicons.is_term(word) else ["common"] if lexicons.is_common(word) else []
    return [*told, *(high or (["listed"] if any(rates.values()) else []))]


def names_in(docs: Iterable[Document], layer: str | None = None) -> frozenset[str]:
    """The words of names and places among the identifiers of documents, for `lexicons.without`."""
    return frozenset(
        word.strip(".,;:()'\"")
        for doc in docs
        for span in doc.layer(layer)
        if kind_of(span.label).category in _NAMED
        for word in doc.text[span.start : span.end].replace("-", " ").split()
    )


def by_source(docs: Sequence[Document], folds: int = FOLDS) -> list[list[Document]]:
    """The documents in folds of about the same size; those of one source stay together, or else of one patient."""
    sources: defaultdict[str, list[Document]] = defaultdict(list)
    several = len({doc.meta.get(SOURCE) for doc in docs}) > 1
    for doc in docs:
        sources[str(doc.meta.get(SOURCE)) if several else doc.patient].append(doc)
    parts: list[list[Document]] = [[] for _ in range(min(folds, len(sources)))]
    sizes = [0] * len(parts)
    for _, own in sorted(sources.items(), key=lambda item: (-sum(len(doc.text) for doc in item[1]), item[0])):
        smallest = sizes.index(min(sizes))
        parts[smallest] += own
        sizes[smallest] += sum(len(doc.text) for doc in own)
    if not parts:
        raise DataError("there are no notes to learn from; give notes with a gold layer")
    return parts


def _labels(docs: Iterable[Document]) -> tuple[str, ...]:
    return tuple(sorted({span.label for doc in docs for span in doc.layers[GOLD]}))


def _every(number: int) -> Iterator[str]:
    for word in lexicons.listed():
        if hashlib.sha256(word.encode()).digest()[1] % number == 0:
            yield word
