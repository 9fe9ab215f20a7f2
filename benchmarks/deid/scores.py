"""The scores of the de-identification benchmark: words that are identifiers, flagged or leaked.

A word here is a token with a letter or a digit; punctuation identifies nobody. Words that a corpus leaves unmarked on
purpose are not counted at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import TypeAlias

import numpy as np

from benchmarks.hmmdp.scores import Inside, covered
from chaffinch import Document, Span
from chaffinch.deid.kinds import kind_of

Found: TypeAlias = Sequence[Sequence[Span]]  # of every document


@dataclass(slots=True)
class Tally:
    """Counts over documents: identifier words, those found, all that were flagged, the same of HIPAA's types."""

    words: int = 0
    gold: int = 0
    hits: int = 0
    flagged: int = 0
    hipaa: int = 0
    hipaa_hits: int = 0
    notes: int = 0
    leaking: int = 0
    by_category: dict[str, int] = field(default_factory=dict)
    hits_by_category: dict[str, int] = field(default_factory=dict)

    @property
    def recall(self) -> float:
        """The share of identifier words that were found."""
        return self.hits / max(self.gold, 1)

    @property
    def precision(self) -> float:
        """The share of flagged words that are identifiers."""
        return self.hits / max(self.flagged, 1)

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        return 2 * self.hits / max(self.gold + self.flagged, 1)

    @property
    def hipaa_recall(self) -> float:
        """The recall of HIPAA's types."""
        return self.hipaa_hits / max(self.hipaa, 1)

    def __add__(self, other: Tally) -> Tally:
        names = [own.name for own in fields(self)]
        numbers = [getattr(self, name) + getattr(other, name) for name in names[:-2]]
        tables = [dict(Counter(getattr(self, name)) + Counter(getattr(other, name))) for name in names[-2:]]
        return Tally(*numbers, *tables)


def written(doc: Document) -> Inside:
    """(T,) the tokens with a letter or a digit."""
    return np.array([any(map(str.isalnum, word)) for word in doc.words()], np.bool_)


def tally(docs: Sequence[Document], found: Found, *, ignored: str = "") -> Tally:
    """The counts of found spans against the layer "gold"; words of the layer `ignored` do not count.

    >>> note = Document.make("Ann Lee came.", layers={"gold": [Span(0, 7, "PATIENT")]})
    >>> own = tally([note], [[Span(4, 12, "DATE")]])
    >>> own.recall, own.precision, own.leaking
    (0.5, 0.5, 1)
    """
    out = Tally()
    for doc, spans in zip(docs, found, strict=True):
        counted = written(doc)
        if ignored in doc.layers:
            counted &= ~covered(doc, doc.layer(ignored))
        gold, flagged = counted & covered(doc, doc.layer("gold")), counted & covered(doc, spans)
        named: dict[str, list[Span]] = {}
        for span in doc.layer("gold"):
            named.setdefault(kind_of(span.label).category, []).append(span)
        listed = gold & covered(doc, [span for span in doc.layer("gold") if kind_of(span.label).hipaa])
        own = {name: gold & covered(doc, spans) for name, spans in named.items()}
        out += Tally(
            int(counted.sum()), int(gold.sum()), int((gold & flagged).sum()), int(flagged.sum()), int(listed.sum()),
            int((listed & flagged).sum()), 1, int((gold & ~flagged).any()),
            {name: int(inside.sum()) for name, inside in own.items()},
            {name: int((inside & flagged).sum()) for name, inside in own.items()},
        )  # fmt: skip
    return out


def summed(parts: Iterable[Tally]) -> Tally:
    """The counts of all parts."""
    return sum(parts, Tally())
