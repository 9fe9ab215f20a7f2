"""The packaged detector and its peers on the notes of many hands, whose writers nobody tuned on.

    chaffinch bench deid --only writers --split dev
    CHAFFINCH_REASON="why" chaffinch bench deid --only writers --split test
    CHAFFINCH_REASON="why" chaffinch bench deid --only writers --split fresh

`corpus` reads the notes, `systems` runs one system (`worker` is its process), `counts` turns spans into counts and
figures with intervals over writers, `classes` says what a wrongly flagged word is, `overlap` counts runs of words that
the notes share with templates and other notes, `log` keeps a line for every scoring of held-out notes. Nothing here
prints a word of a note. The setting "recall 0.995" is the safe one. The row "second reader" is the reader who marked
the plain text without seeing the writers' marks, against the marks that were settled. `site` is a command of its own:
what the contextual reader gains that learns from reviewed notes of a dev writer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks._folder import launch
from benchmarks.deid import peers
from benchmarks.deid.writers.classes import CLASSES
from benchmarks.deid.writers.corpus import HELD_OUT, NOTES, SPLITS, Split, read_notes
from benchmarks.deid.writers.counts import (
    FIGURES,
    Estimate,
    Figure,
    NoteCounts,
    estimate,
    rate_of_class,
    recall_of,
    share_of_draws,
    total,
)
from benchmarks.deid.writers.log import SCORINGS, append_scoring, reason_for
from benchmarks.deid.writers.overlap import count_overlaps
from benchmarks.deid.writers.systems import OURS, READER, SAFE, VOICES, SystemJob, SystemResult, read_results

SYSTEMS: Final = (OURS, VOICES, READER, *peers.BY_WRITER)
BALANCED: Final = "balanced"
SAFEST: Final = f"recall {SAFE}"
HARD_STYLES: Final = ("dictated", "lower case", "scanned")
# Floor and goal of a figure, by setting. Lower is better where the floor is above the goal. The floor of strict F1 is
# .05 above the baseline that was logged on 18 November 2026.
LEVELS: Final[Mapping[str, Mapping[str, tuple[float, float]]]] = {
    BALANCED: {
        "R": (0.960, 0.985), "P": (0.935, 0.965), "false per 1,000": (25, 12), "strict F1": (0.616, 0.90),
    },
    SAFEST: {
        "R": (0.987, 0.997), "P": (0.85, 0.90), "direct R": (0.988, 0.998), "leaking direct": (0.20, 0.05),
        "false per 1,000": (60, 30),
    },
    f"{BALANCED}, fast": {"R": (0.94, 0.94), "P": (0.92, 0.92)},
    f"{SAFEST}, fast": {"R": (0.98, 0.98), "P": (0.82, 0.82)},
}  # fmt: skip
STYLE_LEVEL: Final = (0.95, 0.985)
DIAL_LEVEL: Final = (0.010, 0.005)
PROMISE_LEVEL: Final = (0.90, 0.90)
DIAL: Final = (0.95, 0.97, 0.98, 0.99)
SPEED_LEVEL: Final = (30_000, 80_000)  # characters per CPU second
OVERLAP_LEVEL: Final = (0.001, 0.0)
SIZES: Final = {"writers": (30, 60), "notes": (600, 1_200), "identifiers": (15_000, 30_000)}
SHARED_PATIENTS: Final = 0.333  # of the notes belong to patients with several notes


@dataclass(frozen=True, slots=True)
class WritersRun:
    """What to score, where processes leave results, and where scorings of held-out notes are logged."""

    split: Split
    workspace: Path
    command: str
    notes: Path = NOTES
    scorings: Path = SCORINGS
    systems: tuple[str, ...] = SYSTEMS


@dataclass(slots=True)
class Report:
    """Rows and bars, as `chaffinch bench` prints them."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    bars: list[dict[str, Any]] = field(default_factory=list)

    def add(self, system: str, **values: Any) -> None:
        """Add a row."""
        shown = {name: round(value, 4) if isinstance(value, float) else value for name, value in values.items()}
        self.rows.append({"system": system, **shown})

    def add_bar(self, name: str, value: Estimate, floor: float, goal: float, unit: str) -> None:
        """Add a bar with its interval; lower is better where the floor is above the goal."""
        better = "lower" if floor > goal else "higher"
        edges = {name: None if edge is None else round(edge, 6) for name, edge in asdict(value).items()}
        self.bars.append({"id": name, **edges, "unit": unit, "floor": floor, "goal": goal, "better": better})


