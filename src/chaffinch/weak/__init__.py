"""Weak supervision: votes of many noisy sources, their aggregation, and taggers trained on the result.

>>> import chaffinch as cf
>>> sources = [cf.weak.Regex("dose", r"\\d+ ?mg", label="Dose"), cf.weak.Lexicon("drugs", ["aspirin"], label="Drug")]
>>> voted = cf.weak.apply(sources, [cf.Document.make("Aspirin 20 mg.")])
>>> [span.label for span in cf.weak.aggregate(voted)[0].layer("aggregate")]
['Drug', 'Dose']
"""

from __future__ import annotations

from chaffinch.weak.aggregate import aggregate
from chaffinch.weak.analysis import analyse
from chaffinch.weak.analysis.results import Analysis
from chaffinch.weak.apply import Applied, apply
from chaffinch.weak.sources import (
    KINDS,
    Abbreviations,
    Annotations,
    ChunkLink,
    Context,
    FromSpacy,
    FromTagger,
    History,
    Lexicon,
    Link,
    Regex,
    Source,
    SourceKind,
    Suffix,
    Token,
    TokenPattern,
    load_sources,
    read_annotations,
    source,
)
from chaffinch.weak.tagger import WeakTagger, load
from chaffinch.weak.training.alternate import Alternated, Published, Recipe, Watch, alternate
from chaffinch.weak.vote_rules import LongestSpan, SpanVote, TokenVote, Union

__all__ = [
    "Abbreviations",
    "Alternated",
    "Analysis",
    "Annotations",
    "Applied",
    "ChunkLink",
    "Context",
    "FromSpacy",
    "FromTagger",
    "History",
    "Lexicon",
    "Link",
    "LongestSpan",
    "Published",
    "Recipe",
    "Regex",
    "Source",
    "SpanVote",
    "Suffix",
    "Token",
    "TokenPattern",
    "TokenVote",
    "Union",
    "Watch",
    "WeakTagger",
    "aggregate",
    "alternate",
    "analyse",
    "apply",
    "load",
    "load_sources",
    "read_annotations",
    "source",
]


def __getattr__(name: str) -> type[SourceKind]:
    """Return the class of a kind of source by its name, imported on first use; AttributeError for another name."""
    for kind in KINDS.values():
        if kind.__name__ == name:
            return kind
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
