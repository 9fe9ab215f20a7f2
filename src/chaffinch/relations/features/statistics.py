"""What a phrase HMM counts along the one path that a candidate leaves it: pairs of states, and words in states.

A state is a segment's type with the arguments in it and, where there are none, its zone. The log-odds between positive
and null model are then a linear function of these counts, and logistic regression fits them without the constraint that
they be probabilities.
"""

from __future__ import annotations

from chaffinch.relations.features.frames import Frame, Part

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
