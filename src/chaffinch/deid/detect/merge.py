"""Merging of spans from several detectors: every detected character stays covered, adjacent spans stay separate."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from operator import attrgetter
from typing import TypeAlias

from chaffinch.deid.kinds import kind_of
from chaffinch.text import Span, resolve
from chaffinch.text.span import overlap_clusters

# An hour at the end of a date, and what follows an hour: "19 Feb 4" of "19 Feb 4pm".
_HOUR = re.compile(r"(?:(?<=\d)T|(?<=\w),?\s+)(?:[01]?\d|2[0-4])$")
_AFTER_HOUR = re.compile(r":\d\d|[ap]\.?m\b", re.IGNORECASE)
ScoredSpan: TypeAlias = tuple[int, int, str, float]  # start, end, label, score

_by_place = attrgetter("start", "end", "label")  # the order of spans, compared in C


def merge_by_rank(ranks: Iterable[Iterable[Span]]) -> list[Span]:
    """Merge ranked spans into a sorted list without overlaps that covers all of them; earlier ranks keep their edges.

    Inside a rank the longest of overlapping spans stays whole, and the surest of spans with equal edges. A span that
    sticks out of others is cut: the rest becomes a separate span. The cuts may begin or end with punctuation, which
    `trim_punctuation` removes.

    >>> merge_by_rank([[Span(5, 9, "DATE")], [Span(0, 12, "NAME")]])[0]
    Span(start=0, end=5, label='NAME', score=1.0, source='', concept='')
    """
    out: list[Span] = []
    for spans in ranks:
        rank = list(spans)
        if not rank:
            continue
        clusters = overlap_clusters(rank)
        out = _cover(rank, out) if out else [span for cluster in clusters for span in _cover(cluster, [])]
    return out


def is_code(label: str) -> bool:
    """Tell whether a label's kind is a code: a number or address that identifies one person or thing."""
    return kind_of(label).is_code


def widen(text: str, exact: Sequence[Span], others: Sequence[Span]) -> list[Span]:
    """Return the exact codes, widened over overlapping codes, and over other overlapping spans up to the next blank.

    It grows over all of an overlapping code, and over an overlapping span of another kind up to the next blank. The
    exact spans must be sorted and must not overlap; nor do the returned ones.

    >>> widen("SN 2019-03-04/A7 x", [Span(3, 13, "DEVICE")], [Span(0, 18, "DATE")])[0].end
    16
    """
    if not exact or not others:
        return list(exact)
    overlapping = _overlap_finder(others)
    out: list[Span] = []
    for number, span in enumerate(exact):
        start, end = span.start, span.end
        lower = out[-1].end if out else 0
        upper = exact[number + 1].start if number + 1 < len(exact) else len(text)
        for other in overlapping(span):
            first, last = max(lower, other.start), min(upper, other.end)
            if is_code(other.label):
                start, end = min(start, first), max(end, last)
            while start > first and not text[start - 1].isspace():
                start -= 1
            while end < last and not text[end].isspace():
                end += 1
        out.append(replace(span, start=start, end=end) if (start, end) != (span.start, span.end) else span)
    return out


def _overlap_finder(spans: Sequence[Span]) -> Callable[[Span], list[Span]]:
    """Return a function that finds the spans that overlap a given one, in the order of `spans`.

    It looks only at spans near the given one, so that a long note costs as much per character as a short one.
    """
    order = sorted(range(len(spans)), key=lambda number: spans[number].start)
    starts = [spans[number].start for number in order]
    furthest = list(accumulate((spans[number].end for number in order), max))

    def find(given: Span) -> list[Span]:
        """Return the spans that overlap the given one, in the order of `spans`."""
        place, found = bisect_left(starts, given.end), []
        while place and furthest[place - 1] > given.start:
            place -= 1
            if spans[order[place]].overlaps(given):
                found.append(order[place])
        return [spans[number] for number in sorted(found)]

    return find


