"""Results of an analysis: how much sources vote, how often they agree, and how good they and their aggregate seem.

It holds names of sources, labels and document ids, and numbers; never text of documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from chaffinch.text.markup import plain_html

Level: TypeAlias = Literal["spans", "tokens"]
ALL = "all"  # the label of the row on all entity labels together
NOTABLE = 0.1  # dependence from which the text report lists a pair; lower lists weaker pairs
SEVERAL = 10  # documents and pairs that the text report lists at most


@dataclass(frozen=True, slots=True)
class Measure:
    """Measures of one source on one label, for spans or for tokens; None where there is nothing to measure.

    Coverage of tokens is the share of all tokens; of spans, the share of those that any source proposes. Overlap and
    conflict are shares of the source's votes: another source votes there too; another one votes differently, which for
    a span means another label, an overlapping span, or "not an entity" for one of its tokens.
    """

    votes: int
    coverage: float | None = None
    overlap: float | None = None
    conflict: float | None = None
    precision: float | None = None  # as the aggregator estimates it
    recall: float | None = None
    true_precision: float | None = None  # by gold
    true_recall: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """Measures of one source on one label, on "all" of them, or on O (votes for "not an entity"; no spans)."""

    label: str
    tokens: Measure
    spans: Measure | None = None


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """Results of one source: the documents with its votes, its weight, and its measures label by label."""

    name: str
    documents: int
    weight: float | None  # 1 if it depends on no other source; None if it has no estimate
    rows: tuple[Row, ...]
    confusion: tuple[tuple[float, ...], ...] = ()  # row: the true label, O first; column: silent, O, the labels

    @property
    def whole(self) -> Row:
        """Return the row of measures on all labels together."""
        return next(row for row in self.rows if row.label == ALL)


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A document by its id: tokens with votes, tokens on which sources disagree, and spans in conflict."""

    id: str
    voted: int
    tokens: int
    spans: int


@dataclass(frozen=True, slots=True)
class Checked:
    """Strict scores of the aggregate against gold, with 95 % intervals if there are enough documents."""

    documents: int
    precision: float
    recall: float
    f1: float
    precision_interval: tuple[float, float] | None = None
    recall_interval: tuple[float, float] | None = None
    f1_interval: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Outlook:
    """Estimated quality of the aggregate.

    Precision is the mean probability of its spans, recall their share of all expected spans, both as the aggregator
    estimates them: it takes sources that are wrong together for right, and cannot see what no source votes on.
    Agreement does not depend on it: of the spans of single sources that others vote on, the share that a vote of the
    others finds as well. If there is gold, rely on the scores against it.
    """

    spans: int
    precision: float | None
    recall: float | None
    f1: float | None
    agreement: float | None
    checked: Checked | None = None


