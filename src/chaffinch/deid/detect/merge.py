"""Spans of several detectors joined: nothing found is lost, nothing adjacent is merged."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter

from chaffinch.deid.kinds import kind_of
from chaffinch.text import Span, resolve

_place = attrgetter("start", "end")


def merge_by_rank(ranks: Iterable[Iterable[Span]]) -> list[Span]:
    """One sorted list without overlaps that covers every letter and digit of all spans; earlier ranks go first.

    Inside a rank the longest of the spans that overlap stays whole, and of those over one place the surest. A span
    that sticks out of others is cut: its rest is a span of its own. Texts are needed only for the cuts, which
    `trim_punctuation` then tidies.

    >>> merge_by_rank([[Span(5, 9, "DATE")], [Span(0, 12, "NAME")]])[0]
    Span(start=0, end=5, label='NAME', score=1.0, source='', concept='')
    """
    out: list[Span] = []
    for spans in ranks:
        rank = list(spans)
        if not rank:
            continue
        out = [own for some in _clusters(rank) for own in _covering(some, [])] if not out else _covering(rank, out)
    return out


def is_code(label: str) -> bool:
    """Return whether a label is of numbers and addresses that stand for one person or thing."""
    return kind_of(label).is_code


def widen(text: str, exact: Sequence[Span], others: Sequence[Span]) -> list[Span]:
    """Return the exact spans, which are codes, each with what spans that overlap it mark around it of the same code.

    That is all of another code, and of other spans what has no blank between. The exact spans must be sorted and must
    not overlap; nor do the new ones.

    >>> widen("SN 2019-03-04/A7 x", [Span(3, 13, "DEVICE")], [Span(0, 18, "DATE")])[0].end
    16
    """
    if not exact or not others:
        return list(exact)
    out: list[Span] = []
    for number, span in enumerate(exact):
        start, end = span.start, span.end
        least = out[-1].end if out else 0
        most = exact[number + 1].start if number + 1 < len(exact) else len(text)
        for other in others:
            if not other.overlaps(span):
                continue
            first, last = max(least, other.start), min(most, other.end)
            if is_code(other.label):
                start, end = min(start, first), max(end, last)
            while start > first and not text[start - 1].isspace():
                start -= 1
            while end < last and not text[end].isspace():
                end += 1
        out.append(replace(span, start=start, end=end) if (start, end) != (span.start, span.end) else span)
    return out


def _clusters(spans: Iterable[Span]) -> Iterator[list[Span]]:
    """The spans in lists, from left to right, such that only spans of one list overlap."""
    some: list[Span] = []
    furthest = 0
    for span in sorted(spans, key=_place):
        if some and span.start >= furthest:
            yield some
            some = []
        some.append(span)
        furthest = max(furthest, span.end) if len(some) > 1 else span.end
    yield some


def _covering(rank: Sequence[Span], before: Sequence[Span]) -> list[Span]:
    """The spans there were and the rest of the rank, sorted, without overlaps."""
    if not before and all(own.start == rank[0].start and own.end == rank[0].end for own in rank):
        return [min(rank, key=lambda span: (-span.score, span.label))]
    whole = [span for span in rank if not _touched(span, before)]
    kept = sorted([*before, *resolve(whole, "longest")])
    if len(kept) == len(before) + len(rank):
        return kept  # all of them stayed whole
    out = sorted([*kept, *resolve(subtract_spans(rank, kept), "longest")])
    while rest := subtract_spans(rank, out):
        out = sorted([*out, *resolve(rest, "longest")])
    return out


def vote_spans(answers: Sequence[Iterable[Span]]) -> list[Span]:
    """The spans of several taggers without overlaps: of all ways to choose, the one with the most certainty in sum.

    The certainty of a span is the sum of the scores of those that found it so, with that label; the score is its mean.

    >>> short = [[Span(0, 5, "NAME", 0.8)], [Span(0, 5, "NAME", 0.7)]]
    >>> [span.end for span in vote_spans([[Span(0, 9, "NAME", 0.9)], *short])]
    [5]
    """
    sums: dict[tuple[int, int, str], float] = {}
    for spans in answers:
        for span in spans:
            key = (span.end, span.start, span.label)
            sums[key] = sums.get(key, 0.0) + span.score / len(answers)
    keys = sorted(sums)
    ends = [end for end, _, _ in keys]
    best, before = [0.0], [-1]  # the most of the first so many spans; how many come before the last, -1 without it
    for place, key in enumerate(keys):
        fits = bisect_right(ends, key[1], 0, place)
        with_it = best[fits] + sums[key]
        best.append(max(with_it, best[place]))
        before.append(fits if with_it > best[place] else -1)
    out, at = [], len(keys)
    while at:
        if before[at] >= 0:
            end, start, label = keys[at - 1]
            out.append(Span(start, end, label, sums[keys[at - 1]]))
        at = before[at] if before[at] >= 0 else at - 1
    return out[::-1]


def subtract_spans(spans: Iterable[Span], kept: Sequence[Span]) -> list[Span]:
    """The pieces of spans that no kept span covers; kept spans are sorted and do not overlap."""
    ends = [own.end for own in kept]
    return [piece for span in spans for piece in _pieces(span, kept, ends)]


def _pieces(span: Span, kept: Sequence[Span], ends: Sequence[int]) -> Iterator[Span]:
    at = span.start
    for place in range(bisect_right(ends, span.start), len(kept)):
        own = kept[place]
        if own.start >= span.end:
            break
        if own.start > at:
            yield replace(span, start=at, end=own.start)
        at = max(at, own.end)
    if at < span.end:
        yield replace(span, start=at)


def _touched(span: Span, kept: Sequence[Span]) -> bool:
    at = bisect_left(kept, span.end, key=attrgetter("start"))
    return at > 0 and kept[at - 1].end > span.start


def trim_punctuation(text: str, spans: Iterable[Span]) -> list[Span]:
    """The spans without blanks and signs at the ends that are pieces of others; those without letter or digit go.

    >>> trim_punctuation("Penn, MD.", [Span(4, 9, "DOCTOR")])
    [Span(start=6, end=8, label='DOCTOR', score=1.0, source='', concept='')]
    """
    out = []
    for span in spans:
        start, end = span.start, span.end
        while start < end and not text[start].isalnum():
            start += 1
        while end > start and not text[end - 1].isalnum():
            end -= 1
        if start < end:
            out.append(replace(span, start=start, end=end) if (start, end) != (span.start, span.end) else span)
    return out
