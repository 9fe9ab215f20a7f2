"""Count words and spans note by note; sum them; draw writers anew for intervals.

Every figure is a ratio of sums, so a note leaves nothing but counts. A word is a token with a letter or a digit, and is
an identifier or flagged if a span covers one of its characters. Direct identifiers are names of patients and relatives,
contacts, streets and all numbers (`DIRECT`). An interval draws as many writers as there are, with replacement: with
seven or nine writers it is rough, and says how much figures move from writer to writer. W writers, D draws.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.deid.scores import written
from benchmarks.deid.writers.classes import CLASSES, classes_of
from benchmarks.hmmdp.scores import covered
from chaffinch import Document, Span
from chaffinch.deid.kinds import KINDS, kind_of

DRAWS: Final = 2000
PROMISE_DRAWS: Final = 1000  # sets of writers in which a promised recall should hold
FEWEST: Final = 5  # writers; drawn from fewer, an interval would look narrower than it is
DIRECT: Final = frozenset(
    name for name, kind in KINDS.items() if name in ("PATIENT", "STREET") or kind.category in ("CONTACT", "ID")
)
# The guideline marks relatives as PATIENT; a detector may call them so.
_SAME: Final = {"FAMILY": "PATIENT"}

Sums: TypeAlias = Mapping[str, NDArray[np.float64]]  # (D,) of every count
Figure: TypeAlias = Callable[[Sums], NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class NoteCounts:
    """The counts of one note, and the groups it belongs to; no word of it."""

    writer: str
    country: str
    style: str
    counts: dict[str, int]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its 95 % interval over writers, if there are enough of them."""

    value: float
    low: float | None = None
    high: float | None = None

    @property
    def interval(self) -> str:
        """The interval as a table shows it."""
        return "-" if self.low is None else f"{self.low:.3f}–{self.high:.3f}"


def count_note(doc: Document, spans: Sequence[Span]) -> NoteCounts:
    """Return the counts of a note whose gold spans are in the layer "gold", for the spans of a system.

    >>> groups = {"writer": "w01", "country": "Kenya", "style": "prose"}
    >>> note = Document.make("Ann Lee came.", meta=groups, layers={"gold": [Span(0, 7, "PATIENT")]})
    >>> counts = count_note(note, [Span(4, 12, "DATE")]).counts
    >>> counts["gold"], counts["hits"], counts["flagged"], counts["leaking direct"]
    (2, 1, 2, 1)
    """
    gold_spans, is_word = doc.layer("gold"), written(doc)
    gold, flagged = is_word & covered(doc, gold_spans), is_word & covered(doc, spans)
    counts: Counter[str] = Counter(notes=1, chars=len(doc.text))
    counts["words"], counts["gold"], counts["flagged"] = int(is_word.sum()), int(gold.sum()), int(flagged.sum())
    counts["hits"] = int((gold & flagged).sum())
    counts["leaking"] = int((gold & ~flagged).any())
    groups = {
        "hipaa": [span for span in gold_spans if kind_of(span.label).hipaa],
        "direct": [span for span in gold_spans if span.label in DIRECT],
    }
    for label in sorted({span.label for span in gold_spans}):
        groups[f"type {label}"] = [span for span in gold_spans if span.label == label]
    for name, members in groups.items():
        inside = is_word & covered(doc, members)
        counts[name], counts[f"{name} hits"] = int(inside.sum()), int((inside & flagged).sum())
        if name == "direct":
            counts["leaking direct"] = int((inside & ~flagged).any())
    kinds = np.array(classes_of(doc), dtype=object)
    for kind in CLASSES:
        others = is_word & ~gold & (kinds == kind)
        counts[f"class {kind}"], counts[f"class {kind} flagged"] = int(others.sum()), int((others & flagged).sum())
    counts.update(_count_spans(gold_spans, spans))
    return NoteCounts(doc.meta["writer"], doc.meta["country"], doc.meta["style"], dict(counts))


def _count_spans(gold: Sequence[Span], spans: Sequence[Span]) -> dict[str, int]:
    """Return how many spans there are on both sides, how many have equal edges, and how many of these equal types."""
    right = {(span.start, span.end): _type_of(span) for span in gold}
    marked = {(span.start, span.end): _type_of(span) for span in spans}
    equal = right.keys() & marked.keys()
    typed = sum(right[edges] == marked[edges] for edges in equal)
    return {"spans": len(right), "spans marked": len(marked), "span hits": len(equal), "typed hits": typed}


def _type_of(span: Span) -> str:
    name = kind_of(span.label).name
    return _SAME.get(name, name)


