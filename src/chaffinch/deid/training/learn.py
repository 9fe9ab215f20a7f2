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
from dataclasses import dataclass, replace

import numpy as np

from chaffinch import languages
from chaffinch.deid.detect import cues
from chaffinch.deid.detect import detector as detect
from chaffinch.deid.detect import recall_dial as dial
from chaffinch.deid.detect.model import Model, upper_if_caseless
from chaffinch.deid.detect.word_lists import LANGUAGE, WordLists, word_lists
from chaffinch.deid.kinds import HANDLING, kind_of
from chaffinch.errors import ConfigError, DataError
from chaffinch.features.word_lists import Standing
from chaffinch.models import tagger
from chaffinch.models.cascade.config import Cascade
from chaffinch.models.core.resources import Resources
from chaffinch.models.core.training import Progress
from chaffinch.models.hmmdp.config import HMMDP
from chaffinch.models.registry import Config, method_of
from chaffinch.models.registry import Model as TaggerModel
from chaffinch.models.tagger import Tagger
from chaffinch.text import Document, Span

GOLD = "gold"
SOURCE = "source"  # in a document's meta: the corpus or site it is of; documents of one source share templates
DIAL = "dial"  # in a document's meta: false if the dial is not to be set on it
FOLDS = 2
CAPITALS = 3  # every so many documents are learnt from in capitals too
LOWEST = 0.03  # of the dial's levels: below it English prose is flagged more than identifiers are found
LIGHT = 0.08  # weights below it are dropped: they are half the file, and hardly tell
HIDDEN = 3  # every so many names are hidden while the tagger learns

Tell = Callable[[Progress], None]

_LEARNT_AS = {name: row.learnt_as for name, row in HANDLING.items() if row.learnt_as}  # rules tell these apart

ENGLISH = (
    Cascade(
        scheme="IOB2", documents=False, layers=cues.LAYERS, objective="adagrad", epochs=4, rate=0.15, dropout=0.2,
        cutoff=3, calibrate=False,
    ),
    HMMDP(
        outside=4, inside=1, min_count=8, passes=6, epochs=4, dropout=0.2, calibrate=False, decode="posterior",
    ),
)  # fmt: skip
ELSEWHERE = (  # any other language
    Cascade(documents=False, objective="adagrad", rate=0.15, epochs=8, dropout=0.2, private=True),
    HMMDP(outside=4, inside=1, epochs=10, dropout=0.2, private=True, decode="posterior"),
)


@dataclass(frozen=True, slots=True)
class DetectorLesson:
    """How a model is learnt: the taggers' settings, whether our English rules, cues and lists serve, hidden or not.

    `language` names the word lists that a cascade knows.
    """

    configs: tuple[Config, ...] = ENGLISH
    english: bool = True
    hide: bool = True  # every third name from the lists while the taggers learn
    language: str | None = LANGUAGE

    @classmethod
    def invented(cls) -> DetectorLesson:
        """For English notes about people who never lived: words of their names may be features."""
        return cls(tuple(replace(config, private=False) for config in ENGLISH))

    @classmethod
    def elsewhere(cls, language: str | None = None) -> DetectorLesson:
        """For notes in other languages: the lists of a language pack, or none, and no rules."""
        if language not in (None, *languages.shipped()):
            raise ConfigError(f"no word lists for {language!r}; name one of {', '.join(languages.shipped())}, or none")
        chain = replace(ELSEWHERE[1], language=language or LANGUAGE)
        return cls((ELSEWHERE[0], chain), english=False, language=language)


def learn(
    training: Sequence[Document],
    held_out: Sequence[Document] = (),
    *,
    seed: int = 0,
    lesson: DetectorLesson | None = None,
    lists: WordLists | None = None,
    tell: Tell | None = None,
) -> Model:
    """The model of documents whose layer "gold", or only one, holds the identifiers.

    Its dial is set on `held_out`, whose templates should not be in training; without any, on what taggers of other
    sources (`meta["source"]`) make of each source (but for documents with a false `meta["dial"]`), before the final one
    learns from all. To measure on names that no list has, give `word_lists(hidden=names_in(test))` as `lists`, here and
    to the detector.
    """
    chosen = lesson or DetectorLesson()
    chosen = replace(chosen, configs=tuple(replace(config, seed=seed) for config in chosen.configs))
    bare = [
        replace(doc, layers={GOLD: tuple(as_learnt(doc.layer()) if chosen.english else doc.layer())})
        for doc in training
    ]
    course = _Course.of(chosen, tell, lists or word_lists())
    ready = course.prepared(_with_capitals(map(upper_if_caseless, bare)) if chosen.english else bare)
    parts = [] if held_out else by_source(ready)
    reads: list[dial.DialSample] = []
    for part in parts if len(parts) > 1 else ():
        rest = [doc for other in parts if other is not part for doc in other]
        reads += read(course.model(rest), [doc for doc in part if _sets_dial(doc)], _labels(ready), course.lists)
    model = course.model(ready)
    reads += read(model, held_out, model.labels, course.lists)
    lowest = LOWEST if chosen.english else 0.0
    return replace(model, dial=dial.fit(dial.DialSample.join(reads), model.labels, lowest=lowest)) if reads else model


