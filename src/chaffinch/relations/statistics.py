"""What a phrase HMM counts along the one path that a candidate leaves it: pairs of states, and words in states.

A state is a segment's type with the arguments in it and, where there are none, its zone. The log-odds between positive
and null model are then a linear function of these counts, and logistic regression fits them without the constraint that
they be probabilities.
"""

from __future__ import annotations

from collections.abc import Iterator

from chaffinch.relations.frames import Frame, Part
from chaffinch.relations.words import ZONES

BEGIN, END = "BEGIN", "END"


def features(frame: Frame) -> Iterator[str]:
    """Counts of `state > state` and of `state: word`."""
    before = BEGIN
    for part in frame.parts:
        state = state_of(frame, part)
        yield f"{before} > {state} {frame.sense}"
        for word in frame.stems[part.first : part.end]:
            yield f"{state}: {word}"
        before = state
    yield f"{before} > {END}"


def state_of(frame: Frame, part: Part) -> str:
    """The state of a segment: type and arguments, or type and zone."""
    inside = [k + 1 for k, place in enumerate(frame.order) if part.first <= place < part.end]
    if inside:
        return f"{part.type} {'+'.join(map(str, inside))}"
    return f"{part.type} {ZONES[(part.first > frame.order[0]) + (part.first > frame.order[-1])]}"
