"""Token scores of a detector: soft labels averaged over models, adjusted by rules, and turned into spans.

T tokens of one document, N of all in an index, L labels, the first of which is O.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chaffinch.deid.detect.merge import ScoredSpan
from chaffinch.deid.detect.word_lists import WordLists
from chaffinch.deid.kinds import HANDLING, KINDS
from chaffinch.kernels.lattice import Floats, Ints
from chaffinch.models.core.runs import Run
from chaffinch.text import Document, Soft, Span

Flags = NDArray[np.bool_]
Number = TypeVar("Number", bound=np.generic)

FEW = 8  # numbers from which on numpy adds in several lanes, and so rounds otherwise than one by one
TINY = 1e-12  # keeps a division by zero out of rows that np.where then discards
SURE = 0.97  # the most that a span can raise the chance of its tokens to, so that no soft label is certain
MODELLED = ("model", "dial")  # the sources of spans of models: decoded, and runs of tokens at or above the dial
# Without models: the chance of each of these labels for a capitalised word that may be a name, and for other words.
NAMES = tuple(sorted(name for name, row in HANDLING.items() if row.person and not KINDS[name].generic))
NAMELIKE, OTHERWISE = 0.08, 0.003


def mean(softs: Sequence[Soft]) -> Soft:
    """Return the average of several models' soft labels over the union of their labels; O is the first column."""
    labels = ("O", *sorted({name for soft in softs for name in soft.labels} - {"O"}))
    values = np.zeros((len(softs[0].values), len(labels)))
    for soft in softs:
        if soft.labels == labels:
            values += soft.values / len(softs)
            continue
        values[:, [labels.index(name) for name in soft.labels]] += soft.values / len(softs)
    return Soft(labels, values)


def by_rules(docs: Iterable[Document], lists: WordLists) -> Soft:
    """Return soft labels without a model: `NAMELIKE` per person label for likely names, else `OTHERWISE`."""
    words = [word for doc in docs for word in doc.words()]
    values = np.full((len(words), 1 + len(NAMES)), OTHERWISE)
    maybe = [word[:1].isupper() and len(word) > 2 and word.isalpha() and lists.is_name(word) for word in words]
    values[np.array(maybe, np.bool_)] = NAMELIKE
    values[:, 0] = 1.0 - values[:, 1:].sum(axis=1)
    return Soft(("O", *NAMES), values)


def chances(soft: Soft) -> tuple[Floats, Ints]:
    """Return (T,) each token's chance to be an identifier, and (T,) the index of its likeliest label without O."""
    if len(soft.labels) < 2:
        return np.zeros(len(soft.values)), np.zeros(len(soft.values), np.int64)
    return np.clip(1.0 - soft.values[:, 0], 0.0, 1.0), soft.values[:, 1:].argmax(axis=1)


