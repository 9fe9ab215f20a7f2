"""Frames: a candidate's sentence in units, where every mention is one unit.

U units. Arguments have numbered marks, other mentions share one mark, and each unit belongs to a segment.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from chaffinch.models.phrasehmm.segments import Parse, Representation, cut, normal
from chaffinch.relations.candidates import Candidate, Mention, Scene
from chaffinch.relations.schema import Schema
from chaffinch.text import Document

ENTITY = "<ent>"
NAME = "NNP"  # the part of speech of a mention


class Part(NamedTuple):
    """A segment of a frame: its type, and its units `first` to `end`, half-open."""

    type: str
    first: int
    end: int


class Frame(NamedTuple):
    """The sentence of a candidate in units."""

    stems: list[str]  # (U,) normalised words and marks
    tags: list[str]  # (U,) parts of speech
    parts: list[Part]  # segments in order, which cover all units
    places: tuple[int, ...]  # of the arguments, in the order of the roles
    order: tuple[int, ...]  # the same, rising
    sense: str  # which role comes first, "" for a symmetric relation
    mentions: int  # in the sentence
    ranks: tuple[int, ...]  # for each argument, how many rivals of the next argument are nearer to it
    facts: tuple[str, ...]  # of the words of the arguments: "same name", "overlap"


class _Tokens(NamedTuple):
    """A sentence before mentions become units."""

    stems: list[str]
    tags: list[str]
    segment: list[int]  # number of the segment of each token
    types: list[str]  # of each segment


class _Base(NamedTuple):
    """Units and segments that the candidates of a sentence share; every mention is a mark, `at` has its unit."""

    stems: list[str]
    tags: list[str]
    parts: list[Part]
    at: dict[Mention, int]


def frames(
    doc: Document, scene: Scene, parse: Parse, schema: Schema, representation: Representation = "phrase"
) -> list[Frame]:
    """Return one frame for each candidate of a parsed sentence, in order."""
    tokens = _tokens(doc, scene, parse, representation)
    bases: dict[tuple[Mention, ...], _Base] = {}
    kept = _outermost(scene.mentions)
    out = []
    for candidate in scene.candidates:
        nested = () if all(mention in kept for mention in candidate.arguments) else candidate.arguments
        if nested not in bases:
            last, at = _units(scene, kept if not nested else _with_arguments(kept, nested), nested)
            bases[nested] = _base(tokens, last, at)
        out.append(_frame(doc, bases[nested], scene, candidate, schema))
    return out


def _base(tokens: _Tokens, last: list[int], at: dict[Mention, int]) -> _Base:
    """Return units and segments, from each unit's last token; the units of mentions in `at` become entity marks."""
    stems, tags = [tokens.stems[t] for t in last], [tokens.tags[t] for t in last]
    for unit in at.values():
        stems[unit], tags[unit] = ENTITY, NAME
    parts: list[Part] = []
    begin = 0
    for unit in range(1, len(last) + 1):
        if unit == len(last) or tokens.segment[last[unit]] != tokens.segment[last[begin]]:
            parts.append(Part(tokens.types[tokens.segment[last[begin]]], begin, unit))
            begin = unit
    return _Base(stems, tags, parts, at)


def _tokens(doc: Document, scene: Scene, parse: Parse, representation: Representation) -> _Tokens:
    """Return each token's normal form, tag and segment number in a sentence, and the types of its segments."""
    text = doc.text
    stems = [normal(text[a:b]) for a, b in doc.tokens[scene.first : scene.end].tolist()]
    found = cut(parse, len(stems), representation)
    number: list[int] = []
    for k, (_, first, end) in enumerate(found):
        number += [k] * (end - first)
    return _Tokens(stems, parse.tags, number, [segment.type for segment in found])


