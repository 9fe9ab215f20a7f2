"""The detector: patterns, known identifiers, models and the user's lists, joined so that nothing found is lost.

    documents  →  cues  →  rules ∪ models at the dial  →  repeats of what was found  →  the layer "deid"

T tokens, L labels, the first of which is O.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from chaffinch.deid.detect import context, cues, repeats
from chaffinch.deid.detect import recall_dial as dial
from chaffinch.deid.detect import token_scores as detect_soft
from chaffinch.deid.detect.admission import KnownIdentifiers
from chaffinch.deid.detect.class_doubt import class_layer, wider_class
from chaffinch.deid.detect.merge import is_code, merge_by_rank, trim_punctuation, vote_spans, widen
from chaffinch.deid.detect.model import Model, load, upper_if_caseless
from chaffinch.deid.detect.recall_dial import DialSample
from chaffinch.deid.detect.token_scores import Claim, Flags, TokenIndex
from chaffinch.deid.detect.word_lists import WordLists, word_lists
from chaffinch.deid.kinds import KINDS, handling_of, kind_of
from chaffinch.deid.patterns import find as patterns
from chaffinch.deid.patterns import places as patterns_places
from chaffinch.errors import ConfigError
from chaffinch.features.lexicon import Lexicon
from chaffinch.kernels.lattice import Floats
from chaffinch.models.alignment import model as alignment
from chaffinch.models.core.batching import BATCH_TOKENS, batches
from chaffinch.text import Corpus, Document, Soft, Span
from chaffinch.weak.fingerprint import fingerprint
from chaffinch.weak.sources.base import Source, settle

LAYER = "deid"
PROTECTED_THRESHOLD = 0.9  # the chance of a name that a bare eponym needs to be flagged by models
CERTAIN = 0.99  # the score of what a user or an admission file says
SHORTEST = 3  # characters of a word whose repeats are looked for
LONGEST_CELL = 3  # digits of a number in a row of numbers that identifies nobody


@dataclass(frozen=True, slots=True, eq=False)
class HybridDetector:
    """Adds the layer "deid", soft labels of that name, and chances of classes (`class_doubt`). Made by `detector`.

    `deny` and `known` always count; `allow` takes away what patterns, models and repeats find inside its phrases. With
    `by_patient`, names found in one document are found in all of the patient's, and all documents are held at once.
    """

    model: Model = field(repr=False)
    recall: float | None = None
    known: KnownIdentifiers | None = None
    allow: Lexicon | None = field(default=None, repr=False)
    deny: Lexicon | None = field(default=None, repr=False)
    types: tuple[Source, ...] = ()
    by_patient: bool = False
    name: str = "rules"
    layer: str = LAYER
    lists: WordLists = field(default_factory=word_lists, repr=False)

    @property
    def model_digest(self) -> str:
        """The digest of its model."""
        return self.model.digest

    @property
    def facts(self) -> dict[str, Any]:
        """What the manifest tells of its settings: no phrase, only how many."""
        allow, deny = (0 if lists is None else sum(map(len, lists.phrases)) for lists in (self.allow, self.deny))
        known = 0 if self.known is None else sum(map(len, self.known.patients.values()))
        return {"recall": self.recall, "allow": allow, "deny": deny, "known": known, "types": len(self.types)}

    @property
    def digest(self) -> str:
        """Return what stands for all that decides what it finds. Never publish it: guessed phrases could be checked."""
        model = [self.model.taggers, self.model.dial.told(), self.model.rules]
        voice = self.model.context
        model += [] if voice is None else [voice.describe(), voice.reader.state()]
        lists = [self.allow, self.deny, self.known, self.types, self.lists.language, self.lists.hidden]
        return fingerprint([model, self.recall, lists, self.by_patient, self.layer])

    def __call__(self, documents: Iterable[Document]) -> Iterator[Document]:
        """The documents in their order, each with the layer; any that it had is replaced."""
        if self.by_patient:
            given = list(documents)
            yield from self._repeated(
                [doc for docs in batches(given, BATCH_TOKENS) for doc in self._found(docs)], given
            )
            return
        for docs in batches(documents, BATCH_TOKENS):
            yield from self._repeated(self._found(docs), docs)

    def annotate(self, documents: Iterable[Document], *, layer: str | None = None, posteriors: bool = False) -> Corpus:
        """Return the documents with one more layer, as a tagger does; with `posteriors`, soft labels stand beside."""
        name = layer or self.layer

        def walk() -> Iterator[Document]:
            for doc in replace(self, layer=name)(documents):
                others = {key: soft for key, soft in doc.soft.items() if key not in (name, class_layer(name))}
                yield doc if posteriors else replace(doc, soft=others)

        return Corpus(walk)

    def read(self, documents: Iterable[Document], gold: str | None = None) -> Iterator[DialSample]:
        """What the dial is fitted on: the tokens of documents with a gold layer, before any threshold."""
        for docs in batches(documents, BATCH_TOKENS):
            index, soft, _ = self._read(docs)
            chances, types = detect_soft.chances(soft)
            rules = [[*self._sure(doc), *self._ruled(own)] for doc, own in zip(docs, index.docs, strict=True)]
            ruled = index.cut(index.over(rules))
            right = index.cut(index.over([doc.layer(gold) for doc in docs]))
            yield from map(DialSample, index.cut(chances), index.cut(types), ruled, right)

    def soft_labels(self, documents: Sequence[Document]) -> Soft:
        """(N, L) what the models say of the tokens of documents, one after another, before rules and thresholds."""
        return self._read(documents)[1]

    def _read(self, docs: Sequence[Document]) -> tuple[TokenIndex, Soft, list[list[Span]]]:
        """The documents with cues, as models read them, their soft labels joined, and the spans by document."""
        prepared = list(cues.with_cues(map(upper_if_caseless, docs) if self.model.rules else docs, self.lists))
        index = TokenIndex.of(prepared)
        if not self.model.taggers:
            return index, detect_soft.by_rules(prepared, self.lists), [[] for _ in prepared]
        softs, found = [], []
        for tagger in self.model.taggers:
            spans, rows = zip(*tagger.read(prepared), strict=True)
            softs.append(Soft(("O", *tagger.labels), np.concatenate(rows)))
            found.append(detect_soft.scored(index, softs[-1], spans))
        soft = detect_soft.mean(softs)
        soft = detect_soft.discount_common_words(index, soft, self.lists) if self.model.rules else soft
        if self.model.context is not None:
            soft = self.model.context.join(soft, docs)
        return index, soft, found[0] if len(found) == 1 else [vote_spans(own) for own in zip(*found, strict=True)]

    def _found(self, docs: Sequence[Document]) -> list[Document]:
        """The documents with cues and with what rules and models find, and with soft labels sure of it."""
        index, soft, decoded = self._read(docs)
        flagged = self._flagged(index, soft, decoded) if self.model.taggers else decoded
        found = [
            trim_punctuation(doc.text, merge_by_rank([self._sure(doc), *self._ranked(doc, self._ruled(read), own)]))
            for doc, read, own in zip(docs, index.docs, flagged, strict=True)
        ]
        softs = detect_soft.with_spans(index, soft, found)
        said = soft if self.model.taggers else Soft(("O",), np.ones((len(soft.values), 1)))
        classes = detect_soft.with_claims(index, said, list(map(self._claims, docs, found)))
        return [
            replace(
                doc,
                layers={**doc.layers, self.layer: tuple(spans)},
                soft={**doc.soft, self.layer: own, class_layer(self.layer): chances},
            )
            for doc, spans, own, chances in zip(index.docs, found, softs, classes, strict=True)
        ]

    def _ranked(self, doc: Document, ruled: Sequence[Span], modelled: Sequence[Span]) -> list[list[Span]]:
        """Return what patterns find that keep their type, and what other patterns and the models find."""
        exact = self._allowed(doc, [span for span in ruled if _keeps_type(span)])
        others = self._allowed(doc, [*(span for span in ruled if not _keeps_type(span)), *modelled])
        return [widen(doc.text, exact, others), others]

    def _claims(self, doc: Document, spans: Iterable[Span]) -> list[Claim]:
        """Return what spans that no model found say of their class; the user's word and exact patterns are final.

        Where a town stands "at" or "on", it is claimed not to be one, even if a model found it.
        """
        types = {own.name for own in self.types}
        exact = patterns.exact()
        out = []
        for span in spans:
            final = span.source == "deny" or span.source in types or _keeps_type(span)
            denied = not final and _is_town(span.label) and patterns_places.is_no_town(doc.text, span.start)
            if denied or span.source not in detect_soft.MODELLED:
                modelled = span.source in detect_soft.MODELLED
                chance = 0.0 if modelled else 1.0 if span.source in exact else span.score
                out.append(Claim(span, chance, wider_class(span.label), final, denied))
        return out

    def _ruled(self, doc: Document) -> Sequence[Span]:
        """What patterns find, if the model wants to know."""
        return doc.layers[patterns.LAYER] if self.model.rules else ()

    def _sure(self, doc: Document) -> list[Span]:
        """What the user's lists and types and the admission file say."""
        if self.deny is None and not self.types and self.known is None:
            return []
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
        return merge_by_rank([self.known(doc) if self.known else [], spans])

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

    def _flagged(self, index: TokenIndex, soft: Soft, decoded: Sequence[Sequence[Span]]) -> list[list[Span]]:
        """The spans of models of which a token reaches its threshold, and the runs of other tokens that do."""
        chances, types = detect_soft.chances(soft)
        thresholds = self.model.dial.at(self.recall)
        levels = np.array([thresholds.get(name, thresholds[""]) for name in soft.labels])[1:]
        levels = levels[types] if len(levels) else np.ones(len(types))
        flags = (chances >= levels) & self._not_protected(index, chances)
        if self.model.context is not None:
            decoded = context.decode(index, soft, flags)
        return detect_soft.spans_of(index, soft, flags, decoded)

    def _not_protected(self, index: TokenIndex, chances: Floats) -> Flags:
        """(N,) True where models may flag a token.

        It must not be inside a protected term (a bare eponym counts below `PROTECTED_THRESHOLD` alone), nor a short
        number in a row of a table.
        """
        terms = [self.lists.protected(doc) for doc in index.docs]
        tokens, sizes = detect_soft.tokens_of(*index.runs(terms))
        bare = np.repeat(np.array([term.score < 1.0 for spans in terms for term in spans], np.bool_), sizes)
        free = np.ones(len(chances), np.bool_)
        free[tokens[~(bare & (chances[tokens] >= PROTECTED_THRESHOLD))]] = False
        rows = [[span for span in doc.layers[cues.FIELD] if span.label == cues.ROW] for doc in index.docs]
        numbers = [row for row in np.flatnonzero(index.over(rows)).tolist() if _is_short_number(index.word(row)[0])]
        free[numbers] = False
        return free

    def _repeated(self, found: list[Document], originals: Sequence[Document]) -> Iterator[Document]:
        """The documents with the repeats of what was found: in the patient's documents, or in each alone."""
        members: defaultdict[str | int, list[int]] = defaultdict(list)
        for number, doc in enumerate(found):
            members[doc.patient if self.by_patient else number].append(number)
        again = self._aligned(found, members.values())
        for numbers in members.values():
            names = repeats.names_of([found[number] for number in numbers], self.layer, self.lists)
            for number in numbers:
                sure = repeats.repeats(found[number], self.layer, names)
                same = {(span.start, span.end) for span in sure}
                again[number] = [*sure, *(span for span in again[number] if (span.start, span.end) not in same)]
        for number, doc in enumerate(found):
            own = self._with_repeats(doc, again[number]) if again[number] else doc
            yield cues.without_cues(replace(own, text=originals[number].text), originals[number])

    def _aligned(self, found: Sequence[Document], members: Iterable[Sequence[int]]) -> defaultdict[int, list[Span]]:
        """By number, what alignment adds to documents; it sees those with a word that is an identifier elsewhere."""
        chosen = sorted(
            number
            for own in members
            if _recurs([found[number] for number in own], self.layer, self.lists.common_words)
            for number in own
        )
        docs = [
            found[number] if self.by_patient else replace(found[number], group=None, id=str(number))
            for number in chosen
        ]
        aligned = alignment.align(docs, _aligner(self.lists.language), layer=self.layer, mode="recall") if docs else []
        out: defaultdict[int, list[Span]] = defaultdict(list)
        for number, old, new in zip(chosen, docs, aligned, strict=True):
            if new is not old:
                kept = set(old.layers[self.layer])
                out[number] = [span for span in new.layers[self.layer] if span not in kept]
        return out

    def _with_repeats(self, before: Document, again: Sequence[Span]) -> Document:
        """The document with the repeats that count: names with a capital, neither protected nor allowed."""
        text, spans = before.text, before.layers[self.layer]
        terms = [term for term in self.lists.protected(before) if term.score == 1.0]
        new = [own for own in again if _may_repeat(text, own, terms)]
        if not new:
            return before
        joint = trim_punctuation(text, merge_by_rank([spans, self._allowed(before, new)]))
        index, name, old = TokenIndex.of([before]), class_layer(self.layer), set(spans)
        (soft,) = detect_soft.with_spans(index, before.soft[self.layer], [joint])
        (classes,) = detect_soft.with_claims(
            index, before.soft[name], [self._claims(before, [own for own in joint if own not in old])]
        )
        return before.with_layer(self.layer, joint).with_soft(self.layer, soft).with_soft(name, classes)


