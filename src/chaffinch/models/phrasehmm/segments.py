"""Sentences as typed segments: phrases of a shallow parse, words with their part of speech, or bare words."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import Literal, NamedTuple

from chaffinch.checks import check_choice
from chaffinch.models.phrasehmm.chunker import CHUNKS, POS
from chaffinch.models.phrasehmm.stems import stem
from chaffinch.models.tagger import Tagger, load
from chaffinch.text import Document, Span

Representation = Literal["phrase", "pos", "token"]
REPRESENTATIONS: tuple[Representation, ...] = ("phrase", "pos", "token")

PARSER = "genia"  # the packaged tagger that adds both layers
NUMBER, WORD = "<num>", "WORD"
PHRASES = frozenset({"NP", "VP", "PP", "ADJP", "ADVP", "SBAR", "PRT", "CONJP"})

# Parts of speech of words outside phrases, in classes; any other tag is its own class.
_CLASSES = {
    **dict.fromkeys(("NN", "NNS", "NNP", "NNPS", "PRP", "WP", "EX"), "N"),
    **dict.fromkeys(("VB", "VBD", "VBG", "VBN", "VBP", "VBZ", "MD"), "V"),
    **dict.fromkeys(("JJ", "JJR", "JJS"), "J"),
    **dict.fromkeys(("RB", "RBR", "RBS", "WRB", "RP"), "R"),
    **dict.fromkeys(("DT", "PDT", "WDT", "PRP$", "WP$", "POS"), "D"),
    **dict.fromkeys(("IN", "TO"), "I"),
    **dict.fromkeys(("``", "''", '"', "'"), "QUOTE"),
    **dict.fromkeys((":", ";", "--", "-"), ":"),
    **dict.fromkeys(("(", ")", "-LRB-", "-RRB-"), "("),
    **dict.fromkeys((".", "!", "?"), "."),
}
_NUMBER = re.compile(r"[-+]?[0-9]+(?:[.,/:-][0-9]+)*(?:st|nd|rd|th|%)?", re.ASCII)


class Segment(NamedTuple):
    """A typed run of tokens: `first` to `end`, half-open, of the document."""

    type: str
    first: int
    end: int


class Parse(NamedTuple):
    """The parts of speech and the phrases of a sentence; token numbers start at 0 at its first token."""

    tags: list[str]
    chunks: list[Segment]


def add_parses(docs: Iterable[Document]) -> list[Document]:
    """Return documents with the layers "pos" and "chunks", by the packaged tagger where a document lacks one."""
    documents = list(docs)
    incomplete = [number for number, doc in enumerate(documents) if not {POS, CHUNKS} <= doc.layers.keys()]
    out = list(documents)
    for number, doc in zip(
        incomplete, _parser().annotate([documents[n] for n in incomplete]) if incomplete else (), strict=True
    ):
        layers = documents[number].layers
        out[number] = doc.with_layer(CHUNKS, layers[CHUNKS]) if CHUNKS in layers else doc
    return out


def parses(docs: Sequence[Document]) -> list[list[Parse]]:
    """Return, by document, the parse (tags, chunks) of every sentence; documents without layers are tagged first."""
    bare = [POS not in doc.layers and CHUNKS not in doc.layers for doc in docs]
    pairs = zip(add_parses(docs), bare, strict=True)
    return [_fast_parses(doc) if ours else _general_parses(doc) for doc, ours in pairs]


def _general_parses(doc: Document) -> list[Parse]:
    """Return the parse of every sentence of a document, from layers that need not fit its tokens."""
    return [parse(doc, first, end) for first, end in doc.sentence_tokens().tolist()]


def _fast_parses(doc: Document) -> list[Parse]:
    """Return the parses of a document whose layers the packaged tagger made: whole tokens, by sentence."""
    if len(doc.layers[POS]) != len(doc.tokens):  # a token without a part of speech
        return _general_parses(doc)
    spans = [span for span in doc.layers[CHUNKS] if span.label in PHRASES]
    ranges: list[list[int]] = doc.token_ranges(spans, "exact").tolist()
    tags = [span.label for span in doc.layers[POS]]
    out, at = [], 0
    for first, end in doc.sentence_tokens().tolist():
        chunks = []
        while at < len(spans) and ranges[at][0] < end:
            chunks.append(Segment(spans[at].label, ranges[at][0] - first, ranges[at][1] - first))
            at += 1
        out.append(Parse(tags[first:end], chunks))
    return out


def parse(doc: Document, first: int, end: int) -> Parse:
    """Return the parse of a sentence's tokens `first` to `end`, from the layers; DataError if one is missing."""
    tokens: list[list[int]] = doc.tokens[first:end].tolist()
    return Parse(_tags(tokens, doc.layer(POS)), _phrases(tokens, doc.layer(CHUNKS)))


