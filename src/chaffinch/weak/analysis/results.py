"""What is known of sources: how much they say, how often they agree, and how good they and their result seem.

It holds names of sources, labels and documents, and numbers; never what documents say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

Level: TypeAlias = Literal["spans", "tokens"]
ALL = "all"  # the label of the row on all entity labels together
NOTABLE = 0.1  # dependence from which a pair is listed in text
SEVERAL = 10  # documents and pairs listed in text


@dataclass(frozen=True, slots=True)
class Measure:
    """One source on one label, at the level of spans or of tokens; None where there is nothing to measure.

    Coverage of tokens is the share of all tokens; of spans, the share of those that any source proposes. Overlap and
    conflict are shares of the source's own votes: another source votes there too; another one votes otherwise, which of
    a span is another label, another place that touches it, or "not an entity" for one of its tokens.
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
    """One source on one label, on "all" of them, or on O, its votes for "not an entity", which have no spans."""

    label: str
    tokens: Measure
    spans: Measure | None = None


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """One source: in how many documents it speaks, how much it counts, and its measures label by label."""

    name: str
    documents: int
    weight: float | None  # 1 if it depends on no other source; None if nothing was learnt of it
    rows: tuple[Row, ...]
    confusion: tuple[tuple[float, ...], ...] = ()  # row: the true label, O first; column: silent, O, the labels

    @property
    def whole(self) -> Row:
        """The row on all labels together."""
        return next(row for row in self.rows if row.label == ALL)


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A document by its id: tokens with votes, those of them on which sources disagree, and spans in conflict."""

    id: str
    voted: int
    tokens: int
    spans: int


@dataclass(frozen=True, slots=True)
class Checked:
    """Strict scores of the aggregate against gold, with 95 % intervals where there are documents enough."""

    documents: int
    precision: float
    recall: float
    f1: float
    precision_interval: tuple[float, float] | None = None
    recall_interval: tuple[float, float] | None = None
    f1_interval: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Outlook:
    """How good the aggregate seems to be.

    Precision is the mean probability of its spans, recall their share of all spans expected, both in the eyes of the
    aggregator, which takes sources that are wrong together for right, and cannot see what none of them speaks of.
    Agreement owes nothing to it: of the spans of single sources that others speak of, the share that a vote of the
    others has as well. Gold, if there is any, is what counts.
    """

    spans: int
    precision: float | None
    recall: float | None
    f1: float | None
    agreement: float | None
    checked: Checked | None = None


@dataclass(frozen=True, slots=True)
class Analysis:
    """All of it; `print` shows it as text, `to_json` gives plain data."""

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
        """All of it as numbers, texts, lists and tables."""
        return asdict(self)

    def pairs(self, least: float = NOTABLE) -> list[tuple[str, str, float]]:
        """Pairs of sources that depend on one another, the strongest first."""
        S = len(self.dependent)
        found = [
            (self.dependent[a], self.dependent[b], max(self.dependence[a][b], self.dependence[b][a]))
            for a in range(S)
            for b in range(a + 1, S)
        ]
        return sorted((own for own in found if own[2] >= least), key=lambda own: -own[2])

    def text(self, *, level: Level = "spans") -> str:
        """The same for reading, with the table of sources at that level."""
        parts = ["\n".join(self._overall()), "\n".join(self._by_source(level))]
        pairs = self.pairs()
        if pairs:
            rows = [(one, two, f"{value:.2f}") for one, two, value in pairs[:SEVERAL]]
            parts.append("\n".join(columns(("depend on one another", "", "excess"), rows, left=2)))
        if self.disagreements:
            told = [(own.id, f"{own.spans:,}", f"{own.tokens:,}", f"{own.voted:,}") for own in self.disagreements]
            head = ("most disagreement in", "spans", "tokens", "voted tokens")
            parts.append("\n".join(columns(head, told[:SEVERAL], left=1)))
        return "\n\n".join(parts)

    def __str__(self) -> str:
        return self.text()

    def _overall(self) -> Iterator[str]:
        seen = self.outlook
        yield f"documents {self.documents:,}, {self.without:,} of them without any vote; tokens {self.tokens:,}"
        yield (
            f"tokens voted on {percent(self.voted)}, called an entity {percent(self.entity)}; sources disagree on the "
            f"label of {percent(self.disputed)} of the tokens voted on, and on {percent(self.contested)} of the spans"
        )
        yield (
            f"result {seen.spans:,} spans; estimated precision {cell(seen.precision)}, recall {cell(seen.recall)}, "
            f"F1 {cell(seen.f1)}; agreement of sources {cell(seen.agreement)}"
        )
        if seen.spans and seen.agreement is None:
            yield "no two sources speak of the same words: estimates are what is believed of any source, not evidence"
        if seen.checked is not None:
            own = seen.checked
            yield (
                f"by gold of {own.documents:,} documents: precision {scored(own.precision, own.precision_interval)}, "
                f"recall {scored(own.recall, own.recall_interval)}, F1 {scored(own.f1, own.f1_interval)}"
            )

    def _by_source(self, level: Level) -> list[str]:
        gold = self.outlook.checked is not None
        head = ["source", "label", level, "coverage", "overlap", "conflict", "precision", "recall"]
        head += ["true prec.", "true rec."] if gold else []
        rows = []
        for source in self.sources:
            alone = sum(row.label not in (ALL, "O") for row in source.rows) == 1
            shown = [row for row in source.rows if row.label != ALL or not alone]
            for place, row in enumerate(shown):
                own = row.spans if level == "spans" else row.tokens
                if own is not None:
                    name = source.name if not place else ""
                    rows.append([name, row.label, *cells(own, gold=gold), cell(source.weight) if not place else ""])
        return columns([*head, "weight"], rows, left=2)


def cells(own: Measure, *, gold: bool) -> list[str]:
    """The numbers of a measure for reading."""
    values = [own.coverage, own.overlap, own.conflict, own.precision, own.recall]
    values += [own.true_precision, own.true_recall] if gold else []
    return [f"{own.votes:,}", *map(cell, values)]


def cell(value: float | None) -> str:
    """A number for reading; a dash where there is none.

    >>> cell(0.5), cell(0.00042), cell(None)
    ('0.500', '0.0004', '–')
    """
    if value is None:
        return "–"
    return f"{value:.4f}" if 0 < value < 0.01 else f"{value:.3f}"


def percent(value: float) -> str:
    """A share for reading.

    >>> percent(0.125)
    '12.5 %'
    """
    return f"{100 * value:.1f} %"


def scored(value: float, interval: tuple[float, float] | None) -> str:
    """A score with its interval.

    >>> scored(0.8, (0.7, 0.9))
    '0.800 (0.700–0.900)'
    """
    return f"{value:.3f}" if interval is None else f"{value:.3f} ({interval[0]:.3f}–{interval[1]:.3f})"


def columns(head: Sequence[str], rows: Sequence[Sequence[str]], *, left: int) -> list[str]:
    """Lines of a table; so many columns are set left, the others right.

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
