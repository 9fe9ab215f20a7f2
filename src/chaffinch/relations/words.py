"""The baseline: the words before, between and after the arguments, and little else."""

from __future__ import annotations

from collections.abc import Iterator

from chaffinch.relations.frames import Frame

ZONES = ("before", "between", "after")


def features(frame: Frame) -> Iterator[str]:
    """Words by zone, pairs of words between the arguments, how far these are apart, how many mentions there are."""
    stems, first, last = frame.stems, frame.order[0], frame.order[-1]
    arguments = set(frame.order)
    for unit, word in enumerate(stems):
        if unit not in arguments:
            yield f"{ZONES[(unit > first) + (unit > last)]} {word}"
    for unit in range(first, last):
        yield f"pair {stems[unit]} {stems[unit + 1]}"
    yield f"distance {bucket(last - first)}"
    yield f"mentions {min(frame.mentions, 8)}"
    if frame.sense:
        yield f"order {frame.sense}"


def bucket(distance: int) -> int:
    """The upper end of the range a distance lies in; the last one is open.

    >>> [bucket(n) for n in (1, 5, 6, 8, 15, 99)]
    [1, 5, 8, 8, 20, 30]
    """
    return distance if distance <= 5 else next((edge for edge in (8, 12, 20) if distance <= edge), 30)
