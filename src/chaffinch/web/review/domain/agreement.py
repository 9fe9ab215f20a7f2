"""How far two readers agree: Cohen's kappa over tokens, and the F1 of their spans, for each pair and category.

T tokens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from chaffinch.text import Document
from chaffinch.text.identifiers import kind_of
from chaffinch.web.review.domain.marks import Mark

OUTSIDE = "O"


@dataclass(frozen=True, slots=True)
class SpanAgreement:
    """Spans of two readers in one category: how many each has, and how many both have (same start, end and type)."""

    first: int = 0
    second: int = 0
    both: int = 0

    @property
    def f1(self) -> float | None:
        """Return the F1 of one reader against the other, the same in both directions; None without any span."""
        total = self.first + self.second
        return None if total == 0 else 2 * self.both / total

    def __add__(self, other: SpanAgreement) -> SpanAgreement:
        """Return the sums of all counts."""
        return SpanAgreement(self.first + other.first, self.second + other.second, self.both + other.both)


@dataclass(frozen=True, slots=True)
class Agreement:
    """The agreement of a pair of readers: notes, token pairs by category, and spans by category."""

    notes: int = 0
    tokens: Counter[tuple[str, str]] = field(default_factory=Counter)
    spans: dict[str, SpanAgreement] = field(default_factory=dict)

    def __add__(self, other: Agreement) -> Agreement:
        """Return the agreement on both sets of notes: the sums of all counts."""
        names = {**self.spans, **other.spans}
        nothing = SpanAgreement()
        spans = {name: self.spans.get(name, nothing) + other.spans.get(name, nothing) for name in names}
        return Agreement(self.notes + other.notes, self.tokens + other.tokens, spans)

    @property
    def total(self) -> SpanAgreement:
        """Return the span agreement summed over all categories."""
        return sum(self.spans.values(), SpanAgreement())

    def kappa(self, category: str | None = None) -> float | None:
        """Return Cohen's kappa over tokens, of all categories or of one against the rest; None if it is undefined."""
        pairs: Counter[tuple[str, str]] = Counter()
        for (a, b), number in self.tokens.items():
            pairs[(a, b) if category is None else (str(a == category), str(b == category))] += number
        return cohens_kappa(pairs)


def cohens_kappa(pairs: Counter[tuple[str, str]]) -> float | None:
    """Return Cohen's kappa of counted pairs of labels; None if there is none, or chance alone would agree fully.

    >>> cohens_kappa(Counter({("a", "a"): 20, ("a", "b"): 5, ("b", "a"): 10, ("b", "b"): 15}))
    0.4
    """
    total = pairs.total()
    if total == 0:
        return None
    first, second = Counter[str](), Counter[str]()
    for (a, b), number in pairs.items():
        first[a] += number
        second[b] += number
    observed = sum(number for (a, b), number in pairs.items() if a == b) / total
    chance = sum(first[name] * second[name] for name in first) / total**2
    return None if chance >= 1 else round((observed - chance) / (1 - chance), 12)


def compare_readers(doc: Document, first: Sequence[Mark], second: Sequence[Mark]) -> Agreement:
    """Return the agreement of two readers about one note: token labels, and equal spans by category."""
    pairs = Counter(zip(_token_labels(doc, first), _token_labels(doc, second), strict=True))
    names = {kind_of(mark.label).category for mark in (*first, *second)}
    spans = {}
    for name in sorted(names):
        a, b = (
            {mark.place for mark in marks if kind_of(mark.label).category == name} for marks in (first, second)
        )  # fmt: skip
        spans[name] = SpanAgreement(len(a), len(b), len(a & b))
    return Agreement(1, pairs, spans)


def _token_labels(doc: Document, marks: Sequence[Mark]) -> Iterable[str]:
    """Return the category of each token, (T,): that of the mark that touches it, or O."""
    labels = [OUTSIDE] * len(doc.tokens)
    for mark, (start, end) in zip(marks, doc.token_ranges([m.span for m in marks]).tolist(), strict=True):
        labels[start:end] = [kind_of(mark.label).category] * (end - start)
    return labels