def token_flags(doc: Document, spans: Iterable[Span]) -> Flags:
    """Return (T,) whether any of the spans touches each token of the document."""
    out = np.zeros(len(doc.tokens), np.bool_)
    for first, end in doc.token_ranges(list(spans)).tolist():
        out[first:end] = True
    return out


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TokenIndex:
    """The concatenated tokens of several documents, so that the spans of all are mapped to tokens at once."""

    docs: Sequence[Document]
    bounds: list[int]  # the first token of every document, and the end of the last
    shifts: list[int]  # added to the offsets of each document, so that those of no two overlap
    starts: Ints  # (N,) shifted
    ends: Ints  # (N,) shifted

    @classmethod
    def of(cls, docs: Sequence[Document]) -> TokenIndex:
        """Concatenate the documents' tokens, with offsets as if the texts were joined with one character between."""
        bounds = list(accumulate((len(doc.tokens) for doc in docs), initial=0))
        shifts = list(accumulate((len(doc.text) + 1 for doc in docs), initial=0))[:-1]
        none = np.zeros((0, 2), np.int64)
        edges = np.concatenate([none, *(doc.tokens for doc in docs)])
        edges += np.repeat(np.array(shifts, np.int64), np.diff(bounds))[:, None]
        return cls(docs, bounds, shifts, np.ascontiguousarray(edges[:, 0]), np.ascontiguousarray(edges[:, 1]))

    def runs(self, spans: Sequence[Sequence[Span]]) -> tuple[Ints, Ints]:
        """Return (first tokens, ends) of the runs of tokens that the spans touch; spans are given by document."""
        starts = [span.start + shift for shift, in_doc in zip(self.shifts, spans, strict=True) for span in in_doc]
        stops = [span.end + shift for shift, in_doc in zip(self.shifts, spans, strict=True) for span in in_doc]
        return self.runs_between(starts, stops)

    def runs_between(self, starts: ArrayLike, stops: ArrayLike) -> tuple[Ints, Ints]:
        """Return (first tokens, ends) of the runs of tokens that stretches touch, given by shifted offsets (n,)."""
        firsts = np.searchsorted(self.ends, starts, side="right")
        return firsts, np.maximum(firsts, np.searchsorted(self.starts, stops, side="left"))

    def flags(self, spans: Sequence[Sequence[Span]]) -> Flags:
        """Return (N,) whether any span touches each token; spans are given by document."""
        return self.run_flags(*self.runs(spans))

    def run_flags(self, firsts: Ints, ends: Ints) -> Flags:
        """Return (N,) whether each token is inside one of the runs [first, end)."""
        size = len(self.starts) + 1
        depth = np.bincount(firsts, minlength=size) - np.bincount(ends, minlength=size)
        return np.cumsum(depth)[:-1] > 0

    def word(self, token: int) -> str:
        """Return the text of token number `token` of all documents."""
        number = bisect_right(self.bounds, token) - 1
        shift = self.shifts[number]
        return self.docs[number].text[int(self.starts[token]) - shift : int(self.ends[token]) - shift]

    def split_rows(self, rows: NDArray[Number]) -> list[NDArray[Number]]:
        """Split an array with a row per token (N, ...) into one array per document."""
        return [rows[first:end] for first, end in pairwise(self.bounds)]


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement of a rule or the user about the class of a span."""

    span: Span
    chance: float  # of the label, for the part of a token that models give to O
    wider: str  # the class if the label is wrong
    final: bool = False  # overrides models
    denied: bool = False  # the label is wrong, whatever models say


def tokens_of(firsts: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """Return the token numbers of all runs [first, end), run after run, and the length of each run."""
    sizes = ends - firsts
    return np.arange(sizes.sum()) + np.repeat(firsts - np.cumsum(sizes) + sizes, sizes), sizes


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Table:
    """The chances of all tokens of an index, with added columns for labels that only spans have."""

    labels: tuple[str, ...]
    number: Mapping[str, int]  # the column of every label
    more: Sequence[Sequence[str]]  # by document, the labels that only its spans have
    values: Floats  # (N, all labels)

    @classmethod
    def of(cls, soft: Soft, more: Sequence[Collection[str]]) -> _Table:
        """Return the soft labels with zero columns for labels that only spans have; `more` are these, by document."""
        new_labels = [sorted(set(labels) - set(soft.labels)) for labels in more]
        added = sorted(set().union(*new_labels))
        number = {name: column for column, name in enumerate((*soft.labels, *added))}
        values = np.concatenate([soft.values, np.zeros((len(soft.values), len(added)))], axis=1)
        return cls(soft.labels, number, new_labels, values)

    def split(self, index: TokenIndex) -> list[Soft]:
        """Return the soft labels of each document: the models' columns, and those that its spans added."""
        plain, out = len(self.labels), []
        if len(self.more) == 1 and self.values.shape[1] == plain + len(self.more[0]):  # of one document nothing is cut
            return [Soft((*self.labels, *self.more[0]), self.values)]
        for (begin, end), names in zip(pairwise(index.bounds), self.more, strict=True):
            rows, chosen = self.values[begin:end], [*range(plain), *(self.number[name] for name in names)]
            out.append(Soft((*self.labels, *names), rows.take(chosen, axis=1) if names else rows[:, :plain].copy()))
        return out


def with_spans(index: TokenIndex, soft: Soft, spans: Sequence[Sequence[Span]]) -> list[Soft]:
    """Return soft labels by document, with each token's chance raised at least to the score of the span over it."""
    table = _Table.of(soft, [{span.label for span in in_doc} for in_doc in spans])
    tokens, sizes = tokens_of(*index.runs(spans))
    columns = np.repeat(np.array([table.number[span.label] for in_doc in spans for span in in_doc], np.int64), sizes)
    wanted = np.repeat([min(SURE, span.score) for in_doc in spans for span in in_doc], sizes)
    while len(tokens):
        first = np.append(True, tokens[1:] != tokens[:-1])  # a token that two spans touch is raised once for each
        _raise_chances(table.values, tokens[first], columns[first], wanted[first])
        tokens, columns, wanted = tokens[~first], columns[~first], wanted[~first]
    return table.split(index)


def with_claims(index: TokenIndex, soft: Soft, claims: Sequence[Sequence[Claim]]) -> list[Soft]:
    """Return class probabilities by document: claims take the chance of O, final claims that of all classes.

    A final claim replaces the chances of its tokens. The part that a claim is not sure of, or denies, goes to the wider
    class of its label, so that the doubt remains. Of claims that share a token the first counts; they come in order of
    their spans.
    """
    table = _Table.of(soft, [{name for claim in part for name in (claim.span.label, claim.wider)} for part in claims])
    values, every = table.values, [claim for in_doc in claims for claim in in_doc]
    tokens, sizes = tokens_of(*index.runs([[claim.span for claim in in_doc] for in_doc in claims]))
    columns = np.repeat(np.array([table.number[claim.span.label] for claim in every], np.int64), sizes)
    widers = np.repeat(np.array([table.number[claim.wider] for claim in every], np.int64), sizes)
    chosen = np.repeat(np.array([claim.chance for claim in every], np.float64), sizes)
    final = np.repeat(np.array([claim.final for claim in every], np.bool_), sizes)
    denied = np.repeat(np.array([claim.denied for claim in every], np.bool_), sizes)
    values[tokens[final]] = 0.0
    values[tokens[final], 0] = 1.0
    again = np.append(False, tokens[1:] == tokens[:-1])[: len(tokens)]  # tokens that an earlier claim touches as well
    free = np.where(again, 0.0, values[tokens, 0])
    values[tokens, 0] = 0.0
    values[tokens, columns] += free * chosen
    values[tokens, widers] += free * (1.0 - chosen)
    values[tokens[denied], widers[denied]] += values[tokens[denied], columns[denied]]
    values[tokens[denied], columns[denied]] = 0.0
    return table.split(index)


