"""The tables of the five publications, row by row: ours beside the published figure, and where we differ.

`--only` takes P0 (HMM-DP), P1 (CHMM-ALT), P2 (phrase HMM), P3 (class HMM) or P4 (online cascade). The rows are those of
the parts of the other benchmarks named here, each system in a process of its own where those do so; intervals come from
drawing documents anew, costs are CPU seconds, memory is the peak of that process. The differences are read from the
publication's page in docs/methods.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.papers import pages
from benchmarks.tagger.benchmark import Options
from chaffinch.errors import ConfigError

TAKES_CORPUS = TAKES_MINUTES = True  # with --corpus; with --minutes or --full
COLUMNS = (
    "paper", "table", "system", "corpus", "sources", "recommended", "spans", "coverage", "estimated P", "labelled by",
    "label", "rate", "epochs", "P", "P interval", "R", "R interval", "F1", "seeds", "loop", "aggregator F1",
    "student F1", "AUC", "interval", "published", "without leaked", "strict F1", "strict interval", "leaked", "of",
    "CPU s", "peak MB", "features", "estimate", "low", "high", "truth", "candidates", "pairs of the corpus",
    "in sentences that we cut", "why", "absent",
)  # fmt: skip
# What the tables of the publications have nothing to do with; all other columns of the benchmarks are shown.
LEFT_OUT = frozenset({
    "part", "MB", "tokens per CPU s", "text alone CPU s", "apply CPU s", "threshold", "binary P", "objective", "steps",
    "stated", "extracted", "Brier",
})  # fmt: skip
# What the benchmarks call the same thing.
NAMES = {
    "score": "F1", "published, testb": "published", "train CPU s": "CPU s", "fit CPU s": "CPU s", "RSS MB": "peak MB",
    "precision": "P", "recall": "R",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Paper:
    """A publication: its page, and the parts of a benchmark that print its tables."""

    title: str
    page: str
    benchmark: str
    parts: tuple[str, ...]
    on_corpus: tuple[str, ...] = ()  # the parts that take a corpus of the user's


PAPERS = {
    "P0": Paper("HMM-DP", "hmmdp.md", "hmmdp", ("tables", "published", "align"), ("tables",)),
    "P1": Paper(
        "CHMM-ALT",
        "chmm.md",
        "weak",
        ("published", "ideas", "gap", "sources", "alternate"),
        ("published", "gap", "sources"),
    ),
    "P2": Paper("phrase HMM", "phrasehmm.md", "relations", ("published", "rates", "distant", "roles", "candidates")),
    "P3": Paper("class HMM", "classhmm.md", "classhmm", ("published", "ideas", "ieer", "kappa", "semi")),
    "P4": Paper("online cascade", "cascade.md", "tagger", ("published", "factors", "unstated")),
}


@dataclass(frozen=True, slots=True)
class Part:
    """The options of one part of another benchmark."""

    data: Path | None
    only: str | None
    split: str
    seeds: int
    corpus: Path | None = None
    minutes: float | None = None
    full: bool = False


def run(options: Options) -> dict[str, Any]:
    """All publications, or the one asked for."""
    if options.only not in (None, *PAPERS):
        raise ConfigError(f"unknown publication {options.only!r}; choose one of {', '.join(PAPERS)}")
    corpus: Path | None = getattr(options, "corpus", None)
    if corpus is not None and not (options.only and PAPERS[options.only].on_corpus):
        able = ", ".join(name for name, paper in PAPERS.items() if paper.on_corpus)
        raise ConfigError(f"--corpus is for one publication, with --only: {able}")
    if options.data is None and corpus is None:
        raise ConfigError("this benchmark needs the corpora; name their folder with --data or CHAFFINCH_DATA")
    rows: list[dict[str, Any]] = []
    bars: list[dict[str, Any]] = []
    for name in PAPERS if options.only is None else (options.only,):
        paper = PAPERS[name]
        module = importlib.import_module(f"benchmarks.{paper.benchmark}.benchmark")
        for part in paper.parts if corpus is None else paper.on_corpus:
            budget = getattr(options, "minutes", None), getattr(options, "full", False)
            found = module.run(Part(options.data, part, options.split, options.seeds, corpus, *budget))
            rows += [row_of(name, part, row) for row in found["rows"]]
            bars += found["bars"]
        rows += [
            {"paper": name, "table": "differences", "system": point.what, "why": point.why}
            for point in pages.differences(paper.page)
        ]
    used = sorted({key for row in rows for key in row}, key=_place)
    return {"bars": bars, "rows": [{key: row.get(key, "-") for key in used} for row in rows]}


def row_of(paper: str, part: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of another benchmark in the columns of this one, without what is left out and without dashes."""
    named = {NAMES.get(key, key): value for key, value in row.items() if value != "-" and key not in LEFT_OUT}
    return {"paper": paper, "table": part, **named}


def _place(column: str) -> tuple[int, str]:
    """The place of a column in the table; those without one come last, by name."""
    return (COLUMNS.index(column) if column in COLUMNS else len(COLUMNS), column)
