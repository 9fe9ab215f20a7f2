"""What all parts of the weak-supervision benchmark share: rows, bars, seeds, differences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.hmmdp.scores import change
from benchmarks.tagger.benchmark import Options
from benchmarks.weak import rows
from benchmarks.weak.data import Corpus, Sample, consensus
from benchmarks.weak.runner import Runner
from benchmarks.weak.systems import SOURCES, System
from benchmarks.weak.worker import Result
from chaffinch import Document
from chaffinch.evaluate.results import Score

MINUTES = 60.0  # CPU minutes that a run of the published system may take, unless told otherwise
RULES = ("Union", "TokenVote", "SpanVote", "LongestSpan")
RANDOM = ("conditional", "students", "stopped", "loops", "consensual", "gold", "supervised")
SHORT = {"NCBI-Disease": "ncbi", "BC5CDR": "bc5cdr", "CoNLL": "conll", "MIT-Restaurants": "restaurants"}


@dataclass(frozen=True, slots=True)
class Measured:
    """A system on a sample: a score and a result for each seed; documents and errors of the seed in the middle."""

    scores: list[Score]
    results: list[Result]
    docs: list[Document]
    errors: list[float]

    @property
    def f1(self) -> float:
        """The mean of F1."""
        return rows.mean_f1(self.scores)

    @property
    def seconds(self) -> float:
        """CPU seconds to learn and to label, the mean over seeds."""
        return fmean(one.costs.get("fit CPU s", 0.0) + one.costs.get("apply CPU s", 0.0) for one in self.results)


class Base:
    """Runs systems and gathers rows and bars."""

    def __init__(self, runner: Runner, options: Options) -> None:
        self.split: Any = "dev" if options.split == "dev" else "test"
        self.runner, self.seeds, self.part = runner, options.seeds, ""
        self.folder: Path | None = getattr(options, "corpus", None)  # a corpus of the user's
        self.full: bool = getattr(options, "full", False)  # published epochs and loops, whatever they cost
        self.minutes: float = getattr(options, "minutes", None) or MINUTES
        self.rows: list[dict[str, Any]] = []
        self.bars: list[dict[str, Any]] = []

    def sample(self, corpus: Corpus, **more: Any) -> Sample:
        """A sample of the split at hand."""
        return Sample(corpus, self.split, **more)

    def add(self, row: Mapping[str, Any], sample: Sample | None = None) -> None:
        """Adds a row to the part at hand."""
        where = {} if sample is None else {"corpus": sample.corpus, "sources": sample.sources}
        self.rows.append({"part": self.part, **where, **row})

    def measure(
        self, name: str, system: System, sample: Sample, *, way: str = SOURCES, published: str = "",
        seeds: int | None = None,
    ) -> Measured | None:  # fmt: skip
        """A system on a sample, with as many seeds as it needs, as a row; None, and a row that says why, if it cannot.

        `published` is the name of the same system in the publication; `seeds` are at most so many.
        """
        reason = self.runner.absent(system, sample)
        if reason:
            self.add({"system": name, "absent": reason}, sample)
            return None
        seeded = [replace(system, seed=seed) for seed in range((seeds or self.seeds) if _random(system) else 1)]
        found = [self.runner.labelled(one, sample, way) for one in seeded]
        scores = [rows.score(one.docs) for one in found]
        centre = found[rows.middle(scores)]
        measured = Measured(scores, [one.result for one in found], centre.docs, centre.errors)
        row = {**rows.scored(name, scores), **rows.costing([one.costs for one in measured.results])}
        if (published, sample.corpus) in rows.PUBLISHED:
            row["published"] = rows.PUBLISHED[published, sample.corpus]
        if centre.errors:
            tokens = sum(len(doc.tokens) for doc in centre.docs)
            row["Brier"] = round(sum(centre.errors) / max(tokens, 1), 5)
        self.add(row, sample)
        return measured

    def have(self, sample: Sample, name: str = "corpus") -> bool:
        """Whether the files of a sample are there; if not, a row says so."""
        reason = self.runner.absent(None, sample)
        if reason:
            self.add({"system": name, "absent": reason}, sample)
        return not reason

    def embedded(self, sample: Sample) -> bool:
        """Makes the embeddings of a sample's documents, as a row; whether that can be done."""
        system = System("embed")
        reason = self.runner.absent(system, sample)
        row = {"absent": reason} if reason else rows.costing([self.runner.result(system, sample).costs])
        self.add({"system": "embeddings", **row}, sample)
        return not reason

    def consensus(self, sample: Sample) -> None:
        """A row of the best that any choice among the sources' spans could do."""
        docs = consensus(self.runner.documents(sample).test, "found")
        row = rows.scored("best consensus", [rows.score(docs)])
        figure = rows.PUBLISHED.get(("best consensus", sample.corpus))
        self.add(row if figure is None else {**row, "published": figure}, sample)

    def best_rule(self, sample: Sample) -> str:
        """The rule that does best on valid, whatever the split; Union has no say, for its spans overlap."""
        held = replace(sample, split="dev")
        reached = {
            name: rows.score(self.runner.labelled(System("rule", {"rule": name}), held).docs).f1 for name in RULES[1:]
        }
        return max(reached, key=reached.__getitem__)

    def less(self, name: str, second: Measured | None, first: Measured | None, sample: Sample) -> None:
        """A row of the second's F1 less the first's, documents drawn anew for both together; and of squared errors."""
        if first is None or second is None:
            return
        self.add(rows.difference(name, change(first.docs, first.docs, second.docs)), sample)
        if first.errors and second.errors:
            tokens = [len(doc.tokens) for doc in first.docs]
            gap = rows.error_change(first.errors, second.errors, tokens)
            self.add(rows.difference(f"{name}, soft labels", gap, "Brier"), sample)

    def bar(self, name: str, value: float, floor: float | None, goal: float | None, **more: Any) -> None:
        """One bar of the result."""
        kinds = {"low": None, "high": None, "unit": "F1", "better": "higher", **more}
        value = round(value, 4 if abs(value) < 10 else 1)
        self.bars.append({"id": name, "value": value, "floor": floor, "goal": goal, **kinds})

    def f1_bar(self, name: str, found: Measured | None, levels: tuple[float | None, float | None]) -> None:
        """A bar of the mean F1, with the interval of the seed in the middle."""
        if found is None:
            return
        centre = found.scores[rows.middle(found.scores)]
        low, high = (round(edge, 4) for edge in centre.f1_interval or (centre.f1, centre.f1))
        self.bar(name, found.f1, *levels, low=low, high=high)


def _random(system: System) -> bool:
    """Whether a seed changes what a system does; a conditional HMM of weight 0 has no layers that one could begin."""
    if system.method == "peer":
        return bool(system.fields["name"] == "snorkel LabelModel")
    return system.method in RANDOM and system.fields.get("weight") != 0.0
