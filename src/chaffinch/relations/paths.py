"""The way from the first argument to the last: heads of segments, verbs, prepositions, other mentions, negation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from chaffinch.relations.frames import ENTITY, Frame
from chaffinch.relations.words import bucket

NEGATIONS = frozenset("not no neither nor without unabl fail lack absenc cannot independ never".split())
LINKS = {",": ",", "(": "(", ")": ")", "and": "&", "or": "|", "/": "/", "-": "-", ENTITY: "e"}
JOINING = ("IN", "TO", "CC")


def features(frame: Frame) -> list[str]:
    """Everything about the way, each with the order of the roles."""
    found = [*_shape(frame), *_between(frame), *_heads(frame)]
    return [f"{name} {frame.sense}" for name in found] if frame.sense else found


def _shape(frame: Frame) -> Iterator[str]:
    """How far, how crowded, how interrupted."""
    stems, first, last = frame.stems, frame.order[0], frame.order[-1]
    yield f"distance {bucket(last - first)}"
    yield f"mentions {min(frame.mentions, 8)}"
    zones = {"before": stems[:first], "between": stems[first + 1 : last], "after": stems[last + 1 :]}
    for zone, words in zones.items():
        yield f"mentions {zone} {min(words.count(ENTITY), 4)}"
    yield from frame.facts
    for k, rank in enumerate(frame.ranks):
        yield f"nearer to {k + 1}: {min(rank, 3)}"
    yield f"nearer: {' '.join(str(min(rank, 2)) for rank in frame.ranks)}"
    if not NEGATIONS.isdisjoint(stems):
        yield "negation"
        if not NEGATIONS.isdisjoint(zones["between"]):
            yield "negation between"


def _between(frame: Frame) -> Iterator[str]:
    """Verbs between the arguments, and marks that link or part them."""
    first, last = frame.order[0], frame.order[-1]
    words, tags = frame.stems[first + 1 : last], frame.tags[first + 1 : last]
    verbs = [word for word, tag in zip(words, tags, strict=True) if tag.startswith("VB")]
    yield f"verbs {min(len(verbs), 4)}"
    yield from (f"verb {word}" for word in verbs)
    links = re.sub("w+", "w", "".join(LINKS.get(word, "w") for word in words))
    yield f"links {links[:10]}"
    yield f"open {words.count('(') - words.count(')')}"


def _heads(frame: Frame) -> Iterator[str]:
    """The last words of the segments from the first argument to the last, and of those before and after."""
    stems, parts, first, last = frame.stems, frame.parts, frame.order[0], frame.order[-1]
    start = next(n for n, part in enumerate(parts) if part.end > first)
    stop = next(n for n, part in enumerate(parts) if part.end > last)
    way = parts[start : stop + 1]
    yield "types " + "-".join(part.type for part in way[:8])
    yield f"segments {min(stop - start, 10)}"
    heads = [stems[part.end - 1] for part in way]
    for n, place in ((0, first), (-1, last)):  # a head that the argument only modifies
        if way[n].end - 1 != place and way[n].first <= place < way[n].end:
            heads[n] = f"{stems[place]}+{heads[n]}"
    yield from (f"head {part.type} {head}" for part, head in zip(way, heads, strict=True))
    yield from (f"heads {run}" for n in (2, 3) for run in _runs(heads, n))
    acts = ["BEGIN", *(head for part, head in zip(way, heads, strict=True) if part.type in ("VP", "PP")), "END"]
    yield from (f"acts {run}" for n in (2, 3) for run in _runs(acts, n))
    yield from _around(frame, [stems[part.end - 1] for part in parts[:start]][-3:])
    yield from (f"head after {stems[part.end - 1]}" for part in parts[stop + 1 : stop + 3])


def _around(frame: Frame, before: Sequence[str]) -> Iterator[str]:
    """Heads before the first argument, with the prepositions after it: "interaction of 1 with 2"."""
    yield from (f"head before {head}" for head in before)
    if before:
        units = range(frame.order[0], frame.order[-1])
        joins = " ".join([frame.stems[unit] for unit in units if frame.tags[unit] in JOINING][:3])
        yield f"joins {before[-1]}: {joins}"
        if len(before) > 1:
            yield f"joins {before[-2]} {before[-1]}: {joins}"


def _runs(words: Sequence[str], n: int) -> list[str]:
    return [" ".join(words[k : k + n]) for k in range(len(words) - n + 1)]
