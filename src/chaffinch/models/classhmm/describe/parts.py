"""The parts of spans: runs of one state; and the path through states that reads a span.

N tokens with pads between sentences, T tokens of one sentence, Y states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

import numpy as np

from chaffinch.errors import DataError
from chaffinch.kernels import Ints
from chaffinch.kernels.lattice import Bools
from chaffinch.models.classhmm import model as classhmm_model
from chaffinch.models.classhmm.describe.report import END, State
from chaffinch.models.classhmm.describe.states import state_names, tag_name
from chaffinch.models.core.labels import Fitted, Labels, pieces_of
from chaffinch.models.hmmdp import model as hmmdp_model
from chaffinch.models.hmmdp.describe import AFTER, BEFORE, _masks, _place, compared
from chaffinch.models.hmmdp.describe_words import Lead, PathStep, Subtag, SubtagPath, name_of
from chaffinch.text import Document, Span
from chaffinch.text.span import find_overlap

Latent = classhmm_model.Model | hmmdp_model.Model


def parts(model: Latent, doc: Document, spans: Sequence[Span]) -> list[Span]:
    """The spans' parts, sorted: runs of tokens on which the best path, given the spans, stays in one state.

    A part is called by its span's label and the number of the state, PER/2. States are numbered from 1 within a label;
    where first tokens have states of their own, as in an HMM with sub-tags or with classes IOB2, those come first.
    Every token of a span is in one part, but for tokens in no sentence, which have no state.
    """
    clash = find_overlap(spans)
    if clash is not None:
        a, b = clash
        raise DataError(
            f"spans [{a.start}, {a.end}) {a.label} and [{b.start}, {b.end}) {b.label} overlap; settle overlaps first "
            "(chaffinch.resolve)"
        )
    labels, reading = model.labels, model.reading([doc])
    index = {name: _number(model, name) for name in {span.label for span in spans}}
    pieces = pieces_of(doc, spans, index, Fitted())
    tags = reading.seen.spread([labels.encode(pieces, len(doc.tokens))]).astype(np.int64)
    first = np.searchsorted(labels.tag_of, np.arange(len(labels.tags)))
    states = np.where(reading.seen.types > 0, first[tags] + reading.paths(tags), -1)
    by_token = np.full(len(doc.tokens), -1, np.int64)
    by_token[reading.seen.sources] = states[reading.seen.places]
    kind = "hmmdp" if isinstance(model, hmmdp_model.Model) else "classhmm"
    names = state_names(labels)
    numbers = {label: _numbers(names, labels.names[number]) for label, number in index.items()}
    return sorted(part for span in spans for part in _parts_of(doc, span, by_token, numbers[span.label], kind))


def _numbers(names: Sequence[str], label: str) -> list[str]:
    """(Y,) the numbers of a label's states; empty for other states."""
    split = [name.rpartition("/") for name in names]
    return [number if own == label else "" for own, _, number in split]


def _parts_of(doc: Document, span: Span, states: Ints, numbers: Sequence[str], kind: str) -> list[Span]:
    """The runs of one state of a span's tokens; where a span cuts a token, so does its part."""
    ((begin, end),) = doc.token_ranges([span]).tolist()
    found = []
    for state, run in groupby(range(begin, end), key=lambda token: int(states[token])):
        tokens = list(run)
        first, last = max(int(doc.tokens[tokens[0], 0]), span.start), min(int(doc.tokens[tokens[-1], 1]), span.end)
        if state >= 0 and numbers[state]:  # else the token is in no sentence, or in a span before that cuts it as well
            found.append(Span(first, last, f"{span.label}/{numbers[state]}", source=kind))
    return found


def _number(model: Latent, label: str) -> int:
    """The number of a label among those of the chain."""
    if label not in model.names:
        raise DataError(f"the model has no label {label!r}; it has {', '.join(model.names)}")
    rules = model.config.rules if isinstance(model, hmmdp_model.Model) else None
    return model.labels.names.index(label if rules is None else rules.category(label))


def explain(model: classhmm_model.Model, doc: Document, span: Span) -> SubtagPath:
    """The best path through states that reads a document's span, whether or not it is the reading that wins.

    States are described by what they show in the training text; a word's share is that of the state's tokens.
    """
    label, labels = _number(model, span.label), model.labels
    seen, batch = model.batch([doc])
    sentence, at, first, end = _place(doc, span, seen)
    lattice, size = batch[sentence], end - first
    with_span, without = _readings(labels, label, at, at + size, len(lattice))
    path, other, chance, ratio = compared(lattice, labels, with_span, without)
    tags = Labels(labels.names, labels.scheme).runs(labels.tag_of[other].astype(np.int32))
    near = [(a + first - at, b + first - at, name) for a, b, name in tags if a < at + size and b > at]
    runner_up = tuple(Span(int(doc.tokens[a, 0]), int(doc.tokens[b - 1, 1]), name) for a, b, name in near)
    shown = range(max(at - BEFORE, 0), min(at + size + AFTER, len(path)))
    numbers = [int(name.rpartition("/")[2]) for name in state_names(labels)]
    steps = tuple(
        PathStep(_word(doc, t + first - at), tag_name(labels, int(labels.tag_of[path[t]])), numbers[path[t]])
        for t in shown
    )
    return SubtagPath(span, steps, _leads(model, path, shown), chance, runner_up, ratio, discriminative=False)


def _readings(labels: Labels, label: int, first: int, end: int, T: int) -> tuple[Bools, list[Bools]]:
    """(T, Y) the states of readings with the span, and lists of states whose union is the readings without it."""
    with_span, without = _masks(labels, label, first, end, T)
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


def _leads(model: classhmm_model.Model, path: Ints, shown: range) -> tuple[Lead, ...]:
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
