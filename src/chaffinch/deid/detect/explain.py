"""Explanations of identifiers: which voices of a detector spoke for each span, how sure, and against which threshold.

    note  →  the layer "deid"  →  for each span: known · deny · types · patterns · reader · taggers · repeats · lists

T tokens of a document, L labels, the first of which is O.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from chaffinch.deid.detect.admission import KnownIdentifiers
from chaffinch.deid.detect.detector import HybridDetector, detector
from chaffinch.deid.detect.token_scores import TokenIndex
from chaffinch.deid.patterns import find as patterns
from chaffinch.errors import ConfigError, DataError
from chaffinch.kernels.lattice import Floats
from chaffinch.languages import LEXICA
from chaffinch.models.tagger import Tagger, as_document
from chaffinch.text import Document, Soft, Span
from chaffinch.text.explanation import (
    Explanation,
    Voice,
    VoiceKind,
    explain_by_occlusion,
    likeliest_spans,
    runner_up_of,
)
from chaffinch.text.view import ShownDocument

DEFAULT = "deid-en"  # the packaged model
TOP = 12  # features listed of a voice; more are seldom worth reading


def explain(
    note: Document | str,
    find: HybridDetector | None = None,
    *,
    others: Sequence[Document] = (),
    top: int = TOP,
    features: bool = True,
) -> list[Explanation]:
    """Explain each identifier a detector finds in a note, in order; ConfigError if `top` or `others` does not fit.

    `find` is what `chaffinch.deid.detector` built, by default with the packaged model. `others` are further notes of
    the patient, in which names may repeat, for a detector with `by_patient`. Of each tagger and of the contextual
    reader, the `top` features with the largest weights are listed; without `features`, which take most of the time,
    voices have chances alone. The spans are those of the detector.

    >>> for why in explain("Seen by Dr. Penn on 3/4/1998.", detector()):
    ...     print(why.span.label, [f"{voice.kind} {voice.name}" for voice in why.voices][:1])
    DOCTOR ['pattern name-doctor']
    DATE ['pattern date-number']
    """
    if top < 0:
        raise ConfigError(f"top must be at least 0, got {top}")
    find = find or detector(DEFAULT)
    if others and not find.by_patient:
        raise ConfigError("others are notes of the same patient, which this detector reads apart; set by_patient=True")
    pages = [ShownDocument.of(as_document(doc)) for doc in (note, *others)]
    (final,) = islice(find([page.shown for page in pages]), 1)
    reading = _Reading.of(find, [page.shown for page in pages])
    told = [reading.explain(span, top if features else None) for span in final.layer(find.layer)]
    view = pages[0].view
    return told if view is None else [why.move(view.back) for why in told]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _TaggerReading:
    """What one tagger reads in a note."""

    name: str
    tagger: Tagger
    spans: Sequence[Span]
    rows: Floats  # (T, L)
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Reading:
    """All that a detector sees in a note before its voices are joined."""

    find: HybridDetector
    note: Document
    prepared: Document  # with cues and patterns, in capitals if its case says nothing
    soft: Soft  # joint, of taggers and reader
    read: Soft | None  # of the reader
    stacked: Soft | None  # of the second stage over the taggers
    glanced: Floats | None  # (T,) chances by the glance
    taggers: Sequence[_TaggerReading]
    votes: Sequence[Span]  # of patterns, before overlaps are settled
    before: Sequence[Document]  # this note first, then others, without repeats

    @classmethod
    def of(cls, find: HybridDetector, docs: Sequence[Document]) -> _Reading:
        """Read the first note with each tagger, reader and pattern, and all notes of the patient with the detector."""
        note = docs[0]
        index, soft, _ = find.score_tokens([note])
        prepared = index.docs[0]
        taggers = []
        for number, tagger in enumerate(find.model.taggers):
            ((spans, rows),) = tagger.read([prepared])
            same = [other.layer for other in find.model.taggers].count(tagger.layer) > 1
            name = f"{tagger.layer} {number + 1}" if same else tagger.layer
            taggers.append(_TaggerReading(name, tagger, spans, rows, ("O", *tagger.labels)))
        read = None if find.model.context is None else find.model.context.read([note])
        softs = [Soft(each.labels, each.rows) for each in taggers]
        stacked = None if find.model.stack is None else find.model.stack.rescore(index, softs)
        glance = find.model.glance if find.model.context is None else None
        glanced = None if glance is None else glance.chances(note, prepared)
        votes = patterns.votes_in([prepared], lists=find.lists)[0] if find.model.rules else []
        return cls(find, note, prepared, soft, read, stacked, glanced, taggers, votes, find.detect(docs))

    def explain(self, span: Span, top: int | None) -> Explanation:
        """Explain one span: voices, chance and threshold; at most `top` features of a model, None for none."""
        ((first, end),) = self.note.token_ranges([span]).tolist()
        modelled = bool(self.find.model.taggers) and end > first
        chances, types = self.find.chances(TokenIndex.of([self.prepared]), self.soft)
        decides = first + int(chances[first:end].argmax()) if modelled else first
        voices = (
            *self._user_voices(span),
            *self._pattern_voices(span),
            *(self._model_voices(span, decides, top) if modelled else ()),
            *self._repeat_voices(span),
            *self._list_voices(span, first, end),
        )
        if not modelled:
            return Explanation(span, voices, chance=span.score)
        levels = self.find.model.dial.at(self.find.recall)
        threshold = levels.get(self.soft.labels[1 + types[decides]], levels[""])
        runner_up = runner_up_of(span, self.soft.values[first:end].mean(axis=0), self.soft.labels)
        return Explanation(span, voices, runner_up, float(chances[decides]), float(threshold))

    def _user_voices(self, span: Span) -> Iterator[Voice]:
        """Yield voices of the admission file, the deny list and the user's types that touch the span."""
        known = self.find.known(self.note) if isinstance(self.find.known, KnownIdentifiers) else []
        if found := _touching(known, span):
            yield Voice("known", "admission file", found)
        for name, spans in _by_source(_touching(replace(self.find, known=None).certain_spans(self.note), span)).items():
            kind: VoiceKind = "deny" if name == "deny" else "type"
            yield Voice(kind, "" if name == "deny" else name, spans)

    def _pattern_voices(self, span: Span) -> Iterator[Voice]:
        """Yield a voice for each pattern that matches at the span, the surest first."""
        for name, spans in _by_source(sorted(_touching(self.votes, span), key=lambda vote: -vote.score)).items():
            yield Voice("pattern", name, spans)

    def _model_voices(self, span: Span, decides: int, top: int | None) -> Iterator[Voice]:
        """Yield voices of reader, second stage, glance and taggers: chances at token `decides`, features if `top`."""
        if self.read is not None:
            yield self._reader_voice(self.read, span, decides, top)
        if self.stacked is not None:
            yield Voice("stack", "", (), float(1.0 - self.stacked.values[decides, 0]))
        if self.glanced is not None and not np.isnan(self.glanced[decides]):  # a word, not a mark
            yield Voice("glance", "", (), float(self.glanced[decides]))
        for each in self.taggers:
            said = tuple(replace(found, source="") for found in _touching(each.spans, span))
            scored = tuple(replace(found, score=self._mean_chance(each, found)) for found in said)
            told = _explain_tagger(each, self.prepared, (*said, span)) if top is not None else None
            extra = replace(told, features=told.features[:top]) if told is not None else Voice("tagger", each.name)
            yield replace(extra, name=each.name, spans=scored, chance=float(1.0 - each.rows[decides, 0]))

    def _reader_voice(self, read: Soft, span: Span, decides: int, top: int | None) -> Voice:
        """Return the reader's voice; with `top`, the words around the span that its chance depends on."""
        voice, chance = self.find.model.context, float(1.0 - read.values[decides, 0])
        if top is None or voice is None:
            return Voice("reader", "", likeliest_spans(self.note, read.values, read.labels, span), chance)
        posteriors = voice.reader.posteriors
        told = explain_by_occlusion(
            self.note, self._whole_tokens(span), lambda docs: list(posteriors(docs)), read.labels, kind="reader"
        ).voices[0]
        return replace(told, chance=chance, features=told.features[:top])

    def _mean_chance(self, each: _TaggerReading, found: Span) -> float:
        """Return the mean over a span's tokens of the tagger's chance of the span's label."""
        ((first, end),) = self.note.token_ranges([found]).tolist()
        return float(each.rows[first:end, each.labels.index(found.label)].mean())

    def _whole_tokens(self, span: Span) -> Span:
        """Return the span widened to the edges of its tokens."""
        ((first, end),) = self.note.token_ranges([span]).tolist()
        return replace(span, start=int(self.note.tokens[first, 0]), end=int(self.note.tokens[end - 1, 1]))

    def _repeat_voices(self, span: Span) -> Iterator[Voice]:
        """Yield a voice for each note that has a span of the same word, if only repetition found this span."""
        if _touching(self.before[0].layer(self.find.layer), span):
            return
        words = {word.casefold() for word in _words(self.note, span)}
        for number, doc in enumerate(self.before):
            found = [
                other for other in doc.layer(self.find.layer) if words & {w.casefold() for w in _words(doc, other)}
            ]
            if found and number == 0:
                yield Voice("repeat", "this note", tuple(replace(other, source="") for other in found))
            elif found:
                yield Voice("repeat", f"other note {number}")

    def _list_voices(self, span: Span, first: int, end: int) -> Iterator[Voice]:
        """Yield a voice for each word list that holds a word of the span, and protected terms that touch it."""
        lists, tokens = self.find.lists, self.note.tokens[first:end].tolist()
        for name in LEXICA:
            for rate in ("hi", "lo"):
                held = [
                    Span(start, stop, name) for start, stop in tokens
                    if lists.rate(self.note.text[start:stop], name) == rate
                ]  # fmt: skip
                if held:
                    yield Voice("list", f"{name}:{rate}", tuple(held))
        common = [Span(start, stop, "O") for start, stop in tokens if lists.is_common(self.note.text[start:stop])]
        if common:
            yield Voice("list", "common", tuple(common))
        for name, terms in _by_source(_touching(lists.find_protected(self.prepared), span)).items():
            yield Voice("protected", name, terms)


def _explain_tagger(each: _TaggerReading, doc: Document, spans: Sequence[Span]) -> Voice | None:
    """Return the voice of a tagger on the first of some spans that it can explain; None if it can explain none."""
    for span in spans:
        if span.label in each.tagger.labels:
            try:
                return each.tagger.explain(doc, span).voices[0]
            except DataError:  # the span is no run of whole tokens in a sentence, so the tagger has no reading of it
                continue
    return None


def _touching(spans: Sequence[Span], span: Span) -> tuple[Span, ...]:
    """Return the spans that overlap the given one."""
    return tuple(other for other in spans if other.overlaps(span))


def _by_source(spans: Sequence[Span]) -> dict[str, tuple[Span, ...]]:
    """Return {source: its spans, without the source}, in order of each source's first span."""
    names = list(dict.fromkeys(span.source for span in spans))
    return {name: tuple(replace(span, source="") for span in spans if span.source == name) for name in names}


def _words(doc: Document, span: Span) -> list[str]:
    """Return the texts of the tokens that a span touches."""
    ((first, end),) = doc.token_ranges([span]).tolist()
    return [doc.text[start:stop] for start, stop in doc.tokens[first:end].tolist()]