def _keeps_type(span: Span) -> bool:
    """Whether a pattern that is exact found a direct identifier: a longer span of a model does not change its type.

    A date or a town may be a part of a longer code or name; what is exactly a number of a device is no part of a date.
    """
    return span.source in patterns.exact() and is_code(span.label)


def _is_short_number(word: str) -> bool:
    return len(word) <= LONGEST_CELL and word.isdecimal()


def _may_repeat(text: str, span: Span, terms: Sequence[Span]) -> bool:
    if not _repeats(span.label):
        return False
    own = text[span.start : span.end]
    plain = len(own) < SHORTEST or (own.islower() and own.isalpha())
    return not plain and not any(map(span.overlaps, terms))


def _recurs(docs: Sequence[Document], layer: str, common: frozenset[str]) -> bool:
    """Whether a word inside a span whose repeats count stands elsewhere too; a common word must be in spans twice."""
    times: Counter[str] = Counter()
    counts: set[str] = set()
    for doc in docs:
        spans = doc.layers[layer]
        for span, (first, end) in zip(spans, doc.token_ranges(spans).tolist(), strict=True):
            words = [doc.text[a:b].casefold() for a, b in doc.tokens[first:end].tolist()]
            times.update(words)
            counts.update(word for word in words if len(word) >= SHORTEST and _repeats(span.label))
    texts = [doc.text.casefold() for doc in docs] if counts else []
    return any(
        sum(_standing_alone(word, text) for text in texts) > times[word]
        for word in counts
        if times[word] > 1 or word not in common
    )


