"""Finding the arguments themselves: a phrase HMM labels segments, and rules make tuples of them.

T segments of a sentence. Roles are the domains of the model: role a has the label `1 << a`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import NamedTuple, TypeAlias

import numpy as np

from chaffinch.bundle import Manifest
from chaffinch.errors import DataError
from chaffinch.models.phrasehmm.fit import Model
from chaffinch.models.phrasehmm.model import PhraseReading
from chaffinch.models.phrasehmm.segments import parsed
from chaffinch.models.phrasehmm.selection import Platt
from chaffinch.relations.config import Extraction
from chaffinch.relations.entities.extractor import Reason, Scored
from chaffinch.relations.evaluate import ranking
from chaffinch.relations.evaluate.report import Judged, Summary
from chaffinch.relations.joint.pairing import tuples
from chaffinch.relations.joint.segments import Line, lines
from chaffinch.relations.schema import Schema
from chaffinch.text import Document, Relation, Span

SOURCE = "relations"
BATCH = 64  # documents read at a time
Key: TypeAlias = tuple[tuple[int, int], ...]  # places of arguments
LABEL = "found"  # of arguments that are no known entity


class Tuple(NamedTuple):
    """A tuple that was found: the spans of its arguments, and its confidence."""

    spans: tuple[Span, ...]
    confidence: float


class PairingRule(NamedTuple):
    """When a relation is found: what the positive model must be ahead by, and the chance that makes an argument."""

    lead: float
    level: float

    def apply(self, reading: PhraseReading, roles: int) -> PhraseReading:
        """The reading with the labels of this rule; found if every role has a segment and the lead is large enough."""
        over = reading.chances >= self.level  # (T, roles)
        labels = tuple(int(own) for own in over @ (1 << np.arange(roles)))
        enough = reading.positive - reading.null > self.lead if np.isfinite(reading.positive) else False
        return reading._replace(labels=labels, extracted=bool(enough and over.any(axis=0).all()))


@dataclass(frozen=True, slots=True, eq=False)
class JointExtractor:
    """Finds tuples and their arguments in sentences."""

    schema: Schema
    config: Extraction
    model: Model = field(repr=False)
    rule: PairingRule | None  # None for the labels of the likeliest path
    calibration: Platt | None = field(repr=False)
    across: int  # stated tuples that lie in no one sentence, which nothing was learnt from
    threshold: float
    held: Scored = field(repr=False)  # tuples of training, read by models that had not seen their documents
    report: Summary | None
    manifest: Manifest = field(repr=False)

    def extract(self, doc: Document) -> tuple[Relation, ...]:
        """The relations of a document, in order of occurrence; each has the calibrated confidence of its sentence."""
        return next(self.extract_all([doc]))

    def extract_all(self, docs: Iterable[Document]) -> Iterator[tuple[Relation, ...]]:
        """The relations of each document, in order."""
        for found in self._found(docs):
            yield tuple(own for own in found if own.score >= self.threshold)

    def annotate(self, docs: Iterable[Document]) -> Iterator[Document]:
        """The documents with the relations that were found in place of those of this name."""
        held = list(docs)
        for doc, found in zip(held, self.extract_all(held), strict=True):
            others = tuple(own for own in doc.relations if own.label != self.schema.name)
            yield replace(doc, relations=others + found)

    def judged(self, docs: Iterable[Document]) -> Iterator[Judged]:
        """For each document the score of every tuple found, whether it is right, and how many are stated."""
        held = list(docs)
        for doc, found in zip(held, self._found(held), strict=True):
            stated = {self.schema.key(spans) for own in doc.relations for spans in self.schema.tuples(own)}
            scores = {self.schema.key(spans): own.score for own in found for spans in self.schema.tuples(own)}
            right = right_ones(list(scores), stated, exact=self.config.mask)
            yield Judged(np.array(list(scores.values())), np.array(right, bool), len(stated))

    def explain(self, doc: Document, relation: Relation, *, top: int = 10) -> list[Reason]:
        """What the model says of the sentence of a relation and of its arguments; `top` of it."""
        (own,) = self._read([doc])
        for line, reading in own:
            wanted = [part.spans[0] for part in relation.arguments]
            places = [_piece(doc, line, span) for span in wanted]
            if all(place is not None for place in places):
                lead = Reason("sentence", "positive over null model", reading.positive - reading.null)
                named = zip(self.schema.roles, range(len(places)), places, strict=True)
                chances = [
                    Reason("argument", f"chance of {role}", float(reading.chances[place, number]))
                    for role, number, place in named
                ]
                return [lead, *chances][:top]
        raise DataError(f"{doc.id}: no sentence has all arguments of this relation")

    def with_precision(self, precision: float) -> JointExtractor:
        """The same extractor, its threshold the lowest that kept so much precision in cross-validation."""
        return replace(self, threshold=ranking.threshold_for(self.held.scores, self.held.right, precision))

    def _found(self, docs: Iterable[Document]) -> Iterator[tuple[Relation, ...]]:
        """The tuples of each document, whatever their score."""
        held = list(docs)
        for at in range(0, len(held), BATCH):
            batch = parsed(held[at : at + BATCH])
            for doc, read in zip(batch, self._read(batch), strict=True):
                out: list[Relation] = []
                for line, reading in read:
                    found = assembled(doc, line, reading, self.schema, self.config, model=self.model)
                    score = scored_by(self.calibration, reading) if found else 0.0
                    out += [self.schema.relation(one.spans, score=score, source=SOURCE) for one in found]
                yield tuple(out)

    def _read(self, docs: Sequence[Document]) -> Iterator[list[tuple[Line, PhraseReading]]]:
        """The sentences of each document with their readings."""
        found = [list(lines(doc, self.schema, self.config)) for doc in parsed(docs)]
        readings = iter(self.model.readings([line.input for own in found for line in own]))
        for own in found:
            read = [(line, next(readings)) for line in own]
            yield [
                (line, one if self.rule is None else self.rule.apply(one, len(self.schema.roles))) for line, one in read
            ]


def scored_by(calibration: Platt | None, reading: PhraseReading) -> float:
    """The chance that what was read is right, or the model's own confidence without a calibration."""
    return calibration(reading) if calibration else reading.confidence