def _outermost(mentions: Sequence[Mention]) -> list[Mention]:
    """Return mentions that share no token, taken longest first; one that meets a longer one is left out."""
    taken: set[int] = set()
    out = []
    for mention in sorted(mentions, key=lambda item: (item.first - item.end, item.first, item.span)):
        if taken.isdisjoint(range(mention.first, mention.end)):
            taken.update(range(mention.first, mention.end))
            out.append(mention)
    return out


def _with_arguments(kept: Sequence[Mention], arguments: Sequence[Mention]) -> list[Mention]:
    """Return the kept mentions that share no token with the arguments, then the arguments, longest first."""
    taken = {t for mention in arguments for t in range(mention.first, mention.end)}
    others = [mention for mention in kept if taken.isdisjoint(range(mention.first, mention.end))]
    return [*others, *sorted(arguments, key=lambda mention: (mention.first - mention.end, mention.first))]


def _units(scene: Scene, chosen: Sequence[Mention], nested: Sequence[Mention]) -> tuple[list[int], dict[Mention, int]]:
    """Return the last token of every unit, counted from the sentence's start, and the unit of every mention.

    Where arguments overlap, the inner one has the tokens it covers, and the outer one the first run of the remaining
    tokens, or the unit of the inner one.
    """
    owner = [-1] * (scene.end - scene.first)
    for number, mention in enumerate(chosen):
        owner[mention.first - scene.first : mention.end - scene.first] = [number] * (mention.end - mention.first)
    last: list[int] = []
    at: dict[Mention, int] = {}
    for t, number in enumerate(owner):
        if number >= 0 and t and owner[t - 1] == number:
            last[-1] = t
            continue
        last.append(t)
        if number >= 0:
            at.setdefault(chosen[number], len(last) - 1)
    for mention in nested:
        if mention not in at:
            at[mention] = next(unit for unit, t in enumerate(last) if t >= mention.first - scene.first)
    return last, at


def _frame(doc: Document, base: _Base, scene: Scene, candidate: Candidate, schema: Schema) -> Frame:
    """Return the frame of a candidate: shared units with argument marks, order of roles, rivals and facts."""
    stems = base.stems.copy()
    places = tuple(base.at[mention] for mention in candidate.arguments)
    ranked = sorted(range(len(places)), key=places.__getitem__)
    for number, k in enumerate(ranked):
        stems[places[k]] = mark(number if schema.symmetric else k)
    sense = "" if schema.symmetric else ">".join(map(str, ranked))
    order, ranks, facts = tuple(sorted(places)), _ranks(scene, candidate), _facts(doc, candidate)
    return Frame(stems, base.tags, base.parts, places, order, sense, len(scene.mentions), ranks, facts)


def mark(argument: int) -> str:
    """Return the word that represents the argument of this number, counted from 0: <1> for 0.

    >>> mark(0)
    '<1>'
    """
    return f"<{argument + 1}>"


def _ranks(scene: Scene, candidate: Candidate) -> tuple[int, ...]:
    """Return for each argument how many other mentions of the next one's type are nearer to it than the next one."""
    out = []
    for k, argument in enumerate(candidate.arguments):
        other = candidate.arguments[(k + 1) % len(candidate.arguments)]
        reach = _distance(argument, other)
        near = [rival for rival in scene.mentions if _distance(argument, rival) < reach]
        out.append(sum(rival.span.label == other.span.label and rival not in candidate.arguments for rival in near))
    return tuple(out)


def _distance(one: Mention, other: Mention) -> int:
    """Return the number of tokens between two mentions; -1 if they overlap."""
    return max(one.first - other.end, other.first - one.end, -1)


def _facts(doc: Document, candidate: Candidate) -> tuple[str, ...]:
    """Return "same name" if two arguments have the same text in any case, "overlap" if the first overlaps another."""
    names = [doc.text[span.start : span.end].casefold() for span in candidate.spans]
    first, *others = candidate.spans
    same = len(set(names)) < len(names)
    return ("same name",) * same + ("overlap",) * any(first.overlaps(span) for span in others)