def measure_writers(run: WritersRun) -> Report:
    """Return rows and bars of all systems on a split; a scoring of held-out notes is logged before anybody sees it."""
    reason = reason_for(run.split)
    report = Report()
    _describe_corpus(run, report)
    results: dict[str, SystemResult] = {}
    for system in run.systems:
        if system in peers.MODULES and (absent := peers.absent(system)):
            report.add(system, absent=absent)
            continue
        for result in run_process(system, run):
            name = f"{OURS}, {result.setting}" if system == OURS else result.setting
            results[name] = result
            report.add(name, **_figures_of(result))
    ours = {result.setting: result for name, result in results.items() if name.startswith(OURS)}
    for setting in (BALANCED, SAFEST):
        if setting in ours:
            _break_down(ours[setting], report)
    _add_bars(ours, report)
    if run.split in HELD_OUT:
        append_scoring(run.command, reason, _logged(results), _logged_rows(report), run.scorings)
    return report


def run_process(system: str, run: WritersRun) -> list[SystemResult]:
    """Return the results of a system, which is run in a process of its own."""
    out = run.workspace / f"{system}.json"
    launch("deid.writers.worker", SystemJob(system, run.split, str(run.notes), str(out)))
    return read_results(out)


def _describe_corpus(run: WritersRun, report: Report) -> None:
    """Add the sizes of the corpus, and what the notes of the split share with other text."""
    parts = {split: read_notes(split, run.notes) for split in SPLITS}
    for split, docs in parts.items():
        marks = sum(len(doc.layer("gold")) for doc in docs)
        report.add(f"corpus, {split}", notes=len(docs), writers=len({doc.meta["writer"] for doc in docs}), of=marks)
    everything = [doc for docs in parts.values() for doc in docs]
    sizes = {
        "writers": len({doc.meta["writer"] for doc in everything}),
        "notes": len(everything),
        "identifiers": sum(len(doc.layer("gold")) for doc in everything),
    }
    for name, size in sizes.items():
        report.add_bar(f"writers_corpus_{name}", Estimate(size), *SIZES[name], unit=name)
    patients = [doc.patient for doc in everything]
    several = sum(patients.count(patient) > 1 for patient in patients) / max(len(patients), 1)
    report.add_bar(
        "writers_corpus_shared_patients", Estimate(several), SHARED_PATIENTS, SHARED_PATIENTS, unit="share of notes"
    )
    runs, by_source, anywhere = count_overlaps(run.split, run.notes)
    for source, shared in by_source.items():
        report.add(f"runs of eight words shared with {source}", shared=shared, of=runs)
    share = anywhere / max(runs, 1)
    report.add_bar("writers_overlap", Estimate(share), *OVERLAP_LEVEL, unit="share of runs")


def _figures_of(result: SystemResult) -> dict[str, Any]:
    """Return the columns of a setting: figures, the intervals of the main ones, costs, and the dial's promise."""
    estimates = {name: estimate(result.notes, figure) for name, figure in FIGURES.items()}
    columns: dict[str, Any] = {"notes": len(result.notes)} | {name: each.value for name, each in estimates.items()}
    if not result.typed:
        del columns["strict F1"]
    for name in ("R", "P", "direct R"):
        columns[f"{name} interval"] = estimates[name].interval
    said = {"asked": result.asked, "expected": result.expected, "promised": result.promised}
    columns |= {name: value for name, value in said.items() if value is not None}
    if result.seconds:
        rate = round(total(result.notes, "chars") / result.seconds)
        columns |= {"CPU s": round(result.seconds, 2), "chars per CPU s": rate}
    return columns | ({"train CPU s": round(result.training, 1)} if result.training else {})