def right_ones(found: Sequence[Key], stated: Set[Key], *, exact: bool) -> list[bool]:
    """For each tuple of places whether it is a stated one, which counts once.

    If not `exact`, a place that contains the stated one is right, as published: segments are wider than arguments.

    >>> right_ones([((0, 9), (20, 30))], {((4, 9), (20, 30))}, exact=False)
    [True]
    """
    left, out = sorted(stated), []
    for own in found:
        hit = next((one for one in left if own == one or (not exact and _contains(own, one))), None)
        out.append(hit is not None)
        if hit is not None:
            left.remove(hit)
    return out


def _contains(own: Key, one: Key) -> bool:
    return all(a <= c and d <= b for (a, b), (c, d) in zip(own, one, strict=True))


def _piece(doc: Document, line: Line, span: Span) -> int | None:
    """The segment of a sentence in which a span starts."""
    for n, piece in enumerate(line.pieces):
        if doc.tokens[piece.first, 0] <= span.start < doc.tokens[piece.end - 1, 1]:
            return n
    return None


def assembled(
    doc: Document, line: Line, reading: PhraseReading, schema: Schema, config: Extraction, *, model: Model | None = None
) -> list[Tuple]:
    """The tuples of a reading; none if the relation is not found in the sentence."""
    if not reading.extracted:
        return []
    found = [_arguments(doc, line, reading, role, schema, config) for role in range(len(schema.roles))]

    def score(chosen: tuple[int, ...]) -> float:
        """How well segments go together: by the model, or by how near they are."""
        places = [found[role][n][0] for role, n in enumerate(chosen)]
        if model is None or config.pairing == "nearest":
            return -float(max(places) - min(places))
        labels = [0] * len(line.pieces)
        for role, place in enumerate(places):
            labels[place] |= 1 << role
        return model.pair_score(line.input, labels)

    # Numbers stand for arguments, not for segments: a segment may hold several mentions.
    index = [list(range(len(own))) for own in found]
    pairing = "posterior" if config.pairing == "nearest" else config.pairing
    chosen = [tuple(found[role][n][1] for role, n in enumerate(own)) for own in tuples(index, pairing, score)]
    apart = [own for own in chosen if len({(span.start, span.end) for span in own}) == len(own)]
    return [Tuple(own, reading.confidence) for own in apart]


def _arguments(
    doc: Document, line: Line, reading: PhraseReading, role: int, schema: Schema, config: Extraction
) -> list[tuple[int, Span]]:
    """The arguments of a role in order, each with its segment: known entities, else runs of labelled segments."""
    labelled = [n for n, mask in enumerate(reading.labels) if mask >> role & 1]
    if config.mask:
        out = []
        for n in labelled:
            kind = schema.types[role]
            own = [one.span for one in line.pieces[n].mentions if one.span.label == kind]
            out += [(n, span) for span in own if (n, span) not in out]
        return out
    runs = [[n for _, n in run] for _, run in groupby(enumerate(labelled), key=lambda pair: pair[1] - pair[0])]
    if config.hmm.representation == "phrase":
        runs = [[n] for n in labelled]
    return [(run[0], _span(doc, line.pieces[run[0]].first, line.pieces[run[-1]].end)) for run in runs]


def _span(doc: Document, first: int, end: int) -> Span:
    return Span(int(doc.tokens[first, 0]), int(doc.tokens[end - 1, 1]), LABEL)
