"""Explanation of a span: the features for it and against it, with their weights, and the runner-up.

N tokens with pads between sentences, K states. The best labelling with the span is compared with the best one without
it; the listed weights, and those of the transitions between tags, add up to the difference of their scores.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np

from chaffinch.errors import DataError
from chaffinch.features.describe import Namer
from chaffinch.features.observe import Column, Observed
from chaffinch.features.vocabulary import COUNT, FIRST, salt_keys
from chaffinch.kernels.lattice import Ints, Lattice
from chaffinch.models.cascade.model import Model
from chaffinch.models.core.labels import Labels
from chaffinch.models.core.linear import Linear
from chaffinch.models.core.runs import best_path, locate_span, spans_near
from chaffinch.text import Document, Span
from chaffinch.text.explanation import ORDER, Explanation, Feature, Voice

REACH = 2  # tokens on either side whose features are listed: as far as features reach
_Shown: TypeAlias = tuple[int, str, str]  # the token of the sentence that a feature is about, its name, what it quotes


def explain(model: Model, doc: Document, span: Span) -> Explanation:
    """Explain why the last reading has a span or not; DataError for an unknown label or a span that cuts tokens."""
    if span.label not in model.names:
        raise DataError(f"the model has no label {span.label!r}; it has {', '.join(model.names)}")
    seen, columns = model.observe([doc])
    part = model.readings[-1]
    label = span.label if model.classifier is None else part.labels.names[0]
    sentence, offset, first, end = locate_span(doc, span, seen)
    begin = int(seen.begins[sentence])
    lattice = part.batch(seen, columns)[sentence]
    tags = part.labels.encode([(offset, offset + end - first, part.labels.names.index(label))], len(lattice))
    chosen, other = _best_with_and_without(lattice, part.labels, tags, offset, offset + end - first)
    namer = Namer(
        doc,
        seen,
        [part.labels.tags[tag] for tag in part.labels.tag_of],
        lambda kind, mark, word: model.resources.name_mark(kind, mark, word, doc, model.config.layers),
    )
    totals, moves = _difference(part, seen, columns, begin, chosen, other, namer)
    edges = _token_edges(seen, begin, len(chosen))
    listed = [Feature(name, weight, *edges[j + 1], quote) for (j, name, quote), weight in totals.items()]
    listed.append(Feature(ORDER, moves, span.start, span.end))
    features = tuple(sorted(listed, key=lambda each: (-abs(each.weight), each.name, each.start, each.quote)))
    margin = math.fsum(feature.weight for feature in features)
    source = first - offset
    runs = [(a + source, b + source, name) for a, b, name in part.labels.runs(other.astype(np.int32))]
    runner_up = spans_near(doc, runs, first, end)
    voice = Voice("tagger", "cascade", (span,) if margin > 0 else runner_up, None, margin, features)
    return Explanation(span, (voice,), runner_up)


def _token_edges(seen: Observed, begin: int, T: int) -> list[tuple[int, int]]:
    """Return (start, end) of a sentence's tokens, with an empty stretch before the first and after the last."""
    tokens = [(int(start), int(end)) for start, end in seen.tokens[begin : begin + T].tolist()]
    return [(tokens[0][0], tokens[0][0]), *tokens, (tokens[-1][1], tokens[-1][1])]


def _best_with_and_without(lattice: Lattice, labels: Labels, tags: Ints, first: int, end: int) -> tuple[Ints, Ints]:
    """Return the best states with the span, and without it; DataError if either is impossible."""
    T = len(lattice)
    same = labels.tag_of[None, :] == tags[:, None]
    with_span = np.ones((T, labels.states.K), np.bool_)
    with_span[first:end] = same[first:end]
    goes_on = np.zeros(labels.states.K, np.bool_)
    if labels.scheme == "IOB2" and end < T:
        inner = np.array([tag == "I" + labels.tags[tags[end - 1]][1:] for tag in labels.tags])
        goes_on = inner[labels.tag_of]
        with_span[end] &= ~goes_on
    choices = []
    for t in range(first, end + bool(goes_on.any())):
        allowed = np.ones((T, labels.states.K), np.bool_)
        allowed[t] = ~same[t] if t < end else goes_on
        choices.append(allowed)
    paths = [path for allowed in choices if (path := best_path(lattice, allowed)) is not None]
    chosen = best_path(lattice, with_span)
    if chosen is None or not paths:
        raise DataError("the span cannot be compared with another reading, because no other tag is possible there")
    return chosen[1], max(paths, key=lambda path: path[0])[1]


def _difference(
    part: Linear, seen: Observed, columns: Sequence[Column], begin: int, chosen: Ints, other: Ints, namer: Namer
) -> tuple[dict[_Shown, float], float]:
    """Return feature weights (0 left out) and the transitions' weight, for the states `chosen` less `other`."""
    states = part.labels.states
    totals: dict[_Shown, float] = defaultdict(float)
    for t in np.flatnonzero(chosen != other):
        for key, kind, offset, shown in _features(seen, columns, begin, len(chosen), int(t), namer):
            feature, k = int(part.vocabulary.find(np.array([key]))[0]), offset - int(FIRST[kind])
            if feature >= 0 and 0 <= k < COUNT[kind]:
                row = part.row(feature, k).astype(np.float64)
                if part.labels.pairs:
                    row[: states.K] += row[states.shared]
                totals[shown] += float(row[chosen[t]] - row[other[t]])
    moves = part.stored.moves.reshape(states.K + 2, states.W).astype(np.float64)
    order = _moves(moves, states.K, chosen) - _moves(moves, states.K, other)
    return {shown: weight for shown, weight in totals.items() if weight}, order


def _moves(moves: np.ndarray[tuple[int, int], np.dtype[np.float64]], K: int, path: Ints) -> float:
    """Return the sum of the weights of a path's transitions, begin and end included."""
    return float(moves[K, path[0]] + moves[K + 1, path[-1]] + moves[path[:-1], path[1:]].sum())


def _features(
    seen: Observed, columns: Sequence[Column], begin: int, T: int, t: int, namer: Namer
) -> Iterator[tuple[np.uint64, int, int, _Shown]]:
    """Yield (key, kind, offset from t, what is shown) of all features of tokens within `REACH` of token t."""
    for j in range(max(t - REACH, -1), min(t + REACH, T) + 1):
        n = begin + j
        v = seen.types[n]
        for q in range(seen.lists[v], seen.lists[v + 1]):
            yield seen.keys[q], int(seen.kinds[q]), j - t, (j, *namer.word(n, q - int(seen.lists[v]), j - t))
        for column in columns if j < T else ():
            if column.keys[n]:
                key = salt_keys(column.keys[n : n + 1], column.kind)[0]
                yield key, column.kind, j - t, (j, *namer.column(n, column, j - t))
