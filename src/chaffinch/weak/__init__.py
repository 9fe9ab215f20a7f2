"""Weak supervision: votes of many noisy sources, their aggregation, and taggers trained on the result.

>>> import chaffinch as cf
>>> sources = [cf.weak.Regex("dose", r"\\d+ ?mg", label="Dose"), cf.weak.Lexicon("drugs", ["aspirin"], label="Drug")]
>>> voted = cf.weak.apply(sources, [cf.Document.make("Aspirin 20 mg.")])
>>> [span.label for span in cf.weak.aggregate(voted)[0].layer("aggregate")]
['Drug', 'Dose']
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chaffinch.weak.aggregate import aggregate
    from chaffinch.weak.analysis import analyse
    from chaffinch.weak.analysis.results import Analysis
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

# Where public names are; they are loaded when they are asked for, since other rooms use sources and digests alone.
_MODULES = {
    "Abbreviations": "weak.sources",
    "Alternated": "weak.training.alternate",
    "Analysis": "weak.analysis.results",
    "Annotations": "weak.sources",
    "Applied": "weak.apply",
    "ChunkLink": "weak.sources",
    "Context": "weak.sources",
    "FromSpacy": "weak.sources",
    "FromTagger": "weak.sources",
    "History": "weak.sources",
    "Lexicon": "weak.sources",
    "Link": "weak.sources",
    "LongestSpan": "weak.vote_rules",
    "Published": "weak.training.alternate",
    "Recipe": "weak.training.alternate",
    "Regex": "weak.sources",
    "Source": "weak.sources",
    "SpanVote": "weak.vote_rules",
    "Suffix": "weak.sources",
    "Token": "weak.sources",
    "TokenPattern": "weak.sources",
    "TokenVote": "weak.vote_rules",
    "Union": "weak.vote_rules",
    "Watch": "weak.training.alternate",
    "WeakTagger": "weak.tagger",
    "aggregate": "weak.aggregate",
    "alternate": "weak.training.alternate",
    "analyse": "weak.analysis",
    "apply": "weak.apply",
    "load": "weak.tagger",
    "load_sources": "weak.sources",
    "read_annotations": "weak.sources",
    "source": "weak.sources",
}


def __dir__() -> list[str]:
    """Return the public names, and those that are loaded."""
    return sorted({*__all__, *globals()})


def __getattr__(name: str) -> Any:
    """Return a public name, a kind of source or a module, loaded when it is asked for; AttributeError for another."""
    if name in _MODULES:
        return getattr(import_module(f"chaffinch.{_MODULES[name]}"), name)
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if find_spec(f"{__name__}.{name}") is not None:
        return import_module(f"{__name__}.{name}")
    for kind in import_module("chaffinch.weak.sources").KINDS.values():
        if kind.__name__ == name:
            return kind
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _Package(ModuleType):
    """This package, in which `aggregate` and `apply` are functions although modules have the same names."""

    @property
    def aggregate(self) -> Any:
        """Return the function `aggregate`."""
        return import_module("chaffinch.weak.aggregate").aggregate

    @aggregate.setter
    def aggregate(self, module: ModuleType) -> None:
        """Ignore the module, which the import system assigns here when it is loaded."""

    @property
    def apply(self) -> Any:
        """Return the function `apply`."""
        return import_module("chaffinch.weak.apply").apply

    @apply.setter
    def apply(self, module: ModuleType) -> None:
        """Ignore the module, which the import system assigns here when it is loaded."""


sys.modules[__name__].__class__ = _Package