@dataclass(frozen=True, slots=True)
class Analysis:
    """All results of an analysis; `print` shows them as text, `to_json` returns plain data."""

    labels: tuple[str, ...]
    documents: int
    tokens: int
    voted: float  # share of tokens with any vote
    entity: float  # share of tokens that some source calls an entity
    disputed: float  # share of tokens with votes on whose label sources disagree
    contested: float  # share of the distinct spans proposed with which another source is in conflict
    without: int  # documents without any vote
    outlook: Outlook
    sources: tuple[SourceFacts, ...]
    dependent: tuple[str, ...]  # the sources that speak, in the order of `dependence`
    dependence: tuple[tuple[float, ...], ...]  # share of the row's votes that the column repeats beyond the labels
    disagreements: tuple[Disagreement, ...]

    def to_json(self) -> dict[str, Any]:
        """Return all results as plain JSON values."""
        return asdict(self)

    def pairs(self, least: float = NOTABLE) -> list[tuple[str, str, float]]:
        """Return (source, source, the larger of both dependences) of pairs at or above `least`, strongest first."""
        S = len(self.dependent)
        found = [
            (self.dependent[a], self.dependent[b], max(self.dependence[a][b], self.dependence[b][a]))
            for a in range(S)
            for b in range(a + 1, S)
        ]
        return sorted((pair for pair in found if pair[2] >= least), key=lambda pair: -pair[2])

    def text(self, *, level: Level = "spans") -> str:
        """Return the results as text: summary, sources by spans or tokens, dependent pairs, most disputed ids."""
        parts = ["\n".join(self._overall()), "\n".join(self._by_source(level))]
        pairs = self.pairs()
        if pairs:
            listed = [(first, second, f"{value:.2f}") for first, second, value in pairs[:SEVERAL]]
            parts.append("\n".join(columns(("depend on one another", "", "excess"), listed, left=2)))
        if self.disagreements:
            rows = [(doc.id, f"{doc.spans:,}", f"{doc.tokens:,}", f"{doc.voted:,}") for doc in self.disagreements]
            head = ("most disagreement in", "spans", "tokens", "voted tokens")
            parts.append("\n".join(columns(head, rows[:SEVERAL], left=1)))
        return "\n\n".join(parts)

    def __str__(self) -> str:
        """Return the analysis as text."""
        return self.text()

    def _repr_html_(self) -> str:
        """Return the text tables as HTML for a notebook, without text of a document."""
        return plain_html(self.text())

    def _overall(self) -> Iterator[str]:
        """Yield lines of text on all sources together: coverage, conflicts, estimated scores."""
        outlook = self.outlook
        yield f"documents {self.documents:,}, {self.without:,} of them without any vote; tokens {self.tokens:,}"
        yield (
            f"tokens voted on {percent(self.voted)}, called an entity {percent(self.entity)}; sources disagree on the "
            f"label of {percent(self.disputed)} of the tokens voted on, and on {percent(self.contested)} of the spans"
        )
        yield (
            f"result {outlook.spans:,} spans; estimated precision {cell(outlook.precision)}, "
            f"recall {cell(outlook.recall)}, F1 {cell(outlook.f1)}; agreement of sources {cell(outlook.agreement)}"
        )
        if outlook.spans and outlook.agreement is None:
            yield "no two sources vote on the same words: the estimates are prior assumptions, not evidence"
        if outlook.checked is not None:
            scores = outlook.checked
            yield (
                f"by gold of {scores.documents:,} documents: "
                f"precision {format_score(scores.precision, scores.precision_interval)}, "
                f"recall {format_score(scores.recall, scores.recall_interval)}, "
                f"F1 {format_score(scores.f1, scores.f1_interval)}"
            )

    def _by_source(self, level: Level) -> list[str]:
        """Return the lines of the text table: a row per source and label, by spans or tokens."""
        gold = self.outlook.checked is not None
        head = ["source", "label", level, "coverage", "overlap", "conflict", "precision", "recall"]
        head += ["true prec.", "true rec."] if gold else []
        rows = []
        for source in self.sources:
            alone = sum(row.label not in (ALL, "O") for row in source.rows) == 1
            shown = [row for row in source.rows if row.label != ALL or not alone]
            for place, row in enumerate(shown):
                measure = row.spans if level == "spans" else row.tokens
                if measure is not None:
                    name = source.name if not place else ""
                    rows.append([name, row.label, *cells(measure, gold=gold), cell(source.weight) if not place else ""])
        return columns([*head, "weight"], rows, left=2)


def cells(measure: Measure, *, gold: bool) -> list[str]:
    """Return a measure as text cells: votes, coverage, overlap, conflict, precision, recall; true ones if `gold`."""
    values = [measure.coverage, measure.overlap, measure.conflict, measure.precision, measure.recall]
    values += [measure.true_precision, measure.true_recall] if gold else []
    return [f"{measure.votes:,}", *map(cell, values)]


def cell(value: float | None) -> str:
    """Return a number as text with three decimals, four below 0.01; a dash for None.

    >>> cell(0.5), cell(0.00042), cell(None)
    ('0.500', '0.0004', '–')
    """
    if value is None:
        return "–"
    return f"{value:.4f}" if 0 < value < 0.01 else f"{value:.3f}"


def percent(value: float) -> str:
    """Return a share as text in per cent, with one decimal.

    >>> percent(0.125)
    '12.5 %'
    """
    return f"{100 * value:.1f} %"


def format_score(value: float, interval: tuple[float, float] | None) -> str:
    """Return a score as text, with its interval in brackets if there is one.

    >>> format_score(0.8, (0.7, 0.9))
    '0.800 (0.700–0.900)'
    """
    return f"{value:.3f}" if interval is None else f"{value:.3f} ({interval[0]:.3f}–{interval[1]:.3f})"


def columns(head: Sequence[str], rows: Sequence[Sequence[str]], *, left: int) -> list[str]:
    """Return the lines of a table; the first `left` columns are aligned left, the others right.

    >>> columns(("name", "votes"), [("a", "12")], left=1)
    ['name  votes', 'a        12']
    """
    widths = [max(len(line[place]) for line in (head, *rows)) for place in range(len(head))]
    return [
        "  ".join(
            f"{text:{'<' if place < left else '>'}{width}}"
            for place, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in (head, *rows)
    ]
