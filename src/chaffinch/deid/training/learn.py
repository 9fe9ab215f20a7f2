"""Training of a detector's model: notes with gold spans in, taggers and their dial out.

    notes  →  a cascade, with cues and rates of words as features, and an HMM-DP, with rates in its signatures
           →  their dial, set on notes of other templates

Every third name is hidden from the lists while taggers learn, because the lists miss many names of any other hospital:
the taggers meet listed and unlisted names. The finished taggers have the whole lists.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from chaffinch import languages
from chaffinch.deid.detect import cues
from chaffinch.deid.detect import detector as detect
from chaffinch.deid.detect import recall_dial as dial
from chaffinch.deid.detect.model import Model, upper_if_caseless
from chaffinch.deid.detect.word_lists import LANGUAGE, WordLists, word_lists
from chaffinch.deid.kinds import HANDLING, kind_of
from chaffinch.errors import ConfigError, DataError
from chaffinch.features.word_lists import WordListFeature
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
SOURCE = "source"  # key of meta: the corpus or site of a document; documents of one source share templates
DIAL = "dial"  # key of meta: false if the dial is not to be set on the document
FOLDS = 2  # each extra fold trains all taggers once more, on a larger share of the documents
CAPITALS = 3  # every third document is also learnt from in capitals
LOWEST = 0.035  # of the dial's levels; below it, more English prose is flagged than identifiers are found
LIGHT = 0.08  # smaller weights are dropped: they are half of the file and hardly change a result
HIDDEN = 3  # every third word of the lists is hidden while the taggers learn

ProgressCallback = Callable[[Progress], None]

_LEARNT_AS = {name: row.learnt_as for name, row in HANDLING.items() if row.learnt_as}  # rules distinguish these

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
    """A training plan: the settings of the taggers, and the use of English rules, cues and word lists.

    `language` names the word lists that a cascade uses.
    """

    configs: tuple[Config, ...] = ENGLISH
    english: bool = True
    hide: bool = True  # hide every third name of the lists while the taggers learn
    language: str | None = LANGUAGE

    @classmethod
    def for_invented_notes(cls) -> DetectorLesson:
        """Return the plan for English notes about invented people: words of their names may be features."""
        return cls(tuple(replace(config, private=False) for config in ENGLISH))

    @classmethod
    def for_other_languages(cls, language: str | None = None) -> DetectorLesson:
        """Return the plan for other languages: no rules, a pack's word lists or none; ConfigError if unknown."""
        if language not in (None, *languages.pack_names()):
            names = ", ".join(languages.pack_names())
            raise ConfigError(f"no word lists for {language!r}; name one of {names}, or none")
        chain = replace(ELSEWHERE[1], language=language or LANGUAGE)
        return cls((ELSEWHERE[0], chain), english=False, language=language)


def learn(
    training: Sequence[Document],
    held_out: Sequence[Document] = (),
    *,
    seed: int = 0,
    lesson: DetectorLesson | None = None,
    lists: WordLists | None = None,
    tell: ProgressCallback | None = None,
) -> Model:
    """Train a model on "gold" (or only) layers; set its dial by `held_out`, else by cross-validation over sources.

    The dial is set on `held_out`, whose templates should not be in training. Without it, the dial is set by
    cross-validation over the sources (`meta["source"]`) of documents without a false `meta["dial"]`; other sources are
    learnt from every time, and the final taggers learn from all documents. To measure on names that no list has, pass
    `word_lists(hidden=names_in(test))` as `lists`, here and to the detector.
    """
    trainer = _Trainer.of(_with_seed(lesson, seed), tell, lists or word_lists())
    ready = trainer.prepare(training)
    several = len({doc.meta.get(SOURCE) for doc in ready}) > 1
    setting = {_source(doc, several) for doc in ready if _sets_dial(doc)}
    split = [doc for doc in ready if _source(doc, several) in setting]
    always = [doc for doc in ready if _source(doc, several) not in setting]
    parts = [] if held_out or not split else split_by_source(split)
    found = Calibration()
    for part in parts if len(parts) > 1 else ():
        rest = [doc for other in parts if other is not part for doc in other]
        found.add(trainer.train([*always, *rest]), filter(_sets_dial, part), _labels(ready), trainer.lists)
    model = trainer.train(ready)
    found.add(model, held_out, model.labels, trainer.lists)
    lowest = LOWEST if trainer.lesson.english else 0.0
    return replace(model, dial=found.dial(model.labels, lowest)) if found.samples else model


