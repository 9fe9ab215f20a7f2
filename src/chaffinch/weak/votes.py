"""Conversion of source layers to a token × source vote matrix, and of aggregated tags to a span layer.

A source is a layer "source:NAME"; a span labelled O in it is a vote for "not an entity", and where it has no span it
abstains. A linking rule is a layer "link:NAME" of spans TOGETHER or APART, over tokens that belong together or do not.
So any format that stores layers can store votes.

T tokens, S sources, L tags, D documents, n spans.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from chaffinch.errors import DataError
from chaffinch.kernels.lattice import Bools, Floats, Ints
from chaffinch.models.core.labels import Labels
from chaffinch.models.votes.matrix import APART, SILENT, TOGETHER, VoteMatrix
from chaffinch.text import Document, Soft, Span
from chaffinch.text.tokens import ranges_of_spans

SOURCE, LINK = "source:", "link:"
_LINKS = {"TOGETHER": TOGETHER, "APART": APART}


def sources_of(docs: Sequence[Document]) -> tuple[str, ...]:
    """Return the names of all sources with a layer of spans or soft labels, in order of occurrence."""
    return _names_with(docs, SOURCE)


def collect_votes(
    docs: Sequence[Document], *, sources: Sequence[str] | None = None, labels: Sequence[str] | None = None
) -> VoteMatrix:
    """Build the label matrix: (T, S) each source's tag of each token, from spans, or soft labels where it has them.

    `labels` are the entity labels; by default all that sources use. A span that cuts a token counts for the whole
    token; of overlapping spans of a source the longest counts, then the first.

    >>> doc = Document.make("severe copper toxicosis", layers={"source:list": [Span(7, 23, "Disease")]})
    >>> collect_votes([doc]).codes.T.tolist()
    [[-1, 1, 2]]
    """
    sources = sources_of(docs) if sources is None else tuple(sources)
    line, rules = _Line.of(docs), _names_with(docs, LINK)
    spans = _spans_on_line(docs, line, [SOURCE + name for name in sources])
    if labels is None:
        labels = sorted({label for *_, label in spans} | _soft_labels(docs, sources))
    names = tuple(label for label in labels if label != "O")
    codes = _codes(line, spans, names, len(sources))
    soft, unsure = {}, {name for doc in docs for name in doc.soft}
    for column, name in enumerate(sources):
        if SOURCE + name in unsure:
            soft[name] = np.concatenate([_soft(doc, SOURCE + name, Labels(names, "IOB2")) for doc in docs])
            speaks = soft[name].sum(axis=1) > 0
            codes[speaks, column] = soft[name][speaks].argmax(axis=1)
    return VoteMatrix(
        sources, names, codes, line.bounds(docs), line.documents, soft, rules, _links(docs, line, rules)
    )  # fmt: skip


def with_labels(
    docs: Sequence[Document], votes: VoteMatrix, tags: Ints, chances: Floats | None, *, layer: str
) -> list[Document]:
    """Return the documents with a layer of the spans of tags (T,), and soft labels of probabilities (T, L) if given."""
    labels, line, out = votes.labels, _Line.of(docs), []
    first, end = _runs(tags, votes.bounds)
    cuts = np.searchsorted(first, votes.documents).tolist()
    begins, ends, names = line.tokens[first, 0], line.tokens[end - 1, 1], (tags[first] - 1) // 2
    for number, (doc, shift) in enumerate(zip(docs, line.shifts.tolist(), strict=True)):
        part = slice(cuts[number], cuts[number + 1])
        rows = zip((begins[part] - shift).tolist(), (ends[part] - shift).tolist(), names[part].tolist(), strict=True)
        out.append(doc.with_layer(layer, [Span(a, b, labels.names[name], source=layer) for a, b, name in rows]))
        if chances is not None:
            soft = Soft(labels.tags, chances[votes.documents[number] : votes.documents[number + 1]])
            out[-1] = out[-1].with_soft(layer, soft)
    return out


def tags_of_layer(docs: Sequence[Document], layer: str, names: Sequence[str]) -> Ints:
    """Return (T,) the tags of a layer's spans: 0 outside, 1 + 2e first, 2 + 2e later of label e; no other labels.

    >>> doc = Document.make("severe copper toxicosis", layers={"gold": [Span(7, 23, "Disease")]})
    >>> tags_of_layer([doc], "gold", ("Disease",)).tolist()
    [0, 1, 2]
    """
    line = _Line.of(docs)
    codes = _codes(line, _spans_on_line(docs, line, [layer]), tuple(names), 1)[:, 0]
    return np.maximum(codes.astype(np.int64), 0)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Line:
    """Documents concatenated on one line of characters, so that one search finds the tokens of all spans."""

    tokens: Ints  # (T, 2) start and end of each token
    shifts: Ints  # (D,) start of each document
    documents: Ints  # (D + 1,) first token of each document, and T

    @classmethod
    def of(cls, docs: Sequence[Document]) -> _Line:
        """Concatenate the documents' tokens on one line of offsets, with a gap of one character between documents."""
        shifts = np.cumsum([0, *(len(doc.text) + 1 for doc in docs)])[:-1]
        sizes = [len(doc.tokens) for doc in docs]
        offsets = np.concatenate([np.zeros((0, 2), np.int64), *(doc.tokens for doc in docs)])
        offsets = offsets + np.repeat(shifts, sizes)[:, None]
        return cls(offsets, shifts, np.cumsum([0, *sizes]).astype(np.int64))

    def bounds(self, docs: Sequence[Document]) -> Ints:
        """Return the first token of every sentence, then T; tokens outside of sentences join the one before."""
        ends = [doc.sentences[:, 1] + shift for doc, shift in zip(docs, self.shifts.tolist(), strict=True)]
        within = np.searchsorted(self.tokens[:, 0], np.concatenate([np.zeros(0, np.int64), *ends]), side="left")
        return np.unique(np.concatenate([[0], within, self.documents])).astype(np.int64)