def _break_down(result: SystemResult, report: Report) -> None:
    """Add recall by type, recall and precision by style and country, and false alarms by clinical class."""
    system = f"{OURS}, {result.setting}"
    names = sorted({name for note in result.notes for name in note.counts if name.startswith("type ")})
    for name in (name for name in names if not name.endswith(" hits")):
        recall = estimate(result.notes, recall_of(name))
        report.add(
            system, category=name, of=total(result.notes, name), R=recall.value, **{"R interval": recall.interval}
        )
    for name, members in _groups_of(result.notes):
        values = {
            figure: estimate(members, FIGURES[figure]).value for figure in ("R", "P", "direct R", "false per 1,000")
        }
        recall = estimate(members, FIGURES["R"])
        report.add(
            system,
            category=name,
            notes=len(members),
            of=total(members, "gold"),
            **values,
            **{"R interval": recall.interval},
        )
    for kind in CLASSES:
        flagged, others = total(result.notes, f"class {kind} flagged"), total(result.notes, f"class {kind}")
        rate = estimate(result.notes, rate_of_class(kind)).value
        report.add(system, category=f"class {kind}", of=others, flagged=flagged, **{"false per 1,000": rate})


def _groups_of(notes: Sequence[NoteCounts]) -> Iterator[tuple[str, list[NoteCounts]]]:
    """Yield the notes of every style and of every country."""
    for style in sorted({note.style for note in notes}):
        yield f"style {style}", [note for note in notes if note.style == style]
    for country in sorted({note.country for note in notes}):
        yield f"country {country}", [note for note in notes if note.country == country]


def _add_bars(ours: Mapping[str, SystemResult], report: Report) -> None:
    """Add the bars of the packaged model."""
    for setting, levels in LEVELS.items():
        if setting not in ours:
            continue
        mode = _slug(setting.replace(SAFEST, "safe").replace(", ", "_"))
        for name, (floor, goal) in levels.items():
            value = estimate(ours[setting].notes, FIGURES[name])
            report.add_bar(f"writers_{mode}_{_slug(name)}", value, floor, goal, unit=name)
    if SAFEST in ours:
        for style in HARD_STYLES:
            members = [note for note in ours[SAFEST].notes if note.style == style]
            if members:
                recall = estimate(members, FIGURES["R"])
                report.add_bar(f"writers_safe_recall_{_slug(style)}", recall, *STYLE_LEVEL, unit="recall")
    _add_dial_bars(ours, report)
    if BALANCED in ours:
        rate = total(ours[BALANCED].notes, "chars") / max(ours[BALANCED].seconds, 1e-9)
        report.add_bar("writers_speed", Estimate(round(rate)), *SPEED_LEVEL, unit="chars per CPU s")


def _add_dial_bars(ours: Mapping[str, SystemResult], report: Report) -> None:
    """Add how far realised recalls are from those asked for, and how often promised recalls hold.

    No setting has less recall than the balanced one: who asks for less gets that, and is told so.
    """
    least = (ours[BALANCED].expected or 0.0) if BALANCED in ours else 0.0
    for asked in DIAL:
        if result := ours.get(f"recall {asked}"):
            gap = estimate(result.notes, _gap_to(max(asked, least)))
            report.add_bar(f"writers_dial_{asked}", gap, *DIAL_LEVEL, unit="asked and realised recall apart")
    for setting in (BALANCED, *(f"recall {asked}" for asked in (*DIAL, SAFE))):
        if setting in ours and (promised := ours[setting].promised) is not None:
            held = share_of_draws(ours[setting].notes, FIGURES["R"], promised)
            name = f"writers_promise_{_slug(setting.removeprefix('recall '))}"
            report.add_bar(name, Estimate(held), *PROMISE_LEVEL, unit="share of drawn sets of writers")


def _gap_to(asked: float) -> Figure:
    return lambda sums: abs(FIGURES["R"](sums) - asked)


def _slug(name: str) -> str:
    words = {"R": "recall", "P": "precision", "direct R": "direct_recall", "false per 1,000": "flagged_per_1000"}
    return words.get(name, name.lower().replace(" ", "_"))


def _logged(results: Mapping[str, SystemResult]) -> dict[str, dict[str, list[float | None]]]:
    """Return value, low and high of every figure by system, for the log."""
    return {
        system: {
            name: [None if edge is None else round(edge, 4) for edge in (value.value, value.low, value.high)]
            for name, figure in FIGURES.items()
            if result.typed or name != "strict F1"
            for value in [estimate(result.notes, figure)]
        }
        for system, result in results.items()
    }


def _logged_rows(report: Report) -> dict[str, dict[str, float]]:
    """Return recall by type, style and country, and false alarms by class, of each setting that is broken down."""
    logged: dict[str, dict[str, float]] = {}
    for row in report.rows:
        if "category" in row:
            logged.setdefault(row["system"], {})[row["category"]] = row["R" if "R" in row else "false per 1,000"]
    return logged