def _share(top: NDArray[np.float64], bottom: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return quotients; where there is nothing to divide by, there is no figure (NaN)."""
    shares = np.full(len(bottom), np.nan)
    np.divide(top, bottom, out=shares, where=bottom > 0)
    return shares


def _ratio(top: str, bottom: str, *, times: float = 1.0) -> Figure:
    return lambda sums: times * _share(sums[top], sums[bottom])


def _span_f1(hits: str) -> Figure:
    return lambda sums: 2 * _share(sums[hits], sums["spans"] + sums["spans marked"])


def recall_of(group: str) -> Figure:
    """Return the recall of a group of identifier words ("hipaa", "direct", "type PATIENT")."""
    return _ratio(f"{group} hits", group)


def rate_of_class(kind: str) -> Figure:
    """Return how many in 1,000 words of a clinical class are flagged that identify nobody."""
    return _ratio(f"class {kind} flagged", f"class {kind}", times=1000)


FIGURES: Final[Mapping[str, Figure]] = {
    "R": _ratio("hits", "gold"),
    "P": _ratio("hits", "flagged"),
    "F1": lambda sums: 2 * _share(sums["hits"], sums["gold"] + sums["flagged"]),
    "HIPAA R": recall_of("hipaa"),
    "direct R": recall_of("direct"),
    "leaking notes": _ratio("leaking", "notes"),
    "leaking direct": _ratio("leaking direct", "notes"),
    "false per 1,000": lambda sums: 1000 * _share(sums["flagged"] - sums["hits"], sums["words"] - sums["gold"]),
    "span F1": _span_f1("span hits"),
    "strict F1": _span_f1("typed hits"),
}


def estimate(notes: Sequence[NoteCounts], figure: Figure, seed: int = 0) -> Estimate:
    """Return a figure over notes, with the middle 95 % of its values when writers are drawn anew.

    >>> notes = [NoteCounts(name, "", "", {"gold": 2, "hits": 1}) for name in "abcdef"]
    >>> estimate(notes, FIGURES["R"])
    Estimate(value=0.5, low=0.5, high=0.5)
    """
    names, table = _table_by_writer(notes)
    value = float(np.nan_to_num(figure(_sums_of(names, table.sum(axis=0)[None])))[0])
    if len(table) < FEWEST:
        return Estimate(value)
    drawn = figure(_sums_of(names, _draw_writers(table, DRAWS, seed)))
    known = drawn[~np.isnan(drawn)]
    if not len(known):
        return Estimate(value)
    low, high = np.quantile(known, [0.025, 0.975]).tolist()
    return Estimate(value, low, high)


def share_of_draws(notes: Sequence[NoteCounts], figure: Figure, least: float, seed: int = 0) -> float:
    """Return in which share of 1,000 drawn sets of writers a figure is at least `least`.

    >>> notes = [NoteCounts(name, "", "", {"gold": 2, "hits": 1}) for name in "abcdef"]
    >>> share_of_draws(notes, FIGURES["R"], 0.5), share_of_draws(notes, FIGURES["R"], 0.6)
    (1.0, 0.0)
    """
    names, table = _table_by_writer(notes)
    return float((figure(_sums_of(names, _draw_writers(table, PROMISE_DRAWS, seed))) >= least).mean())


def _table_by_writer(notes: Sequence[NoteCounts]) -> tuple[list[str], NDArray[np.float64]]:
    """Return the names of counts, and (W, counts) their sums by writer."""
    names = sorted({name for note in notes for name in note.counts})
    writers = {writer: row for row, writer in enumerate(sorted({note.writer for note in notes}))}
    table = np.zeros((len(writers), len(names)))
    for note in notes:
        table[writers[note.writer]] += [note.counts.get(name, 0) for name in names]
    return names, table


def _draw_writers(table: NDArray[np.float64], draws: int, seed: int) -> NDArray[np.float64]:
    """Return (D, counts) sums over as many writers as there are, drawn with replacement."""
    chosen = np.random.default_rng(seed).integers(len(table), size=(draws, len(table)))
    return np.stack([(chosen == row).sum(axis=1) for row in range(len(table))], axis=1) @ table  # (D, W) times (W, …)


def _sums_of(names: Sequence[str], table: NDArray[np.float64]) -> Sums:
    """Return the columns of a table by name; a count that no note has is zero."""
    return defaultdict(lambda: np.zeros(len(table)), zip(names, table.T, strict=True))


def total(notes: Sequence[NoteCounts], name: str) -> int:
    """Return one count over all notes."""
    return sum(note.counts.get(name, 0) for note in notes)
