"""Explanation of a span by the best path through states that reads it.

T tokens of one sentence, Y states.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from chaffinch.errors import DataError
from chaffinch.kernels import Ints
from chaffinch.kernels.lattice import Bools
from chaffinch.models.classhmm.describe.report import END, State
from chaffinch.models.classhmm.model import Model
from chaffinch.models.core.labels import Labels
from chaffinch.models.core.runs import locate_span, spans_near
from chaffinch.models.latent.describe_words import Lead, PathStep, Subtag, SubtagPath, name_of
from chaffinch.models.latent.parts import state_names, tag_name
from chaffinch.models.latent.paths import AFTER, BEFORE, compare_readings, span_masks
from chaffinch.text import Document, Span


def explain(model: Model, doc: Document, span: Span) -> SubtagPath:
    """Return the best path through states that has a span, even if it does not win; DataError for unknown labels.

    States are described by what they show in the training text; a word's share is its share of the state's tokens.
    """
    if span.label not in model.names:
        raise DataError(f"the model has no label {span.label!r}; it has {', '.join(model.names)}")
    label, labels = model.names.index(span.label), model.labels
    seen, batch = model.batch([doc])
    sentence, offset, first, end = locate_span(doc, span, seen)
    lattice, size = batch[sentence], end - first
    with_span, without = _masks(labels, label, offset, offset + size, len(lattice))
    path, other, chance, ratio = compare_readings(lattice, labels, with_span, without)
    tags = Labels(labels.names, labels.scheme).runs(labels.tag_of[other].astype(np.int32))
    runs = [(a + first - offset, b + first - offset, name) for a, b, name in tags]
    runner_up = spans_near(doc, runs, first, end)
    shown = range(max(offset - BEFORE, 0), min(offset + size + AFTER, len(path)))
    numbers = [int(name.rpartition("/")[2]) for name in state_names(labels)]
    steps = tuple(
        PathStep(
            _word(doc, t + first - offset),
            tag_name(labels, int(labels.tag_of[path[t]])),
            numbers[path[t]],
            *doc.tokens[t + first - offset].tolist(),
        )
        for t in shown
    )
    return SubtagPath(span, steps, _leads(model, path, shown), chance, runner_up, ratio, discriminative=False)


def _masks(labels: Labels, label: int, first: int, end: int, T: int) -> tuple[Bools, list[Bools]]:
    """Return (T, Y) states allowed in readings with the span, and masks that together allow those without it."""
    with_span, without = span_masks(labels, label, first, end, T)
    if labels.scheme == "runs" and first > 0:  # the span must not begin earlier either
        same = labels.tag_of == 1 + label
        fails = np.ones_like(with_span)
        with_span[first - 1] &= ~same
        fails[first - 1] = same
        without.append(fails)
    return with_span, without


def _word(doc: Document, token: int) -> str:
    """Return a token's text with single blanks."""
    begin, end = doc.tokens[token].tolist()
    return " ".join(doc.text[begin:end].split())


def _leads(model: Model, path: Ints, shown: range) -> tuple[Lead, ...]:
    """Return, for shown states of classes with several, description and shares of tags next on the path; or ()."""
    if model.substructure is None:
        return ()
    labels, names = model.labels, state_names(model.labels)
    described = {state.name: state for klass in model.substructure.classes for state in klass.states}
    onward = dict[int, dict[str, float]]()
    for t in shown:
        state = int(path[t])
        if labels.subs[labels.tag_of[state]] > 1:
            following = tag_name(labels, int(labels.tag_of[path[t + 1]])) if t + 1 < len(path) else END
            onward.setdefault(state, {})[following] = dict(described[names[state]].leads).get(following, 0.0)
    return tuple(Lead(_subtag(names[state], described), tuple(tags.items())) for state, tags in onward.items())


def _subtag(name: str, described: Mapping[str, State]) -> Subtag:
    """Return a described state as a `Subtag`, with words and features as shares of its tokens."""
    state = described[name]
    shares = [
        [(trait.name, trait.tokens / max(state.tokens, 1)) for trait in listed]
        for listed in (state.words, state.features)
    ]
    before = [
        (name_of(described[previous].tag, described[previous].number) if previous in described else previous, share)
        for previous, share in state.before
    ]
    words, features = map(tuple, shares)
    return Subtag(
        state.tag, state.number, float(state.tokens), state.share, words, features, tuple(before), state.leads
    )
