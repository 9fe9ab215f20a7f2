"""Soft labels of a detector: those of several models joined, what rules make of them, and flagged tokens as spans.

T tokens of one document, N of all in an index, L labels, the first of which is O.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from chaffinch.deid.detect.word_lists import WordLists
from chaffinch.deid.kinds import HANDLING, KINDS
from chaffinch.kernels.lattice import Floats, Ints
from chaffinch.text import Document, Soft, Span

Flags = NDArray[np.bool_]
Number = TypeVar("Number", bound=np.generic)

TINY = 1e-12
DOUBT, DOUBTED = 8.0, 0.004  # by how much a common word's odds are lowered; chances below that do not matter
_BEFORE = frozenset(["", *".!?:;•*-#\n\r)"])  # what a line or a sentence comes after
SURE = 0.97  # at most this much of a token's chance goes to what rules found
MODELLED = ("model", "dial")  # the sources of spans of models: decoded ones, and runs of tokens that reach the dial
# Without models: the chance that a capitalised word which may be a name is one of each of these, and that others are.
NAMES = tuple(sorted(name for name, row in HANDLING.items() if row.person and not KINDS[name].generic))
NAMELIKE, OTHERWISE = 0.08, 0.003


def mean(softs: Sequence[Soft]) -> Soft:
    """The mean of soft labels, over all labels that any of them knows; O comes first."""
    labels = ("O", *sorted({name for soft in softs for name in soft.labels} - {"O"}))
    values = np.zeros((len(softs[0].values), len(labels)))
    for soft in softs:
        values[:, [labels.index(name) for name in soft.labels]] += soft.values / len(softs)
    return Soft(labels, values)


def by_rules(docs: Iterable[Document], lists: WordLists) -> Soft:
    """The soft labels of documents that no model has read: words that look like names may be names."""
    words = [word for doc in docs for word in doc.words()]
    values = np.full((len(words), 1 + len(NAMES)), OTHERWISE)
    maybe = [word[:1].isupper() and len(word) > 2 and word.isalpha() and lists.is_name(word) for word in words]
    values[np.array(maybe, np.bool_)] = NAMELIKE
    values[:, 0] = 1.0 - values[:, 1:].sum(axis=1)
    return Soft(("O", *NAMES), values)


def discount_common_words(index: TokenIndex, soft: Soft, lists: WordLists) -> Soft:
    """Return the soft labels with common words less likely: those in small letters, in capitals, or at a beginning.

    Jobs are as likely as they were, and so are words with a capital that are often names.

    A few rare identifiers are common words, and among common words they are rare: a model that has met some of them in
    notes full of identifiers is too sure in others.
    """
    own = 1.0 - soft.values[:, 0]
    maybe = np.flatnonzero(own > DOUBTED).tolist()
    rows = np.array([row for row in maybe if lists.is_plain(*index.word(row))], np.int64)
    if not len(rows):
        return soft
    values, before = soft.values.copy(), own[rows]
    after = before / (before + (1.0 - before) * DOUBT)
    values[rows, 1:] *= (after / before)[:, None]
    values[rows, 0] = 1.0 - after
    return Soft(soft.labels, values)


def chances(soft: Soft) -> tuple[Floats, Ints]:
    """(T,) the chance that a token is an identifier, and its likeliest label but O, as a number from 0."""
    if len(soft.labels) < 2:
        return np.zeros(len(soft.values)), np.zeros(len(soft.values), np.int64)
    return np.clip(1.0 - soft.values[:, 0], 0.0, 1.0), soft.values[:, 1:].argmax(axis=1)


def over(doc: Document, spans: Iterable[Span]) -> Flags:
    """(T,) the tokens that spans touch."""
    out = np.zeros(len(doc.tokens), np.bool_)
    for first, end in doc.token_ranges(list(spans)).tolist():
        out[first:end] = True
    return out


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TokenIndex:
    """The tokens of some documents, one document after another, so that spans of all find their tokens at once."""

    docs: Sequence[Document]
    bounds: list[int]  # the first token of every document, and the end of the last
    shifts: list[int]  # what is added to the places of a document, for no two to have one in common
    starts: Ints  # (N,)
    ends: Ints  # (N,)

    @classmethod
    def of(cls, docs: Sequence[Document]) -> TokenIndex:
        """Return the index of some documents."""
        bounds = list(accumulate((len(doc.tokens) for doc in docs), initial=0))
        shifts = list(accumulate((len(doc.text) + 1 for doc in docs), initial=0))[:-1]
        none = np.zeros((0, 2), np.int64)
        edges = np.concatenate([none, *(doc.tokens for doc in docs)])
        edges += np.repeat(np.array(shifts, np.int64), np.diff(bounds))[:, None]
        return cls(docs, bounds, shifts, np.ascontiguousarray(edges[:, 0]), np.ascontiguousarray(edges[:, 1]))

    def runs(self, spans: Sequence[Sequence[Span]]) -> tuple[Ints, Ints]:
        """The first token that each span touches, and one past the last: of all spans of all documents in order."""
        starts = [span.start + shift for shift, own in zip(self.shifts, spans, strict=True) for span in own]
        stops = [span.end + shift for shift, own in zip(self.shifts, spans, strict=True) for span in own]
        firsts = np.searchsorted(self.ends, starts, side="right")
        return firsts, np.maximum(firsts, np.searchsorted(self.starts, stops, side="left"))

    def over(self, spans: Sequence[Sequence[Span]]) -> Flags:
        """(N,) the tokens that spans touch."""
        return self.covered(*self.runs(spans))

    def covered(self, firsts: Ints, ends: Ints) -> Flags:
        """(N,) the tokens of runs."""
        size = len(self.starts) + 1
        depth = np.bincount(firsts, minlength=size) - np.bincount(ends, minlength=size)
        return np.cumsum(depth)[:-1] > 0

    def word(self, token: int) -> tuple[str, bool]:
        """The text of a token, and whether it begins a line or a sentence."""
        number = bisect_right(self.bounds, token) - 1
        text, shift = self.docs[number].text, self.shifts[number]
        start = int(self.starts[token]) - shift
        return text[start : int(self.ends[token]) - shift], text[max(0, start - 3) : start].rstrip(" \t")[
            -1:
        ] in _BEFORE

    def cut(self, rows: NDArray[Number]) -> list[NDArray[Number]]:
        """Rows of all tokens (N, ...) as those of every document."""
        return [rows[first:end] for first, end in pairwise(self.bounds)]


@dataclass(frozen=True, slots=True)
class Claim:
    """What others than models say of the class of a span."""

    span: Span
    chance: float  # of the label, where models call a token no identifier
    wider: str  # the class it is of if not of the label's
    final: bool = False
    denied: bool = False  # it is not of the label, whatever models say


def tokens_of(firsts: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """The tokens of runs, one run after another, and how many each has."""
    sizes = ends - firsts
    return np.arange(sizes.sum()) + np.repeat(firsts - np.cumsum(sizes) + sizes, sizes), sizes


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Table:
    """Chances of all tokens of an index, with columns for labels of spans that the soft labels do not know."""

    labels: tuple[str, ...]
    number: Mapping[str, int]  # the column of every label
    more: Sequence[Sequence[str]]  # by document, the labels that only its spans have
    values: Floats  # (N, all labels)

    @classmethod
    def of(cls, soft: Soft, more: Sequence[Collection[str]]) -> _Table:
        own_more = [sorted(set(own) - set(soft.labels)) for own in more]
        added = sorted(set().union(*own_more))
        number = {name: place for place, name in enumerate((*soft.labels, *added))}
        values = np.concatenate([soft.values, np.zeros((len(soft.values), len(added)))], axis=1)
        return cls(soft.labels, number, own_more, values)

    def cut(self, index: TokenIndex) -> list[Soft]:
        """By document, its rows, with the columns it needs."""
        plain, out = len(self.labels), []
        for (begin, end), names in zip(pairwise(index.bounds), self.more, strict=True):
            chosen = [*range(plain), *(self.number[name] for name in names)] if names else slice(plain)
            out.append(Soft((*self.labels, *names), self.values[begin:end, chosen].copy()))
        return out


def with_spans(index: TokenIndex, soft: Soft, spans: Sequence[Sequence[Span]]) -> list[Soft]:
    """By document, soft labels that are as sure of the spans as these are, where they were less sure before."""
    table = _Table.of(soft, [{span.label for span in own} for own in spans])
    tokens, sizes = tokens_of(*index.runs(spans))
    columns = np.repeat(np.array([table.number[span.label] for own in spans for span in own], np.int64), sizes)
    wanted = np.repeat([min(SURE, span.score) for own in spans for span in own], sizes)
    while len(tokens):
        first = np.append(True, tokens[1:] != tokens[:-1])  # a token that two spans touch has its turn for each
        _raise(table.values, tokens[first], columns[first], wanted[first])
        tokens, columns, wanted = tokens[~first], columns[~first], wanted[~first]
    return table.cut(index)


def with_claims(index: TokenIndex, soft: Soft, claims: Sequence[Sequence[Claim]]) -> list[Soft]:
    """By document, chances of classes: of what models call no identifier, claims say how much is of their labels.

    A claim that is final says it of all of its tokens. What a claim is not sure of, or denies, goes to the wider class
    of its label, so that the doubt remains. Of claims that share a token the first counts; they come in order of place.
    """
    table = _Table.of(soft, [{name for own in some for name in (own.span.label, own.wider)} for some in claims])
    values, every = table.values, [own for some in claims for own in some]
    tokens, sizes = tokens_of(*index.runs([[own.span for own in some] for some in claims]))
    columns = np.repeat(np.array([table.number[own.span.label] for own in every], np.int64), sizes)
    widers = np.repeat(np.array([table.number[own.wider] for own in every], np.int64), sizes)
    chosen = np.repeat(np.array([own.chance for own in every], np.float64), sizes)
    final = np.repeat(np.array([own.final for own in every], np.bool_), sizes)
    denied = np.repeat(np.array([own.denied for own in every], np.bool_), sizes)
    values[tokens[final]] = 0.0
    values[tokens[final], 0] = 1.0
    again = np.append(False, tokens[1:] == tokens[:-1])[: len(tokens)]  # tokens that a claim before touches as well
    free = np.where(again, 0.0, values[tokens, 0])
    values[tokens, 0] = 0.0
    values[tokens, columns] += free * chosen
    values[tokens, widers] += free * (1.0 - chosen)
    values[tokens[denied], widers[denied]] += values[tokens[denied], columns[denied]]
    values[tokens[denied], columns[denied]] = 0.0
    return table.cut(index)


def _raise(values: Floats, rows: Ints, columns: Ints, wanted: Floats) -> None:
    """Gives each row so much at its column, if it has less, and what is left to the others by their shares."""
    less = values[rows, columns] < wanted
    rows, columns, wanted = rows[less], columns[less], wanted[less]
    one_by_one = np.add.accumulate(values[rows], axis=1)[:, -1]  # the same for any number of labels not in use
    rest = one_by_one - values[rows, columns]
    values[rows] *= np.where(rest > 0, (1.0 - wanted) / np.maximum(rest, TINY), 0.0)[:, None]
    values[rows, columns] = wanted


def scored(index: TokenIndex, soft: Soft, spans: Sequence[Sequence[Span]]) -> list[list[Span]]:
    """The spans by document, each with the mean chance of its label over its tokens as its score."""
    tokens, sizes = tokens_of(*index.runs(spans))
    number = {name: place for place, name in enumerate(soft.labels)}
    columns = np.repeat(np.array([number[span.label] for own in spans for span in own], np.int64), sizes)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    sums = np.bincount(owner, soft.values[tokens, columns], len(sizes))
    scores = iter((sums / np.maximum(sizes, 1)).tolist())
    return [[Span(span.start, span.end, span.label, next(scores), span.source) for span in own] for own in spans]


def spans_of(index: TokenIndex, soft: Soft, flags: Flags, decoded: Sequence[Sequence[Span]]) -> list[list[Span]]:
    """By document, the decoded spans with a flagged token, whole, and runs of the other flagged tokens.

    Scores are mean chances. A run never goes on over a change of label, over a line's end, or into a decoded span, so
    neighbours stay apart.
    """
    sure, types = chances(soft)
    firsts, ends = index.runs(decoded)
    so_far = np.concatenate([[0], np.cumsum(flags)])
    hit = so_far[ends] > so_far[firsts]
    likely, kinds = sure.tolist(), types.tolist()
    edges = zip(hit.tolist(), firsts.tolist(), ends.tolist(), strict=True)
    out = [
        [
            Span(span.start, span.end, span.label, _mean(likely[first:end]), MODELLED[0], span.concept)
            for span, (kept, first, end) in zip(spans, edges, strict=False)
            if kept
        ]
        for spans in decoded
    ]
    for number, first, end in _alone(index, flags & ~index.covered(firsts[hit], ends[hit]), kinds):
        doc, shift = index.docs[number], index.shifts[number]
        start, stop = int(index.starts[first]) - shift, int(index.ends[end - 1]) - shift
        if any(map(str.isalnum, doc.text[start:stop])):
            out[number].append(Span(start, stop, soft.labels[1 + kinds[first]], _mean(likely[first:end]), MODELLED[1]))
    return [sorted(own) for own in out]


def _alone(index: TokenIndex, free: Flags, kinds: Sequence[int]) -> list[tuple[int, int, int]]:
    """The runs of free tokens of one label in a line: the number of the document, the first token and the end."""
    tokens = np.flatnonzero(free)
    owners = np.searchsorted(index.bounds, tokens, side="right") - 1
    out: list[tuple[int, int, int]] = []
    for token, owner in zip(tokens.tolist(), owners.tolist(), strict=True):
        if out and out[-1][2] == token and out[-1][0] == owner and kinds[token] == kinds[token - 1]:
            shift = index.shifts[owner]
            between = index.docs[owner].text[int(index.ends[token - 1]) - shift : int(index.starts[token]) - shift]
            if "\n" not in between:
                out[-1] = (owner, out[-1][1], token + 1)
                continue
        out.append((owner, token, token + 1))
    return out


def _mean(chosen: Sequence[float]) -> float:
    return chosen[0] if len(chosen) == 1 else float(np.mean(chosen))