@cache
def _parser() -> Tagger:
    """Return the packaged parser, loaded once."""
    return load(PARSER)


def segments(doc: Document, first: int, end: int, representation: Representation) -> list[Segment]:
    """Return the segments of tokens [first, end), numbered as in the document; ConfigError, DataError without layers.

    "phrase": the chunks, and every word outside them by itself with the class of its part of speech; "pos": every
    word with its part of speech; "token": every word, all of one type. A chunk over the sentence's end is cut there.

    >>> doc = Document.make("It binds DNA.", layers={"pos": [Span(12, 13, ".")], "chunks": [Span(0, 2, "NP")]})
    >>> [(part.type, part.first, part.end) for part in segments(doc, 0, 4, "phrase")]
    [('NP', 0, 1), ('X', 1, 2), ('X', 2, 3), ('.', 3, 4)]
    """
    check_choice(representation, "representation", REPRESENTATIONS)
    tokens: list[list[int]] = doc.tokens[first:end].tolist()
    tags = [] if representation == "token" else _tags(tokens, doc.layer(POS))
    chunks = _phrases(tokens, doc.layer(CHUNKS)) if representation == "phrase" else []
    parts = cut(Parse(tags, chunks), end - first, representation)
    return [Segment(kind, first + begin, first + stop) for kind, begin, stop in parts]


def cut(parse: Parse, size: int, representation: Representation) -> list[Segment]:
    """Return a sentence of `size` tokens in segments, numbered from 0 at its first token, as `representation` says."""
    if representation == "token":
        return [Segment(WORD, t, t + 1) for t in range(size)]
    if representation == "pos":
        return [Segment(tag, t, t + 1) for t, tag in enumerate(parse.tags)]
    out: list[Segment] = []
    at, tags = 0, parse.tags
    for chunk in [*parse.chunks, Segment("", size, size)]:
        for t in range(at, chunk.first):
            out.append(Segment(_CLASSES.get(tags[t], tags[t]), t, t + 1))
        out.append(chunk)
        at = chunk.end
    return out[:-1]


def _tags(tokens: list[list[int]], layer: Sequence[Span]) -> list[str]:
    """Return the part of speech of each token: the label of the span that starts with it, else "X"."""
    if not tokens:
        return []
    begin = max(bisect_right(layer, tokens[0][0], key=_start) - 1, 0)
    stop = bisect_left(layer, tokens[-1][1], key=_start)
    tag_at = {span.start: span.label for span in layer[begin:stop]}
    return [tag_at.get(start, "X") for start, _ in tokens]


def _phrases(tokens: list[list[int]], layer: Sequence[Span]) -> list[Segment]:
    """Return chunks of known types as segments numbered in the sentence; the earlier keeps a shared token."""
    if not tokens:
        return []
    starts, ends = [start for start, _ in tokens], [end for _, end in tokens]
    begin = max(bisect_right(layer, starts[0], key=_start) - 1, 0)
    out: list[Segment] = []
    at = 0
    for span in layer[begin : bisect_left(layer, ends[-1], key=_start)]:
        low, high = max(bisect_right(ends, span.start), at), bisect_left(starts, span.end)
        if low < high and span.label in PHRASES:
            out.append(Segment(span.label, low, high))
            at = high
    return out


def _start(span: Span) -> int:
    """Return the start of a span, as a sort key."""
    return span.start


@lru_cache(maxsize=1 << 16)
def normal(word: str) -> str:
    """Return the word as models see it: its stem in lower case, `<num>` for a number; marks such as `<ent>` stay.

    >>> [normal(word) for word in ("Localizes", "2,500", "3rd", "<ent>", "p53")]
    ['local', '<num>', '<num>', '<ent>', 'p53']
    """
    if word.startswith("<") and word.endswith(">") and len(word) > 2:
        return word
    return NUMBER if _NUMBER.fullmatch(word) else stem(word.lower())
