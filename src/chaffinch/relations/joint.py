"""Finding the arguments themselves: a phrase HMM labels segments, and rules make tuples of them.

T segments of a sentence. Roles are the domains of the model: role a has the label `1 << a`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import NamedTuple

import numpy as np

from chaffinch.errors import ConfigError, DataError
from chaffinch.models import phrasehmm
from chaffinch.models.phrase_segments import REPRESENTATIONS, Representation, normal, parsed, segments
from chaffinch.models.phrasehmm import Model, Reading, Sentence
from chaffinch.models.phrasehmm_choice import choose, crossed
from chaffinch.models.phrasehmm_confidence import Calibration, calibrate
from chaffinch.relations.assemble import tuples
from chaffinch.relations.candidates import Mention, located
from chaffinch.relations.schema import Schema
from chaffinch.relations.settings import Extraction
from chaffinch.text import Document, Relation, Span

SOURCE = "relations"
LEADS = (-16.0, -12.0, -8.0, -4.0, -2.0, 0.0, 2.0)  # what the positive model may be ahead by, in log-likelihood
LEVELS = (0.05, 0.1, 0.2, 0.3, 0.5)  # chances from which on a segment is an argument
LABEL = "found"  # of arguments that are no known entity


class Piece(NamedTuple):
    """A segment of a sentence: its type, tokens `first` to `end` of the document, words, mentions inside."""

    type: str
    first: int
    end: int
    words: list[str]
    mentions: tuple[Mention, ...]


class Line(NamedTuple):
    """A sentence of a document in pieces, as the model's input, with the stated tuples that lie in it."""

    pieces: list[Piece]
    input: Sentence
    stated: set[tuple[tuple[int, int], ...]]


class Tuple(NamedTuple):
    """A tuple that was found: the spans of its arguments, and its confidence."""

    spans: tuple[Span, ...]
    confidence: float


class Rule(NamedTuple):
    """When a relation is found: what the positive model must be ahead by, and the chance that makes an argument."""

    lead: float
    level: float

    def apply(self, reading: Reading, roles: int) -> Reading:
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
    rule: Rule | None  # None for the labels of the likeliest path
    calibration: Calibration | None = field(repr=False)
    across: int  # stated tuples that lie in no one sentence, which nothing was learnt from

    def extract(self, doc: Document) -> tuple[Relation, ...]:
        """The relations of a document, in order of occurrence; each has the calibrated confidence of its sentence."""
        (ready,) = parsed([doc])
        out = []
        own = list(lines(ready, self.schema, self.config))
        for line, given in zip(own, self.model.readings([line.input for line in own]), strict=True):
            reading = given if self.rule is None else self.rule.apply(given, len(self.schema.roles))
            score = self.calibration(reading) if self.calibration else reading.confidence
            found = assembled(ready, line, reading, self.schema, self.config, model=self.model)
            out += [self.schema.relation(one.spans, score=score, source=SOURCE) for one in found]
        return tuple(out)


def train_joint(docs: Iterable[Document], schema: Schema, config: Extraction | None = None) -> JointExtractor:
    """An extractor that finds arguments by itself, learnt from documents with relations.

    Tuples whose mentions lie in different sentences cannot be learnt from; `across` counts them. The representation
    "auto" is chosen by folds over documents.
    """
    chosen = config or Extraction(mode="joint")
    held = parsed(docs)
    kinds = REPRESENTATIONS if chosen.hmm.representation == "auto" else (chosen.hmm.representation,)
    inputs = {kind: [list(lines(doc, schema, _with(chosen, kind))) for doc in held] for kind in kinds}
    groups = [doc.patient for doc, own in zip(held, inputs[kinds[0]], strict=True) for _ in own]
    flat = {kind: [line.input for own in found for line in own] for kind, found in inputs.items()}
    _check(flat[kinds[0]], schema, groups)
    best = choose(flat, schema.roles, chosen.hmm, groups=groups).representation if len(kinds) > 1 else kinds[0]
    final = _with(chosen, best)
    model = phrasehmm.fit(flat[best], schema.roles, final.hmm, groups=groups)
    lying = sum(len(line.stated) for own in inputs[best] for line in own)
    across = sum(len({schema.key(one) for own in doc.relations for one in schema.tuples(own)}) for doc in held) - lying
    read = _held_out(held, inputs[best], groups, schema, final)
    rule = chosen_rule(read, schema, final) if final.labels == "chances" else None
    calibration = _calibrated(read, schema, final, rule)
    return JointExtractor(schema, final, model, rule, calibration, max(across, 0))


def _with(config: Extraction, kind: Representation) -> Extraction:
    return replace(config, hmm=replace(config.hmm, representation=kind))


def _check(sentences: Sequence[Sentence], schema: Schema, groups: Sequence[str]) -> None:
    if not any(own.positive for own in sentences):
        raise DataError(f"no sentence holds all arguments of a relation {schema.name!r}; the mode joint needs some")
    if all(own.positive for own in sentences):
        raise DataError("every sentence states the relation, so there is nothing to tell them from; add others")
    if len(set(groups)) < 2:
        raise DataError("all documents belong to one group, and folds need two or more; add documents")


class Held(NamedTuple):
    """A sentence with the reading of a model that had not seen its document."""

    doc: Document
    line: Line
    reading: Reading


def _held_out(
    docs: Sequence[Document], found: Sequence[Sequence[Line]], groups: Sequence[str], schema: Schema, config: Extraction
) -> list[Held]:
    flat = [(doc, line) for doc, own in zip(docs, found, strict=True) for line in own]
    count = min(config.folds, len(set(groups)))
    readings = crossed([line.input for _, line in flat], schema.roles, config.hmm, groups=groups, count=count)
    return [Held(doc, line, reading) for (doc, line), reading in zip(flat, readings, strict=True)]


