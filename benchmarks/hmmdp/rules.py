"""From categories to types, as the submitted system had it: a table of rules, the first that matches decides.

The publication's table was written by hand for its corpus. Ours is a decision list read off the training notes: for
each category its types are told by words beside the span, words in it, their shapes and the header of the line, the
surest first; without a match, the category's most frequent type.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from benchmarks.hmmdp.data import category
from benchmarks.hmmdp.peers import header, shape
from chaffinch import Document, Span

WINDOW = 3
LEAST = 3  # spans that must have shown a trigger
PRIOR = 0.5


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Rules:
    """Triggers by category: the type each stands for, and how sure it is."""

    triggers: Mapping[tuple[str, str], tuple[float, str]]
    usual: Mapping[str, str]

    def __call__(self, doc: Document, spans: Sequence[Span]) -> list[Span]:
        """The spans of categories under the names of types."""
        cues = _cues(doc)
        out = []
        for span in spans:
            matched = [found for cue in cues(span) if (found := self.triggers.get((span.label, cue)))]
            kind = max(matched)[1] if matched else self.usual.get(span.label, span.label)
            out.append(replace(span, label=kind))
        return out


def learn(docs: Sequence[Document], table: Mapping[str, str]) -> Rules:
    """The table of rules of documents whose gold spans have types."""
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    totals: dict[str, Counter[str]] = defaultdict(Counter)
    for doc in docs:
        cues = _cues(doc)
        for span in doc.layer("gold"):
            own = category(span.label, table)
            totals[own][span.label] += 1
            for cue in set(cues(span)):
                counts[own, cue][span.label] += 1
    triggers = {}
    for trigger, seen in counts.items():
        size = seen.total()
        if size >= LEAST:
            kind, hits = max(seen.items(), key=lambda item: (item[1], item[0]))
            triggers[trigger] = (hits + PRIOR) / (size + 2 * PRIOR), kind
    return Rules(triggers, {own: max(sorted(seen), key=seen.__getitem__) for own, seen in totals.items()})


def _cues(doc: Document) -> Callable[[Span], Iterator[str]]:
    words, lines = doc.words(), doc.sentence_tokens()
    small = [word.lower() for word in words]

    @cache
    def head(line: int) -> str:
        return header(words[slice(*lines[line].tolist())])

    def cues(span: Span) -> Iterator[str]:
        first = int(np.searchsorted(doc.tokens[:, 1], span.start, side="right"))
        end = int(np.searchsorted(doc.tokens[:, 0], span.end, side="left"))
        line = int(np.searchsorted(lines[:, 1], first, side="right"))
        yield f"header {head(line)}" if line < len(lines) else "header"
        yield "shape " + " ".join(map(shape, words[first:end]))
        yield from (f"in {word}" for word in small[first:end])
        yield from (f"before {word}" for word in small[max(first - WINDOW, 0) : first])
        yield from (f"after {word}" for word in small[end : end + WINDOW])

    return cues
