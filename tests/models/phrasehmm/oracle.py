"""Every path of segments through a small phrase HMM, listed in plain Python. Nothing here shares code with the model.

A path names a state for each segment and, where states have chains of words, an inner state for each word.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

from chaffinch.models.phrasehmm.fit import Model, Sentence


class Path(NamedTuple):
    """A path, its log score with the chance of the sub-model, and the sub-model."""

    score: float
    states: tuple[int, ...]
    inner: tuple[tuple[int, ...], ...]
    sub: int


def paths(model: Model, sentence: Sentence, *, entities: bool = True, lenient: bool = False) -> Iterator[Path]:
    """All possible paths; `lenient` lets labelled states emit types they never saw with their label."""
    K = model.states.size
    choices = [
        [q for q in range(K) if _may(model, q, kind, _mask(sentence, at, entities=entities), lenient)]
        for at, kind in enumerate(sentence.types)
    ]
    for states in itertools.product(*choices):
        subs = {int(model.states.sub[q]) for q in states}
        if len(subs) != 1:
            continue
        moved = _moves(model, states)
        if moved == -math.inf:
            continue
        options = [list(_segment(model, sentence, at, q)) for at, q in enumerate(states)]
        for parts in itertools.product(*options):
            score = moved + sum(own for own, _ in parts)
            if score > -math.inf:
                yield Path(score, states, tuple(inside for _, inside in parts), min(subs))


def total(listed: list[Path]) -> float:
    """The log of the summed chances of paths."""
    if not listed:
        return -math.inf
    top = max(path.score for path in listed)
    return top + math.log(math.fsum(math.exp(path.score - top) for path in listed))


def labels(model: Model, path: Path) -> tuple[int, ...]:
    """The labels of a path."""
    return tuple(int(model.states.label[q]) for q in path.states)


def _mask(sentence: Sentence, at: int, *, entities: bool) -> int | None:
    return sentence.entities[at] if entities and sentence.entities is not None else None


def _may(model: Model, q: int, kind: str, mask: int | None, lenient: bool) -> bool:
    states = model.states
    label, zone, sub = int(states.label[q]), int(states.zone[q]), int(states.sub[q])
    same = [
        n for n in range(states.size)
        if (int(states.sub[n]), int(states.label[n]), int(states.zone[n])) == (sub, label, zone)
        and states.types[int(states.type[n])] == kind
    ]  # fmt: skip
    if label and mask is not None and label & ~mask:
        return False
    if same:
        return q in same
    return label == 0 or lenient


def _moves(model: Model, states: tuple[int, ...]) -> float:
    K, table = model.states.size, model.tables.moves
    route = [K, *states, K]
    if not states:
        return 0.0
    return float(sum(table[one, other] for one, other in itertools.pairwise(route)))


def _segment(model: Model, sentence: Sentence, at: int, q: int) -> Iterator[tuple[float, tuple[int, ...]]]:
    words = sentence.words[at]
    J = model.states.inner
    begin = sum(len(part) for part in sentence.words[:at])
    for inside in itertools.product(range(J), repeat=len(words)):
        score = 0.0
        if model.states.unlabelled_inner:
            route = [J, *inside, J]
            score += sum(float(model.tables.inner[q, one, other]) for one, other in itertools.pairwise(route))
        for offset, j in enumerate(inside):
            for kind, names, table in zip(*model.symbols, model.tables.emissions, strict=True):
                symbol = _symbol(sentence, at, offset, begin + offset, kind)
                if symbol is not None:
                    score += float(table[names.index(symbol) if symbol in names else 0, q * J + j])
        yield score, inside


def _symbol(sentence: Sentence, at: int, offset: int, place: int, kind: str) -> str | None:
    flat = [word for part in sentence.words for word in part]
    if kind == "word":
        return flat[place]
    if kind == "before":
        return flat[place - 1] if place else "<s>"
    if kind == "after":
        return flat[place + 1] if place + 1 < len(flat) else "</s>"
    if kind == "tag":
        return sentence.tags[at][offset] if sentence.tags is not None else None
    return str(min(len(sentence.words[at]), 8)) if offset == 0 else None