def _standing_alone(word: str, text: str) -> int:
    """How often a word stands in a text between characters that are neither letter nor digit."""
    found, at = 0, text.find(word)
    while at >= 0:
        end = at + len(word)
        found += not (text[max(0, at - 1) : at].isalnum() or text[end : end + 1].isalnum())
        at = text.find(word, end)
    return found


@cache
def _repeats(label: str) -> bool:
    return kind_of(label).is_proper_name or kind_of(label).is_code


@cache
def _is_town(label: str) -> bool:
    return label in KINDS and handling_of(KINDS[label]).town


@cache
def _aligner(language: str) -> alignment.Model:
    return alignment.Model.default("recall", common=word_lists(language).common_words)


def detector(
    model: Model | str | Path | None = None,
    *,
    recall: float | None = None,
    known: KnownIdentifiers | str | Path | None = None,
    allow: Iterable[str] = (),
    deny: Iterable[str] | Mapping[str, Iterable[str]] = (),
    types: Sequence[Source] = (),
    by_patient: bool = False,
    fast: bool = False,
) -> HybridDetector:
    """What adds the layer "deid" to documents: of a model, a file, a packaged name, or of rules alone.

    `recall` turns the dial of the model; `known` is an admission file; `allow` and `deny` are phrases that are never or
    always identifiers, `deny` by label if it is a mapping; `types` are sources of the user's own types. `fast` leaves
    out the contextual reader of the model.

    >>> find = detector(deny=["Project Wren"], allow=["Mayo Clinic"])
    >>> [span.label for span in next(find([Document.make("Dr. Penn of Project Wren, 3/4/1998")])).layer("deid")]
    ['DOCTOR', 'OTHER', 'DATE']
    """
    name = "rules" if model is None else "in memory" if isinstance(model, Model) else Path(model).name
    own = Model() if model is None else model if isinstance(model, Model) else load(model)
    if recall is not None and model is None:
        raise ConfigError("recall turns the dial of a model, and rules have none; give a model")
    if fast and own.context is None:
        raise ConfigError("fast leaves out the contextual reader, and this model has none; leave out fast")
    own = own.fast() if fast else own
    own.dial.at(recall)
    held = KnownIdentifiers.read(known) if isinstance(known, str | Path) else known
    lists = deny if isinstance(deny, Mapping) else {"OTHER": deny}
    return HybridDetector(own, recall, held, _lexicon({"O": allow}), _lexicon(lists), tuple(types), by_patient, name)


def with_dial(model: Model, documents: Iterable[Document], *, gold: str | None = None) -> Model:
    """The model with its dial set on notes it did not learn from."""
    own = HybridDetector(replace(model, dial=dial.Dial()))
    read = DialSample.join(own.read(documents, gold))
    return replace(model, dial=dial.fit(read, model.labels))


def _lexicon(lists: Mapping[str, Iterable[str]]) -> Lexicon | None:
    chosen = {label: list(phrases) for label, phrases in lists.items()}
    return Lexicon.make(chosen) if any(chosen.values()) else None