def _cover(rank: Sequence[Span], before: Sequence[Span]) -> list[Span]:
    """Return `before` plus the parts of the rank's spans outside it, longest first, without overlap, sorted."""
    if not before and len(rank) == 1:
        return list(rank)
    if not before and all(span.start == rank[0].start and span.end == rank[0].end for span in rank):
        return [min(rank, key=lambda span: (-span.score, span.label))]
    whole = [span for span in rank if not overlaps_any(span, before)] if before else rank
    kept = sorted([*before, *resolve(whole, "longest")], key=_by_place)
    if len(kept) == len(before) + len(rank):
        return kept  # all of them stayed whole
    out = sorted([*kept, *resolve(subtract_spans(rank, kept), "longest")], key=_by_place)
    while rest := subtract_spans(rank, out):
        out = sorted([*out, *resolve(rest, "longest")], key=_by_place)
    return out


def vote_spans(answers: Sequence[Iterable[ScoredSpan]]) -> list[Span]:
    """Return the set of spans without overlaps that has the highest total of scores averaged over all taggers.

    The score of a span is the sum of the scores of equal spans (same edges, same label) over the number of taggers.

    >>> short = [[(0, 5, "NAME", 0.8)], [(0, 5, "NAME", 0.7)]]
    >>> [span.end for span in vote_spans([[(0, 9, "NAME", 0.9)], *short])]
    [5]
    """
    sums: dict[tuple[int, int, str], float] = {}
    for spans in answers:
        for start, end, label, score in spans:
            key = (end, start, label)
            sums[key] = sums.get(key, 0.0) + score / len(answers)
    keys = sorted(sums)
    ends = [end for end, _, _ in keys]
    best, before = [0.0], [-1]  # of the first n: the best total; how many fit before the n-th, or -1
    for number, key in enumerate(keys):
        fits = bisect_right(ends, key[1], 0, number)
        with_it = best[fits] + sums[key]
        best.append(max(with_it, best[number]))
        before.append(fits if with_it > best[number] else -1)
    out, left = [], len(keys)
    while left:
        if before[left] >= 0:
            end, start, label = keys[left - 1]
            out.append(Span(start, end, label, sums[keys[left - 1]]))
        left = before[left] if before[left] >= 0 else left - 1
    return out[::-1]


def subtract_spans(spans: Iterable[Span], kept: Sequence[Span]) -> list[Span]:
    """Return the pieces of spans that no kept span covers; kept spans must be sorted and must not overlap."""
    ends = [span.end for span in kept]
    return [piece for span in spans for piece in _pieces(span, kept, ends)]


def _pieces(span: Span, kept: Sequence[Span], ends: Sequence[int]) -> Iterator[Span]:
    """Yield the parts of a span that no kept span covers; `kept` is sorted, and `ends` are its ends."""
    start = span.start
    for number in range(bisect_right(ends, span.start), len(kept)):
        other = kept[number]
        if other.start >= span.end:
            break
        if other.start > start:
            yield replace(span, start=start, end=other.start)
        start = max(start, other.end)
    if start < span.end:
        yield replace(span, start=start)


def overlaps_any(span: Span, kept: Sequence[Span]) -> bool:
    """Tell whether a span overlaps one of the kept spans, which are sorted and do not overlap."""
    after = bisect_left(kept, span.end, key=attrgetter("start"))
    return after > 0 and kept[after - 1].end > span.start


def cut_hours(text: str, spans: Iterable[Span]) -> list[Span]:
    """Return the spans, dates without the hour of a time of day that begins inside them: it would pass for a year.

    >>> cut_hours("on 19 Feb 4pm", [Span(3, 11, "DATE")])
    [Span(start=3, end=9, label='DATE', score=1.0, source='', concept='')]
    """
    return [_without_hour(text, span) if span.label == "DATE" else span for span in spans]


def _without_hour(text: str, span: Span) -> Span:
    """Return a date without the hour at its end, if a digit is left; "May 4 pm" may be a day, and stays."""
    date = text[span.start : span.end]
    hour = _HOUR.search(date) if _AFTER_HOUR.match(text, span.end) else None
    if hour is None or not any(map(str.isdigit, date[: hour.start()])):
        return span
    return replace(span, end=span.start + hour.start())


def trim_punctuation(text: str, spans: Iterable[Span]) -> list[Span]:
    """Return the spans without blanks and punctuation at either edge; drop those without a letter or digit.

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
