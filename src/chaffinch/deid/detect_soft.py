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
from chaffinch.weak.source_base import token_run

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
    for span in spans:
        first, end = token_run(doc, span.start, span.end)
        out[first:end] = True
    return out


def with_spans(doc: Document, soft: Soft, spans: Sequence[Span]) -> Soft:
    """Soft labels that are as sure of the spans as these are, where they were less sure before."""
    more = sorted({span.label for span in spans} - set(soft.labels))
    labels = (*soft.labels, *more)
    values = np.concatenate([soft.values, np.zeros((len(soft.values), len(more)))], axis=1)
    firsts = np.searchsorted(doc.tokens[:, 1], [span.start for span in spans], side="right")
    ends = np.searchsorted(doc.tokens[:, 0], [span.end for span in spans], side="left")
    sizes = np.maximum(ends - firsts, 0)
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
    for span in decoded:
        first, end = token_run(doc, span.start, span.end)
        if flags[first:end].any():
            out.append(replace(span, score=float(sure[first:end].mean()), source="model"))
            free[first:end] = False
    at = 0
    while at < len(free):
        end = at + 1
        if free[at]:
            while end < len(free) and free[end] and types[end] == types[at] and _same_line(doc, end):
                end += 1
            start, stop = int(doc.tokens[at, 0]), int(doc.tokens[end - 1, 1])
            if any(map(str.isalnum, doc.text[start:stop])):
                label = soft.labels[1 + int(types[at])]
                out.append(Span(start, stop, label, float(sure[at:end].mean()), "dial"))
        at = end
    return sorted(out)


def _same_line(doc: Document, token: int) -> bool:
    return "\n" not in doc.text[int(doc.tokens[token - 1, 1]) : int(doc.tokens[token, 0])]