def chosen_rule(held: Sequence[Held], schema: Schema, config: Extraction) -> Rule:
    """The rule with the largest F1 of tuples on readings held out; the stricter one of two alike."""
    stated = sum(len(own.line.stated) for own in held)
    best, reached = Rule(0.0, 0.5), -1.0
    for lead in reversed(LEADS):
        for level in reversed(LEVELS):
            rule = Rule(lead, level)
            found = [_judged(own, schema, config, rule) for own in held]
            hits, number = sum(own[0] for own in found), sum(own[1] for own in found)
            f1 = 2 * hits / max(number + stated, 1)
            if f1 > reached:
                best, reached = rule, f1
    return best


def _judged(own: Held, schema: Schema, config: Extraction, rule: Rule | None) -> tuple[int, int]:
    """How many tuples of a reading are right, and how many there are."""
    reading = own.reading if rule is None else rule.apply(own.reading, len(schema.roles))
    found = {schema.key(one.spans) for one in assembled(own.doc, own.line, reading, schema, config)}
    return len(found & own.line.stated), len(found)


def _calibrated(held: Sequence[Held], schema: Schema, config: Extraction, rule: Rule | None) -> Calibration | None:
    """The calibration of readings with tuples; right is one that has a right tuple."""
    judged = [(own.reading, *_judged(own, schema, config, rule)) for own in held]
    kept = [(reading, hits > 0) for reading, hits, number in judged if number]
    return calibrate([own for own, _ in kept], [right for _, right in kept]) if kept else None


def lines(doc: Document, schema: Schema, config: Extraction) -> Iterator[Line]:
    """The sentences of a parsed document as the model reads them."""
    if config.hmm.representation == "auto":
        raise ConfigError("choose a representation before sentences are cut into segments")
    mentions = located(doc, doc.layer(config.layer)) if config.mask else []
    stated = {schema.key(spans): spans for own in doc.relations for spans in schema.tuples(own)}
    where = {span: located(doc, [span])[0] for spans in stated.values() for span in spans if located(doc, [span])}
    for first, end in doc.sentence_tokens().tolist():
        if first == end:
            continue
        own = [one for one in mentions if first <= one.first < end]
        inside = {
            key: spans for key, spans in stated.items()
            if all(span in where and first <= where[span].first < end for span in spans)
        }  # fmt: skip
        pieces = _pieces(doc, first, end, own, config.hmm.representation)
        masks = [0] * len(pieces)
        for spans in inside.values():
            for role, span in enumerate(spans):
                for n, piece in enumerate(pieces):
                    if piece.first < where[span].end and where[span].first < piece.end:
                        masks[n] |= 1 << role
        entities = [_domains(piece, schema) for piece in pieces] if config.mask else None
        yield Line(pieces, Sentence([p.type for p in pieces], [p.words for p in pieces], masks, entities), set(inside))


def _domains(piece: Piece, schema: Schema) -> int:
    labels = {one.span.label for one in piece.mentions}
    return sum(1 << role for role, kind in enumerate(schema.types) if kind in labels)


def _pieces(doc: Document, first: int, end: int, mentions: Sequence[Mention], kind: Representation) -> list[Piece]:
    """The segments of a sentence, each mention one word; of single words, a mention is one segment."""
    owner: dict[int, Mention] = {}
    for one in sorted(mentions, key=lambda own: own.end - own.first):  # the longest has the last word
        owner.update(dict.fromkeys(range(one.first, min(one.end, end)), one))
    out: list[Piece] = []
    for own in segments(doc, first, end, kind):
        begin = own.first
        joined = owner.get(begin)
        if kind != "phrase" and joined is not None and out and begin > first and owner.get(begin - 1) is joined:
            out[-1] = out[-1]._replace(end=own.end)
            continue
        words = []
        for t in range(own.first, own.end):
            mention = owner.get(t)
            if mention is None:
                words.append(normal(doc.text[doc.tokens[t, 0] : doc.tokens[t, 1]]))
            elif t == own.first or owner.get(t - 1) is not mention:
                words.append(f"<{mention.span.label}>")
        inside = tuple(one for one in mentions if one.first < own.end and own.first < one.end)
        out.append(Piece(own.type, own.first, own.end, words, inside))
    return out


def assembled(
    doc: Document, line: Line, reading: Reading, schema: Schema, config: Extraction, *, model: Model | None = None
) -> list[Tuple]:
    """The tuples of a reading; none if the relation is not found in the sentence."""
    if not reading.extracted:
        return []
    found = [_arguments(doc, line, reading, role, schema, config) for role in range(len(schema.roles))]

    def score(chosen: tuple[int, ...]) -> float:
        labels = [0] * len(line.pieces)
        for role, n in enumerate(chosen):
            labels[found[role][n][0]] |= 1 << role
        return model.pair_score(line.input, labels) if model else -float(np.ptp(chosen))

    out = []
    if config.pairing == "nearest":
        numbers: list[list[int]] = [[place for place, _ in own] for own in found]
        spans = [dict(own) for own in found]
        chosen = [tuple(spans[role][n] for role, n in enumerate(own)) for own in tuples(numbers, "nearest")]
    else:
        index = [list(range(len(own))) for own in found]
        chosen = [
            tuple(found[role][n][1] for role, n in enumerate(own)) for own in tuples(index, config.pairing, score)
        ]
    for own in chosen:
        if len({(span.start, span.end) for span in own}) == len(own):
            out.append(Tuple(own, reading.confidence))
    return out


def _arguments(
    doc: Document, line: Line, reading: Reading, role: int, schema: Schema, config: Extraction
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
