"""The tagger on JNLPBA, CoNLL-2003 and GENIA, beside python-crfsuite (and spaCy), each system in its own process.

Costs are CPU seconds of that process; compiled kernels are warm. Training counts from documents in memory to the
finished model, so extraction of features is in it, for the peer as well; tagging counts from documents to documents.
`--only` takes one of the parts jnlpba, speed, published, factors, unstated, conll, genia, calibration, spacy;
`--split dev` holds out training abstracts and reads no test set.
"""

from __future__ import annotations

import atexit
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Protocol

import msgspec

from benchmarks.tagger import calibration
from chaffinch import Cascade
from chaffinch.errors import ConfigError, DataError

ROOT = Path(__file__).resolve().parents[2]
PIP = "pip install 'chaffinch[bench]'"
QUICK = Cascade(documents=False, calibrate=False)  # one reading: what the peer's F1 needs
ACCURATE = Cascade(stages=2, cutoff=2, aggressiveness=0.01)
PUBLISHED = {
    "single phase, maximum likelihood": (
        Cascade.published(stages=1, objective="lbfgs"),
        {"F1": 69.44, "train CPU s": 1699 * 60, "features": 8_004_392},
    ),
    "single phase, online": (
        Cascade.published(stages=1),
        {"F1": 71.17, "train CPU s": 116 * 60, "features": 8_004_392},
    ),
    "cascade, online": (
        Cascade.published(),
        {
            "F1": 72.16, "train CPU s": 29 * 60, "features": 10_635_384, "segmentation P": 73.68,
            "segmentation R": 80.13, "segmentation F1": 76.77, "classification F1": 92.76,
        },
    ),
}  # fmt: skip
# What ours has in place of the publication's: the settings changed, and the layers that are features.
FACTORS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "the cost added to the violator": ({"violator": "cost"}, ("pos",)),
    "segments classified and rejected": ({"classify": "segments"}, ("pos",)),
    "all of our features": ({"features": "rich"}, ("pos",)),
    "chunks": ({}, ("pos", "chunks")),
    "features seen 5 times": ({"cutoff": 5}, ("pos",)),
    "another seed": ({"seed": 1}, ("pos",)),
    "all of these, and a floor of two patients": (
        {"violator": "cost", "classify": "segments", "features": "rich", "cutoff": 5, "floor": None},
        ("pos", "chunks"),
    ),
}
# What the publication does not state, so that fidelity cannot settle it: with other values, does it come nearer?
UNSTATED: dict[str, dict[str, Any]] = {
    "5 epochs": {"epochs": 5},
    "20 epochs": {"epochs": 20},
    "aggressiveness 0.003": {"aggressiveness": 0.003},
    "aggressiveness 0.1": {"aggressiveness": 0.1},
}
# Systems that the publication lists beside its own.
OTHERS = {"Zhou & Su": 72.55, "Okanohara": 71.48, "Kim": 71.19, "Finkel": 70.06, "Settles": 69.80}


# Folders of the abstracts' parts of speech and chunks, by folder of the corpora and split; they go with this process.
PARSES: dict[tuple[Path, str], Path] = {}
COLUMNS = (
    "P", "R", "score", "published", "interval", "without leaked", "train CPU s", "tokens per CPU s", "MB", "RSS MB",
    "features",
)  # fmt: skip
PARTIAL = (
    "segmentation P", "segmentation R", "segmentation F1", "classification F1", "GENIA POS accuracy", "GENIA chunk F1",
    "CoNLL-2000 POS accuracy", "CoNLL-2000 chunk F1",
)  # fmt: skip


class Options(Protocol):
    """What `chaffinch bench` hands over."""

    @property
    def data(self) -> Path | None: ...
    @property
    def only(self) -> str | None: ...
    @property
    def split(self) -> str: ...
    @property
    def seeds(self) -> int: ...


