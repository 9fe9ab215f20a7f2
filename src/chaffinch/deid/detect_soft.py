"""Soft labels of a detector: those of several models joined, what rules make of them, and flagged tokens as spans.

T tokens, L labels, the first of which is O.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from chaffinch.deid.lexicons import is_name
from chaffinch.kernels.lattice import Floats, Ints
from chaffinch.text import Document, Soft, Span

Flags = NDArray[np.bool_]

TINY = 1e-12
SURE = 0.97  # at most this much of a token's chance goes to what rules found
# Without models: the chance that a capitalised word which may be a name is one of each of these, and that others are.
NAMES, NAMELIKE, OTHERWISE = ("DOCTOR", "FAMILY", "PATIENT"), 0.08, 0.003


def mean(softs: Sequence[Soft]) -> Soft:
    """The mean of soft labels, over all labels that any of them knows; O comes first."""
    labels = ("O", *sorted({name for soft in softs for name in soft.labels} - {"O"}))
    values = np.zeros((len(softs[0].values), len(labels)))
    for soft in softs:
        values[:, [labels.index(name) for name in soft.labels]] += soft.values / len(softs)
    return Soft(labels, values)


def by_rules(doc: Document) -> Soft:
    """The soft labels of a document that no model has read: words that look like names may be names."""
    values = np.full((len(doc.tokens), 1 + len(NAMES)), OTHERWISE)
    maybe = [word[:1].isupper() and len(word) > 2 and word.isalpha() and is_name(word) for word in doc.words()]
    values[np.array(maybe, np.bool_)] = NAMELIKE
    values[:, 0] = 1.0 - values[:, 1:].sum(axis=1)
    return Soft(("O", *NAMES), values)


def chances(soft: Soft) -> tuple[Floats, Ints]:
    """(T,) the chance that a token is an identifier, and its likeliest label but O, as a number from 0."""
    if len(soft.labels) < 2:
        return np.zeros(len(soft.values)), np.zeros(len(soft.values), np.int64)
    return np.clip(1.0 - soft.values[:, 0], 0.0, 1.0), soft.values[:, 1:].argmax(axis=1)


def over(doc: Document, spans: Iterable[Span]) -> Flags:
    """(T,) the tokens that spans touch."""
    out = np.zeros(len(doc.tokens), np.bool_)
    for first, end in runs(doc, list(spans)).tolist():
        out[first:end] = True
    return out


def runs(doc: Document, spans: Sequence[Span]) -> Ints:
    """(spans, 2) the first token that each span touches, and one past the last."""
    firsts = np.searchsorted(doc.tokens[:, 1], [span.start for span in spans], side="right")
    ends = np.searchsorted(doc.tokens[:, 0], [span.end for span in spans], side="left")
    return np.stack([firsts, np.maximum(firsts, ends)], axis=1)


def with_spans(doc: Document, soft: Soft, spans: Sequence[Span]) -> Soft:
    """Soft labels that are as sure of the spans as these are, where they were less sure before."""
    more = sorted({span.label for span in spans} - set(soft.labels))
    labels = (*soft.labels, *more)
    values = np.concatenate([soft.values, np.zeros((len(soft.values), len(more)))], axis=1)
    firsts, ends = runs(doc, spans).T
    sizes = ends - firsts
    tokens = np.arange(sizes.sum()) + np.repeat(firsts - np.cumsum(sizes) + sizes, sizes)
    columns = np.repeat(np.array([labels.index(span.label) for span in spans], np.int64), sizes)
    wanted = np.repeat([min(SURE, span.score) for span in spans], sizes)
    while len(tokens):
        first = np.append(True, tokens[1:] != tokens[:-1])  # a token that two spans touch has its turn for each
        _raise(values, tokens[first], columns[first], wanted[first])
        tokens, columns, wanted = tokens[~first], columns[~first], wanted[~first]
    return Soft(labels, values)


def _raise(values: Floats, rows: Ints, columns: Ints, wanted: Floats) -> None:
    """Gives each row so much at its column, if it has less, and what is left to the others by their shares."""
    less = values[rows, columns] < wanted
    rows, columns, wanted = rows[less], columns[less], wanted[less]
    rest = values[rows].sum(axis=1) - values[rows, columns]
    values[rows] *= np.where(rest > 0, (1.0 - wanted) / np.maximum(rest, TINY), 0.0)[:, None]
    values[rows, columns] = wanted


def spans_of(doc: Document, soft: Soft, flags: Flags, decoded: Iterable[Span]) -> list[Span]:
    """The decoded spans with a flagged token, whole, and runs of the other flagged tokens; scores are mean chances.

    A run never goes on over a change of label, over a line's end, or into a decoded span, so neighbours stay apart.
    """
    sure, types = chances(soft)
    free, out = flags.copy(), []
    spans = list(decoded)
    for span, (first, end) in zip(spans, runs(doc, spans).tolist(), strict=True):
        if flags[first:end].any():
            out.append(replace(span, score=float(sure[first:end].mean()), source="model"))
            free[first:end] = False
    alone: list[tuple[int, int]] = []
    for token in np.flatnonzero(free).tolist():
        goes_on = alone and alone[-1][1] == token and types[token] == types[token - 1] and _same_line(doc, token)
        alone.append((alone.pop()[0] if goes_on else token, token + 1))
    for first, end in alone:
        start, stop = int(doc.tokens[first, 0]), int(doc.tokens[end - 1, 1])
        if any(map(str.isalnum, doc.text[start:stop])):
            label = soft.labels[1 + int(types[first])]
            out.append(Span(start, stop, label, float(sure[first:end].mean()), "dial"))
    return sorted(out)


def _same_line(doc: Document, token: int) -> bool:
    return "\n" not in doc.text[int(doc.tokens[token - 1, 1]) : int(doc.tokens[token, 0])]
