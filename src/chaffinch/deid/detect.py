"""The detector: patterns, known identifiers, models and the user's lists, joined so that nothing found is lost.

    documents  →  cues  →  rules ∪ models at the dial  →  repeats of what was found  →  the layer "deid"

T tokens, L labels, the first of which is O.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import compress
from pathlib import Path

import msgspec
import numpy as np

from chaffinch.deid import cues, detect_soft, dial, lexicons, patterns
from chaffinch.deid.detect_file import Model, load
from chaffinch.deid.detect_soft import Flags
from chaffinch.deid.detect_spans import agreed, joined, trimmed
from chaffinch.deid.dial import Read
from chaffinch.deid.kinds import kind_of
from chaffinch.deid.known import Known
from chaffinch.errors import ConfigError
from chaffinch.features.lexicon import Lexicon
from chaffinch.models import alignment
from chaffinch.models.streams import BATCH_TOKENS, batches
from chaffinch.text import Document, Span
from chaffinch.weak.source_base import Source, settle

LAYER = "deid"
SHIELD = 0.9  # the chance of a name that a bare eponym needs to be flagged by models
CERTAIN = 0.99  # the score of what a user or an admission file says


@dataclass(frozen=True, slots=True, eq=False)
class Detector:
    """Adds the layer "deid", and soft labels of that name, to documents. Made by `detector`.

    `deny` and `known` always count; `allow` takes away what patterns, models and repeats find inside its phrases. With
    `by_patient`, names found in one document are found in all of the patient's, and all documents are held at once.
    """

    model: Model = field(repr=False)
    recall: float | None = None
    known: Known | None = None
    allow: Lexicon | None = field(default=None, repr=False)
    deny: Lexicon | None = field(default=None, repr=False)
    types: tuple[Source, ...] = ()
    by_patient: bool = False
    name: str = "rules"
    layer: str = LAYER

    @property
    def digest(self) -> str:
        """Stands for all that decides what it finds, but for the known identifiers."""
        lists = [own.phrases if own is not None else () for own in (self.allow, self.deny)]
        told = [self.model.digest, self.recall, lists, [repr(own) for own in self.types], self.by_patient]
        return hashlib.sha256(msgspec.json.encode(told)).hexdigest()

    def __call__(self, documents: Iterable[Document]) -> Iterator[Document]:
        """The documents in their order, each with the layer; any that it had is replaced."""
        if self.by_patient:
            found = [self._found(doc) for docs in batches(documents, BATCH_TOKENS) for doc in self._read(docs)]
            yield from self._repeated(found)
            return
        for docs in batches(documents, BATCH_TOKENS):
            yield from self._repeated(
                [replace(self._found(doc), group=None, id=str(n)) for n, doc in enumerate(self._read(docs))], docs
            )

    def read(self, documents: Iterable[Document], gold: str | None = None) -> Iterator[Read]:
        """What the dial is fitted on: the tokens of documents with a gold layer, before any threshold."""
        for docs in batches(documents, BATCH_TOKENS):
            for doc in self._read(docs):
                chances, types = detect_soft.chances(doc.soft[self.layer])
                ruled = detect_soft.over(doc, [*self._sure(doc), *self._ruled(doc)])
                yield Read(chances, types, ruled, detect_soft.over(doc, doc.layer(gold)))

    def _read(self, docs: Sequence[Document]) -> Iterator[Document]:
        """The documents with cues, the layers of models and their soft labels joined."""
        prepared = list(cues.with_cues(docs))
        several = len(self.model.taggers) > 1
        answers = [
            list(tagger.posteriors(tagger.annotate(prepared, layer=LAYER, confidence=several), name=LAYER))
            for tagger in self.model.taggers
        ]
        for place, doc in enumerate(prepared):
            own = [answer[place] for answer in answers]
            spans = agreed([answer.layers[LAYER] for answer in own])
            soft = detect_soft.mean([answer.soft[LAYER] for answer in own]) if own else detect_soft.by_rules(doc)
            yield doc.with_layer(self.layer, spans).with_soft(self.layer, soft)

    def _found(self, doc: Document) -> Document:
        """The document with what rules and models find, and its soft labels sure of it."""
        sure, ruled = self._sure(doc), self._allowed(doc, self._ruled(doc))
        flagged = self._flagged(doc) if self.model.taggers else []
        spans = trimmed(doc.text, joined([sure, [*ruled, *self._allowed(doc, flagged)]]))
        soft = detect_soft.with_spans(doc, doc.soft[self.layer], spans)
        return doc.with_layer(self.layer, spans).with_soft(self.layer, soft)

    def _ruled(self, doc: Document) -> Sequence[Span]:
        """What patterns find, if the model wants to know."""
        return doc.layers[patterns.LAYER] if self.model.rules else ()

    def _sure(self, doc: Document) -> list[Span]:
        """What the user's lists and types and the admission file say."""
        spans = (
            [
                Span(start, end, self.deny.labels[label], CERTAIN, "deny")
                for start, end, label in self.deny.find(doc.text)
            ]
            if self.deny
            else []
        )
        for own in self.types:
            found, _ = settle(own(doc), str(getattr(own, "label", "")) or own.name, len(doc.text))
            spans += [replace(span, score=CERTAIN, source=own.name) for span in found if span.label != "O"]
        return joined([self.known(doc) if self.known else [], spans])

    def _allowed(self, doc: Document, spans: Iterable[Span]) -> list[Span]:
        """The spans that do not lie inside an allowed phrase."""
        if self.allow is None:
            return list(spans)
        phrases = self.allow.find(doc.text)  # in order, never overlapping
        ends = [end for _, end, _ in phrases]

        def inside(span: Span) -> bool:
            place = bisect_right(ends, span.start)
            return place < len(phrases) and phrases[place][0] <= span.start and span.end <= phrases[place][1]

        return [span for span in spans if not inside(span)]

    def _flagged(self, doc: Document) -> list[Span]:
        """The spans of models of which a token reaches its threshold, and the runs of other tokens that do."""
        soft = doc.soft[self.layer]
        chances, types = detect_soft.chances(soft)
        thresholds = self.model.dial.at(self.recall)
        levels = np.array([thresholds.get(name, thresholds[""]) for name in soft.labels])[1:]
        levels = levels[types] if len(levels) else np.ones(len(types))
        flags = (chances >= levels) & self._unshielded(doc, chances)
        return detect_soft.spans_of(doc, soft, flags, doc.layers[self.layer])

    def _unshielded(self, doc: Document, chances: np.ndarray) -> Flags:
        """(T,) where no protected term stands, or a bare eponym that is very likely a name."""
        out = np.ones(len(chances), np.bool_)
        shields = lexicons.protected(doc)
        for shield, (first, end) in zip(shields, detect_soft.runs(doc, shields).tolist(), strict=True):
            out[first:end] &= (shield.score < 1.0) & (chances[first:end] >= SHIELD)
        return out

    def _repeated(self, found: list[Document], originals: Sequence[Document] | None = None) -> Iterator[Document]:
        """The documents with the repeats of what was found."""
        aligned = self._aligned(found)
        for place, before in enumerate(found):
            doc = aligned.get(place, before)
            own = before if originals is None else replace(before, group=originals[place].group, id=originals[place].id)
            if doc is not before:
                spans = self._with_repeats(doc, before.layers[self.layer])
                soft = detect_soft.with_spans(doc, before.soft[self.layer], spans)
                own = own.with_layer(self.layer, spans).with_soft(self.layer, soft)
            yield cues.without_cues(own, own if originals is None else originals[place])

    def _aligned(self, found: Sequence[Document]) -> dict[int, Document]:
        """By number, the documents of patients with a word that is an identifier here and none there, aligned."""
        members: defaultdict[str, list[int]] = defaultdict(list)
        for number, doc in enumerate(found):
            members[doc.patient].append(number)
        chosen = sorted(
            number
            for own in members.values()
            if _recurs([found[number] for number in own], self.layer)
            for number in own
        )
        docs = [found[number] for number in chosen]
        aligned = alignment.align(docs, _aligner(), layer=self.layer, mode="recall") if docs else []
        return dict(zip(chosen, aligned, strict=True))

    def _with_repeats(self, doc: Document, before: Sequence[Span]) -> list[Span]:
        """The spans there were, and the repeats that count: names with a capital, neither protected nor allowed."""
        kept = set(before)
        shields = [shield for shield in lexicons.protected(doc) if shield.score == 1.0]
        new = [own for own in doc.layers[self.layer] if own not in kept and _may_repeat(doc.text, own, shields)]
        return trimmed(doc.text, joined([before, self._allowed(doc, new)]))