def _raise_chances(values: Floats, rows: Ints, columns: Ints, wanted: Floats) -> None:
    """Raise, in place, values[row, column] to the wanted chance where it is lower; rescale the row to sum to 1."""
    less = values[rows, columns] < wanted
    rows, columns, wanted = rows[less], columns[less], wanted[less]
    totals = np.add.accumulate(values[rows], axis=1)[:, -1]  # in order: the same bits whatever columns of zeros follow
    rest = totals - values[rows, columns]
    values[rows] *= np.where(rest > 0, (1.0 - wanted) / np.maximum(rest, TINY), 0.0)[:, None]
    values[rows, columns] = wanted


def score_runs(index: TokenIndex, soft: Soft, runs: Sequence[Sequence[Run]]) -> list[list[ScoredSpan]]:
    """Return by document the runs of tokens as scored spans; a score is the mean chance of the label over the tokens.

    It is 0 where a span touches no token.
    """
    counts = list(map(len, runs))
    every = [run for part in runs for run in part]
    begins, shifts = np.repeat(index.bounds[:-1], counts), np.repeat(index.shifts, counts)
    starts = index.starts[np.array([first for first, _, _ in every], np.int64) + begins]
    stops = index.ends[np.array([end - 1 for _, end, _ in every], np.int64) + begins]
    tokens, sizes = tokens_of(*index.runs_between(starts, stops))
    number = {name: column for column, name in enumerate(soft.labels)}
    labels = [label for _, _, label in every]
    columns = np.repeat(np.array([number[label] for label in labels], np.int64), sizes)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    scores = np.bincount(owner, soft.values[tokens, columns], len(sizes)) / np.maximum(sizes, 1)
    places = (starts - shifts).tolist(), (stops - shifts).tolist()
    found = list(zip(*places, labels, scores.tolist(), strict=True))
    return [found[first:end] for first, end in pairwise(accumulate(counts, initial=0))]


def spans_of(index: TokenIndex, soft: Soft, flags: Flags, decoded: Sequence[Sequence[Span]]) -> list[list[Span]]:
    """Return by document the decoded spans that touch a flagged token, and spans of the remaining flagged tokens.

    Scores are mean chances. A run ends at a change of label, at the end of a line, and before a decoded span, so
    adjacent identifiers stay separate.
    """
    sure, types = chances(soft)
    firsts, ends = index.runs(decoded)
    counts = np.concatenate([[0], np.cumsum(flags)])
    hit = counts[ends] > counts[firsts]
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
    for number, first, end in _free_runs(index, flags & ~index.run_flags(firsts[hit], ends[hit]), kinds):
        doc, shift = index.docs[number], index.shifts[number]
        start, stop = int(index.starts[first]) - shift, int(index.ends[end - 1]) - shift
        if any(map(str.isalnum, doc.text[start:stop])):
            out[number].append(Span(start, stop, soft.labels[1 + kinds[first]], _mean(likely[first:end]), MODELLED[1]))
    return [sorted(found) for found in out]


def trim_spans(index: TokenIndex, spans: Sequence[Sequence[Span]], kept: Flags) -> list[list[Span]]:
    """Return by document the spans without the tokens at either edge that are not kept; without any kept, whole."""
    firsts, ends = index.runs(spans)
    tokens = np.append(np.flatnonzero(kept), len(kept))
    begins, lasts = tokens[np.searchsorted(tokens, firsts)], tokens[np.searchsorted(tokens, ends) - 1]
    edges = zip(firsts.tolist(), ends.tolist(), begins.tolist(), lasts.tolist(), strict=True)
    out: list[list[Span]] = []
    for in_doc, shift in zip(spans, index.shifts, strict=True):
        out.append([])
        for span, (first, end, begin, last) in zip(in_doc, edges, strict=False):
            start = int(index.starts[begin]) - shift if first < begin < end else span.start
            stop = int(index.ends[last]) - shift if first <= last < end - 1 else span.end
            out[-1].append(span if (start, stop) == (span.start, span.end) else replace(span, start=start, end=stop))
    return out


def _free_runs(index: TokenIndex, free: Flags, kinds: Sequence[int]) -> list[tuple[int, int, int]]:
    """Join neighbouring free tokens of one label and line; return runs as (document number, first token, end token)."""
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


def _mean(values: Sequence[float]) -> float:
    """Return the mean of numbers; of one number, itself, bit for bit; of few, what np.mean returns, far sooner."""
    if len(values) >= FEW:
        return float(np.mean(values))
    total = values[0]
    for value in values[1:]:
        total += value
    return total / len(values)
