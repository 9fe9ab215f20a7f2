"""The hybrid detector: the union of patterns, known identifiers, models and the user's lists.

    documents  →  views  →  cues  →  rules ∪ models at the dial  →  repeats of the spans found  →  the layer "deid"

T tokens, L labels, the first of which is O.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import starmap
from pathlib import Path
from typing import Any

import numpy as np

from chaffinch.deid.detect import cues, repeats
from chaffinch.deid.detect import recall_dial as dial
from chaffinch.deid.detect import token_scores as detect_soft
from chaffinch.deid.detect.admission import KnownIdentifiers
from chaffinch.deid.detect.class_doubt import class_layer, wider_class
from chaffinch.deid.detect.merge import cut_hours, is_code, merge_by_rank, trim_punctuation, vote_spans, widen
from chaffinch.deid.detect.model import Model, load, upper_if_caseless
from chaffinch.deid.detect.recall_dial import DialSample
from chaffinch.deid.detect.token_scores import Claim, Flags, TokenIndex
from chaffinch.deid.detect.voices import across_notes, context
from chaffinch.deid.detect.word_lists import WordLists, word_lists
from chaffinch.deid.kinds import KINDS, handling_of, kind_of
from chaffinch.deid.patterns import find as patterns
from chaffinch.deid.patterns import places as patterns_places
from chaffinch.errors import ConfigError
from chaffinch.features.lexicon import Lexicon
from chaffinch.features.observe import observe_once
from chaffinch.kernels.lattice import Floats, Ints
from chaffinch.models.core.batching import BATCH_TOKENS, batches, without_collection
from chaffinch.text import Corpus, Document, Soft, Span
from chaffinch.text.view import ShownDocument, narrow_view, plain_text
from chaffinch.weak.fingerprint import fingerprint
from chaffinch.weak.sources.base import Source, collect_spans

LAYER = "deid"
# The chance of an identifier from which models may flag a word of a protected term ("Foley"); lower finds more people
# who share a name with a disease or device, and flags more of these. On dev writers, half of the words between .5 and
# .9 are identifiers, and nearly all above .9.
PROTECTED_THRESHOLD = 0.7
# In a model that overrules patterns, the odds of words in a pattern's span are multiplied by this, and the span counts
# if one of its words is then flagged; codes of exact patterns always count. Taggers have patterns as features; on dev
# writers 10 costs .002 of precision, and spans that always count .005, for nothing.
PATTERN_ODDS = 3.0
# Words at the edges of such a pattern's name, place or institution are left out where the models' chance is below this.
# On dev writers .05 to .2 cost no recall and gain .003 to .004 of precision in the balanced setting, .003 in the safe.
EDGE = 0.1
# Of a type that reader and glance never learnt, no model overrules a pattern: on aci-phi, which marks departments, that
# finds .011 more of all identifier words. Dev writers leave them unmarked; there it costs .0003 of precision (± .0002).
UNLEARNT = frozenset({"DEPARTMENT"})
CERTAIN = 0.99  # the score of spans from the user's deny list and types
# The most digits of a number in a row of numbers that models may not flag; longer ones may be codes.
LONGEST_CELL = 3


@dataclass(frozen=True, slots=True, eq=False)
class HybridDetector:
    """A detector that adds the layer "deid", soft labels and class probabilities (`class_doubt`). Built by `detector`.

    `deny` and `known` always count; `allow` removes what patterns, models and repeats find inside its phrases. With
    `by_patient`, a name found in one document is searched for in all documents of the patient; this holds all documents
    in memory.
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
    _digests: list[str] = field(default_factory=list, init=False, repr=False)  # computed once: it reads the whole model

    @property
    def model_digest(self) -> str:
        """Return the checksum of the model, which the manifest publishes."""
        return self.model.digest

    @property
    def facts(self) -> dict[str, Any]:
        """Return for the manifest recall asked, expected and promised, and how many phrases, identifiers, types."""
        allow, deny = (0 if lexicon is None else sum(map(len, lexicon.phrases)) for lexicon in (self.allow, self.deny))
        known = 0 if self.known is None else sum(map(len, self.known.patients.values()))
        outlook = self.model.dial.outlook(self.recall)
        recalls = {
            "recall": self.recall,
            "expected_recall": None if outlook.expected is None else round(outlook.expected, 4),
            "promised_recall": None if outlook.promised is None else round(outlook.promised, 4),
        }
        return {**recalls, "allow": allow, "deny": deny, "known": known, "types": len(self.types)}

    @property
    def digest(self) -> str:
        """Return a hash of model, settings and the user's lists. Never publish it: it confirms guessed phrases."""
        if self._digests:
            return self._digests[0]
        model = [self.model.taggers, self.model.dial.to_dict(), self.model.rules, self.model.overrules]
        voice = self.model.context
        model += [] if voice is None else [voice.describe(), voice.reader.state()]
        model += [] if self.model.stack is None else [self.model.stack.state()]
        model += [] if self.model.glance is None else [self.model.glance.describe(), self.model.glance.glance.state()]
        lists = [self.allow, self.deny, self.known, self.types, self.lists.language, self.lists.hidden]
        self._digests.append(fingerprint([model, self.recall, lists, self.by_patient, self.layer]))
        return self._digests[0]

    def __call__(self, documents: Iterable[Document]) -> Iterator[Document]:
        """Yield the documents in order, each with the layer of identifiers; an old layer of that name is replaced."""
        return (doc for doc, _ in self.read(documents))

    def read(
        self, documents: Iterable[Document], remembered: Mapping[str, repeats.NameCounts] | None = None
    ) -> Iterator[tuple[Document, repeats.NameCounts]]:
        """Yield (document with the layer, counts of its names, sure or not); no counts if `remembered` is None.

        With `by_patient`, names that are `remembered` of earlier notes of a patient are searched for, too. Those of
        earlier releases count even if they were not sure: there, they were replaced.
        """
        for docs in [list(documents)] if self.by_patient else batches(documents, BATCH_TOKENS):
            pages = list(map(ShownDocument.of, docs))
            shown = [page.shown for page in pages]
            found = [doc for part in batches(shown, BATCH_TOKENS) for doc in self.detect(part)]
            for page, (doc, names) in zip(pages, self._add_repeats(found, shown, remembered), strict=True):
                yield page.restore(doc), names

    def read_patient(self, new_records: across_notes.NewRecords) -> across_notes.PatientReading:
        """Return a detection in two passes of one patient's notes, which need not be in memory together."""
        return across_notes.PatientReading(self, new_records)

    def annotate(self, documents: Iterable[Document], *, layer: str | None = None, posteriors: bool = False) -> Corpus:
        """Return the documents with identifiers in a layer, found lazily; with `posteriors`, also with soft labels."""
        name = layer or self.layer

        def walk() -> Iterator[Document]:
            """Detect, and yield each document, without the soft labels unless they are wanted."""
            for doc in replace(self, layer=name)(documents):
                others = {key: soft for key, soft in doc.soft.items() if key not in (name, class_layer(name))}
                yield doc if posteriors else replace(doc, soft=others)

        return Corpus(walk)

    def dial_samples(self, documents: Iterable[Document], gold: str | None = None) -> Iterator[DialSample]:
        """Yield per document the chances, types, rule flags and gold flags of its tokens, to fit the recall dial on."""
        for docs in batches((ShownDocument.of(doc).shown for doc in documents), BATCH_TOKENS):
            index, soft, _ = self.score_tokens(docs)
            chances, types = self.chances(index, soft)
            rules = [
                [*self.certain_spans(doc), *filter(self._always_counts, patterned)]
                for doc, patterned in zip(docs, self._pattern_spans(index), strict=True)
            ]
            ruled = index.split_rows(index.flags(rules))
            right = index.split_rows(index.flags([doc.layer(gold) for doc in docs]))
            yield from map(DialSample, index.split_rows(chances), index.split_rows(types), ruled, right)

    def soft_labels(self, documents: Sequence[Document]) -> Soft:
        """Return (N, L) the joint soft labels of all models for all tokens, before rules and thresholds."""
        return self.score_tokens(documents)[1]

    def prepare(self, docs: Iterable[Document]) -> list[Document]:
        """Return the documents as taggers read them: with cues, and in capitals where case tells nothing."""
        return list(cues.with_cues(map(upper_if_caseless, docs) if self.model.rules else docs, self.lists))

    def score_tokens(self, docs: Sequence[Document]) -> tuple[TokenIndex, Soft, list[list[Span]]]:
        """Return the index of all tokens, with cues, joint (N, L) soft labels, and taggers' voted spans by document."""
        prepared = self.prepare(docs)
        index = TokenIndex.of(prepared)
        if not self.model.taggers:
            return index, detect_soft.by_rules(prepared, self.lists), [[] for _ in prepared]
        softs, found = [], []
        with observe_once():
            for tagger in self.model.taggers:
                runs, rows = zip(*tagger.read_runs(prepared), strict=True)
                softs.append(Soft(("O", *tagger.labels), rows[0] if len(rows) == 1 else np.concatenate(rows)))
                del rows  # of a long note, hundreds of megabytes
                found.append(detect_soft.score_runs(index, softs[-1], runs))
        soft = self.model.join_taggers(index, docs, softs)
        if self.model.context is not None:
            soft = self.model.context.join(soft, docs)
        if len(found) == 1:
            return index, soft, [list(starmap(Span, spans)) for spans in found[0]]
        return index, soft, [vote_spans(spans) for spans in zip(*found, strict=True)]

    def detect(self, docs: Sequence[Document]) -> list[Document]:
        """Detect by rules, lists and models; return the documents with cues, spans, soft labels and classes."""
        with without_collection():
            return self._detect(docs)

    def _detect(self, docs: Sequence[Document]) -> list[Document]:
        """Return what `detect` does."""
        index, soft, decoded = self.score_tokens(docs)
        chances, types = self.chances(index, soft)
        flags = self._flags(index, soft, chances, types)
        modelled = self._spans_of_model(index, soft, flags, decoded) if self.model.taggers else decoded
        patterned = self._select_heeded(index, flags, chances)
        found = []
        for doc, ruled, others in zip(docs, patterned, modelled, strict=True):
            ranks = [self.certain_spans(doc), *self._rank_spans(doc, ruled, others)]
            found.append(cut_hours(doc.text, trim_punctuation(doc.text, merge_by_rank(ranks))))
        softs = detect_soft.with_spans(index, soft, found)
        modelled_soft = soft if self.model.taggers else Soft(("O",), np.ones((len(soft.values), 1)))
        classes = detect_soft.with_claims(index, modelled_soft, list(map(self._claims, docs, found)))
        return [
            replace(
                doc,
                layers={**doc.layers, self.layer: tuple(spans)},
                soft={**doc.soft, self.layer: labels, class_layer(self.layer): chances},
            )
            for doc, spans, labels, chances in zip(index.docs, found, softs, classes, strict=True)
        ]

    def _rank_spans(self, doc: Document, ruled: Sequence[Span], modelled: Sequence[Span]) -> list[list[Span]]:
        """Return two ranks of spans not on the allow list: exact codes of patterns, widened; all others."""
        exact = self._not_allowed(doc, [span for span in ruled if _keeps_type(span)])
        others = self._not_allowed(doc, [*(span for span in ruled if not _keeps_type(span)), *modelled])
        return [widen(doc.text, exact, others), others]

    def _claims(self, doc: Document, spans: Iterable[Span]) -> list[Claim]:
        """Return claims on the class of spans that rules or users found, or that cannot be towns; some are final.

        A town after "at", "on" or "returned to" is claimed not to be a town, even if a model found it.
        """
        types = {source.name for source in self.types}
        exact = patterns.exact()
        out = []
        for span in spans:
            final = span.source == "deny" or span.source in types or _keeps_type(span)
            denied = not final and _is_town(span.label) and patterns_places.is_no_town(doc.text, span.start, span.end)
            if denied or span.source not in detect_soft.MODELLED:
                modelled = span.source in detect_soft.MODELLED
                chance = 0.0 if modelled else 1.0 if span.source in exact else span.score
                out.append(Claim(span, chance, wider_class(span.label), final, denied))
        return out

    def _pattern_spans(self, index: TokenIndex) -> list[list[Span]]:
        """Return by document the spans of patterns; none with `rules=False`."""
        return [list(doc.layers[patterns.LAYER]) if self.model.rules else [] for doc in index.docs]

    def _select_heeded(self, index: TokenIndex, flags: Flags, chances: Floats) -> list[list[Span]]:
        """Return by document the pattern spans that always count, and those that hold a flagged token.

        Of the latter, proper names are without the words at their edges that the models are sure are none.
        """
        spans = self._pattern_spans(index)
        if not self.model.overrules:
            return spans
        firsts, ends = index.runs(spans)
        counts = np.concatenate([[0], np.cumsum(flags)])
        hit = iter((counts[ends] > counts[firsts]).tolist())
        heeded = [[span for span in part if next(hit) or self._always_counts(span)] for part in spans]
        trimmed = detect_soft.trim_spans(index, heeded, flags | (chances >= EDGE))
        return [
            [
                span if self._always_counts(span) or not kind_of(span.label).is_proper_name else cut
                for span, cut in zip(part, cuts, strict=True)
            ]
            for part, cuts in zip(heeded, trimmed, strict=True)
        ]

    def _always_counts(self, span: Span) -> bool:
        """Tell whether a pattern's span counts whatever models say: an exact code, or models cannot overrule it."""
        return not self.model.overrules or span.label in UNLEARNT or _keeps_type(span)

    def chances(self, index: TokenIndex, soft: Soft) -> tuple[Floats, Ints]:
        """Return (N,) chances of identifiers, raised under patterns that models may overrule; (N,) likeliest labels."""
        chances, types = detect_soft.chances(soft)
        if not self.model.overrules:
            return chances, types
        patterned = index.flags(self._pattern_spans(index))
        raised = chances * PATTERN_ODDS / (1.0 + chances * (PATTERN_ODDS - 1.0))
        return np.where(patterned, raised, chances), types

    def certain_spans(self, doc: Document) -> list[Span]:
        """Return merged spans of admission file (first), deny list and user's types in a document."""
        if self.deny is None and not self.types and self.known is None:
            return []
        spans = (
            [
                Span(start, end, self.deny.labels[label], CERTAIN, "deny")
                for start, end, label in _find_phrases(self.deny, doc.text)
            ]
            if self.deny
            else []
        )
        for source in self.types:
            found, _ = collect_spans(source(doc), str(getattr(source, "label", "")) or source.name, len(doc.text))
            spans += [replace(span, score=CERTAIN, source=source.name) for span in found if span.label != "O"]
        return merge_by_rank([self.known(doc) if self.known else [], spans])

    def _not_allowed(self, doc: Document, spans: Iterable[Span]) -> list[Span]:
        """Return the spans that are not wholly inside a phrase of the allow list."""
        if self.allow is None:
            return list(spans)
        phrases = _find_phrases(self.allow, doc.text)  # in order, never overlapping
        ends = [end for _, end, _ in phrases]

        def inside(span: Span) -> bool:
            """Tell whether a span is wholly inside an allowed phrase."""
            number = bisect_right(ends, span.start)
            return number < len(phrases) and phrases[number][0] <= span.start and span.end <= phrases[number][1]

        return [span for span in spans if not inside(span)]

    def _flags(self, index: TokenIndex, soft: Soft, chances: Floats, types: Ints) -> Flags:
        """Return (N,) whether a token reaches its type's threshold and is not protected; all False without taggers."""
        if not self.model.taggers:
            return np.zeros(len(soft.values), np.bool_)
        thresholds = self.model.dial.at(self.recall)
        levels = np.array([thresholds.get(name, thresholds[""]) for name in soft.labels])[1:]
        levels = levels[types] if len(levels) else np.ones(len(types))
        return (chances >= levels) & self._not_protected(index, chances)

    def _spans_of_model(
        self, index: TokenIndex, soft: Soft, flags: Flags, decoded: Sequence[Sequence[Span]]
    ) -> list[list[Span]]:
        """Return by document decoded spans (the reader's if any) with a flagged token; runs of other flagged tokens."""
        if self.model.context is not None:
            decoded = context.decode(index, soft, flags)
        return detect_soft.spans_of(index, soft, flags, decoded)

    def _not_protected(self, index: TokenIndex, chances: Floats) -> Flags:
        """Return (N,) whether models may flag a token: in no protected term, unless likely; no short number of a table.

        They may flag a token inside a protected term if its chance reaches `PROTECTED_THRESHOLD`.
        """
        terms = [self.lists.find_protected(doc) for doc in index.docs]
        free = ~index.flags(terms) | (chances >= PROTECTED_THRESHOLD)
        rows = [[span for span in doc.layers[cues.FIELD] if span.label == cues.ROW] for doc in index.docs]
        numbers = [row for row in np.flatnonzero(index.flags(rows)).tolist() if _is_short_number(index.word(row))]
        free[numbers] = False
        return free

    def _add_repeats(
        self, found: list[Document], originals: Sequence[Document], remembered: Mapping[str, repeats.NameCounts] | None
    ) -> Iterator[tuple[Document, repeats.NameCounts]]:
        """Yield (document without cues, with more mentions of its patient's or its own names; counts of its names).

        The names of a patient are those found in these documents, and the remembered ones.
        """
        members: defaultdict[str | int, list[int]] = defaultdict(list)
        for number, doc in enumerate(found):
            members[doc.patient if self.by_patient else number].append(number)
        with without_collection():
            again = self._align(found, members.values())
            counts = [repeats.count_names(doc, self.layer, self.lists) for doc in found]
        chosen: dict[int, dict[str, str]] = {}
        for numbers in members.values():
            earlier = (remembered or {}).get(found[numbers[0]].patient, {}) if self.by_patient else {}
            labels = repeats.choose_labels([earlier, *(counts[number] for number in numbers)])
            chosen |= dict.fromkeys(numbers, labels)
        for number, (doc, shown) in enumerate(zip(found, originals, strict=True)):
            yield self.finish(doc, shown, again[number], chosen[number], remember=remembered is not None)

    def finish(
        self, doc: Document, shown: Document, aligned: Sequence[Span], labels: Mapping[str, str], *, remember: bool
    ) -> tuple[Document, repeats.NameCounts]:
        """Return (detected document, no cues, with aligned spans and mentions of names in `labels`; its name counts).

        The counts are empty unless they are to be remembered.
        """
        sure = repeats.find_repeats(doc, self.layer, labels)
        same = {(span.start, span.end) for span in sure}
        again = [*sure, *(span for span in aligned if (span.start, span.end) not in same)]
        repeated = self._with_repeats(doc, again) if again else doc
        names = repeats.count_names(doc, self.layer, self.lists, least=0.0) if remember else {}
        return cues.without_cues(replace(repeated, text=shown.text), shown), names

    def _align(self, found: Sequence[Document], members: Iterable[Sequence[int]]) -> defaultdict[int, list[Span]]:
        """Return {document number: spans that alignment adds}, for groups (`members`) where a span's word recurs."""
        chosen = sorted(
            number
            for numbers in members
            if _recurs([found[number] for number in numbers], self.layer, self.lists.common_words)
            for number in numbers
        )
        docs = [
            found[number] if self.by_patient else replace(found[number], group=None, id=str(number))
            for number in chosen
        ]
        aligned = across_notes.align(docs, self.layer, self.lists.language) if docs else []
        out: defaultdict[int, list[Span]] = defaultdict(list)
        for number, old, new in zip(chosen, docs, aligned, strict=True):
            if new is not old:
                out[number] = across_notes.new_spans(old.layers[self.layer], new.layers[self.layer])
        return out

    def _with_repeats(self, before: Document, again: Sequence[Span]) -> Document:
        """Return the document with the repeats added that are long enough, not protected, not on the allow list."""
        text, spans = before.text, before.layers[self.layer]
        terms = [term for term in self.lists.find_protected(before) if term.score == 1.0]
        new = [span for span in again if across_notes.may_repeat(text, span, terms)]
        if not new:
            return before
        joint = trim_punctuation(text, merge_by_rank([spans, self._not_allowed(before, new)]))
        index, name, old = TokenIndex.of([before]), class_layer(self.layer), set(spans)
        (soft,) = detect_soft.with_spans(index, before.soft[self.layer], [joint])
        (classes,) = detect_soft.with_claims(
            index, before.soft[name], [self._claims(before, [span for span in joint if span not in old])]
        )
        return before.with_layer(self.layer, joint).with_soft(self.layer, soft).with_soft(name, classes)


