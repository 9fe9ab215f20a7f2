"""Joint extraction: a phrase HMM labels segments as arguments, and rules combine them into tuples.

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
from chaffinch.models.phrasehmm.segments import add_parses
from chaffinch.models.phrasehmm.selection import Platt
from chaffinch.relations.candidates import SentencePlace
from chaffinch.relations.config import Extraction
from chaffinch.relations.entities.extractor import HeldOutScores, Reason, sentence_with
from chaffinch.relations.evaluate import ranking
from chaffinch.relations.evaluate.report import Summary, TupleScores
from chaffinch.relations.joint.pairing import tuples
from chaffinch.relations.joint.segments import Line, lines
from chaffinch.relations.schema import Schema
from chaffinch.text import Document, Relation, Span

SOURCE = "relations"
BATCH = 64  # documents read at a time; larger batches need more memory
Key: TypeAlias = tuple[tuple[int, int], ...]  # offsets of arguments
LABEL = "found"  # of arguments that are no known entity


class Tuple(NamedTuple):
    """An extracted tuple: the spans of its arguments, and its confidence."""

    spans: tuple[Span, ...]
    confidence: float


class PairingRule(NamedTuple):
    """Decision rule: the lead that the positive model needs, and the probability that makes a segment an argument."""

    lead: float
    level: float

    def apply(self, reading: PhraseReading, roles: int) -> PhraseReading:
        """Return the reading with this rule's labels; extracted if each role has one and the lead is above `lead`."""
        over = reading.chances >= self.level  # (T, roles)
        labels = tuple(int(mask) for mask in over @ (1 << np.arange(roles)))
        enough = reading.positive - reading.null > self.lead if np.isfinite(reading.positive) else False
        return reading._replace(labels=labels, extracted=bool(enough and over.any(axis=0).all()))


@dataclass(frozen=True, slots=True, eq=False)
class JointExtractor:
    """Extractor of tuples and their arguments from sentences."""

    schema: Schema
    config: Extraction
    model: Model = field(repr=False)
    rule: PairingRule | None  # None for the labels of the likeliest path
    calibration: Platt | None = field(repr=False)
    across: int  # stated tuples across sentences, which training could not use
    threshold: float
    held: HeldOutScores = field(repr=False)  # training tuples, scored by models that had not seen their documents
    report: Summary | None
    manifest: Manifest = field(repr=False)

    def extract(self, doc: Document) -> tuple[Relation, ...]:
        """Return the relations at or above the threshold, in order, each with its sentence's calibrated confidence."""
        return next(self.extract_all([doc]))

    def extract_all(self, docs: Iterable[Document]) -> Iterator[tuple[Relation, ...]]:
        """Yield for each document its relations at or above the threshold, in order of occurrence."""
        for found in self._all_relations(docs):
            yield tuple(relation for relation in found if relation.score >= self.threshold)

    def annotate(self, docs: Iterable[Document]) -> Iterator[Document]:
        """Yield copies of the documents, their relations of this name replaced by the extracted ones."""
        documents = list(docs)
        for doc, found in zip(documents, self.extract_all(documents), strict=True):
            others = tuple(relation for relation in doc.relations if relation.label != self.schema.name)
            yield replace(doc, relations=others + found)

    def score_tuples(self, docs: Iterable[Document]) -> Iterator[TupleScores]:
        """Yield each document's found tuples' scores, flags of right ones, and number of stated tuples."""
        documents = list(docs)
        for doc, found in zip(documents, self._all_relations(documents), strict=True):
            stated = {self.schema.key(spans) for item in doc.relations for spans in self.schema.tuples(item)}
            scores = {self.schema.key(spans): item.score for item in found for spans in self.schema.tuples(item)}
            right = right_ones(list(scores), stated, exact=self.config.mask)
            yield TupleScores(np.array(list(scores.values())), np.array(right, bool), len(stated))

    def explain(self, doc: Document, relation: Relation, *, top: int = 10) -> list[Reason]:
        """Return at most `top` reasons: the sentence's lead, each argument's chance; DataError if in no sentence."""
        (sentences,) = self._read([doc])
        for line, reading in sentences:
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

    def sentence_of(self, doc: Document, relation: Relation) -> SentencePlace:
        """Return the sentence that has all arguments of a relation; DataError if none has."""
        return sentence_with(doc, [argument.spans[0] for argument in relation.arguments])

    def with_precision(self, precision: float) -> JointExtractor:
        """Return a copy with the lowest threshold of this cross-validated precision; ConfigError if none has it."""
        return replace(self, threshold=ranking.threshold_for(self.held.scores, self.held.right, precision))

    def _all_relations(self, docs: Iterable[Document]) -> Iterator[tuple[Relation, ...]]:
        """Yield each document's relations, also below the threshold; those of a sentence share a score."""
        documents = list(docs)
        for start in range(0, len(documents), BATCH):
            batch = add_parses(documents[start : start + BATCH])
            for doc, read in zip(batch, self._read(batch), strict=True):
                out: list[Relation] = []
                for line, reading in read:
                    found = assemble_tuples(doc, line, reading, self.schema, self.config, model=self.model)
                    score = confidence_of(self.calibration, reading) if found else 0.0
                    out += [self.schema.relation(item.spans, score=score, source=SOURCE) for item in found]
                yield tuple(out)

    def _read(self, docs: Sequence[Document]) -> Iterator[list[tuple[Line, PhraseReading]]]:
        """Yield each document's (sentence, reading) pairs; the pairing rule, if any, relabels the readings."""
        found = [list(lines(doc, self.schema, self.config)) for doc in add_parses(docs)]
        readings = iter(self.model.readings([line.input for sentences in found for line in sentences]))
        for sentences in found:
            read = [(line, next(readings)) for line in sentences]
            yield [
                (line, one if self.rule is None else self.rule.apply(one, len(self.schema.roles))) for line, one in read
            ]


