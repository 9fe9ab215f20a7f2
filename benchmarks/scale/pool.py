"""The pool: CPU of two workers beside one, the parent's share, the cost over a plain loop; memory of workers."""

from __future__ import annotations

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
    """Return bars and rows of the peak memory of a worker: for few and many notes, and for a small and a large patient.

    `size` is the number of notes of the larger runs; the smaller ones have a sixth, and a patient a twelfth of it.
    """
    few, many = MEMORY_NOTES if size is None else (size // 6, size)
    small, large = PATIENT_NOTES if size is None else (10, max(10, size // 12))
    bars, rows = [], []
    pairs = ((few // A_PATIENT, A_PATIENT), (many // A_PATIENT, A_PATIENT))
    shapes = {"notes": pairs, "patient": ((1, small), (1, large))}
    for name, pair in shapes.items():
        peaks = []
        for patients, each in pair:
            cost = measure({"command": command(write_notes(folder, patients=patients, each=each), 2)})
            peaks.append(cost.worker_mb)
            rows.append(_row("memory", f"{patients} patients of {each} notes", patients * each, cost))
        bars.append(bar(f"worker_memory_growth_{name}", peaks[1] / peaks[0], "ratio", 1.10, 1.0))
    peak = max(row["worker_mb"] for row in rows)
    return [*bars, bar("worker_memory_peak", peak, "MB", 500, 300)], rows


def write_notes(folder: Path, *, patients: int, each: int, form: str = "jsonl") -> Path:
    """Write invented notes, and a secret; return the path of the notes."""
    place = folder / f"notes-{patients}-{each}.{form}"
    if not place.exists():  # in another process: its memory would count as that of processes started later
        measure({"write": [str(place), patients, each]})
    if not (folder / "secret").exists():
        Secret.new().write(folder / "secret")
    return place


def command(place: Path, workers: int, output: Path | None = None) -> list[str]:
    """Return the arguments of a release by rules alone, which makes the share of everything else the largest."""
    output = output or place.with_name(f"out-{place.stem}-{workers}{place.suffix}")
    return [
        "deid", str(place), "-o", str(output), "--model", "rules", "--policy", "i2b2-surrogate", "--secret-file",
        str(place.with_name("secret")), "--workers", str(workers), "--quiet",
    ]  # fmt: skip


def bar(name: str, value: float, unit: str, floor: float, goal: float) -> dict[str, Any]:
    return {"id": name, "value": round(value, 4), "unit": unit, "floor": floor, "goal": goal, "better": "lower"}


def _row(part: str, what: str, number: int, cost: Cost) -> dict[str, Any]:
    return {
        "part": part, "what": what, "notes": number, "cpu_s": round(cost.cpu, 2), "parent_s": round(cost.parent, 2),
        "wall_s": round(cost.wall, 2), "parent_mb": cost.parent_mb, "worker_mb": cost.worker_mb,
    }  # fmt: skip
