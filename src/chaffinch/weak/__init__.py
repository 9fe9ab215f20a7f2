"""From many noisy sources to labels, and from labels to a tagger: votes, aggregation, alternate training.

>>> import chaffinch as cf
>>> sources = [cf.weak.Regex("dose", r"\\d+ ?mg", label="Dose"), cf.weak.Lexicon("drugs", ["aspirin"], label="Drug")]
>>> voted = cf.weak.apply(sources, [cf.Document.make("Aspirin 20 mg.")])
>>> [span.label for span in cf.weak.aggregate(voted)[0].layer("aggregate")]
['Drug', 'Dose']
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chaffinch.weak.aggregate import aggregate
    from chaffinch.weak.alternate import Alternated, Published, Recipe, Watch, alternate
    from chaffinch.weak.analyse import analyse
    from chaffinch.weak.analysis import Analysis
    from chaffinch.weak.apply import Applied, apply
    from chaffinch.weak.sources import (
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
        Suffix,
        Token,
        TokenPattern,
        load_sources,
        read_annotations,
        source,
    )
    from chaffinch.weak.vote_rules import LongestSpan, SpanVote, TokenVote, Union
    from chaffinch.weak.weak_tagger import WeakTagger, load

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

# Where names are defined, but for those of sources.
_PLACES = {
    "aggregate": "aggregate", "alternate": "alternate", "Alternated": "alternate", "Published": "alternate",
    "Recipe": "alternate", "Watch": "alternate", "analyse": "analyse", "Analysis": "analysis", "apply": "apply",
    "Applied": "apply", "LongestSpan": "vote_rules", "SpanVote": "vote_rules", "TokenVote": "vote_rules",
    "Union": "vote_rules", "WeakTagger": "weak_tagger", "load": "weak_tagger",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """A public name, loaded when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_PLACES.get(name, 'sources')}")
    globals()[name] = getattr(module, name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Room(ModuleType):
    """This package. A function keeps its name, though the module that defines it is called the same."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in __all__ and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Room