def confidence_of(calibration: Platt | None, reading: PhraseReading) -> float:
    """Return the calibrated probability that a reading is right; without a calibration, the model's confidence."""
    return calibration(reading) if calibration else reading.confidence


def right_ones(found: Sequence[Key], stated: Set[Key], *, exact: bool) -> list[bool]:
    """Return whether each tuple equals a stated one (not `exact`: or contains it); each stated one counts once.

    If not `exact`, offsets that contain the stated ones match, as published: segments are wider than arguments.

    >>> right_ones([((0, 9), (20, 30))], {((4, 9), (20, 30))}, exact=False)
    [True]
    """
    left, out = sorted(stated), []
    for key in found:
        hit = next((gold for gold in left if key == gold or (not exact and _contains(key, gold))), None)
        out.append(hit is not None)
        if hit is not None:
            left.remove(hit)
    return out


def _contains(outer: Key, inner: Key) -> bool:
    """Tell whether each offset pair of `outer` contains that of `inner`."""
    return all(a <= c and d <= b for (a, b), (c, d) in zip(outer, inner, strict=True))


def _piece(doc: Document, line: Line, span: Span) -> int | None:
    """Return the index in the line of the segment in which a span starts; None if it starts in none of them."""
    for n, piece in enumerate(line.pieces):
        if doc.tokens[piece.first, 0] <= span.start < doc.tokens[piece.end - 1, 1]:
            return n
    return None


def assemble_tuples(
    doc: Document, line: Line, reading: PhraseReading, schema: Schema, config: Extraction, *, model: Model | None = None
) -> list[Tuple]:
    """Return the tuples of spans in a reading by the config's pairing; [] if the reading was not extracted.

    The spans of a tuple are all different.
    """
    if not reading.extracted:
        return []
    found = [_arguments(doc, line, reading, role, schema, config) for role in range(len(schema.roles))]

    def score(chosen: tuple[int, ...]) -> float:
        """Return the score of one choice per role: the model's pair score, or minus the widest distance in segments."""
        places = [found[role][n][0] for role, n in enumerate(chosen)]
        if model is None or config.pairing == "nearest":
            return -float(max(places) - min(places))
        labels = [0] * len(line.pieces)
        for role, place in enumerate(places):
            labels[place] |= 1 << role
        return model.pair_score(line.input, labels)

    # Numbers index arguments, not segments: a segment may hold several mentions.
    index = [list(range(len(arguments))) for arguments in found]
    pairing = "posterior" if config.pairing == "nearest" else config.pairing
    chosen = [tuple(found[role][n][1] for role, n in enumerate(numbers)) for numbers in tuples(index, pairing, score)]
    distinct = [spans for spans in chosen if len({(span.start, span.end) for span in spans}) == len(spans)]
    return [Tuple(spans, reading.confidence) for spans in distinct]


def _arguments(
    doc: Document, line: Line, reading: PhraseReading, role: int, schema: Schema, config: Extraction
) -> list[tuple[int, Span]]:
    """Return (segment, span) of a role in order: the mentions in labelled segments, or, unmasked, runs of these."""
    labelled = [n for n, mask in enumerate(reading.labels) if mask >> role & 1]
    if config.mask:
        out = []
        for n in labelled:
            kind = schema.types[role]
            spans = [mention.span for mention in line.pieces[n].mentions if mention.span.label == kind]
            out += [(n, span) for span in spans if (n, span) not in out]
        return out
    runs = [[n for _, n in run] for _, run in groupby(enumerate(labelled), key=lambda pair: pair[1] - pair[0])]
    if config.hmm.representation == "phrase":
        runs = [[n] for n in labelled]
    return [(run[0], _span(doc, line.pieces[run[0]].first, line.pieces[run[-1]].end)) for run in runs]


def _span(doc: Document, first: int, end: int) -> Span:
    """Return the span over tokens [first, end)."""
    return Span(int(doc.tokens[first, 0]), int(doc.tokens[end - 1, 1]), LABEL)