@dataclass(frozen=True, slots=True)
class _Course:
    """A lesson: the lists lack names while the taggers learn, and the finished ones are used with whole lists."""

    lesson: DetectorLesson
    tell: Tell | None
    lists: WordLists
    fewer: WordLists  # while taggers learn

    @classmethod
    def of(cls, lesson: DetectorLesson, tell: Tell | None, lists: WordLists) -> _Course:
        hide = lesson.english and lesson.hide
        return cls(lesson, tell, lists, lists.hiding(_every(HIDDEN, lists)) if hide else lists)

    def prepared(self, docs: Iterable[Document]) -> list[Document]:
        """The documents with cues, as lists that lack names give them."""
        return list(cues.with_cues(docs, self.fewer)) if self.lesson.english else list(docs)

    def model(self, docs: Sequence[Document]) -> Model:
        """The model of prepared documents, without a dial."""
        return Model(tuple(self._tagger(docs, config) for config in self.lesson.configs), rules=self.lesson.english)

    def _tagger(self, docs: Sequence[Document], config: Config) -> Tagger:
        language = self.lesson.language
        if method_of(config).has_setting("language"):  # it has the word lists already
            language = None
        hidden = self.fewer.hidden
        lists = Resources(standing=Standing(language, hidden) if language else None, hidden=hidden)
        learnt = tagger.train(docs, config, layer=GOLD, resources=lists, progress=self.tell)
        whole = hide_words(learnt.model, self.lists.hidden)
        trim = method_of(config).trim
        return replace(learnt, model=trim(whole, LIGHT) if trim and self.lesson.english else whole)


def with_lists(model: Model, lists: WordLists) -> Model:
    """Return the model with taggers that know the lists without the hidden words."""
    taggers = tuple(replace(each, model=hide_words(each.model, lists.hidden)) for each in model.taggers)
    return replace(model, taggers=taggers)


def hide_words(model: TaggerModel, hidden: frozenset[str]) -> TaggerModel:
    """Return the model of a tagger with lists of its language that lack the hidden words."""
    hide = method_of(model.config).hide_words
    return model if hide is None else hide(model, hidden)


def _with_capitals(docs: Iterable[Document]) -> Iterator[Document]:
    """Yield the documents, and some once more in capitals, as notes without any are read (`upper_if_caseless`)."""
    for number, doc in enumerate(docs):
        yield doc
        text = doc.text.upper()
        if number % CAPITALS == 0 and len(text) == len(doc.text):
            again = f"{doc.id} in capitals"
            yield replace(doc, id=again, group=doc.patient, text=text, meta={**doc.meta, DIAL: False})


def _sets_dial(doc: Document) -> bool:
    return bool(doc.meta.get(DIAL, True))


def read(model: Model, docs: Iterable[Document], labels: Sequence[str], lists: WordLists) -> Iterator[dial.DialSample]:
    """Yield what a model makes of documents as they come; its labels are numbered as these are."""
    place = np.array([labels.index(name) for name in model.labels], np.int64)
    bare = (replace(doc, layers={GOLD: doc.layer()}) for doc in docs)
    for own in detect.HybridDetector(model, lists=lists).read(bare, GOLD):
        yield replace(own, types=place[own.types])


def as_learnt(spans: Iterable[Span]) -> list[Span]:
    """The spans by the kinds that a tagger tells apart."""
    return [replace(span, label=_LEARNT_AS.get(span.label, span.label)) for span in spans]


def names_in(docs: Iterable[Document], layer: str | None = None) -> frozenset[str]:
    """The words of names and places among the identifiers of documents, for `word_lists`."""
    return frozenset(
        word.strip(".,;:()'\"")
        for doc in docs
        for span in doc.layer(layer)
        if kind_of(span.label).is_proper_name
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


def _every(number: int, lists: WordLists) -> Iterator[str]:
    for word in lists.every_word:
        if hashlib.sha256(word.encode()).digest()[1] % number == 0:
            yield word
