"""Spans and relations, and the named rules that resolve overlaps."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from chaffinch.errors import ConfigError, DataError

_PLACE = attrgetter("start", "end", "label")  # the order of spans, compared in C


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A labelled stretch of text: code points, half-open; two spans are equal if start, end and label are.

    `score` is a confidence in [0, 1], `source` names what found the span, `concept` is its identifier in a
    terminology ("D009270"), where the format has one.

    >>> Span(3, 8, "NAME") == Span(3, 8, "NAME", score=0.7, source="rules")
    True
    """

    start: int
    end: int
    label: str
    score: float = field(default=1.0, compare=False)
    source: str = field(default="", compare=False)
    concept: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        """Raise DataError unless 0 <= start <= end."""
        if not 0 <= self.start <= self.end:
            raise DataError(
                f"a span cannot be [{self.start}, {self.end}); it starts at 0 or later, and ends there or after"
            )

    def __len__(self) -> int:
        """Return the number of characters (code points)."""
        return self.end - self.start

    def overlaps(self, other: Span) -> bool:
        """Tell whether the two spans share at least one character."""
        return self.start < other.end and other.start < self.end


def find_overlap(spans: Sequence[Span]) -> tuple[Span, Span] | None:
    """Return the first two neighbours in a sorted sequence of spans that share a character, or None."""
    furthest: Span | None = None
    for span in spans:
        if furthest is not None and span.start < furthest.end:
            return furthest, span
        furthest = span
    return None


# A rule ranks spans; the best of those that overlap stays. Ties go to the earlier, then the longer span.
_RANKS: dict[str, Callable[[Span], tuple[float, ...]]] = {
    "longest": lambda s: (-len(s),),
    "shortest": lambda s: (len(s),),
    "score": lambda s: (-s.score, -len(s)),
    "first": lambda s: (s.start, -len(s)),
}
OVERLAP_RULES = tuple(_RANKS)


def resolve(spans: Iterable[Span], rule: str = "longest") -> tuple[Span, ...]:
    """Resolve overlaps by a named rule; return the spans kept, sorted; ConfigError for an unknown rule.

    Rules: "longest", "shortest", "score" (the most confident), "first" (the earliest start).

    >>> resolve([Span(0, 5, "A"), Span(3, 12, "B")], rule="longest")
    (Span(start=3, end=12, label='B', score=1.0, source='', concept=''),)
    """
    if rule not in _RANKS:
        raise ConfigError(f"unknown overlap rule {rule!r}; choose one of {', '.join(OVERLAP_RULES)}")
    rank = _RANKS[rule]
    kept: list[Span] = []
    for cluster in overlap_clusters(spans):
        kept += cluster if len(cluster) == 1 else _resolve_cluster(cluster, rank)
    return tuple(kept)


def overlap_clusters(spans: Iterable[Span]) -> Iterator[list[Span]]:
    """Yield the spans, sorted, in groups such that no two of different groups overlap; nothing if there are none."""
    cluster: list[Span] = []
    furthest = 0
    for span in sorted(spans, key=_PLACE):
        if cluster and span.start >= furthest:
            yield cluster
            cluster = []
        cluster.append(span)
        furthest = max(furthest, span.end)
    if cluster:
        yield cluster


def _resolve_cluster(spans: Iterable[Span], rank: Callable[[Span], tuple[float, ...]]) -> list[Span]:
    """Take spans by rank (lowest first) and keep each that overlaps none kept; return them sorted."""
    kept: list[Span] = []  # sorted and free of overlaps, so only the neighbours can be in the way
    for span in sorted(spans, key=lambda s: (*rank(s), s.start, -s.end, s.label)):
        index = bisect_left(kept, span)
        if not any(span.overlaps(other) for other in kept[max(0, index - 1) : index + 1]):
            kept.insert(index, span)
    return kept


@dataclass(frozen=True, slots=True, order=True)
class Argument:
    """One filled role of a relation: its mentions, and the concept they refer to where one is known.

    A relation between two mentions has one span per argument. A relation stated for a whole document between
    two concepts (PubTator) lists every mention of the concept; there may be none.
    """

    role: str
    spans: tuple[Span, ...]
    concept: str = ""


@dataclass(frozen=True, slots=True, order=True)
class Relation:
    """A labelled tuple of arguments; two relations are equal if label and arguments are."""

    label: str
    arguments: tuple[Argument, ...]
    score: float = field(default=1.0, compare=False)
    source: str = field(default="", compare=False)
