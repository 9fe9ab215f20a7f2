"""Documents with the layers of sources to votes on tokens, and back: what was settled becomes a layer.

A source is a layer "source:NAME"; a span labelled O in it is a vote for "not an entity", where it has no span it says
nothing. A linking rule is a layer "link:NAME" of spans TOGETHER or APART, over tokens that belong together or do not.
So votes are kept in any format that keeps layers.

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
    """The names of all sources, in the order in which documents show them."""
    return _named(docs, SOURCE)


def collect_votes(
    docs: Sequence[Document], *, sources: Sequence[str] | None = None, labels: Sequence[str] | None = None
) -> VoteMatrix:
    """The votes of sources, all by default, on the tokens of documents.

    `labels` are the entity labels; by default all that sources use. A span that cuts a token counts for the whole
    token; of a source's spans that overlap the longest counts, then the first.

    >>> doc = Document.make("severe copper toxicosis", layers={"source:list": [Span(7, 23, "Disease")]})
    >>> collect_votes([doc]).codes.T.tolist()
    [[-1, 1, 2]]
    """
    sources = sources_of(docs) if sources is None else tuple(sources)
    line, rules = _Line.of(docs), _named(docs, LINK)
    said = _said(docs, line, [SOURCE + name for name in sources])
    if labels is None:
        labels = sorted({label for *_, label in said} | _soft_labels(docs, sources))
    names = tuple(label for label in labels if label != "O")
    codes = _codes(line, said, names, len(sources))
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
    docs: Sequence[Document], found: VoteMatrix, tags: Ints, chances: Floats | None, *, layer: str
) -> list[Document]:
    """The documents with a layer of the spans of tags (T,), and with soft labels of the chances (T, L), if given."""
    labels, line, out = found.labels, _Line.of(docs), []
    first, end = _runs(tags, found.bounds)
    cuts = np.searchsorted(first, found.documents).tolist()
    begins, ends, names = line.tokens[first, 0], line.tokens[end - 1, 1], (tags[first] - 1) // 2
    for place, (doc, shift) in enumerate(zip(docs, line.shifts.tolist(), strict=True)):
        own = slice(cuts[place], cuts[place + 1])
        rows = zip((begins[own] - shift).tolist(), (ends[own] - shift).tolist(), names[own].tolist(), strict=True)
        out.append(doc.with_layer(layer, [Span(a, b, labels.names[name], source=layer) for a, b, name in rows]))
        if chances is not None:
            soft = Soft(labels.tags, chances[found.documents[place] : found.documents[place + 1]])
            out[-1] = out[-1].with_soft(layer, soft)
    return out


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Line:
    """Documents end to end on one line of characters, so that one search finds the tokens of all spans."""

    tokens: Ints  # (T, 2) where each token begins and ends
    shifts: Ints  # (D,) where each document begins
    documents: Ints  # (D + 1,) its first token

    @classmethod
    def of(cls, docs: Sequence[Document]) -> _Line:
        """The line of documents; a gap of one character keeps them apart."""
        shifts = np.cumsum([0, *(len(doc.text) + 1 for doc in docs)])[:-1]
        sizes = [len(doc.tokens) for doc in docs]
        offsets = np.concatenate([np.zeros((0, 2), np.int64), *(doc.tokens for doc in docs)])
        offsets = offsets + np.repeat(shifts, sizes)[:, None]
        return cls(offsets, shifts, np.cumsum([0, *sizes]).astype(np.int64))

    def bounds(self, docs: Sequence[Document]) -> Ints:
        """The first tokens of all sentences, and T; tokens outside of all sentences join the one before."""
        ends = [doc.sentences[:, 1] + shift for doc, shift in zip(docs, self.shifts.tolist(), strict=True)]
        within = np.searchsorted(self.tokens[:, 0], np.concatenate([np.zeros(0, np.int64), *ends]), side="left")
        return np.unique(np.concatenate([[0], within, self.documents])).astype(np.int64)


def _named(docs: Sequence[Document], kind: str) -> tuple[str, ...]:
    found = dict.fromkeys(chain.from_iterable((*doc.layers, *doc.soft) for doc in docs))
    return tuple(name.removeprefix(kind) for name in found if name.startswith(kind))


def _said(docs: Sequence[Document], line: _Line, layers: Sequence[str]) -> list[tuple[int, int, int, str]]:
    """The number of the layer, begin, end and label of all spans in some layers, on the line."""
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
    own = {SOURCE + name for name in sources}
    tags = {tag for doc in docs for name, soft in doc.soft.items() if name in own for tag in soft.labels}
    return {tag[2:] if tag[1:2] == "-" else tag for tag in tags}


def _codes(line: _Line, said: Sequence[tuple[int, int, int, str]], names: Sequence[str], S: int) -> NDArray[np.int16]:
    """(T, S) the votes of spans."""
    out = np.full((len(line.tokens), S), SILENT, np.int16)
    numbers = {name: number for number, name in enumerate(names)} | {"O": -1}
    rows = [(source, begin, end, numbers[label]) for source, begin, end, label in said if label in numbers]
    source, begin, end, number = np.array(rows, np.int64).reshape(-1, 4).T
    order = np.lexsort((begin, begin - end))  # the longest first
    source, number = source[order], number[order]
    first, last = ranges_of_spans(line.tokens, begin[order], end[order]).T
    kept = _apart(source, first, last, len(out))
    source, number, first, last = source[kept], number[kept], first[kept], last[kept]
    sizes = last - first
    places = np.arange(sizes.sum()) + np.repeat(first - np.cumsum(sizes) + sizes, sizes)
    out[places, np.repeat(source, sizes)] = np.repeat(np.where(number < 0, 0, 2 + 2 * number), sizes)
    out[first, source] = np.where(number < 0, 0, 1 + 2 * number)
    return out


def _apart(source: Ints, first: Ints, end: Ints, T: int) -> Bools:
    """(n,) the spans that have a token and overlap no earlier one of the same source that is kept."""
    kept = first < end
    rank = np.flatnonzero(kept)[np.lexsort((first[kept], source[kept]))]
    begins, ends = source[rank] * (T + 1) + first[rank], source[rank] * (T + 1) + end[rank]
    crowded = np.zeros(len(rank), np.bool_)
    if len(rank):
        crowded[1:] = begins[1:] < np.maximum.accumulate(ends)[:-1]
        crowded[:-1] |= begins[1:] < ends[:-1]
    taken: dict[int, Bools] = {}
    for place in np.sort(rank[crowded]).tolist():
        own = taken.setdefault(int(source[place]), np.zeros(T, np.bool_))
        where = slice(first[place], end[place])
        if own[where].any():
            kept[place] = False
        else:
            own[where] = True
    return kept


def _links(docs: Sequence[Document], line: _Line, rules: Sequence[str]) -> NDArray[np.int8]:
    """(T, R) what linking rules say of a token and the one before it."""
    out = np.zeros((len(line.tokens), len(rules)), np.int8)
    said = _said(docs, line, [LINK + name for name in rules])
    edges = np.array([(begin, end) for _, begin, end, _ in said], np.int64).reshape(-1, 2)
    ranges = ranges_of_spans(line.tokens, *edges.T).tolist()
    for (rule, _, _, label), (first, last) in zip(said, ranges, strict=True):
        if label not in _LINKS:
            raise DataError(f"layer {LINK + rules[rule]!r} has a span {label!r}; linking rules say TOGETHER or APART")
        out[first + 1 : last, rule] = _LINKS[label]
    return out


def _runs(tags: Ints, bounds: Ints) -> tuple[Ints, Ints]:
    """First tokens and ends of the runs of tags; none goes on where a sentence begins."""
    cut = np.zeros(len(tags) + 1, np.bool_)
    cut[bounds] = True
    begins = (tags > 0) & ((tags % 2 == 1) | cut[:-1] | (np.append(0, tags[:-1])[: len(tags)] == 0))
    first = np.flatnonzero(begins)
    breaks = np.append(np.flatnonzero(begins | (tags == 0)), len(tags))
    return first, breaks[np.searchsorted(breaks, first, side="right")]


def _soft(doc: Document, name: str, labels: Labels) -> Floats:
    """(T, L) a source's distributions in our tags; zeros where it has none."""
    out = np.zeros((len(doc.tokens), len(labels.tags)))
    if name in doc.soft:
        for column, tag in enumerate(doc.soft[name].labels):
            if tag in labels.tags:
                out[:, labels.tags.index(tag)] += doc.soft[name].values[:, column]
    return out
