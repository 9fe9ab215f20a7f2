"""The pool: CPU of two workers beside one, the parent's share, the cost over a plain loop; memory of workers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.scale.measure import Cost, measure
from chaffinch.deid.keys import Secret

NOTES = 20_000  # of the comparison of CPU seconds
MEMORY_NOTES = (10_000, 60_000)
PATIENT_NOTES = (10, 5_000)
A_PATIENT = 5  # notes of a patient, as usual


def cpu_rows(folder: Path, size: int | None) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return bars and rows of CPU seconds: one worker, two workers, and a plain loop, on the same notes."""
    number = size or NOTES
    place = write_notes(folder, patients=number // A_PATIENT, each=A_PATIENT)
    costs = {f"{workers} workers": measure({"command": command(place, workers)}) for workers in (1, 2)}
    costs["plain loop"] = measure({"loop": [str(place), str(folder / "loop.jsonl"), "rules", str(folder / "secret")]})
    one, two, plain = costs.values()
    bars = [
        bar("cpu_two_workers_to_one", two.cpu / one.cpu, "ratio", 1.08, 1.03),
        bar("parent_share_of_cpu", two.parent / two.cpu, "share", 0.05, 0.02),
        bar("pool_and_ledger_over_loop", two.cpu / plain.cpu - 1, "share", 0.10, 0.03),
    ]
    return bars, [_row("cpu", name, number, cost) for name, cost in costs.items()]


def memory_rows(folder: Path, size: int | None) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return bars and rows of the peak memory of a worker for few and many notes, of patients of the usual size.

    `size` is the number of notes of the larger run; the smaller one has a sixth of it.
    """
    counts = MEMORY_NOTES if size is None else (size // 6, size)
    return _compare(folder, "notes", [(count // A_PATIENT, A_PATIENT) for count in counts], ["--model", "rules"])


def patient_rows(folder: Path, size: int | None) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return bars and rows of the peak memory of a worker for one patient with few and many notes; `size`: how many.

    By rules alone, and with `--fast`.
    """
    pairs = [(1, count) for count in (PATIENT_NOTES if size is None else (PATIENT_NOTES[0], size))]
    bars, rows = _compare(folder, "patient", pairs, ["--model", "rules"])
    more_bars, more_rows = _compare(folder, "patient_fast", pairs, ["--fast"])
    return [*bars, *more_bars], [*rows, *more_rows]


def _compare(
    folder: Path, name: str, pairs: Sequence[tuple[int, int]], model: Sequence[str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return bars of a worker's peak memory, and rows, for two pairs (patients, notes of each)."""
    rows = []
    for patients, each in pairs:
        cost = measure({"command": command(write_notes(folder, patients=patients, each=each), 2, model=model)})
        what = f"{patients} patient{'s' if patients > 1 else ''} of {each} notes, {' '.join(model)}"
        rows.append(_row("memory", what, patients * each, cost))
    peaks = [row["worker_mb"] for row in rows]
    bars = [
        bar(f"worker_memory_growth_{name}", peaks[-1] / peaks[0], "ratio", 1.10, 1.0),
        bar(f"worker_memory_peak_{name}", max(peaks), "MB", 500, 300),
    ]
    return bars, rows


def write_notes(folder: Path, *, patients: int, each: int, form: str = "jsonl") -> Path:
    """Write invented notes, and a secret; return the path of the notes."""
    place = folder / f"notes-{patients}-{each}.{form}"
    if not place.exists():  # in another process: its memory would count as that of processes started later
        measure({"write": [str(place), patients, each]})
    if not (folder / "secret").exists():
        Secret.new().write(folder / "secret")
    return place


def command(
    place: Path, workers: int, output: Path | None = None, *, model: Sequence[str] = ("--model", "rules")
) -> list[str]:
    """Return the arguments of a release; by rules alone, the share of everything else is the largest."""
    output = output or place.with_name(f"out-{place.stem}-{workers}{model[-1]}{place.suffix}")
    return [
        "deid", str(place), "-o", str(output), *model, "--policy", "i2b2-surrogate", "--secret-file",
        str(place.with_name("secret")), "--workers", str(workers), "--quiet",
    ]  # fmt: skip


def bar(name: str, value: float, unit: str, floor: float, goal: float) -> dict[str, Any]:
    return {"id": name, "value": round(value, 4), "unit": unit, "floor": floor, "goal": goal, "better": "lower"}


def _row(part: str, what: str, number: int, cost: Cost) -> dict[str, Any]:
    return {
        "part": part, "what": what, "notes": number, "cpu_s": round(cost.cpu, 2), "parent_s": round(cost.parent, 2),
        "wall_s": round(cost.wall, 2), "parent_mb": cost.parent_mb, "worker_mb": cost.worker_mb,
    }  # fmt: skip