def _names_with(docs: Sequence[Document], kind: str) -> tuple[str, ...]:
    """Return the names of layers, soft ones too, that begin with `kind`, without it, each once, as they occur."""
    found = dict.fromkeys(chain.from_iterable((*doc.layers, *doc.soft) for doc in docs))
    return tuple(name.removeprefix(kind) for name in found if name.startswith(kind))


def _spans_on_line(docs: Sequence[Document], line: _Line, layers: Sequence[str]) -> list[tuple[int, int, int, str]]:
    """Return (layer number, start, end, label) of all spans in these layers, with offsets on the line."""
    numbers = {name: number for number, name in enumerate(layers)}
    if not numbers:
        return []
    return [
        (numbers[name], shift + span.start, shift + span.end, span.label)
        for doc, shift in zip(docs, line.shifts.tolist(), strict=True)
        for name, spans in doc.layers.items()
        if name in numbers
        for span in spans
    ]


def _soft_labels(docs: Sequence[Document], sources: Sequence[str]) -> set[str]:
    """Return the labels in the soft layers of these sources, without prefixes such as B- and I-."""
    layers = {SOURCE + name for name in sources}
    tags = {tag for doc in docs for name, soft in doc.soft.items() if name in layers for tag in soft.labels}
    return {tag[2:] if tag[1:2] == "-" else tag for tag in tags}


def _codes(line: _Line, spans: Sequence[tuple[int, int, int, str]], names: Sequence[str], S: int) -> NDArray[np.int16]:
    """Return (T, S) each source's tag by token: silent, 0 for O, 1 + 2e first, 2 + 2e later of label e; longest win."""
    out = np.full((len(line.tokens), S), SILENT, np.int16)
    numbers = {name: number for number, name in enumerate(names)} | {"O": -1}
    rows = [(source, begin, end, numbers[label]) for source, begin, end, label in spans if label in numbers]
    source, begin, end, number = np.array(rows, np.int64).reshape(-1, 4).T
    order = np.lexsort((begin, begin - end))  # the longest first
    source, number = source[order], number[order]
    first, last = ranges_of_spans(line.tokens, begin[order], end[order]).T
    kept = _without_overlaps(source, first, last, len(out))
    source, number, first, last = source[kept], number[kept], first[kept], last[kept]
    sizes = last - first
    places = np.arange(sizes.sum()) + np.repeat(first - np.cumsum(sizes) + sizes, sizes)
    out[places, np.repeat(source, sizes)] = np.repeat(np.where(number < 0, 0, 2 + 2 * number), sizes)
    out[first, source] = np.where(number < 0, 0, 1 + 2 * number)
    return out


def _without_overlaps(source: Ints, first: Ints, end: Ints, T: int) -> Bools:
    """Return (n,) True for spans that have a token and overlap no earlier kept span of the same source."""
    kept = first < end
    rank = np.flatnonzero(kept)[np.lexsort((first[kept], source[kept]))]
    begins, ends = source[rank] * (T + 1) + first[rank], source[rank] * (T + 1) + end[rank]
    crowded = np.zeros(len(rank), np.bool_)
    if len(rank):
        crowded[1:] = begins[1:] < np.maximum.accumulate(ends)[:-1]
        crowded[:-1] |= begins[1:] < ends[:-1]
    taken: dict[int, Bools] = {}
    for number in np.sort(rank[crowded]).tolist():
        source_taken = taken.setdefault(int(source[number]), np.zeros(T, np.bool_))
        where = slice(first[number], end[number])
        if source_taken[where].any():
            kept[number] = False
        else:
            source_taken[where] = True
    return kept


def _links(docs: Sequence[Document], line: _Line, rules: Sequence[str]) -> NDArray[np.int8]:
    """Return (T, R) rules' votes that a token is linked to the one before, or apart; DataError for another label."""
    out = np.zeros((len(line.tokens), len(rules)), np.int8)
    spans = _spans_on_line(docs, line, [LINK + name for name in rules])
    edges = np.array([(begin, end) for _, begin, end, _ in spans], np.int64).reshape(-1, 2)
    ranges = ranges_of_spans(line.tokens, *edges.T).tolist()
    for (rule, _, _, label), (first, last) in zip(spans, ranges, strict=True):
        if label not in _LINKS:
            raise DataError("a layer of a linking rule has another label; linking rules use TOGETHER or APART")
        out[first + 1 : last, rule] = _LINKS[label]
    return out


def _runs(tags: Ints, bounds: Ints) -> tuple[Ints, Ints]:
    """Return (first tokens, ends) of the runs of tags above 0; a sentence or an odd tag (B-) begins a new run."""
    cut = np.zeros(len(tags) + 1, np.bool_)
    cut[bounds] = True
    begins = (tags > 0) & ((tags % 2 == 1) | cut[:-1] | (np.append(0, tags[:-1])[: len(tags)] == 0))
    first = np.flatnonzero(begins)
    breaks = np.append(np.flatnonzero(begins | (tags == 0)), len(tags))
    return first, breaks[np.searchsorted(breaks, first, side="right")]


def _soft(doc: Document, name: str, labels: Labels) -> Floats:
    """Return (T, L) a document's soft labels of that name in the order of the tags; zeros where it has none."""
    out = np.zeros((len(doc.tokens), len(labels.tags)))
    if name in doc.soft:
        for column, tag in enumerate(doc.soft[name].labels):
            if tag in labels.tags:
                out[:, labels.tags.index(tag)] += doc.soft[name].values[:, column]
    return out