def _may_repeat(text: str, span: Span, shields: Sequence[Span]) -> bool:
    if kind_of(span.label).category not in ("NAME", "LOCATION", "ID", "CONTACT"):
        return False
    own = text[span.start : span.end]
    return not (own.islower() and own.isalpha()) and not any(map(span.overlaps, shields))


def _recurs(docs: Sequence[Document], layer: str) -> bool:
    """Whether a word inside a span stands outside of spans as well; a common word counts if it is in spans twice."""
    words = [word.casefold() for doc in docs for word in doc.words()]
    inside = np.concatenate([detect_soft.over(doc, doc.layers[layer]) for doc in docs]).tolist()
    times = Counter(compress(words, inside))
    common = _aligner().common
    sought = {word for word, count in times.items() if count > 1 or word not in common}
    outside = sought.intersection(word for word, within in zip(words, inside, strict=True) if not within)
    return any(any(map(str.isalnum, word)) for word in outside)


@cache
def _aligner() -> alignment.Model:
    return alignment.Model.default("recall", common=lexicons.common_words())


def detector(
    model: Model | str | Path | None = None,
    *,
    recall: float | None = None,
    known: Known | str | Path | None = None,
    allow: Iterable[str] = (),
    deny: Iterable[str] | Mapping[str, Iterable[str]] = (),
    types: Sequence[Source] = (),
    by_patient: bool = False,
) -> Detector:
    """What adds the layer "deid" to documents: of a model, a file, a packaged name, or of rules alone.

    `recall` turns the dial of the model; `known` is an admission file; `allow` and `deny` are phrases that are never or
    always identifiers, `deny` by label if it is a mapping; `types` are sources of the user's own types.

    >>> find = detector(deny=["Project Wren"], allow=["Mayo Clinic"])
    >>> [span.label for span in next(find([Document.make("Dr. Penn of Project Wren, 3/4/1998")])).layer("deid")]
    ['DOCTOR', 'OTHER', 'DATE']
    """
    name = "rules" if model is None else "in memory" if isinstance(model, Model) else Path(model).name
    own = Model() if model is None else model if isinstance(model, Model) else load(model)
    if recall is not None and model is None:
        raise ConfigError("recall turns the dial of a model, and rules have none; give a model")
    own.dial.at(recall)
    held = Known.read(known) if isinstance(known, str | Path) else known
    lists = deny if isinstance(deny, Mapping) else {"OTHER": deny}
    return Detector(own, recall, held, _lexicon({"O": allow}), _lexicon(lists), tuple(types), by_patient, name)


def with_dial(model: Model, documents: Iterable[Document], *, gold: str | None = None) -> Model:
    """The model with its dial set on notes it did not learn from."""
    own = Detector(replace(model, dial=dial.Dial()))
    read = Read.joined(own.read(documents, gold))
    return replace(model, dial=dial.fit(read, model.labels))


def _lexicon(lists: Mapping[str, Iterable[str]]) -> Lexicon | None:
    chosen = {label: list(phrases) for label, phrases in lists.items()}
    return Lexicon.make(chosen) if any(chosen.values()) else None
