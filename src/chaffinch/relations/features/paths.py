"""Path features: heads of segments, verbs, prepositions, other mentions and negation between the arguments."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

from chaffinch.relations.features.frames import ENTITY, Frame, Part
from chaffinch.relations.features.words import bucket

NEGATIONS = frozenset("not no neither nor without unabl fail lack absenc cannot independ never".split())
LINKS = {",": ",", "(": "(", ")": ")", "and": "&", "or": "|", "/": "/", "-": "-", ENTITY: "e"}
JOINING = ("IN", "TO", "CC")  # parts of speech of prepositions and conjunctions
ACTS = ("VP", "PP")  # verb and prepositional phrases
_WORDS = re.compile("w+")


def features(frame: Frame) -> list[str]:
    """Return the names of all path features, each with the order of the roles at its end."""
    ending = f" {frame.sense}" if frame.sense else ""
    return [*_shape(frame, ending), *_between(frame, ending), *_heads(frame, ending)]


def _shape(frame: Frame, ending: str) -> list[str]:
    """Return feature names for distance, numbers of mentions, nearer rivals and negation, each with `ending`."""
    stems, first, last = frame.stems, frame.order[0], frame.order[-1]
    before, between, after = (min(part.count(ENTITY), 4) for part in _zones(frame))
    ranks = frame.ranks
    out = [
        f"distance {bucket(last - first)}{ending}", f"mentions {min(frame.mentions, 8)}{ending}",
        f"mentions before {before}{ending}", f"mentions between {between}{ending}", f"mentions after {after}{ending}",
        *[f"{fact}{ending}" for fact in frame.facts],
        *[f"nearer to {k + 1}: {min(rank, 3)}{ending}" for k, rank in enumerate(ranks)],
        f"nearer: {' '.join([str(min(rank, 2)) for rank in ranks])}{ending}",
    ]  # fmt: skip
    if not NEGATIONS.isdisjoint(stems):
        out.append(f"negation{ending}")
        if not NEGATIONS.isdisjoint(stems[first + 1 : last]):
            out.append(f"negation between{ending}")
    return out


def _zones(frame: Frame) -> tuple[list[str], list[str], list[str]]:
    """Return the words (before the first argument, between first and last, after the last)."""
    stems, first, last = frame.stems, frame.order[0], frame.order[-1]
    return stems[:first], stems[first + 1 : last], stems[last + 1 :]


def _between(frame: Frame, ending: str) -> list[str]:
    """Return feature names for verbs, links (marks, conjunctions, mentions) and open brackets between the arguments."""
    first, last = frame.order[0], frame.order[-1]
    words, tags = frame.stems[first + 1 : last], frame.tags[first + 1 : last]
    verbs = [word for word, tag in zip(words, tags, strict=True) if tag[:2] == "VB"]
    links = _WORDS.sub("w", "".join([LINKS.get(word, "w") for word in words]))
    return [
        f"verbs {min(len(verbs), 4)}{ending}", *[f"verb {word}{ending}" for word in verbs],
        f"links {links[:10]}{ending}", f"open {words.count('(') - words.count(')')}{ending}",
    ]  # fmt: skip


def _heads(frame: Frame, ending: str) -> list[str]:
    """Return feature names for types and heads (last words) of segments from argument to argument and around."""
    stems, parts, first, last = frame.stems, frame.parts, frame.order[0], frame.order[-1]
    start = bisect_right(parts, first, key=_end)
    stop = bisect_right(parts, last, lo=start, key=_end)
    way = parts[start : stop + 1]
    heads = [stems[part.end - 1] for part in way]
    for n, place in ((0, first), (-1, last)):  # the argument modifies the head
        if way[n].end - 1 != place and way[n].first <= place < way[n].end:
            heads[n] = f"{stems[place]}+{heads[n]}"
    acts = ["BEGIN", *[head for part, head in zip(way, heads, strict=True) if part.type in ACTS], "END"]
    return [
        f"types {'-'.join([part.type for part in way[:8]])}{ending}", f"segments {min(stop - start, 10)}{ending}",
        *[f"head {part.type} {head}{ending}" for part, head in zip(way, heads, strict=True)],
        *_runs("heads", heads, ending), *_runs("acts", acts, ending),
        *_around(frame, [stems[part.end - 1] for part in parts[max(start - 3, 0) : start]], ending),
        *[f"head after {stems[part.end - 1]}{ending}" for part in parts[stop + 1 : stop + 3]],
    ]  # fmt: skip


def _around(frame: Frame, before: Sequence[str], ending: str) -> list[str]:
    """Return names of heads `before` the first argument, also joined to prepositions after it; [] without heads."""
    out = [f"head before {head}{ending}" for head in before]
    if before:
        first, last = frame.order[0], frame.order[-1]
        pairs = zip(frame.stems[first:last], frame.tags[first:last], strict=True)
        joins = " ".join([stem for stem, tag in pairs if tag in JOINING][:3])
        out.append(f"joins {before[-1]}: {joins}{ending}")
        if len(before) > 1:
            out.append(f"joins {before[-2]} {before[-1]}: {joins}{ending}")
    return out


def _runs(name: str, words: Sequence[str], ending: str) -> list[str]:
    """Return feature names of all runs of two words, then of three, each with `name` before and `ending` after."""
    return [
        *[f"{name} {a} {b}{ending}" for a, b in pairwise(words)],
        *[f"{name} {a} {b} {c}{ending}" for a, b, c in zip(words, words[1:], words[2:], strict=False)],
    ]


def _end(part: Part) -> int:
    """Return the end of a part, as a sort key."""
    return part.end
