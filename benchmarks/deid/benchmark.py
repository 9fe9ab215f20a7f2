"""De-identification: Spanish notes, the English default by folds, peers, adaptation, speed, privacy, dates, doubt.

Every model is learnt in a process of its own; costs are CPU seconds of that process with compiled kernels warm. Scores
are of words (tokens with a letter or a digit) in any identifier or in none, and of strict spans on MEDDOCAN, whose own
development notes are the test set; the dial is set on training notes that the model did not learn from. `--only` takes
one part, or several with commas, which share what they learn; `--split dev` measures MEDDOCAN on these 100 notes, with
the dial set on 100 others, and reads no test notes, and the written notes are those to look at. The part "writers" (the
notes of many hands) runs only if it is named, and needs corpora for prose alone; on test notes it asks for a reason and
logs itself. Its split "fresh" has the notes of writers that were asked for after the scorings of test were used up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._folder import Folder, launch
from benchmarks.deid import peers
from benchmarks.deid.data import FOLDS, PROSE, SITES, WRITTEN
from benchmarks.deid.keep import count_by_limit
from benchmarks.deid.scores import Tally, summed
from benchmarks.deid.worker import told
from benchmarks.deid.writers import WritersRun, measure_writers
from benchmarks.deid.writers.corpus import Split
from benchmarks.deid.writers.log import reason_for
from benchmarks.tagger.benchmark import Options
from chaffinch.deid.detect.class_doubt import LIMIT
from chaffinch.errors import ConfigError

HAS_FRESH = True  # a split "fresh", for the part "writers"
COLUMNS = (
    "part", "system", "notes", "strict F1", "interval", "P", "R", "F1", "HIPAA R", "leaking notes", "category", "of",
    "false per 1,000", "train CPU s", "adapt CPU s", "chars per CPU s", "MB", "pairs", "unequal", "partial",
    "incompatible", "tagged", "dates", "limit", "direct released", "hidden", "writers", "R interval", "P interval",
    "direct R", "direct R interval", "leaking direct", "span F1", "asked", "expected", "promised", "flagged", "shared",
    "CPU s", "Gop per CPU s", "absent",
)  # fmt: skip
HIGHER: dict[str, Any] = {"low": None, "high": None, "better": "higher"}


class Bench:
    """Runs the parts and gathers rows and bars."""

    def __init__(self, options: Options, own: Folder) -> None:
        self.own, self.split, self.part, self._numbers = own, options.split, "", count()
        self.command = f"chaffinch bench deid --only {options.only} --split {options.split}"
        self.rows: list[dict[str, Any]] = []
        self.bars: list[dict[str, Any]] = []
        self._done: dict[str, dict[str, Any]] = {}

    def job(self, name: str, **asked: Any) -> dict[str, Any]:
        """The answer of a process; the same is asked only once."""
        key = repr((name, sorted(asked.items())))
        if key not in self._done:
            out = str(self.own.folder / f"answer{next(self._numbers)}.json")
            job = {"job": name, "data": str(self.own.data), "folder": str(self.own.folder), "out": out}
            launch("deid.worker", {**job, "split": self.split, **asked})
            self._done[key] = told(job)
        return self._done[key]

    def add(self, system: str, **values: Any) -> None:
        """Adds a row to the part at hand."""
        shown = {name: round(own, 4) if isinstance(own, float) else own for name, own in values.items()}
        self.rows.append({"part": self.part, "system": system, **shown})

    def counted(self, system: str, found: Tally, **more: Any) -> None:
        """A row of counts."""
        self.add(
            system, notes=found.notes, P=found.precision, R=found.recall, F1=found.f1,
            **{"HIPAA R": found.hipaa_recall, "leaking notes": found.leaking / max(found.notes, 1)}, **more,
        )  # fmt: skip

    def bar(self, name: str, value: float, floor: float | None, goal: float | None, **more: Any) -> None:
        """One bar of the result."""
        self.bars.append({"id": name, "value": round(value, 4), "floor": floor, "goal": goal, **HIGHER, **more})

    def meddocan(self) -> None:
        """Strict F1, CPU seconds, and the dial."""
        for method in ("both", "HMMDP", "Cascade"):
            own = self.job("meddocan", method=method, private=False)
            low, high = own["interval"] or (None, None)
            figures = {"strict F1": own["strict F1"], "train CPU s": own["train CPU s"]}
            self.add(f"{method}, decoded", interval=f"{low:.4f}–{high:.4f}" if low else "-", **figures)
            self.counted(f"{method}, balanced", own["balanced"])
            self.counted(f"{method}, dial .995", own["safe"])
        own = self.job("meddocan", method="both", private=False)
        safe: Tally = own["safe"]
        self.bar("meddocan_strict_f1", own["strict F1"], 0.955, 0.968, unit="F1")
        self.bar("meddocan_training", own["train CPU s"], 120, 120, unit="CPU s", better="lower")
        self.bar("meddocan_dial_recall", safe.recall, 0.990, 0.995, unit="recall")
        self.bar("meddocan_dial_precision", safe.precision, 0.85, 0.93, unit="precision")
        leaking = safe.leaking / safe.notes
        self.bar("meddocan_leaking_notes", leaking, 0.20, 0.08, unit="share of notes", better="lower")

    def english(self) -> None:
        """The default's recipe by folds, and the default itself."""
        answers = {fold: self.job("english", fold=fold) for fold in FOLDS}
        for mode in ("balanced", "safe"):
            for fold, own in answers.items():
                false = _false(own[f"{mode} prose"])
                more = {"false per 1,000": false, "train CPU s": own["train CPU s"]}
                self.counted(f"{fold} held out, {mode}", own[mode], **more)
                if whole := own.get(f"whole {mode}"):
                    self.counted(
                        f"{fold} held out, with the reader, {mode}",
                        whole, **{"false per 1,000": _false(own[f"whole {mode} prose"])},
                    )  # fmt: skip
            found = summed(own[mode] for own in answers.values())
            self.counted(f"all folds, {mode}", found)
            self._levels("english", mode, found)
            rate = _false(summed(own[f"{mode} prose"] for own in answers.values()))
            self.bar(f"english_{mode}_prose", rate, *LEVELS[mode][3], unit="words per 1,000", better="lower")
        made = self.job("default")
        self.add("default model", **made)
        self.bar("english_training", made["train CPU s"] / 60, 5, 2, unit="CPU min", better="lower")
        self.bar("english_size", made["MB"], 10, None, unit="MB", better="lower")

    def written(self) -> None:
        """The default's recipe on notes of other hospitals, which were written for this benchmark."""
        own = self.job("english", fold=WRITTEN)
        for mode in ("balanced", "safe"):
            self.counted(mode, own[mode])
            self._levels("written", mode, own[mode])

    def _levels(self, name: str, mode: str, found: Tally) -> None:
        """The bars of a setting, and its recall by category."""
        for category, size in sorted(found.by_category.items()):
            self.add(mode, category=category, of=size, R=found.hits_by_category.get(category, 0) / max(size, 1))
        recall, precision, hipaa, _ = LEVELS[mode]
        self.bar(f"{name}_{mode}_recall", found.recall, *recall, unit="recall")
        self.bar(f"{name}_{mode}_precision", found.precision, *precision, unit="precision")
        self.bar(f"{name}_{mode}_hipaa_recall", found.hipaa_recall, *hipaa, unit="recall")

    def peers(self) -> None:
        """Peers on the notes of every fold and the written ones, beside our balanced setting."""
        folds = (*FOLDS, WRITTEN)
        ours = {fold: self.job("english", fold=fold)["balanced"] for fold in folds}
        for fold, found in ours.items():
            self.counted(f"chaffinch, {fold} held out", found)
        own = summed(ours.values())
        for name in peers.BY_FOLD:
            if reason := peers.absent(name):
                self.add(name, absent=reason)
                continue
            answers = {fold: self.job("peer", fold=fold, peer=name) for fold in folds}
            for fold, one in answers.items():
                costs = {"chars per CPU s": round(one["chars per CPU s"]), "train CPU s": one["train CPU s"]}
                self.counted(f"{name}, {fold} held out", one["found"], **costs)
            theirs = summed(one["found"] for one in answers.values())
            short = name.partition(",")[0].lower().replace("-", "_")
            self.bar(f"ahead_of_{short}_f1", own.f1 - theirs.f1, 0.0, None, unit="F1, ours less theirs")
            self.bar(f"ahead_of_{short}_recall", own.recall - theirs.recall, 0.0, None, unit="recall, ours less theirs")

    def adapt(self) -> None:
        """Missed words at equal precision before and after adapting, on notes that were not used to adapt."""
        self.job("english", fold=SITES)  # leaves the model
        own = self.job("adapted")
        before, after = own["before"], own["after"]
        level = before[0].precision
        for name, found in (("before", before[0]), ("after", after[0])):
            self.counted(f"{name}, balanced", found)
        missed = [_missed(found, level) for found in (before, after)]
        self.add(f"missed at precision {level:.3f}: {missed[0]:.1f} before, {missed[1]:.1f} after", **_costs(own))
        change = missed[1] / max(missed[0], 1e-9) - 1.0
        self.bar("adapt_missed", change, -0.10, -0.40, unit="share of missed words", better="lower")

    def speed(self) -> None:
        """Detection in notes of dev writers, default and fast; detection with surrogates; beside peers that detect."""
        self._read_speed()
        rates = []
        for fold in ("aci-phi", SITES):
            rates.append(self.job("speed", fold=fold)["chars per CPU s"])
            self.add(f"chaffinch, detection and surrogates, {fold}", **{"chars per CPU s": round(rates[-1])})
            for name in ("Presidio, patterns", "scrubadub"):
                if reason := peers.absent(name):
                    self.add(name, absent=reason)
                else:
                    rate = self.job("peer", fold=fold, peer=name)["chars per CPU s"]
                    self.add(f"{name}, detection, {fold}", **{"chars per CPU s": round(rate)})
        self.bar("chars_per_cpu_second", min(rates), 450_000, 1_000_000, unit="chars per CPU s")
        whole = self.job("end_to_end")["chars per CPU s"]
        self.add("chaffinch deid --fast, 2,000 invented notes", **{"chars per CPU s": round(whole)})
        self.bar("end_to_end_chars_per_cpu_second", whole, 300_000, 700_000, unit="chars per CPU s")

    def _read_speed(self) -> None:
        """Characters per CPU second of the default, with its reader and without, and of Presidio with spaCy."""
        answers = {name: self.job("reading", system=name) for name in ("default", "fast")}
        reader = "with" if answers["default"]["reader"] else "no"
        for name, told_of in ((f"chaffinch, {reader} reader", "default"), ("chaffinch --fast", "fast")):
            rate = answers[told_of]["chars per CPU s"]
            self.add(f"{name}, detection, dev writers", **{"chars per CPU s": round(rate)})
        if reason := peers.absent(peers.PRESIDIO_SPACY):
            self.add(peers.PRESIDIO_SPACY, absent=reason)
        else:
            rate = self.job("reading", system=peers.PRESIDIO_SPACY)["chars per CPU s"]
            self.add(f"{peers.PRESIDIO_SPACY}, detection, dev writers", **{"chars per CPU s": round(rate)})
            for name, floor, goal in (("default", 2.0, 5.0), ("fast", 20.0, 40.0)):
                ahead = answers[name]["chars per CPU s"] / rate
                self.bar(f"{name}_ahead_of_presidio", ahead, floor, goal, unit="speed, ours over theirs")
        found = self.job("products")
        how = "compiled" if found["compiled"] else "by BLAS"
        self.add("products of floats, BLAS", **{"Gop per CPU s": round(found["floats"])})
        self.add(f"products of bytes, {how}", **{"Gop per CPU s": round(found["bytes"])})
        rate = answers["default"]["chars per CPU s"]
        self.bar("default_chars_per_cpu_second", rate, 30_000, 80_000, unit="chars per CPU s")

    def private(self) -> None:
        """What it costs that no identifier word is in the model."""
        open_, closed = (self.job("meddocan", method="both", private=own) for own in (False, True))
        for name, own in (("with identifier words", open_), ("private", closed)):
            self.add(name, **{"strict F1": own["strict F1"], "train CPU s": own["train CPU s"]})
            self.counted(f"{name}, balanced", own["balanced"])
            self.counted(f"{name}, dial .995", own["safe"])
        price = 100 * (open_["strict F1"] - closed["strict F1"])
        self.bar("private_price", price, 1.0, 0.3, unit="points of strict F1", better="lower")
        lost = [100 * (1 - own["balanced"].recall) for own in (open_, closed)]
        self.bar("private_leaked", lost[1] - lost[0], 1.0, 0.3, unit="points of leaked words", better="lower")

    def dates(self) -> None:
        """Intervals and partial dates after shifting."""
        own = self.job("intervals")
        self.add("generated notes of two sites", **own)
        self.bar("unequal_intervals", own["unequal"], 0, 0, unit="pairs", better="lower")
        self.bar("incompatible_partial_dates", own["incompatible"], 0, 0, unit="dates", better="lower")

    def keep(self) -> None:
        """What a limit on the doubt about classes saves and costs under limited-dataset; a limit of 2 is none."""
        for row in count_by_limit():
            self.add("deid-en under limited-dataset", **row)
            if row["limit"] == LIMIT:
                self.bar("keep_direct_released", row["direct released"], None, 0, unit="identifiers", better="lower")
                self.bar("keep_hidden", row["hidden"], None, 0, unit="identifiers", better="lower")

    def writers(self) -> None:
        """Add the packaged model and its peers on the notes of many hands."""
        split: Split = "fresh" if self.split == "fresh" else "test" if self.split == "test" else "dev"
        run = WritersRun(split, self.own.folder, self.command)
        report = measure_writers(run)
        self.rows += [{"part": self.part, **row} for row in report.rows]
        self.bars += report.bars
        if all((self.own.data / place).exists() for place in PROSE):
            found = self.job("prose")
            for mode, (floor, goal) in PROSE_LEVELS.items():
                self.add(f"packaged model in prose, {mode}", **{"false per 1,000": _false(found[mode])})
                name = f"writers_prose_{mode}"
                self.bar(name, _false(found[mode]), floor, goal, unit="words per 1,000", better="lower")