def train_taggers(
    training: Sequence[Document], *, seed: int = 0, lesson: DetectorLesson | None = None, lists: WordLists | None = None
) -> Model:
    """Train a model without a dial on documents whose layer "gold", or only layer, holds the identifiers."""
    trainer = _Trainer.of(_with_seed(lesson, seed), None, lists or word_lists())
    return trainer.train(trainer.prepare(training))


@dataclass(slots=True)
class Calibration:
    """Samples of notes that a model did not learn from, with the group of each, to set a dial on."""

    samples: list[dial.DialSample] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)

    def add(self, model: Model, docs: Iterable[Document], labels: Sequence[str], lists: WordLists) -> None:
        """Add dial samples of documents, read by a model that did not learn from them, with their groups."""
        notes = list(docs)
        self.samples += dial_samples(model, notes, labels, lists)
        self.groups += [str(doc.meta.get(SOURCE, doc.id)) for doc in notes]

    def dial(self, labels: Sequence[str], lowest: float, weight: float = dial.WEIGHT) -> dial.Dial:
        """Return the dial of all samples; no level is below `lowest`; `weight` is of recall in the balanced setting."""
        return dial.fit_by_group(self.samples, self.groups, labels, lowest=lowest, weight=weight)


@dataclass(frozen=True, slots=True)
class _Trainer:
    """Training of taggers with names hidden from the word lists; the finished taggers get the whole lists."""

    lesson: DetectorLesson
    tell: ProgressCallback | None
    lists: WordLists
    fewer: WordLists  # the lists while taggers learn

    @classmethod
    def of(cls, lesson: DetectorLesson, tell: ProgressCallback | None, lists: WordLists) -> _Trainer:
        """Return the trainer of a lesson; where the lesson hides words, also the lists without them."""
        hide = lesson.english and lesson.hide
        return cls(lesson, tell, lists, lists.hide_words(_words_to_hide(HIDDEN, lists)) if hide else lists)

    def prepare(self, docs: Iterable[Document]) -> list[Document]:
        """Return the documents with gold spans alone; in English also with cues, and some again in capitals.

        Cues come from the lists without hidden names.
        """
        if not self.lesson.english:
            return [replace(doc, layers={GOLD: tuple(doc.layer())}) for doc in docs]
        bare = (replace(doc, layers={GOLD: tuple(with_training_labels(doc.layer()))}) for doc in docs)
        return list(cues.with_cues(_with_capitals(map(upper_if_caseless, bare)), self.fewer))

    def train(self, docs: Sequence[Document]) -> Model:
        """Train a model on prepared documents, without a dial."""
        return Model(
            tuple(self._train_tagger(docs, config) for config in self.lesson.configs), rules=self.lesson.english
        )

    def _train_tagger(self, docs: Sequence[Document], config: Config) -> Tagger:
        """Train a tagger on lists that hide words, then give it the whole ones; in English, drop small weights."""
        language = self.lesson.language
        if method_of(config).has_setting("language"):  # it has the word lists already
            language = None
        hidden = self.fewer.hidden
        lists = Resources(standing=WordListFeature(language, hidden) if language else None, hidden=hidden)
        learnt = tagger.train(docs, config, layer=GOLD, resources=lists, progress=self.tell)
        whole = hide_words(learnt.model, self.lists.hidden)
        trim = method_of(config).trim
        return replace(learnt, model=trim(whole, LIGHT) if trim and self.lesson.english else whole)


def with_lists(model: Model, lists: WordLists) -> Model:
    """Return the model with taggers whose word lists hide the words that these lists hide, and no others."""
    taggers = tuple(replace(each, model=hide_words(each.model, lists.hidden)) for each in model.taggers)
    return replace(model, taggers=taggers)


