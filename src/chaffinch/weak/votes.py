"""Documents with the layers of sources to votes on tokens, and back: what was settled becomes a layer.

A source is a layer "source:NAME"; a span labelled O in it is a vote for "not an entity", where it has no span it says
nothing. A linking rule is a layer "link:NAME" of spans TOGETHER or APART, over tokens that belong together or do not.
So votes are kept in any format that keeps layers.

T tokens, S sources, L tags.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from chaffinch.errors import DataError
from chaffinch.kernels.lattice import Floats, Ints
from chaffinch.models.ballots import APART, SILENT, TOGETHER, Ballots
from chaffinch.models.labels import Labels
from chaffinch.text import Document, Soft, Span

SOURCE, LINK = "source:", "link:"
_LINKS = {"TOGETHER": TOGETHER, "APART": APART}


def sources_of(docs: Sequence[Document]) -> tuple[str, ...]:
    """The names of all sources, in the order in which documents show them."""
    found = dict.fromkeys(name for doc in docs for name in (*doc.layers, *doc.soft) if name.startswith(SOURCE))
    return tuple(name.removeprefix(SOURCE) for name in found)


def ballots(
    docs: Sequence[Document], *, sources: Sequence[str] | None = None, labels: Sequence[str] | None = None
) -> Ballots:
    """The votes of sources, all by default, on the tokens of documents.

    `labels` are the entity labels; by default all that sources use. A span that cuts a token counts for the whole
    token; of a source's spans that overlap the longest counts, then the first.

    >>> doc = Document.make("severe copper toxicosis", layers={"source:list": [Span(7, 23, "Disease")]})
    >>> ballots([doc]).codes.T.tolist()
    [[-1, 1, 2]]
    """
    sources = sources_of(docs) if sources is None else tuple(sources)
    if labels is None:
        spans = (span for doc in docs for name in sources for span in doc.layers.get(SOURCE + name, ()))
        tags = (
            tag
            for doc in docs
            for name in sources
            if SOURCE + name in doc.soft
            for tag in doc.soft[SOURCE + name].labels
        )
        labels = sorted({span.label for span in spans} | {tag[2:] if tag[1:2] == "-" else tag for tag in tags})
    names = tuple(label for label in labels if label != "O")
    spelt = Labels(names, "IOB2")
    numbers = {name: number for number, name in enumerate(names)} | {"O": -1}
    codes = [_codes(doc, sources, numbers) for doc in docs]
    rules = tuple(
        dict.fromkeys(name.removeprefix(LINK) for doc in docs for name in doc.layers if name.startswith(LINK))
    )
    links = [_links(doc, rules) for doc in docs]
    sizes = [len(doc.tokens) for doc in docs]
    documents = np.cumsum([0, *sizes])
    ends = [_sentence_ends(doc) + shift for doc, shift in zip(docs, documents, strict=False)]
    soft = {}
    for column, name in enumerate(sources):
        if any(SOURCE + name in doc.soft for doc in docs):
            soft[name] = np.concatenate([_soft(doc, SOURCE + name, spelt) for doc in docs])
            said = soft[name].sum(axis=1) > 0
            at = 0
            for own in codes:
                rows = soft[name][at : at + len(own)]
                own[said[at : at + len(own)], column] = rows.argmax(axis=1)[said[at : at + len(own)]]
                at += len(own)
    return Ballots(
        sources, names, np.concatenate([np.zeros((0, len(sources)), np.int16), *codes]),
        np.concatenate([[0], *ends]).astype(np.int64), documents.astype(np.int64), soft, rules,
        np.concatenate([np.zeros((0, len(rules)), np.int8), *links]),
    )  # fmt: skip


def with_labels(
    docs: Iterable[Document], found: Ballots, tags: Ints, chances: Floats | None, *, layer: str
) -> list[Document]:
    """The documents with a layer of the spans of tags (T,), and with soft labels of the chances (T, L), if given."""
    labels, out, cut = found.labels, [], np.zeros(len(found) + 1, np.bool_)
    cut[found.bounds] = True
    for doc, first, end in zip(docs, found.documents[:-1].tolist(), found.documents[1:].tolist(), strict=True):
        spans = [
            Span(int(doc.tokens[a, 0]), int(doc.tokens[b - 1, 1]), name, source=layer)
            for a, b, name in _runs(tags[first:end], labels, cut[first:end])
        ]
        own = doc.with_layer(layer, spans)
        out.append(own if chances is None else own.with_soft(layer, Soft(labels.tags, chances[first:end])))
    return out


def _runs(tags: Ints, labels: Labels, cut: NDArray[np.bool_]) -> list[tuple[int, int, str]]:
    """The runs of a document's tags; none goes on over a cut, where a sentence begins."""
    if not len(tags):
        return []
    begins = (tags > 0) & ((tags % 2 == 1) | cut | np.append(True, tags[:-1] == 0))
    starts, breaks = np.flatnonzero(begins), np.append(np.flatnonzero(begins | (tags == 0)), len(tags))
    stops = breaks[np.searchsorted(breaks, starts, side="right")]
    return [(int(a), int(b), labels.names[(int(tags[a]) - 1) // 2]) for a, b in zip(starts, stops, strict=True)]


def _codes(doc: Document, sources: Sequence[str], numbers: dict[str, int]) -> NDArray[np.int16]:
    """(T, S) the votes of one document."""
    out = np.full((len(doc.tokens), len(sources)), SILENT, np.int16)
    for column, name in enumerate(sources):
        taken = np.zeros(len(doc.tokens), np.bool_)
        for span in sorted(doc.layers.get(SOURCE + name, ()), key=lambda own: (own.start - own.end, own.start)):
            first = int(np.searchsorted(doc.tokens[:, 1], span.start, side="right"))
            end = int(np.searchsorted(doc.tokens[:, 0], span.end, side="left"))
            if first >= end or taken[first:end].any() or span.label not in numbers:
                continue
            taken[first:end] = True
            number = numbers[span.label]
            out[first:end, column] = 0 if number < 0 else 2 + 2 * number
            if number >= 0:
                out[first, column] = 1 + 2 * number
    return out


def _links(doc: Document, rules: Sequence[str]) -> NDArray[np.int8]:
    """(T, R) what linking rules say of a token and the one before it."""
    out = np.zeros((len(doc.tokens), len(rules)), np.int8)
    for column, name in enumerate(rules):
        for span in doc.layers.get(LINK + name, ()):
            if span.label not in _LINKS:
                raise DataError(f"layer {LINK + name!r} has a span {span.label!r}; linking rules say TOGETHER or APART")
            first = int(np.searchsorted(doc.tokens[:, 1], span.start, side="right"))
            end = int(np.searchsorted(doc.tokens[:, 0], span.end, side="left"))
            out[first + 1 : end, column] = _LINKS[span.label]
    return out


def _soft(doc: Document, name: str, labels: Labels) -> Floats:
    """(T, L) a source's distributions in our tags; zeros where it has none."""
    out = np.zeros((len(doc.tokens), len(labels.tags)))
    if name in doc.soft:
        for column, tag in enumerate(doc.soft[name].labels):
            if tag in labels.tags:
                out[:, labels.tags.index(tag)] += doc.soft[name].values[:, column]
    return out


def _sentence_ends(doc: Document) -> Ints:
    """The ends of sentences that hold a token; tokens outside of all join the sentence before."""
    ends = doc.sentence_tokens()[:, 1]
    ends = np.unique(np.append(ends[ends < len(doc.tokens)], len(doc.tokens)))
    return ends[ends > 0] if len(doc.tokens) else np.zeros(0, np.int64)