def _find_phrases(lexicon: Lexicon, text: str) -> list[tuple[int, int, int]]:
    """Return (start, end, label index) of a lexicon's phrases in a text; any white space between words matches."""
    view = narrow_view(text)
    if view is None:
        return lexicon.find(text)
    return [(*view.back(start, end), label) for start, end, label in lexicon.find(view.text)]


def _keeps_type(span: Span) -> bool:
    """Tell whether the span is a code found by an exact pattern, so that no model's span changes its type.

    A date or a town may be a part of a longer code or name, but the exact number of a device is no part of a date.
    """
    return span.source in patterns.exact() and is_code(span.label)


def _is_short_number(word: str) -> bool:
    """Tell whether a word is a number of at most three digits."""
    return len(word) <= LONGEST_CELL and word.isdecimal()


def _recurs(docs: Sequence[Document], layer: str, common: frozenset[str]) -> bool:
    """Tell whether a word of a name or code occurs outside the found spans too; common words need two spans."""
    words = across_notes.SpanWords()
    for doc in docs:
        words.add(doc, layer)
    return words.recur(lambda: docs, common, notes=len(docs))


@cache
def _is_town(label: str) -> bool:
    """Tell whether a label is of a kind that is a town."""
    return label in KINDS and handling_of(KINDS[label]).town


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
    """Build a detector of a model (file, packaged name, or None for rules alone); ConfigError for an unfit option.

    `recall` sets the dial of the model; `known` is an admission file; `allow` and `deny` are phrases that are never or
    always identifiers, `deny` by label if it is a mapping; `types` are sources of custom types. `fast` leaves out
    the contextual reader of the model.

    >>> find = detector(deny=["Project Wren"], allow=["Mayo Clinic"])
    >>> [span.label for span in next(find([Document.make("Dr. Penn of Project Wren, 3/4/1998")])).layer("deid")]
    ['DOCTOR', 'OTHER', 'DATE']
    """
    name = "rules" if model is None else "in memory" if isinstance(model, Model) else Path(model).name
    found = Model() if model is None else model if isinstance(model, Model) else load(model)
    if recall is not None and model is None:
        raise ConfigError("recall sets the dial of a model, and rules have none; give a model")
    if fast and found.context is None:
        raise ConfigError("fast leaves out the contextual reader, and this model has none; leave out fast")
    found = found.fast() if fast else found
    found.dial.at(recall)
    admission = KnownIdentifiers.read(known) if isinstance(known, str | Path) else known
    lists = deny if isinstance(deny, Mapping) else {"OTHER": deny}
    allowed, denied = _lexicon({"O": allow}), _lexicon(lists)
    return HybridDetector(found, recall, admission, allowed, denied, tuple(types), by_patient, name)


def with_dial(model: Model, documents: Iterable[Document], *, gold: str | None = None) -> Model:
    """Return the model with its recall dial fitted on notes that it did not learn from, each a group of its own."""
    find = HybridDetector(replace(model, dial=dial.Dial()))
    samples = list(find.dial_samples(documents, gold))
    groups = [str(number) for number in range(len(samples))]
    return replace(model, dial=dial.fit_by_group(samples, groups, model.labels))


def _lexicon(lists: Mapping[str, Iterable[str]]) -> Lexicon | None:
    """Return a lexicon of phrases by label, in plain characters; None if there is no phrase."""
    by_label = {label: list(map(plain_text, phrases)) for label, phrases in lists.items()}
    return Lexicon.make(by_label) if any(by_label.values()) else None