PARTS = ("meddocan", "english", "written", "peers", "adapt", "speed", "private", "dates", "keep")
ON_REQUEST = "writers"
PROSE_LEVELS: Mapping[str, tuple[float, float]] = {"balanced": (12, 6), "safe": (30, 15)}  # of the packaged model
# Floor and goal of recall, precision, recall of HIPAA's types, and words wrongly flagged in 1,000 of plain prose.
LEVELS: Mapping[str, tuple[tuple[float, float], ...]] = {
    "balanced": ((0.965, 0.985), (0.95, 0.97), (0.985, 0.996), (25, 8)),
    "safe": ((0.985, 0.997), (0.85, 0.90), (0.997, 1.0), (60, 20)),
}


def run(options: Options) -> dict[str, Any]:
    """Run all parts but the one on request, or those asked for."""
    asked = options.only.split(",") if options.only else PARTS
    if unknown := set(asked) - {*PARTS, ON_REQUEST}:
        raise ConfigError(f"unknown part {min(unknown)!r}; choose of {', '.join((*PARTS, ON_REQUEST))}")
    if options.split == "fresh" and set(asked) != {ON_REQUEST}:
        raise ConfigError(f"--split fresh is for --only {ON_REQUEST}; choose dev or test")
    if options.data is None and set(asked) != {ON_REQUEST}:
        raise ConfigError("this benchmark needs the corpora; name their folder with --data or CHAFFINCH_DATA")
    if ON_REQUEST in asked:
        reason_for(options.split)
    with Folder(options.data or Path()) as own:
        bench = Bench(options, own)
        for part in asked:
            bench.part = part
            getattr(bench, part)()
    used = [key for key in COLUMNS if any(key in row for row in bench.rows)]
    return {"bars": bench.bars, "rows": [{key: row.get(key, "-") for key in used} for row in bench.rows]}


def _false(found: Tally) -> float:
    """Words wrongly flagged in 1,000 words of prose without identifiers."""
    return 1000 * (found.flagged - found.hits) / max(found.words, 1)


def _costs(own: Mapping[str, Any]) -> dict[str, float]:
    return {"adapt CPU s": own["adapt CPU s"]}


def _missed(found: Sequence[Tally], precision: float) -> float:
    """How many words are missed at a precision, between the settings of the dial that lie around it.

    >>> low, high = Tally(gold=10, hits=5, flagged=5), Tally(gold=10, hits=9, flagged=18)
    >>> round(_missed([high, low], 0.75), 2)
    3.0
    """
    points = sorted((own.precision, float(own.gold - own.hits)) for own in found)
    return float(np.interp(precision, [own for own, _ in points], [own for _, own in points]))