def hide_words(model: TaggerModel, hidden: frozenset[str]) -> TaggerModel:
    """Return the model with these words, no others, hidden from its word lists; unchanged if its method has none."""
    hide = method_of(model.config).hide_words
    return model if hide is None else hide(model, hidden)


def _with_capitals(docs: Iterable[Document]) -> Iterator[Document]:
    """Yield the documents, and every third one also in capitals, as caseless notes are read (`upper_if_caseless`)."""
    for number, doc in enumerate(docs):
        yield doc
        text = doc.text.upper()
        if number % CAPITALS == 0 and len(text) == len(doc.text):
            again = f"{doc.id} in capitals"
            yield replace(doc, id=again, group=doc.patient, text=text, meta={**doc.meta, DIAL: False})


def _with_seed(lesson: DetectorLesson | None, seed: int) -> DetectorLesson:
    """Return the lesson, by default the English one, with `seed` in each of its configs."""
    plan = lesson or DetectorLesson()
    return replace(plan, configs=tuple(replace(config, seed=seed) for config in plan.configs))


def _source(doc: Document, several: bool) -> str:
    """Return the corpus or site of a document, or its patient if there are not several of these."""
    return str(doc.meta.get(SOURCE)) if several else doc.patient


def _sets_dial(doc: Document) -> bool:
    """Tell whether a note may be used to fit the recall dial."""
    return bool(doc.meta.get(DIAL, True))


def dial_samples(
    model: Model, docs: Iterable[Document], labels: Sequence[str], lists: WordLists
) -> Iterator[dial.DialSample]:
    """Yield the dial sample of each document, in order; its types are indices into `labels`."""
    number = np.array([labels.index(name) for name in model.labels], np.int64)
    bare = (replace(doc, layers={GOLD: doc.layer()}) for doc in docs)
    for sample in detect.HybridDetector(model, lists=lists).dial_samples(bare, GOLD):
        yield replace(sample, types=number[sample.types])


def with_training_labels(spans: Iterable[Span]) -> list[Span]:
    """Return the spans with the labels that taggers learn; kinds that only rules distinguish share one label."""
    return [replace(span, label=_LEARNT_AS.get(span.label, span.label)) for span in spans]


def names_in(docs: Iterable[Document], layer: str | None = None) -> frozenset[str]:
    """Return the words of names and places among the identifiers of documents, to hide them (`word_lists`)."""
    return frozenset(
        word.strip(".,;:()'\"")
        for doc in docs
        for span in doc.layer(layer)
        if kind_of(span.label).is_proper_name
        for word in doc.text[span.start : span.end].replace("-", " ").split()
    )


def split_by_source(docs: Sequence[Document], folds: int = FOLDS) -> list[list[Document]]:
    """Split documents into folds of similar size by source, or by patient if there is one source; DataError if none."""
    sources: defaultdict[str, list[Document]] = defaultdict(list)
    several = len({doc.meta.get(SOURCE) for doc in docs}) > 1
    for doc in docs:
        sources[_source(doc, several)].append(doc)
    parts: list[list[Document]] = [[] for _ in range(min(folds, len(sources)))]
    sizes = [0] * len(parts)
    for _, members in sorted(sources.items(), key=lambda item: (-sum(len(doc.text) for doc in item[1]), item[0])):
        smallest = sizes.index(min(sizes))
        parts[smallest] += members
        sizes[smallest] += sum(len(doc.text) for doc in members)
    if not parts:
        raise DataError("there are no notes to learn from; give notes with a gold layer")
    return parts


def _labels(docs: Iterable[Document]) -> tuple[str, ...]:
    """Return the gold labels of documents, sorted."""
    return tuple(sorted({span.label for doc in docs for span in doc.layers[GOLD]}))


def _words_to_hide(number: int, lists: WordLists) -> Iterator[str]:
    """Yield about one in `number` words of the lists, chosen by a hash of the word."""
    for word in lists.every_word:
        if hashlib.sha256(word.encode()).digest()[1] % number == 0:
            yield word
