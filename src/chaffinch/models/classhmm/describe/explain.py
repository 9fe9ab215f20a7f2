"""The path through states that reads a span.

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
    """The best path through states that reads a document's span, whether or not it is the reading that wins.

    States are described by what they show in the training text; a word's share is that of the state's tokens.
    """
    if span.label not in model.names:
        raise DataError(f"the model has no label {span.label!r}; it has {', '.join(model.names)}")
    label, labels = model.names.index(span.label), model.labels
    seen, batch = model.batch([doc])
    sentence, at, first, end = locate_span(doc, span, seen)
    lattice, size = batch[sentence], end - first
    with_span, without = _readings(labels, label, at, at + size, len(lattice))
    path, other, chance, ratio = compare_readings(lattice, labels, with_span, without)
    tags = Labels(labels.names, labels.scheme).runs(labels.tag_of[other].astype(np.int32))
    runs = [(a + first - at, b + first - at, name) for a, b, name in tags]
    runner_up = spans_near(doc, runs, first, end)
    shown = range(max(at - BEFORE, 0), min(at + size + AFTER, len(path)))
    numbers = [int(name.rpartition("/")[2]) for name in state_names(labels)]
    steps = tuple(
        PathStep(_word(doc, t + first - at), tag_name(labels, int(labels.tag_of[path[t]])), numbers[path[t]])
        for t in shown
    )
    return SubtagPath(span, steps, _leads(model, path, shown), chance, runner_up, ratio, discriminative=False)


def _readings(labels: Labels, label: int, first: int, end: int, T: int) -> tuple[Bools, list[Bools]]:
    """(T, Y) the states of readings with the span, and lists of states whose union is the readings without it."""
    with_span, without = span_masks(labels, label, first, end, T)
    if labels.scheme == "runs" and first > 0:  # nor may it begin earlier
        same = labels.tag_of == 1 + label
        fails = np.ones_like(with_span)
        with_span[first - 1] &= ~same
        fails[first - 1] = same
        without.append(fails)
    return with_span, without


def _word(doc: Document, token: int) -> str:
    begin, end = doc.tokens[token].tolist()
    return " ".join(doc.text[begin:end].split())


def _leads(model: Model, path: Ints, shown: range) -> tuple[Lead, ...]:
    """What the states of a path stand for, and the tags they lead to there."""
    if model.substructure is None:
        return ()
    labels, names = model.labels, state_names(model.labels)
    told = {own.name: own for one in model.substructure.classes for own in one.states}
    onward = dict[int, dict[str, float]]()
    for t in shown:
        state = int(path[t])
        if labels.subs[labels.tag_of[state]] > 1:
            following = tag_name(labels, int(labels.tag_of[path[t + 1]])) if t + 1 < len(path) else END
            onward.setdefault(state, {})[following] = dict(told[names[state]].leads).get(following, 0.0)
    return tuple(Lead(_subtag(names[state], told), tuple(found.items())) for state, found in onward.items())


def _subtag(name: str, told: Mapping[str, State]) -> Subtag:
    """A state as paths describe it."""
    own = told[name]
    shares = [[(one.name, one.tokens / max(own.tokens, 1)) for one in listed] for listed in (own.words, own.features)]
    before = [(name_of(told[at].tag, told[at].number) if at in told else at, share) for at, share in own.before]
    words, features = map(tuple, shares)
    return Subtag(own.tag, own.number, float(own.tokens), own.share, words, features, tuple(before), own.leads)
