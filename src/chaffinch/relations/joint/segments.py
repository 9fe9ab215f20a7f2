"""Sentences as a phrase HMM reads them: segments with their words, known entities as one word each, and labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from chaffinch.errors import ConfigError
from chaffinch.models.phrasehmm.fit import Sentence
from chaffinch.models.phrasehmm.segments import Representation, normal, segments
from chaffinch.relations.candidates import Mention, located
from chaffinch.relations.config import Extraction
from chaffinch.relations.schema import Schema
from chaffinch.text import Document


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
