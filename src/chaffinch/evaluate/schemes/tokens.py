"""Token scores, and leakage: identifiers that a reader of the redacted text would still see.

A token has a label if a span of that label covers at least one of its characters; where spans overlap it may have
several. T tokens, of the gold document.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chaffinch.evaluate.counts import Item, MatchCounts, count_sets
from chaffinch.evaluate.pairing import Pair
from chaffinch.text import Document, Span


def count_tokens(pairs: Iterable[Pair]) -> MatchCounts:
    """Return counts of tokens under spans, by document and label; right if both sides give the same label.

    >>> note = Document.make("Ann Lee came")
    >>> count_tokens([Pair(note, (Span(0, 7, "NAME"),), (Span(0, 3, "NAME"),))]).values.tolist()
    [[[1, 0, 1]]]
    """
    return count_sets(
        (token_labels(pair.document, pair.gold), token_labels(pair.document, pair.predicted)) for pair in pairs
    )


def count_binary(pairs: Iterable[Pair]) -> MatchCounts:
    """Return counts of tokens in any span, by document; right if they are inside one on both sides."""
    return count_sets(
        (
            _drop_labels(token_labels(pair.document, pair.gold)),
            _drop_labels(token_labels(pair.document, pair.predicted)),
        )
        for pair in pairs
    )


def token_labels(doc: Document, spans: Sequence[Span]) -> set[Item]:
    """Return (label, token index) for every token that a span covers at least partly.

    >>> sorted(token_labels(Document.make("Ann Lee came"), [Span(2, 7, "NAME")]))
    [('NAME', 0), ('NAME', 1)]
    """
    if not spans:
        return set()
    ranges = doc.token_ranges(spans).tolist()
    return {(span.label, t) for span, (first, end) in zip(spans, ranges, strict=True) for t in range(first, end)}


def _drop_labels(items: set[Item]) -> set[Item]:
    """Return (label, token) items with empty labels."""
    return {("", t) for _, t in items}


@dataclass(frozen=True, slots=True)
class Leakage:
    """Identifiers left in the text if exactly the predicted spans are removed, whatever their labels.

    A token leaks if it has a letter or a digit, belongs to a gold span and to no predicted one. A document leaks
    if a token of it does. `share_interval` is exact (Clopper-Pearson) over documents. `rate` is leaked tokens per
    1,000 documents, its interval exact for a Poisson count (Garwood): it is too narrow where leaks come in clusters.
    Characters are those of gold spans that are not blank. `labels` maps a gold label to (leaked, all) tokens.
    """

    documents: int
    leaking: int
    share: float
    share_interval: tuple[float, float]
    tokens: int
    leaked: int
    recall: float
    rate: float
    rate_interval: tuple[float, float]
    characters: int
    leaked_characters: int
    labels: Mapping[str, tuple[int, int]]

    def __str__(self) -> str:
        """Return leaking documents and leaked tokens with their intervals, in two lines."""
        (low, high), (few, many) = self.share_interval, self.rate_interval
        return (
            f"leaking documents: {self.leaking} of {self.documents}, {self.share:.1%} ({low:.1%} to {high:.1%})\n"
            f"leaked tokens: {self.leaked} of {self.tokens}, "
            f"{self.rate:,.1f} per 1,000 documents ({few:,.1f} to {many:,.1f})"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return all figures as plain JSON values, intervals as lists."""
        return asdict(self) | {
            "share_interval": list(self.share_interval),
            "rate_interval": list(self.rate_interval),
            "labels": {label: {"leaked": a, "tokens": n} for label, (a, n) in self.labels.items()},
        }


def leakage(pairs: Iterable[Pair], *, level: float = 0.95) -> Leakage:
    """Return how many gold tokens and documents leak if exactly the predicted spans are removed, with intervals.

    >>> note = Document.make("Ann Lee came")
    >>> found = leakage([Pair(note, (Span(0, 7, "NAME"),), (Span(0, 3, "NAME"),))])
    >>> found.leaked, found.leaking, found.rate, found.leaked_characters
    (1, 1, 1000.0, 3)
    """
    everything: Counter[str] = Counter()
    leaks: Counter[str] = Counter()
    documents = leaking = tokens = leaked = characters = left = 0
    for pair in pairs:
        gold = {(label, t) for label, t in token_labels(pair.document, pair.gold) if _is_word(pair.document, t)}
        hidden = {t for _, t in token_labels(pair.document, pair.predicted)}
        missed = {t for _, t in gold} - hidden
        everything.update(label for label, _ in gold)
        leaks.update(label for label, t in gold if t in missed)
        documents, leaking = documents + 1, leaking + bool(missed)
        tokens, leaked = tokens + len({t for _, t in gold}), leaked + len(missed)
        inside, text = np.flatnonzero(_coverage(pair.document, pair.gold)), pair.document.text
        inside = inside[[not text[c].isspace() for c in inside]]
        characters += len(inside)
        left += int(np.count_nonzero(~_coverage(pair.document, pair.predicted)[inside]))
    per_document = poisson_interval(leaked, level=level)
    scale = 1000 / max(documents, 1)
    return Leakage(
        documents=documents,
        leaking=leaking,
        share=leaking / max(documents, 1),
        share_interval=binomial_interval(leaking, documents, level=level),
        tokens=tokens,
        leaked=leaked,
        recall=(tokens - leaked) / tokens if tokens else 0.0,
        rate=leaked * scale,
        rate_interval=(per_document[0] * scale, per_document[1] * scale),
        characters=characters,
        leaked_characters=left,
        labels={label: (leaks[label], everything[label]) for label in sorted(everything)},
    )


def _is_word(doc: Document, t: int) -> bool:
    """Tell whether token t has a letter or a digit."""
    start, end = doc.tokens[t].tolist()
    return any(map(str.isalnum, doc.text[start:end]))


def _coverage(doc: Document, spans: Iterable[Span]) -> NDArray[np.bool_]:
    """Return (characters,) whether a span covers each character."""
    inside = np.zeros(len(doc.text), bool)
    for span in spans:
        inside[span.start : span.end] = True
    return inside


def binomial_interval(successes: int, trials: int, *, level: float = 0.95) -> tuple[float, float]:
    """Return the exact (Clopper-Pearson) interval of a proportion; (0, 1) without trials.

    >>> [round(x, 4) for x in binomial_interval(0, 20)]
    [0.0, 0.1684]
    """
    from scipy.stats import beta

    tail = (1 - level) / 2
    low = beta.ppf(tail, successes, trials - successes + 1) if successes else 0.0
    high = beta.ppf(1 - tail, successes + 1, trials - successes) if successes < trials else 1.0
    return float(low), float(high)


def poisson_interval(events: int, *, level: float = 0.95) -> tuple[float, float]:
    """Return the exact (Garwood) interval of a Poisson mean, given the number of events observed.

    >>> [round(x, 3) for x in poisson_interval(0)]
    [0.0, 3.689]
    """
    from scipy.stats import chi2

    tail = (1 - level) / 2
    low = chi2.ppf(tail, 2 * events) / 2 if events else 0.0
    return float(low), float(chi2.ppf(1 - tail, 2 * events + 2) / 2)
