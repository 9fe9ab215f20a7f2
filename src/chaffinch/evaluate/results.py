"""Results of an evaluation: scores, tables of scores, reports and comparisons, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from chaffinch.evaluate.bootstrap import Difference, Interval, Intervals, Ranges
from chaffinch.evaluate.counts import Floats, Ints, MatchCounts, harmonic_mean, rates
from chaffinch.evaluate.schemes.tokens import Leakage
from chaffinch.text.markup import plain_html

_MAIN = {"i2b2": "i2b2_strict", "meddocan": "meddocan_ner"}  # the main table of a scheme with several


@dataclass(frozen=True, slots=True)
class Score:
    """Precision, recall and F1, the counts they come from, and optional intervals.

    Precision with nothing predicted and recall with nothing to find are 0.0, as in seqeval (zero_division=0).
    A macro score carries the counts of all labels together.
    """

    precision: float
    recall: float
    f1: float
    tp: int
    fp: int
    fn: int
    gold: int
    predicted: int
    precision_interval: Interval | None = None
    recall_interval: Interval | None = None
    f1_interval: Interval | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the score as plain JSON values; an interval is a list of two numbers, or null."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}


@dataclass(frozen=True, slots=True)
class Table:
    """The scores of one scheme. `labels` is empty where the scheme does not look at labels.

    micro: over all counts together. macro: the plain mean of the labels' precision, recall and F1 (so macro F1 is
    the mean of F1s); in the i2b2 tables, which average over documents, F1 of the mean precision and mean recall.
    """

    name: str
    micro: Score
    macro: Score
    labels: Mapping[str, Score]
    facts: Mapping[str, float] = field(default_factory=dict)

    def rows(self) -> Iterator[tuple[str, Score]]:
        """Yield every line of the table: labels, then micro, then macro if there are labels."""
        yield from self.labels.items()
        yield "micro", self.micro
        if self.labels:
            yield "macro", self.macro

    def as_dict(self) -> dict[str, Any]:
        """Return the table as plain JSON values: micro, macro, labels, and facts if there are any."""
        facts = {"facts": dict(self.facts)} if self.facts else {}
        labels = {label: score.as_dict() for label, score in self.labels.items()}
        return {"micro": self.micro.as_dict(), "macro": self.macro.as_dict(), "labels": labels} | facts

    def __str__(self) -> str:
        """Return the table as aligned text: a row per label, then micro and macro, then facts."""
        width = max([len(self.name), 5, *map(len, self.labels)])
        cell = 21 if self.micro.f1_interval else 9
        lines = [f"{self.name:{width}}  {'precision':>{cell}}  {'recall':>{cell}}  {'F1':>{cell}}    gold  predicted"]
        for label, score in self.rows():
            if label == "micro":
                lines.append("-" * len(lines[0]))
            cells = "  ".join(f"{text:>{cell}}" for text in score_cells(score))
            lines.append(f"{label:{width}}  {cells}  {score.gold:6}  {score.predicted:9}")
        lines += [f"{name}: {value:.4g}" for name, value in self.facts.items()]
        return "\n".join(lines)


_ONE_DOCUMENT = "one document cannot be resampled"
_DISJOINT = "labels: gold and predictions share no label, so nothing is right; map them (--map, or `labels` in Python)"


@dataclass(frozen=True, slots=True)
class Report:
    """Everything scored in one call; `print` shows it as text.

    `missing` gold documents had no prediction (the official schemes leave them out, all others count them as
    predicted empty); `extra` predicted ones had no gold and are not scored. `draws` is 0 without intervals.
    `leakage` comes with the scheme "binary". `untested`: intervals were asked for, and one document has none.
    `disjoint`: gold and predictions share no label, where labels count. `layer` and `predicted_layer` were scored.
    """

    tables: tuple[Table, ...]
    documents: int
    missing: int = 0
    extra: int = 0
    draws: int = 0
    level: float = 0.95
    seed: int = 0
    leakage: Leakage | None = None
    untested: bool = False
    disjoint: bool = False
    layer: str | None = None
    predicted_layer: str | None = None

    @property
    def micro(self) -> Score:
        """Return the micro-averaged score of the first scheme's table."""
        return self.tables[0].micro

    @property
    def macro(self) -> Score:
        """Return the macro-averaged score of the first scheme's table."""
        return self.tables[0].macro

    @property
    def labels(self) -> Mapping[str, Score]:
        """Return {label: score} of the first scheme's table."""
        return self.tables[0].labels

    def _repr_html_(self) -> str:
        """Return the text of the report as HTML for a notebook, without text of a document."""
        return plain_html(str(self))

    def __getitem__(self, name: str) -> Table:
        """Return the table of a scheme by its name; raise KeyError if the report has none."""
        for table in self.tables:
            if table.name == name:
                return table
        raise KeyError(name)

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values: each table under its name, and facts about the run beside them.

        An official scheme of several tables has its main one under the scheme's name as well ("i2b2", "meddocan").
        """
        drawn = {"draws": self.draws, "level": self.level, "seed": self.seed} if self.draws else None
        facts: dict[str, Any] = {
            "documents": self.documents,
            "missing": self.missing,
            "extra": self.extra,
            "intervals": drawn,
        }
        facts |= {"layer": self.layer, "predicted_layer": self.predicted_layer, "disjoint_labels": self.disjoint}
        leaks = {} if self.leakage is None else {"leakage": self.leakage.as_dict()}
        tables = {table.name: table.as_dict() for table in self.tables}
        tables |= {scheme: tables[main] for scheme, main in _MAIN.items() if main in tables}
        return tables | facts | leaks

    def __str__(self) -> str:
        """Return all tables, the leakage, the numbers of documents and how intervals were drawn, as text."""
        facts = f"documents: {self.documents}, missing documents: {self.missing}, extra documents: {self.extra}"
        drawn = (
            [f"intervals: {self.level:.0%}, {self.draws:,} draws of documents, seed {self.seed}"] if self.draws else []
        )
        drawn += [f"intervals: none, because {_ONE_DOCUMENT}"] if self.untested else []
        drawn += [_DISJOINT] if self.disjoint else []
        leaks = [] if self.leakage is None else [str(self.leakage)]
        return "\n\n".join([*map(str, self.tables), "\n".join([*leaks, facts, *drawn])])


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two systems on the same documents: `difference` is micro F1 of the first minus that of the second.

    `only_first` and `only_second` are the gold spans that just one of them has exactly right, place and label,
    whatever the scheme; `both` and `neither` are the others.
    """

    scheme: str
    first: Table
    second: Table
    difference: Difference
    documents: int
    only_first: int
    only_second: int
    both: int
    neither: int

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison as plain JSON values: counts, both tables, difference, its interval and p."""
        plain = {name: getattr(self, name) for name in ("documents", "only_first", "only_second", "both", "neither")}
        interval = self.difference.interval
        return plain | {
            "scheme": self.scheme,
            "first": self.first.as_dict(),
            "second": self.second.as_dict(),
            "difference": self.difference.value,
            "difference_interval": None if interval is None else list(interval),
            "p": self.difference.p,
        }

    def __str__(self) -> str:
        """Return both scores, the difference with its interval and p, and the counts, as lines of text."""
        lines = [f"{'':6}  {'precision':>21}  {'recall':>21}  {'F1 (micro)':>21}"]
        for name, table in (("first", self.first), ("second", self.second)):
            lines.append(f"{name:6}  " + "  ".join(f"{text:>21}" for text in score_cells(table.micro)))
        span = self.difference.interval
        between = "" if span is None else f" ({span[0]:+.3f} to {span[1]:+.3f})"
        spans = f"{self.only_first} by the first only, {self.only_second} by the second only"
        value, p = self.difference.value, self.difference.p
        tested = f"not tested, because {_ONE_DOCUMENT}" if p is None else f"p = {p:.3g}"
        return "\n".join(
            [
                *lines,
                f"{self.scheme} F1, first less second: {value:+.4f}{between}, {tested}",
                f"gold spans exactly right: {self.both} by both, {spans}, {self.neither} by neither",
                f"documents: {self.documents}",
            ]
        )


def score_cells(score: Score) -> tuple[str, str, str]:
    """Return precision, recall and F1 as text cells, each with its interval if it has one.

    >>> score_cells(Score(0.5, 1.0, 2 / 3, 1, 1, 0, 1, 2, f1_interval=(0.25, 1.0)))
    ('0.500', '1.000', '0.667 (0.250–1.000)')
    """

    def cell(value: float, interval: Interval | None) -> str:
        """Return a value with three decimals, and its interval in brackets."""
        return f"{value:.3f}" + ("" if interval is None else f" ({interval[0]:.3f}–{interval[1]:.3f})")

    return (
        cell(score.precision, score.precision_interval),
        cell(score.recall, score.recall_interval),
        cell(score.f1, score.f1_interval),
    )


def tabulate(name: str, counts: MatchCounts, drawn: Intervals | None = None) -> Table:
    """Return the table of scores by label, micro and macro, from counts; intervals too if `drawn` has them.

    >>> from chaffinch.evaluate.counts import count_sets
    >>> tabulate("strict", count_sets([({("A", 0), ("B", 1)}, {("A", 0)})])).macro.f1
    0.5
    """
    totals = counts.values.sum(axis=0)  # (L, 3)
    each, everything, sizes = rates(totals), totals.sum(axis=0), counts.sizes.sum(axis=0)
    micro = _score(rates(everything), everything, sizes, None if drawn is None else drawn.micro)
    macro = _score(_macro(counts, each), everything, sizes, None if drawn is None else drawn.macro)
    labels = {
        label: _score(each[i], totals[i], counts.sizes[i], None if drawn is None else drawn.labels[i])
        for i, label in enumerate(counts.labels)
        if label
    }
    return Table(name, micro, macro, labels, counts.facts)


def _macro(counts: MatchCounts, each: Floats) -> Floats:
    """Return (3,) macro precision, recall, F1: means over labels (`each`, (L, 3)), or over documents as in i2b2."""
    if counts.macro == "documents":
        each = rates(counts.values.sum(axis=1))
    mean = np.asarray(each.mean(axis=0)) if len(each) else np.zeros(3)
    if counts.macro == "documents":
        mean[2] = harmonic_mean(mean[0:1], mean[1:2])[0]
    return mean


def _score(rate: Floats, total: Ints, size: Ints, drawn: Ranges | None) -> Score:
    """Return a Score of rates (3,), of tp, fp and fn, of numbers of gold and predicted, and of intervals or None."""
    precision, recall, f1 = rate.tolist()
    tp, fp, fn = total.tolist()
    gold, predicted = size.tolist()
    return Score(precision, recall, f1, tp, fp, fn, gold, predicted, *(drawn or (None, None, None)))
