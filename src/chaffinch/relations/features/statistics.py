"""Statistics of the phrase HMM: pairs of states, and words in states, along the path that a candidate fixes.

A state is the type of a segment with the arguments in it, or with its zone if there are none. The log-odds between
positive and null model are a linear function of these counts; logistic regression fits the weights without the
constraint that they are probabilities.
"""

from __future__ import annotations

from chaffinch.relations.features.frames import Frame, Part

BEGIN, END = "BEGIN", "END"


def features(frame: Frame) -> list[str]:
    """Return a name for each transition "state > state" and each "state: word", over all segments of a sentence."""
    out, before, stems, sense = [], BEGIN, frame.stems, frame.sense
    for part in frame.parts:
        state = state_of(frame, part)
        out.append(f"{before} > {state} {sense}")
        out += [f"{state}: {word}" for word in stems[part.first : part.end]]
        before = state
    out.append(f"{before} > {END}")
    return out


def state_of(frame: Frame, part: Part) -> str:
    """Return a segment's type with the numbers of its arguments, or with "before", "between" or "after"."""
    kind, first, end = part
    order = frame.order
    if end <= order[0]:
        return f"{kind} before"
    if first > order[-1]:
        return f"{kind} after"
    inside = [str(k + 1) for k, place in enumerate(order) if first <= place < end]
    return f"{kind} {'+'.join(inside)}" if inside else f"{kind} between"
