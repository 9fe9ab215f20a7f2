"""Labelled runs of tokens: those that a model reads in documents, and their F1.

N tokens with pads between sentences, T tokens of one sentence, K states.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from chaffinch.errors import DataError, InfeasibleError
from chaffinch.features.observe import Observed
from chaffinch.kernels import viterbi
from chaffinch.kernels.lattice import Bools, Ints, Lattice
from chaffinch.kernels.linear import Places
from chaffinch.models.core.labels import Labels
from chaffinch.text import Document, Span

Bias: TypeAlias = Mapping[str, float] | None  # added to the score of a label at each of its tokens; "O" is outside
Run: TypeAlias = tuple[int, int, str]  # first token, one past the last, label


def runs_by_document(seen: Observed, labels: Labels, states: Places) -> list[list[Run]]:
    """Return the labelled runs (first, end, label) of every document, of states (N,); tokens count from its first."""
    flat = np.zeros(len(states), np.int64)
    flat[seen.places] = seen.sources
    starts, ends, label = labels.run_arrays(states)  # no run crosses a pad
    starts, ends = flat[starts], flat[ends - 1] + 1
    bounds = np.cumsum([0, *seen.sizes])
    cuts = np.searchsorted(starts, bounds)
    shift = np.repeat(bounds[:-1], np.diff(cuts))
    names = [labels.names[number] for number in label.tolist()]
    runs = list(zip((starts - shift).tolist(), (ends - shift).tolist(), names, strict=True))
    return [runs[first:end] for first, end in pairwise(cuts.tolist())]


def span_f1(gold: Iterable[Iterable[Hashable]], found: Iterable[Iterable[Hashable]]) -> float:
    """Return strict F1 of runs found, over all documents; 1 if there are neither gold runs nor found ones.

    >>> span_f1([[(0, 1, "A")], []], [[(0, 1, "A"), (2, 3, "A")], []]).__round__(3)
    0.667
    """
    pairs = [(set(expected), set(actual)) for expected, actual in zip(gold, found, strict=True)]
    right = sum(len(expected & actual) for expected, actual in pairs)
    total = sum(len(expected) + len(actual) for expected, actual in pairs)
    return 2 * right / total if total else 1.0


def locate_span(doc: Document, span: Span, seen: Observed) -> tuple[int, int, int, int]:
    """Return a span's (sentence, first token in it, first token, end in the document); DataError if it cuts tokens."""
    first = int(np.searchsorted(doc.tokens[:, 0], span.start))
    end = int(np.searchsorted(doc.tokens[:, 1], span.end, side="right"))
    index = int(np.searchsorted(seen.sources, first))
    fits = first < end and doc.tokens[first, 0] == span.start and doc.tokens[end - 1, 1] == span.end
    if fits and index < len(seen.sources) and seen.sources[index] == first:
        sentence = int(np.searchsorted(seen.begins, seen.places[index], side="right")) - 1
        offset = int(seen.places[index] - seen.begins[sentence])
        if offset + end - first <= seen.ends[sentence] - seen.begins[sentence]:
            return sentence, offset, first, end
    raise DataError(f"span [{span.start}, {span.end}) {span.label} is not a run of whole tokens in one sentence")


def spans_near(doc: Document, runs: Sequence[Run], first: int, end: int) -> tuple[Span, ...]:
    """Return as spans the runs of a document that share a token with those from `first` to `end`, half-open."""
    near = [run for run in runs if run[0] < end and run[1] > first]
    return tuple(Span(int(doc.tokens[a, 0]), int(doc.tokens[b - 1, 1]), label) for a, b, label in near)


def best_path(lattice: Lattice, allowed: Bools) -> tuple[float, Ints] | None:
    """Return (score, states) of the best path through allowed states (T, K), or None if there is none."""
    try:
        path = viterbi(lattice.clamp(allowed))
    except InfeasibleError:
        return None
    return path.score, path.states
