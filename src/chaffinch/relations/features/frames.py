"""A candidate as its features see it: a sentence in which every mention is one word.

U units. The arguments are marked, other mentions are all one mark, and each unit belongs to a segment of the sentence.
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
    """A candidate's sentence in units."""

    stems: list[str]  # (U,) normalised words and marks
    tags: list[str]  # (U,) parts of speech
    parts: list[Part]  # segments in order, which cover all units
    places: tuple[int, ...]  # of the arguments, in the order of the roles
    order: tuple[int, ...]  # the same, rising
    sense: str  # which role comes first, "" for a symmetric relation
    mentions: int  # in the sentence
    ranks: tuple[int, ...]  # how many mentions of the type of the other lie nearer, for each argument
    facts: tuple[str, ...]  # of the arguments' own words: "same name", "overlap"


class _Tokens(NamedTuple):
    """A sentence before mentions become units."""

    stems: list[str]
    tags: list[str]
    segment: list[int]  # number of the segment of each token
    types: list[str]  # of each segment


class _Base(NamedTuple):
    """What candidates of a sentence share: units in which every mention is a mark, segments, the unit of a mention."""

    stems: list[str]
    tags: list[str]
    parts: list[Part]
    at: dict[Mention, int]


def frames(
    doc: Document, scene: Scene, parse: Parse, schema: Schema, representation: Representation = "phrase"
) -> list[Frame]:
    """The frames of all candidates of a sentence."""
    tokens = _tokens(doc, scene, parse, representation)
    bases: dict[tuple[Mention, ...], _Base] = {}
    kept = _outermost(scene.mentions)
    out = []
    for own in scene.candidates:
        nested = () if all(one in kept for one in own.arguments) else own.arguments
        if nested not in bases:
            last, at = _units(scene, kept if not nested else _with(kept, nested), nested)
            bases[nested] = _base(tokens, last, at)
        out.append(_frame(doc, bases[nested], scene, own, schema))
    return out


def _base(tokens: _Tokens, last: list[int], at: dict[Mention, int]) -> _Base:
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
    text = doc.text
    stems = [normal(text[a:b]) for a, b in doc.tokens[scene.first : scene.end].tolist()]
    found = cut(parse, len(stems), representation)
    number: list[int] = []
    for k, (_, first, end) in enumerate(found):
        number += [k] * (end - first)
    return _Tokens(stems, parse.tags, number, [own.type for own in found])


def _outermost(mentions: Sequence[Mention]) -> list[Mention]:
    """The mentions that share no token, longer ones before those inside or across them."""
    taken: set[int] = set()
    out = []
    for one in sorted(mentions, key=lambda own: (own.first - own.end, own.first, own.span)):
        if taken.isdisjoint(range(one.first, one.end)):
            taken.update(range(one.first, one.end))
            out.append(one)
    return out


def _with(kept: Sequence[Mention], arguments: Sequence[Mention]) -> list[Mention]:
    """The mentions that share no token with the arguments, and the arguments, the longest of them first."""
    taken = {t for own in arguments for t in range(own.first, own.end)}
    others = [one for one in kept if taken.isdisjoint(range(one.first, one.end))]
    return [*others, *sorted(arguments, key=lambda own: (own.first - own.end, own.first))]


def _units(scene: Scene, chosen: Sequence[Mention], nested: Sequence[Mention]) -> tuple[list[int], dict[Mention, int]]:
    """The last token of every unit, and the unit of every mention. Where arguments overlap the inner one has the
    tokens it covers, and the outer one the first run that is left to it, or the inner one's unit."""
    owner = [-1] * (scene.end - scene.first)
    for number, one in enumerate(chosen):
        owner[one.first - scene.first : one.end - scene.first] = [number] * (one.end - one.first)
    last: list[int] = []
    at: dict[Mention, int] = {}
    for t, number in enumerate(owner):
        if number >= 0 and t and owner[t - 1] == number:
            last[-1] = t
            continue
        last.append(t)
        if number >= 0:
            at.setdefault(chosen[number], len(last) - 1)
    for one in nested:
        if one not in at:
            at[one] = next(unit for unit, t in enumerate(last) if t >= one.first - scene.first)
    return last, at


def _frame(doc: Document, base: _Base, scene: Scene, own: Candidate, schema: Schema) -> Frame:
    stems = base.stems.copy()
    places = tuple(base.at[one] for one in own.arguments)
    ranked = sorted(range(len(places)), key=places.__getitem__)
    for number, k in enumerate(ranked):
        stems[places[k]] = mark(number if schema.symmetric else k)
    sense = "" if schema.symmetric else ">".join(map(str, ranked))
    order, ranks, facts = tuple(sorted(places)), _ranks(scene, own), _facts(doc, own)
    return Frame(stems, base.tags, base.parts, places, order, sense, len(scene.mentions), ranks, facts)


def mark(argument: int) -> str:
    """The word that stands for an argument.

    >>> mark(0)
    '<1>'
    """
    return f"<{argument + 1}>"


def _ranks(scene: Scene, own: Candidate) -> tuple[int, ...]:
    """For each argument, how many mentions lie nearer than the one of the next role that could fill it as well."""
    out = []
    for k, one in enumerate(own.arguments):
        other = own.arguments[(k + 1) % len(own.arguments)]
        reach = _apart(one, other)
        near = [rival for rival in scene.mentions if _apart(one, rival) < reach]
        out.append(sum(rival.span.label == other.span.label and rival not in own.arguments for rival in near))
    return tuple(out)


def _apart(one: Mention, other: Mention) -> int:
    return max(one.first - other.end, other.first - one.end, -1)


def _facts(doc: Document, own: Candidate) -> tuple[str, ...]:
    names = [doc.text[span.start : span.end].casefold() for span in own.spans]
    first, *others = own.spans
    same = len(set(names)) < len(names)
    return ("same name",) * same + ("overlap",) * any(first.overlaps(span) for span in others)
