"""Context features: runs of up to three words before, between and after the arguments, and windows around each."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from chaffinch.relations.features.frames import Frame

WINDOW = 3  # words on either side of an argument; more make more features, and rarer ones
EDGE = "<edge>"


def features(frame: Frame) -> Iterator[str]:
    """Yield names: words, pairs, triples, skips to, between, from arguments; words and tags within `WINDOW` of each."""
    stems, first, last = frame.stems, frame.order[0], frame.order[-1]
    sense = frame.sense
    for name, begin, end in (("to", 0, last + 1), ("between", first, last + 1), ("from", first, len(stems))):
        words = stems[begin:end]
        yield from (f"{name} {word}" for word in words)
        yield from (f"{name}{sense} {a} {b}" for a, b in pairwise(words))
        yield from (f"{name}{sense} {a} {b} {c}" for a, b, c in zip(words, words[1:], words[2:], strict=False))
        yield from (f"{name}{sense} {a} … {c}" for a, c in zip(words, words[2:], strict=False))
    for k, place in enumerate(frame.order):
        for step in (*range(-WINDOW, 0), *range(1, WINDOW + 1)):
            inside = 0 <= place + step < len(stems)
            yield f"at {k + 1}{step:+}{sense} {stems[place + step] if inside else EDGE}"
            yield f"tag at {k + 1}{step:+}{sense} {frame.tags[place + step] if inside else EDGE}"