class Bench:
    """Runs jobs and gathers rows and bars."""

    def __init__(self, options: Options) -> None:
        if options.data is None:
            raise ConfigError("this benchmark needs the corpora; name their folder with --data or CHAFFINCH_DATA")
        self.data, self.split, self.seeds = options.data, options.split, options.seeds
        self.folder = _folder_of_parses(self.data.resolve(), self.split)
        self.rows: list[dict[str, Any]] = []
        self.bars: list[dict[str, Any]] = []

    def job(self, name: str, **asked: Any) -> dict[str, Any]:
        """The result of one process, which becomes a row."""
        common = {"data": str(self.data.resolve()), "split": self.split, "folder": str(self.folder)}
        asked = {"job": "ours", "corpus": "jnlpba", **common, **asked}
        if isinstance(asked.get("config"), Cascade):
            asked["config"] = asdict(asked["config"])
        command = [sys.executable, "-m", "benchmarks.tagger.worker", msgspec.json.encode(asked).decode()]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, start_new_session=True, check=False)
        if done.returncode:
            raise DataError(f"{name}: its process failed, and the lines above say why; is {asked['corpus']} in --data?")
        found: dict[str, Any] = msgspec.json.decode(done.stdout)
        if "F1" in found:
            self.rows.append({"system": name, **_row(found)})
        self.rows += [{"system": f"{name}: {key}", "score": found[key]} for key in PARTIAL if key in found]
        return found

    def parse(self) -> None:
        """Parts of speech and chunks of the abstracts, once in a process; some minutes."""
        if not (self.folder / "test.jsonl").exists():
            self.job("shallow parsing by folds", job="chunks")

    def ours(self, name: str, config: Cascade, **asked: Any) -> dict[str, Any]:
        """Our config with every seed; the middle one by F1 counts."""
        found = [
            self.job(name, config=replace(config, seed=config.seed + seed, private=False), **asked)
            for seed in range(self.seeds)
        ]
        return sorted(found, key=lambda one: one["F1"])[(len(found) - 1) // 2]

    def bar(self, name: str, value: float, floor: float, goal: float, *, unit: str = "F1", **more: Any) -> None:
        """One bar of the result."""
        kinds = {"low": None, "high": None, "better": "higher", **more}
        self.bars.append({"id": name, "value": value, "unit": unit, "floor": floor, "goal": goal, **kinds})

    def f1_bar(self, name: str, found: dict[str, Any], floor: float, goal: float) -> None:
        """A bar of F1 with its interval."""
        self.bar(name, found["F1"], floor, goal, low=found.get("low"), high=found.get("high"))

    def jnlpba(self) -> None:
        """Defaults, and everything we have."""
        found = self.ours("chaffinch, defaults", Cascade())
        self.f1_bar("jnlpba_defaults", found, 71.0, 72.2)
        self.bar("jnlpba_model_size", found["MB"], 15, 8, unit="MB", better="lower")
        self.bar("jnlpba_training_rss", found["RSS MB"], 500, 350, unit="MB", better="lower")
        self.parse()
        rich = self.ours("chaffinch, two stages, all resources", ACCURATE, extras=["clusters", "lexicon", "chunks"])
        self.f1_bar("jnlpba_resources", rich, 72.6, 73.5)

    def speed(self) -> None:
        """Training to the peer's F1 and tagging, beside python-crfsuite."""
        try:
            import pycrfsuite  # noqa: F401
        except ImportError:
            self.rows.append({"system": "python-crfsuite", "absent": PIP})
            return
        peer = self.job("python-crfsuite, PA, published features", job="peer", peer="crfsuite")
        for epochs in range(1, QUICK.epochs + 1):
            found = self.job(f"chaffinch, one reading, {epochs} epochs", config=replace(QUICK, epochs=epochs))
            if found["F1"] >= peer["F1"]:
                ratio = round(peer["train CPU s"] / found["train CPU s"], 1)
                self.bar("training_to_peer_f1", ratio, 10, 20, unit="times faster")
                break
        ratio = round(found["tokens per CPU s"] / peer["tokens per CPU s"], 1)
        self.bar("tagging", ratio, 10, 20, unit="times faster")

    def published(self) -> None:
        """The published table with our code; parts of speech and a lexicon as there (ours), no clusters."""
        self.parse()
        for name, (config, reported) in PUBLISHED.items():
            begun = len(self.rows)
            found = self.ours(name, config, extras=["lexicon", "pos"])
            for row in self.rows[begun:]:
                row["published"] = reported.get(row["system"].removeprefix(f"{name}: "), reported["F1"])
            costs = {key: reported[key] for key in ("train CPU s", "features")}
            self.rows.append({"system": f"{name}: as published", "published": reported["F1"], **costs})
            if config.stages == 2:
                self.f1_bar("published_cascade", found, 72.0, 72.2)
                self.bar("cascade_segmentation", found["segmentation F1"], 76.5, 76.8)
                self.bar("cascade_classification", found["classification F1"], 93.2, 93.5)
        self.rows += [{"system": f"{name}: as published", "published": f1} for name, f1 in OTHERS.items()]

    def factors(self) -> None:
        """The published cascade with one thing changed at a time, then with all of them: what fidelity costs."""
        self.parse()
        self._changed(FACTORS)

    def unstated(self) -> None:
        """The published cascade with other values of what the publication does not state."""
        self.parse()
        self._changed({name: (changed, ("pos",)) for name, changed in UNSTATED.items()})

    def _changed(self, changes: Mapping[str, tuple[dict[str, Any], tuple[str, ...]]]) -> None:
        """Add the published cascade, and rows of its changes with the difference that each makes."""
        base = self.ours("cascade, online", Cascade.published(), extras=["lexicon", "pos"])
        for name, (changed, extras) in changes.items():
            found = self.ours(f"with {name}", replace(Cascade.published(), **changed), extras=["lexicon", *extras])
            gap = {key: round(found[key] - base[key], 2) for key in ("F1", "segmentation F1", "classification F1")}
            texts = [f"{key} {value:+.2f}" for key, value in gap.items()]
            self.rows.append({"system": f"with {name}: difference", "score": ", ".join(texts)})

    def conll(self) -> None:
        """Another domain, with documents."""
        found = self.ours("chaffinch, defaults, CoNLL-2003", Cascade(), corpus="conll2003")
        self.f1_bar("conll2003_defaults", found, 84.8, 86.5)

    def genia(self) -> None:
        """The packaged shallow parser."""
        found = self.job("genia, packaged", job="parser")
        self.bar("genia_pos", found["GENIA POS accuracy"], 98.4, 98.8, unit="accuracy")
        self.bar("genia_chunks", found["GENIA chunk F1"], 92, 95)

    def calibration(self) -> None:
        """Whether confidence is right: expected calibration error on four corpora, cross-fitted."""
        for corpus in calibration.CORPORA:
            rows = self.job(f"calibration, {corpus}", job="calibration", corpus=corpus, config=Cascade(private=False))
            for row in rows["calibration"]:
                score = f"{row['said']} said, {row['true']} true, error {row['calibration error']}"
                self.rows.append({"system": f"confidence, {corpus}, {row['judged on']}", "score": score})
            name, error = f"calibration_error_{corpus}", rows["calibration"][0]["calibration error"]
            self.bar(name, error, 0.03, 0.02, unit="ECE, cross-fitted", better="lower")

    def spacy(self) -> None:
        """spaCy's blank NER on CoNLL-2003, some minutes."""
        self.job("spaCy blank NER, CoNLL-2003", job="peer", peer="spacy", corpus="conll2003")


PARTS = ("jnlpba", "speed", "published", "factors", "unstated", "conll", "genia", "calibration")


def run(options: Options) -> dict[str, Any]:
    """All parts but spaCy, or the one asked for."""
    if options.only not in (None, *PARTS, "spacy"):
        raise ConfigError(f"unknown part {options.only!r}; choose one of {', '.join((*PARTS, 'spacy'))}")
    bench = Bench(options)
    for part in PARTS if options.only is None else (options.only,):
        getattr(bench, part)()
    return {
        "bars": bench.bars,
        "rows": [{key: row.get(key, "-") for key in ("system", *COLUMNS)} for row in bench.rows],
    }


def _folder_of_parses(data: Path, split: str) -> Path:
    """The folder of the abstracts' parses, made when it is first asked for and removed when the process ends."""
    if (data, split) not in PARSES:
        PARSES[data, split] = Path(tempfile.mkdtemp())
        atexit.register(shutil.rmtree, PARSES[data, split], ignore_errors=True)
    return PARSES[data, split]


def _row(found: dict[str, Any]) -> dict[str, Any]:
    """A job's result in the columns of the table."""
    clean = found.get("F1 without leaked")
    around = f"{clean} ({found['low without leaked']}–{found['high without leaked']})" if clean else "-"
    edges = f"{found['low']}–{found['high']}" if "low" in found else "-"
    return {**found, "score": found["F1"], "interval": edges, "without leaked": around}
