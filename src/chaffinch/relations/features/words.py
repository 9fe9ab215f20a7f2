"""Baseline features: the words before, between and after the arguments, their distance and order."""

from __future__ import annotations

from chaffinch.relations.features.frames import Frame


def features(frame: Frame) -> list[str]:
    """Return names for words by zone, word pairs from first to last argument, distance, mentions and order of roles."""
    stems, first, last = frame.stems, frame.order[0], frame.order[-1]
    out = [f"before {word}" for word in stems[:first]]
    out += [f"between {stems[unit]}" for unit in range(first + 1, last) if unit not in frame.order]
    out += [f"after {word}" for word in stems[last + 1 :]]
    out += [f"pair {stems[unit]} {stems[unit + 1]}" for unit in range(first, last)]
    out += [f"distance {bucket(last - first)}", f"mentions {min(frame.mentions, 8)}"]
    return [*out, f"order {frame.sense}"] if frame.sense else out


def bucket(distance: int) -> int:
    """Return the upper end of the range that a distance lies in; 30 for the last, open range.

    >>> [bucket(n) for n in (1, 5, 6, 8, 15, 99)]
    [1, 5, 8, 8, 20, 30]
    """
    return distance if distance <= 5 else next((edge for edge in (8, 12, 20) if distance <= edge), 30)
