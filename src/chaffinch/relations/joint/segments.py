"""Sentences as input of the phrase HMM: segments with their words, known entities as one word each, and labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from chaffinch.errors import ConfigError
from chaffinch.models.phrasehmm.fit import Sentence
from chaffinch.models.phrasehmm.segments import Representation, normal, segments
from chaffinch.relations.candidates import Mention, locate
from chaffinch.relations.config import Extraction
from chaffinch.relations.schema import Schema
from chaffinch.text import Document


class Piece(NamedTuple):
    """A segment of a sentence: its type, tokens `first` to `end` of the document, words, and mentions inside."""

    type: str
    first: int
    end: int
    words: list[str]
    mentions: tuple[Mention, ...]


class Line(NamedTuple):
    """A sentence of a document in pieces, as input of the model, with the stated tuples inside it."""

    pieces: list[Piece]
    input: Sentence
    stated: set[tuple[tuple[int, int], ...]]


def lines(doc: Document, schema: Schema, config: Extraction) -> Iterator[Line]:
    """Yield each non-empty sentence in segments, with model input and stated tuples; ConfigError for "auto" segments.

    What must be chosen is the representation: "auto" raises ConfigError.
    """
    if config.hmm.representation == "auto":
        raise ConfigError("choose a representation before sentences are cut into segments")
    mentions = locate(doc, doc.layer(config.layer)) if config.mask else []
    stated = {schema.key(spans): spans for relation in doc.relations for spans in schema.tuples(relation)}
    where = {span: locate(doc, [span])[0] for spans in stated.values() for span in spans if locate(doc, [span])}
    for first, end in doc.sentence_tokens().tolist():
        if first == end:
            continue
        starting = [mention for mention in mentions if first <= mention.first < end]
        inside = {
            key: spans for key, spans in stated.items()
            if all(span in where and first <= where[span].first < end for span in spans)
        }  # fmt: skip
        pieces = _pieces(doc, first, end, starting, config.hmm.representation)
        masks = [0] * len(pieces)
        for spans in inside.values():
            for role, span in enumerate(spans):
                for n, piece in enumerate(pieces):
                    if piece.first < where[span].end and where[span].first < piece.end:
                        masks[n] |= 1 << role
        entities = [_domains(piece, schema) for piece in pieces] if config.mask else None
        yield Line(pieces, Sentence([p.type for p in pieces], [p.words for p in pieces], masks, entities), set(inside))


def _domains(piece: Piece, schema: Schema) -> int:
    """Return a bit mask: the roles whose entity type a mention in the segment has."""
    labels = {mention.span.label for mention in piece.mentions}
    return sum(1 << role for role, kind in enumerate(schema.types) if kind in labels)


def _pieces(doc: Document, first: int, end: int, mentions: Sequence[Mention], kind: Representation) -> list[Piece]:
    """Return a sentence's segments, a mention as one word, its label; but for "phrase", one mention's are joined."""
    owner: dict[int, Mention] = {}
    for mention in sorted(mentions, key=lambda item: item.end - item.first):  # the longest overwrites the others
        owner.update(dict.fromkeys(range(mention.first, min(mention.end, end)), mention))
    out: list[Piece] = []
    for segment in segments(doc, first, end, kind):
        begin = segment.first
        joined = owner.get(begin)
        if kind != "phrase" and joined is not None and out and begin > first and owner.get(begin - 1) is joined:
            out[-1] = out[-1]._replace(end=segment.end)
            continue
        words = []
        for t in range(segment.first, segment.end):
            over = owner.get(t)
            if over is None:
                words.append(normal(doc.text[doc.tokens[t, 0] : doc.tokens[t, 1]]))
            elif t == segment.first or owner.get(t - 1) is not over:
                words.append(f"<{over.span.label}>")
        inside = tuple(item for item in mentions if item.first < segment.end and segment.first < item.end)
        out.append(Piece(segment.type, segment.first, segment.end, words, inside))
    return out
