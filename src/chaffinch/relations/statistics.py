"""What a phrase HMM counts along the one path that a candidate leaves it: pairs of states, and words in states.

A state is a segment's type with the arguments in it and, where there are none, its zone. The log-odds between positive
and null model are then a linear function of these counts, and logistic regression fits them without the constraint that
they be probabilities.
"""

from __future__ import annotations

from chaffinch.relations.frames import Frame, Part
from chaffinch.relations.lookup import Tables

BEGIN, END = "BEGIN", "END"


def features(frame: Frame) -> list[str]:
    """Counts of `state > state` and of `state: word`."""
    out, before, stems, sense = [], BEGIN, frame.stems, frame.sense
    for part in frame.parts:
        state = state_of(frame, part)
        out.append(f"{before} > {state} {sense}")
        out += [f"{state}: {word}" for word in stems[part.first : part.end]]
        before = state
    out.append(f"{before} > {END}")
    return out


class Numbers:
    """The columns of a frame's features in the same order, without making their names anew."""

    __slots__ = ("_moves", "_words")

    def __init__(self, known: dict[str, int]) -> None:
        self._words = Tables(known, lambda state, word: f"{state}: {word}")
        self._moves = Tables(known, lambda before, after: f"{before} > {after}")

    def __call__(self, frame: Frame) -> list[int | None]:
        out: list[int | None] = []
        before, stems, words, moves, ending = BEGIN, frame.stems, self._words, self._moves, f" {frame.sense}"
        first, last = frame.order[0], frame.order[-1]
        for part in frame.parts:
            kind, begin, end = part
            if end <= first:
                state = kind + " before"
            elif begin > last:
                state = kind + " after"
            else:
                state = state_of(frame, part)
            out.append(moves[before][state + ending])
            own = words[state]
            if end == begin + 1:
                out.append(own[stems[begin]])
            else:
                out += map(own.__getitem__, stems[begin:end])
            before = state
        out.append(moves[before][END])
        return out


def state_of(frame: Frame, part: Part) -> str:
    """The state of a segment: type and arguments, or type and zone."""
    kind, first, end = part
    order = frame.order
    if end <= order[0]:
        return f"{kind} before"
    if first > order[-1]:
        return f"{kind} after"
    inside = [str(k + 1) for k, place in enumerate(order) if first <= place < end]
    return f"{kind} {'+'.join(inside)}" if inside else f"{kind} between"
